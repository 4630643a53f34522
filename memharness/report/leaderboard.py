"""The leaderboard: one row a run, samples, tracks and controls apart, the same columns in every row."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memharness.identity import digest
from memharness.ledger import KINDS, PHASES
from memharness.report.tables import (
    SAMPLE_WARNING,
    Summary,
    interval,
    limit_words,
    number,
    option_words,
    put,
    table,
)
from memharness.store import write_atomic
from memharness.types import Outcome

if TYPE_CHECKING:
    from rich.console import Console

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


def standing(summary: Summary) -> tuple[Any, ...]:
    """Sorts samples behind the real thing, tracks apart, controls behind contenders, and the best first."""
    lead = summary["scores"].get(summary.get("primary") or "", {})
    value = lead.get("value")
    return (
        summary["data_state"] == "sample",
        summary["track"],
        summary["bench"],
        summary.get("primary") or "",
        asked(summary),
        bool(summary.get("control")),
        -value if value is not None else float("inf"),
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


def rows(summaries: Iterable[Summary]) -> list[dict[str, Any]]:
    """The leaderboard as flat rows with the same keys each, in the order of `standing`.

    The columns: what was run; the benchmark's primary score with its interval (shares of 1, 95 %); outcomes;
    tokens, calls and seconds by phase (lifecycle, retries left out); price in USD; then every other overall score
    that any of the runs has, as `score_<name>`, empty where a run has none. Categories are in each run's summary.
    """
    ordered = sorted(summaries, key=standing)
    names = sorted({name for summary in ordered for name in summary["scores"] if "." not in name})
    return [{**_row(summary), **_scores(summary, names)} for summary in ordered]


def _row(summary: Summary) -> dict[str, Any]:
    primary = summary.get("primary")
    lead = summary["scores"].get(primary or "", {})
    tokens, outcomes = summary.get("tokens") or {}, summary.get("outcomes") or {}
    row: dict[str, Any] = {name: summary.get(name) for name in PLAIN}
    told = ("models", "config", "options", "selection")
    row |= {name: json.dumps(summary.get(name) or {}, sort_keys=True) for name in told}
    row |= {name: summary.get(name) for name in ("prompt", "subset", "until", "complete")}
    row |= {"primary": primary}
    row |= {f"primary_{name}": lead.get(name) for name in INTERVAL}
    row |= {f"outcome_{outcome.value}": outcomes.get(outcome.value, 0) for outcome in Outcome}
    for phase in PHASES:
        row |= {f"tokens_{phase}_{kind}": (tokens.get(phase) or {}).get(kind, 0) for kind in KINDS}
    for name in ("calls", "seconds"):
        row |= {f"{name}_{phase}": (summary.get(name) or {}).get(phase, 0) for phase in PHASES}
    return row | {"price_usd": summary.get("price"), "identity": summary["identity"], "run": summary["run"]}


def _scores(summary: Summary, names: Sequence[str]) -> dict[str, Any]:
    return {f"score_{name}": summary["scores"].get(name, {}).get("value") for name in names}


def write_csv(path: Path, summaries: Sequence[Summary]) -> None:
    """Write the rows as CSV, atomically.

    Raises:
        UserError: if the disk is full or refuses.
    """
    made = rows(summaries)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(made[0]) if made else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(made)
    write_atomic(path, text.getvalue())


def show_leaderboard(console: Console, summaries: Iterable[Summary]) -> None:
    """Print one table for each benchmark, track, primary score and set of questions; controls below a line."""
    from rich.text import Text

    groups: dict[tuple[bool, str, str, str, tuple[str, ...]], list[Summary]] = {}
    for summary in sorted(summaries, key=standing):
        sample, primary = summary["data_state"] == "sample", summary.get("primary") or "no score"
        key = (sample, summary["track"], summary["bench"], primary, asked(summary))
        groups.setdefault(key, []).append(summary)
    alike: dict[tuple[bool, str, str, str], set[str]] = {}
    for sample, track, bench, primary, questions in groups:
        alike.setdefault((sample, track, bench, primary), set()).add(questions[0])
    warned = False
    for (sample, track, bench, primary, (data, *selection)), members in groups.items():
        if sample and not warned:
            warned = True
            console.print(Text(SAMPLE_WARNING, style="bold yellow"))
        words = [bench, f"{track} track", primary, *(["SAMPLE"] if sample else []), *filter(None, selection)]
        if len(alike[sample, track, bench, primary]) > 1:
            words.append(f"data {data[:8]}")
        _show_board(console, words, members)


def _show_board(console: Console, title: Sequence[str], members: Sequence[Summary]) -> None:
    from rich.text import Text

    told = options_told(members)
    cells = [_cells(summary, told) for summary in members]
    shared = [name for name in ("reader", "limits") if len({row[name] for row in cells}) == 1]
    words = [f"{name} {cells[0][name]}" for name in shared]  # what all have in common is said once
    columns = [name for name in cells[0] if name not in shared]
    headings = [name if name in ("method", "reader", "limits") else f">{name}" for name in columns]
    console.print(Text(" · ".join([*title, *words]), style="bold"))
    made = table(console, *headings)
    control = bool(members[0].get("control"))
    for summary, row in zip(members, cells, strict=True):
        if bool(summary.get("control")) != control:
            control = not control
            if console.is_terminal:
                made.add_section()
        made.add_row(*(row[name] for name in columns), style="dim" if control else "")
    put(console, made)


def options_told(members: Iterable[Summary]) -> set[tuple[str, str]]:
    """(method, option) pairs that tell apart runs of one method, and so belong into its name."""
    seen: dict[tuple[str, str], set[str]] = {}
    for summary in members:
        for name, value in (summary.get("config") or {}).items():
            seen.setdefault((summary["method"], name), set()).add(json.dumps(value))
    return {key for key, values in seen.items() if len(values) > 1}


def _cells(summary: Summary, told: Container[tuple[str, str]]) -> dict[str, str]:
    lead = summary["scores"].get(summary.get("primary") or "", {})
    method = summary["method"]
    options = [
        f"{name}={value}"
        for name, value in (summary.get("config") or {}).items()
        if value not in (None, "") and (isinstance(value, str) or (method, name) in told)
    ]
    marks = [
        mark for mark, yes in (("control", summary.get("control")), ("incomplete", not summary.get("complete"))) if yes
    ]
    questions = summary.get("n") or 0
    return {
        "method": " ".join([method, *options, *(f"({mark})" for mark in marks)]),
        "reader": summary["reader"],
        "limits": ", ".join(filter(None, (limit_words(summary).removeprefix("budget "), summary.get("view")))),
        "value": number(lead.get("value")),
        "95 % interval": interval(lead),
        "n": f"{lead.get('n', questions):,}",
        "valid": f"{lead['n_valid']:,}" if "n_valid" in lead else "–",
        "tokens/q": f"{tokens_used(summary) / questions:,.0f}" if questions else "–",
    }


def tokens_used(summary: Summary) -> int:
    """Tokens of the memory's whole life in this run: observe once, every question once; latent vectors are none."""
    phases: Iterable[Mapping[str, int]] = (summary.get("tokens") or {}).values()
    return sum(sums.get(kind, 0) for sums in phases for kind in ("text", "image", "output"))
