"""Agents and a frozen model: one can answer only from what another saw, if the memory is any good."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from memharness.media import MediaStore
from memharness.methods.l2vmas.config import L2VMASConfig, ModulesConfig, TrainingConfig
from memharness.methods.l2vmas.dual import DualMemory
from memharness.methods.l2vmas.modules import Shape, fresh
from memharness.methods.l2vmas.synthesis import Learned
from memharness.methods.l2vmas.training import Episode, Stage, Trainer, TrainingSpeaker
from memharness.methods.l2vmas.turn import Speaker
from memharness.methods.vmas.training import Thread
from memharness.reader import Message, Request, Sampling
from memharness.readers.hf import HFConfig, HFReader
from memharness.types import Text
from tests.methods.l2vmas.follower import FILLERS, KINDS, SIGNALS, follower

LEARNT, HELD_OUT = FILLERS[:8], FILLERS[8:]  # the words around what is seen and asked, in training and in the test
TEAM = L2VMASConfig(window=2, length=2, merged=2, banks="thinking").settled()
MADE = ModulesConfig(inner=32, layers=1, heads=2, gate=8)
TRAINING = TrainingConfig(
    algorithm="grpo", group=8, num_envs=64, n_steps=1, mini_batch_size=64, n_epochs=4, learning_rate=5e-3, rate=1.0,
    clip_range=0.8, target_kl=0.1, ent_coef=0.1, steps=7_500, together=64,
)  # fmt: skip
SAY = Callable[[dict[str, Any]], None]


def _ask(text: str, most: int) -> Request:
    return Request((Message("user", (Text(text),)),), Sampling(max_tokens=most))


def seen(signal: int, filler: str) -> Request:
    """What the agent is asked who sees: its reply, and what it thinks then, say which of the eight it was."""
    return _ask(f"saw {filler} o{signal}", 2)


def right(signal: int, text: str) -> float:
    """Whether a reply names the signal."""
    return float(text.endswith(f"a{signal}"))


async def taught(folder: Path, seed: int) -> HFReader:
    """The frozen model, taught where it is not there yet, and started."""
    model = folder / "model"
    if not (model / "tokenizer.json").is_file():
        follower(model, seed)
    reader = HFReader(str(model), HFConfig(dtype="f32"), MediaStore(folder / "files.sqlite"))
    await reader.start()
    return reader


def _memory(reader: HFReader, modules: Learned, team: L2VMASConfig) -> DualMemory:
    banks = [bank for bank in ("perception", "thinking") if team.uses(bank)]
    return DualMemory(modules, capacity=team.capacity, k=team.k, norm=reader.norm, other=True, banks=banks)


# ----------------------------------------------------------------------------------- stage I: from one agent to another

ASKED = _ask("which ?", 2)


def episode(signal: int) -> Episode:
    """One observation, among other words each time, and the reward of the second agent's answer."""
    fillers = itertools.cycle(LEARNT)

    async def play(stage: Stage) -> float:
        await stage.speak(seen(signal, next(fillers)))
        return right(signal, (await stage.speak(ASKED)).text)

    return play


async def learn(reader: HFReader, folder: Path, seed: int, say: SAY = lambda line: None, **more: Any) -> Learned:
    """Modules after stage I."""
    config = TRAINING.model_copy(update={"seed": seed, **more}).of_stage()
    shape = Shape(reader.width, TEAM.length, TEAM.merged)
    modules = fresh(shape, MADE, seed)
    questions = [episode(signal) for signal in range(SIGNALS)]
    await Trainer(reader, Thread(), modules, shape, MADE, TEAM, config, folder).train(questions, say)
    return modules


async def accuracy(reader: HFReader, modules: Learned) -> tuple[float, float]:
    """Greedy accuracy among words that were held out; and with the memories of all observations shuffled."""
    speaker = TrainingSpeaker(reader, Thread(), TEAM, rate=1.0)
    observations = [(signal, filler) for filler in HELD_OUT for signal in range(SIGNALS)]
    answers = []
    for observation in observations:
        memory = _memory(reader, modules, TEAM)
        memory.think((await speaker.speak(seen(*observation), memory, random.Random(0))).chunks)
        answers.append((await speaker.speak(ASKED, memory, random.Random(0))).reply.text)
    pairs = [(signal, text) for (signal, _), text in zip(observations, answers, strict=True)]
    crossed = [(signal, text) for signal, _ in observations for text in answers]  # the mean over all shuffles
    return _share(pairs), _share(crossed)


