"""Runs, and figures that papers print, as flat rows with the same columns each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memharness.ledger import KINDS, PHASES
from memharness.report.leaderboard.boards import lead, standing
from memharness.report.leaderboard.ties import Standing
from memharness.report.published import Figure
from memharness.report.tables import Summary
from memharness.types import Outcome

PLAIN = (
    "data_state",
    "bench",
    "data_digest",
    "track",
    "control",
    "method",
    "reader",
    "judge",
    "embedder",
    "view",
    "budget",
    "items",
    "seed",
    "n",
)
INTERVAL = ("value", "low", "high", "n_valid", "value_valid", "method", "clusters")
MORE = ("low", "high", "n", "clusters", "unparsed", "judge_error")  # of a score, besides its value
LIFE = ("observe", "recall", "read", "answer")  # the memory's life; a judge's cost is the measurement's


def rows(
    summaries: Iterable[Summary],
    ties: Mapping[str, Standing] | None = None,
    published: Iterable[Figure] = (),
) -> list[dict[str, Any]]:
    """The leaderboard as flat rows with the same keys each, in the order of `standing`; published figures last.

    The columns: what was run; the benchmark's primary score with its interval (shares of 1, 95 %), its tie group, and
    the shares of its replies that could not be read or judged; outcomes; tokens, calls and seconds by phase (lifecycle,
    retries left out) and in sum, the judge's left out; price in USD, the judge's in it; then every other overall score
    that any of the runs has, as `score_<name>`, with its interval, n, clusters, unparsed and judge errors, empty where
    a run has none; and the official figures of the benchmark's own report that are no score, as `official_<name>`.
    A published row has `data_state` published, no rank, its source under `run`, and only what the paper says.

    Args:
        summaries: the runs.
        ties: tie groups by run, as `standings` gives them.
        published: figures of papers on these benchmarks.
    """
    ordered = sorted(summaries, key=standing)
    scores = sorted({name for summary in ordered for name in summary["scores"] if "." not in name})
    official = sorted({name for summary in ordered for name in _official(summary)})
    made = [
        {**_row(summary, (ties or {}).get(summary["run"])), **_scores(summary, scores), **_official(summary, official)}
        for summary in ordered
    ]
    told = [_published(line) for line in lines(published)]
    columns = dict.fromkeys(name for row in [*made, *told] for name in row)
    return [{name: row.get(name) for name in columns} for row in [*made, *told]]


def lines(published: Iterable[Figure]) -> list[list[Figure]]:
    """Published figures that make one row: one table's method with one reader on one part of a benchmark."""
    groups: dict[tuple[str, ...], list[Figure]] = {}
    for figure in published:
        key = (figure.benchmark, figure.paper, figure.table, figure.method, figure.reader, figure.subset)
        groups.setdefault(key, []).append(figure)
    return list(groups.values())


def tokens_used(summary: Summary) -> int:
    """Tokens of the memory's whole life: observe once, every question once; neither latent vectors nor the judge's."""
    tokens = summary.get("tokens") or {}
    return sum((tokens.get(phase) or {}).get(kind, 0) for phase in LIFE for kind in ("text", "image", "output"))


def latents_used(summary: Summary) -> int:
    """Latent vectors of the memory's whole life, which are no tokens and are counted apart."""
    tokens = summary.get("tokens") or {}
    return sum((tokens.get(phase) or {}).get("latent", 0) for phase in LIFE)


def life(summary: Summary, name: str) -> float:
    """`calls` or `seconds` of the memory's whole life, the judge's left out. Phases may overlap in time."""
    spent: Mapping[str, float] = summary.get(name) or {}
    return sum(spent.get(phase, 0) for phase in LIFE)


def error_share(summary: Summary) -> float | None:
    """Share of questions whose outcome is not `ok`."""
    outcomes: Mapping[str, int] = summary.get("outcomes") or {}
    total = sum(outcomes.values())
    return (total - outcomes.get("ok", 0)) / total if total else None


def share(score: Mapping[str, Any], name: str) -> float | None:
    """Share of a score's units that are `unparsed` or `judge_error`."""
    return float(score.get(name, 0) / score["n"]) if score.get("n") else None


def _row(summary: Summary, tie: Standing | None) -> dict[str, Any]:
    primary = lead(summary)
    tokens, outcomes = summary.get("tokens") or {}, summary.get("outcomes") or {}
    questions = summary.get("n") or 0
    row: dict[str, Any] = {name: summary.get(name) for name in PLAIN}
    told = ("models", "config", "options", "selection")
    row |= {name: json.dumps(summary.get(name) or {}, sort_keys=True) for name in told}
    row |= {name: summary.get(name) for name in ("prompt", "subset", "until", "complete", "primary")}
    row |= {f"primary_{name}": primary.get(name) for name in INTERVAL}
    row |= {f"primary_{name}_share": share(primary, name) for name in ("unparsed", "judge_error")}
    row |= {"error_share": error_share(summary)}
    row |= {"tie_group": tie.group if tie else None, "not_ranked": tie.why if tie else None}
    row |= {f"outcome_{outcome.value}": outcomes.get(outcome.value, 0) for outcome in Outcome}
    for phase in PHASES:
        row |= {f"tokens_{phase}_{kind}": (tokens.get(phase) or {}).get(kind, 0) for kind in KINDS}
    for name in ("calls", "seconds"):
        row |= {f"{name}_{phase}": (summary.get(name) or {}).get(phase, 0) for phase in PHASES}
    row |= {"lifecycle_tokens": tokens_used(summary), "lifecycle_latents": latents_used(summary)}
    row |= {f"lifecycle_{name}": life(summary, name) for name in ("calls", "seconds")}
    for name in ("tokens", "calls", "seconds"):
        row[f"{name}_per_question"] = row[f"lifecycle_{name}"] / questions if questions else None
    row |= {"price_usd": summary.get("price"), "date": summary.get("date"), "identity": summary["identity"]}
    return row | {"run": summary["run"]}


def _scores(summary: Summary, names: Sequence[str]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name in names:
        score = summary["scores"].get(name, {})
        out[f"score_{name}"] = score.get("value")
        out |= {f"score_{name}_{what}": score.get(what, 0 if score and what in MORE[4:] else None) for what in MORE}
    return out


def _official(summary: Summary, names: Iterable[str] | None = None) -> dict[str, Any]:
    """Figures of the benchmark's own report that no score already says."""
    said = {f"official_{name}": value for name, value in (summary.get("official") or {}).items()}
    said = {name: value for name, value in said.items() if name.removeprefix("official_") not in summary["scores"]}
    return said if names is None else {name: said.get(name) for name in names}


def _published(line: Sequence[Figure]) -> dict[str, Any]:
    first = line[0]
    row: dict[str, Any] = {
        "data_state": "published",
        "bench": first.benchmark,
        "method": first.method,
        "reader": first.reader or None,
        "judge": next((figure.judge for figure in line if figure.judge), None),
        "subset": first.subset or None,
        "not_ranked": "published",
        "run": f"{first.place} ({first.source})",
    }
    for figure in line:
        if figure.unit == "percent":
            row[f"score_{figure.metric}"] = figure.value / 100
        elif figure.unit == "tokens per question":
            row["tokens_per_question"] = figure.value
        else:
            row[f"published_{figure.metric}"] = figure.value
    return row
