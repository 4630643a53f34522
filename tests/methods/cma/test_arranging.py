"""The order in which a back end is given the pictures of a composite."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.methods.cma.arranging import arranged
from memharness.methods.cma.candidates import Candidate
from tests.methods.cma.acting import asset


def order(words: str, n: int, *references: tuple[str, list[int]], **more: Any) -> list[int]:
    sources = [Candidate(asset(index, **more if index == n - 1 else {}), None, None) for index in range(n)]
    read = {"references": [{"text": text, "places": places} for text, places in references]}
    return [one.asset.index for one in arranged(words, sources, read, n)]


@pytest.mark.parametrize(
    ("words", "references", "expected"),
    [
        ("Put the mug from the first one into the stall.", [("the first one ", [0]), ("the stall", [1])], [1, 0]),
        ("Merge the stall and the mug.", [("the stall", [1]), ("the mug", [0])], [1, 0]),
        ("Take the bell out of the reef and add it to the train.", [("the reef", [1]), ("the train", [0])], [0, 1]),
        ("把第二张图里的桌子放进第一张图。", [("第二张图", [1]), ("第一张图", [0])], [0, 1]),
        ("Merge both.", [("both", [0, 1])], [0, 1]),
        ("Merge them.", [], [0, 1]),
    ],
)
def test_what_is_put_into_comes_first(words: str, references: list[tuple[str, list[int]]], expected: list[int]) -> None:
    assert order(words, 2, *references) == expected


def test_into_it_means_what_came_with_the_turn() -> None:
    words, mug = "Here is my stall. Put the mug into it.", ("the mug", [0])
    assert order(words, 2, mug, kind="upload", turn=2) == [1, 0]
    assert order(words, 2, mug, kind="upload", turn=1) == [0, 1]


@given(st.lists(st.lists(st.integers(0, 6), max_size=3), max_size=4), st.integers(1, 6))
def test_nothing_is_lost_and_nothing_comes_twice(places: list[list[int]], n: int) -> None:
    found = order("Put it into that one.", n, *(("that one", some) for some in places))
    assert sorted(found) == list(range(n))
