from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from memharness.methods.graphmemix.relations import (
    EXPLICIT,
    RelationStore,
    candidates,
    consecutive_turn,
    distance,
    moment,
    mutual_neighbours,
    same_round,
    spatiotemporal_event,
)
from memharness.types import Image, Item, Place, Text

from .kit import item


class Near(RelationStore):
    """A store of given neighbours."""

    def __init__(self, near: dict[str, list[tuple[float, str]]]) -> None:
        self.relations = {}
        self._near = near


def photo(number: int, time: str | None, at: tuple[float, float] | None, **more: Any) -> Item:
    place = Place("", *at) if at else None
    return Item(f"i{number}", "c", number, (Image(None),), time=time, place=place, **more)


def store(items: list[Item], vectors: NDArray[np.float32] | None = None, **more: Any) -> RelationStore:
    options = {"semantic_k": 8, "seconds": 0.0, "metres": 0.0} | more
    return RelationStore(items, np.eye(len(items), dtype=np.float32) if vectors is None else vectors, **options)


# ------------------------------------------------------------------------------------------------------------ pool


def test_the_pool_of_the_official_golden_case() -> None:
    near = Near({"s1": [(0.8, "n2"), (0.9, "n1")], "s2": [(0.9, "n3")]})
    assert candidates(["s1", "s2", "tail"], near, seeds=2, limit=4) == ["s1", "s2", "n1", "n3"]
    assert candidates(["s1", "s2", "tail"], near, seeds=2, limit=9) == ["s1", "s2", "n1", "n3", "n2"]
    assert candidates(["s1", "s2", "tail"], near, seeds=2, limit=1) == ["s1"]


def test_one_hop_only_and_a_seed_is_never_its_neighbours_neighbour() -> None:
    near = Near({"a": [(0.9, "b")], "b": [(0.9, "a"), (0.9, "far")]})
    assert candidates(["a"], near, seeds=24, limit=48) == ["a", "b"]
    assert candidates([], near, seeds=24, limit=48) == []


def plain_candidates(prior: list[str], near: dict[str, list[tuple[float, str]]], seeds: int, limit: int) -> list[str]:
    """The sentence of the specification, as slowly as it reads."""
    pool = prior[:seeds]
    rows = [(-s, prior.index(seed), n) for seed in pool for s, n in near.get(seed, []) if n not in pool]
    for _, _, neighbour in sorted(rows):
        if neighbour not in pool:
            pool.append(neighbour)
    return pool[:limit]


NAMES = [f"n{number}" for number in range(12)]
LINK = st.tuples(st.sampled_from([0.5, 0.7, 0.9, EXPLICIT]), st.sampled_from(NAMES))


@given(
    st.permutations(NAMES),
    st.dictionaries(st.sampled_from(NAMES), st.lists(LINK, max_size=6)),
    st.integers(1, 12),
    st.integers(1, 14),
)
def test_the_pool_is_that_of_a_plain_transcription(
    prior: list[str], near: dict[str, list[tuple[float, str]]], seeds: int, limit: int
) -> None:
    found = candidates(prior, Near(near), seeds=seeds, limit=limit)
    assert found == plain_candidates(prior, near, seeds, limit)
    assert len(found) == len(set(found)) <= limit


# ----------------------------------------------------------------------------------------------------------- schema


def test_same_round_joins_all_pairs_of_a_round_and_no_others() -> None:
    rounds = ["1", "1", "2", "1", None, None]
    items = [item(n, "x", keys={"round": name} if name else {}) for n, name in enumerate(rounds)]
    assert set(same_round(items)) == {("i0", "i1"), ("i0", "i3"), ("i1", "i3")}


def test_consecutive_turn_joins_neighbours_by_order_within_a_session() -> None:
    sessions = ["s", "t", "s", None, "s", None, "t"]
    items = [item(n, "x", session=name) for n, name in enumerate(sessions)]
    assert set(consecutive_turn(items[::-1])) == {("i0", "i2"), ("i2", "i4"), ("i1", "i6")}


def test_a_pair_with_several_relations_is_one_relation_that_names_them() -> None:
    items = [item(n, "x", session="s", keys={"round": "1"}) for n in range(3)]
    relations = {(r.left, r.right): r for r in store(items).relations.values()}
    assert relations["i0", "i1"].kinds == ("same_round", "consecutive_turn")
    assert relations["i0", "i2"].kinds == ("same_round",)
    assert all(r.similarity == EXPLICIT for r in relations.values() if r.kinds)


