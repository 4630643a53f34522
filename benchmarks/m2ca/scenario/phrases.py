"""Turns in words: the plan's names put into the sentences of a phrase file."""

from __future__ import annotations

import functools
import json
import random
import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from memharness.benchmarks.m2ca.scenario.planning import Plan
from memharness.benchmarks.m2ca.scenario.references import Ref
from memharness.benchmarks.m2ca.scenario.topics import TOPICS, Topic
from memharness.scenes import Change, Scene, Thing
from memharness.scenes.changes import meant
from memharness.scenes.vocabulary import BACKGROUNDS, COLOURS, KINDS, LIGHTS, MATERIALS, PLACES, SIZES
from memharness.scenes.wording import article, joined

PHRASES = ("dev", "held-out")
SYNONYMS = 0.2  # how often a name is said by another word than captions and first requests use


@functools.cache
def phrase_file(phrases: str) -> Mapping[str, Any]:
    """The sentences of a set, by language."""
    path = Path(__file__).parent / f"phrases_{phrases.replace('-', '_')}.json"
    found: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


class Told(NamedTuple):
    """A turn in words: the user's, the assistant's (empty where a picture is all), and what of the user's is fixed."""

    text: str
    reply: str
    fixed: tuple[str, ...]


class Wording:
    """Words for plans, in one language, from one set of sentences; the dice decide which."""

    def __init__(self, language: str, phrases: str, dice: random.Random) -> None:
        """Open a set.

        Args:
            language: `en` or `zh`.
            phrases: `dev` or `held-out`.
            dice: choose the sentence and the synonyms.
        """
        self.language = language
        self.zh = language == "zh"
        self.table: Mapping[str, Any] = phrase_file(phrases)[language]
        self.dice = dice

    def turn(self, plan: Plan) -> Told:
        """What the user says, and what the assistant replies where it replies in words."""
        group, _, act = plan.act.partition(".")
        sentence = self.dice.choice(self.table[group][act])
        reply = ""
        if isinstance(sentence, list):
            sentence, reply = sentence
        slots = _Slots(self._slots(plan))
        words = sentence.format_map(slots)
        fixed = tuple(slots[name] for _, name, _, _ in string.Formatter().parse(sentence) if name)
        return Told(words if self.zh else _capital(words), self._answer(plan, reply), fixed)

    def ref(self, ref: Ref) -> str:
        """A reference as a noun phrase."""
        names = self.table["ref"]
        if ref.form == "pair":
            return self._pick("ref", "pair").format(a=self.ref(ref.parts[0]), b=self.ref(ref.parts[1]))
        form = _form(ref)
        slots = {
            "nth": self.table["nth"][ref.n] if ref.n >= 0 else "",
            "mth": self.table["nth"][ref.m],
            "number": str(ref.n + 1),
            "other": str(ref.m + 1),
            "topic": self._topic(TOPICS[ref.topic]) if ref.topic else "",
            "kind": self._name("kind", ref.kind) if ref.kind else "",
            "colour": self._name("colour", ref.colour) if ref.colour else "",
            "thing": self._thing(ref.kind, ref.colour, ref.material) if ref.kind else "",
            "light": self.table["light"].get(ref.light or ref.value, ""),
            "view": self.table["view"].get(ref.value, ""),
            "place": PLACES[ref.value].word(self.language) if ref.value in PLACES else "",
            "value": self._value(ref.operation, ref.value),
        }
        sentence: str = self.dice.choice(names[form])
        return sentence.format_map(_Slots(slots))

    def change(self, change: Change, scene: Scene) -> str:
        """A change as a clause that begins with a verb."""
        target = meant(change, scene)
        twin = target is not None and sum(one.kind == target.kind for one in scene.things) > 1
        thing = "" if target is None else self._thing(target.kind, target.colour if twin else "", "")
        new = change.thing
        slots = {
            "thing": thing,
            "value": self._value(change.operation, change.value),
            "light": self.table["light"].get(change.value, ""),
            "view": self.table["view"].get(change.value, ""),
            "place": PLACES[new.place if new else change.value].word(self.language)
            if new or change.operation == "move"
            else "",
            "new": "" if new is None else self._an(self._thing(new.kind, new.colour, new.material, plainly=True)),
        }
        return self._pick("change", change.operation).format_map(_Slots(slots))

    def things(self, scene: Scene) -> str:
        """What a new picture is to show, and in which light where it is not day."""
        names = [self._an(self._thing(one.kind, one.colour, one.material, plainly=True)) for one in scene.things]
        light = "" if scene.light == "day" else self.table["light"][scene.light]
        if self.zh:
            return "、".join(f"一个{name}" for name in names) + (f"，{light}" if light else "")
        return joined(names) + (f", {light}" if light else "")

    def _slots(self, plan: Plan) -> dict[str, str]:
        slots = {slot: self.ref(ref) for slot, ref in plan.refs.items()}
        for name, value in plan.about.items():
            if isinstance(value, Topic):
                slots[name] = value.title(self.language) if name == "topic" else self._topic(value)
            elif isinstance(value, Thing):
                slots[name] = self._thing(value.kind, value.colour, "")
            elif name in ("kind", "colour"):
                slots[name] = self._name(name, str(value))
        scene = plan.about.get("scene")
        if isinstance(scene, Scene):
            slots["things"] = self.things(scene)
            if plan.change is not None and plan.task == "edit":
                slots["change"] = self.change(plan.change, scene)
                slots["Change"] = _capital(slots["change"])
        if "question" in plan.about:
            asked = self._pick("question", str(plan.about["question"])).format_map(_Slots(slots))
            slots |= {"question": asked, "Question": _capital(asked)}
        return slots

    def _answer(self, plan: Plan, reply: str) -> str:
        if plan.answer is None:
            return reply
        name, value = plan.answer
        said = self.table["said"]
        if name == "compare":
            assert isinstance(value, tuple)
            return self._difference(*value)
        if name == "share":
            return str(said["yes" if value else "no"])
        tables = {"colour": COLOURS, "material": MATERIALS, "place": PLACES, "light": LIGHTS}
        words = tables[name][str(value)].word(self.language) if name in tables else str(value)
        return f"{words}。" if self.zh else f"{_capital(words)}."

    def _difference(self, one: Scene, other: Scene) -> str:
        said = self.table["said"]
        found: list[str] = []
        for kind in dict.fromkeys(thing.kind for thing in (*one.things, *other.things)):
            name = KINDS[kind].word(self.language)
            first, second = ([thing for thing in scene.things if thing.kind == kind] for scene in (one, other))
            looks = [self._looks(things) for things in (first, second)]
            if not first or not second:
                found.append(said["only"].format(kind=name))
            elif looks[0] != looks[1]:
                found.append(said["thing"].format(kind=name, one=looks[0], other=looks[1]))
            elif [thing.place for thing in first] != [thing.place for thing in second]:
                found.append(said["place"].format(kind=name))
        if one.light != other.light:
            lights = [LIGHTS[scene.light].word(self.language) for scene in (one, other)]
            found.append(said["light"].format(one=lights[0], other=lights[1]))
        found += [said["view"]] * (one.layout != other.layout) + [said["text"]] * (one.text != other.text)
        if not found:
            return str(said["same"])
        return "；".join(found) + "。" if self.zh else _capital("; ".join(found)) + "."

    def _looks(self, things: Sequence[Thing]) -> str:
        tables = {"size": SIZES, "colour": COLOURS, "material": MATERIALS}
        words = [
            [tables[field][str(getattr(thing, field))].word(self.language) for field in ("size", "colour", "material")]
            for thing in things
        ]
        return "、".join("".join(one) for one in words) if self.zh else joined([" ".join(one) for one in words])

    def _pick(self, group: str, key: str) -> str:
        found: str = self.dice.choice(self.table[group][key])
        return found

    def _value(self, operation: str, value: str) -> str:
        tables = {"recolour": COLOURS, "rematerial": MATERIALS, "resize": SIZES}
        if operation == "recolour" and value:
            return self._name("colour", value)
        if operation == "relight":
            return str(self.table["light"].get(value, value))
        return tables[operation][value].word(self.language) if operation in tables else value

    def _thing(self, kind: str, colour: str, material: str, *, plainly: bool = False) -> str:
        """A thing by what is said of it; `plainly` with usual words alone, as for what is new."""
        words = [self._name("colour", colour, plainly)] if colour else []
        words += [MATERIALS[material].word(self.language)] if material and material != "plain" else []
        return ("" if self.zh else " ").join([*words, self._name("kind", kind, plainly)])

    def _name(self, field: str, name: str, plainly: bool = False) -> str:
        others = self.table["names"][field].get(name, ())
        usual = {"kind": KINDS, "colour": COLOURS}[field][name].word(self.language)
        return self.dice.choice(others) if others and not plainly and self.dice.random() < SYNONYMS else usual

    def _topic(self, topic: Topic) -> str:
        """A topic by its name, or with another word for its setting."""
        title = topic.title(self.language)
        others = self.table["names"]["background"].get(topic.background, ())
        if not others or self.dice.random() >= SYNONYMS:
            return title
        words = sorted(BACKGROUNDS[topic.background].words(self.language), key=len, reverse=True)
        usual = next(word for word in words if word in title)
        return title.replace(usual, self.dice.choice(others))

    def _an(self, name: str) -> str:
        return name if self.zh else article(name)


def _form(ref: Ref) -> str:
    """The key of a reference's sentences."""
    if ref.form == "look":
        said = {"topic": ref.topic, "thing": ref.kind, "light": ref.light}
        return ".".join(["look", *(name for name, value in said.items() if value)])
    if ref.form in ("both", "three"):
        return f"{ref.form}.{'topic' if ref.topic else 'thing'}"
    if ref.form == "before":
        return f"before.{ref.operation}"
    return "topic_latest" if ref.form == "topic_nth" and ref.n < 0 else ref.form


class _Slots(dict[str, str]):
    """Slots of a sentence: one that the plan does not fill is a fault of the phrase file."""

    def __missing__(self, key: str) -> str:
        raise KeyError(f"a sentence has the slot {key!r}, which this act does not fill")


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
