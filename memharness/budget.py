"""Budgets: how much evidence a readout may hold, counted by the harness as it will be shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memharness.prompts import Renderer
from memharness.reader import Counter, count
from memharness.types import BudgetError, Evidence, Part, Question, Readout, UserError


class Nominal28:
    """One token per 28 × 28 pixels, by area rounded up, and text by another counter (MemOCR's nominal tokens)."""

    def __init__(self, text: Counter) -> None:
        """Count text as `text` does."""
        self.name = f"nominal28+{text.name}"
        self._text = text

    def text(self, text: str) -> int:
        """Tokens of a text by the wrapped counter."""
        return self._text.text(text)

    def image(self, width: int, height: int) -> int:
        """ceil(width · height / 784)."""
        return -(-width * height // 784)


def counters(names: Sequence[str], reader: Counter) -> tuple[Counter, ...]:
    """Counters by name: `reader` is the answer reader's own, `nominal28` is by area.

    Raises:
        UserError: for another name.
    """
    known = {"reader": reader, "nominal28": Nominal28(reader)}
    for name in names:
        if name not in known:
            raise UserError(f"--counter {name}: there are {', '.join(known)}")
    return tuple(known[name] for name in names)


@dataclass(frozen=True)
class RunBudget:
    """The budget of a run for one context. See `memharness.method.Budget`."""

    items: int | None
    tokens: int | None
    counters: Sequence[Counter]
    renderer: Renderer

    def cost(self, evidence: Sequence[Evidence], question: Question) -> Mapping[str, int]:
        """Tokens by counter name of this evidence as the harness would show it."""
        return self.cost_of(self.renderer.evidence(evidence))

    def cost_of(self, parts: Sequence[Part]) -> Mapping[str, int]:
        """Tokens by counter name of these parts."""
        return {counter.name: count(counter, parts) for counter in self.counters}

    def holds(self, parts: Sequence[Part]) -> bool:
        """Whether these parts hold the token budget under every counter."""
        return self.tokens is None or all(count(counter, parts) <= self.tokens for counter in self.counters)

    def fit(self, evidence: Sequence[Evidence], question: Question) -> tuple[Evidence, ...]:
        """The longest beginning of `evidence` that holds both limits (items counted once however often pointed to)."""
        kept = tuple(evidence)
        if self.items is not None:
            seen: set[str] = set()
            for index, pointer in enumerate(kept):
                seen.add(pointer.item)
                if len(seen) > self.items:
                    kept = kept[:index]
                    break
        if self.tokens is None or self.holds(self.renderer.evidence(kept)):
            return kept
        low, high = (
            0,
            len(kept) - 1,
        )  # cost grows with length up to tokenizer seams, so bisect, then step down to be sure
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.holds(self.renderer.evidence(kept[:middle])) else (low, middle - 1)
        while low and not self.holds(self.renderer.evidence(kept[:low])):
            low -= 1
        return kept[:low]

    def check(self, readout: Readout, shown: Sequence[Part]) -> Mapping[str, int]:
        """Cost of what will be shown.

        Raises:
            BudgetError: if it holds more items or tokens than allowed.
        """
        distinct = len({pointer.item for pointer in readout.evidence})
        if self.items is not None and distinct > self.items:
            raise BudgetError(f"the readout holds {distinct} items; the budget is {self.items}")
        cost = self.cost_of(shown)
        for name, tokens in cost.items():
            if self.tokens is not None and tokens > self.tokens:
                raise BudgetError(f"the evidence costs {tokens} tokens by {name}; the budget is {self.tokens}")
        return cost
