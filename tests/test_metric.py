"""Metrics are values that print as they are parsed."""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memharness.judging import rubric, rubrics
from memharness.metric import Judged, Metric, parse_metric
from memharness.reader import Message, Reply, Request
from memharness.registry import entries
from memharness.scoring.choice_rules import EXTRACTORS
from memharness.scoring.metrics import F1S
from memharness.scoring.text import NORMALISERS
from memharness.types import Asked, Score, Text, UserError

TEXT = st.text(alphabet=st.characters(categories=["L", "N", "P", "S", "Zs"]), max_size=20)
VALUES: dict[type, st.SearchStrategy[Any]] = {
    int: st.integers(1, 10**6),
    bool: st.booleans(),
    str: TEXT,
    float: st.floats(allow_nan=False, allow_infinity=False),
}
JUDGES = ("Judge", "Quality")
NAMED: dict[tuple[str, str], st.SearchStrategy[Any]] = {
    ("ChoiceAccuracy", "extractor"): st.sampled_from(sorted(EXTRACTORS)),
    ("CircularAccuracy", "extractor"): st.sampled_from(sorted(EXTRACTORS)),
    ("ExactMatch", "norm"): st.sampled_from(sorted(NORMALISERS)),
    ("F1", "norm"): st.sampled_from(sorted(F1S)),
    **{(judge, "rubric"): st.sampled_from([n for n in rubrics() if rubric(n).official]) for judge in JUDGES},
    **{(judge, "verdict"): st.sampled_from(["strict", "official"]) for judge in JUDGES},
}


@dataclass(frozen=True)
class Everything(Metric):
    """One parameter of each kind, one of them required."""

    words: str
    weight: float = 0.5
    strict: bool = True
    size: int = 3
    limit: int | None = None
    k: int = 10

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Nothing."""
        return {}


CLASSES: dict[str, type[Metric]] = {name: entry.load() for name, entry in entries("metrics").items()}


# ---------------------------------------------------------------------------------------------------------- round trip


@pytest.mark.parametrize("name", CLASSES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_every_registered_metric_prints_as_it_is_parsed(name: str, data: st.DataObject) -> None:
    kind = CLASSES[name]
    hints = typing.get_type_hints(kind)
    drawn = {
        field.name: data.draw(NAMED[name, field.name] if (name, field.name) in NAMED else VALUES[hints[field.name]])
        for field in dataclasses.fields(kind)
        if (name in JUDGES and field.name == "rubric") or data.draw(st.booleans())
    }
    metric = kind(**drawn)
    assert parse_metric(str(metric), CLASSES) == metric
    assert str(parse_metric(f"  {metric} ", CLASSES)) == str(metric)


@given(
    st.builds(
        Everything,
        words=TEXT,
        weight=VALUES[float],
        strict=st.booleans(),
        size=st.integers(),
        limit=st.none() | st.integers(),
        k=st.integers(0, 99),
    )
)
def test_every_kind_of_parameter_comes_back(metric: Everything) -> None:
    assert parse_metric(str(metric), {"Everything": Everything}) == metric


@pytest.mark.parametrize(
    ("metric", "text"),
    [
        (Everything("x"), "Everything(words=x)@10"),
        (Everything("No", k=3), "Everything(words=No)@3"),
        (Everything("1999"), "Everything(words=1999)@10"),
        (Everything(""), 'Everything(words="")@10'),
        (Everything("a, b"), 'Everything(words="a, b")@10'),
        (Everything('say "(x)"'), r'Everything(words="say \"(x)\"")@10'),
        (Everything(" x"), 'Everything(words=" x")@10'),
        (Everything("'x'"), "Everything(words=\"'x'\")@10"),
        (
            Everything("a=b|c", 1e-5, False, 4, 7, 2),
            "Everything(words=a=b|c,weight=1e-05,strict=False,size=4,limit=7)@2",
        ),
    ],
)
def test_how_a_metric_prints(metric: Metric, text: str) -> None:
    assert str(metric) == text
    assert parse_metric(text, {"Everything": Everything}) == metric


def test_defaults_are_not_printed_and_white_space_does_not_matter() -> None:
    assert str(parse_metric("F1(norm=hotpot)", CLASSES)) == "F1"
    assert str(parse_metric(" F1( norm = locomo ) ", CLASSES)) == "F1(norm=locomo)"
    assert str(parse_metric("Recall(k=5, forced=true)", CLASSES)) == "Recall(forced=True)@5"
    assert str(parse_metric("Recall()", CLASSES)) == "Recall@10"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "metric '': expected Name, Name(key=value,…) or Name@k"),
        ("F1(", "metric 'F1(': expected Name"),
        ("F1(norm)", "metric 'F1(norm)': expected Name"),
        ("Recall@ten", "metric 'Recall@ten': expected Name"),
        ("Recal@5", "no metric is called Recal (did you mean Recall?)"),
        ("F1@5", "F1 has no parameter k; it has: norm"),
        ("AnswerLength(x=1)", "AnswerLength has no parameter x; it has: none"),
        ("F1(norm=hotpt)", "norm=hotpt: not known (did you mean hotpot?)"),
        ("Recall@0", "Recall@0: k must be at least 1"),
        ("Recall(forced=maybe)", "metric 'Recall(forced=maybe)': forced=maybe: Input should be a valid boolean"),
        ("Recall(k=1.5)", "k=1.5: Input should be a valid integer"),
        ("Recall(k={)", "k={: the value is not valid YAML"),
        ("Everything@3", "metric 'Everything@3': Everything needs the parameter words"),
    ],
)
def test_what_is_no_metric(text: str, message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        parse_metric(text, {**CLASSES, "Everything": Everything})


# ------------------------------------------------------------------------------------------------------- the contract


def test_a_metric_is_a_value() -> None:
    assert Everything("x") == Everything("x") != Everything("y")
    assert len({Everything("x"), Everything("x"), Everything("x", k=3)}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        Everything("x").k = 4  # type: ignore[misc]
    assert (Everything.unit, Everything.needs) == ("question", "answer")


def test_a_judged_metric_scores_nothing_by_itself() -> None:
    @dataclass(frozen=True)
    class Kind(Judged):
        """Asks whether an answer is kind."""

        rubric = "kind.v1"

        def ask(self, unit: Sequence[Asked]) -> Request:
            """Ask."""
            return Request((Message("user", (Text("kind?"),)),))

        def read(self, unit: Sequence[Asked], reply: Reply) -> Mapping[str, Score]:
            """Read."""
            return {"kind": Score(float(reply.text == "yes"))}

    assert Kind().score([], {}) == {}
    assert str(Kind()) == "Kind"
