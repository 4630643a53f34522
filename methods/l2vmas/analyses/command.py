"""`memharness vmas-analyse`: the analyses of text and latent teams, from runs that it performs or is given."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memharness.trainers import flag
from memharness.types import UserError

if TYPE_CHECKING:
    from memharness.methods.l2vmas.analyses.rows import Row
    from memharness.methods.l2vmas.analyses.runs import Summary
    from memharness.run.spec import RunSpec

WHAT, RUNS, OUTPUT = "What to analyse", "Runs to perform", "Output"
Words = list[str] | None


def analyse(
    what: Annotated[
        str,
        typer.Argument(
            metavar="ANALYSIS", show_default=False, help="turns, contents, triggering, ablations or sensitivity."
        ),
    ],
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RUN]...", show_default=False, help="Finished runs, in place of ones to perform."),
    ] = None,
    out: Annotated[Path | None, flag("--out", metavar="FILE", panel=OUTPUT, help="The plot, .svg or .png.")] = None,
    metric: Annotated[
        str | None, flag("--metric", metavar="NAME", panel=WHAT, help="The score. Default: the one that leads.")
    ] = None,
    at: Annotated[
        Words, flag("--at", metavar="FIELD=V,V", panel=WHAT, help="Values to vary, such as turns=1-10 or window=8,16.")
    ] = None,
    group: Annotated[
        Words,
        flag(
            "--group",
            metavar="NAME=CAT,CAT",
            panel=WHAT,
            help="triggering: a group of tasks by categories of the benchmark. Default: MMStar's three, else each.",
        ),
    ] = None,
    bins: Annotated[
        int, flag("--bins", metavar="N", panel=WHAT, help="triggering: stretches of a reply. Default: 10.")
    ] = 10,
    bench: Annotated[Words, flag("--bench", metavar="BENCH", panel=RUNS, help="May be repeated.")] = None,
    data: Annotated[str | None, flag("--data", metavar="PATH", panel=RUNS, help="Of the one benchmark.")] = None,
    subset: Annotated[str | None, flag("--subset", metavar="NAME", panel=RUNS, help="A part of the data.")] = None,
    limit: Annotated[str | None, flag("--limit", metavar="N|A-B", panel=RUNS, help="Questions.")] = None,
    reader: Annotated[str, flag("--reader", metavar="R", panel=RUNS, help="Default: smollm2.")] = "smollm2",
    reader_options: Annotated[Words, flag("-R", metavar="K=V", panel=RUNS, help="An option of the reader.")] = None,
    bench_options: Annotated[Words, flag("-B", metavar="K=V", panel=RUNS, help="Of the benchmark.")] = None,
    method_options: Annotated[
        Words, flag("-M", metavar="K=V", panel=RUNS, help="Of the teams; it goes to the methods that have it.")
    ] = None,
    embedder: Annotated[str, flag("--embedder", metavar="E", panel=RUNS, help="Default: minilm.")] = "minilm",
    items: Annotated[int | None, flag("--items", metavar="K", panel=RUNS, help="Most items of evidence.")] = None,
    max_tokens: Annotated[
        int, flag("--max-tokens", metavar="N", panel=RUNS, help="Of the last turn. Default: 64.")
    ] = 64,
    seed: Annotated[int, flag("--seed", metavar="N", panel=RUNS, help="Default: 0.")] = 0,
    concurrency: Annotated[
        int, flag("--concurrency", metavar="N", panel=RUNS, help="Questions in flight. Default: 32.")
    ] = 32,
    max_cost: Annotated[
        float | None, flag("--max-cost", metavar="USD", panel=RUNS, help="For each run on hosted models.")
    ] = None,
    resume_anyway: Annotated[
        bool, flag("--resume-anyway", panel=RUNS, help="Take runs up, or as they are, though other code made them.")
    ] = False,
    results: Annotated[
        str, flag("--results", metavar="DIR", panel=RUNS, help="Runs go to DIR/runs. Default: results.")
    ] = "results",
    dry_run: Annotated[
        bool, flag("--dry-run", panel=OUTPUT, help="Only list the runs, and which are finished.")
    ] = False,
    as_json: Annotated[bool, flag("--json", panel=OUTPUT, help="Print one JSON object and no more.")] = False,
) -> None:
    """Analyse teams of agents: write a plot, and the same as CSV beside it.

    Runs are those of `memharness run`: a finished one is not repeated, and a killed command goes on.

    turns: score and tokens against turns, vmas and l2vmas (L²-VMAS Fig. 2, 6, 7). contents: what agents pass on (Fig.
    3). triggering: calls on each memory, by place in the reply (Fig. 5b, 10). ablations: Table 6. sensitivity: window,
    threshold and length (Tables 7-9).
    """
    from memharness.cli.output import json_only, say
    from memharness.config import parse_pairs
    from memharness.methods.l2vmas.analyses import runs
    from memharness.methods.l2vmas.analyses.studies import study_of, values_of
    from memharness.run.spec import RunSpec

    study = study_of(what)
    values = values_of(study, _texts(at, "--at"))
    groups = {name: [one.strip() for one in text.split(",")] for name, text in _texts(group, "--group").items()}
    if bins < 1:
        raise UserError(f"--bins {bins}: must be at least 1")
    if not dry_run:
        _check_out(what, out)
    with json_only(as_json) as print_json:
        if folders:
            found = _given(folders, bench, say)
        else:
            if not bench:
                raise UserError(f"vmas-analyse {what}: name finished runs, or perform some with --bench BENCH")
            if data is not None and len(bench) > 1:
                raise UserError(
                    f"--data {data}: is of one benchmark; analyse {' and '.join(bench)} one after the other"
                )
            base = RunSpec(
                "", "", reader, data=data, subset=subset, limit=limit, embedder=embedder, items=items, seed=seed,
                max_tokens=max_tokens, concurrency=concurrency, max_cost=max_cost, out=results,
                resume_anyway=resume_anyway,
                method_options=parse_pairs(method_options or (), "-M"),
                bench_options=parse_pairs(bench_options or (), "-B"),
                reader_options=parse_pairs(reader_options or (), "-R"),
            )  # fmt: skip
            planned = runs.specs(study.arms(values, study.methods), base, bench)
            if dry_run:
                print_json({"runs": _listed(planned, say)})
                return
            from memharness.cli.run import execute

            found = runs.performed(planned, execute, say, metric)
        assert out is not None  # _check_out
        beside, rows = written(what, found, out, metric, groups, bins)
        print_json({"plot": str(out), "data": str(beside), "rows": rows})
    if not as_json:
        say(f"wrote {out} and {beside}, {len({row['run'] for row in rows})} runs")


def _check_out(what: str, out: Path | None) -> None:
    """Hold the plot's name to what can be drawn, before anything is spent."""
    from memharness.report.plots import SUFFIXES

    if out is None or out.suffix.lower() not in SUFFIXES or out.is_dir():
        given = f" --out {out}" if out else ""
        raise UserError(
            f"vmas-analyse {what}{given}: name the plot with --out, a file that ends in {' or '.join(SUFFIXES)}"
        )


