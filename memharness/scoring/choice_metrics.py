"""Metrics of multiple choice: accuracy over all questions, and CircularEval over the passes of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from memharness.metric import Metric
from memharness.scoring.choice import after_thinking
from memharness.scoring.choice_rules import extractor
from memharness.types import Asked, Outcome, Score, Status, Text


def chosen(asked: Asked, rule: str = "memharness") -> str | None:
    """The option key that the answer declares; None where it declares none, or there is no answer.

    Args:
        asked: a question with choices.
        rule: name of the extractor, one of `choice_rules.EXTRACTORS`.
    """
    said = asked.record.answer
    if said is None or not said.strip():
        return None
    letters = "".join(choice.key for choice in asked.question.choices)
    texts = {
        choice.key: " ".join(part.text for part in choice.parts if isinstance(part, Text))
        for choice in asked.question.choices
    }
    return extractor(rule)(said, letters, texts)


def choice_score(asked: Asked, rule: str = "memharness") -> Score:
    """1, 0, or 0 as `unparsed`; no value where the question failed."""
    if failed := failure(asked):
        return failed
    letter = chosen(asked, rule)
    if letter is None:
        why = "its thinking never ends" if unclosed(asked) else "the answer declares no option"
        return Score(0.0, Status.UNPARSED, why)
    return Score(float(letter == asked.gold.answers[0]))


def failure(asked: Asked) -> Score | None:
    """The score of a question that failed: it counts 0 over all questions and is left out over valid ones."""
    outcome = asked.record.outcome
    return None if outcome is Outcome.OK else Score(None, Status.OK, outcome.value)


def unclosed(asked: Asked) -> bool:
    """Whether the answer opens its reasoning and never closes it: it was cut, and what it chose is not known."""
    return after_thinking(asked.record.answer or "") is None


@dataclass(frozen=True)
class ChoiceAccuracy(Metric):
    """Whether the option that the answer declares is the right one: scores `accuracy` and `unclosed_thinking`, 0 or 1.

    The denominator is every question. An answer that declares no option is status `unparsed` and counts 0; it is never
    given a letter. `unclosed_thinking` is the share of answers whose reasoning never closes; they are unparsed too. Of
    a question asked in several passes, only the first counts here (`Gold.extra["pass"]` 0): the vanilla accuracy.

    Attributes:
        extractor: the rule that reads the letter: `memharness`, `vlmevalkit` or `mmstar`.
    """

    extractor: str = "memharness"

    def __post_init__(self) -> None:
        """Refuse an unknown extractor where the metric is named."""
        extractor(self.extractor)

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Score one question."""
        asked = unit[0]
        if asked.gold.extra.get("pass", 0):
            accuracy = Score(None, Status.NOT_APPLICABLE, "a further pass of a question counts in CircularEval only")
        else:
            accuracy = choice_score(asked, self.extractor)
        return {"accuracy": accuracy, "unclosed_thinking": thinking_score(asked)}


def thinking_score(asked: Asked) -> Score:
    """1 where the answer's reasoning never closes, else 0."""
    return failure(asked) or Score(float(unclosed(asked)))


@dataclass(frozen=True)
class CircularAccuracy(Metric):
    """CircularEval: right only if every pass of the group is: score `circular`, 0 or 1 (MMBench, Liu et al. 2024).

    A group lost to nothing but unread answers is status `unparsed`. A group of which a selection asked only some
    passes (`Gold.extra["passes"]` says how many there are) does not apply.

    Attributes:
        extractor: as of `ChoiceAccuracy`.
    """

    unit: ClassVar[Literal["question", "group", "episode"]] = "group"
    extractor: str = "memharness"

    def __post_init__(self) -> None:
        """Refuse an unknown extractor where the metric is named."""
        extractor(self.extractor)

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Score one group of passes."""
        planned = unit[0].gold.extra.get("passes", len(unit))
        if len(unit) < planned:
            return {"circular": Score(None, Status.NOT_APPLICABLE, f"{len(unit)} of {planned} passes were asked")}
        passes = [choice_score(asked, self.extractor) for asked in unit]
        lost = [one for one in passes if not one.value]
        # What failed makes the group invalid; one wrong letter decides it, whatever else went unread.
        lost.sort(key=lambda one: (one.value is not None, one.status is Status.UNPARSED))
        return {"circular": lost[0] if lost else Score(1.0)}
