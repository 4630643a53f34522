"""What a picture shows as far as words tell: phrases of a text, the change a request makes, and a picture's lineage."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from memharness.methods.cma.lexicon import Token, lexicon
from memharness.methods.cma.rules import rule

ATTRIBUTES = ("colour", "material", "size")
NAMING = ("thing", "setting", "word")
Operation = Literal["attribute", "light", "view", "add", "remove", "move", "text"]

_QUOTED = re.compile("[\"'“‘「『](?P<text>[^\"'”’」』“‘「『]{1,80})[\"'”’」』]")
_REMOVE = rule("remove")
_ADD = rule("add")
_MOVE = rule("move")
_TEXT = re.compile(r"\b(?:says?|said|reads?|write|wrote|written|lettering|words|caption)\b|写|字")
_UNQUOTED = rule("unquoted")
_NEGATED = re.compile(
    r"\b(?:not|n't|isn't|without|other than|no longer|no|except)\b|不是|没有|并非|不为|非", re.IGNORECASE
)
_LIGHTING = re.compile(r"\b(?:lights?|lighting|illumination|lit)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Phrase:
    """A thing, place or other word with what stands before it: `red wooden lamp`.

    Attributes:
        name: what the head names.
        sort: of the head: `thing`, `setting` or `word`.
        marks: (sort, name) of each attribute.
        start: token number of its first word.
        end: token number after its head.
    """

    name: str
    sort: str
    marks: frozenset[tuple[str, str]] = frozenset()
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Change:
    """What a request changes.

    Attributes:
        operation: what is done.
        target: what it is done to; None if the whole.
        values: (sort, name) of what becomes of it.
    """

    operation: Operation
    target: Phrase | None = None
    values: frozenset[tuple[str, str]] = frozenset()
    text: str = ""


@dataclass(frozen=True, slots=True)
class Depiction:
    """What a picture shows by the words of its making.

    Attributes:
        things: with their attributes.
        words: settings and words that name no known thing.
        light: empty if nothing was said.
        view: empty if nothing was said.
        texts: words written in it.
        whole: whether words say all of it; an upload shows more than was said.
        changes: what made it of its first parent.
    """

    things: tuple[Phrase, ...] = ()
    words: frozenset[str] = frozenset()
    light: str = ""
    view: str = ""
    texts: tuple[str, ...] = ()
    whole: bool = True
    changes: tuple[Change, ...] = ()

    def names(self) -> frozenset[str]:
        """Everything that is named."""
        return self.words | {thing.name for thing in self.things}


@dataclass
class Read:
    """A text taken apart.

    Attributes:
        phrases: in order.
        floating: attribute tokens that stand before no noun (`make it red`).
        lights: light and view tokens.
    """

    tokens: Sequence[Token]
    phrases: list[Phrase] = field(default_factory=list)
    floating: list[tuple[int, Token]] = field(default_factory=list)
    lights: list[tuple[int, Token]] = field(default_factory=list)
    places: list[tuple[int, Token]] = field(default_factory=list)


def read(text: str | Sequence[Token]) -> Read:
    """Phrases of a text: each noun with the attributes right before it (`red wooden lamp`, `红色的木制台灯`)."""
    tokens = lexicon().tokens(unquoted(text)) if isinstance(text, str) else text
    out = Read(tokens)
    held: list[tuple[int, Token]] = []
    for at, token in enumerate(tokens):
        if token.sort in ATTRIBUTES:
            held.append((at, token))
        elif token.sort in NAMING:
            if _is_lighting(tokens, at):
                continue
            start = held[0][0] if held else at
            marks = frozenset((one.sort, one.name) for _, one in held)
            out.phrases.append(Phrase(token.name, token.sort, marks, start, at + 1))
            held = []
        elif not (token.text == "的" and held):
            out.floating += held
            held = []
            if token.sort in ("light", "view"):
                out.lights.append((at, token))
            elif token.sort == "place":
                out.places.append((at, token))
    out.floating += held
    return out


def unquoted(text: str) -> str:
    """A text without what stands in quotes, in NFKC."""
    return _QUOTED.sub(" ", unicodedata.normalize("NFKC", text))


def _is_lighting(tokens: Sequence[Token], at: int) -> bool:
    """Whether `light` means what shines on the scene, not a lamp: no kind of lamp follows or precedes it."""
    if not _LIGHTING.fullmatch(tokens[at].text) and tokens[at].text not in ("光线", "灯光", "光照"):
        return False
    near = tokens[at + 1 : at + 5]
    lit = any(token.sort == "light" for token in (*tokens[max(at - 3, 0) : at], *near))
    return lit or not tokens[at].text.casefold().startswith("light")


def changes(text: str) -> tuple[Change, ...]:
    """The changes that a clause asks for, or tells of (`before the lamp turned red`)."""
    found = read(text)
    quoted = _QUOTED.search(unicodedata.normalize("NFKC", text))
    lowered = text.casefold()
    target = next((phrase for phrase in found.phrases if phrase.sort != "word"), None)
    if target is None:
        target = next(iter(found.phrases), None)
    if quoted and _TEXT.search(lowered):
        return (Change("text", text=quoted["text"].strip()),)
    if bare := _UNQUOTED.search(text):
        return (Change("text", text=(bare["en"] or bare["zh"]).strip()),)
    if _REMOVE.search(lowered) and target:
        return (Change("remove", target),)
    after = [token for at, token in found.floating if target is None or at >= target.end]
    if _MOVE.search(lowered) and target:
        return (Change("move", target, frozenset(("place", token.name) for _, token in found.places)),)
    if after and target and not (_ADD.search(lowered) and not _CHANGING.search(lowered)):
        return (Change("attribute", target, frozenset((token.sort, token.name) for token in after)),)
    if found.lights and (target is None or not _ADD.search(lowered)):
        _, token = found.lights[-1]
        return (Change("light" if token.sort == "light" else "view", None, frozenset({(token.sort, token.name)})),)
    if _ADD.search(lowered) and target:
        return (Change("add", target, frozenset(("place", token.name) for _, token in found.places)),)
    if after:
        return (Change("attribute", target, frozenset((token.sort, token.name) for token in after)),)
    return ()


_CHANGING = rule("changing")


def negated(text: str) -> bool:
    """Whether a phrase says what is not."""
    return _NEGATED.search(text) is not None


def pictured(text: str, *, whole: bool = True) -> Depiction:
    """What a new picture shows by the request that made it; what comes after a colon counts alone, if anything does."""
    text = unicodedata.normalize("NFKC", text)
    _, colon, tail = text.partition(":")
    told = tail if colon and read(tail).phrases else text
    return shown(told, whole=whole)


def shown(text: str, *, whole: bool = True) -> Depiction:
    """Everything that a text names, as a depiction."""
    found = read(text)
    quoted = tuple(match["text"] for match in _QUOTED.finditer(unicodedata.normalize("NFKC", text)))
    lights = {token.sort: token.name for _, token in found.lights}
    return Depiction(
        tuple(phrase for phrase in found.phrases if phrase.sort == "thing"),
        frozenset(phrase.name for phrase in found.phrases if phrase.sort != "thing"),
        lights.get("light", ""), lights.get("view", ""), quoted, whole,
    )  # fmt: skip


def changed(before: Depiction, made: Sequence[Change]) -> Depiction:
    """What is shown after changes."""
    now = before
    for change in made:
        now = _apply(now, change)
    return replace(now, changes=tuple(made))


def _apply(now: Depiction, change: Change) -> Depiction:
    target = change.target
    match change.operation:
        case "light" | "view":
            name = next(iter(change.values))[1]
            return replace(now, light=name) if change.operation == "light" else replace(now, view=name)
        case "text":
            return replace(now, texts=(change.text,))
        case "add" if target:
            return replace(now, things=(*now.things, replace(target, sort="thing")))
        case "remove" if target:
            gone = _meant(now, target)
            return replace(now, things=tuple(thing for at, thing in enumerate(now.things) if at != gone))
        case "attribute" if target:
            place = _meant(now, target)
            sorts = {sort for sort, _ in change.values}
            if place is None:
                marks = frozenset(one for one in target.marks if one[0] not in sorts) | change.values
                return replace(now, things=(*now.things, replace(target, sort="thing", marks=marks)))
            old = now.things[place]
            kept = frozenset(one for one in old.marks | target.marks if one[0] not in sorts)
            new = replace(old, marks=kept | change.values)
            return replace(now, things=(*now.things[:place], new, *now.things[place + 1 :]))
    return now


def _meant(now: Depiction, target: Phrase) -> int | None:
    """The thing that a change is about: of that name, with most of the attributes."""
    named = [(len(thing.marks & target.marks), -at) for at, thing in enumerate(now.things) if thing.name == target.name]
    if named:
        return -max(named)[1]
    marked = [at for at, thing in enumerate(now.things) if target.marks and target.marks <= thing.marks]
    return marked[0] if len(marked) == 1 else None  # under a name of its own


def together(parts: Iterable[Depiction], base: Depiction, taken: Sequence[Phrase] = ()) -> Depiction:
    """What is shown by a picture put together of several.

    Args:
        parts: what they show.
        base: that of the one whose place and light it keeps.
        taken: things taken from the others; if none are named, everything is.
    """
    parts = list(parts)
    words = frozenset().union(*(part.words for part in parts))
    things = dict.fromkeys((*base.things, *(taken or [thing for part in parts for thing in part.things])))
    return replace(base, things=tuple(things), words=words, whole=all(part.whole for part in parts), changes=())


def fit(wanted: Phrase, seen: Depiction) -> float:
    """How well a picture shows a phrase, in [0, 1]: 1 if it does in full, less where an attribute is not known."""
    if wanted.sort != "thing" and not wanted.marks:
        return 1.0 if wanted.name in seen.names() else _alike(wanted.name, seen)
    best = 0.0
    for thing in seen.things:
        if thing.name == wanted.name:
            best = max(best, min((_mark(mark, thing) for mark in wanted.marks), default=1.0))
    if not best and wanted.name in seen.words:
        return 0.6 if wanted.marks else 1.0
    return best or (0.3 if not seen.whole else 0.0)


def _mark(mark: tuple[str, str], thing: Phrase) -> float:
    if mark in thing.marks:
        return 1.0
    sort, name = mark
    if any(sort == other for other, _ in thing.marks):
        return 0.1
    return 0.9 if name in ("plain", "medium") else 0.4  # what was not said


def _alike(word: str, seen: Depiction) -> float:
    """How much of an unknown word is in the words of a picture; Chinese runs share characters."""
    if not word or ord(word[0]) < 0x3400:
        near = max((_shared(word, other) for other in seen.names() if len(other) > 3), default=0.0)
        return 0.8 if near >= 0.75 and len(word) > 4 else 0.0
    text = "".join(sorted(seen.words))
    return 0.9 * sum(character in text for character in word) / len(word)


def _shared(one: str, other: str) -> float:
    """Length of the common beginning over the longer length."""
    length = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        length += 1
    return length / max(len(one), len(other))
