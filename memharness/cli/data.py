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
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memharness.cli.output import option, say
from memharness.types import UserError

if TYPE_CHECKING:
    from memharness.benchmark import Benchmark, BenchmarkCard
    from memharness.cli.fetch import Told
    from memharness.types import Asset

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
) -> None:
    """Fetch the published data: pinned, resumed, checked. The licence is shown and must be accepted."""
    from memharness.run.data import prepared_folder

    card = _benchmark_class(bench).card
    if not card.assets:
        raise UserError(
            f"data prepare {bench}: nothing here can be fetched for you; get it from {card.source} and give --data PATH"
        )
    say(f"{card.title}, revision {card.revision}\nfrom {card.source}\nlicence: {card.licence}")
    if not accept_licence:
        _ask_licence(bench)
    folder = prepared_folder(card)
    with _alone(folder):
        _prepare(card, folder)
    say(f"prepared; `memharness run --bench {bench}` now uses it")
    typer.echo(folder)


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


def _prepare(card: BenchmarkCard, folder: Path) -> None:
    """Bring every asset, then write `PREPARED.json`, the mark that the folder is whole."""
    from memharness.cli.fetch import fetch
    from memharness.store import write_atomic

    mark = folder / "PREPARED.json"
    before = json.loads(mark.read_text("utf-8")) if mark.is_file() else {}
    held = before.get("assets", {}) if before.get("revision") == card.revision else {}
    folder.mkdir(parents=True, exist_ok=True)
    _check_space(card, folder)
    mark.unlink(missing_ok=True)
    found = {}
    for asset in card.assets:
        with _bar(asset) as tell:
            found[asset.path] = asdict(fetch(asset, folder, held.get(asset.path, {}).get("sha256"), tell))
    note: dict[str, Any] = {
        "benchmark": card.name,
        "revision": card.revision,
        "source": card.source,
        "licence": card.licence,
        "accepted": datetime.now(UTC).isoformat(timespec="seconds"),
        "assets": found,
    }
    write_atomic(mark, json.dumps(note, indent=1, ensure_ascii=False) + "\n")


def _check_space(card: BenchmarkCard, folder: Path) -> None:
    needed = sum(asset.size or 0 for asset in card.assets if not (folder / asset.path).exists())
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise UserError(
            f"{folder}: {needed / 1e9:.1f} GB are needed, {free / 1e9:.1f} GB are free; "
            "set MEMHARNESS_HOME to a larger disk"
        )


@contextmanager
def _bar(asset: Asset) -> Iterator[Told]:
    """Tell how far a download is: a bar on a terminal, one line elsewhere."""
    if not sys.stderr.isatty():
        say(f"fetching {asset.path} from {asset.url}")
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
        task = progress.add_task(asset.path, total=asset.size)
        yield lambda done, whole: progress.update(task, completed=done, total=whole or asset.size)


@data.command()
def check(bench: Bench, given: Given = None, bench_options: Options = None) -> int:
    """Say what is wrong or noteworthy in the data. Exits with 1 if it cannot be run."""
    from memharness.report.tables import console_for, put, table

    benchmark = _open(bench, given, bench_options)
    contexts = benchmark.contexts()
    planned = [benchmark.episode(context).planned for context in contexts]
    questions = f"{sum(filter(None, planned)):,}{'' if all(n is not None for n in planned) else ' or more'}"
    findings = list(benchmark.check())
    console = console_for()
    console.print(f"{benchmark.card.title}: {benchmark.data.state} data at {benchmark.data.path}", soft_wrap=True)
    console.print(f"{len(contexts):,} contexts, {questions} questions")
    if findings:
        made = table(console, "level", "where", "what")
        for finding in findings:
            style = {"error": "bold red", "warning": "yellow"}.get(finding.level, "")
            made.add_row(finding.level, finding.where, finding.message, style=style)
        put(console, made)
    errors = sum(finding.level == "error" for finding in findings)
    console.print(f"{errors} errors" if errors else "no errors", style="bold red" if errors else "bold green")
    return 1 if errors else 0


@data.command()
def path(bench: Bench, given: Given = None) -> None:
    """Print where a benchmark's data lies, and on stderr whether it was given, prepared or is the sample."""
    from memharness.media import MediaStore
    from memharness.run.data import resolve

    found = resolve(_benchmark_class(bench), given, MediaStore())
    say(f"{found.state} data")
    typer.echo(found.path.resolve())


def _open(bench: str, given: str | None, options: list[str] | None) -> Benchmark:
    from memharness.config import parse_pairs
    from memharness.media import MediaStore
    from memharness.run.data import open_benchmark

    return open_benchmark(bench, given, parse_pairs(options or [], "-B"), MediaStore())


def _benchmark_class(bench: str) -> type[Benchmark]:
    from memharness.benchmark import Benchmark
    from memharness.registry import find

    found = find("benchmarks", bench)
    if not (isinstance(found, type) and issubclass(found, Benchmark)):
        raise UserError(f"{bench}: {found!r} is not a Benchmark class")
    return found
