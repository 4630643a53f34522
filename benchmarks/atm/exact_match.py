"""ATM-Bench's "exact match": a chain of gates over dates, times, amounts, numbers and words, and its list Jaccard.

The official evaluator (memqa/utils/evaluator) is far from equality: it forgives wording, word order and extra text, and
is strict about codes, dates and figures. Its oddities are kept, because published figures have them; each is named
where it happens. The gates run in order and the first that decides is final.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from functools import cached_property


def _listed(words: str) -> tuple[str, ...]:
    return tuple(words.split())


_MONTH_NAMES = _listed("january february march april may june july august september october november december")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_MONTHS |= {name[:3]: number for name, number in _MONTHS.items()} | {"sept": 9}
_MONTH = rf"(?P<month>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})"
_SUFFIX = r"(?:st|nd|rd|th)?"
_YEAR = r"(?:,?\s*(?P<year>\d{4}))?"

_ISO_DATE = re.compile(r"\b(?P<year>\d{4})[-/](?P<month>\d{1,2})[-/](?P<day>\d{1,2})\b")
_COMPACT_DATE = re.compile(r"\b(?P<year>(?:19|20)\d\d)(?P<month>0[1-9]|1[0-2])(?P<day>0[1-9]|[12]\d|3[01])\b")
_DAY_RANGE = re.compile(
    rf"\b{_MONTH}\s+(?P<day>\d{{1,2}}){_SUFFIX}\s*(?:-|to|–)\s*(?P<last>\d{{1,2}}){_SUFFIX}{_YEAR}\b", re.IGNORECASE
)
_MONTH_DAY = re.compile(rf"\b{_MONTH}\s+(?P<day>\d{{1,2}}){_SUFFIX}{_YEAR}\b", re.IGNORECASE)
_DAY_MONTH = re.compile(rf"\b(?P<day>\d{{1,2}}){_SUFFIX}\s+{_MONTH}{_YEAR}\b", re.IGNORECASE)

_CLOCK = r"(\d{1,2})(?::(\d{2}))?"
_TIME_RANGE = re.compile(rf"\b{_CLOCK}\s*(am|pm)?\s*(?:-|to|–|and)\s*{_CLOCK}\s*(am|pm)?\b", re.IGNORECASE)
_TIME_24 = re.compile(r"\b([01]?\d|2[0-3]):([0-5]\d)\b")
_TIME_12 = re.compile(rf"\b{_CLOCK}\s*(am|pm)\b", re.IGNORECASE)
_TIME_DOTTED = re.compile(rf"\b{_CLOCK}\s*(?:a\.m\.|p\.m\.)\b", re.IGNORECASE)
_NAMED_TIMES = {"noon": "12:00", "midday": "12:00", "midnight": "00:00"}
_DOTTED = {"a.m.": "am", "p.m.": "pm", "a. m.": "am", "p. m.": "pm"}

_AMOUNT = r"\d{1,3}(?:,\d{3})*(?:\.\d+)?"
_NUMBER = re.compile(rf"\b{_AMOUNT}\b")
_SYMBOL_AMOUNT = re.compile(rf"[£$€]\s*({_AMOUNT})")
_WORD_AMOUNT = re.compile(rf"({_AMOUNT})\s*(?:usd|gbp|eur|aud|jod|dollars?|pounds?|euros?)\b", re.IGNORECASE)
_CURRENCY = re.compile(r"[£$€]|\b(?:usd|gbp|eur|aud|jod|dollars?|pounds?|euros?)\b", re.IGNORECASE)
_CURRENCY_CODES = {"£": "gbp", "pound": "gbp", "$": "usd", "dollar": "usd", "€": "eur", "euro": "eur"}
_NUMBER_WORDS = {
    word: str(value)
    for value, word in enumerate(
        _listed(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
            "seventeen eighteen nineteen twenty"
        )
    )
}

_CODE = re.compile(r"\b[A-Z0-9]{4,}\b", re.IGNORECASE)
_CODE_LABEL = re.compile(r"\b(?:CODE|ID|REFERENCE|REF|NUMBER|NUM|LABEL):\s*")
_ORDINAL = re.compile(r"\d{1,2}(?:ST|ND|RD|TH)")
_LIST_MARK = re.compile(r"\s*(?:,|;|\band\b|/)\s*", re.IGNORECASE)
_WORD = re.compile(r"[a-z0-9]+")
_MEDIA_ID = re.compile(r"\b\d{8}_\d{6}\b")
_EMAIL_ID = re.compile(r"\bemail\d+\b", re.IGNORECASE)
_EDGES = "\t\n\r \"'`.,;:!?()[]{}"

# "evidnece" is the official list's own spelling.
_ABSTENTIONS = (
    "unknown",
    "abstention",
    "no information",
    "not available",
    "no evidence",
    "no evidnece",
    "insufficient information",
)
_STOPWORDS = frozenset(_listed("the a an of in at on for to and or by from with into is was were be been being"))
_ADDRESS_WORDS = frozenset(
    _listed(
        "street st road rd lane ln avenue ave drive dr place pl square sq close court ct way high highstreet "
        "boulevard blvd city town village county country oxford cambridge"
    )
)
_WEEKDAYS = _listed("monday mon tuesday tues tue wednesday wed thursday thurs thu friday fri saturday sat sunday sun")
_FRAMING = re.compile(
    r"\bit happened on\b|\bstarting at\b|\bfrom\s+\d|\bonwards\b|\btotaling\b|\bcomprising\b|\bwith pre-drinks at\b"
    r"|\bwith pre-\w+\b|\band dinner at\b|\bdress code is\b|\bthe total cost was\b|\bcode:\s*|\bexpires?\s*"
    rf"|\b(?:{'|'.join(_WEEKDAYS)})\b"
)
_RELATIVE_DAYS = {"today": 0, "tonight": 0, "tomorrow": 1, "yesterday": -1}


def deterministic_accuracy(gold: str, prediction: str, question: str = "") -> bool:
    """Return whether ATM-Bench's evaluator takes the prediction for the gold answer.

    Args:
        gold: the gold answer.
        prediction: the answer to be scored.
        question: the question; a full date in it tells what "today" and "tomorrow" mean in either text.
    """
    if _abstains(gold) or _abstains(prediction):
        return _abstains(gold) and _abstains(prediction)
    today = _reference_date(question)
    wanted, said = _Answer(_clean(gold, today)), _Answer(_clean(prediction, today))
    for gate in _GATES:
        decision = gate(wanted, said)
        if decision is not None:
            return decision
    return wanted.plain == said.plain


def list_ids(text: str) -> frozenset[str]:
    """Return the memory ids a prediction names, or its list items where it names none.

    Ids are `YYYYMMDD_HHMMSS` and `email` with digits (lower-cased), found anywhere in the prose; list items are split
    at "," ";" "/" and "and", and normalised.
    """
    found = _MEDIA_ID.findall(text) + [match.lower() for match in _EMAIL_ID.findall(text)]
    return frozenset(found) or _list_items(text)


def list_jaccard(gold: str, prediction: str) -> float:
    """Return the Jaccard index of the gold list and the ids of the prediction, in [0, 1]; two empty ones agree.

    As in the official evaluator, the gold answer is always split as a list and never searched for ids.
    """
    wanted, said = _list_items(gold), list_ids(prediction)
    if not wanted:
        return float(not said)
    return len(wanted & said) / len(wanted | said)


@dataclass(frozen=True)
class _Answer:
    """A cleaned answer and what the gates read out of it."""

    text: str

    @cached_property
    def plain(self) -> str:
        return _plain(self.text)

    @cached_property
    def codes(self) -> set[str]:
        """Words of four or more letters and digits that hold both; "11am" is one too, officially."""
        words = {match.upper() for match in _CODE.findall(self.text)}
        return {word for word in words if _is_mixed(word) and not _ORDINAL.fullmatch(word)}

    @cached_property
    def dates(self) -> list[str]:
        return list(dict.fromkeys(_dates(self.text)))

    @cached_property
    def times(self) -> set[str]:
        return set(_times(self.text))

    @cached_property
    def rest(self) -> str:
        """What is left without dates and times."""
        return _without_dates_and_times(self.text)

    @cached_property
    def unframed(self) -> str:
        """`rest` without phrases and weekdays that only introduce a date, time or sum."""
        return " ".join(_FRAMING.sub(" ", _plain(self.rest)).split())

    @cached_property
    def currencies(self) -> set[str]:
        names = (match.lower() for match in _CURRENCY.findall(self.rest))
        return {_CURRENCY_CODES.get(name.rstrip("s"), name) for name in names}

    @cached_property
    def amounts(self) -> set[Decimal]:
        return _amounts(self.rest)

    @cached_property
    def numbers(self) -> list[Decimal]:
        """Numbers in order; without its comma a number of four digits is none, officially."""
        return [_decimal(match) for match in _NUMBER.findall(_digits_for_words(self.rest))]

    @cached_property
    def tokens(self) -> list[str]:
        return _tokens(self.text)

    @cached_property
    def content(self) -> set[str]:
        return {token for token in self.tokens if token not in _STOPWORDS and len(token) > 2}


def _codes_gate(gold: _Answer, said: _Answer) -> bool | None:
    """Every code of the gold must be in the prediction."""
    shown = _CODE_LABEL.sub("", said.text.upper())
    return None if all(code in shown for code in gold.codes) else False


def _dates_gate(gold: _Answer, said: _Answer) -> bool | None:
    """Every date of the gold needs one of its own in the prediction, by month and day where either lacks the year."""
    left = list(said.dates)
    for wanted in gold.dates:
        match = next((other for other in left if _same_date(wanted, other)), None)
        if match is None:
            return False
        left.remove(match)
    return None


def _times_gate(gold: _Answer, said: _Answer) -> bool | None:
    """Times must be the same, where both have some; "4:00 PM" also reads as 04:00, and so differs from "4 PM"."""
    return False if gold.times and said.times and gold.times != said.times else None


def _dated_gate(gold: _Answer, said: _Answer) -> bool | None:
    """A gold that is only dates and times is met by now; so is one whose other words are all in the prediction."""
    if not gold.dates and not gold.times:
        return None
    return True if _covers(gold.unframed, said.unframed) else None


def _currency_gate(gold: _Answer, said: _Answer) -> bool | None:
    """Currencies must be the same, where both have some."""
    return False if gold.currencies and said.currencies and gold.currencies != said.currencies else None


def _amounts_gate(gold: _Answer, said: _Answer) -> bool | None:
    """Sums with a currency must be the same; a sum without one does not meet a gold that has one."""
    return False if gold.amounts and gold.amounts != said.amounts else None


def _numbers_gate(gold: _Answer, said: _Answer) -> bool | None:
    """The other numbers, number words included, must be the same multiset, if the gold has any."""
    wanted, found = gold.numbers, said.numbers
    if gold.amounts:
        wanted = [number for number in wanted if number not in gold.amounts]
        found = [number for number in found if number not in said.amounts]
    return False if wanted and Counter(wanted) != Counter(found) else None


def _list_gate(gold: _Answer, said: _Answer) -> bool | None:
    """A gold of two or more list items is met when each is part of the prediction, and only then."""
    items = _split_list(gold.text)
    return all(item in said.plain for item in items) if len(items) >= 2 else None


def _yes_no_gate(gold: _Answer, said: _Answer) -> bool | None:
    """A bare yes or no is right when the gold starts with it."""
    decisive = gold.plain.startswith(("yes", "no")) and said.plain in ("yes", "no")
    return gold.plain.startswith(said.plain) if decisive else None


def _address_gate(gold: _Answer, said: _Answer) -> bool | None:
    """A gold with an address word is met by a prediction that has all its words, house numbers aside."""
    if _ADDRESS_WORDS.isdisjoint(gold.tokens):
        return None
    words = {token for token in gold.tokens if token not in _STOPWORDS and not token.isdigit()}
    return True if words and words.issubset(said.tokens) else None


def _substring_gate(gold: _Answer, said: _Answer) -> bool | None:
    """Either text inside the other is enough, from three characters on."""
    inside = any(
        len(part) >= 3 and part in whole for part, whole in ((gold.plain, said.plain), (said.plain, gold.plain))
    )
    return True if inside else None


def _words_gate(gold: _Answer, said: _Answer) -> bool | None:
    """All the gold's words but stopwords in the prediction are enough."""
    return True if _covers(gold.text, said.text) else None


