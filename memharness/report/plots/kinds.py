"""The kinds of plot, and a plot from its runs to its files."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memharness.report.plots.draw import draw_categories, draw_cost, draw_objective, draw_sweep
from memharness.report.plots.rows import COSTS, Row, by_category, cost, objective, sweep
from memharness.report.plots.runs import Runs, together
from memharness.report.plots.style import save, styled
from memharness.report.tables import Summary
from memharness.store import write_atomic
from memharness.types import UserError, did_you_mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".svg", ".png")
KINDS = {
    "cost": "score against lifecycle cost, with the non-dominated front, and cost by phase",
    "sweep": "score and tokens a question against the budget, or another field (--against)",
    "categories": "score by category of question",
    "objective": "rise of a forest's objective over accepted swaps and edges",
}


def plot(
    kind: str,
    summaries: Sequence[Summary],
    out: Path,
    *,
    metric: str | None = None,
    against: str = "budget",
    of: str = "tokens",
) -> tuple[Path, list[Row]]:
    """Draw a plot into a file, and write what it shows as CSV beside it.

    Args:
        kind: one of KINDS.
        summaries: finished runs of one benchmark.
        out: an .svg or .png file.
        metric: the score; default the one that leads the benchmark.
        against: the field of `sweep`.
        of: the cost of `cost`: tokens, seconds or price.

    Returns:
        The CSV file, and its rows.

    Raises:
        UserError: an unknown kind or cost, a file of another kind, runs that cannot stand in one plot, what a run
            lacks, or a file that cannot be written.
    """
    if kind not in KINDS:
        raise UserError(f"plot {kind}: no such plot{did_you_mean(kind, KINDS)}; there are {', '.join(KINDS)}")
    if out.suffix.lower() not in SUFFIXES:
        raise UserError(f"plot --out {out}: name a file that ends in {' or '.join(SUFFIXES)}")
    if out.is_dir():
        raise UserError(f"plot --out {out}: is a folder; name a file")
    if of not in COSTS:
        raise UserError(f"plot --cost {of}: no such cost{did_you_mean(of, COSTS)}; there are {', '.join(COSTS)}")
    runs = together(summaries, metric, apart_in=against if kind == "sweep" else None)
    rows, draw = prepared(kind, runs, against, of)
    with styled():
        save(draw(runs, rows), out, f"memharness {kind}: {runs.title}")
    beside = out.with_suffix(".csv")
    write_atomic(beside, _csv(rows))
    return beside, rows


def prepared(kind: str, runs: Runs, against: str, of: str) -> tuple[list[Row], Callable[[Runs, list[Row]], Figure]]:
    """The rows of a plot, and what draws them."""
    if kind == "cost":
        return cost(runs, of), draw_cost
    if kind == "sweep":
        return sweep(runs, against), draw_sweep
    if kind == "categories":
        return by_category(runs), draw_categories
    return objective(runs), draw_objective


def _csv(rows: Sequence[Row]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
