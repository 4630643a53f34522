"""What a run will cost in money, settled before any is spent."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from memharness.cli.output import say
from memharness.report.tables import dollars
from memharness.run import api, prices
from memharness.types import Usage, UserError

if TYPE_CHECKING:
    from memharness.run.setup import Setup


def agree(ready: Setup) -> None:
    """Hold the estimate against `--max-cost`, or have the user confirm it. Local models cost nothing and pass.

    Raises:
        UserError: if the estimate is over `--max-cost`, or there is neither a `--max-cost` nor a terminal to ask on, or
            the user says no.
    """
    spec = ready.spec
    nothing_left = ready.folder.done and not spec.fresh and not spec.judge
    if not ready.hosted or nothing_left:
        return
    models = ", ".join(ready.hosted)
    plan = api.plan(spec)
    price, words = estimate(plan)
    calls = f"{sum(plan.calls.values()):,} calls" if plan.questions is not None else "an unknown number of calls"
    say(f"hosted models: {models}; {calls}, {words}")
    if spec.max_cost is not None:
        if price is not None and price > spec.max_cost:
            raise UserError(
                f"--max-cost {spec.max_cost:g}: this run may cost {dollars(price)}; "
                "raise it, or ask fewer questions with --limit"
            )
        return
    if not sys.stdin.isatty():
        raise UserError(
            f"{models}: calls cost money; give --max-cost USD, or confirm on a terminal (--dry-run shows the estimate)"
        )
    if not typer.confirm("Spend this?", err=True):
        raise UserError("not confirmed; nothing was spent")


def estimate(plan: api.Plan) -> tuple[float | None, str]:
    """USD at most as far as can be told, and in words. A model without a price is taken as the dearest one known."""
    if plan.questions is None:
        return None, "its price cannot be told beforehand; --max-cost stops it on the way"
    if plan.price is not None:
        dated = f" (prices of {plan.price_date})" if plan.price_date else ""
        return plan.price, f"about {dollars(plan.price)}{dated}"
    sums = plan.tokens.values()
    worst = prices.dearest().of(
        Usage(
            text=sum(phase.get("text", 0) for phase in sums),
            image=sum(phase.get("image", 0) for phase in sums),
            output=sum(phase.get("output", 0) for phase in sums),
        )
    )
    return worst, f"price unknown, at most {dollars(worst)} at the dearest price in the table"