def _texts(words: Words, name: str) -> dict[str, str]:
    """NAME=TEXT words as they are, untouched."""
    found = {}
    for word in words or ():
        key, sign, text = word.partition("=")
        if not sign or not key or not text:
            raise UserError(f"{name} {word}: expected NAME=VALUE,VALUE")
        found[key] = text
    return found


def _given(folders: Sequence[Path], bench: Words, say: Callable[[str], None]) -> list[Summary]:
    from memharness.report.collect import summaries

    found, left_out = summaries("vmas-analyse", folders)
    for reason in left_out:
        say(f"left out: {reason}")
    kept = [dict(one) for one in found if not bench or one["bench"] in bench]
    if not kept:
        raise UserError(f"vmas-analyse: no run here is of {' or '.join(bench or ())}")
    return kept


def _listed(planned: Sequence[RunSpec], say: Callable[[str], None]) -> list[dict[str, Any]]:
    from memharness.run.setup import setup

    out = []
    for spec in planned:
        folder = setup(spec).folder
        options = " ".join(f"{name}={value}" for name, value in spec.method_options.items())
        say(f"{'finished' if folder.done else 'to do   '}  {spec.method} on {spec.bench}, {options}: {folder.path}")
        out.append({"run": str(folder.path), "finished": folder.done, "spec": spec.to_json()})
    return out


def written(
    what: str,
    summaries: Sequence[Summary],
    out: Path,
    metric: str | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    bins: int = 10,
) -> tuple[Path, list[Row]]:
    """Draw an analysis of finished runs into a file, and write its rows as CSV beside it.

    Args:
        what: one of `STUDIES`.
        summaries: of runs.
        out: an .svg or .png file.
        metric: the score; default the one that leads each benchmark.
        groups: of `triggering`.
        bins: of `triggering`.

    Returns:
        the CSV file, and its rows.

    Raises:
        UserError: another kind of file, runs that do not belong together, or a file that cannot be written.
    """
    from memharness.methods.l2vmas.analyses import calls, rows, runs
    from memharness.methods.l2vmas.analyses.draw import DRAWN
    from memharness.methods.l2vmas.analyses.studies import study_of
    from memharness.report.plots.style import save, styled
    from memharness.store import write_atomic

    study = study_of(what)
    _check_out(what, out)
    mine = runs.chosen(study, summaries)
    metrics = runs.metric_of(mine, metric)
    made: Mapping[str, Callable[[], list[Row]]] = {
        "turns": partial(rows.turns, mine, metrics),
        "contents": partial(rows.contents, mine, metrics),
        "triggering": partial(calls.triggering, mine, groups or {}, bins),
        "ablations": partial(rows.ablations, mine, metrics),
        "sensitivity": partial(rows.sensitivity, mine, metrics),
    }
    shown = made[what]()
    with styled():
        save(DRAWN[what](shown, _title(mine, study.title)), out, f"memharness vmas-analyse {what}")
    beside = out.with_suffix(".csv")
    write_atomic(beside, _csv(shown))
    return beside, shown


def _title(summaries: Sequence[Summary], words: str) -> str:
    """Benchmarks, whether they are samples, reader, and what is shown."""
    benches = ", ".join(dict.fromkeys(
        one["bench"] + (" (bundled SAMPLE)" if one["data_state"] == "sample" else "") for one in summaries
    ))  # fmt: skip
    readers = ", ".join(dict.fromkeys(one["reader"] for one in summaries))
    return f"{benches}, {readers}: {words}"


def _csv(rows: Sequence[Row]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
