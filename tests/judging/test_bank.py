"""Banks of answers of known worth: our own form, the audit's, and what is refused."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memharness.judging.bank import KINDS, RIGHT, SPECIFIC, VAGUE, chosen, read_bank
from memharness.types import UserError

LINE = {"id": "q1", "question": "When?", "gold": "7 May", "kind": "wrong-vague", "answer": "in spring"}


def written(folder: Path, *lines: Any, name: str = "bank.jsonl") -> Path:
    """A bank file."""
    path = folder / name
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + "\n")
    return path


def test_a_bank_of_ones_own(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        LINE | {"category": "time", "conversation": "c1", "recorded": [True, False]},
        {"id": "q1", "question": "When?", "gold": ["7 May", "last Sunday"], "kind": "right"},
        LINE | {"kind": "right", "answer": "on the 7th of May", "recorded": True},
    )
    vague, golden, right = read_bank(path).answers
    assert (vague.kind, vague.category, vague.conversation, vague.recorded) == (VAGUE, "time", "c1", (True, False))
    assert (golden.gold, golden.answer) == (("7 May", "last Sunday"), "7 May")
    assert (right.answer, right.recorded) == ("on the 7th of May", (True,))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"kind": "wrong"}, "bank.jsonl: line 1: kind: 'wrong' is not one of right, wrong-specific, wrong-vague"),
        ({"gold": []}, "bank.jsonl: line 1: gold: is empty"),
        ({"gold": 7}, "line 1: gold: must be text"),
        ({"answer": None}, "line 1: answer: is missing"),
        ({"question": " "}, "line 1: question: is empty"),
        ({"id": 1}, "line 1: id: must be text"),
        ({"recorded": "yes"}, "line 1: recorded: must be true, false or a list"),
        ({"recorded": [1]}, "line 1: recorded: must be true, false or a list"),
        ({"anwser": "x"}, "line 1: anwser: is no field of a bank; there are: id, question, gold"),
        ("{", "line 1: not JSON"),
        ("[1]", "line 1: must be a mapping"),
    ],
)
def test_what_is_wrong_in_a_bank_is_named(tmp_path: Path, line: Any, message: str) -> None:
    path = written(tmp_path, line if isinstance(line, str) else LINE | line)
    with pytest.raises(UserError) as refused:
        read_bank(path)
    assert message in str(refused.value)


def test_what_is_no_bank(tmp_path: Path) -> None:
    for name, text, message in (
        ("empty.jsonl", "", "holds no answer"),
        ("list.json", "[]", "no bank: neither an audit file"),
        ("other.json", '{"results": {}}', "no bank: neither an audit file"),
        ("ap_v1.json", '{"detailed_results": {}}', "holds no answer"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(UserError, match=message):
            read_bank(tmp_path / name)
    with pytest.raises(UserError, match="no such file"):
        read_bank(tmp_path / "nowhere.jsonl")


def audit(**more: Any) -> dict[str, Any]:
    """An audit file with one answer."""
    row = {"question_id": "locomo_0_qa0", "question": "When?", "golden_answer": "7 May", "generated_answer": "8 May",
           "llm_judgments": {"judgment_1": True, "judgment_2": False}, "category": "2"} | more  # fmt: skip
    return {"detailed_results": {"user_0": [row]}}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("locomo_audit_ap_v1.json", SPECIFIC),
        ("V2.json", VAGUE),
        ("v1/scored.json", SPECIFIC),
        ("v2/scored.json", VAGUE),
    ],
)
def test_the_audit_s_version_says_which_wrong_answers_it_holds(tmp_path: Path, name: str, kind: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(audit()))
    wrong, right = read_bank(path).answers
    assert (wrong.kind, wrong.answer, wrong.recorded, wrong.conversation) == (kind, "8 May", (True, False), "user_0")
    assert (right.kind, right.answer, right.recorded) == (RIGHT, "7 May", ())


def test_an_audit_file_that_does_not_tell_its_version_is_refused(tmp_path: Path) -> None:
    for name in ("audit.json", "v1_and_v2.json", "v12.json"):
        (tmp_path / name).write_text(json.dumps(audit()))
        with pytest.raises(UserError, match=r"keep `v1` or `v2` in the name"):
            read_bank(tmp_path / name)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"llm_judgments": {"judgment_1": "yes"}}, "user_0 0: llm_judgments: must be true or false each, not text"),
        ({"generated_answer": ""}, "user_0 0: generated_answer: is empty"),
        ({"golden_answer": 3}, "user_0 0: golden_answer: must be text"),
    ],
)
def test_a_fault_in_an_audit_file_is_named(tmp_path: Path, more: dict[str, Any], message: str) -> None:
    path = tmp_path / "v1.json"
    path.write_text(json.dumps(audit(**more)))
    with pytest.raises(UserError) as refused:
        read_bank(path)
    assert message in str(refused.value)


def test_answers_of_several_banks_come_once_and_are_spread_evenly(tmp_path: Path) -> None:
    lines = [
        {"id": f"q{n}", "question": "?", "gold": "g", "kind": kind, "answer": kind, "conversation": f"c{n // 10}"}
        for n in range(100)
        for kind in KINDS
    ]
    banks = [read_bank(written(tmp_path, *part, name=f"{at}.jsonl")) for at, part in enumerate((lines[:200], lines))]
    assert len(chosen(banks)) == 300
    few = chosen(banks, 10)
    assert Counter(one.conversation for one in few) == {f"c{n}": 3 for n in range(10)}
    assert Counter(one.kind for one in few) == dict.fromkeys(KINDS, 10)
    assert chosen(banks, 1000) == chosen(banks)


def test_one_id_in_two_banks_is_two_questions_if_its_words_differ(tmp_path: Path) -> None:
    banks = [
        read_bank(written(tmp_path, LINE, name="a.jsonl")),
        read_bank(written(tmp_path, LINE | {"question": "Where?"}, name="b.jsonl")),
    ]
    assert len(chosen(banks)) == 2
    assert len(chosen(banks, 1)) == 1


def test_the_real_banks(shared: Path) -> None:
    banks = [read_bank(shared / f"data/locomo/locomo_audit_ap_v{version}.json") for version in (1, 2)]
    answers = chosen(banks)
    assert Counter(one.kind for one in answers) == dict.fromkeys(KINDS, 1540)
    assert len({one.conversation for one in answers}) == 10
    assert Counter(one.category for one in answers if one.kind == VAGUE) == {"1": 282, "2": 321, "3": 96, "4": 841}
    for kind, share in ((SPECIFIC, 10.61), (VAGUE, 62.81)):
        recorded = [sum(one.recorded) / len(one.recorded) for one in answers if one.kind == kind]
        assert round(100 * sum(recorded) / len(recorded), 2) == share
