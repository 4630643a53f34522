"""From records and gold to `scores.jsonl`: question, group and episode metrics, and judged ones through the judge."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from numbers import Real

from memharness.benchmark import ScoreRow
from memharness.metric import Judged, Metric
from memharness.reader import Reply
from memharness.registry import entries, fault
from memharness.run.asking import Judging, NoReply
from memharness.run.folder import RunFolder
from memharness.run.gather import pairs
from memharness.run.wire import case_in, record_in, row_in, row_out
from memharness.store import atomic, encode, read_lines
from memharness.types import Asked, DataError, Outcome, Score, Status, Usage, UserError

BATCH = 512  # units scored at once: bounds memory, keeps a judge busy

Unit = tuple[str, str, list[Asked], Mapping[str, float]]  # its kind, its id, its questions, facts


def grouped(told: Iterable[Asked | Mapping[str, float]], metrics: Sequence[Metric]) -> Iterator[Unit]:
    """Questions as the units that metrics score; groups and episodes come when their context has ended.

    Args:
        told: questions, context by context; a mapping is the facts of the context before it.
        metrics: what decides which kinds of units there are.
    """
    kinds = {metric.unit for metric in metrics}
    context = -1
    groups: dict[str, list[Asked]] = {}
    episode: list[Asked] = []
    facts: Mapping[str, float] = {}

    def ended() -> Iterator[Unit]:
        for name, members in groups.items():
            yield "group", name, members, {}
        if episode:
            yield "episode", episode[0].record.context, episode, facts

    for asked in told:
        if not isinstance(asked, Asked):
            facts = asked
            continue
        if asked.record.context_index != context:
            yield from ended()
            context, groups, episode, facts = asked.record.context_index, {}, [], {}
        if "episode" in kinds:
            episode.append(asked)
        if "question" in kinds:
            yield "question", asked.question.id, [asked], {}
        if "group" in kinds and asked.gold.group is not None:
            groups.setdefault(asked.gold.group, []).append(asked)
    yield from ended()


def asked_in(folder: RunFolder) -> Iterator[Asked | Mapping[str, float]]:
    """What the files of a gathered run say, in order."""
    for record_line, gold_line in pairs(folder):
        if record_line is None:
            yield gold_line["facts"]
            continue
        case = case_in(gold_line)
        try:
            record = record_in(record_line)
        except (KeyError, ValueError, TypeError) as error:
            where = f"{folder.path / 'records.jsonl'}: question {case.question.id}"
            raise DataError(f"{where}: damaged ({type(error).__name__}: {error}); run again with --fresh") from None
        yield Asked(case.question, case.gold, record)


async def score(folder: RunFolder, metrics: Sequence[Metric], judge: Judging | None, *, override: bool = True) -> None:
    """Write `scores.jsonl`, one line a unit.

    Args:
        folder: a gathered run.
        metrics: what to score; judged metrics need a judge.
        judge: gives the replies that judged metrics read.
        override: a unit that failed has no score of its own, whatever a metric made of its missing answer. Off for
            `evaluate`, where the official scorer's own treatment of missing answers is wanted.
    """
    with atomic(folder.path / "scores.jsonl") as file:
        async for row in scored(lambda: asked_in(folder), metrics, judge, override=override):
            file.write(encode(row_out(row)) + "\n")


async def scored(
    told: Callable[[], Iterable[Asked | Mapping[str, float]]],
    metrics: Sequence[Metric],
    judge: Judging | None,
    *,
    override: bool = True,
) -> AsyncIterator[ScoreRow]:
    """The rows that `score` writes, streamed; `told` gives questions and facts as `grouped` takes them, each time."""
    if judge is not None:
        await judge.prepare(told(), metrics)
    stream = grouped(told(), metrics)
    while batch := list(islice(stream, BATCH)):
        for row in await asyncio.gather(*(score_unit(*unit, metrics, judge, override) for unit in batch)):
            yield row


async def score_unit(
    kind: str,
    name: str,
    unit: Sequence[Asked],
    facts: Mapping[str, float],
    metrics: Sequence[Metric],
    judge: Judging | None,
    override: bool,
) -> ScoreRow:
    """The scores of one unit by the metrics of its kind; see `score`."""
    first = unit[0]
    scores: dict[str, Score] = {}
    replies: dict[str, list[str]] = {}
    for metric in metrics:
        if metric.unit != kind:
            continue
        with _named(metric, name):
            found = metric.score(unit, facts)
            if isinstance(metric, Judged) and not found and judge is not None:
                found, reply = await _judged(metric, unit, judge)
                replies |= {str(metric): reply} if reply else {}
        _check(metric, name, found)
        if override and (why := _failed(unit, metric.needs)):
            found = {
                key: score if score.status is Status.NOT_APPLICABLE else Score(None, Status.OK, why)
                for key, score in found.items()
            }
        for key, value in found.items():
            if key in scores:
                raise UserError(f"metric {metric}: another metric gives a score named {key} too; leave one out")
            scores[key] = value
    return ScoreRow(
        name,
        first.record.context,
        first.gold.category,
        first.gold.cluster,
        scores,
        _failed(unit, "answer"),
        first.gold.native_id,
        {"replies": replies} if replies else {},
    )


KEPT = "the answers are kept: correct the metric and run the same command again"


@contextmanager
def _named(metric: Metric, unit: str) -> Iterator[None]:
    """Name a metric that raises."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"metric {metric} on {unit}: {fault(error)}; {KEPT}") from error


