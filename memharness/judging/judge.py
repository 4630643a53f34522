"""The judged metric: a rubric as a value that prints and parses, for one answer a call or a session's at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from memharness.judging import reading
from memharness.judging.rubric import Rubric, rubric
from memharness.metric import Judged
from memharness.prompts import stripped
from memharness.reader import Request, Sampling
from memharness.types import Asked, Image, Part, Score, Status, Text, UserError, parts_text

if TYPE_CHECKING:
    from memharness.reader import Reply

Slots = Mapping[str, Sequence[Part]]
NO_PICTURE = (Text("(none)"),)


@dataclass(frozen=True)
class Judge(Judged):
    """What a judge says of an answer, compared with the reference, under a rubric.

    A question without a reference answer does not apply, unless the rubric has words for answers that memory does not
    hold. A missing answer scores 0, and an empty one what the rubric says, without a call. A reply in which no verdict
    can be read is `judge_error`.

    Attributes:
        rubric: name and version, such as `binary.v1`, or the path of a rubric file of one's own (`….vN.txt`).
        verdict: how the reply is read: `strict`, as the rubric asks for it, or `official`, as the benchmark's own
            parser reads it; score names then end in `_official`, so that both can stand in one run.
    """

    rubric: str = "binary.v1"
    verdict: Literal["strict", "official"] = "strict"

    def __post_init__(self) -> None:
        """Refuse an unknown rubric, or an official reading where the rubric has none.

        Raises:
            UserError: naming what there is.
        """
        made = self._rubric
        if self.verdict not in ("strict", "official"):
            raise UserError(f"Judge(verdict={self.verdict}): expected strict or official")
        if self.verdict == "official" and not made.official:
            raise UserError(f"Judge(rubric={self.rubric}): has no official reading of its own; leave out verdict")

    @property
    def _rubric(self) -> Rubric:
        return rubric(self.rubric)

    @property
    def batch(self) -> bool:
        """Whether the answers to questions that share `Gold.group` are judged in one call."""
        return bool(self._rubric.case)

    @property
    def sees(self) -> bool:
        """Whether the judge is shown pictures."""
        return self._rubric.sees

    @property
    def key(self) -> Mapping[str, str]:
        """What tells this judging from another, besides the judge: rubric, digest of its file, and the reading."""
        return {"rubric": self._rubric.name, "sha256": self._rubric.sha256, "verdict": self.verdict}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the scores."""
        return tuple(f"{name}_official" if self.verdict == "official" else name for name in self._rubric.names)

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Scores of a missing or empty answer, or of a question that does not apply; none if the judge must say."""
        asked, made = unit[0], self._rubric
        if not made.sees and self._reference(asked) is None:
            return dict.fromkeys(self.names, Score(None, Status.NOT_APPLICABLE, "no reference answer"))
        if made.sees and asked.record.pictures:
            return {}
        if asked.record.answer is None:
            return self._scores(made.empty if made.labels else 0.0)
        if made.empty is not None and not asked.record.answer.strip():
            return self._scores(made.empty)
        return {}

    def ask(self, unit: Sequence[Asked]) -> Request:
        """The request to a judge that can be held to a schema."""
        made = self._rubric
        request = self._request(unit, made.in_json)
        return replace(request, schema=made.schema)

    def ask_in_words(self, unit: Sequence[Asked]) -> Request:
        """The request to any other judge."""
        return self._request(unit, self._rubric.in_words or self._rubric.in_json)

    def read(self, unit: Sequence[Asked], reply: Reply) -> Mapping[str, Score]:
        """Scores of one question from the reply on it, or on the batch that it is a part of."""
        official = self.verdict == "official"
        try:
            if self._rubric.points:
                return self._points(reading.points(self._rubric, reply))
            return self._scores(reading.read(self._rubric, reply, unit[0].question.id, official=official))
        except reading.Unread as error:
            return dict.fromkeys(self.names, Score(None, Status.JUDGE_ERROR, str(error)))

    def said(self, scores: Mapping[str, Score]) -> reading.Verdict | None:
        """The verdict behind the scores that `read` gave; None if there was none."""
        values = [scores[name].value if name in scores else None for name in self.names]
        if self._rubric.points:
            return values[0]
        if None in values:
            return None
        if self._rubric.labels:
            return next((label for label, value in zip(self._rubric.labels, values, strict=True) if value), None)
        return values[0]

    def accepts(self, verdict: reading.Verdict) -> bool:
        """Whether a verdict lets an answer pass as right."""
        least = self._rubric.accept
        return verdict == least if isinstance(verdict, str) or isinstance(least, str) else verdict >= least

    def _scores(self, verdict: reading.Verdict | None) -> Mapping[str, Score]:
        """Scores of a verdict; of none, 0 each."""
        labels = self._rubric.labels
        values = [float(label == verdict) for label in labels] if labels else [float(verdict or 0.0)] * len(self.names)
        return {name: Score(value) for name, value in zip(self.names, values, strict=True)}

    def _points(self, points: Mapping[str, float | None]) -> Mapping[str, Score]:
        """Scores of points: their mean, and each."""
        given = [value for value in points.values() if value is not None]
        each = {
            name: Score(None, Status.NOT_APPLICABLE, "nothing of the kind here, says the judge")
            if value is None
            else Score(value)
            for name, value in points.items()
        }
        return {self.names[0]: Score(sum(given) / len(given))} | each

    def _reference(self, asked: Asked) -> str | None:
        """The reference in words: any of the accepted answers, or that there is none."""
        if asked.gold.answers:
            return "\nor: ".join(asked.gold.answers)
        return self._rubric.abstention or None if asked.gold.abstain else None

    def _request(self, unit: Sequence[Asked], form: str) -> Request:
        made = self._rubric
        slots: dict[str, Sequence[Part]] = {"form": (Text(form),)}
        if made.case:
            shown = [part for asked in unit for part in (*self._case(asked), Text("\n\n"))]
            slots["cases"] = stripped(shown)
        else:
            slots |= self._slots(unit[0])
        return Request(made.template.fill(slots), Sampling(max_tokens=made.max_tokens))

    def _case(self, asked: Asked) -> tuple[Part, ...]:
        made = self._rubric
        template = replace(made.template, messages=(("user", made.case.strip("\n")),))
        return template.fill({**self._slots(asked), "id": (Text(asked.question.id),)})[0].parts

    def _slots(self, asked: Asked) -> Slots:
        """Question, choices, reference and answer as text: a judge compares words, and pictures are named in them.

        Pictures themselves are in slots of their own, for rubrics that show them.
        """
        brought = tuple(part for part in asked.question.parts if isinstance(part, Image) and not part.missing)
        choices = "\n".join(f"{choice.key}. {parts_text(choice.parts)}" for choice in asked.question.choices)
        return {
            "question": (Text(asked.question.text()),),
            "choices": (Text(choices),) if choices else (),
            "reference": (Text(self._reference(asked) or ""),),
            "answer": (Text(asked.record.answer or ""),),
            "brought": brought or NO_PICTURE,
            "earlier": NO_PICTURE,
            "made": asked.record.pictures or NO_PICTURE,
        }
