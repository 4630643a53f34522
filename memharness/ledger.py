"""What was spent: every call's tokens, seconds and price, charged to a phase, role and question by context variable."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from memharness.types import Usage

PHASES = ("observe", "recall", "read", "answer", "judge")
KINDS = ("text", "image", "output", "latent")


@dataclass(slots=True)
class Account:
    """Where calls are charged just now: a phase of a question's attempt, or of a context's observation.

    `spent` sums, by phase, what was charged here: `{phase: {text, image, output, latent, cached, reasoning, calls}}`.
    """

    context: str
    question: str | None = None
    attempt: int = 1
    spent: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, phase: str, usage: Usage, calls: int = 1) -> None:
        """Add a call's usage to the sums."""
        sums = self.spent.get(phase)
        if sums is None:
            sums = self.spent[phase] = dict.fromkeys((*KINDS, "cached", "reasoning", "calls"), 0)
        sums["text"] += usage.text
        sums["image"] += usage.image
        sums["output"] += usage.output
        sums["latent"] += usage.latent
        sums["cached"] += usage.cached
        sums["reasoning"] += usage.reasoning
        sums["calls"] += calls


_account: ContextVar[Account | None] = ContextVar("memharness_account", default=None)
_phase: ContextVar[str] = ContextVar("memharness_phase", default="observe")


def account() -> Account:
    """The account of the running task; one without a context if nothing was opened (plug-in start-up)."""
    return _account.get() or Account("")


def phase() -> str:
    """The phase of the running task."""
    return _phase.get()


@contextmanager
def charging(to: Account, in_phase: str) -> Iterator[Account]:
    """Charge calls made inside to an account and phase."""
    token, phase_token = _account.set(to), _phase.set(in_phase)
    try:
        yield to
    finally:
        _phase.reset(phase_token)
        _account.reset(token)


@contextmanager
def in_phase(name: str) -> Iterator[None]:
    """Charge calls made inside to another phase of the same account.

    Raises:
        ValueError: for a name that is not a phase.
    """
    if name not in PHASES:
        raise ValueError(f"{name!r} is not a phase; phases are {', '.join(PHASES)}")
    token = _phase.set(name)
    try:
        yield
    finally:
        _phase.reset(token)


@dataclass(frozen=True, slots=True)
class Call:
    """One line of the ledger.

    Attributes:
        kind: `generate`, `embed` or `latent`.
        model: the model's identity as its card gives it.
        hit: answered from the request cache: part of the lifecycle cost, not of what was spent.
        status: `ok`, `cancelled` or the error's type. Failed and cancelled calls are charged as far as known.
        queued: seconds waited for a place.
        seconds: seconds of service.
        price: in USD, None for a model without a price.
    """

    kind: str
    phase: str
    role: str
    model: str
    context: str
    question: str | None
    attempt: int
    usage: Usage
    hit: bool = False
    status: str = "ok"
    queued: float = 0.0
    seconds: float = 0.0
    price: float | None = None
    inputs: int = 1

    def line(self) -> dict[str, Any]:
        """The call as JSON."""
        usage = self.usage
        counts = {"text": usage.text, "image": usage.image, "cached": usage.cached, "output": usage.output,
                  "reasoning": usage.reasoning, "latent": usage.latent}  # fmt: skip
        return {
            "kind": self.kind, "phase": self.phase, "role": self.role, "model": self.model, "context": self.context,
            "question": self.question, "attempt": self.attempt, "hit": self.hit, "status": self.status,
            "queued": round(self.queued, 6), "seconds": round(self.seconds, 6), "price": self.price,
            "inputs": self.inputs, **counts,
        }  # fmt: skip


class Clock:
    """Wall-clock seconds during which at least one task was in a phase; overlapping tasks count once."""

    def __init__(self) -> None:
        """Start with nothing running."""
        self._running: dict[str, int] = {}
        self._since: dict[str, float] = {}
        self._seconds: dict[str, float] = {}

    @contextmanager
    def running(self, name: str) -> Iterator[None]:
        """Time a block of a phase."""
        if not self._running.get(name):
            self._since[name] = time.perf_counter()
        self._running[name] = self._running.get(name, 0) + 1
        try:
            yield
        finally:
            self._running[name] -= 1
            if not self._running[name]:
                self._seconds[name] = self._seconds.get(name, 0.0) + time.perf_counter() - self._since[name]

    def seconds(self) -> Mapping[str, float]:
        """Seconds by phase up to now."""
        now = time.perf_counter()
        return {
            name: self._seconds.get(name, 0.0) + (now - self._since[name] if running else 0.0)
            for name, running in self._running.items()
        }
