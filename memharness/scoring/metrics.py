"""The metrics that benchmarks share, as values over the pure functions: answers, retrieval, abstention, length."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from memharness.benchmark import ScoreRow
from memharness.metric import Metric
from memharness.scoring import text
from memharness.scoring.recall import exclusion, hit, precision, recall, recall_all
from memharness.types import Asked, Evidence, Outcome, Score, Status, UserError, did_you_mean

Compare = Callable[[str, str], float]
"""A prediction and a gold answer to a figure in [0, 1]."""

F1S: Mapping[str, Compare] = {
    "hotpot": lambda said, gold: text.hotpot_f1(said, gold).f1,
    "locomo": text.locomo_f1,
    "mem0": lambda said, gold: text.mem0_f1(said, gold).f1,
    "mem_gallery": lambda said, gold: text.token_f1(said, gold, text.mem_gallery, stemmed=True).f1,
    "memeye": lambda said, gold: text.token_f1(said, gold, text.memeye, stemmed=True).f1,
}
"""Token F1 as each benchmark's official evaluator computes it."""


def not_applicable(reason: str) -> Score:
    """A score that leaves both denominators, and why."""
    return Score(None, Status.NOT_APPLICABLE, reason)


def answer_score(asked: Asked, compare: Compare) -> Score:
    """The best figure over the accepted answers; no answer is 0, a question without gold answers does not apply."""
    if not asked.gold.answers:
        return not_applicable("no gold answer")
    said = asked.record.answer
    return Score(0.0 if said is None else max(compare(said, gold) for gold in asked.gold.answers))


def readout_missing(asked: Asked) -> Score | None:
    """The retrieval score of a question whose record holds no readout; None if it holds one.

    A failure scores 0, so that it counts over all questions; to an answer without a readout retrieval does not apply.
    """
    if asked.record.evidence is not None:
        return None
    return not_applicable("no readout was recorded") if asked.record.outcome is Outcome.OK else Score(0.0)


def backed(rows: Iterable[ScoreRow]) -> list[ScoreRow]:
    """The rows without the scores that only failed questions hold, while others were answered.

    Where answers came without readouts, a missing answer must not make a recall of 0 out of nothing.
    """
    rows = list(rows)
    held = [_applicable(row) for row in rows if row.failed is None]
    if not held:
        return rows
    known = frozenset().union(*held)
    return [row if row.scores.keys() <= known else _only(known, row) for row in rows]


def _only(known: frozenset[str], row: ScoreRow) -> ScoreRow:
    return replace(row, scores={name: score for name, score in row.scores.items() if name in known})


def _applicable(row: ScoreRow) -> frozenset[str]:
    return frozenset(name for name, score in row.scores.items() if score.status is not Status.NOT_APPLICABLE)


def _known(name: str, parameter: str, names: Mapping[str, object]) -> None:
    if name not in names:
        raise UserError(f"{parameter}={name}: not known{did_you_mean(name, names)}; there are: {', '.join(names)}")


@dataclass(frozen=True)
class ExactMatch(Metric):
    """Equality of normalised texts, the best over the accepted answers: score `em`, 0 or 1.

    Attributes:
        norm: whose normaliser (`hotpot`, `locomo`, `mem_gallery`, `memeye`).
    """

    norm: str = "hotpot"

    def __post_init__(self) -> None:
        _known(self.norm, "norm", text.NORMALISERS)

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Score one question: `em`."""
        normalise = text.NORMALISERS[self.norm]
        return {"em": answer_score(unit[0], lambda said, gold: float(text.exact_match(said, gold, normalise)))}


@dataclass(frozen=True)
class F1(Metric):
    """Token F1, the best over the accepted answers: score `f1` in [0, 1].

    Attributes:
        norm: whose F1 (`hotpot`, `locomo`, `mem0`, `mem_gallery`, `memeye`).
    """

    norm: str = "hotpot"

    def __post_init__(self) -> None:
        _known(self.norm, "norm", F1S)

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Score one question: `f1`."""
        return {"f1": answer_score(unit[0], F1S[self.norm])}


