"""`memharness data`: prepare, check or locate a benchmark's published data."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from memharness.cli.output import option, say
from memharness.types import UserError

if TYPE_CHECKING:
    from memharness.benchmark import Benchmark, BenchmarkCard
    from memharness.cli.unpack import Told

data = typer.Typer(help="Prepare, check or locate a benchmark's data.", no_args_is_help=True)

Bench = Annotated[
    str, typer.Argument(metavar="BENCH", help="A name, pkg.mod:Class or file.py:Class.", show_default=False)
]
Given = Annotated[
    str | None, option("--data", metavar="PATH", help="The data; else what was prepared, else the sample.")
]
Options = Annotated[list[str] | None, option("-B", metavar="K=V", help="An option of the benchmark.")]


@data.command()
def prepare(
    bench: Bench,
    accept_licence: Annotated[
        bool, option("--accept-licence", "--accept-license", help="Accept the licence that is shown.")
    ] = False,
    by_hand: Annotated[
        bool, option("--placed", help="Fetch nothing: the files were put in their place by hand.")
    ] = False,
) -> int:
    """Fetch the published data: pinned, resumed, verified, unpacked and checked.

    Size and licence are shown, and the licence must be accepted. Where nothing can be fetched, it says which files to
    put where.
    """
    from memharness.media import MediaStore
    from memharness.run.data import benchmark_class, open_benchmark, prepared_folder

    card = benchmark_class(bench).card
    folder = prepared_folder(card)
    if not card.assets:
        _say_steps(card)
        raise UserError(
            f"data prepare {bench}: nothing can be fetched for you; see {card.source}, and give --data PATH"
        )
    say(f"{card.title}, revision {card.revision}\nfrom {card.source}\nsize: {_size(card)}\nlicence: {card.licence}")
    if not accept_licence:
        _ask_licence(bench)
    try:
        with _alone(folder):
            _prepare(card, folder, by_hand)
    except UserError:
        _say_by_hand(bench, card, folder)
        raise
    _say_steps(card)
    say(f"prepared; `memharness run --bench {bench}` now uses it")
    typer.echo(folder)
    return _report(open_benchmark(bench, None, {}, MediaStore()), None, every=False, stream=sys.stderr)


def _size(card: BenchmarkCard) -> str:
    from memharness.cli.fetch import sizes

    known, files = sizes(card.assets), len(card.assets)
    if not known:
        return "not known"
    more = f", and {files - len(known)} of {files} downloads of a size not known" if len(known) < files else ""
    return f"{sum(known) / 1e6:,.1f} MB{more}"


def _say_by_hand(bench: str, card: BenchmarkCard, folder: Path) -> None:
    """Exactly which files to put where."""
    from memharness.cli.fetch import address

    say("to bring them by hand, put these where the arrows point; archives may stay packed:")
    for asset in card.assets:
        known = [f"  {asset.size:,} bytes"] if asset.size is not None else []
        known += [f"  SHA-256 {asset.sha256}"] if asset.sha256 else []
        target = folder / asset.path
        say(f"  {address(asset, target)}\n    → {target}{''.join(known)}")
    _say_steps(card)
    say(f"then run `memharness data prepare {bench} --placed --accept-licence`, or give --data PATH to a run")


def _say_steps(card: BenchmarkCard) -> None:
    if card.steps:
        say("\n".join(("steps of your own:", *(f"  {step}" for step in card.steps))))


def _ask_licence(bench: str) -> None:
    if not sys.stdin.isatty():
        raise UserError(f"data prepare {bench}: its licence must be accepted: add --accept-licence")
    if not typer.confirm("Do you accept this licence?", err=True):
        raise UserError(f"data prepare {bench}: not accepted, so nothing was fetched")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold a lock beside the folder, which dies with this process."""
    from memharness.store import Claims

    claims = Claims(folder.with_name(f".{folder.name}.lock"))
    try:
        if not claims.take(0):
            raise UserError(f"{folder}: another process is preparing it; wait for that one")
        yield
    finally:
        claims.close()


