"""What a judge's reply says: a verdict in the form that was asked for, or nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.judging import Judge, rubric
from memharness.judging.reading import Unread, points, read
from memharness.reader import Reply
from memharness.types import Asked, Status, Usage

Replies = Callable[..., Reply]
LEVELS = [0, 0.25, 0.5, 0.75, 1]
GRADED = ("mem-gallery.v1", "memeye.v1")


def said(name: str, reply: Reply, *, official: bool = False) -> Any:
    """The verdict, or None."""
    try:
        return read(rubric(name), reply, "q1", official=official)
    except Unread:
        return None


# ------------------------------------------------------------------------------------------------------------ the cases


@pytest.mark.parametrize("name", ["binary.v1", "locomo-strict.v1", "locomo-generous.v1"])
def test_c01_verdict_words(shared: Path, reply: Replies, name: str) -> None:
    for text, right in json.loads((shared / "cases/c01_verdict_words.json").read_text())["replies"]:
        if name != "binary.v1" and text.startswith("{"):
            continue  # "label" is the field of these rubrics: read below
        assert said(name, reply(text)) == {"right": 1.0, "wrong": 0.0, "unparsed": None}[right], text


def test_c01_two_labels_that_contradict_each_other(reply: Replies) -> None:
    assert said("locomo-strict.v1", reply('{"label": "CORRECT"} {"label": "WRONG"}')) is None
    assert said("locomo-strict.v1", reply('{"label": "WRONG"} {"label": "WRONG"}')) == 0
    assert said("locomo-generous.v1", reply('{"reason": "right topic", "label": "CORRECT"}')) == 1


def test_c02_booleans(shared: Path, reply: Replies) -> None:
    for value, right in json.loads((shared / "cases/c02_json_booleans.json").read_text())["replies"]:
        assert said("binary.v1", reply(json.dumps(value))) == {"right": 1.0, "wrong": 0.0, "unparsed": None}[right]


@pytest.mark.parametrize("name", GRADED)
def test_c17_scores_as_text(shared: Path, reply: Replies, name: str) -> None:
    rows = json.loads((shared / "cases/c17_errors_as_answers.json").read_text())["rows"]
    decimal, fraction = (row["judge_reply"] for row in rows if "judge_reply" in row)
    assert said(name, reply(decimal)) == 0.5  # a decimal number and nothing else is no guess
    assert said(name, reply(fraction)) is None  # one of two, or a half, or 1: nobody asked for that form


# --------------------------------------------------------------------------------------------------------------- graded


@pytest.mark.parametrize("name", GRADED)
@pytest.mark.parametrize(
    ("text", "level"),
    [
        ('{"reason": "r", "score": 0.75}', 0.75),
        ('{"score": 1}', 1),
        ('{"score": " 0.25 "}', 0.25),
        ('Here it is:\n```json\n{"score": 0.5}\n```', 0.5),
        ('<think>maybe {"score": 1}</think>{"score": 0}', 0),
        ('{"score": 0.5} {"score": 0.50}', 0.5),
        ("Score: 0.5", 0.5),
        ("**Score:** 0.25", 0.25),
        ("score = 1.", 1),
        ("0.75", 0.75),
        (" 0.0\n", 0),
        ('{"score": 0.5} {"score": 1}', None),
        ('{"score": true}', None),
        ('{"score": null}', None),
        ('{"score": "high"}', None),
        ('{"score": "1/2"}', None),
        ('{"score": "50%"}', None),
        ('{"score": [0.5]}', None),
        ('{"score": NaN}', None),
        ('{"score": 0.6}', None),
        ('{"score": 2}', None),
        ('{"score": -1}', None),
        ('{"grade": 0.5}', None),
        ("Score: 1 / 2", None),
        ("Score: 0.5/1", None),
        ("Score: 50 %", None),
        ("Score: 0.5 or 0.75", None),
        ("Score: 0.5\nScore: 1", None),
        ("I would give it 0.5", None),
        ("0.5 0.75", None),
        ("4", None),
        ("", None),
    ],
)
def test_levels(reply: Replies, name: str, text: str, level: float | None) -> None:
    assert said(name, reply(text)) == level


@pytest.mark.parametrize(
    ("score", "snapped"),
    [(0, 0), (0.2, 0), (0.24, 0), (0.25, 0.5), (0.5, 0.5), (0.74, 0.5), (0.75, 1), (0.9, 1), (1, 1)],
)
@pytest.mark.parametrize("name", GRADED)
def test_the_official_parsers_know_three_levels(reply: Replies, name: str, score: float, snapped: float) -> None:
    assert said(name, reply(json.dumps({"score": score})), official=True) == snapped
    assert said(name, reply(json.dumps({"score": score}))) == (score if score in LEVELS else None)


def test_what_is_no_score_is_none_officially_either(reply: Replies) -> None:
    for text in ('{"score": 5}', '{"score": "good"}', "Score: 1/2", ""):
        assert said("memeye.v1", reply(text), official=True) is None


@given(level=st.sampled_from(LEVELS), before=st.text("abc \n:", max_size=20), text=st.booleans())
def test_a_level_in_json_is_read_whatever_stands_before(level: float, before: str, text: bool) -> None:
    value = json.dumps({"reason": before, "score": str(level) if text else level})
    assert said("memeye.v1", Reply(before + value, None)) == level  # type: ignore[arg-type]


@given(st.text(max_size=60))
def test_nothing_is_made_of_a_reply_without_a_form_of_a_verdict(text: str) -> None:
    found = said("memeye.v1", Reply(text, None))  # type: ignore[arg-type]
    bare = text.strip().removesuffix(".")
    assert found is None or float(bare.rpartition(":")[2].rpartition("=")[2].strip(" *\"'")) == found


# ----------------------------------------------------------------------------------------------------- labels and words


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ('{"reason": "r", "verdict": "correct"}', "correct"),
        ('{"verdict": "Not Attempted"}', "not attempted"),
        ('{"verdict": "not_attempted"}', "not attempted"),
        ("INCORRECT", "incorrect"),
        ("Incorrect.", "incorrect"),
        ("**Verdict:** correct", "correct"),
        ("not attempted", "not attempted"),
        ("not correct", None),
        ("The answer is correct", None),
        ("correct, incorrect or not attempted", None),
        ('{"verdict": "correct"} {"verdict": "incorrect"}', None),
        ('{"verdict": true}', None),
        ('{"verdict": "right"}', None),
        ('{"correct": true}', None),
        ("", None),
    ],
)
def test_labels(reply: Replies, text: str, label: str | None) -> None:
    assert said("simplevqa.v1", reply(text)) == label


@pytest.mark.parametrize("name", ["binary.v1", "memeye.v1", "simplevqa.v1"])
def test_words_of_a_reply_that_was_cut_are_not_read(reply: Replies, name: str) -> None:
    word = "Score: 1" if name == "memeye.v1" else "CORRECT"
    whole = {"binary.v1": '{"correct": true}', "memeye.v1": '{"score": 1}'}.get(name, '{"verdict": "correct"}')
    assert said(name, reply(word)) is not None
    assert said(name, reply(word, "length")) is None
    assert said(name, reply(f"{whole} and so", "length")) is not None  # an object that is whole is a verdict


def test_a_rubric_that_asks_for_json_reads_no_words(reply: Replies) -> None:
    for text in ("CORRECT", "true", "The answer is correct.", "accuracy: true"):
        assert said("atm.v1", reply(text)) is None
    assert said("atm.v1", reply('{"explanation": "not true", "accuracy": "false"}')) == 0


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ('{"accuracy": "false", "explanation": "correct but"}', 0),
        ('{"accuracy": "true"}', 1),
        ("It is incorrect.", 1),
        ("that matches", 1),
        ("no", 0),
        ("", 0),
    ],
)
def test_atm_s_lenient_parser_is_a_toggle(reply: Replies, text: str, verdict: float) -> None:
    assert said("atm.v1", reply(text), official=True) == verdict


# ------------------------------------------------------------------------------------------------------------- batches


def entry(name: str, score: object) -> dict[str, object]:
    """An entry of an array of verdicts."""
    return {"question_id": name, "reasoning": "r", "score": score}


@pytest.mark.parametrize("wrapped", [True, False])
def test_each_question_of_a_batch_has_its_own_entry(asked: Callable[..., Asked], reply: Replies, wrapped: bool) -> None:
    entries = [entry("q1", 0.5), entry("q2", "1"), entry("q2", 1), entry("q4", True), entry("q5", 7)]
    text = json.dumps({"verdicts": entries} if wrapped else entries)
    judge = Judge("h2hmem.v1")

    def score(name: str) -> Any:
        return judge.read([asked(name=name)], reply(text))["judge_h2hmem"]

    assert (score("q1").value, score("q1").status) == (0.5, Status.OK)
    assert {score(f"q{n}").status for n in (2, 3, 4, 5)} == {Status.JUDGE_ERROR}
    assert score("q2").note == "the judge's reply holds 2 entries for this question"
    assert score("q3").note == "the judge's reply holds no entry for this question"


def test_entries_before_the_cut_of_a_batch_count(reply: Replies) -> None:
    text = json.dumps({"verdicts": [entry("q1", 1), entry("q2", 1)]})
    assert said("h2hmem.v1", reply(text[:-20], "length")) == 1
    with pytest.raises(Unread, match="no entry"):
        read(rubric("h2hmem.v1"), reply(text[:-20], "length"), "q2")


@given(st.floats(0, 1))
def test_a_score_of_a_batch_goes_to_the_nearest_level(score: float) -> None:
    reply = Reply(json.dumps([entry("q1", score)]), None)  # type: ignore[arg-type]
    level = read(rubric("h2hmem.v1"), reply, "q1")
    assert level in LEVELS
    assert abs(level - score) == min(abs(one - score) for one in LEVELS)  # type: ignore[operator]


def test_halfway_between_two_levels_the_lower_one_counts(reply: Replies) -> None:
    assert said("h2hmem.v1", reply(json.dumps([entry("q1", 0.125)]))) == 0
    assert said("h2hmem.v1", reply(json.dumps([entry("q1", 0.625)]))) == 0.5


# ------------------------------------------------------------------------------------------------------------- points

POINTS = {"reason": "x", "faithfulness": 7, "preservation": 10, "correctness": 4}


def given_points(text: str, finish: str = "stop") -> dict[str, float | None] | None:
    """The points of a reply, or None."""
    try:
        return points(rubric("m2ca.v1"), Reply(text, Usage(), finish))  # type: ignore[arg-type]
    except Unread:
        return None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (json.dumps(POINTS), (7, 10, 4)),
        (json.dumps(POINTS | {"preservation": None}), (7, None, 4)),
        (f"```json\n{json.dumps(POINTS)}\n```\nSo it is: {json.dumps(POINTS)}", (7, 10, 4)),
        ("Faithfulness: 7\nPreservation: none\nCorrectness: 0", (7, None, 0)),
        ("**Faithfulness**: 7\n**Preservation**: 10\n**Correctness**: 4.", (7, 10, 4)),
        ("<think>\nFaithfulness: 1\n</think>\nFaithfulness: 7\nPreservation: 1\nCorrectness: 4", (7, 1, 4)),
        ("Faithfulness: 1\nFaithfulness: 7\nPreservation: 1\nCorrectness: 4", None),
        (json.dumps(POINTS | {"faithfulness": None}), None),
        (json.dumps(POINTS | {"faithfulness": 7.5}), None),
        (json.dumps(POINTS | {"faithfulness": 11}), None),
        (json.dumps(POINTS | {"faithfulness": -1}), None),
        (json.dumps(POINTS | {"faithfulness": True}), None),
        (json.dumps(POINTS | {"faithfulness": "7"}), None),
        (json.dumps({"faithfulness": 7, "correctness": 4}), None),
        (json.dumps(POINTS) + json.dumps(POINTS | {"correctness": 5}), None),
        ("Faithfulness: 7\nPreservation: 10", None),
        ("Faithfulness: seven\nPreservation: 10\nCorrectness: 4", None),
        ("It is a fine picture, 9 out of 10.", None),
        ("", None),
    ],
)
def test_points_are_read_whole_or_not_at_all(text: str, found: tuple[float | None, ...] | None) -> None:
    named = None if found is None else dict(zip(("faithfulness", "preservation", "correctness"), found, strict=True))
    assert given_points(text) == named


def test_points_in_words_of_a_reply_that_was_cut_are_not_read() -> None:
    lines = "Faithfulness: 7\nPreservation: 10\nCorrectness: 4"
    assert given_points(lines) is not None
    assert given_points(lines, "length") is None
    assert given_points(json.dumps(POINTS), "length") is not None  # an object that is whole is whole


@given(st.text(max_size=200))
def test_no_reply_gives_points_by_accident(text: str) -> None:
    found = given_points(text)
    assert found is None or all(value is None or value in range(11) for value in found.values())