@dataclass(frozen=True)
class AnswerLength(Metric):
    """Words of the answer, since judges favour length: score `answer_words`, unbounded."""

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Score one question: `answer_words`."""
        said = unit[0].record.answer
        return {"answer_words": not_applicable("no answer") if said is None else Score(float(len(said.split())))}


@dataclass(frozen=True)
class Abstained(Metric):
    """Whether the answer declines: right where memory holds no answer (`abstention`), wrong elsewhere.

    `false_abstention` is over the answerable questions, so a method that always declines shows in both.

    Attributes:
        phrases: lower-case phrases that decline, separated by "|" (default: LoCoMo's official ones).
    """

    phrases: str = "|".join(text.LOCOMO_ABSTENTIONS)

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Score one question: `abstention` or `false_abstention`, each 0 or 1."""
        asked = unit[0]
        said = asked.record.answer
        declined = Score(float(said is not None and text.abstains(said, self.phrases.split("|"))))
        other = not_applicable("answerable" if not asked.gold.abstain else "not answerable")
        return {
            "abstention": declined if asked.gold.abstain else other,
            "false_abstention": other if asked.gold.abstain else declined,
        }


@dataclass(frozen=True)
class Retrieval(Metric):
    """A figure of the first k distinct evidence ids against the gold ones; macro over questions that have gold.

    What says nothing does not apply, with the reason in the note: no gold, a right answer that is to decline, gold
    that is the whole memory, and k that covers it. A benchmark states the size of its memories as
    `Gold.extra["items"]`, and scores a coarser grain in a subclass that overrides `pointer`.

    Attributes:
        k: the cut.
        abstentions: count questions whose right answer is to decline, where they name evidence.
        forced: count questions whose memory is no larger than the gold evidence or than k.
        over_all: count every question, those without gold as 0; the score is then named `name@k_all`.
    """

    k: int = 10
    abstentions: bool = False
    forced: bool = False
    over_all: bool = False
    needs: ClassVar[Literal["answer", "readout"]] = "readout"
    name: ClassVar[str]

    def __post_init__(self) -> None:
        if self.k < 1:
            raise UserError(f"{type(self).__name__}@{self.k}: k must be at least 1")

    @abstractmethod
    def figure(self, shown: Sequence[str], gold: frozenset[str]) -> float:
        """The figure, in [0, 1].

        Args:
            shown: all retrieved ids in order, not yet cut.
            gold: the gold ids, at least one.
        """

    def pointer(self, evidence: Evidence) -> str:
        """The id that is scored: the item's own, whatever its part."""
        return evidence.item

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Score one question under `name@k`, or `name@k_all`."""
        return {f"{self.name}@{self.k}{'_all' if self.over_all else ''}": self.one(unit[0])}

    def one(self, asked: Asked) -> Score:
        """The score of one question."""
        gold = frozenset(map(self.pointer, asked.gold.evidence))
        reason = None if self.over_all else self.excluded(asked, gold)
        if reason:
            return not_applicable(reason)
        shown = [self.pointer(evidence) for evidence in asked.record.evidence or ()]
        return readout_missing(asked) or Score(self.figure(shown, gold) if gold else 0.0)

    def excluded(self, asked: Asked, gold: frozenset[str]) -> str | None:
        """Why the figure says nothing about this question; None if it does."""
        reason: str | None = exclusion(gold, abstention=asked.gold.abstain and not self.abstentions)
        held = asked.gold.extra.get("items")
        if reason or self.forced or not isinstance(held, int):
            return reason
        if len({evidence.item for evidence in asked.gold.evidence}) >= held:
            return "gold is the whole haystack"
        return "k covers the whole haystack" if self.k >= held else None


@dataclass(frozen=True)
class Recall(Retrieval):
    """Share of the gold items among the first k: score `recall@k`."""

    name: ClassVar[str] = "recall"

    def figure(self, shown: Sequence[str], gold: frozenset[str]) -> float:
        """Fractional recall."""
        return recall(shown, gold, self.k) or 0.0


@dataclass(frozen=True)
class RecallAll(Retrieval):
    """Whether all gold items are among the first k: score `recall_all@k`."""

    name: ClassVar[str] = "recall_all"

    def figure(self, shown: Sequence[str], gold: frozenset[str]) -> float:
        """1 or 0."""
        return recall_all(shown, gold, self.k) or 0.0


@dataclass(frozen=True)
class HitRate(Retrieval):
    """Whether any gold item is among the first k: score `hit@k`."""

    name: ClassVar[str] = "hit"

    def figure(self, shown: Sequence[str], gold: frozenset[str]) -> float:
        """1 or 0."""
        return hit(shown, gold, self.k) or 0.0


@dataclass(frozen=True)
class Precision(Retrieval):
    """Share of gold among the first k retrieved, of what was delivered: score `precision@k`."""

    name: ClassVar[str] = "precision"

    def figure(self, shown: Sequence[str], gold: frozenset[str]) -> float:
        """Precision of what was delivered; nothing delivered is 0."""
        return precision(shown, gold, self.k) or 0.0


@dataclass(frozen=True)
class RecallReadout(Metric):
    """Share of the gold items anywhere in the readout, however long: score `recall_readout`."""

    needs: ClassVar[Literal["answer", "readout"]] = "readout"

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Score one question: `recall_readout`."""
        asked = unit[0]
        gold = frozenset(evidence.item for evidence in asked.gold.evidence)
        reason = exclusion(gold, abstention=asked.gold.abstain)
        if reason:
            return {"recall_readout": not_applicable(reason)}
        shown = [evidence.item for evidence in asked.record.evidence or ()]
        return {"recall_readout": readout_missing(asked) or Score(recall(shown, gold))}


@dataclass(frozen=True)
class RecallGold(Metric):
    """Share of the gold items among as many first items as there are gold ones (R-precision): score `recall@gt`."""

    needs: ClassVar[Literal["answer", "readout"]] = "readout"

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Score one question: `recall@gt`."""
        asked = unit[0]
        gold = frozenset(evidence.item for evidence in asked.gold.evidence)
        if not gold:
            return {"recall@gt": not_applicable("no gold")}
        shown = [evidence.item for evidence in asked.record.evidence or ()]
        return {"recall@gt": readout_missing(asked) or Score(recall(shown, gold, len(gold)))}
