"""Tests that run vLLM itself. `make test-vllm` gives them an environment; in any other they skip at once."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import psutil
import pytest

from memharness.media import MediaStore
from memharness.readers.vllm import VLLMConfig, VLLMReader, installed

# Small and quick to start: nothing is compiled, and the key-value cache does not take the machine.
OPTIONS = {"dtype": "f32", "max_model_len": 2048, "kv_cache_gib": 0.5, "enforce_eager": True}
WORDS = [word for name, value in OPTIONS.items() for word in ("-R", f"{name}={str(value).lower()}")]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is in this folder where there is no vLLM; where there is, an engine's start takes its time."""
    missing = not installed()
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(900))
            if missing:
                item.add_marker(pytest.mark.skip(reason="vLLM is not installed here; `make test-vllm`"))


def engines() -> set[int]:
    """Ids of this process's children, without Python's own helper that tracks shared memory."""
    found = set()
    for child in psutil.Process(os.getpid()).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if "resource_tracker" not in " ".join(child.cmdline()):
                found.add(child.pid)
    return found


def counted(run: Path) -> dict[str, tuple[int, int, dict[str, int]]]:
    """By question: tokens of the recorded prompt as the tokenizer counts it, of the answer, and what reading cost."""
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(folder())
    found = {}
    for line in (run / "records.jsonl").read_text().splitlines():
        record = json.loads(line)
        system, _, user = record["prompt"].removeprefix("system: ").partition("\n\nuser: ")
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        told = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
        answer = tokenizer.encode(record["answer"], add_special_tokens=False)
        found[record["question"]] = (len(told), len(answer), record["spent"]["read"])
    return found


def folder() -> str:
    """Where SmolLM2 is unpacked."""
    return VLLMReader("smollm2", VLLMConfig(), MediaStore())._checkpoint.source
