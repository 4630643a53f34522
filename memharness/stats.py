"""Confidence intervals and paired tests that respect clusters: what a score, and a difference of scores, is worth.

One question decides everything here: what is the independent unit? Questions over one conversation are not independent
(naive errors can be three times too small), so where items share a cluster the cluster is the unit, and Student's t has
one degree of freedom fewer than there are clusters. With under six clusters no interval is honest, and none is given.

    >>> interval([1] * 45 + [0] * 5)          # 0.900, Wilson .786 to .957

Sources: Wilson 1927; Clopper and Pearson 1934; Liang and Zeger 1986 for the cluster-robust error, with the G/(G-1)
correction; Dietterich 1998 for McNemar's test; Holm 1979. scipy is imported only where t or beta quantiles are needed.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

MIN_CLUSTERS = 6
"""Fewest clusters that carry an interval: below it t quantiles are wide and the error itself is mostly noise."""

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
        method: `wilson`, `clopper-pearson`, `t`, `cluster-t` or `none`.
        note: what a reader of the figure must know, else empty.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    clusters: int | None
    method: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Paired:
    """Two sets of scores compared on the items that both have.

    Attributes:
        difference: mean of b - a over the matched items, with its interval.
        p: two-sided p value of no difference by the same t; 1.0 where every item scores alike; None where there is no
            interval to test with.
        a: mean of a over the matched items, None where nothing matches.
        b: mean of b over the matched items, None where nothing matches.
        matched: ids in both, in a's order.
        only_a: ids without a partner in b, in a's order.
        only_b: ids without a partner in a, in b's order.
    """

    difference: Interval
    p: float | None
    a: float | None
    b: float | None
    matched: tuple[str, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Flips:
    """Binary verdicts that changed from a to b, and how likely such a split is by chance.

    Attributes:
        lost: items right in a and wrong in b.
        gained: items wrong in a and right in b.
        p: two-sided exact p value of an even split (McNemar); it ignores clusters.
    """

    lost: int
    gained: int
    p: float


def interval(values: ArrayLike, clusters: Sequence[Hashable] | None = None, *, level: float = 0.95) -> Interval:
    """Mean of per-item scores with the interval that fits the data.

    Clustered values (fewer clusters than items, at least six) get mean ± t(G-1) × cluster-robust error. Otherwise
    binary values get Wilson's interval, or the exact one under 40 items or at 0 or 1, and other values mean ± t(n-1) ×
    standard error. One cluster in all tells nothing about clustering: the items are then taken as independent, and
    `note` says so. Bounds are held within 0..1 when every value lies there.

    Args:
        values: scores, shape (n,), in any order.
        clusters: the cluster of each value, length n, or None.
        level: confidence level, between 0 and 1.

    Returns:
        The interval; without values, one whose value is None.

    Raises:
        ValueError: a value is not finite, values have more than one dimension, `clusters` has another length, or
            `level` is not between 0 and 1.
    """
    _check(level)
    x = _finite(values)
    codes, groups = _codes(clusters, len(x))
    if not len(x):
        return Interval(None, None, None, 0, groups, "none", "no items")
    if not np.isin(x, (0.0, 1.0)).all():
        return _held(_mean(x, codes, groups, level), x)
    if codes is None or groups is None or groups in (1, len(x)):
        return _unknown_clustering(_proportion(int(x.sum()), len(x), groups, level))
    if x.min() == x.max() and groups >= MIN_CLUSTERS:
        # Equal values have no spread from which to estimate an error; each cluster then counts as one observation.
        exact = _clopper_pearson(groups if x[0] else 0, groups, level)
        note = f"all values equal: exact interval over the {groups} clusters"
        return Interval(float(x[0]), *exact, len(x), groups, "clopper-pearson", note)
    return _held(_mean(x, codes, groups, level), x)


def _held(found: Interval, values: NDArray[np.float64]) -> Interval:
    """The interval within 0..1 if every value lies there: a share cannot be below 0."""
    if found.low is None or found.high is None or values.min() < 0 or values.max() > 1:
        return found
    return replace(found, low=max(found.low, 0.0), high=min(found.high, 1.0))


def paired(
    a: Mapping[str, float],
    b: Mapping[str, float],
    clusters: Mapping[str, Hashable] | None = None,
    *,
    level: float = 0.95,
) -> Paired:
    """Mean difference b - a over the items both have, with its interval and p value.

    Items are matched by id, never by position, and what has no partner is listed rather than dropped in silence.

    Args:
        a: score by item id.
        b: score by item id.
        clusters: cluster by item id, for every matched id at least, or None.
        level: confidence level, between 0 and 1.

    Returns:
        The comparison. The rules for clusters are those of `interval`; the difference is never taken as binary.

    Raises:
        ValueError: a matched score is not finite, a matched id has no cluster, or `level` is not between 0 and 1.
    """
    _check(level)
    matched = tuple(key for key in a if key in b)
    left = _finite([a[key] for key in matched])
    right = _finite([b[key] for key in matched])
    if clusters is not None and (homeless := [key for key in matched if key not in clusters]):
        raise ValueError(f"{len(homeless)} matched items have no cluster, the first is {homeless[0]!r}")
    codes, groups = _codes(None if clusters is None else [clusters[key] for key in matched], len(matched))
    change = right - left
    if matched:
        difference = _mean(change, codes, groups, level)
    else:
        difference = Interval(None, None, None, 0, groups, "none", "no item is in both")
    return Paired(
        difference,
        _p_value(change, codes, groups, difference),
        float(left.mean()) if matched else None,
        float(right.mean()) if matched else None,
        matched,
        tuple(key for key in a if key not in b),
        tuple(key for key in b if key not in a),
    )


def mcnemar_exact(a: Mapping[str, float], b: Mapping[str, float]) -> Flips:
    """Exact two-sided McNemar test on the items that both have; it takes the items as independent.

    Args:
        a: verdict (0 or 1) by item id.
        b: verdict (0 or 1) by item id.

    Returns:
        The changed verdicts and the p value, 1.0 where none changed.

    Raises:
        ValueError: a matched verdict is neither 0 nor 1.
    """
    matched = [key for key in a if key in b]
    left = _finite([a[key] for key in matched])
    right = _finite([b[key] for key in matched])
    if not np.isin(np.concatenate([left, right]), (0.0, 1.0)).all():
        raise ValueError("McNemar's test needs verdicts of 0 or 1")
    lost, gained = int((left > right).sum()), int((left < right).sum())
    if not lost + gained:
        return Flips(0, 0, 1.0)
    from scipy.special import bdtr

    return Flips(lost, gained, min(1.0, 2.0 * float(bdtr(min(lost, gained), lost + gained, 0.5))))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjustment of a family of p values, in the order given.

    Args:
        p_values: p values; None (not testable) stays None and does not count in the family.

    Returns:
        Adjusted p values: a claim holds at family-wise level q where its own is at most q.

    Raises:
        ValueError: a p value is not between 0 and 1.
    """
    known = [(p, place) for place, p in enumerate(p_values) if p is not None]
    if not all(0.0 <= p <= 1.0 for p, _ in known):
        raise ValueError("p values lie between 0 and 1")
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(sorted(known)):
        highest = max(highest, min(1.0, p * (len(known) - rank)))
        adjusted[place] = highest
    return adjusted