def _overlap_gate(gold: _Answer, said: _Answer) -> bool | None:
    """80 % of the gold's words of three or more letters are enough; a gold with no such word passes, officially."""
    if gold.dates and not {day[-4:] for day in gold.dates} & {day[-4:] for day in said.dates}:
        return None
    if gold.times and said.times and gold.times.isdisjoint(said.times):
        return None
    sums = _amounts(gold.text)
    if sums and sums != _amounts(said.text):
        return None
    enough = not gold.content or len(gold.content & said.content) / len(gold.content) >= 0.8
    return True if enough else None


_GATES: tuple[Callable[[_Answer, _Answer], bool | None], ...] = (
    _codes_gate,
    _dates_gate,
    _times_gate,
    _dated_gate,
    _currency_gate,
    _amounts_gate,
    _numbers_gate,
    _list_gate,
    _yes_no_gate,
    _address_gate,
    _substring_gate,
    _words_gate,
    _overlap_gate,
)


def _clean(text: str, today: date | None) -> str:
    """Return the text that the gates read: relative days resolved and details that do not count taken out."""
    text = _join_thousands(_resolve_days(text, today).rstrip("."))
    text = re.sub(r"\b(\d+)\s+(?:spots?|hours?|sessions?|days?)\b", r"\1", text, flags=re.IGNORECASE)
    text = _without_brackets(text)
    text = re.sub(r",?\s*totaling\s+[£$€]\d+(?:\.\d+)?\s+for\s+\w+\s+sessions?", "", text, flags=re.IGNORECASE)
    text = re.sub(r",?\s*comprising\s.*$", "", text, flags=re.IGNORECASE)
    text = re.sub(r"per\s+\d+[- ]minute\s+session", "per session", text, flags=re.IGNORECASE)
    text = re.sub(r"\bbetween\s+", "", " ".join(text.split()), flags=re.IGNORECASE)
    # Not only after "between": officially every "and" becomes "to".
    text = re.sub(r"\s+and\s+", " to ", text, flags=re.IGNORECASE)
    return re.sub(r"^\s*(?:a|an|the)\s+", "", text, flags=re.IGNORECASE)


