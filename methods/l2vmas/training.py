"""Training a stage: rollouts beside each other, an update on them, a checkpoint, and so on until the steps are over."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from memharness.identity import digest
from memharness.method import Device
from memharness.methods.l2vmas.config import L2VMASConfig, ModulesConfig, TrainingConfig
from memharness.methods.l2vmas.gate import annealed
from memharness.methods.l2vmas.learner import Actions, Learner, Rollout, linear
from memharness.methods.l2vmas.modules import Shape, save
from memharness.methods.l2vmas.rollout import DrawnMemory, Trace
from memharness.methods.l2vmas.synthesis import Learned
from memharness.methods.l2vmas.trigger import Chance
from memharness.methods.l2vmas.turn import Caller, Speaker, Spoken
from memharness.reader import Reply, Request
from memharness.store import write_atomic
from memharness.types import UserError

STATE, CURVE, PROGRESS = "state.safetensors", "curve.jsonl", "progress.json"


class Stage:
    """One rollout's team, as an episode sees it: agents speak, and pictures are seen."""

    def __init__(
        self, speaker: Speaker, memory: DrawnMemory, device: Device, config: TrainingConfig, seed: int
    ) -> None:
        """An empty memory and no turn taken."""
        self.memory = memory
        self.turns: list[Trace] = []
        self._speaker = speaker
        self._device = device
        self._config = config
        self._seed = seed

    async def see(self, blocks: torch.Tensor) -> None:
        """Take a picture's blocks, (blocks, n, width), into the perception memory."""
        await self._device.run(self.memory.see, blocks)

    async def speak(self, request: Request) -> Reply:
        """A turn: decoded with the memory, its tokens drawn, its thoughts left behind."""
        return (await self.spoken(request)).reply

    async def spoken(self, request: Request) -> Spoken:
        """As `speak`, with all that came of it."""
        number = len(self.turns)
        seed = random.Random(f"{self._seed}:{number}").getrandbits(31)
        drawn = replace(request, sampling=replace(request.sampling, temperature=self._config.temperature, seed=seed))
        self.memory.noted = []
        spoken = await self._speaker.speak(drawn, self.memory, random.Random(f"{self._seed}:{number}:cuts"))
        self.turns.append(_trace(drawn, spoken, self.memory))
        await self._device.run(self.memory.think, spoken.chunks)
        return spoken


Episode = Callable[[Stage], Awaitable[float]]
"""Works on one question with a team, and returns its reward, 0 … 1."""


def _trace(request: Request, spoken: Spoken, memory: DrawnMemory) -> Trace:
    if len(memory.noted) != len(spoken.injections):  # a call whose latents did not fit was no action
        raise UserError("a memory did not fit into a session; give sessions more room (max_cached_tokens) to train")
    for draw, injection in zip(memory.noted, spoken.injections, strict=True):
        draw.after = injection.after
    return Trace(request, spoken.tokens, spoken.states, memory.noted)


class TrainingSpeaker(Speaker):
    """In stage I the memory is called on at random; later as in inference."""

    def __init__(self, *arguments: Any, rate: float | None) -> None:
        """As `Speaker`; `rate` is the chance of a token to call, None for the trigger."""
        super().__init__(*arguments)
        self._rate = rate

    def caller(self, rng: random.Random) -> Caller:
        """See `Speaker.caller`."""
        return super().caller(rng) if self._rate is None else Chance(self._config.window, self._rate, rng)


