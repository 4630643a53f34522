"""An expert's game, step by step: as stored beside the games, or made by playing its commands in the engine."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from memharness.benchmarks.alfworld.commands import command, spelled
from memharness.benchmarks.alfworld.games import Game, game_name, task_of
from memharness.benchmarks.alfworld.playing import Engine, EngineError, Scene, engine_versions
from memharness.benchmarks.alfworld.states import Fact, printed
from memharness.datafile import Row, kind, read_lines
from memharness.identity import digest
from memharness.media import home
from memharness.store import write_atomic
from memharness.types import DataError

Expert = Literal["walkthrough", "handcoded"]
SUFFIXES = (".jsonl", ".jsonl.xz")
TASK = "Your task is to: "
REFIT = "data and engine do not fit each other; take both from one release"


@dataclass(frozen=True, slots=True)
class Step:
    """One step: what the expert saw, might do and did, and what changed then.

    Attributes:
        change: facts that came and facts that went; None if the file does not say.
    """

    observation: str
    admissible: tuple[str, ...]
    action: str
    change: tuple[tuple[Fact, ...], tuple[Fact, ...]] | None


@dataclass(frozen=True, slots=True)
class Replay:
    """A game that an expert won.

    Attributes:
        name: the game's, `split/task-…/trial`.
        expert: `walkthrough` (a planner that knows where everything is) or `handcoded` (it looks for things).
        goal: the task in the game's words.
        where: file and line.
    """

    name: str
    expert: Expert
    goal: str
    steps: tuple[Step, ...]
    where: str

    @property
    def split(self) -> str:
        """The first part of the name."""
        return self.name.split("/")[0]

    @property
    def task(self) -> str:
        """The task type."""
        return task_of(self.name, self.where)

    @property
    def tells_changes(self) -> bool:
        """Whether every step says what changed."""
        return all(step.change is not None for step in self.steps)


def is_replays(path: Path) -> bool:
    """Whether a file's name is that of stored replays."""
    return path.is_file() and path.name.endswith(SUFFIXES)


def read_replays(path: Path) -> Iterator[Replay | None]:
    """The games of a file in order; None for one that its expert did not win, which shows nobody what to do.

    Raises:
        DataError: for a file that is damaged, or a record without what it must have.
    """
    for row in _rows(path):
        if row.values.get("won") is not True and not isinstance(row.values.get("won"), bool):
            raise row.error("won", "must be true or false")
        yield _replay(row) if row.values["won"] else None


def _rows(path: Path) -> list[Row]:
    if not path.name.endswith(".xz"):
        return read_lines(path)
    try:
        lines = lzma.decompress(path.read_bytes()).decode("utf-8").split("\n")
    except (lzma.LZMAError, UnicodeDecodeError, OSError) as error:
        raise DataError(f"{path}: cannot be read ({error}); fetch it again") from None
    rows = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except ValueError as error:
            raise DataError(f"{path}: line {number}: not JSON ({error}); fetch it again") from None
        if not isinstance(value, dict):
            raise DataError(f"{path}: line {number}: must be a mapping, not {kind(value)}; fetch it again")
        rows.append(Row(value, f"{path}: line {number}"))
    return rows


def _replay(row: Row) -> Replay:
    name = game_name(PurePosixPath(row.text("gamefile")))
    task_of(name, f"{row.where}: gamefile")
    steps = tuple(map(_step, row.rows("steps", "step")))
    if not steps:
        raise row.error("steps", "is empty")
    expert: Expert = "walkthrough" if row.has("walkthrough") else "handcoded"
    return Replay(name, expert, row.text("task"), steps, row.where)


def _step(row: Row) -> Step:
    change = None
    if row.has("facts_added") or row.has("facts_removed"):
        change = (_facts(row, "facts_added"), _facts(row, "facts_removed"))
    admissible, action = row.texts("admissible_commands"), row.text("action")
    if command(action) not in map(command, admissible):
        raise row.error("action", f"{action!r} is not among admissible_commands")
    return Step(row.text("observation"), admissible, action, change)


def _facts(row: Row, field: str) -> tuple[Fact, ...]:
    try:
        return tuple(map(printed, row.texts(field)))
    except ValueError as error:
        raise row.error(field, str(error)) from None


# ------------------------------------------------------------------------------------------------ made by playing


async def replay(engine: Engine, game: Game, expert: Expert, commands: Sequence[str]) -> Replay:
    """A game played with an expert's commands, taken from the cache if these versions have played it before.

    Raises:
        DataError: if the engine does not take one of them, or the game is not won in the end.
    """
    key = digest({"game": game.content(), "commands": list(commands), "engine": engine_versions()})
    kept = home() / "alfworld" / "replays" / f"{key[:32]}.json"
    row = {"gamefile": f"{game.name}/game.tw-pddl", **({"walkthrough": True} if expert == "walkthrough" else {})}
    if not kept.is_file():
        told = await _played(engine, game, commands)
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(kept, json.dumps(told))
    return _replay(Row({**json.loads(kept.read_text("utf-8")), **row}, str(kept)))


async def _played(engine: Engine, game: Game, commands: Iterable[str]) -> dict[str, Any]:
    """What a stored replay holds of a game."""
    steps: list[Mapping[str, Any]] = []
    try:
        async with engine.play(game.content(), facts=True) as playing:
            first = scene = playing.scene
            for number, one in enumerate(commands):
                said = spelled(command(one), scene.admissible)
                if said not in scene.admissible:
                    raise DataError(f"{game.path}: walkthrough[{number}]: the engine does not take {one!r}; {REFIT}")
                then = await playing.step(said)
                steps.append(_told(scene, said, then))
                scene = then
    except EngineError as error:
        raise DataError(f"{game.path}: cannot be played: {error}; {REFIT}") from None
    if not scene.won:
        raise DataError(f"{game.path}: walkthrough: does not win the game; {REFIT}")
    return {"task": goal(first.observation), "steps": steps}


def _told(scene: Scene, said: str, then: Scene) -> Mapping[str, Any]:
    return {
        "observation": scene.observation,
        "admissible_commands": scene.admissible,
        "action": said,
        "facts_added": sorted(then.facts - scene.facts),
        "facts_removed": sorted(scene.facts - then.facts),
    }


def goal(observation: str) -> str:
    """The task in the first observation of a game; all of it where it has no such line."""
    before, mark, after = observation.partition(TASK)
    return after.split("\n")[0].strip() if mark else before.strip()
