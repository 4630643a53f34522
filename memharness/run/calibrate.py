"""Measure a judge on answers of known worth: what wrong ones it lets pass, what right ones it refuses, and what for.

A judge is an instrument. Its false accepts and false rejects stand apart, by kind of answer and by category, each with
its interval, and never as one blended accuracy. Whether it is of any use at all is told by Youden's J, the share of
right answers accepted less the share of wrong ones accepted: a judge that says the same to everything has J = 0.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from memharness.benchmark import ScoreRow
from memharness.identity import digest, opaque_id
from memharness.judging import Judge
from memharness.judging.bank import KINDS, RIGHT, Bank, Known, chosen, read_bank
from memharness.run.asking import Asker, Bill, judges
from memharness.run.folder import RunFolder
from memharness.run.judgements import write
from memharness.run.judging import errs, heading
from memharness.run.progress import Progress
from memharness.run.score import scored
from memharness.stats import Interval, interval
from memharness.store import document, write_atomic
from memharness.types import Asked, Gold, Outcome, Question, Record, Text, UserError

FOLDER = "calibrations"
Report = dict[str, Any]


@dataclass(frozen=True)
class Verdict:
    """What a judge said of an answer: `accepted` is None where no verdict could be read; `score` is its mean level."""

    known: Known
    accepted: bool | None
    score: float | None

    @property
    def cluster(self) -> str:
        """What it shares with answers that are not independent of it: the conversation, else the question."""
        return self.known.conversation or "\n".join(self.known.asked)


def calibrate(
    spec: str,
    banks: Sequence[Path],
    name: str,
    progress: Progress,
    *,
    official: bool = False,
    limit: int | None = None,
    max_cost: float | None = None,
    out: Path = Path("results"),
) -> Report:
    """Measure a judge on banks.

    The verdicts go to `calibrations/` under `out`, with the report; replies come from the request cache where they are
    known.

    Args:
        spec: reader spec of the judge.
        banks: bank files.
        name: the rubric.
        progress: told what happens.
        official: read replies as the benchmark's own parser does.
        limit: take that many questions, evenly spread, each with all its answers.
        max_cost: most USD to spend.
        out: where the request cache and the report lie.

    Returns:
        `kinds` and `categories` (figures by kind of answer), `youden` (J against each kind of wrong answer and all),
        `judge_error` (`n` and `share`), `recorded` (false accepts of the judge whose verdicts the banks carry),
        `verdict` (`word` and `text`), `notes`, `file`, and how the judge was asked and what it cost.

    Raises:
        UserError: for a bank that cannot be read, an unknown rubric or reader, or a hosted judge without a price limit.
    """
    if limit is not None and limit < 1:
        raise UserError(f"--limit {limit}: must be at least 1")
    metric = Judge(name, "official" if official else "strict")
    read = [read_bank(path) for path in dict.fromkeys(banks)]
    answers = chosen(read, limit)
    progress.start(len(answers), len(read))
    head, rows = asyncio.run(_ask(spec, metric, answers, progress, max_cost, out))
    verdicts = [_verdict(metric, known, row) for known, row in zip(answers, rows, strict=True)]
    taken = {"banks": [bank.sha256 for bank in read], "limit": limit}
    head["key"] = digest({"key": head["key"], **taken})
    file = write(out / FOLDER, head, rows)
    report = {**head, **figures(verdicts), **_about(read, answers, limit), "file": str(file)}
    write_atomic(file.with_suffix(".json"), document(report))
    return report


async def _ask(
    spec: str, metric: Judge, answers: Sequence[Known], progress: Progress, max_cost: float | None, out: Path
) -> tuple[Report, list[ScoreRow]]:
    folder = RunFolder(out / FOLDER)
    lines = folder.appender("ledger")
    bill = Bill(lambda call: lines.add(call.line()))
    asked = [_asked(place, known) for place, known in enumerate(answers)]
    rows = []
    try:
        async with judges([spec], out, bill.add, max_cost=max_cost, tokens=progress.tokens) as found:
            asker = Asker(found[spec])
            async for row in scored(lambda: asked, [metric], asker):
                progress.question("judge_error" if errs(metric, row.scores) else "ok")
                rows.append(row)
    finally:
        folder.close()
    return heading(spec, asker, metric, "") | bill.line(), rows


def _asked(place: int, known: Known) -> Asked:
    """A bank's answer as one that was given to a question.

    Its id says nothing of its worth, for a judge of many answers sees ids; and it is a group of its own, so that none
    of them is judged beside another.
    """
    unit = opaque_id("bank", place, known.id)
    question = Question(unit, known.conversation, (Text(known.question),))
    gold = Gold(
        known.gold,
        category=known.category,
        group=unit,
        cluster=known.conversation,
        native_id=f"{known.id} {known.kind}",
    )
    return Asked(question, gold, Record(unit, known.conversation, 0, place, Outcome.OK, answer=known.answer))


def _verdict(metric: Judge, known: Known, row: ScoreRow) -> Verdict:
    said = metric.said(row.scores)
    if said is None:
        return Verdict(known, None, None)
    return Verdict(known, metric.accepts(said), None if isinstance(said, str) else said)


def _about(banks: Sequence[Bank], answers: Sequence[Known], limit: int | None) -> Report:
    """What was asked, and what a reader of the figures should know."""
    notes = []
    golden = [one for one in answers if one.kind == RIGHT]
    if golden and all(one.answer in one.gold for one in golden):
        notes.append(
            "every right answer is the gold itself, word for word: its false rejects are a lower bound for answers in "
            "other words"
        )
    same = [one.id for one in answers if one.kind != RIGHT and one.answer.strip().lower() in _lower(one.gold)]
    if same:
        some = ", ".join(same[:3]) + (", …" if len(same) > 3 else "")
        notes.append(f"counted as wrong, as the banks have it, though word for word the gold: {len(same)} ({some})")
    return {
        "banks": [{"path": str(bank.path), "sha256": bank.sha256, "recorded_by": bank.judge} for bank in banks],
        "limit": limit,
        "questions": len({one.asked for one in answers}),
        "answers": len(answers),
        "notes": notes,
    }


def _lower(texts: Sequence[str]) -> set[str]:
    return {text.strip().lower() for text in texts}


# ------------------------------------------------------------------------------------------------------------- figures


def figures(verdicts: Sequence[Verdict]) -> Report:
    """All figures of a calibration; see `calibrate`."""
    kinds = {kind: members for kind in KINDS if (members := [one for one in verdicts if one.known.kind == kind])}
    categories = sorted({one.known.category for one in verdicts} - {""})
    youden = {kind: _youden(verdicts, kind) for kind in kinds if kind != RIGHT}
    if len(youden) > 1:
        youden["all wrong"] = _youden(verdicts, None)
    errors = sum(one.accepted is None for one in verdicts)
    made: Report = {
        "kinds": {kind: _kind(kind, members) for kind, members in kinds.items()},
        "categories": {
            category: {
                kind: _kind(kind, own)
                for kind, members in kinds.items()
                if (own := [one for one in members if one.known.category == category])
            }
            for category in categories
        },
        "youden": youden,
        "judge_error": {"n": errors, "share": errors / len(verdicts) if verdicts else None},
        "recorded": {kind: asdict(found) for kind, members in kinds.items() if (found := _recorded(members))},
    }
    return made | {"verdict": judgement(made)}


def _kind(kind: str, members: Sequence[Verdict]) -> Report:
    """The mistakes on one kind of answer, over those with a verdict."""
    told = [one for one in members if one.accepted is not None]
    mistakes = _share(told, of=kind != RIGHT)
    scores = [one.score for one in told if one.score is not None]
    return {
        "mistake": "false reject" if kind == RIGHT else "false accept",
        "n": len(told),
        "judge_error": len(members) - len(told),
        **{name: value for name, value in asdict(mistakes).items() if name != "n"},
        "score": sum(scores) / len(scores) if scores else None,
    }


def _share(told: Sequence[Verdict], *, of: bool) -> Interval:
    """The share of answers that were accepted (`of`) or not."""
    clusters = [one.cluster for one in told]
    return interval([float(one.accepted is of) for one in told], clusters)


def _youden(verdicts: Sequence[Verdict], kind: str | None) -> Report:
    """Youden's J of right answers against a kind of wrong ones, or all of them, and the balanced accuracy.

    The interval is put together from those of the two shares, each of which respects clusters (Newcombe 1998, method
    10; Zou and Donner 2008 for intervals of any make). That the same conversations carry both shares makes it
    wide rather than narrow.
    """
    told = [one for one in verdicts if one.accepted is not None]
    right = _share([one for one in told if one.known.kind == RIGHT], of=True)
    wrong = _share([one for one in told if one.known.kind != RIGHT and kind in (None, one.known.kind)], of=True)
    found: Report = {"value": None, "low": None, "high": None, "balanced_accuracy": None}
    if right.value is None or wrong.value is None:
        return found
    value = right.value - wrong.value
    found |= {"value": value, "balanced_accuracy": (value + 1) / 2}
    if right.low is None or right.high is None or wrong.low is None or wrong.high is None:
        return found
    down = math.hypot(right.value - right.low, wrong.high - wrong.value)
    up = math.hypot(right.high - right.value, wrong.value - wrong.low)
    return found | {"low": max(value - down, -1.0), "high": min(value + up, 1.0)}


def _recorded(members: Sequence[Verdict]) -> Interval | None:
    """How often the judge whose verdicts the bank carries accepted these answers, each the mean of its verdicts."""
    told = [one for one in members if one.known.recorded]
    shares = [sum(one.known.recorded) / len(one.known.recorded) for one in told]
    return interval(shares, [one.cluster for one in told]) if told else None


CONSTANT = "no better than a constant"
MANY = 0.05  # judge errors above this share belong beside the verdict


def judgement(made: Report) -> dict[str, str]:
    """What the figures say of the judge, in a word and a plain sentence."""
    kinds, errors = made["kinds"], made["judge_error"]["share"]
    right, wrong = kinds.get(RIGHT), [found for kind, found in kinds.items() if kind != RIGHT]
    if not right or not wrong:
        return _says("not measured", f"the banks hold no {'wrong' if right else 'right'} answers")
    if not right["n"] or not any(found["n"] for found in wrong):
        return _says("useless", f"no verdict could be read on {100 * errors:.0f} % of the answers")
    accepted = {1 - right["value"], *(found["value"] for found in wrong if found["n"])}
    if accepted == {1.0}:
        return _says("useless", f"{CONSTANT}: it accepts every answer, right or wrong (false accept 100 %)")
    if accepted == {0.0}:
        return _says("useless", f"{CONSTANT}: it accepts no answer, right or wrong (false reject 100 %)")
    youden = {kind: one for kind, one in made["youden"].items() if kind in kinds and one["low"] is not None}
    if not youden:
        return _says("not shown", "too few answers or conversations for an interval: measure it on more")
    blind = [kind for kind, one in youden.items() if one["low"] <= 0]
    some = ", ".join(f"{one['value']:.2f} against {kind} answers" for kind, one in youden.items())
    if len(blind) == len(youden):
        return _says("useless", f"{CONSTANT}: Youden's J {some}, with intervals that do not stay above 0")
    text = f"better than a constant: Youden's J {some}"
    text += f"; but it does not tell {' or '.join(blind)} answers from right ones" if blind else ""
    text += f"; but it gave no verdict on {100 * errors:.0f} % of the answers" if errors > MANY else ""
    return _says("partly useful" if blind or errors > MANY else "useful", text)


def _says(word: str, text: str) -> dict[str, str]:
    return {"word": word, "text": text}
