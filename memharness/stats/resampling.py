"""The same questions without a formula: randomisation by sign flips of clusters, and the bootstrap over clusters.

Both are seeded, so that a figure can be made again; the seed is an argument whose default is a constant.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from memharness.stats.clusters import Codes, Floats, check_level, codes_of, few, numbers
from memharness.stats.score import Interval

SEED = 20_261_130
"""Default seed of every resampling."""

DRAWS = 20_000
"""Default number of resamples: the error of a p value of .05 is then .0015."""

EXACT = 16
"""Most clusters whose 2^G sign flips are all gone through."""

BLOCK = 1 << 22
"""Numbers held at once while resampling (32 MiB)."""

BOOTSTRAP_FROM = 30
"""Fewest clusters from which a bootstrap over them is wide enough: at 10, simulated false positives are 10 %, not 5."""


@dataclass(frozen=True, slots=True)
class SignFlip:
    """A randomisation test of no difference.

    Attributes:
        p: two-sided p value; None without items.
        flipped: how many units had their signs flipped: clusters, or items where none were named.
        exact: whether all 2^flipped flips were gone through.
        draws: how many flips were looked at.
    """

    p: float | None
    flipped: int
    exact: bool
    draws: int


def sign_flip(
    differences: ArrayLike,
    clusters: Sequence[Hashable] | None = None,
    *,
    seed: int = SEED,
    draws: int = DRAWS,
) -> SignFlip:
    """Whether paired differences could as well have the other sign, whole clusters at a time.

    If neither side is better, a cluster's total difference is as likely as its negative. It assumes nothing else, and
    is exact up to 16 clusters; with fewer than 6 no p value under .05 exists.

    Args:
        differences: b - a of each item, shape (n,).
        clusters: the cluster of each, length n, or None for items that stand alone.
        seed: of the flips drawn where there are too many to go through.
        draws: how many are drawn then, at least 1.

    Raises:
        ValueError: as `interval`, or `draws` is below 1.
    """
    x = numbers(differences)
    codes, groups = codes_of(clusters, len(x))
    if draws < 1:
        raise ValueError(f"at least one draw, not {draws}")
    if not len(x):
        return SignFlip(None, 0, True, 0)
    totals = x if codes is None else np.bincount(codes, weights=x, minlength=groups or 0)
    bar = abs(float(totals.sum())) - 1e-9 * float(np.abs(totals).sum())  # a sum added up in another order still ties
    if len(totals) <= EXACT:
        sums = np.zeros(1)
        for total in totals:  # 2^G sums by G doublings
            sums = np.concatenate([sums + total, sums - total])
        return SignFlip(float((np.abs(sums) >= bar).mean()), len(totals), True, len(sums))
    rng, reached = np.random.default_rng(seed), 0
    for start in range(0, draws, block := max(1, BLOCK // len(totals))):
        signs = rng.integers(0, 2, (min(block, draws - start), len(totals)), dtype=np.int8) * 2 - 1
        reached += int((np.abs(signs @ totals) >= bar).sum())
    return SignFlip((1 + reached) / (1 + draws), len(totals), False, draws)


def cluster_bootstrap(
    values: ArrayLike,
    clusters: Sequence[Hashable] | None = None,
    *,
    per: ArrayLike | None = None,
    level: float = 0.95,
    seed: int = SEED,
    draws: int = DRAWS,
) -> Interval:
    """Σ values / Σ per with its percentile interval over resampled clusters; without `per`, the mean.

    It fits what has no error in closed form. Under 30 clusters it is too narrow, and says so; under 6 there is none.

    Args:
        values: one number for each item, shape (n,).
        clusters: the cluster of each, length n; None resamples items.
        per: what the total is divided by the total of, shape (n,), at least 0; None is 1 for each item.
        level: confidence level, between 0 and 1.
        seed: of the resamples.
        draws: how many, at least 1.

    Raises:
        ValueError: as `interval`; `per` has another length or is negative, or `draws` is below 1.
    """
    check_level(level)
    x = numbers(values)
    below = np.ones(len(x)) if per is None else numbers(per)
    if len(below) != len(x) or (below < 0).any():
        raise ValueError(f"`per` is {len(x)} numbers from 0, one for each value")
    if draws < 1:
        raise ValueError(f"at least one draw, not {draws}")
    codes, groups = codes_of(clusters, len(x))
    if not len(x) or not below.sum():
        return Interval(None, None, None, len(x), groups, "none", "nothing to divide by" if len(x) else "no items")
    value, unit = float(x.sum() / below.sum()), len(x) if groups is None else groups
    note = few(groups, len(x)) or ("one unit has no spread" if unit == 1 else "")
    if note:
        return Interval(value, None, None, len(x), groups, "none", note)
    low, high = _percentiles(_totals(x, codes, unit), _totals(below, codes, unit), level, seed, draws)
    if unit < BOOTSTRAP_FROM:
        note = f"a bootstrap over {unit} clusters is too narrow (at least {BOOTSTRAP_FROM})"
    return Interval(value, low, high, len(x), groups, "cluster-bootstrap", note)


def _totals(x: Floats, codes: Codes | None, unit: int) -> Floats:
    return x if codes is None else np.asarray(np.bincount(codes, weights=x, minlength=unit), dtype=np.float64)


def _percentiles(above: Floats, below: Floats, level: float, seed: int, draws: int) -> tuple[float, float]:
    """Percentiles of Σ above / Σ below over units drawn with replacement; a draw with nothing below is left out."""
    rng, unit = np.random.default_rng(seed), len(above)
    found = []
    for start in range(0, draws, block := max(1, BLOCK // unit)):
        chosen = rng.integers(0, unit, (min(block, draws - start), unit))
        top, bottom = above[chosen].sum(axis=1), below[chosen].sum(axis=1)
        found.append(top[bottom > 0] / bottom[bottom > 0])
    tail = (1 - level) / 2
    low, high = np.quantile(np.concatenate(found), [tail, 1 - tail])
    return float(low), float(high)
