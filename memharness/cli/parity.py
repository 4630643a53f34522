"""`memharness parity`: two back ends of one model, asked the same questions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memharness.cli.output import AsJson, json_only, option
from memharness.types import UserError

if TYPE_CHECKING:
    from memharness.run.parity import Difference, Parity

Side = Annotated[
    str, typer.Argument(help="A reader (NAME or NAME:MODEL), or the folder of a finished run.", show_default=False)
]
HOW, OUTPUT = "How to run it", "Output"
DEFAULTS: dict[str, Any] = {"method": "oracle", "bench": "", "limit": "32"}
SHOWN = 60  # characters of a reply, from a little before where it differs


def parity(
    a: Side,
    b: Side,
    bench: Annotated[
        str | None, option("--bench", metavar="B", help="A name, pkg.mod:Class or file.py:Class; a run has its own.")
    ] = None,
    data: Annotated[
        str | None, option("--data", metavar="PATH", help="Published data; else what was prepared, else the sample.")
    ] = None,
    subset: Annotated[
        str | None, option("--subset", metavar="S", help="A subset that the benchmark's card names.")
    ] = None,
    limit: Annotated[
        str | None,
        option(
            "--limit", metavar="N|A-B", default=DEFAULTS["limit"], help="The first N questions, or questions A to B."
        ),
    ] = None,
    method: Annotated[
        str | None,
        option("--method", metavar="M", default="oracle, which shows the gold evidence", help="What fills prompts."),
    ] = None,
    items: Annotated[int | None, option("--items", metavar="K", default="none", help="Most items of evidence.")] = None,
    max_tokens: Annotated[
        int | None, option("--max-tokens", metavar="N", default="64", help="The longest answer.")
    ] = None,
    method_options: Annotated[list[str] | None, option("-M", metavar="K=V", help="An option of the method.")] = None,
    bench_options: Annotated[list[str] | None, option("-B", metavar="K=V", help="An option of the benchmark.")] = None,
    reader_options: Annotated[list[str] | None, option("-R", metavar="K=V", help="An option of both readers.")] = None,
    options_a: Annotated[list[str] | None, option("--RA", metavar="K=V", help="An option of reader A.")] = None,
    options_b: Annotated[list[str] | None, option("--RB", metavar="K=V", help="An option of reader B.")] = None,
    concurrency: Annotated[
        int, option("--concurrency", panel=HOW, metavar="N", default="32", help="Questions in flight.")
    ] = 32,
    timeout: Annotated[
        float | None, option("--timeout", panel=HOW, metavar="SECONDS", default="none", help="For one call of a model.")
    ] = None,
    fresh: Annotated[bool, option("--fresh", panel=HOW, help="Ask anew and reuse no reply.")] = False,
    max_cost: Annotated[
        float | None,
        option("--max-cost", panel=HOW, metavar="USD", min=0.0, default="ask", help="Most to spend on hosted models."),
    ] = None,
    out: Annotated[
        str,
        option("--out", panel=OUTPUT, metavar="DIR", default="results/parity", help="Runs go to DIR/a and DIR/b."),
    ] = "results/parity",
    as_json: AsJson = False,
) -> None:
    """Ask two back ends of one model the same questions, and compare.

    Says how many replies are identical, where the others part, and what that does to the scores. A side may be the
    folder of a run that was made in another environment; the other side then reads that run's readouts.
    """
    from memharness.cli.run import execute
    from memharness.cli.words import PAIRS
    from memharness.config import parse_pairs
    from memharness.run.parity import compare, sides
    from memharness.run.spec import RunSpec

    asked: dict[str, Any] = {
        "method": method,
        "bench": bench,
        "data": data,
        "subset": subset,
        "limit": limit,
        "items": items,
        "max_tokens": max_tokens,
        "method_options": parse_pairs(method_options or [], "-M"),
        "bench_options": parse_pairs(bench_options or [], "-B"),
    }
    given = {name: value for name, value in asked.items() if value not in (None, {})}
    run = next((side for side in (a, b) if Path(side).is_dir()), None)
    if run and given:
        flags = ", ".join(PAIRS.get(name) or f"--{name.replace('_', '-')}" for name in given)
        raise UserError(f"parity {run}: a run says itself what was asked; leave out {flags}")
    how = {"concurrency": concurrency, "timeout": timeout, "fresh": fresh, "max_cost": max_cost, "out": out}
    spec = RunSpec(**DEFAULTS | given | how)
    both = parse_pairs(reader_options or [], "-R")
    options = ({**both, **parse_pairs(options_a or [], "--RA")}, {**both, **parse_pairs(options_b or [], "--RB")})
    with json_only(as_json) as print_json:
        found = compare(*sides(a, b, spec, options, execute))
        print_json(found.to_json())
    if not as_json:
        _show(found)


def _show(found: Parity) -> None:
    from memharness.report.tables import SAMPLE_WARNING, console_for, number, put, table

    console = console_for()
    if found.data_state == "sample":
        console.print(SAMPLE_WARNING, style="bold yellow")
    console.print(f"{found.bench}: {found.n:,} questions, asked twice", style="bold")
    for name, side in (("A", found.a), ("B", found.b)):
        console.print(f"{name}: {_words(side)}", style="dim", soft_wrap=True)
    console.print(f"\n{_agreement(found)}\n", style="bold", soft_wrap=True)
    made = table(console, "score", ">A", ">B", ">B - A", ">95 % interval", ">changed", ">n")
    for name, score in found.scores.items():
        low, high = score["low"], score["high"]
        interval = "none" if low is None or high is None else f"{low:+.3f} – {high:+.3f}"
        difference = "–" if score["difference"] is None else f"{score['difference']:+.3f}"
        counts = (f"{score['changed']:,}", f"{score['n']:,}")
        made.add_row(name, number(score["a"]), number(score["b"]), difference, interval, *counts)
    put(console, made)
    for difference_ in found.differences:
        console.print(_line(difference_), soft_wrap=True)


def _words(side: Mapping[str, Any]) -> str:
    """A side in a line: what runs the model, and what was recorded of how it does."""
    card = side["card"]
    ran = [card["backend"], card["dtype"] or "dtype unknown"]
    return f"{side['reader']} · {' · '.join(ran)} · " + " · ".join(f"{k} {v}" for k, v in card["provenance"].items())


def _agreement(found: Parity) -> str:
    if found.share is None:
        return "no question was replied to on both sides"
    words = [f"identical replies: {found.identical:,} of {found.replied:,} ({found.share:.1%})"]
    if found.differences:
        token = f", token {found.token:g} by {found.counter}" if found.token is not None else ""
        words.append(f"the others part at character {found.character:g}{token} (median)")
    words += [f"{n:,} without a reply on side {side.upper()}" for side, n in found.unanswered.items() if n]
    return "; ".join(words)


def _line(difference: Difference) -> str:
    start = max(0, difference.character - 10)
    shown = [repr(reply[start : start + SHOWN]) for reply in (difference.a, difference.b)]
    name = difference.native_id or difference.question
    return f"{name} from character {difference.character}: A {shown[0]}, B {shown[1]}"
