"""The leaderboard: samples, tracks and controls apart, the same columns in each row, nothing lost on a full disk."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from memharness.report.collect import find as found
from memharness.report.leaderboard import Standing, options_told, rows, show_leaderboard, tokens_used, write_csv
from memharness.report.published import results
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
    write_csv(tmp_path / "deep" / "board.csv", rows([summary(method='a "quoted", name'), summary(0.1)]))
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
        write_csv(target, rows([summary()]))
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


def test_runs_of_other_limits_stand_apart_each_best_first() -> None:
    runs = [
        summary(0.9, items=5, run="wide"),
        summary(0.1, budget=500, run="low"),
        summary(0.2, budget=500, run="high"),
    ]
    assert [row["run"] for row in rows(runs)] == ["high", "low", "wide"]


def test_every_score_has_its_interval_and_shares() -> None:
    run = summary(date="2026-11-30")
    run["scores"]["f1"] |= {"unparsed": 5, "judge_error": 1}
    run["outcomes"] = {"ok": 90, "timeout": 10}
    row = rows([run])[0]
    assert (row["score_f1_low"], row["score_f1_high"], row["score_f1_n"], row["score_f1_clusters"]) == (
        0.331, 0.496, 100, 10,
    )  # fmt: skip
    assert (row["score_f1_unparsed"], row["score_em_unparsed"], row["primary_unparsed_share"]) == (5, 0, 0.05)
    assert (row["primary_judge_error_share"], row["error_share"], row["date"]) == (0.01, 0.1, "2026-11-30")
    assert (row["official_f1.temporal"], row["official_bleu_1"]) == (0.5, 0.33)
    assert "official_f1" not in row


def test_cost_is_of_the_memorys_life_without_the_judge() -> None:
    run = summary()
    run["tokens"]["judge"] = {"text": 7777, "image": 0, "output": 7, "latent": 0}
    run["tokens"]["recall"] = {"text": 0, "image": 0, "output": 0, "latent": 40}
    run["calls"]["judge"], run["seconds"]["judge"] = 100, 1000.0
    row = rows([run])[0]
    assert (row["lifecycle_tokens"], row["lifecycle_latents"], row["lifecycle_calls"]) == (100_000, 40, 112)
    assert row["lifecycle_seconds"] == pytest.approx(65.75)
    assert (row["tokens_per_question"], row["calls_per_question"]) == (1000, 1.12)
    assert row["tokens_judge_text"] == 7777
    assert rows([summary(n=0, tokens={}, calls={})])[0]["tokens_per_question"] is None


def test_published_figures_are_rows_of_their_own_and_never_ranked() -> None:
    made = rows([summary(0.6)], {summary()["run"]: Standing("a")}, results("mem-gallery"))
    assert made[0]["tie_group"] == "a"
    published = made[1:]
    assert {row["data_state"] for row in published} == {"published"}
    assert {row["tie_group"] for row in published} == {None}
    assert {row["not_ranked"] for row in published} == {"published"}
    first = next(row for row in published if row["method"] == "A-MEM" and row["reader"] == "Qwen/Qwen3-VL-8B-Instruct")
    assert (first["score_judge_accuracy"], first["score_em"]) == (pytest.approx(0.5289), pytest.approx(0.3261))
    assert first["run"] == "GraphMemix, Table 1 (arXiv:2608.26983)"
    assert list(made[0]) == list(made[-1])
    text = io.StringIO()
    show_leaderboard(console_for(text), [summary(0.6)], published=True)
    assert "mem-gallery · published, not measured here and never ranked with runs" in text.getvalue()
    text = io.StringIO()
    show_leaderboard(console_for(text), [summary(0.6, bench="nowhere")], published=True)
    assert "nowhere: the papers print no figure of it" in text.getvalue()


def test_letters_and_missing_cells_on_the_screen() -> None:
    runs = [summary(0.6, run="one"), summary(0.5, run="two")]
    ties = {"one": Standing("a"), "two": Standing("", "3 of 100 cells missing")}
    text = io.StringIO()
    show_leaderboard(console_for(text), runs, ties)
    lines = text.getvalue().splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["tied", "a", "–"]
    assert lines[-1] == "not ranked: graphmemix verifier=similarity: 3 of 100 cells missing"


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
