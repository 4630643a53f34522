"""The figures of the four papers as they print them, and a check that recomputes what follows from other figures.

They lie in `published.csv`, one row a cell of a table (or a figure of a text), and are never ranked with a run's.
A figure that does not follow is kept as printed and has a note; `doubts` finds those, so that the notes can be tested.

Sources: L2-VMAS (Dual Latent Memory for Visual Multi-agent System), MEMO (arXiv:2609.07471), CMA (arXiv:2607.08497),
GraphMemix (arXiv:2608.26983).
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from memharness.types import DataError

FILE = Path(__file__).with_name("published.csv")
AVERAGE, TOTAL = "average", "total"
CHANGE = "_change"
RESULTS = (
    *("judge_accuracy", "accuracy", "retrieval_accuracy", "qs", "em", "f1", "mcq_em", "lexical_recall"),
    *("recall@10", "hit@10", "gemini_quality", "tokens", "memory_tokens", "seconds_per_turn"),
)
"""What a table of runs is read beside: scores and cost, not the papers' own diagnostics, counts and settings."""

BASES = {  # what a change printed beside a value is against: (paper, table) -> the method
    **{("L2-VMAS", f"Table {n}"): "VMAS" for n in (1, 2, 3, 5, 10)},
    ("L2-VMAS", "Table 6"): "L2-VMAS",
    ("GraphMemix", "Table 6"): "GraphMemix fixed edges",
    ("MEMO", "Table 3"): "MEMO without extractor and manager",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """One printed figure.

    Attributes:
        paper: L2-VMAS, MEMO, CMA or GraphMemix.
        source: its arXiv id, or its title where that is not known.
        table: the table, or the section, figure or page for a figure of a text.
        benchmark: this project's name of it; `average` (macro) or `total` over the table's benchmarks.
        subset: language, split, budget or setting; empty for the whole.
        method: the paper's name of it.
        reader: the model that answered, empty where the paper does not say.
        metric: what was measured; `…_change` is a difference that the paper prints beside the value.
        value: the figure as printed, in `unit`.
        unit: percent, points, tokens per question, …
        judge: the model that judged, if one did.
        note: what a reader of the figure must know: where it comes from, a misprint.
    """

    paper: str
    source: str
    table: str
    benchmark: str
    subset: str
    method: str
    reader: str
    metric: str
    value: float
    unit: str
    judge: str
    note: str

    @property
    def place(self) -> str:
        """Where it is printed."""
        return f"{self.paper}, {self.table}"


@dataclass(frozen=True, slots=True)
class Doubt:
    """A figure that does not follow from the figures beside it, and what does."""

    figure: Figure
    recomputed: float


@cache
def figures() -> tuple[Figure, ...]:
    """Every figure, in the order of the papers' tables.

    Raises:
        DataError: the file is missing or damaged, with its line.
    """
    try:
        text = FILE.read_text("utf-8")
    except OSError as error:
        raise DataError(f"{FILE}: cannot be read ({error.strerror}); install memharness-bench again") from None
    out = []
    for number, row in enumerate(csv.DictReader(text.splitlines()), 2):
        try:
            told: dict[str, Any] = {**row, "value": float(row["value"])}
            out.append(Figure(**told))
        except (TypeError, ValueError, KeyError) as error:
            raise DataError(f"{FILE}: line {number}: damaged ({error}); install memharness-bench again") from None
    return tuple(out)


def results(benchmark: str) -> list[Figure]:
    """What the papers print of a benchmark that a table of runs is read beside, most telling metric first."""
    found = [figure for figure in figures() if figure.benchmark == benchmark and figure.metric in RESULTS]
    return sorted(found, key=lambda figure: RESULTS.index(figure.metric))


def doubts(of: Iterable[Figure] | None = None) -> list[Doubt]:
    """Figures that do not recompute from the others, beyond what rounding of the printed digits explains.

    Recomputed are macro averages, totals, shares that add up to 100 %, rates of counts, edges and components of a
    forest of ten, and changes, in points and in percent.
    """
    known = tuple(figures() if of is None else of)
    rules = (_averages, _totals, _shares, _rates, _forests, _changes)
    return [doubt for rule in rules for doubt in rule(known)]


def _cells(known: Iterable[Figure]) -> dict[Figure, dict[str, Figure]]:
    """Figures of one line of a table and one metric, by benchmark."""
    lines: dict[Figure, dict[str, Figure]] = {}
    for figure in known:
        if not figure.metric.endswith(CHANGE):
            key = replace(figure, benchmark="", value=0.0, note="")
            lines.setdefault(key, {})[figure.benchmark] = figure
    return lines


def _differs(figure: Figure, recomputed: float, slack: float) -> Iterator[Doubt]:
    if abs(figure.value - recomputed) > slack + 1e-9:
        yield Doubt(figure, recomputed)


def _last_digit(figure: Figure) -> float:
    """How far apart two figures are that differ in the last digit which tables of this kind print."""
    if figure.unit.startswith("tokens"):
        return 1.0
    return 0.1 if figure.paper == "L2-VMAS" else 0.01


def _averages(known: Iterable[Figure]) -> Iterator[Doubt]:
    for line in _cells(known).values():
        cells = [figure.value for name, figure in line.items() if name != AVERAGE]
        if AVERAGE in line and len(cells) >= 3:
            yield from _differs(line[AVERAGE], sum(cells) / len(cells), _last_digit(line[AVERAGE]))


def _totals(known: Iterable[Figure]) -> Iterator[Doubt]:
    for line in _cells(known).values():
        if TOTAL in line:
            yield from _differs(line[TOTAL], sum(one.value for name, one in line.items() if name != TOTAL), 0)


def _by_metric(known: Iterable[Figure], paper: str, table: str) -> list[dict[str, Figure]]:
    """The figures of each method and benchmark of a table, by metric."""
    lines: dict[tuple[str, str], dict[str, Figure]] = {}
    for figure in known:
        if (figure.paper, figure.table) == (paper, table):
            lines.setdefault((figure.benchmark, figure.method), {})[figure.metric] = figure
    return list(lines.values())


def _shares(known: Iterable[Figure]) -> Iterator[Doubt]:
    for line in _by_metric(known, "GraphMemix", "Table 4"):
        rest = 100 - line["gold_direct"].value - line["gold_recoverable"].value
        yield from _differs(line["gold_no_access"], rest, 0.015)


def _rates(known: Iterable[Figure]) -> Iterator[Doubt]:
    for line in _by_metric(known, "GraphMemix", "Table 5"):
        rate = 100 * line["recovered_questions"].value / line["recoverable_questions"].value
        yield from _differs(line["recovered_question_rate"], rate, 0.006)


def _forests(known: Iterable[Figure]) -> Iterator[Doubt]:
    for line in _by_metric(known, "GraphMemix", "Table 6"):
        if "edges" in line:  # ten nodes: each edge used leaves one component fewer
            yield from _differs(line["components"], 10 - line["edges"].value, 0.006)


def _changes(known: tuple[Figure, ...]) -> Iterator[Doubt]:
    values = {_name(figure): figure for figure in known}
    for figure in known:
        base = BASES.get((figure.paper, figure.table))
        if base is None or not figure.metric.endswith(CHANGE):
            continue
        value = replace(figure, metric=figure.metric.removesuffix(CHANGE))
        mine, other = values[_name(value)], values[_name(replace(value, method=base))]
        if figure.unit.startswith("percent"):
            # A relative change of averages that were rounded to one digit, or of tokens, which are whole.
            slack = 0.21 if mine.metric == "accuracy" else 0.06
            yield from _differs(figure, 100 * (mine.value / other.value - 1), slack)
        else:
            yield from _differs(figure, mine.value - other.value, 0.011)


def _name(figure: Figure) -> tuple[str, ...]:
    return (figure.paper, figure.table, figure.benchmark, figure.subset, figure.method, figure.reader, figure.metric)
