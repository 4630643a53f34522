"""One context's memory: what is kept of pictures and words, who reads it again, and a turn's answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL.Image import Image as Picture

from memharness.config import build
from memharness.episodic import Asset, Card
from memharness.media import MediaStore
from memharness.methods.cma.config import CMAConfig
from memharness.methods.cma.controller import Controller, RuleController, Said, Task, Turn
from memharness.methods.cma.executive import Executive
from memharness.methods.cma.memory import CMAMemory
from memharness.types import Answer, Image, Item, Part, Question, ReaderError, Text
from tests.methods.cma.acting import Painter, Picks, png
from tests.methods.kit import FakeKit, as_kit


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path / "home"))


class Notes:
    """A writer whose card is the words it was given; `fails` names assets whose card it cannot write."""

    name = "notes"

    def __init__(self, *fails: str) -> None:
        self.fails = fails
        self.wrote: list[tuple[str, str]] = []

    async def write(self, asset: Asset, picture: Picture | None, words: str, language: str) -> Card:
        self.wrote.append((asset.id, words))
        if asset.id in self.fails:
            raise ReaderError("the writer is away")
        size = f"{picture.width}x{picture.height}" if picture else "nothing"
        return Card(tags=("note",), description=f"{size} {words}".strip(), language=language)


class Session:
    """A live session: `ask` plays a turn, and observes what the test says came of it."""

    def __init__(
        self, folder: Path, *, picks: Sequence[str] = (), writer: Notes | None = None, painter: Painter | None = None,
        controller: Controller | None = None, seed: int = 0, **options: Any,
    ) -> None:  # fmt: skip
        self.store = MediaStore(folder.parent / "files.sqlite")
        folder.mkdir(exist_ok=True)
        self.kit = FakeKit(folder=folder, images=self.store, seed=seed)
        self.config = build(CMAConfig, {"size": "32x24", **options}, "-M", "cma")
        self.writer, self.painter, self.picks = writer or Notes(), painter or Painter(), Picks(*picks)
        pictures: dict[str, Image] = {}
        controller = controller or RuleController()
        self.memory = CMAMemory(self.config, as_kit(self.kit), self.writer, controller, pictures)
        self.memory.actor = Executive(
            controller, self.picks, self.painter, self.store, self.config.pixels(), self.config.gate
        )
        self.turn, self.pictures, self.order = 0, 0, 0

    async def ask(
        self, words: str, *picks: str, came: bytes | None = None, uploads: Sequence[bytes] = (), loose: bool = False
    ) -> Answer:
        self.turn += 1
        brought = [self.store.keep(data, "upload", "test") for data in uploads]
        if not loose:
            await self.observe(*(self.picture("user", image) for image in brought))
        self.picks.ids = picks
        question = Question(f"q{self.turn}", "c", (Text(words), *brought))
        answer = await self.memory.answer(question, self.kit.budget())
        items = [self.item(f"turn-{self.turn}-user", "user", Text(words))]
        if came is not None:
            items.append(self.picture("assistant", self.store.keep(came, "came", "test")))
        await self.observe(*items)
        return answer

    def item(self, id: str, speaker: str, *parts: Part, kind: str = "turn") -> Item:
        self.order += 1
        return Item(id, "c", self.order, parts, speaker=speaker, kind=kind, keys={"turn": str(self.turn)})

    def picture(self, speaker: str, image: Part) -> Item:
        self.pictures += 1
        return self.item(f"image-{self.pictures - 1}", speaker, image, kind="image")

    async def observe(self, *items: Item) -> None:
        await self.memory.observe(self.kit.know(items))
        await self.memory.ready()
        await asyncio.gather(*self.kit.tasks)

    def assets(self) -> list[Asset]:
        return [one.asset for one in self.memory.candidates()]


async def test_pictures_are_kept_with_where_they_came_from(tmp_path: Path) -> None:
    at = Session(tmp_path / "m")
    await at.ask("Draw a blue mug.", came=png("blue"))
    await at.ask("Make it red.", "image-0", came=png("red"))
    await at.ask("Put the mugs side by side in one picture.", "image-0", "image-1", came=png("pink"))
    first, second, third = at.assets()
    assert [(one.kind, one.index, one.turn) for one in (first, second, third)] == [
        ("generated", 0, 1), ("edited", 1, 2), ("composed", 2, 3),
    ]  # fmt: skip
    assert [parent.id for parent in third.parents] == ["image-0", "image-1"]
    assert (second.prompt, second.parents[0].operation) == ("Make it red.", "edit")
    assert [one.current for one in (first, second, third)] == [False, True, True]
    assert at.memory.memory.original(first) == png("blue")


async def test_cards_come_after_the_picture_and_again_once_an_upload_is_spoken_of(tmp_path: Path) -> None:
    at = Session(tmp_path / "m")
    await at.ask("This is my stall.", uploads=[png("brown")])
    assert at.writer.wrote == [("image-0", ""), ("image-0", "This is my stall.")]
    card = at.memory.candidates()[0].card
    assert card is not None
    assert (card.status, card.description) == ("ok", "32x24 This is my stall.")


async def test_a_card_that_cannot_be_written_says_so_and_the_turn_is_answered(tmp_path: Path) -> None:
    at = Session(tmp_path / "m", writer=Notes("image-0"))
    await at.ask("Draw a mug.", came=png())
    card = at.memory.candidates()[0].card
    assert card is not None
    assert (card.status, card.facts) == ("failed", {"error": "the writer is away"})
    assert (await at.ask("Make it red.", "image-0")).trace["outcome"] == "ok"


async def test_a_turn_carries_its_retrieval_its_picture_and_its_seconds(tmp_path: Path) -> None:
    at = Session(tmp_path / "m")
    made = await at.ask("Draw a blue mug.", came=png("blue"))
    assert made.readout is not None
    assert (made.readout.evidence, made.trace["task"]) == ((), "generate")
    answer = await at.ask("Make it red.", "image-0")
    assert answer.readout is not None
    assert [one.item for one in answer.readout.evidence] == ["image-0"]
    assert answer.readout.trace == answer.trace
    (part,) = answer.parts
    assert isinstance(part, Image)
    assert part.sha256 == answer.trace["made"][0]["sha256"]
    assert at.painter.asked[-1].images == (png("blue"),)
    assert set(answer.trace["seconds"]) == {"write", "annotate", "retrieve", "plan", "generate"}
    assert answer.text == "Here is the picture: Make it red.\nEverything else stays as it is."


async def test_a_back_end_that_fails_is_the_turns_outcome_and_keeps_its_retrieval(tmp_path: Path) -> None:
    at = Session(tmp_path / "m", painter=Painter(lambda request: request.route == "edit"))
    await at.ask("Draw a mug.", came=png())
    answer = await at.ask("Make it red.", "image-0")
    assert answer.readout is not None
    assert [one.item for one in answer.readout.evidence] == ["image-0"]
    assert (answer.trace["outcome"], answer.trace["error"]) == ("backend_error", "the paint is dry")
    assert answer.trace["flags"] == ["backend_error"]
    assert answer.text == "No picture could be made: the paint is dry"
    assert answer.parts == ()


async def test_a_picture_that_was_never_made_keeps_its_place(tmp_path: Path) -> None:
    at = Session(tmp_path / "m")
    await at.ask("Draw a mug.")
    await at.observe(at.item("image-0", "assistant", Text("(no picture was made)"), kind="image"))
    at.pictures = 1
    await at.ask("Draw a kite.", came=png("green"))
    assert [(one.index, one.sha256 is None) for one in at.assets()] == [(0, True), (1, False)]
    answer = await at.ask("Make it red.", "image-0")
    assert answer.trace["flags"] == ["picture_missing"]
    assert answer.trace["outcome"] == "ok"
    assert at.painter.asked[-1].route == "generate"


async def test_pictures_of_the_question_that_memory_does_not_hold_are_worked_on_all_the_same(tmp_path: Path) -> None:
    at = Session(tmp_path / "m")
    await at.ask("Draw a mug.", came=png("blue"))
    answer = await at.ask("Make this red.", "image-0", uploads=[png("brown")], loose=True)
    assert at.painter.asked[-1].images == (png("blue"), png("brown"))
    assert answer.trace["task"] == "composite"


async def test_what_the_retriever_names_that_is_not_there_is_flagged(tmp_path: Path) -> None:
    at = Session(tmp_path / "m")
    await at.ask("Draw a mug.", came=png())
    answer = await at.ask("Make it red.", "image-5")
    assert answer.readout is not None
    assert answer.readout.evidence == ()
    assert answer.trace["flags"] == ["out_of_range", "nothing_to_edit"]


@pytest.mark.parametrize(("gate", "kept"), [(False, ["image-0"]), (True, [])])
async def test_a_gate_takes_no_picture_for_a_new_one(tmp_path: Path, gate: bool, kept: list[str]) -> None:
    at = Session(tmp_path / "m", gate=gate)
    await at.ask("Draw a mug.", came=png())
    answer = await at.ask("Draw a kite.", "image-0")
    assert answer.readout is not None
    assert [one.item for one in answer.readout.evidence] == kept
    assert at.painter.asked[-1].images == ()


# ------------------------------------------------------------------------------------------------------ user's scope


async def test_a_rejected_version_gives_way_to_the_one_it_was_made_from(tmp_path: Path) -> None:
    at = Session(tmp_path / "m")
    await at.ask("Draw a blue mug.", came=png("blue"))
    await at.ask("Make it red.", "image-0", came=png("red"))
    await at.ask("I don't like it.")
    assert [(one.feedback, one.current) for one in at.assets()] == [(None, True), ("rejected", False)]


async def test_what_is_liked_by_name_is_found_by_name(tmp_path: Path) -> None:
    at = Session(tmp_path / "m")
    await at.ask("Draw a blue mug.", came=png("blue"))
    await at.ask("Draw a kite from scratch.", came=png("green"))
    await at.ask("The blue mug looks great. Keep the mug in my gallery.")
    assert [(one.feedback, one.gallery) for one in at.assets()] == [("liked", True), (None, False)]
    await at.ask("I like this.")
    assert [one.feedback for one in at.assets()] == ["liked", "liked"]


async def test_preferences_hold_for_later_pictures_and_stand_on_the_users_page(tmp_path: Path) -> None:
    at = Session(tmp_path / "m")
    await at.ask("Draw a mug. Always use flat colours.", came=png())
    await at.ask("Draw a kite from scratch.")
    assert at.painter.asked[-1].prompt == "Draw a kite from scratch.\nAlways use flat colours."
    assert "## style\n\n- Always use flat colours." in (tmp_path / "m/user.md").read_text("utf-8")


async def test_a_long_dialogue_is_compacted_for_the_controller(tmp_path: Path) -> None:
    class Listening(RuleController):
        heard: list[str]

        async def rewrite(self, task: Task, turn: Turn, sources: Sequence[Any]) -> Said:
            self.heard.append(turn.history)
            return await super().rewrite(task, turn, sources)

    listening = Listening()
    listening.heard = []
    at = Session(tmp_path / "m", controller=listening, history=300, recent=1)
    for number in range(8):
        answer = await at.ask(f"Draw a boat with number {number}, a sail, a flag and a crew of {number}.")
    assert "history_compacted" in answer.trace["flags"]
    assert len(listening.heard[-1]) <= 300
    assert listening.heard[-1].endswith("number 6, a sail, a flag and a crew of 6.")


# ------------------------------------------------------------------------------------------- processes and repetition


async def test_another_process_takes_up_the_memory(tmp_path: Path) -> None:
    at = Session(tmp_path / "m")
    assert not await at.memory.load()
    await at.ask("Draw a blue mug. Always use flat colours.", came=png("blue"))
    await at.ask("I like it.")
    before = [(one.asset, one.card, one.thumbnail) for one in at.memory.candidates()]
    await at.memory.close()
    other = Session(tmp_path / "m")
    assert await other.memory.load()
    assert [(one.asset, one.card, one.thumbnail) for one in other.memory.candidates()] == before
    assert other.memory.history.lines == at.memory.history.lines
    assert other.memory.held == at.memory.held
    assert other.memory.stored() == at.memory.stored() == 3
    other.turn = 2
    answer = await other.ask("Make it red.", "image-0")
    assert answer.readout is not None
    assert [one.item for one in answer.readout.evidence] == ["image-0"]
    assert other.painter.asked[-1].images == (png("blue"),)
    assert answer.trace["turn"] == 3
    await other.memory.close()


async def test_the_same_seed_makes_the_same_pictures(tmp_path: Path) -> None:
    made = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        at = Session(tmp_path / name, seed=seed)
        answers = [await at.ask("Draw a mug.", came=png()), await at.ask("Make it red.", "image-0")]
        made.append([one["sha256"] for answer in answers for one in answer.trace["made"]])
    assert made[0] == made[1] != made[2]
    assert len(set(made[0])) == 2


async def test_closing_waits_for_the_cards_of_the_last_turn(tmp_path: Path) -> None:
    class Slow(Notes):
        async def write(self, asset: Asset, picture: Picture | None, words: str, language: str) -> Card:
            await asyncio.sleep(0.05)
            return await super().write(asset, picture, words, language)

    at = Session(tmp_path / "m", writer=Slow())
    image = at.store.keep(png(), "came", "test")
    await at.memory.observe([at.picture("assistant", image)])
    await at.memory.close()
    assert at.writer.wrote == [("image-0", "")]
    other = Session(tmp_path / "m")
    await other.memory.load()
    card = other.memory.candidates()[0].card
    assert card is not None
    assert card.status == "ok"
