"""`memharness regress`: hold the runs of a baseline against it, or write it anew."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from memharness.cli.output import AsJson, json_only, option, say
from memharness.types import UserError

BASELINE = Path("results/baselines/samples.json")


def regress(
    baseline: Annotated[
        Path, option("--baseline", metavar="FILE", default=str(BASELINE), help="What to hold the runs against.")
    ] = BASELINE,
    delta: Annotated[
        float | None,
        option(
            "--delta", metavar="D", min=0.0, default="the baseline's own",
            help="A loss of the primary score under D is none, for sampled runs.",
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        option("--only", metavar="M[:B]", help="Only METHOD, METHOD:BENCH or :BENCH; may be repeated."),
    ] = None,
    update: Annotated[bool, option("--update", help="Write the baseline anew; needs --reason.")] = False,
    reason: Annotated[str | None, option("--reason", metavar="TEXT", help="Why it is written anew.")] = None,
    as_json: AsJson = False,
) -> int:  # fmt: skip
    """Hold runs against a baseline; exit with 1 where a score slips.

    A deterministic run must give every score, answer and token count again,
    neither worse nor better; a sampled one may lose less than D. What differs
    is named: method, benchmark, metric and questions. So are methods and
    benchmarks that the baseline does not hold yet.
    """
    from memharness.report.regress import show_check, show_update
    from memharness.report.tables import console_for
    from memharness.run import regress as gate

    if reason is not None and not update:
        raise UserError("regress --reason: says why a baseline is written anew; give --update too")
    if update and reason is None:
        raise UserError("regress --update: say why with --reason TEXT; it goes into the baseline")
    with json_only(as_json) as print_json:
        if update:
            report, written = gate.update(baseline, reason or "", only or (), delta, _tell)
            print_json({**report.to_json(), "written": written})
        else:
            report = gate.check(baseline, only or (), delta, _tell)
            print_json(report.to_json())
    if not as_json and update:
        show_update(console_for(), report, written)
    elif not as_json:
        show_check(console_for(), report, only or ())
    return 0 if update or report.held else 1


def _tell(done: int, total: int, name: str) -> None:
    """Where it is: one line that is written over on a terminal, a line each tenth elsewhere."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{done}/{total} {name}" if name else "\r\x1b[K")
        sys.stderr.flush()
    elif name and done % max(1, -(-total // 10)) == 0:
        say(f"{done}/{total} runs; next: {name}")
