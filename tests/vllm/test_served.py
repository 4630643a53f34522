"""`memharness serve`: SmolLM2 behind vLLM's own server, asked through `openai:`, and gone at the end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from memharness.cli import command_line
from tests.vllm.conftest import WORDS, counted

KEY = "sk-test-5f3c9a71d2"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The server's address. It asks for a key, which it has from its environment."""
    errors = tmp_path_factory.mktemp("serve") / "stderr"
    with errors.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "memharness", "serve", "smollm2", "--port", "0", *WORDS],
            env={**os.environ, "VLLM_API_KEY": KEY}, stdout=subprocess.PIPE, stderr=log, text=True,
        )  # fmt: skip
    assert process.stdout is not None
    ready, words = process.stdout.readline(), process.stdout.readline()
    assert "serves smollm2" in ready, errors.read_text()
    started = psutil.Process(process.pid).children(recursive=True)
    assert len(started) >= 2  # the server, and its engine
    yield words.partition("OPENAI_BASE_URL=")[2].split()[0]
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    assert psutil.wait_procs(started, timeout=10)[1] == []
    assert KEY not in ready + words + errors.read_text()


def test_locomo_is_answered_through_the_server(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    what = ["--bench", "locomo", "--method", "bm25", "--items", "3", "--limit", "24", "--max-tokens", "16"]
    words_only = ["-R", "images=false"]
    assert command_line(["run", *what, "--reader", "openai:smollm2", *words_only, "--json"]) == 0
    summary = json.loads(capfd.readouterr().out)
    assert summary["outcomes"] == {"ok": 24}
    for told, answer, spent in counted(Path(summary["run"])).values():
        assert spent["text"] == told  # the server's own count
        assert answer <= spent["output"] <= 16
    assert not any(KEY in file.read_text(errors="replace") for file in tmp_path.rglob("*") if file.is_file())


def test_a_wrong_key_is_refused_and_not_shown(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong-000000000")
    assert command_line(["run", "--method", "null", "--bench", "locomo", "--reader", "openai:smollm2"]) == 2
    said = capfd.readouterr()
    assert "refuses the key in OPENAI_API_KEY" in said.err
    assert "sk-wrong" not in said.out + said.err


def test_a_server_that_cannot_start_says_why(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert command_line(["serve", "smollm2", "--port", "0", "--", "--no-such-flag"]) == 2
    said = capfd.readouterr().err
    assert "ended with code 2 before it was ready" in said
    assert "--no-such-flag" in said
