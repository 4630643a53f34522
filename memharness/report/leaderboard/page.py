"""The leaderboard as sections of grids, which Markdown and HTML only have to set.

A section is a board. Its first grid is what is compared; the others are every score, the cost by phase, what was run,
and what papers print of the benchmark.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from memharness.ledger import KINDS, PHASES
from memharness.report.leaderboard.boards import Board, Entry, lead
from memharness.report.leaderboard.rows import LIFE, error_share, life, lines, share, tokens_used
from memharness.report.leaderboard.screen import unit
from memharness.report.leaderboard.ties import Standing
from memharness.report.published import Figure, results
from memharness.report.tables import SAMPLE_WARNING, dollars

LEGEND = (
    "Values are shares of 1 with their 95 % interval over n units and G clusters; questions that failed count 0. "
    "Runs that share a letter cannot be told apart: the paired difference on the same questions is not shown at 95 % "
    "(Holm over all pairs of the table). Runs of other limits, view or judge are grouped among themselves; controls, "
    "unfinished runs and runs with missing cells are in no group. Cost is the memory's whole life, each context "
    "observed once and each question asked once, without the judge; the price has the judge in it."
)


@dataclass(frozen=True, slots=True)
class Cell:
    """What a cell says, what it sorts by, and where its interval lies.

    Attributes:
        text: the words.
        sort: a number or words to sort by; None sorts last.
        span: low, value and high as shares of 1, where they can be drawn.
    """

    text: str
    sort: float | str | None = None
    span: tuple[float, float, float] | None = None


@dataclass(frozen=True, slots=True)
class Grid:
    """A table. `words` are the columns that hold no figures; `parts` are rows that sort among themselves."""

    title: str
    columns: tuple[str, ...]
    words: frozenset[str]
    parts: tuple[tuple[tuple[Cell, ...], ...], ...]

    @property
    def scales(self) -> list[float]:
        """What the right end of each column's drawn intervals stands for; the left end is 0."""
        columns = zip(*(row for part in self.parts for row in part), strict=True)
        return [max((cell.span[2] for cell in column if cell.span), default=0.0) or 1.0 for column in columns]

    @property
    def texts(self) -> list[list[str]]:
        """The rows as words."""
        return [[cell.text for cell in row] for part in self.parts for row in part]


