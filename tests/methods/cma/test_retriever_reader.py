"""CoRE by a reader: what it is shown, how its list is read, and what happens when it does not fit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.episodic import Card
from memharness.media import MediaStore
from memharness.methods.cma.candidates import Candidate
from memharness.methods.cma.retriever_reader import (
    SCHEMA,
    ReaderRetriever,
    line_of,
    prefilter,
    read_ranks,
    retrieval_request,
)
from memharness.reader import Reply
from memharness.types import Image, OverWindow, Usage
from tests.methods.cma.sessions import Kept, Scripted, asset, painted, shown

DATA = painted("red")


def some(count: int, thumbnail: bytes | None = None) -> list[Candidate]:
    words = ("red lamp", "blue mug", "green kite", "white boat", "black cat", "pink hat")
    return [
        Candidate(asset(at, DATA), Card((words[at], "shelf"), f"A {words[at]} on\n a shelf."), thumbnail)
        for at in range(count)
    ]


@pytest.fixture
def images(tmp_path: Path) -> Kept:
    return Kept(MediaStore(tmp_path))


@pytest.mark.parametrize(
    ("reply", "read"),
    [
        ('{"images": [2, 0, 2]}', ("ok", (0, 2), ())),
        ('{"images": []}', ("ok", (), ())),
        ('Sure: {"images": [1]}.', ("ok", (1,), ())),
        ('<think>{"images": [0]}</think>{"images": [1]}', ("ok", (1,), ())),
        ('{"images": [1, 7, -1]}', ("out_of_range", (1,), (-1, 7))),
        ('{"images": ["1"]}', ("parse_error", (), ())),
        ('{"images": [true]}', ("parse_error", (), ())),
        ('{"images": [1.0]}', ("parse_error", (), ())),
        ('{"images": 1}', ("parse_error", (), ())),
        ("[1]", ("parse_error", (), ())),
        ("rank 1", ("parse_error", (), ())),
        ("", ("parse_error", (), ())),
        ('{"images": [1', ("parse_error", (), ())),
    ],
)
def test_a_list_is_read_strictly(reply: str, read: object) -> None:
    assert read_ranks(reply, 3) == read


@given(st.lists(st.integers(-3, 12)), st.integers(0, 10))
def test_order_and_repeats_do_not_matter(ranks: list[int], count: int) -> None:
    outcome, known, lost = read_ranks(json.dumps({"images": ranks}), count)
    assert set(known) | set(lost) == set(ranks)
    assert known == tuple(sorted(set(known)))
    assert all(0 <= rank < count for rank in known)
    assert outcome == ("out_of_range" if lost else "ok")
    assert read_ranks(json.dumps({"images": ranks[::-1] + ranks}), count) == (outcome, known, lost)


@given(st.text())
def test_any_reply_has_an_outcome(reply: str) -> None:
    assert read_ranks(reply, 3)[0] in ("ok", "parse_error", "out_of_range")


async def test_candidates_stand_in_order_with_rank_picture_and_card(images: Kept) -> None:
    reader = Scripted('{"images": [1]}', image=True, schema=True)
    found = await ReaderRetriever(reader, images).retrieve("the blue mug", (), some(2, DATA), ["Turn 1, user: hello"])
    assert found.ids == ("image-1",)
    assert found.rung == "reader"
    assert found.trace["outcome"] == "ok"
    assert found.trace["pixels"] is True
    request = reader.asked[0]
    assert request.schema == SCHEMA
    assert len([part for part in request.parts() if isinstance(part, Image)]) == 2
    text = shown(request)
    assert text.index("rank 0: ") < text.index("[0] tags: red lamp, shelf | description: A red lamp on a shelf.")
    assert (
        text.index("[0] tags") < text.index("rank 1: ") < text.index("[1] tags") < text.index("Request: the blue mug")
    )
    assert "hello" not in text  # the paper's prompt carries the query alone
    assert "Dialogue" not in text


async def test_history_is_an_option(images: Kept) -> None:
    reader = Scripted('{"images": []}')
    await ReaderRetriever(reader, images, history=1).retrieve("it", (), some(1), ["Turn 1, user: a", "Turn 2, user: b"])
    assert "Dialogue so far:\nTurn 2, user: b" in shown(reader.asked[0])
    assert "Turn 1" not in shown(reader.asked[0])


async def test_a_reader_without_sight_gets_lines_alone(images: Kept) -> None:
    reader = Scripted('{"images": []}')
    found = await ReaderRetriever(reader, images).retrieve("it", (), some(2, DATA), ())
    assert found.trace["pixels"] is False
    assert not [part for part in reader.asked[0].parts() if isinstance(part, Image)]
    assert "rank 0: " not in shown(reader.asked[0])


def test_without_a_card_the_words_stand_for_it() -> None:
    failed = Candidate(asset(0, prompt="draw a lamp"), Card(status="failed"), None)
    assert line_of(0, failed).text == "[0] no card | generated | request: draw a lamp"
    assert line_of(3, Candidate(asset(3), None, None)).text == "[3] no card | generated"


@pytest.mark.parametrize(
    ("reply", "outcome", "ids"),
    [
        ("the second one", "parse_error", ()),
        ('{"images": [0, 9]}', "out_of_range", ("image-0",)),
        (Reply('{"images": [0]}', Usage(), "refused"), "refused", ()),
    ],
)
async def test_what_cannot_be_used_is_an_outcome(
    images: Kept, reply: Reply | str, outcome: str, ids: tuple[str, ...]
) -> None:
    found = await ReaderRetriever(Scripted(reply), images).retrieve("it", (), some(2), ())
    assert (found.trace["outcome"], found.ids) == (outcome, ids)


async def test_nothing_is_asked_where_there_is_nothing_to_choose_from(images: Kept) -> None:
    reader = Scripted('{"images": [0]}')
    assert (await ReaderRetriever(reader, images).retrieve("draw a lamp", (), (), ())).ids == ()
    assert not reader.asked


async def test_a_pool_keeps_ranks_and_says_so(images: Kept) -> None:
    reader = Scripted('{"images": [4]}')
    found = await ReaderRetriever(reader, images, pool=2).retrieve("the black cat", (), some(6), ())
    assert found.ids == ("image-4",)
    assert found.trace["prefilter"]["of"] == 6
    assert 4 in found.trace["prefilter"]["kept"]
    assert "[4] tags: black cat" in shown(reader.asked[0])
    assert "[1] tags" not in shown(reader.asked[0])


async def test_what_does_not_fit_the_window_is_prefiltered_and_said(images: Kept) -> None:
    whole = len(shown(retrieval_request("the black cat", [line_of(at, one) for at, one in enumerate(some(6))])))
    reader = Scripted('{"images": [4]}', window=whole + 10)
    found = await ReaderRetriever(reader, images).retrieve("the black cat", (), some(6), ())
    assert found.ids == ("image-4",)
    assert 1 <= found.trace["shown"] < 6
    assert len(found.trace["prefilter"]["kept"]) == found.trace["shown"]
    assert len(reader.asked) == 1


async def test_a_reader_that_refuses_the_length_is_shown_less(images: Kept) -> None:
    reader = Scripted(OverWindow("too long"), '{"images": [4]}')
    found = await ReaderRetriever(reader, images).retrieve("the black cat", (), some(6), ())
    assert (found.ids, found.trace["shown"]) == (("image-4",), 4)
    with pytest.raises(OverWindow):
        await ReaderRetriever(Scripted(OverWindow("too long")), images).retrieve("it", (), some(2), ())


def test_the_prefilter_takes_words_and_then_the_latest() -> None:
    lines = [line_of(at, one) for at, one in enumerate(some(4))]
    assert prefilter("green kite", lines)[0] == 2
    assert prefilter("nothing of these", lines) == [3, 2, 1, 0]