def _plain(text: str) -> str:
    """Return the text lower-cased, without ordinal endings, bracketed parts, thousands commas and edge punctuation."""
    text = re.sub(r"\b(\d+)(?:st|nd|rd|th)\b", r"\1", " ".join(text.lower().split()))
    return _join_thousands(_without_brackets(text)).strip(_EDGES)


def _without_brackets(text: str) -> str:
    return " ".join(re.sub(r"\([^)]+\)", "", text).split())


def _join_thousands(text: str) -> str:
    return re.sub(r"(\d),(\d)", r"\1\2", text)


def _abstains(text: str) -> bool:
    plain = _plain(text)
    return any(phrase in plain for phrase in _ABSTENTIONS)


def _reference_date(question: str) -> date | None:
    """Return the first full date of the question; None where there is none, or where it is no calendar date."""
    day = next((day for day in _dates(question) if len(day) == 8), "")
    try:
        return date(int(day[:4]), int(day[4:6]), int(day[6:])) if "0001" < day[:4] < "9999" else None
    except ValueError:
        return None


def _resolve_days(text: str, today: date | None) -> str:
    """Replace "today", "tomorrow" … by month and day, in the one spelling of case that comes first in this order."""
    if today is None:
        return text
    for word, shift in _RELATIVE_DAYS.items():
        spelling = next((case for case in (word, word.capitalize(), word.upper()) if case in text), None)
        if spelling:
            then = today + timedelta(days=shift)
            text = text.replace(spelling, f"{_MONTH_NAMES[then.month - 1].capitalize()} {then.day:02d}")
    return text


