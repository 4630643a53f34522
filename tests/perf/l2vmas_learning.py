"""Whether L²-VMAS's memory learns to carry what one agent saw to another: five seeds, stage I, greedy accuracy.

Run: python -m tests.perf.l2vmas_learning [seeds]
A tiny model is taught to follow soft prompts and frozen; chance is 1 in 8. Held-out observations stand among words that
training has not seen. Shuffled, the second agent is given the memory of another observation.
"""

from __future__ import annotations

import asyncio
import os
import platform
import sys
import tempfile
import time
from pathlib import Path

import torch

from tests.methods.l2vmas.learning import accuracy, learn, taught

GOAL, NEEDED = 0.9, 4


async def one(seed: int) -> tuple[float, float, float, float]:
    """Accuracy before, after and with shuffled memories, and processor seconds of the training."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        reader = await taught(folder, seed)
        try:
            before = await accuracy(reader, await learn(reader, folder / "none", seed, steps=1))
            begun = time.process_time()
            modules = await learn(reader, folder / "out", seed)
            seconds = time.process_time() - begun
            return before, await accuracy(reader, modules), await accuracy(reader, modules, shift=3), seconds
        finally:
            await reader.close()


def main() -> int:
    """Print a line a seed; return 0 if four of five reach the goal."""
    torch.set_num_threads(1)
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print(f"{platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__}")
    reached = 0
    for seed in range(seeds):
        before, after, shuffled, seconds = asyncio.run(one(seed))
        reached += after >= GOAL
        print(f"seed {seed}: {before:.3f} → {after:.3f}; shuffled {shuffled:.3f}; {seconds:.0f} s", flush=True)
    print(f"{reached} of {seeds} at {GOAL} or more")
    return 0 if reached >= min(NEEDED, seeds) else 1


if __name__ == "__main__":
    sys.exit(main())
