"""Cost of L²-VMAS's decoding: a turn that watches its entropy and calls on a full memory, against bare `generate`.

Run: python -m tests.perf.l2vmas_speed [--pairs 6] [--tokens 96]

SmolLM2 in f32 on one question after the other. A is the model's own greedy `generate` on tokens made ready before the
clock starts. B is a turn of an agent (`Speaker.speak`): prompt encoding, opening and closing of the session, entropy,
hidden states, chunks, and calls on the memory, with modules of the default shape (trained or not, they cost the same)
and a thinking memory of 50 units. B is measured twice: with the entropy's trigger at λ = 0, so that it calls more than
in the paper's setting, and called every W = 16 tokens, which is the most that any trigger may. Tokens per second, in
pairs A B B A …, since a machine's speed drifts; what is injected counts as time and not as tokens. Target: the median
ratio by the wall clock is at least 0.8 both ways; that in CPU seconds is printed too, which other work moves less.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from memharness.media import MediaStore
from memharness.methods.l2vmas.config import L2VMASConfig, ModulesConfig
from memharness.methods.l2vmas.dual import DualMemory
from memharness.methods.l2vmas.modules import Shape, fresh
from memharness.methods.l2vmas.turn import Speaker
from memharness.reader import Message, Request, Sampling
from memharness.readers import device
from memharness.readers.smollm2 import SmolLM2, SmolLM2Config
from memharness.run.kit import DeviceThread
from memharness.types import Text

TARGET = 0.8
WAYS = {
    "entropy": L2VMASConfig(threshold=0.0).settled(),
    "fixed": L2VMASConfig(calls="fixed").settled(),
}
QUESTIONS = (
    "Tell a long story about a dog by the sea, with every detail you can think of.",
    "Explain to a child how rain comes about, step by step, and why some clouds are dark.",
)


def ask(question: str, tokens: int) -> Request:
    """A question as a request."""
    return Request((Message("user", (Text(question),)),), Sampling(max_tokens=tokens))


Took = tuple[float, float]


def since(begun: Took = (0.0, 0.0)) -> Took:
    """Seconds on the wall, and of this process on all its CPUs."""
    return time.perf_counter() - begun[0], time.process_time() - begun[1]


def bare(reader: SmolLM2, request: Request) -> tuple[int, Took]:
    """Tokens and seconds of the model's own greedy `generate`. On the device thread."""
    import torch

    model: Any = reader._network.model
    ids = torch.tensor([reader._network.encode(request, reader.media).ids])
    begun = since()
    with torch.inference_mode():
        made = model.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=request.sampling.max_tokens, do_sample=False
        )
    return made.shape[1] - ids.shape[1], since(begun)


async def watched(reader: SmolLM2, request: Request, config: L2VMASConfig, memory: DualMemory) -> tuple[int, Took, int]:
    """Tokens, seconds and calls of a turn."""
    speaker = Speaker(reader, DeviceThread(), config)  # type: ignore[arg-type]
    begun = since()
    spoken = await speaker.speak(request, memory, random.Random(0))
    return len(spoken.tokens), since(begun), len(spoken.injections)


def filled(reader: SmolLM2) -> DualMemory:
    """A thinking memory of 50 units of 10 to 30 vectors, about what a team leaves. On the device thread."""
    import torch

    config = L2VMASConfig().settled()
    modules = fresh(Shape(reader.width, config.length, config.merged), ModulesConfig(), 0)
    memory = DualMemory(
        modules, capacity=config.capacity, k=config.k, norm=reader.norm, other=True, banks=("perception", "thinking")
    )
    draws = torch.Generator().manual_seed(0)
    memory.think([torch.randn(10 + at % 21, reader.width, generator=draws) for at in range(config.capacity)])
    return memory


async def measure(pairs: int, tokens: int) -> dict[str, list[Took]]:
    """Ratios of speed, a turn's to the bare model's, on the wall and in CPU seconds, by way of calling."""
    ratios: dict[str, list[Took]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        reader = SmolLM2("", SmolLM2Config(), MediaStore(Path(folder) / "files.sqlite"))
        await reader.start()
        memory = await device.run(filled, reader)
        for pair in range(-1, pairs):  # the first warms both up
            for way, config in WAYS.items():
                for question in QUESTIONS:
                    request = ask(question, tokens)
                    sides: dict[str, list[float]] = {}
                    calls = 0
                    for side in ("bare", "turn") if pair % 2 else ("turn", "bare"):
                        if side == "bare":
                            made, took = await device.run(bare, reader, request)
                        else:
                            made, took, calls = await watched(reader, request, config, memory)
                        sides[side] = [made / seconds for seconds in took]
                    if pair < 0:
                        continue
                    wall, used = (turn / plain for turn, plain in zip(sides["turn"], sides["bare"], strict=True))
                    ratios[way].append((wall, used))
                    print(
                        f"pair {pair + 1}, {way}: {calls} calls; tokens/s bare {sides['bare'][0]:.1f}, "
                        f"turn {sides['turn'][0]:.1f}; ratio {wall:.3f}, CPU {used:.3f}",
                        flush=True,
                    )
        await reader.close()
    return ratios


def main() -> int:
    """Measure and print; 0 if both medians reach the target."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--tokens", type=int, default=96)
    options = parser.parse_args()
    import torch
    import transformers

    print(f"{platform.platform()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    print(f"python {platform.python_version()}, torch {torch.__version__}, transformers {transformers.__version__}")
    middles = []
    for way, found in asyncio.run(measure(options.pairs, options.tokens)).items():
        walls, used = zip(*found, strict=True)
        middles.append(statistics.median(walls))
        print(
            f"{way}: turn / bare: median {middles[-1]:.3f} (from {min(walls):.3f} to {max(walls):.3f}), "
            f"target {TARGET}; in CPU seconds {statistics.median(used):.3f}"
        )
    return int(min(middles) < TARGET)


if __name__ == "__main__":
    raise SystemExit(main())