def _dates(text: str) -> Iterator[str]:
    """Yield dates as YYYYMMDD or, without a year, MMDD; a range as two of them joined by "-"."""
    for pattern in (_ISO_DATE, _COMPACT_DATE, _DAY_RANGE):
        yield from map(_date, pattern.finditer(text))
    without_ranges = _DAY_RANGE.sub(" ", text)
    for pattern in (_MONTH_DAY, _DAY_MONTH):
        yield from map(_date, pattern.finditer(without_ranges))


def _date(match: re.Match[str]) -> str:
    parts = match.groupdict()
    name = parts["month"].lower()
    month = _MONTHS.get(name) or int(name)
    year = f"{int(parts['year']):04d}" if parts["year"] and int(parts["year"]) else ""
    days = [parts["day"], *filter(None, [parts.get("last")])]
    return "-".join(f"{year}{month:02d}{int(day):02d}" for day in days)


def _same_date(gold: str, said: str) -> bool:
    """Compare two dates or two ranges; a gold date is also compared, by its day, with a predicted range's text."""
    if "-" not in gold:
        return _same_day(gold, said)
    if "-" not in said:
        return False
    return all(_same_day(*ends) for ends in zip(gold.split("-"), said.split("-"), strict=True))


def _same_day(gold: str, said: str) -> bool:
    return gold[-4:] == said[-4:] if 4 in (len(gold), len(said)) else gold == said


