"""Task-adaptive graphs after G-Designer (Zhang et al. 2024): a graph policy, its training by REINFORCE, and its files.

A worker's feature is its role's embedding beside the task's. Two graph convolutions over the complete graph and a
linear head give each worker a code z; the edge i → j is drawn with probability sigmoid(z_i · z_j) unless it would close
a cycle, pair by pair in a fixed order. All workers also report to the last turn, which is not designed.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from memharness.config import build, resolved
from memharness.identity import digest, file_digest
from memharness.method import Kit
from memharness.methods.vmas import prompts
from memharness.methods.vmas.config import PolicyConfig, TeamConfig
from memharness.methods.vmas.topologies import Edge, Graph, reporting
from memharness.types import Question, Text, UserError

T = TypeVar("T")
WEIGHTS, CARD = "policy.safetensors", "policy.json"


class GraphPolicy(nn.Module):
    """Edge logits of a team from the embeddings of its roles and task."""

    def __init__(self, config: PolicyConfig, width: int) -> None:
        """Draw weights from the config's seed.

        Args:
            config: shape and training.
            width: of the embeddings, d.
        """
        super().__init__()
        self.config, self.width = config, width
        generator = torch.Generator().manual_seed(config.seed)
        wide = width if config.encoder == "vgae" else 2 * width
        self.first = _weights(wide, config.hidden, generator)
        self.second = _weights(config.hidden, width, generator)
        self.head = _weights(width, config.code, generator)
        self.spread = _weights(width, config.code, generator) if config.encoder == "vgae" else None

    def logits(self, roles: Tensor, task: Tensor, noise: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """Edge logits and the divergence of the codes from their prior.

        Args:
            roles: (n, d), one a worker.
            task: (d,).
            noise: given in training: drops units, and draws variational codes.

        Returns:
            logits (n, n), symmetric as in G-Designer's code, and KL (a scalar; 0 for `gcn`).
        """
        n = len(roles)
        if self.config.encoder == "vgae":
            x = torch.cat([roles, task[None]])  # the task is a node of its own, joined to every worker
        else:
            x = torch.cat([roles, task.expand(n, -1)], dim=1)
        mix = torch.full((len(x), len(x)), 1 / len(x))  # D^-1/2 (A + I) D^-1/2 of a complete graph
        hidden = torch.relu(mix @ x @ self.first)
        if noise is not None and self.config.dropout:
            kept = torch.rand(hidden.shape, generator=noise) >= self.config.dropout
            hidden = hidden * kept / (1 - self.config.dropout)
        # A complete graph makes all nodes alike; what a node is itself comes back past the second convolution.
        state = mix @ hidden @ self.second + x[:, : self.width]
        code, kl = state @ self.head, torch.zeros(())
        if self.spread is not None:
            log_variance = (state @ self.spread).clamp(-8, 8)
            kl = -0.5 * (1 + log_variance - code.square() - log_variance.exp()).mean()
            if noise is not None:
                code = code + (log_variance / 2).exp() * torch.randn(code.shape, generator=noise)
        code = code[:n]
        logits = code @ code.T / math.sqrt(code.shape[1])
        return (_minmax(logits) if self.config.scale == "minmax" else logits), kl


def _weights(rows: int, columns: int, generator: torch.Generator) -> nn.Parameter:
    """Glorot-uniform, as graph convolutions are."""
    bound = math.sqrt(6 / (rows + columns))
    return nn.Parameter((torch.rand(rows, columns, generator=generator) * 2 - 1) * bound)


def _minmax(logits: Tensor) -> Tensor:
    """Logits of pairs in [-1, 1]; 0 where all are equal. The diagonal, which is no pair, does not count."""
    off = ~torch.eye(len(logits), dtype=torch.bool)
    if not off.any():
        return logits
    low, high = logits[off].min(), logits[off].max()
    return (logits - low) / (high - low) * 2 - 1 if high > low else torch.zeros_like(logits)


def draw(logits: Tensor, rng: random.Random | None) -> tuple[tuple[Edge, ...], Tensor]:
    """Acyclic edges among n workers, and the log-probability of having drawn them (a scalar with gradient).

    Args:
        logits: (n, n).
        rng: draws each edge by its probability; without it, those of probability 0.5 and more are taken.
    """
    n = len(logits)
    chances = torch.sigmoid(logits).tolist()
    reaches: list[set[int]] = [{node} for node in range(n)]
    signs: dict[Edge, float] = {}
    for u in range(n):
        for v in range(n):
            if u in reaches[v]:  # the edge itself, or one that would close a cycle, is no choice
                continue
            taken = rng.random() < chances[u][v] if rng else chances[u][v] >= 0.5
            signs[u, v] = 1.0 if taken else -1.0
            if taken:
                for node in range(n):
                    if u in reaches[node]:
                        reaches[node] |= reaches[v]
    edges = tuple(edge for edge, sign in signs.items() if sign > 0)
    if not signs:
        return edges, logits.new_zeros(())
    chosen = logits[[u for u, _ in signs], [v for _, v in signs]] * torch.tensor(list(signs.values()))
    return edges, nn.functional.logsigmoid(chosen).sum()


# ------------------------------------------------------------------------------------------------------ at inference


@dataclass(frozen=True)
class Designer:
    """A trained policy with the embedded roles of a team: one graph a question.

    Attributes:
        roles: (n-1, d), one a worker.
        drawn: draw edges by their probability, or take the likely ones.
    """

    policy: GraphPolicy
    roles: Tensor
    drawn: bool

    async def graph(self, question: Question, kit: Kit, rng: random.Random) -> Graph:
        """The question's graph."""
        task = torch.from_numpy(await kit.embedder.embed([task_text(question)], "query"))[0]
        return await kit.device.run(self.design, task, rng)

    def design(self, task: Tensor, rng: random.Random) -> Graph:
        """The graph of an embedded task."""
        if not len(self.roles):
            return Graph(1, ())
        with torch.no_grad():
            logits, _ = self.policy.logits(self.roles, task)
        return reporting(len(self.roles) + 1, draw(logits, rng if self.drawn else None)[0])


