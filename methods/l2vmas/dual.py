"""The dual latent memory of one question: two banks that all agents share, and how one is called on (section 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from memharness.methods.l2vmas.banks import Bank, Thinking, Unit
from memharness.methods.l2vmas.synthesis import Synthesis, injected

Which = Literal["perception", "thinking"]
From = Literal["perception", "thinking", "both"]


@dataclass(frozen=True, slots=True)
class Recalled:
    """What a call on the memory gave.

    Attributes:
        which: bank; `both` where they are not told apart.
        latents: (L, width), to inject.
        units: how many were retrieved.
        chance: p of the gate, that perception was what is missing.
    """

    which: From
    latents: torch.Tensor
    units: int
    chance: float


class DualMemory:
    """Both banks. Everything here is tensor work, for the device thread.

    Attributes:
        perception: what was seen, block by block.
        thinking: what was thought, chunk by chunk.
        calls: that gave something, on either bank.
        most: vectors that both banks held together at any time, keys included.
        most_bytes: what both banks held together at any time.
    """

    def __init__(
        self,
        synthesis: Synthesis,
        *,
        capacity: int,
        k: int,
        norm: float | None,
        other: bool,
        banks: Sequence[Which],
        apart: bool = True,
    ) -> None:
        """Two empty banks.

        Args:
            synthesis: the modules.
            capacity: N, of the thinking bank.
            k: units retrieved.
            norm: what each injected vector is brought to, or None.
            other: whether the other bank is called on where the gate's choice is empty.
            banks: in use; an ablation leaves one out.
            apart: whether the gate chooses one of them; else units of both are looked for together (an ablation).
        """
        self.perception = Bank()
        self.thinking = Thinking(capacity, synthesis.key, synthesis.merge)
        self.calls = 0
        self.most = 0
        self.most_bytes = 0
        self._synthesis = synthesis
        self._k = k
        self._norm = norm
        self._other = other
        self._banks = banks
        self._apart = apart

    @torch.no_grad()
    def see(self, blocks: torch.Tensor) -> None:
        """Take a picture in: (blocks, n, width), a unit a block."""
        if "perception" in self._banks:
            self.perception.units += [Unit(self._synthesis.key(block).float(), block, self.calls) for block in blocks]
            self._measure()

    @torch.no_grad()
    def think(self, chunks: Sequence[torch.Tensor]) -> None:
        """Take chunks of thought in, (l, width) each, in order."""
        if "thinking" in self._banks:
            for chunk in chunks:
                self.thinking.add(Unit(self._synthesis.key(chunk).float(), chunk, self.calls), self.calls)
                self._measure()

    @torch.no_grad()
    def call(self, window: torch.Tensor) -> Recalled | None:
        """Call on the memory: choose a bank, retrieve, refine. None where there is nothing to give.

        Args:
            window: (w, width), the hidden states of the last W tokens.
        """
        chance = self._synthesis.perception(window)
        which, bank = self._chosen_bank(chance)
        if not len(bank):
            return None
        units = self.retrieve(bank, self._synthesis.key(window))
        self.calls += 1
        for unit in units:
            unit.called += 1
        latents = injected(self._synthesis, torch.cat([unit.value for unit in units]), self._norm)
        return Recalled(which, latents, len(units), chance)

    def _chosen_bank(self, chance: float) -> tuple[From, Bank]:
        """The bank to call on; an empty one where there is nothing to give."""
        if not self._apart:
            both = Bank()
            both.units = [*self.perception.units, *self.thinking.units]
            return "both", both
        order: list[Which] = ["perception", "thinking"] if self.perceives(chance) else ["thinking", "perception"]
        filled = [which for which in order[: 2 if self._other else 1] if len(self.bank(which))]
        which = (filled or order)[0]
        return which, self.bank(which)

    def perceives(self, chance: float) -> bool:
        """Whether perception is called on, at a chance p: the threshold of inference."""
        return chance > 0.5

    def retrieve(self, bank: Bank, query: torch.Tensor) -> list[Unit]:
        """The units of a bank for a query, (width,): the k nearest."""
        return bank.nearest(query, self._k)

    def bank(self, which: Which) -> Bank:
        """A bank by name."""
        return self.perception if which == "perception" else self.thinking

    @property
    def vectors(self) -> int:
        """Vectors that both banks hold, keys included."""
        return self.perception.vectors + self.thinking.vectors

    @property
    def bytes(self) -> int:
        """Bytes that both banks hold."""
        return self.perception.bytes + self.thinking.bytes

    def _measure(self) -> None:
        self.most = max(self.most, self.vectors)
        self.most_bytes = max(self.most_bytes, self.bytes)