def test_a_schema_relation_hides_one_of_meaning_on_the_same_pair() -> None:
    items = [item(n, "x", keys={"round": str(n // 2)}) for n in range(4)]
    same = np.ones((4, 1), dtype=np.float32)
    found = store(items, same)
    assert sorted(found.neighbours("i0")) == [(0.99, "i1"), (1.0, "i2"), (1.0, "i3")]
    assert [(r.left, r.right) for r in found.explicit(["i0", "i1", "i2"])] == [("i0", "i1")]
    assert found.explicit(["i0", "i2"]) == [] and list(found.neighbours("nobody")) == []


# ------------------------------------------------------------------------------------------------------------ events


def test_the_great_circle_between_two_known_cities() -> None:
    # Paris 48.8566 N 2.3522 E, New York 40.7128 N 74.0060 W: 5,837 km on a sphere of 6,371 km
    paris, york = photo(0, None, (48.8566, 2.3522)), photo(1, None, (40.7128, -74.0060))
    assert distance(paris, york) == distance(york, paris) == pytest.approx(5_837_240, rel=1e-4)
    assert distance(paris, paris) == 0
    poles = photo(0, None, (90, 0)), photo(1, None, (-90, 77))
    assert distance(*poles) == pytest.approx(math.pi * 6_371_000)
    across = photo(0, None, (0, 179.999)), photo(1, None, (0, -179.999))
    assert distance(*across) == pytest.approx(222.39, abs=0.01)


HERE, NEAR, FAR = (53.8, -1.5), (53.803, -1.5), (53.9, -1.5)  # NEAR is 334 m away, FAR 11 km


@pytest.mark.parametrize(
    ("time", "at", "joined"),
    [
        ("2024-01-01T10:30:00", NEAR, True),
        ("2024-01-01T10:30:01", NEAR, False),
        ("2024-01-01T10:05:00", FAR, False),
        ("2024-01-01T10:05:00", None, False),
        ("2024-01-01", NEAR, False),
        ("soon", NEAR, False),
        (None, NEAR, False),
    ],
)
def test_an_event_is_half_an_hour_and_half_a_kilometre(
    time: str | None, at: tuple[float, float] | None, joined: bool
) -> None:
    items = [photo(0, "2024-01-01T10:00:00", HERE), photo(1, time, at)]
    assert list(spatiotemporal_event(items, 1800, 500)) == ([("i0", "i1")] if joined else [])


def test_events_join_neighbours_in_time_only_and_media_only() -> None:
    times = ["2024-01-01T10:10:00", "2024-01-01T10:00:00", "2024-01-01T10:05:00"]
    items = [photo(n, time, HERE) for n, time in enumerate(times)]
    note = Item("note", "c", 3, (Text("x"),), time="2024-01-01T10:04:00", place=Place("", *HERE))
    assert list(spatiotemporal_event([*items, note], 1800, 500)) == [("i1", "i2"), ("i2", "i0")]


def test_no_threshold_no_event() -> None:
    items = [photo(n, "2024-01-01T10:00:00", HERE) for n in range(2)]
    assert list(spatiotemporal_event(items, 1, 1)) == [("i0", "i1")]
    assert not list(spatiotemporal_event(items, 0, 1)) and not list(spatiotemporal_event(items, 1, 0))


def test_moments_in_different_zones_are_one_instant() -> None:
    assert moment("2024-01-01T10:00:00+02:00") == moment("2024-01-01T08:00:00Z") == moment("2024-01-01T08:00:00")
    assert moment("0001-01-01T00:00:00+05:00") is None
    assert moment("2024-01-01") is None and moment("") is None


# ----------------------------------------------------------------------------------------------------------- meaning


def plain_mutual(vectors: NDArray[np.float32], k: int) -> set[tuple[int, int]]:
    n = len(vectors)
    scores = vectors.astype(np.float64) @ vectors.T.astype(np.float64)
    near = [set(sorted((j for j in range(n) if j != i), key=lambda j: (-scores[i, j], j))[:k]) for i in range(n)]
    return {(i, j) for i, j in combinations(range(n), 2) if i in near[j] and j in near[i]}


@given(st.integers(0, 2**32 - 1), st.integers(0, 25), st.integers(0, 30), st.booleans())
def test_mutual_neighbours_are_those_of_brute_force(seed: int, n: int, k: int, repeats: bool) -> None:
    # Small whole numbers: inner products are exact, so ties are ties whatever the order of sums.
    rng = np.random.default_rng(seed)
    vectors = rng.integers(-1 if repeats else -9, 2 if repeats else 10, (n, 3)).astype(np.float32)
    found = list(mutual_neighbours([str(row) for row in range(n)], vectors, k))
    assert {(int(left), int(right)) for left, right, _ in found} == plain_mutual(vectors, k)
    assert len(found) == len({pair[:2] for pair in found})
    for left, right, similarity in found:
        assert similarity == vectors[int(left)] @ vectors[int(right)]


def test_no_k_no_relation_of_meaning() -> None:
    items = [item(n, "x") for n in range(5)]
    assert not store(items, np.ones((5, 1), dtype=np.float32), semantic_k=0).relations
    assert not store([]).relations and not store(items[:1]).relations
