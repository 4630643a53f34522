"""What a judge's reply says under a rubric, or why it says nothing that can be relied on. Never a guess."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from memharness.judging.rubric import Rubric
from memharness.reader import Reply
from memharness.scoring.verdict import boolean_verdict, json_objects, word_verdict

Verdict = float | str
"""A level (0 and 1 where there is right and wrong), or a label."""

_DECIMAL = re.compile(r"\d+(?:\.\d+)?|\.\d+")
_SCORE = re.compile(r"^[\s*\"']*score[\s*\"']*[:=](.*)$", re.IGNORECASE | re.MULTILINE)
LINE = r"^[\s*\"']*{}[\s*\"']*[:=]\s*[*\"']*(\w+(?:\.\d+)?)[\s*\"']*\.?\s*$"  # a field and its points
_ANY_WORD = ("accurate", "correct", "matches", "true", "yes")  # ATM-Bench: memqa/utils/evaluator


class Unread(Exception):
    """No verdict can be read; the message says why."""


def read(rubric: Rubric, reply: Reply, question: str, *, official: bool = False) -> Verdict:
    """The verdict of a reply.

    JSON decides where there is any: the field `rubric.key` of the object, or in a reply on many answers of the one
    entry of this question; objects that contradict each other say nothing. A number may also stand there as text, if
    the text is a decimal number and nothing else: "0.5" is 0.5, "1/2" and "50%" are no verdicts. Without JSON, and
    where the rubric asks for words at all, the words it asks for are read: a verdict word by the rules of
    `word_verdict`, a line `Score: 0.5` or a decimal number alone, a label alone. Words of a reply that was cut at its
    token limit are not read, since the verdict may have been still to come.

    Args:
        rubric: the rubric that asked.
        reply: the judge's reply; reasoning up to the last `</think>` is not read.
        question: id of the question, for rubrics that judge many answers in one call.
        official: read as the benchmark's own parser does, where `rubric.official` names a difference.

    Raises:
        Unread: there is none.
    """
    if official and rubric.official == "any-word":
        return _any_word(rubric, reply)
    found = set(_verdicts(rubric, reply, question))
    verdict = found.pop() if len(found) == 1 else None
    if verdict is None:
        raise Unread(f"the judge's reply holds {'several verdicts' if found else 'no verdict'}")
    return _held(rubric, verdict, official)


def points(rubric: Rubric, reply: Reply) -> dict[str, float | None]:
    """The points that a reply gives each thing of `rubric.points`, by score name; None where it does not apply.

    As `read`: JSON decides where there is any, and every object has to say the same; else, of a reply that was not cut,
    one line `Field: 7` for each.

    Raises:
        Unread: any of them is missing, contradicts itself, or is none of the rubric's levels.
    """
    assert rubric.points
    objects = list(json_objects(reply.text))
    words = reply.text.rpartition("</think>")[2]
    if not objects and (not rubric.in_words or reply.finish == "length"):
        raise Unread("the judge's reply holds no verdict")
    found = {}
    for field, score in rubric.points.items():
        said = [one[field] for one in objects if field in one]
        if not objects:
            said = [_point(word) for word in re.findall(LINE.format(re.escape(field)), words, re.I | re.M)]
        if not said or any(type(one) is not type(said[0]) or one != said[0] for one in said):
            raise Unread(f"the judge's reply holds {'several points' if said else 'no points'} for {field}")
        found[score] = _points_of(rubric, field, said[0])
    return found


def _point(word: str) -> object:
    return float(word) if _DECIMAL.fullmatch(word) else None if word.lower() in ("none", "null") else word


def _points_of(rubric: Rubric, field: str, value: object) -> float | None:
    if value is None and field in rubric.optional:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value not in rubric.levels:
        levels = f"{rubric.levels[0]:g} to {rubric.levels[-1]:g}"
        raise Unread(f"the judge gives {field} {value!r}, none of the points from {levels}")
    return float(value)


def _verdicts(rubric: Rubric, reply: Reply, question: str) -> Iterable[Verdict | None]:
    objects = list(json_objects(reply.text))
    if rubric.case:
        yield _value(rubric, _entry(objects, question).get(rubric.key))
    elif objects:
        yield from (_value(rubric, one.get(rubric.key)) for one in objects)
    elif rubric.in_words and reply.finish != "length":
        yield _words(rubric, reply.text.rpartition("</think>")[2])


def _entry(objects: Iterable[Mapping[str, object]], question: str) -> Mapping[str, object]:
    """The one entry of a question in an array, bare or as the only list of an object."""
    entries: list[Mapping[str, object]] = []
    for one in objects:
        lists = [value for value in one.values() if isinstance(value, list)]
        entries += [entry for entry in lists[0] if isinstance(entry, dict)] if len(lists) == 1 else [one]
    own = [entry for entry in entries if entry.get("question_id") == question]
    if len(own) != 1:
        what = "no entry" if not own else f"{len(own)} entries"
        raise Unread(f"the judge's reply holds {what} for this question")
    return own[0]


def _value(rubric: Rubric, value: object) -> Verdict | None:
    """A verdict from the value of the reply's JSON field."""
    if rubric.parser == "binary":
        said = boolean_verdict({rubric.key: value}, rubric.key, right=rubric.right, wrong=rubric.wrong)
        return None if said == "unparsed" else float(said == "right")
    if rubric.parser == "labels":
        return _label(rubric, value) if isinstance(value, str) else None
    if isinstance(value, str):
        return float(value) if _DECIMAL.fullmatch(value.strip()) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _words(rubric: Rubric, text: str) -> Verdict | None:
    """A verdict from words, in the form that the rubric asks for."""
    if rubric.parser == "binary":
        said = word_verdict(text)
        return None if said == "unparsed" else float(said == "right")
    if rubric.parser == "labels":
        return _label(rubric, text)
    scores = {line.strip(" \t\r*\"'").removesuffix(".") for line in _SCORE.findall(text) or [text.strip()]}
    return _value(rubric, scores.pop()) if len(scores) == 1 else None


def _label(rubric: Rubric, text: str) -> str | None:
    word = " ".join(re.sub(r"[_*\"'.-]", " ", text).split()).lower()
    word = word.removeprefix("verdict:").strip()
    return word if word in rubric.values else None


def _held(rubric: Rubric, verdict: Verdict, official: bool) -> Verdict:
    """The verdict as one that the rubric knows."""
    if not isinstance(verdict, float) or rubric.parser == "binary":
        return verdict
    if not 0 <= verdict <= 1:
        raise Unread(f"the judge's score {verdict:g} is not between 0 and 1")
    if official and rubric.official == "three-levels":
        # Mem-Gallery and MemEye: their prompts ask for five levels, their parsers know three.
        return 0.0 if verdict < 0.25 else 0.5 if verdict < 0.75 else 1.0
    if rubric.parser == "nearest":
        return float(min(rubric.levels, key=lambda level: (abs(level - verdict), level)))
    if verdict not in rubric.levels:
        raise Unread(f"the judge's score {verdict:g} is not one of {', '.join(f'{one:g}' for one in rubric.levels)}")
    return verdict


def _any_word(rubric: Rubric, reply: Reply) -> float:
    """ATM-Bench's parser: JSON if it can be read, else right if one of five words stands anywhere in the reply."""
    said = boolean_verdict(reply.text, rubric.key, right=rubric.right, wrong=rubric.wrong)
    if said == "unparsed":
        return float(any(word in reply.text.lower() for word in _ANY_WORD))
    return float(said == "right")
