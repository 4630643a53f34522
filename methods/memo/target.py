"""What the trained extractor and manager read and write: one form for training and for inference (paper eq. 2 and 4).

A target is one line of JSON. `extraction` and `plan` write it, `read_extraction` and `read_plan` read it back; the
schemas are for readers that can be held to one.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, TypeVar

from memharness.methods.memo.units import Action, EvidenceUnit, Plan, Record, Span, Template
from memharness.reader import Message, Request, Sampling
from memharness.types import Question, Text

Extraction = Sequence[tuple[str, tuple[Span, ...]]]
"""Source ids, most important first, each with its key spans in characters of the record's text."""

E = TypeVar("E", Action, Template)

MARKS = ("«", "»")
"""What stands around a key span in a manager's prompt."""
DIGITS = 2  # of a confidence

EXTRACTION_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "evidence": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "source": {"type": "string"},
                    "quotes": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["source", "quotes"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["evidence"],
    "additionalProperties": False,
}

PLAN_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "units": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "action": {"type": "string", "enum": [action.value for action in Action]},
                    "confidence": {"type": "number", "minimum": 0, "maximum": 1},
                },
                "required": ["id", "action", "confidence"],
                "additionalProperties": False,
            },
        },
        "usage": {"type": "integer", "minimum": 0},
        "templates": {
            "type": "array",
            "items": {"type": "string", "enum": [template.value for template in Template]},
            "minItems": 1,
        },
    },
    "required": ["units", "usage", "templates"],
    "additionalProperties": False,
}


class NotInForm(ValueError):
    """A reply that is not in the form of its target. The message says what is wrong with it."""


# ------------------------------------------------------------------------------------------------------ the extractor


def extractor_request(question: Question, records: Sequence[Record], budget: int | None) -> Request:
    """What the extractor E(q, R, B) is asked (eq. 2). Every record stands on one line, whatever its white space.

    Args:
        question: q.
        records: R, in the order in which they are shown.
        budget: B in tokens; None for no limit.
    """
    lines = [*_asked(question, budget), "Records:", *(f"[{one.id}] {_line(one)}" for one in records)]
    most = 128 + 2 * (budget or 512)
    return _request("extractor.v1", lines, most)


def _line(record: Record) -> str:
    head = " · ".join(filter(None, (record.title, record.time.replace("T", " "), record.speaker)))
    return _one_line(f"{head}: {record.text}" if head else record.text)


def extraction(found: Extraction, records: Iterable[Record]) -> str:
    """The extractor's target e*: sources with their spans as quotes; no quote where a span is the whole record.

    Raises:
        ValueError: a source that is not among the records, or a span outside its text.
    """
    known = {record.id: record for record in records}
    rows = [{"source": source, "quotes": _quotes(source, spans, known)} for source, spans in found]
    return _encode({"evidence": rows})


def _quotes(source: str, spans: Sequence[Span], known: Mapping[str, Record]) -> list[str]:
    if source not in known:
        raise ValueError(f"source {source!r} is not among the records")
    text = known[source].text
    for start, end in spans:
        if not (0 <= start < end <= len(text) and text[start:end].strip()):
            raise ValueError(f"span {start}–{end} of {source!r} holds no words of its {len(text)} characters")
    quotes = [_one_line(text[start:end]) for start, end in sorted(spans)]
    return [] if quotes == [_one_line(text)] else quotes


def read_extraction(text: str, records: Iterable[Record]) -> list[tuple[str, tuple[Span, ...]]]:
    """Sources and key spans from the extractor's reply, in its order; white space in quotes is taken as equal.

    A source named twice keeps its first place and all its quotes. Several equal quotes are the places of those words
    one after another. An unknown source, and a quote that its source does not hold, come back as an entry without
    spans: that is in the form, but no evidence, and whoever makes units rejects it.

    Raises:
        NotInForm: the reply is not one JSON object of the form, or was cut off.
    """
    known = {record.id: record for record in records}
    found: dict[str, list[Span]] = {}
    lost: list[str] = []
    for at, row in enumerate(_rows(_object(text, ("evidence",)), "evidence", ("source", "quotes"))):
        source, quotes = row["source"], row["quotes"]
        if not isinstance(source, str):
            raise NotInForm(f"evidence[{at}].source is {_shown(source)}, not text")
        if not isinstance(quotes, list) or not all(isinstance(quote, str) and quote.strip() for quote in quotes):
            raise NotInForm(f"evidence[{at}].quotes is {_shown(quotes)}, not a list of texts with words")
        if source not in known:
            lost.append(source)
            continue
        spans = found.setdefault(source, [])
        places = _places(known[source].text, quotes)
        spans += [place for place in places if place is not None]
        lost += [source] * places.count(None)
    named = [(source, tuple(sorted(set(spans)))) for source, spans in found.items() if spans]
    return [*named, *((source, ()) for source in lost)]


def _places(text: str, quotes: Sequence[str]) -> list[Span | None]:
    """Where each quote stands; the whole text if there is no quote. Each is looked for behind the one before, first."""
    if not quotes:
        return [_bounds(text)]
    places: list[Span | None] = []
    behind = 0
    for quote in quotes:
        wanted = re.compile(r"\s+".join(map(re.escape, quote.split())))
        match = wanted.search(text, behind) or wanted.search(text)
        places.append(match.span() if match else None)
        behind = match.end() if match else behind
    return places


def _bounds(text: str) -> Span | None:
    """From the first to the last character that is no white space."""
    return (len(text) - len(text.lstrip()), len(text.rstrip())) if text.strip() else None


# -------------------------------------------------------------------------------------------------------- the manager


