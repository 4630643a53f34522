"""How a comparison looks: on narrow and wide terminals, in a pipe, and in figures."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from memharness.report.compare import bounds, by, figure, p_words, show_comparison, signed
from memharness.report.tables import console_for
from memharness.run.compare import Comparison, compare
from memharness.stats import interval
from tests.run.finished import Finished, scored
from tests.run.test_compare import verdicts


@pytest.fixture
def found(tmp_path: Path) -> Comparison:
    """Three runs, one of them forced, with unequal clusters and long words."""
    runs = []
    for at, name in enumerate("abc"):
        rows = [
            replace(row, cluster="conv-0") if int(row.id[1:]) % 4 == 0 else row
            for row in scored(verdicts(seed=at), answer="a rather long answer " * 30)
        ]
        budget = {"readout.budget": 2000} if name == "c" else {}
        runs.append(Finished(rows, described={"memory.method": f"method-{name}", **budget}).write(tmp_path / name))
    return compare(runs, force=True)


def shown(found: Comparison, width: int) -> str:
    """What a terminal of a width shows, without its colours."""
    text = io.StringIO()
    console = Console(file=text, width=width, force_terminal=True, no_color=True, markup=False, highlight=False)
    show_comparison(console, found, questions=2, verbose=True)
    return "".join(part.partition("m")[2] if at else part for at, part in enumerate(text.getvalue().split("\x1b[")))


@pytest.mark.parametrize("width", [80, 120])
def test_it_fits_a_terminal(found: Comparison, width: int) -> None:
    lines = shown(found, width).splitlines()
    assert max(map(cell_len, lines)) <= width
    text = "\n".join(lines)
    assert "non-inferior" in text or "not shown" in text
    assert not [line for line in lines if line.strip() in ("ferior", "shown", "%")]  # no cell of figures is broken


def test_a_pipe_gets_whole_lines(found: Comparison) -> None:
    text = io.StringIO()
    show_comparison(console_for(text), found)
    assert "\x1b" not in text.getvalue()
    assert all(line == line.rstrip() for line in text.getvalue().splitlines())
    assert "Holm over 2 runs" in text.getvalue()


def test_unequal_clusters_are_said(found: Comparison) -> None:
    assert found.runs[0].scores[0].all.difference.method == "cluster-bm"
    text = shown(found, 120)
    assert "Bell and McCaffrey's, for unequal clusters" in text
    assert "the largest has " in text


def test_an_incomplete_run_is_said(found: Comparison) -> None:
    text = shown(replace(found, baseline={**found.baseline, "complete": False}), 80)
    assert text.startswith("INCOMPLETE: ")


@pytest.mark.parametrize(
    ("value", "plain", "with_sign"),
    [
        (None, "–", "–"),
        (0.0, ".000", ".000"),
        (0.6641, ".664", "+.664"),
        (1.0, "1.000", "+1.000"),
        (-0.05, "−.050", "−.050"),
        (-0.0001, ".000", ".000"),
        (0.9999, "1.000", "+1.000"),
        (1234.5, "1,234.50", "+1,234.50"),
    ],
)
def test_figures(value: float | None, plain: str, with_sign: str) -> None:
    assert (figure(value), signed(value)) == (plain, with_sign)


def test_intervals_and_p_values_in_words() -> None:
    assert (bounds(0.58, 0.75), bounds(-0.055, 0.064, sign=True)) == ("[.580, .750]", "[−.055, +.064]")
    assert bounds(None, None) == "none"
    assert (p_words(None), p_words(0.87), p_words(0.0004)) == ("–", ".870", "<.001")
    assert by(interval([0, 1] * 30, [i % 10 for i in range(60)])) in ("t(9)", "")
    assert by(interval([0, 1] * 30)) == "Wilson"
    assert by(interval([1] * 30)) == "exact"
