"""What was written survives kills, torn lines, other processes and impatient callers."""

from __future__ import annotations

import ast
import asyncio
import errno
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memharness.store import (
    Appender,
    Claims,
    RequestCache,
    atomic,
    disk_error,
    document,
    encode,
    read_lines,
    write_atomic,
)
from memharness.types import DataError, UserError

ROOT = Path(__file__).resolve().parents[1]
KEY, OTHER = "00" * 32, "ff" * 32


def python(code: str, *words: str | Path) -> subprocess.Popen[str]:
    """Another process that runs a few lines."""
    command = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def heard(process: subprocess.Popen[str]) -> str:
    """The next line a process says."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


# ---------------------------------------------------------------------------------------------------------- JSON lines


def test_lines_come_back_with_their_offsets(tmp_path: Path) -> None:
    file = Appender(tmp_path / "deep" / "a.jsonl")
    lines: list[dict[str, Any]] = [{"a": 1}, {"b": "é\n\u2028"}, {"c": [None, 0.5]}]
    for line in lines:
        file.add(line)
    found = list(read_lines(file.path))  # before it is closed: a line is on its way at once
    assert [value for _, value in found] == lines
    raw = file.path.read_bytes()
    assert [json.loads(raw[offset:].split(b"\n")[0]) for offset, _ in found] == lines
    file.sync()
    file.close()


def test_an_appender_goes_on_where_another_stopped(tmp_path: Path) -> None:
    for at in range(3):
        file = Appender(tmp_path / "a.jsonl")
        file.add({"at": at})
        file.close()
    assert [value["at"] for _, value in read_lines(tmp_path / "a.jsonl")] == [0, 1, 2]


def test_what_json_has_no_form_for() -> None:
    value = {"i": np.int64(3), "f": np.float32(0.5), "a": np.arange(2), "s": {2, 1}, "t": (1,), "b": np.bool_(True)}
    assert json.loads(encode(value)) == {"i": 3, "f": 0.5, "a": [0, 1], "s": [1, 2], "t": [1], "b": True}
    with pytest.raises(TypeError, match="object cannot be written as JSON"):
        encode({"x": object()})


def test_half_a_surrogate_is_kept() -> None:
    assert json.loads(encode({"a": "\ud83d"}).encode()) == {"a": "\ud83d"}
    assert json.loads(document({"a": "\ud83d"}).encode()) == {"a": "\ud83d"}
    assert document({"a": "é"}) == '{\n "a": "é"\n}\n'


@pytest.mark.parametrize("tail", [b'{"b":', b'{"b":2', b"\xff\xfe", b'{"b": 2}}\n', b"\0\0\0\0"])
def test_a_torn_last_line_is_dropped_and_said(tmp_path: Path, tail: bytes) -> None:
    path = tmp_path / "w1.jsonl"
    path.write_bytes(b'{"a":1}\n' + tail)
    torn: list[str] = []
    assert [value for _, value in read_lines(path, torn)] == [{"a": 1}]
    assert torn == ["w1.jsonl"]
    assert [value for _, value in read_lines(path)] == [{"a": 1}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a":1}\n{"b":\n{"c":3}\n', "a.jsonl: line 2: not JSON; the file was changed"),
        ('{"a":1}\n\n{"c":3}\n', "a.jsonl: line 2: not JSON"),
        ('{"a":1}\n[2]\n', "a.jsonl: line 2: expected an object"),
        ('3\n{"a":1}\n', "a.jsonl: line 1: expected an object"),
    ],
)
def test_any_other_bad_line_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.jsonl").write_text(text)
    torn: list[str] = []
    with pytest.raises(DataError, match=message):
        list(read_lines(tmp_path / "a.jsonl", torn))
    assert not torn


@settings(max_examples=60)
@given(
    st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3), min_size=1, max_size=5), st.data()
)
def test_a_file_cut_anywhere_holds_its_whole_lines(
    tmp_path_factory: pytest.TempPathFactory, lines: list[dict[str, str]], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("cut") / "a.jsonl"
    raw = b"".join(encode(line).encode() + b"\n" for line in lines)
    cut = data.draw(st.integers(0, len(raw)))
    path.write_bytes(raw[:cut])
    torn: list[str] = []
    found = [value for _, value in read_lines(path, torn)]
    whole = raw[:cut].count(b"\n")
    assert found[:whole] == lines[:whole]
    assert len(found) - whole in (0, 1)  # a line that lacks only its line feed is whole
    assert len(torn) <= 1


def test_a_kill_loses_no_line_that_was_added(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from memharness.store import Appender
file = Appender(Path(sys.argv[1]))
for at in range(1000):
    file.add({"at": at})
print("all", flush=True)
sys.stdin.read()
"""
    process = python(code, tmp_path / "a.jsonl")
    assert heard(process) == "all"
    process.kill()
    process.wait()
    assert [value["at"] for _, value in read_lines(tmp_path / "a.jsonl")] == list(range(1000))


