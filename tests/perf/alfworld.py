"""Every validation game of ALFWorld won by its walkthrough in a live episode, and held against stored replays.

Run: python tests/perf/alfworld.py [DATA] [--games 274] [--at-once N] [--facts]
DATA is a folder with the games, or their archive, and walkthrough_replay_*.jsonl.xz; the shared data where they are at
hand, else the bundled sample. Without --facts, observations and admissible commands are compared; with it, the games
are also replayed for what changes, which takes as long again. A game costs two seconds of a core.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
import time
from collections import Counter
from pathlib import Path

import memharness.benchmarks
from memharness.benchmark import Data
from memharness.benchmarks.alfworld import ALFWorld, ALFWorldOptions, replays
from memharness.benchmarks.alfworld.commands import command
from memharness.benchmarks.alfworld.playing import Engine, engine_versions
from memharness.benchmarks.alfworld.replays import Replay
from memharness.benchmarks.alfworld.sources import Trail
from memharness.media import MediaStore
from memharness.run.play import play

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("MEMHARNESS_SHARED", ROOT.parent / "shared")) / "data/alfworld"
SAMPLE = Path(memharness.benchmarks.__file__).parent / "alfworld/sample"


def opened(path: Path, **options: object) -> ALFWorld:
    """The benchmark on a path."""
    return ALFWorld(Data(path, "given", MediaStore()), ALFWorldOptions.model_validate(options))


async def won(benchmark: ALFWorld, context: str, stored: Replay, tally: Counter[str]) -> None:
    """Play one game by its walkthrough and count what agrees."""
    played = await play(benchmark.episode(context), lambda case, items: benchmark.gold_answer(case))
    tally["won"] += played.facts["won"] == 1
    tally["commands"] += round(played.facts["steps"])
    tally["admissible commands given"] += round(played.facts["admissible"])
    for item, (case, _), step in zip(played.items, played.cases, stored.steps, strict=False):
        tally["observations equal"] += item.parts[-1].text == step.observation  # type: ignore[union-attr]
        tally["admissible sets equal"] += tuple(case.gold.extra["admissible"]) == step.admissible
        tally["commands equal"] += command(case.gold.answers[0]) == command(step.action)


async def same_facts(engine: Engine, trail: Trail, tally: Counter[str]) -> None:
    """Replay one game for what changes and count the steps that agree."""
    assert trail.game is not None and trail.stored is not None
    made = await replays.replay(engine, trail.game, "walkthrough", trail.commands)
    for ours, theirs in zip(made.steps, trail.stored.steps, strict=True):
        assert ours.change is not None and theirs.change is not None
        tally["changes equal"] += [*map(set, ours.change)] == [*map(set, theirs.change)]


async def main(path: Path, games: int, at_once: int, facts: bool) -> int:
    """Play, compare, print; 0 if every game was won and every step agrees."""
    bench = opened(path, live=True, games=at_once)
    trails = {trail.name: trail for trail in opened(path).sources.trails("walkthrough")}
    contexts = list(bench.contexts())[:games]
    names = [game.name for game in bench.sources.games()][:games]
    tally: Counter[str] = Counter()
    begun = time.perf_counter()
    stored = [trails[name].stored for name in names]
    assert all(stored), "a game has no stored replay"
    await asyncio.gather(*(won(bench, *pair, tally) for pair in zip(contexts, stored, strict=True)))  # type: ignore[arg-type]
    took = time.perf_counter() - begun
    steps = sum(len(trails[name].commands) for name in names)
    versions = ", ".join(f"{name} {version}" for name, version in engine_versions().items())
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; {versions}; data: {path}")
    print(f"{tally['won']} of {len(contexts)} games won in {took:.1f} s, {at_once} at once; {steps:,} commands")
    compared = ["admissible commands given", "observations equal", "admissible sets equal", "commands equal"]
    print("\n".join(f"  {name}: {tally[name]:,} of {steps:,}" for name in compared), flush=True)
    if facts:
        await asyncio.gather(*(same_facts(bench.engine, trails[name], tally) for name in names))
        compared.append("changes equal")
        print(f"  changes equal: {tally['changes equal']:,} of {steps:,}")
    return 0 if tally["won"] == len(contexts) and {tally[name] for name in compared} == {steps} else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", default=SHARED if SHARED.is_dir() else SAMPLE)
    parser.add_argument("--games", type=int, default=274)
    parser.add_argument("--at-once", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--facts", action="store_true")
    asked = parser.parse_args()
    sys.exit(asyncio.run(main(asked.data, asked.games, asked.at_once, asked.facts)))
