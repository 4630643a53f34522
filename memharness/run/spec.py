"""What to run, as plain JSON: the words of the command line, before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from memharness.types import UserError


@dataclass(frozen=True)
class RunSpec:
    """A run as the user asked for it. Fields from `workers` on say how, not what: they are not in the identity.

    Attributes:
        method: name, `pkg.mod:Class` or `file.py:Class`; so for `bench` and `reader`.
        reader: answer reader spec, `NAME` or `NAME:MODEL`.
        judge: reader spec of the judge; None leaves judged metrics out.
        models: reader spec by role, where it is not the answer reader.
        limit: the first N questions of the run, as `N`, or a range `A-B` of positions from 1, both included.
        ids: question ids, opaque or native; None is all.
        view: `pixels` or `captions`; None takes pixels if the reader sees pictures.
        until: `recall` stops before reading.
        readouts: run folder whose readouts are read again with this reader.
        prompt: the answer prompt by name and version; empty is the benchmark's own.
    """

    method: str
    bench: str
    reader: str = "smollm2"
    judge: str | None = None
    embedder: str = "minilm"
    data: str | None = None
    subset: str | None = None
    limit: str | None = None
    ids: tuple[str, ...] | None = None
    budget: int | None = None
    items: int | None = None
    counters: tuple[str, ...] = ("reader",)
    models: Mapping[str, str] = field(default_factory=dict)
    view: str | None = None
    until: str | None = None
    readouts: str | None = None
    method_options: Mapping[str, Any] = field(default_factory=dict)
    bench_options: Mapping[str, Any] = field(default_factory=dict)
    reader_options: Mapping[str, Any] = field(default_factory=dict)
    prompt: str = ""
    max_tokens: int = 64
    seed: int = 0
    workers: int = 1
    out: str = "results"
    concurrency: int = 32
    timeout: float | None = None
    fresh: bool = False
    resume_anyway: bool = False
    max_failures: int = 0
    max_cost: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any], where: str = "the run's spec") -> RunSpec:
        """The spec that `to_json` gave.

        Raises:
            UserError: for a key that is no field, or a missing one.
        """
        known = {f.name for f in fields(cls)}
        if unknown := sorted(set(value) - known):
            raise UserError(f"{where}: unknown key {unknown[0]}; there are {', '.join(sorted(known))}")
        data = dict(value)
        for name in ("ids", "counters"):
            if data.get(name) is not None:
                data[name] = tuple(data[name])
        try:
            return cls(**data)
        except TypeError as error:
            raise UserError(f"{where}: {error}") from None


def parse_limit(text: str) -> tuple[int, int]:
    """`N` or `A-B` as a half-open range of question positions from 0.

    Raises:
        UserError: for anything else.
    """
    first, dash, last = text.partition("-")
    try:
        start, stop = (int(first) - 1, int(last)) if dash else (0, int(first))
    except ValueError:
        start, stop = -1, -1
    if start < 0 or stop <= start:
        raise UserError(f"--limit {text}: expected a number of questions N ≥ 1, or a range A-B with 1 ≤ A ≤ B")
    return start, stop
