"""The official metrics on someone else's predictions."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memharness import datafile
from memharness.benchmark import Benchmark
from memharness.media import MediaStore
from memharness.run.data import open_benchmark
from memharness.run.folder import RunFolder
from memharness.run.gather import gather
from memharness.run.play import play, record_of
from memharness.run.score import metric_list, rows, score
from memharness.run.wire import case_out, record_out
from memharness.types import Answer, Case, DataError, Evidence, Readout, UserError, did_you_mean


@dataclass(frozen=True)
class Evaluation:
    """Official figures of someone else's predictions."""

    bench: str
    n: int
    scores: Mapping[str, float]
    contexts: Mapping[str, Mapping[str, float]]
    unmatched: Sequence[str]
    missing: int
    data_state: str


def evaluate(
    bench: str, data: str | None, predictions: Path, options: Mapping[str, Any], subset: str | None = None
) -> Evaluation:
    """Score predictions in the benchmark's own file format, or JSONL `{"id", "prediction", "evidence"?}`.

    Raises:
        UserError: for a file in neither form, or ids that name no question.
    """
    if not predictions.exists():
        raise UserError(f"--predictions {predictions}: no such file or folder")
    benchmark = open_benchmark(bench, data, dict(options), MediaStore())
    return asyncio.run(_evaluate(benchmark, predictions, subset))


async def _evaluate(benchmark: Benchmark, predictions: Path, subset: str | None) -> Evaluation:
    answers = dict(_predictions(benchmark, predictions))
    if not answers:
        raise UserError(f"{predictions}: holds no prediction")
    left = set(answers)
    with tempfile.TemporaryDirectory() as temporary:
        folder = RunFolder(Path(temporary) / "evaluate")
        records, gold = folder.appender("records"), folder.appender("gold")
        n = missing = 0
        names: list[str] = []
        for context_index, context in enumerate(benchmark.contexts(subset)):
            played = await play(benchmark.episode(context), lambda case, items: answers.get(_key(case, answers)))
            for index, (case, answer) in enumerate(played.cases):
                left.discard(_key(case, answers))
                n += 1
                missing += answer is None
                records.add(record_out(record_of(case, answer, context, context_index, index), {}))
            gold.add(
                {
                    "context": context_index,
                    "unit": 0,
                    "name": context,
                    "at": 0.0,
                    "cases": [{"index": i, **case_out(case)} for i, (case, _) in enumerate(played.cases)],
                    "facts": played.facts,
                }
            )
            names = [case.gold.native_id for case, _ in played.cases]
        if len(left) == len(answers):
            raise UserError(
                f"{predictions}: none of its {len(answers)} ids names a question of {benchmark.card.name}, "
                f"first {min(left)!r}"
                f"{did_you_mean(min(left), names)}; is this the right --data?"
            )
        gather(folder)
        await score(folder, metric_list(benchmark.metrics(), judge=False, answers=True), None, override=False)
        scored = list(rows(folder))
    contexts = dict.fromkeys(row.context for row in scored)
    few = contexts if 1 < len(contexts) <= min(100, n // 2) else ()  # not where each question is a context
    by_context = {name: dict(benchmark.report(row for row in scored if row.context == name)) for name in few}
    return Evaluation(
        benchmark.card.name, n, dict(benchmark.report(scored)), by_context, sorted(left), missing, benchmark.data.state
    )


def _key(case: Case, answers: Mapping[str, Answer]) -> str:
    """What a prediction calls this question: its native id, else the id that methods see."""
    return case.gold.native_id if case.gold.native_id in answers else case.question.id


JSONL = '{"id": native id, "prediction": text, "evidence"?: [item ids]}'


def _predictions(benchmark: Benchmark, path: Path) -> Any:
    if path.is_file() and path.suffix == ".jsonl":
        lines = datafile.read_lines(path)
        if not lines or "prediction" in lines[0].values:
            return _jsonl(lines)
    try:
        return list(benchmark.predictions(path))
    except NotImplementedError:
        raise UserError(
            f"{path}: {benchmark.card.name} has no prediction format of its own; give JSONL lines {JSONL}"
        ) from None
    except DataError as error:
        if path.suffix != ".jsonl":
            raise
        raise DataError(f"{error} (or give JSONL lines {JSONL})") from None


def _jsonl(lines: Sequence[datafile.Row]) -> list[tuple[str, Answer]]:
    out: dict[str, Answer] = {}
    for line in lines:
        name, text = line.values.get("id"), line.values.get("prediction")
        if isinstance(name, bool) or not isinstance(name, str | int):
            raise line.error("id", f"must be text, not {datafile.kind(name)}", "write the question's id")
        if isinstance(text, bool) or not isinstance(text, str | int | float | None) or "prediction" not in line.values:
            raise line.error("prediction", f"must be text or null, not {datafile.kind(text)}", "write the answer")
        if str(name) in out:
            raise line.error("id", f"{name!r} comes twice", "give each question one prediction")
        listed = line.texts("evidence", ()) if line.has("evidence") else None
        readout = None if listed is None else Readout(tuple(Evidence(item) for item in listed))
        out[str(name)] = Answer(None if text is None else str(text), readout=readout)
    return list(out.items())
