"""CoRE without a model, rung by rung, on dialogues made by hand."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as Pillow

from memharness.episodic import Parent
from memharness.methods.cma.lineage import Gallery
from memharness.methods.cma.retriever import ModelFreeRetriever
from tests.methods.cma.sessions import Dialogue, painted


async def shop() -> Dialogue:
    """0 a lamp in a shop, 1 the lamp red, 2 a kite on a beach, 3 that at dusk, 4 the red lamp with a bell."""
    told = Dialogue()
    await told.made("Draw a picture: corner shop, with a blue lamp and a wooden box.")
    await told.made("Make the lamp red.", 0)
    await told.made("Something else now: sandy beach, with a yellow kite and a boat.")
    await told.made("Show everything at dusk.", 2)
    await told.made("In the shop picture with the red lamp, add a bell on the left.", 1)
    return told


@pytest.mark.parametrize(
    ("query", "picks"),
    [
        # rules
        ("Make the bell green.", [4]),
        ("Make it brighter.", [4]),
        ("In this picture, move the bell to the right.", [4]),
        ("In the first picture, make the box black.", [0]),
        ("Use picture number 3 and add a ball.", [2]),
        ("Look at the 2nd picture: what colour is the lamp?", [1]),
        ("In the one before last, make the boat green.", [3]),
        ("What is different between the first and the third picture?", [0, 2]),
        ("Combine pictures 1 and 4.", [0, 3]),
        ("In the second picture of the corner shop, make the box black.", [1]),
        ("In the latest beach picture, make the boat green.", [3]),
        ("Take the original picture of the shop and make the box black.", [0]),
        # text, with near-duplicates told apart by what differs
        ("In the picture with the blue lamp, make the box black.", [0]),
        ("In the beach picture at dusk, make the boat green.", [3]),
        ("In the beach picture by day, make the boat green.", [2]),
        ("In the scarlet lantern picture with the bell, make the box black.", [4]),
        ("In the shop picture where the lamp is not red, add a hat.", [0]),
        ("Take the version before I made the lamp red and add a hat.", [0]),
        ("In the picture before the bell was added, make the box black.", [1]),
        ("What is different between both pictures of the beach?", [2, 3]),
        ("Put the yellow kite from the beach picture at dusk into the first picture.", [0, 3]),
        ("Compare this picture with the picture of the beach at dusk: what is different?", [3, 4]),
        ("In the picture with the blue whatsit, make the box black.", [0]),
        ("In the picture of the shop that has no red lamp, make the box black.", [0]),
        ("Would you place the yellow kite of the beach picture at dusk onto the first picture?", [0, 3]),
        ("How do both the first picture and the third one differ?", [0, 2]),
        ("Blend pictures one and three.", [0, 2]),
        # none
        ("Forget the lamp: a quiet lake, with a bridge.", []),
        ("Nice boat. Are boats costly?", []),
        ("Draw a new picture: a quiet lake, with a bridge.", []),
        ("Leave the shop pictures as they are and draw a new one: a lake, with a bridge.", []),
        ("Do not reuse the red lamp. I want a new picture: a lake, with a bridge.", []),
        ("That lamp from earlier makes me smile. What does one usually cost?", []),
        ("My sister loved the beach pictures. Do people still go to such places?", []),
        ("Thanks, that is lovely.", []),
    ],
)
async def test_english(query: str, picks: list[int]) -> None:
    assert await (await shop()).ask(query) == picks


async def lake() -> Dialogue:
    """The same in Chinese."""
    told = Dialogue()
    await told.made("请画一张图：街角店铺，有一个蓝色台灯、一个木制箱子。")
    await told.made("把台灯改成红色。", 0)
    await told.made("换个题目：沙滩海滩，有一个黄色风筝、一个小船。")
    await told.made("把光线改成黄昏。", 2)
    await told.made("在有红色台灯的那张图里，在左边加一个铃铛。", 1)
    return told


@pytest.mark.parametrize(
    ("query", "picks"),
    [
        ("把铃铛改成绿色。", [4]),
        ("在第一张图里，把箱子改成黑色。", [0]),
        ("倒数第二张图里，小船是什么颜色？", [3]),
        ("第一张和第三张图有什么不同？", [0, 2]),
        ("在街角店铺的第二张图里，把箱子改成黑色。", [1]),
        ("用沙滩海滩最新的那张图，把小船改成绿色。", [3]),
        ("在有蓝色灯具的那张图里，把箱子改成黑色。", [0]),
        ("用黄昏的那张图，把帆船改成绿色。", [3]),
        ("用台灯变成红色之前的那张图，加一个帽子。", [0]),
        ("沙滩海滩的两张图有什么不同？", [2, 3]),
        ("把黄昏的那张图里的黄色风筝放进第一张图。", [0, 3]),
        ("两张海滩图有什么不同？", [2, 3]),
        ("回到台灯还没变红的那张图，加一个帽子。", [0]),
        ("另画一张新的：宁静湖边，有一座桥。", []),
        ("之前那个台灯真有意思。这种东西一般多少钱？", []),
        ("我妹妹看了海滩的图，很喜欢。现在还有人去这种地方吗？", []),
    ],
)
async def test_chinese(query: str, picks: list[int]) -> None:
    assert await (await lake()).ask(query) == picks


async def test_each_rung_is_named_and_the_trace_says_what_was_read() -> None:
    told = await shop()
    assert (await told.retrieval("Draw a new picture: a lake.")).rung == "none"
    assert (await told.retrieval("In the first picture, add a hat.")).rung == "rules"
    found = await told.retrieval("In the picture with the blue lamp, add a hat.")
    assert found.rung == "text"
    assert found.trace["references"] == [{"text": "the picture with the blue lamp", "form": "look", "places": [0]}]
    assert (found.trace["outcome"], found.trace["intent"]) == ("ok", "change")


async def test_an_empty_memory_gives_nothing() -> None:
    assert await Dialogue().ask("Make it red.") == []


async def test_what_the_user_liked() -> None:
    told = await shop()
    told.said("I like this last picture best of all. Is red a common colour for a lamp?")
    await told.made("One more, from scratch: quiet lake, with a bridge.")
    assert await told.ask("In the one I liked, make the box black.") == [4]


async def test_feedback_of_the_memory_counts_where_words_say_nothing() -> None:
    told = await shop()
    one, other = told.candidates[1], told.candidates[3]
    told.candidates[1] = replace(one, asset=replace(one.asset, feedback="liked"))
    told.candidates[3] = replace(other, asset=replace(other.asset, feedback="rejected"))
    assert await told.ask("In the one I liked, make the box black.") == [1]
    assert await told.ask("In the picture I did not like, make the boat green.") == [3]


async def test_an_upload_is_found_by_its_bytes_and_others_by_what_is_said() -> None:
    told = await shop()
    photo = painted("green", "white")
    await told.made("", kind="upload", data=photo)
    assert await told.ask("Here is a photo of mine. Make the fence red.", photo) == [5]
    assert await told.ask("Here is my photo. Put the yellow kite from the beach picture by day into it.", photo) == [
        2,
        5,
    ]
    assert await told.ask("Here is a photo of my stall. Put the red lamp on its counter.", photo) == [4, 5]
    told.said("Here is a photo of mine. Make the fence red.")
    await told.made("One more, from scratch: quiet lake, with a bridge.")
    assert await told.ask("In the photo I uploaded, make the fence blue.") == [5]


async def test_an_upload_that_memory_holds_in_other_bytes_is_found_by_phash() -> None:
    told = Dialogue()
    noise = Pillow.effect_noise((48, 48), 90).convert("RGB")
    first, again = io.BytesIO(), io.BytesIO()
    noise.save(first, "PNG")
    noise.resize((96, 96)).save(again, "PNG")
    await told.made("Draw a grey wall.", data=first.getvalue())
    await told.made("Draw a red wall.", data=painted("red", "blue"))
    assert await told.ask("I took this photo. What colour is the wall?", again.getvalue()) == [0]
    assert await told.ask("I took this photo. What colour is the wall?", b"no picture") in ([0], [1])


async def test_pixels_decide_where_words_tie() -> None:
    told = Dialogue()
    await told.made("", kind="upload", data=painted("white", "white", "red"))
    await told.made("", kind="upload", data=painted("white", "red", "red"))
    await told.made("", kind="upload", data=painted("white", "white", "blue"))
    found = await told.retrieval("In the picture with the red door, add a hat.")
    assert (found.ids, found.rung) == (("image-1",), "pixels")


async def test_pixels_correct_a_parent_that_was_taken_wrongly() -> None:
    """What a picture was made from is seen on it, whatever the method thought when it was made."""
    told = Dialogue()
    await told.made("Draw a picture: a shop, with a blue lamp.", data=painted("blue", "white", "white", "white"))
    await told.made("Draw a picture: a beach, with a kite.", data=painted("orange", "green", "black", "grey"))
    wrong = {"kind": "edited", "parents": (Parent("image-1", "edit"),)}
    stripes = ["blue", *["white"] * 15]
    await told.made("Add a small hat.", data=painted("blue", "white", "white", "white", size=48), **wrong)
    assert len(stripes) == 16
    assert Gallery().tell(told.candidates)[2].parents == (0,)
    assert await told.ask("In the first picture of the beach, add a ball.") == [1]
    assert await told.ask("In the latest picture of the shop, add a ball.") == [2]


async def test_a_change_of_light_does_not_lead_pixels_astray() -> None:
    told = Dialogue()
    await told.made("Draw a picture: a shop, with a blue lamp.", data=painted("blue", "white"))
    await told.made("Draw a picture: a beach, with a kite.", data=painted("black", "black", "navy"))
    await told.made("Show everything at night.", 0, data=painted("black", "black", "navy"))
    assert Gallery().tell(told.candidates)[2].parents == (0,)


async def test_captions_and_chunks_are_never_needed() -> None:
    """Candidates without a card are found by the words that made them."""
    told = await shop()
    told.candidates = [replace(one, card=None) for one in told.candidates]
    assert await told.ask("In the picture with the blue lamp, add a hat.") == [0]


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=80))
async def test_any_words_give_pictures_that_are_there(query: str) -> None:
    told = await shop()
    found = await ModelFreeRetriever().retrieve(query, (), told.candidates, told.history)
    assert set(found.ids) <= {one.asset.id for one in told.candidates}
    again = await ModelFreeRetriever().retrieve(query, (), told.candidates, told.history)
    assert again == found
