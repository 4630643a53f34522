"""What a turn gave back, without a judge: the picture that was due, held to its checks by pixels, or the words."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memharness.media import MediaStore
from memharness.metric import Metric
from memharness.scoring.metrics import not_applicable
from memharness.types import Asked, DataError, Image, Outcome, Score

DRAWN = ("generate", "edit", "composite")  # tasks whose answer is a picture
_WORD = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+")  # a Chinese character, or a word of other letters
_ARTICLES = frozenset(("a", "an", "the"))


def reply_missing(asked: Asked) -> str | None:
    """Why a turn has no reply to the user that could be scored; None if it has one, or failed.

    Where the harness showed a readout to a reader, that was asked for labels of pictures and for nothing else; a
    prediction may hold no more than that either.
    """
    record = asked.record
    if record.view is not None:
        return "the reader was asked for labels, not for a reply"
    if record.outcome is Outcome.OK and reply(asked) is None and not record.pictures:
        return "there is no reply"
    return None


def reply(asked: Asked) -> str | None:
    """The words of the reply: those said to be it (`extra["reply"]`), else the answer."""
    said = asked.record.extra.get("reply", asked.record.answer)
    return said if isinstance(said, str) else None


@dataclass(frozen=True)
class Made(Metric):
    """The reply to the user, without a judge.

    `made`: whether a picture came where one was due; `unasked`: whether one came where words were due. `checks`: the
    share of the turn's checks that hold of the picture, by its pixels; of several pictures the last counts, and none
    holds nothing. `answer_em` and `answer_f1`: the words of an understanding turn against the answer that the data
    state, without articles, punctuation and case; a Chinese character is a word.
    """

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Score one turn.

        Raises:
            DataError: if the picture to check is not kept on this machine.
        """
        asked = unit[0]
        if why := reply_missing(asked):
            return dict.fromkeys(("made", "unasked", "checks", "answer_em", "answer_f1"), not_applicable(why))
        pictures, drawn = asked.record.pictures, asked.gold.category in DRAWN
        came = Score(float(bool(pictures)))
        return {
            "made": came if drawn else not_applicable("words are due"),
            "unasked": not_applicable("a picture is due") if drawn else came,
            "checks": self._checks(asked.gold.extra.get("checks", ()), pictures),
            **self._words(asked),
        }

    def _checks(self, checks: Sequence[Mapping[str, object]], pictures: Sequence[Image]) -> Score:
        """The share that holds."""
        if not checks:
            return not_applicable("no checks")
        if not pictures:
            return Score(0.0, note="no picture was made")
        from memharness.scenes import Check, holds

        try:
            picture = MediaStore().open(pictures[-1])
        except DataError:
            raise DataError(
                f"picture {pictures[-1].sha256} of an answer is not kept on this machine, so its checks are out "
                "of reach; run again, or bundle the run with its pictures where it was made"
            ) from None
        held = [holds(Check.from_json(check), picture) for check in checks]
        failed = [str(check["kind"]) for check, holding in zip(checks, held, strict=True) if not holding]
        return Score(sum(held) / len(held), note=f"not held: {', '.join(failed)}" if failed else "")

    def _words(self, asked: Asked) -> Mapping[str, Score]:
        stated = words(str(asked.gold.extra.get("answer", "")))
        if not stated:
            return dict.fromkeys(("answer_em", "answer_f1"), not_applicable("the data state no answer"))
        said = words(reply(asked) or "")
        same = (Counter(said) & Counter(stated)).total()
        f1 = 2 * same / (len(said) + len(stated))
        return {"answer_em": Score(float(said == stated)), "answer_f1": Score(f1)}


def words(text: str) -> list[str]:
    """The words of a text as answers are compared by, in order."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return [word for word in _WORD.findall(plain) if word not in _ARTICLES]
