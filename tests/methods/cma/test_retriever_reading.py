"""How a turn is read: what it asks for, how it calls pictures, and what it changes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.methods.cma.depiction import changed, changes, pictured
from memharness.methods.cma.reading import read_turn, requests
from memharness.methods.cma.referring import read_reference, segments


@pytest.mark.parametrize(
    ("words", "intent"),
    [
        ("Draw a red boat on a lake.", "new"),
        ("Could you paint me a red boat?", "new"),
        ("For this turn: quiet lake, with a red boat and a bird.", "new"),
        ("Something different: a red boat.", "new"),
        ("Create a separate image of a boat; keep the harbour pictures untouched.", "new"),
        ("画一只小船。", "new"),
        ("重新画一张：湖上的桥。", "new"),
        ("Make the boat red.", "change"),
        ("The lamp should be green.", "change"),
        ("Could the sign read OPEN?", "change"),
        ("Have the light be dusk now.", "change"),
        ("Replace the lamp with another one.", "change"),
        ("The same, at dusk.", "change"),
        ("把小船改成红色。", "change"),
        ("Combine the first picture and the one with the cat.", "fuse"),
        ("把第一张图和有猫的那张图合成一张。", "fuse"),
        ("What colour is the boat?", "look"),
        ("In the park picture, is there a people carrier?", "look"),
        ("Where is the lamp now?", "look"),
        ("小船是什么颜色？", "look"),
        ("Are robots costly?", "chat"),
        ("That boat was nice. How long does one last?", "chat"),
        ("Thanks, the harbour looks wonderful.", "chat"),
        ("那只猫真可爱。养猫难吗？", "chat"),
        ("谢谢，真好看。", "chat"),
    ],
)
def test_what_a_turn_asks_for(words: str, intent: str) -> None:
    assert read_turn(words, held=5).intent == intent


def test_without_pictures_nothing_is_called() -> None:
    assert read_turn("Make the first picture red.", held=0).intent == "new"


@pytest.mark.parametrize(
    ("words", "called"),
    [
        ("Set the scene in fog.", []),
        ("Draw a new picture of a lake.", []),
        ("Merge the park picture and the one with a cat into one picture.", ["the park picture", "the one with a cat"]),
        ("Combine pictures 2 and 4.", ["pictures 2 and 4"]),
        ("From the shop picture, the one with the bag, take it away.", ["the shop picture, the one with the bag"]),
        ("In the picture before the dusk one, add a hat.", ["the picture before the dusk one"]),
        ("In the corner shop at night, add a hat.", ["the corner shop at night"]),
        ("Which colour was the very first mug?", ["the very first mug"]),
        ("Put the hat from the park picture into it.", ["the park picture", "it"]),
        ("在街角店铺里有猫的那张图里，加一个帽子。", ["街角店铺里有猫的那张图"]),
        ("把第一张图和有猫的那张图合成一张。", ["第一张图", "有猫的那张图"]),
        ("我发给你的照片里，时钟是什么颜色？", ["我发给你的照片"]),
    ],
)
def test_where_references_stand(words: str, called: list[str]) -> None:
    text = words.replace("，", ",").replace("？", "?").replace("：", ":")
    assert [text[start:end].strip() for start, end in segments(text)] == called


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("this picture", "last"), ("it", "last"), ("the one before last", "previous"),
        ("the previous version", "previous"), ("the third picture", "nth"),
        ("picture number two", "nth"), ("第十二张图", "nth"), ("the newest park picture", "latest"),
        ("the original picture", "original"), ("the version before I added the hat", "before"),
        ("the one I liked", "liked"), ("the one I disliked", "rejected"), ("my own photo", "upload"),
        ("the combined picture", "composed"), ("the picture before the dusk one", "earlier"),
        ("the one it was made from", "parent"), ("the picture with the red lamp", "look"),
        ("有红色台灯的那张图", "look"), ("合成的那张图", "composed"), ("我上传的那张照片", "upload"),
        ("加上帽子之前的那张图", "before"),
        ("倒数第二张图", "previous"),
    ],
)  # fmt: skip
def test_forms_of_references(text: str, form: str) -> None:
    assert read_reference(text).form == form


def test_numbers_count_from_one_as_people_do() -> None:
    assert read_reference("the second and the fourth picture").numbers == (1, 3)
    assert read_reference("第十二张图").numbers == (11,)
    assert read_reference("picture #7").numbers == (6,)


@pytest.mark.parametrize(
    ("clause", "operation", "target", "value"),
    [
        ("make the wooden lamp red", "attribute", "lamp", ("colour", "red")),
        ("change the colour of the lamp to scarlet", "attribute", "lamp", ("colour", "red")),
        ("change the lamp so that it is made of glass", "attribute", "lamp", ("material", "glass")),
        ("give the lamp a blue colour", "attribute", "lamp", ("colour", "blue")),
        ("set the scene at dusk", "light", None, ("light", "dusk")),
        ("I changed the light to neon", "light", None, ("light", "neon")),
        ("show the scene from above", "view", None, ("view", "high")),
        ("add a red lamp on the left", "add", "lamp", ("place", "left")),
        ("remove the small lamp", "remove", "lamp", None),
        ("move the lamp so that it is on the right", "move", "lamp", ("place", "right")),
        ("add a sign that says “OPEN”", "text", None, None),
        ("the sign said A7", "text", None, None),
        ("把台灯改成红色", "attribute", "lamp", ("colour", "red")),
        ("把移动电话换成白色", "attribute", "phone", ("colour", "white")),
        ("把光线改成黄昏", "light", None, ("light", "dusk")),
        ("去掉台灯", "remove", "lamp", None),
        ("在左边加一个台灯", "add", "lamp", ("place", "left")),
        ("牌子写上WELCOME", "text", None, None),
    ],
)
def test_what_a_clause_changes(clause: str, operation: str, target: str | None, value: tuple[str, str] | None) -> None:
    (change,) = changes(clause)
    assert change.operation == operation
    assert (change.target.name if change.target else None) == target
    assert value is None or value in change.values


def test_a_picture_shows_what_was_asked_for_and_changed_since() -> None:
    new = pictured(
        "Leave the shop as it is and draw a new one: sandy beach, with a red lamp and a small boat, at night."
    )
    assert "shop" not in new.names()
    assert {thing.name for thing in new.things} == {"lamp", "boat"}
    assert new.light == "night"
    now = changed(new, [*changes("make the lamp blue"), *changes("remove the boat"), *changes("set it in fog")])
    assert [(thing.name, sorted(thing.marks)) for thing in now.things] == [("lamp", [("colour", "blue")])]
    assert now.light == "fog"
    assert [change.operation for change in now.changes] == ["attribute", "remove", "light"]


def test_what_is_brought_is_told_apart_from_what_is_asked() -> None:
    asked = requests("Here is a photo of mine, corner shop. Make the lamp red, please.")
    assert asked.told == ("Here is a photo of mine, corner shop.",)
    assert [change.operation for clause in asked.clauses for change in changes(clause)] == ["attribute"]
    assert requests("Merge the park picture and the lake picture.").merges
    assert not requests("Put the hat from the park picture into the lake picture.").merges


@given(st.text(max_size=80))
def test_any_words_can_be_read(words: str) -> None:
    reading = read_turn(words, held=3)
    assert reading.intent in ("new", "chat", "look", "change", "fuse")
    spans = list(segments(" ".join(words.split())))
    assert all(low[1] <= high[0] for low, high in pairwise(spans))
