"""`memharness cuts`: scores of runs by parts of their benchmark, beside floors on the same questions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memharness.cli.output import AsJson, json_only, option, say
from memharness.types import UserError


def cuts(
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="RUN...", help="Finished runs.", show_default=False)
    ] = None,
    metric: Annotated[
        list[str] | None,
        option(
            "--metric",
            metavar="SCORE",
            default="the score that leads tables",
            help="A score to cut; may be repeated. A further judge's score will do too.",
        ),
    ] = None,
    csv: Annotated[
        Path | None, option("--csv", metavar="FILE", panel="Output", help="Also write a row a part and policy.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show scores by parts of the benchmark, beside floors on the same questions.

    Floors read nothing, or hardly anything: the answers that `memharness show
    BENCH --floors` names. What they score is measured on the run's own
    questions, and the run is compared with the best of them question by
    question, part by part. Intervals are at 95 % and respect clusters.
    """  # fmt: skip
    from memharness.report.cuts import show_cuts, write_csv
    from memharness.report.tables import console_for
    from memharness.run.cuts import cuts as cut

    if not runs:
        raise UserError("cuts: name at least one finished run")
    if csv is not None and csv.is_dir():
        raise UserError(f"--csv {csv}: is a folder; name a file")
    found = [one for run in runs for one in cut(run, metric or ())]
    if csv is not None:
        write_csv(csv, found)
        say(f"wrote {csv}")
    with json_only(as_json) as print_json:
        print_json({"cuts": [one.to_json() for one in found]})
    if not as_json:
        show_cuts(console_for(), found)
