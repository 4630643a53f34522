"""PPO and GRPO over a frozen model: log-probabilities of a rollout's actions with gradients, and the step on them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from memharness.method import Device
from memharness.methods.l2vmas.banks import similarity
from memharness.methods.l2vmas.config import TrainingConfig
from memharness.methods.l2vmas.rollout import Draw, Kept, Trace, plackett_luce
from memharness.methods.l2vmas.synthesis import Learned, injected


class Critic(nn.Module):
    """What reward is to be expected where a hidden state stands; trained beside the modules, used in training alone."""

    def __init__(self, width: int) -> None:
        """For hidden states of this width."""
        super().__init__()
        self._net = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 64), nn.Tanh(), nn.Linear(64, 1))

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """(n, width) → (n,)."""
        values: torch.Tensor = self._net(states.float())[:, 0]
        return values


@dataclass(slots=True)
class Actions:
    """The actions of one turn in order: a call stands before the token that follows it.

    Only what the modules can change is an action: calls, and tokens behind the first of them.

    Attributes:
        scores: (a,), log-probabilities when they were drawn.
        states: (a, width), where each was drawn from.
        advantages: (a,), filled in once the reward is known.
        returns: (a,), what the critic should have said.
    """

    trace: Trace
    scores: torch.Tensor
    states: torch.Tensor
    advantages: torch.Tensor
    returns: torch.Tensor

    def __len__(self) -> int:
        """How many."""
        return len(self.scores)


class Learner:
    """The modules under training, and how good a rollout's actions look to them now.

    Attributes:
        modules: trained in place.
        critic: trained beside them.
        optimizer: Adam, over both.
        heat: τ of the relaxed gate, annealed by whoever trains.
    """

    def __init__(
        self, modules: Learned, latent: Any, device: Device, config: TrainingConfig, *, norm: float | None
    ) -> None:
        """Bind, and unlock the stage's modules.

        Args:
            modules: trained in place.
            latent: the frozen model, whose `replay` gives log-probabilities with gradients.
            device: the thread for tensor work.
            config: of the stage, filled in.
            norm: what injected vectors are brought to, as in the rollouts.
        """
        self.modules = modules
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            self.critic = Critic(latent.width).to(latent.device)
        self.config = config
        self._latent = latent
        self._device = device
        self.heat = config.gate_temperature
        self._norm = norm
        modules.requires_grad_(False)
        for name in config.trained():
            getattr(modules, name).requires_grad_(True)
        learnt = [p for p in modules.parameters() if p.requires_grad]
        self.optimizer = torch.optim.Adam([*learnt, *self.critic.parameters()], lr=float(config.learning_rate or 0))

    async def scores(self, trace: Trace, *, gradients: bool) -> torch.Tensor:
        """Log-probabilities of a turn's actions under the modules as they are, (a,)."""
        if not trace.draws:
            return torch.zeros(0, device=self._latent.device)
        draws, latents = await self._device.run(self._draws, trace.draws, gradients)
        places = {draw.after: given for draw, given in zip(trace.draws, latents, strict=True)}
        tokens = await self._latent.replay(trace.request, trace.tokens, places)
        return await self._device.run(_interleave, trace, tokens if gradients else tokens.detach(), draws)

    def _draws(self, draws: Sequence[Draw], gradients: bool) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        with torch.set_grad_enabled(gradients):
            return [self._drawn(draw) for draw in draws], [self._injected(draw) for draw in draws]

    def _drawn(self, draw: Draw) -> torch.Tensor:
        """Log-probability of a call's bank and units."""
        score = torch.zeros((), device=draw.window.device)
        if draw.gate is not None and self.config.gate_gradient == "score":
            logit = self.modules.gate(draw.window)
            score = score + nn.functional.logsigmoid(logit if draw.gate else -logit)
        if len(draw.chosen) < len(draw.bank):
            keys = torch.stack([self.modules.key(self._value(kept)) for kept in draw.bank])
            alike = similarity(self.modules.key(draw.window)[None], keys)[0] / self.config.retrieval_temperature
            score = score + plackett_luce(alike, draw.chosen)
        return score

    def _injected(self, draw: Draw) -> torch.Tensor:
        """What was injected, made again. Its value is the hard choice's, its gradient the relaxed one's."""
        latents = self._refined([draw.bank[at] for at in draw.chosen])
        if draw.gate is None or self.config.gate_gradient == "score" or "gate" not in self.config.trained():
            return latents
        soft = torch.sigmoid((self.modules.gate(draw.window) + draw.noise) / self.heat)
        share = soft if draw.gate else 1 - soft  # of the bank that was called on
        share = 1 + share - share.detach()
        return share * latents + (1 - share) * self._refined(draw.passed)

    def _refined(self, units: Sequence[Kept]) -> torch.Tensor:
        return injected(self.modules, torch.cat([self._value(kept) for kept in units]), self._norm)

    def _value(self, kept: Kept) -> torch.Tensor:
        """A unit's value; a merged one's is made again, for C_merge's gradient. What it was made of has none."""
        return kept.value if kept.merged is None else self.modules.merge(kept.merged)

    # ------------------------------------------------------------------------------------------------- before an update

    async def judge(self, turns: Sequence[Trace], reward: float, baseline: float | None) -> list[Actions]:
        """A rollout's actions with advantages.

        The reward comes with the last action of the last turn; each action also earns `ent_coef` times its surprise.
        With a baseline (GRPO) every action's advantage is the reward over it; else it is GAE's over the whole rollout,
        turn after turn (Schulman et al. 2016, eq. 16).

        Args:
            turns: in order.
            reward: in 0 … 1.
            baseline: mean reward of the group, or None.
        """
        made = []
        for trace in turns:
            scores = (await self.scores(trace, gradients=False)).float()
            states = _states(trace)
            zeros = torch.zeros_like(scores)
            made.append(Actions(trace, scores, states, zeros, zeros))
        made = [actions for actions in made if len(actions)]
        if made:
            await self._device.run(self._credit, made, reward, baseline)
        return made

    @torch.no_grad()
    def _credit(self, turns: Sequence[Actions], reward: float, baseline: float | None) -> None:
        scores = torch.cat([actions.scores for actions in turns])
        rewards = -self.config.ent_coef * scores
        rewards[-1] += reward
        values = self.critic(torch.cat([actions.states for actions in turns]))
        if baseline is None:
            gained = advantages(rewards, values, self.config.gamma, float(self.config.gae_lambda or 0))
        else:
            gained = rewards.flip(0).cumsum(0).flip(0) - baseline
        at = 0
        for actions in turns:
            end = at + len(actions)
            actions.advantages, actions.returns = gained[at:end], (gained + values)[at:end]
            at = end

    # ----------------------------------------------------------------------------------------------------- an update

    async def learn(self, rolled: Sequence[Actions], order: Iterator[Sequence[int]]) -> dict[str, float]:
        """Passes over what was rolled out, until they are over or the policy has moved too far.

        Args:
            rolled: turns with their advantages.
            order: for each pass, an order of the turns.

        Returns:
            means of the last pass: `kl` (the estimator (r − 1) − log r), `clipped` (a share of actions), `loss`,
            `value_loss`; and how many `passes` were made.
        """
        everything = torch.cat([actions.advantages for actions in rolled])
        mean, spread = float(everything.mean()), float(everything.std(correction=0)) if len(everything) > 1 else 1.0
        told: dict[str, float] = {"passes": 0.0}
        for _ in range(self.config.n_epochs):
            sums: dict[str, float] = {}
            total = 0
            for batch in _batches(rolled, next(order), self.config.mini_batch_size):
                size = sum(map(len, batch))
                for actions in batch:
                    now = await self.scores(actions.trace, gradients=True)
                    figures = await self._device.run(self._loss, actions, now, mean, spread + 1e-8, size)
                    for name, value in figures.items():
                        sums[name] = sums.get(name, 0.0) + value
                total += size
                await self._device.run(self._step)
            told = {name: value / total for name, value in sums.items()} | {"passes": told["passes"] + 1}
            if told["kl"] > 1.5 * self.config.target_kl:
                break
        return told

    def _loss(self, actions: Actions, now: torch.Tensor, mean: float, spread: float, size: int) -> dict[str, float]:
        """Add one turn's share of the gradient; sums over its actions of what is told."""
        epsilon = float(self.config.clip_range or 0)
        gained = (actions.advantages - mean) / spread
        difference = now.float() - actions.scores
        ratio = difference.exp()
        surrogate = -torch.minimum(ratio * gained, ratio.clamp(1 - epsilon, 1 + epsilon) * gained)
        value = (self.critic(actions.states) - actions.returns).pow(2)
        weight = self.config.vf_coef if self.config.algorithm == "ppo" else 0.0
        ((surrogate + weight * value).sum() / size).backward()
        with torch.no_grad():
            return {
                "loss": float(surrogate.sum()),
                "value_loss": float(value.sum()),
                "kl": float(((ratio - 1) - difference).sum()),
                "clipped": float(((ratio - 1).abs() > epsilon).float().sum()),
            }

    def _step(self) -> None:
        learnt = [p for group in self.optimizer.param_groups for p in group["params"]]
        nn.utils.clip_grad_norm_(learnt, self.config.max_grad_norm)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


