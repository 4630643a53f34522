"""Items needed for a gap."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.power import TTestPower

from memharness.stats import design_effect, items_needed, paired


@pytest.mark.parametrize(("discordance", "published"), [(0.1, 866), (0.2, 1738), (0.3, 2610)])
def test_a_gap_of_three_points(discordance: float, published: int) -> None:
    """The recipe's figures are rounded to the nearest item; the fewest that reach 80 % is the next whole one."""
    exact = TTestPower().solve_power(0.03 / math.sqrt(discordance - 0.03**2), power=0.8, alpha=0.05)
    assert round(exact) == published
    assert items_needed(0.03, discordance) == math.ceil(exact)


@pytest.mark.parametrize(("gap", "discordance", "power", "level"), [(0.01, 0.1, 0.8, 0.95), (0.2, 0.3, 0.9, 0.99)])
def test_other_gaps_equal_statsmodels(gap: float, discordance: float, power: float, level: float) -> None:
    exact = TTestPower().solve_power(gap / math.sqrt(discordance - gap * gap), power=power, alpha=1 - level)
    assert items_needed(gap, discordance, power=power, level=level) == math.ceil(exact)
    assert items_needed(-gap, discordance, power=power, level=level) == math.ceil(exact)


def test_the_power_is_what_it_says_in_a_simulation() -> None:
    n, rng, seen = items_needed(0.1, 0.3), np.random.default_rng(1), 0
    ids = list(map(str, range(n)))
    for _ in range(600):
        change = rng.choice([1.0, -1.0, 0.0], n, p=[0.2, 0.1, 0.7])
        seen += paired(dict.fromkeys(ids, 0.0), dict(zip(ids, change, strict=True))).p < 0.05
    assert 0.75 <= seen / 600 <= 0.86


def test_clusters_cost_items() -> None:
    assert design_effect(1, 0.5) == 1
    assert design_effect(200, 0.05) == pytest.approx(10.95)
    plain = items_needed(0.03, 0.2)
    assert items_needed(0.03, 0.2, per_cluster=200, icc=0.05) == math.ceil(plain * 10.95)
    assert items_needed(0.03, 0.2, per_cluster=200) == plain


@settings(deadline=None)
@given(st.floats(0.02, 0.3), st.floats(0.02, 0.3))
def test_a_smaller_gap_needs_more(one: float, two: float) -> None:
    small, large = sorted((one, two))
    assert items_needed(small, 0.4) >= items_needed(large, 0.4)


@pytest.mark.parametrize(
    "arguments",
    [
        {"gap": 0.0, "discordance": 0.1},
        {"gap": 0.2, "discordance": 0.1},
        {"gap": 0.1, "discordance": 1.1},
        {"gap": 0.1, "discordance": 0.2, "power": 1.0},
        {"gap": 0.1, "discordance": 0.2, "power": 0.01},
        {"gap": 0.1, "discordance": 0.2, "level": 95},
        {"gap": 0.1, "discordance": 0.2, "per_cluster": 0.5},
        {"gap": 0.1, "discordance": 0.2, "icc": 2.0},
    ],
)
def test_what_makes_no_sense_is_refused(arguments: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"gap|power|level|clusters"):
        items_needed(**arguments)


def test_every_item_differs_in_one_direction() -> None:
    assert items_needed(1.0, 1.0) == 2
