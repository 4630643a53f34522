"""The command line in this process, as in tests/cli, and what a refusal must look like."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memharness.benchmarks
from tests.cli.conftest import RUN, TOYS, Said, cli, home

__all__ = ["HOSTILE", "RUN", "TOYS", "Said", "cli", "home", "hostile", "refused", "run_words", "summary", "toy"]

HOSTILE = Path(__file__).with_name("hostile.py")
SAMPLES = Path(memharness.benchmarks.__file__).parent


def hostile(name: str) -> str:
    """The class path of a hostile plug-in."""
    return f"{HOSTILE}:{name}"


def toy(name: str) -> str:
    """The class path of a toy."""
    return f"{TOYS}:{name}"


def run_words(method: str = "", bench: str = "", reader: str = "") -> list[str]:
    """A run over toys, with one of them put in place."""
    return [
        "run", "--method", method or toy("Everything"), "--bench", bench or toy("Numbers"),
        "--reader", reader or toy("Toy"), "--json",
    ]  # fmt: skip


def refused(said: Said, *words: str) -> None:
    """A user's mistake: exit code 2, nothing on stdout, one line `error: …` that holds these words."""
    assert said.code == 2, (said.out, said.err)
    assert said.out == ""
    assert "Traceback" not in said.err
    lines = [line for line in said.err.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    assert said.err.splitlines()[-1] == lines[0]
    for word in words:
        assert word in lines[0], lines[0]


def summary(said: Said) -> dict[str, Any]:
    """The one JSON object of a command that ran to its end."""
    assert said.code in (0, 1), said.err
    assert said.out.count("\n") == 1
    found: dict[str, Any] = json.loads(said.out, parse_constant=pytest.fail)
    return found


def records(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The records of a run."""
    return [json.loads(line) for line in (Path(found["run"]) / "records.jsonl").read_text().split("\n") if line]


@pytest.fixture
def sample(tmp_path: Path) -> Callable[[str], Path]:
    """Copies a bundled sample to a folder that a test may spoil."""

    def copied(name: str) -> Path:
        return Path(shutil.copytree(SAMPLES / name / "sample", tmp_path / f"data-{name}"))

    return copied
