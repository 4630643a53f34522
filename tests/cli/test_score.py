"""`memharness score`, `verify`, `evaluate` and `leaderboard`."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import RUN, TOYS, Said

Cli = Callable[..., Said]


@pytest.fixture
def run(cli: Cli) -> Path:
    """A finished run."""
    return Path(json.loads(cli(*RUN, "--json").out)["run"])


def test_score_again_gives_the_same(cli: Cli, run: Path) -> None:
    before = json.loads((run / "summary.json").read_text())
    said = cli("score", run, "--json")
    assert said.code == 0
    assert json.loads(said.out)["scores"] == before["scores"]


def test_score_with_a_judge(cli: Cli, run: Path) -> None:
    said = cli("score", run, "--judge", f"{TOYS}:Toy", "--json")
    assert json.loads(said.out)["scores"]["verdict"]["value"] == 1.0
    assert "verdict" in cli("show", run).out


def test_verify_finds_a_figure_that_was_changed(cli: Cli, run: Path) -> None:
    said = cli("verify", run)
    assert said.code == 0
    assert "every figure recomputed equal" in said.out
    file = run / "summary.json"
    summary = json.loads(file.read_text())
    summary["scores"]["right"]["value"] = 0.123
    file.write_text(json.dumps(summary))
    said = cli("verify", run, "--json")
    assert said.code == 1
    found = json.loads(said.out)
    assert found["equal"] is False
    assert any("right.value" in line for line in found["differences"])


def test_evaluate_a_file_of_predictions(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "predictions.jsonl"
    lines = [{"id": f"c0/{n}", "prediction": f"c0-{n}"} for n in range(3)] + [{"id": "c9/9", "prediction": "x"}]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = ("evaluate", f"{TOYS}:Numbers", "--predictions", file)
    said = cli(*words, "--json")
    assert said.code == 0
    found = json.loads(said.out)
    assert found["bench"] == "numbers"
    assert found["n"] == 6
    assert found["scores"]["right"] == 0.5
    assert "no question has the id 'c9/9'" in said.err
    shown = cli(*words).out
    assert "numbers: 6 questions" in shown
    assert "right" in shown
    assert json.loads(cli(*words, "-B", "contexts=1", "--json").out)["scores"]["right"] == 1.0


# -------------------------------------------------------------------------------------------------------- leaderboard


def test_the_leaderboard_has_one_row_a_run(cli: Cli, tmp_path: Path) -> None:
    cli(*RUN)
    cli(*RUN, "--items", "1", "-R", "reply=c0-1")
    said = cli("leaderboard", "results", "--csv", "board.csv")
    assert said.code == 0
    rows = list(csv.DictReader((tmp_path / "board.csv").open()))
    assert len(rows) == 2
    assert {row["data_state"] for row in rows} == {"sample"}
    assert [row["items"] for row in rows] == ["1", ""]  # other limits are no better or worse: they stand apart
    assert "SAMPLE" in said.out
    assert "numbers · evidence track" in said.out
    assert json.loads(cli("leaderboard", "results/runs", "--json").out)["rows"][0]["method"] == "everything"


def test_the_csv_opens_in_pandas(cli: Cli, run: Path, tmp_path: Path) -> None:
    import pandas

    cli("leaderboard", run, "--csv", tmp_path / "board.csv")
    frame = pandas.read_csv(tmp_path / "board.csv")
    assert len(frame) == 1
    assert frame["n"][0] == 6
    assert frame["primary"][0] == "right"
    assert json.loads(frame["config"][0])["forget"] is False


def test_unfinished_and_foreign_runs_are_left_out_and_said(cli: Cli, run: Path) -> None:
    for name, manifest in (("unfinished", (run / "manifest.json").read_text()), ("foreign", '{"format": 99}')):
        folder = run.with_name(name)
        folder.mkdir()
        (folder / "manifest.json").write_text(manifest)
    said = cli("leaderboard")
    assert said.code == 0
    assert "unfinished: this run is not finished" in said.err
    assert "run format 99" in said.err


def test_a_run_with_failures_has_its_row(cli: Cli, tmp_path: Path) -> None:
    assert cli(*RUN, "-R", "fail_on=What is word 1").code == 1
    cli("leaderboard", "--csv", "board.csv")
    row = next(csv.DictReader((tmp_path / "board.csv").open()))
    assert row["outcome_reader_error"] == "2"
    assert (row["n"], row["primary_n_valid"]) == ("6", "4")


def test_a_leaderboard_of_nothing(cli: Cli, tmp_path: Path) -> None:
    assert "no finished run" in cli("leaderboard", tmp_path).err
