"""Ratios of totals: cost of one method over another's."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from memharness.stats import cluster_bootstrap, ratio

AMOUNTS = st.lists(st.tuples(st.integers(1, 500), st.integers(1, 500)), min_size=8, max_size=40)


def sides(n: int, groups: int, seed: int = 1) -> tuple[dict[str, float], dict[str, float], dict[str, int]]:
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % groups
    a = rng.integers(100, 900, n)
    b = a * rng.uniform(1.5, 2.5, groups)[codes] + rng.integers(0, 50, n)
    ids = list(map(str, range(n)))
    return dict(zip(ids, a, strict=True)), dict(zip(ids, b, strict=True)), dict(zip(ids, codes.tolist(), strict=True))


def by_hand(a: dict, b: dict, clusters: dict) -> tuple[float, float, float]:
    """Delta method with explicit cluster sums: Var(log R) = G/(G-1) Σ_g (B_g/B - A_g/A)²."""
    names = sorted(set(clusters.values()))
    totals = [[sum(side[k] for k in side if clusters[k] == name) for name in names] for side in (a, b)]
    below, above = map(np.array, totals)
    parts = above / above.sum() - below / below.sum()
    groups = len(names)
    error = math.sqrt(groups / (groups - 1) * float(parts @ parts))
    log, half = math.log(above.sum() / below.sum()), scipy.stats.t.ppf(0.975, groups - 1) * error
    return math.exp(log - half), math.exp(log + half), 2 * scipy.stats.t.sf(abs(log) / error, groups - 1)


def test_a_ratio_with_clusters_equals_the_delta_method_by_hand() -> None:
    a, b, clusters = sides(300, 10)
    found = ratio(a, b, clusters)
    assert (found.method, found.clusters, found.n, found.df) == ("log-ratio cluster-t", 10, 300, 9)
    assert found.value == pytest.approx(sum(b.values()) / sum(a.values()))
    assert (found.low, found.high, found.p) == pytest.approx(by_hand(a, b, clusters), rel=1e-9)


def test_a_ratio_is_close_to_its_bootstrap_where_clusters_are_many() -> None:
    a, b, clusters = sides(2000, 50)
    found = ratio(a, b, clusters)
    boot = cluster_bootstrap(list(b.values()), list(clusters.values()), per=list(a.values()))
    assert boot.value == pytest.approx(found.value)
    assert boot.high - boot.low == pytest.approx(found.high - found.low, rel=0.1)


def test_the_interval_covers() -> None:
    rng, inside = np.random.default_rng(7), 0
    for _ in range(800):
        base = rng.gamma(4, 100, 12)
        a = {str(i): value for i, value in enumerate(base)}
        b = {str(i): value for i, value in enumerate(base * rng.gamma(25, 2 / 25, 12))}
        found = ratio(a, b, {key: key for key in a})
        inside += found.low <= 2 <= found.high
    assert 0.92 <= inside / 800 <= 0.98


def test_totals_of_zero_have_no_ratio_and_say_so() -> None:
    nothing, some = dict.fromkeys("abcdefgh", 0.0), dict.fromkeys("abcdefgh", 2.0)
    assert (ratio(nothing, nothing).value, ratio(nothing, nothing).note) == (None, "both totals are 0")
    assert (ratio(nothing, some).value, ratio(some, nothing).value) == (None, 0.0)
    assert "one total is 0" in ratio(some, nothing).note


def test_the_same_ratio_throughout_has_no_spread() -> None:
    a = {str(i): float(i + 1) for i in range(20)}
    twice = ratio(a, {key: 2 * value for key, value in a.items()})
    assert (twice.value, twice.low, twice.p) == (2.0, None, None)
    assert "no spread" in twice.note
    assert ratio(a, dict(reversed(a.items()))).p == 1.0


def test_few_clusters_one_item_and_nothing_matched() -> None:
    a, b, _ = sides(60, 10)
    few = ratio(a, b, {key: int(key) % 5 for key in a})
    assert (few.low, few.method) == (None, "none")
    assert "5 clusters are too few" in few.note
    assert ratio({"x": 1.0}, {"x": 2.0}).note == "one item has no spread"
    assert ratio({"x": 1.0}, {"y": 2.0}).note == "no item is in both"
    with pytest.raises(ValueError, match="not negative"):
        ratio({"x": -1.0}, {"x": 2.0})


@settings(deadline=None)
@given(AMOUNTS, st.integers(6, 9))
def test_turned_around_it_is_the_inverse(amounts: list[tuple[int, int]], groups: int) -> None:
    a, b = ({str(i): float(both[side]) for i, both in enumerate(amounts)} for side in (0, 1))
    clusters = {key: int(key) % groups for key in a}
    forth, back = ratio(a, b, clusters), ratio(b, a, clusters)
    assert forth.value == pytest.approx(1 / back.value)
    assert (forth.low is None) == (back.low is None)
    if forth.low is not None:
        assert (forth.low, forth.high) == pytest.approx((1 / back.high, 1 / back.low), rel=1e-6)
        assert forth.low <= forth.value <= forth.high