async def designer(config: TeamConfig, kit: Kit) -> Designer:
    """The designer of a config whose `graph` names a trained policy.

    Raises:
        UserError: for a folder without one, or one trained on another embedder's vectors.
    """
    policy, card = await kit.device.run(load, Path(config.graph))
    if card["embedder"] != embedder_name(kit):
        raise UserError(
            f"-M graph={config.graph}: trained on vectors of {card['embedder']}, but the embedder is "
            f"{embedder_name(kit)}; name that one with --embedder"
        )
    return Designer(policy, await embed_roles(config, kit), config.edges == "sample")


async def embed_roles(config: TeamConfig, kit: Kit) -> Tensor:
    """The embedded role of each worker, (turns - 1, d)."""
    names, agents = config.role_names(), config.agents or config.turns
    texts = [prompts.roles()[names[turn % agents % len(names)]] for turn in range(config.turns - 1)]
    return torch.from_numpy(await kit.embedder.embed(texts) if texts else _nothing(kit.embedder.width))


def _nothing(width: int) -> Any:
    import numpy as np

    return np.zeros((0, width), np.float32)


def task_text(question: Question) -> str:
    """What of a question is embedded: its words, those of its choices, and what is derived of its pictures."""
    choices = [part.text for choice in question.choices for part in choice.parts if isinstance(part, Text)]
    return "\n".join(filter(None, (question.text(), *choices, question.derived_text("caption", "ocr"))))


def embedder_name(kit: Kit) -> str:
    """The embedder as a policy's card names it."""
    card = kit.embedder.card
    return f"{card.name}:{card.model}@{card.revision}"


# ---------------------------------------------------------------------------------------------------------- training


@dataclass(frozen=True)
class Task(Generic[T]):
    """What a policy is trained on: an embedded task, (d,), and whatever `play` needs to know of it."""

    vector: Tensor
    what: T


@dataclass(frozen=True)
class Update:
    """One step of training: the mean reward of its graphs, and their mean number of edges."""

    iteration: int
    reward: float
    edges: float


