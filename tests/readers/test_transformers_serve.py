"""A real OpenAI-compatible server with pictures: `transformers serve` with a tiny Qwen3-VL, asked through `openai:`."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memharness.run.api import execute
from memharness.run.progress import Quiet
from memharness.run.spec import RunSpec
from tests.readers.tiny import tiny_model

MISSING = [name for name in ("fastapi", "uvicorn") if importlib.util.find_spec(name) is None]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model("qwen3_vl", tmp_path_factory.getbasetemp() / "tiny")


@pytest.fixture(scope="module")
def server(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if MISSING:
        pytest.skip(f"`transformers serve` needs {', '.join(MISSING)}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("serve") / "log"
    words = ["serve", str(model), "--host", "127.0.0.1", "--port", str(port), "--device", "cpu", "--dtype", "float32"]
    with log.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "transformers.cli.transformers", *words],
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, "HF_HUB_OFFLINE": "1"},
        )
    try:
        _wait(f"http://127.0.0.1:{port}/health", process, log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 180
    while time.monotonic() < until:
        assert process.poll() is None, log.read_text()[-3000:]
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"not healthy in three minutes:\n{log.read_text()[-3000:]}")


def read(out: Path, reader: str, **options: Any) -> dict[str, dict[str, Any]]:
    """The calls of a run over four sample questions with their gold evidence shown in pictures, by question."""
    spec = RunSpec(
        method="oracle", bench="atm", reader=reader, view="pixels", limit="4", max_tokens=6, out=str(out),
        reader_options=options,
    )  # fmt: skip
    summary = execute(spec, Quiet())
    assert summary["outcomes"] == {"ok": 4}
    folder = Path(summary["run"])
    lines = [json.loads(line) for file in (folder / "ledger").glob("*.jsonl") for line in file.read_text().splitlines()]
    return {line["question"]: line for line in lines if line["kind"] == "generate"}


def test_a_sample_question_of_atm_is_answered_with_its_picture(
    server: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path / "home"))
    served = read(tmp_path / "served", f"openai:{model}", base_url=server)
    here = read(tmp_path / "here", f"hf:{model}")
    assert served.keys() == here.keys()
    assert sum(call["image"] > 0 for call in here.values()) >= 2
    for question, call in here.items():
        assert served[question]["status"] == "ok" and served[question]["output"] >= 1
        assert (served[question]["image"] > 0) == (call["image"] > 0)
        # the same picture through the same processor: the server's sum and ours agree to the token
        assert served[question]["text"] + served[question]["image"] == call["text"] + call["image"]
