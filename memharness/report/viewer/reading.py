"""A run as a page needs it: its summary, and its questions, each with all that the files say of it."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from memharness.benchmark import ScoreRow
from memharness.report.viewer.memories import Source
from memharness.run import api, judgements
from memharness.run.folder import RunFolder
from memharness.run.gather import gather, pairs
from memharness.run.score import metric_list, rows, score
from memharness.run.summary import summarise
from memharness.run.wire import case_in, record_in
from memharness.store import atomic, encode, read_lines
from memharness.types import Asked, DataError, Status, UserError


@dataclass(frozen=True)
class Told:
    """One question and all that the files say of it.

    Attributes:
        asked: question, gold and record.
        line: the record as it was written, with prompt, trace and spending.
        row: its scores, if it has any of its own.
        group: the scores of the group it belongs to, or of its episode.
    """

    asked: Asked
    line: Mapping[str, Any]
    row: ScoreRow | None
    group: ScoreRow | None


@dataclass
class Run:
    """A run that is open for reading.

    Attributes:
        path: its folder, as the user named it.
        folder: where its gathered files are; a copy for a run that is not finished.
        summary: its figures.
        source: its benchmark.
        notes: what a reader of the page must know first.
        names: scores of questions, in the order of their metrics.
        groups: rows that are of no single question, by context and unit.
        judgements: verdicts of further judges.
    """

    path: Path
    folder: RunFolder
    manifest: Mapping[str, Any]
    summary: Mapping[str, Any]
    source: Source
    notes: list[str]
    names: list[str] = field(default_factory=list)
    groups: dict[tuple[str, str], ScoreRow] = field(default_factory=dict)
    judgements: list[judgements.Judgement] = field(default_factory=list)

    def held(self) -> Iterator[tuple[list[str], set[str]]]:
        """For each context in order: the items its records and gold name, and those that some question recalled."""
        for _, lines in groupby(self._pairs(), key=lambda pair: pair[0]["context_index"]):
            ids: dict[str, None] = {}
            recalled: set[str] = set()
            for record, gold in lines:
                mine = [pointer[0] for pointer in record.get("evidence", ())]
                recalled.update(mine)
                ids.update(dict.fromkeys([*mine, *(pointer[0] for pointer in gold.get("evidence", ()))]))
            yield list(ids), recalled

    def questions(self) -> Iterator[Told]:
        """Every question in benchmark order.

        Raises:
            DataError: for a damaged record or score; it names file and question.
        """
        scored = (row for row in rows(self.folder) if (row.context, row.unit) not in self.groups)
        row = next(scored, None)
        for line, gold_line in self._pairs():
            case = case_in(gold_line)
            try:
                record = record_in(line)
            except (KeyError, ValueError, TypeError) as error:
                where = f"{self.path / 'records.jsonl'}: question {case.question.id}"
                raise DataError(f"{where}: damaged ({type(error).__name__}: {error}); run again with --fresh") from None
            own = row if row is not None and row.unit == case.question.id else None
            group = self.groups.get((record.context, case.gold.group or record.context))
            yield Told(Asked(case.question, case.gold, record), line, own, group)
            row = next(scored, None) if own else row

    def _pairs(self) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        return ((record, gold) for record, gold in pairs(self.folder) if record is not None)


@contextmanager
def opened(path: Path) -> Iterator[Run]:
    """Open a run. One that is not finished is gathered and scored in a folder of its own: nothing of it changes.

    Raises:
        UserError: if the folder is no run, holds no answered question, or is damaged.
    """
    folder = RunFolder(path)
    manifest = folder.manifest()
    source = Source(manifest)
    if folder.done or (path / "summary.json").is_file():
        summary = api.load_summary(path)
        notes = [] if folder.done else ["Some questions have no finished outcome; the same command asks those again."]
        yield _read(path, folder, manifest, summary, source, notes)
        return
    with tempfile.TemporaryDirectory() as temporary:
        copy = _gathered(folder, Path(temporary) / "run", source)
        summary = json.loads((copy.path / "summary.json").read_text("utf-8"))
        notes = ["This run is not finished: only what was answered so far is here, without a judge's scores."]
        yield _read(path, copy, manifest, summary, source, notes)


def _read(
    path: Path,
    folder: RunFolder,
    manifest: Mapping[str, Any],
    summary: Mapping[str, Any],
    source: Source,
    notes: list[str],
) -> Run:
    run = Run(path, folder, manifest, summary, source, [*notes, *summary["notes"]])
    questions = {gold["question"] for _, gold in run._pairs()}
    names: dict[str, None] = {}
    for row in rows(folder):
        if row.unit in questions:
            names.update(dict.fromkeys(row.scores))
        else:
            run.groups[row.context, row.unit] = row
    run.names = list(names)
    run.judgements = judgements.of_run(folder)
    return run


def _gathered(folder: RunFolder, to: Path, source: Source) -> RunFolder:
    """A copy of a run that is under way, with the files that the end of a run makes."""
    if source.benchmark is None:
        raise UserError(f"{folder.path}: this run is not finished, and {source.why}; finish it first")
    to.mkdir()
    for name in ("manifest.json", "records", "ledger", "gold"):
        if (folder.path / name).exists():
            (to / name).symlink_to((folder.path / name).resolve())
    copy = RunFolder(to)
    try:
        notes = gather(copy)
    except UserError as error:
        raise UserError(str(error).replace(str(to), str(folder.path))) from None
    answered = {gold.get("question") for _, gold in read_lines(to / "gold.jsonl")}
    kept = [line for _, line in read_lines(to / "records.jsonl") if line["question"] in answered]
    with atomic(to / "records.jsonl") as file:  # of a unit under way the gold is not written yet
        file.writelines(encode(line) + "\n" for line in kept)
    reads = folder.manifest()["spec"]["until"] is None
    metrics = metric_list(source.benchmark.metrics(), judge=False, answers=reads)
    asyncio.run(score(copy, metrics, None))
    summary = summarise(copy, source.benchmark, notes, complete=False, metrics=metrics)
    (to / "summary.json").write_text(json.dumps(summary), "utf-8")
    return copy


def deciding(run: Run, wanted: str | None) -> str | None:
    """The score that says whether a question is right: the one wanted, else the primary one, else the first.

    Raises:
        UserError: if questions have no score of that name.
    """
    if wanted is not None and wanted not in run.names:
        raise UserError(
            f"--score {wanted}: no question of {run.path} has it; there are {', '.join(run.names) or 'none'}"
        )
    primary = run.summary["primary"]
    return wanted or (primary if primary in run.names else next(iter(run.names), None))


def counts(row: ScoreRow | None, name: str | None, threshold: float) -> bool | None:
    """Whether a question is right; None where nothing says so."""
    score = row.scores.get(name) if row is not None and name is not None else None
    if score is None or score.status in (Status.NOT_APPLICABLE, Status.JUDGE_ERROR):
        return None
    return score.value is not None and score.value >= threshold
