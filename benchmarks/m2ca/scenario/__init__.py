"""The scenario engine: sessions in M2CA-Bench's layout, made without any model, whose gold sets hold by construction.

    made = make(Making(sessions=100, turns=20, seed=7), Path("made"))      # the same bytes for the same seed
    print(census(made))

A session is planned (`planning`), told (`phrases`, or a reader as the user: `simulator`), drawn and written
(`writing`). What is made is synthetic and never M2CA-Bench, whose data are not published.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from memharness.benchmarks.m2ca.scenario.planning import Unplayable
from memharness.benchmarks.m2ca.scenario.simulator import User, reworded
from memharness.benchmarks.m2ca.scenario.writing import Made, Making, census, files, readme, sessions, write
from memharness.types import UserError

__all__ = ["Made", "Making", "User", "census", "make"]


def make(
    making: Making, folder: Path, user: User | None = None, progress: Callable[[int], None] = lambda done: None
) -> Sequence[Made]:
    """Make sessions and write them into an empty folder; the README comes last.

    Args:
        making: what to make.
        folder: made if it is missing.
        user: words each turn in place of the templates alone.
        progress: told how many sessions are done.

    Raises:
        UserError: for a folder that holds something, fewer than one session or turn, a disk that refuses, a reader
            that is not there, or sessions that cannot be made so.
    """
    if making.sessions < 1 or making.turns < 1:
        raise UserError(f"{making.sessions} sessions of {making.turns} turns: at least one of each is needed")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder}: is not an empty folder; name a new one, or empty it")
    try:
        found = asyncio.run(_made(making, folder, user, progress))
    except Unplayable as error:
        raise UserError(f"{error}; take another seed or number of turns") from error
    write(folder, "README.md", readme(making, census(found), user.told_by() if user else "templates"))
    return found


async def _made(making: Making, folder: Path, user: User | None, progress: Callable[[int], None]) -> Sequence[Made]:
    found: list[Made] = []
    if user is not None:
        await user.open()
    try:
        for made in sessions(making):
            one = made if user is None else await reworded(made, user)
            for path, data in files(one):
                write(folder, path, data)
            found.append(one)
            progress(len(found))
    finally:
        if user is not None:
            await user.close()
    return found
