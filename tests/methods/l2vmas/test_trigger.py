"""When the memory is called on: eq. 8 on sequences worked out by hand, and the wait that is never cut short."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.methods.l2vmas.trigger import Mode, Trigger


def fires(entropies: list[float], window: int, threshold: float, mode: Mode, *, answered: bool = True) -> list[int]:
    trigger = Trigger(window, threshold, mode)
    out = []
    for at, entropy in enumerate(entropies):
        if trigger.step(entropy):
            out.append(at)
            if answered:
                trigger.fired()
    return out


# W = 2. At step 3 the last two are 3 and 5 (μ 4, σ 1), all four 1 1 3 5 (H̄ 2.5): risen by 1.5 σ.
@pytest.mark.parametrize(
    ("entropies", "threshold", "mode", "expected"),
    [
        ([1, 1, 3, 5], 0.5, "rise", [3]),
        ([1, 1, 3, 5], 1.4, "rise", [3]),
        ([1, 1, 3, 5], 1.5, "rise", []),  # not above: equal
        ([1, 1, 3, 5], 0.5, "literal", []),
        ([5, 3, 1, 1], 0.5, "literal", [3]),  # as printed it fires when entropy has fallen: H̄ 2.5, μ 1, σ 0
        ([5, 3, 1, 1], 0.5, "rise", []),
        ([5, 7, 1, 3], 1.9, "literal", [3]),  # H̄ 4 > μ 2 + 1.9 σ 1
        ([5, 7, 1, 3], 2.0, "literal", []),
        ([2, 2, 2, 2, 2, 2], 0.0, "rise", []),  # constant: nothing is above its mean
        ([1, 1, 3], 0.5, "rise", []),  # fewer than 2W are known
    ],
)
def test_by_hand(entropies: list[float], threshold: float, mode: Mode, expected: list[int]) -> None:
    assert fires(entropies, 2, threshold, mode) == expected


def test_the_wait_begins_only_where_something_was_given() -> None:
    rising = [float(n * n) for n in range(12)]  # rises ever faster, so it would fire at every step
    assert fires(rising, 2, 0.1, "rise") == [3, 5, 7, 9, 11]
    assert fires(rising, 2, 0.1, "rise", answered=False) == list(range(3, 12))


@given(
    st.lists(st.floats(0, 12), max_size=200),
    st.integers(1, 16),
    st.floats(0, 2),
    st.sampled_from(["rise", "literal"]),
)
def test_never_closer_than_the_window(entropies: list[float], window: int, threshold: float, mode: Mode) -> None:
    at = fires(entropies, window, threshold, mode)
    assert all(later - earlier >= window for earlier, later in itertools.pairwise(at))
    assert not at or at[0] >= 2 * window - 1
