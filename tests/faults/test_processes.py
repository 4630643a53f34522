"""Signals, dead workers, a run read while it is written, and a clock that jumps."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.conftest import Said, refused, run_words, summary, toy

Cli = Callable[..., Said]
SIZE = ["-B", "contexts=3", "-B", "questions=300", "-R", "slow=0.02", "--items", "20"]


@pytest.fixture
def start(home: Path, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts the command in a process of its own; what is left of it is ended after the test."""
    begun: list[subprocess.Popen[str]] = []

    def started(*words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "memharness", *run_words(), *SIZE, *words]
        begun.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return begun[-1]

    yield started
    for child in begun:
        if child.poll() is None:
            child.kill()
            child.wait()


def written(folder: Path) -> int:
    """Record lines by now."""
    return sum(file.read_bytes().count(b"\n") for file in folder.glob("results/runs/*/records/*.jsonl"))


def wait_for(folder: Path, count: int) -> None:
    """Wait until so many records are there."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and written(folder) < count:
        time.sleep(0.01)
    assert written(folder) >= count


def bought(run: str) -> list[str]:
    """Questions of calls that were paid for, from the ledger."""
    found = [json.loads(line) for file in Path(run).glob("ledger/*.jsonl") for line in file.read_text().splitlines()]
    return [c["question"] for c in found if c["kind"] == "generate" and c["status"] == "ok" and not c["hit"]]


def test_sigterm_loses_nothing(start: Callable[..., subprocess.Popen[str]], cli: Cli, tmp_path: Path) -> None:
    child = start()
    wait_for(tmp_path, 100)
    child.terminate()
    out, err = child.communicate(timeout=30)
    assert child.returncode != 0
    assert out == ""
    assert "Traceback" not in err
    kept = written(tmp_path)
    assert 100 <= kept < 900
    found = summary(cli(*run_words(), *SIZE))
    assert found["outcomes"] == {"ok": 900}
    assert written(tmp_path) == 900  # what was finished was not asked again
    assert len(bought(found["run"])) == len(set(bought(found["run"])))


def test_a_run_can_be_looked_at_while_it_is_written(
    start: Callable[..., subprocess.Popen[str]], cli: Cli, tmp_path: Path
) -> None:
    child = start()
    wait_for(tmp_path, 50)
    run = next(tmp_path.glob("results/runs/*"))
    for command in ("show", "verify", "score"):
        refused(cli(command, run, "--json"), "this run is not finished")
    assert "left out: " in cli("leaderboard", "results/runs").err
    assert child.poll() is None
    out, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    assert json.loads(out)["outcomes"] == {"ok": 900}
    assert cli("verify", run).code == 0


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds child processes by /proc")
def test_a_killed_worker_is_made_up_for(start: Callable[..., subprocess.Popen[str]], cli: Cli, tmp_path: Path) -> None:
    child = start("--workers", "3")
    wait_for(tmp_path, 30)
    children = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
    for worker in children:
        os.kill(int(worker), signal.SIGKILL)
    assert len(children) == 2
    out, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    found = json.loads(out)
    assert found["outcomes"] == {"ok": 900}
    asked = [json.loads(line)["question"] for line in (Path(found["run"]) / "records.jsonl").read_text().splitlines()]
    assert len(asked) == len(set(asked)) == 900
    assert cli("verify", found["run"]).code == 0


def test_a_clock_that_is_set_back_does_not_bring_an_old_failure_back(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A live episode counts as its last session played it, in the order of the sessions, not of the clock."""
    flaky = tmp_path / "flaky"
    flaky.write_text("Step 2")
    words = run_words(bench=toy("Corridor"), reader=toy("Flaky"))
    words += ["-R", f"log={tmp_path / 'prompts'}", "-R", f"reply={flaky}", "-B", "contexts=1"]
    assert "reader_error" in summary(cli(*words))["outcomes"]
    flaky.write_text("")
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - 86_400)
    found = summary(cli(*words))
    assert found["outcomes"] == {"ok": 3}
    assert found["scores"]["won"]["value"] == 1.0
    assert (Path(found["run"]) / "DONE").is_file()


def test_a_clock_that_jumps_within_a_run(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    real, jumps = time.time, iter(range(10**9))
    monkeypatch.setattr(time, "time", lambda: real() + (-1) ** next(jumps) * 1e6)
    found = summary(cli(*run_words()))
    assert found["outcomes"] == {"ok": 6}
    assert all(seconds >= 0 for seconds in found["seconds"].values())


def test_a_worker_that_cannot_begin_leaves_the_work_to_the_others(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's own process does all of it, and the worker's log says why it did nothing."""
    real: Any = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda words, **more: real([*words[:-1], "/nowhere"], **more))
    found = summary(cli(*run_words(), "--workers", "2", "-R", "slow=0.3", "--concurrency", "1"))
    assert found["outcomes"] == {"ok": 6}
    assert "error: /nowhere: not a run folder" in (Path(found["run"]) / "logs" / "worker-2.log").read_text()
