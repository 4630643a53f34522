"""Exact top-200 of 1,044 queries over 11,034 vectors of 384: this harness, plain numpy and faiss, in one run.

Run: python tests/perf/retrieval.py
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
import time  # noqa: E402
from collections.abc import Callable  # noqa: E402

import faiss  # noqa: E402
import numpy as np  # noqa: E402
import threadpoolctl  # type: ignore[import-untyped]  # noqa: E402

from memharness.retrieval import top_k  # noqa: E402

ITEMS, QUERIES, WIDTH, K, ROUNDS = 11_034, 1_044, 384, 200, 15
WANTED = 1.2


def plain(queries: np.ndarray, vectors: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Search with one matrix product and `argpartition`, sorted."""
    scores = queries @ vectors.T
    ids = np.argpartition(scores, -k, axis=1)[:, -k:]
    best = np.take_along_axis(scores, ids, axis=1)
    order = np.argsort(-best, axis=1)
    return np.take_along_axis(ids, order, axis=1), np.take_along_axis(best, order, axis=1)


def main() -> int:
    """Print the best of 15 interleaved rounds; return 0 if within 1.2 times the better of numpy and faiss."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((ITEMS, WIDTH), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    queries = vectors[rng.integers(0, ITEMS, QUERIES)] + 0.05 * rng.standard_normal((QUERIES, WIDTH), dtype=np.float32)
    index = faiss.IndexFlatIP(WIDTH)
    index.add(vectors)
    ways: dict[str, Callable[[], object]] = {
        "memharness": lambda: top_k(queries, vectors, K),
        "numpy": lambda: plain(queries, vectors, K),
        "faiss": lambda: index.search(queries, K),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            seconds[name].append(time.perf_counter() - start)
    best = {name: min(times) for name, times in seconds.items()}
    ratio = best["memharness"] / min(best["numpy"], best["faiss"])
    agree = np.mean(top_k(queries, vectors, K)[0] == plain(queries, vectors, K)[0])

    print(f"machine    {platform.machine()}, {os.cpu_count()} CPUs, {platform.platform()}")
    print(f"versions   Python {platform.python_version()}, numpy {np.__version__}, faiss {faiss.__version__}")
    for pool in threadpoolctl.threadpool_info():
        kernel = pool.get("architecture", "")
        print(f"pool       {pool['internal_api']} {pool['version']} {kernel}, {pool['num_threads']} threads")
    for name, value in best.items():
        print(f"{name:<10} {value * 1e3:.1f} ms")
    print(f"ids equal to numpy's at the same place: {agree:.6f}")
    print(f"ratio      {ratio:.2f} of the better one (at most {WANTED} wanted)")
    return 0 if ratio <= WANTED else 1


if __name__ == "__main__":
    raise SystemExit(main())
