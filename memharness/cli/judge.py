"""`memharness judge` and `calibrate`: what judges say of a run, and what a judge is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memharness.cli.output import AsJson, json_only, option
from memharness.judging import rubrics
from memharness.types import UserError

RUBRIC = f"What is right: {', '.join(rubrics())}, or a file of your own (….v1.txt)."
Official = Annotated[
    bool, option("--official", help="Read replies as the benchmark's own parser does, where it differs.")
]
MaxCost = Annotated[float | None, option("--max-cost", metavar="USD", help="Most to spend; a hosted judge needs it.")]


def judge(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run's folder.", show_default=False)],
    judges: Annotated[
        list[str] | None, option("--judge", metavar="R", help="A reader that judges; may be repeated.")
    ] = None,
    rubric: Annotated[
        str | None,
        option(
            "--rubric",
            metavar="NAME",
            default="the benchmark's own, if it has one",
            help=RUBRIC,
        ),
    ] = None,
    official: Official = False,
    max_cost: MaxCost = None,
    as_json: AsJson = False,
) -> None:
    """Judge a run's answers with a rubric; two judges give their agreement.

    Verdicts of every judge and rubric are kept side by side in RUN/judgements and in the summary;
    nothing else of the run changes. Replies are cached: judging again, or after a kill, asks only
    what was not asked yet.
    """
    from memharness.report.judging import show_judgements
    from memharness.report.tables import console_for, heading
    from memharness.run import judging
    from memharness.run.progress import progress_for

    if not judges:
        raise UserError("judge: name who judges with --judge R")
    with json_only(as_json) as print_json:
        progress = progress_for()
        try:
            summary = judging.judge(run, judges, rubric, progress, official=official, max_cost=max_cost)
        finally:
            progress.close()
        print_json({name: summary[name] for name in ("run", "identity", "n", "outcomes", "judgements", "agreement")})
    if not as_json:
        console = console_for()
        console.print(heading(summary))
        show_judgements(console, summary)


def calibrate(
    judge: Annotated[str | None, option("--judge", metavar="R", help="The reader to measure.")] = None,
    banks: Annotated[
        list[Path] | None,
        option(
            "--bank", metavar="FILE", help="Answers of known worth; may be repeated. JSON lines, or LoCoMo's audit."
        ),
    ] = None,
    rubric: Annotated[str, option("--rubric", metavar="NAME", default="binary.v1", help=RUBRIC)] = "binary.v1",
    official: Official = False,
    limit: Annotated[
        int | None,
        option(
            "--limit", metavar="N", help="Only N questions, evenly spread over the banks, each with all its answers."
        ),
    ] = None,
    max_cost: MaxCost = None,
    out: Annotated[Path, option("--out", metavar="DIR", default="results", help="Where the verdicts go.")] = Path(
        "results"
    ),
    as_json: AsJson = False,
) -> None:
    """Measure a judge on a bank of right and wrong answers.

    Prints what wrong answers it accepts, what right ones it rejects, and whether a constant would
    do as well. A line of a bank of your own is {"id", "question", "gold", "kind", "answer",
    "category"?, "conversation"?}, where kind is right, wrong-specific or wrong-vague.
    """
    from memharness.report.judging import show_calibration
    from memharness.report.tables import console_for
    from memharness.run import calibrate as calibration
    from memharness.run.progress import progress_for

    if not judge:
        raise UserError("calibrate: name the judge with --judge R")
    if not banks:
        raise UserError("calibrate: name a bank with --bank FILE")
    with json_only(as_json) as print_json:
        progress = progress_for()
        try:
            report = calibration.calibrate(
                judge, banks, rubric, progress, official=official, limit=limit, max_cost=max_cost, out=out
            )
        finally:
            progress.close()
        print_json(report)
    if not as_json:
        show_calibration(console_for(), report)
