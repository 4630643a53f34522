"""Intervals and paired tests against statsmodels, the recipe's worked figures, and a coverage simulation."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint
from statsmodels.stats.weightstats import DescrStatsW

from memharness.stats import Interval, holm, interval, mcnemar_exact, paired

SCORES = st.floats(min_value=-1e3, max_value=1e3, allow_nan=False).map(lambda x: round(x, 6))
BINARY = st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=80)


def bits(successes: int, n: int) -> list[int]:
    return [1] * successes + [0] * (n - successes)


def robust(x: np.ndarray, clusters: np.ndarray) -> tuple[float, float, float]:
    """Low, high and p of the mean by statsmodels' cluster-robust regression on a constant, t with G-1."""
    fit = sm.OLS(x, np.ones(len(x))).fit(cov_type="cluster", cov_kwds={"groups": clusters}, use_t=True)
    ((low, high),) = fit.conf_int()
    return low, high, fit.pvalues[0]


# One score, independent items


def test_wilson_worked_figure() -> None:
    found = interval(bits(45, 50))
    assert (found.method, found.value, found.n, found.clusters) == ("wilson", 0.9, 50, None)
    assert (round(found.low, 3), round(found.high, 3)) == (0.786, 0.957)


@pytest.mark.parametrize(("successes", "n"), [(1, 40), (45, 50), (499, 1000), (99_999, 100_000)])
@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_wilson_equals_statsmodels(successes: int, n: int, level: float) -> None:
    found = interval(bits(successes, n), level=level)
    assert found.method == "wilson"
    assert (found.low, found.high) == pytest.approx(
        proportion_confint(successes, n, 1 - level, method="wilson"), abs=1e-10
    )


def test_points_that_happen_to_be_0_and_1_are_no_verdicts() -> None:
    points = [0.0] * 5 + [1.0] * 35
    assert interval(points).high == pytest.approx(0.945, abs=1e-3)  # Wilson
    found = interval(points, shares=False)
    assert found.method == "t"
    assert (found.low, found.high) == pytest.approx(DescrStatsW(points).tconfint_mean(), abs=1e-12)
    assert interval([0.0] * 8, list("aabbccdd"), shares=False).low is None
    assert interval([0.0, 1.0, 1.0, 1.0], shares=False).high == pytest.approx(1.546, abs=1e-3)  # beyond 1, as points go


@pytest.mark.parametrize(("successes", "n"), [(0, 1), (1, 1), (3, 7), (38, 39), (0, 500), (500, 500)])
def test_exact_equals_statsmodels(successes: int, n: int) -> None:
    found = interval(bits(successes, n))
    assert found.method == "clopper-pearson"
    assert (found.low, found.high) == pytest.approx(proportion_confint(successes, n, method="beta"), abs=1e-10)


def test_t_interval_equals_statsmodels() -> None:
    x = np.random.default_rng(1).normal(0.4, 0.2, 57)
    found = interval(x)
    assert found.method == "t"
    assert (found.low, found.high) == pytest.approx(sm.stats.DescrStatsW(x).tconfint_mean(0.05), abs=1e-10)


def test_floats_are_not_taken_as_binary() -> None:
    assert interval([0.0, 1.0, 0.5] * 20).method == "t"


# One score, clustered items


def test_cluster_interval_equals_statsmodels() -> None:
    rng = np.random.default_rng(2)
    clusters = rng.choice(10, size=400, p=np.arange(21, 31) / 255)
    x = np.clip(rng.normal(0.5, 0.2, 400) + rng.normal(0, 0.1, 10)[clusters], 0, 1)
    found = interval(x, clusters.tolist())
    assert (found.method, found.clusters, found.n) == ("cluster-t", 10, 400)
    assert (found.low, found.high) == pytest.approx(robust(x, clusters)[:2], abs=1e-10)


def test_binary_cluster_interval_equals_statsmodels_and_stays_a_proportion() -> None:
    rng = np.random.default_rng(3)
    clusters = np.repeat(np.arange(8), 25)
    x = (rng.random(200) < rng.uniform(0.3, 0.7, 8)[clusters]).astype(float)
    found = interval(x, clusters.tolist())
    assert (found.low, found.high) == pytest.approx(robust(x, clusters)[:2], abs=1e-10)
    rare = np.zeros(200)
    rare[0] = 1
    assert robust(rare, clusters)[0] < 0
    assert interval(rare, clusters.tolist()).low == 0.0


