"""A baseline: what runs gave, question by question, in a JSON file whose git diffs a person can read.

One question is one line. What is kept is what holds on any CPU: outcomes, answers, counts of tokens, and scores to
`DIGITS` decimals. An embedder's last bits differ between CPUs, so vectors and similarities are not kept; what they
decide (which evidence is shown) is, through scores and tokens.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from memharness.datafile import Row, read_json
from memharness.registry import short_name
from memharness.run.spec import RunSpec
from memharness.store import write_atomic
from memharness.types import Outcome, Status, UserError

FORMAT = 1
DIGITS = 6
"""Decimals of a kept score. Two scores are the same if they differ by one unit of the last at most."""

KINDS = ("exact", "sampled")
REMEDY = "mend it, or take git's copy and write it anew with --update"
WHERE = ("out", "workers", "fresh", "resume_anyway", "readouts")  # of a spec: the gate says where and how itself
HEAD = ("format", "reason", "date", "memharness", "versions", "changed", "holds")

Kept = tuple[float | None, str]
"""A score as it is kept: its value (None where the unit failed) and its status."""


@dataclass(frozen=True)
class Told:
    """What a run told of one unit: a question, or a group or episode, which has scores only.

    Attributes:
        name: the source's own id of a question, for people; empty where there is none.
        outcome: of a question, else empty.
        answer: its final text.
        scores: value and status by name; scores that do not apply are left out.
        tokens: counts that are not zero, by phase.
        cluster: what the statistics of a sampled run need.
    """

    id: str
    name: str = ""
    outcome: str = ""
    answer: str | None = None
    scores: Mapping[str, Kept] = field(default_factory=dict)
    tokens: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    cluster: str = ""


@dataclass(frozen=True)
class Measured:
    """A run of the plan, and what it gave.

    Attributes:
        spec: what was run; without `data`, the bundled sample.
        kind: `exact` where the same code must give the same figures, `sampled` where a loss under δ is none.
        delta: δ of a sampled run, in the unit of its primary score; None for an exact one.
        primary: the score that leads.
        data: digest of the data.
        versions: of the method and the benchmark, which are raised by hand when results change.
        observed: what observing all contexts cost, by kind of token.
        told: question by question.
    """

    spec: RunSpec
    kind: str = "exact"
    delta: float | None = None
    primary: str = ""
    data: str = ""
    versions: Mapping[str, int] = field(default_factory=dict)
    observed: Mapping[str, int] = field(default_factory=dict)
    told: tuple[Told, ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from the baseline's other runs: method, benchmark, and the rest of its spec."""
        return self.spec.method, self.spec.bench, json.dumps(_stated(self.spec), sort_keys=True)

    @property
    def title(self) -> str:
        """`graphmemix on locomo`."""
        return f"{short_name(self.spec.method)} on {short_name(self.spec.bench)}"


@dataclass(frozen=True)
class Baseline:
    """The runs of a file, and why they are as they are.

    Attributes:
        reason: why it was written, in the words of whoever did.
        changed: what it changed of the one before, a line each.
        holds: distributions of which every method must be here with every benchmark; what is new of them is named.
        left_out: pairs that do not run on the sample with this reader, and why.
    """

    reason: str = ""
    date: str = ""
    memharness: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    changed: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()
    left_out: Mapping[tuple[str, str], str] = field(default_factory=dict)
    runs: tuple[Measured, ...] = ()


def kept(value: float | None) -> float | None:
    """A score's value as it is kept."""
    return None if value is None else round(value, DIGITS) + 0.0


def alike(before: float | None, after: float | None) -> bool:
    """Whether two kept values are the same."""
    if before is None or after is None:
        return before is after
    return abs(before - after) < 1.5 * 10.0**-DIGITS


# ------------------------------------------------------------------------------------------------------------ writing


def write(path: Path, baseline: Baseline) -> None:
    """Write a baseline, runs in order of their names.

    Raises:
        UserError: if the disk refuses.
    """
    head = {name: getattr(baseline, name) for name in HEAD if name != "format"}
    left_out = [
        {"method": method, "bench": bench, "why": why} for (method, bench), why in sorted(baseline.left_out.items())
    ]
    runs = sorted(baseline.runs, key=lambda run: run.key)
    fields = [f'"{name}": {json.dumps(value, ensure_ascii=False, indent=1)}' for name, value in head.items()]
    lines = [
        f'"format": {FORMAT}',
        *fields,
        f'"left_out": {_lines(left_out)}',
        f'"runs": [\n{",".join(map(_run_out, runs))}\n]',
    ]
    write_atomic(path, "{\n" + ",\n".join(lines) + "\n}\n")


def _lines(values: Iterable[Mapping[str, Any]], indent: str = "") -> str:
    """A list with one value a line."""
    rows = [f"{indent} {_json(value)}" for value in values]
    return "[\n" + ",\n".join(rows) + f"\n{indent}]" if rows else "[]"


def _json(value: Any) -> str:
    """One line of JSON that can be read; half a surrogate pair, which UTF-8 has no bytes for, stands as its escape."""
    line = json.dumps(value, ensure_ascii=False)
    return line if line.encode(errors="replace").decode() == line else json.dumps(value)


def _run_out(run: Measured) -> str:
    head: dict[str, Any] = {"run": {"method": run.spec.method, "bench": run.spec.bench, **_stated(run.spec)}}
    head["kind"] = run.kind
    head |= {"delta": run.delta} if run.delta is not None else {}
    head |= {"primary": run.primary, "data": run.data, "versions": run.versions, "observed": run.observed}
    fields = [f'  "{name}": {_json(value)}' for name, value in head.items()]
    told = _lines(map(_told_out, run.told), "  ")
    return "\n {\n" + ",\n".join([*fields, f'  "questions": {told}']) + "\n }"


