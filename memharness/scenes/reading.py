"""Words into scenes and changes: what the vocabulary knows is read, what was left open is drawn by the seed."""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from memharness.scenes.changes import OF_A_THING, Change
from memharness.scenes.scene import Scene, Thing
from memharness.scenes.vocabulary import (
    BACKGROUNDS,
    COLOURS,
    KINDS,
    LAYOUTS,
    LIGHTS,
    MATERIALS,
    PLACES,
    SIZES,
    Term,
)

TABLES: Mapping[str, Mapping[str, Term]] = {
    "kind": KINDS,
    "colour": COLOURS,
    "material": MATERIALS,
    "size": SIZES,
    "place": PLACES,
    "light": LIGHTS,
    "layout": LAYOUTS,
    "background": BACKGROUNDS,
}
_PLURALS = {"bus": "buses", "box": "boxes", "bench": "benches", "torch": "torches", "butterfly": "butterflies"}
_SAYS = re.compile(
    r"(?:\bwith the words?\b|\bsays?\b|\breads?\b|\bsaying\b|\breading\b|\bwrite\b|\bwritten\b|\blettering\b|写着|写上|"
    r"字样|标上)\s*[:：]?\s*"
    r"(?:[\"“「『'](?P<quoted>[^\"”」』']+)[\"”」』']|(?P<bare>[A-Z0-9][A-Z0-9 ]*[A-Z0-9]|[A-Z0-9]))"
    r"|(?P<zh>[A-Z0-9]+)字样"
)
_HAN = re.compile(r"[\u3400-\u9fff]")
_VERBS = re.compile(
    r"\b(?:make|turn|paint|change|set|recolou?r|repaint|switch|light|move|shift|put|place|add|remove|delete|erase|take|"
    r"show|let|give|have|render|dye|include|leave|drop|merge|combine|fuse|blend|unite)\b|把|将|让|使|给|换|改|移|挪|加|添|去掉|移除|删|拿",
    re.IGNORECASE,
)
_COMMA = re.compile("[，。：；,;:]")
_INTO = re.compile(r"\b(?:to|into|as|with)\b|成|为|到|用", re.IGNORECASE)
_CUES = {
    "fuse": re.compile(
        r"\b(?:merge|combine|fuse|blend|unite|compose|join|together|one (?:picture|image|scene))\b|合并|融合|合成|拼|"
        r"放在一起|合到|同一张",
        re.IGNORECASE,
    ),
    "remove": re.compile(
        r"\b(?:remove|delete|erase|without|drop|leave out|get rid of|take (?:away|out))\b|"
        r"去掉|移除|删|拿走|不要|别再",
        re.IGNORECASE,
    ),
    "add": re.compile(r"\b(?:add|put|place|include)\b|加|添|放上|放一|摆", re.IGNORECASE),
    "move": re.compile(r"\b(?:move|shift|slide)\b|移到|移动|挪", re.IGNORECASE),
}  # fmt: skip
_TAKEN = re.compile(
    r"\b(?:put|take|bring)\b[^.,]*\b(?:from|out of)\b[^.]*\b(?:to|into)\b|里[^，。]*放[进到入]", re.IGNORECASE
)
_BIGGER = re.compile(r"\b(?:bigger|larger|enlarge)\b|放大|变大|大一些", re.IGNORECASE)
_SMALLER = re.compile(r"\b(?:smaller|shrink)\b|缩小|变小|小一些", re.IGNORECASE)


class Mention(NamedTuple):
    """A word of the vocabulary in a text: where it starts and ends, and the name it stands for."""

    start: int
    end: int
    field: str
    name: str


def mentions(words: str) -> list[Mention]:
    """What of the vocabulary a text names, in order; of words that overlap the longest counts."""
    pattern, names = _lexicon()
    return [Mention(m.start(), m.end(), *names[m[0].casefold()]) for m in pattern.finditer(words)]


def read_scene(words: str, seed: int) -> Scene:
    """The scene that words ask for, in English, Chinese or both.

    Attributes belong to the thing named next, English places to the thing named before. Things stand where they are
    said to, else in the first free place; at most nine are read. Where a colon introduces a description, what stands
    before it is not read. What is not said is usual (size, material, daylight,
    eye level); a colour, a background or a thing that is not said at all is drawn by the seed, which is the variant of
    the background as well.

    Args:
        words: any text.
        seed: not negative.
    """
    dice = random.Random(f"read:{seed}")
    text, words = _text_of(words)
    words = _described(words)
    about: dict[str, str] = {}
    pending: dict[str, str] = {}
    things: list[dict[str, str]] = []
    for mention in mentions(words):
        if mention.field in ("light", "layout", "background"):
            about.setdefault(mention.field, mention.name)
        elif mention.field == "kind":
            things.append({**pending, "kind": mention.name})
            pending = {}
        elif mention.field == "place" and not _HAN.match(words[mention.start]) and things and "place" not in things[-1]:
            things[-1]["place"] = mention.name
        else:
            pending[mention.field] = mention.name
    if not things:
        things.append({**pending, "kind": dice.choice(tuple(KINDS))})
    about.setdefault("background", dice.choice(tuple(BACKGROUNDS)))
    return Scene(_placed(things[: len(PLACES)], dice), text=text, variant=seed, **about)