def _prepare(card: BenchmarkCard, folder: Path, by_hand: bool) -> None:
    """Bring and unpack every asset, then write `PREPARED.json`, the mark that the folder is whole."""
    from memharness.cli.fetch import fetch, placed
    from memharness.store import write_atomic

    mark = folder / "PREPARED.json"
    before = json.loads(mark.read_text("utf-8")) if mark.is_file() else {}
    held = before.get("assets", {}) if before.get("revision") == card.revision else {}
    folder.mkdir(parents=True, exist_ok=True)
    if not by_hand:
        _check_space(card, folder)
    mark.unlink(missing_ok=True)
    found: dict[str, Any] = {}
    for asset in card.assets:
        digest = held.get(asset.path, {}).get("sha256")
        if by_hand:
            came = placed(asset, folder, digest)
        else:
            with _bar("fetching", f"{asset.path} from {asset.url}" if asset.path else asset.url, asset.size) as tell:
                came = fetch(asset, folder, digest, tell)
        found[asset.path] = asdict(came) | _unpacked(folder / asset.path)
    note: dict[str, Any] = {
        "benchmark": card.name,
        "revision": card.revision,
        "source": card.source,
        "licence": card.licence,
        "accepted": datetime.now(UTC).isoformat(timespec="seconds"),
        "assets": found,
    }
    write_atomic(mark, json.dumps(note, indent=1, ensure_ascii=False) + "\n")


def _unpacked(target: Path) -> dict[str, int]:
    """Unpack an asset that is an archive, or the archives of a snapshot. Returns how many files came of it, if any."""
    from memharness.cli.unpack import is_archive, unpack, unpacked
    from memharness.identity import file_digest

    came = unpacked(target) if target.is_dir() else set()  # an archive in an archive stays packed
    files = [target] if target.is_file() else sorted(file for file in target.rglob("*") if file.is_file())
    archives = [file for file in files if is_archive(file) and str(file.relative_to(target)) not in came]
    total = 0
    for archive in archives:
        with _bar("unpacking", archive.name, None) as tell:
            total += unpack(archive, file_digest(archive), tell)
    return {"unpacked": total} if archives else {}


def _check_space(card: BenchmarkCard, folder: Path) -> None:
    needed = sum(asset.size or 0 for asset in card.assets if not (folder / asset.path).exists())
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise UserError(
            f"{folder}: {needed / 1e9:.1f} GB are needed, {free / 1e9:.1f} GB are free; "
            "set MEMHARNESS_HOME to a larger disk"
        )


@contextmanager
def _bar(doing: str, what: str, size: int | None) -> Iterator[Told]:
    """Tell how far something is: a bar on a terminal, one line elsewhere."""
    if not sys.stderr.isatty():
        say(f"{doing} {what}")
        yield lambda done, whole: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(f"{doing} {what.partition(' ')[0]}", total=size)
        yield lambda done, whole: progress.update(task, completed=done, total=whole or size)


@data.command()
def check(
    bench: Bench,
    given: Given = None,
    subset: Annotated[str | None, option("--subset", metavar="NAME", help="A part of the data.")] = None,
    bench_options: Options = None,
    every: Annotated[bool, option("--all", help="Play every live episode, not only the first ones.")] = False,
) -> int:
    """Count what the data hold beside the card, and say what is wrong or noteworthy. Exits with 1 if it cannot run."""
    return _report(_open(bench, given, bench_options), subset, every=every, stream=sys.stdout)


def _report(benchmark: Benchmark, subset: str | None, *, every: bool, stream: IO[str]) -> int:
    from memharness.report.tables import console_for, put, table
    from memharness.run.survey import survey

    found = survey(benchmark, subset, every=every)
    card = benchmark.card
    console = console_for(stream)
    console.print(f"{card.title}: {benchmark.data.state} data at {benchmark.data.path}", soft_wrap=True)
    made = table(console, "count", ">here", ">published")
    for name in dict.fromkeys((*found.counts, *card.counts)):
        here, published = (f"{counts[name]:,}" if name in counts else "" for counts in (found.counts, card.counts))
        made.add_row(name, here, published)
    put(console, made)
    if found.findings:
        made = table(console, "level", "where", "what")
        for finding in found.findings:
            style = {"error": "bold red", "warning": "yellow"}.get(finding.level, "")
            where = finding.where.removeprefix(f"{benchmark.data.path.parent}/")  # the heading says where that is
            made.add_row(finding.level, where, finding.message, style=style)
        put(console, made)
    errors = sum(finding.level == "error" for finding in found.findings)
    console.print(f"{errors} errors" if errors else "no errors", style="bold red" if errors else "bold green")
    return 1 if errors else 0


@data.command()
def path(bench: Bench, given: Given = None) -> None:
    """Print where a benchmark's data lies, and on stderr whether it was given, prepared or is the sample."""
    from memharness.media import MediaStore
    from memharness.run.data import benchmark_class, resolve

    found = resolve(benchmark_class(bench), given, MediaStore())
    say(f"{found.state} data")
    typer.echo(found.path.resolve())


def _open(bench: str, given: str | None, options: list[str] | None) -> Benchmark:
    from memharness.config import parse_pairs
    from memharness.media import MediaStore
    from memharness.run.data import open_benchmark

    return open_benchmark(bench, given, parse_pairs(options or [], "-B"), MediaStore())
