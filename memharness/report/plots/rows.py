"""What each kind of plot shows, as flat rows. Nothing here draws.

Sources: GraphMemix (arXiv:2608.26983) Figures 2, 3 and 5; L2-VMAS Figures 2 and 7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memharness.report.leaderboard.rows import LIFE
from memharness.report.plots.runs import Runs, categories, distinct, ordered, traces, value
from memharness.report.tables import Summary
from memharness.stats import interval
from memharness.types import UserError

Row = dict[str, Any]

COSTS = {"tokens": "tokens", "seconds": "seconds", "price": "price (USD)"}


def cost(runs: Runs, of: str) -> list[Row]:
    """Score with interval against lifecycle cost, the cost by phase, and whether the run is on the front.

    A run is on the front if no other has at least its score at no more than its cost, and one of the two better.
    Controls, which may see the gold evidence, are neither on the front nor hold others off it.

    Args:
        runs: the runs.
        of: `tokens` or `seconds` (the memory's whole life without the judge), or `price` (in USD, the judge's in it).

    Raises:
        UserError: a run whose price is unknown.
    """
    distinct(runs)
    made = []
    for summary, name in zip(runs.summaries, runs.names, strict=True):
        phases = {phase: _spent(summary, phase, of) for phase in LIFE} if of != "price" else {}
        total = summary.get("price") if of == "price" else sum(phases.values())
        if total is None:
            raise UserError(f"plot cost --cost price: {summary['run']} has no price (its model is not in the table)")
        figures = {**_score(summary, runs.metric), "cost": total, "of": of, "control": bool(summary.get("control"))}
        made.append({"run": summary["run"], "name": name} | figures)
        made[-1] |= {f"{of}_{phase}": amount for phase, amount in phases.items()}
    for row in made:
        row["front"] = not row["control"] and not any(_dominates(other, row) for other in made)
    return made


def _spent(summary: Summary, phase: str, of: str) -> float:
    if of == "seconds":
        return float((summary.get("seconds") or {}).get(phase, 0))
    kinds: Mapping[str, int] = (summary.get("tokens") or {}).get(phase) or {}
    return sum(kinds.get(kind, 0) for kind in ("text", "image", "output"))


def _dominates(a: Row, b: Row) -> bool:
    if a["control"]:
        return False
    as_good = a["value"] >= b["value"] and a["cost"] <= b["cost"]
    return bool(as_good and (a["value"] > b["value"] or a["cost"] < b["cost"]))


def sweep(runs: Runs, against: str) -> list[Row]:
    """Score with interval and tokens a question against a field of the run, one line for what is otherwise the same.

    Args:
        runs: the runs, named without the field.
        against: the field: `budget`, `items`, …, or one of the method's config or the benchmark's options.

    Raises:
        UserError: a run without the field, all runs alike in it, or two runs that nothing tells apart.
    """
    found = [value(summary, against) for summary in runs.summaries]
    if len(set(map(str, found))) < 2:
        raise UserError(f"plot sweep: {against} is {_words(found[0])} in all these runs; give runs that differ in it")
    seen: dict[tuple[str, str], str] = {}
    made = []
    for summary, name, at in zip(runs.summaries, runs.names, found, strict=True):
        key = (name, str(at))
        if key in seen:
            raise UserError(f"plot sweep: {seen[key]} and {summary['run']} are runs of the same; leave one out")
        seen[key] = summary["run"]
        spent = sum(_spent(summary, phase, "tokens") for phase in LIFE)
        tokens = spent / summary["n"] if summary.get("n") else None
        shown = {"tokens_per_question": tokens, "against": against, "at": _words(at) if at is None else at}
        made.append({"run": summary["run"], "name": name, **shown, **_score(summary, runs.metric)})
    order = {at: number for number, at in enumerate(ordered(row["at"] for row in made))}
    return sorted(made, key=lambda row: (row["name"], order[row["at"]]))


def by_category(runs: Runs) -> list[Row]:
    """Score with interval by category of question.

    Raises:
        UserError: the benchmark has no categories.
    """
    distinct(runs)
    made = []
    for summary, name in zip(runs.summaries, runs.names, strict=True):
        for category, found in sorted(categories(summary, runs.metric).items()):
            figures = {"value": found.value, "low": found.low, "high": found.high, "n": found.n}
            told = {"clusters": found.clusters, "interval_by": found.method, "note": found.note}
            made.append(
                {"run": summary["run"], "name": name, "category": category, "score": runs.metric} | figures | told
            )
    if len({row["category"] for row in made}) < 2:
        raise UserError(f"plot categories: the questions of {runs.title} that have {runs.metric} are of one category")
    return made


def objective(runs: Runs) -> list[Row]:
    """The mean rise of the forest objective over accepted swaps, and of the structural gain over accepted edges.

    Read from the trace of each question: `forest.climb`, J at the start and after each accepted 1-swap, and
    `forest.gains`, the benefit summed over edges in the order in which Kruskal accepts them. A question that has
    ended keeps its last value, so that every mean is over the same questions; intervals are by cluster.

    Raises:
        UserError: a run that left no such trace.
    """
    distinct(runs)
    made = []
    for summary, name in zip(runs.summaries, runs.names, strict=True):
        clusters, climbs, gains = [], [], []
        for cluster, trace in traces(summary):
            forest = trace.get("forest") or {}
            if "climb" in forest and "gains" in forest:
                clusters.append(cluster)
                climbs.append([one - forest["climb"][0] for one in forest["climb"]])
                gains.append([0.0, *forest["gains"]])
        if not clusters:
            raise UserError(
                f"plot objective: {summary['run']} has no trace of an objective; a method leaves one by putting "
                "forest.climb (J at the start and after each accepted swap) and forest.gains (gain summed over "
                "accepted edges) into the trace of its readout, as graphmemix does with its forest on (row e)"
            )
        for part, series in (("swaps", climbs), ("edges", gains)):
            for step in range(max(map(len, series))):
                found = interval([one[min(step, len(one) - 1)] for one in series], clusters)
                low, high = (found.low, found.high) if step else (0.0, 0.0)  # what has not begun has risen by nothing
                bounds = {"value": found.value, "low": low, "high": high}
                still = sum(len(one) > step for one in series)
                where = {"run": summary["run"], "name": name, "part": part, "step": step}
                made.append(where | bounds | {"n": found.n, "moving": still, "clusters": found.clusters})
    return made


def _words(at: object) -> str:
    return "none" if at is None else str(at)


def _score(summary: Summary, metric: str) -> Row:
    score = summary["scores"][metric]
    return {"score": metric, **{name: score.get(name) for name in ("value", "low", "high", "n", "clusters")}}


def groups(rows: Sequence[Row], key: str = "name") -> dict[str, list[Row]]:
    """Rows by a column, in the order of first appearance."""
    out: dict[str, list[Row]] = {}
    for row in rows:
        out.setdefault(row[key], []).append(row)
    return out
