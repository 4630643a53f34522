"""Training a team's graph policy on a benchmark: questions, a kit without a run, and the reward of an answer."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch

from memharness.benchmark import Benchmark
from memharness.budget import RunBudget
from memharness.identity import digest
from memharness.media import MediaStore
from memharness.method import Captioner, Images, MeteredEmbedder, MeteredLatent, MeteredReader
from memharness.methods.vmas.config import PolicyConfig, VmasConfig
from memharness.methods.vmas.dynamic import (
    GraphPolicy,
    Task,
    Update,
    embed_roles,
    embedder_name,
    save,
    task_text,
    train,
)
from memharness.methods.vmas.text import TextTeam
from memharness.methods.vmas.topologies import Graph
from memharness.metric import Judged
from memharness.prompts import Renderer, View, answer_request
from memharness.reader import Embedder, Reader, Reply, Request, Sampling, device_thread
from memharness.store import RequestCache
from memharness.trainers import recorded
from memharness.types import (
    Asked,
    Case,
    Evidence,
    Item,
    Outcome,
    OverWindow,
    Part,
    Question,
    Readout,
    Record,
    Text,
    Usage,
    UserError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from contextlib import AbstractContextManager

    import numpy as np
    from numpy.typing import NDArray

ITEMS = 10  # items of a readout, as in a run that names no number


class Kept:
    """A reader whose replies are kept, so that a training that was killed goes the same way again at no cost."""

    def __init__(self, reader: Reader, cache: RequestCache, spent: Counter[str]) -> None:
        """Wrap a started reader; `spent` sums what its replies cost when they were made."""
        self.card, self.counter = reader.card, reader.counter
        self._reader, self._cache, self._spent = reader, cache, spent
        self._identity = reader.identity()
        self._places = asyncio.Semaphore(max(1, reader.card.max_inflight))

    async def generate(self, request: Request) -> Reply:
        """See `Reader.generate`."""

        async def call() -> dict[str, Any]:
            async with self._places:
                return asdict(await self._reader.generate(request))

        value, _ = await self._cache.reply(digest({"reader": self._identity, "request": asdict(request)}), call)
        reply = Reply(**{**value, "usage": Usage(**value["usage"]), "tools": tuple(value["tools"])})
        self._spent.update(calls=1, tokens=reply.usage.text + reply.usage.image + reply.usage.output)
        return reply


class Vectors:
    """An embedder as a method sees it."""

    def __init__(self, embedder: Embedder) -> None:
        """Wrap a started embedder."""
        self.card, self.width = embedder.card, embedder.width
        self._embedder = embedder

    async def embed(
        self, inputs: Sequence[str | Sequence[Part]], kind: Literal["item", "query"] = "item"
    ) -> NDArray[np.float32]:
        """L2-normalised vectors, shape (n, width)."""
        parts = [(Text(one),) if isinstance(one, str) else tuple(one) for one in inputs]
        return (await self._embedder.embed(parts, kind))[0]


class Thread:
    """The one thread for tensor work."""

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run there."""
        return await asyncio.get_running_loop().run_in_executor(device_thread(), function, *arguments)


@dataclass
class Desk:
    """What a team is built with while its graph is trained: a kit that belongs to no run and charges nobody."""

    context: str
    renderer: Renderer
    model: MeteredReader
    embedder: MeteredEmbedder
    images: Images
    prompt_name: str
    max_tokens: int
    seed: int
    folder: Path
    device: Thread = field(default_factory=Thread)
    items: int = ITEMS

    def reader(self, role: str = "answer") -> MeteredReader:
        """The one reader of all agents."""
        return self.model

    def rng(self, *key: object) -> random.Random:
        """A generator seeded by the training's seed and this key."""
        return random.Random(digest([self.seed, self.context, *map(str, key)]))

    def render(self, evidence: Sequence[Evidence]) -> tuple[Part, ...]:
        """Evidence as the harness would show it."""
        return self.renderer.evidence(evidence)

    def prompt(self, question: Question, readout: Readout) -> Request:
        """The harness's own answer prompt."""
        sampling = Sampling(max_tokens=self.max_tokens)
        return answer_request(question, readout, self.renderer, sampling, self.prompt_name)

    @property
    def captioner(self) -> Captioner:
        """None here."""
        raise UserError("a graph is trained without a captioner")

    def latent(self, role: str = "answer") -> MeteredLatent:
        """None here."""
        raise UserError("a graph is trained on teams that talk in words")

    async def open_reader(self, spec: str) -> MeteredReader:
        """None here."""
        raise UserError(f"a graph is trained with one reader; {spec} cannot be opened beside it")

    def phase(self, name: object) -> AbstractContextManager[None]:
        """No ledger is kept."""
        from contextlib import nullcontext

        return nullcontext()

    def background(self, work: Coroutine[Any, Any, None]) -> None:
        """Nothing of a team runs in the background."""
        work.close()
        raise UserError("a graph is trained without work in the background")


@dataclass(frozen=True)
class Posed:
    """A question to train on, with what its context remembers."""

    context: str
    items: Sequence[Item]
    case: Case