@pytest.mark.parametrize("groups", [2, 3, 4, 5])
def test_few_clusters_give_no_interval_and_say_why(groups: int) -> None:
    found = interval([0, 1, 1, 0, 1] * groups, [g for g in range(groups) for _ in range(5)])
    assert (found.low, found.high, found.method, found.clusters) == (None, None, "none", groups)
    assert found.value == 0.6
    assert f"{groups} clusters are too few" in found.note


def test_six_clusters_give_an_interval() -> None:
    assert interval([0, 1, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1], list("aabbccddeeff")).method == "cluster-t"


def test_one_cluster_falls_back_and_says_so() -> None:
    found, alone = interval(bits(45, 50), ["all"] * 50), interval(bits(45, 50))
    assert (found.low, found.high, found.method, found.clusters) == (alone.low, alone.high, "wilson", 1)
    assert "clustering is unknown" in found.note
    scores = interval([0.1, 0.5, 0.7], ["all"] * 3)
    assert scores.method == "t"
    assert "clustering is unknown" in scores.note


def test_every_item_its_own_cluster_is_not_clustered() -> None:
    found = interval([0, 1, 1], ["a", "b", "c"])
    assert (found.method, found.clusters, found.note) == ("clopper-pearson", 3, "")
    assert (found.low, found.high) == pytest.approx(proportion_confint(2, 3, method="beta"), abs=1e-10)
    assert interval([0.1, 0.5, 0.7], ["a", "b", "c"]).method == "t"


def test_cluster_names_need_not_be_comparable() -> None:
    assert interval(bits(6, 12), [1, 1, "1", "1", ("x",), ("x",), None, None, 2.5, 2.5, "z", "z"]).clusters == 6


# Data without spread, bad data


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_constant_binary_clusters_count_each_cluster_once(value: float) -> None:
    found = interval([value] * 100, [i % 10 for i in range(100)])
    bounds = proportion_confint(10 * value, 10, method="beta")
    assert found.value == value
    assert (found.low, found.high) == pytest.approx(bounds, abs=1e-10)
    assert "all values equal" in found.note


@pytest.mark.parametrize("clusters", [None, [i % 10 for i in range(100)]])
def test_constant_scores_have_no_interval(clusters: list[int] | None) -> None:
    found = interval([0.3] * 100, clusters)
    assert (found.value, found.low, found.high) == (pytest.approx(0.3), None, None)
    assert "all values equal" in found.note


