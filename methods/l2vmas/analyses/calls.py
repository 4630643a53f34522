"""How often each memory is called on, and where in a reply (L²-VMAS Fig. 5(b) and 10), from the traces of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memharness.methods.l2vmas.analyses.rows import Row, records
from memharness.methods.l2vmas.analyses.runs import Summary
from memharness.stats import ratio
from memharness.types import UserError, did_you_mean

WHOLE_REPLY = "all"
MMSTAR: Mapping[str, Sequence[str]] = {
    "perception": ("coarse perception", "fine-grained perception"),
    "thinking": ("logical reasoning", "math"),
    "mixed": ("instance reasoning", "science & technology"),
}
"""Our reading of the paper's three groups of tasks on MMStar, which it does not list."""


@dataclass
class _Counted:
    """Tokens and calls of one group of questions, by question; places are numbered from 0."""

    tokens: list[dict[str, float]]
    calls: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    turns: int = 0


def triggering(summaries: Sequence[Summary], groups: Mapping[str, Sequence[str]], bins: int) -> list[Row]:
    """Calls on each memory per token decoded: in each of `bins` equal stretches of a reply, and in all of it.

    A call behind the k-th of a turn's n tokens is in stretch ⌈k·bins/n⌉. The interval is that of a ratio of totals over
    questions, by cluster where the benchmark names some. The first 2W - 1 tokens of a turn never call.

    Args:
        summaries: finished runs of l2vmas.
        groups: categories by the name of a group of tasks; a question of none of them is left out. With nothing given,
            those of MMStar, and else every category for itself, by its first part.
        bins: stretches.

    Raises:
        UserError: a category that no question has, or a run without traces.
    """
    made = []
    for one in summaries:
        named = groups or (MMSTAR if one["bench"] == "mmstar" else {})
        for group, counted in _counted(one, named, bins).items():
            for memory in counted.calls:
                made += [_row(one, group, memory, at, bins, counted) for at in (WHOLE_REPLY, *range(1, bins + 1))]
    return made


def _row(one: Summary, group: str, memory: str, at: Any, bins: int, counted: _Counted) -> Row:
    places = range(bins) if at == WHOLE_REPLY else [at - 1]
    tokens, calls = (_sum([part[place] for place in places]) for part in (counted.tokens, counted.calls[memory]))
    found = ratio(tokens, calls, _clusters(one, tokens))
    return {
        "panel": group, "line": memory, "at": at, "bench": one["bench"], "method": one["method"],
        "reader": one["reader"], "n": len(tokens), "turns": counted.turns, "tokens": found.a, "calls": found.b,
        "value": found.value, "low": found.low, "high": found.high, "note": found.note, "run": Path(one["run"]).name,
    }  # fmt: skip


def _sum(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {question: sum(part[question] for part in parts) for question in parts[0]}


def _clusters(one: Summary, questions: Mapping[str, Any]) -> dict[str, str] | None:
    found = {unit: cluster for unit, _, cluster in _asked(one) if unit in questions}
    return found if any(found.values()) else None


def _asked(one: Summary) -> list[tuple[str, str, str]]:
    """(question, category, cluster) of every question."""
    from memharness.run.folder import RunFolder
    from memharness.store import read_lines

    folder = RunFolder(Path(one["run"]))
    return [
        (line["question"], line.get("category", ""), line.get("cluster", ""))
        for _, line in read_lines(folder.path / "gold.jsonl")
        if "question" in line
    ]


def _counted(one: Summary, groups: Mapping[str, Sequence[str]], bins: int) -> dict[str, _Counted]:
    category = {question: found for question, found, _ in _asked(one)}
    group_of = _grouping(one, set(category.values()), groups)
    out: dict[str, _Counted] = {}
    for record in records(one):
        group = group_of.get(category.get(record["question"], ""))
        steps = record.get("trace", {}).get("steps", ())
        if group is None or not any("memory" in step for step in steps):
            continue
        counted = out.setdefault(group, _Counted([{} for _ in range(bins)]))
        for memory in _memories(one):
            counted.calls.setdefault(memory, [{} for _ in range(bins)])
        _count(counted, record["question"], steps, bins)
    if not out:
        raise UserError(f"vmas-analyse triggering: {one['run']} has no question of these groups with a trace")
    return {name: out[name] for name in (groups or sorted(out)) if name in out}


def _memories(one: Summary) -> tuple[str, ...]:
    config = one["config"]
    if config["attribution"] == "none":
        return ("both",)
    return ("perception", "thinking") if config["banks"] == "both" else (config["banks"],)


def _count(counted: _Counted, question: str, steps: Sequence[Mapping[str, Any]], bins: int) -> None:
    for parts in (counted.tokens, *counted.calls.values()):
        for part in parts:
            part[question] = 0.0
    for step in steps:
        n = step["tokens"]["output"]
        counted.turns += 1
        for place in range(bins):
            counted.tokens[place][question] += (place + 1) * n // bins - place * n // bins
        for call in step["memory"]:
            counted.calls[call["memory"]][-(-call["after"] * bins // n) - 1][question] += 1


def _grouping(one: Summary, known: set[str], groups: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Group by category. A category is named whole, or by its first part: `math/geometry` is of `math`."""
    heads = {name: name.partition("/")[0] for name in known}
    if not groups:
        return {name: head or "all" for name, head in heads.items()}
    named = {category: group for group, categories in groups.items() for category in categories}
    if groups is not MMSTAR:
        for category in named:
            if category not in {*known, *heads.values()}:
                guess = did_you_mean(category, {*known, *heads.values()})
                raise UserError(f"--group {named[category]}: {one['run']} has no category {category}{guess}")
    found = {name: named.get(name, named.get(head)) for name, head in heads.items()}
    return {name: group for name, group in found.items() if group is not None}