async def pose(benchmark: Benchmark, subset: str | None, limit: int | None) -> list[Posed]:
    """The first questions of a benchmark, pictures prepared.

    Raises:
        UserError: for a live benchmark, or one without a question.
    """
    out: list[Posed] = []
    async for context, items, case in recorded(benchmark, subset):
        if limit is not None and len(out) >= limit:
            break
        out.append(Posed(context, tuple(items), case))
    if not out:
        raise UserError(f"--bench {benchmark.card.name}: has no question with these data")
    return out


class Reward:
    """The score of an answer, by one of the benchmark's own metrics of single questions."""

    def __init__(self, benchmark: Benchmark, name: str | None) -> None:
        """Choose the score: the one named, else the benchmark's primary one, else the first there is."""
        self._metrics = [m for m in benchmark.metrics() if m.unit == "question" and not isinstance(m, Judged)]
        self._name, self._primary = name, benchmark.card.primary

    def of(self, posed: Posed, text: str | None, evidence: tuple[Evidence, ...] = ()) -> float:
        """The reward, 0 to 1; an answer that cannot be read is worth 0.

        Raises:
            UserError: for a score that no metric of single questions gives.
        """
        question, gold = posed.case.question, posed.case.gold
        record = Record(question.id, posed.context, 0, 0, Outcome.OK, answer=text, evidence=evidence)
        scores: dict[str, Any] = {}
        for metric in self._metrics:
            scores |= metric.score([Asked(question, gold, record)], {})
        name = self._name or (self._primary if self._primary in scores else next(iter(scores), ""))
        if name not in scores:
            raise UserError(f"--score {name}: no score of single questions; there are: {', '.join(scores) or 'none'}")
        return float(scores[name].value or 0.0)


@dataclass(frozen=True)
class Trained:
    """What came of a training."""

    folder: Path
    questions: int
    curve: Sequence[Update]
    calls: int
    tokens: int
    over_window: int

    def report(self) -> dict[str, Any]:
        """As JSON: the mean reward of the first and the last update, and what it cost."""
        return {
            "graph": str(self.folder), "questions": self.questions, "updates": len(self.curve),
            "reward": [self.curve[0].reward, self.curve[-1].reward], "calls": self.calls, "tokens": self.tokens,
            "over_window": self.over_window,
        }  # fmt: skip


async def train_graph(
    benchmark: Benchmark,
    posed: Sequence[Posed],
    reader: Reader,
    embedder: Embedder,
    media: MediaStore,
    team: VmasConfig,
    policy: PolicyConfig,
    out: Path,
    *,
    max_tokens: int = 64,
    score: str | None = None,
) -> Trained:
    """Train a policy for a team on questions with gold, and write it to a folder.

    A graph whose prompts do not fit the window is worth 0: not making them so long is what it is to learn.

    Args:
        benchmark: whose metric is the reward.
        posed: the questions.
        reader: of all agents, not started.
        embedder: of roles and tasks, not started.
        media: of the pictures.
        team: turns, roles, content; its topology does not matter.
        policy: shape and training.
        out: the folder; replies are kept beside the policy.
        max_tokens: of the last turn.
        score: the reward by name.

    Raises:
        UserError: for a team without workers, or a score that there is not.
        ReaderError: the reader failed.
    """
    if team.turns < 2:
        raise UserError("train vmas-graph: a team of one turn has no graph; give -M turns=2 or more")
    reward = Reward(benchmark, score)
    reward.of(posed[0], "")  # an unknown score is said before anything is spent
    spent: Counter[str] = Counter()
    out.mkdir(parents=True, exist_ok=True)
    cache = RequestCache(out / "replies.sqlite")
    await reader.start()
    await embedder.start()
    try:
        model, vectors = Kept(reader, cache, spent), Vectors(embedder)
        view: View = "pixels" if "image" in reader.card.capabilities else "captions"

        def desk(context: str, items: Mapping[str, Item]) -> Desk:
            name = benchmark.card.prompt
            return Desk(context, Renderer(items, view), model, vectors, media, name, max_tokens, policy.seed, out)

        async def play(one: Posed, graph: Graph, number: int) -> float:
            known = {item.id: item for item in one.items}
            kit = desk(one.context, known)
            memory = TextTeam(team, kit)
            await memory.observe(one.items)
            await memory.ready()
            question = one.case.question
            budget = RunBudget(None, None, (), kit.renderer)
            try:
                answer = await memory.along(graph, question, budget, kit.rng("graph", question.id, number))
            except OverWindow:
                spent["over_window"] += 1
                return 0.0
            return reward.of(one, answer.text, answer.readout.evidence if answer.readout else ())

        kit = desk("", {})
        found = torch.from_numpy(await vectors.embed([task_text(one.case.question) for one in posed], "query"))
        tasks = [Task(vector, one) for vector, one in zip(found, posed, strict=True)]
        made = GraphPolicy(policy, vectors.width)
        curve = await train(made, await embed_roles(team, kit), tasks, play)
        save(made, out, embedder_name(kit), curve)
    finally:
        cache.close()
        await reader.close()
        await embedder.close()
    return Trained(out, len(posed), curve, spent["calls"], spent["tokens"], spent["over_window"])
