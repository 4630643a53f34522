"""PPO and GRPO over a frozen model: log-probabilities of a rollout's actions with gradients, and the step on them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import nn

from memharness.method import Device
from memharness.methods.l2vmas.banks import similarity
from memharness.methods.l2vmas.config import TrainingConfig
from memharness.methods.l2vmas.rollout import Draw, Kept, Trace, plackett_luce
from memharness.methods.l2vmas.synthesis import Learned, matched

T = TypeVar("T")


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


@dataclass(frozen=True, slots=True)
class Rollout:
    """What came of a question: its turns in order, the reward in 0 … 1, and its group's mean reward, or None (PPO)."""

    turns: Sequence[Trace]
    reward: float
    baseline: float | None


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
            latent: the frozen model, whose `replays` gives log-probabilities with gradients.
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

    async def scores(self, traces: Sequence[Trace], *, gradients: bool) -> list[torch.Tensor]:
        """Log-probabilities of the turns' actions under the modules as they are, (a,) each.

        All turns go through the modules and the model beside each other.
        """
        draws = [draw for trace in traces for draw in trace.draws]
        called, latents = await self._device.run(self._draws, draws, gradients)
        replayed, at = [], 0
        for trace in traces:
            places = {draw.after: latents[at + n] for n, draw in enumerate(trace.draws)}
            at += len(trace.draws)
            replayed.append((trace.request, trace.tokens, places))
        tokens = await self._latent.replays(replayed)
        return await self._device.run(_interleaved, traces, tokens, called, gradients)

    def _draws(self, draws: Sequence[Draw], gradients: bool) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        with torch.set_grad_enabled(gradients):
            return self._drawn(draws), self._injected(draws)

    def _drawn(self, draws: Sequence[Draw]) -> list[torch.Tensor]:
        """Log-probabilities of each call's bank and units."""
        scores = [torch.zeros((), device=draw.window.device) for draw in draws]
        if self.config.gate_gradient == "score":
            for at, draw in enumerate(draws):
                if draw.gate is not None:
                    logit = self.modules.gate(draw.window)
                    scores[at] = scores[at] + nn.functional.logsigmoid(logit if draw.gate else -logit)
        choosing = [at for at, draw in enumerate(draws) if len(draw.chosen) < len(draw.bank)]
        if not choosing:
            return scores
        values = [self._value(kept) for at in choosing for kept in draws[at].bank]
        keys = self._keys([*(draws[at].window for at in choosing), *values])
        queries, of_units = keys[: len(choosing)], keys[len(choosing) :]
        banks = torch.split(of_units, [len(draws[at].bank) for at in choosing])
        for at, query, bank in zip(choosing, queries, banks, strict=True):
            alike = similarity(query[None], bank)[0] / self.config.retrieval_temperature
            scores[at] = scores[at] + plackett_luce(alike, draws[at].chosen)
        return scores

    def _keys(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        """Keys of values, (n, width); of one that comes again and again, since calls share a bank, made once."""
        once = {id(value): value for value in values}
        place = {name: n for n, name in enumerate(once)}
        return self.modules.compress.many(list(once.values()))[[place[id(value)] for value in values], 0]

    def _injected(self, draws: Sequence[Draw]) -> list[torch.Tensor]:
        """What was injected, made again. Its value is the hard choice's, its gradient the relaxed one's."""
        relaxed = self.config.gate_gradient == "relaxed" and "gate" in self.config.trained()
        gated = [at for at, draw in enumerate(draws) if draw.gate is not None] if relaxed else []
        units = [[draw.bank[at] for at in draw.chosen] for draw in draws] + [draws[at].passed for at in gated]
        latents = self._refined(units)
        for at, passed in zip(gated, latents[len(draws) :], strict=True):
            draw = draws[at]
            soft = torch.sigmoid((self.modules.gate(draw.window) + draw.noise) / self.heat)
            share = soft if draw.gate else 1 - soft  # of the bank that was called on
            share = 1 + share - share.detach()
            latents[at] = share * latents[at] + (1 - share) * passed
        return latents[: len(draws)]

    def _refined(self, calls: Sequence[Sequence[Kept]]) -> list[torch.Tensor]:
        if not calls:
            return []
        read = [torch.cat([self._value(kept) for kept in units]) for units in calls]
        latents = self.modules.refining.many(read)
        return list(latents if self._norm is None else matched(latents, self._norm))

    def _value(self, kept: Kept) -> torch.Tensor:
        """A unit's value; a merged one's is made again, for C_merge's gradient. What it was made of has none."""
        return kept.value if kept.merged is None else self.modules.merge(kept.merged)

    # ------------------------------------------------------------------------------------------------- before an update

    async def judge(self, rollouts: Sequence[Rollout]) -> list[Actions]:
        """Rollouts' actions with advantages.

        The reward comes with the last action of the last turn; each action also earns `ent_coef` times its surprise.
        With a baseline (GRPO) every action's advantage is the reward over it; else it is GAE's over the whole rollout,
        turn after turn (Schulman et al. 2016, eq. 16).
        """
        acted = [trace for rollout in rollouts for trace in rollout.turns if trace.draws]
        scores: list[torch.Tensor] = []
        for some in _portions(acted, self.config.together):
            scores += await self.scores(some, gradients=False)
        score = iter(scores)
        judged: list[Actions] = []
        for rollout in rollouts:
            made = []
            for trace in rollout.turns:
                if trace.draws:
                    now = next(score).float()
                    made.append(Actions(trace, now, _states(trace), torch.zeros_like(now), torch.zeros_like(now)))
            if made:
                await self._device.run(self._credit, made, rollout.reward, rollout.baseline)
            judged += made
        return judged

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
                for some in _portions(batch, self.config.together):
                    now = await self.scores([actions.trace for actions in some], gradients=True)
                    figures = await self._device.run(self._loss, some, now, mean, spread + 1e-8, size)
                    for name, value in figures.items():
                        sums[name] = sums.get(name, 0.0) + value
                total += size
                await self._device.run(self._step)
            told = {name: value / total for name, value in sums.items()} | {"passes": told["passes"] + 1}
            if told["kl"] > 1.5 * self.config.target_kl:
                break
        return told

    def _loss(
        self, turns: Sequence[Actions], now: Sequence[torch.Tensor], mean: float, spread: float, size: int
    ) -> dict[str, float]:
        """Add some turns' share of the gradient; sums over their actions of what is told."""
        epsilon = float(self.config.clip_range or 0)
        gained = (torch.cat([actions.advantages for actions in turns]) - mean) / spread
        difference = torch.cat(list(now)).float() - torch.cat([actions.scores for actions in turns])
        ratio = difference.exp()
        surrogate = -torch.minimum(ratio * gained, ratio.clamp(1 - epsilon, 1 + epsilon) * gained)
        returns = torch.cat([actions.returns for actions in turns])
        value = (self.critic(torch.cat([actions.states for actions in turns])) - returns).pow(2)
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


def _interleaved(
    traces: Sequence[Trace], tokens: Sequence[torch.Tensor], called: Sequence[torch.Tensor], gradients: bool
) -> list[torch.Tensor]:
    """Each turn's scores of calls and tokens in the order in which they were made, from its first call on."""
    scores, score = [], iter(called)
    for trace, spoken in zip(traces, tokens, strict=True):
        pieces, at = [], trace.draws[0].after if trace.draws else len(spoken)
        for draw in trace.draws:
            pieces += [spoken[at : draw.after], next(score)[None]]
            at = draw.after
        whole = torch.cat([*pieces, spoken[at:]])
        scores.append(whole if gradients else whole.detach())
    return scores


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


def _portions(things: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for at in range(0, len(things), size):
        yield things[at : at + size]


def linear(done: int, total: int) -> float:
    """The share of the learning rate that is left: 1 at the beginning, falling in a line to 0."""
    return max(0.0, 1.0 - done / total) if total else math.nan
