"""Changes to scenes: what an instruction asks for, and the scene it gives."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from memharness.scenes.scene import Scene, Thing

Operation: TypeAlias = Literal[
    "recolour", "rematerial", "resize", "move", "add", "remove", "relight", "background", "view", "text", "fuse"
]
OF_A_THING = ("recolour", "rematerial", "resize", "move", "remove")


@dataclass(frozen=True, slots=True)
class Change:
    """One change.

    Attributes:
        operation: what is done.
        kind: of the thing it is done to (`recolour`, `rematerial`, `resize`, `move`, `remove`); the first thing's if
            it is empty or the scene has none such. For `fuse`, of what is taken from the other scenes; all if empty.
        colour: of that thing, where several are of its kind; any if empty.
        value: the new name (colour, material, size, place, light, background, layout), or the words of `text`.
        thing: what `add` adds; where its place is taken, the first free one is used.
    """

    operation: Operation
    kind: str = ""
    colour: str = ""
    value: str = ""
    thing: Thing | None = None


def apply(change: Change, scenes: Sequence[Scene]) -> Scene:
    """The scene a change gives.

    `fuse` puts the things of the other scenes into the first, each in the place it had or the first free one, up to
    nine; the other changes are done to the first scene, after all are fused where there are several. What a change
    asks of a thing that is not there is left undone.

    Args:
        change: what to do.
        scenes: at least one.

    Raises:
        ValueError: for no scene, or a value that is not in the vocabulary.
    """
    if not scenes:
        raise ValueError("a change needs a scene")
    scene = scenes[0]
    for other in scenes[1:]:
        scene = _fused(scene, other, change)
    match change.operation:
        case "fuse":
            return scene
        case "relight":
            return replace(scene, light=change.value)
        case "background":
            return replace(scene, background=change.value)
        case "view":
            return replace(scene, layout=change.value)
        case "text":
            return replace(scene, text=change.value)
        case "add":
            return scene if change.thing is None else _with(scene, change.thing)
    target = meant(change, scene)
    return scene if target is None else _changed(scene, target, change)


def meant(change: Change, scene: Scene) -> Thing | None:
    """The thing of a scene that a change is about; None where it has none."""
    kind = [thing for thing in scene.things if not change.kind or thing.kind == change.kind]
    exact = [thing for thing in kind if not change.colour or thing.colour == change.colour]
    return next(iter(exact or kind or scene.things), None)


def _changed(scene: Scene, target: Thing, change: Change) -> Scene:
    rest = tuple(thing for thing in scene.things if thing != target)
    if change.operation == "remove":
        return replace(scene, things=rest)
    if change.operation == "move":
        moved = replace(target, place=change.value)
        swapped = tuple(replace(thing, place=target.place) if thing.place == change.value else thing for thing in rest)
        return replace(scene, things=_in_order(scene, target, moved, swapped))
    field = {"recolour": "colour", "rematerial": "material", "resize": "size"}[change.operation]
    return replace(scene, things=_in_order(scene, target, replace(target, **{field: change.value}), rest))


def _in_order(scene: Scene, target: Thing, changed: Thing, rest: tuple[Thing, ...]) -> tuple[Thing, ...]:
    place = scene.things.index(target)
    return (*rest[:place], changed, *rest[place:])


def _fused(scene: Scene, other: Scene, change: Change) -> Scene:
    if change.operation == "fuse" and change.kind:
        kind = [thing for thing in other.things if thing.kind == change.kind]
        return functools.reduce(_with, [one for one in kind if one.colour == change.colour][:1] or kind[:1], scene)
    scene = functools.reduce(_with, other.things, scene)
    return scene if scene.text else replace(scene, text=other.text)


def _with(scene: Scene, thing: Thing) -> Scene:
    free = scene.free()
    if not free:
        return scene
    place = thing.place if thing.place in free else free[0]
    return replace(scene, things=(*scene.things, replace(thing, place=place)))
