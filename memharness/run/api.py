"""What the command line calls: run, score and verify a run; `plan` and `evaluate` have rooms of their own."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from memharness import ledger
from memharness.benchmark import Benchmark
from memharness.media import MediaStore
from memharness.metric import Judged, Metric, parse_metric
from memharness.prompts import Renderer
from memharness.registry import plugin
from memharness.run import judgements, prices
from memharness.run.asking import Asker, judges, out_of
from memharness.run.data import open_benchmark
from memharness.run.evaluate import Evaluation, evaluate
from memharness.run.folder import RunFolder
from memharness.run.gather import gather
from memharness.run.kit import Models, RunKit
from memharness.run.metered import Meter
from memharness.run.plan import Plan, plan
from memharness.run.progress import Progress, Quiet
from memharness.run.runner import ITEMS, Runner
from memharness.run.score import metric_classes, metric_list, rows, score
from memharness.run.setup import Pick, Setup, inherit, make_reader, picks, setup
from memharness.run.spec import RunSpec
from memharness.run.summary import Summary, figures, same, summarise
from memharness.run.wire import evidence_in
from memharness.run.work import Work
from memharness.store import RequestCache, document, read_lines, write_atomic
from memharness.types import (
    Outcome,
    Readout,
    UserError,
)

__all__ = [
    "Evaluation",
    "Plan",
    "evaluate",
    "execute",
    "inherit",
    "load_summary",
    "plan",
    "rescore",
    "verify",
    "work",
]

# ----------------------------------------------------------------------------------------------------------- running


def execute(spec: RunSpec, progress: Progress, ready: Setup | None = None) -> Summary:
    """Run a spec to its end, or take it up where it stopped, and return its summary.

    Args:
        spec: what to run.
        progress: told what happens.
        ready: the spec resolved, if the caller has done so to look at it.

    Raises:
        UserError: a user's mistake; what was finished is kept.
        KeyboardInterrupt: after what is finished was written.
    """
    ready = ready or setup(inherit(spec))
    folder = ready.folder
    chosen = [] if folder.done and not spec.fresh else asyncio.run(picks(ready))  # bad data leave no folder behind
    folder.open(
        ready.spec.to_json(), ready.chain, ready.described, ready.code, fresh=spec.fresh, anyway=spec.resume_anyway
    )
    if folder.done:
        progress.note(f"{folder.path}: already finished; this is its summary (--fresh runs it again)")
        summary = load_summary(folder.path)
        return (
            rescore(folder.path, spec.judge, (), spec.max_cost)
            if spec.judge not in (None, summary["judge"])
            else summary
        )
    if spec.workers > 1:
        _spawn(folder, spec.workers - 1, progress)
    return asyncio.run(_work(ready, chosen, progress))


def work(path: Path) -> None:
    """What a worker process does: take units of a run until none is left. It leaves the finishing to the first."""
    folder = RunFolder(path)
    spec = RunSpec.from_json(folder.manifest()["spec"], str(folder.manifest_path))
    ready = setup(spec)
    if vars(ready.chain) != folder.manifest()["identity"]:
        raise UserError(
            f"{path}: this process resolves the run's spec to another identity; are code and data the same?"
        )
    ready.folder = folder
    asyncio.run(_work(ready, asyncio.run(picks(ready)), Quiet(), finish=False))


def _spawn(folder: RunFolder, n: int, progress: Progress) -> list[subprocess.Popen[bytes]]:
    progress.note(f"{n + 1} processes work on {folder.path}")
    (folder.path / "logs").mkdir(exist_ok=True)
    command = [sys.executable, "-m", "memharness", "work", str(folder.path)]
    # Processes that each take all cores for their models' threads get in each other's way. Ours is told too.
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // (n + 1))))
    out = []
    for number in range(n):
        with (folder.path / "logs" / f"worker-{number + 2}.log").open("ab") as log:
            out.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
    return out


async def _work(ready: Setup, chosen: Sequence[Pick], progress: Progress, *, finish: bool = True) -> Summary:
    spec, folder = ready.spec, ready.folder
    totals = [pick.count for pick in chosen]
    progress.start(None if None in totals else sum(n or 0 for n in totals), len(chosen))
    cache = RequestCache(Path(spec.out) / "cache" / "requests.sqlite")
    meter = _meter(ready, cache, progress)
    models = Models(ready.roles, ready.readers, ready.embedder, meter, lambda name: make_reader(name, {}, ready.media))
    units = Work(folder)
    try:
        await _play(ready, chosen, models, units, progress)
        if not finish:
            return {}
        while not units.take_finish():
            await asyncio.sleep(0.2)
        if folder.done:  # another process finished it while we waited
            return load_summary(folder.path)
        return await _finish(ready, models, progress)
    finally:
        await models.close()
        folder.close()
        units.close()
        cache.close()
        progress.close()


async def _play(ready: Setup, chosen: Sequence[Pick], models: Models, units: Work, progress: Progress) -> None:
    units.refresh()
    if all(units.open_units(pick.index, pick.planned, pick.chosen, pick.live) == [] for pick in chosen):
        return  # nothing is left to ask: no weights are loaded for a run that only lacks its summary
    await models.start()
    for name, card in models.cards().items():  # versions, device, window: known once it is loaded; never hashed
        ready.folder.appender("ledger").add({"kind": "model", "spec": name, "card": card})
    readouts = _readouts(ready.spec.readouts) if ready.spec.readouts else None
    runner = Runner(ready, models, units, progress, readouts)
    if readouts is None:
        kit = RunKit(
            "", ready.folder.path / "method", models, ready.media, runner.device, Renderer({}, ready.view),
            seed=ready.spec.seed, items=ready.spec.items or ITEMS, sampling=ready.sampling, prompt=ready.spec.prompt,
        )  # fmt: skip
        with ledger.charging(ledger.Account(""), "observe"), plugin(f"method {ready.spec.method}"):
            await ready.method.start(kit)
    try:
        await runner.run(chosen)
    finally:
        await ready.method.close()


def _meter(ready: Setup, cache: RequestCache | None, progress: Progress) -> Meter:
    lines = ready.folder.appender("ledger")
    limit = ready.spec.max_cost
    return Meter(
        lambda call: lines.add(call.line()),
        cache=cache,
        fresh=ready.spec.fresh,
        timeout=ready.spec.timeout,
        price=_price(ready),
        bound=prices.dearest().of,
        max_cost=limit and limit / ready.spec.workers,  # each process sees its own spending only
        tokens=progress.tokens,
    )


def _price(ready: Setup) -> Any:
    """USD of a call: nothing for local models, the table's price for hosted ones, None where it has none."""
    hosted = {
        f"{r.card.name}:{r.card.model}" if r.card.model else r.card.name
        for r in ready.readers.values()
        if r.card.hosted
    }
    if ready.embedder is not None and ready.embedder.card.hosted:
        hosted.add(f"{ready.embedder.card.name}:{ready.embedder.card.model}")
    return lambda model, usage: prices.cost(model, usage) if model in hosted else 0.0


