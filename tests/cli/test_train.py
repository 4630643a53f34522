"""`memharness train` finds trainers by entry points, and loads only the one that is named."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from memharness.cli import command_line
from memharness.cli import train as module
from memharness.registry import Entry

OUTSIDE = '''
import typer

def lamp(watts: int = typer.Option(40, help="How bright.")) -> None:
    """Train a lamp."""
    typer.echo(f"trained at {watts}")
'''


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trainer that another distribution brings, and one that cannot be imported."""
    (tmp_path / "outside_trainer.py").write_text(OUTSIDE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "outside_trainer", raising=False)
    found = {
        "lamp": Entry("trainers", "lamp", "outside_trainer:lamp", "lamps"),
        "broken": Entry("trainers", "broken", "not_there_at_all:run", "ruins"),
    }
    monkeypatch.setattr(module, "entries", lambda kind: found if kind == "trainers" else {})


@pytest.mark.usefixtures("outside")
def test_an_outside_trainer_runs_though_another_is_broken(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line(["train", "lamp", "--watts", "60"]) == 0
    assert capsys.readouterr().out == "trained at 60\n"


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["lump"], "no trainer is called 'lump' (did you mean lamp?); there are: broken, lamp"),
        (["broken"], "trainer broken (from ruins): cannot import not_there_at_all"),
        (["lamp", "--watts", "many"], "--watts"),
    ],
)
def test_mistakes(capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    assert command_line(["train", *words]) == 2
    assert said in capsys.readouterr().err


def test_help_lists_what_is_installed(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line(["train", "--help"]) == 0
    said = capsys.readouterr().out
    assert "memo-extractor" in said
    assert "memo-manager" in said


def test_the_list_imports_no_model_library() -> None:
    import subprocess

    code = (
        "import sys; from memharness.cli import command_line; command_line(['train', '--help'])\n"
        "heavy = {'torch', 'transformers', 'peft'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
