"""The relation store: query-independent edges between items by schema and by meaning, and the candidate pool."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from memharness.retrieval import top_k
from memharness.types import Image, Item, Video

EXPLICIT = 0.99  # similarity and reliability of a schema relation (official code)
EARTH = 6_371_000.0  # mean radius, metres


@dataclass(frozen=True, slots=True)
class Relation:
    """An undirected relation. `kinds` are the schema relations that hold; empty for one of meaning only."""

    left: str
    right: str
    kinds: tuple[str, ...]
    similarity: float


class RelationStore:
    """All relations of one context's items, made once when the memory is ready."""

    def __init__(
        self,
        items: Sequence[Item],
        vectors: NDArray[np.float32],
        *,
        semantic_k: int,
        seconds: float,
        metres: float,
    ) -> None:
        """Build the store.

        Args:
            items: in order.
            vectors: (n, d) f32, L2-normalised, one an item.
            semantic_k: mutual k-nearest-neighbour relations use this k; 0 makes none.
            seconds: most time between neighbouring media of one event; 0 makes no such relation.
            metres: most distance between them.
        """
        kinds: dict[tuple[str, str], list[str]] = {}
        for kind, pairs in (
            ("same_round", same_round(items)),
            ("consecutive_turn", consecutive_turn(items)),
            ("spatiotemporal_event", spatiotemporal_event(items, seconds, metres)),
        ):
            for left, right in pairs:
                kinds.setdefault((min(left, right), max(left, right)), []).append(kind)
        self.relations: dict[tuple[str, str], Relation] = {
            (left, right): Relation(left, right, tuple(found), EXPLICIT) for (left, right), found in kinds.items()
        }
        for left, right, similarity in mutual_neighbours([item.id for item in items], vectors, semantic_k):
            key = (min(left, right), max(left, right))
            self.relations.setdefault(key, Relation(*key, (), similarity))
        self._near: dict[str, list[tuple[float, str]]] = {}
        for relation in self.relations.values():
            self._near.setdefault(relation.left, []).append((relation.similarity, relation.right))
            self._near.setdefault(relation.right, []).append((relation.similarity, relation.left))

    def neighbours(self, item: str) -> Iterable[tuple[float, str]]:
        """(similarity, id) of everything related to an item."""
        return self._near.get(item, ())

    def explicit(self, ids: Sequence[str]) -> list[Relation]:
        """Schema relations among these items."""
        pool = set(ids)
        return [r for r in self.relations.values() if r.kinds and r.left in pool and r.right in pool]


def candidates(prior: Sequence[str], store: RelationStore, *, seeds: int, limit: int) -> list[str]:
    """The bounded candidate pool: the first `seeds` of the prior ranking, then their neighbours, one hop away.

    Neighbours come by (−similarity, rank of the seed, id) until the pool holds `limit`.
    """
    pool = list(prior[:seeds])
    inside = set(pool)
    best: dict[str, tuple[float, int, str]] = {}
    for rank, seed in enumerate(pool):
        for similarity, other in store.neighbours(seed):
            if other not in inside:
                best[other] = min(best.get(other, (math.inf, 0, "")), (-similarity, rank, other))
    return (pool + [key[2] for key in sorted(best.values())])[:limit]


def same_round(items: Sequence[Item]) -> Iterator[tuple[str, str]]:
    """All pairs of items that share a round."""
    rounds: dict[str, list[str]] = {}
    for item in items:
        if "round" in item.keys:
            rounds.setdefault(item.keys["round"], []).append(item.id)
    for members in rounds.values():
        yield from combinations(members, 2)


def consecutive_turn(items: Sequence[Item]) -> Iterator[tuple[str, str]]:
    """Neighbours by (order, id) within a session."""
    sessions: dict[str, list[Item]] = {}
    for item in items:
        if item.session is not None:
            sessions.setdefault(item.session, []).append(item)
    for members in sessions.values():
        ordered = sorted(members, key=lambda item: (item.order, item.id))
        yield from ((left.id, right.id) for left, right in pairwise(ordered))


def spatiotemporal_event(items: Sequence[Item], seconds: float, metres: float) -> Iterator[tuple[str, str]]:
    """Neighbouring media in time, at most `seconds` and `metres` apart; media without a position do not count."""
    if seconds <= 0 or metres <= 0:
        return
    media: list[tuple[datetime, Item]] = []
    for item in items:
        placed = item.place is not None and item.place.latitude is not None and item.place.longitude is not None
        when = moment(item.time)
        if when and placed and any(isinstance(part, Image | Video) for part in item.parts):
            media.append((when, item))
    media.sort(key=lambda pair: (pair[0], pair[1].id))
    for (before, left), (after, right) in pairwise(media):
        if (after - before).total_seconds() <= seconds and distance(left, right) <= metres:
            yield left.id, right.id


def moment(time: str | None) -> datetime | None:
    """An ISO time that names at least a day and an hour, in UTC if it names its zone; None otherwise."""
    if time is None or len(time) <= 10:
        return None
    try:
        when = datetime.fromisoformat(time)
        return when.astimezone(UTC).replace(tzinfo=None) if when.tzinfo else when
    except (ValueError, OverflowError):
        return None


def distance(left: Item, right: Item) -> float:
    """Metres between two items' places along the great circle (haversine)."""
    assert left.place is not None and right.place is not None
    lat1, lon1, lat2, lon2 = (
        math.radians(degrees or 0.0)
        for degrees in (left.place.latitude, left.place.longitude, right.place.latitude, right.place.longitude)
    )
    h = math.sin((lat2 - lat1) / 2) ** 2 + math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
    return 2 * EARTH * math.asin(min(1.0, math.sqrt(h)))


def mutual_neighbours(ids: Sequence[str], vectors: NDArray[np.float32], k: int) -> Iterator[tuple[str, str, float]]:
    """Pairs that are among each other's k nearest, with their cosine similarity."""
    if k < 1 or len(ids) < 2:
        return
    near, scores = top_k(vectors, vectors, min(k + 1, len(ids)))
    ranked: list[Mapping[int, float]] = []
    for row in range(len(ids)):
        others = [
            (int(other), float(score)) for other, score in zip(near[row], scores[row], strict=True) if other != row
        ]
        ranked.append(dict(others[:k]))
    for left, mine in enumerate(ranked):
        for right, similarity in mine.items():
            if left < right and left in ranked[right]:
                yield ids[left], ids[right], similarity