def _readouts(path: str) -> dict[str, Readout]:
    """Readouts of an earlier run by question id."""
    out = {}
    for _, line in read_lines(Path(path) / "records.jsonl"):
        if "evidence" in line:
            out[line["question"]] = Readout(evidence_in(line["evidence"]), trace=line.get("trace", {}))
    return out


async def _finish(ready: Setup, models: Models, progress: Progress) -> Summary:
    folder = ready.folder
    folder.sync()
    notes = gather(folder)
    metrics = metric_list(ready.benchmark.metrics(), judge=bool(ready.spec.judge), answers=ready.reads)
    judge = None
    if ready.spec.judge:
        judge = Asker(await models.open(ready.spec.judge, "judge"))
        folder.appender("ledger").add(judge.begins(ready.spec.judge))
    await score(folder, metrics, judge)
    summary = summarise(folder, ready.benchmark, notes, complete=True, judge=ready.spec.judge, metrics=metrics)
    write_atomic(folder.path / "summary.json", document(summary))
    if not any(n for outcome, n in summary["outcomes"].items() if not Outcome(outcome).final):
        folder.finish()
    return summary


# ----------------------------------------------------------------------------------------------------- looking again


SUMMARY = ("identity", "method", "bench", "reader", "data_state", "track", "n", "outcomes", "flags", "scores",
           "official", "primary", "tokens", "calls", "seconds", "price", "judge", "complete", "notes")  # fmt: skip


def load_summary(path: Path) -> Summary:
    """The summary of a run.

    Raises:
        UserError: if the folder is no run, the run has no summary yet, or it is damaged.
    """
    folder = RunFolder(path)
    folder.manifest()
    file = path / "summary.json"
    if not file.is_file() and not folder.done:
        raise UserError(f"{path}: this run is not finished; run the same command again to finish it")
    try:
        value: Any = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{file}: missing or damaged ({error}); `memharness score {path}` makes it again") from None
    if not isinstance(value, dict) or (lacking := [key for key in SUMMARY if key not in value]):
        what = f"it has no {lacking[0]}" if isinstance(value, dict) else "it is no JSON object"
        raise UserError(f"{file}: damaged, {what}; `memharness score {path}` makes it again")
    return value | {"run": str(path)}


