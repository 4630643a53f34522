"""Four processes, kill -9, a full disk, a disk that refuses: nothing committed is lost, and what is kept is found."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memharness.episodic import Asset, EpisodicMemory
from memharness.episodic.database import Database
from memharness.types import UserError
from tests.episodic.pictures import noise, numbered
from tests.episodic.writer import holds, write

ROOT = Path(__file__).resolve().parents[2]
SWEPT = {"orphan file", "half-written file"}  # what a kill may leave, and repair removes

Writer = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def writer(folder: Path, tmp_path: Path) -> Iterator[Writer]:
    """Starts a process that writes; what is left of it is ended after the test."""
    begun: list[subprocess.Popen[str]] = []

    def start(who: int, first: int, last: int, limit: int | None = None) -> subprocess.Popen[str]:
        def limited() -> None:
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        command = [sys.executable, "-m", "tests.episodic.writer", folder, tmp_path / f"acks{who}", who, first, last]
        begun.append(
            subprocess.Popen(
                [str(word) for word in command],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                preexec_fn=limited,
            )
        )
        return begun[-1]

    yield start
    for child in begun:
        if child.poll() is None:
            child.kill()
        child.communicate()


def acked(tmp_path: Path, who: int) -> int:
    """How many writes a process has said to be done."""
    path = tmp_path / f"acks{who}"
    return path.stat().st_size if path.exists() else 0


def counted(memory: EpisodicMemory) -> None:
    """What is kept is what queries reach."""
    kept = memory._db.value("SELECT count(*) FROM vector WHERE value IS NOT NULL")
    assert len(memory.search("x", np.ones(8), 100_000)) == kept
    tagged = memory._db.value("SELECT count(*) FROM said WHERE writer=''")
    assert len(memory.match("number", 100_000)) == tagged


def test_four_processes_of_500_writes_each_are_killed_and_go_on(folder: Path, tmp_path: Path, writer: Writer) -> None:
    writers = [writer(who, 0, 500) for who in range(4)]
    deadline = time.monotonic() + 200
    left = dict(enumerate(writers))
    while left and time.monotonic() < deadline:  # at different times, so that others are writing
        for who, child in list(left.items()):
            if acked(tmp_path, who) >= 60 + 40 * who:
                left.pop(who).send_signal(signal.SIGKILL)
                assert child.wait() == -signal.SIGKILL
        time.sleep(0.001)
    assert not left
    done = [acked(tmp_path, who) for who in range(4)]
    assert all(0 < count < 500 for count in done)
    with EpisodicMemory.open(folder, create=False) as memory:
        assert {finding.kind for finding in memory.check()} <= SWEPT
        assert all(finding.mended for finding in memory.repair())
        assert memory.check() == []
        for who in range(4):
            holds(memory, who, done[who])
        counted(memory)
    writers = [writer(who, done[who], 500) for who in range(4)]
    for child in writers:
        out, err = child.communicate(timeout=200)
        assert child.returncode == 0, out + err
    with EpisodicMemory.open(folder, create=False) as memory:
        assert memory.check() == []
        for who in range(4):
            holds(memory, who, 500)
        counted(memory)
        assert [asset.index for asset in memory.assets("all", deleted=True)] == list(range(400))


def test_a_picture_is_on_the_disk_before_the_row_that_names_it(
    memory: EpisodicMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power loss cannot be had in a test; the order of what prevents its harm can."""
    done: list[str] = []
    fsync, replace, run = os.fsync, Path.replace, Database.run

    def watched_fsync(handle: int) -> None:
        done.append("sync " + Path(os.readlink(f"/proc/self/fd/{handle}")).name)
        fsync(handle)

    def watched_replace(path: Path, target: Path) -> Path:
        done.append(f"name {target.name}")
        return replace(path, target)

    def watched_run(db: Database, statement: str, values: Any = ()) -> Any:
        if statement.startswith(("BEGIN", "COMMIT", "PRAGMA")):
            done.append(statement)
        return run(db, statement, values)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(Path, "replace", watched_replace)
    monkeypatch.setattr(Database, "run", watched_run)
    asset = memory.add(numbered(1), session="s")
    name, short = f"{asset.sha256}.png", str(asset.sha256)[:2]
    begin, end = ["PRAGMA synchronous=FULL", "BEGIN IMMEDIATE"], ["COMMIT", "PRAGMA synchronous=NORMAL"]
    half = done.pop(2)
    assert half.startswith(f"sync .{name}.") and half.endswith(".tmp")
    folders = [f"sync {short}", "sync assets", f"sync {memory.folder.name}"]
    assert done == [*begin, f"name {name}", *folders, f"name {asset.sha256}-64.webp", *end]
    done.clear()
    memory.delete(asset.id)  # synced before the file goes, which is a transaction of its own
    assert done == [*begin, *end, "BEGIN IMMEDIATE", "COMMIT"]


