"""Which runs share a table, in which order, and by what name a run goes in it."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

from memharness.identity import digest
from memharness.report.tables import Summary, limit_words, option_words


@dataclass(frozen=True)
class Entry:
    """A run in a table.

    Attributes:
        summary: the run's summary.
        label: the method, with the options that tell it from the table's other runs of it.
        marks: `control`, `incomplete`.
        limits: budget, items and view, which are part of what the run is.
    """

    summary: Summary
    label: str
    marks: tuple[str, ...]
    limits: str

    @property
    def name(self) -> str:
        """The label with its marks."""
        return " ".join([self.label, *(f"({mark})" for mark in self.marks)])


@dataclass(frozen=True)
class Board:
    """Runs that were asked the same questions of the same data, in the same track.

    Attributes:
        sample: measured on the bundled sample.
        track: `evidence` or `answer`.
        bench: the benchmark.
        primary: the score that orders it, or `no score`.
        words: what else was the same: subset, limit, options, and the data where another board differs in nothing else.
        entries: the runs, contenders first, best first within equal limits.
    """

    sample: bool
    track: str
    bench: str
    primary: str
    words: tuple[str, ...]
    entries: tuple[Entry, ...]

    @property
    def title(self) -> list[str]:
        """What all of it has in common."""
        return [self.bench, f"{self.track} track", self.primary, *(["SAMPLE"] if self.sample else []), *self.words]


def standing(summary: Summary) -> tuple[Any, ...]:
    """Sorts samples behind the real thing, tracks apart, controls behind contenders, limits apart, the best first."""
    value = lead(summary).get("value")
    return (
        *_table(summary),
        bool(summary.get("control")),
        tuple(inf if limit is None else limit for limit in (summary.get("budget"), summary.get("items"))),
        tuple(map(str, conditions(summary))),
        inf if value is None else -value,
        summary["method"],
        summary["run"],
    )


def asked(summary: Summary) -> tuple[str, ...]:
    """What was asked: data, subset, limit, ids, options, prompt. Only runs equal in these share a table."""
    selection = summary.get("selection") or {}
    subset, limit, ids = summary.get("subset"), selection.get("limit"), selection.get("ids")
    return (
        summary.get("data_digest") or "",
        f"subset {subset}" if subset else "",
        f"limit {limit}" if limit else "",
        f"{len(ids)} ids {digest(ids)[:6]}" if ids else "",
        *option_words(summary),
    )


def conditions(summary: Summary) -> tuple[Any, ...]:
    """What must be equal besides for one run to be called better than another: budget, items, view, judge, rubrics."""
    rubrics = json.dumps(summary.get("rubrics") or {}, sort_keys=True)
    return (summary.get("budget"), summary.get("items"), summary.get("view"), summary.get("judge"), rubrics)


def lead(summary: Summary) -> dict[str, Any]:
    """The figures of the score that leads the run's benchmark; empty where it has none."""
    return dict(summary["scores"].get(summary.get("primary") or "", {}))


def boards(summaries: Iterable[Summary]) -> list[Board]:
    """One board for each benchmark, track, primary score and set of questions."""
    groups: dict[_Table, list[Summary]] = {}
    for summary in sorted(summaries, key=standing):
        groups.setdefault(_table(summary), []).append(summary)
    data: dict[tuple[Any, ...], set[str]] = {}
    for table in groups:
        data.setdefault(table[:4], set()).add(table.questions[0])
    made = []
    for table, members in groups.items():
        digest_of_data, *selection = table.questions
        words = [word for word in selection if word]
        if len(data[table[:4]]) > 1:
            words.append(f"data {digest_of_data[:8]}")
        told = options_told(members)
        entries = tuple(_entry(summary, told) for summary in members)
        primary = table.primary or "no score"
        made.append(Board(table.sample, table.track, table.bench, primary, tuple(words), entries))
    return made


class _Table(NamedTuple):
    sample: bool
    track: str
    bench: str
    primary: str
    questions: tuple[str, ...]


def _table(summary: Summary) -> _Table:
    sample, primary = summary["data_state"] == "sample", summary.get("primary") or ""
    return _Table(sample, summary["track"], summary["bench"], primary, asked(summary))


def options_told(members: Iterable[Summary]) -> set[tuple[str, str]]:
    """(method, option) pairs that tell apart runs of one method, and so belong into its name."""
    seen: dict[tuple[str, str], set[str]] = {}
    for summary in members:
        for name, value in (summary.get("config") or {}).items():
            seen.setdefault((summary["method"], name), set()).add(json.dumps(value))
    return {key for key, values in seen.items() if len(values) > 1}


def _entry(summary: Summary, told: Container[tuple[str, str]]) -> Entry:
    method = summary["method"]
    options = [
        f"{name}={value}"
        for name, value in (summary.get("config") or {}).items()
        if value not in (None, "") and (isinstance(value, str) or (method, name) in told)
    ]
    marks = (("control", summary.get("control")), ("incomplete", not summary.get("complete")))
    limits = ", ".join(filter(None, (limit_words(summary).removeprefix("budget "), summary.get("view"))))
    return Entry(summary, " ".join([method, *options]), tuple(mark for mark, yes in marks if yes), limits)
