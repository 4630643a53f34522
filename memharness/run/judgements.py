"""Verdicts of further judges on a finished run, kept side by side: one file a judge and rubric in `judgements/`.

The first line of a file says who judged by what and what it cost; then comes one line a question, as in `scores.jsonl`,
with the judge's reply, from which `verify` reads the verdict again. Nothing else of the run is touched by them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memharness.benchmark import ScoreRow
from memharness.metric import Judged, Metric, parse_metric
from memharness.reader import Reply
from memharness.registry import short_name
from memharness.run.asking import NoReply
from memharness.run.folder import RunFolder, folder_name
from memharness.run.score import asked_in, metric_classes, scored
from memharness.run.wire import row_in, row_out
from memharness.store import atomic, encode, read_lines
from memharness.types import Asked, DataError, Status, Usage, UserError

FOLDER = "judgements"
HEAD = (
    *("judge", "reader", "metric", "rubric", "names", "about", "level", "key"),
    *("asked", "calls", "new", "tokens", "price"),
)


@dataclass(frozen=True)
class Judgement:
    """One judge's verdicts under one rubric.

    Attributes:
        path: its file.
        head: `judge` (reader spec), `reader` (its identity), `metric` (as it prints), `rubric` (name, digest and
            reading), `names` (of the scores), `about` (what the rubric holds for right), `level` (of measurement),
            `key` (of the score), `asked` (`schema` or `words`), `calls`, those of them that were `new`, `tokens` and
            `price`.
        rows: a row a question, in the run's order.
    """

    path: Path
    head: Mapping[str, Any]
    rows: Sequence[ScoreRow]

    def verdicts(self) -> dict[str, float | str | None]:
        """What the judge said by question, None where that could not be read.

        The name of the score that is 1, where a rubric gives one a label. Questions that were settled without a call
        are left out.
        """
        return {row.unit: self._verdict(row) for row in self.rows if "replies" in row.extra}

    def _verdict(self, row: ScoreRow) -> float | str | None:
        names = self.head["names"]
        if len(names) == 1 or self.head["level"] == "interval":  # of points the first is their mean
            return row.scores[names[0]].value
        return next((name for name in names if row.scores[name].value), None)

    def errors(self) -> int:
        """On how many questions the judge gave no verdict that could be read."""
        return sum(row.scores[self.head["names"][0]].status is Status.JUDGE_ERROR for row in self.rows)


def write(folder: Path, head: Mapping[str, Any], rows: Iterable[ScoreRow]) -> Path:
    """Write a file whole, in the place of an earlier one of the same key."""
    rubric = head["rubric"]
    name = folder_name(short_name(head["judge"]), rubric["rubric"], rubric["verdict"], head["key"])
    path = folder / f"{name}.jsonl"
    with atomic(path) as file:
        file.write(encode(head) + "\n")
        file.writelines(encode(row_out(row)) + "\n" for row in rows)
    return path


def read(path: Path) -> Judgement:
    """One file.

    Raises:
        DataError: if it is damaged; it names the line.
    """
    lines = [line for _, line in read_lines(path)]
    mend = "judge the run again"
    if not lines or (lacking := [key for key in HEAD if key not in lines[0]]):
        raise DataError(f"{path}: line 1: {f'has no {lacking[0]}' if lines else 'is missing'}; {mend}")
    rows = []
    for number, line in enumerate(lines[1:], 2):
        try:
            rows.append(row_in(line))
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise DataError(f"{path}: line {number}: damaged ({type(error).__name__}: {error}); {mend}") from None
    return Judgement(path, lines[0], rows)


def of_run(folder: RunFolder) -> list[Judgement]:
    """All judgements of a run, by file name."""
    return [read(path) for path in sorted((folder.path / FOLDER).glob("*.jsonl"))]


class Kept:
    """Replies that a judge gave before, read again in place of asking it."""

    def __init__(self, rows: Mapping[str, ScoreRow]) -> None:
        """Look replies up in rows by unit."""
        self._rows = rows

    async def prepare(self, told: Iterable[Asked | Mapping[str, float]], metrics: Sequence[Metric]) -> None:
        """Nothing to prepare."""

    async def reply(self, metric: Judged, unit: Sequence[Asked]) -> Reply:
        """The kept reply.

        Raises:
            NoReply: none was kept; with the note of the stored score, which is a judge's error if all is well.
        """
        first = unit[0]
        name = {"group": first.gold.group, "episode": first.record.context}.get(metric.unit, first.question.id)
        row = self._rows.get(name or "")
        kept = row.extra.get("replies", {}).get(str(metric)) if row else None
        if kept is not None:
            text, finish = kept
            return Reply(text, Usage(), finish)
        names = metric.read(unit, Reply("", Usage()))
        errors = [score for key, score in (row.scores if row else {}).items() if key in names]
        note = next((score.note for score in errors if score.status is Status.JUDGE_ERROR), "no reply was kept")
        raise NoReply(note)


def differences(folder: RunFolder) -> list[str]:
    """What differs where every verdict of a run's judgements is read again from the judge's reply."""
    return [line for one in of_run(folder) for line in asyncio.run(_differences(folder, one))]


async def _differences(folder: RunFolder, judgement: Judgement) -> list[str]:
    where, head = f"{FOLDER}/{judgement.path.name}", judgement.head
    try:
        metric = parse_metric(head["metric"], metric_classes())
    except UserError as error:
        return [f"{where}: {error}"]
    if isinstance(metric, Judged) and metric.key != head["rubric"]:
        return [f"{where}: {metric}: the rubric is another one than when it was judged; judge again"]
    before = {row.unit: row for row in judgement.rows}
    after = {row.unit: row async for row in scored(lambda: asked_in(folder), [metric], Kept(before))}
    out = [f"{where}: {unit}: is no question of this run" for unit in before if unit not in after]
    for unit, row in after.items():
        if unit not in before:
            out.append(f"{where}: no line for {unit}")
            continue
        for name, score in row.scores.items():
            stored = before[unit].scores.get(name)
            if stored != score:
                found = stored.value if stored else "nothing"
                out.append(f"{where}: {unit}: {name}: stored {found}, read again {score.value}; judge again")
    return out
