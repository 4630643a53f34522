"""`memharness plot`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import RUN, Said

Cli = Callable[..., Said]


def test_a_plot_of_real_runs(cli: Cli, tmp_path: Path) -> None:
    for limit in ("1", "2"):
        cli(*RUN, "--items", limit)
    said = cli("plot", "sweep", "results/runs", "--against", "items", "--out", "plot.svg")
    assert said.code == 0
    assert "wrote plot.svg and plot.csv, 2 runs" in said.err
    assert said.out == ""
    rows = json.loads(cli("plot", "cost", "results/runs", "--out", "cost.png", "--json").out)["rows"]
    assert [row["name"] for row in rows] == ["everything items 1", "everything items 2"]
    assert (tmp_path / "cost.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "cost.csv").is_file()


def test_unfinished_runs_are_left_out_and_said(cli: Cli, tmp_path: Path) -> None:
    cli(*RUN)
    run = next(Path("results/runs").iterdir())
    unfinished = run.with_name("unfinished")
    unfinished.mkdir()
    (unfinished / "manifest.json").write_text((run / "manifest.json").read_text())
    said = cli("plot", "cost", "results/runs", "--out", "plot.svg")
    assert said.code == 0
    assert "left out: results/runs/unfinished: this run is not finished" in said.err
    said = cli("plot", "cost", unfinished, "--out", "none.svg")
    assert said.code == 2
    assert "no finished run under" in said.err
    assert not (tmp_path / "none.svg").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["cost", "results/runs"], "name the picture with --out FILE.svg or FILE.png"),
        (["cost", "nowhere", "--out", "p.svg"], "plot nowhere: no such folder"),
        (["pie", "results/runs", "--out", "p.svg"], "plot pie: no such plot"),
        (["cost", "results/runs", "--out", "p.svg", "--metric", "rihgt"], "no score rihgt (did you mean right?)"),
        (["objective", "results/runs", "--out", "p.svg"], "has no trace of an objective"),
        (["cost", "results/runs", "--out", "/dev/null/p.svg"], "/dev/null/p.svg"),
    ],
)
def test_mistakes_are_said_in_a_line(cli: Cli, words: list[str], message: str) -> None:
    cli(*RUN)
    said = cli("plot", *words)
    assert said.code == 2
    assert said.err.splitlines()[-1].startswith("error: ")
    assert message in said.err
    assert said.out == ""