async def train(
    policy: GraphPolicy,
    roles: Tensor,
    tasks: Sequence[Task[T]],
    play: Callable[[T, Graph, int], Awaitable[float]],
) -> list[Update]:
    """Train a policy in place by REINFORCE: the loss is -(reward - baseline) · log p(graph), plus KL for `vgae`.

    Args:
        policy: with the config that says how.
        roles: (n, d), one a worker.
        tasks: drawn in seeded batches; a pass over all of them ends before one comes again.
        play: answers a task with a graph and says how good that was, 0 to 1; the number tells apart its graphs. Those
            of a batch are played beside each other.

    Returns:
        one update an iteration.

    Raises:
        ValueError: without tasks.
    """
    if not tasks:
        raise ValueError("a policy needs tasks to train on")
    config = policy.config
    rng, noise = random.Random(config.seed), torch.Generator().manual_seed(config.seed)
    learned = [policy.first, policy.second] if config.learns == "gcn" else list(policy.parameters())
    optimizer = torch.optim.Adam(learned, lr=config.lr)
    waiting: list[Task[T]] = []
    curve = []
    for iteration in range(config.iterations):
        batch = []
        for _ in range(config.batch):
            waiting = waiting or rng.sample(list(tasks), len(tasks))
            batch.append(waiting.pop())
        found = [policy.logits(roles, task.vector, noise) for task in batch]
        drawn = [[draw(logits, rng) for _ in range(config.samples)] for logits, _ in found]
        plays = [
            play(task.what, reporting(len(roles) + 1, edges), iteration * config.samples + number)
            for task, graphs in zip(batch, drawn, strict=True)
            for number, (edges, _) in enumerate(graphs)
        ]
        rewards = torch.tensor(await asyncio.gather(*plays)).view(config.batch, config.samples)
        chances = torch.stack([torch.stack([chance for _, chance in graphs]) for graphs in drawn])
        base = rewards.mean(1, keepdim=True) if config.samples > 1 else rewards.mean()
        gain = rewards - base if config.baseline else rewards
        loss = config.kl * torch.stack([kl for _, kl in found]).mean() - (gain * chances).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        edges = sum(len(edges) for graphs in drawn for edges, _ in graphs) / rewards.numel()
        curve.append(Update(iteration, float(rewards.mean()), edges))
    return curve


# ------------------------------------------------------------------------------------------------------------- files


def save(policy: GraphPolicy, folder: Path, embedder: str, curve: Sequence[Update] = ()) -> None:
    """Write a policy: its weights as safetensors, and what it is and how it was trained as JSON."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    save_file({name: tensor.detach().contiguous() for name, tensor in policy.state_dict().items()}, folder / WEIGHTS)
    card = {
        "width": policy.width,
        "embedder": embedder,
        "config": resolved(policy.config),
        "curve": [vars(update) for update in curve],
    }
    (folder / CARD).write_text(json.dumps(card, indent=1) + "\n", "utf-8")


def load(folder: Path) -> tuple[GraphPolicy, dict[str, Any]]:
    """A policy from its folder, and its card.

    Raises:
        UserError: for a file that is missing or damaged; the message names it.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    card = _card(folder)
    policy = GraphPolicy(build(PolicyConfig, card["config"], "config", "vmas"), card["width"])
    try:
        policy.load_state_dict(load_file(folder / WEIGHTS))
    except (OSError, SafetensorError, RuntimeError) as error:
        raise UserError(f"{folder / WEIGHTS}: {_one_line(error)}; train the policy again") from None
    return policy.eval(), card


def content(folder: Path) -> str:
    """Digest of a policy's content, which stands for it in a run's identity.

    Raises:
        UserError: for a file that is missing or damaged.
    """
    card = _card(folder)
    try:
        return digest([file_digest(folder / WEIGHTS), card["width"], card["embedder"], card["config"]])
    except OSError as error:
        raise UserError(f"{folder / WEIGHTS}: {_one_line(error)}; train the policy again") from None


def _card(folder: Path) -> dict[str, Any]:
    file = folder / CARD
    try:
        card = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{file}: {_one_line(error)}; -M graph takes the folder of a trained graph policy") from None
    wanted = {"width": int, "embedder": str, "config": dict}
    for name, kind in wanted.items():
        if not isinstance(card, dict) or not isinstance(card.get(name), kind):
            raise UserError(f"{file}: {name}: missing or not of its kind; train the policy again")
    found: dict[str, Any] = card
    return found


def _one_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
