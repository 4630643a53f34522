"""Cost of watching a model decode: latent decoding with entropy and hidden window on, against bare greedy `generate`.

Run: python tests/perf/latent_speed.py [--pairs 6] [--tokens 96]

SmolLM2 in f32 answers the same questions both ways, one at a time, in pairs A B B A …, since a machine's speed drifts.
A is the model's own `generate` on tokens made ready before the clock starts; B is a session's `run`, prompt encoding,
opening and closing included, with every step's entropy and text and a window of 64 hidden states, half of which are
read every 16 tokens. Both must give the same tokens. Target: the median ratio is at least 0.95.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from memharness.media import MediaStore
from memharness.reader import Message, Request, Sampling, Step
from memharness.readers import device
from memharness.readers.smollm2 import SmolLM2, SmolLM2Config
from memharness.types import Text

TARGET = 0.95
WINDOW = 64
QUESTIONS = (
    "Tell a long story about a dog by the sea, with every detail you can think of.",
    "Explain to a child how rain comes about, step by step, and why some clouds are dark.",
)


def ask(question: str, tokens: int) -> Request:
    """A question as a request."""
    return Request((Message("user", (Text(question),)),), Sampling(max_tokens=tokens))


def clock() -> tuple[float, float]:
    """Seconds on the wall, and of this process on all its CPUs, which other work on the machine moves less."""
    return time.perf_counter(), time.process_time()


def bare(reader: SmolLM2, question: str, tokens: int) -> tuple[list[int], tuple[float, float]]:
    """Tokens and seconds of the model's own greedy `generate`. On the device thread."""
    import torch

    model: Any = reader._network.model
    ids = torch.tensor([reader._network.encode(ask(question, tokens), reader.media).ids])
    begun = clock()
    with torch.inference_mode():
        made = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=tokens, do_sample=False)
    return made[0, ids.shape[1] :].tolist(), since(begun)


async def latent(reader: SmolLM2, question: str, tokens: int) -> tuple[list[int], tuple[float, float]]:
    """Tokens and seconds of a session."""
    made: list[int] = []
    begun = clock()
    async with reader.decode(ask(question, tokens), window=WINDOW) as decoding:

        def until(step: Step) -> bool:
            made.append(step.token)
            if len(made) % 16 == 0:
                decoding.hidden(WINDOW // 2)
            return step.entropy < 0  # never, but it is looked at

        await decoding.run(until, tokens)
    return made, since(begun)


def since(begun: tuple[float, float]) -> tuple[float, float]:
    """Both kinds of seconds since."""
    wall, used = clock()
    return wall - begun[0], used - begun[1]


async def measure(pairs: int, tokens: int) -> list[tuple[float, float]]:
    """Ratios of speed, session to bare, by the wall and by CPU seconds; one of each a pair and question."""
    with tempfile.TemporaryDirectory() as folder:
        reader = SmolLM2("", SmolLM2Config(), MediaStore(Path(folder) / "files.sqlite"))
        await reader.start()
        ratios = []
        for pair in range(-1, pairs):  # the first warms both up
            for question in QUESTIONS:
                said, took = {}, {}
                for way in ("bare", "latent") if pair % 2 else ("latent", "bare"):
                    if way == "bare":
                        said[way], took[way] = await device.run(bare, reader, question, tokens)
                    else:
                        said[way], took[way] = await latent(reader, question, tokens)
                assert said["bare"] == said["latent"], "the two did not say the same"
                if pair < 0:
                    continue
                wall, used = (took["bare"][kind] / took["latent"][kind] for kind in (0, 1))
                ratios.append((wall, used))
                speeds = ", ".join(f"{way} {len(said[way]) / took[way][0]:.1f}" for way in ("bare", "latent"))
                print(
                    f"pair {pair + 1}: {len(said['bare'])} tokens; tokens/s {speeds}; ratio {wall:.3f}, CPU {used:.3f}"
                )
        await reader.close()
        return ratios


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--tokens", type=int, default=96)
    options = parser.parse_args()
    import torch
    import transformers

    print(f"{platform.platform()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    print(f"python {platform.python_version()}, torch {torch.__version__}, transformers {transformers.__version__}")
    walls, used = zip(*asyncio.run(measure(options.pairs, options.tokens)), strict=True)
    middle = statistics.median(walls)
    print(
        f"latent / bare: median {middle:.3f} (from {min(walls):.3f} to {max(walls):.3f}), target {TARGET}; "
        f"in CPU seconds {statistics.median(used):.3f}"
    )
    raise SystemExit(middle < TARGET)


if __name__ == "__main__":
    main()
