"""Whether a picture shows what it should, by its pixels alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from memharness.scenes.changes import Change, apply
from memharness.scenes.drawing import EDGE, SIZE, cell, draw, sign_box
from memharness.scenes.scene import Scene, Thing, from_json, to_json
from memharness.scenes.vocabulary import BACKGROUNDS, COLOURS, LAYOUTS, LIGHTS, MATERIALS, SIZES

if TYPE_CHECKING:
    from PIL.Image import Image

CheckKind: TypeAlias = Literal[
    "colour", "material", "size", "present", "absent", "light", "background", "layout", "text"
]
_BROKEN = {"size": SIZES, "material": MATERIALS, "colour": COLOURS}
_WHOLE = {"light": LIGHTS, "background": BACKGROUNDS, "layout": LAYOUTS}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that a picture should show.

    Attributes:
        kind: `colour`, `material`, `size`, `present` (of the thing, in its place), `absent` (nothing in its place),
            `light`, `background`, `layout` (of the whole), `text` (on the sign).
        expected: the name it should have, or the words; the kind of the thing for `present` and `absent`.
        thing: the thing, as it should be; None for what concerns the whole.
        scene: the rest of what is to be seen, without things.
    """

    kind: CheckKind
    expected: str
    scene: Scene
    thing: Thing | None = None

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        return {
            "kind": self.kind,
            "expected": self.expected,
            "thing": asdict(self.thing) if self.thing else None,
            "scene": to_json(self.scene),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Check:
        """The check that plain JSON states.

        Raises:
            ValueError: for a field that is missing or unknown.
        """
        try:
            thing = Thing(**value["thing"]) if value["thing"] else None
            check = cls(value["kind"], value["expected"], from_json(value["scene"]), thing)
        except (TypeError, KeyError) as error:
            raise ValueError(f"not a check: {error}") from error
        if check.kind not in CheckKind.__args__:  # type: ignore[attr-defined]
            raise ValueError(f"check {check.kind!r} is none of {', '.join(CheckKind.__args__)}")  # type: ignore[attr-defined]
        return check


def holds(check: Check, picture: Image) -> bool:
    """Whether a picture shows what a check expects.

    The part of the picture that is in question is compared with drawings of it, one for each name it might have: the
    check holds where the expected one is nearest, strictly. So it does not ask for the same pixels, and a picture of
    any size and encoding can be checked; a recognisable picture in another style may still fail.

    Args:
        check: what to look for.
        picture: of any size and mode.
    """
    seen = picture.convert("RGB")
    seen = seen if seen.size == SIZE else seen.resize(SIZE)
    boxes = _boxes(check)
    gaps = {name: sum(_gap(seen, draw(scene), box) for box in boxes) for name, scene in _drawings(check)}
    return all(gaps[check.expected] < gap for name, gap in gaps.items() if name != check.expected)


def checks(change: Change, before: Sequence[Scene]) -> tuple[Check, ...]:
    """The checks of an edit: what its result shows and what it was made from does not.

    Args:
        change: what was done.
        before: the scenes it was done to.
    """
    after = apply(change, before)
    empty = replace(after, things=(), text="")
    old = set(before[0].things)
    found = [Check("present", thing.kind, empty, thing) for thing in after.things if thing not in old]
    gone = [thing for thing in before[0].things if thing.place not in {one.place for one in after.things}]
    match change.operation:
        case "recolour" | "rematerial" | "resize":
            field = {"recolour": "colour", "rematerial": "material", "resize": "size"}[change.operation]
            (thing,) = [thing for thing in after.things if thing not in old] or (None,)
            return (Check(field, change.value, empty, thing),) if thing else ()  # type: ignore[arg-type]
        case "relight" | "background" | "view":
            field = {"relight": "light", "background": "background", "view": "layout"}[change.operation]
            return (Check(field, change.value, empty),)  # type: ignore[arg-type]
        case "text":
            return (Check("text", change.value, empty),)
    return (*found, *(Check("absent", thing.kind, empty, thing) for thing in gone))


def _drawings(check: Check) -> Iterator[tuple[str, Scene]]:
    """What the part in question might look like, by name."""
    scene, thing = check.scene, check.thing
    if check.kind in _WHOLE:
        for name in _WHOLE[check.kind]:
            yield name, replace(scene, **{str(check.kind): name})  # type: ignore[arg-type]
    elif check.kind == "text":
        yield check.expected, replace(scene, text=check.expected)
        yield "", scene
        yield "·", replace(scene, text="·")
    elif thing is None:
        raise ValueError(f"check {check.kind!r} needs a thing")
    elif check.kind in _BROKEN:
        for name in _BROKEN[check.kind]:
            yield name, replace(scene, things=(replace(thing, **{check.kind: name}),))
    else:
        there, empty = replace(scene, things=(thing,)), scene
        yield check.expected, there if check.kind == "present" else empty
        yield "otherwise", empty if check.kind == "present" else there


def _boxes(check: Check) -> Sequence[tuple[int, int, int, int]]:
    wide, tall = SIZE
    if check.thing is not None:
        return [cell(check.thing.place, SIZE)]
    if check.kind == "text":
        return [sign_box(SIZE)]
    edge = round(EDGE * wide)  # the rim, where no thing stands
    return [(0, 0, wide, edge), (0, 0, edge, tall), (wide - edge, 0, wide, tall), (0, tall - edge // 2, wide, tall)]


def _gap(one: Image, other: Image, box: tuple[int, int, int, int]) -> float:
    """Summed difference of two pictures in a box, over all pixels and channels."""
    from PIL import ImageChops, ImageStat

    return float(sum(ImageStat.Stat(ImageChops.difference(one.crop(box), other.crop(box))).sum))
