from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.scoring.verdict import boolean_verdict, word_verdict


def test_case_verdict_words(shared: Path) -> None:
    for reply, right in json.loads((shared / "cases/c01_verdict_words.json").read_text())["replies"]:
        assert word_verdict(reply) == right, reply


def test_case_json_booleans(shared: Path) -> None:
    for reply, right in json.loads((shared / "cases/c02_json_booleans.json").read_text())["replies"]:
        assert boolean_verdict(reply) == right, reply
        assert boolean_verdict(json.dumps(reply)) == right, reply
        assert boolean_verdict(f"Here it is:\n```json\n{json.dumps(reply)}\n```") == right, reply


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("CORRECT", "right"),
        ("**Correct**", "right"),
        ("Yes.", "right"),
        ("The answer is wrong because the year differs", "wrong"),
        ("It isn't correct.", "wrong"),
        ("Verdict: correct. The date is not wrong.", "right"),
        ("The prediction names another town.\n\nJudgement: WRONG", "wrong"),
        ('{"label": "WRONG"}', "wrong"),
        ("<think>yes, correct</think>no", "wrong"),
        ("The correct answer is Paris.", "unparsed"),
        ("I cannot say that this is correct.", "unparsed"),
        ("It is unclear whether the answer is correct.", "unparsed"),
        ("That is not wrong.", "unparsed"),
        ("Is it correct?", "unparsed"),
        ("Yesterday", "unparsed"),
        ("No evidence was given", "unparsed"),
        ("Verdict: maybe. It is correct.", "unparsed"),
    ],
)
def test_free_text(reply: str, verdict: str) -> None:
    assert word_verdict(reply) == verdict


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("", "unparsed"),
        ("true", "unparsed"),
        ("[true]", "unparsed"),
        ('{"correct": true', "unparsed"),
        ('{"correct": 1}', "unparsed"),
        ('{"correct": " TRUE "}', "right"),
        ('{"correct": true} {"correct": false}', "unparsed"),
        ('{"correct": true} {"correct": "yes"}', "right"),
        ('{a} {"correct": false}', "wrong"),
        ('<think>{"correct": true}</think>{"correct": false}', "wrong"),
    ],
)
def test_json_text(reply: str, verdict: str) -> None:
    assert boolean_verdict(reply) == verdict


def test_json_words_and_key_can_be_named() -> None:
    reply = {"label": "CORRECT"}
    assert boolean_verdict(reply, "label") == "unparsed"
    assert boolean_verdict(reply, "label", right=("correct",), wrong=("wrong",)) == "right"
    assert boolean_verdict({"accuracy": "false"}, "accuracy") == "wrong"


@given(st.text(max_size=80))
def test_any_text_has_one_of_three_verdicts(reply: str) -> None:
    assert word_verdict(reply) in {"right", "wrong", "unparsed"}
    assert boolean_verdict(reply) in {"right", "wrong", "unparsed"}


@given(st.sampled_from(["correct", "yes", "true"]), st.sampled_from(["incorrect", "no", "wrong"]), st.booleans())
def test_contradiction_is_unparsed(good: str, bad: str, swap: bool) -> None:
    first, second = (bad, good) if swap else (good, bad)
    assert word_verdict(f"It is {first}. It is {second}.") == "unparsed"
