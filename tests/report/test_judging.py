"""What people see of judges fits a terminal, and says how a figure came about."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from memharness.report.judging import show_calibration, show_judgements
from memharness.run.calibrate import Verdict, figures
from tests.judging.test_calibrate import verdicts


def narrow() -> Console:
    """A terminal of 80 columns."""
    return Console(
        file=io.StringIO(), width=80, force_terminal=True, color_system=None, markup=False, highlight=False,
        legacy_windows=False,
    )  # fmt: skip


def report(made: list[Verdict], **more: Any) -> dict[str, Any]:
    """A calibration's report."""
    about: dict[str, Any] = {
        "judge": "path/to/file.py:Judge", "rubric": {"rubric": "memeye.v1", "verdict": "strict"}, "level": "interval",
        "about": "five levels", "asked": "words", "answers": len(made), "questions": 60, "calls": 180, "new": 3,
        "tokens": {"text": 9000, "image": 0, "output": 500}, "price": 0.0123, "banks": [{"recorded_by": ""}],
        "notes": ["a note"], "file": "results/calibrations/x.jsonl",
    }  # fmt: skip
    return about | figures(made) | more


def lines(console: Console) -> list[list[str]]:
    """Words by line; every line fits."""
    assert isinstance(console.file, io.StringIO)
    printed = console.file.getvalue().splitlines()
    assert max(map(len, printed)) <= 80
    return [line.split() for line in printed]


def test_a_calibration_fits_eighty_columns() -> None:
    made = verdicts(lambda kind, n: None if n % 6 == 0 else kind == "right", questions=1200)
    console = narrow()
    show_calibration(console, report(made))
    shown = lines(console)
    assert ["false", "accept,", "specific", "0.00", "%", "0.0", "–", "0.4", "%", "1,000", "200"] in shown
    assert ["even", "false", "reject", "0.00", "%", "0.0", "–", "0.9", "%", "400", "200"] in shown
    text = " ".join(" ".join(words) for words in shown)
    assert "judge Judge by memeye.v1" in text
    assert "judge errors: 600 of 3,600 answers (16.67 %)" in text
    assert "180 calls (3 new) · 9,000 prompt tokens · 500 output tokens · 0.0123 USD" in text
    assert "PARTLY USEFUL: better than a constant" in text
    assert "note: a note" in text


def test_an_unknown_price_and_an_official_reading_are_said() -> None:
    console = narrow()
    made = verdicts(lambda kind, n: kind == "right")
    show_calibration(console, report(made, price=None, rubric={"rubric": "memeye.v1", "verdict": "official"}))
    text = " ".join(" ".join(words) for words in lines(console))
    assert "read officially" in text
    assert "output tokens · unknown" in text


def test_a_run_without_judgements_shows_nothing() -> None:
    console = narrow()
    show_judgements(console, {"judgements": [], "agreement": []})
    show_judgements(console, {})
    assert isinstance(console.file, io.StringIO)
    assert not console.file.getvalue()


def test_official_figures_that_a_judge_makes_are_shown() -> None:
    score = {"value": 0.5, "low": None, "high": None, "n": 2}
    one = {"judge": "j", "rubric": {"rubric": "simplevqa.v1"}, "scores": {"co": score}, "calls": 2, "asked": "schema",
           "official": {"co": 0.5, "F": 0.4}, "about": "three-way"}  # fmt: skip
    console = narrow()
    show_judgements(console, {"judgements": [one]})
    shown = lines(console)
    assert ["j:", "F", "0.400"] in shown
    assert ["j", "simplevqa.v1", "co", "0.500", "none", "2", "0", "2", "schema"] in shown
