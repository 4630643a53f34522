"""`memharness view`: runs as pages to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memharness.cli.output import AsJson, json_only, option
from memharness.types import UserError


def view(
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="RUN...", help="Run folders.", show_default=False)
    ] = None,
    out: Annotated[Path, option("--out", metavar="DIR", default="results/view", help="The folder to write.")] = Path(
        "results/view"
    ),
    force: Annotated[bool, option("--force", help="Take the place of an earlier viewer's folder.")] = False,
    score: Annotated[
        str | None,
        option(
            "--score",
            metavar="NAME",
            default="the benchmark's primary score",
            help="What says whether a question is right.",
        ),
    ] = None,
    right: Annotated[float, option("--right", metavar="X", default="0.5", help="The least score that is right.")] = 0.5,
    thumbnails: Annotated[
        bool, option("--thumbnails-only", help="Leave out the original pictures; large ones make a large folder.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write runs as pages: one folder that opens in a browser, without a server.

    Prints the path of its index.html. Every question is there with what the reader saw, the
    evidence with gold marked, the answer, its scores and where a miss broke; two runs can be set
    side by side. The folder holds gold answers and the data's words and pictures: give it only to
    whom you may give those.
    """
    from memharness.report import viewer

    if not runs:
        raise UserError("view: name a run's folder")
    if len({run.resolve() for run in runs}) < len(runs):
        raise UserError("view: a run is named twice")
    with json_only(as_json) as print_json:
        page = viewer.write(runs, out, force=force, score=score, right=right, originals=not thumbnails)
        print_json({"page": str(page), "runs": [str(run) for run in runs]})
    if not as_json:
        typer.echo(str(page))
