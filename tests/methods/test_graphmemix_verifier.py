from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.methods.graphmemix.snippets import best_lines, modalities, snippet
from memharness.methods.graphmemix.verifier import (
    ATTEMPTS,
    ECV_SCHEMA,
    NODE_SCHEMA,
    POSITIVE,
    ROLES,
    Increment,
    Invalid,
    increments,
    node_scores,
    read_increments,
    read_nodes,
)
from memharness.reader import ReaderCard, Reply, Request
from memharness.types import Derived, Image, Item, MethodError, Text, Usage, Video, parts_text

from .kit import WordCounter, item

ELIGIBLE = {"C01": ["C00"], "C02": ["C00", "C01"]}
GOOD = '{"selected": [{"id": "C00", "score": 4}]}'


class Scripted:
    """Says its lines in order; keeps what it was asked."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)
        self.asked: list[Request] = []
        self.card = ReaderCard("scripted", "scripted", "1", "python", capabilities=frozenset({"schema"}))
        self.counter = WordCounter()

    async def generate(self, request: Request) -> Reply:
        self.asked.append(request)
        return Reply(self.lines[len(self.asked) - 1], Usage())


def row(name: str, **more: Any) -> dict[str, Any]:
    filled = {"direct_support": 1, "best_anchor_id": "C00", "incremental_support": 3, "role": "new_fact"}
    return {"id": name, **filled, **more}


def rows(*given: dict[str, Any]) -> dict[str, Any]:
    return {"candidates": list(given)}


# ------------------------------------------------------------------------------------------------------ node replies


def test_scores_of_the_selected() -> None:
    value = {"selected": [{"id": "C01", "score": 5}, {"id": "C00", "score": 0.5}]}
    assert read_nodes(value, ["C00", "C01", "C02"]) == {"C01": 5.0, "C00": 0.5}
    assert read_nodes({"selected": []}, ["C00"]) == {}


@pytest.mark.parametrize("score", [-0.1, 5.1, None, "3", True, float("nan"), float("inf"), [3]])
def test_a_score_is_a_number_from_0_to_5(score: Any) -> None:
    with pytest.raises(Invalid, match=r"id 'C00': score is .* expected a number from 0 to 5"):
        read_nodes({"selected": [{"id": "C00", "score": score}]}, ["C00"])


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"selected": [{"id": "C07", "score": 1}]}, "'C07' is not one of the candidates"),
        ({"selected": [{"id": "C00", "score": 1}] * 2}, "'C00' comes twice"),
        ({"selected": [{"score": 1}]}, "is not one of the candidates"),
        ({"selected": {"C00": 1}}, "expected"),
        ({"selected": ["C00"]}, "expected"),
        ({"chosen": []}, "expected"),
        ([], "expected"),
        (None, "expected"),
    ],
)
def test_what_is_no_selection_is_refused(value: Any, words: str) -> None:
    with pytest.raises(Invalid, match=words):
        read_nodes(value, ["C00", "C01"])


# ------------------------------------------------------------------------------------------------------- ECV replies


@pytest.mark.parametrize("role", POSITIVE)
def test_a_positive_role_with_increment_and_eligible_anchor_is_a_relation(role: str) -> None:
    found = read_increments(rows(row("C01", role=role), row("C02", best_anchor_id="C01", role=role)), ELIGIBLE)
    assert found == [Increment("C01", "C00", 3.0, role), Increment("C02", "C01", 3.0, role)]


@pytest.mark.parametrize(
    "more",
    [
        {"role": "sequel"},
        {"role": None},
        {"role": ["new_fact"]},
        {"best_anchor_id": None},
        {"best_anchor_id": "C02"},
        {"best_anchor_id": "C99"},
        {"best_anchor_id": ["C00"]},
        {"incremental_support": 0},
        *({"role": role} for role in ROLES if role not in POSITIVE),
    ],
    ids=str,
)
def test_normalisation_leaves_no_relation(more: dict[str, Any]) -> None:
    assert read_increments(rows(row("C01", **more), row("C02")), ELIGIBLE) == [Increment("C02", "C00", 3.0, "new_fact")]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (rows(row("C01")), "1 candidates are missing, first C02"),
        (rows(), "2 candidates are missing, first C01"),
        (rows(row("C01"), row("C02"), row("C01")), "'C01' is repeated"),
        (rows(row("C01"), row("C02"), row("C00")), "'C00' is not one of the candidates"),
        (rows(row("C01", incremental_support=5.5), row("C02")), "incremental_support is 5.5"),
        (rows(row("C01", direct_support=-1), row("C02")), "direct_support is -1"),
        (rows(row("C01", incremental_support=None), row("C02")), "incremental_support is None"),
        ({"candidates": None}, "expected"),
        ("C01", "expected"),
    ],
)
def test_every_expected_id_once_with_scores(value: Any, words: str) -> None:
    with pytest.raises(Invalid, match=words):
        read_increments(value, ELIGIBLE)


ANY = st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=3), st.lists, max_leaves=3)
NAME = st.sampled_from(["C00", "C01", "C02"]) | ANY
REPLY = st.fixed_dictionaries(
    {"id": NAME},
    optional={
        "best_anchor_id": NAME,
        "direct_support": ANY,
        "incremental_support": ANY | st.floats(0, 5),
        "role": st.sampled_from(ROLES) | ANY,
        "score": ANY,
    },
)


@given(ANY | st.fixed_dictionaries({}, optional={"candidates": st.lists(REPLY), "selected": st.lists(REPLY)}))
def test_any_json_is_read_or_refused(value: Any) -> None:
    """No reply, however odd, raises anything else; whatever is read keeps the promises."""
    with suppress(Invalid):
        assert all(
            one.support > 0 and one.anchor in ELIGIBLE[one.candidate] for one in read_increments(value, ELIGIBLE)
        )
    with suppress(Invalid):
        assert all(0 <= score <= 5 for score in read_nodes(value, ["C00", "C01"]).values())


# ------------------------------------------------------------------------------------------------------------ repair


async def test_bad_twice_then_good() -> None:
    reader = Scripted("I like C00.", '{"selected": [{"id": "C09", "score": 1}]}', GOOD)
    assert await node_scores(reader, {"question": "q"}, ["C00"], 99) == ({"C00": 4.0}, 3)
    first, second, third = reader.asked
    assert [message.role for message in first.messages] == ["system", "user"]
    assert json.loads(parts_text(first.messages[1].parts)) == {"question": "q"}
    for request, said, why in (
        (second, "I like C00.", "not one JSON object"),
        (third, "C09", "'C09' is not one of the candidates"),
    ):
        assert [message.role for message in request.messages] == ["system", "user", "assistant", "user"]
        assert request.messages[:2] == first.messages
        assert said in parts_text(request.messages[2].parts) and why in parts_text(request.messages[3].parts)
    for request in reader.asked:
        assert request.schema == NODE_SCHEMA
        assert (request.sampling.max_tokens, request.sampling.temperature) == (99, 0.0)


async def test_every_attempt_is_a_request_of_its_own_even_if_the_reply_repeats() -> None:
    """The harness caches requests: an equal one would bring the same bad reply back without asking."""
    reader = Scripted("no", "no", "no")
    with pytest.raises(MethodError):
        await node_scores(reader, {}, ["C00"], 9)
    assert len(set(map(repr, reader.asked))) == ATTEMPTS == 3


@pytest.mark.parametrize("reply", ["", "no", "{", "}{", "[1]", '{"selected": 3}', '{"a":' * 9999 + "}" * 9999, "{1}"])
async def test_never_valid_is_a_method_error_that_says_why(reply: str) -> None:
    with pytest.raises(MethodError, match=r"verifier.v1: no valid JSON in 3 attempts, last: "):
        await node_scores(Scripted(*[reply] * 3), {}, ["C00"], 9)


@pytest.mark.parametrize("around", ["{}", "```json\n{}\n```", "Here you are: {} Done."])
async def test_words_around_the_object_do_no_harm(around: str) -> None:
    assert await node_scores(Scripted(around.replace("{}", GOOD)), {}, ["C00"], 9) == ({"C00": 4.0}, 1)


async def test_ecv_is_mended_too() -> None:
    reader = Scripted(json.dumps(rows(row("C01"))), json.dumps(rows(row("C01"), row("C02", best_anchor_id=None))))
    assert await increments(reader, {}, ELIGIBLE, 9) == ([Increment("C01", "C00", 3.0, "new_fact")], 2)
    assert "candidates are missing, first C02" in parts_text(reader.asked[1].messages[3].parts)
    assert reader.asked[0].schema == ECV_SCHEMA
    assert "anchor" in parts_text(reader.asked[0].messages[0].parts)


# ---------------------------------------------------------------------------------------------------------- snippets


def picture(ocr: str = "", **more: str) -> Item:
    derived = tuple(Derived(kind, text, 1) for kind, text in {**more, "ocr": ocr}.items() if text)
    return Item("i0", "c", 0, (Text("We met\n at  noon."), Image(None)), derived)


def test_a_snippet_is_words_and_captions_then_ocr() -> None:
    shown = picture("TOTAL 5", caption="a bill", short_caption="bill", tags="paper")
    assert snippet(shown, "how much?", 420, 120) == "We met at noon. a bill [text in picture: TOTAL 5]"
    assert snippet(picture(short_caption="bill"), "", 420, 120) == "We met at noon. bill"
    assert snippet(shown, "how much?", 10, 120) == "We met at… [text in picture: TOTAL 5]"
    assert snippet(shown, "how much?", 420, 0) == "We met at noon. a bill"
    assert snippet(Item("i0", "c", 0, (Image(None),)), "", 420, 120) == ""


def test_lines_that_answer_come_first_then_numbers_then_long_ones() -> None:
    lines = ["thank you", "come again to us", "tax 1.20", "kestrel bicycles"]
    assert best_lines(lines, "What do bicycles cost?", 200).split(" / ") == [
        "kestrel bicycles", "tax 1.20", "come again to us", "thank you",
    ]  # fmt: skip


def test_near_duplicates_are_shown_once() -> None:
    lines = ["KESTREL CYCLES Corn Row, Leeds", "KESTREL CYCLES Corn Row; Leeds", "  KESTREL  CYCLES Corn Row, Leeds "]
    assert best_lines([*lines, "total"], "", 200) == "KESTREL CYCLES Corn Row, Leeds / total"


def test_one_long_line_is_broken_rather_than_lost() -> None:
    line = "lorem ipsum " * 40 + "the deposit was 45 pounds " + "dolor sit " * 40
    found = best_lines([line], "How large was the deposit?", 120)
    assert "deposit" in found and len(found) <= 120


@given(st.lists(st.text("ab 1\t", max_size=40), max_size=8), st.integers(0, 60))
def test_the_ocr_budget_holds_and_no_line_is_made_up(lines: list[str], characters: int) -> None:
    found = best_lines(lines, "a b", characters)
    assert len(found) <= characters
    whole = " / ".join(" ".join(line.split()) for line in lines)
    assert all(piece in whole for piece in found.split(" / "))


@given(st.text(max_size=80), st.integers(1, 60))
def test_the_own_budget_holds(text: str, characters: int) -> None:
    assert len(snippet(item(0, text), "", characters, 0)) <= characters


def test_modalities() -> None:
    parts = (Text("x"), Image(None), Image(None), Video(None))
    assert modalities(Item("i", "c", 0, parts)) == ["image", "text", "video"]