def rescore(path: Path, judge: str | None, metrics: Sequence[str], max_cost: float | None = None) -> Summary:
    """Score a run again from its records and gold, without reading.

    Raises:
        UserError: for an unfinished run, an unknown metric, or a hosted judge without a price limit.
    """
    folder = RunFolder(path)
    manifest = folder.manifest()
    spec = RunSpec.from_json(manifest["spec"], str(folder.manifest_path))
    try:
        before = load_summary(path)
    except UserError:
        if not folder.done:
            raise
        before = {"notes": [], "complete": True}  # lost or damaged, and made again from the records
    media = MediaStore()
    benchmark = open_benchmark(spec.bench, spec.data, dict(spec.bench_options), media)
    judge = judge or spec.judge
    chosen: list[Metric] = metric_list(benchmark.metrics(), judge=bool(judge), answers=spec.until != "recall")
    chosen += [parse_metric(text, metric_classes()) for text in metrics]
    if judge is None and (lost := [str(metric) for metric in chosen if isinstance(metric, Judged)]):
        raise UserError(f"--metric {lost[0]}: a judge has to say; name one with --judge")
    asyncio.run(_rescore(folder, spec, chosen, judge, media, max_cost))
    summary = summarise(folder, benchmark, before["notes"], complete=before["complete"], judge=judge, metrics=chosen)
    write_atomic(path / "summary.json", document(summary))
    return summary


async def _rescore(
    folder: RunFolder,
    spec: RunSpec,
    metrics: Sequence[Metric],
    judge: str | None,
    media: MediaStore,
    max_cost: float | None,
) -> None:
    if judge is None:
        await score(folder, metrics, None)
        return
    lines = folder.appender("ledger")
    opened = judges(
        [judge], out_of(folder.path, spec.out), lambda call: lines.add(call.line()),
        timeout=spec.timeout, max_cost=max_cost, media=media,
    )  # fmt: skip
    try:
        async with opened as found:
            asker = Asker(found[judge])
            lines.add(asker.begins(judge))
            await score(folder, metrics, asker)
    finally:
        folder.close()


def verify(path: Path, benchmark: Benchmark | None = None) -> list[str]:
    """Recompute every figure of a run from its records and gold. Returns what differs; nothing if all is equal.

    Local metrics are computed anew; a judge is not asked again, which would be another measurement: its verdicts are
    read again from the replies that were kept.

    Args:
        path: the run's folder.
        benchmark: gives metrics and report, where the run's data are not at hand.

    Raises:
        UserError: for an unfinished run, or data that are not at hand.
    """
    stored = load_summary(path)
    folder = RunFolder(path)
    spec = RunSpec.from_json(folder.manifest()["spec"], str(folder.manifest_path))
    benchmark = benchmark or open_benchmark(spec.bench, spec.data, dict(spec.bench_options), MediaStore())
    with tempfile.TemporaryDirectory() as temporary:
        copy = RunFolder(Path(temporary) / "run")
        shutil.copytree(path, copy.path, ignore=shutil.ignore_patterns("memory", "logs", "claims.lock"))
        try:
            return _recompute(copy, spec, benchmark, stored)
        except UserError as error:  # names a file of the copy, which is gone when the user reads it
            raise type(error)(str(error).replace(str(copy.path), str(path))) from None


def _recompute(copy: RunFolder, spec: RunSpec, benchmark: Benchmark, stored: Summary) -> list[str]:
    kept = {row.unit: row for row in rows(copy)}
    metrics = metric_list(benchmark.metrics(), judge=bool(stored["judge"]), answers=spec.until != "recall")
    judged_by, own = stored.get("rubrics", {}), set(map(str, metrics))
    metrics += [parse_metric(text, metric_classes()) for text in judged_by if text not in own]  # of `score --metric`
    asyncio.run(score(copy, metrics, judgements.Kept(kept)))
    keys = {str(metric): metric.key for metric in metrics if isinstance(metric, Judged)}
    out = [f"{text}: judged by another rubric" for text, key in keys.items() if judged_by.get(text, key) != key]
    local: set[str] = set()
    for row in rows(copy):
        before = kept.get(row.unit)
        if before is None:
            out.append(f"scores.jsonl: no line for {row.unit}")
            continue
        local |= set(row.scores)
        for name, value in row.scores.items():
            if name not in before.scores:
                out.append(f"scores.jsonl: {row.unit}: no {name}")
            elif before.scores[name] != value:
                out.append(
                    f"scores.jsonl: {row.unit}: {name}: stored {before.scores[name].value}, recomputed {value.value}"
                )
    original = RunFolder(Path(stored["run"]))
    fresh = summarise(original, benchmark, stored["notes"], complete=stored["complete"])
    for key in ("n", "outcomes", "flags", "scores", "official", "tokens", "calls"):
        out += same(stored[key], fresh[key], f"summary.json: {key}.")
    for key in ("judgements", "agreement"):
        pairs: Iterable[tuple[Any, Any]] = zip_longest(stored.get(key, ()), fresh[key], fillvalue={})
        out += [line for before, after in pairs for line in same(before, after, f"summary.json: {key}.")]
    out += judgements.differences(copy)
    recomputed = figures(rows(copy))
    for name in local & set(stored["scores"]):
        out += same(stored["scores"][name], recomputed[name], f"summary.json: scores.{name}.")
    return sorted(set(out))
