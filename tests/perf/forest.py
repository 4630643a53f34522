"""Forest search: equality with a plain transcription, gap to the optimum, and speed against scipy's integer program.

Run: python tests/perf/forest.py [instances]
"""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
import scipy

from memharness.methods.graphmemix.forest import Edge, Forest, solve, solve_exact

CANDIDATES, EDGES, SIZE = 48, 60, 10


def instance(seed: int) -> tuple[dict[str, float], list[Edge]]:
    """Draw a pool of 48 with utilities as the published calibration spreads them, and 60 graded edges."""
    rng = np.random.default_rng(seed)
    logits = 4.05 * rng.uniform(0.1, 0.8, CANDIDATES) + 0.225 * rng.integers(0, 6, CANDIDATES) - 3.71
    utilities = {f"m{n:02}": float(1 / (1 + np.exp(-x))) for n, x in enumerate(logits)}
    pairs = [(a, b) for a in range(CANDIDATES) for b in range(a + 1, CANDIDATES)]
    chosen = rng.choice(len(pairs), EDGES, replace=False)
    grades = rng.integers(1, 6, EDGES)
    edges = [
        Edge(f"m{pairs[at][0]:02}", f"m{pairs[at][1]:02}", 0.99 * float(grade) / 5)
        for at, grade in zip(chosen, grades, strict=True)
    ]
    return utilities, edges


def timed(
    solver: Callable[..., Forest], drawn: Sequence[tuple[dict[str, float], list[Edge]]]
) -> tuple[list[Forest], float]:
    """Return the solver's forest of every instance and the median seconds of one."""
    forests, seconds = [], []
    for utilities, edges in drawn:
        start = time.perf_counter()
        forests.append(solver(utilities, edges, SIZE))
        seconds.append(time.perf_counter() - start)
    return forests, median(seconds)


def transcription() -> Callable[..., Any]:
    """Return the plain transcription that the tests use."""
    path = Path(__file__).parents[1] / "methods" / "test_forest.py"
    spec = spec_from_file_location("plain_forest", path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    plain: Callable[..., Any] = module.plain_solve
    return plain


def main() -> int:
    """Print the comparison; return 0 if every instance agrees and the ratio of medians is at least 200."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    drawn = [instance(seed) for seed in range(count)]
    ours, our_seconds = timed(solve, drawn)
    exact, exact_seconds = timed(solve_exact, drawn)
    plain = transcription()
    differing = 0
    for found, (utilities, edges) in zip(ours, drawn, strict=True):
        items, _, value, _ = plain(utilities, edges, SIZE)
        differing += list(found.items) != items or abs(found.objective - float(value)) > 1e-12
    gaps = [(best.objective - found.objective) / abs(best.objective) for found, best in zip(ours, exact, strict=True)]
    ratio = exact_seconds / our_seconds
    print(f"machine            {platform.machine()}, {platform.platform()}, Python {platform.python_version()}")
    print(f"numpy, scipy       {np.__version__}, {scipy.__version__}")
    print(f"instances          {count}: {CANDIDATES} candidates, {EDGES} edges, K = {SIZE}")
    print(f"differ from plain  {differing}")
    print(f"gap to optimum     mean {mean(gaps):.3%}, largest {max(gaps):.3%}, smallest {min(gaps):.1e}")
    print(f"median solve       {our_seconds * 1e3:.3f} ms")
    print(f"median milp        {exact_seconds * 1e3:.1f} ms")
    print(f"ratio              {ratio:.0f} (at least 200 wanted)")
    return 0 if differing == 0 and ratio >= 200 else 1


if __name__ == "__main__":
    raise SystemExit(main())
