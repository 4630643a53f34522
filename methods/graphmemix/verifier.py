"""Node and relation verification by a reader: one call each a question, strict JSON, validated, mended if need be."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any, TypeVar

from memharness.method import MeteredReader
from memharness.reader import Message, Request, Sampling
from memharness.types import MethodError, Text

T = TypeVar("T")

POSITIVE = ("new_fact", "clarification", "corroboration")
ROLES = (*POSITIVE, "redundant", "conflict", "irrelevant")
ATTEMPTS = 3

NODE_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "selected": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"id": {"type": "string"}, "score": {"type": "number", "minimum": 0, "maximum": 5}},
                "required": ["id", "score"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["selected"],
    "additionalProperties": False,
}

ECV_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "candidates": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "direct_support": {"type": "number", "minimum": 0, "maximum": 5},
                    "best_anchor_id": {"type": ["string", "null"]},
                    "incremental_support": {"type": "number", "minimum": 0, "maximum": 5},
                    "role": {"type": "string", "enum": list(ROLES)},
                },
                "required": ["id", "direct_support", "best_anchor_id", "incremental_support", "role"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["candidates"],
    "additionalProperties": False,
}


class Invalid(ValueError):
    """A reply that is not what was asked for; the message tells the model what to mend."""


@dataclass(frozen=True, slots=True)
class Increment:
    """A verified relation: what `candidate` adds once `anchor` is known, on a scale of 0 to 5."""

    candidate: str
    anchor: str
    support: float
    role: str


async def node_scores(
    reader: MeteredReader, payload: Mapping[str, Any], ids: Sequence[str], max_tokens: int
) -> tuple[dict[str, float], int]:
    """Direct support v ∈ [0, 5] of each candidate the verifier selected, and the attempts it took.

    Args:
        reader: of role `verifier`.
        payload: what the model reads, as JSON.
        ids: candidate ids in the payload.
        max_tokens: of the reply.

    Raises:
        MethodError: if no attempt gave valid JSON.
    """
    return await _ask(reader, "verifier.v1", payload, NODE_SCHEMA, max_tokens, lambda value: read_nodes(value, ids))


async def increments(
    reader: MeteredReader, payload: Mapping[str, Any], eligible: Mapping[str, Sequence[str]], max_tokens: int
) -> tuple[list[Increment], int]:
    """Verified relations of the candidates in `eligible` (candidate → anchors it is related to), and the attempts.

    Raises:
        MethodError: if no attempt gave valid JSON.
    """
    return await _ask(reader, "ecv.v1", payload, ECV_SCHEMA, max_tokens, lambda value: read_increments(value, eligible))


def read_nodes(value: Any, ids: Sequence[str]) -> dict[str, float]:
    """Scores from a node verifier's reply.

    Raises:
        Invalid: for an unknown or repeated id, or a score outside 0–5.
    """
    known, scores = set(ids), {}
    for row in _rows(value, "selected"):
        name, score = str(row.get("id")), row.get("score")
        if name not in known:
            raise Invalid(f"id {name!r} is not one of the candidates")
        if name in scores:
            raise Invalid(f"id {name!r} comes twice")
        scores[name] = _score(name, "score", score)
    return scores


def read_increments(value: Any, eligible: Mapping[str, Sequence[str]]) -> list[Increment]:
    """Relations from an ECV reply, normalised as the official code does.

    An odd role is irrelevant, an anchor that is not eligible clears the edge, a positive role without increment is
    irrelevant, and any other role has no increment.

    Raises:
        Invalid: unless every expected id comes exactly once with scores of 0–5.
    """
    seen: list[str] = []
    found: list[Increment] = []
    for row in _rows(value, "candidates"):
        name = str(row.get("id"))
        if name not in eligible or name in seen:
            raise Invalid(f"id {name!r} is {'repeated' if name in eligible else 'not one of the candidates'}")
        seen.append(name)
        _score(name, "direct_support", row.get("direct_support"))
        support = _score(name, "incremental_support", row.get("incremental_support"))
        role, anchor = row.get("role"), row.get("best_anchor_id")
        if role in POSITIVE and support > 0 and anchor in eligible[name]:
            found.append(Increment(name, str(anchor), support, str(role)))
    if missing := [name for name in eligible if name not in seen]:
        raise Invalid(f"{len(missing)} candidates are missing, first {missing[0]}")
    return found


def _rows(value: Any, key: str) -> list[Mapping[str, Any]]:
    rows = value.get(key) if isinstance(value, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise Invalid(f'expected {{"{key}": [objects]}}')
    return rows


def _score(name: object, field: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 5:
        raise Invalid(f"id {name!r}: {field} is {value!r}, expected a number from 0 to 5")
    return float(value)


async def _ask(
    reader: MeteredReader,
    prompt: str,
    payload: Mapping[str, Any],
    schema: Mapping[str, Any],
    max_tokens: int,
    read: Callable[[Any], T],
) -> tuple[T, int]:
    words = json.dumps(payload, ensure_ascii=False, indent=1)
    request = Request(
        (Message("system", (Text(_prompt(prompt)),)), Message("user", (Text(words),))),
        Sampling(max_tokens=max_tokens),
        schema=schema,
    )
    error = ""
    for attempt in range(1, ATTEMPTS + 1):
        reply = await reader.generate(request)
        try:
            return read(_json(reply.text)), attempt
        except Invalid as invalid:
            error = str(invalid)
            mend = f"That reply cannot be used: {error}. Reply with the whole corrected JSON object only."
            turns = (Message("assistant", (Text(reply.text),)), Message("user", (Text(mend),)))
            # Another sample: a reply repeated word for word must not make the next attempt a hit of the request cache.
            request = replace(request, messages=(*request.messages[:2], *turns), sample=attempt)
    raise MethodError(f"{prompt}: no valid JSON in {ATTEMPTS} attempts, last: {error}")


def _json(text: str) -> Any:
    """The one JSON object of a reply, with or without a code fence around it."""
    start, end = text.find("{"), text.rfind("}")
    try:
        return json.loads(text[start : end + 1])
    except (ValueError, RecursionError) as error:
        raise Invalid(f"it is not one JSON object ({error})") from None


@cache
def _prompt(name: str) -> str:
    return (resources.files(__package__) / f"{name}.txt").read_text("utf-8").strip()