# --------------------------------------------------------------------------------------------- killed at every step


def at_each_step(monkeypatch: pytest.MonkeyPatch, tick: Callable[[], None], *, statements: bool) -> None:
    """Have `tick` called before each thing that is done to the disk."""

    def watch(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def watched(*words: Any, **more: Any) -> Any:
            tick()
            return real(*words, **more)

        monkeypatch.setattr(owner, name, watched)

    for owner, name in ((os, "fsync"), (Path, "replace"), (Path, "mkdir"), (Path, "unlink"), (Path, "open")):
        watch(owner, name)
    if statements:
        watch(Database, "run")


def forked(action: Callable[[], None]) -> int:
    """Run something in a process of its own, which no SQLite connection may outlive; its exit status."""
    child = os.fork()
    if child == 0:
        try:
            action()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def changes(memory: EpisodicMemory) -> dict[str, Callable[[], Any]]:
    """Writes that touch files."""
    return {
        "add": lambda: memory.add(numbered(7), session="s", id="new", prompt="new"),
        "delete": lambda: memory.delete("old"),
        "delete one of two": lambda: memory.delete("twin"),
    }


def prepared(folder: Path) -> None:
    """A memory with three assets, two of which share a picture."""
    with EpisodicMemory.open(folder, edge=16) as memory:
        memory.add(numbered(1), session="s", id="old", prompt="old")
        memory.add(numbered(2), session="s", id="one")
        memory.add(numbered(2), session="s", id="twin")
        memory.put_vector("old", "x", np.ones(8))


def states(memory: EpisodicMemory) -> tuple[Any, ...]:
    """All that can be asked."""
    assets = memory.assets(deleted=True)
    pictures = [memory.original(asset) for asset in assets if asset.sha256 and not asset.deleted]
    return assets, pictures, memory.search("x", np.ones(8), 9), memory.match("old new", 9)


@pytest.mark.parametrize("change", ["add", "delete", "delete one of two"])
def test_killed_at_any_step_it_is_as_before_or_as_after(
    tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared(tmp_path / "before")
    shutil.copytree(tmp_path / "before", tmp_path / "after")
    with EpisodicMemory.open(tmp_path / "before", edge=16) as memory:
        before = states(memory)
    with EpisodicMemory.open(tmp_path / "after", edge=16) as memory:
        changes(memory)[change]()
        after = states(memory)
    assert before != after
    seen, step = set(), 0
    while True:
        step += 1
        place = tmp_path / f"step{step}"
        shutil.copytree(tmp_path / "before", place)

        def killed(place: Path = place, step: int = step) -> None:
            left = step

            def tick() -> None:
                nonlocal left
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

            with EpisodicMemory.open(place, edge=16) as memory:
                at_each_step(monkeypatch, tick, statements=True)
                changes(memory)[change]()

        status = forked(killed)
        with EpisodicMemory.open(place, edge=16) as memory:
            assert {finding.kind for finding in memory.check()} <= SWEPT
            memory.repair()
            assert memory.check() == []
            assert states(memory) in (before, after)
            seen.add(states(memory) == after)
            changes(memory)[change]()
            assert states(memory) == after and memory.check() == []
        shutil.rmtree(place)
        if status == 0:
            break
        assert os.WTERMSIG(status) == signal.SIGKILL
    assert step > 5 and seen == {False, True}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES])
