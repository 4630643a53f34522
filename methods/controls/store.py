"""What the controls share: a store of items, and memories that pick k of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from memharness.config import Config, option
from memharness.method import Budget, Kit, Memory
from memharness.types import Evidence, Item, Question, Readout


class PickConfig(Config):
    """Options of every control that picks k items."""

    items: int | None = option(
        None, "How many items to pick; unset, as many as the budget names, or else `--items`.", unit="items", ge=1
    )


class Store(Memory):
    """Keeps the items it observed, in that order."""

    def __init__(self) -> None:
        """Start empty."""
        self.items: list[Item] = []

    async def observe(self, items: Sequence[Item]) -> None:
        """Keep the items."""
        self.items.extend(items)

    def stored(self) -> int:
        """How many items are kept."""
        return len(self.items)

    def readout(self, evidence: Sequence[Evidence], question: Question, budget: Budget) -> Readout:
        """The longest beginning of `evidence` that holds the budget, and how many items there are."""
        return Readout(budget.fit(evidence, question), available=len(self.items))


class Picks(Store):
    """Recalls k items that `pick` chooses, best first."""

    def __init__(self, config: PickConfig, kit: Kit) -> None:
        """Start empty; `config` and `kit` say how many to pick where the budget does not."""
        super().__init__()
        self.kit = kit
        self._wanted = config.items

    @abstractmethod
    async def pick(self, question: Question, k: int) -> Sequence[Evidence]:
        """Exactly `k` items, best first; 1 ≤ k ≤ the number stored."""

    async def recall(self, question: Question, budget: Budget) -> Readout:
        """The k best items, or all there are if fewer, as far as the budget goes."""
        named = self.kit.items if budget.items is None else budget.items
        k = min(named if self._wanted is None else self._wanted, len(self.items))
        return self.readout(await self.pick(question, k) if k else (), question, budget)
