"""A run's summary: every figure over all and over valid questions, with its interval, and what the run cost."""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from memharness.benchmark import Benchmark, ScoreRow
from memharness.ledger import KINDS
from memharness.metric import Judged, Metric
from memharness.run import judgements
from memharness.run.agreement import agreements
from memharness.run.folder import RunFolder
from memharness.run.runtime import runtime
from memharness.run.score import rows
from memharness.stats import interval
from memharness.store import read_lines
from memharness.types import Status

Summary = dict[str, Any]


def figures(scored: Iterable[ScoreRow]) -> dict[str, dict[str, Any]]:
    """Each score's figures, from its rows alone.

    `value`, `low`, `high` and `n` are over all units it applies to, failures counting 0; `value_valid` and `n_valid`
    over those with a value of their own.
    """
    values: dict[str, array[float]] = {}
    valid: dict[str, array[int]] = {}
    clusters: dict[str, list[str]] = {}
    statuses: dict[str, dict[str, int]] = {}
    for row in scored:
        cluster = sys.intern(row.cluster)
        for name, score in row.scores.items():
            if score.status is Status.NOT_APPLICABLE:
                continue
            values.setdefault(name, array("d")).append(score.value or 0.0)
            valid.setdefault(name, array("b")).append(score.value is not None)
            clusters.setdefault(name, []).append(cluster)
            if score.status is not Status.OK:
                counts = statuses.setdefault(name, {})
                counts[score.status.value] = counts.get(score.status.value, 0) + 1
    out: dict[str, dict[str, Any]] = {}
    for name, numbers in values.items():
        known = clusters[name] if any(clusters[name]) else None
        found = interval(numbers, known)
        own = [value for value, yes in zip(numbers, valid[name], strict=True) if yes]
        out[name] = {
            "value": found.value,
            "low": found.low,
            "high": found.high,
            "n": len(numbers),
            "n_valid": len(own),
            "value_valid": sum(own) / len(own) if own else None,
            "method": found.method,
            "clusters": found.clusters,
            **({"note": found.note} if found.note else {}),
            **statuses.get(name, {}),
        }
    return out


Counts = tuple[dict[str, int], dict[str, int], dict[str, dict[str, int]], dict[str, float], dict[str, float]]


def outcomes(folder: RunFolder) -> Counts:
    """Counts of outcomes and flags, what the counted attempts cost by phase, and means over questions that have them.

    The means are the readout's tokens by counter, and runtime by name.
    """
    timed: dict[str, list[float]] = {}
    counts: dict[str, int] = {}
    shown: dict[str, list[int]] = {}
    flags: dict[str, int] = {}
    spent: dict[str, dict[str, int]] = {}
    for _, record in read_lines(folder.path / "records.jsonl"):
        counts[record["outcome"]] = counts.get(record["outcome"], 0) + 1
        for flag in record.get("flags", ()):
            flags[flag] = flags.get(flag, 0) + 1
        for counter, tokens in record.get("cost", {}).items():
            shown.setdefault(counter, []).append(tokens)
        for name, seconds in runtime(record.get("trace", {}), record["seconds"]).items():
            timed.setdefault(name, []).append(seconds)
        for phase, sums in record.get("spent", {}).items():
            total = spent.setdefault(phase, {})
            for key, n in sums.items():
                total[key] = total.get(key, 0) + n
    means = [{name: sum(some) / len(some) for name, some in known.items()} for known in (shown, timed)]
    return counts, flags, spent, means[0], means[1]


