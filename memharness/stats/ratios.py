"""A ratio of two totals over the same items, such as what two methods cost.

The logarithm of the ratio of totals is close to normal; to first order an item adds b_i/Σb - a_i/Σa to it (the delta
method), so its error is that of a mean of such values and clusters are treated as everywhere else: log-ratio ± t.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from memharness.stats.clusters import check_level, codes_of, few, numbers, p_of_t, standard_error, t_quantile


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of totals, b over a, with its interval.

    Attributes:
        value: Σb / Σa over the matched items; None where Σa is 0 or nothing matches.
        low: lower bound; None where there is none, and then `note` says why.
        high: upper bound; None together with `low`.
        p: two-sided p value of a ratio of 1; 1.0 where every item costs alike; None where there is no interval.
        a: Σa.
        b: Σb.
        n: matched items.
        clusters: how many distinct clusters, or None where none were named.
        method: `log-ratio t`, `log-ratio cluster-t`, `log-ratio cluster-bm` or `none`.
        note: why there is no interval or no ratio, else empty.
        df: degrees of freedom, None without an interval.
    """

    value: float | None
    low: float | None
    high: float | None
    p: float | None
    a: float
    b: float
    n: int
    clusters: int | None
    method: str
    note: str = ""
    df: float | None = None


def ratio(
    a: Mapping[str, float],
    b: Mapping[str, float],
    clusters: Mapping[str, Hashable] | None = None,
    *,
    level: float = 0.95,
) -> Ratio:
    """The ratio of totals Σb / Σa over the items both have, with its interval.

    Args:
        a: amount (0 or more) by item id.
        b: amount (0 or more) by item id.
        clusters: cluster by item id, for every matched id at least, or None.
        level: confidence level, between 0 and 1.

    Raises:
        ValueError: a matched amount is negative or not finite, or `level` is not between 0 and 1.
        KeyError: a matched id has no cluster.
    """
    check_level(level)
    matched = [key for key in a if key in b]
    left, right = (numbers([side[key] for key in matched]) for side in (a, b))
    if (left < 0).any() or (right < 0).any():
        raise ValueError("amounts whose totals are compared are not negative")
    codes, groups = codes_of(None if clusters is None else [clusters[key] for key in matched], len(matched))
    below, above = float(left.sum()), float(right.sum())

    def without(note: str, p: float | None = None) -> Ratio:
        value = above / below if below else None
        return Ratio(value, None, None, p, below, above, len(matched), groups, "none", note)

    if not matched:
        return without("no item is in both")
    if not below or not above:
        return without("both totals are 0" if below == above else "one total is 0: the ratio has no interval")
    if len(matched) == 1:
        return without("one item has no spread")
    if note := few(groups, len(matched)):
        return without(note)
    parts = len(matched) * (right / above - left / below)  # their mean is 0
    error = standard_error(parts, codes, groups)
    if error.value <= 1e-12:
        return without(
            "the same ratio throughout: no spread to estimate an error from", 1.0 if below == above else None
        )
    log, half = math.log(above / below), t_quantile(level, error.df) * error.value
    return Ratio(
        above / below, math.exp(log - half), math.exp(log + half), p_of_t(log, error), below, above, len(matched),
        groups, f"log-ratio {error.method}", error.note, error.df,
    )  # fmt: skip
