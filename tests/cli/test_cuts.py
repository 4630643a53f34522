"""`memharness cuts`."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import RUN, Said

Cli = Callable[..., Said]


@pytest.fixture
def made(cli: Cli) -> Path:
    """A run on the toys."""
    return Path(json.loads(cli(*RUN, "--out", "out", "--json").out)["run"])


def test_it_prints_tables_and_writes_a_file(cli: Cli, made: Path) -> None:
    said = cli("cuts", made, "--csv", "cuts.csv")
    assert said.code == 0
    assert "SAMPLE" in said.out
    rows = [line.split() for line in said.out.splitlines()]
    assert ["category"] in rows
    assert any(row[:2] == ["gold", "itself"] for row in rows)
    assert "wrote cuts.csv" in said.err
    parts = [row["part"] for row in csv.DictReader(Path("cuts.csv").read_text().splitlines())]
    assert list(dict.fromkeys(parts)) == ["all", "even", "odd"]


def test_one_json_object_for_all_runs_and_scores(cli: Cli, made: Path) -> None:
    found = json.loads(cli("cuts", made, made, "--metric", "right", "--metric", "found", "--json").out)["cuts"]
    assert [one["score"] for one in found] == ["right", "found", "right", "found"]
    assert found[0]["parts"][0]["own"]["n"] == 6


def test_what_is_refused(cli: Cli, made: Path) -> None:
    for words, said in (
        ((), "cuts: name at least one finished run"),
        (("nowhere",), "nowhere: not a run folder"),
        ((made, "--metric", "wright"), "has no such score (did you mean right?)"),
        ((made, "--csv", "out"), "--csv out: is a folder; name a file"),
    ):
        found = cli("cuts", *words)
        assert found.code == 2
        assert said in found.err
        assert not found.out
