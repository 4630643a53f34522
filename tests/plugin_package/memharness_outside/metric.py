"""A metric of the outside package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memharness.metric import Metric
from memharness.types import Asked, Score


@dataclass(frozen=True)
class Shortness(Metric):
    """1 / (1 + words of the answer beyond `free`)."""

    free: int = 2

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """One score, `shortness`."""
        answer = unit[0].record.answer or ""
        return {"shortness": Score(1 / (1 + max(0, len(answer.split()) - self.free)))}
