"""PAE by a reader: the form is held to, a failure is an outcome, and a reader without sight gets words and facts."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pillow

from memharness.methods.cma.replies import NotInForm
from memharness.methods.cma.writer_reader import SCHEMA, WORDS, ReaderWriter, card_request, read_card
from memharness.reader import Reply
from memharness.types import Image, Usage
from tests.methods.cma.sessions import Scripted, asset, facts, painted, shown

TAGS = ["red lamp", "oak table", "night", "left", "still life"]
CARD = json.dumps({"tags": TAGS, "description": "word " * WORDS})
DATA = painted("red")
PICTURES = {"image-0": Image("0" * 64, "image/png", 48, 48)}


def picture() -> Pillow.Image:
    return Pillow.open(io.BytesIO(DATA)).convert("RGB")


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        ("a lovely lamp", "no JSON object"),
        ('{"tags": ["a", "b", "c", "d", "e"]}', "no JSON object with tags and description"),
        (json.dumps({"tags": TAGS[:4], "description": "word " * WORDS}), "4 different tags"),
        (json.dumps({"tags": ["a", "a ", "a", "b", "c", "d"], "description": "word " * WORDS}), "4 different tags"),
        (json.dumps({"tags": "a, b, c, d, e", "description": "word " * WORDS}), "no list of texts"),
        (json.dumps({"tags": TAGS, "description": "word " * (WORDS - 1)}), "99 words"),
        (json.dumps({"tags": TAGS, "description": 7}), "no text"),
        ("<think>" + CARD, "never leaves its reasoning"),
    ],
)
def test_what_is_out_of_form_is_refused(reply: str, fault: str) -> None:
    with pytest.raises(NotInForm, match=fault):
        read_card(reply)


def test_text_around_a_card_and_reasoning_do_not_matter() -> None:
    assert read_card(f"<think>{{}}</think>Here you are:\n```json\n{CARD}\n```")[0] == tuple(TAGS)


def test_chinese_characters_count_as_words() -> None:
    assert read_card(json.dumps({"tags": TAGS, "description": "灯" * WORDS}))[1] == "灯" * WORDS


@given(st.text())
def test_a_reply_is_read_or_refused_and_nothing_else(reply: str) -> None:
    try:
        tags, description = read_card(reply)
    except NotInForm:
        return
    assert len(tags) >= 5
    assert description


async def test_a_card_in_form_is_kept_with_what_was_measured() -> None:
    reader = Scripted(CARD, image=True, schema=True)
    card = await ReaderWriter(reader, PICTURES).write(asset(0, DATA), picture(), "画一盏红色台灯", "zh")
    assert (card.status, card.tags, card.language) == ("ok", tuple(TAGS), "en")
    assert card.facts["seen"] is True
    assert card.facts["words"] == "画一盏红色台灯"
    assert card.facts["phash"]
    assert card.palette
    assert card.cost["tokens"] == 10
    request = reader.asked[0]
    assert request.schema == SCHEMA
    assert PICTURES["image-0"] in request.parts()
    assert "in English" in shown(request)
    assert "画一盏红色台灯" in shown(request)


async def test_the_language_is_an_option() -> None:
    reader = Scripted(CARD)
    await ReaderWriter(reader, PICTURES, "session").write(asset(0, DATA), picture(), "画一盏台灯", "zh")
    assert "in Chinese" in shown(reader.asked[0])


async def test_a_reader_without_sight_gets_words_and_facts() -> None:
    reader = Scripted(CARD)
    card = await ReaderWriter(reader, PICTURES).write(asset(0, DATA), picture(), "a red lamp", "en")
    assert card.facts["seen"] is False
    assert reader.asked[0].schema is None
    assert all(not isinstance(part, Image) for part in reader.asked[0].parts())
    assert "main colours red 100%" in shown(reader.asked[0])


async def test_a_second_draw_is_asked_for_then_the_card_has_failed() -> None:
    better = Scripted("no", CARD)
    card = await ReaderWriter(better, PICTURES).write(asset(0, DATA), picture(), "", "en")
    assert (card.status, card.cost["calls"]) == ("ok", 2)
    assert better.asked[0].sampling.temperature == 0.0
    assert (better.asked[1].sampling.temperature, better.asked[1].sample) == (0.7, 1)
    never = Scripted(Reply('{"tags": [', Usage(), "length"), Reply("I cannot help.", Usage(), "refused"))
    card = await ReaderWriter(never, PICTURES).write(asset(0, DATA), picture(), "a lamp", "en")
    assert (card.status, card.tags, card.description) == ("failed", (), "")
    assert card.facts["faults"][0].startswith("truncated")
    assert card.facts["faults"][1] == "refused"
    assert card.facts["words"] == "a lamp"


def test_a_request_without_a_picture_says_so_by_leaving_it_out() -> None:
    request = card_request(None, facts([("red", 0.5)]), "a lamp")
    assert shown(request).count("Measured: generated, 48 × 48 pixels; main colours red 50%") == 1
    assert len([part for part in request.parts() if isinstance(part, Image)]) == 0