def read_change(words: str) -> Change | None:
    """The change that an instruction asks for; None if it names none.

    Read from the last verb of change on (in Chinese the last clause), so that what a picture is called by (`in the one
    with the red lamp, make …`) is not taken for what is to be done.
    """
    text, rest = _text_of(words)
    if text:
        return Change("text", value=text)
    if _CUES["fuse"].search(rest):
        return Change("fuse")
    if taken := _TAKEN.search(rest):
        return _taking(rest[: taken.end()] if _HAN.search(rest) else rest[taken.start() :], bool(_HAN.search(rest)))
    # Chinese says where before the verb: there a clause is read whole.
    clauses = [comma.end() for comma in _COMMA.finditer(rest)]
    starts = clauses if _HAN.search(rest) else [verb.start() for verb in _VERBS.finditer(rest)]
    found = [change for start in (*reversed(starts), 0) if (change := _change(rest[start:])) is not None]
    whole = [change for change in found if change.kind or change.operation not in OF_A_THING]
    return next(iter([one for one in whole if one.operation == found[0].operation] or found), None)


def _taking(words: str, han: bool) -> Change:
    """Something of one picture is put into another: English names it first, Chinese last before the verb."""
    found = mentions(words)
    kinds = [place for place, mention in enumerate(found) if mention.field == "kind"]
    if not kinds:
        return Change("fuse")
    place = kinds[-1 if han else 0]
    before = found[place - 1] if place else None
    colour = before.name if before is not None and before.field == "colour" else ""
    return Change("fuse", found[place].name, colour)


def _change(words: str) -> Change | None:
    """The change of one clause: what comes after `to` or `into` is the new value, else the last of its field."""
    found = mentions(words)
    into = _INTO.search(words)
    kinds = [mention for mention in found if mention.field == "kind"]
    kind = kinds[0].name if kinds else ""
    if kinds and _CUES["remove"].search(words):
        colour = next((one.name for one in found if one.field == "colour" and one.end <= kinds[0].start), "")
        return Change("remove", kind, colour)
    new = {}
    for mention in found:
        if mention.field not in new or into is None or mention.start > into.start() > -1:
            new[mention.field] = mention.name
    if kinds and "place" in new and _CUES["move"].search(words):
        return Change("move", kind, value=new["place"])
    if kinds and _CUES["add"].search(words):
        (thing,) = _placed(_things(found, words)[:1], random.Random(words))
        return Change("add", thing=thing)
    for field, operation in (
        ("light", "relight"), ("background", "background"), ("layout", "view"),
        ("colour", "recolour"), ("material", "rematerial"), ("size", "resize"), ("place", "move"),
    ):  # fmt: skip
        if field in new:
            before = [one.name for one in found if one.field == "colour" and one.name != new[field]]
            whole = operation in ("relight", "background", "view")
            return Change(operation, "" if whole else kind, "" if whole else next(iter(before), ""), new[field])  # type: ignore[arg-type]
    for cue, size in ((_BIGGER, "large"), (_SMALLER, "small")):
        if cue.search(words):
            return Change("resize", kind, value=size)
    return None


def _described(words: str) -> str:
    """What follows the last colon, if things are named there."""
    rest = re.split("[:：]", words)[-1]
    return rest if any(mention.field == "kind" for mention in mentions(rest)) else words


def _things(found: Sequence[Mention], words: str) -> list[dict[str, str]]:
    pending: dict[str, str] = {}
    things: list[dict[str, str]] = []
    for mention in found:
        if mention.field == "kind":
            things.append({**pending, "kind": mention.name})
            pending = {}
        elif mention.field == "place" and things and not _HAN.match(words[mention.start]):
            things[-1].setdefault("place", mention.name)
        elif mention.field in ("colour", "material", "size", "place"):
            pending[mention.field] = mention.name
    return things


def _placed(things: Sequence[Mapping[str, str]], dice: random.Random) -> tuple[Thing, ...]:
    """Things in places of their own, those that say theirs first."""
    wanted = {thing["place"] for thing in things if "place" in thing}
    free = [place for place in PLACES if place not in wanted]
    taken: set[str] = set()
    made = []
    for thing in things:
        place = thing.get("place", "")
        if not place or place in taken:
            place = free.pop(0)
        taken.add(place)
        made.append(Thing(**{"colour": dice.choice(tuple(COLOURS)), **thing, "place": place}))
    return tuple(made)


def _text_of(words: str) -> tuple[str, str]:
    """The words that are to be written on the sign, and the rest."""
    match = _SAYS.search(words)
    if match is None:
        return "", words
    return (match["quoted"] or match["bare"] or match["zh"]).strip(), words[: match.start()] + words[match.end() :]


@functools.cache
def _lexicon() -> tuple[re.Pattern[str], Mapping[str, tuple[str, str]]]:
    """One pattern of all words, the longest first, and what each stands for."""
    names: dict[str, tuple[str, str]] = {}
    for field, table in TABLES.items():
        for name, term in table.items():
            for word in term.en:
                names.setdefault(word.casefold(), (field, name))
                if field == "kind":
                    names.setdefault(_PLURALS.get(word, f"{word}s").casefold(), (field, name))
            for word in term.zh:
                names.setdefault(word, (field, name))
    ordered = sorted(names, key=lambda word: (-len(word), word))
    parts = [re.escape(word) if _HAN.match(word) else rf"\b{re.escape(word)}\b" for word in ordered]
    return re.compile("|".join(parts), re.IGNORECASE), names