def _times(text: str) -> Iterator[str]:
    """Yield times as HH:MM; a range, which is any two numbers joined by "-" or "to", as two of them."""
    text = text.lower()
    for written, meant in (_NAMED_TIMES | _DOTTED).items():
        text = text.replace(written, meant)
    for match in _TIME_RANGE.finditer(text):
        hour, minute, half, last_hour, last_minute, last_half = match.groups()
        yield f"{_time(hour, minute, half or last_half)}-{_time(last_hour, last_minute, last_half)}"
    text = _TIME_RANGE.sub(" ", text)
    for match in _TIME_24.finditer(text):
        yield _time(match[1], match[2], None)
    for match in _TIME_12.finditer(text):
        yield _time(match[1], match[2], match[3])


def _time(hour: str, minute: str | None, half: str | None) -> str:
    hours = int(hour)
    if half:
        hours = (0 if hours == 12 else hours) + (12 if half == "pm" else 0)
    return f"{hours:02d}:{int(minute or 0):02d}"


def _without_dates_and_times(text: str) -> str:
    dates = (_ISO_DATE, _COMPACT_DATE, _DAY_RANGE, _MONTH_DAY, _DAY_MONTH)
    for pattern in (*dates, _TIME_RANGE, _TIME_24, _TIME_12, _TIME_DOTTED):
        text = pattern.sub(" ", text)
    for word in (*_NAMED_TIMES, *_DOTTED):
        text = text.replace(word, " ")
    return text


def _amounts(text: str) -> set[Decimal]:
    text = _join_thousands(_digits_for_words(text))
    return {_decimal(match) for match in _SYMBOL_AMOUNT.findall(text) + _WORD_AMOUNT.findall(text)}


def _decimal(text: str) -> Decimal:
    return Decimal(text.replace(",", ""))


def _digits_for_words(text: str) -> str:
    return re.sub(r"\b[A-Za-z]+\b", lambda match: _NUMBER_WORDS.get(match[0].lower(), match[0]), text)


def _split_list(text: str) -> list[str]:
    return [_plain(item) for item in _LIST_MARK.split(text) if item.strip()]


def _list_items(text: str) -> frozenset[str]:
    return frozenset(filter(None, _split_list(text)))


def _tokens(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _covers(gold: str, said: str) -> bool:
    return {token for token in _tokens(gold) if token not in _STOPWORDS}.issubset(_tokens(said))


def _is_mixed(word: str) -> bool:
    return any(char.isalpha() for char in word) and any(char.isdigit() for char in word)