@dataclass(frozen=True, slots=True)
class Section:
    """A board: its title, what its runs have in common, its grids (the one to compare first), what must be said."""

    title: str
    common: str
    sample: bool
    grids: tuple[Grid, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """Everything that is shown."""

    legend: str
    warnings: tuple[str, ...]
    sections: tuple[Section, ...]


def page(boards: Iterable[Board], ties: Mapping[str, Standing], *, published: bool = False) -> Page:
    """Lay boards out.

    Args:
        boards: the boards.
        ties: tie groups by run, as `standings` gives them.
        published: whether to set what papers print of each benchmark beside the runs.
    """
    made = list(boards)
    sections = (*_across(made), *(_section(board, ties, published) for board in made))
    warnings = (SAMPLE_WARNING,) if any(section.sample for section in sections) else ()
    return Page(LEGEND, warnings, sections)


def _across(boards: Sequence[Board]) -> list[Section]:
    """Methods against benchmarks, for each track that has several: a row is a method with options, reader and limits.

    The rows stand in order of name. There is no rank: a mean is given only where no cell of the row is missing and one
    score leads all benchmarks.
    """
    groups: dict[tuple[bool, str], list[Board]] = {}
    for board in boards:
        groups.setdefault((board.sample, board.track), []).append(board)
    made = []
    for (sample, track), members in groups.items():
        if len({board.bench for board in members}) > 1:
            title = " · ".join(["Across benchmarks", f"{track} track", *(["SAMPLE"] if sample else [])])
            made.append(Section(title, "", sample, (_pivot(members),), (NO_RANK,)))
    return made


NO_RANK = (
    "In order of name, not of rank: a mean is given only where no cell of the row is missing and one score leads all "
    "benchmarks."
)


def _pivot(boards: Sequence[Board]) -> Grid:
    rows: dict[tuple[str, ...], dict[int, Entry]] = {}
    for at, board in enumerate(boards):
        for entry in board.entries:
            told = {name: entry.summary.get(name) for name in ("config", "models", "embedder", "judge", "seed")}
            seed = f" seed {told['seed']}" if told["seed"] else ""
            key = (f"{entry.name}{seed}", entry.summary["reader"], entry.limits, json.dumps(told, sort_keys=True))
            rows.setdefault(key, {})[at] = entry

    def by_name(row: tuple[tuple[str, ...], dict[int, Entry]]) -> tuple[Any, ...]:
        summary = next(iter(row[1].values())).summary
        limits = (summary.get("budget"), summary.get("items"))
        return bool(summary.get("control")), row[0][:2], [inf if one is None else one for one in limits], row[0]

    one_score = len({board.primary for board in boards}) == 1
    lines = []
    for (name, reader, limits, _), cells in sorted(rows.items(), key=by_name):
        values = [_value(lead(cells[at].summary)) if at in cells else Cell("–") for at in range(len(boards))]
        known = [cell.sort for cell in values if isinstance(cell.sort, float | int)]
        mean = sum(known) / len(known) if one_score and len(known) == len(boards) else None
        tail = Cell("–") if mean is None else Cell(f"{mean:.3f}", mean)
        lines.append((_words(name), _words(reader), _words(limits), *values, tail))
    heads = (f"{' · '.join([board.bench, board.primary, *board.words])}" for board in boards)
    words = ("method", "reader", "limits")
    return Grid("Across benchmarks", (*words, *heads, "mean"), frozenset(words), (tuple(lines),))


def _section(board: Board, ties: Mapping[str, Standing], published: bool) -> Section:
    grids = [_compared(board, ties), _every_score(board), _by_phase(board), _what_was_run(board)]
    notes = [
        f"not ranked: {entry.name}, {entry.limits}: {ties[entry.summary['run']].why}"
        for entry in board.entries
        if "missing" in ties[entry.summary["run"]].why
    ]
    if published:
        figures = results(board.bench)
        grids += [_published(figures)] if figures else []
        notes += [] if figures else [f"The papers print no figure of {board.bench}."]
    common = " · ".join(f"{name} {read(board.entries[0])}" for name, read in SHARED.items() if name in _shared(board))
    return Section(" · ".join(board.title), common, board.sample, tuple(grids), tuple(notes))


Columns = Mapping[str, Callable[[Entry], Cell]]
SHARED: Mapping[str, Callable[[Entry], str]] = {  # said once, above the table, where all its runs agree
    "reader": lambda entry: str(entry.summary["reader"]),
    "limits": lambda entry: entry.limits,
    "data": lambda entry: str(entry.summary["data_state"]),
}


def _shared(board: Board) -> set[str]:
    return {name for name, read in SHARED.items() if len(set(map(read, board.entries))) == 1}


def _grid(title: str, board: Board, columns: Columns, words: Iterable[str]) -> Grid:
    """One row a run, in parts by controls and limits; without the columns of what is said above the table."""
    shared = _shared(board)
    columns = {name: cell for name, cell in columns.items() if name not in shared}
    parts: dict[tuple[bool, str], list[tuple[Cell, ...]]] = {}
    for entry in board.entries:
        row = tuple(cell(entry) for cell in columns.values())
        parts.setdefault((bool(entry.summary.get("control")), entry.limits), []).append(row)
    return Grid(title, tuple(columns), frozenset(words), tuple(map(tuple, parts.values())))


def _compared(board: Board, ties: Mapping[str, Standing]) -> Grid:
    def per_question(total: Callable[[Entry], float]) -> Callable[[Entry], Cell]:
        return lambda entry: _ratio(total(entry), entry.summary.get("n") or 0)

    def kind(name: str) -> Callable[[Entry], float]:
        return lambda entry: sum(((entry.summary.get("tokens") or {}).get(phase) or {}).get(name, 0) for phase in LIFE)

    columns: dict[str, Callable[[Entry], Cell]] = {
        "tied": lambda entry: _words(ties[entry.summary["run"]].group or "–"),
        "method": lambda entry: _words(entry.name),
        "reader": lambda entry: _words(entry.summary["reader"]),
        "limits": lambda entry: _words(entry.limits),
        board.primary: lambda entry: _value(lead(entry.summary)),
        "n": lambda entry: _count(lead(entry.summary).get("n", entry.summary.get("n"))),
        "G": lambda entry: _count(lead(entry.summary).get("clusters")),
        "unparsed": lambda entry: _percent(share(lead(entry.summary), "unparsed")),
        "errors": lambda entry: _percent(error_share(entry.summary)),
        "tokens/q": per_question(lambda entry: tokens_used(entry.summary)),
        "text/q": per_question(lambda entry: kind("text")(entry) + kind("output")(entry)),
        "image/q": per_question(kind("image")),
        "latent/q": per_question(kind("latent")),
        "calls/q": per_question(lambda entry: life(entry.summary, "calls")),
        "seconds/q": per_question(lambda entry: life(entry.summary, "seconds")),
        "life tokens": lambda entry: _count(tokens_used(entry.summary)),
        "price": lambda entry: _price(entry.summary.get("price")),
        "data": lambda entry: _words(entry.summary["data_state"]),
        "date": lambda entry: _words(entry.summary.get("date") or "–"),
        "identity": lambda entry: _words(entry.summary["identity"][:8]),
    }
    for name in ("latent", "image"):  # columns of noughts say nothing, nor does text where it is all there is
        if not any(kind(name)(entry) for entry in board.entries):
            del columns[f"{name}/q"]
    if "image/q" not in columns:
        del columns["text/q"]
    words = ("tied", "method", "reader", "limits", "data", "date", "identity")
    return _grid("Compared", board, columns, words)


def _every_score(board: Board) -> Grid:
    names = {name for entry in board.entries for name in entry.summary["scores"] if "." not in name}
    ordered = sorted(names, key=lambda name: (name != board.primary, name))

    def score(name: str) -> Callable[[Entry], Cell]:
        return lambda entry: _value(entry.summary["scores"].get(name, {}), full=True)

    columns = {"method": lambda entry: _words(entry.name), "reader": lambda entry: _words(entry.summary["reader"])}
    limits = {"limits": lambda entry: _words(entry.limits)}
    return _grid("Every score", board, columns | limits | {name: score(name) for name in ordered}, [*columns, *limits])


def _by_phase(board: Board) -> Grid:
    def figure(name: str, phase: str, kind: str = "") -> Callable[[Entry], Cell]:
        def cell(entry: Entry) -> Cell:
            found: Any = (entry.summary.get(name) or {}).get(phase) or 0
            value = found.get(kind, 0) if isinstance(found, Mapping) else found
            return Cell(f"{value:,.1f}" if name == "seconds" else f"{value:,}", value)

        return cell

    columns: dict[str, Callable[[Entry], Cell]] = {
        "method": lambda entry: _words(entry.name),
        "reader": lambda entry: _words(entry.summary["reader"]),
        "limits": lambda entry: _words(entry.limits),
    }
    words = tuple(columns)
    for phase in PHASES:
        cells = {f"{phase} calls": figure("calls", phase)}
        cells |= {f"{phase} {kind}": figure("tokens", phase, kind) for kind in KINDS}
        cells |= {f"{phase} s": figure("seconds", phase)}
        columns |= {name: cell for name, cell in cells.items() if any(cell(entry).sort for entry in board.entries)}
    return _grid("Cost by phase", board, columns, words)


def _what_was_run(board: Board) -> Grid:
    def field(name: str) -> Callable[[Entry], Cell]:
        return lambda entry: _words(_plain(entry.summary.get(name)))

    columns: dict[str, Callable[[Entry], Cell]] = {
        "method": lambda entry: _words(entry.name),
        "reader": lambda entry: _words(entry.summary["reader"]),
        "limits": lambda entry: _words(entry.limits),
        **{name: field(name) for name in ("judge", "embedder", "models", "seed", "config", "outcomes")},
        "digest": lambda entry: _words((entry.summary.get("data_digest") or "–")[:8]),
        "identity": lambda entry: _words(entry.summary["identity"]),
        "run": lambda entry: _words(entry.summary["run"]),
    }
    return _grid("What was run", board, columns, columns)


def _plain(value: object) -> str:
    if value in (None, "", {}):
        return "–"
    return json.dumps(value, sort_keys=True) if isinstance(value, Mapping) else str(value)


def _published(figures: Sequence[Figure]) -> Grid:
    said = lines(figures)
    metrics = list(dict.fromkeys((figure.metric, unit(figure)) for line in said for figure in line))
    words = ("method", "reader", "subset", "judge", "source", "note")
    columns = (*words[:3], *(f"{metric} ({of})" for metric, of in metrics), *words[3:])
    rows = []
    for line in said:
        first = line[0]
        values = {(figure.metric, unit(figure)): Cell(f"{figure.value:g}", figure.value) for figure in line}
        judge = next((figure.judge for figure in line if figure.judge), "")
        notes = "; ".join(dict.fromkeys(figure.note for figure in line if figure.note))
        tail = (judge, f"{first.place} ({first.source})", notes)
        head = (first.method, first.reader, first.subset)
        rows.append((*map(_words, head), *(values.get(key, Cell("")) for key in metrics), *map(_words, tail)))
    return Grid("Published: not measured here, never ranked with runs", columns, frozenset(words), (tuple(rows),))


def _words(text: str) -> Cell:
    return Cell(text, text)


def _value(score: Mapping[str, Any], *, full: bool = False) -> Cell:
    """`0.412 [0.331, 0.496]`; with `full` also n, G and what could not be read where they are not the primary's."""
    value, low, high = score.get("value"), score.get("low"), score.get("high")
    if value is None:
        return Cell("–")
    text, span = f"{value:.3f}", None
    if low is not None and high is not None:
        text += f" [{low:.3f}, {high:.3f}]"
        span = (low, value, high) if 0 <= low <= high <= 1 else None
    if full:
        groups = f", G {score['clusters']:,}" if score.get("clusters") else ""
        text += f" n {score['n']:,}{groups}"
        text += "".join(f", {score[name]:,} {name}" for name in ("unparsed", "judge_error") if score.get(name))
    return Cell(text, value, span)


def _count(value: float | None) -> Cell:
    return Cell("–") if value is None else Cell(f"{value:,}", value)


def _percent(value: float | None) -> Cell:
    return Cell("–") if value is None else Cell(f"{100 * value:.1f} %", value)


def _price(value: float | None) -> Cell:
    return Cell("unknown") if value is None else Cell(dollars(value), value)


def _ratio(total: float, n: int) -> Cell:
    if not n:
        return Cell("–")
    value = total / n
    return Cell(f"{value:,.0f}" if value >= 100 else f"{value:,.3g}", value)
