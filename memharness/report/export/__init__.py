"""A run written for other tools: pandas and Parquet, CSV, JSON, Hugging Face `datasets`, inspect_ai."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memharness.report.export import inspect_log, tabular
from memharness.report.export.tabular import frames
from memharness.run import api
from memharness.run.folder import RunFolder
from memharness.run.pictures import pictures
from memharness.store import atomic, disk_error, whole
from memharness.types import UserError, did_you_mean

__all__ = ["FORMATS", "Exported", "export", "frames"]

FORMATS = {
    "parquet": "a folder of tables: questions, scores, tokens",
    "csv": "the same as CSV",
    "json": "one file of the same",
    "hf": "a folder that Hugging Face `datasets` loads",
    "eval": "a log that inspect_ai opens",
}
FOLDERS: dict[str, Callable[..., None]] = {
    "parquet": tabular.write_parquet,
    "csv": tabular.write_csv,
    "hf": tabular.write_hf,
}


@dataclass(frozen=True)
class Exported:
    """What was written: where, in which format, of how many questions and pictures."""

    path: Path
    format: str
    questions: int
    pictures: int


def export(run: Path, to: str, out: Path | None = None, *, media: bool = False) -> Exported:
    """Write a finished run in another format.

    Args:
        run: the run's folder.
        to: one of `FORMATS`.
        out: file or folder; by default the run's name in the working folder, with the format's ending. A folder must be
            new or empty.
        media: whether the pictures of questions and recalled evidence go in.

    Raises:
        UserError: for an unknown format, no run or an unfinished one, pictures that are not at hand, or a place that
            cannot be written.
    """
    if to not in FORMATS:
        raise UserError(f"--to {to}: no such format{did_you_mean(to, FORMATS)}; there are: {', '.join(FORMATS)}")
    if media and to == "json":
        raise UserError("--media with --to json: one JSON file has no place for pictures; take another format")
    folder = RunFolder(run)
    summary = api.load_summary(run) | {"run": run.resolve().name}
    path = out or Path(f"{run.resolve().name}{'.' if to in ('eval', 'json') else '-'}{to}")
    shown = pictures(folder) if media else {}
    if to in FOLDERS:
        with _new_folder(path) as made:
            FOLDERS[to](folder, made, summary, shown)
    elif path.is_dir():
        raise UserError(f"--out {path}: is a folder; name a file")
    elif to == "json":
        with atomic(path) as file:
            tabular.write_json(folder, file, summary)
    else:
        _write_log(folder, path, summary, shown)
    return Exported(path, to, summary["n"], len(shown))


def _write_log(folder: RunFolder, path: Path, summary: dict[str, Any], shown: dict[str, Any]) -> None:
    if path.suffix != ".eval":
        raise UserError(f"--out {path}: inspect_ai opens files that end with .eval; name it so")
    with whole(path) as temporary:
        inspect_log.write_log(folder, temporary, summary, shown)


@contextmanager
def _new_folder(path: Path) -> Iterator[Path]:
    """A folder that appears whole. What another program put there is not touched."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UserError(f"--out {path}: is there already and not empty; name a new folder")
    temporary = _beside(path)
    try:
        temporary.mkdir(parents=True)
        yield temporary
        if path.exists():
            path.rmdir()
        temporary.replace(path)
    except OSError as error:
        raise disk_error(error, path) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")
