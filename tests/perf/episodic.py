"""Episodic memory at 100,000 assets: inserts a second, a transaction each, and exact top-10 beside numpy, in one run.

Run: python tests/perf/episodic.py [ASSETS]
"""

from __future__ import annotations

import os
import sys

# These two variables pin OpenBLAS to a kernel and a cache size that need not be this machine's; OpenBLAS reads them
# when numpy is first imported, so the script starts itself again without them.
_PINS = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
if any(pin in os.environ for pin in _PINS):
    os.execve(sys.executable, [sys.executable, *sys.argv], {k: v for k, v in os.environ.items() if k not in _PINS})

import platform  # noqa: E402
import resource  # noqa: E402
import sqlite3  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable  # noqa: E402
from dataclasses import dataclass  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402
import threadpoolctl  # type: ignore[import-untyped]  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from memharness.episodic import EpisodicMemory  # noqa: E402

WIDTH, K, A_SESSION, QUERIES, ROUNDS, TURN = 512, 10, 40, 8, 15, 1000
INSERTS, RATIO = 5000, 1.3  # wanted: at least so many a second, at most so many times numpy

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Measured:
    """What came of a run: assets and vectors a second, seconds a query, memory in bytes, and whether ids agreed."""

    inserts: float
    busy: float  # assets a second of processor time
    bare: float  # rows a second of plain sqlite3
    with_words: float
    vectors: float
    ours: float
    numpy: float
    held: int
    blocks: float  # seconds a query, where the vectors are too many to be held
    blocks_held: int
    peak: int
    agreed: bool


def top(vectors: Floats, query: Floats, k: int) -> list[int]:
    """The raw matrix: one product, the k-th largest, and what is not below it, sorted."""
    scores = vectors @ query
    found = np.flatnonzero(scores >= np.partition(scores, -k)[-k])
    return [int(at) for at in found[np.lexsort((found, -scores[found]))][:k]]


