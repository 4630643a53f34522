"""`memharness export`: a run for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memharness.cli.output import AsJson, json_only, option
from memharness.types import UserError


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run's folder.", show_default=False)],
    to: Annotated[
        str | None, option("--to", metavar="FORMAT", help="parquet, csv, json, hf (datasets) or eval (inspect_ai).")
    ] = None,
    out: Annotated[
        Path | None,
        option("--out", metavar="PATH", default="the run's name", help="The file (json, eval), or a new folder."),
    ] = None,
    media: Annotated[bool, option("--media", help="With the pictures of questions and recalled evidence.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a run for pandas, Hugging Face datasets or inspect_ai.

    parquet, csv, json and hf hold three tables, questions, scores and tokens;
    their README says what every column holds. In Python,
    memharness.report.export.frames(RUN) gives them as data frames.
    """
    from memharness.report import export as exports

    if to is None:
        raise UserError(f"export: name the format with --to; there are: {', '.join(exports.FORMATS)}")
    with json_only(as_json) as print_json:
        made = exports.export(run, to, out, media=media)
        print_json({**vars(made), "path": str(made.path)})
    if not as_json:
        shown = f", {made.pictures:,} pictures" if media else ""
        typer.echo(f"{made.path}: {made.questions:,} questions{shown} ({exports.FORMATS[made.format]})")
