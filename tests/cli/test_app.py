"""Help at no cost, exit codes, and mistakes said in one line."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from memharness import __version__, registry
from memharness.cli import COMMANDS
from tests.cli.conftest import Said

Cli = Callable[..., Said]
HEAVY = ("pydantic", "numpy", "torch", "typer", "rich", "transformers", "pandas", "scipy", "yaml", "nltk")


def _python(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_help_imports_nothing_heavy(flag: str) -> None:
    done = _python("-X", "importtime", "-m", "memharness", flag)
    imported = {line.rsplit("|", 1)[-1].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert done.returncode == 0
    assert not imported & set(HEAVY)


def test_help_costs_little_more_than_python_itself() -> None:
    def best(*words: str) -> float:
        times = []
        for _ in range(7):
            began = time.perf_counter()
            assert _python(*words).returncode == 0
            times.append(time.perf_counter() - began)
        return min(times)

    assert best("-m", "memharness", "--help") - best("-c", "pass") < 0.08


def test_help_names_every_command(cli: Cli) -> None:
    for words in ((), ("--help",), ("-h",)):
        said = cli(*words)
        assert said.code == 0
        assert all(f"  {name} " in said.out for name in COMMANDS)


def test_version(cli: Cli) -> None:
    assert cli("--version").out == f"memharness {__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_that_says_what_the_list_says(cli: Cli, name: str) -> None:
    said = cli(name, "--help")
    assert said.code == 0
    assert " ".join(COMMANDS[name][1].split())[:60] in " ".join(said.out.split())


def test_python_m_passes_the_exit_code_on() -> None:
    done = _python("-m", "memharness", "rnu")
    assert done.returncode == 2
    assert done.stderr.startswith("error: no command is called 'rnu' (did you mean run?)")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rum"], "did you mean run?"),
        (["run", "--metod", "bm25"], "--metod"),
        (["run", "--seed", "x"], "--seed"),
        (["run", "--method", "bm25"], "run needs --bench"),
        (["show"], "Missing argument"),
        (["list", "metods"], "did you mean methods?"),
        (["show", "smolm2"], "did you mean smollm2?"),
        (["verify", "nowhere"], "not a run folder"),
        (["leaderboard", "nowhere"], "no such folder"),
        (["evaluate", "locomo", "--predictions", "nowhere.json"], "no such file"),
        (["data", "path", "locomi"], "did you mean locomo?"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(cli: Cli, words: list[str], message: str) -> None:
    said = cli(*words)
    assert said.code == 2
    assert said.out == ""
    assert message in said.err
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1


def test_a_group_without_a_command_shows_its_help(cli: Cli) -> None:
    said = cli("data")
    assert said.code == 2
    assert "prepare" in said.out + said.err
    assert "error:" not in said.err


def test_a_bug_is_not_hidden(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    look = importlib.import_module("memharness.cli.look")
    monkeypatch.setattr(look, "entries", lambda kind: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        cli("list")


@pytest.fixture
def greeting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A command as a plug-in brings it."""
    (tmp_path / "greeting_plugin.py").write_text(
        'import typer\ndef greet(name: str) -> None:\n    """Greet."""\n    typer.echo("hello " + name)\n'
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    points = [EntryPoint("greet", "greeting_plugin:greet", "memharness.commands")]
    monkeypatch.setattr(registry, "entry_points", lambda group: points if group == "memharness.commands" else [])
    registry.entries.cache_clear()
    yield
    registry.entries.cache_clear()


@pytest.mark.usefixtures("greeting")
def test_a_plugin_brings_a_command(cli: Cli) -> None:
    assert cli("greet", "you").out == "hello you\n"
    assert "greet" in cli("greet", "--help").out
    assert "greet" in cli("list", "commands").out
    assert "did you mean greet?" in cli("gret").err


def test_a_reader_of_our_output_may_leave() -> None:
    command = f"{sys.executable} -m memharness list | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ,
    )
    assert "Traceback" not in done.stderr
