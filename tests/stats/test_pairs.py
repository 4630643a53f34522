"""Non-inferiority, repeats, and means over categories."""

from __future__ import annotations

import math

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st

from memharness.stats import averaged, interval, macro, non_inferior, paired

Scores = dict[str, float]


def two(n: int = 300, groups: int = 10, seed: int = 1, gain: float = 0.0) -> tuple[Scores, Scores, dict[str, int]]:
    """Scores of two methods on the same items, and the cluster of each item."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % groups
    a = rng.random(n)
    b = a + rng.normal(gain, 0.1, n) + rng.normal(0, 0.02, groups)[codes]
    ids = [f"q{i}" for i in range(n)]
    return dict(zip(ids, a, strict=True)), dict(zip(ids, b, strict=True)), dict(zip(ids, codes.tolist(), strict=True))


# Non-inferiority


def test_non_inferior_is_the_lower_bound_against_delta() -> None:
    base, new, clusters = two()
    bound = paired(base, new, clusters).difference.low
    assert bound is not None
    assert bound < 0
    for delta, held in ((-bound + 1e-6, True), (-bound - 1e-6, False)):
        found = non_inferior(base, new, delta, clusters)
        assert (found.held, found.lower, found.delta) == (held, bound, delta)


def test_non_inferior_by_statsmodels() -> None:
    base, new, clusters = two(gain=0.02)
    change = np.array([new[key] - base[key] for key in base])
    fit = sm.OLS(change, np.ones(len(change))).fit(
        cov_type="cluster", cov_kwds={"groups": list(clusters.values())}, use_t=True
    )
    found = non_inferior(base, new, 0.01, clusters, level=0.9)
    assert found.lower == pytest.approx(fit.conf_int(0.1)[0][0], abs=1e-10)
    assert found.held is bool(fit.conf_int(0.1)[0][0] > -0.01)


def test_few_clusters_prove_nothing() -> None:
    found = non_inferior(*two(groups=4)[:2], 0.5, two(groups=4)[2])
    assert (found.held, found.lower) == (None, None)
    assert "4 clusters are too few" in found.note


def test_nothing_matched_proves_nothing() -> None:
    found = non_inferior({"x": 1.0}, {"y": 1.0}, 0.1, None)
    assert (found.held, found.compared.only_a, found.compared.only_b) == (None, ("x",), ("y",))


def test_what_scores_alike_is_not_worse_even_at_a_delta_of_zero() -> None:
    base, _, clusters = two()
    found = non_inferior(base, dict(reversed(base.items())), 0.0, clusters)
    assert (found.held, found.lower, found.note) == (True, 0.0, "every item scores alike")


def test_every_item_changed_by_the_same() -> None:
    base = dict.fromkeys(map(str, range(20)), 1.0)
    lost = non_inferior(base, dict.fromkeys(base, 0.0), 0.5, None)
    assert (lost.held, lost.lower) == (False, -1.0)
    assert "the same -1" in lost.note
    assert non_inferior(base, dict.fromkeys(base, 2.0), 0.5, None).held is True


@pytest.mark.parametrize("delta", [-0.1, math.nan, math.inf])
def test_a_delta_is_a_number_from_zero(delta: float) -> None:
    with pytest.raises(ValueError, match="δ"):
        non_inferior({"x": 1.0}, {"x": 1.0}, delta, None)


@given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 50))
def test_a_larger_delta_never_takes_a_proof_away(small: float, more: float, seed: int) -> None:
    base, new, clusters = two(60, seed=seed)
    if non_inferior(base, new, small, clusters).held:
        assert non_inferior(base, new, small + more, clusters).held


# All items changed alike


def test_a_constant_change_is_tested_by_sign_flips() -> None:
    a = dict.fromkeys(map(str, range(60)), 0.0)
    b = dict.fromkeys(a, 1.0)
    assert paired(a, b).p == pytest.approx(2.0**-59)
    found = paired(a, b, {key: int(key) % 10 for key in a})
    assert (found.p, found.difference.low) == (2.0**-9, None)
    assert paired(a, b, {key: int(key) % 5 for key in a}).p is None  # too few clusters


# Repeats


def test_repeats_are_averaged_within_the_item_before_the_cluster() -> None:
    scores = [("x", 1.0), ("y", 0.0), ("x", 0.0), ("x", 0.5), ("y", 1.0)]
    assert averaged(scores) == {"x": 0.5, "y": 0.5}
    assert list(averaged(reversed(scores))) == ["y", "x"]
    with pytest.raises(ValueError, match="finite"):
        averaged([("x", math.nan)])


@given(st.lists(st.floats(0, 1), min_size=8, max_size=40), st.integers(2, 5))
def test_asking_again_with_the_same_result_adds_no_certainty(values: list[float], times: int) -> None:
    pairs = [(f"q{i}", value) for i, value in enumerate(values)]
    once, often = averaged(pairs), averaged(pairs * times)
    assert often == pytest.approx(once)
    of = [i % 7 for i in range(len(values))]
    assert interval(list(often.values()), of).low == pytest.approx(interval(list(once.values()), of).low)


def test_uneven_repeats_weigh_an_item_once() -> None:
    """A mean over all answers would say .75: the item that was asked three times would count three times."""
    found = averaged([("x", 1.0), ("x", 1.0), ("x", 1.0), ("y", 0.0)])
    assert interval(list(found.values())).value == 0.5


# Means over categories


def test_the_macro_mean_weighs_categories_alike_and_the_micro_mean_items() -> None:
    a = {"x": 1.0, "y": 1.0, "z": 1.0, "lone": 0.0}
    b = {**a, "lone": 1.0}
    categories = {"x": "many", "y": "many", "z": "many", "lone": "few"}
    found = macro(a, b, categories)
    assert (found.a, found.b, found.difference.value) == (0.5, 1.0, 0.5)
    assert (paired(a, b).a, paired(a, b).difference.value) == (0.75, 0.25)


def test_the_error_of_a_macro_mean_is_that_of_a_regression_on_categories() -> None:
    a, b, clusters = two(240, seed=3)
    kinds = {key: i % 7 % 3 for i, key in enumerate(a)}
    found = macro(a, b, kinds, clusters)
    change = np.array([b[key] - a[key] for key in a])
    design = np.equal.outer(list(kinds.values()), range(3)).astype(float)
    fit = sm.OLS(change, design).fit(
        cov_type="cluster", cov_kwds={"groups": list(clusters.values()), "use_correction": False}, use_t=True
    )
    third = np.full(3, 1 / 3)
    test = fit.t_test(third)
    error = test.sd.item() * math.sqrt(10 / 9)
    assert found.difference.value == pytest.approx(test.effect.item(), abs=1e-10)
    half = found.difference.high - found.difference.value
    assert half == pytest.approx(2.2621571627409915 * error, abs=1e-9)  # t(9) at 95 %
    assert found.difference.method == "cluster-t"


def test_a_macro_mean_of_equal_categories_is_the_micro_mean() -> None:
    a, b, _ = two(90, seed=4)
    kinds = {key: i % 3 for i, key in enumerate(a)}
    assert macro(a, b, kinds).difference.value == pytest.approx(paired(a, b).difference.value)


def test_a_macro_mean_of_what_scores_alike_or_of_nothing() -> None:
    a, _, clusters = two(60)
    same = macro(a, dict(a), dict.fromkeys(a, 1), clusters)
    assert (same.p, same.difference.note) == (1.0, "every item scores alike")
    assert macro({"x": 1.0}, {"y": 1.0}, {}).difference.value is None
    opposite = macro({"x": 0.0, "y": 0.0}, {"x": 1.0, "y": -1.0}, {"x": 1, "y": 2})
    assert (opposite.difference.value, opposite.p) == (0.0, None)
