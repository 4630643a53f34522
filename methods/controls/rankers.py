"""Items ranked against the question: BM25, embeddings, and embeddings with each item's round completed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from memharness import retrieval
from memharness.config import Config, option
from memharness.method import Kit, Memory, Method, MethodCard
from memharness.methods.controls.store import PickConfig, Picks
from memharness.retrieval import searchable
from memharness.types import Evidence, Item, Question


class RankConfig(PickConfig):
    """Options of the rankers."""

    derived: bool = option(
        True, "Whether captions, OCR and other derived text of items and of the question's pictures are searched."
    )


class BM25Memory(Picks):
    """Recalls by BM25."""

    def __init__(self, config: RankConfig, kit: Kit) -> None:
        """Start empty."""
        super().__init__(config, kit)
        self._derived = config.derived
        self._index = retrieval.BM25([])

    async def ready(self) -> None:
        """Index everything observed so far: IDF and lengths depend on all of it."""
        self._index = retrieval.BM25([searchable(item, self._derived) for item in self.items])

    async def pick(self, question: Question, k: int) -> Sequence[Evidence]:
        """The `k` items of highest score; equal scores in the order observed."""
        rows, scores = self._index.top_k(searchable(question, self._derived), k)
        return [Evidence(self.items[row].id, score=float(score)) for row, score in zip(rows, scores, strict=True)]


class BM25(Method[RankConfig]):
    """Word matching."""

    card: ClassVar[MethodCard] = MethodCard(
        name="bm25",
        title="BM25",
        paper="Robertson and Zaragoza 2009, The Probabilistic Relevance Framework: BM25 and Beyond",
        version=1,
        track="evidence",
    )
    config_class: ClassVar[type[Config]] = RankConfig

    def open(self, context: str, kit: Kit) -> Memory:
        """A memory that recalls by BM25."""
        return BM25Memory(self.config, kit)


class DenseMemory(Picks):
    """Recalls by embeddings."""

    def __init__(self, config: RankConfig, kit: Kit) -> None:
        """Start empty."""
        super().__init__(config, kit)
        self._derived = config.derived
        self._vectors = np.empty((0, kit.embedder.width), dtype=np.float32)
        self._new: list[retrieval.Floats] = []

    async def observe(self, items: Sequence[Item]) -> None:
        """Keep the items and embed them, all in one call."""
        if items:
            self._new.append(await self.kit.embedder.embed([searchable(item, self._derived) for item in items]))
        await super().observe(items)

    async def ready(self) -> None:
        """Put the new vectors, one an item, under the old ones."""
        self._vectors = np.concatenate([self._vectors, *self._new])
        self._new = []

    async def pick(self, question: Question, k: int) -> Sequence[Evidence]:
        """The `k` items of largest inner product; equal ones in the order observed."""
        query = await self.kit.embedder.embed([searchable(question, self._derived)], "query")
        (rows,), (scores,) = retrieval.top_k(query, self._vectors, k)
        return [Evidence(self.items[row].id, score=float(score)) for row, score in zip(rows, scores, strict=True)]


class Dense(Method[RankConfig]):
    """Embedding similarity."""

    card: ClassVar[MethodCard] = MethodCard(
        name="dense",
        title="Dense retrieval",
        paper="GraphMemix, arXiv:2608.26983, Table 3 row a",
        version=1,
        track="evidence",
        embeds=True,
    )
    config_class: ClassVar[type[Config]] = RankConfig

    def open(self, context: str, kit: Kit) -> Memory:
        """A memory that recalls by embeddings."""
        return DenseMemory(self.config, kit)


class DenseRoundsMemory(DenseMemory):
    """Recalls by embeddings, whole rounds at a time."""

    def __init__(self, config: RankConfig, kit: Kit) -> None:
        """Start empty."""
        super().__init__(config, kit)
        self._round: dict[str, str] = {}
        self._mates: dict[str, list[str]] = defaultdict(list)

    async def ready(self) -> None:
        """Note which items share a round, in order."""
        await super().ready()
        self._round = {item.id: item.keys["round"] for item in self.items if "round" in item.keys}
        self._mates.clear()
        for item in sorted(self.items, key=lambda item: item.order):
            if item.id in self._round:
                self._mates[self._round[item.id]].append(item.id)

    async def pick(self, question: Question, k: int) -> Sequence[Evidence]:
        """Walk down the dense ranking; each item is followed by its round's others, which carry no score."""
        taken: dict[str, Evidence] = {}
        for evidence in await super().pick(question, k):  # all k of them end up taken, so no lower rank is reached
            taken.setdefault(evidence.item, evidence)
            if evidence.item in self._round:
                for mate in self._mates[self._round[evidence.item]]:
                    taken.setdefault(mate, Evidence(mate))
        return list(taken.values())[:k]


class DenseRounds(Method[RankConfig]):
    """Embedding similarity with rounds completed: what pairing alone wins, before any graph."""

    card: ClassVar[MethodCard] = MethodCard(
        name="dense-rounds",
        title="Dense retrieval, rounds completed",
        paper="",
        version=1,
        track="evidence",
        embeds=True,
        control=True,
        notes="Where items name no `round` it is `dense`.",
    )
    config_class: ClassVar[type[Config]] = RankConfig

    def open(self, context: str, kit: Kit) -> Memory:
        """A memory that recalls by embeddings, whole rounds at a time."""
        return DenseRoundsMemory(self.config, kit)
