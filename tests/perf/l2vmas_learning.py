"""Whether L²-VMAS's memory learns to carry what one agent saw to another, and its gate to tell the memories apart.

Run: python -m tests.perf.l2vmas_learning OUT [SEEDS]
A tiny model is taught to follow soft prompts and frozen. Stage I: the second agent can answer only from what the first
one saw, chance 1 in 8; held out are words around the observation. Stage II, the gate alone: a signal in each memory,
and questions of either, among words held out. OUT keeps all curves (SEED/stage1/curve.jsonl …), figures and a plot.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

import torch

from memharness.methods.l2vmas.modules import Shape, fresh, load
from memharness.methods.l2vmas.training import CURVE
from tests.methods.l2vmas.learning import BOTH, MADE, TEAM, accuracy, learn, learn_to_route, routing, taught

GOAL, NEEDED, LIMIT = 0.9, 4, 180.0


async def carried(out: Path, seed: int) -> dict[str, Any]:
    """Stage I: greedy accuracy on held-out words before and after, with shuffled memories, and processor seconds."""
    folder = out / str(seed)
    begun = time.process_time()
    reader = await taught(folder, seed)
    taught_in = time.process_time() - begun
    try:
        before, _ = await accuracy(reader, fresh(Shape(reader.width, TEAM.length, TEAM.merged), MADE, seed))
        begun = time.process_time()
        modules = await learn(reader, folder / "stage1", seed)
        seconds = time.process_time() - begun
        after, shuffled = await accuracy(reader, modules)
    finally:
        await reader.close()
    return {"stage": 1, "seed": seed, "before": before, "after": after, "shuffled": shuffled,
            "seconds": round(seconds, 1), "model_seconds": round(taught_in, 1)}  # fmt: skip


async def told_apart(out: Path, seed: int) -> dict[str, Any]:
    """Stage II: calls to the right memory on held-out words, before and after, and the answers' accuracy."""
    folder = out / str(seed)
    reader = await taught(folder, seed)
    try:
        modules = load(folder / "stage1", Shape(reader.width, BOTH.length, BOTH.merged))
        before, _, _ = await routing(reader, modules)
        begun = time.process_time()
        await learn_to_route(reader, modules, folder / "stage2", seed)
        seconds = time.process_time() - begun
        after, right, calls = await routing(reader, modules)
    finally:
        await reader.close()
    return {"stage": 2, "seed": seed, "before": before, "after": after, "right": right, "calls": calls,
            "seconds": round(seconds, 1)}  # fmt: skip


def plot(out: Path, seeds: int) -> None:
    """Reward against actions, a line a seed, a panel a stage."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.5), layout="constrained")
    for stage, axes in enumerate(figure.subplots(1, 2, sharey=True), start=1):
        for seed in range(seeds):
            file = out / str(seed) / f"stage{stage}" / CURVE
            if file.is_file():
                lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
                axes.plot([line["actions"] for line in lines], [line["reward"] for line in lines], label=f"seed {seed}")
        axes.set(xlabel="actions", title=("Stage I: from agent to agent", "Stage II: the gate alone")[stage - 1])
    figure.axes[0].legend()
    figure.supylabel("reward, mean of an update's 64 rollouts", fontsize="medium")
    figure.savefig(out / "learning.png", dpi=120)


def main() -> int:
    """Print and store a line a seed and stage; return 0 if both stages reach the goal: I often enough, II always."""
    torch.set_num_threads(1)
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    out, seeds = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 5
    out.mkdir(parents=True)
    print(f"{platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__}", flush=True)
    lines = []
    for measure in (carried, told_apart):
        for seed in range(seeds):
            lines.append(asyncio.run(measure(out, seed)))
            print(json.dumps(lines[-1]), flush=True)
            (out / "figures.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
            plot(out, seeds)
    reached = [line for line in lines if line["after"] >= GOAL and line["seconds"] <= LIMIT]
    first, second = (sum(line["stage"] == stage for line in reached) for stage in (1, 2))
    print(f"stage I: {first} of {seeds}, stage II: {second} of {seeds} at {GOAL} or more within {LIMIT:.0f} s")
    return 0 if first >= min(NEEDED, seeds) and second == seeds else 1


if __name__ == "__main__":
    sys.exit(main())