def resident() -> int:
    """Bytes of this process's memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def plain(path: Path) -> sqlite3.Connection:
    """A table as bare as can be, with the same promises: a log, and a transaction each."""
    db = sqlite3.connect(path, isolation_level=None)
    for statement in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL", "PRAGMA wal_autocheckpoint=2000"):
        db.execute(statement)
    db.execute("CREATE TABLE asset (serial INTEGER PRIMARY KEY, id TEXT UNIQUE, session TEXT, place INT, turn INT)")
    return db


def insert(memory: EpisodicMemory, db: sqlite3.Connection, assets: int) -> tuple[float, float, float]:
    """Assets a second, and a second of processor time, and rows a second of plain sqlite3: in turns of a thousand."""
    seconds, busy, bare = 0.0, 0.0, 0.0
    for start in range(0, assets, TURN):
        numbers = range(start, min(start + TURN, assets))
        clock, processor = time.perf_counter(), time.process_time()
        for number in numbers:
            memory.add(None, session=f"s{number // A_SESSION}", turn=number % A_SESSION, id=f"a{number}")
        seconds, busy = seconds + time.perf_counter() - clock, busy + time.process_time() - processor
        clock = time.perf_counter()
        for number in numbers:
            db.execute("BEGIN IMMEDIATE")
            row = (f"a{number}", f"s{number // A_SESSION}", number % A_SESSION, number % A_SESSION)
            db.execute("INSERT INTO asset (id, session, place, turn) VALUES (?,?,?,?)", row)
            db.execute("COMMIT")
        bare += time.perf_counter() - clock
    db.close()
    return assets / seconds, assets / busy, assets / bare


def measure(folder: Path, assets: int, rounds: int = ROUNDS) -> Measured:
    """Fill a memory, then ask it and numpy in turns."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((assets, WIDTH), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    queries = rng.standard_normal((QUERIES, WIDTH), dtype=np.float32)
    with EpisodicMemory.open(folder / "words") as memory:
        some = max(1, assets // 10)
        start = time.perf_counter()
        for number in range(some):
            memory.add(None, session=f"s{number // A_SESSION}", prompt=f"a red cube of size {number} on a table")
        with_words = some / (time.perf_counter() - start)
    with EpisodicMemory.open(folder / "memory") as memory:
        inserts, busy, bare = insert(memory, plain(folder / "bare.sqlite"), assets)
        start = time.perf_counter()
        for number in range(assets):
            memory.put_vector(f"a{number}", "random", vectors[number])
        added = assets / (time.perf_counter() - start)
    before = resident()
    with EpisodicMemory.open(folder / "memory", create=False) as memory:  # as another process would find it

        def ask() -> list[list[int]]:
            return [[int(asset.id[1:]) for asset, _ in memory.search("random", query, K)] for query in queries]

        ways: dict[str, Callable[[], list[list[int]]]] = {
            "memharness": ask,
            "numpy": lambda: [top(vectors, query, K) for query in queries],
        }
        answers = {name: way() for name, way in ways.items()}  # the first search reads the vectors
        held = resident() - before
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, way in ways.items():
                start = time.perf_counter()
                way()
                seconds[name].append((time.perf_counter() - start) / QUERIES)
        assert not memory.check()
    with EpisodicMemory.open(folder / "memory", create=False, cache=0) as memory:
        before = resident()
        start = time.perf_counter()
        from_disk = [int(asset.id[1:]) for asset, _ in memory.search("random", queries[0], K)]
        blocks, blocks_held = time.perf_counter() - start, resident() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    ours, numpy = min(seconds["memharness"]), min(seconds["numpy"])
    return Measured(
        inserts=inserts,
        busy=busy,
        bare=bare,
        with_words=with_words,
        vectors=added,
        ours=ours,
        numpy=numpy,
        held=held,
        blocks=blocks,
        blocks_held=blocks_held,
        peak=peak,
        agreed=answers["memharness"] == answers["numpy"] and from_disk == answers["numpy"][0],
    )


def main() -> int:
    """Print machine, versions and figures side by side; return 0 if they are as wanted."""
    assets = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), assets)
    raw = assets * WIDTH * 4
    ratio = found.ours / found.numpy
    print(f"machine    {platform.machine()}, {os.cpu_count()} CPUs, {platform.platform()}")
    print(f"versions   Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, numpy {np.__version__}")
    for pool in threadpoolctl.threadpool_info():
        kernel = pool.get("architecture", "")
        print(f"pool       {pool['internal_api']} {pool['version']} {kernel}, {pool['num_threads']} threads")
    print(f"assets     {assets:,} without pictures, vectors of {WIDTH} float32; a transaction each")
    print(f"inserts    {found.inserts:,.0f} a second (at least {INSERTS:,} wanted)")
    print(f"           {found.busy:,.0f} a second of processor time (load {os.getloadavg()[0]:.1f})")
    print(
        f"           {found.bare:,.0f} a second of plain sqlite3, in turns: {found.bare / found.inserts:.2f} times ours"
    )
    print(f"           {found.with_words:,.0f} a second with a prompt that is indexed")
    print(f"vectors    {found.vectors:,.0f} a second")
    print(f"memory     {found.held / 2**20:.0f} MiB more once searched, for {raw / 2**20:.0f} MiB of vectors")
    print(f"           {found.blocks_held / 2**20:.0f} MiB more read in blocks, {found.blocks * 1e3:.0f} ms a query")
    print(f"           {found.peak / 2**20:.0f} MiB at the peak, numpy's own {raw / 2**20:.0f} MiB and check included")
    print(f"exact top-{K} memharness {found.ours * 1e3:.2f} ms, numpy {found.numpy * 1e3:.2f} ms")
    print(f"ids equal to numpy's: {found.agreed}")
    print(f"ratio      {ratio:.2f} (at most {RATIO} wanted)")
    return 0 if ratio <= RATIO and found.inserts >= INSERTS and found.agreed else 1


if __name__ == "__main__":
    raise SystemExit(main())
