"""`memharness compare`: runs against a baseline, on the questions that both were asked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memharness.cli.output import AsJson, json_only, option, say
from memharness.types import UserError


def compare(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN",
            help="Finished runs, the baseline first. RUN,RUN,… are repeats of one with "
            "other seeds, averaged by question.",
            show_default=False,
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        option(
            "--metric",
            metavar="SCORE",
            default="the score that leads tables",
            help="A score to compare in full; may be repeated.",
        ),
    ] = None,
    delta: Annotated[
        float, option("--delta", metavar="D", default="0.02", help="How small a difference does not matter.")
    ] = 0.02,
    force: Annotated[
        bool, option("--force", help="Compare runs that were not asked the same, and say so everywhere.")
    ] = False,
    questions: Annotated[
        int,
        option(
            "--questions",
            metavar="N",
            default="3",
            panel="Output",
            min=0,
            help="Show N questions of each kind: regressed, stayed wrong, fixed, unchanged.",
        ),
    ] = 3,
    verbose: Annotated[
        bool, option("--verbose", "-v", panel="Output", help="List what only one run was asked.")
    ] = False,
    csv: Annotated[
        Path | None, option("--csv", metavar="FILE", panel="Output", help="Also write every question, one row each.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare runs with a baseline, question by question.

    Runs must be equal in benchmark, data, selection, budget, view, track,
    prompt, options and judge; method, reader and seed may differ.
    Intervals respect clusters, and categories are adjusted by Holm.

    Verdicts at δ, of the 95 % interval of the difference: better or worse (it
    lies on one side of 0, also after Holm over the runs), tie (within −δ and
    +δ), non-inferior (above −δ), else not shown.
    """  # fmt: skip
    from memharness.report.compare import show_comparison, write_csv
    from memharness.report.tables import console_for
    from memharness.run.compare import compare as compared

    if csv is not None and csv.is_dir():
        raise UserError(f"--csv {csv}: is a folder; name a file")
    named = [[Path(part) for part in run.split(",")] if not Path(run).exists() else Path(run) for run in runs or []]
    found = compared(named, scores=metric or (), delta=delta, force=force)
    if csv is not None:
        write_csv(csv, found)
        say(f"wrote {sum(len(run.changes) for run in found.runs):,} rows to {csv}")
    with json_only(as_json) as print_json:
        print_json(found.to_json())
    if not as_json:
        show_comparison(console_for(), found, questions=questions, verbose=verbose)
