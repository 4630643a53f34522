"""The banks: retrieval, ranking, pruning and merging on cases worked out by hand; never above capacity."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from memharness.methods.l2vmas.banks import Bank, Thinking, Unit, quintiles, similarity


def unit(*key: float, called: int = 0, since: int = 0, length: int = 1) -> Unit:
    vector = torch.tensor(key)
    return Unit(vector, vector.expand(length, -1).clone(), since, called)


def mean(value: torch.Tensor) -> torch.Tensor:
    return value.mean(0)


def first(values: torch.Tensor) -> torch.Tensor:
    return values.sum(0, keepdim=True)


def test_nearest() -> None:
    bank = Bank()
    assert bank.nearest(torch.ones(2), 5) == []
    bank.units = [unit(0, 1), unit(1, 0), unit(2, 0), unit(-1, 0)]
    assert bank.nearest(torch.tensor([3.0, 0]), 2) == bank.units[1:3]  # equal cosines: the older first
    assert bank.nearest(torch.tensor([0, 2.0]), 9)[0] is bank.units[0] and len(bank.nearest(torch.ones(2), 9)) == 4
    assert bank.vectors == 8
    assert similarity(torch.zeros(1, 2), torch.ones(1, 2)).item() == 0


@pytest.mark.parametrize(
    ("n", "sizes"),
    [(0, [0] * 5), (1, [1, 0, 0, 0, 0]), (7, [2, 2, 1, 1, 1]), (10, [2] * 5), (51, [11, 10, 10, 10, 10])],
)
def test_five_sets(n: int, sizes: list[int]) -> None:
    units = [unit(at) for at in range(n)]
    sets = quintiles(units)
    assert [len(one) for one in sets] == sizes
    assert [one for part in sets for one in part] == units


def ten(capacity: int) -> Thinking:
    """Ten units of r = .9, .8, … 0 after ten calls: sets of two. Units 7 and 9 point away from the rest."""
    bank = Thinking(capacity, mean, first)
    away = {7: (0.0, 1.0), 9: (-1.0, 0.0)}
    bank.units = [unit(*away.get(at, (1.0, 0.1 * at)), called=9 - at) for at in range(10)]
    return bank


def test_pruning_and_merging_by_hand() -> None:
    bank = ten(10)
    before = list(bank.units)
    bank.add(unit(1, 0.2, since=10), calls=10)  # came after the last call: not ranked
    # Set 5 is units 8 and 9, of which 9 is unlike the rest and goes. Set 4 is 6 and 7, of which 7 is unlike the rest;
    # of Set 1, units 0 (1, 0) and 1 (1, .1), the second is more like it, so 7 is merged into 1.
    assert bank.units == [*before[:7], before[8], bank.units[-1]]
    assert before[1].value.tolist() == [pytest.approx([1.0, 1.1])]
    assert before[1].key.tolist() == pytest.approx([1.0, 1.1]) and before[1].called == 8
    assert before[0].value.tolist() == [[1.0, 0.0]]


def test_where_nobody_is_weak_the_least_called_goes() -> None:
    bank = Thinking(10, mean, first)
    bank.units = [unit(1, 0, called=9 - at) for at in range(10)]  # all alike: none is below the average
    last = bank.units[9]
    bank.add(unit(1, 0, since=10), calls=10)
    assert len(bank) == 10 and last not in bank.units


def test_where_no_call_has_been_made_the_least_alike_goes() -> None:
    bank = Thinking(2, mean, first)
    for key in ((1.0, 0.0), (0.0, 1.0), (1.0, 0.1)):
        bank.add(unit(*key), calls=0)
    assert [one.key.tolist() for one in bank.units] == [pytest.approx([1.0, 0.0]), pytest.approx([1.0, 0.1])]


def test_of_equals_the_older_goes() -> None:
    bank = Thinking(1, mean, first)
    bank.add(unit(1, 0), calls=0)
    newer = unit(1, 0)
    bank.add(newer, calls=0)
    assert bank.units == [newer]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4), st.booleans()), max_size=60))
def test_never_above_capacity_and_nothing_longer_than_what_went_in(
    capacity: int, steps: list[tuple[int, int, bool]]
) -> None:
    generator = torch.Generator().manual_seed(0)
    bank = Thinking(capacity, mean, lambda values: values[:2])
    calls = taken = 0
    for called, length, asked in steps:
        value = torch.randn(length, 3, generator=generator)
        bank.add(Unit(value.mean(0), value, calls), calls)
        taken += length + 1
        if asked:
            calls += 1
            for one in bank.nearest(value.mean(0), called):
                one.called += 1
        assert 1 <= len(bank) <= capacity
        assert bank.vectors <= taken
        assert all(one.called <= calls - one.since for one in bank.units)
