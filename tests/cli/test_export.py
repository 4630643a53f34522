"""`memharness export`, `bundle`, and `verify` of a bundle."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from memharness.report.export import FORMATS
from tests.cli.conftest import RUN, Said

Cli = Callable[..., Said]


@pytest.fixture
def run(cli: Cli) -> Path:
    """A finished run."""
    return Path(json.loads(cli(*RUN, "--json").out)["run"])


@pytest.mark.parametrize("to", FORMATS)
def test_export_says_where_and_what(cli: Cli, run: Path, tmp_path: Path, to: str) -> None:
    said = cli("export", run, "--to", to)
    assert said.code == 0
    name = f"{run.name}.{to}" if to in ("json", "eval") else f"{run.name}-{to}"
    assert said.out == f"{name}: 6 questions ({FORMATS[to]})\n"
    assert (tmp_path / name).exists()
    made = json.loads(cli("export", run, "--to", to, "--out", f"other.{to}", "--json").out)
    assert made == {"path": f"other.{to}", "format": to, "questions": 6, "pictures": 0}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name the format with --to; there are: parquet, csv, json, hf, eval"),
        (["--to", "xlsx"], "--to xlsx: no such format"),
        (["--to", "json", "--media"], "no place for pictures"),
        (["--to", "csv", "--out", "."], "is there already and not empty"),
    ],
)
def test_export_refuses(cli: Cli, run: Path, words: list[str], said: str) -> None:
    result = cli("export", run, *words)
    assert result.code == 2
    assert result.err.startswith("error: ")
    assert said in result.err


def test_export_of_no_run(cli: Cli, tmp_path: Path) -> None:
    assert "not a run folder" in cli("export", tmp_path, "--to", "csv").err


def test_a_bundle_is_verified_by_verify(cli: Cli, run: Path, tmp_path: Path) -> None:
    said = cli("bundle", run)
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0].startswith(f"{run.name}.zip: 6 members, 0 of them pictures, ")
    assert lines[1].startswith("sha256 ")
    assert lines[2] == "verified: every figure recomputes from what it holds"
    made = json.loads(cli("bundle", run, "--out", "a/b.zip", "--json").out)
    assert (made["path"], made["sha256"]) == ("a/b.zip", lines[1].split()[1])
    said = cli("verify", "a/b.zip")  # its benchmark is a file that is not at hand here
    assert said.code == 2
    assert "toys.py" in said.err
    (tmp_path / "toys.py").write_bytes(Path(RUN[2].rpartition(":")[0]).read_bytes())
    said = cli("verify", "a/b.zip")
    assert (said.code, said.out) == (0, "a/b.zip: every figure recomputed equal\n")


def test_a_bundle_that_was_changed(cli: Cli, run: Path, tmp_path: Path) -> None:
    cli("bundle", run, "--out", "b.zip")
    file = tmp_path / "b.zip"
    content = bytearray(file.read_bytes())
    content[content.index(b"gold.jsonl") + 40] ^= 1
    file.write_bytes(content)
    said = cli("verify", "b.zip", "--json")
    assert said.code == 1
    assert json.loads(said.out)["differences"][0].startswith("gold.jsonl: ")


def test_verify_of_what_is_no_bundle(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "b.zip").write_text("words")
    said = cli("verify", "b.zip")
    assert said.code == 2
    assert "b.zip: not a bundle that can be read" in said.err
    assert cli("bundle", tmp_path).code == 2