def test_clusters_that_are_all_alike_have_no_interval() -> None:
    found = interval([0, 1] * 10, [i // 2 for i in range(20)])
    assert (found.value, found.low) == (0.5, None)
    assert "all clusters alike" in found.note


def test_no_items_and_one_item() -> None:
    assert interval([]) == Interval(None, None, None, 0, None, "none", "no items")
    assert interval([], []).clusters == 0
    assert interval([0.5]).low is None
    assert interval([1], ["a"]).note == ""


@pytest.mark.parametrize("bad", [[0.5, float("nan")], [1.0, float("inf")], [[0, 1], [1, 0]], [0.5, None]])
def test_bad_scores_are_refused(bad: list[object]) -> None:
    with pytest.raises(ValueError, match=r"finite|shape"):
        interval(bad)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="2 values but 1 clusters"):
        interval([0, 1], ["a"])
    with pytest.raises(ValueError, match="level"):
        interval([0, 1], level=95)


# Paired differences


def test_paired_clusters_equal_statsmodels() -> None:
    rng = np.random.default_rng(4)
    ids = [f"q{i}" for i in range(300)]
    clusters = rng.integers(0, 10, 300)
    a, b = rng.random(300), rng.random(300) + rng.normal(0.02, 0.1, 10)[clusters]
    found = paired(
        dict(zip(ids, a, strict=True)), dict(zip(ids, b, strict=True)), dict(zip(ids, clusters, strict=True))
    )
    low, high, p = robust(b - a, clusters)
    assert (found.difference.low, found.difference.high, found.p) == pytest.approx((low, high, p), abs=1e-10)
    assert (found.a, found.b, found.difference.value) == pytest.approx((a.mean(), b.mean(), (b - a).mean()))


def test_paired_without_clusters_equals_statsmodels() -> None:
    rng = np.random.default_rng(5)
    a, b = rng.integers(0, 2, 80), rng.integers(0, 2, 80)
    found = paired(dict(zip(map(str, range(80)), a, strict=True)), dict(zip(map(str, range(80)), b, strict=True)))
    reference = sm.stats.DescrStatsW((b - a).astype(float))
    assert found.difference.method == "t"
    assert (found.difference.low, found.difference.high) == pytest.approx(reference.tconfint_mean(), abs=1e-10)
    assert found.p == pytest.approx(reference.ttest_mean(0)[1], abs=1e-10)


def test_paired_matches_by_id_and_lists_the_rest() -> None:
    a = {"x": 1.0, "only a": 0.0, "y": 0.0, "z": 0.25}
    b = {"z": 0.5, "y": 1.0, "only b": 1.0, "x": 1.0}
    found = paired(a, b)
    assert (found.matched, found.only_a, found.only_b) == (("x", "y", "z"), ("only a",), ("only b",))
    assert found.difference.value == pytest.approx((0 + 1 + 0.25) / 3)


def test_paired_few_clusters_test_nothing() -> None:
    a = {str(i): i % 2 for i in range(20)}
    b = {str(i): i % 3 % 2 for i in range(20)}
    found = paired(a, b, {str(i): i % 4 for i in range(20)})
    assert (found.p, found.difference.low) == (None, None)
    assert "4 clusters are too few" in found.difference.note


def test_paired_nothing_matched() -> None:
    found = paired({"x": 1.0}, {"y": 1.0}, {})
    assert (found.difference.value, found.p, found.a, found.b) == (None, None, None, None)
    assert (found.only_a, found.only_b) == (("x",), ("y",))


def test_paired_identical_and_constant() -> None:
    a = {str(i): float(i % 2) for i in range(50)}
    same = paired(a, dict(reversed(a.items())))
    assert (same.difference.value, same.p, same.difference.low) == (0.0, 1.0, None)
    shifted = paired(a, {key: value + 1 for key, value in a.items()})
    assert (shifted.difference.value, shifted.p) == (1.0, 2.0**-49)


def test_paired_refuses_an_item_without_cluster_and_nan() -> None:
    with pytest.raises(ValueError, match="1 matched items have no cluster, the first is 'y'"):
        paired({"x": 1, "y": 0}, {"x": 1, "y": 1}, {"x": "c"})
    with pytest.raises(ValueError, match="finite"):
        paired({"x": float("nan")}, {"x": 1})


def test_mcnemar_equals_statsmodels() -> None:
    rng = np.random.default_rng(6)
    for n in (5, 60, 2000):
        a, b = rng.integers(0, 2, n), rng.integers(0, 2, n)
        found = mcnemar_exact(
            dict(zip(map(str, range(n)), a, strict=True)), dict(zip(map(str, range(n)), b, strict=True))
        )
        table = [[((a == i) & (b == j)).sum() for j in (1, 0)] for i in (1, 0)]
        assert (found.lost, found.gained) == (table[0][1], table[1][0])
        assert found.p == pytest.approx(mcnemar(table, exact=True).pvalue, abs=1e-10)


def test_mcnemar_edges() -> None:
    assert mcnemar_exact({"x": 1, "a": 1}, {"x": 1, "b": 0}).p == 1.0
    assert mcnemar_exact({"x": 1, "y": 0}, {"x": 0, "y": 1}).p == 1.0
    with pytest.raises(ValueError, match="0 or 1"):
        mcnemar_exact({"x": 0.5}, {"x": 1})


@settings(max_examples=10, deadline=None)  # statsmodels takes 0.1 s a call
@given(st.lists(st.floats(min_value=0, max_value=1), min_size=1, max_size=30))
def test_holm_equals_statsmodels(p_values: list[float]) -> None:
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1].tolist(), abs=1e-10)


def test_holm_leaves_the_untestable_out() -> None:
    assert holm([0.01, None, 0.04]) == [0.02, None, 0.04]
    assert holm([]) == []
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm([1.2])


