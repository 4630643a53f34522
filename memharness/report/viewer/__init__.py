"""The viewer: runs written as one static folder that opens from a file, without a server and without the network."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

import memharness
from memharness.report.viewer.memories import Memories
from memharness.report.viewer.pictures import Pictures
from memharness.report.viewer.reading import opened
from memharness.report.viewer.shards import Shards, put, script
from memharness.report.viewer.writing import RunWriter
from memharness.store import disk_error
from memharness.types import UserError

MARK = "viewer.json"  # what tells a folder that this module wrote from any other
ITEMS = 256  # items of a shard
RIGHT = 0.5


def write(
    runs: Sequence[Path],
    out: Path,
    *,
    force: bool = False,
    score: str | None = None,
    right: float = RIGHT,
    originals: bool = True,
) -> Path:
    """Write runs as one folder of pages; returns its `index.html`.

    The folder appears whole or not at all. It holds what the runs hold (questions, gold, prompts, replies), the items
    of their benchmarks where the data are at hand, and the pictures that some question shows.

    Args:
        runs: run folders; two or more can be set side by side.
        out: the folder to write.
        force: take the place of an earlier viewer's folder.
        score: the score that says whether a question is right; None takes each benchmark's primary one.
        right: the least value of it that is right.
        originals: copy pictures in full beside their thumbnails.

    Raises:
        UserError: for a folder that is no run, an unknown score, an `out` that holds something else, or a full disk.
    """
    with _placed(out, force) as folder, ExitStack() as stack:
        data = folder / "data"
        pictures = Pictures(folder / "media", originals=originals)
        heads, writers = [], []
        with Shards(data, "items", rows=ITEMS) as items:
            memories = Memories(items)
            for number, path in enumerate(runs):
                run = stack.enter_context(opened(path))
                writers.append(RunWriter(number, run, data, memories, pictures, score, right))
                heads.append(writers[-1].write())
        for writer in writers:
            writer.write_uses(items.starts, items.count)
        made = {"memharness": memharness.__version__, "made": datetime.now(UTC).isoformat(timespec="seconds")}
        put(data / "pictures.js", script("pictures", pictures.known))
        put(data / "runs.js", script("runs", {"runs": heads, "items": items.starts, **made}))
        _page(folder, heads)
        put(folder / MARK, json.dumps({"viewer": 1, **made}) + "\n")
    return out / "index.html"


def _page(folder: Path, heads: Sequence[dict[str, Any]]) -> None:
    """The page itself: one document, its script and its style."""
    import jinja2

    files = resources.files(__name__)
    template = (files / "templates" / "index.html").read_text("utf-8")
    made = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(template)
    title = " · ".join(f"{head['method']} on {head['bench']}" for head in heads[:2])
    put(folder / "index.html", made.render(title=title))
    for name in ("app.js", "style.css"):
        put(folder / name, (files / name).read_text("utf-8"))


@contextmanager
def _placed(out: Path, force: bool) -> Iterator[Path]:
    """A new folder beside `out`, which takes its place at the end if all went well.

    Raises:
        UserError: if `out` is no folder of ours to replace.
    """
    _check(out, force)
    out = out.absolute()
    fresh = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    try:
        try:
            fresh.mkdir(parents=True)
        except OSError as error:
            raise disk_error(error, out) from error
        yield fresh
        try:
            if out.exists():
                shutil.rmtree(out)
            fresh.rename(out)
        except OSError as error:
            raise disk_error(error, out) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _check(out: Path, force: bool) -> None:
    try:
        if not out.exists() and not out.is_symlink():
            return
        if not out.is_dir():
            raise UserError(f"--out {out}: is a file; name a folder")
        ours, held = (out / MARK).is_file(), any(out.iterdir())
    except OSError as error:
        raise UserError(f"--out {out}: cannot be read ({error.strerror}); name another folder") from None
    if held and not ours:
        raise UserError(f"--out {out}: holds something else than a viewer; name a new folder")
    if held and not force:
        raise UserError(f"--out {out}: holds a viewer already; --force writes it anew")
