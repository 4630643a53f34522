"""`memharness plot`: pictures of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memharness.cli.output import AsJson, json_only, option, say
from memharness.types import UserError

KINDS = "What to show: cost, sweep, categories or objective."


def plot(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=KINDS, show_default=False)],
    folders: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Runs, or folders of runs.", show_default=False)
    ],
    out: Annotated[Path | None, option("--out", metavar="FILE", help="The picture, .svg or .png; needed.")] = None,
    metric: Annotated[
        str | None, option("--metric", metavar="NAME", default="the one that leads", help="The score to show.")
    ] = None,
    against: Annotated[
        str,
        option(
            "--against",
            metavar="FIELD",
            default="budget",
            help="For sweep: items, seed, reader, or an option of method or benchmark.",
        ),
    ] = "budget",
    cost: Annotated[
        str, option("--cost", metavar="WHAT", default="tokens", help="For cost: tokens, seconds or price.")
    ] = "tokens",
    as_json: AsJson = False,
) -> None:
    """Draw runs: score against cost, budget, category; objective traces.

    The runs are of one benchmark; what is shown is also written as CSV beside the picture.

    cost: a score against the memory's whole lifecycle cost, with the non-dominated front, and cost by phase.
    sweep: a score and tokens a question against the budget or another field.
    categories: a score by category of question. objective: the rise of a forest's objective.
    """
    from memharness.report import plots
    from memharness.report.collect import summaries

    if out is None:
        raise UserError("plot: name the picture with --out FILE.svg or FILE.png")
    found, left_out = summaries("plot", folders)
    for reason in left_out:
        say(f"left out: {reason}")
    beside, rows = plots.plot(kind, found, out, metric=metric, against=against, of=cost)
    with json_only(as_json) as print_json:
        print_json({"plot": str(out), "data": str(beside), "rows": rows})
    if not as_json:
        say(f"wrote {out} and {beside}, {len(found)} {'run' if len(found) == 1 else 'runs'}")
