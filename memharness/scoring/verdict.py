"""A judge's verdict read from its reply: right, wrong or unparsed, and unparsed is never counted as wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Literal

Verdict = Literal["right", "wrong", "unparsed"]

_RIGHT = frozenset({"correct", "right", "yes", "true", "accurate"})
_WRONG = frozenset({"incorrect", "wrong", "no", "false", "inaccurate"})
_NEGATORS = frozenset({"not", "never", "cannot", "hardly", "neither", "nor"})
_DOUBTS = frozenset({"if", "whether", "unclear", "unsure"})
_DOUBTS |= {"partially", "partly", "mostly", "largely", "somewhat", "nearly", "almost", "half"}
_LINKS = frozenset({"because", "since", "as", "and", "but", "given", "when", "though", "although"})
_CLAUSE = re.compile(r"([^.,;:!?\n\"{}()]+)([.,;:!?\n\"{}()]|$)")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_LABEL = re.compile(
    r"\b(?:label|verdict|judge?ment|decision|grade|accuracy)\b[\"'*\s]*[:=]([\"'*\s]*[^\W\d_]+)", re.IGNORECASE
)


def word_verdict(reply: str) -> Verdict:
    """Return the verdict that a judge's free text gives.

    Whole words only, and only where they are a verdict: at the end of a clause ("the answer is correct"), before a
    conjunction ("wrong because"), in capitals, or after a label ("Verdict: correct"); "the correct answer" is none.
    "not correct" is wrong. Any doubt ("partially correct", "if it is right", "not wrong"), contradictory verdicts, or
    no verdict at all are unparsed. Labelled verdicts, where there are any, decide alone. Reasoning up to the last
    `</think>` is not read.
    """
    reply = reply.rpartition("</think>")[2]
    if labelled := [match[1] for match in _LABEL.finditer(reply)]:
        return _agreed({_labelled(label) for label in labelled})
    return _agreed(set(_verdicts(reply)))


def boolean_verdict(
    reply: str | Mapping[str, object],
    key: str = "correct",
    *,
    right: Collection[str] = ("true", "yes"),
    wrong: Collection[str] = ("false", "no"),
) -> Verdict:
    """Return the verdict under `key` of a judge's JSON reply.

    A JSON boolean counts, and so do the (lower-case) words of `right` and `wrong`, in any case; a number, null, another
    word, a missing key, or several objects that contradict each other are unparsed. `bool("false")` would be True.

    Args:
        reply: the object, or a text that holds it, bare, fenced or after some prose.
        key: the field that holds the verdict.
        right: the words that mean right.
        wrong: the words that mean wrong.
    """
    objects = [reply] if isinstance(reply, Mapping) else list(json_objects(reply))
    return _agreed({_boolean(found[key], right, wrong) if key in found else "unparsed" for found in objects})


def _agreed(verdicts: Collection[Verdict]) -> Verdict:
    return next(iter(verdicts)) if len(verdicts) == 1 else "unparsed"


def _labelled(label: str) -> Verdict:
    word = label.strip("\"'* \t\n").lower()
    return "right" if word in _RIGHT else "wrong" if word in _WRONG else "unparsed"


def _verdicts(reply: str) -> Iterator[Verdict]:
    for text, end in _CLAUSE.findall(reply):
        if end == "?":
            continue
        words = _WORD.findall(text)
        lower = [word.lower() for word in words]
        for place, word in enumerate(lower):
            if word in _RIGHT | _WRONG and _is_verdict(words, place):
                yield _in_clause(word, lower[:place])


def _is_verdict(words: list[str], place: int) -> bool:
    rest, word = words[place + 1 :], words[place]
    return not rest or rest[0].lower() in _LINKS or word.lower() == "yes" or (word.isupper() and len(word) > 2)


def _in_clause(word: str, before: list[str]) -> Verdict:
    """Return what a verdict word means after the words before it in its clause."""
    denied = [_is_negator(other) for other in before]
    if not _DOUBTS.isdisjoint(before):
        return "unparsed"
    if not any(denied):
        return "right" if word in _RIGHT else "wrong"
    return "wrong" if denied[-1] and word in _RIGHT else "unparsed"


def _is_negator(word: str) -> bool:
    return word in _NEGATORS or word.endswith(("n't", "n’t"))


def _boolean(value: object, right: Collection[str], wrong: Collection[str]) -> Verdict:
    if isinstance(value, bool):
        return "right" if value else "wrong"
    word = value.strip().lower() if isinstance(value, str) else None
    return "right" if word in right else "wrong" if word in wrong else "unparsed"


def json_objects(text: str) -> Iterator[Mapping[str, object]]:
    """Yield the outermost JSON objects of a text, in order; reasoning up to the last `</think>` is not read."""
    decoder, start = json.JSONDecoder(), text.rpartition("</think>")[2].find("{")
    text = text.rpartition("</think>")[2]
    while start >= 0:
        try:
            found, end = decoder.raw_decode(text, start)
        except (json.JSONDecodeError, RecursionError):
            end = start + 1
        else:
            if isinstance(found, dict):
                yield found
        start = text.find("{", end)
