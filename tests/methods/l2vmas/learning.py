"""Two agents and a frozen model: the second can answer only from what the first one saw, if the memory is any good."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from memharness.media import MediaStore
from memharness.methods.l2vmas.config import L2VMASConfig, ModulesConfig, TrainingConfig
from memharness.methods.l2vmas.dual import DualMemory
from memharness.methods.l2vmas.modules import Shape, fresh
from memharness.methods.l2vmas.synthesis import Learned
from memharness.methods.l2vmas.training import Episode, Stage, Trainer, TrainingSpeaker
from memharness.methods.vmas.training import Thread
from memharness.reader import Message, Request, Sampling
from memharness.readers.hf import HFConfig, HFReader
from memharness.types import Text
from tests.methods.l2vmas.follower import FILLERS, SIGNALS, follower

LEARNT, HELD_OUT = FILLERS[:8], FILLERS[8:]  # the words that stand before what is seen, in training and in the test
TEAM = L2VMASConfig(window=2, length=2, merged=2, banks="thinking").settled()
MADE = ModulesConfig(inner=32, layers=1, heads=2, gate=8)
TRAINING = TrainingConfig(
    algorithm="grpo", group=8, num_envs=64, n_steps=2, mini_batch_size=64, n_epochs=3, learning_rate=5e-3, rate=1.0,
    target_kl=0.5, ent_coef=0.02, steps=11_000,
)  # fmt: skip


def seen(signal: int, filler: str) -> Request:
    """What the first agent is asked."""
    return Request((Message("user", (Text(f"saw {filler} o{signal}"),)),), Sampling(max_tokens=4))


ASKED = Request((Message("user", (Text("which ?"),)),), Sampling(max_tokens=3))


def right(signal: int, text: str) -> float:
    """Whether a reply names the signal."""
    return float(text.removeprefix("hm").strip().startswith(f"a{signal}"))


def episode(signal: int, filler: str) -> Episode:
    """One observation, and the reward of the second agent's answer."""

    async def play(stage: Stage) -> float:
        await stage.speak(seen(signal, filler))
        return right(signal, (await stage.speak(ASKED)).text)

    return play


async def taught(folder: Path, seed: int) -> HFReader:
    """The frozen model, started."""
    reader = HFReader(str(follower(folder / "model", seed)), HFConfig(dtype="f32"), MediaStore(folder / "files.sqlite"))
    await reader.start()
    return reader


async def learn(
    reader: HFReader, folder: Path, seed: int, say: Callable[[dict[str, Any]], None] = lambda line: None, **more: Any
) -> Learned:
    """Modules after stage I."""
    config = TRAINING.model_copy(update={"seed": seed, **more}).of_stage()
    shape = Shape(reader.width, TEAM.length, TEAM.merged)
    modules = fresh(shape, MADE, seed)
    rng = random.Random(seed)
    questions = [episode(signal, filler) for signal in range(SIGNALS) for filler in LEARNT]
    rng.shuffle(questions)
    await Trainer(reader, Thread(), modules, shape, MADE, TEAM, config, folder).train(questions, say)
    return modules


async def accuracy(reader: HFReader, modules: Learned, shift: int = 0) -> float:
    """Greedy accuracy on words that were held out; `shift` gives the second agent another observation's memory."""
    speaker = TrainingSpeaker(reader, Thread(), TEAM, rate=1.0)
    scores = []
    for filler in HELD_OUT:
        for signal in range(SIGNALS):
            memory = DualMemory(
                modules, capacity=TEAM.capacity, k=TEAM.k, norm=reader.norm, other=True, banks=("thinking",)
            )
            first = await speaker.speak(seen((signal + shift) % SIGNALS, filler), memory, random.Random(0))
            memory.think(first.chunks)
            second = await speaker.speak(replace(ASKED), memory, random.Random(0))
            scores.append(right(signal, second.reply.text))
    return sum(scores) / len(scores)
