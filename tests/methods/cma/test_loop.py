"""The deployment loop on scripted readers: native calls, calls as JSON, and every way to end without being done."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.methods.cma.calls import Call, read
from memharness.methods.cma.executive import Done, Scene
from memharness.methods.cma.loop import Loop
from memharness.methods.cma.making import Watch
from memharness.reader import ReaderCard, Reply, Request
from memharness.types import OverWindow, Usage
from tests.methods.cma.acting import Painter, Picks, desk, png, scene
from tests.methods.vmas.scripted import Scripted, prompt


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path / "home"))


def calls(*made: tuple[str, dict[str, Any]]) -> str:
    return json.dumps({"calls": [{"name": name, "arguments": arguments} for name, arguments in made]})


def native(*made: tuple[str, str]) -> Reply:
    tools = tuple({"id": "1", "name": name, "arguments": arguments} for name, arguments in made)
    return Reply("", Usage(), finish="tool", tools=tools)


class Play:
    """A loop over a scripted reader; after `replies` it says nothing."""

    def __init__(
        self, tmp_path: Path, *replies: str | Reply | Exception, can: Sequence[str] = (), over: Scene | None = None,
        picks: Picks | None = None, rounds: int = 4, limit: int = 6,
    ) -> None:  # fmt: skip
        left = list(replies)

        def script(request: Request) -> str | Reply:
            said = left.pop(0) if left else ""
            if isinstance(said, Exception):
                raise said
            return said

        card = ReaderCard("scripted", "", "1", "python", capabilities=frozenset(can))
        self.reader = Scripted("controller", script, [], card)
        self.scene = over or scene(prompts=["a blue mug", "a green kite"])
        self.painter = Painter()
        self.loop = Loop(
            self.reader,
            lambda one, watch: desk(tmp_path, over=one, picks=picks, painter=self.painter, watch=watch),
            rounds,
            limit,
            256,
        )

    async def run(self) -> Done:
        self.watch = Watch()
        return await self.loop.act(self.scene, self.watch)

    def prompts(self) -> list[str]:
        return [prompt(request) for _, request in self.reader.log]


async def test_it_works_with_json_calls_until_it_replies(tmp_path: Path) -> None:
    play = Play(
        tmp_path,
        calls(("retrieve", {"query": "the mug"}), ("inspect", {"pictures": ["0"]})),
        calls(("edit", {"picture": "0", "prompt": "a red mug"})),
        'Done. {"reply": "The mug is red now."}',
        picks=Picks("image-0"),
    )
    done = await play.run()
    assert done.text == "The mug is red now."
    assert done.used == ("image-0",)
    assert [product.operation for product in done.products] == ["edit"]
    assert (done.trace["task"], done.trace["outcome"], done.trace["retrieved"]) == ("edit", "ok", [0])
    assert [step["tool"] for step in done.trace["steps"]] == ["retrieve", "inspect", "edit"]
    first, second, _ = play.prompts()
    assert "[0] a blue mug" in first
    assert '"name": "generate"' in first
    assert "Call 1, retrieve: ok: [0] a blue mug" in second
    assert "web_search" not in first  # it is off
    assert set(play.watch.seconds) == {"plan", "tools", "generate"}


async def test_a_reader_with_tools_of_its_own_is_given_functions(tmp_path: Path) -> None:
    play = Play(tmp_path, native(("generate", '{"prompt": "a cat"}')), "Here is your cat.", can=["tools"])
    done = await play.run()
    assert (done.text, len(done.products), done.used) == ("Here is your cat.", 1, ())
    request = play.reader.log[0][1]
    assert {tool["name"] for tool in request.tools} >= {"generate", "retrieve"}
    assert "JSON object" not in play.prompts()[0]


async def test_a_schema_is_given_where_the_reader_takes_one(tmp_path: Path) -> None:
    play = Play(tmp_path, '{"reply": "Hello."}', can=["schema"])
    await play.run()
    assert play.reader.log[0][1].schema is not None


async def test_pictures_are_shown_to_a_reader_that_sees(tmp_path: Path) -> None:
    play = Play(tmp_path, calls(("inspect", {"pictures": ["1"]})), '{"reply": "A kite."}', can=["image"])
    await play.run()
    assert "<image " in play.prompts()[1]
    blind = Play(tmp_path, calls(("inspect", {"pictures": ["1"]})), '{"reply": "A kite."}')
    await blind.run()
    assert "<image " not in blind.prompts()[1]


async def test_errors_go_back_and_can_be_mended(tmp_path: Path) -> None:
    play = Play(
        tmp_path,
        calls(("edit", {"picture": "7", "prompt": "red"})),
        calls(("edit", {"picture": "1", "prompt": "red"})),
        '{"reply": "Done."}',
    )
    done = await play.run()
    assert "there is no picture 7; there are: 0, 1" in play.prompts()[1]
    assert (done.used, done.trace["outcome"]) == (("image-1",), "ok")


async def test_out_of_rounds_it_is_asked_for_a_last_word(tmp_path: Path) -> None:
    again = calls(("retrieve", {"query": "x"}))
    play = Play(tmp_path, *[again] * 3, '{"reply": "I found nothing yet."}', rounds=3)
    done = await play.run()
    assert (done.text, done.flags) == ("I found nothing yet.", ("over_rounds",))
    assert [step["status"] for step in done.trace["steps"]] == ["ok", "duplicate", "duplicate"]
    assert done.trace["outcome"] == "partial"
    assert "No more tool calls" in play.prompts()[-1]


async def test_out_of_calls_it_says_what_there_is(tmp_path: Path) -> None:
    play = Play(tmp_path, calls(*(("generate", {"prompt": word}) for word in ("a", "b", "c"))), limit=2)
    done = await play.run()
    assert done.flags == ("over_calls",)
    assert done.text == "I had to stop before this was done (no tool calls left).\nnew-1 (generate), new-2 (generate)"
    assert len(done.products) == 2


async def test_a_model_that_cannot_call_gives_a_partial_answer(tmp_path: Path) -> None:
    play = Play(tmp_path, "I am a helpful assistant.", "I am a helpful assistant!", "never asked")
    done = await play.run()
    assert done.flags == ("unreadable",)
    assert done.text.endswith("I am a helpful assistant!")
    assert len(play.reader.log) == 2
    assert "That could not be read" in play.prompts()[1]


async def test_a_full_window_ends_the_turn_but_not_before_it_began(tmp_path: Path) -> None:
    play = Play(tmp_path, calls(("generate", {"prompt": "a"})), OverWindow("full"))
    done = await play.run()
    assert done.flags == ("over_window",)
    assert len(done.products) == 1
    with pytest.raises(OverWindow):
        await Play(tmp_path, OverWindow("full")).run()


async def test_chinese_words_get_a_chinese_partial_answer(tmp_path: Path) -> None:
    done = await Play(tmp_path, "x", "y", over=scene("把它改成红色。")).run()
    assert done.text.startswith("我没能做完就停下了")


async def test_a_back_end_that_failed_is_the_turns_outcome(tmp_path: Path) -> None:
    play = Play(tmp_path, calls(("generate", {"prompt": "a"})), '{"reply": "It failed."}')
    play.painter.fails = lambda request: True
    done = await play.run()
    assert (done.text, done.trace["outcome"]) == ("It failed.", "backend_error")
    assert done.trace["error"] == "the paint is dry"


async def test_pictures_that_came_with_the_turn_are_named_and_can_be_worked_on(tmp_path: Path) -> None:
    loose = replace(scene(), loose=(png("brown"),))
    play = Play(tmp_path, calls(("edit", {"picture": "new-1", "prompt": "red"})), '{"reply": "Red now."}', over=loose)
    done = await play.run()
    assert "Came with this message: new-1." in play.prompts()[0]
    assert play.painter.asked[0].images == (png("brown"),)
    assert [product.operation for product in done.products] == ["edit"]
    held = scene(originals={"image-0": png()})
    first = held.candidates[0]
    came = replace(held, candidates=[replace(first, asset=replace(first.asset, kind="upload"))], number=1)
    other = Play(tmp_path, '{"reply": "I see."}', over=came)
    await other.run()
    assert "Came with this message: 0." in other.prompts()[0]


async def test_a_reply_that_was_cut_off_or_refused_is_flagged(tmp_path: Path) -> None:
    for finish, flag in (("length", "truncated"), ("refused", "refused")):
        cut = Reply("Once upon", Usage(), finish=finish)  # type: ignore[arg-type]
        assert (await Play(tmp_path, cut, can=["tools"]).run()).flags == (flag,)


async def test_what_was_retrieved_counts_where_no_tool_used_a_picture(tmp_path: Path) -> None:
    play = Play(tmp_path, calls(("retrieve", {"query": "kite"})), '{"reply": "It is green."}', picks=Picks("image-1"))
    assert (await play.run()).used == ("image-1",)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"name": "crop", "arguments": {"picture": "1"}}', (Call("crop", {"picture": "1"}),)),
        ('```json\n{"calls": [{"name": "crop", "arguments": "{}"}]}\n```', (Call("crop", "{}"),)),
        ('{"a": 1} {"calls": [{"name": "crop"}]}', (Call("crop", {}),)),
        ('<think>{"reply": "no"}</think>{"calls": [{"name": "x", "arguments": {}}]}', (Call("x", {}),)),
    ],
)
def test_calls_are_found_in_the_text(text: str, found: tuple[Call, ...]) -> None:
    assert read(Reply(text, Usage()), native=False).calls == found


@given(st.text(alphabet='{}[]":,abcallsreplyname 01', max_size=120), st.booleans())
def test_no_reply_breaks_the_reading(text: str, native: bool) -> None:
    said = read(Reply(text, Usage()), native)
    assert sum((bool(said.calls), said.reply is not None, bool(said.fault))) == 1
