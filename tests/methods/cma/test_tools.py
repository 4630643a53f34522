"""The tools: their schemas, what each does on real pixels, and what is refused."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pillow

from memharness.methods.cma.calls import Call, Hands, Status
from memharness.methods.cma.tools import REGISTRY, Desk, Hit, Offline, Result, Tool, ToolError, open_web
from memharness.methods.cma.tools.tool import Arguments
from memharness.types import UserError
from tests.methods.cma.acting import Painter, Picks, desk, png, scene


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path / "home"))


async def call(at: Desk, name: str, **arguments: Any) -> Result:
    tool = REGISTRY[name]
    return await tool.run(at, tool.read(arguments))


def opened(at: Desk, name: str) -> Pillow.Image:
    return Pillow.open(io.BytesIO(at.products[name].data)).convert("RGB")


def test_every_tool_is_an_openai_function_with_a_closed_schema() -> None:
    assert set(REGISTRY) == {
        "generate", "edit", "compose", "collage", "crop", "overlay", "inspect", "best", "retrieve", "web_search",
        "web_images", "fetch_page", "fetch_image",
    }  # fmt: skip
    for tool in REGISTRY.values():
        function = tool.function()
        assert function["name"] == tool.name
        assert len(function["description"]) > 10
        parameters = function["parameters"]
        assert parameters["type"] == "object"
        assert parameters["additionalProperties"] is False
        assert "title" not in parameters
        for about in parameters["properties"].values():
            assert "description" in about or "description" in about.get("items", {})
    assert {tool.name for tool in REGISTRY.values() if tool.read_only} == {
        "inspect", "best", "retrieve", "web_search", "web_images", "fetch_page",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("generate", {}, "prompt: Field required"),
        ("generate", {"prompt": "a", "colour": "red"}, "colour: Extra inputs are not permitted"),
        ("generate", {"prompt": "a", "width": 5}, "width: Input should be greater than or equal to 16"),
        ("edit", {"picture": "../../etc/passwd", "prompt": "a"}, "picture: String should match pattern"),
        ("compose", {"pictures": ["1"], "prompt": "a"}, "pictures: List should have at least 2 items"),
        ("overlay", {"picture": "1", "text": "a", "place": "nowhere"}, "place: Input should be"),
        ("fetch_page", {"address": "file:///etc/passwd"}, "address: String should match pattern"),
        ("generate", "{", "the arguments are no JSON"),
        ("generate", "[1]", "must be a JSON object, not list"),
    ],
)
def test_arguments_are_held_to_the_schema_and_the_error_names_the_field(name: str, arguments: Any, said: str) -> None:
    with pytest.raises(ToolError) as caught:
        REGISTRY[name].read(arguments)
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"{name}: ")


def test_a_picture_may_be_named_by_a_number() -> None:
    asked = REGISTRY["edit"].read({"picture": 3, "prompt": "red"})
    assert asked.model_dump()["picture"] == "3"


LEAVES = st.none() | st.booleans() | st.integers() | st.text()


@given(st.recursive(LEAVES, lambda one: st.lists(one) | st.dictionaries(st.text(), one), max_leaves=5))
def test_nothing_but_a_clear_error_comes_of_odd_arguments(values: Any) -> None:
    for tool in REGISTRY.values():
        for arguments in (values, dict.fromkeys(tool.arguments.model_fields, values)):
            try:
                tool.read(arguments)
            except ToolError as error:
                assert tool.name in str(error)


# ------------------------------------------------------------------------------------------------------ making pictures


async def test_made_pictures_have_names_and_can_be_worked_on(tmp_path: Path) -> None:
    painter = Painter()
    at = desk(tmp_path, painter=painter)
    assert (await call(at, "generate", prompt="a cat")).text == "made new-1, 64x64"
    await call(at, "edit", picture="new-1", prompt="a red cat")
    await call(at, "compose", pictures=["0", "new-2"], prompt="both")
    assert [request.route for request in painter.asked] == ["generate", "edit", "compose"]
    assert painter.asked[1].images == (at.products["new-1"].data,)
    assert at.products["new-3"].parents == ("image-0", "new-2")
    assert list(at.used) == ["image-0"]


async def test_pictures_that_are_not_there_are_an_error_that_lists_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="there is no picture 9; there are: 0, 1"):
        await call(desk(tmp_path), "edit", picture="9", prompt="red")


async def test_a_back_end_that_fails_or_cannot_is_an_error_of_the_tool(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="no picture was made: the paint is dry"):
        await call(desk(tmp_path, painter=Painter(lambda request: True)), "generate", prompt="a cat")
    with pytest.raises(ToolError, match="painter has no route compose"):
        only = Painter(routes=frozenset({"generate", "edit"}))
        await call(desk(tmp_path, painter=only), "compose", pictures=["0", "1"], prompt="both")
    with pytest.raises(ToolError, match="painter takes at most 1 pictures, not 2"):
        await call(desk(tmp_path, painter=Painter(max_references=1)), "compose", pictures=["0", "1"], prompt="both")


async def test_a_collage_keeps_pixels_and_is_the_same_each_time(tmp_path: Path) -> None:
    at = desk(tmp_path)
    for _ in range(2):
        await call(at, "collage", pictures=["0", "1"], cell=32, gap=4, background="#ffff00")
    sheet = opened(at, "new-1")
    assert sheet.size == (2 * 36 + 4, 36 + 4)
    assert sheet.getpixel((4 + 16, 4 + 16)) == (0, 0, 255)
    assert sheet.getpixel((40 + 16, 4 + 16)) == (0, 128, 0)
    assert sheet.getpixel((1, 1)) == (255, 255, 0)
    assert at.products["new-1"].data == at.products["new-2"].data
    assert list(at.used) == ["image-0", "image-1"]
    with pytest.raises(ToolError, match="use a smaller cell"):
        await call(at, "collage", pictures=["0"] * 25, cell=1024)


async def test_a_crop_is_a_part_and_stays_inside(tmp_path: Path) -> None:
    at = desk(tmp_path)
    await call(at, "crop", picture="0", left=2, top=3, width=10, height=8)
    assert opened(at, "new-1").size == (10, 8)
    with pytest.raises(ToolError, match="the box ends at 40x10, outside picture 0, which is 32x24"):
        await call(at, "crop", picture="0", left=30, top=0, width=10, height=10)


async def test_an_overlay_writes_exact_words_where_they_belong(tmp_path: Path) -> None:
    big = scene(originals={"image-0": png("blue", (200, 120))})
    at = desk(tmp_path, over=big)
    await call(at, "overlay", picture="0", text="Open 12 开", place="top", size=16, colour="#ff0000", outline="#ffffff")
    picture = opened(at, "new-1")
    colours = {picture.getpixel((x, y)) for x in range(200) for y in range(60)}
    assert {(255, 0, 0), (255, 255, 255)} <= colours
    assert {picture.getpixel((x, y)) for x in range(200) for y in range(60, 120)} == {(0, 0, 255)}
    with pytest.raises(ToolError, match="do not fit"):
        await call(at, "overlay", picture="0", text="far too long " * 20)
    with pytest.raises(ToolError, match="no bundled font has"):
        await call(at, "overlay", picture="0", text="\U00012000")


# ----------------------------------------------------------------------------------------------------------- looking


async def test_inspecting_gives_notes_measures_and_the_picture(tmp_path: Path) -> None:
    at = desk(tmp_path, over=scene(prompts=["a blue mug"]))
    found = await call(at, "inspect", pictures=["0"])
    assert found.text == "0: 32x24; brightness 29, contrast 0, sharpness 0; [0] a blue mug"
    assert found.shown == at.image("0")
    assert len(found.shown) == 1


async def test_the_best_picture_is_chosen_by_a_measure_or_by_words(tmp_path: Path) -> None:
    at = desk(tmp_path, over=scene(prompts=["a blue mug", "a green kite"]))
    assert (await call(at, "best", pictures=["0", "1"], by="brightness")).text.startswith("1 is best by brightness")
    assert (await call(at, "best", pictures=["0", "1"], text="the blue mug")).text.startswith("0 is best by words")
    assert (await call(at, "best", pictures=["0", "1"], by="size")).text.startswith("1 is best by size")
    assert (await call(at, "best", pictures=["1", "0"], by="contrast")).text.startswith("1 is best")
    with pytest.raises(ToolError, match="`text` must say"):
        await call(at, "best", pictures=["0", "1"])


async def test_retrieving_asks_core_and_drops_what_is_not_there(tmp_path: Path) -> None:
    picks = Picks("image-1", "image-9", "image-1")
    at = desk(tmp_path, over=scene(prompts=["a", "a green kite"]), picks=picks)
    assert (await call(at, "retrieve", query="the kite")).text == "[1] a green kite"
    assert at.retrieved == ("image-1",)
    assert picks.asked == ["the kite"]
    empty = desk(tmp_path)
    assert (await call(empty, "retrieve", query="x")).text == "no earlier picture is needed"


# ------------------------------------------------------------------------------------------------------------ the web


class Folder:
    """A web of two files."""

    async def search(self, query: str, n: int) -> Sequence[Hit]:
        return [Hit("Kites", "https://web.test/kites", f"about {query}")][:n]

    async def pictures(self, query: str, n: int) -> Sequence[Hit]:
        return [Hit("A kite", "https://web.test/kite.png")][:n]

    async def page(self, address: str) -> str:
        return "kite " * 4000

    async def picture(self, address: str) -> bytes:
        return png("orange") if address.endswith("kite.png") else b"<svg/>"


async def test_the_web_is_off_unless_named(tmp_path: Path) -> None:
    for name, arguments in (
        ("web_search", {"query": "kites"}),
        ("web_images", {"query": "kites"}),
        ("fetch_page", {"address": "https://web.test/"}),
        ("fetch_image", {"address": "https://web.test/a.png"}),
    ):
        with pytest.raises(ToolError, match="the web is off"):
            await call(desk(tmp_path), name, **arguments)
    assert isinstance(open_web("off"), Offline)


async def test_a_web_that_is_named_is_asked(tmp_path: Path) -> None:
    web = open_web(f"{__name__}:Folder")
    at = desk(tmp_path, web=web)
    assert (await call(at, "web_search", query="wind")).text == "Kites | https://web.test/kites | about wind"
    assert (await call(at, "web_images", query="wind")).text == "A kite | https://web.test/kite.png"
    assert (await call(at, "fetch_page", address="https://web.test/kites")).text.endswith("(12000 more characters)")
    assert (await call(at, "fetch_image", address="https://web.test/kite.png")).text == "made new-1, 32x24"
    with pytest.raises(ToolError, match="not a readable picture"):
        await call(at, "fetch_image", address="https://web.test/kite.svg")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("on", "expected off, or package.module:Class"),
        ("no.such.module:Web", "cannot import"),
        (f"{__name__}:Pieces", "lacks one of search"),
    ],
)
def test_a_web_that_is_none_is_a_users_error(name: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        open_web(name)


class Pieces:
    """No web."""


# --------------------------------------------------------------------------------------------------- calls of one turn


class Note(Arguments):
    word: str = ""


def noting(log: list[str], **read_only: bool) -> dict[str, Tool]:
    """Tools that note when they begin and end."""
    import asyncio

    def tool(name: str, reads: bool) -> Tool:
        async def run(at: Desk, asked: Note) -> Result:
            log.append(f"+{name}")
            await asyncio.sleep(0)
            log.append(f"-{name}")
            if asked.word == "fail":
                raise ToolError("failed as asked")
            return Result(f"{name} {asked.word}")

        return Tool(name, "notes", Note, run, reads)

    return {name: tool(name, reads) for name, reads in read_only.items()}


def hands(tmp_path: Path, log: list[str], limit: int = 10) -> Hands:
    return Hands(noting(log, look=True, see=True, draw=False, paint=False), desk(tmp_path), limit)


async def test_reading_calls_run_beside_each_other_and_changing_ones_alone(tmp_path: Path) -> None:
    log: list[str] = []
    at = hands(tmp_path, log)
    steps = await at.run([Call(name, {}) for name in ("look", "see", "draw", "paint")])
    assert log == ["+look", "+see", "-look", "-see", "+draw", "-draw", "+paint", "-paint"]
    assert [step.text for step in steps] == ["look ", "see ", "draw ", "paint "]
    assert [step.number for step in at.steps] == [1, 2, 3, 4]


async def test_a_call_is_not_made_twice_but_may_look_again_after_a_change(tmp_path: Path) -> None:
    at = hands(tmp_path, [])
    calls = [Call("look", {}), Call("look", '{"word": ""}'), Call("draw", {}), Call("look", {}), Call("draw", {})]
    statuses: list[Status] = [step.status for step in await at.run(calls)]
    assert statuses == ["ok", "duplicate", "ok", "ok", "duplicate"]
    assert at.steps[4].text == "not done again: it is call 3, which gave: draw "


async def test_what_is_wrong_with_a_call_is_its_result(tmp_path: Path) -> None:
    at = hands(tmp_path, [])
    steps = await at.run([Call("lok", {}), Call("look", {"wrong": 1}), Call("draw", {"word": "fail"})])
    assert [step.status for step in steps] == ["error", "error", "error"]
    assert "did you mean look?" in steps[0].text
    assert "wrong: Extra inputs" in steps[1].text
    assert steps[2].text == "failed as asked"


async def test_no_call_is_made_past_the_limit(tmp_path: Path) -> None:
    log: list[str] = []
    at = hands(tmp_path, log, limit=2)
    steps = await at.run([Call("draw", {"word": word}) for word in "abc"])
    assert [step.status for step in steps] == ["ok", "ok", "over_budget"]
    assert log.count("+draw") == 2
    assert at.spent
