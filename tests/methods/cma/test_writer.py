"""PAE without a model: palette with names, pHash, words in the picture, and only what is known."""

from __future__ import annotations

import io
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pillow
from PIL.PngImagePlugin import PngInfo

from memharness.episodic import Parent
from memharness.methods.cma.colours import COLOUR_NAMES, colour_name, distance, measure, opened, palette, pixels
from memharness.methods.cma.lexicon import lexicon, stem
from memharness.methods.cma.writer import TAGS, ModelFreeWriter
from tests.methods.cma.sessions import asset, painted


def picture(*colours: str) -> Pillow.Image:
    return Pillow.open(io.BytesIO(painted(*colours))).convert("RGB")


@pytest.mark.parametrize(
    ("code", "name"),
    [("#d63031", "red"), ("#f08c1e", "orange"), ("#fad732", "yellow"), ("#2ea043", "green"), ("#2869d7", "blue"),
     ("#8746af", "purple"), ("#f58cb4", "pink"), ("#7d502d", "brown"), ("#f6f6f0", "white"), ("#26262a", "black"),
     ("#28beb9", "turquoise"), ("#8c8e92", "grey")],
)  # fmt: skip
def test_colours_are_named(code: str, name: str) -> None:
    assert palette(Pillow.new("RGB", (40, 40), code))[0][1:] == (name, 1.0)


@given(st.tuples(*[st.integers(0, 255)] * 3))
def test_every_colour_has_a_name(rgb: tuple[int, int, int]) -> None:
    assert colour_name(*rgb) in COLOUR_NAMES


def test_a_palette_is_by_share_and_repeatable() -> None:
    found = palette(picture("red", "red", "blue"))
    assert [name for _, name, _ in found[:2]] == ["red", "blue"]
    assert all(re.fullmatch("#[0-9a-f]{6}", code) for code, _, _ in found)
    assert found[0][2] == pytest.approx(2 / 3, abs=0.04)
    assert found == palette(picture("red", "red", "blue"))


async def test_a_card_holds_what_is_known_in_the_language_of_the_session() -> None:
    words = "Draw a red wooden lamp and a blue mug."
    one = asset(1, painted("red"), parents=(Parent("image-0", "edit"),), kind="edited")
    card = await ModelFreeWriter().write(one, picture("red", "white"), words, "en")
    assert card.status == "ok"
    assert len(card.tags) >= TAGS
    assert {"red", "wooden", "lamp", "blue", "mug", "white", "edited", "square"} <= set(card.tags)
    assert words in card.description
    assert "Made from image-0" in card.description
    assert card.facts["words"] == words
    assert card.facts["parents"] == [["image-0", "edit"]]
    chinese = await ModelFreeWriter().write(one, picture("red", "white"), "画一盏红色木制台灯", "zh")
    assert chinese.language == "zh"
    assert {"红色", "木制", "台灯", "白色", "编辑", "方形"} <= set(chinese.tags)
    english = await ModelFreeWriter("en").write(one, picture("red"), "画一盏红色木制台灯", "zh")
    assert english.language == "en"
    assert "Asked for in these words" in english.description


async def test_nothing_is_guessed_without_a_picture_and_words() -> None:
    card = await ModelFreeWriter().write(asset(0), None, "", "en")
    assert card.palette == ()
    assert "colours" not in card.facts
    assert "phash" not in card.facts
    assert card.tags == ("generated",)


async def test_words_in_the_picture_are_on_the_card_or_said_to_be_left_out() -> None:
    one, seen = asset(0, painted("red")), picture("red")
    read = await ModelFreeWriter(ocr=lambda _: "SALE\n12").write(one, seen, "", "en")
    assert read.facts["ocr"] == "SALE\n12"
    assert "“SALE”" in read.tags
    assert "“SALE / 12”" in read.description
    off = await ModelFreeWriter().write(one, seen, "", "en")
    assert off.facts["ocr"] is None


async def test_what_a_file_says_beside_its_pixels_is_not_read() -> None:
    said = PngInfo()
    said.add_text("scene", '{"things": ["a green elephant"]}')
    out = io.BytesIO()
    picture("red").save(out, "PNG", pnginfo=said)
    one = asset(0, painted("red"))
    told = await ModelFreeWriter().write(one, Pillow.open(out), "", "en")
    plain = await ModelFreeWriter().write(one, picture("red"), "", "en")
    assert (told.tags, told.description, told.facts) == (plain.tags, plain.description, plain.facts)


def test_near_pictures_are_near() -> None:
    one, two, other = (pixels(picture(*colours)) for colours in (("red",), ("red",), ("blue",)))
    assert distance(one, two) == 0.0
    assert distance(one, other) == 1.0
    assert measure(picture("red", "blue"))["phash"] == measure(picture("red", "blue"))["phash"]
    assert opened(b"no picture") is None


@pytest.mark.parametrize(
    ("word", "one"),
    [("lamps", "lamp"), ("boxes", "box"), ("benches", "bench"), ("cities", "city"), ("glass", "glass"), ("bus", "bus"),
     ("woods", "woods"), ("dog's", "dog"), ("leaves", "leaf"), ("this", "this")],
)  # fmt: skip
def test_nouns_are_made_singular(word: str, one: str) -> None:
    assert stem(word) == one


@pytest.mark.parametrize(
    ("one", "other"),
    [("a scarlet lantern", "the red lamp"), ("the coffee house", "a cafe"), ("at sunset", "in the evening"),
     ("绯红色的灯笼", "红色台灯"), ("夕阳下", "黄昏"), ("made of wood", "wooden"), ("navy parasols", "blue umbrella")],
)  # fmt: skip
def test_synonyms_name_one_thing(one: str, other: str) -> None:
    def names(text: str) -> list[tuple[str, str]]:
        return [(token.sort, token.name) for token in lexicon().tokens(text) if token.sort not in ("stop", "mark")]

    assert names(one) == names(other)


@given(st.text(max_size=60))
def test_any_text_is_cut_into_words_in_order(text: str) -> None:
    tokens = lexicon().tokens(text)
    assert all(one.end <= two.start for one, two in pairwise(tokens))
    assert all(token.start < token.end for token in tokens)
