"""`memharness leaderboard`: many runs in one table."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from memharness.cli.output import AsJson, json_only, option, say
from memharness.types import UserError

DEPTH = 3  # DIR itself, DIR/RUN, and DIR/runs/RUN


def leaderboard(
    folders: Annotated[list[Path] | None, typer.Argument(metavar="[DIR]...", help="Runs, or folders of runs.")] = None,
    csv: Annotated[
        Path | None, option("--csv", metavar="FILE", panel="Output", help="Also write one row a run.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Put runs into one table, on screen and as CSV.

    Runs on samples, tracks and controls stand apart. Unfinished runs are left out, and said.
    """
    from memharness.report import leaderboard as board
    from memharness.report.tables import console_for
    from memharness.run import api

    if csv is not None and csv.is_dir():
        raise UserError(f"--csv {csv}: is a folder; name a file")
    where = folders or [Path("results/runs")]
    for folder in where:
        if not folder.is_dir():
            raise UserError(f"leaderboard {folder}: no such folder")
    summaries = []
    for run in sorted(runs(where)):
        try:
            summaries.append(api.load_summary(run))
        except UserError as error:
            say(f"left out: {error}")
    if not summaries:
        raise UserError(f"leaderboard: no finished run under {', '.join(map(str, where))}")
    if csv is not None:
        board.write_csv(csv, summaries)
        say(f"wrote {len(summaries)} rows to {csv}")
    with json_only(as_json) as print_json:
        print_json({"rows": board.rows(summaries)})
    if not as_json:
        board.show_leaderboard(console_for(), summaries)


def runs(folders: Iterable[Path]) -> set[Path]:
    """Run folders at or a little below these folders. What a method wrote deeper down is not searched."""
    found: dict[Path, Path] = {}
    for folder in folders:
        for depth in range(DEPTH):
            for file in folder.glob("*/" * depth + "manifest.json"):
                if ".old-" in file.parent.name:
                    continue  # set aside by --fresh
                found.setdefault(file.parent.resolve(), file.parent)  # named twice, it is still one run
    return set(found.values())
