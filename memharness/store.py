"""What was written: JSON lines that survive a kill, atomic files, claims of work, and the request cache."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import json
import os
import sqlite3
import threading
import zlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from memharness.types import DataError, UserError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")


def disk_error(error: OSError, path: Path) -> UserError:
    """The clear form of an operating system's refusal to write."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return UserError(f"{path}: the disk is full; free space and run the same command again: finished work is kept")
    return UserError(f"{path}: {error.strerror or error}; mend that and run the same command again")


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A file to write beside `path`, which takes its place once the block ends, or not at all.

    Several threads and processes may write the same one.

    Raises:
        UserError: if the disk is full or refuses.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise disk_error(error, path) from error
    finally:
        with suppress(OSError):  # not there, or a file stands where a folder should be: the error above says so
            temporary.unlink()


@contextmanager
def atomic(path: Path) -> Iterator[IO[str]]:
    """A file to write text to, which takes the place of `path` whole and synced, or not at all.

    Raises:
        UserError: if the disk is full or refuses.
    """
    with whole(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def write_atomic(path: Path, text: str) -> None:
    """Write a file so that it is either as before or whole.

    Raises:
        UserError: if the disk is full or refuses.
    """
    with atomic(path) as file:
        file.write(text)


class Appender:
    """Appends whole JSON lines to a file of this process's own. A line is flushed at once, so a kill loses none."""

    def __init__(self, path: Path) -> None:
        """Open for appending; the folder is made."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._file = path.open("ab", buffering=0)

    def add(self, value: Mapping[str, Any]) -> None:
        """Append one line.

        Raises:
            UserError: if the disk is full or refuses; the file then ends with its last whole line.
        """
        line = encode(value).encode() + b"\n"
        start = self._file.tell()
        try:
            written = self._file.write(line)
            while written < len(line):
                written += self._file.write(line[written:])
        except OSError as error:
            with suppress(OSError):  # else the torn last line is dropped and counted when read
                self._file.truncate(start)
            raise disk_error(error, self.path) from error

    def sync(self) -> None:
        """Make what was appended survive a power loss."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _jsonable(value: Any) -> Any:
    if hasattr(value, "tolist"):  # scalars and arrays of numpy and torch
        return value.tolist()
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, tuple | Mapping):
        return dict(value) if isinstance(value, Mapping) else list(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


# One encoder for all lines: building it anew for each costs as much as encoding.
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_jsonable).encode
_escape = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"), default=_jsonable).encode


def encode(value: Any) -> str:
    """One line of JSON. Half a surrogate pair, which UTF-8 has no bytes for, is kept as its escape.

    Raises:
        TypeError: for a value JSON has no form for.
    """
    line = _encode(value)
    try:
        line.encode()
    except UnicodeEncodeError:
        return _escape(value)
    return line


def document(value: Any) -> str:
    """A JSON file's whole text, indented, for people to read. Half a surrogate pair is kept as its escape."""
    text = json.dumps(value, indent=1, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(value, indent=1)
    return text + "\n"


def read_lines(path: Path, torn: list[str] | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Lines of a JSONL file with their byte offsets, one at a time.

    A last line that does not parse was torn by a kill: it is dropped and its file's name added to `torn`.

    Raises:
        DataError: for any other line that is not a JSON object, or a file that cannot be read.
    """
    try:
        opened = path.open("rb")
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); was it moved or changed?") from None
    with opened as file:
        offset = 0
        for number, line in enumerate(file, 1):
            try:
                value = json.loads(line.decode())
            except ValueError:
                if not line.endswith(b"\n") or not file.read(1):
                    if torn is not None:
                        torn.append(path.name)
                    return
                raise DataError(
                    f"{path}: line {number}: not JSON; the file was changed by hand or by another program"
                ) from None
            if not isinstance(value, dict):
                raise DataError(f"{path}: line {number}: expected an object")
            yield offset, value
            offset += len(line)


class Claims:
    """Units of work claimed by byte-range locks in one file: a lock dies with its process, however it dies."""

    def __init__(self, path: Path) -> None:
        """Open the lock file. One object per process: POSIX drops all locks when any handle of the file closes."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def take(self, unit: int) -> bool:
        """Claim a unit; False if another process holds it."""
        try:
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, unit)
            return True
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):
                return False
            raise

    def give(self, unit: int) -> None:
        """Give a unit back."""
        fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, unit)

    def close(self) -> None:
        """Give everything back."""
        os.close(self._fd)


