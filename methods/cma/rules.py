"""The patterns that turns are read by, from a versioned file: a heading a pattern, its lines joined as they stand."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh",
    "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth",
    "twentieth",
)  # fmt: skip
NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
CHINESE = "一二三四五六七八九十"
PICTURES = (
    r"(?:pictures?|images?|photos?|photographs?|pics?|drawings?|paintings?|illustrations?|renders?|renderings?|scenes?|"
    r"shots?|versions?|sketch(?:es)?|ones?|snapshots?|variants?|results?|drafts?|states?|artworks?|creations?|visuals?|"
    r"graphics?|editions?|prints?)"
)
"""Words for a picture, as a pattern."""
_SLOTS = {
    "<PICTURES>": PICTURES,
    "<ORDINALS>": "|".join(ORDINALS),
    "<EARLY>": "|".join(ORDINALS[:8]),
    "<NUMBERS>": "|".join(NUMBERS),
}


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    text = (resources.files(__package__) / "rules.v1.txt").read_text("utf-8")
    found = {}
    for section in re.split(r"^# ", text, flags=re.MULTILINE)[1:]:
        name, _, body = section.partition("\n")
        pattern = body.strip("\n").replace("\n", "")
        for slot, words in _SLOTS.items():
            pattern = pattern.replace(slot, words)
        found[name.strip()] = re.compile(pattern, re.IGNORECASE)
    return found


def rule(name: str) -> re.Pattern[str]:
    """A pattern by its heading; English in any case, and Chinese."""
    return _patterns()[name]
