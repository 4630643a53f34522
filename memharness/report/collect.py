"""Finished runs in folders, with their summaries and dates; what is not finished is left out, and named."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from memharness.report.tables import Summary
from memharness.run import api
from memharness.run.folder import RunFolder
from memharness.types import UserError

DEPTH = 3  # DIR itself, DIR/RUN, and DIR/runs/RUN


def find(folders: Iterable[Path]) -> set[Path]:
    """Run folders at or a little below these folders. What a method wrote deeper down is not searched."""
    found: dict[Path, Path] = {}
    for folder in folders:
        for depth in range(DEPTH):
            for file in folder.glob("*/" * depth + "manifest.json"):
                if ".old-" in file.parent.name:
                    continue  # set aside by --fresh
                found.setdefault(file.parent.resolve(), file.parent)  # named twice, it is still one run
    return set(found.values())


def summaries(command: str, folders: Iterable[Path]) -> tuple[list[Summary], list[str]]:
    """The summaries of the runs in these folders, each with the `date` it was finished or begun, and what was left out.

    Args:
        command: who asks, for the message.
        folders: runs, or folders of runs.

    Raises:
        UserError: a folder does not exist, or no run in them is finished.
    """
    where = list(folders)
    for folder in where:
        if not folder.is_dir():
            raise UserError(f"{command} {folder}: no such folder")
    found: list[Summary] = []
    left_out = []
    for run in sorted(find(where)):
        try:
            found.append({**api.load_summary(run), "date": _date(RunFolder(run))})
        except UserError as error:
            left_out.append(str(error))
    if not found:
        reasons = "".join(f"; left out: {reason}" for reason in left_out)
        raise UserError(f"{command}: no finished run under {', '.join(map(str, where))}{reasons}")
    return found, left_out


def _date(folder: RunFolder) -> str:
    """The day the run was finished, or begun if it was not, as YYYY-MM-DD (UTC)."""
    if folder.done and (finished := (folder.path / "DONE").read_text("utf-8").strip()):
        return finished[:10]
    return str(folder.manifest().get("created", ""))[:10]
