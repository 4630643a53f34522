"""`memharness leaderboard` with its files, and what it imports."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import RUN, Said

Cli = Callable[..., Said]


@pytest.fixture
def two(cli: Cli) -> Path:
    """Two runs that answer alike, under other names."""
    cli(*RUN)
    cli(*RUN, "-R", "reply=c0-1")
    return Path("results/runs")


def test_every_file_is_written_and_said(cli: Cli, two: Path, tmp_path: Path) -> None:
    files = {"--csv": "b.csv", "--parquet": "b.parquet", "--markdown": "b.md", "--html": "b.html"}
    said = cli("leaderboard", two, *(word for pair in files.items() for word in pair), "--with-published")
    assert said.code == 0
    assert [line for line in said.err.splitlines() if line.startswith("wrote")] == [
        f"wrote {name}" for name in files.values()
    ]
    rows = list(csv.DictReader((tmp_path / "b.csv").open()))
    assert len(rows) == 2
    assert {row["tie_group"] for row in rows} == {"a"}
    assert all(len(row["date"]) == 10 for row in rows)
    assert "tied" in said.out
    assert "the papers print no figure of it" in said.out


def test_ties_are_marked_when_asked_for(cli: Cli, two: Path) -> None:
    said = cli("leaderboard", two)
    assert "tied" not in said.out
    assert "no ranking: --ties marks those that cannot be told apart" in said.err
    said = cli("leaderboard", two, "--ties")
    assert said.out.splitlines()[2].split()[0] == "tied"
    assert json.loads(cli("leaderboard", two, "--ties", "--json").out)["rows"][0]["tie_group"] == "a"


@pytest.mark.parametrize("flag", ["--csv", "--parquet", "--markdown", "--html"])
def test_files_that_cannot_be_written(cli: Cli, two: Path, tmp_path: Path, flag: str) -> None:
    said = cli("leaderboard", two, flag, tmp_path)
    assert said.code == 2
    assert f"error: {flag} {tmp_path}: is a folder; name a file" in said.err
    (tmp_path / "file").write_text("")
    said = cli("leaderboard", two, flag, tmp_path / "file" / "board")
    assert said.code == 2
    assert "file/board" in said.err
    assert "Traceback" not in said.err


def test_damaged_scores_are_named(cli: Cli, two: Path) -> None:
    broken = next(two.iterdir()) / "scores.jsonl"
    broken.write_text('{"unit": 1}\n' + broken.read_text())
    said = cli("leaderboard", two, "--ties")
    assert said.code == 2
    assert f"{broken}: line 1: damaged" in said.err


def test_without_flags_nothing_heavy_is_imported(cli: Cli, two: Path, tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from memharness.cli import command_line\n"
        f"command_line(['leaderboard', {str(tmp_path / two)!r}])\n"
        "heavy = {'matplotlib', 'pandas', 'pyarrow', 'jinja2', 'scipy', 'torch', 'transformers'}\n"
        "sys.exit(str(sorted(heavy & set(sys.modules))) if heavy & set(sys.modules) else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "everything" in done.stdout