@pytest.mark.parametrize("change", ["add", "delete", "delete one of two"])
def test_refused_at_any_step_nothing_is_lost_and_it_can_be_done_again(tmp_path: Path, change: str, number: int) -> None:
    prepared(tmp_path / "before")
    step, refusals = 0, 0
    while True:
        step += 1
        place = tmp_path / f"step{step}"
        shutil.copytree(tmp_path / "before", place)
        left = step
        with EpisodicMemory.open(place, edge=16) as memory, pytest.MonkeyPatch.context() as patch:
            before = states(memory)

            def tick() -> None:
                nonlocal left
                left -= 1
                if left == 0:
                    raise OSError(number, os.strerror(number))

            at_each_step(patch, tick, statements=False)
            try:
                changes(memory)[change]()
            except UserError as error:
                refusals += 1
                assert ("the disk is full" if number == errno.ENOSPC else os.strerror(number)) in str(error)
                patch.undo()
                if change == "add":
                    assert states(memory) == before
                assert {finding.kind for finding in memory.check()} <= SWEPT
                memory.repair()
            else:
                patch.undo()
            assert memory.check() == []
            changes(memory)[change]()
            expected = {"add": ("new", False), "delete": ("old", True), "delete one of two": ("twin", True)}[change]
            assert memory.asset(expected[0]).deleted is expected[1]
            assert memory.check() == []
        shutil.rmtree(place)
        if left > 0:  # the step lies beyond the last
            break
    assert refusals >= {"add": 4, "delete": 1, "delete one of two": 0}[change]


