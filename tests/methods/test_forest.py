"""The evidence forest against a plain transcription of its specification, and against exact optima."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memharness.methods.graphmemix.forest import Edge, Forest, benefit, prune, solve, solve_exact

GOLDEN = {"a": 0.9, "b": 0.8, "c": 0.1}


# The specification, written down as it reads, in exact rational arithmetic so that ties are ties.


def plain_forest(nodes: set[str], utilities: dict[str, float], edges: Sequence[Edge], root: float, weight: float):
    """Return (J, edges) of the maximum-weight forest on `nodes`."""
    best: dict[tuple[str, str], float] = {}
    for edge in edges:
        left, right = sorted((edge.left, edge.right))
        if left != right and left in nodes and right in nodes:
            best[left, right] = max(best.get((left, right), 0.0), edge.reliability)
    gains = sorted((-benefit(r, root, weight), *pair) for pair, r in best.items())
    tree = {node: node for node in nodes}
    value = sum((Fraction(utilities[n]) - Fraction(root) for n in nodes), Fraction(0))
    used = []
    for loss, left, right in gains:
        if loss < 0 and tree[left] != tree[right]:
            old = tree[right]
            tree = {node: tree[left] if name == old else name for node, name in tree.items()}
            value -= Fraction(loss)
            used.append((left, right))
    return value, used


def plain_order(nodes: set[str], utilities: dict[str, float], used: list[tuple[str, str]]) -> list[str]:
    """Components by their best item, breadth first from it, neighbours by (-u, position in the pool)."""
    place = {name: at for at, name in enumerate(utilities)}

    def key(name: str) -> tuple[float, int]:
        return -utilities[name], place[name]

    ordered: list[str] = []
    for root in sorted(nodes, key=key):
        if root in ordered:
            continue
        queue = [root]
        while queue:
            node = queue.pop(0)
            ordered.append(node)
            others = {a if b == node else b for a, b in used if node in (a, b)}
            queue += sorted(others - set(ordered) - set(queue), key=key)
    return ordered


def plain_solve(utilities: dict[str, float], edges: Sequence[Edge], size: int, root: float = 0.2, weight: float = 0.1):
    """Return (items in reading order, edges used, J, J after each step) by trying every swap at every step."""
    place = {name: at for at, name in enumerate(utilities)}
    chosen = set(sorted(utilities, key=lambda name: (-utilities[name], place[name]))[:size])
    climb = [plain_forest(chosen, utilities, edges, root, weight)[0]]
    while True:
        swaps = []
        for removed, added in itertools.product(chosen, set(utilities) - chosen):
            value, _ = plain_forest(chosen - {removed} | {added}, utilities, edges, root, weight)
            if value > climb[-1] + Fraction(1e-12):
                swaps.append((value, removed, added))
        if not swaps:
            break
        value, removed, added = max(swaps)
        chosen = chosen - {removed} | {added}
        climb.append(value)
    value, used = plain_forest(chosen, utilities, edges, root, weight)
    return plain_order(chosen, utilities, used), used, value, climb


def plain_prune(items: Sequence[str], utilities: dict[str, float], edges: Sequence[Edge], root: float = 0.12):
    """Return (items kept, J) by trying all non-empty subsets."""
    choices = []
    for count in range(1, len(items) + 1):
        for ranks in itertools.combinations(range(len(items)), count):
            value, _ = plain_forest({items[r] for r in ranks}, utilities, edges, root, 0.1)
            choices.append((-value, count, ranks))
    value, _, ranks = min(choices)
    return [items[r] for r in ranks], -value


def same(found: Forest, items: Sequence[str], value: Fraction) -> None:
    assert list(found.items) == list(items)
    assert found.objective == pytest.approx(float(value), abs=1e-13)


# Utilities on a grid of 1/64 and few reliabilities: ties everywhere, and exact in binary.

coarse = st.integers(0, 64).map(lambda n: n / 64)
fine = st.integers(0, 2**40).map(lambda n: n / 2**40)
reliabilities = st.sampled_from([0.99, 0.792, 0.594, 0.3, 0.15, 0.1])


@st.composite
def instances(draw: st.DrawFn, most: int = 12, utility: st.SearchStrategy[float] = coarse):
    names = draw(st.permutations([f"m{n}" for n in range(draw(st.integers(1, most)))]))
    utilities = {name: draw(utility) for name in names}
    ends = st.sampled_from([*names, "outside"])
    edges = draw(st.lists(st.builds(Edge, ends, ends, reliabilities), max_size=2 * len(names)))
    return utilities, edges


@settings(max_examples=300, deadline=None)
@given(instances() | instances(utility=fine), st.integers(1, 6))
def test_solve_is_the_specification(instance, size):
    utilities, edges = instance
    items, used, value, climb = plain_solve(utilities, edges, size)
    found = solve(utilities, edges, size)
    same(found, items, value)
    assert {tuple(sorted((e.left, e.right))) for e in found.edges} == set(used)
    assert found.components == len(items) - len(used)
    assert found.climb == pytest.approx([float(v) for v in climb], abs=1e-13)


@settings(max_examples=200, deadline=None)
@given(instances(most=8) | instances(most=8, utility=fine))
def test_prune_is_exact(instance):
    utilities, edges = instance
    items = solve(utilities, edges, 8).items
    kept, value = plain_prune(items, utilities, edges)
    same(prune(items, utilities, edges), kept, value)


@settings(max_examples=40, deadline=None)
@given(instances(most=10), st.integers(1, 5))
def test_the_integer_program_is_never_beaten(instance, size):
    utilities, edges = instance
    exact = solve_exact(utilities, edges, size)
    assert len(exact.items) == min(size, len(utilities))
    assert exact.objective >= solve(utilities, edges, size).objective - 1e-9
    best = max(
        plain_forest(set(nodes), utilities, edges, 0.2, 0.1)[0]
        for nodes in itertools.combinations(utilities, len(exact.items))
    )
    assert exact.objective == pytest.approx(float(best), abs=1e-7)


def test_a_cheap_edge_beats_a_better_item_alone():
    found = solve(GOLDEN, [Edge("a", "c", 0.99)], 2, root_cost=1.0)
    assert (found.items, len(found.edges), found.components) == (("a", "c"), 1, 1)
    assert found.objective == pytest.approx(0.9 + 0.1 - 1 + 0.1 * math.log(0.99))
    assert found.objective == pytest.approx(-0.0010, abs=1e-4)
    assert solve_exact(GOLDEN, [Edge("a", "c", 0.99)], 2, root_cost=1.0).items == ("a", "c")


def test_without_edges_the_best_items_stand_alone():
    found = solve(GOLDEN, [], 2, root_cost=1.0)
    assert (found.items, found.edges, found.components) == (("a", "b"), (), 2)
    assert found.objective == pytest.approx(-0.3)


@pytest.mark.parametrize(("grade", "gain"), [(5, 0.119), (4, 0.097), (3, 0.068), (2, 0.027)])
def test_what_a_graded_edge_is_worth_when_pruning(grade: int, gain: float):
    assert benefit(0.99 * grade / 5, root_cost=0.12) == pytest.approx(gain, abs=5e-4)


def test_an_item_alone_survives_pruning_above_the_root_cost_only():
    assert prune(["a", "b", "c"], {"a": 0.5, "b": 0.12, "c": 0.13}, []).items == ("a", "c")


def test_pruning_keeps_the_earliest_of_equals_when_nothing_is_worth_its_root():
    assert prune(["b", "a", "c"], {"a": 0.1, "b": 0.1, "c": 0.1}, []).items == ("b",)


def test_pruning_keeps_the_order_it_was_given():
    utilities = {"a": 0.2, "b": 0.9, "c": 0.5}
    assert prune(["c", "a", "b"], utilities, [Edge("a", "b", 0.99)]).items == ("c", "a", "b")


def test_reading_order_is_breadth_first_from_each_component_s_best_item():
    utilities = {"root": 0.9, "far": 0.85, "near": 0.5, "twin": 0.5, "alone": 0.88}
    edges = [Edge("near", "far", 0.9), Edge("root", "near", 0.99), Edge("twin", "root", 0.98)]
    found = solve(utilities, edges, 5)
    assert found.items == ("root", "near", "twin", "far", "alone")
    assert found.edges == (edges[1], edges[2], edges[0])
    assert found.components == 2


def test_equal_items_come_in_pool_order_and_equal_swaps_go_to_the_larger_id():
    assert solve({"z": 0.5, "a": 0.5, "m": 0.5}, [], 2).items == ("z", "a")
    # Both x and y would attach to a with the same gain, in place of b or c.
    edges = [Edge("a", "x", 0.99), Edge("a", "y", 0.99)]
    found = solve({"a": 0.9, "b": 0.3, "c": 0.3, "x": 0.25, "y": 0.25}, edges, 2)
    assert found.items == ("a", "y")


def test_traces_record_every_accepted_swap_and_edge():
    utilities = {"a": 0.9, "b": 0.8, "c": 0.3, "d": 0.25, "e": 0.24}
    found = solve(utilities, [Edge("a", "d", 0.99), Edge("b", "e", 0.9)], 4)
    assert list(found.climb) == sorted(found.climb)
    assert len(found.climb) == 2
    assert found.climb[-1] == found.objective
    assert found.gains == pytest.approx(list(itertools.accumulate(benefit(e.reliability) for e in found.edges)))


def test_the_most_reliable_of_several_edges_counts_and_strangers_are_ignored():
    edges = [Edge("c", "a", 0.2), Edge("a", "c", 0.99), Edge("a", "nobody", 1.0), Edge("a", "a", 1.0)]
    found = solve(GOLDEN, edges, 2, root_cost=1.0)
    assert found.edges == (edges[1],)


def test_a_budget_larger_than_the_pool_takes_everything():
    assert set(solve(GOLDEN, [], 10).items) == set(GOLDEN)


def test_an_empty_pool_gives_an_empty_forest():
    found = solve({}, [], 3)
    assert (found.items, found.components, found.objective) == ((), 0, 0.0)


@pytest.mark.parametrize("utility", [math.nan, math.inf])
def test_a_utility_that_is_no_number_is_refused(utility: float):
    with pytest.raises(ValueError, match="finite"):
        solve({"a": utility}, [])


def test_an_impossible_size_and_an_empty_list_are_refused():
    with pytest.raises(ValueError, match="size = 0"):
        solve(GOLDEN, [], 0)
    with pytest.raises(ValueError, match="size = 0"):
        solve_exact(GOLDEN, [], 0)
    with pytest.raises(ValueError, match="no items"):
        prune([], {}, [])
