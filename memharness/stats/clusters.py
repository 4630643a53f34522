"""The standard error of a mean when items share clusters, and how many degrees of freedom it has.

Two forms. Clusters of about one size: Liang and Zeger 1986 with the G/(G-1) correction, t with G-1 degrees (what
statsmodels computes for a regression on a constant). Unequal clusters: the same would be too sure, because a few large
clusters carry the mean; then Bell and McCaffrey 2002, the error CR2 with Satterthwaite's degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

MIN_CLUSTERS = 6
"""Fewest clusters that carry an interval: with five, even the most extreme of the 2^5 sign flips has p = 1/16."""

LOPSIDED = 2.0
"""How many times the median cluster the largest may hold before a reader of the figure is warned."""

KEPT = 0.9
"""Share of the G-1 degrees that must be left for clusters to count as equal. LoCoMo's ten conversations keep 95 %."""


@dataclass(frozen=True, slots=True)
class Error:
    """A standard error of a mean.

    Attributes:
        value: in the unit of the values.
        df: degrees of freedom of t.
        method: `t`, `cluster-t` or, for unequal clusters, `cluster-bm`.
        note: what a reader must know about the clusters, else empty.
    """

    value: float
    df: float
    method: str
    note: str = ""


def numbers(values: ArrayLike) -> Floats:
    """Scores as an array of shape (n,).

    Raises:
        ValueError: a value is not finite, or there is more than one dimension.
    """
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1:
        raise ValueError(f"scores are one list of numbers, not an array of shape {x.shape}")
    if not np.isfinite(x).all():
        raise ValueError(f"score {int(np.argmin(np.isfinite(x)))} is not a finite number; leave failed items out")
    return x


def codes_of(clusters: Sequence[Hashable] | None, n: int) -> tuple[Codes | None, int | None]:
    """Clusters as integers 0..G-1, and G. A dictionary, not a sort: cluster names need not be comparable.

    Raises:
        ValueError: there are not n of them.
    """
    if clusters is None:
        return None, None
    if len(clusters) != n:
        raise ValueError(f"{n} values but {len(clusters)} clusters")
    seen: dict[Hashable, int] = {}
    codes = [seen.setdefault(cluster, len(seen)) for cluster in clusters]
    return np.asarray(codes, dtype=np.int64), len(seen)


def standard_error(x: Floats, codes: Codes | None, groups: int | None) -> Error:
    """The standard error of the mean of n >= 2 values. One cluster, or one for each item, is as none named."""
    n, residual = len(x), x - x.mean()
    if codes is None or groups is None or groups in (1, n):
        return Error(math.sqrt(float(residual @ residual) / (n - 1) / n), n - 1, "t")
    sizes = np.bincount(codes, minlength=groups).astype(np.float64)
    totals = np.bincount(codes, weights=residual, minlength=groups)
    df, note = bell_mccaffrey(sizes), lopsided(sizes)
    if df >= KEPT * (groups - 1) and not note:
        return Error(math.sqrt(float(totals @ totals) * groups / (groups - 1)) / n, groups - 1, "cluster-t")
    # CR2 of a mean: (I - H)^(-1/2) stretches a cluster's total by 1/sqrt(1 - share), and all else of it cancels.
    return Error(math.sqrt(float((totals**2 / (1 - sizes / n)).sum())) / n, df, "cluster-bm", note)


def bell_mccaffrey(sizes: Floats) -> float:
    """Satterthwaite's degrees of freedom of CR2 for a mean: G-1 for equal clusters, fewer the more unequal they are.

    With p the clusters' shares of the items, the errors taken as independent: (tr M)²/tr M² of the G×G matrix with p_g
    on its diagonal and -p_g p_h / sqrt((1-p_g)(1-p_h)) beside it; its trace is 1.

    Args:
        sizes: items in each of G >= 2 clusters, shape (G,).
    """
    share = sizes / sizes.sum()
    square = share**2 / (1 - share)
    return float(1 / ((share**2).sum() + square.sum() ** 2 - (square**2).sum()))


def lopsided(sizes: Floats) -> str:
    """A warning if the largest cluster is over twice the median, else empty."""
    largest, median = float(sizes.max()), float(np.median(sizes))
    if largest <= LOPSIDED * median:
        return ""
    return f"unequal clusters: the largest has {largest:,.0f} items, the median {median:,.0f}; fewer degrees of freedom"


def few(groups: int | None, n: int) -> str:
    """Why there are too few clusters for an interval over n items, or empty if there are enough."""
    if groups is None or not 1 < groups < min(MIN_CLUSTERS, n):
        return ""
    return f"{groups} clusters are too few for an interval (at least {MIN_CLUSTERS})"


def t_quantile(level: float, df: float) -> float:
    """How many standard errors a two-sided interval reaches to each side."""
    from scipy.special import stdtrit

    return float(stdtrit(df, 0.5 + level / 2))


def p_of_t(value: float, error: Error) -> float:
    """Two-sided p value of a value of zero."""
    from scipy.special import stdtr

    return 2.0 * float(stdtr(error.df, -abs(value) / error.value))


def check_level(level: float) -> None:
    """Refuse what is no confidence level.

    Raises:
        ValueError: `level` is not between 0 and 1.
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"a confidence level lies between 0 and 1, not {level}")
