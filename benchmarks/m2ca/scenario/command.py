"""`memharness scenario`: sessions to be scored on, made here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

scenario = typer.Typer(help="Make synthetic sessions in M2CA-Bench's layout.", no_args_is_help=True)
scenario.callback()(lambda: None)  # so that its one command is called by name


@scenario.command("make")
def make_sessions(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where to write: a new or empty folder.")],
    sessions: Annotated[int, typer.Option("--sessions", help="How many sessions.", min=1)] = 100,
    turns: Annotated[int, typer.Option("--turns", help="Turns of a session.", min=1, max=60)] = 20,
    seed: Annotated[int, typer.Option("--seed", help="The same seed makes the same bytes.", min=0)] = 0,
    lang: Annotated[Literal["en", "zh", "both"], typer.Option("--lang", help="What is spoken.")] = "both",
    phrases: Annotated[
        Literal["dev", "held-out"],
        typer.Option("--phrases", help="Sentences and synonyms to develop on, or others to be measured on."),
    ] = "dev",
    user: Annotated[
        str | None,
        typer.Option("--user", metavar="SPEC", help="A reader that words the turns; templates where it strays."),
    ] = None,
    tries: Annotated[int, typer.Option("--tries", help="Wordings a reader may offer for a turn.", min=1)] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as one JSON object.")] = False,
) -> None:
    """Make sessions of pictures and turns whose gold sets hold by construction.

    They are synthetic, and never M2CA-Bench: `memharness run --bench m2ca --data DIR` plays them.
    """
    import json
    import sys

    from memharness.benchmarks.m2ca.scenario import Making, census, make
    from memharness.benchmarks.m2ca.scenario.simulator import User

    making = Making(sessions, turns, seed, lang, phrases)
    talker = None if user is None else User(user, tries, seed)

    def progress(done: int) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{done} of {sessions} sessions")

    made = make(making, out, talker, progress)
    counted = census(made)
    if as_json:
        told = {"sessions": len(made), "out": str(out), "census": counted.splitlines()}
        sys.stdout.write(json.dumps(told | ({"wording": talker.counts} if talker else {}), ensure_ascii=False) + "\n")
        return
    words = [counted] + ([f"worded by {talker.told_by()}"] if talker else [])
    sys.stdout.write("\n".join([*words, f"wrote {out}: synthetic sessions, not M2CA-Bench"]) + "\n")
