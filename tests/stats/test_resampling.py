"""Sign flips and the bootstrap over clusters, against scipy and by brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from memharness.stats import cluster_bootstrap, interval, paired, sign_flip

DIFFERENCES = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=10)


@given(DIFFERENCES)
def test_sign_flips_are_exact(differences: list[float]) -> None:
    flipped = [
        abs(sum(sign * value for sign, value in zip(signs, differences, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    found = sign_flip(differences)
    assert (found.exact, found.flipped, found.draws) == (True, len(differences), 2 ** len(differences))
    assert found.p == np.mean(np.array(flipped) >= abs(sum(differences)))


def test_sign_flips_equal_scipy_on_cluster_totals() -> None:
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 10, 300)
    x = rng.normal(0.05, 0.3, 300)
    totals = np.bincount(codes, weights=x)
    reference = scipy.stats.permutation_test(
        (totals,), np.sum, permutation_type="samples", n_resamples=np.inf, alternative="two-sided"
    )
    assert sign_flip(x, codes.tolist()).p == pytest.approx(reference.pvalue, abs=1e-12)


def test_many_clusters_are_drawn_from_and_the_draw_is_seeded() -> None:
    rng = np.random.default_rng(3)
    codes = (np.arange(600) % 40).tolist()
    x = rng.normal(0.02, 0.3, 600)
    first, again, other = (sign_flip(x, codes, seed=seed) for seed in (1, 1, 2))
    assert (first.exact, first.flipped) == (False, 40)
    assert first == again
    assert first.p != other.p
    ids = list(map(str, range(600)))
    t = paired(dict.fromkeys(ids, 0.0), dict(zip(ids, x, strict=True)), dict(zip(ids, codes, strict=True)))
    assert first.p == pytest.approx(t.p, abs=0.02)


def test_a_drawn_p_value_is_never_zero() -> None:
    assert sign_flip(np.ones(50), draws=99).p == pytest.approx(0.01)


def test_five_clusters_cannot_reach_five_percent() -> None:
    assert sign_flip([1.0] * 50, [i % 5 for i in range(50)]).p == 2 / 32
    assert sign_flip([1.0] * 60, [i % 6 for i in range(60)]).p == 2 / 64


def test_sign_flips_of_nothing_and_of_no_change() -> None:
    assert sign_flip([]).p is None
    assert sign_flip([0.0] * 20, [i % 4 for i in range(20)]).p == 1.0
    with pytest.raises(ValueError, match="draw"):
        sign_flip([1.0], draws=0)
    with pytest.raises(ValueError, match="finite"):
        sign_flip([float("nan")])


@given(DIFFERENCES, st.floats(0.1, 100), st.randoms())
def test_sign_flips_ignore_scale_direction_and_order(differences: list[float], scale: float, random) -> None:
    p = sign_flip(differences).p
    assert sign_flip([-scale * value for value in differences]).p == p
    assert sign_flip(random.sample(differences, len(differences))).p == p


def test_the_bootstrap_is_close_to_t_where_clusters_are_many() -> None:
    rng = np.random.default_rng(4)
    codes = (np.arange(2000) % 50).tolist()
    x = rng.normal(0.5, 0.2, 2000) + rng.normal(0, 0.1, 50)[np.array(codes)]
    found, formula = cluster_bootstrap(x, codes), interval(x, codes)
    assert (found.method, found.clusters, found.note) == ("cluster-bootstrap", 50, "")
    assert found.value == pytest.approx(formula.value)
    assert found.high - found.low == pytest.approx(formula.high - formula.low, rel=0.06)
    assert found == cluster_bootstrap(x, codes)
    assert found != cluster_bootstrap(x, codes, seed=1)


def test_the_bootstrap_of_a_ratio_resamples_both_totals_together() -> None:
    rng = np.random.default_rng(5)
    codes = (np.arange(900) % 30).tolist()
    below = rng.integers(50, 150, 900)
    found = cluster_bootstrap(2 * below, codes, per=below)
    assert (found.value, found.low, found.high) == pytest.approx((2, 2, 2))
    mean = cluster_bootstrap(below.astype(float), codes)
    assert cluster_bootstrap(below.astype(float), codes, per=np.ones(900)) == mean


def test_the_bootstrap_by_hand_over_two_items() -> None:
    """Items 0 and 1 drawn twice with replacement: 0, 1/2 and 1 with chances 1/4, 1/2 and 1/4."""
    found = cluster_bootstrap([0.0, 1.0], level=0.4, draws=4000)
    assert (found.low, found.high) == (0.5, 0.5)
    assert (cluster_bootstrap([0.0, 1.0], level=0.9).low, cluster_bootstrap([0.0, 1.0], level=0.9).high) == (0.0, 1.0)


def test_the_bootstrap_says_where_it_cannot_be_trusted() -> None:
    x = np.random.default_rng(6).random(60)
    assert "too narrow" in cluster_bootstrap(x, [i % 10 for i in range(60)]).note
    few = cluster_bootstrap(x, [i % 5 for i in range(60)])
    assert (few.low, few.method) == (None, "none")
    assert "5 clusters are too few" in few.note
    assert cluster_bootstrap(x, ["all"] * 60).low is None
    assert cluster_bootstrap([]).value is None
    assert cluster_bootstrap([1.0, 2.0], per=[0, 0]).note == "nothing to divide by"
    for bad in ([1.0], [-1.0, 1.0]):
        with pytest.raises(ValueError, match="per"):
            cluster_bootstrap([1.0, 2.0], per=bad)
    with pytest.raises(ValueError, match="draw"):
        cluster_bootstrap([1.0, 2.0], draws=0)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(0, 1), min_size=7, max_size=40))
def test_the_bootstrap_stays_within_the_data(values: list[float]) -> None:
    found = cluster_bootstrap(values, draws=300)
    assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9
