"""A small benchmark of choice and free questions, with groups, a judge and a floor of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from memharness.benchmark import Benchmark, BenchmarkCard, Floor, Recorded
from memharness.config import Config, option
from memharness.metric import Judged, Metric
from memharness.reader import Reply, Request, Sampling
from memharness.scoring.choice_metrics import ChoiceAccuracy
from memharness.types import Answer, Asked, Case, Choice, Evidence, Gold, Item, Question, Readout, Score, Text

CHOICES = [("A", "C"), ("B", "C"), ("C", "A"), ("D", "B"), ("E", "C")]  # question and gold letter
FREE = [("f1", "yes"), ("f2", "Yes"), ("f3", "green"), ("f4", "no")]


@dataclass(frozen=True)
class Right(Metric):
    """Equality in lower case; choice questions by the letter."""

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """One score, `right`."""
        asked = unit[0]
        if asked.question.choices:
            return {"right": ChoiceAccuracy().score(unit, facts)["accuracy"]}
        return {"right": Score(float((asked.record.answer or "").lower() == asked.gold.answers[0].lower()))}


@dataclass(frozen=True)
class AllRight(Metric):
    """Whether a group is right throughout."""

    unit: ClassVar[Literal["question", "group", "episode"]] = "group"

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """One score, `all_right`."""
        return {"all_right": Score(min(Right().score([asked], facts)["right"].value or 0.0 for asked in unit))}


@dataclass(frozen=True)
class Kind(Judged):
    """What a judge would say."""

    rubric: ClassVar[str] = "kind/1"

    def ask(self, unit: Sequence[Asked]) -> Request:
        """A request."""
        return Request((), Sampling())

    def read(self, unit: Sequence[Asked], reply: Reply) -> Mapping[str, Score]:
        """A verdict."""
        return {"kind": Score(1.0)}


class QuizOptions(Config):
    """How the quiz is."""

    primary: str = option("right", "the primary score")
    questions: bool = option(True, "whether there are any")


class Quiz(Benchmark):
    """One context."""

    card = BenchmarkCard(
        name="quiz", title="Quiz", paper="", licence="", source="", revision="1", version=1, splits={}, counts={},
        cluster="", primary="kind",
    )  # fmt: skip
    options_class = QuizOptions
    sample = "."

    def contexts(self, subset: str | None = None) -> Sequence[str]:
        """One."""
        return ["only"]

    def episode(self, context: str) -> Recorded:
        """An item, then the questions."""
        item = Item("i", context, 0, (Text("green"),))
        cases = [choice_case(*one) for one in CHOICES] + [free_case(*one) for one in FREE]
        return Recorded(context, [item], cases if self.options.questions else [])

    def metrics(self) -> Sequence[Metric]:
        """A judged one first."""
        return (Kind(), Right(), AllRight())

    def floors(self) -> Sequence[Floor]:
        """What the last item says."""
        return (
            Floor("the last item", lambda case, items: Answer(items[-1].text(), readout=Readout((Evidence("i"),)))),
        )

    def digest(self) -> Any:
        """No files."""
        return "quiz"


def choice_case(name: str, letter: str) -> Case:
    """A question with three options, the second the longest."""
    choices = tuple(Choice(key, (Text("long" * 3 if key == "B" else key),)) for key in "ABC")
    question = Question(f"q{name}", "only", (Text(name),), choices, form="choice")
    return Case(question, Gold((letter,), category="choice", group="odd" if name in "ACE" else "even"))


def free_case(name: str, answer: str) -> Case:
    """A free question."""
    return Case(Question(name, "only", (Text(name),)), Gold((answer,), category="free"))
