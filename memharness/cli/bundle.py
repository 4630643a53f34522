"""`memharness bundle`: a run in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memharness.cli.output import AsJson, json_only, option


def bundle(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run's folder.", show_default=False)],
    out: Annotated[
        Path | None, option("--out", metavar="FILE", default="RUN.zip in the working folder", help="The file.")
    ] = None,
    no_media: Annotated[
        bool, option("--no-media", help="Leave out the pictures of questions and recalled evidence.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Put a run into one file that `verify` accepts anywhere.

    It holds manifest, records, gold, ledger, scores, summary, pictures and
    checksums, and neither your home's path nor keys. The same run gives the
    same bytes. Videos and what the method wrote for itself stay out. Gold goes
    in: do not publish bundles of data that you may not share.
    """
    from memharness.run import bundle as bundles

    with json_only(as_json) as print_json:
        made = bundles.bundle(run, out, media=not no_media)
        print_json({**vars(made), "path": str(made.path)})
    if not as_json:
        typer.echo(f"{made.path}: {made.members:,} members, {made.pictures:,} of them pictures, {made.size:,} bytes")
        typer.echo(f"sha256 {made.sha256}")
        typer.echo("verified: every figure recomputes from what it holds")
