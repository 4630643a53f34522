"""What a person sees of a run: every figure with its interval and n, and never a sample without its mark."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from memharness.report.tables import (
    SAMPLE_WARNING,
    console_for,
    dollars,
    put,
    show_plan,
    show_summary,
    table,
)
from tests.report.runs import summary


def shown(made: dict[str, Any], width: int | None = None) -> str:
    """A summary as printed: into a file, or on a terminal of some width."""
    stream = io.StringIO()
    if width is None:
        console = console_for(stream)
    else:
        console = Console(
            file=stream,
            width=width,
            force_terminal=True,
            color_system=None,
            markup=False,
            highlight=False,
            legacy_windows=False,
        )
    show_summary(console, made)
    return stream.getvalue()


def test_a_run_with_nothing_wrong() -> None:
    text = shown(summary())
    lines = [line.split() for line in text.splitlines()]
    assert ["f1", "0.412", "0.331", "–", "0.496", "100", "t(9),", "10", "clusters"] in lines
    assert ["em", "0.250", "0.175", "–", "0.343", "100", "wilson"] in lines
    assert ["read", "100", "90,000", "5,000", "61.5"] in lines
    assert "graphmemix on mem-gallery, read by smollm2" in text
    assert "budget 2,000 tokens and 10 items" in text
    assert "verifier=similarity" in text
    assert "embedder minilm" in text
    for absent in ("SAMPLE", "outcomes", "n valid", "price", "flags", "image tokens", "INCOMPLETE"):
        assert absent not in text


def test_failures_bring_the_valid_columns_and_the_outcomes() -> None:
    made = summary(outcomes={"ok": 96, "over_window": 3, "reader_error": 1}, flags={"truncated": 2, "empty_readout": 0})
    made["scores"]["f1"] |= {"n_valid": 96, "value_valid": 0.429}
    text = shown(made)
    assert "outcomes: ok 96 · over_window 3 · reader_error 1" in text
    assert "flags: truncated 2\n" in text
    assert "n valid" in text
    assert "0.429" in text


def test_a_sample_is_marked_before_anything_else() -> None:
    assert shown(summary(data_state="sample")).startswith(SAMPLE_WARNING)


def test_a_control_an_incomplete_run_and_notes_are_said() -> None:
    text = shown(summary(control=True, complete=False, notes=["1 torn line was dropped"]))
    assert "graphmemix (control) on mem-gallery" in text
    assert "INCOMPLETE" in text
    assert "note: 1 torn line was dropped" in text


def test_a_leading_score_that_was_not_measured_is_said() -> None:
    words = "co, the score that leads simplevqa, was not measured: give --judge"
    assert f"note: {words}\n" in shown(summary(unmeasured=words))
    assert "not measured" not in shown(summary(unmeasured=None))


def test_an_interval_that_cannot_be_given_says_why_once() -> None:
    made = summary()
    for score in made["scores"].values():
        score |= {"low": None, "high": None, "method": "none", "clusters": 3, "note": "3 clusters are too few"}
    text = shown(made)
    assert text.count("3 clusters are too few") == 1
    assert [line.split() for line in text.splitlines()][4][:4] == ["f1", "0.412", "none", "100"]


def test_judge_errors_stand_beside_the_score() -> None:
    made = summary()
    made["scores"]["em"]["judge_error"] = 7
    assert "wilson, 7 judge_error" in shown(made)


def test_official_figures_are_shown_once() -> None:
    text = shown(summary())
    assert "f1.temporal" in text
    assert "bleu_1" in text
    assert "em.temporal" not in text
    assert "1 more official figures" in text


def test_nothing_to_score() -> None:
    assert "no scores" in shown(summary(scores={}, primary="", official={}))


def test_a_price_is_said_where_there_is_one() -> None:
    assert "price: 1.23 USD" in shown(summary(price=1.234))
    assert "price: unknown" in shown(summary(price=None))


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_of_this_width_holds_the_figures(width: int) -> None:
    made = summary(outcomes={"ok": 96, "over_window": 4})
    made["scores"]["F1(norm=hotpot)"] = dict(made["scores"]["f1"], n=10_000, n_valid=9996)
    made["tokens"]["read"]["image"] = 12_345_678
    text = shown(made, width)
    assert max(map(len, text.splitlines())) <= width
    for figure in ("0.331 – 0.496", "10,000", "9,996", "12,345,678", "61.5"):
        assert figure in text


def test_a_file_has_no_trailing_blanks_and_no_colour() -> None:
    text = shown(summary(data_state="sample", notes=["[bold]as it is[/bold]"]))
    assert "\x1b" not in text
    assert "[bold]as it is[/bold]" in text
    assert not any(line.endswith(" ") for line in text.splitlines())


def test_a_row_is_one_line_in_a_file_however_long() -> None:
    stream = io.StringIO()
    made = table(console_for(stream), "name", ">n")
    made.add_row("x" * 500, "1")
    put(console_for(stream), made)
    assert "x" * 500 + "  1\n" in stream.getvalue()


def test_a_plan() -> None:
    plan: dict[str, Any] = {
        "contexts": 2, "questions": None, "calls": {"read": 36},
        "tokens": {"read": {"text": 13_896, "image": 0, "output": 2304}},
        "price": None, "price_date": None, "notes": ["sized as 10 items"], "view": "captions", "data_state": "sample",
        "identity": "1a2b" * 16, "folder": "results/runs/x",
    }  # fmt: skip
    stream = io.StringIO()
    show_plan(console_for(stream), plan)
    text = stream.getvalue()
    assert text.startswith(SAMPLE_WARNING)
    assert "an unknown number of questions of 2 contexts" in text
    assert "price: unknown" in text
    stream = io.StringIO()
    show_plan(console_for(stream), plan | {"price": 0.00347, "price_date": "2026-03-01", "questions": 36})
    assert "price: 0.00347 USD (prices of 2026-03-01)" in stream.getvalue()
    assert ["read", "36", "13,896", "0", "2,304"] in [line.split() for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize(("price", "words"), [(0, "0.00 USD"), (1234.5, "1,234.50 USD"), (0.034567, "0.0346 USD")])
def test_dollars(price: float, words: str) -> None:
    assert dollars(price) == words