def advantages(rewards: torch.Tensor, values: torch.Tensor, gamma: float, decay: float) -> torch.Tensor:
    """GAE over one rollout that ends (Schulman et al. 2016): Σ (γλ)^l δ_{t+l} with δ_t = r_t + γ V_{t+1} − V_t.

    Args:
        rewards: (n,).
        values: (n,), of the states acted in; after the last it is 0.
        gamma: γ.
        decay: λ.
    """
    following = torch.cat([values[1:], values.new_zeros(1)])
    errors = rewards + gamma * following - values
    gained = torch.zeros_like(errors)
    running = errors.new_zeros(())
    for at in range(len(errors) - 1, -1, -1):
        running = errors[at] + gamma * decay * running
        gained[at] = running
    return gained


def _interleave(trace: Trace, tokens: torch.Tensor, draws: Sequence[torch.Tensor]) -> torch.Tensor:
    """Scores of calls and tokens in the order in which they were made, from the first call on."""
    pieces, at = [], trace.draws[0].after
    for draw, score in zip(trace.draws, draws, strict=True):
        pieces += [tokens[at : draw.after], score[None]]
        at = draw.after
    return torch.cat([*pieces, tokens[at:]])


def _states(trace: Trace) -> torch.Tensor:
    """The states of the same actions; a call is made in the newest one of its window."""
    if not trace.draws or trace.states is None:
        return torch.zeros(0, 1)
    pieces, at = [], trace.draws[0].after
    for draw in trace.draws:
        pieces += [trace.states[at : draw.after], draw.window[-1:]]
        at = draw.after
    return torch.cat([*pieces, trace.states[at:]])


def _batches(rolled: Sequence[Actions], order: Sequence[int], size: int) -> Iterator[list[Actions]]:
    """Turns in this order, as many as come to `size` actions at once."""
    batch: list[Actions] = []
    for at in order:
        batch.append(rolled[at])
        if sum(map(len, batch)) >= size:
            yield batch
            batch = []
    if batch:
        yield batch


def linear(done: int, total: int) -> float:
    """The share of the learning rate that is left: 1 at the beginning, falling in a line to 0."""
    return max(0.0, 1.0 - done / total) if total else math.nan
