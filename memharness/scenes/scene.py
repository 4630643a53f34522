"""What a drawn picture shows: a scene of things on a background, in a light; as values, JSON and parts of a grid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from memharness.scenes.vocabulary import BACKGROUNDS, COLOURS, KINDS, LAYOUTS, LIGHTS, MATERIALS, PLACES, SIZES


@dataclass(frozen=True, slots=True)
class Thing:
    """One thing of a scene. Every field is a name of the vocabulary.

    Attributes:
        kind: what it is (`lamp`).
        colour: of its body; fittings keep their own.
        material: of its body.
        place: a cell of the 3×3 grid; two things of a scene never share one.
        size: of its cell.
    """

    kind: str
    colour: str = "red"
    material: str = "plain"
    place: str = "middle"
    size: str = "medium"

    def __post_init__(self) -> None:
        """Hold it to the vocabulary."""
        _known("kind", self.kind, KINDS)
        _known("colour", self.colour, COLOURS)
        _known("material", self.material, MATERIALS)
        _known("place", self.place, PLACES)
        _known("size", self.size, SIZES)


@dataclass(frozen=True, slots=True)
class Scene:
    """What a picture shows.

    Attributes:
        things: at most nine, each in a cell of its own.
        background: a name of the vocabulary.
        light: a name of the vocabulary.
        layout: from where it is seen, a name of the vocabulary: how high its horizon lies.
        text: written on a sign below the things; none if empty.
        variant: which of the many views of its background, from 0; two variants never draw the same pixels.
    """

    things: tuple[Thing, ...] = ()
    background: str = "studio"
    light: str = "day"
    layout: str = "level"
    text: str = ""
    variant: int = 0

    def __post_init__(self) -> None:
        """Hold it to the vocabulary and the grid."""
        _known("background", self.background, BACKGROUNDS)
        _known("light", self.light, LIGHTS)
        _known("layout", self.layout, LAYOUTS)
        places = [thing.place for thing in self.things]
        if len(set(places)) < len(places):
            raise ValueError(f"two things in one place: {', '.join(places)}")
        if self.variant < 0:
            raise ValueError(f"variant {self.variant}: counts from 0")

    def free(self) -> tuple[str, ...]:
        """The places where no thing is, in the order in which a picture fills up."""
        taken = {thing.place for thing in self.things}
        return tuple(place for place in PLACES if place not in taken)


def to_json(scene: Scene) -> dict[str, Any]:
    """A scene as plain JSON."""
    return asdict(scene) | {"things": [asdict(thing) for thing in scene.things]}


def from_json(value: Mapping[str, Any]) -> Scene:
    """The scene that plain JSON states.

    Raises:
        ValueError: for a field that is missing, unknown or none of the vocabulary's.
    """
    try:
        things = tuple(Thing(**thing) for thing in value["things"])
        return Scene(**{**value, "things": things})
    except (TypeError, KeyError) as error:
        raise ValueError(f"not a scene: {error}") from error


def _known(field: str, name: str, names: Mapping[str, Any]) -> None:
    if name not in names:
        raise ValueError(f"{field} {name!r} is none of {', '.join(names)}")