def _stated(spec: RunSpec) -> dict[str, Any]:
    """What a spec says beside its method and benchmark: reader, limit and seed always, the rest where it is set."""
    default = RunSpec(spec.method, spec.bench).to_json()
    always = ("reader", "limit", "seed")
    own = {name: value for name, value in spec.to_json().items() if name not in ("method", "bench", *WHERE)}
    return {name: value for name, value in own.items() if name in always or value != default[name]}


def _told_out(told: Told) -> dict[str, Any]:
    line: dict[str, Any] = {"id": told.id}
    for name in ("name", "cluster", "outcome"):
        if value := getattr(told, name):
            line[name] = value
    if told.answer is not None:
        line["answer"] = told.answer
    if told.scores:
        line["scores"] = {name: _score_out(*told.scores[name]) for name in sorted(told.scores)}
    return line | ({"tokens": told.tokens} if told.tokens else {})


def _score_out(value: float | None, status: str) -> Any:
    short = int(value) if value is not None and value.is_integer() else value
    return short if status == Status.OK else [short, status]


# ------------------------------------------------------------------------------------------------------------ reading


def read(path: Path) -> Baseline:
    """A baseline from its file, which may have been written or changed by hand: a run may have no questions yet.

    Raises:
        UserError: if it is missing or damaged; the message names the run, the question and the field.
    """
    if not path.is_file():
        raise UserError(f"--baseline {path}: no such file; `memharness regress --update --reason TEXT` makes it")
    value = read_json(path)
    if not isinstance(value, dict):
        raise UserError(f"{path}: must be a mapping with a list of runs; {REMEDY}")
    row = Row(value, str(path))
    if value.get("format") != FORMAT:
        raise UserError(f"{path}: format: is {value.get('format')!r}, this memharness reads {FORMAT}; {REMEDY}")
    left_out = {
        (one.text("method"), one.text("bench")): one.text("why")
        for one in (row.rows("left_out") if row.has("left_out") else [])
    }
    runs: dict[tuple[str, str, str], Measured] = {}
    for one in row.rows("runs", "run"):
        run = _run_in(one)
        if runs.setdefault(run.key, run) is not run:
            raise one.error("run", f"{run.title} stands twice with the same options", "leave one out")
    return Baseline(
        reason=row.text("reason", ""),
        date=row.text("date", ""),
        memharness=row.text("memharness", ""),
        versions=row.row("versions").values if row.has("versions") else {},
        changed=row.texts("changed", ()),
        holds=row.texts("holds", ()),
        left_out=left_out,
        runs=tuple(runs.values()),
    )


def _run_in(row: Row) -> Measured:
    spec = row.row("run")
    named = replace(row, where=f"{row.where} ({spec.text('method')} on {spec.text('bench')})")
    if refused := sorted(set(WHERE) & set(spec.values)):
        raise spec.error(refused[0], "has no place in a baseline", "leave it out")
    kind = named.text("kind", "exact")
    if kind not in KINDS:
        raise named.error("kind", f"is {kind!r}, not exact or sampled", REMEDY)
    delta = named.number("delta", float("nan")) if named.has("delta") else None
    if delta is not None and not 0 <= delta <= 1e9:
        raise named.error("delta", f"is {delta:g}, and must be a number from 0", REMEDY)
    told = [_told_in(one) for one in named.rows("questions")] if named.has("questions") else []
    seen: set[str] = set()
    for one in told:
        if one.id in seen:
            raise named.error("questions", f"{one.id!r} stands twice", REMEDY)
        seen.add(one.id)
    return Measured(
        _spec_in(spec),
        kind,
        delta,
        named.text("primary", ""),
        named.text("data", ""),
        _counts(named, "versions"),
        _counts(named, "observed"),
        tuple(told),
    )


@functools.cache
def _spec_type() -> Any:
    import pydantic

    return pydantic.TypeAdapter(RunSpec)


def _spec_in(row: Row) -> RunSpec:
    """A spec whose every field has its type: it may have been written by hand."""
    import pydantic

    try:
        _spec_type().validate_python(dict(row.values))
    except pydantic.ValidationError as error:
        found = error.errors()[0]
        raise row.error(".".join(map(str, found["loc"])), found["msg"].lower(), REMEDY) from None
    return RunSpec.from_json(row.values, row.where)


def _told_in(row: Row) -> Told:
    name = row.text("id")
    row = replace(row, where=f"{row.where} ({name})")
    outcome = row.text("outcome", "")
    if outcome not in ("", *Outcome):
        raise row.error("outcome", f"{outcome!r} is none", REMEDY)
    scores = row.row("scores") if row.has("scores") else Row({}, row.where)
    tokens = row.row("tokens") if row.has("tokens") else Row({}, row.where)
    return Told(
        name,
        row.text("name", ""),
        outcome,
        row.text("answer", "") if row.has("answer") else None,
        {score: _score_in(scores, score) for score in scores.values},
        {phase: _counts(tokens, phase) for phase in tokens.values},
        row.text("cluster", ""),
    )


def _score_in(row: Row, name: str) -> Kept:
    value = row.values[name]
    number, status = value if isinstance(value, list) and len(value) == 2 else (value, Status.OK.value)
    if number is not None and (isinstance(number, bool) or not isinstance(number, int | float)):
        raise row.error(name, f"{json.dumps(value)} is no score", REMEDY)
    if status not in tuple(Status):
        raise row.error(name, f"{status!r} is no status of a score", REMEDY)
    return None if number is None else float(number), str(status)


def _counts(row: Row, name: str) -> dict[str, int]:
    if not row.has(name):
        return {}
    inside = row.row(name)
    return {key: inside.whole(key) for key in inside.values}
