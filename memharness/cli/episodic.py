"""`memharness episodic`: care for an episodic visual memory, and carry it from place to place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memharness.cli.output import AsJson, json_only, option, say

if TYPE_CHECKING:
    from memharness.episodic import Finding

episodic = typer.Typer(help="Check, repair, export or import an episodic visual memory.", no_args_is_help=True)

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The memory's folder.", show_default=False)]


@episodic.command()
def check(folder: Folder, as_json: AsJson = False) -> int:
    """Say what is not as it should be; exit with 1 if anything is.

    Every original is compared with its digest, and whatever is kept must be
    found by a query. Nothing is changed.
    """
    from memharness.episodic import EpisodicMemory

    with EpisodicMemory.open(folder, create=False) as memory:
        found = memory.check()
    return _report(folder, found, as_json)


@episodic.command()
def repair(folder: Folder, as_json: AsJson = False) -> int:
    """Mend what `check` finds; exit with 1 if anything stays.

    Files that no asset names go. A picture that is lost leaves its asset
    without one; a file with other bytes than its name says goes to damaged/.
    """
    from memharness.episodic import EpisodicMemory

    with EpisodicMemory.open(folder, create=False) as memory:
        found = memory.repair()
    return _report(folder, found, as_json)


@episodic.command()
def export(
    folder: Folder,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A new folder to write.", show_default=False)],
    session: Annotated[str | None, option("--session", metavar="NAME", default="all", help="Only this one.")] = None,
) -> None:
    """Write a memory as JSON lines, f32 vectors and pictures, with a digest of each."""
    from memharness.episodic import EpisodicMemory

    with EpisodicMemory.open(folder, create=False) as memory:
        memory.export(out, session)
    say(f"wrote {out}")


@episodic.command("import")
def take(
    folder: Folder,
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="What `export` wrote.", show_default=False)],
) -> None:
    """Take an export into a memory, which is made if it is not there.

    All is checked first: digests, names, records, pictures. All is kept or nothing.
    """
    from memharness.episodic import EpisodicMemory

    with EpisodicMemory.open(folder) as memory:
        typer.echo(f"{memory.take(source):,} assets came in")


def _report(folder: Path, found: Sequence[Finding], as_json: bool) -> int:
    open_still = [finding for finding in found if not finding.mended]
    with json_only(as_json) as print_json:
        print_json({"folder": str(folder), "findings": [asdict(finding) for finding in found]})
    if not as_json:
        for finding in found:
            typer.echo(f"{finding.kind}: {finding.what}: {finding.message}{' (mended)' if finding.mended else ''}")
        typer.echo(f"{folder}: {len(found)} found, {len(open_still)} open" if found else f"{folder}: all is well")
    return 1 if open_still else 0
