"""Items picked without a look at the question: by chance, and the newest."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import ClassVar

from memharness.config import Config
from memharness.method import Kit, Memory, Method, MethodCard
from memharness.methods.controls.store import PickConfig, Picks
from memharness.types import Evidence, Question


class RandomMemory(Picks):
    """Recalls by chance."""

    async def pick(self, question: Question, k: int) -> Sequence[Evidence]:
        """`k` items drawn without replacement by a generator of the question's own, so that order of asking is moot."""
        return [Evidence(item.id) for item in self.kit.rng(question.id).sample(self.items, k)]


class Random(Method[PickConfig]):
    """Random items: what k pieces of evidence are worth without any retrieval."""

    card: ClassVar[MethodCard] = MethodCard(
        name="random", title="Random items", paper="", version=1, track="evidence", control=True
    )
    config_class: ClassVar[type[Config]] = PickConfig

    def open(self, context: str, kit: Kit) -> Memory:
        """A memory that recalls by chance."""
        return RandomMemory(self.config, kit)


class RecencyMemory(Picks):
    """Recalls the newest."""

    async def pick(self, question: Question, k: int) -> Sequence[Evidence]:
        """The last `k` items in the order of experience, newest first, so that a token budget keeps the newest."""
        return [Evidence(item.id) for item in heapq.nlargest(k, self.items, key=lambda item: item.order)]


class Recency(Method[PickConfig]):
    """The newest items: a sliding window over experience."""

    card: ClassVar[MethodCard] = MethodCard(
        name="recency", title="Newest items", paper="", version=1, track="evidence", control=True
    )
    config_class: ClassVar[type[Config]] = PickConfig

    def open(self, context: str, kit: Kit) -> Memory:
        """A memory that recalls the newest."""
        return RecencyMemory(self.config, kit)
