"""`memharness run`: the flags of a run, what it will cost, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memharness.cli.output import AsJson, json_only, option, say
from memharness.cli.words import make_spec, take_config
from memharness.run.spec import RunSpec
from memharness.types import Outcome

if TYPE_CHECKING:
    from memharness.benchmark import Data

WHAT, MODELS, SHOWN, HOW, OUTPUT = "What to run", "Models", "What a method may show", "How to run it", "Output"
COUNTING = "How --budget counts: reader, nominal28, qwen2.5-vl, qwen3-vl, internvl, openai-tiles, openai-patches."
DEFAULTS = {field.name: str(field.default) for field in fields(RunSpec)}


def run(
    context: typer.Context,
    method: Annotated[
        str | None,
        option("--method", "--method-class", panel=WHAT, metavar="M", help="A name, pkg.mod:Class or file.py:Class."),
    ] = None,
    bench: Annotated[
        str | None,
        option("--bench", "--bench-class", panel=WHAT, metavar="B", help="A name, pkg.mod:Class or file.py:Class."),
    ] = None,
    data: Annotated[
        str | None,
        option("--data", panel=WHAT, metavar="PATH", help="Published data; else what was prepared, else the sample."),
    ] = None,
    subset: Annotated[
        str | None, option("--subset", panel=WHAT, metavar="S", help="A subset that the benchmark's card names.")
    ] = None,
    limit: Annotated[
        str | None, option("--limit", panel=WHAT, metavar="N|A-B", help="The first N questions, or questions A to B.")
    ] = None,
    ids: Annotated[
        Path | None, option("--ids", panel=WHAT, metavar="FILE", help="Only these questions: ids, one a line.")
    ] = None,
    method_options: Annotated[
        list[str] | None, option("-M", panel=WHAT, metavar="K=V", help="An option of the method; may be repeated.")
    ] = None,
    bench_options: Annotated[
        list[str] | None, option("-B", panel=WHAT, metavar="K=V", help="An option of the benchmark.")
    ] = None,
    config: Annotated[
        Path | None,
        option(
            "--config", panel=WHAT, metavar="FILE", callback=take_config, is_eager=True,
            help="YAML with any of these flags by name; words given here win.",
        ),
    ] = None,
    reader: Annotated[
        str | None,
        option("--reader", panel=MODELS, metavar="R", default=DEFAULTS["reader"], help="Answers: NAME or NAME:MODEL."),
    ] = None,
    reader_options: Annotated[
        list[str] | None, option("-R", panel=MODELS, metavar="K=V", help="An option of the reader.")
    ] = None,
    models: Annotated[
        list[str] | None,
        option("--model", panel=MODELS, metavar="ROLE=R", default="the reader", help="The model of a role."),
    ] = None,
    judge: Annotated[
        str | None, option("--judge", panel=MODELS, metavar="R", default="no judging", help="Judges answers.")
    ] = None,
    embedder: Annotated[
        str | None, option("--embedder", panel=MODELS, metavar="E", default=DEFAULTS["embedder"], help="Embeds.")
    ] = None,
    prompt: Annotated[
        str | None,
        option("--prompt", panel=MODELS, metavar="NAME", default="the benchmark's own", help="For answering."),
    ] = None,
    max_tokens: Annotated[
        int | None,
        option("--max-tokens", panel=MODELS, metavar="N", default=DEFAULTS["max_tokens"], help="The longest answer."),
    ] = None,
    budget: Annotated[
        int | None, option("--budget", panel=SHOWN, metavar="TOKENS", default="none", help="Most tokens of evidence.")
    ] = None,
    items: Annotated[
        int | None, option("--items", panel=SHOWN, metavar="K", default="none", help="Most items of evidence.")
    ] = None,
    counters: Annotated[
        list[str] | None,
        option("--counter", panel=SHOWN, metavar="NAME", default="reader", help=COUNTING),
    ] = None,
    view: Annotated[
        str | None,
        option(
            "--view", panel=SHOWN, metavar="pixels|captions", default="pixels if the reader sees them",
            help="Show pictures, or what was written about them.",
        ),
    ] = None,
    until: Annotated[str | None, option("--until", panel=HOW, metavar="recall", help="Stop before reading.")] = None,
    readouts: Annotated[
        str | None, option("--readouts", panel=HOW, metavar="RUN", help="Read that run's readouts again.")
    ] = None,
    seed: Annotated[
        int | None, option("--seed", panel=HOW, metavar="N", default=DEFAULTS["seed"], help="Of every random draw.")
    ] = None,
    workers: Annotated[
        int | None,
        option("--workers", panel=HOW, metavar="N", default=DEFAULTS["workers"], help="Processes that share the run."),
    ] = None,
    concurrency: Annotated[
        int | None,
        option(
            "--concurrency", panel=HOW, metavar="N", default=DEFAULTS["concurrency"], help="Questions in flight."
        ),
    ] = None,
    timeout: Annotated[
        float | None, option("--timeout", panel=HOW, metavar="SECONDS", default="none", help="For one call of a model.")
    ] = None,
    fresh: Annotated[
        bool, option("--fresh", panel=HOW, help="Begin anew and reuse no reply; an old folder is kept aside.")
    ] = False,
    resume_anyway: Annotated[
        bool, option("--resume-anyway", panel=HOW, help="Go on with a run though the code has changed since.")
    ] = False,
    max_failures: Annotated[
        int | None,
        option(
            "--max-failures", panel=HOW, metavar="N", default=DEFAULTS["max_failures"],
            help="Exit with 1 if more questions failed.",
        ),
    ] = None,
    max_cost: Annotated[
        float | None,
        option("--max-cost", panel=HOW, metavar="USD", min=0.0, default="ask", help="Most to spend on hosted models."),
    ] = None,
    out: Annotated[
        str | None, option("--out", panel=OUTPUT, metavar="DIR", default=DEFAULTS["out"], help="Runs go to DIR/runs.")
    ] = None,
    dry_run: Annotated[
        bool, option("--dry-run", panel=OUTPUT, help="Only say what it would take: calls, tokens, price.")
    ] = False,
    as_json: AsJson = False,
) -> int:  # fmt: skip
    """Run a method on a benchmark with a reader, or go on with a run.

    The same command takes up a run where it stopped; finished work is never done twice.
    """
    from memharness.report.tables import console_for, show_plan, show_summary
    from memharness.run import api

    spec = make_spec(context)
    with json_only(as_json) as print_json:
        if dry_run:
            plan = api.plan(spec)
            print_json({**vars(plan), "folder": str(plan.folder)})
        else:
            summary = execute(spec)
            print_json(summary)
    if dry_run:
        if not as_json:
            show_plan(console_for(), vars(plan))
        return 0
    if not as_json:
        show_summary(console_for(), summary)
    return 1 if failures(summary) > spec.max_failures else 0


def execute(spec: RunSpec) -> Mapping[str, Any]:
    """Run a spec with progress on the terminal, and the cost asked about first; returns its summary."""
    from memharness.cli import cost
    from memharness.run import api
    from memharness.run.progress import progress_for
    from memharness.run.setup import setup

    ready = setup(api.inherit(spec))
    say(data_words(ready.benchmark.data))
    cost.agree(ready)
    progress = progress_for()
    try:
        return api.execute(spec, progress, ready)
    except KeyboardInterrupt:
        progress.close()
        say("interrupted; finished work is kept: run the same command again to go on")
        raise typer.Exit(130) from None
    finally:
        progress.close()


def data_words(data: Data) -> str:
    """Where a run's data came from, said aloud."""
    words = {
        "given": f"data: {data.path} (given)",
        "prepared": f"data: {data.path} (prepared by `memharness data prepare`)",
        "sample": "data: the bundled SAMPLE, not the published benchmark (--data, or `memharness data prepare`)",
    }
    return words[data.state]


def failures(summary: Mapping[str, Any]) -> int:
    """Questions that ended in an error or a time-out, and that a rerun would ask again."""
    return sum(n for outcome, n in summary["outcomes"].items() if not Outcome(outcome).final)


def work(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run that another process began.")],
) -> None:
    """Work on a run beside other processes, until no unit of it is left."""
    from memharness.run import api

    api.work(folder)
