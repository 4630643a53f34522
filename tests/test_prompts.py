"""The harness's own prompts: templates, evidence as it is shown, and what a dangling pointer is called."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness import prompts
from memharness.prompts import Renderer, View, answer_request, choice_lines, header, merge, stripped, template
from memharness.reader import Message, Sampling
from memharness.types import (
    Choice,
    Derived,
    Evidence,
    Image,
    Item,
    MethodError,
    Part,
    Place,
    Question,
    Readout,
    Text,
    UserError,
    Video,
    parts_text,
)

CAT = Image("ca7" + "0" * 61, "image/jpeg", 640, 480, "cat.jpg")
LOST = Image(None, source="lost.jpg")
FILM = Video("f11" + "0" * 61, "video/mp4", source="film.mp4")
SAID = Item("said", "c", 0, (Text("Hello there."), Text("Bye.")), time="2024-05-01", speaker="Ada", label="D1:1")
SEEN = Item(
    "seen",
    "c",
    1,
    (Text("Look:"), CAT, Text("and")),
    derived=(
        Derived("ocr", "EXIT", 1),
        Derived("caption", "a cat", 1),
        Derived("tags", "cat, sofa", 1),
        Derived("summary", "", 1),
    ),
    place=Place("Oslo"),
)
TWO = Item("two", "c", 2, (CAT, LOST), derived=(Derived("caption", "first", 0), Derived("caption", "second", 1)))
MOVED = Item("moved", "c", 3, (FILM,), derived=(Derived("summary", "a walk", 0), Derived("caption", "trees", 0)))
ITEMS = {item.id: item for item in (SAID, SEEN, TWO, MOVED)}


def shown(*pointers: Evidence, view: View = "captions") -> str:
    """Evidence as text."""
    return parts_text(Renderer(ITEMS, view).evidence(pointers))


# ------------------------------------------------------------------------------------------------------------ evidence


def test_blocks_are_numbered_in_order_with_a_line_that_says_what_they_are() -> None:
    assert shown(Evidence("moved"), Evidence("said")) == (
        "[1]\nCaption: trees\nSummary: a walk\n\n[2] D1:1 · 2024-05-01 · Ada\nHello there.\nBye.\n"
    )


def test_captions_stand_for_pictures_and_pixels_for_themselves() -> None:
    assert shown(Evidence("seen")) == "[1] Oslo\nLook:\nand\nCaption: a cat\nText in picture: EXIT\n"
    parts = Renderer(ITEMS, "pixels").evidence([Evidence("seen")])
    assert parts == (Text("[1] Oslo\nLook:\n"), CAT, Text("\nand\n"))


def test_derived_text_without_a_picture_is_never_shown() -> None:
    item = Item("t", "c", 0, (Text("words"),), derived=(Derived("caption", "made up"), Derived("summary", "more")))
    for view in ("pixels", "captions"):
        assert parts_text(Renderer({"t": item}, view).evidence([Evidence("t")])) == "[1]\nwords\n"


def test_a_video_is_its_derived_text_in_both_views() -> None:
    assert (
        shown(Evidence("moved"), view="pixels") == shown(Evidence("moved")) == "[1]\nCaption: trees\nSummary: a walk\n"
    )


def test_a_missing_picture_has_captions_but_no_pixels() -> None:
    assert shown(Evidence("two")) == "[1]\nCaption: first\nCaption: second\n"
    with pytest.raises(UserError, match=r"--view pixels: lost.jpg is not at hand; .* --view captions"):
        shown(Evidence("two"), view="pixels")


def test_a_part_is_shown_with_what_was_derived_from_it() -> None:
    assert shown(Evidence("two", 1)) == "[1]\nCaption: second\n"
    assert shown(Evidence("two", 0), view="pixels") == "[1]\n<image ca7000000000>\n"
    assert shown(Evidence("seen", 0)) == "[1] Oslo\nLook:\n"
    assert shown(Evidence("seen", 1)) == "[1] Oslo\nCaption: a cat\nText in picture: EXIT\n"


def test_a_span_is_characters_of_a_part() -> None:
    assert shown(Evidence("said", 0, (0, 5))) == "[1] D1:1 · 2024-05-01 · Ada\nHello\n"
    assert shown(Evidence("said", 1, (4, 4))) == "[1] D1:1 · 2024-05-01 · Ada\n\n"
    assert shown(Evidence("said", 0, (6, 12))) == "[1] D1:1 · 2024-05-01 · Ada\nthere.\n"


def test_neighbouring_pointers_into_one_item_share_a_block() -> None:
    assert shown(Evidence("said", 1), Evidence("said", 0), Evidence("seen", 0), Evidence("said", 0)) == (
        "[1] D1:1 · 2024-05-01 · Ada\nBye.\nHello there.\n\n"
        "[2] Oslo\nLook:\n\n"
        "[3] D1:1 · 2024-05-01 · Ada\nHello there.\n"
    )


def test_no_evidence_is_no_parts() -> None:
    assert Renderer(ITEMS, "pixels").evidence([]) == ()


@pytest.mark.parametrize(
    ("pointer", "message"),
    [
        (Evidence("gone"), "points to item 'gone', which was never observed"),
        (Evidence("said", 2), "points to part 2 of item 'said', which has 2"),
        (Evidence("said", -1), "points to part -1 of item 'said'"),
        (Evidence("said", 0, (0, 13)), r"points to span \(0, 13\) of item 'said', outside its text"),
        (Evidence("said", 0, (-1, 3)), "outside its text"),
        (Evidence("said", 0, (3, 2)), "outside its text"),
        (Evidence("seen", 1, (0, 1)), "outside its text"),
        (Evidence("said", None, (0, 1)), r"points to span \(0, 1\) of item 'said' and to no part of it"),
    ],
)
def test_a_dangling_pointer_is_the_methods_fault(pointer: Evidence, message: str) -> None:
    with pytest.raises(MethodError, match=message):
        shown(Evidence("said"), pointer)


def test_items_may_come_while_the_context_lives() -> None:
    items: dict[str, Item] = {}
    renderer = Renderer(items, "captions")
    items["said"] = SAID
    assert renderer.evidence([Evidence("said", 1)])


def test_a_header_holds_what_is_known() -> None:
    assert header(Item("a", "c", 0, ())) == ""
    assert header(Item("a", "c", 0, (), place=Place())) == ""
    item = Item("a", "c", 0, (), label="L", time="2024", speaker="Bo", place=Place("Rome"), session="s", kind="photo")
    assert header(item) == "L · 2024 · Bo · Rome"


@given(
    st.lists(st.sampled_from([Text("a"), Text(""), Text("b\n"), CAT, FILM]), max_size=8),
    st.lists(st.sampled_from([Text(" "), Text("\n"), CAT]), max_size=3),
)
def test_merging_keeps_words_and_order(parts: list[Part], tail: list[Part]) -> None:
    merged = merge(parts)
    assert parts_text(merged) == parts_text(tuple(parts))
    assert not any(isinstance(a, Text) and isinstance(b, Text) for a, b in pairwise(merged))
    bare = stripped([*parts, *tail])
    assert not isinstance(last := bare[-1] if bare else CAT, Text) or last.text == last.text.rstrip() != ""
    assert parts_text(merge([*parts, *tail])).startswith(parts_text(bare))


# ----------------------------------------------------------------------------------------------------------- templates


@pytest.mark.parametrize("name", ["answer.v1", "caption.v1"])
def test_a_template_is_a_packaged_file_and_its_hash(name: str) -> None:
    path = Path(prompts.__file__).parent / f"{name}.txt"
    found = template(name)
    assert found.name == name
    assert found.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert [role for role, _ in found.messages][-1] == "user"
    assert template(name) is found


def test_every_prompt_file_parses() -> None:
    files = sorted(Path(prompts.__file__).parent.glob("*.txt"))
    assert len(files) >= 2
    for file in files:
        assert template(file.stem).messages


@pytest.mark.parametrize("name", ["answer.v9", "../pyproject", ""])
def test_a_prompt_that_is_not_there(name: str) -> None:
    with pytest.raises(UserError, match=f"no prompt is called {name}"):
        template(name)


def request(readout: Readout, question: Question, view: View = "captions") -> tuple[str, ...]:
    """The messages of the answer prompt as text."""
    found = answer_request(question, readout, Renderer(ITEMS, view), Sampling(max_tokens=9))
    assert found.sampling.max_tokens == 9
    return tuple(parts_text(message.parts) for message in found.messages)


def test_the_answer_prompt_in_full() -> None:
    question = Question(
        "q",
        "c",
        (Text("Which animal?"), CAT),
        choices=(Choice("A", (Text("cat"),)), Choice("B", (Text("dog"),))),
        instruction="Answer with a letter.",
        derived=(Derived("caption", "a cat again", 1),),
    )
    system, user = request(Readout((Evidence("said", 1),)), question)
    assert system.startswith("You answer questions from evidence")
    assert user == (
        "Evidence:\n[1] D1:1 · 2024-05-01 · Ada\nBye.\n\n"
        "Answer with a letter.\nQuestion: Which animal?\nCaption: a cat again\nA. cat\nB. dog\nAnswer:"
    )


def test_lines_of_empty_slots_are_left_out() -> None:
    _, user = request(Readout(), Question("q", "c", (Text("Who?"),)))
    assert user == "Evidence:\n(none)\n\nQuestion: Who?\nAnswer:"


def test_pictures_are_put_where_they_were_asked() -> None:
    question = Question("q", "c", (Text("This"), CAT, Text("or that?")), choices=(Choice("A", (CAT,)),))
    _, user = request(Readout((Evidence("seen", 1),)), question, "pixels")
    cat = "<image ca7000000000>"
    assert user == f"Evidence:\n[1] Oslo\n{cat}\n\nQuestion: This\n{cat}\nor that?\nA. {cat}\nAnswer:"


def test_a_readouts_own_parts_stand_in_the_place_of_evidence() -> None:
    _, user = request(
        Readout((Evidence("said"),), parts=(Text("my own words\n\n"),)), Question("q", "c", (Text("Q?"),))
    )
    assert user == "Evidence:\nmy own words\n\nQuestion: Q?\nAnswer:"
    _, user = request(Readout((Evidence("said"),), parts=()), Question("q", "c", (Text("Q?"),)))
    assert user.startswith("Evidence:\n(none)\n")


def test_braces_in_what_is_shown_are_only_braces() -> None:
    _, user = request(Readout(parts=(Text("{question} {0} {choices}"),)), Question("q", "c", (Text("{evidence}?"),)))
    assert user == "Evidence:\n{question} {0} {choices}\n\nQuestion: {evidence}?\nAnswer:"


def test_a_slot_that_is_not_filled_is_a_fault_of_the_template() -> None:
    with pytest.raises(KeyError):
        template("answer.v1").fill({})


def test_choices_of_pictures_need_their_words() -> None:
    question = Question("q", "c", (Text("?"),), choices=(Choice("A", (Text("x"), CAT)), Choice("B", (Text("y"),))))
    assert parts_text(choice_lines(question, Renderer({}, "captions"))) == "A. x\nB. y\n"


def test_a_caption_request_shows_the_picture_first() -> None:
    messages: Sequence[Any] = template("caption.v1").fill({"question": (CAT,)})
    assert isinstance(messages[0], Message)
    assert messages[0].parts[0] == CAT
