from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.benchmark import ScoreRow
from memharness.metric import Metric
from memharness.scoring.metrics import (
    F1,
    Abstained,
    AnswerLength,
    ExactMatch,
    HitRate,
    Precision,
    Recall,
    RecallAll,
    RecallGold,
    RecallReadout,
    backed,
)
from memharness.types import Asked, Evidence, Gold, Outcome, Question, Record, Score, Status, Text, UserError

IDS = st.lists(st.sampled_from("abcdefgh"), max_size=12)


def unit(
    answer: str | None = "x",
    golds: tuple[str, ...] = ("x",),
    *,
    gold: str = "",
    shown: str | None = None,
    outcome: Outcome = Outcome.OK,
    abstain: bool = False,
    **extra: Any,
) -> list[Asked]:
    """One question; gold and shown evidence as letters."""
    evidence = None if shown is None else tuple(map(Evidence, shown))
    record = Record("q", "c", 0, 0, outcome, answer=answer, evidence=evidence)
    kept = Gold(golds, tuple(map(Evidence, gold)), abstain=abstain, extra=extra)
    return [Asked(Question("q", "c", (Text("?"),)), kept, record)]


def only(metric: Metric, questions: list[Asked]) -> Score:
    (score,) = metric.score(questions, {}).values()
    return score


def test_answers_take_the_best_gold_and_a_missing_one_is_zero() -> None:
    assert only(ExactMatch(), unit("The Orrin.", ("a mill", "orrin"))).value == 1
    assert only(F1(), unit("Orrin river", ("mill", "the Orrin"))).value == pytest.approx(2 / 3)
    assert only(F1(norm="locomo"), unit("running", ("runs",))).value == 1
    assert only(ExactMatch(), unit(None)).value == 0
    assert only(ExactMatch(), unit("x", ())).status is Status.NOT_APPLICABLE


def test_an_integer_gold_of_zero_is_an_answer() -> None:
    """c09: 0 stays "0"."""
    assert only(ExactMatch(), unit("0", ("0",))).value == 1


@pytest.mark.parametrize(("kind", "norm"), [(ExactMatch, "hotpott"), (F1, "locomoo")])
def test_unknown_norm(kind: Any, norm: str) -> None:
    with pytest.raises(UserError, match="did you mean"):
        kind(norm=norm)


def test_three_senses_of_recall() -> None:
    """c10: any, all and the share are three metrics."""
    case = unit(gold="ab", shown="axb")
    assert [only(kind(k=2), case).value for kind in (HitRate, RecallAll, Recall, Precision)] == [1, 0, 0.5, 0.5]
    assert [only(kind(k=3), case).value for kind in (HitRate, RecallAll, Recall)] == [1, 1, 1]
    assert list(Recall(k=10).score(case, {})) == ["recall@10"]


@pytest.mark.parametrize(
    ("questions", "reason"),
    [
        (unit(shown="a"), "no gold"),
        (unit(gold="a", shown="a", abstain=True), "abstention"),
        (unit(gold="ab", shown="a", items=2), "gold is the whole haystack"),
        (unit(gold="a", shown="a", items=10), "k covers the whole haystack"),
        (unit(gold="a", shown=None), "no readout was recorded"),
    ],
)
def test_what_says_nothing_is_left_out_with_its_reason(questions: list[Asked], reason: str) -> None:
    """c10: excluded by reason, and k or gold as large as the memory refused unless forced."""
    score = only(Recall(k=10), questions)
    assert (score.status, score.note, score.value) == (Status.NOT_APPLICABLE, reason, None)


def test_exclusions_can_be_forced() -> None:
    assert only(Recall(k=10, forced=True), unit(gold="a", shown="a", items=1)).value == 1
    assert only(Recall(k=10, abstentions=True), unit(gold="a", shown="a", abstain=True)).value == 1


def test_over_all_questions_nothing_is_left_out() -> None:
    """Beside the figure over questions with gold: those without count 0, those that say nothing as they are."""
    metric = Recall(k=10, over_all=True)
    assert str(metric) == "Recall(over_all=True)@10"
    assert list(metric.score(unit(gold="a", shown="a"), {})) == ["recall@10_all"]
    for case, value in (
        (unit(shown="a"), 0),
        (unit(gold="a", shown="a", abstain=True), 1),
        (unit(gold="ab", shown="a", items=2), 0.5),
        (unit(gold="a", shown="b", items=10), 0),
    ):
        assert only(metric, case) == Score(value)
    assert only(metric, unit(gold="a", shown=None)).note == "no readout was recorded"
    assert only(metric, unit(None, shown=None, outcome=Outcome.METHOD_ERROR)) == Score(0.0)


def test_a_failure_is_no_exclusion() -> None:
    failed = unit(None, gold="a", shown=None, outcome=Outcome.METHOD_ERROR, items=50)
    for metric in (Recall(), RecallReadout(), RecallGold()):
        assert only(metric, failed) == Score(0.0)


def test_k_must_be_positive() -> None:
    with pytest.raises(UserError, match="k must be at least 1"):
        Recall(k=0)


@given(gold=IDS, shown=IDS, k=st.integers(1, 12))
def test_recall_laws(gold: list[str], shown: list[str], k: int) -> None:
    case = unit(gold="".join(gold), shown="".join(shown))
    if not gold:
        assert only(Recall(k=k), case).value is None
        return
    share, everything = only(Recall(k=k), case).value, only(RecallReadout(), case).value
    assert share is not None
    assert everything is not None
    assert 0 <= share <= everything <= 1
    assert only(HitRate(k=k), case).value == float(share > 0)
    assert only(RecallAll(k=k), case).value == float(share == 1)
    assert only(RecallGold(), case).value == only(Recall(k=len(set(gold))), case).value


def test_abstention_is_right_or_wrong_by_the_question() -> None:
    """c16: a question without an answer has the abstention metric only."""
    declined = Abstained().score(unit("Not mentioned.", (), abstain=True), {})
    assert (declined["abstention"].value, declined["false_abstention"].value) == (1, None)
    wrongly = Abstained().score(unit("It is not mentioned."), {})
    assert (wrongly["abstention"].value, wrongly["false_abstention"].value) == (None, 1)
    assert Abstained().score(unit("", (), abstain=True), {})["abstention"].value == 0
    assert Abstained("sorry|unknown").score(unit("Unknown"), {})["false_abstention"].value == 1


def test_answer_length() -> None:
    assert only(AnswerLength(), unit("two  words")).value == 2
    assert only(AnswerLength(), unit("")).value == 0
    assert only(AnswerLength(), unit(None)).status is Status.NOT_APPLICABLE


def test_backed_drops_what_only_failures_hold() -> None:
    none, zero = Score(None, Status.NOT_APPLICABLE), Score(0.0)
    answered = ScoreRow("a", "c", "", "", {"em": Score(1.0), "recall@10": none})
    missing = ScoreRow("b", "c", "", "", {"em": zero, "recall@10": zero}, failed="not_asked")
    assert [set(row.scores) for row in backed([answered, missing])] == [{"em"}, {"em"}]
    assert backed([missing]) == [missing]