@dataclass(frozen=True)
class Trainer:
    """Everything that training a stage needs.

    Attributes:
        latent: the frozen model.
        device: the thread for tensor work.
        modules: trained in place.
        shape: of the modules.
        made: the modules' config.
        team: window, k, capacity …: as in inference.
        config: of the stage, filled in.
        folder: where modules, state and curve go.
        task: digest of the questions, the reward and the modules it began with; a training goes on with the same only.
    """

    latent: Any
    device: Device
    modules: Learned
    shape: Shape
    made: ModulesConfig
    team: L2VMASConfig
    config: TrainingConfig
    folder: Path
    task: str = ""

    async def train(
        self, episodes: Sequence[Episode], say: Callable[[dict[str, Any]], None] = lambda line: None
    ) -> None:
        """Train until `steps` actions were rolled out; go on where a checkpoint in the folder stops.

        Questions are taken in a seeded order, again and again. `curve.jsonl` has a line an update: actions so far,
        reward, what `Learner.learn` says, the learning rate. Everything drawn depends on the seed and the update alone,
        so a training that was stopped goes on as if it had not been.

        Args:
            episodes: the questions.
            say: told each line of the curve.

        Raises:
            UserError: no question, a group too small for grpo, or a checkpoint of another training.
        """
        config = self.config
        if not episodes:
            raise UserError("train l2vmas: there is no question to learn from")
        if config.algorithm == "grpo" and config.group < 2:
            raise UserError("-T group=1: grpo compares rollouts of one question; give group=8, say")
        norm = self.latent.norm if self.team.match else None
        learner = Learner(self.modules, self.latent, self.device, config, norm=norm)
        done, update = await self.device.run(self._resume, learner)
        total = int(config.steps or 0)
        while done < total:
            for group in learner.optimizer.param_groups:
                group["lr"] = float(config.learning_rate or 0) * linear(done, total)
            learner.heat = annealed(update, config.gate_temperature, config.gate_least, config.gate_rate)
            rolled, rewards = await self._roll(learner, episodes, update, norm)
            if not rolled:
                raise UserError(
                    "train l2vmas: the memory was never called on, so nothing can be learned; raise -T rate or the "
                    "most tokens of a turn, or lower -M window"
                )
            orders = _orders(len(rolled), f"{config.seed}:{update}")
            told = await learner.learn(rolled, orders)
            done, update = done + sum(map(len, rolled)), update + 1
            line = {"update": update, "actions": done, "reward": sum(rewards) / len(rewards), "rollouts": len(rewards),
                    **told, "learning_rate": learner.optimizer.param_groups[0]["lr"]}  # fmt: skip
            await self.device.run(self._keep, learner, done, update, line)
            say(line)

    async def _roll(
        self, learner: Learner, episodes: Sequence[Episode], update: int, norm: float | None
    ) -> tuple[list[Actions], list[float]]:
        """Rollouts of as many actions as an update wants, `num_envs` beside each other."""
        config = self.config
        order = random.Random(f"{config.seed}:{update}:questions")
        rolled: list[Actions] = []
        rewards: list[float] = []
        wanted = config.n_steps * config.num_envs
        number = 0
        while sum(map(len, rolled)) < wanted and number < wanted:  # a rollout may have no action at all
            some = _drawn(order, len(episodes), max(1, config.num_envs // config.group))
            jobs = [(at, number + n) for n, at in enumerate(at for at in some for _ in range(config.group))]
            number += len(jobs)
            made = await asyncio.gather(*(self._one(episodes[at], update, n, norm) for at, n in jobs))
            rewards += [reward for _, reward in made]
            rolled += await learner.judge(_grouped(made, config.group if config.algorithm == "grpo" else None))
            if number >= 8 * config.num_envs and not rolled:
                break
        return rolled, rewards

    async def _one(self, episode: Episode, update: int, number: int, norm: float | None) -> tuple[list[Trace], float]:
        config, team = self.config, self.team
        seed = int(digest([config.seed, update, number])[:12], 16)
        memory = DrawnMemory(
            self.modules,
            capacity=team.capacity,
            k=team.k,
            norm=norm,
            other=bool(team.other),
            banks=[bank for bank in ("perception", "thinking") if team.uses(bank)],
            rng=random.Random(seed),
            temperature=config.retrieval_temperature,
            gate=config.stage > 1,
        )
        rate = config.rate if config.stage == 1 else None
        speaker = TrainingSpeaker(self.latent, self.device, team, rate=rate)
        stage = Stage(speaker, memory, self.device, config, seed)
        reward = await episode(stage)
        return stage.turns, reward

    # ---------------------------------------------------------------------------------------------------- what is kept

    def _identity(self) -> str:
        how = self.config.model_dump() | {"steps": None, "together": None}  # may be changed when a training goes on
        return digest([vars(self.shape), self.made.model_dump(), self.team.model_dump(), how, self.task])

    def _resume(self, learner: Learner) -> tuple[int, int]:
        """Actions and updates so far, everything being loaded.

        Raises:
            UserError: the folder holds a training of other settings, or a damaged one.
        """
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        file = self.folder / PROGRESS
        if not file.is_file():
            return 0, 0
        try:
            known = json.loads(file.read_text("utf-8"))
            if known["identity"] != self._identity():
                raise UserError(
                    f"{self.folder}: holds a training with other settings or data; give another --out, or --fresh"
                )
            _unpack(learner, load_file(self.folder / STATE))
            return int(known["actions"]), int(known["update"])
        except (OSError, ValueError, KeyError, TypeError, SafetensorError, RuntimeError) as error:
            raise UserError(
                f"{self.folder}: damaged ({type(error).__name__}: {error}); begin anew with --fresh"
            ) from None

    def _keep(self, learner: Learner, done: int, update: int, line: dict[str, Any]) -> None:
        """State first, then the curve, then the progress that makes both count, then the modules for use."""
        from safetensors.torch import save_file

        self.folder.mkdir(parents=True, exist_ok=True)
        fresh = self.folder / f".{STATE}"
        save_file(_pack(learner), fresh)
        curve = self.folder / CURVE
        before = [] if update == 1 or not curve.is_file() else curve.read_text("utf-8").splitlines()[: update - 1]
        write_atomic(curve, "".join(f"{text}\n" for text in [*before, json.dumps(line)]))
        fresh.replace(self.folder / STATE)
        write_atomic(
            self.folder / PROGRESS, json.dumps({"identity": self._identity(), "actions": done, "update": update})
        )
        told = {"stage": self.config.stage, "actions": done, "updates": update, "reward": line["reward"],
                "training": self.config.model_dump(mode="json")}  # fmt: skip
        save(self.modules, self.folder, self.shape, self.made, told)


def _grouped(made: Sequence[tuple[list[Trace], float]], size: int | None) -> list[Rollout]:
    """Rollouts, each with the mean reward of its group of so many; without, if there are no groups."""
    means: list[float | None] = [None] * len(made)
    if size is not None:
        for first in range(0, len(made), size):
            group = [reward for _, reward in made[first : first + size]]
            means[first : first + size] = [sum(group) / len(group)] * len(group)
    return [Rollout(turns, reward, mean) for (turns, reward), mean in zip(made, means, strict=True)]


def _drawn(dice: random.Random, n: int, k: int) -> list[int]:
    """Which k of n questions: each as often as any other, or once more."""
    return [at for _ in range(k // n) for at in range(n)] + dice.sample(range(n), k % n)


def _orders(n: int, seed: str) -> Iterator[Sequence[int]]:
    rng = random.Random(seed)
    while True:
        yield rng.sample(range(n), n)


def _pack(learner: Learner) -> dict[str, torch.Tensor]:
    """Modules, critic and Adam's moments as named tensors."""
    tensors = {f"modules.{name}": tensor for name, tensor in learner.modules.state_dict().items()}
    tensors |= {f"critic.{name}": tensor for name, tensor in learner.critic.state_dict().items()}
    for number, moments in learner.optimizer.state_dict()["state"].items():
        tensors |= {f"adam.{number}.{name}": torch.as_tensor(value) for name, value in moments.items()}
    return {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}


def _unpack(learner: Learner, tensors: dict[str, torch.Tensor]) -> None:
    def under(prefix: str) -> dict[str, torch.Tensor]:
        return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}

    learner.modules.load_state_dict(under("modules."))
    learner.critic.load_state_dict(under("critic."))
    state: dict[int, dict[str, torch.Tensor]] = {}
    for name, tensor in under("adam.").items():
        number, _, moment = name.partition(".")
        state.setdefault(int(number), {})[moment] = tensor
    learner.optimizer.load_state_dict({**learner.optimizer.state_dict(), "state": state})
