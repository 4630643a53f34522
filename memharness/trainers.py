"""What trainers of methods share: flags of their command lines, what those name, and the questions learned from."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memharness.benchmark import Ask, Benchmark, Data, Observe
from memharness.config import build, parse_pairs
from memharness.registry import find, short_name, split_spec
from memharness.types import Case, Item, UserError

if TYPE_CHECKING:
    from memharness.media import MediaStore


def flag(*names: str, help: str, panel: str, metavar: str | None = None) -> Any:
    """A typer option under a heading of the help."""
    import typer

    return typer.Option(*names, help=help, rich_help_panel=panel, metavar=metavar, show_default=False)


def config_of(kind: Any, words: Sequence[str] | Mapping[str, Any] | None, flag: str, owner: str) -> Any:
    """A config of class `kind` from K=V words of the command line, or from pairs.

    Raises:
        UserError: for an unknown option or a value that is none.
    """
    pairs = words if isinstance(words, Mapping) else parse_pairs(words or (), flag)
    return build(kind, pairs, flag, owner)


def benchmark_class(name: str) -> type[Benchmark]:
    """The class of a benchmark.

    Raises:
        UserError: there is no such benchmark.
    """
    found = find("benchmarks", name)
    if not (isinstance(found, type) and issubclass(found, Benchmark)):
        raise UserError(f"--bench {name}: {found!r} is not a Benchmark class")
    return found


def benchmark_of(name: str, data: str | Path | None, words: Sequence[str] | None, media: MediaStore) -> Benchmark:
    """A benchmark on data that were named; the bundled samples are not taken, since they teach nothing.

    Raises:
        UserError: there is no such benchmark or path, no data are named, or an option is wrong.
    """
    found = benchmark_class(name)
    if data is None:
        raise UserError(f"train --bench {name}: name the data with --data PATH; samples teach nothing")
    path = Path(data).expanduser()
    if not path.exists():
        raise UserError(f"--data {data}: no such file or folder")
    return found(Data(path, "given", media), config_of(found.options_class, words, "-B", name))


def model_of(kind: str, spec: str, base: type[Any], words: Sequence[str] | None, media: MediaStore) -> Any:
    """A reader (`kind` is `readers`) or embedder (`embedders`) by its spec, not started.

    Raises:
        UserError: there is none, it is of another kind, or an option is wrong.
    """
    name, model = split_spec(kind, spec)
    found: Any = find(kind, name)
    if not (isinstance(found, type) and issubclass(found, base)):
        raise UserError(f"--{kind.removesuffix('s')} {spec}: {found!r} is not a {base.__name__} class")
    made: Any = found
    return made(model, config_of(made.config_class, words, "-R", short_name(name)), media)


async def recorded(benchmark: Benchmark, subset: str | None = None) -> AsyncIterator[tuple[str, Sequence[Item], Case]]:
    """Every question with its context and the items before it; the list of items grows as the context goes on.

    Raises:
        UserError: for a live benchmark.
    """
    for context in benchmark.contexts(subset):
        episode = benchmark.episode(context)
        if episode.live:
            raise UserError(
                f"--bench {benchmark.card.name}: is live, and a live game shows no gold; take recorded ones"
            )
        items: list[Item] = []
        async for event in episode.play():
            if isinstance(event, Observe):
                items += event.items
            elif isinstance(event, Ask):
                for case in event.cases:
                    yield context, items, case
