from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.scoring.dates import Day, dates_equal, find_dates

MARCH_3 = Day(2022, 3, 3)
SPELLINGS = (
    "{0:%Y}-{0:%m}-{0:%d}",
    "{0:%Y}/{0.month}/{0.day}",
    "{0.day} {1} {0:%Y}",
    "{0.day} {1}, {0:%Y}",
    "{1} {0.day}, {0:%Y}",
    "{2}. {0.day} {0:%Y}",
    "the {0.day}th of {1} {0:%Y}",
)
MONTHS = "January February March April May June July August September October November December".split()  # noqa: SIM905


@pytest.mark.parametrize(
    "text",
    [
        "2022-03-03",
        "2022/3/3",
        "2022-03-03T10:15:00",
        "3 March 2022",
        "3rd of March, 2022",
        "March 3, 2022",
        "Mar. 3rd 2022",
        "MARCH 3 2022",
        "1:56 pm on 3 March, 2022",
    ],
)
def test_spellings_of_one_day(text: str) -> None:
    assert find_dates(text) == {MARCH_3}


def test_partial_and_impossible_dates() -> None:
    assert find_dates("7 May") == {Day(None, 5, 7)}
    assert find_dates("in June 2023") == {Day(2023, 6, None)}
    assert find_dates("29 February") == {Day(None, 2, 29)}
    assert find_dates("29 February 2023, 31 April, 2022-13-01") == frozenset()


def test_ambiguous_numbers_are_not_read() -> None:
    assert find_dates("03/04/2022 or 3.4.2022 or 20220304") == frozenset()


def test_case_dates(shared: Path) -> None:
    empty, missing, row = json.loads((shared / "cases/c16_empty_gold_and_dates.json").read_text())["rows"]
    assert dates_equal(empty["gold"], empty["prediction"]) is None
    assert dates_equal(missing["gold"], missing["prediction"]) is None
    assert dates_equal(row["gold"], row["prediction"]) is True


def test_other_dates_are_wrong() -> None:
    assert dates_equal("7 May 2023", "May 7, 2023") is True
    assert dates_equal("7 May 2023", "8 May 2023") is False
    assert dates_equal("7 May 2023", "I do not know") is False
    assert dates_equal("7 May 2023", "7 May 2023 or 8 May 2023") is False
    assert dates_equal("7 May 2023 and 9 May 2023", "7 May 2023") is False
    assert dates_equal("June 2023", "7 June 2023") is False


def test_year_is_optional_only_on_request() -> None:
    assert dates_equal("7 May 2023", "May 7") is False
    assert dates_equal("7 May 2023", "May 7", year_optional=True) is True
    assert dates_equal("7 May", "2023-05-07", year_optional=True) is True
    assert dates_equal("7 May 2023", "7 May 2022", year_optional=True) is False


@given(st.dates(date(1000, 1, 1)), st.sampled_from(SPELLINGS), st.sampled_from(SPELLINGS))
def test_any_two_spellings_of_a_day_are_equal(day: date, one: str, other: str) -> None:
    name = MONTHS[day.month - 1]
    first, second = (spelling.format(day, name, name[:3]) for spelling in (one, other))
    assert find_dates(first) == {Day(day.year, day.month, day.day)}
    assert dates_equal(first, f"It was {second}.") is True


@given(st.text(max_size=40), st.text(max_size=40))
def test_equality_is_symmetric(one: str, other: str) -> None:
    there, back = dates_equal(one, other), dates_equal(other, one)
    assert None in (there, back) or there == back
