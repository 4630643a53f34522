"""`memharness cma-export`: training rows for CoRE and PAE, from sessions and from runs."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from memharness.types import UserError

if TYPE_CHECKING:
    from memharness.methods.cma.examples import Ran


def export(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where core.jsonl and pae.jsonl go.")],
    data: Annotated[
        Path | None, typer.Option("--data", metavar="PATH", help="Sessions in m2ca's layout. Default: those of --run.")
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(
            "--run", metavar="RUN", help="A finished run of cma: its cards, and its errors as the baseline's."
        ),
    ] = None,
    writer: Annotated[
        Literal["reader", "model-free"], typer.Option("--writer", help="Whose cards of the run.")
    ] = "reader",
    keep: Annotated[
        Literal["all", "rl"],
        typer.Option("--keep", help="rl: baseline errors, hard and very_hard turns, and negatives alone."),
    ] = "all",
    share: Annotated[
        float, typer.Option("--held-out", metavar="SHARE", help="Of the sessions, for the test split.", min=0, max=0.9)
    ] = 0.1,
    seed: Annotated[int, typer.Option("--seed", help="Of the split.", min=0)] = 0,
    pixels: Annotated[bool, typer.Option("--pixels/--no-pixels", help="Show pictures, or words alone.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as one JSON object.")] = False,
) -> None:
    """Write what CoRE and PAE learn from, as JSON lines: messages, pictures by path, completions.

    A row of core.jsonl is a turn with the ranks of the pictures it needs; one of pae.jsonl is a picture, with its card
    as the completion if a reader of the run wrote it in form. Sessions are split whole.
    """
    from memharness.benchmarks.m2ca.layouts import read_sessions
    from memharness.methods.cma.examples import Export, Ran, read_run, split_sessions, write_rows

    ran = read_run(run, writer) if run is not None else Ran({}, {}, None)
    sessions, _ = read_sessions(_path(data, ran, run))
    made = Export(
        sessions, split_sessions((one.id for one in sessions), share, seed), ran.cards, ran.predicted, pixels, keep
    )
    rows = {"core": asyncio.run(made.core()), "pae": asyncio.run(made.pae())}
    out.mkdir(parents=True, exist_ok=True)
    counts: dict[str, Any] = {"sessions": len(sessions), "out": str(out)}
    for name, some in rows.items():
        write_rows(out / f"{name}.jsonl", some)
        counts[name] = dict(Counter(row["split"] for row in some)) | {
            "completions": sum(row["completion"] is not None for row in some)
        }
    if as_json:
        sys.stdout.write(json.dumps(counts) + "\n")
        return
    for name in rows:
        told = ", ".join(f"{value} {key}" for key, value in counts[name].items())
        sys.stdout.write(f"{out / f'{name}.jsonl'}: {told}\n")


def _path(data: Path | None, ran: Ran, run: Path | None) -> Path:
    """Where the sessions are.

    Raises:
        UserError: nowhere, as far as is known.
    """
    path = data or ran.data
    if path is None:
        whence = "" if run is None else f"; {run} ran on bundled data, so name them"
        raise UserError(f"cma-export: no sessions; name them with --data PATH{whence}")
    if not path.exists():
        raise UserError(f"--data {path}: no such file or folder")
    return path
