"""Budgets: how much evidence a readout may hold, counted by the harness as it will be shown."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memharness.image_tokens import NAMED
from memharness.prompts import Renderer
from memharness.reader import Counter, count
from memharness.types import BudgetError, Evidence, Part, Question, Readout, UserError, did_you_mean


class PictureRule:
    """A counter that counts pictures by a rule of its own and text as another counter does."""

    def __init__(self, rule: str, text: Counter) -> None:
        """Take a rule by its name in `memharness.image_tokens.NAMED`, and whose text counts."""
        self.name = f"{rule}+{text.name}"
        self._text = text
        self._image = NAMED[rule]

    def text(self, text: str) -> int:
        """Tokens of a text by the wrapped counter."""
        return self._text.text(text)

    def image(self, width: int, height: int) -> int:
        """Tokens of a picture of this size in pixels by the rule.

        Raises:
            ReaderError: the rule's model does not take such a shape.
        """
        return self._image(width, height)


class Remembering:
    """A counter that remembers the last texts it counted, for counters that differ in pictures only."""

    def __init__(self, counter: Counter) -> None:
        """Wrap a counter; its name stays."""
        self.name = counter.name
        self.text = functools.lru_cache(8)(counter.text)
        self.image = counter.image


def counters(names: Sequence[str], reader: Counter) -> tuple[Counter, ...]:
    """Counters by name: `reader` is the answer reader's own; the others count pictures by a named rule.

    Raises:
        UserError: for another name.
    """
    for name in names:
        if name != "reader" and name not in NAMED:
            raise UserError(f"--counter {name}: there are reader, {', '.join(NAMED)}{did_you_mean(name, NAMED)}")
    return tuple(reader if name == "reader" else PictureRule(name, reader) for name in names)


@dataclass(frozen=True)
class RunBudget:
    """The budget of a run for one context. See `memharness.method.Budget`.

    Attributes:
        noted: counters whose cost is recorded beside that of the counters that must hold.
    """

    items: int | None
    tokens: int | None
    counters: Sequence[Counter]
    renderer: Renderer
    noted: Sequence[Counter] = ()

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
        """Cost of what will be shown, by the budget's counters and the noted ones.

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
        return {**{counter.name: count(counter, shown) for counter in self.noted}, **cost}
