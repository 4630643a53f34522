"""How a user may call pictures, and which pictures that means: a reference is kept only if it means one thing.

`resolve` reads a reference as a listener would, who has the whole session before them and nothing else: it looks at
every picture there is, not at the one that is meant. A turn's gold set is what its reference resolves to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from memharness.benchmarks.m2ca.scenario.story import Picture, Story
from memharness.scenes import Thing

AMBIGUOUS = ("before", "liked", "contrast")  # forms that need what was said or done, not what is seen
FORMS = (
    "last", "previous", "same", "nth", "topic_nth", "look", "before", "liked", "upload", "composed", "contrast",
    "both", "three", "pair", "nths",
)  # fmt: skip
NTHS = 8  # ordinals beyond this are nothing people say


@dataclass(frozen=True, slots=True)
class Ref:
    """A way to call pictures; which fields count depends on the form.

    Attributes:
        form: `last` (it), `previous` (the one before it), `same` (an earlier one, just spoken of), `nth` (of all),
            `topic_nth` (of a topic; -1 is the latest), `look` (by any of topic, thing and light), `before` (a change
            was made), `liked`, `upload`, `composed` (from several), `contrast` (with a thing of this kind, but not of
            this colour), `both` and `three` (all of a topic, or all with a thing), `pair` (of two references), `nths`
            (two ordinals).
        n: counts from 0.
        parts: of a pair.
    """

    form: str
    topic: str = ""
    kind: str = ""
    colour: str = ""
    material: str = ""
    light: str = ""
    n: int = 0
    m: int = 0
    operation: str = ""
    value: str = ""
    parts: tuple[Ref, ...] = ()


def resolve(ref: Ref, story: Story) -> frozenset[int] | None:
    """The pictures a reference means; None where it means none, or might mean another."""
    pictures = story.pictures
    last = len(pictures) - 1
    match ref.form:
        case "last":
            return _set(last) if story.focus == last >= 0 else None
        case "previous":
            return _set(last - 1) if story.focus == last >= 1 else None
        case "same":
            return _set(story.focus) if story.focus is not None and story.focus != last else None
        case "nth":
            return _set(ref.n) if ref.n < len(pictures) > 1 else None
        case "nths":
            return frozenset((ref.n, ref.m)) if ref.n != ref.m and max(ref.n, ref.m) < len(pictures) > 2 else None
        case "topic_nth":
            return _nth(story.of_topic(ref.topic), ref.n)
        case "both" | "three":
            found = [picture for picture in pictures if _looks(picture, ref)]
            wanted = 2 if ref.form == "both" else 3
            pure = all(len(picture.topics) == 1 for picture in found)
            return frozenset(picture.index for picture in found) if len(found) == wanted and pure else None
        case "look":
            return _look(story, ref)
        case "before":
            made = [one for one in pictures if one.change is not None and _did(one, ref)]
            return _set(made[0].parents[0]) if len(made) == 1 and len(made[0].parents) == 1 else None
        case "liked":
            return _one(frozenset(story.liked))
        case "upload" | "composed":
            return _one(frozenset(one.index for one in pictures if one.kind == ref.form))
        case "contrast":
            having = [one for one in pictures if any(thing.kind == ref.kind for thing in one.scene.things)]
            others = [one.index for one in having if not any(_is(thing, ref) for thing in one.scene.things)]
            return _one(frozenset(others)) if len(others) < len(having) else None
        case "pair":
            sets = [resolve(part, story) for part in ref.parts]
            found_sets = [one for one in sets if one is not None]
            union = frozenset().union(*found_sets)
            return union if len(found_sets) == len(sets) and len(union) == sum(map(len, found_sets)) else None
    raise ValueError(f"form {ref.form!r} is none of {', '.join(FORMS)}")


def references(target: int, story: Story) -> Iterator[Ref]:
    """All ways to call one picture that mean it and nothing else."""
    for ref in dict.fromkeys(_candidates(story.pictures[target], story)):
        if resolve(ref, story) == _set(target):
            yield ref


def plurals(story: Story) -> Iterator[Ref]:
    """All ways to call several pictures at once."""
    for topic in story.topics:
        for form in ("both", "three"):
            yield from _kept(Ref(form, topic=topic.name), story)
    things = dict.fromkeys((t.kind, t.colour) for picture in story.pictures for t in picture.scene.things)
    for kind in dict.fromkeys(kind for kind, _ in things):
        for form in ("both", "three"):
            yield from _kept(Ref(form, kind=kind), story)
    for kind, colour in things:
        yield from _kept(Ref("both", kind=kind, colour=colour), story)
    count = min(len(story.pictures), NTHS)
    for n in range(count):
        for m in range(n + 1, count):
            yield from _kept(Ref("nths", n=n, m=m), story)


def _kept(ref: Ref, story: Story) -> Iterator[Ref]:
    if resolve(ref, story) is not None:
        yield ref


def _candidates(picture: Picture, story: Story) -> Iterator[Ref]:
    yield from (Ref("last"), Ref("previous"), Ref("same"), Ref("liked"), Ref("upload"), Ref("composed"))
    if picture.index < NTHS:
        yield Ref("nth", n=picture.index)
    for topic in picture.topics:
        members = [one.index for one in story.of_topic(topic)]
        if len(members) > 1:
            place = members.index(picture.index)
            yield Ref("topic_nth", topic=topic, n=place)
            yield Ref("topic_nth", topic=topic, n=-1)
    yield from _looks_of(picture, story)
    for child in story.pictures:
        if child.change is not None and child.parents[:1] == (picture.index,):
            change = child.change
            kind = change.thing.kind if change.thing else change.kind
            yield Ref("before", operation=change.operation, kind=kind, value=change.value)
    for thing in picture.scene.things:
        for other in story.pictures:
            for rival in other.scene.things:
                if rival.kind == thing.kind and rival.colour != thing.colour:
                    yield Ref("contrast", kind=thing.kind, colour=rival.colour)


def _looks_of(picture: Picture, story: Story) -> Iterator[Ref]:
    """By what is seen: the shortest that suffices, and where several are as short, all."""
    light = picture.scene.light
    things = [Ref("look", kind=thing.kind) for thing in picture.scene.things]
    things += [replace(ref, colour=thing.colour) for ref, thing in zip(things, picture.scene.things, strict=True)]
    things += [
        Ref("look", kind=thing.kind, colour=thing.colour, material=thing.material)
        for thing in picture.scene.things
        if thing.material != "plain"
    ]
    topics = [Ref("look", topic=topic) for topic in picture.topics]
    lights = [Ref("look", light=light)] if light != "day" else []
    levels: list[list[Ref]] = [
        [*topics, *lights, *things],
        [replace(one, light=light) for one in (*topics, *things)],
        [replace(one, topic=topic.topic) for one in things for topic in topics],
        [replace(one, topic=topic.topic, light=light) for one in things for topic in topics],
    ]
    for level in levels:
        found = [ref for ref in level if resolve(ref, story) == _set(picture.index)]
        if found:
            yield from found
            return


def _look(story: Story, ref: Ref) -> frozenset[int] | None:
    """Those that look so; a topic counts pictures put together of several as one of its own, so these make it open."""
    found = [picture for picture in story.pictures if _looks(picture, ref)]
    return _set(found[0].index) if len(found) == 1 else None


def _looks(picture: Picture, ref: Ref) -> bool:
    if ref.topic and ref.topic not in picture.topics:
        return False
    if ref.light and picture.scene.light != ref.light:
        return False
    return not ref.kind or any(_is(thing, ref) for thing in picture.scene.things)


def _is(thing: Thing, ref: Ref) -> bool:
    wanted = (("kind", ref.kind), ("colour", ref.colour), ("material", ref.material))
    return all(not name or getattr(thing, field) == name for field, name in wanted)


def _did(picture: Picture, ref: Ref) -> bool:
    change = picture.change
    if change is None or change.operation != ref.operation:
        return False
    kind = change.thing.kind if change.thing else change.kind
    return kind == ref.kind and change.value == ref.value


def _nth(members: Sequence[Picture], n: int) -> frozenset[int] | None:
    """The nth of a topic: nothing put together of several may come before it, or at all for the latest."""
    if len(members) < 2 or n >= len(members) or n >= NTHS:
        return None
    counted = members if n < 0 else members[: n + 1]
    return None if any(len(one.topics) > 1 for one in counted) else _set(members[n].index)


def _set(index: int) -> frozenset[int]:
    return frozenset((index,))


def _one(found: frozenset[int]) -> frozenset[int] | None:
    return found if len(found) == 1 else None
