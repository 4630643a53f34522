"""Game files as published: `<split>/<task>-<object>-<movable>-<receptacle>-<scene>/<trial>/game.tw-pddl`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from memharness.benchmarks.alfworld.archives import GAME, is_archive, unpacked
from memharness.datafile import Row, existing, kind, read_json
from memharness.media import MediaStore
from memharness.types import DataError

TASKS = {
    "pick_and_place_simple": "put an object somewhere",
    "look_at_obj_in_light": "look at an object under a lamp",
    "pick_clean_then_place_in_recep": "clean an object and put it somewhere",
    "pick_heat_then_place_in_recep": "heat an object and put it somewhere",
    "pick_cool_then_place_in_recep": "cool an object and put it somewhere",
    "pick_two_obj_and_place": "put two objects somewhere",
}
"""The six task types, as the folders name them."""
FIELDS = ("pddl_domain", "grammar", "pddl_problem")
"""What the engine needs of a game file."""
SOLVABLE = (
    "generate the game again with `alfworld-generate`, or remove it: such games are left out of the official sets"
)


@dataclass(frozen=True, slots=True)
class Game:
    """One game file that was read and found whole.

    Attributes:
        path: the file.
        name: `split/task-…/trial`, the source's own id.
        split: `train`, `valid_seen`, `valid_unseen` or what else the folder is called.
        task: the task type.
        walkthrough: commands that win it; empty if the file holds none.
    """

    path: Path
    name: str
    split: str
    task: str
    walkthrough: tuple[str, ...]

    def content(self) -> Mapping[str, Any]:
        """The fields that the engine needs."""
        row = _row(self.path)
        return {field: row.text(field) for field in FIELDS}


def files(path: Path, media: MediaStore) -> list[Path]:
    """The game files that a file or folder is, holds, or holds in archives; sorted by their name.

    A folder that holds games and archives is one in which the archives were unpacked.

    Raises:
        DataError: for an archive that cannot be unpacked.
    """
    if path.is_file() and not is_archive(path):
        return [path]
    if is_archive(path):
        return files(unpacked(path, media.digest(path)), media)
    found = sorted(path.rglob(GAME), key=game_name)
    if found:
        return found
    inside = (files(one, media) for one in sorted(path.iterdir()) if is_archive(one))
    return sorted((file for one in inside for file in one), key=game_name)


def game_name(path: Path | PurePosixPath) -> str:
    """`split/task-…/trial` of a game file's path, which need not exist here."""
    return "/".join(path.parts[-4:-1])


def task_of(name: str, where: object) -> str:
    """The task type in a game's name.

    Raises:
        DataError: if the name is not in the published form.
    """
    task = name.split("/")[1].split("-")[0] if name.count("/") == 2 else ""
    if task not in TASKS:
        raise DataError(
            f"{where}: folder: expected SPLIT/TASK-OBJECT-…/TRIAL/{GAME} with TASK one of {', '.join(TASKS)}; "
            "keep the folders as they were published"
        )
    return task


def read_game(path: Path) -> Game:
    """One game.

    Raises:
        DataError: for a file that is not JSON, lacks a field, is not marked solvable, or lies in a folder whose name
            does not say its task.
    """
    row = _row(path)
    for field in FIELDS:
        row.text(field)
    if not row.has("solvable"):
        raise row.error("solvable", "is missing, so nobody checked that it can be won", SOLVABLE)
    if row.values["solvable"] is not True:
        raise row.error("solvable", f"is {row.values['solvable']!r}: the game cannot be won", SOLVABLE)
    name = game_name(path.absolute())
    return Game(path, name, name.split("/")[0], task_of(name, path), row.texts("walkthrough", ()))


def _row(path: Path) -> Row:
    value = read_json(existing(path))
    if not isinstance(value, dict):
        raise DataError(f"{path}: must be a mapping, not {kind(value)}; fetch the file again")
    return Row(value, str(path))