def costs(folder: RunFolder, asked: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    """Lifecycle cost and what was really spent.

    The lifecycle cost is each context observed once and each question asked once, over the attempts that count; replies
    from the request cache cost what they cost when they were made. `spent` is everything this run's processes really
    bought: retries, second observations and killed attempts included, cache hits not.
    """
    ready: dict[str, str] = {}  # context → worker whose observation counts
    observed: dict[tuple[str, str], dict[str, int]] = {}  # (context, worker) → what its observation cost
    judged: dict[float, dict[str, int]] = {}  # when a scoring pass began → what its judge cost; the last one counts
    judge_price: dict[float, float] = {}
    tokens: dict[str, dict[str, int]] = {
        phase: {kind: sums.get(kind, 0) for kind in KINDS} for phase, sums in asked.items()
    }
    calls = {phase: sums.get("calls", 0) for phase, sums in asked.items()}
    seconds: dict[str, float] = {}
    spent = {"tokens": 0, "calls": 0, "price": 0.0}
    price, priced = 0.0, True
    for path in folder.files("ledger"):
        began = 0.0
        for _, line in read_lines(path):
            kind = line["kind"]
            if kind == "clock":
                for phase, value in line["seconds"].items():
                    seconds[phase] = seconds.get(phase, 0.0) + value
            if kind == "ready":
                ready.setdefault(line["context"], path.stem)
            if kind == "model":
                began = line.get("judging", began)
            if kind in ("clock", "ready", "model"):
                continue
            total = line["text"] + line["image"] + line["output"]
            if not line["hit"]:
                spent["tokens"] += total
                spent["calls"] += 1
                spent["price"] += line["price"] or 0.0
            if line["price"] is None and kind == "generate":
                priced = False
            if line["status"] != "ok":
                continue
            if line["phase"] == "judge":
                judge_price[began] = judge_price.get(began, 0.0) + (line["price"] or 0.0)
                _add(judged.setdefault(began, {}), line)
                continue
            price += line["price"] or 0.0
            if line["phase"] == "observe":
                _add(observed.setdefault((line["context"], path.stem), {}), line)
    counted = [
        ("observe", sums) for (context, worker), sums in observed.items() if ready.get(context, worker) == worker
    ]
    if judged:
        price += judge_price[max(judged)]
        counted.append(("judge", judged[max(judged)]))
    for phase, sums in counted:
        phase_sums = tokens.setdefault(phase, dict.fromkeys(KINDS, 0))
        for name in KINDS:
            phase_sums[name] += sums[name]
        calls[phase] = calls.get(phase, 0) + sums["calls"]
    return {
        "tokens": tokens,
        "calls": calls,
        "seconds": seconds,
        "price": round(price, 6) if priced else None,
        "spent": spent,
    }


def judged(folder: RunFolder, benchmark: Benchmark) -> dict[str, Any]:
    """What further judges said of a run, one entry a judge and rubric, and how far they agree.

    An entry's `official` figures are those of the benchmark's report that the judge's scores make or change.
    """
    found = judgements.of_run(folder)
    return {
        "judgements": [
            {
                "file": str(one.path.relative_to(folder.path)),
                **one.head,
                "scores": figures(one.rows),
                "official": _official(folder, benchmark, one),
            }
            for one in found
        ],
        "agreement": agreements(found),
    }


def _official(folder: RunFolder, benchmark: Benchmark, judgement: judgements.Judgement) -> dict[str, float]:
    names, said = set(judgement.head["names"]), {row.unit: row.scores for row in judgement.rows}

    def scored(judge: bool) -> Iterable[ScoreRow]:
        for row in rows(folder):
            others = {name: score for name, score in row.scores.items() if name not in names}
            yield replace(row, scores={**others, **(said.get(row.unit, {}) if judge else {})})

    without, report = benchmark.report(scored(judge=False)), benchmark.report(scored(judge=True))
    return {name: value for name, value in report.items() if name not in without or without[name] != value}


def _add(sums: dict[str, int], line: Mapping[str, Any]) -> None:
    for name in KINDS:
        sums[name] = sums.get(name, 0) + line[name]
    sums["calls"] = sums.get("calls", 0) + 1


def summarise(
    folder: RunFolder,
    benchmark: Benchmark,
    notes: Sequence[str],
    *,
    complete: bool,
    judge: str | None = None,
    metrics: Iterable[Metric] = (),
) -> Summary:
    """The summary of a scored run; see `memharness run --json` for its keys.

    Args:
        folder: the run, scored.
        benchmark: makes the official figures.
        notes: what a reader of the figures should know.
        complete: whether every question has its outcome.
        judge: who gave the replies that judged metrics read, if anyone was asked.
        metrics: what it was scored by; of judged ones the summary names the rubric.
    """
    manifest = folder.manifest()
    memory, spec = manifest["described"]["memory"], manifest["spec"]
    counts, flags, asked, shown, timed = outcomes(folder)
    scores = figures(rows(folder))
    primary = benchmark.card.primary if benchmark.card.primary in scores else next(iter(scores), "")
    return {
        "run": str(folder.path),
        "identity": manifest["identity"]["reply"],
        "method": memory["method"],
        "bench": memory["benchmark"],
        "reader": spec["reader"],
        "data_state": manifest["described"]["data"]["state"],
        "data_digest": memory["data"],
        "track": manifest["described"]["track"],
        "control": manifest["described"]["control"],
        "n": sum(counts.values()),
        "outcomes": counts,
        "flags": flags,
        "memory_tokens": shown,
        "runtime": timed,
        "scores": scores,
        "official": dict(benchmark.report(rows(folder))),
        "primary": primary,
        **costs(folder, asked),
        "seed": spec["seed"],
        "budget": spec["budget"],
        "items": spec["items"],
        "view": manifest["described"]["readout"]["view"],
        "judge": judge,
        "rubrics": {str(metric): dict(metric.key) for metric in metrics if isinstance(metric, Judged)},
        **judged(folder, benchmark),
        "embedder": spec["embedder"] if memory["embedder"] else None,
        "models": spec["models"],
        "config": memory["config"],
        "options": _changed(benchmark, memory["options"]),
        "prompt": spec["prompt"] if spec["prompt"] != benchmark.card.prompt else None,
        "until": spec["until"],
        "subset": spec["subset"],
        "selection": manifest["described"]["reply"]["selection"],
        "complete": complete,
        "unmeasured": _unmeasured(benchmark, scores) if spec["until"] is None else None,
        "notes": list(notes),
    }


def _unmeasured(benchmark: Benchmark, scores: Mapping[str, Any]) -> str | None:
    """That the score which leads tables is not among the scores, so that another stands in its place."""
    card = benchmark.card
    if not scores or card.primary in scores:
        return None
    how = ": give --judge" if any(isinstance(metric, Judged) for metric in benchmark.metrics()) else ""
    return f"{card.primary}, the score that leads {card.name}, was not measured{how}"


def _changed(benchmark: Benchmark, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of the benchmark that are not at their default: with them, other things are asked or counted."""
    defaults = {name: info.default for name, info in type(benchmark.options).model_fields.items()}
    return {name: value for name, value in options.items() if value != defaults.get(name)}


def same(before: Any, after: Any, where: str = "") -> list[str]:
    """Where two JSON values differ, floats to 1e-12 relative; a line each."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        out = []
        for key in sorted(set(before) | set(after)):
            if key not in before or key not in after:
                out.append(f"{where}{key}: only {'recomputed' if key in after else 'stored'}")
            else:
                out += same(before[key], after[key], f"{where}{key}.")
        return out
    if isinstance(before, float | int) and isinstance(after, float | int) and not isinstance(before, bool):
        close = abs(before - after) <= 1e-12 * max(1.0, abs(before), abs(after))
        return [] if close else [f"{where.rstrip('.')}: stored {before}, recomputed {after}"]
    if before != after:
        return [f"{where.rstrip('.')}: stored {json.dumps(before)[:80]}, recomputed {json.dumps(after)[:80]}"]
    return []
