"""Two sets of scores on the same items: paired difference, non-inferiority, McNemar's test.

Sources: Miller 2024 (arXiv 2411.00640) for paired differences with clusters; Dietterich 1998 for McNemar's test.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from memharness.stats.clusters import MIN_CLUSTERS, Floats, check_level, codes_of, numbers, p_of_t, standard_error
from memharness.stats.score import Interval, mean


@dataclass(frozen=True, slots=True)
class Paired:
    """Two sets of scores compared on the items that both have.

    Attributes:
        difference: mean of b - a over the matched items, with its interval.
        p: two-sided p value of no difference by the same t; 1.0 where every item scores alike; by sign flips where
            every item changed by the same amount; None where there is nothing to test with.
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
class NonInferior:
    """Whether new scores are not worse than base ones by δ or more.

    Attributes:
        held: True if the lower bound lies above -δ; False if it does not; None where no bound can be given, which is
            no proof of either.
        lower: lower bound of the mean of new - base, or None. Where every item changed by the same amount there is no
            spread to bound it with, and it is that amount (0 where nothing changed).
        difference: mean of new - base over the matched items, with its interval.
        delta: δ, in the unit of the scores.
        compared: the paired comparison, which lists the items without a partner.
        note: why there is no bound, or what a reader must know of it, else empty.
    """

    held: bool | None
    lower: float | None
    difference: Interval
    delta: float
    compared: Paired
    note: str = ""


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
    check_level(level)
    matched = tuple(key for key in a if key in b)
    left, right = (numbers([side[key] for key in matched]) for side in (a, b))
    difference, p = _tested(right - left, _clusters(matched, clusters), level)
    return Paired(
        difference,
        p,
        float(left.mean()) if matched else None,
        float(right.mean()) if matched else None,
        matched,
        tuple(key for key in a if key not in b),
        tuple(key for key in b if key not in a),
    )


def macro(
    a: Mapping[str, float],
    b: Mapping[str, float],
    categories: Mapping[str, Hashable],
    clusters: Mapping[str, Hashable] | None = None,
    *,
    level: float = 0.95,
) -> Paired:
    """As `paired`, for the unweighted mean over categories of each category's mean, with its interval.

    Such a mean weighs each item by 1/(K × items of its category); it is the plain mean of values that say so, and
    everything said of clusters holds for them.

    Args:
        a: score by item id.
        b: score by item id.
        categories: category by item id, for every matched id at least.
        clusters: cluster by item id, for every matched id at least, or None.
        level: confidence level, between 0 and 1.

    Raises:
        ValueError: as `paired`.
    """
    check_level(level)
    matched = tuple(key for key in a if key in b)
    left, right = (numbers([side[key] for key in matched]) for side in (a, b))
    codes, k = codes_of([categories[key] for key in matched], len(matched))
    assert codes is not None and k is not None

    def means(x: Floats) -> Floats:
        return np.bincount(codes, weights=x, minlength=k) / np.bincount(codes, minlength=k)

    change, weighed = right - left, None
    if matched:
        weight = len(matched) / (k * np.bincount(codes, minlength=k))
        # Centred on its category: what a category's own mean is, is no error of the mean over categories.
        weighed = means(change).mean() + weight[codes] * (change - means(change)[codes])
    difference, p = _tested(change, _clusters(matched, clusters), level, weighed)
    return Paired(
        difference,
        p,
        float(means(left).mean()) if matched else None,
        float(means(right).mean()) if matched else None,
        matched,
        tuple(key for key in a if key not in b),
        tuple(key for key in b if key not in a),
    )


def non_inferior(
    base: Mapping[str, float],
    new: Mapping[str, float],
    delta: float,
    clusters: Mapping[str, Hashable] | None,
    *,
    level: float = 0.95,
) -> NonInferior:
    """Whether new scores are worse than base ones by less than δ: is the lower bound of new - base above -δ?

    The bound is the lower end of the two-sided interval: a true loss of δ passes with a chance of (1 - level) / 2.

    Args:
        base: score by item id.
        new: score by item id.
        delta: δ, at least 0, in the unit of the scores; fixed before looking.
        clusters: cluster by item id, for every matched id at least, or None.
        level: confidence level of the two-sided interval, between 0 and 1.

    Raises:
        ValueError: δ is negative or not finite; or as `paired`.
    """
    if not 0.0 <= delta < float("inf"):
        raise ValueError(f"δ is a number from 0, not {delta}")
    compared = paired(base, new, clusters, level=level)
    found = compared.difference
    if found.low is not None:
        return NonInferior(found.low > -delta, found.low, found, delta, compared, found.note)
    changes = {new[key] - base[key] for key in compared.matched}
    if len(changes) == 1:
        (lower,) = changes
        note = "every item scores alike" if lower == 0 else f"every item changed by the same {lower:+.3g}: no spread"
        return NonInferior(lower > -delta or lower == 0, lower, found, delta, compared, note)
    return NonInferior(None, None, found, delta, compared, found.note)


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
    left, right = (numbers([side[key] for key in matched]) for side in (a, b))
    if not np.isin(np.concatenate([left, right]), (0.0, 1.0)).all():
        raise ValueError("McNemar's test needs verdicts of 0 or 1")
    lost, gained = int((left > right).sum()), int((left < right).sum())
    if not lost + gained:
        return Flips(0, 0, 1.0)
    from scipy.special import bdtr

    return Flips(lost, gained, min(1.0, 2.0 * float(bdtr(min(lost, gained), lost + gained, 0.5))))


def averaged(scores: Iterable[tuple[str, float]]) -> dict[str, float]:
    """The mean score of each item over its repeats, in the order in which items first come.

    Repeats of an item tell nothing new about other items: they are averaged first, and only then are items, in their
    clusters, a sample.

    Raises:
        ValueError: a score is not finite.
    """
    repeats: dict[str, list[float]] = {}
    for key, value in scores:
        if not math.isfinite(value):
            raise ValueError(f"a score of {key!r} is {value}, no finite number; leave failed items out")
        repeats.setdefault(key, []).append(value)
    return {key: math.fsum(values) / len(values) for key, values in repeats.items()}


def _clusters(matched: Sequence[str], clusters: Mapping[str, Hashable] | None) -> list[Hashable] | None:
    if clusters is None:
        return None
    if homeless := [key for key in matched if key not in clusters]:
        raise ValueError(f"{len(homeless)} matched items have no cluster, the first is {homeless[0]!r}")
    return [clusters[key] for key in matched]


def _tested(
    change: Floats, clusters: Sequence[Hashable] | None, level: float, weighed: Floats | None = None
) -> tuple[Interval, float | None]:
    """The mean of changes (or of `weighed` in their place) with its interval, and the p value of none."""
    codes, groups = codes_of(clusters, len(change))
    if not len(change):
        return Interval(None, None, None, 0, groups, "none", "no item is in both"), None
    values = change if weighed is None else weighed
    found = mean(values, codes, groups, level)
    if not change.any():
        return replace(found, note="every item scores alike"), 1.0
    if found.low is not None and found.value is not None:
        return found, p_of_t(found.value, standard_error(values, codes, groups))
    units = len(change) if groups in (None, 1) else groups or 0
    if change.min() == change.max() and units >= MIN_CLUSTERS:
        return found, 2.0 ** (1 - units)  # of all sign flips, only none and all reach it
    return found, None
