"""The readouts MEMO is compared with, by their algorithms."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.config import build
from memharness.media import MediaStore
from memharness.methods.readouts.agentocr import AgentOCRConfig, segments
from memharness.methods.readouts.history import History, beginning, chunks, halves
from memharness.methods.readouts.visual import covered
from memharness.reader import Counter, ReaderCard, Reply, Request
from memharness.readers.counters import Bytes4
from memharness.run.api import execute
from memharness.run.progress import Quiet
from memharness.run.spec import RunSpec
from memharness.types import Evidence, Image, Item, MethodError, Text, Usage, UserError, parts_text
from tests.methods.kit import FakeKit
from tests.methods.memo.working import ALL, asked, budget, named, opened, paragraph, recalled, turn

ITEMS = [
    paragraph(0, "Kiln", "A kiln is an oven.", "It bakes clay at 1,200 degrees."),
    turn(1, "Ada", "2023-05-08T13:56", "I bought a red kayak."),
]
WHOLE = "Kiln: A kiln is an oven. It bakes clay at 1,200 degrees.\n2023-05-08 13:56 · Ada: I bought a red kayak."
WORDS = st.text(alphabet="ab é\n", max_size=80)


@dataclass
class Writer:
    """Writes memories: its reply is made from the words it is asked with."""

    reply: Any
    seen: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.card = ReaderCard("writer", "", "", "test")
        self.counter: Counter = Bytes4()

    async def generate(self, request: Request) -> Reply:
        self.seen.append(parts_text(request.parts()))
        return Reply(self.reply(len(self.seen)), Usage())


# ----------------------------------------------------------------------------------------------------------- the cuts


@given(WORDS, st.integers(0, 30))
def test_a_beginning_is_the_longest_that_fits_in_whole_words(text: str, tokens: int) -> None:
    def fits(piece: str) -> bool:
        return Bytes4().text(piece) <= tokens

    end = beginning(text, fits)
    assert fits(text[:end])
    assert end == len(text) or end == 0 or text[end].isspace()
    if end < len(text):
        longer = [at for at in range(end + 1, len(text) + 1) if at == len(text) or text[at].isspace()]
        assert not any(fits(text[:at]) and text[:at].strip() != text[:end].strip() for at in longer)


@given(WORDS, st.integers(1, 9))
def test_chunks_hold_their_tokens_and_lose_no_word(text: str, tokens: int) -> None:
    pieces = list(chunks(text, tokens, Bytes4()))
    assert all(Bytes4().text(piece) <= tokens for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


def test_of_a_long_history_the_two_ends_are_read() -> None:
    text = " ".join(f"w{n:03}" for n in range(100))
    short = halves(text, 20, Bytes4())
    first, last = short.split("\n")
    assert text.startswith(first) and text.endswith(last)
    assert Bytes4().text(first) <= 10 and Bytes4().text(last) <= 10
    assert halves("a b", 20, Bytes4()) == "a b"


# ------------------------------------------------------------------------------------------------------------- text


async def test_text_only_shows_the_records_in_order_cut_at_the_budget() -> None:
    readout = await recalled("text-only", ITEMS[::-1], asked("?"), 1000)
    assert readout.parts == (Text(WHOLE),)
    assert readout.evidence == (Evidence("p0", 0), Evidence("p0", 1), Evidence("D1:1", 0))
    short = await recalled("text-only", ITEMS, asked("?"), 9)
    assert short.parts == (Text("Kiln: A kiln is an oven. It bakes"),)
    assert short.evidence[0] == Evidence("p0", 0) and short.evidence[1] == Evidence("p0", 1, (0, 9))
    assert (await recalled("text-only", ITEMS, asked("?"), None)).parts == (Text(WHOLE),)
    assert (await recalled("text-only", ITEMS, asked("?"), 1)).parts == ()


def test_a_history_points_to_what_its_beginning_holds() -> None:
    history = History.of(ITEMS)
    assert history.text == WHOLE
    assert history.shown(len("Kiln: A kiln")) == (Evidence("p0", 0, (0, 6)),)
    assert history.shown(3) == ()


# ------------------------------------------------------------------------------------------------------------- visual


@pytest.mark.parametrize("tokens", [2, 40, 128])
async def test_visual_only_shrinks_one_page_to_the_budget(tokens: int) -> None:
    readout = await recalled("visual-only", ITEMS, asked("?"), tokens, named("nominal28"))
    (page,) = readout.parts or ()
    assert isinstance(page, Image) and math.ceil(page.width * page.height / 784) <= tokens
    full = await recalled("visual-only", ITEMS, asked("?"), None, named("nominal28"))
    assert readout.trace["shrunk"] >= 1.0 and full.trace["shrunk"] == 1.0
    if tokens == 2:  # as large as the budget lets it be
        assert page.width * page.height > 0.85 * tokens * 784


async def test_visual_only_says_so_where_no_size_holds_the_budget() -> None:
    with pytest.raises(MethodError, match=r"holds 128 tokens at no size .* by internvl"):
        await recalled("visual-only", ITEMS, asked("?"), 128, named("internvl"))


async def test_visual_only_of_nothing_is_an_empty_readout() -> None:
    assert (await recalled("visual-only", [], asked("?"), 128)).parts is None


def test_what_no_font_covers_is_replaced_and_counted() -> None:
    assert covered("a\U000132bdb") == ("a?b", 1)


def test_a_reader_without_eyes_is_refused_before_anything_is_spent(tmp_path: Path) -> None:
    for method in ("visual-only", "memocr", "agentocr"):
        with pytest.raises(UserError, match="role answer needs a reader with the capability image"):
            execute(RunSpec(method, "hotpotqa", reader="extractive", budget=128, out=str(tmp_path)), Quiet())


# ----------------------------------------------------------------------------------------------------------- recurrent


async def test_memagent_overwrites_its_memory_chunk_by_chunk() -> None:
    writer = Writer(lambda n: f"<think>hm</think>{n}: notes")
    kit = FakeKit(readers={"agent": writer}, images=MediaStore())
    memory, kit = await opened("memagent", ITEMS, kit, chunk=10)
    readout = await memory.recall(asked("Which oven?"), budget(kit, 128))
    assert len(writer.seen) == readout.trace["chunks"] == 3
    assert "Memory so far:\n(empty)" in writer.seen[0] and "Memory so far:\n1: notes" in writer.seen[1]
    assert all("Which oven?" in said for said in writer.seen)
    assert "Kiln: A kiln" in writer.seen[0] and "kayak" in writer.seen[2]
    assert readout.parts == (Text("3: notes"),) and readout.evidence == ()


async def test_memagent_is_cut_at_the_budget_and_keeps_its_memory_if_the_reply_is_empty() -> None:
    kit = FakeKit(readers={"agent": Writer(lambda n: "one two three four five six seven")})
    memory, kit = await opened("memagent", ITEMS, kit)
    readout = await memory.recall(asked("?"), budget(kit, 4))
    assert readout.parts == (Text("one two three"),) and readout.trace["cut"] is True
    assert readout.trace["memory"] == "one two three four five six seven"


async def test_memocr_shows_its_markdown_as_a_page_of_the_budgets_area() -> None:
    kit = FakeKit(
        readers={"agent": Writer(lambda n: "# Kiln\nIt is an **oven**.\n- bakes clay\n")}, images=MediaStore()
    )
    memory, kit = await opened("memocr", ITEMS, kit)
    for tokens in (8, 200):
        readout = await memory.recall(asked("?"), budget(kit, tokens, named("nominal28")))
        (page,) = readout.parts
        assert page.width * page.height <= tokens * 784
    assert readout.trace["memory"].startswith("# Kiln") and readout.trace["shrunk"] == 1.0


# ------------------------------------------------------------------------------------------------------------ AgentOCR


def observations(n: int) -> list[Item]:
    return [
        Item(f"o{k}", "c", k, (Text(f"Command {k}: look"), Text("You see a desk.\nIt is empty.")), kind="observation")
        for k in range(n)
    ]


def test_segments_are_lines_by_kind_and_may_be_compact() -> None:
    (first,) = observations(1)
    assert list(segments(first, compact=False)) == [
        ("action", "Command 0: look"),
        ("observation", "You see a desk."),
        ("observation", "It is empty."),
    ]
    assert list(segments(first, compact=True))[1] == ("observation", "You see a desk.⏎It is empty.")
    assert list(segments(ITEMS[1], compact=False)) == [("observation", "2023-05-08 13:56 · Ada: I bought a red kayak.")]


async def test_equal_segments_are_drawn_once_and_new_ones_as_they_come() -> None:
    memory, kit = await opened("agentocr", observations(3))
    readout = await memory.recall(asked("?"), budget(kit, None, named("nominal28")))
    assert readout.trace["segments"] == 9 and readout.trace["drawn"] == 5
    await memory.observe(kit.know([Item("o9", "c", 9, (Text("A bell."),), kind="observation")]))
    await memory.ready()
    readout = await memory.recall(asked("?"), budget(kit, None, named("nominal28")))
    assert readout.trace["segments"] == 10 and readout.trace["drawn"] == 6
    picture = np.asarray(kit.images.open(readout.parts[0]))
    red, blue = (((picture[..., one] > 120) & (picture[..., two] < 60)).any() for one, two in ((0, 2), (2, 0)))
    assert red and blue  # actions and observations have inks of their own


@pytest.mark.parametrize("factor", ["1", "4", "2.5"])
async def test_a_compression_factor_divides_the_area(factor: str) -> None:
    full = await recalled("agentocr", observations(6), asked("?"), None, named("nominal28"), compression="1")
    small = await recalled("agentocr", observations(6), asked("?"), None, named("nominal28"), compression=factor)
    (one,), (other,) = full.parts or (), small.parts or ()
    assert isinstance(one, Image) and isinstance(other, Image)
    assert other.width == round(one.width / math.sqrt(float(factor)))
    assert math.isclose(small.trace["compression"], float(factor), rel_tol=0.03)


async def test_a_side_is_never_brought_under_28_pixels_and_budget_compresses_enough() -> None:
    tiny = await recalled("agentocr", observations(1), asked("?"), None, named("nominal28"), compression="9999")
    (page,) = tiny.parts or ()
    assert isinstance(page, Image) and min(page.width, page.height) == 28
    fits = await recalled("agentocr", observations(9), asked("?"), 20, named("nominal28"))
    (page,) = fits.parts or ()
    assert isinstance(page, Image) and page.width * page.height <= 20 * 784


@pytest.mark.parametrize("wrong", ["0.5", "much", "inf", "nan"])
def test_a_compression_that_is_none_is_refused(wrong: str) -> None:
    with pytest.raises(UserError, match="expected budget, or a number from 1 on"):
        build(AgentOCRConfig, {"compression": wrong}, "-M", "agentocr")


def test_a_run_of_text_only_holds_the_budget_under_every_counter(tmp_path: Path) -> None:
    names = ("reader", *(counter.name.removesuffix("+bytes4") for counter in ALL[1:]))
    summary = execute(
        RunSpec("text-only", "2wiki", reader="extractive", budget=64, counters=names, out=str(tmp_path)), Quiet()
    )
    assert set(summary["outcomes"]) == {"ok"} and all(tokens <= 64 for tokens in summary["memory_tokens"].values())
