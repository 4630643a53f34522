"""Cluster-robust errors: CR2 and its degrees of freedom against matrices, and when they are used."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
import statsmodels.api as sm
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from memharness.stats import interval, paired
from memharness.stats.clusters import bell_mccaffrey, lopsided, standard_error

SIZES = st.lists(st.integers(1, 40), min_size=2, max_size=12)


def by_matrices(x: np.ndarray, codes: np.ndarray) -> tuple[float, float]:
    """CR2 standard error of the mean and its Satterthwaite degrees of freedom, as Bell and McCaffrey write them.

    From the regression on a constant: V = B (Σ X_g' A_g e_g e_g' A_g X_g) B with B = (X'X)^-1, A_g = (I - H_gg)^(-1/2);
    with independent errors V's expectation is a sum of squares of the rows of G, df = (Σ λ)² / Σ λ² of G G'.
    """
    n, groups = len(x), codes.max() + 1
    design = np.ones((n, 1))
    bread = np.linalg.inv(design.T @ design)
    hat = design @ bread @ design.T
    residual = (np.eye(n) - hat) @ x
    variance, rows = 0.0, []
    for g in range(groups):
        at = np.flatnonzero(codes == g)
        values, vectors = np.linalg.eigh(np.eye(len(at)) - hat[np.ix_(at, at)])
        adjust = vectors @ np.diag(values**-0.5) @ vectors.T
        weights = (bread @ design[at].T @ adjust).ravel()
        variance += float(weights @ residual[at]) ** 2
        rows.append((np.eye(n) - hat)[:, at] @ weights)
    eigenvalues = np.linalg.eigvalsh(np.array(rows) @ np.array(rows).T)
    return float(np.sqrt(variance)), float(eigenvalues.sum() ** 2 / (eigenvalues**2).sum())


@settings(max_examples=40, deadline=None)
@given(SIZES, st.integers(0, 2**32 - 1))
def test_cr2_and_its_degrees_of_freedom_equal_the_matrices(sizes: list[int], seed: int) -> None:
    codes = np.repeat(np.arange(len(sizes)), sizes)
    x = np.random.default_rng(seed).normal(0, 1, len(codes)) + codes
    error, df = by_matrices(x, codes)
    assert bell_mccaffrey(np.array(sizes, dtype=float)) == pytest.approx(df, rel=1e-8)
    found = standard_error(x, codes, len(sizes))
    if found.method == "cluster-bm":
        assert (found.value, found.df) == pytest.approx((error, df), rel=1e-9)


@given(st.integers(2, 60), st.integers(1, 50))
def test_equal_clusters_keep_every_degree_of_freedom(groups: int, size: int) -> None:
    assert bell_mccaffrey(np.full(groups, float(size))) == pytest.approx(groups - 1)


@given(SIZES)
def test_degrees_of_freedom_are_at_most_one_fewer_than_clusters(sizes: list[int]) -> None:
    df = bell_mccaffrey(np.array(sizes, dtype=float))
    assert 0 < df <= len(sizes) - 1 + 1e-9
    assert df == pytest.approx(bell_mccaffrey(np.array(sizes[::-1], dtype=float) * 3))


def unequal(sizes: list[int], seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    codes = np.repeat(np.arange(len(sizes)), sizes)
    rng = np.random.default_rng(seed)
    return rng.normal(0.5, 0.2, len(codes)) + rng.normal(0, 0.1, len(sizes))[codes], codes


def test_unequal_clusters_get_bell_mccaffrey_and_a_warning() -> None:
    x, codes = unequal([100, *[20] * 9])
    found = interval(x, codes.tolist())
    error, df = by_matrices(x, codes)
    half = scipy.stats.t.ppf(0.975, df) * error
    assert (found.method, found.clusters) == ("cluster-bm", 10)
    assert found.df == pytest.approx(df)
    assert df < 6
    assert (found.low, found.high) == pytest.approx((x.mean() - half, x.mean() + half), abs=1e-10)
    assert "the largest has 100 items, the median 20" in found.note


def test_half_tiny_clusters_are_unequal_without_a_largest_that_stands_out() -> None:
    x, codes = unequal([100] * 5 + [1] * 5)
    found = interval(x, codes.tolist())
    assert found.method == "cluster-bm"
    assert found.df is not None
    assert found.df < 5
    assert found.note == ""


def test_locomo_has_nearly_equal_clusters() -> None:
    sizes = [199, 105, 193, 260, 242, 158, 190, 239, 196, 204]
    x, codes = unequal(sizes)
    found = interval(x, codes.tolist())
    fit = sm.OLS(x, np.ones(len(x))).fit(cov_type="cluster", cov_kwds={"groups": codes}, use_t=True)
    assert (found.method, found.df) == ("cluster-t", 9)
    assert (found.low, found.high) == pytest.approx(fit.conf_int()[0], abs=1e-10)
    assert 8.1 < bell_mccaffrey(np.array(sizes, dtype=float)) < 9
    assert lopsided(np.array(sizes, dtype=float)) == ""


def test_the_warning_begins_over_twice_the_median() -> None:
    assert lopsided(np.array([20.0, 10, 10])) == ""
    assert "largest has 21" in lopsided(np.array([21.0, 10, 10]))


@settings(deadline=None)
@given(st.lists(st.integers(1, 30), min_size=6, max_size=12), st.randoms())
def test_the_names_and_the_order_of_clusters_do_not_matter(sizes: list[int], random) -> None:
    x, codes = unequal(sizes)
    assume(len(x) > len(sizes))
    found, order = interval(x, codes.tolist()), random.sample(range(len(x)), len(x))
    again = interval(x[order], [f"conversation {len(sizes) - codes[i]}" for i in order])
    assert (again.method, again.df, again.note) == (found.method, pytest.approx(found.df), found.note)
    assert (again.low, again.high) == pytest.approx((found.low, found.high), abs=1e-9)


def test_p_values_and_intervals_of_unequal_clusters_agree() -> None:
    x, codes = unequal([100, *[20] * 9])
    ids = [str(i) for i in range(len(x))]
    clusters = dict(zip(ids, codes.tolist(), strict=True))
    base = dict.fromkeys(ids, 0.0)
    edge = paired(base, dict(zip(ids, x, strict=True)), clusters).difference.low
    found = paired(base, dict(zip(ids, x - edge, strict=True)), clusters)  # 0 is now the lower bound
    assert found.difference.low == pytest.approx(0, abs=1e-9)
    assert found.p == pytest.approx(0.05, abs=1e-9)
