"""Many tests at once. Holm 1979 for claims, Benjamini and Hochberg 1995 for looking around."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjustment of a family of p values, in the order given.

    Args:
        p_values: p values; None (not testable) stays None and does not count in the family.

    Returns:
        Adjusted p values: a claim holds at family-wise level q where its own is at most q.

    Raises:
        ValueError: a p value is not between 0 and 1.
    """
    known = _known(p_values)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(known):
        highest = max(highest, min(1.0, p * (len(known) - rank)))
        adjusted[place] = highest
    return adjusted


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """Benjamini and Hochberg's step-up adjustment, in the order given: for looking around, not for claims.

    Args:
        p_values: as in `holm`.

    Returns:
        Adjusted p values: of those at most q, a share of q is false on average, for independent or positively
        dependent tests.

    Raises:
        ValueError: a p value is not between 0 and 1.
    """
    known = _known(p_values)
    adjusted: list[float | None] = [None] * len(p_values)
    lowest = 1.0
    for rank in range(len(known), 0, -1):
        p, place = known[rank - 1]
        lowest = min(lowest, p * len(known) / rank)
        adjusted[place] = lowest
    return adjusted


def _known(p_values: Sequence[float | None]) -> list[tuple[float, int]]:
    """The testable ones with their places, smallest first."""
    known = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    if not all(0.0 <= p <= 1.0 for p, _ in known):
        raise ValueError("p values lie between 0 and 1")
    return known
