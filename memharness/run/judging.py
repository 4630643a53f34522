"""Judge a finished run: one rubric, any number of judges, their verdicts side by side and how far they agree."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from memharness.benchmark import Benchmark
from memharness.identity import score_key
from memharness.judging import Judge, rubric
from memharness.media import MediaStore
from memharness.run import api, judgements
from memharness.run.asking import Asker, Bill, judges, out_of
from memharness.run.data import open_benchmark
from memharness.run.folder import RunFolder
from memharness.run.progress import Progress
from memharness.run.score import asked_in, scored
from memharness.run.spec import RunSpec
from memharness.run.summary import Summary, judged
from memharness.store import document, write_atomic
from memharness.types import Status, UserError


def judge(
    path: Path,
    specs: Sequence[str],
    name: str | None,
    progress: Progress,
    *,
    official: bool = False,
    max_cost: float | None = None,
) -> Summary:
    """Have judges give their verdicts on a finished run's answers.

    Verdicts are written to `judgements/`, one file a judge and rubric, and into the summary; nothing else of the run
    changes. Replies are taken from the request cache where they are known, so judging again costs nothing, and what
    was killed goes on where it was.

    Args:
        path: the run's folder.
        specs: reader specs of the judges.
        name: the rubric; None takes the one that the benchmark's own metrics name.
        progress: told what happens.
        official: read replies as the benchmark's own parser does.
        max_cost: most USD to spend on all judges together.

    Returns:
        The run's summary, with `judgements` and `agreement`.

    Raises:
        UserError: for a run that is not finished or has no answers, an unknown rubric or reader, or a hosted judge
            without a price limit.
    """
    summary = api.load_summary(path)
    folder = RunFolder(path)
    spec = RunSpec.from_json(folder.manifest()["spec"], str(folder.manifest_path))
    if spec.until == "recall":
        raise UserError(f"{path}: this run stopped at recall; there are no answers to judge")
    benchmark = open_benchmark(spec.bench, spec.data, dict(spec.bench_options), MediaStore())
    metric = _metric(benchmark, name, official)
    specs = list(dict.fromkeys(specs))
    progress.start(summary["n"] * len(specs), len(specs))
    asyncio.run(_judge(folder, spec, metric, specs, progress, max_cost))
    summary |= judged(folder, benchmark)
    write_atomic(path / "summary.json", document(summary))
    return summary


def _metric(benchmark: Benchmark, name: str | None, official: bool) -> Judge:
    own = {metric.rubric: metric for metric in benchmark.metrics() if isinstance(metric, Judge)}
    if name is None:
        if len(own) != 1:
            which = f"has several: {', '.join(own)}" if own else "has none of its own: take binary.v1"
            raise UserError(f"--rubric: name one; {benchmark.card.name} {which}")
        (name,) = own
    # A benchmark's own metric knows what else its rubric shows and where it applies.
    return replace(own.get(name, Judge(name)), verdict="official" if official else "strict")


async def _judge(
    folder: RunFolder,
    spec: RunSpec,
    metric: Judge,
    specs: Sequence[str],
    progress: Progress,
    max_cost: float | None,
) -> None:
    lines = folder.appender(f"{judgements.FOLDER}/ledger")
    bill = Bill(lambda call: lines.add(call.line()))
    opened = judges(
        specs, out_of(folder.path, spec.out), lambda call: bill.add(call),
        timeout=spec.timeout, max_cost=max_cost, tokens=progress.tokens,
    )  # fmt: skip
    try:
        async with opened as found:
            for name, reader in found.items():
                bill = Bill(lambda call: lines.add(call.line()))  # each judge has its own
                asker = Asker(reader)
                rows = []
                async for row in scored(lambda: asked_in(folder), [metric], asker):
                    progress.question("judge_error" if errs(metric, row.scores) else "ok")
                    rows.append(row)
                head = heading(name, asker, metric, folder.manifest()["identity"]["reply"])
                judgements.write(folder.path / judgements.FOLDER, head | bill.line(), rows)
    finally:
        folder.close()


def errs(metric: Judge, scores: Any) -> bool:
    """Whether a question's scores say that the judge gave no verdict."""
    return scores[metric.names[0]].status is Status.JUDGE_ERROR


def heading(name: str, asker: Asker, metric: Judge, judged: str) -> dict[str, Any]:
    """Who judged what by what: the head of a judgement, less what it cost. `judged` is the identity of the answers."""
    identity = asker.identity
    return {
        "judge": name,
        "reader": identity,
        "metric": str(metric),
        "rubric": dict(metric.key),
        "names": list(metric.names),
        "about": rubric(metric.rubric).about,
        "level": rubric(metric.rubric).level,
        "key": score_key(judged, type(metric).__name__, {"reader": identity, **metric.key}),
        "asked": "schema" if asker.by_schema else "words",
    }
