"""One score: its mean and the interval that fits the data.

Sources: Wilson 1927; Clopper and Pearson 1934; for clusters see `memharness.stats.clusters`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from memharness.stats.clusters import (
    MIN_CLUSTERS,
    Codes,
    Floats,
    check_level,
    codes_of,
    few,
    numbers,
    standard_error,
    t_quantile,
)

WILSON_FROM = 40
"""Fewest binary items for Wilson's interval; below it, and at 0 or 1, the exact interval is used."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and its confidence interval, in the unit of the values.

    Attributes:
        value: the mean; None where there are no values.
        low: lower bound; None where no interval is honest, and then `note` says why.
        high: upper bound; None together with `low`.
        n: how many values.
        clusters: how many distinct clusters, or None where none were named.
        method: `wilson`, `clopper-pearson`, `t`, `cluster-t`, `cluster-bm` (unequal clusters), `cluster-bootstrap` or
            `none`.
        note: what a reader of the figure must know, else empty.
        df: degrees of freedom where it is made by Student's t, else None.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    clusters: int | None
    method: str
    note: str = ""
    df: float | None = None


def interval(
    values: ArrayLike, clusters: Sequence[Hashable] | None = None, *, level: float = 0.95, shares: bool = True
) -> Interval:
    """Mean of per-item scores with the interval that fits the data.

    Clustered values (fewer clusters than items, at least six) get mean ± t × cluster-robust error. Otherwise binary
    values get Wilson's interval, or the exact one under 40 items or at 0 or 1, and other values mean ± t(n-1) ×
    standard error. One cluster in all tells nothing about clustering: the items are then taken as independent, and
    `note` says so. Bounds are held within 0..1 when every value lies there.

    Args:
        values: scores, shape (n,), in any order.
        clusters: the cluster of each value, length n, or None.
        level: confidence level, between 0 and 1.
        shares: whether values between 0 and 1 are shares, and 0 and 1 verdicts; points and seconds are not, though some
            of them all lie there.

    Returns:
        The interval; without values, one whose value is None.

    Raises:
        ValueError: a value is not finite, values have more than one dimension, `clusters` has another length, or
            `level` is not between 0 and 1.
    """
    check_level(level)
    x = numbers(values)
    codes, groups = codes_of(clusters, len(x))
    if not len(x):
        return Interval(None, None, None, 0, groups, "none", "no items")
    if not shares:
        return mean(x, codes, groups, level)
    if not np.isin(x, (0.0, 1.0)).all():
        return _held(mean(x, codes, groups, level), x)
    if codes is None or groups is None or groups in (1, len(x)):
        return _unknown_clustering(_proportion(int(x.sum()), len(x), groups, level))
    if x.min() == x.max() and groups >= MIN_CLUSTERS:
        # Equal values have no spread from which to estimate an error; each cluster then counts as one observation.
        exact = _clopper_pearson(groups if x[0] else 0, groups, level)
        note = f"all values equal: exact interval over the {groups} clusters"
        return Interval(float(x[0]), *exact, len(x), groups, "clopper-pearson", note)
    return _held(mean(x, codes, groups, level), x)


def mean(x: Floats, codes: Codes | None, groups: int | None, level: float) -> Interval:
    """Mean ± t × standard error for n >= 1 values, clustered or not; without bounds where t has nothing to stand on."""
    value, none = float(x.mean()), Interval(float(x.mean()), None, None, len(x), groups, "none")
    if len(x) == 1:
        return replace(none, note="one item has no spread")
    if note := few(groups, len(x)):
        return replace(none, note=note)
    if x.min() == x.max():
        return replace(none, note="all values equal: no spread to estimate an error from")
    error = standard_error(x, codes, groups)
    if error.value <= 1e-12 * float(np.abs(x).max()):
        return replace(none, note="all clusters alike: no spread to estimate an error from")
    half = t_quantile(level, error.df) * error.value
    return _unknown_clustering(
        Interval(value, value - half, value + half, len(x), groups, error.method, error.note, error.df)
    )


def _held(found: Interval, values: Floats) -> Interval:
    """The interval within 0..1 if every value lies there: a share cannot be below 0."""
    if found.low is None or found.high is None or values.min() < 0 or values.max() > 1:
        return found
    return replace(found, low=max(found.low, 0.0), high=min(found.high, 1.0))


def _proportion(successes: int, n: int, groups: int | None, level: float) -> Interval:
    exact = n < WILSON_FROM or successes in (0, n)
    low, high = (_clopper_pearson if exact else _wilson)(successes, n, level)
    return Interval(successes / n, low, high, n, groups, "clopper-pearson" if exact else "wilson")


def _wilson(successes: int, n: int, level: float) -> tuple[float, float]:
    z = NormalDist().inv_cdf(0.5 + level / 2)
    p, shrink = successes / n, 1 + z * z / n
    centre = (p + z * z / (2 * n)) / shrink
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / shrink
    return centre - half, centre + half


def _clopper_pearson(successes: int, n: int, level: float) -> tuple[float, float]:
    from scipy.special import betaincinv

    tail, k = (1 - level) / 2, successes
    low = float(betaincinv(k, n - k + 1, tail)) if k else 0.0
    high = float(betaincinv(k + 1, n - k, 1 - tail)) if k < n else 1.0
    return low, high


def _unknown_clustering(found: Interval) -> Interval:
    if found.clusters != 1 or found.n == 1:
        return found
    return replace(found, note="one cluster in all: clustering is unknown, items taken as independent")
