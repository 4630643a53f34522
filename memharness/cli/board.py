"""`memharness leaderboard`: many runs in one table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from memharness.cli.output import AsJson, json_only, option, say
from memharness.types import UserError

PANEL = "Output"


def _file(name: str, what: str) -> Any:
    return option(name, metavar="FILE", panel=PANEL, help=what)


def leaderboard(
    folders: Annotated[list[Path] | None, typer.Argument(metavar="[DIR]...", help="Runs, or folders of runs.")] = None,
    ties: Annotated[
        bool, option("--ties", panel=PANEL, help="Mark runs that cannot be told apart (files always say so).")
    ] = False,
    with_published: Annotated[
        bool, option("--with-published", panel=PANEL, help="Set the papers' figures beside the runs.")
    ] = False,
    csv: Annotated[Path | None, _file("--csv", "Also write one row a run.")] = None,
    parquet: Annotated[Path | None, _file("--parquet", "The same rows as Parquet.")] = None,
    markdown: Annotated[Path | None, _file("--markdown", "Also write the tables as Markdown.")] = None,
    html: Annotated[Path | None, _file("--html", "Also write one page with sortable tables.")] = None,
    as_json: AsJson = False,
) -> None:
    """Put runs into one table, on screen and as files.

    Runs on samples, tracks and controls stand apart. Unfinished runs are left out, and said.
    Two runs share a letter where the paired difference of their scores is not shown at 95 %.
    """
    from memharness.report import leaderboard as board
    from memharness.report.collect import summaries
    from memharness.report.published import results
    from memharness.report.tables import console_for

    wanted = {"--csv": csv, "--parquet": parquet, "--markdown": markdown, "--html": html}
    files = {name: path for name, path in wanted.items() if path is not None}
    for name, path in files.items():
        if path.is_dir():
            raise UserError(f"{name} {path}: is a folder; name a file")
    found, left_out = summaries("leaderboard", folders or [Path("results/runs")])
    for reason in left_out:
        say(f"left out: {reason}")
    made = board.boards(found)
    groups = board.standings(made) if ties or files else None
    benches = dict.fromkeys(one.bench for one in made) if with_published else ()
    rows = board.rows(found, groups, [figure for bench in benches for figure in results(bench)])
    if csv is not None:
        board.write_csv(csv, rows)
    if parquet is not None:
        board.write_parquet(parquet, rows)
    if markdown is not None:
        board.write_markdown(markdown, made, groups or {}, published=with_published)
    if html is not None:
        board.write_html(html, made, groups or {}, published=with_published)
    for path in files.values():
        say(f"wrote {path}")
    with json_only(as_json) as print_json:
        print_json({"rows": rows})
    if not as_json:
        board.show_leaderboard(console_for(), found, groups, published=with_published)
        if groups is None and len(found) > 1:
            say("rows stand by value, which is no ranking: --ties marks those that cannot be told apart")
