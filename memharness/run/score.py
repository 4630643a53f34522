"""From records and gold to `scores.jsonl`: question, group and episode metrics, and judged ones through the judge."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from numbers import Real

from memharness.benchmark import ScoreRow
from memharness.ledger import Account, charging
from memharness.metric import Judged, Metric
from memharness.reader import Reply, Request
from memharness.registry import fault
from memharness.run.folder import RunFolder
from memharness.run.gather import pairs
from memharness.run.metered import Timeout
from memharness.run.wire import case_in, record_in, row_in, row_out
from memharness.store import atomic, encode, read_lines
from memharness.types import Asked, DataError, Outcome, OverWindow, ReaderError, Score, Status, Usage, UserError

Judge = Callable[[Request], Awaitable[Reply]]
BATCH = 512  # units scored at once: bounds memory, keeps a judge busy


def units(folder: RunFolder, metrics: Sequence[Metric]) -> Iterator[tuple[str, str, list[Asked], Mapping[str, float]]]:
    """(unit kind, unit id, its questions, facts), streamed; groups and episodes come when their context has ended."""
    kinds = {metric.unit for metric in metrics}
    context = -1
    groups: dict[str, list[Asked]] = {}
    episode: list[Asked] = []
    facts: Mapping[str, float] = {}

    def ended() -> Iterator[tuple[str, str, list[Asked], Mapping[str, float]]]:
        for name, members in groups.items():
            yield "group", name, members, {}
        if episode:
            yield "episode", episode[0].record.context, episode, facts

    for record_line, gold_line in pairs(folder):
        if record_line is None:
            facts = gold_line["facts"]
            continue
        case = case_in(gold_line)
        try:
            record = record_in(record_line)
        except (KeyError, ValueError, TypeError) as error:
            where = f"{folder.path / 'records.jsonl'}: question {case.question.id}"
            raise DataError(f"{where}: damaged ({type(error).__name__}: {error}); run again with --fresh") from None
        asked = Asked(case.question, case.gold, record)
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


async def score(folder: RunFolder, metrics: Sequence[Metric], judge: Judge | None, *, override: bool = True) -> None:
    """Write `scores.jsonl`, one line a unit.

    Args:
        folder: a gathered run.
        metrics: what to score; judged metrics need a judge.
        judge: asks the judge; metered, cached and retried by the engine.
        override: a unit that failed has no score of its own, whatever a metric made of its missing answer. Off for
            `evaluate`, where the official scorer's own treatment of missing answers is wanted.
    """
    stream = units(folder, metrics)
    with atomic(folder.path / "scores.jsonl") as file:
        while batch := list(islice(stream, BATCH)):
            made = await asyncio.gather(*(_row(*unit, metrics, judge, override) for unit in batch))
            file.writelines(encode(row_out(row)) + "\n" for row in made)


async def _row(
    kind: str,
    name: str,
    unit: Sequence[Asked],
    facts: Mapping[str, float],
    metrics: Sequence[Metric],
    judge: Judge | None,
    override: bool,
) -> ScoreRow:
    first = unit[0]
    scores: dict[str, Score] = {}
    for metric in metrics:
        if metric.unit != kind:
            continue
        with _named(metric, name):
            found = metric.score(unit, facts)
            if isinstance(metric, Judged) and not found and judge is not None:
                found = await _judged(metric, unit, judge)
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


async def _judged(metric: Judged, unit: Sequence[Asked], judge: Judge) -> Mapping[str, Score]:
    if _failed(unit, "answer"):
        return metric.read(unit, Reply("", Usage()))
    record = unit[0].record
    with charging(Account(record.context, record.question, record.attempt), "judge"):
        try:
            reply = await judge(metric.ask(unit))
        except (ReaderError, OverWindow, Timeout) as error:
            blank = metric.read(unit, Reply("", Usage()))
            return {key: Score(None, Status.JUDGE_ERROR, str(error)[:500]) for key in blank}
    return metric.read(unit, reply)


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
