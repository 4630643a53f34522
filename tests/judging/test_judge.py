"""The judged metric: what it asks, what it settles without asking, and how verdicts become scores."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memharness.judging import Judge, rubric, rubrics
from memharness.reader import Reply, Request
from memharness.types import Asked, Status, Text, parts_text

Make = Callable[..., Asked]


def prompt(request: Request) -> str:
    """All words of a request."""
    return "\n".join(f"[{message.role}] {parts_text(message.parts)}" for message in request.messages)


def test_a_judge_sees_question_choices_reference_and_answer(asked: Make) -> None:
    unit = [asked("B", ("B",), question="Which one?", choices=("tea", "coffee"))]
    shown = prompt(Judge().ask(unit))
    assert "[user] Question: Which one?\nA. tea\nB. coffee\nReference answer: B\nAnswer to grade: B" in shown
    plain = prompt(Judge().ask([asked("in May", ("7 May 2023", "last Sunday"))]))
    assert "Reference answer: 7 May 2023\nor: last Sunday\nAnswer to grade: in May" in plain


def test_a_judge_with_a_schema_is_asked_by_it_and_another_in_words(asked: Make) -> None:
    for name in rubrics():
        made, unit = rubric(name), [asked()]
        by_schema, in_words = Judge(name).ask(unit), Judge(name).ask_in_words(unit)
        assert by_schema.schema == made.schema
        assert in_words.schema is None
        assert made.in_json in prompt(by_schema)
        assert (made.in_words or made.in_json) in prompt(in_words)
        assert by_schema.sampling.temperature == 0
        assert "{form}" not in prompt(in_words)


def test_words_of_an_answer_that_look_like_slots_stay_as_they_are(asked: Make) -> None:
    assert "Answer to grade: {reference} {form}" in prompt(Judge().ask([asked("{reference} {form}")]))


def test_a_batch_shows_every_answer_with_its_id(asked: Make) -> None:
    judge = Judge("h2hmem.v1")
    shown = prompt(judge.ask([asked("x", name="a1"), asked("y", ("z",), name="b2", question="Who?")]))
    assert judge.batch
    assert "question_id: a1\nQuestion: When did Ann move?\nReference answer: 7 May 2023\nAnswer to grade: x" in shown
    assert "question_id: b2\nQuestion: Who?\nReference answer: z\nAnswer to grade: y" in shown
    assert not Judge().batch


@pytest.mark.parametrize("name", rubrics())
def test_a_missing_answer_scores_nothing_without_a_call(asked: Make, name: str) -> None:
    scores = Judge(name).score([asked(None)], {})
    assert {key: score.value for key, score in scores.items()} == {key: float(key == "na") for key in Judge(name).names}


@pytest.mark.parametrize("name", rubrics())
def test_an_empty_answer_is_settled_where_the_rubric_says_so(asked: Make, name: str) -> None:
    scores = Judge(name).score([asked(" \n")], {})
    if name == "atm.v1":
        assert scores == {}, "the official judge is asked"
    else:
        assert {key: score.value for key, score in scores.items()} == {
            key: float(key == "na") for key in Judge(name).names
        }


def test_a_question_without_a_reference_does_not_apply_unless_the_rubric_knows_abstention(asked: Make) -> None:
    trap = [asked("no idea", (), abstain=True)]
    for name in rubrics():
        if rubric(name).sees:  # what it looks at needs no reference
            continue
        scores = Judge(name).score(trap, {})
        if name == "binary.v1":
            assert scores == {}
            assert rubric(name).abstention in prompt(Judge(name).ask(trap))
        else:
            assert {score.status for score in scores.values()} == {Status.NOT_APPLICABLE}
    hidden = Judge().score([asked("x", ())], {})
    assert hidden["judge"].status is Status.NOT_APPLICABLE, "gold that is not published"


def test_three_labels_are_three_scores(asked: Make, reply: Callable[..., Reply]) -> None:
    judge = Judge("simplevqa.v1")

    def values(text: str) -> dict[str, float | None]:
        return {name: score.value for name, score in judge.read([asked()], reply(text)).items()}

    assert values("correct") == {"co": 1, "in": 0, "na": 0}
    assert values("incorrect") == {"co": 0, "in": 1, "na": 0}
    assert values("not attempted") == {"co": 0, "in": 0, "na": 1}
    error = judge.read([asked()], reply("hm"))
    assert {(score.value, score.status) for score in error.values()} == {(None, Status.JUDGE_ERROR)}


@pytest.mark.parametrize(
    ("name", "text", "verdict", "accepted"),
    [
        ("binary.v1", "CORRECT", 1, True),
        ("binary.v1", "INCORRECT", 0, False),
        ("memeye.v1", "Score: 0.25", 0.25, False),
        ("memeye.v1", "Score: 0.5", 0.5, True),
        ("simplevqa.v1", "correct", "correct", True),
        ("simplevqa.v1", "not attempted", "not attempted", False),
        ("simplevqa.v1", "incorrect", "incorrect", False),
        ("binary.v1", "hm", None, None),
        ("simplevqa.v1", "hm", None, None),
    ],
)
def test_what_was_said_can_be_told_from_the_scores(
    asked: Make, reply: Callable[..., Reply], name: str, text: str, verdict: float | str | None, accepted: bool | None
) -> None:
    judge = Judge(name)
    said = judge.said(judge.read([asked()], reply(text)))
    assert said == verdict
    assert (None if said is None else judge.accepts(said)) is accepted


def test_pictures_of_a_question_are_not_shown_to_a_judge_of_words(asked: Make) -> None:
    assert all(isinstance(part, Text) for part in Judge("simplevqa.v1").ask([asked()]).parts())
