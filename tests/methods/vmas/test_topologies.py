"""Every topology, for every size and seed: a DAG whose nodes all reach the one that decides."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memharness.methods.vmas.topologies import (
    STATIC,
    Graph,
    centralized,
    complete,
    layered,
    linear,
    random_dag,
    repaired,
    reporting,
    static,
)

SIZES = st.integers(1, 24)
SEEDS = st.integers(0, 2**32)


def held(graph: Graph, n: int) -> None:
    """Acyclic, connected and in order, checked by other means than the graph's own."""
    assert graph.n == n
    assert list(graph.edges) == sorted(set(graph.edges))
    place = {node: at for at, node in enumerate(graph.order)}
    assert sorted(place) == list(range(n))
    assert all(place[u] < place[v] for u, v in graph.edges)
    reached, fringe = {n - 1}, [n - 1]
    while fringe:
        node = fringe.pop()
        more = {u for u, v in graph.edges if v == node} - reached
        reached |= more
        fringe += more
    assert reached == set(range(n))
    assert graph.order[-1] == n - 1
    for depth, generation in enumerate(graph.generations):
        for node in generation:
            before = [graph.depth[u] for u in graph.predecessors[node]]
            assert max(before, default=-1) == depth - 1


@settings(deadline=None)
@given(st.sampled_from(STATIC), SIZES, SEEDS, st.none() | st.integers(1, 9), st.sampled_from(["last", "both"]))
def test_every_static_topology_is_a_dag_that_ends_in_its_last_node(
    name: str, n: int, seed: int, layers: int | None, hub: str
) -> None:
    graph = static(name, n, random.Random(seed), layers=layers, hub=hub)  # type: ignore[arg-type]
    held(graph, n)
    again = static(name, n, random.Random(seed), layers=layers, hub=hub)  # type: ignore[arg-type]
    assert graph == again


@settings(deadline=None)
@given(SIZES, st.data())
def test_repair_connects_any_low_to_high_edges(n: int, data: st.DataObject) -> None:
    pairs = [(u, v) for u in range(n) for v in range(u + 1, n)]
    edges = data.draw(st.sets(st.sampled_from(pairs))) if pairs else set()
    for rng in (None, random.Random(data.draw(SEEDS))):
        graph = repaired(n, edges, rng)
        held(graph, n)
        added = set(graph.edges) - edges
        assert edges <= set(graph.edges)
        assert {u for u, _ in added}.isdisjoint({u for u, _ in edges})  # only who was heard by nobody gets a hearer


@settings(deadline=None)
@given(st.integers(2, 12), SEEDS)
def test_random_draws_at_least_a_tree_of_edges(n: int, seed: int) -> None:
    graph = random_dag(n, random.Random(seed))
    assert n - 1 <= len(graph.edges) <= n * (n - 1) // 2


def test_random_graphs_differ_by_seed() -> None:
    assert len({random_dag(6, random.Random(seed)) for seed in range(20)}) > 10


def test_shapes() -> None:
    assert linear(4).edges == ((0, 1), (1, 2), (2, 3))
    assert complete(3).edges == ((0, 1), (0, 2), (1, 2))
    assert centralized(4).edges == ((0, 3), (1, 3), (2, 3))
    assert centralized(4, "both").edges == ((0, 1), (0, 2), (1, 3), (2, 3))
    assert centralized(2, "both") == linear(2)
    # MacNet: int(log2 4) = 2 layers of the four workers, then who decides.
    assert layered(5).edges == ((0, 2), (0, 3), (1, 2), (1, 3), (2, 4), (3, 4))
    # 7 workers in 2 layers: the one left over is in the first.
    assert layered(8).predecessors[7] == (4, 5, 6)
    assert layered(8).predecessors[4] == (0, 1, 2, 3)
    assert layered(5, 4) == linear(5)
    assert layered(5, 1) == centralized(5)
    assert layered(5, 99) == linear(5)
    assert all(static(name, 1, random.Random(0)) == Graph(1, ()) for name in STATIC)


def test_reporting_lets_workers_speak_in_any_acyclic_order() -> None:
    graph = reporting(4, [(2, 0), (0, 1)])
    held(graph, 4)
    assert graph.order == [2, 0, 1, 3]
    assert graph.predecessors[3] == (0, 1, 2)


@pytest.mark.parametrize(
    ("n", "edges", "words"),
    [
        (0, (), "at least one"),
        (2, ((0, 2),), "outside 2"),
        (3, ((0, 1), (1, 0), (1, 2)), "cycle"),
        (2, ((0, 0), (0, 1)), "cycle"),
        (3, ((0, 2),), "node 1 does not reach"),
        (3, ((0, 1), (2, 1)), "node 1 does not reach"),
        (3, ((0, 1), (1, 2), (2, 2)), "cycle"),
    ],
)
def test_what_is_no_team_is_refused(n: int, edges: tuple[tuple[int, int], ...], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Graph(n, edges)


def test_an_unknown_topology_is_refused() -> None:
    with pytest.raises(ValueError, match="'ring' is not one of linear"):
        static("ring", 3, random.Random(0))