class RequestCache:
    """Replies and vectors by the digest of model and request. SQLite in WAL mode, JSON and f32 blobs, no pickle.

    Within a process, equal requests in flight share one call (single flight).
    """

    def __init__(self, path: Path) -> None:
        """Open or make the cache.

        Raises:
            UserError: if the file is not such a cache or cannot be opened.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        try:
            self._db = sqlite3.connect(path, timeout=120, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute("CREATE TABLE IF NOT EXISTS replies (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID")
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, tokens INT, value BLOB) WITHOUT ROWID"
            )
        except sqlite3.DatabaseError as error:
            raise UserError(f"{path}: not a usable request cache ({error}); move it away and run again") from None
        self._flights: dict[str, asyncio.Future[Any]] = {}

    async def reply(self, key: str, call: Callable[[], Awaitable[dict[str, Any]]]) -> tuple[dict[str, Any], bool]:
        """The reply to a request, and whether it was kept from before or shared with a call in flight.

        Args:
            key: digest of model and request.
            call: makes the reply as a JSON-able mapping; its exception is raised to every caller and nothing is kept.
        """
        known = self.get(key)
        if known is not None:
            return known, True
        flight = self._flights.get(key)
        if flight is not None:
            try:
                return await asyncio.shield(flight), True
            except asyncio.CancelledError:
                if not flight.cancelled():
                    raise
                return await self.reply(key, call)  # the one who made the call was cancelled: make it ourselves
        flight = asyncio.get_running_loop().create_future()
        self._flights[key] = flight
        try:
            value = await call()
        except asyncio.CancelledError:
            flight.cancel()
            raise
        except BaseException as error:
            flight.set_exception(error)
            flight.exception()  # mark as retrieved: there may be no second caller
            raise
        else:
            self.put(key, value)
            flight.set_result(value)
            return value, False
        finally:
            del self._flights[key]

    def get(self, key: str) -> dict[str, Any] | None:
        """A kept reply."""
        row = self._db.execute("SELECT value FROM replies WHERE key=?", (bytes.fromhex(key),)).fetchone()
        return None if row is None else json.loads(zlib.decompress(row[0]))

    def put(self, key: str, value: Mapping[str, Any]) -> None:
        """Keep a reply."""
        blob = zlib.compress(encode(value).encode(), 1)
        self._write("INSERT OR IGNORE INTO replies VALUES (?,?)", [(bytes.fromhex(key), blob)])

    def vectors(self, keys: list[str], width: int) -> dict[str, tuple[NDArray[np.float32], int]]:
        """Kept vectors of these keys: (width,) f32 and the tokens each cost."""
        import numpy as np

        found: dict[str, tuple[NDArray[np.float32], int]] = {}
        for start in range(0, len(keys), 500):
            block = [bytes.fromhex(key) for key in keys[start : start + 500]]
            marks = ",".join("?" * len(block))
            for key, tokens, value in self._db.execute(
                f"SELECT key, tokens, value FROM vectors WHERE key IN ({marks})", block
            ):
                vector = np.frombuffer(value, np.float32)
                if vector.shape == (width,):
                    found[key.hex()] = (vector, tokens)
        return found

    def put_vectors(self, rows: list[tuple[str, int, NDArray[np.float32]]]) -> None:
        """Keep vectors: (key, tokens, (width,) f32)."""
        self._write(
            "INSERT OR IGNORE INTO vectors VALUES (?,?,?)",
            [(bytes.fromhex(key), tokens, vector.tobytes()) for key, tokens, vector in rows],
        )

    def _write(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany(statement, rows)
            self._db.execute("COMMIT")
        except sqlite3.OperationalError as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            if "full" in str(error):
                raise UserError(f"{self.path}: the disk is full; free space and run the same command again") from error
            raise UserError(f"{self.path}: {error}; is another program holding the cache?") from error

    def close(self) -> None:
        """Close the database."""
        self._db.close()
