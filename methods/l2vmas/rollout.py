"""Rollouts: a question worked on with choices drawn instead of taken, and all that is needed to replay them.

The policy is the frozen model with the modules around it. Its actions are tokens, and, where the memory is called on,
which bank and which units. Tokens depend on the modules through what was injected before them; the choices depend on
them directly. Units are drawn one after the other without replacement by softmax(similarity / temperature), the
Plackett–Luce model, so that the keys have a gradient at all: the top-k of inference has none.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from memharness.methods.l2vmas.banks import Bank, Unit, similarity
from memharness.methods.l2vmas.dual import DualMemory, Recalled, Which
from memharness.reader import Request

BANKS: tuple[Which, ...] = ("perception", "thinking")


@dataclass(frozen=True, slots=True)
class Kept:
    """A unit as it was when a bank was called on: its value, and of a merged one what that was made of."""

    value: torch.Tensor
    merged: torch.Tensor | None


@dataclass(slots=True)
class Draw:
    """One call on the memory.

    Attributes:
        after: tokens decoded before it.
        window: (w, width), the gate's input and the query's.
        gate: whether perception was drawn; None where the gate did not decide.
        noise: the logistic noise that decided it: perception where logit + noise > 0 (eq. 18).
        bank: the units of the bank called on, in order.
        chosen: places of those drawn, in order.
        passed: what would have been drawn from the other bank, where the gate decided between two.
    """

    after: int
    window: torch.Tensor
    gate: bool | None
    noise: float
    bank: tuple[Kept, ...]
    chosen: tuple[int, ...]
    passed: tuple[Kept, ...] = ()


@dataclass(slots=True)
class Trace:
    """One turn of a rollout.

    Attributes:
        request: what was asked.
        tokens: decoded, n.
        states: (n, width), that each was drawn from.
        draws: calls on the memory, in order.
    """

    request: Request
    tokens: list[int] = field(default_factory=list)
    states: torch.Tensor | None = None
    draws: list[Draw] = field(default_factory=list)


class DrawnMemory(DualMemory):
    """A dual memory whose choices are drawn, and noted.

    Attributes:
        noted: the draws since it was last emptied; `after` is filled in by whoever decodes.
    """

    def __init__(self, *arguments: Any, rng: random.Random, temperature: float, gate: bool, **options: Any) -> None:
        """As `DualMemory`.

        Args:
            arguments: of `DualMemory`.
            rng: draws.
            temperature: of retrieval.
            gate: whether the gate decides; else a coin does, as in stage I.
            options: of `DualMemory`.
        """
        super().__init__(*arguments, **options)
        self.noted: list[Draw] = []
        self._rng = rng
        self._temperature = temperature
        self._gate = gate
        self._noise = 0.0
        self._chosen: tuple[int, ...] = ()

    @torch.no_grad()
    def call(self, window: torch.Tensor) -> Recalled | None:
        """See `DualMemory.call`."""
        banks: dict[str, tuple[Kept, ...]] = {which: _kept(self.bank(which)) for which in BANKS}
        recalled = super().call(window)
        if recalled is None:
            return None
        chosen = self._chosen
        gate: bool | None = None
        passed: tuple[Kept, ...] = ()
        if self._gate and all(banks.values()):
            gate = recalled.which == "perception"
            left: Which = "thinking" if gate else "perception"
            units = self.retrieve(self.bank(left), self._synthesis.key(window))
            passed = tuple(Kept(unit.value, unit.merged) for unit in units)
        self.noted.append(Draw(0, window, gate, self._noise, banks[recalled.which], chosen, passed))
        return recalled

    def perceives(self, chance: float) -> bool:
        """Drawn with the gate's chance, or an even one."""
        uniform = min(max(self._rng.random(), 1e-9), 1 - 1e-9)
        self._noise = math.log(uniform) - math.log1p(-uniform)
        return uniform > 1 - (chance if self._gate else 0.5)

    def retrieve(self, bank: Bank, query: torch.Tensor) -> list[Unit]:
        """Drawn by similarity; all of them where there are no more than k."""
        units, k = list(bank.units), min(self._k, len(bank))
        places = list(range(len(units)))
        if k < len(units):
            alike = similarity(query[None], torch.stack([unit.key for unit in units]))[0] / self._temperature
            noise = torch.tensor([self._gumbel() for _ in units])
            places = torch.argsort(alike.cpu() + noise, descending=True, stable=True)[:k].tolist()
        self._chosen = tuple(places)
        return [units[at] for at in places]

    def _gumbel(self) -> float:
        """Noise that turns sorting by score into drawing by softmax, one after the other (Gumbel top-k)."""
        exponential = self._rng.expovariate(1.0)
        return -math.log(max(exponential, 1e-12))


def _kept(bank: Bank) -> tuple[Kept, ...]:
    return tuple(Kept(unit.value, unit.merged) for unit in bank.units)


def plackett_luce(scores: torch.Tensor, chosen: Sequence[int]) -> torch.Tensor:
    """Log-probability of drawing places in this order without replacement, by softmax of scores, (n,); 0 if all are."""
    if len(chosen) >= len(scores):
        return scores.new_zeros(())
    left = torch.ones(len(scores), dtype=torch.bool, device=scores.device)
    total = scores.new_zeros(())
    for place in chosen:
        total = total + scores[place] - scores[left].logsumexp(0)
        left = left.clone()  # what a gradient goes through must stay as it was
        left[place] = False
    return total
