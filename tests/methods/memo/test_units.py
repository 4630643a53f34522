"""Units quote their records, in characters, and whatever does not is rejected."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.methods.memo.units import (
    Action,
    EvidenceUnit,
    Plan,
    Record,
    Selection,
    fault,
    materialise,
)
from memharness.types import Derived, Evidence, Image, Item, Text

from .working import paragraph, turn

WORDS = st.text(alphabet="ab \n.«é漢", min_size=0, max_size=60)


def record(text: str) -> Record:
    return Record("r", text, pieces=((0, len(text), 0),))


def test_parts_are_joined_by_one_space_unless_the_data_brings_its_own() -> None:
    made = Record.of(Item("i", "c", 0, (Text("One."), Text(" Two."), Text("Three."), Text(" \n"))))
    assert made.text == "One. Two. Three."
    assert [made.text[start:end] for start, end, _ in made.pieces] == ["One.", " Two.", "Three."]


def test_whole_parts_are_pointed_to_without_a_span_and_pieces_of_one_with_it() -> None:
    made = Record.of(paragraph(0, "T", "First one.", "Second one."))
    assert made.pointers(0, len(made.text)) == (Evidence("p0", 0), Evidence("p0", 1))
    start = made.text.index("Second")
    assert made.pointers(start, len(made.text)) == (Evidence("p0", 1),)  # its leading space does not count
    assert made.pointers(start, start + 6) == (Evidence("p0", 1, (1, 7)),)
    assert made.pointers(5, 5) == ()


def test_words_about_a_picture_stand_behind_and_point_to_it() -> None:
    item = Item("i", "c", 0, (Text("Look!"), Image(None)), derived=(Derived("caption", "a red kite", part=1),))
    made = Record.of(item)
    assert made.text == "Look! Caption: a red kite"
    assert made.pointers(made.text.index("red"), len(made.text)) == (Evidence("i", 1),)


@given(WORDS, st.lists(st.tuples(st.integers(-3, 70), st.integers(-3, 70)), max_size=5), st.integers(0, 20))
def test_every_unit_is_a_verbatim_copy_and_nothing_is_lost_in_silence(
    text: str, spans: list[tuple[int, int]], window: int
) -> None:
    source = record(text)
    units, rejected = materialise([Selection("r", tuple(spans), 0.5)], {"r": source}, window)
    for unit in units:
        assert unit.content == text[unit.start : unit.end]
        assert fault(unit, source) is None
        assert all(unit.start <= start < end <= unit.end for start, end in unit.spans)
    good = {(start, end) for start, end in spans if 0 <= start < end <= len(text) and text[start:end].strip()}
    quoted = {span for unit in units for span in unit.spans}
    assert quoted <= good
    assert quoted == good or rejected


def test_a_window_is_widened_to_whole_words_and_stays_in_its_record() -> None:
    text = "The quick brown fox jumps over the lazy dog"
    at = text.index("fox")
    (unit,), _ = materialise([Selection("r", ((at, at + 3),))], {"r": record(text)}, 7)
    assert unit.content == "quick brown fox jumps over"
    assert unit.key == "fox" and unit.highlights == ((12, 15),)
    (whole,), _ = materialise([Selection("r", ((at, at + 3),))], {"r": record(text)}, 500)
    assert whole.content == text


def test_windows_that_overlap_become_one_unit_and_those_that_touch_stay_two() -> None:
    text = "one two three four"
    spans = ((0, 3), (4, 7))
    apart, _ = materialise([Selection("r", spans)], {"r": record(text)}, 0)
    assert [unit.content for unit in apart] == ["one", "two"]
    (joined,), _ = materialise([Selection("r", spans)], {"r": record(text)}, 3)
    assert joined.spans == spans and joined.key == "one … two"


@pytest.mark.parametrize(
    ("selection", "reason"),
    [
        (Selection("x", ((0, 3),)), "x: its source is not a record"),
        (Selection("r", ()), "r: it quotes nothing of its source"),
        (Selection("r", ((0, 99),)), "r: a key span lies outside its content, or is empty"),
        (Selection("r", ((-3, 2),)), "r: it lies outside its source"),
        (Selection("r", ((3, 4),)), "r: a key span lies outside its content, or is empty"),
    ],
)
def test_a_selection_that_does_not_quote_its_source_is_rejected_by_name(selection: Selection, reason: str) -> None:
    assert materialise([selection], {"r": record("one two")}) == ((), (reason,))


def test_a_unit_whose_content_was_changed_does_not_quote_its_source() -> None:
    (unit,), _ = materialise([Selection("r", ((0, 3),))], {"r": record("one two")})
    assert fault(replace(unit, content="two"), record("one two")) == "its content is not what its source says"


def test_a_unit_that_a_plan_does_not_name_is_dropped() -> None:
    unit = EvidenceUnit("u1", "x", ((0, 1),), "r")
    assert Plan({}).action(unit) is Action.DROP
    assert Plan({"u1": Action.DUAL}).action(unit) is Action.DUAL


def test_a_turn_keeps_its_speaker_and_time() -> None:
    made = Record.of(turn(3, "Ada", "2023-05-08T13:56", "I went to the lake."))
    assert (made.id, made.speaker, made.time, made.title) == ("D1:3", "Ada", "2023-05-08T13:56", "")
