"""The leaderboard: samples, tracks and controls apart, the same columns in each row, nothing lost on a full disk."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from memharness.cli.board import runs as found
from memharness.report.leaderboard import options_told, rows, show_leaderboard, tokens_used, write_csv
from memharness.report.tables import console_for
from memharness.types import UserError
from tests.report.runs import summary


def shown(*summaries: dict[str, Any]) -> str:
    """The leaderboard as printed into a file."""
    stream = io.StringIO()
    show_leaderboard(console_for(stream), summaries)
    return stream.getvalue()


def test_the_order_is_real_before_sample_contenders_before_controls_best_first() -> None:
    runs = [
        summary(0.9, run="sample", data_state="sample"),
        summary(0.8, run="control", control=True),
        summary(0.5, run="second"),
        summary(0.6, run="first"),
        summary(0.95, run="other track", track="answer"),
    ]
    assert [row["run"] for row in rows(runs)] == ["other track", "first", "second", "control", "sample"]


def test_every_row_has_the_same_columns() -> None:
    other = summary(bench="locomo", primary="judge", price=None)
    other["scores"] = {"judge": other["scores"]["em"]}
    found = rows([summary(), other])
    assert list(found[0]) == list(found[1])
    by_bench = {row["bench"]: row for row in found}
    assert by_bench["mem-gallery"]["score_f1"] == 0.412
    assert by_bench["mem-gallery"]["score_judge"] is None
    assert by_bench["locomo"]["primary"] == "judge"
    assert by_bench["locomo"]["primary_low"] == 0.175
    assert by_bench["locomo"]["price_usd"] is None
    assert by_bench["mem-gallery"]["tokens_read_text"] == 90_000
    assert by_bench["mem-gallery"]["tokens_judge_text"] == 0
    assert by_bench["mem-gallery"]["outcome_ok"] == 100
    assert by_bench["mem-gallery"]["outcome_timeout"] == 0


def test_a_run_without_scores_has_a_row_too() -> None:
    row = rows([summary(scores={}, primary="", official={})])[0]
    assert row["primary_value"] is None
    assert "no score" in shown(summary(scores={}, primary="", official={}))


def test_csv_is_read_back_as_written(tmp_path: Path) -> None:
    write_csv(tmp_path / "deep" / "board.csv", [summary(method='a "quoted", name'), summary(0.1)])
    found = list(csv.DictReader((tmp_path / "deep" / "board.csv").open(newline="")))
    assert [row["method"] for row in found] == ['a "quoted", name', "graphmemix"]
    assert float(found[1]["primary_value"]) == 0.1
    assert found[0]["judge"] == ""


def test_a_csv_that_cannot_be_written_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "board.csv"
    target.write_text("old")

    def full(*words: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(UserError, match="the disk is full"):
        write_csv(target, [summary()])
    assert target.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["board.csv"]


def test_what_all_have_in_common_is_said_once() -> None:
    text = shown(summary(0.6), summary(0.5, method="dense"))
    assert text.startswith(
        "mem-gallery · evidence track · f1 · reader smollm2 · limits 2,000 tokens and 10 items, captions\n"
    )
    assert "reader" not in text.splitlines()[1]
    text = shown(summary(0.6), summary(0.5, reader="extractive", items=5))
    assert text.splitlines()[1].split()[:3] == ["method", "reader", "limits"]


def test_samples_and_tracks_and_primaries_have_tables_of_their_own() -> None:
    text = shown(summary(), summary(track="answer"), summary(data_state="sample"), summary(primary="em"))
    titles = [line for line in text.splitlines() if line.startswith("mem-gallery · ")]
    assert [title.split(" · ")[1:3] for title in titles] == [
        ["answer track", "f1"], ["evidence track", "em"], ["evidence track", "f1"], ["evidence track", "f1"],
    ]  # fmt: skip
    assert " · SAMPLE · " in titles[-1]
    assert text.count("SAMPLE: measured on the bundled sample") == 1


def test_other_data_and_other_questions_have_tables_of_their_own() -> None:
    """Ranking a run of five questions, or of another file, above one of all is no ranking."""
    limited = {"limit": "5-9", "ids": None}
    text = shown(summary(data_digest="a" * 64), summary(data_digest="b" * 64), summary(selection=limited))
    titles = [line for line in text.splitlines() if line.startswith("mem-gallery · ")]
    assert len(titles) == 3
    assert sum("data aaaaaaaa" in title for title in titles) == 1
    assert sum("limit 5-9" in title for title in titles) == 1


def test_other_options_of_the_benchmark_have_tables_of_their_own() -> None:
    """Another rule that reads letters, or other frames of a video, make other figures."""
    other = {"extractor": "vlmevalkit", "frames": 2}
    text = shown(summary(0.6), summary(0.9, options=other), summary(0.7, prompt="answer.v1"))
    titles = [line for line in text.splitlines() if line.startswith("mem-gallery · ")]
    assert len(titles) == 3
    assert sum(" · extractor=vlmevalkit · frames=2 · " in title for title in titles) == 1
    assert sum(" · prompt answer.v1 · " in title for title in titles) == 1
    assert rows([summary(options={"frames": 2})])[0]["options"] == '{"frames": 2}'


def test_runs_set_aside_by_fresh_are_not_listed(tmp_path: Path) -> None:
    for name in ("atm-bm25-toy-1a2b3c4d", "atm-bm25-toy-1a2b3c4d.old-20261130-101010-ab12"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "manifest.json").write_text("{}")
    assert {run.name for run in found([tmp_path])} == {"atm-bm25-toy-1a2b3c4d"}


def test_runs_of_one_method_are_told_apart_by_their_options() -> None:
    runs = [
        summary(0.6),
        summary(0.5, config={"verifier": "similarity", "k": 10, "edges": False}),
        summary(0.4, method="bm25", config={}),
    ]
    assert options_told(runs) == {("graphmemix", "edges")}
    text = shown(*runs)
    assert "graphmemix verifier=similarity edges=True " in text
    assert "graphmemix verifier=similarity edges=False " in text


def test_marks_of_controls_and_incomplete_runs() -> None:
    text = shown(summary(0.5, control=True), summary(0.6, complete=False))
    assert "graphmemix verifier=similarity (control)" in text
    assert "graphmemix verifier=similarity (incomplete)" in text


def test_tokens_a_question_are_of_the_whole_life() -> None:
    assert tokens_used(summary()) == 100_000
    assert shown(summary()).splitlines()[2].split()[-1] == "1,000"