def manager_request(question: Question, units: Sequence[EvidenceUnit], budget: int | None) -> Request:
    """What the manager M(q, U, B) is asked (eq. 4): each unit on one line, its key spans between « and ».

    Args:
        question: q.
        units: U, best first.
        budget: B in tokens; None for no limit.
    """
    lines = [*_asked(question, budget), "Units:", *(f"[{unit.id}] {_one_line(_marked(unit))}" for unit in units)]
    return _request("manager.v1", lines, 64 + 32 * len(units))


def _marked(unit: EvidenceUnit) -> str:
    """A unit's content with its key spans marked; nothing is marked where all of it is one key span."""
    if unit.highlights == ((0, len(unit.content)),):
        return unit.content
    text, at = "", 0
    for start, end in unit.highlights:
        text += unit.content[at:start] + MARKS[0] + unit.content[start:end] + MARKS[1]
        at = end
    return text + unit.content[at:]


def plan(decided: Plan, units: Iterable[EvidenceUnit]) -> str:
    """The manager's target y*: an action and a confidence for each unit, the usage wished, templates in order."""
    rows = [
        {
            "id": unit.id,
            "action": decided.action(unit).value,
            "confidence": round(decided.confidence.get(unit.id, 0.0), DIGITS),
        }
        for unit in units
    ]
    templates = [template.value for template in decided.templates]
    return _encode({"units": rows, "usage": decided.target_usage, "templates": templates})


def read_plan(text: str, units: Iterable[EvidenceUnit]) -> Plan:
    """The plan in the manager's reply. A unit it does not name is dropped.

    Raises:
        NotInForm: the reply is not one JSON object of the form, was cut off, or names a unit that is not there, a unit
            twice, or an action or template that does not exist.
    """
    known = {unit.id for unit in units}
    value = _object(text, ("units", "usage", "templates"))
    actions: dict[str, Action] = {}
    confidence: dict[str, float] = {}
    for at, row in enumerate(_rows(value, "units", ("id", "action", "confidence"))):
        name = row["id"]
        if not isinstance(name, str) or name not in known:
            raise NotInForm(f"units[{at}].id is {_shown(name)}, which is no unit; there are {', '.join(sorted(known))}")
        if name in actions:
            raise NotInForm(f"units[{at}].id: {name} comes twice")
        actions[name] = _one_of(Action, row["action"], f"units[{at}].action")
        confidence[name] = _share(row["confidence"], f"units[{at}].confidence")
    usage, named = value["usage"], value["templates"]
    if type(usage) is not int or usage < 0:
        raise NotInForm(f"usage is {_shown(usage)}, not a number of tokens")
    if not isinstance(named, list) or not named:
        raise NotInForm(f"templates is {_shown(named)}, not a list of templates")
    templates = tuple(_one_of(Template, one, f"templates[{at}]") for at, one in enumerate(named))
    return Plan(actions, confidence, usage, tuple(dict.fromkeys(templates)))


def _share(value: object, where: str) -> float:
    number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    if not 0 <= number <= 1:
        raise NotInForm(f"{where} is {_shown(value)}, not a number from 0 to 1")
    return number


def _one_of(kind: type[E], value: object, where: str) -> E:
    try:
        return kind(str(value))
    except ValueError:
        raise NotInForm(f"{where} is {_shown(value)}, not one of {', '.join(kind)}") from None


# --------------------------------------------------------------------------------------------------------- their form


def _asked(question: Question, budget: int | None) -> list[str]:
    words = _one_line(" ".join(filter(None, (question.text(), question.derived_text()))))
    asked = [f"Question: {words}"]
    for choice in question.choices:
        said = " ".join(part.text for part in choice.parts if isinstance(part, Text))
        asked.append(f"{choice.key}. {_one_line(said)}")
    return [*asked, f"Budget: {budget} tokens" if budget is not None else "Budget: none"]


def _request(prompt: str, lines: Iterable[str], most: int) -> Request:
    words = "\n".join(lines)
    return Request(
        (Message("system", (Text(_prompt(prompt)),)), Message("user", (Text(words),))), Sampling(max_tokens=most)
    )


@cache
def _prompt(name: str) -> str:
    return (resources.files(__package__) / f"{name}.txt").read_text("utf-8").strip()


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _encode(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _object(text: str, keys: Sequence[str]) -> Mapping[str, Any]:
    """The one JSON object of a reply, with or without a code fence around it."""
    start, end = text.find("{"), text.rfind("}")
    try:
        value = json.loads(text[start : end + 1], parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise NotInForm(f"the reply is not one whole JSON object ({error}): {_shown(text)}") from None
    _keys(value, keys, "the reply")
    return dict(value)


def _rows(value: Mapping[str, Any], field: str, keys: Sequence[str]) -> list[Mapping[str, Any]]:
    rows = value[field]
    if not isinstance(rows, list):
        raise NotInForm(f"{field} is {_shown(rows)}, not a list")
    for at, row in enumerate(rows):
        _keys(row, keys, f"{field}[{at}]")
    return rows


def _keys(value: object, keys: Sequence[str], where: str) -> None:
    if not isinstance(value, dict):
        raise NotInForm(f"{where} is {_shown(value)}, not an object")
    for key in keys:
        if key not in value:
            raise NotInForm(f"{where} has no {key}")
    for key in value:
        if key not in keys:
            raise NotInForm(f"{where} has {key!r}, which is no field of it; its fields are {', '.join(keys)}")


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")


def _shown(value: object) -> str:
    said = repr(value)
    return said if len(said) <= 80 else f"{said[:77]}…"
