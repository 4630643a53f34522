"""Rules that read a turn: whether it needs earlier pictures, which ones it calls, and what it asks to be done."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from memharness.methods.cma.depiction import Phrase, changes, read
from memharness.methods.cma.referring import Reference, read_reference, segments, without
from memharness.methods.cma.rules import rule

Intent = Literal["new", "chat", "look", "change", "fuse"]


@dataclass(frozen=True)
class Reading:
    """A turn as the rules read it.

    Attributes:
        intent: `new` and `chat` need no earlier picture.
        references: in the order said.
        loose: phrases outside of any reference: what is changed, asked about or taken.
        rule: what decided on the intent.
        takes: whether a thing that is elsewhere is to be put into a picture.
        back: where `loose` alone calls a picture, which one: `last` unless it lacks them, an `earlier` one, or the
            `first` that has them.
    """

    intent: Intent
    references: tuple[Reference, ...]
    loose: tuple[Phrase, ...]
    rule: str
    takes: bool = False
    back: Literal["last", "earlier", "first"] = "last"


def read_turn(words: str, uploads: int = 0, held: int = 1) -> Reading:
    """Read a turn.

    Args:
        words: the user's.
        uploads: pictures that come with it.
        held: pictures there are.
    """
    text = " ".join(unicodedata.normalize("NFKC", words).split())
    spans = list(segments(text))
    references = tuple(read_reference(text[start:end]) for start, end in spans)
    outside = without(text, spans)
    if not held:
        return Reading("new", (), (), "no picture yet")
    intent, why = _intent(text, outside, references, uploads)
    if intent in ("new", "chat"):
        return Reading(intent, (), (), why)
    takes = bool(_TAKES.search(outside)) and not read(outside).places
    back = "first" if _FIRST.search(outside) else "earlier" if _BACK.search(outside) else "last"
    return Reading(intent, references, tuple(_loose(outside)), why, takes, back)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------------- intent

_NEW = rule("new")
_DRAW = rule("draw")
_DRAWING = rule("drawing")
_FUSE = rule("fuse")
_CHANGE = rule("change")
_QUESTION = rule("question")
_GENERAL = rule("general")
_VISUAL = rule("visual")
_WISHED = rule("wished")
_LISTS = rule("lists")
_REMARKS = rule("remarks")
_POLITE = rule("polite")
_NAMES = rule("names")
_MADE = rule("picture_made")
_BECOMES = rule("becomes")
_TAKES = rule("takes")
_BACK = rule("back")
_FIRST = rule("original")
_BRINGS = rule("brings")
_PRAISE = rule("praise")
_SENTENCE = re.compile(r"[^.!?。！？;]+(?:\.(?=\w)[^.!?。！？;]*)*[.!?。！？;]*")


def _intent(text: str, outside: str, references: Sequence[Reference], uploads: int) -> tuple[Intent, str]:
    sentences = [found.strip() for found in _SENTENCE.findall(text) if found.strip(" .!?。！？;")]
    fuse = _FUSE.search(outside) is not None
    several = len(references) > 1 or any(one.count != 1 for one in references)
    last = sentences[-1] if sentences else ""
    asks = bool(_QUESTION.search(last)) and not _imperative(last)
    if not uploads and _is_new(text, outside, references, fuse and several, asks):
        return "new", "a new picture"
    if asks:
        named = bool(uploads) or _names_picture(last)
        if _GENERAL.search(last) and not named:
            return "chat", "a general question"
        if named or _VISUAL.search(last):
            return "look", "a question about what is seen"
        if re.search(r"\b(?:the|it|this|there)\b", last, re.IGNORECASE):
            return "look", "a question about something definite"
        return "chat", "a question"
    if fuse and (several or uploads):
        return "fuse", "several in one"
    if _CHANGE.search(outside) or _FUSE.search(outside) or _WISHED.search(last):
        return "change", "a change"
    if _LISTS.search(text) and not references and not uploads:
        return "new", "things listed"
    if uploads or (references and not _PRAISE.search(last)):
        return "change", "pictures are named"
    if re.match(r"(?:the same|again|same)\b|同样|一样", last, re.IGNORECASE) or not _REMARKS.match(last):
        return "change", "no remark"
    return "chat", "nothing is asked"


def _is_new(text: str, outside: str, references: Sequence[Reference], fuses: bool, asks: bool) -> bool:
    """Whether a new picture is asked for: one that is said to be new, or one that is drawn and calls no other."""
    if fuses or asks:
        return False
    plain = _BECOMES.sub(" ", text)
    drawing, drawn = _DRAWING.search(plain), _DRAW.search(plain)
    if _NEW.search(plain) and (drawing or ":" in plain or drawn or not _CHANGE.search(outside)):
        return True
    firm = any(one.form != "look" or not one.says_nothing for one in references)
    return bool(drawn) and not firm and bool(drawing or _MADE.search(plain))


def _imperative(sentence: str) -> bool:
    """Whether what looks like a question asks for something to be done: `could you make …?`."""
    polite = _POLITE.match(sentence)
    return polite is not None and not _GENERAL.search(sentence[polite.end() :])


def _names_picture(sentence: str) -> bool:
    """Whether a question is about a picture that it names: `in the shop picture, …`, `look at …`, `between … and …`."""
    return any(True for _ in segments(sentence)) and _NAMES.search(sentence) is not None


def _loose(outside: str) -> Iterator[Phrase]:
    """What a turn names outside of references, without what a change is to make new."""
    for clause in re.split(r"[.;!?。！？]|\s¶\s", _BRINGS.sub(" ", outside)):
        made = changes(clause)
        new = {change.target for change in made if change.operation == "add" and _indefinite(clause)}
        found = read(clause)
        for phrase in found.phrases:
            if (phrase.sort == "thing" and phrase not in new) or (phrase.sort == "setting" and _LOCATED.search(clause)):
                yield phrase


_LOCATED = re.compile(r"\b(?:in|at|from|of) the\b|里|中", re.IGNORECASE)


def _indefinite(clause: str) -> bool:
    return bool(re.search(r"\b(?:a|an|another|some|one more|two|three|new)\b", clause, re.I)) or bool(
        re.search(r"[一几]?[个只座盏把艘辆棵朵条本块台面顶]|加", clause)
    )


@dataclass(frozen=True)
class Requests:
    """What a turn asks to be done, apart from how it calls pictures.

    Attributes:
        clauses: each asks for one change.
        told: what is said of a picture that is brought.
        merges: whether several pictures are to become one, whole.
    """

    clauses: tuple[str, ...]
    told: tuple[str, ...]
    merges: bool


_TOLD = rule("told")


def requests(words: str) -> Requests:
    """The clauses of a turn that ask for something."""
    text = " ".join(unicodedata.normalize("NFKC", words).split())
    outside = without(text, list(segments(text)))
    parts = [part for part in re.split(r"(?<=[.;!?。！？])\s*|\s¶\s", outside) if part and part.strip(" ,.;!?。！？")]
    told = tuple(part for part in parts if _TOLD.search(part))
    whole = tuple(part for part in re.split(r"(?<=[.;!?。！？])\s*", text) if part and _TOLD.search(part))
    clauses = tuple(part for part in parts if part not in told)
    taken = re.search(
        r"\b(?:put|take|place|add|bring|move|copy|insert|hang|set|lift|transfer|borrow)\b|放|加|移|搬|贴", outside, re.I
    )
    return Requests(clauses, whole or told, bool(_FUSE.search(outside)) and not (taken and read(outside).phrases))
