"""What an analysis shows, as flat rows, one a run: the score with its interval, and tokens a question by kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from memharness.methods.l2vmas.analyses.runs import Summary
from memharness.methods.l2vmas.analyses.studies import SWEPT, WHOLE, WITHOUT, without
from memharness.stats import paired
from memharness.types import Status, UserError

Row = dict[str, Any]


def turns(summaries: Sequence[Summary], metrics: Mapping[str, str]) -> list[Row]:
    """A line a method, against turns; `tokens_a_turn` stays level where cost is linear."""
    made = []
    for one in summaries:
        n = one["config"]["turns"]
        figures = measured(one, metrics[one["bench"]])
        made.append(_at(one, one["bench"], one["method"], n, {**figures, "tokens_a_turn": figures["tokens"] / n}))
    return _sorted(made)


def contents(summaries: Sequence[Summary], metrics: Mapping[str, str]) -> list[Row]:
    """A line a content, against turns."""
    return _sorted(
        _at(one, one["bench"], one["config"]["content"], one["config"]["turns"], measured(one, metrics[one["bench"]]))
        for one in summaries
    )


def ablations(summaries: Sequence[Summary], metrics: Mapping[str, str]) -> list[Row]:
    """A row a part left out, and what leaving it out changes, question by question, with its interval.

    Raises:
        UserError: no run of a benchmark is whole.
    """
    made = []
    order = [*WITHOUT, WHOLE]
    for bench, metric in metrics.items():
        runs = {without(one["config"]): one for one in summaries if one["bench"] == bench}
        if WHOLE not in runs:
            raise UserError(
                f"vmas-analyse ablations: no run on {bench} has all parts; its runs lack: {'; '.join(runs)}"
            )
        whole, clusters = scores(runs[WHOLE], metric)
        for name in sorted(runs, key=lambda name: order.index(name) if name in order else -1):
            change = paired(whole, scores(runs[name], metric)[0], clusters).difference
            apart = {"change": change.value, "change_low": change.low, "change_high": change.high}
            made.append(_at(runs[name], bench, name, None, {**measured(runs[name], metric), **apart}))
    return made


def sensitivity(summaries: Sequence[Summary], metrics: Mapping[str, str]) -> list[Row]:
    """For each option that is swept, a row a value, the others being as in the run that all have in common.

    Raises:
        UserError: two options vary together.
    """
    made = []
    for bench, metric in metrics.items():
        runs = [one for one in summaries if one["bench"] == bench and one["method"] == "l2vmas"]
        plain = [one for one in summaries if one["bench"] == bench and one["method"] != "l2vmas"]
        if not runs:
            raise UserError(f"vmas-analyse sensitivity: no run of l2vmas on {bench}")
        base = _centre(runs)
        made += [_at(one, "baseline", bench, None, measured(one, metric)) for one in plain]
        for name in SWEPT:
            for one in runs:
                if _swept(one, base) <= {name}:
                    made.append(_at(one, name, bench, one["config"][name], measured(one, metric)))
    several = {name: {row["at"] for row in made if row["panel"] == name} for name in SWEPT}
    if not any(len(values) > 1 for values in several.values()):
        raise UserError(f"vmas-analyse sensitivity: all runs are alike in {', '.join(SWEPT)}")
    return _sorted(row for row in made if row["panel"] == "baseline" or len(several[row["panel"]]) > 1)


def _centre(runs: Sequence[Summary]) -> Summary:
    """The run from which all others differ in one option at most."""
    for base in runs:
        if all(len(_swept(one, base)) <= 1 for one in runs):
            return base
    raise UserError(
        f"vmas-analyse sensitivity: no run differs from all others in one of {', '.join(SWEPT)} at most; vary one at a "
        "time"
    )


def _swept(one: Summary, other: Summary) -> set[str]:
    return {name for name in SWEPT if one["config"][name] != other["config"][name]}


def _at(one: Summary, panel: str, line: str, at: Any, figures: Mapping[str, Any]) -> Row:
    """A row: where it stands in the plot, the run, and its figures."""
    return {"panel": panel, "line": line, "at": at, "bench": one["bench"], "method": one["method"],
            "reader": one["reader"], **figures, "run": Path(one["run"]).name}  # fmt: skip


def _sorted(rows: Iterator[Row] | Sequence[Row]) -> list[Row]:
    made = list(rows)
    lines = {name: number for number, name in enumerate(dict.fromkeys(row["line"] for row in made))}
    panels = {name: number for number, name in enumerate(dict.fromkeys(row["panel"] for row in made))}
    return sorted(made, key=lambda row: (panels[row["panel"]], lines[row["line"]], row["at"] or 0))


# ------------------------------------------------------------------------------------------------------ of one run


def measured(one: Summary, metric: str) -> Row:
    """A run's score with its interval, and tokens a question.

    `tokens` is the paper's figure: prompt, visual and output tokens of all turns (B.1). `passed_in` is the part of the
    prompts that other agents wrote, over questions that ended in an answer. `latent` counts injected vectors and
    `observed` those that a picture became in the perception memory, which are no tokens of an agent. `bank_bytes` is
    the most that a question's memory ever held.
    """
    score = one["scores"][metric]
    spent: dict[str, int] = {}
    passed, held, told, n = 0, 0, 0, 0
    for record in records(one):
        n += 1
        trace = record.get("trace", {})
        for kind, amount in _spent(record).items():
            spent[kind] = spent.get(kind, 0) + amount
        if "agents" in trace:
            told += 1
            passed += sum(sums["passed"] for sums in trace["agents"].values())
        held = max(held, trace.get("memory", {}).get("most_bytes", 0))
    by = {name: spent.get(name, 0) / n for name in ("prompt", "visual", "output", "latent", "observed")}
    return {
        "score": metric, "n": score["n"], "value": score["value"], "low": score["low"], "high": score["high"],
        "clusters": score["clusters"], "failed": n - one["outcomes"].get("ok", 0),
        "tokens": by["prompt"] + by["visual"] + by["output"], "prompt": by["prompt"],
        "passed_in": passed / told if told else None, "visual": by["visual"], "output": by["output"],
        "latent": by["latent"], "observed": by["observed"], "bank_bytes": held,
    }  # fmt: skip


def _spent(record: Mapping[str, Any]) -> dict[str, int]:
    asked, seen = (record.get("spent", {}).get(phase, {}) for phase in ("answer", "observe"))
    kinds = {"prompt": "text", "visual": "image", "output": "output", "latent": "latent"}
    return {**{name: asked.get(kind, 0) for name, kind in kinds.items()}, "observed": seen.get("image", 0)}


def records(one: Summary) -> Iterator[Mapping[str, Any]]:
    """A run's records."""
    from memharness.store import read_lines

    for _, record in read_lines(Path(one["run"]) / "records.jsonl"):
        yield record


def scores(one: Summary, metric: str) -> tuple[dict[str, float], dict[str, str] | None]:
    """A score by unit, what failed counting 0, and each unit's cluster, if there are clusters."""
    from memharness.run.folder import RunFolder
    from memharness.run.score import rows

    values: dict[str, float] = {}
    clusters: dict[str, str] = {}
    for row in rows(RunFolder(Path(one["run"]))):
        score = row.scores.get(metric)
        if score is not None and score.status is not Status.NOT_APPLICABLE:
            values[row.unit], clusters[row.unit] = score.value or 0.0, row.cluster
    return values, clusters if any(clusters.values()) else None
