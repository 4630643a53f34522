"""Games in the engine's process, as an episode sees them."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from memharness.types import UserError

INSTALL = 'pip install "memharness-bench[alfworld]"'
PARTS = ("textworld", "alfworld", "fast_downward", "jericho")
READY = "ready"  # what the process says first
LINE = 1 << 26  # bytes an answer may have


class EngineError(Exception):
    """The engine stopped or cannot go on; the game is over without a result."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What a game shows at one moment.

    Attributes:
        observation: the game's words.
        admissible: the commands it takes now, in its own spelling, sorted.
        facts: everything that is true, as TextWorld prints facts; empty unless asked for.
    """

    observation: str
    admissible: tuple[str, ...]
    won: bool
    facts: frozenset[str]


def missing() -> list[str]:
    """The packages that the engine lacks here."""
    return [name for name in PARTS if importlib.util.find_spec(name) is None]


def require(what: str) -> None:
    """Refuse what needs the engine where it is not installed.

    Raises:
        UserError: naming the missing packages and how to install them.
    """
    if lost := missing():
        raise UserError(
            f"{what} the TextWorld engine, and {', '.join(lost)} cannot be found; {INSTALL} brings it "
            "(the planner in it is compiled: g++ and make must be there, and `python` on the PATH be this one)"
        )


def engine_versions() -> dict[str, str]:
    """The versions that decide what a game does."""
    return {name: version(name) for name in ("textworld", "alfworld", "fast-downward-textworld")}


class Engine:
    """The engine's process: started with the first game, ended with this object or its own parent."""

    def __init__(self, games: int) -> None:
        """Start nothing yet.

        Args:
            games: how many may be played at once.
        """
        self.games = games
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = Path()
        self._places: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]
        self._places = weakref.WeakKeyDictionary()

    @asynccontextmanager
    async def play(self, game: Mapping[str, Any], *, facts: bool = False) -> AsyncIterator[Playing]:
        """A game that was just started; it ends with the block.

        Args:
            game: a game file's content.
            facts: ask for the facts of every scene.

        Raises:
            EngineError: if it cannot be started.
            UserError: if the engine itself cannot be.
        """
        loop = asyncio.get_running_loop()
        async with self._places.setdefault(loop, asyncio.Semaphore(self.games)):
            try:
                table = await asyncio.to_thread(self._table)
                reader, writer = await asyncio.open_unix_connection(sock=table, limit=LINE)
            except OSError as error:
                raise EngineError(f"the engine cannot be reached ({error})") from None
            playing = Playing(reader, writer)
            try:
                await playing.ask({"game": dict(game), "facts": facts})
                yield playing
            finally:
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()

    def _table(self) -> socket.socket:
        """A connection to the process, which is started if there is none.

        It waits: a connection that does not would be refused while the process is busy, and asyncio would not see it.
        """
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._start()
        table = socket.socket(socket.AF_UNIX)
        try:
            table.connect(str(self._folder / "socket"))
        except OSError:
            table.close()
            raise
        return table

    def _start(self) -> None:
        require("playing games needs")
        self._folder = Path(tempfile.mkdtemp(prefix="memharness-alfworld-"))
        log = self._folder / "log"
        # One thread: what forks must not have more. The data folder: alfworld makes one wherever it is imported.
        env = os.environ | {
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "PYTHONHASHSEED": "0",
            "ALFWORLD_DATA": str(self._folder),
        }
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", f"{__package__}.engine", str(self._folder / "socket")],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=env,
            )  # fmt: skip
        weakref.finalize(self, _stop, self._process, self._folder)
        assert self._process.stdout is not None
        if self._process.stdout.readline().decode().strip() != READY:
            said = log.read_text("utf-8", "replace").strip().splitlines()[-1:]
            raise UserError(f"the TextWorld engine does not start: {' '.join(said) or 'it says nothing'}; {INSTALL}")


class Playing:
    """A game being played.

    Attributes:
        scene: what it shows now.
    """

    scene: Scene

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Nothing was said yet."""
        self._reader, self._writer = reader, writer

    async def step(self, command: str) -> Scene:
        """Give a command, which the game may not understand, and return what it shows then.

        Raises:
            EngineError: if it shows nothing any more.
        """
        await self.ask({"command": command})
        return self.scene

    async def ask(self, value: Mapping[str, Any]) -> None:
        """Send a line and take in the scene that answers it.

        Raises:
            EngineError: if none does.
        """
        try:
            self._writer.write(json.dumps(value).encode() + b"\n")
            line = await self._reader.readline()
        except (OSError, ValueError) as error:
            raise EngineError(f"the engine stopped ({error})") from None
        if not line.endswith(b"\n"):
            raise EngineError("the engine stopped: its process ended")
        said = json.loads(line)
        if "error" in said:
            raise EngineError(f"the engine cannot go on ({said['error']})")
        self.scene = Scene(said["observation"], tuple(said["admissible"]), said["won"], frozenset(said["facts"]))


def _stop(process: subprocess.Popen[bytes], folder: Path) -> None:
    process.terminate()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
    shutil.rmtree(folder, ignore_errors=True)
