"""The command line in this process, with a home and a working folder of its own, and toy plug-ins by file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from memharness.cli import command_line

TOYS = Path(__file__).resolve().parents[1] / "run" / "toys.py"
RUN = ["run", "--method", f"{TOYS}:Everything", "--bench", f"{TOYS}:Numbers", "--reader", f"{TOYS}:Toy"]


@dataclass
class Said:
    """What a command said, and its exit code."""

    code: int
    out: str
    err: str


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own; the working folder is its parent."""
    folder = tmp_path / "home"
    monkeypatch.setenv("MEMHARNESS_HOME", str(folder))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def cli(home: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """Run a command line."""

    def run(*words: str | Path) -> Said:
        capfd.readouterr()
        code = command_line([str(word) for word in words])
        out, err = capfd.readouterr()
        return Said(code, out, err)

    return run
