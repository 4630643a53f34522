from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.benchmark import ScoreRow, means
from memharness.metric import parse_metric
from memharness.scoring.choice_metrics import ChoiceAccuracy, CircularAccuracy, chosen
from memharness.types import Asked, Choice, Gold, Outcome, Question, Record, Score, Status, Text, UserError

WORDS = ("a dog", "a cat", "a cow", "a hen")


def asked(answer: str | None, gold: str = "B", outcome: Outcome = Outcome.OK, options: int = 4, **extra: Any) -> Asked:
    choices = tuple(Choice(key, (Text(words),)) for key, words in zip("ABCD"[:options], WORDS, strict=False))
    question = Question("q", "c", (Text("Which?"),), choices, form="choice")
    return Asked(question, Gold((gold,), extra=extra), Record("q", "c", 0, 0, outcome, answer=answer))


def accuracy(one: Asked, rule: str = "memharness") -> Score:
    return ChoiceAccuracy(rule).score([one], {})["accuracy"]


def circular(*passes: Asked) -> Score:
    return CircularAccuracy().score(passes, {})["circular"]


def test_right_wrong_and_unparsed() -> None:
    assert accuracy(asked("The correct answer is (B)")) == Score(1.0)
    assert accuracy(asked("(C)")) == Score(0.0)
    unread = accuracy(asked("It could be anything."))
    assert (unread.value, unread.status) == (0.0, Status.UNPARSED)
    assert chosen(asked("a cat")) == "B"


@pytest.mark.parametrize("nothing", ["", " ", "(", ")", ".", "\n", None])
def test_an_empty_answer_is_unparsed_and_never_right(nothing: str | None) -> None:
    for gold in "ABCD":
        score = accuracy(asked(nothing, gold))
        assert (score.value, score.status) == (0.0, Status.UNPARSED)


def test_a_letter_the_question_has_not_is_unparsed() -> None:
    assert accuracy(asked("D", options=3)).status is Status.UNPARSED


def test_failed_questions_count_nothing_and_stay_in_the_denominator() -> None:
    # The scores 0 and 1, a failed call and a missing prediction give one in four, not three in four.
    scored = [
        accuracy(asked("A")),
        accuracy(asked("B")),
        accuracy(asked(None, outcome=Outcome.READER_ERROR)),
        accuracy(asked(None, outcome=Outcome.NOT_ASKED)),
    ]
    assert [score.value for score in scored] == [0.0, 1.0, None, None]
    assert scored[2].note == "reader_error"
    rows = [ScoreRow(str(n), "c", "", "", {"accuracy": score}) for n, score in enumerate(scored)]
    assert means(rows)["accuracy"] == 0.25


def test_unclosed_thinking_is_unparsed_and_has_a_figure_of_its_own() -> None:
    metric = ChoiceAccuracy()
    cut = metric.score([asked("<think>It must be (B), so the answer is (B)")], {})
    assert (cut["accuracy"].value, cut["accuracy"].status) == (0.0, Status.UNPARSED)
    assert "thinking never ends" in cut["accuracy"].note
    assert cut["unclosed_thinking"] == Score(1.0)
    whole = metric.score([asked("<think>(A)?</think>(B)")], {})
    assert whole == {"accuracy": Score(1.0), "unclosed_thinking": Score(0.0)}
    failed = metric.score([asked(None, outcome=Outcome.TIMEOUT)], {})
    assert failed["unclosed_thinking"].value is None


def test_the_rule_is_a_parameter_and_prints() -> None:
    because = asked("Because it purrs")
    assert accuracy(because).status is Status.UNPARSED
    assert accuracy(because, "mmstar") == Score(1.0)
    assert str(ChoiceAccuracy()) == "ChoiceAccuracy"
    for metric in (ChoiceAccuracy("mmstar"), CircularAccuracy("vlmevalkit")):
        kinds = {type(metric).__name__: type(metric)}
        assert parse_metric(str(metric), kinds) == metric
        assert "extractor=" in str(metric)


@pytest.mark.parametrize("kind", [ChoiceAccuracy, CircularAccuracy])
def test_an_unknown_rule_is_refused(kind: Any) -> None:
    with pytest.raises(UserError, match="extractor 'first'"):
        kind("first")


def test_only_the_first_pass_counts_for_vanilla_accuracy() -> None:
    assert accuracy(asked("B", **{"pass": 0, "passes": 4})) == Score(1.0)
    assert accuracy(asked("B", **{"pass": 2, "passes": 4})).status is Status.NOT_APPLICABLE


def test_a_group_is_right_only_if_every_pass_is() -> None:
    golds = ("B", "A", "D", "C")
    right = [asked(gold, gold) for gold in golds]
    assert circular(*right) == Score(1.0)
    for place in range(4):
        said = [*right]
        said[place] = asked("B" if golds[place] != "B" else "A", golds[place])
        assert circular(*said) == Score(0.0)


def test_what_a_lost_group_says() -> None:
    right, wrong, unread = asked("B"), asked("A"), asked("no idea")
    failed = asked(None, outcome=Outcome.READER_ERROR)
    assert circular(right, unread).status is Status.UNPARSED
    assert circular(unread, wrong) == Score(0.0)
    assert circular(wrong, unread, failed) == Score(None, Status.OK, "reader_error")
    assert circular(right, failed).value is None


def test_a_group_of_which_some_passes_were_not_selected_does_not_apply() -> None:
    some = circular(asked("B", passes=4), asked("B", passes=4))
    assert some.status is Status.NOT_APPLICABLE
    assert some.note == "2 of 4 passes were asked"


PASSES = st.lists(st.sampled_from(["B", "A", "no idea"]), min_size=1, max_size=5)


@given(PASSES)
def test_circular_is_the_least_of_its_passes(said: list[str]) -> None:
    values: Mapping[str, float] = {"B": 1.0, "A": 0.0, "no idea": 0.0}
    assert circular(*(asked(answer) for answer in said)).value == min(values[answer] for answer in said)