class Full:
    """A file on a disk with room for a few more bytes."""

    def __init__(self, file: Any, room: int) -> None:
        """Wrap a raw file."""
        self.file, self.room = file, room

    def write(self, data: bytes) -> int:
        """Write what there is room for; then refuse."""
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = min(self.room, len(data), 7)
        self.room -= taken
        return int(self.file.write(data[:taken]))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


def test_a_full_disk_leaves_whole_lines(tmp_path: Path) -> None:
    file = Appender(tmp_path / "a.jsonl")
    file.add({"a": 1})
    file._file = Full(file._file, 20)  # type: ignore[assignment]
    file.add({"b": 2})  # written in pieces
    with pytest.raises(UserError, match=r"a.jsonl: the disk is full; free space and run the same command again"):
        file.add({"c": "x" * 50})
    assert file.path.read_bytes() == b'{"a":1}\n{"b":2}\n'


# ------------------------------------------------------------------------------------------------------- atomic files


def test_a_file_is_as_before_or_whole(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "summary.json"
    write_atomic(path, "one")
    with pytest.raises(ZeroDivisionError), atomic(path) as file:
        file.write("half of tw")
        file.flush()
        raise ZeroDivisionError
    assert path.read_text() == "one"
    with atomic(path) as file:
        file.write("two")
        assert path.read_text() == "one"
    assert path.read_text() == "two"
    assert os.listdir(path.parent) == ["summary.json"]


def test_what_refuses_to_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "file" / "a.json", tmp_path / "folder"):
        with pytest.raises(UserError, match=f"{path}: .*; mend that and run the same command again"):
            write_atomic(path, "x")
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_said_in_words(number: int) -> None:
    assert "the disk is full" in str(disk_error(OSError(number, "?"), Path("a")))


# -------------------------------------------------------------------------------------------------------------- claims

CLAIM = """
import sys
from pathlib import Path
from memharness.store import Claims
claims = Claims(Path(sys.argv[1]))
print(*(claims.take(int(unit)) for unit in sys.argv[2:]), flush=True)
sys.stdin.readline()
"""


def test_a_unit_is_claimed_once_and_freed_by_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "claims.lock"
    mine = Claims(path)
    far = (1 << 52) + 7  # a context of a million units and many contexts still have ranges of their own
    assert mine.take(1)
    assert mine.take(far)
    other = python(CLAIM, path, "0", "1", "2", str(far))
    assert heard(other) == "True False True False"
    assert not mine.take(0)
    assert not mine.take(2)
    assert mine.take(1)  # one's own again
    other.kill()
    other.wait()
    assert mine.take(0)
    mine.give(1)
    third = python(CLAIM, path, "0", "1", "2")
    assert heard(third) == "False True True"
    third.communicate("\n", timeout=30)
    mine.close()
    fourth = python(CLAIM, path, "0", "1")
    assert heard(fourth) == "True True"
    fourth.communicate("\n", timeout=30)


def test_many_processes_share_units_without_overlap(tmp_path: Path) -> None:
    units = [str(unit) for unit in range(200)]
    workers = [python(CLAIM, tmp_path / "claims.lock", *units) for _ in range(3)]
    took = [[word == "True" for word in heard(worker).split()] for worker in workers]
    for worker in workers:
        worker.communicate("\n", timeout=30)
    assert all(sum(column) == 1 for column in zip(*took, strict=True))


# ------------------------------------------------------------------------------------------------------- request cache


@pytest.fixture
def cache(tmp_path: Path) -> RequestCache:
    """An empty cache."""
    return RequestCache(tmp_path / "cache" / "requests.sqlite")


class Caller:
    """A call that waits to be told, and counts how often it was made."""

    def __init__(self, error: Exception | None = None) -> None:
        """Return a number, or raise."""
        self.go, self.made, self.error = asyncio.Event(), 0, error

    async def __call__(self) -> dict[str, Any]:
        """The number of this call."""
        self.made += 1
        made = self.made
        await self.go.wait()
        if self.error:
            raise self.error
        return {"text": "é", "made": made}


async def started(call: Callable[[], Awaitable[Any]]) -> asyncio.Task[Any]:
    """A task that has come to its first wait."""
    task = asyncio.ensure_future(call())
    for _ in range(3):
        await asyncio.sleep(0)
    return task


async def test_a_reply_is_kept(cache: RequestCache) -> None:
    call = Caller()
    call.go.set()
    assert await cache.reply(KEY, call) == ({"text": "é", "made": 1}, False)
    assert await cache.reply(KEY, call) == ({"text": "é", "made": 1}, True)
    assert cache.get(OTHER) is None
    cache.close()
    assert RequestCache(cache.path).get(KEY) == {"text": "é", "made": 1}


async def test_the_first_reply_stays(cache: RequestCache) -> None:
    cache.put(KEY, {"n": 1})
    cache.put(KEY, {"n": 2})
    assert cache.get(KEY) == {"n": 1}


