"""Where a benchmark's data comes from, said aloud: given, prepared, or the bundled sample."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

from memharness.benchmark import Benchmark, BenchmarkCard, Data
from memharness.config import Config, build
from memharness.media import MediaStore, home
from memharness.registry import find, plugin
from memharness.types import UserError


def prepared_folder(card: BenchmarkCard) -> Path:
    """Where `data prepare` puts a benchmark's published files."""
    return home() / "data" / card.name


def resolve(benchmark: type[Benchmark], given: str | None, media: MediaStore) -> Data:
    """The data of a benchmark: `given`, else prepared, else the bundled sample.

    Raises:
        UserError: if a given path does not exist or may not be read, or there is neither prepared data nor a sample.
    """
    if given is not None:
        path = Path(given).expanduser()
        try:
            if not path.exists():
                raise UserError(f"--data {given}: no such file or folder")
            if path.is_dir():
                next(path.iterdir(), None)
        except OSError as error:
            raise UserError(f"--data {given}: cannot be read ({error.strerror}); make it readable") from None
        return Data(path, "given", media)
    prepared = prepared_folder(benchmark.card)
    if (prepared / "PREPARED.json").is_file():
        return Data(prepared, "prepared", media)
    sample = sample_path(benchmark)
    if sample is None:
        raise UserError(
            f"{benchmark.card.name}: no data; give --data PATH or run `memharness data prepare {benchmark.card.name}`"
        )
    return Data(sample, "sample", media)


def data_state(benchmark: type[Benchmark]) -> str:
    """What a run without `--data` would use: `prepared`, `sample` or `none`."""
    try:
        return resolve(benchmark, None, MediaStore()).state
    except UserError:
        return "none"


def sample_path(benchmark: type[Benchmark]) -> Path | None:
    """The bundled sample beside the benchmark's module, if it has one."""
    path = Path(inspect.getfile(benchmark)).parent / benchmark.sample
    return path if benchmark.sample and path.exists() else None


def benchmark_class(name: str) -> type[Benchmark]:
    """The class of a benchmark by name, `pkg.mod:Class` or `file.py:Class`.

    Raises:
        UserError: for an unknown name, one that cannot be imported, or one that is no Benchmark.
    """
    found = find("benchmarks", name)
    if not (isinstance(found, type) and issubclass(found, Benchmark)):
        raise UserError(f"--bench {name}: {found!r} is not a Benchmark class")
    return found


def open_benchmark(name: str, data: str | None, options: dict[str, Any], media: MediaStore) -> Benchmark:
    """A benchmark bound to its data and options.

    Raises:
        UserError: for an unknown name, option or path.
    """
    found = benchmark_class(name)
    with plugin(f"benchmark {name}"):
        config: Config = build(found.options_class, options, "-B", name)
        return found(resolve(found, data, media), config)


def prepared_note(data: Data) -> dict[str, Any]:
    """What `data prepare` wrote about the prepared folder: revision, licence, digests; empty otherwise."""
    file = data.path / "PREPARED.json"
    return json.loads(file.read_text("utf-8")) if data.state == "prepared" and file.is_file() else {}
