"""`memharness list` and `show`: what is installed, and what it is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from memharness.cli.output import AsJson, json_only, option
from memharness.registry import KINDS, Entry, entries, find, is_class_path
from memharness.types import UserError, did_you_mean

COUNTS = 4  # of a card, in the list
FLOORS = "Floors"


def list_plugins(
    kind: Annotated[str | None, typer.Argument(metavar="[KIND]", help=f"Only one kind: {', '.join(KINDS)}.")] = None,
    as_json: AsJson = False,
) -> None:
    """List what is installed: methods, benchmarks, readers and so on.

    Nothing is imported, but for `list benchmarks`, which reads their cards; `memharness show NAME` has the rest.
    """
    if kind is not None and kind not in KINDS:
        raise UserError(f"list {kind}: no such kind{did_you_mean(kind, KINDS)}; there are: {', '.join(KINDS)}")
    found = {name: list(entries(name).values()) for name in ([kind] if kind else KINDS)}
    cards = {entry.name: _card(entry) for entry in found[kind]} if kind == "benchmarks" else {}
    with json_only(as_json) as print_json:
        print_json(
            {name: [vars(entry) | cards.get(entry.name, {}) for entry in members] for name, members in found.items()}
        )
    if as_json:
        return
    if kind == "benchmarks":
        _print_benchmarks(cards)
    else:
        _print_list(found)


def _card(entry: Entry) -> dict[str, Any]:
    """What the list says of a benchmark; `broken`, and why, if its class cannot be had."""
    from memharness.run.data import benchmark_class, data_state

    try:
        benchmark = benchmark_class(entry.name)
    except UserError as error:
        return {"broken": str(error)}
    card = benchmark.card
    return {
        "title": card.title,
        "counts": dict(card.counts),
        "licence": card.licence,
        "primary": card.primary,
        "data": data_state(benchmark),
    }


def _print_benchmarks(cards: dict[str, dict[str, Any]]) -> None:
    from memharness.report.tables import console_for, put, table

    console = console_for()
    made = table(console, "name", "holds", "licence", "primary score", "data")
    for name, card in cards.items():
        if "broken" in card:
            made.add_row(name, f"broken: {card['broken']}", "", "", "", style="bold red")
            continue
        counts = [f"{count:,} {what}" for what, count in card["counts"].items()]
        holds = ", ".join(counts[:COUNTS]) + (", …" if len(counts) > COUNTS else "")
        style = "" if card["data"] == "prepared" else "yellow"
        made.add_row(name, holds, card["licence"], card["primary"], card["data"], style=style)
    put(console, made)
    if any(card.get("data") == "sample" for card in cards.values()):
        console.print(
            "sample: only the small bundled sample is here; `memharness data prepare NAME` brings the published data, "
            "or says how to get it"
        )


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
    floors: Annotated[
        bool, option("--floors", panel=FLOORS, help="What answers that read nothing score on a benchmark.")
    ] = False,
    data: Annotated[
        str | None, option("--data", panel=FLOORS, metavar="PATH", help="The data; else as `run` finds them.")
    ] = None,
    subset: Annotated[str | None, option("--subset", panel=FLOORS, metavar="NAME", help="A part of the data.")] = None,
    bench_options: Annotated[
        list[str] | None, option("-B", panel=FLOORS, metavar="K=V", help="An option of the benchmark.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the card of a plug-in, the summary of a run, or the floors of a benchmark."""
    if floors:
        _show_floors(name, data, subset, bench_options or [], as_json)
        return
    if data or subset or bench_options:
        raise UserError("show: --data, --subset and -B go with --floors")
    if Path(name).is_dir():
        _show_run(name, as_json)
        return
    if as_json:
        raise UserError("show --json: only a run's folder (its summary) and --floors have a JSON form")
    from memharness.report.cards import show_card
    from memharness.report.tables import console_for

    console = console_for()
    for position, (kind, target, plugin) in enumerate(_plugins(name)):
        if position:
            console.print()
        show_card(console, kind, name, target, plugin, _benchmark_lines(plugin) if kind == "benchmark" else ())


def _show_floors(name: str, data: str | None, subset: str | None, options: list[str], as_json: bool) -> None:
    from dataclasses import asdict

    from memharness.config import parse_pairs
    from memharness.report.floors import show_floors
    from memharness.report.tables import console_for
    from memharness.run.floors import floors

    with json_only(as_json) as print_json:
        found = asdict(floors(name, data, subset, parse_pairs(options, "-B")))
        print_json(found)
    if not as_json:
        show_floors(console_for(), found)


def _benchmark_lines(benchmark: Any) -> list[tuple[str, str]]:
    """What a card does not hold: metrics as they print, the form of prediction files, the state of the data."""
    import inspect

    from memharness.benchmark import Benchmark, Data
    from memharness.media import MediaStore
    from memharness.run.data import data_state
    from memharness.run.evaluate import JSONL

    opened = benchmark(Data(Path(), "none", MediaStore()), benchmark.options_class())
    own = ""
    if benchmark.predictions is not Benchmark.predictions:
        own = (inspect.getdoc(benchmark.predictions) or "").split("\n\n")[0].replace("\n", " ")
    return [
        ("metrics", "\n".join(map(str, opened.metrics()))),
        ("predictions", "\n".join(filter(None, (own, f"JSON lines {JSONL}")))),
        ("data", data_state(benchmark)),
    ]


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
