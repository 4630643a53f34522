"""The SQLite file: its schema, one transaction a write, and its refusals in clear words."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memharness.store import disk_error
from memharness.types import UserError

WAIT = 60.0  # seconds to wait for another process's write
VERSION = 1
APPLICATION = 0x6D656D65  # marks the file as this memory's, in SQLite's header

_REFUSALS = (sqlite3.Error, OverflowError, UnicodeError)

# `vector.version` only ever grows: a vector that is replaced or withdrawn (value NULL) takes a new one, so that what
# other processes changed is what lies beyond the version last seen. `words` indexes `said`, later than it is written:
# rows that are not indexed yet are those beyond the last one that is.
SCHEMA = """
CREATE TABLE asset (
    serial INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, session TEXT NOT NULL, place INT NOT NULL, turn INT NOT NULL,
    kind TEXT NOT NULL, sha256 TEXT, lost TEXT, mime TEXT NOT NULL, width INT NOT NULL, height INT NOT NULL,
    size INT NOT NULL, prompt TEXT NOT NULL, source TEXT NOT NULL, text TEXT NOT NULL, current INT NOT NULL,
    feedback TEXT, gallery INT NOT NULL, deleted INT NOT NULL, UNIQUE (session, place));
CREATE INDEX asset_by_content ON asset (sha256) WHERE sha256 IS NOT NULL;
CREATE INDEX asset_by_loss ON asset (lost) WHERE lost IS NOT NULL;
CREATE TABLE parent (
    child INT NOT NULL, place INT NOT NULL, parent TEXT NOT NULL, operation TEXT NOT NULL,
    PRIMARY KEY (child, place)) WITHOUT ROWID;
CREATE TABLE card (
    asset INT NOT NULL, writer TEXT NOT NULL, tags TEXT NOT NULL, description TEXT NOT NULL, palette TEXT NOT NULL,
    language TEXT NOT NULL, status TEXT NOT NULL, cost TEXT NOT NULL, facts TEXT NOT NULL,
    PRIMARY KEY (asset, writer)) WITHOUT ROWID;
CREATE TABLE space (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, width INT NOT NULL);
CREATE TABLE vector (
    version INTEGER PRIMARY KEY AUTOINCREMENT, asset INT NOT NULL, space INT NOT NULL, value BLOB,
    UNIQUE (space, asset));
CREATE TABLE event (
    serial INTEGER PRIMARY KEY, session TEXT NOT NULL, turn INT NOT NULL, type TEXT NOT NULL, payload TEXT NOT NULL);
CREATE INDEX event_by_session ON event (session);
CREATE TABLE said (
    number INTEGER PRIMARY KEY, asset INT NOT NULL, writer TEXT NOT NULL, content TEXT NOT NULL,
    UNIQUE (asset, writer));
CREATE VIRTUAL TABLE words USING fts5 (content, content='said', content_rowid='number')
"""


class Database:
    """One connection. Threads of a process take turns; processes take turns at writing, and reading waits for none."""

    def __init__(self, path: Path) -> None:
        """Open or make the file.

        Raises:
            UserError: if it cannot be opened, is no such memory, or was written by a later version.
        """
        self.path = path
        self._turn = threading.RLock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise disk_error(error, path.parent) from error
        try:
            self._db = sqlite3.connect(path, timeout=WAIT, isolation_level=None, check_same_thread=False)
            _use_wal(self._db)
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute("PRAGMA wal_autocheckpoint=2000")
        except sqlite3.Error as error:
            raise self._refusal(error) from error
        self._make()

    def _make(self) -> None:
        with self.writing():
            version, application = self.value("PRAGMA user_version"), self.value("PRAGMA application_id")
            if version == 0 and application == 0 and self.value("SELECT count(*) FROM sqlite_master") == 0:
                for statement in SCHEMA.split(";"):
                    self.run(statement)
                self.run(f"PRAGMA application_id={APPLICATION}")
                self.run(f"PRAGMA user_version={VERSION}")
            elif application != APPLICATION:
                raise UserError(f"{self.path}: a database of another program; name another folder")
            elif version != VERSION:
                raise UserError(f"{self.path}: of version {version}, and this memharness knows {VERSION}; upgrade it")

    def run(self, statement: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Execute one statement.

        Raises:
            UserError: if the database refuses.
        """
        try:
            return self._db.execute(statement, values)
        except _REFUSALS as error:
            raise self._refusal(error) from error

    def run_each(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute one statement for each row of values."""
        try:
            self._db.executemany(statement, rows)
        except _REFUSALS as error:
            raise self._refusal(error) from error

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows of a query."""
        with self._turn:
            try:
                return self._db.execute(statement, values).fetchall()
            except _REFUSALS as error:
                raise self._refusal(error) from error

    def value(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """The first column of a query's first row; None if there is no row."""
        rows = self.rows(statement, values)
        return rows[0][0] if rows else None

    def blocks(self, statement: str, values: Sequence[Any], size: int) -> Iterator[list[Any]]:
        """A query's rows, so many at a time; to be used inside `reading` or `writing`."""
        cursor = self.run(statement, values)
        while True:
            try:
                block = cursor.fetchmany(size)
            except sqlite3.Error as error:
                raise self._refusal(error) from error
            if not block:
                return
            yield block

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A view that no write of another process changes until the block ends."""
        with self._turn:
            if self._db.in_transaction:
                yield
                return
            self.run("BEGIN")
            try:
                yield
            finally:
                self.run("ROLLBACK")

    @contextmanager
    def writing(self, *, synced: bool = False) -> Iterator[None]:
        """One transaction, during which no other process writes. It is kept when the block ends, or nothing of it is.

        Args:
            synced: whether it must survive a power loss at once, since files go with it. Any other transaction
                survives the death of the process at once, and a power loss from the next checkpoint on.

        Raises:
            UserError: if the database refuses, or another process has been writing for `WAIT` seconds.
        """
        with self._turn:
            if synced:
                self.run("PRAGMA synchronous=FULL")
            try:
                self.run("BEGIN IMMEDIATE")
                try:
                    yield
                    self.run("COMMIT")
                except BaseException:
                    if self._db.in_transaction:
                        self.run("ROLLBACK")
                    raise
            finally:
                if synced:
                    self.run("PRAGMA synchronous=NORMAL")

    def close(self) -> None:
        """Close the connection."""
        with self._turn:
            self._db.close()

    def _refusal(self, error: Exception) -> UserError:
        said = str(error)
        if isinstance(error, sqlite3.ProgrammingError):
            return UserError(f"{self.path}: {said}; open the memory again")
        if isinstance(error, OverflowError | UnicodeError):
            return UserError(f"{self.path}: a value that cannot be kept ({said})")
        if "full" in said:
            return UserError(f"{self.path}: the disk is full; free space and do it again: what was committed is kept")
        if "locked" in said or "busy" in said:
            return UserError(f"{self.path}: another process has been writing for {WAIT:.0f} s; wait for it to end")
        if "fts5" in said and "no such module" in said:
            return UserError(f"{self.path}: this Python's SQLite {sqlite3.sqlite_version} has no FTS5; take another")
        if "not a database" in said or "malformed" in said or "no such table" in said:
            return UserError(f"{self.path}: not a usable memory ({said}); take back a copy or an export of it")
        return UserError(f"{self.path}: {said}; mend that and do it again: what was committed is kept")


def _use_wal(db: sqlite3.Connection) -> None:
    """Switch to write-ahead logging. Where several processes make the file at once, SQLite refuses without waiting."""
    deadline = time.monotonic() + WAIT
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
