"""Adjusted p values; Holm's are in `tests/test_stats.py`."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from memharness.stats import benjamini_hochberg, holm

FAMILY = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@settings(max_examples=15, deadline=None)  # statsmodels takes 0.1 s a call
@given(FAMILY)
def test_benjamini_hochberg_equals_statsmodels(p_values: list[float]) -> None:
    expected = multipletests(p_values, method="fdr_bh")[1].tolist()
    assert benjamini_hochberg(p_values) == pytest.approx(expected, abs=1e-10)


@given(FAMILY)
def test_holm_is_the_stricter(p_values: list[float]) -> None:
    for raw, bh, strict in zip(p_values, benjamini_hochberg(p_values), holm(p_values), strict=True):
        assert raw <= bh + 1e-12
        assert bh <= strict + 1e-12


def test_the_untestable_are_left_out() -> None:
    assert benjamini_hochberg([0.01, None, 0.04]) == [0.02, None, 0.04]
    assert benjamini_hochberg([]) == []
    with pytest.raises(ValueError, match="between 0 and 1"):
        benjamini_hochberg([-0.1])