def _share(pairs: Sequence[tuple[int, str]]) -> float:
    return sum(right(signal, text) for signal, text in pairs) / len(pairs)


# ---------------------------------------------------------------------------- stage II: which of the two memories it is

BOTH = L2VMASConfig(window=1, threshold=0.0, length=2, merged=2).settled()
ROUTING = TRAINING.model_copy(update={"stage": 2, "gate_only": True, "steps": 3_000, "learning_rate": 1e-2})


def routed(kind: str, filler: str) -> Request:
    """A question of what is in the one memory or in the other."""
    return _ask(f"{kind} {filler} ?", 3)


def speaker(reader: HFReader, team: L2VMASConfig) -> Speaker:
    """One agent after the other, as in inference."""
    latent: Any = reader
    return Speaker(latent, Thread(), team)


class Sights:
    """Latents in the place of pictures: states of the model's own in which a signal is named."""

    def __init__(self, reader: HFReader) -> None:
        """None is known yet."""
        self._speaker = speaker(reader, TEAM.model_copy(update={"triggering": False}))
        self._reader = reader
        self._known: dict[int, torch.Tensor] = {}

    async def blocks(self, signal: int) -> torch.Tensor:
        """One block, (1, 2, width), as `Stage.see` and `DualMemory.see` take it."""
        if signal not in self._known:
            nothing = _memory(self._reader, fresh(Shape(self._reader.width, 2, 2), MADE, 0), TEAM)
            spoken = await self._speaker.speak(seen(signal, LEARNT[0]), nothing, random.Random(0))
            self._known[signal] = spoken.states[None]
        return self._known[signal]


def twofold(kind: str, sights: Sights, shown: int, thought: int, filler: str) -> Episode:
    """One signal in each memory, and the reward of an answer to a question of one of them."""

    async def play(stage: Stage) -> float:
        await stage.see(await sights.blocks(shown))
        await stage.speak(seen(thought, filler))
        return right(shown if kind == "see" else thought, (await stage.speak(routed(kind, filler))).text)

    return play


async def learn_to_route(
    reader: HFReader, modules: Learned, folder: Path, seed: int, say: SAY = lambda line: None, **more: Any
) -> None:
    """Stage II of the gate alone, on modules that stage I has trained."""
    config = ROUTING.model_copy(update={"seed": seed, **more}).of_stage()
    sights, draw = Sights(reader), random.Random(seed)
    questions = [
        twofold(kind, sights, shown, (shown + draw.randrange(1, SIGNALS)) % SIGNALS, filler)
        for kind in KINDS for shown in range(SIGNALS) for filler in LEARNT
    ]  # fmt: skip
    shape = Shape(reader.width, BOTH.length, BOTH.merged)
    await Trainer(reader, Thread(), modules, shape, MADE, BOTH, config, folder).train(questions, say)


async def routing(reader: HFReader, modules: Learned) -> tuple[float, float, int]:
    """On held-out words: the share of calls that went to the right memory, greedy accuracy, and calls."""
    sights, agent = Sights(reader), speaker(reader, BOTH)
    right_bank, answers = [], []
    for kind in KINDS:
        for filler in HELD_OUT:
            for shown in range(SIGNALS):
                thought = (shown + 3) % SIGNALS
                memory = _memory(reader, modules, BOTH)
                memory.see(await sights.blocks(shown))
                memory.think((await agent.speak(seen(thought, filler), memory, random.Random(0))).chunks)
                assert len(memory.perception) and len(memory.thinking)
                spoken = await agent.speak(routed(kind, filler), memory, random.Random(0))
                wanted = "perception" if kind == "see" else "thinking"
                right_bank += [injection.recalled.which == wanted for injection in spoken.injections[:1]]
                answers.append((shown if kind == "see" else thought, spoken.reply.text))
    return sum(right_bank) / max(1, len(right_bank)), _share(answers), len(right_bank)