def _check(metric: Metric, unit: str, scores: object) -> None:
    """Refuse what is no score here, where the metric can be named, not in a mean later."""
    wrong = None
    if not isinstance(scores, Mapping):
        wrong = f"returned {type(scores).__name__}, not scores by name"
    else:
        for name, score in scores.items():
            if not isinstance(score, Score):
                wrong = f"{name} is {type(score).__name__}, not a Score"
            elif score.value is not None and not (isinstance(score.value, Real) and math.isfinite(score.value)):
                wrong = f"{name} is {score.value!r}; a score is a finite number, or None where there is none"
    if wrong:
        raise UserError(f"metric {metric} on {unit}: {wrong}; {KEPT}")


def _failed(unit: Sequence[Asked], needs: str) -> str | None:
    """The outcome of the first question of a unit that lacks what a metric needs."""
    for asked in unit:
        if needs == "readout":
            if asked.record.evidence is None:
                return asked.record.outcome.value
        elif asked.record.outcome is not Outcome.OK:
            return asked.record.outcome.value
    return None


async def _judged(
    metric: Judged, unit: Sequence[Asked], judge: Judging
) -> tuple[Mapping[str, Score], list[str] | None]:
    """Scores by a judge, and its reply as [text, why it ended], from which they can be read again."""
    blank = metric.read(unit, Reply("", Usage()))
    if _failed(unit, "answer"):
        return blank, None
    try:
        reply = await judge.reply(metric, unit)
    except NoReply as error:
        return {key: Score(None, Status.JUDGE_ERROR, str(error)) for key in blank}, None
    return metric.read(unit, reply), [reply.text, reply.finish]


def metric_classes() -> Mapping[str, type[Metric]]:
    """The classes that a metric may be named by, as `parse_metric` takes them."""
    return {name: entry.load() for name, entry in entries("metrics").items()}


def metric_list(metrics: Iterable[Metric], *, judge: bool, answers: bool) -> list[Metric]:
    """The metrics that apply: judged ones only with a judge, answer ones only where answers were read."""
    return [
        metric
        for metric in metrics
        if (judge or not isinstance(metric, Judged)) and (answers or metric.needs == "readout")
    ]


def rows(folder: RunFolder) -> Iterator[ScoreRow]:
    """The lines of `scores.jsonl`."""
    path = folder.path / "scores.jsonl"
    for number, (_, line) in enumerate(read_lines(path), 1):
        try:
            yield row_in(line)
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise DataError(
                f"{path}: line {number}: damaged ({type(error).__name__}: {error}); "
                f"`memharness score {folder.path}` makes it again"
            ) from None
