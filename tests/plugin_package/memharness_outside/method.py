"""A method of the evidence track: the last things that were said."""

from __future__ import annotations

from collections.abc import Sequence

from memharness.config import Config, option
from memharness.method import Budget, Kit, Memory, Method, MethodCard
from memharness.types import Evidence, Item, Question, Readout


class LastConfig(Config):
    """Config of `outside-last`."""

    n: int = option(3, "how many of the last items to return", ge=1)


class Last(Method[LastConfig]):
    """Returns the last n items, newest first."""

    card = MethodCard("outside-last", "The last n items", paper="", version=1, track="evidence")
    config_class = LastConfig

    def open(self, context: str, kit: Kit) -> Memory:
        """A fresh memory."""
        return LastMemory(self.config.n)


class LastMemory(Memory):
    """Keeps item ids."""

    def __init__(self, n: int) -> None:
        """Return `n` items."""
        self.n = n
        self.ids: list[str] = []

    async def observe(self, items: Sequence[Item]) -> None:
        """Keep their ids."""
        self.ids += [item.id for item in items]

    async def recall(self, question: Question, budget: Budget) -> Readout:
        """The last n, newest first."""
        n = min(self.n, budget.items or self.n)
        return Readout(
            budget.fit([Evidence(item) for item in reversed(self.ids[-n:])], question), available=len(self.ids)
        )

    def stored(self) -> int:
        """Items held."""
        return len(self.ids)
