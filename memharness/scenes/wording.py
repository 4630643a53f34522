"""Scenes in words, in English and Chinese; `read_scene` reads them back."""

from __future__ import annotations

from collections.abc import Sequence

from memharness.scenes.scene import Scene, Thing
from memharness.scenes.vocabulary import BACKGROUNDS, COLOURS, KINDS, LAYOUTS, LIGHTS, MATERIALS, PLACES, SIZES


def describe(scene: Scene, language: str) -> str:
    """A scene in two or three sentences: its things with all they are, then where and in what light.

    Usual sizes and materials, eye level and daylight go without saying.

    Args:
        scene: what to describe.
        language: `en` or `zh`.
    """
    zh = language == "zh"
    things = [_whole(thing, language) for thing in scene.things]
    listed = ("、" if zh else ", ").join(things) if zh else joined(things)
    words = [] if not things else [listed[0].upper() + listed[1:]]
    around = [BACKGROUNDS[scene.background].word(language)]
    around += [LIGHTS[scene.light].word(language)] if scene.light != "day" else []
    around += [LAYOUTS[scene.layout].word(language)] if scene.layout != "level" else []
    words.append(("，" if zh else ", ").join(around) if zh else ", ".join(around).capitalize())
    if scene.text:
        words.append(f"牌上写着“{scene.text}”" if zh else f"It says “{scene.text}”")
    return "".join(f"{one}。" for one in words) if zh else " ".join(f"{one}." for one in words)


def name_thing(thing: Thing, language: str, fields: Sequence[str] = ("size", "colour", "material")) -> str:
    """A thing with some of what it is, without an article: `small red wooden lamp`."""
    tables = {"size": SIZES, "colour": COLOURS, "material": MATERIALS}
    usual = {"size": "medium", "material": "plain"}
    said = [(field, str(getattr(thing, field))) for field in ("size", "colour", "material") if field in fields]
    words = [tables[field][name].word(language) for field, name in said if usual.get(field) != name]
    return ("" if language == "zh" else " ").join([*words, KINDS[thing.kind].word(language)])


def article(noun: str) -> str:
    """An English noun phrase with `a` or `an`."""
    return f"{'an' if noun[0] in 'aeio' or noun.startswith('umbrella') else 'a'} {noun}"


def joined(words: Sequence[str], last: str = " and ") -> str:
    """English words in a row: `a`, `a and b`, `a, b and c`."""
    return last.join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _whole(thing: Thing, language: str) -> str:
    name, place = name_thing(thing, language), PLACES[thing.place].word(language)
    return f"{place}一个{name}" if language == "zh" else f"{article(name)} {place}"
