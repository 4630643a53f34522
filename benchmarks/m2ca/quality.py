"""How good a turn's reply is, by a judge that sees: M2CA-Bench's generation quality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memharness.benchmarks.m2ca.made import DRAWN, reply_missing
from memharness.judging import Judge
from memharness.judging.judge import NO_PICTURE
from memharness.scoring.metrics import not_applicable
from memharness.types import Asked, Image, Part, Score, Text

RUBRIC = "m2ca.v1"


@dataclass(frozen=True)
class Quality(Judge):
    """Points from 0 to 10 for faithfulness, preservation and correctness, and their mean, `quality`.

    The judge sees the user's words and pictures, the earlier pictures that the turn needs as the session showed them,
    and the reply with its picture. A picture that was due and did not come is 0 without a call. M2CA-Bench reports such
    points; its judge's prompt, inputs and failure rule are not published, so these are of this project.
    """

    rubric: str = RUBRIC

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Scores that need no call; none if the judge must say."""
        asked = unit[0]
        if why := reply_missing(asked):
            return dict.fromkeys(self.names, not_applicable(why))
        if asked.gold.category in DRAWN and not asked.record.pictures:
            return dict.fromkeys(self.names, Score(0.0, note="no picture was made"))
        return super().score(unit, facts)

    def _slots(self, asked: Asked) -> Mapping[str, Sequence[Part]]:
        """As a judge's own, with the earlier pictures that the turn needs, each under its label."""
        slots = dict(super()._slots(asked))
        brought = {part.sha256 for part in slots["brought"] if isinstance(part, Image)}
        shown: list[Part] = []
        for label, sha256, mime, width, height in asked.gold.extra.get("shown", ()):
            if sha256 is None:
                shown.append(Text(f"\n{label}: (not at hand)"))
            elif sha256 not in brought:
                shown += [Text(f"\n{label}: "), Image(sha256, mime, width, height, label)]
        return slots | {"earlier": shown or NO_PICTURE}
