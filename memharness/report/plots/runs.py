"""The runs of a plot: what they must have in common, what tells them apart, and their scores with intervals."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from memharness.report.leaderboard.boards import asked, options_told
from memharness.report.tables import Summary
from memharness.run.folder import RunFolder
from memharness.run.score import rows
from memharness.stats import Interval, interval
from memharness.store import read_lines
from memharness.types import Status, UserError, did_you_mean

TOLD = ("reader", "embedder", "view", "budget", "items", "prompt", "seed")


@dataclass(frozen=True)
class Runs:
    """Runs that may stand in one plot.

    Attributes:
        summaries: the runs, contenders first, by method and limits.
        names: what each is called: its method, and what else tells it from the others.
        metric: the score that is shown.
    """

    summaries: tuple[Summary, ...]
    names: tuple[str, ...]
    metric: str

    @property
    def title(self) -> str:
        """The benchmark, and that it is the sample where it is."""
        sample = " (bundled SAMPLE)" if self.summaries[0]["data_state"] == "sample" else ""
        return f"{self.summaries[0]['bench']}{sample}"


def together(summaries: Sequence[Summary], metric: str | None, *, apart_in: str | None = None) -> Runs:
    """Check that runs may stand in one plot.

    Args:
        summaries: the runs.
        metric: the score to show; default the one that leads all of them.
        apart_in: what the plot is against, which is then no part of a run's name.

    Raises:
        UserError: runs of different benchmarks, data, questions, tracks or judges; a score that a run lacks.
    """
    summaries = sorted(summaries, key=_order)
    first = summaries[0]
    for other in summaries[1:]:
        for what, read in SAME.items():
            if read(first) != read(other):
                raise UserError(
                    f"plot: {first['run']} and {other['run']} differ in {what} ({_short(read(first))} and "
                    f"{_short(read(other))}); one plot shows runs of one benchmark that were asked the same"
                )
    leads = {summary.get("primary") or "" for summary in summaries}
    if metric is None and (len(leads) > 1 or "" in leads):
        raise UserError(f"plot: no one score leads all these runs; name one with --metric ({_shared(summaries)})")
    chosen = metric or leads.pop()
    for summary in summaries:
        if summary["scores"].get(chosen, {}).get("value") is None:
            guess = did_you_mean(chosen, summary["scores"])
            raise UserError(f"plot: {summary['run']} has no score {chosen}{guess}; --metric takes {_shared(summaries)}")
    return Runs(tuple(summaries), tuple(names(summaries, apart_in)), chosen)


SAME: dict[str, Callable[[Summary], str]] = {
    "benchmark": lambda summary: summary["bench"],
    "track": lambda summary: summary["track"],
    "data": lambda summary: summary.get("data_digest") or "",
    "questions": lambda summary: ", ".join(filter(None, asked(summary)[1:])) or "all",
    "judge": lambda summary: summary.get("judge") or "none",
}


def _order(summary: Summary) -> tuple[Any, ...]:
    limits = (summary.get("budget"), summary.get("items"))
    told = (_json(summary.get("config")), summary["reader"], summary.get("seed") or 0, summary["run"])
    return bool(summary.get("control")), summary["method"], *(inf if one is None else one for one in limits), *told


def _short(words: str) -> str:
    return words if len(words) <= 40 else f"{words[:8]}…"


def _shared(summaries: Sequence[Summary]) -> str:
    common = set.intersection(*(set(summary["scores"]) for summary in summaries))
    return f"one of {', '.join(sorted(common))}" if common else "a score that all have, and there is none"


def names(summaries: Sequence[Summary], without: str | None = None) -> list[str]:
    """What tells runs apart, in words; the field `without` is left out.

    Raises:
        UserError: two runs that nothing tells apart.
    """
    differing = [name for name in TOLD if name != without and _differs(summaries, name)]
    options = options_told(summaries)
    out = []
    for summary in summaries:
        words = [summary["method"]] if without != "method" else []
        words += [
            f"{name}={value}"
            for name, value in (summary.get("config") or {}).items()
            if (summary["method"], name) in options and name != without
        ]
        words += [f"{name} {summary.get(name) if summary.get(name) is not None else 'none'}" for name in differing]
        words += ["(control)"] if summary.get("control") else []
        out.append(" ".join(words) or "all")
    return out


def _differs(summaries: Sequence[Summary], name: str) -> bool:
    """Whether a field tells runs apart; which embedder, only between runs of one method: others may have none."""
    methods = {one["method"] for one in summaries} if name == "embedder" else {""}
    return any(
        len({_json(one.get(name)) for one in summaries if method in ("", one["method"])}) > 1 for method in methods
    )


def distinct(of: Runs) -> Runs:
    """Refuse runs that carry one name, which would lie over each other."""
    seen: dict[str, str] = {}
    for summary, name in zip(of.summaries, of.names, strict=True):
        if name in seen:
            raise UserError(f"plot: {seen[name]} and {summary['run']} are runs of the same ({name}); leave one out")
        seen[name] = summary["run"]
    return of


def value(summary: Summary, field: str) -> Any:
    """A field of a run by name: of the run itself, the method's config or the benchmark's options.

    Raises:
        UserError: the run has no such field.
    """
    places: list[Mapping[str, Any]] = [
        {name: summary.get(name) for name in (*TOLD, "method", "n")},
        summary.get("config") or {},
        summary.get("options") or {},
    ]
    for place in places:
        if field in place:
            return place[field]
    known = sorted({name for place in places for name in place})
    raise UserError(
        f"plot --against {field}: {summary['run']} has no such field{did_you_mean(field, known)}; "
        f"it has {', '.join(known)}"
    )


def categories(summary: Summary, metric: str) -> dict[str, Interval]:
    """The mean of a score in each category, with its interval; what failed counts 0.

    Raises:
        DataError: the run's scores are missing or damaged.
    """
    values: dict[str, tuple[list[float], list[str]]] = {}
    for row in rows(RunFolder(Path(summary["run"]))):
        score = row.scores.get(metric)
        if score is not None and score.status is not Status.NOT_APPLICABLE:
            numbers, clusters = values.setdefault(row.category or "(none)", ([], []))
            numbers.append(score.value or 0.0)
            clusters.append(row.cluster)
    return {
        name: interval(numbers, clusters if any(clusters) else None) for name, (numbers, clusters) in values.items()
    }


def traces(summary: Summary) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(cluster, trace) of every question that left a trace; the context where the benchmark names no cluster."""
    folder = RunFolder(Path(summary["run"]))
    clusters = {row.unit: row.cluster for row in rows(folder)}
    for _, record in read_lines(folder.path / "records.jsonl"):
        if record.get("trace"):
            yield clusters.get(record["question"]) or record["context"], record["trace"]


def _json(of: object) -> str:
    return json.dumps(of, sort_keys=True)


def ordered(values: Iterable[Any]) -> list[Any]:
    """Distinct values in order: numbers by size, then anything else by its words."""

    def key(one: Any) -> tuple[bool, float, str]:
        number = isinstance(one, int | float) and not isinstance(one, bool)
        return not number, one if number else 0.0, str(one)

    return sorted(dict.fromkeys(values), key=key)
