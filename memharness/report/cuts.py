"""A run's score by parts of the benchmark beside floors, as tables and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memharness.report.compare import bounds, by, figure, p_words, plain, signed
from memharness.report.tables import SAMPLE_WARNING, put, table
from memharness.run.cuts import Cuts, Part
from memharness.store import write_atomic

if TYPE_CHECKING:
    from rich.console import Console

COLUMNS = (
    *("run", "method", "bench", "data_state", "score", "kind", "part", "policy", "n", "clusters"),
    *("value", "low", "high", "interval_by", "best_floor", "difference", "difference_low"),
    *("difference_high", "p", "note"),
)

HEADING = 12  # characters of a score's name that head a column of figures


def show_cuts(console: Console, found: Sequence[Cuts]) -> None:
    """Print each score: beside floors over all questions, then by parts beside the best floor of each."""
    from rich.text import Text

    if any(one.data_state == "sample" for one in found):
        console.print(Text(SAMPLE_WARNING, style="bold yellow"))
    for one in found:
        head = f"{one.score} of {one.method} on {one.bench}, {one.run}"
        console.print(Text(plain(head), style="bold"), soft_wrap=True)
        _floors(console, one)
        _parts(console, one)
        for note in dict.fromkeys((*one.notes, *_notes(one.parts[0]))):
            console.print(Text(plain(f"note: {note}"), style="yellow"))
        console.print()


def _floors(console: Console, one: Cuts) -> None:
    """The whole: the run, every floor and gold itself."""
    whole = one.parts[0]
    rows = [(one.method, whole.own), *sorted(whole.floors.items(), key=lambda floor: -(floor[1].value or 0.0))]
    rows += [("gold itself", whole.ceiling)] if whole.ceiling else []
    made = table(console, "over all", f">{_heading(one)}", ">95 % interval", ">n", ">clusters", "interval by")
    for place, (name, found) in enumerate(rows):
        made.add_row(
            plain(name), figure(found.value), bounds(found.low, found.high), f"{found.n:,}",
            "" if found.clusters is None else f"{found.clusters:,}", by(found), style="bold" if not place else "",
        )  # fmt: skip
    put(console, made)


def _parts(console: Console, one: Cuts) -> None:
    """Every part: the run, the best floor there, and the difference."""
    beside = any(part.best for part in one.parts)
    failed = any(part.valid.n != part.own.n for part in one.parts)
    columns = ["part", ">n", f">{_heading(one)}", ">95 % interval", *([">valid", ">n valid"] if failed else [])]
    columns += ["best floor", ">scores", ">difference", ">95 % interval"] if beside else []
    made = table(console, *columns)
    kind = ""
    for part in one.parts:
        if part.kind != kind:
            kind = part.kind
            made.add_row(plain(kind), style="dim")
        own = part.own
        name = f"{'  ' if kind else ''}{plain(part.name)}"
        cells = [name, f"{own.n:,}", figure(own.value), bounds(own.low, own.high)]
        cells += [figure(part.valid.value), f"{part.valid.n:,}"] if failed else []
        if part.best and part.gain:
            change = part.gain.difference
            floor = part.floors[part.best]
            cells += [plain(part.best), figure(floor.value), signed(change.value)]
            cells += [bounds(change.low, change.high, sign=True)]
        made.add_row(*cells)
    put(console, made)


def _heading(one: Cuts) -> str:
    return one.score if len(one.score) <= HEADING else "value"


def _notes(whole: Part) -> Iterable[str]:
    if whole.valid.n != whole.own.n:
        failed = whole.own.n - whole.valid.n
        yield f"{failed:,} of {whole.own.n:,} failed and count 0; valid ones are the others"
    if whole.own.note:
        yield f"interval: {whole.own.note}"
    if whole.gain and whole.gain.p is not None:
        yield f"p of no difference from the best floor over all: {p_words(whole.gain.p)}"
        yield "parts are many looks at one run: their intervals are not adjusted for that"


# ---------------------------------------------------------------------------------------------------------------- file


def write_csv(path: Path, found: Sequence[Cuts]) -> None:
    """Write a row for each score, part and policy: the run, every floor, and gold itself. Atomically.

    Differences are the run's less that floor's; of the floor that scores most in a part `best_floor` is 1.

    Raises:
        UserError: if the disk is full or refuses.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(row for one in found for part in one.parts for row in _rows(one, part))
    write_atomic(path, text.getvalue())


def _rows(one: Cuts, part: Part) -> Iterable[Mapping[str, Any]]:
    policies = [(one.method, part.own), ("only what did not fail", part.valid), *part.floors.items()]
    policies += [("gold itself", part.ceiling)] if part.ceiling else []
    for policy, found in policies:
        change = part.gains.get(policy)
        yield {
            "run": one.run, "method": one.method, "bench": one.bench, "data_state": one.data_state, "score": one.score,
            "kind": part.kind, "part": part.name, "policy": policy, "n": found.n, "clusters": found.clusters,
            "value": found.value, "low": found.low, "high": found.high, "interval_by": found.method,
            "best_floor": int(policy == part.best) if policy in part.floors else None,
            "difference": change and change.difference.value, "difference_low": change and change.difference.low,
            "difference_high": change and change.difference.high, "p": change and change.p, "note": found.note,
        }  # fmt: skip
