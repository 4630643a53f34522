"""What a turn asks for by rules and by a reader, settling it by what was retrieved, and the words for a back end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.config import build
from memharness.methods.cma.candidates import Candidate
from memharness.methods.cma.config import CMAConfig
from memharness.methods.cma.controller import (
    MAKING,
    TASKS,
    Plan,
    RuleController,
    Task,
    Turn,
    by_rules,
    language_of,
    plainly,
    settle,
)
from memharness.methods.cma.controller_reader import ReaderController, read_task
from memharness.reader import ReaderCard, Reply, Request
from memharness.types import Image, Text, Usage
from tests.methods.cma.acting import asset
from tests.methods.vmas.scripted import Scripted, prompt

SAMPLE = Path(__file__).parents[3] / "benchmarks/m2ca/sample/sessions"


def turn(words: str, held: int = 3, uploads: int = 0, history: str = "") -> Turn:
    return Turn(words, uploads, held, language_of(words), history)


@pytest.mark.parametrize("session", sorted(SAMPLE.glob("*.json")), ids=lambda path: path.stem)
def test_every_turn_of_the_sample_is_read_as_its_task_once_its_pictures_are_known(session: Path) -> None:
    held = 0
    for one in json.loads(session.read_text("utf-8"))["turns"]:
        held += len(one["uploads"])
        plan = by_rules(turn(one["user_text"], held, len(one["uploads"])))
        assert settle(plan, len(one["gt_images"])).task == one["task_type"], one["user_text"]
        held += one["output_asset"] is not None


@pytest.mark.parametrize(
    ("words", "task"),
    [
        ("Could you make the mug red?", "edit"),
        ("Please draw a cat on a roof.", "generate"),
        ("Can you draw me another picture of a boat?", "generate"),
        ("Add a hat to the second one, please.", "edit"),
        ("Combine the two pictures.", "composite"),
        ("How many boats are in the picture?", "understand"),
        ("Which of the two is brighter?", "understand"),
        ("Do cats like water?", "pure_chat"),
        ("Thanks, that looks great!", "pure_chat"),
        ("The same, but at night.", "edit"),
        ("I love the old boat. Now paint a mountain from scratch.", "generate"),
        ("能把船改成红色吗？", "edit"),
        ("请画一座石桥。", "generate"),
        ("把两张图合成一张。", "composite"),
        ("第一张图里有几只鸟？", "understand"),
        ("谢谢，真好看！", "pure_chat"),
        ("划船难学吗？", "pure_chat"),
    ],
)
def test_the_rules_read_english_and_chinese(words: str, task: Task) -> None:
    assert by_rules(turn(words)).task == task


def test_without_a_picture_nothing_is_edited_and_no_question_is_about_one() -> None:
    assert by_rules(turn("A red cube on a table.", held=0)).task == "generate"
    assert by_rules(turn("Make it red.", held=0)).task == "generate"
    assert by_rules(turn("What colour is the boat in the picture?", held=0)).task == "pure_chat"
    assert by_rules(turn("", held=1, uploads=1)).task == "understand"


@given(st.text(max_size=80), st.integers(0, 5), st.integers(0, 2))
def test_any_words_are_read_as_some_task_and_always_the_same(words: str, held: int, uploads: int) -> None:
    one = Turn(words, uploads, held + uploads, language_of(words))
    assert by_rules(one) == by_rules(one)
    assert by_rules(one).task in TASKS


@given(st.sampled_from(TASKS), st.integers(0, 4))
def test_settling_fits_the_task_to_the_pictures(task: Task, sources: int) -> None:
    plan = settle(Plan(task, "reader"), sources)
    if task in ("edit", "composite"):
        assert plan.task == ("generate" if not sources else "edit" if sources == 1 else "composite")
        assert ("nothing_to_edit" in plan.flags) == (not sources)
    else:
        assert plan.task == task
    assert settle(plan, sources) == plan


def test_where_rules_read_no_request_pictures_that_are_needed_decide() -> None:
    asked, said = Plan("pure_chat", "rules", "a general question"), Plan("pure_chat", "rules", "nothing is asked")
    assert [settle(asked, n).task for n in (0, 1, 2)] == ["pure_chat", "understand", "understand"]
    assert [settle(said, n).task for n in (0, 1, 2)] == ["pure_chat", "edit", "composite"]


def test_politeness_goes_and_the_request_stays() -> None:
    assert plainly("Okay, could you please make the mug red?") == "make the mug red?"
    assert plainly("好的，请帮我画一只猫。") == "画一只猫。"
    assert plainly("Please") == "Please"


async def test_the_rules_say_what_stays_and_hold_preferences() -> None:
    rules = RuleController()
    one = Turn("Please make the mug red.", 0, 1, "en", preferences=("Always use flat colours.",))
    assert (await rules.rewrite("edit", one, ())).text == "make the mug red.\nEverything else stays as it is."
    assert (await rules.rewrite("generate", one, ())).text == "make the mug red.\nAlways use flat colours."
    assert (await rules.reply("pure_chat", one, ())).flags == ("no_model",)
    about = await rules.reply("understand", one, (Candidate(asset(2, prompt="a blue mug"), None, None),))
    assert about.text == "[2] a blue mug"


# ------------------------------------------------------------------------------------------------------- by a reader


def reader(*replies: str | Reply, can: Sequence[str] = ()) -> Scripted:
    left = list(replies)
    card = ReaderCard("scripted", "", "1", "python", capabilities=frozenset(can))
    return Scripted("controller", lambda request: left.pop(0), [], card)


def controller(scripted: Scripted, pictures: dict[str, Image] | None = None) -> ReaderController:
    return ReaderController(scripted, build(CMAConfig, {}, "-M", "cma"), pictures or {})


def cut(text: str) -> Reply:
    return Reply(text, Usage(), finish="length")


@pytest.mark.parametrize(
    ("reply", "task"),
    [
        ('{"task_type": "edit"}', "edit"),
        ('Sure: {"task_type": "mmu"} is it.', "understand"),
        ('<think>{"task_type": "edit"}</think>{"task_type": "cross-reference-edit"}', "composite"),
        ('{"task_type": "fly"}', None),
        ("edit", None),
        ('{"task": "edit"}', None),
        ("{not json}", None),
        ("", None),
    ],
)
def test_a_task_is_read_strictly(reply: str, task: Task | None) -> None:
    assert read_task(reply) == task


@given(st.text(max_size=200))
def test_no_reply_breaks_the_reading_of_a_task(reply: str) -> None:
    assert read_task(reply) in (None, *TASKS)


async def test_a_reader_classifies_with_a_schema_where_it_has_one() -> None:
    asked = reader('{"task_type": "composite"}', can=["schema"])
    assert await controller(asked).classify(turn("Join them.")) == Plan("composite", "reader")
    request: Request = asked.log[0][1]
    assert request.schema is not None
    assert "3 pictures are in memory" in prompt(request)
    plain = reader('{"task_type": "edit"}')
    await controller(plain).classify(turn("x"))
    assert plain.log[0][1].schema is None


async def test_a_reply_that_cannot_be_read_falls_back_to_the_rules_and_says_so() -> None:
    plan = await controller(reader("I think it is an edit.")).classify(turn("Make it red."))
    assert (plan.task, plan.by, plan.flags) == ("edit", "fallback", ("task_unparsed",))
    refused = await controller(reader(Reply('{"task_type": "edit"}', Usage(), "refused"))).classify(turn("Hello!"))
    assert (refused.task, refused.by) == ("pure_chat", "fallback")


@pytest.mark.parametrize("task", MAKING)
async def test_a_reader_rewrites_for_each_task_of_making(task: Task) -> None:
    asked = reader('"A red mug."')
    sources = [Candidate(asset(4, prompt="a blue mug"), None, None)]
    one = turn("Make it red.", history="Turn 1, user: hello")
    assert (await controller(asked).rewrite(task, one, sources)).text == "A red mug."
    said = prompt(asked.log[0][1])
    assert "Turn 1, user: hello" in said
    assert ("a blue mug" in said) == (task != "generate")


async def test_a_prompt_that_is_empty_or_cut_off_is_replaced_by_rule_and_flagged() -> None:
    for reply in ("", cut("A red")):
        said = await controller(reader(reply)).rewrite("generate", turn("Draw a cat."), ())
        assert said.text == "Draw a cat."
        assert "prompt_not_rewritten" in said.flags


async def test_a_reader_sees_pictures_only_if_it_can() -> None:
    shown = Image("a" * 64, "image/png", 8, 8)
    sources = [Candidate(asset(0), None, None)]
    seeing = reader("Red.", can=["image"])
    assert (
        await controller(seeing, {"image-0": shown}).reply("understand", turn("Which colour?"), sources)
    ).flags == ()
    assert shown in seeing.log[0][1].parts()
    blind = reader("Red.")
    said = await controller(blind, {"image-0": shown}).reply("understand", turn("Which colour?"), sources)
    assert said.flags == ("pictures_not_seen",)
    assert all(isinstance(part, Text) for part in blind.log[0][1].parts())


async def test_an_empty_reply_is_filled_by_rule_and_flagged() -> None:
    said = await controller(reader("")).reply(
        "understand", turn("Which?"), [Candidate(asset(1, prompt="kite"), None, None)]
    )
    assert said.text == "[1] kite"
    assert said.flags == ("empty_reply",)
