"""Targets of extractor and manager: what is written is read back, and what is not in the form says why."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.methods.memo import target
from memharness.methods.memo.target import NotInForm
from memharness.methods.memo.units import Action, EvidenceUnit, Plan, Record, Template
from memharness.types import Question, Text, parts_text

RECORDS = (
    Record("p0", "Ada Lovelace was born in 1815.  She wrote notes.", title="Ada Lovelace"),
    Record("p1", "A kiln is an oven.", title="Kiln", time="2026-03-01T10:00", speaker="Bo"),
)
UNITS = (
    EvidenceUnit("u1", "born in 1815.", ((22, 26),), "p0", start=14),
    EvidenceUnit("u2", "A kiln is an oven.", ((0, 18),), "p1"),
)
QUESTION = Question("q", "c", (Text("When was\nAda born?"),))


def said(request: target.Request) -> str:
    return parts_text(request.parts())


def test_extractor_reads_every_record_on_one_line() -> None:
    words = said(target.extractor_request(QUESTION, RECORDS, 128))
    assert "Question: When was Ada born?\nBudget: 128 tokens\nRecords:\n" in words
    assert "\n[p0] Ada Lovelace: Ada Lovelace was born in 1815. She wrote notes.\n" in words
    assert words.endswith("[p1] Kiln · 2026-03-01 10:00 · Bo: A kiln is an oven.")


def test_manager_sees_key_spans_and_no_limit() -> None:
    words = said(target.manager_request(QUESTION, UNITS, None))
    assert words.endswith("Budget: none\nUnits:\n[u1] born in «1815».\n[u2] A kiln is an oven.")


def test_extraction_is_quotes_and_a_whole_record_is_none() -> None:
    text = target.extraction([("p1", ((0, 18),)), ("p0", ((25, 30), (0, 12)))], RECORDS)
    assert json.loads(text) == {
        "evidence": [{"source": "p1", "quotes": []}, {"source": "p0", "quotes": ["Ada Lovelace", "1815."]}]
    }
    assert target.read_extraction(text, RECORDS) == [("p1", ((0, 18),)), ("p0", ((0, 12), (25, 30)))]


@pytest.mark.parametrize("found", [[("p9", ((0, 1),))], [("p0", ((0, 99),))], [("p0", ((30, 32),))]])
def test_no_target_is_written_of_what_the_records_do_not_hold(found: target.Extraction) -> None:
    with pytest.raises(ValueError, match=r"p9|p0"):
        target.extraction(found, RECORDS)


WORD = st.text("abcé«{\"'\\", min_size=1, max_size=4)


@given(st.lists(st.lists(WORD, min_size=1, max_size=8), min_size=1, max_size=4), st.data())
def test_spans_of_whole_words_are_read_back(texts: list[list[str]], data: st.DataObject) -> None:
    records = [Record(f"p{at}", "  ".join(words)) for at, words in enumerate(texts)]
    found = []
    for record, words in zip(records, texts, strict=True):
        cuts = sorted(data.draw(st.sets(st.integers(0, len(words)), min_size=2, max_size=4)))
        starts = [len("  ".join([*words[:at], ""])) if at else 0 for at in range(len(words) + 1)]
        found.append((record.id, tuple((starts[a], starts[b - 1] + len(words[b - 1])) for a, b in pairwise(cuts))))
    read = target.read_extraction(target.extraction(found, records), records)
    for (source, spans), (name, wanted) in zip(read, found, strict=True):
        text = next(record.text for record in records if record.id == name)
        assert source == name
        assert {text[a:b] for a, b in spans} == {text[a:b] for a, b in wanted}  # equal words may stand earlier


def test_equal_quotes_are_the_places_of_those_words_one_after_another() -> None:
    record = Record("r", "tap, then tap, then tap")
    text = target.extraction([("r", ((0, 3), (10, 13), (20, 23)))], [record])
    assert target.read_extraction(text, [record]) == [("r", ((0, 3), (10, 13), (20, 23)))]


def test_what_does_not_quote_its_source_comes_back_without_spans() -> None:
    text = '{"evidence": [{"source": "p0", "quotes": ["1815", "1816"]}, {"source": "p7", "quotes": []}]}'
    assert target.read_extraction(text, RECORDS) == [("p0", ((25, 29),)), ("p0", ()), ("p7", ())]


def test_a_fence_and_other_white_space_do_no_harm() -> None:
    text = '```json\n{"evidence": [{"source": "p0", "quotes": ["1815. She"]}]}\n```'
    assert target.read_extraction(text, RECORDS) == [("p0", ((25, 35),))]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not one whole JSON object"),
        ('{"evidence": [{"source": "p0", "quo', "not one whole JSON object"),
        ('{"evidence": NaN}', "NaN is no JSON value"),
        ("[]", "not one whole JSON object"),
        ('{"found": []}', "has no evidence"),
        ('{"evidence": [], "why": ""}', "has 'why'"),
        ('{"evidence": {}}', "evidence is {}, not a list"),
        ('{"evidence": [3]}', r"evidence\[0\] is 3, not an object"),
        ('{"evidence": [{"source": "p0"}]}', r"evidence\[0\] has no quotes"),
        ('{"evidence": [{"source": 0, "quotes": []}]}', r"evidence\[0\].source is 0"),
        ('{"evidence": [{"source": "p0", "quotes": [" "]}]}', r"evidence\[0\].quotes"),
    ],
)
def test_extractions_that_are_not_in_the_form(text: str, why: str) -> None:
    with pytest.raises(NotInForm, match=why):
        target.read_extraction(text, RECORDS)


@given(
    st.lists(st.sampled_from(list(Action)), min_size=2, max_size=2),
    st.lists(st.integers(0, 100), min_size=2, max_size=2),
    st.integers(0, 4096),
    st.lists(st.sampled_from(list(Template)), min_size=1, unique=True),
)
def test_plans_are_read_back(
    actions: list[Action], hundredths: list[int], usage: int, templates: list[Template]
) -> None:
    names = [unit.id for unit in UNITS]
    decided = Plan(
        dict(zip(names, actions, strict=True)),
        dict(zip(names, (n / 100 for n in hundredths), strict=True)),
        usage,
        tuple(templates),
    )
    assert target.read_plan(target.plan(decided, UNITS), UNITS) == decided


def test_a_unit_that_is_not_named_is_dropped() -> None:
    text = '{"units": [{"id": "u2", "action": "image", "confidence": 1}], "usage": 3, "templates": ["table", "table"]}'
    read = target.read_plan(text, UNITS)
    assert [read.action(unit) for unit in UNITS] == [Action.DROP, Action.IMAGE]
    assert read.templates == (Template.TABLE,)


ROW = '{"id": "u1", "action": "text", "confidence": 0.5}'


@pytest.mark.parametrize(
    ("units", "rest", "why"),
    [
        (
            '{"id": "u3", "action": "text", "confidence": 1}',
            '"usage": 0, "templates": ["cards"]',
            "u3.*there are u1, u2",
        ),
        (f"{ROW}, {ROW}", '"usage": 0, "templates": ["cards"]', "u1 comes twice"),
        (ROW.replace("text", "hide"), '"usage": 0, "templates": ["cards"]', "'hide', not one of text, image"),
        (ROW.replace("0.5", "1.5"), '"usage": 0, "templates": ["cards"]', "1.5, not a number from 0 to 1"),
        (ROW.replace("0.5", "true"), '"usage": 0, "templates": ["cards"]', "True, not a number"),
        (ROW, '"usage": -1, "templates": ["cards"]', "usage is -1"),
        (ROW, '"usage": 1.5, "templates": ["cards"]', "usage is 1.5"),
        (ROW, '"usage": 0, "templates": []', "templates is"),
        (ROW, '"usage": 0, "templates": ["poster"]', r"templates\[0\] is 'poster'"),
    ],
)
def test_plans_that_are_not_in_the_form(units: str, rest: str, why: str) -> None:
    with pytest.raises(NotInForm, match=why):
        target.read_plan(f'{{"units": [{units}], {rest}}}', UNITS)
