"""Which pictures a turn was answered from: read strictly, and scored as a set."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from memharness.metric import Metric
from memharness.scoring.metrics import not_applicable, readout_missing
from memharness.types import Asked, Evidence, Outcome, Score, Status

PICTURE = "image-"  # begins the item id of a picture; its number follows
NONE = frozenset(("none", "no image", "no images", "no picture", "no pictures", "[]", "∅", "无", "没有", "不需要"))
LATE, LATER = 11, 20  # the turns of the long cut

_LABEL = re.compile(r"(?:images?|pictures?|rank|图片|图)?\s*#?\s*(\d{1,6})", re.IGNORECASE)
_BETWEEN = re.compile(r"[,;&\n，、；]|\band\b|和", re.IGNORECASE)
_TAG = re.compile(r"<answer>(.*?)(?:</answer>|$)", re.IGNORECASE | re.DOTALL)
_LEAD = re.compile(r"\s*(?:answer|images?|pictures?)\s*[:：]\s*", re.IGNORECASE)
_EDGES = " \t\r\"'`*[](){}.。"


def picture_id(number: int) -> str:
    """The item id of a picture."""
    return f"{PICTURE}{number}"


def picture_numbers(evidence: Sequence[Evidence]) -> frozenset[int]:
    """The pictures that evidence points to; words of the dialogue do not count."""
    items = (one.item for one in evidence)
    return frozenset(int(item.removeprefix(PICTURE)) for item in items if item.startswith(PICTURE))


def parse_set(reply: str) -> frozenset[int] | None:
    """The picture numbers a reply gives, or None where it is not a list of labels and nothing else.

    Reasoning up to `</think>` is not read, and a reply that never leaves it gives none. Of `<answer>` tags the last
    counts. Then the reply must be `none` (or its like), or labels (`image 3`, `#3`, `3`) between commas, semicolons,
    line breaks or `and`, in any brackets; order and repeats do not matter. Sentences, ranges and empty replies are not
    read: nothing is guessed.
    """
    reply = reply.rpartition("</think>")[2]
    if "<think>" in reply:
        return None
    if tagged := _TAG.findall(reply):
        reply = tagged[-1]
    reply = _LEAD.sub("", reply, count=1) if _LEAD.match(reply) else reply
    if reply.strip(" \t\r\n\"'`*.。").casefold() in NONE:
        return frozenset()
    pieces = [piece for one in _BETWEEN.split(reply) if (piece := one.strip(_EDGES))]
    labels = [_LABEL.fullmatch(piece) for piece in pieces]
    if not labels or not all(labels):
        return None
    return frozenset(int(label[1]) for label in labels if label)


def given_set(asked: Asked) -> frozenset[int] | None:
    """The set a turn was answered from; None if the reply cannot be read.

    An answer that brought a readout of its own (answer track, or a prediction with evidence) retrieved what that names:
    its words are for the user, so one run scores both. Where the harness showed a readout to a reader (`record.view`
    says so), the reader's reply is the set.
    """
    record = asked.record
    if record.view is None and record.evidence is not None:
        return picture_numbers(record.evidence)
    return parse_set(record.answer or "")


@dataclass(frozen=True)
class SetScores(Metric):
    """Figures of a set of pictures against the gold one, R*. Two empty sets agree: every figure is 1.

    `em` equality; `precision`, `recall`, `f1`, `jaccard`, of which each is 0 where just one of the sets is empty.
    """

    prefix: ClassVar[str] = ""

    def figures(self, given: frozenset[int], gold: frozenset[int]) -> dict[str, Score]:
        """All of them."""
        same = len(given & gold)
        empty = not given and not gold
        values = {
            "em": float(given == gold),
            "precision": 1.0 if empty else same / max(len(given), 1),
            "recall": 1.0 if empty else same / max(len(gold), 1),
            "f1": 1.0 if empty else 2 * same / (len(given) + len(gold)),
            "jaccard": 1.0 if empty else same / len(given | gold),
        }
        return {f"{self.prefix}{name}": Score(value) for name, value in values.items()}

    def none(self, score: Score) -> dict[str, Score]:
        """The same score under each name."""
        return dict.fromkeys((f"{self.prefix}{name}" for name in ("em", "precision", "recall", "f1", "jaccard")), score)

    @abstractmethod
    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Score one turn."""