def test_a_commit_that_fails_leaves_neither_row_nor_file(
    memory: EpisodicMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Database.run

    def failing(db: Database, statement: str, values: Any = ()) -> Any:
        if statement == "COMMIT":
            monkeypatch.undo()
            raise UserError("the disk is full")
        return run(db, statement, values)

    monkeypatch.setattr(Database, "run", failing)
    with pytest.raises(UserError, match="the disk is full"):
        memory.add(numbered(1), session="s", id="a")
    assert memory.assets() == [] == memory.check()
    assert memory.original(memory.add(numbered(1), session="s", id="a")) == numbered(1)


# ---------------------------------------------------------------------------------------------------- full disks


@pytest.mark.parametrize("limit", [60_000, 150_000, 400_000])
def test_files_may_not_grow_beyond_a_limit(folder: Path, tmp_path: Path, writer: Writer, limit: int) -> None:
    EpisodicMemory.open(folder).close()
    child = writer(0, 0, 5000, limit)
    out, err = child.communicate(timeout=100)
    assert child.returncode == 3 and "memory.sqlite" in out, out + err
    done = acked(tmp_path, 0)
    with EpisodicMemory.open(folder, create=False) as memory:
        assert {finding.kind for finding in memory.check()} <= SWEPT
        memory.repair()
        assert memory.check() == []
        holds(memory, 0, done)
        write(memory, 0, done)  # with room again, it goes on
        holds(memory, 0, done + 1)
        assert memory.check() == []


def test_a_picture_larger_than_the_limit(folder: Path) -> None:
    def refused() -> None:
        with EpisodicMemory.open(folder, edge=16) as memory:
            big = noise((400, 400))
            memory.add(numbered(1), session="s", id="a")
            resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
            with pytest.raises(UserError, match="File too large"):
                memory.add(big, session="s", id="b")
            memory.add(numbered(2), session="s", id="c")

    assert len(noise((400, 400))) > 400_000
    assert forked(refused) == 0
    with EpisodicMemory.open(folder, edge=16) as memory:
        assert memory.check() == [] and [asset.id for asset in memory.assets()] == ["a", "c"]


def test_a_database_that_may_not_grow(memory: EpisodicMemory) -> None:
    memory._db.run("PRAGMA max_page_count=36")
    done = 0
    with pytest.raises(UserError, match=r"memory\.sqlite: the disk is full; free space and do it again"):
        for done in range(5000):
            write(memory, 0, done)
    assert done > 5
    holds(memory, 0, done)
    assert memory.check() == []  # no file is left by the write that failed
    memory._db.run("PRAGMA max_page_count=100000")
    write(memory, 0, done)
    holds(memory, 0, done + 1)
    assert memory.check() == []


# --------------------------------------------------------------------------------------------------- permissions


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A memory that anyone may read, under a folder that anyone may enter."""
    place = Path(tempfile.mkdtemp())
    place.chmod(0o777)
    prepared(place / "memory")
    yield place / "memory"
    for path in (place, *place.rglob("*")):
        with contextlib.suppress(OSError):
            path.chmod(0o777)
    shutil.rmtree(place)


def as_nobody(action: Callable[[], None]) -> int:
    """Run something as a user who owns nothing here."""

    def demoted() -> None:
        if os.getuid() == 0:
            os.setuid(65534)
        action()

    return forked(demoted)


def test_a_memory_that_may_not_be_written_is_refused_at_once(open_folder: Path) -> None:
    for path in (open_folder, *open_folder.rglob("*")):
        path.chmod(0o555)

    def refused() -> None:
        with pytest.raises(UserError, match=r"memory\.sqlite"):
            EpisodicMemory.open(open_folder).add(None, session="s")
        with pytest.raises(UserError, match="Permission denied"):
            EpisodicMemory.open(open_folder / "inside")

    assert as_nobody(refused) == 0


def test_pictures_that_may_not_be_written_leave_no_row(open_folder: Path) -> None:
    for path in (open_folder, *open_folder.glob("memory*")):
        path.chmod(0o777)
    for path in (open_folder / "assets", *(open_folder / "assets").glob("*")):
        path.chmod(0o555)

    def refused() -> None:
        with EpisodicMemory.open(open_folder, edge=16) as memory:
            before = states(memory)
            with pytest.raises(UserError, match=r"assets.*Permission denied; mend that"):
                memory.add(numbered(7), session="s", id="new")
            assert states(memory) == before and memory.check() == []
            memory.add(None, session="s", id="note")
            with pytest.raises(UserError, match="Permission denied"):
                memory.delete("old")  # the row goes, the file cannot
            assert memory.asset("old").deleted and memory.assets("s")[-1].id == "note"
            assert {finding.kind for finding in memory.check()} == {"orphan file"}

    assert as_nobody(refused) == 0
    with EpisodicMemory.open(open_folder, edge=16) as memory:
        assert {finding.kind for finding in memory.repair()} == {"orphan file"}
        assert memory.check() == [] and memory.assets("s")[-1].id == "note"


def test_a_thumbnail_that_cannot_be_kept_is_shown_all_the_same(open_folder: Path) -> None:
    for path in (open_folder, *open_folder.glob("memory*"), open_folder / "assets"):
        path.chmod(0o777)
    (open_folder / "thumbs").chmod(0o555)

    def shown() -> None:
        with EpisodicMemory.open(open_folder, edge=16) as memory:
            asset = memory.add(numbered(7), session="s", id="new")
            assert memory.thumbnail(asset)[:4] == b"RIFF" and memory.check() == []

    assert as_nobody(shown) == 0


# ------------------------------------------------------------------------------------------------------ at once


def test_processes_that_make_a_memory_at_once(folder: Path, tmp_path: Path, writer: Writer) -> None:
    children = [writer(who, 0, 5) for who in range(4)]
    for child in children:
        out, err = child.communicate(timeout=60)
        assert child.returncode == 0, out + err
    with EpisodicMemory.open(folder, create=False) as memory:
        for who in range(4):
            holds(memory, who, 5)
        assert memory.check() == []


def test_threads_of_one_process(memory: EpisodicMemory) -> None:
    failed: list[BaseException] = []

    def work(who: int) -> None:
        try:
            for n in range(40):
                write(memory, who, n)
                if n > 1:
                    memory.search("x", np.ones(8), 5)
                    memory.match("number", 5)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    for who in range(4):
        holds(memory, who, 40)
    counted(memory)
    assert memory.check() == []


def test_a_writer_that_does_not_end_is_said(folder: Path, memory: EpisodicMemory) -> None:
    with EpisodicMemory.open(folder) as other, memory._db.writing():
        other._db.run("PRAGMA busy_timeout=50")
        with pytest.raises(UserError, match="another process has been writing"):
            other.add(None, session="s")
        assert other.assets() == []  # reading waits for nobody


def test_a_row_is_never_without_its_file_while_others_write(folder: Path, tmp_path: Path, writer: Writer) -> None:
    children = [writer(who, 0, 60) for who in range(2)]
    looks, seen = 0, []
    with EpisodicMemory.open(folder, edge=16) as memory:
        while any(child.poll() is None for child in children):
            for asset in memory.assets():
                with contextlib.suppress(UserError):  # deleted since
                    memory.original(asset)
                    continue
                seen.append(asset)
            looks += 1
        gone = {asset.id for asset in memory.assets(deleted=True) if asset.deleted}
        assert looks > 3 and {asset.id for asset in seen} <= gone
        assert memory.check() == []
    assert all(isinstance(asset, Asset) for asset in seen)
