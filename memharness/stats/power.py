"""How many items a paired comparison needs to see a gap."""

from __future__ import annotations

import math

from memharness.stats.clusters import check_level


def items_needed(
    gap: float,
    discordance: float,
    *,
    power: float = 0.8,
    level: float = 0.95,
    per_cluster: float = 1.0,
    icc: float = 0.0,
) -> int:
    """Fewest items with which a paired t test of binary verdicts sees a gap.

    Verdicts differ on a share `discordance` of the items, so a difference has the variance discordance - gap². With
    clusters, the figure is multiplied by the design effect of the differences.

    Args:
        gap: difference of the two shares that is to be seen, in size above 0 and at most `discordance`.
        discordance: share of items on which the two differ, above 0 and at most 1.
        power: chance of seeing it, above (1 - level) and below 1.
        level: confidence level of the two-sided test, between 0 and 1.
        per_cluster: mean items of a cluster, at least 1.
        icc: correlation of differences within a cluster, 0 to 1.

    Raises:
        ValueError: an argument is outside its range.
    """
    check_level(level)
    if not 0 < abs(gap) <= discordance <= 1:
        raise ValueError(f"a gap of {gap} needs a discordance between its size and 1, not {discordance}")
    if not 1 - level < power < 1:
        raise ValueError(f"power lies between {1 - level:g} and 1, not {power}")
    effect = design_effect(per_cluster, icc)
    spread = math.sqrt(discordance - gap * gap)
    if spread == 0:  # every item differs, and in one direction
        return math.ceil(2 * effect)
    low, high = 1, 2
    while _power(high, abs(gap) / spread, level) < power:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _power(middle, abs(gap) / spread, level) >= power else (middle, high)
    return math.ceil(high * effect - 1e-9)


def design_effect(per_cluster: float, icc: float) -> float:
    """How many times more items clusters cost: 1 + (m - 1) ρ (Kish 1965).

    Raises:
        ValueError: `per_cluster` is below 1, or `icc` not between 0 and 1.
    """
    if not (per_cluster >= 1 and 0 <= icc <= 1):
        raise ValueError(f"clusters hold 1 item or more and correlate by 0 to 1, not {per_cluster} and {icc}")
    return 1 + (per_cluster - 1) * icc


def _power(n: int, effect: float, level: float) -> float:
    """Power of a two-sided t test of n differences whose mean is `effect` standard deviations."""
    if n < 2:
        return 0.0
    from scipy.special import nctdtr, stdtrit

    bar, shift = float(stdtrit(n - 1, 0.5 + level / 2)), effect * math.sqrt(n)
    return float(1 - nctdtr(n - 1, shift, bar) + nctdtr(n - 1, shift, -bar))
