"""Scenes: drawn the same everywhere, said and read back, changed, and checked by pixels alone."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from memharness.scenes import (
    Change,
    Check,
    Scene,
    Thing,
    apply,
    checks,
    describe,
    draw,
    from_json,
    holds,
    png,
    read_change,
    read_scene,
    scene_of,
    to_json,
)
from memharness.scenes.drawing import CHUNK, encoded
from memharness.scenes.reading import mentions
from memharness.scenes.vocabulary import (
    BACKGROUNDS,
    COLOURS,
    KINDS,
    LAYOUTS,
    LIGHTS,
    MATERIALS,
    PLACES,
    SIZES,
)

RED_LAMP = Thing("lamp", "red", "wood", "left", "small")
BLUE_MUG = Thing("mug", "blue", "plain", "middle")
SCENE = Scene((RED_LAMP, BLUE_MUG), "workshop", "day", "level", variant=3)
OTHER = Scene((Thing("boat", "green", "plain", "middle"),), "harbour", variant=4)


def one_of(names: Any) -> st.SearchStrategy[str]:
    return st.sampled_from(tuple(names))


@st.composite
def scenes(drawing: st.DrawFn, least: int = 0) -> Scene:
    places = drawing(st.lists(one_of(PLACES), min_size=least, max_size=4, unique=True))
    things = tuple(
        Thing(
            drawing(one_of(KINDS)), drawing(one_of(COLOURS)), drawing(one_of(MATERIALS)), place, drawing(one_of(SIZES))
        )
        for place in places
    )
    return Scene(
        things,
        drawing(one_of(BACKGROUNDS)),
        drawing(one_of(LIGHTS)),
        drawing(one_of(LAYOUTS)),
        drawing(st.sampled_from(("", "OPEN", "A7"))),
        drawing(st.integers(0, 2**48)),
    )


# --------------------------------------------------------------------------------------------- drawn, kept, read back


@settings(max_examples=30, deadline=None)
@given(scenes())
def test_a_picture_carries_its_scene(scene: Scene) -> None:
    assert scene_of(png(scene, (64, 64))) == scene
    assert from_json(to_json(scene)) == scene


@settings(max_examples=15, deadline=None)
@given(scenes())
def test_the_same_scene_is_the_same_bytes(scene: Scene) -> None:
    assert png(scene) == png(from_json(to_json(scene)))


def test_another_process_draws_the_same_bytes() -> None:
    code = (
        "import hashlib; from memharness.scenes import read_scene, png; "
        "scene = read_scene('a red lamp and a glass ball in a forest at night, it says HELLO', 5); "
        "print(hashlib.sha256(png(scene)).hexdigest())"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1


def test_every_name_draws_something_of_its_own() -> None:
    """No two kinds, colours, materials, lights, views, backgrounds or variants give one picture."""
    base = Scene((BLUE_MUG,), "studio")
    for field, names in (("kind", KINDS), ("colour", COLOURS), ("material", MATERIALS), ("size", SIZES)):
        shown = [
            draw(replace(base, things=(replace(BLUE_MUG, **{field: name}),)), (96, 96)).tobytes() for name in names
        ]
        assert len(set(shown)) == len(names), field
    for field, names in (("background", BACKGROUNDS), ("light", LIGHTS), ("layout", LAYOUTS)):
        shown = [draw(from_json(to_json(base) | {field: name}), (96, 96)).tobytes() for name in names]
        assert len(set(shown)) == len(names), field
    assert draw(base) != draw(replace(base, variant=1))


def test_size_is_as_asked_and_held_to_bounds() -> None:
    assert draw(SCENE, (120, 80)).size == (120, 80)
    for size in ((15, 64), (64, 4097)):
        with pytest.raises(ValueError, match="a side is from 16 to 4096 pixels"):
            draw(SCENE, size)


@pytest.mark.parametrize("data", [b"", b"not a picture", b"\x89PNG\r\n\x1a\n" + b"\0" * 40])
def test_what_is_no_picture_carries_no_scene(data: bytes) -> None:
    assert scene_of(data) is None


def test_other_pictures_and_broken_chunks_carry_no_scene() -> None:
    from PIL.PngImagePlugin import PngInfo

    file = io.BytesIO()
    draw(SCENE).save(file, "JPEG")
    assert scene_of(file.getvalue()) is None
    assert scene_of(encoded(draw(SCENE))) is None
    for words in ("[]", "{", '{"things": [{"kind": "dragon"}]}', '{"things": [], "wings": 2}', "5"):
        notes = PngInfo()
        notes.add_text(CHUNK, words)
        file = io.BytesIO()
        draw(SCENE, (32, 32)).save(file, "PNG", pnginfo=notes)
        assert scene_of(file.getvalue()) is None


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Thing("dragon"), "kind 'dragon' is none of"),
        (lambda: Thing("lamp", "crimson"), "colour 'crimson'"),
        (lambda: Scene(light="noon"), "light 'noon'"),
        (lambda: Scene((RED_LAMP, replace(BLUE_MUG, place="left"))), "two things in one place"),
        (lambda: Scene(variant=-1), "counts from 0"),
    ],
)
def test_nothing_outside_the_vocabulary(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


# ---------------------------------------------------------------------------------------------------------- in words


@settings(max_examples=150, deadline=None)
@given(scenes(least=1), st.sampled_from(("en", "zh")))
def test_a_description_is_read_back(scene: Scene, language: str) -> None:
    assert read_scene(describe(scene, language), scene.variant) == scene


def test_descriptions() -> None:
    assert describe(SCENE, "en") == "A small red wooden lamp on the left and a blue mug in the middle. Workshop."
    assert describe(replace(OTHER, light="dusk", text="OPEN"), "en") == (
        "A green boat in the middle. Harbour, at dusk. It says “OPEN”."
    )
    assert describe(SCENE, "zh") == "左边一个小号红色木制台灯、正中间一个蓝色杯子。工坊。"


@given(st.text(max_size=200), st.integers(0, 999))
@settings(max_examples=60, deadline=None)
def test_any_words_make_a_scene(words: str, seed: int) -> None:
    scene = read_scene(words, seed)
    assert scene.things
    assert scene == read_scene(words, seed)
    read_change(words)


def test_what_is_left_open_is_drawn_by_the_seed() -> None:
    assert len({read_scene("something nice", seed) for seed in range(20)}) > 15
    assert read_scene("two boats and a cat", 1).things[0].kind == "boat"
    described = read_scene("Leave the lamp as it is and draw a new one: a red boat in a harbour", 1)
    assert [thing.kind for thing in described.things] == ["boat"]
    assert [mention.name for mention in mentions("a teal mushroom in moonlight")] == ["turquoise", "mushroom", "night"]


CHANGES = [
    ("make the lamp green", Change("recolour", "lamp", value="green")),
    ("In the picture with the red boat, make the boat yellow", Change("recolour", "boat", value="yellow")),
    ("Change the colour of the mug to black.", Change("recolour", "mug", value="black")),
    ("turn the wooden chair into glass", Change("rematerial", "chair", value="glass")),
    ("Set the scene at night", Change("relight", value="night")),
    ("Show it from above.", Change("view", value="high")),
    ("Put the harbour in the background", Change("background", value="harbour")),
    ("remove the red mug", Change("remove", "mug", "red")),
    ("move the cat to the top left", Change("move", "cat", value="top left")),
    ("make the house bigger", Change("resize", "house", value="large")),
    ("write OPEN on it", Change("text", value="OPEN")),
    ("merge both into one picture", Change("fuse")),
    ("把船改成黄色", Change("recolour", "boat", value="yellow")),
    ("换成夜晚", Change("relight", value="night")),
    ("去掉椅子", Change("remove", "chair")),
    ("把背景换成森林", Change("background", value="forest")),
    ("把两张图合成一张", Change("fuse")),
    ("Put the blue ball from the picture with the cat into the one at night", Change("fuse", "ball", "blue")),
    ("Take the clock out of the second picture and add it to this one", Change("fuse", "clock")),
    ("把有猫的那张图里的蓝色皮球放进第二张图", Change("fuse", "ball", "blue")),
    ("hang up a board with the word HELLO", Change("text", value="HELLO")),
    ("it is lovely weather", None),
]


@pytest.mark.parametrize(("words", "change"), CHANGES)
def test_changes_are_read(words: str, change: Change | None) -> None:
    assert read_change(words) == change


def test_something_to_add_is_read_whole() -> None:
    change = read_change("add a small blue ball on the left")
    assert change == Change("add", thing=Thing("ball", "blue", "plain", "left", "small"))
    assert read_change("在左边加一个红色气球") == Change("add", thing=Thing("balloon", "red", place="left"))


# ----------------------------------------------------------------------------------------------------------- changes


def test_changes_are_made() -> None:
    assert apply(Change("recolour", "lamp", value="green"), [SCENE]).things[0].colour == "green"
    assert apply(Change("remove", "lamp"), [SCENE]).things == (BLUE_MUG,)
    assert apply(Change("relight", value="night"), [SCENE]) == replace(SCENE, light="night")
    swapped = apply(Change("move", "lamp", value="middle"), [SCENE])
    assert [thing.place for thing in swapped.things] == ["middle", "left"]
    fused = apply(Change("fuse"), [SCENE, OTHER])
    assert [thing.kind for thing in fused.things] == ["lamp", "mug", "boat"]
    assert fused.things[2].place == "right"  # where it stood is taken
    assert fused.background == "workshop"
    one = apply(Change("fuse", "mug", "blue"), [OTHER, SCENE])
    assert [(thing.kind, thing.place) for thing in one.things] == [("boat", "middle"), ("mug", "left")]
    assert apply(Change("fuse", "robot"), [OTHER, SCENE]) == OTHER
    with pytest.raises(ValueError, match="needs a scene"):
        apply(Change("fuse"), [])


def test_a_full_picture_takes_no_more() -> None:
    full = Scene(tuple(Thing("ball", "red", place=place) for place in PLACES))
    assert apply(Change("fuse"), [full, OTHER]) == full


KINDS_OF_CHANGE = st.sampled_from(
    ["recolour", "rematerial", "resize", "move", "add", "remove", "relight", "background", "view", "text", "fuse"]
)


@settings(max_examples=40, deadline=None)
@given(scenes(least=1), scenes(least=1), KINDS_OF_CHANGE, st.data())
def test_what_a_change_did_is_seen(scene: Scene, other: Scene, operation: str, data: st.DataObject) -> None:
    """Checks hold on what a change made, by pixels, and one of them fails on what it was made of."""
    scene = replace(scene, text="")
    thing = scene.things[0]
    tables: dict[str, Any] = {
        "recolour": COLOURS, "rematerial": MATERIALS, "resize": SIZES, "relight": LIGHTS, "background": BACKGROUNDS,
        "view": LAYOUTS, "move": scene.free(), "text": ("OPEN", "24"),
    }  # fmt: skip
    value = data.draw(one_of(tables[operation])) if operation in tables else ""
    new = Thing(data.draw(one_of(KINDS)), data.draw(one_of(COLOURS)), place=scene.free()[0])
    change = Change(operation, thing.kind, thing.colour, value, new if operation == "add" else None)  # type: ignore[arg-type]
    before = (scene, other) if operation == "fuse" else (scene,)
    after = apply(change, before)
    found = checks(change, before)
    picture = Image.open(io.BytesIO(png(after)))
    assert all(holds(check, picture) for check in found)
    if after != scene:
        assert found
        assert not all(holds(check, draw(scene)) for check in found)
    assert [Check.from_json(check.to_json()) for check in found] == list(found)


def test_checks_look_at_pixels_alone() -> None:
    """A picture whose chunk says something else is judged by what it shows, in any size and encoding."""
    change = Change("recolour", "lamp", value="green")
    (check,) = checks(change, [SCENE])
    after = draw(apply(change, [SCENE]))
    lying = encoded(draw(SCENE), apply(change, [SCENE]))
    assert not holds(check, Image.open(io.BytesIO(lying)))
    file = io.BytesIO()
    after.resize((500, 500)).save(file, "JPEG", quality=80)
    assert holds(check, Image.open(io.BytesIO(file.getvalue())))
    assert not holds(check, Image.new("RGB", (64, 64), "white"))


NO_CHECKS: list[dict[str, Any]] = [
    {},
    {"kind": "colour", "expected": "red", "scene": to_json(SCENE)},
    {"kind": "smell", "expected": "", "scene": to_json(SCENE), "thing": None},
]


@pytest.mark.parametrize("value", NO_CHECKS)
def test_a_check_that_is_none(value: Any) -> None:
    with pytest.raises(ValueError, match="check"):
        Check.from_json(value)