async def test_equal_requests_in_flight_share_one_call(cache: RequestCache) -> None:
    call, other = Caller(), Caller()
    tasks = [await started(lambda: cache.reply(KEY, call)) for _ in range(5)]
    apart = await started(lambda: cache.reply(OTHER, other))
    call.go.set()
    other.go.set()
    replies = await asyncio.gather(*tasks)
    await apart
    assert (call.made, other.made) == (1, 1)
    assert [hit for _, hit in replies] == [False, True, True, True, True]
    assert all(value == replies[0][0] for value, _ in replies)


async def test_when_the_first_caller_is_cancelled_another_makes_the_call(cache: RequestCache) -> None:
    call = Caller()
    first, second, third = [await started(lambda: cache.reply(KEY, call)) for _ in range(3)]
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    await asyncio.sleep(0.01)
    call.go.set()
    assert sorted(hit for _, hit in await asyncio.gather(second, third)) == [False, True]
    assert call.made == 2
    assert cache.get(KEY) == {"text": "é", "made": 2}


async def test_a_cancelled_second_caller_leaves_the_call_alone(cache: RequestCache) -> None:
    call = Caller()
    first, second, third = [await started(lambda: cache.reply(KEY, call)) for _ in range(3)]
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    call.go.set()
    assert [hit for _, hit in await asyncio.gather(first, third)] == [False, True]
    assert call.made == 1


async def test_a_failure_is_everyones_and_is_not_kept(cache: RequestCache) -> None:
    call = Caller(ZeroDivisionError("no"))
    tasks = [await started(lambda: cache.reply(KEY, call)) for _ in range(3)]
    call.go.set()
    assert [str(error) for error in await asyncio.gather(*tasks, return_exceptions=True)] == ["no"] * 3
    assert call.made == 1
    call.error = None
    assert await cache.reply(KEY, call) == ({"text": "é", "made": 2}, False)


async def test_a_lonely_failure_leaves_no_unheard_exception(cache: RequestCache) -> None:
    unheard: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: unheard.append(context))
    call = Caller(ZeroDivisionError("no"))
    call.go.set()
    with pytest.raises(ZeroDivisionError):
        await cache.reply(KEY, call)
    await asyncio.sleep(0)
    assert not unheard


@settings(max_examples=30)
@given(st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=20))
def test_vectors_come_back_bit_for_bit(tmp_path_factory: pytest.TempPathFactory, values: list[float]) -> None:
    cache = RequestCache(tmp_path_factory.mktemp("v") / "requests.sqlite")
    vector = np.array(values, np.float32)
    cache.put_vectors([(KEY, 7, vector)])
    (found, tokens) = cache.vectors([KEY, OTHER], len(vector))[KEY]
    assert found.dtype == np.float32
    assert found.tobytes() == vector.tobytes()
    assert tokens == 7
    assert not cache.vectors([KEY], len(vector) + 1)  # another width is another model's
    cache.close()


def test_many_vectors_are_looked_up_in_blocks(cache: RequestCache) -> None:
    keys = [f"{n:064x}" for n in range(1201)]
    cache.put_vectors([(key, n, np.full(3, n, np.float32)) for n, key in enumerate(keys)])
    found = cache.vectors(keys, 3)
    assert len(found) == 1201
    assert all(found[key][1] == n == found[key][0][0] for n, key in enumerate(keys))
    assert cache.vectors([], 3) == {}


WRITE = """
import sys
from pathlib import Path
from memharness.store import RequestCache
cache, start = RequestCache(Path(sys.argv[1])), int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
for n in range(start, start + 100):
    cache.put(f"{n:064x}", {"n": n, "by": start})
"""


def test_two_processes_on_one_cache(cache: RequestCache) -> None:
    writers = [python(WRITE, cache.path, str(start)) for start in (0, 50)]
    assert [heard(writer) for writer in writers] == ["ready", "ready"]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    assert [writer.wait(60) for writer in writers] == [0, 0]
    kept = [cache.get(f"{n:064x}") or {} for n in range(150)]
    assert [value.get("n") for value in kept] == list(range(150))
    assert {value["by"] for value in kept[:50]} == {0}
    assert {value["by"] for value in kept[100:]} == {50}


def test_a_file_that_is_no_cache_is_named(tmp_path: Path) -> None:
    path = tmp_path / "requests.sqlite"
    path.write_bytes(b"something else that is longer than a header" * 100)
    with pytest.raises(UserError, match=r"requests.sqlite: not a usable request cache .*; move it away"):
        RequestCache(path)


# ------------------------------------------------------------------------------------------------------------ no pickle

LOADERS = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}


def test_no_module_reads_or_writes_pickles() -> None:
    files = [
        file for folder in ("memharness", "benchmarks", "methods", "readers") for file in (ROOT / folder).rglob("*.py")
    ]
    assert len(files) > 60
    for file in files:
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            assert not LOADERS & {name.partition(".")[0] for name in names}, file
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "load":
                words = {word.arg: ast.unparse(word.value) for word in node.keywords}
                assert words.get("allow_pickle", "False") == "False", file
                assert ast.unparse(node.func) != "torch.load" or words.get("weights_only") == "True", file