# Properties


@given(BINARY | st.lists(SCORES, min_size=1, max_size=60), st.none() | st.integers(1, 12), st.randoms())
def test_interval_holds_the_mean_in_any_order(values: list[float], groups: int | None, random) -> None:
    clusters = None if groups is None else [i % groups for i in range(len(values))]
    found = interval(values, clusters)
    assert (found.low is None) == (found.high is None)
    if found.low is not None:
        assert found.low <= found.value <= found.high
    else:
        assert found.note
    order = random.sample(range(len(values)), len(values))
    again = interval([values[i] for i in order], None if clusters is None else [clusters[i] for i in order])
    assert (again.value, again.n, again.clusters, again.method) == (
        pytest.approx(found.value, abs=1e-9), found.n, found.clusters, found.method
    )  # fmt: skip
    if found.low is not None:
        assert (again.low, again.high) == pytest.approx((found.low, found.high), abs=1e-6)


@given(st.dictionaries(st.text(max_size=3), st.tuples(SCORES, SCORES), min_size=2, max_size=40), st.integers(1, 12))
def test_paired_is_antisymmetric(scores: dict[str, tuple[float, float]], groups: int) -> None:
    a, b = ({key: both[side] for key, both in scores.items()} for side in (0, 1))
    clusters = {key: i % groups for i, key in enumerate(scores)}
    forth, back = paired(a, b, clusters), paired(b, a, clusters)
    assert forth.difference.value == pytest.approx(-back.difference.value)
    assert forth.p == back.p
    assert (forth.difference.low is None) == (back.difference.low is None)
    if forth.difference.low is not None:
        assert (forth.difference.low, forth.difference.high) == pytest.approx(
            (-back.difference.high, -back.difference.low)
        )


@given(st.lists(st.integers(0, 5), min_size=8, max_size=60))
def test_repeating_every_item_in_its_cluster_changes_nothing(values: list[int]) -> None:
    """The cluster is the unit: asking each question twice adds no information, where a naive error would shrink."""
    clusters = [i % 7 for i in range(len(values))]
    once, twice = interval(values, clusters), interval(values * 2, clusters * 2)
    assume(once.method == "cluster-t")
    assert (twice.low, twice.high) == pytest.approx((once.low, once.high))


# Coverage and speed


def coverage(draw, rounds: int, truth: float) -> float:
    inside = 0
    for _ in range(rounds):
        found = interval(*draw())
        inside += found.low is not None and found.low <= truth <= found.high
    return inside / rounds


def test_clustered_coverage_is_nominal_where_the_naive_one_is_not() -> None:
    rng = np.random.default_rng(7)
    clusters = np.repeat(np.arange(10), 30)
    names = clusters.tolist()

    def draw() -> tuple[np.ndarray, list[int] | None]:
        return rng.normal(0, 1, 300) + rng.normal(0, 0.5, 10)[clusters], names

    assert 0.92 <= coverage(draw, 1500, 0.0) <= 0.98
    assert coverage(lambda: (draw()[0], None), 500, 0.0) < 0.75


@pytest.mark.parametrize(("n", "p", "floor"), [(20, 0.9, 0.95), (60, 0.9, 0.92), (400, 0.3, 0.93)])
def test_binary_coverage(n: int, p: float, floor: float) -> None:
    rng = np.random.default_rng(8)
    assert coverage(lambda: ((rng.random(n) < p).astype(float), None), 1500, p) >= floor


@pytest.mark.parametrize("kind", ["binary", "clustered"])
def test_a_hundred_thousand_values_in_a_tenth_of_a_second(kind: str) -> None:
    values = [float(i % 3 == 0) for i in range(100_000)]
    clusters = [f"conversation {i % 50}" for i in range(100_000)] if kind == "clustered" else None
    interval(values[:100], clusters and clusters[:100])
    best = min(timed(values, clusters) for _ in range(5))
    assert best < 0.1


def timed(values: list[float], clusters: list[str] | None) -> float:
    start = time.perf_counter()
    interval(values, clusters)
    return time.perf_counter() - start


def test_wilson_imports_no_scipy() -> None:
    code = "import sys; from memharness.stats import interval; interval([0, 1] * 50); sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
