"""`memharness list` and `show`: what is installed, and what it is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from memharness.cli.output import AsJson, json_only
from memharness.registry import KINDS, Entry, entries, find, is_class_path
from memharness.types import UserError, did_you_mean


def list_plugins(
    kind: Annotated[str | None, typer.Argument(metavar="[KIND]", help=f"Only one kind: {', '.join(KINDS)}.")] = None,
    as_json: AsJson = False,
) -> None:
    """List what is installed: methods, benchmarks, readers and so on.

    Nothing is imported; `memharness show NAME` has the rest.
    """
    if kind is not None and kind not in KINDS:
        raise UserError(f"list {kind}: no such kind{did_you_mean(kind, KINDS)}; there are: {', '.join(KINDS)}")
    found = {name: list(entries(name).values()) for name in ([kind] if kind else KINDS)}
    with json_only(as_json) as print_json:
        print_json({name: [vars(entry) for entry in members] for name, members in found.items()})
    if not as_json:
        _print_list(found)


def _print_list(found: dict[str, list[Entry]]) -> None:
    from memharness.report.tables import console_for, put, table

    console = console_for()
    made = table(console, "kind", "name", "from", "class")
    for kind, members in found.items():
        for position, entry in enumerate(members):
            first = position == 0 or not console.is_terminal  # in a file every line stands alone
            made.add_row(kind if first else "", entry.name, entry.distribution, entry.target)
        if console.is_terminal and members:
            made.add_section()
    put(console, made)
    if empty := [kind for kind, members in found.items() if not members]:
        console.print(f"none installed: {', '.join(empty)}")


def show(
    name: Annotated[str, typer.Argument(help="A plug-in's name, pkg.mod:Class, file.py:Class, or a run's folder.")],
    as_json: AsJson = False,
) -> None:
    """Show the card of a plug-in, or the summary of a run."""
    if Path(name).is_dir():
        _show_run(name, as_json)
        return
    if as_json:
        raise UserError("show --json: only a run's folder has a JSON form (its summary)")
    from memharness.report.cards import show_card
    from memharness.report.tables import console_for

    console = console_for()
    for position, (kind, target, plugin) in enumerate(_plugins(name)):
        if position:
            console.print()
        show_card(console, kind, name, target, plugin)


def _show_run(folder: str, as_json: bool) -> None:
    from memharness.report.tables import console_for, show_summary
    from memharness.run import api

    summary = api.load_summary(Path(folder))
    with json_only(as_json) as print_json:
        print_json(summary)
    if not as_json:
        show_summary(console_for(), summary)


def _plugins(name: str) -> list[tuple[str, str, Any]]:
    """(kind, where from, class) of everything that has this name; one name may be a reader and an embedder."""
    named = [entries(kind)[name] for kind in KINDS if name in entries(kind)]
    if named:
        return [(_one(entry.kind), f"{entry.target} from {entry.distribution}", entry.load()) for entry in named]
    if is_class_path(name):
        return [(_kind_of(plugin := find("methods", name)), name, plugin)]
    known = [known for kind in KINDS for known in entries(kind)]
    raise UserError(
        f"show {name}: neither a run's folder nor a plug-in{did_you_mean(name, known)}; see `memharness list`"
    )


def _kind_of(plugin: Any) -> str:
    from memharness.benchmark import Benchmark
    from memharness.method import Method
    from memharness.metric import Metric
    from memharness.reader import Embedder, Reader

    kinds: dict[str, type] = {
        "method": Method,
        "benchmark": Benchmark,
        "reader": Reader,
        "embedder": Embedder,
        "metric": Metric,
    }
    return next(
        (kind for kind, base in kinds.items() if isinstance(plugin, type) and issubclass(plugin, base)), "class"
    )


def _one(kind: str) -> str:
    return kind.removesuffix("s")