@dataclass(frozen=True)
class RetrievedSet(SetScores):
    """Context usage: the pictures a turn was answered from, against R*.

    Besides the figures of the set: `em@…` by cut (the paper's turns 11–20 and very_hard at 11–20, |R*|, span,
    difficulty, tags); `abstention` (turns that need no picture: none was taken), `false_abstention` (others: none was);
    `sibling` and `confounder` (a wrong picture was taken that has a parent in common with a gold one, or was made to be
    mistaken for it); `unknown` (a picture was named that is not there); `retrieved` (how many were taken).
    """

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Score one turn."""
        asked = unit[0]
        extra = asked.gold.extra
        gold = frozenset(extra["gold"])
        given = given_set(asked)
        if given is None:
            # What failed or was never said is no reply that a parser could not read.
            said = asked.record.outcome is Outcome.OK and asked.record.answer is not None
            none = Score(0.0, Status.UNPARSED, "the reply is no list of labels") if said else Score(0.0)
            scores = self.none(none) | dict.fromkeys(("abstention", "false_abstention"), none)
            scores |= {"sibling": none, "confounder": none, "unknown": none, "retrieved": not_applicable("no set")}
        else:
            scores = self.figures(given, gold) | self._faults(given, gold, extra)
        scores["false_abstention" if not gold else "abstention"] = not_applicable("needs a picture" if gold else "none")
        for name in ("sibling", "confounder"):
            if not extra[f"{name}s"]:
                scores[name] = not_applicable(f"no {name}")
        return scores | {f"em@{cut}": scores["em"] for cut in cuts(extra)}

    def _faults(
        self, given: frozenset[int], gold: frozenset[int], extra: Mapping[str, Sequence[int]]
    ) -> dict[str, Score]:
        wrong = given - gold
        lost = sorted(given.difference(extra["numbers"]))
        note = f"names picture {lost[0]}, which is not there" if lost else ""
        return {
            "abstention": Score(float(not given)),
            "false_abstention": Score(float(not given)),
            "sibling": Score(float(not wrong.isdisjoint(extra["siblings"]))),
            "confounder": Score(float(not wrong.isdisjoint(extra["confounders"]))),
            "unknown": Score(float(bool(lost)), Status.OK, note),
            "retrieved": Score(float(len(given))),
        }


@dataclass(frozen=True)
class ReadoutSet(SetScores):
    """The pictures of the readout itself, whatever was made of it: `readout_em`, `readout_precision` and so on."""

    needs: ClassVar[Literal["answer", "readout"]] = "readout"
    prefix: ClassVar[str] = "readout_"

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Score one turn."""
        asked = unit[0]
        missing = readout_missing(asked)
        if missing is not None:
            return self.none(missing)
        return self.figures(picture_numbers(asked.record.evidence or ()), frozenset(asked.gold.extra["gold"]))


def cuts(extra: Mapping[str, object]) -> list[str]:
    """The cuts a turn belongs to."""
    turn, refs, span = (int(str(extra[name])) for name in ("turn", "refs", "span"))
    tags = extra["tags"]
    late = LATE <= turn <= LATER
    found = [f"{LATE}-{LATER}"] if late else []
    found += [f"very_hard@{LATE}-{LATER}"] if late and extra["difficulty"] == "very_hard" else []
    found += [f"refs{refs}" if refs < 2 else "refs2+"]
    found += [] if not refs else ["span0-1"] if span < 2 else ["span2-7"] if span < 8 else ["span8+"]
    found += [str(extra["difficulty"])] if extra["difficulty"] else []
    assert isinstance(tags, list | tuple)
    return [*found, *map(str, tags)]