def _finite(values: ArrayLike) -> Floats:
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1:
        raise ValueError(f"scores are one list of numbers, not an array of shape {x.shape}")
    if not np.isfinite(x).all():
        raise ValueError(f"score {int(np.argmin(np.isfinite(x)))} is not a finite number; leave failed items out")
    return x


def _codes(clusters: Sequence[Hashable] | None, n: int) -> tuple[Codes | None, int | None]:
    """Clusters as integers 0..G-1 and G. A dictionary, not a sort: cluster names need not be comparable."""
    if clusters is None:
        return None, None
    if len(clusters) != n:
        raise ValueError(f"{n} values but {len(clusters)} clusters")
    seen: dict[Hashable, int] = {}
    codes = [seen.setdefault(cluster, len(seen)) for cluster in clusters]
    return np.asarray(codes, dtype=np.int64), len(seen)


def _standard_error(x: Floats, codes: Codes | None, groups: int | None) -> tuple[str, float, int]:
    """The method's name, the standard error of the mean, and its degrees of freedom."""
    n, residual = len(x), x - x.mean()
    if codes is None or groups is None or groups in (1, n):
        return "t", math.sqrt(float(residual @ residual) / (n - 1) / n), n - 1
    totals = np.bincount(codes, weights=residual)
    return "cluster-t", math.sqrt(float(totals @ totals) * groups / (groups - 1)) / n, groups - 1


def _mean(x: Floats, codes: Codes | None, groups: int | None, level: float) -> Interval:
    """Mean ± t × standard error for n >= 1 values, clustered or not; without bounds where t has nothing to stand on."""
    value, none = float(x.mean()), Interval(float(x.mean()), None, None, len(x), groups, "none")
    if len(x) == 1:
        return replace(none, note="one item has no spread")
    if groups is not None and 1 < groups < min(MIN_CLUSTERS, len(x)):
        return replace(none, note=f"{groups} clusters are too few for an interval (at least {MIN_CLUSTERS})")
    method, error, freedom = _standard_error(x, codes, groups)
    if x.min() == x.max():
        return replace(none, note="all values equal: no spread to estimate an error from")
    if error <= 1e-12 * float(np.abs(x).max()):
        return replace(none, note="all clusters alike: no spread to estimate an error from")
    half = _t_quantile(level, freedom) * error
    return _unknown_clustering(Interval(value, value - half, value + half, len(x), groups, method))


def _p_value(change: Floats, codes: Codes | None, groups: int | None, difference: Interval) -> float | None:
    if len(change) and not change.any():
        return 1.0
    if difference.value is None or difference.low is None:
        return None
    from scipy.special import stdtr

    _, error, freedom = _standard_error(change, codes, groups)
    return 2.0 * float(stdtr(freedom, -abs(difference.value) / error))


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


def _t_quantile(level: float, freedom: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.5 + level / 2))


def _check(level: float) -> None:
    if not 0.0 < level < 1.0:
        raise ValueError(f"a confidence level lies between 0 and 1, not {level}")


def _unknown_clustering(found: Interval) -> Interval:
    if found.clusters != 1 or found.n == 1:
        return found
    return replace(found, note="one cluster in all: clustering is unknown, items taken as independent")
