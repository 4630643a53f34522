"""Multi-view retrieval: several views of each item and of the question, and the source score that comes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memharness.method import MeteredEmbedder
from memharness.retrieval import BM25, searchable
from memharness.types import Image, Item, Part, Question, Text

Floats = NDArray[np.float32]


def item_views(item: Item, *, several: bool, pixels: bool) -> list[tuple[Part, ...]]:
    """Embedding units of an item, the canonical one first: everything it says; then its captions, and its pictures.

    With an embedder that sees pictures, the canonical unit of an item with pictures is fused: text and pictures.
    """
    whole = searchable(item)
    pictures = tuple(part for part in item.parts if isinstance(part, Image) and not part.missing) if pixels else ()
    views: list[tuple[Part, ...]] = [(Text(whole), *pictures)]
    if several:
        captions = item.derived_text("caption") or item.derived_text("short_caption", "summary")
        if captions and captions != whole:
            views.append((Text(captions),))
        views += [(picture,) for picture in pictures]
    return views


def question_views(question: Question, *, several: bool, pixels: bool) -> list[tuple[Part, ...]]:
    """Query units of a question, the canonical one first: its words with its pictures' captions; then each alone."""
    whole = searchable(question)
    pictures = tuple(part for part in question.parts if isinstance(part, Image) and not part.missing) if pixels else ()
    views: list[tuple[Part, ...]] = [(Text(whole), *pictures)]
    if several:
        captions = question.derived_text("caption")
        if captions:
            views += [(Text(question.text()),), (Text(captions),)]
        views += [(picture,) for picture in pictures]
    return views


@dataclass(frozen=True)
class Prior:
    """What retrieval says of every item, in the items' order.

    Attributes:
        source: (n,) source scores: the best cosine over views; what the utility's calibration takes.
        lexical: (n,) BM25 scores scaled to [0, 1] by the best item of this question.
        rank: (n,) what the prior ranking sorts by.
    """

    source: Floats
    lexical: Floats
    rank: Floats


class Views:
    """The indexed views of one context."""

    def __init__(self, items: Sequence[Item], embedder: MeteredEmbedder, *, several: bool) -> None:
        """Bind; `build` embeds."""
        self._items = items
        self._embedder = embedder
        self._several = several
        self._pixels = "image" in embedder.card.capabilities

    async def build(self) -> None:
        """Embed every view of every item, once."""
        units = [(row, view) for row, item in enumerate(self._items) for view in self._views(item)]
        vectors = await self._embedder.embed([view for _, view in units], "item")
        self._owner = np.array([row for row, _ in units])
        # In float64, rounded once at the end: equal vectors then score the same wherever they stand in the matrix.
        self._vectors = vectors.astype(np.float64)
        first = np.flatnonzero(np.r_[True, self._owner[1:] != self._owner[:-1]]) if len(units) else np.array([], int)
        self._first = first
        self.canonical: Floats = vectors[first]
        self._lexicon = BM25([searchable(item) for item in self._items]) if self._several else None

    def _views(self, item: Item) -> list[tuple[Part, ...]]:
        return item_views(item, several=self._several, pixels=self._pixels)

    async def prior(self, question: Question) -> Prior:
        """Score every item for a question."""
        units = question_views(question, several=self._several, pixels=self._pixels)
        queries = await self._embedder.embed(units, "query")
        best = (queries.astype(np.float64) @ self._vectors.T).max(axis=0)
        source = np.maximum.reduceat(best, self._first).astype(np.float32)
        if self._lexicon is None:
            return Prior(source, np.zeros_like(source), source)
        lexical = self._lexicon.scores(searchable(question))
        lexical = (lexical / max(float(lexical.max()), 1e-9)).astype(np.float32)
        # BM25 on the cosine's scale: the best match by words counts as much as the best match by meaning.
        rank = (source + lexical * max(float(source.max()), 0.0)) / 2
        return Prior(source, lexical, rank.astype(np.float32))
