"""From records and gold to `scores.jsonl`: question, group and episode metrics, and judged ones through the judge."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from memharness.benchmark import ScoreRow
from memharness.ledger import Account, charging
from memharness.metric import Judged, Metric
from memharness.reader import Reply, Request
from memharness.run.folder import RunFolder
from memharness.run.gather import pairs
from memharness.run.metered import Timeout
from memharness.run.wire import case_in, record_in, row_in, row_out
from memharness.store import atomic, encode, read_lines
from memharness.types import Asked, Outcome, OverWindow, ReaderError, Score, Status, Usage

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
        asked = Asked(case.question, case.gold, record_in(record_line))
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
        found = metric.score(unit, facts)
        if isinstance(metric, Judged) and not found and judge is not None:
            found = await _judged(metric, unit, judge)
        if override and (why := _failed(unit, metric.needs)):
            found = {
                key: score if score.status is Status.NOT_APPLICABLE else Score(None, Status.OK, why)
                for key, score in found.items()
            }
        for key, value in found.items():
            if key in scores:
                raise ValueError(f"two metrics give a score named {key}; rename one")
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
    for _, line in read_lines(folder.path / "scores.jsonl"):
        yield row_in(line)
