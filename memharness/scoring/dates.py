"""Whether a prediction names the dates of the gold answer, whatever their spelling."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import NamedTuple

_NAMES = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTHS = {name: number for number, name in enumerate(_NAMES, 1)}
_MONTHS |= {name[:3]: number for name, number in _MONTHS.items()} | {"sept": 9}

_MONTH = rf"(?P<month>\b(?:{'|'.join(sorted(_MONTHS, key=len, reverse=True))})\b)\.?"
_DAY = r"(?P<day>(?<![\d/.:-])\d{1,2})(?:st|nd|rd|th)?\b"
_YEAR = r"(?P<year>\d{4})(?!\d)"
# In this order, each spelling read out of what the ones before it left, so that no date is read twice.
_SPELLINGS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?<!\d)(?P<year>\d{4})(?P<mark>[-/])(?P<month>\d{1,2})(?P=mark)(?P<day>\d{1,2})(?!\d)",  # 2022-03-03
        rf"{_DAY}(?:\s+of)?\s+{_MONTH}(?:,?\s+{_YEAR})?",  # 3 March 2022, 7th of May, 8 May, 2023
        rf"{_MONTH}\s+{_DAY}(?:,?\s+{_YEAR})?",  # March 3, 2022
        rf"{_MONTH},?\s+{_YEAR}",  # March 2022
    )
)


class Day(NamedTuple):
    """A date as written; the year, or the day of the month, is None where the text does not give it."""

    year: int | None
    month: int
    day: int | None


def find_dates(text: str) -> frozenset[Day]:
    """Return the calendar dates that a text names; all-number dates other than year-month-day are never guessed at."""
    found: set[Day] = set()
    for spelling in _SPELLINGS:
        found.update(_read(spelling, text))
        text = spelling.sub(" | ", text)
    return frozenset(found)


def dates_equal(gold: str | None, prediction: str, *, year_optional: bool = False) -> bool | None:
    """Return whether the prediction names the gold answer's dates and no others, or None where the gold has none.

    The question takes no part: it often holds a date of its own.

    Args:
        gold: the gold answer.
        prediction: the answer to be scored.
        year_optional: whether a date without a year equals that day of any year.
    """
    wanted = find_dates(gold or "")
    if not wanted:
        return None
    said = find_dates(prediction)
    return all(any(_same(one, other, year_optional) for other in said) for one in wanted) and all(
        any(_same(one, other, year_optional) for other in wanted) for one in said
    )


def _read(spelling: re.Pattern[str], text: str) -> Iterator[Day]:
    for match in spelling.finditer(text):
        parts = match.groupdict()
        name, year, day = parts["month"].lower(), parts.get("year"), parts.get("day")
        written = Day(int(year) if year else None, _MONTHS.get(name) or int(name), int(day) if day else None)
        if _exists(written):
            yield written


def _exists(written: Day) -> bool:
    # Without a year the 29th of February is a date, so a leap year stands in.
    year = 2000 if written.year is None else written.year
    day = 1 if written.day is None else written.day
    try:
        date(year, written.month, day)
    except ValueError:
        return False
    return True


def _same(one: Day, other: Day, year_optional: bool) -> bool:
    if one[1:] != other[1:]:
        return False
    return one.year == other.year or (year_optional and None in (one.year, other.year))
