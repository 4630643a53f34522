"""The engine of a team: turns along a graph, what each is shown and what it cost; not what they tell each other."""

from __future__ import annotations

import asyncio
import random
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from memharness.method import Budget, Kit, Memory
from memharness.methods.vmas import prompts
from memharness.methods.vmas.config import TeamConfig
from memharness.methods.vmas.prompts import DECIDER
from memharness.methods.vmas.reports import Report, read_reply
from memharness.methods.vmas.topologies import Graph, linear, static
from memharness.reader import Message, Reply, Request, Sampling, count
from memharness.retrieval import BM25, searchable
from memharness.types import (
    Answer,
    BudgetError,
    Evidence,
    Item,
    OverWindow,
    Part,
    Question,
    Readout,
    Text,
    Usage,
    UserError,
    did_you_mean,
)

if TYPE_CHECKING:
    from memharness.methods.vmas.dynamic import Designer

C = TypeVar("C", bound=TeamConfig)
UNSEEN = "(a picture that you are not shown)"
COUNTS = ("prompt", "visual", "passed", "output", "reasoning")
NOTHING, SILENCE = Report(""), Reply("", Usage())


@dataclass
class Turn:
    """One turn, filled in as it is taken. Agents and turns are numbered from 0 here, and from 1 in prompts and records.

    Attributes:
        hears: turns whose reports it is told.
        own: its agent's turn before this one, of which it is told too.
        pictures: whether it is shown the pictures of question and memory.
        passed: tokens of what it was told, a part of the prompt's.
    """

    number: int
    agent: int
    role: str
    hears: tuple[int, ...]
    pictures: bool = True
    own: int | None = None
    passed: int = 0
    report: Report = NOTHING
    reply: Reply = SILENCE
    flags: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Its agent's role in the ledger."""
        return agent_name(self.agent)

    def tokens(self) -> dict[str, int]:
        """What it cost, as the engine reports it; `passed` is a part of `prompt`, `reasoning` of `output`."""
        usage = self.reply.usage
        return dict(zip(COUNTS, (usage.text, usage.image, self.passed, usage.output, usage.reasoning), strict=True))

    def line(self) -> dict[str, Any]:
        """The turn as it stands in the record."""
        return {
            "turn": self.number + 1,
            "agent": self.name,
            "role": self.role,
            "from": [turn + 1 for turn in self.hears],
            "own": None if self.own is None else self.own + 1,
            "pictures": self.pictures,
            "tokens": self.tokens(),
            "finish": self.reply.finish,
            "text": self.reply.text,
            "reasoning": self.reply.reasoning,
            "sections": self.report.sections(),
            "flags": [*self.report.flags, *self.flags],
        }


def agent_name(agent: int) -> str:
    """What an agent is called in the ledger and in `--model`: `agent1` for agent 0."""
    return f"agent{agent + 1}"


def agents_of(config: TeamConfig) -> int:
    """How many agents have a turn."""
    return min(config.agents or config.turns, config.turns)


def check_roles(config: TeamConfig) -> None:
    """Hold a config's roles to those that are written.

    Raises:
        UserError: for a role nobody wrote, or none at all.
    """
    known, named = prompts.roles(), config.role_names()
    unknown = [name for name in named if name not in known]
    if unknown or not named:
        what = f"{unknown[0]} is no role{did_you_mean(unknown[0], known)}" if unknown else "no role is named"
        raise UserError(f"-M roles={config.roles}: {what}; there are: {', '.join(known)}")


def settle(config: C) -> C:
    """A team's config with what the preset decides, and a trained graph policy's content in place of its path.

    Raises:
        UserError: for a role nobody wrote, a policy that is missing or damaged, or one that would not be used.
    """
    check_roles(config)
    if config.graph and config.topology != "dynamic":
        raise UserError(f"-M graph={config.graph}: only a dynamic team draws graphs; add -M topology=dynamic")
    settled = config.settled().model_copy(update={"graph_sha256": ""})
    if not config.graph:
        return settled
    from memharness.methods.vmas.dynamic import content

    return settled.model_copy(update={"graph_sha256": content(Path(config.graph))})


def cast(config: TeamConfig, graph: Graph) -> list[Turn]:
    """Who takes each turn, in which role, and whom it hears. The last turn decides."""
    hub = config.topology == "centralized" and config.hub == "both" and graph.n > 2
    turns = []
    for number, hears in enumerate(graph.predecessors):
        last = number == graph.sink
        agent = 0 if hub and last else number % (config.agents or graph.n)
        role = DECIDER if last else "coordinator" if hub and not number else role_of(config, agent)
        seen = {"all": True, "sources": not hears, "ends": last or not hears, "last": last, "none": False}
        turns.append(Turn(number, agent, role, hears, seen[config.pictures]))
    return turns


def role_of(config: TeamConfig, agent: int) -> str:
    """The role of an agent that does not decide."""
    names = config.role_names()
    return names[agent % len(names)]


def own_turn(turn: Turn, turns: Sequence[Turn], graph: Graph) -> int | None:
    """The latest turn of the same agent that is over when this one begins and is not heard anyway."""
    depth = graph.depth
    over = [t.number for t in turns if t.agent == turn.agent and depth[t.number] < depth[turn.number]]
    return max((number for number in over if number not in turn.hears), key=lambda number: depth[number], default=None)


class TeamMemory(Memory):
    """Keeps items as they are; a question is worked on by a team, and the last turn's words are the answer."""

    config: TeamConfig

    def __init__(self, config: TeamConfig, kit: Kit, designer: Designer | None = None) -> None:
        """Bind to a settled config and a kit; `designer` makes the graphs of `dynamic`."""
        self.config = config
        self.kit = kit
        self.designer = designer
        self.items: list[Item] = []
        self.index: BM25 | None = None

    @abstractmethod
    def work(self, question: Question, evidence: tuple[Evidence, ...], graph: Graph, rng: random.Random) -> Work:
        """One question's turns, none taken yet."""

    async def observe(self, items: Sequence[Item]) -> None:
        """Keep items."""
        self.items += items

    async def ready(self) -> None:
        """Index everything observed so far, where agents are shown what BM25 finds."""
        if self.config.memory == "bm25":
            self.index = BM25([searchable(item, True) for item in self.items])

    def stored(self) -> int:
        """Items held."""
        return len(self.items)

    async def answer(self, question: Question, budget: Budget) -> Answer:
        """The last turn's reply to the benchmark's own prompt, and every turn in the trace.

        Raises:
            OverWindow: a turn's prompt is longer than its reader's window; the message names the turn.
            BudgetError: all of the memory is to be shown and costs more than the budget.
        """
        rng = self.kit.rng("vmas", question.id)
        graph, how = await self._graph(question, rng)
        answer = await self.along(graph, question, budget, rng)
        return replace(answer, trace={**how, **answer.trace})

    async def along(self, graph: Graph, question: Question, budget: Budget, rng: random.Random) -> Answer:
        """The answer of a team on this graph; see `answer`."""
        evidence = self._evidence(question, budget)
        work = self.work(question, evidence, graph, rng)
        await work.all()
        trace = {"edges": [[u + 1, v + 1] for u, v in graph.edges], **work.trace()}
        return Answer(work.turns[graph.sink].reply.text.strip(), readout=Readout(evidence), trace=trace)

    def _evidence(self, question: Question, budget: Budget) -> tuple[Evidence, ...]:
        if self.index is not None:
            rows, scores = self.index.top_k(searchable(question, True), budget.items or self.kit.items)
            ranked = [Evidence(self.items[row].id, score=float(s)) for row, s in zip(rows, scores, strict=True)]
            return budget.fit(ranked, question)
        evidence = tuple(Evidence(item.id) for item in self.items)
        if len(budget.fit(evidence, question)) < len(evidence):
            raise BudgetError(f"all {len(evidence)} items cost more than the budget; -M memory=bm25 shows what fits")
        return evidence

    async def _graph(self, question: Question, rng: random.Random) -> tuple[Graph, dict[str, Any]]:
        """The question's graph, and what the record says of how it came about."""
        config = self.config
        how: dict[str, Any] = {"topology": config.topology}
        name: str = config.topology
        if config.topology == "dynamic":
            if self.designer is not None:
                return await self.designer.graph(question, self.kit, rng), {**how, "designed": True}
            name = config.fallback
            how |= {"designed": False, "fallback": name}
        if name == "random" and config.routes == "redirect":
            return linear(config.turns), {**how, "routes": "redirect"}
        return static(name, config.turns, rng, layers=config.layers, hub=config.hub or "last"), how


class Work:
    """One question's turns. A kind of team says what a turn is told, how it is asked, and how its reply is read."""

    config: TeamConfig

    def __init__(
        self, memory: TeamMemory, question: Question, evidence: tuple[Evidence, ...], graph: Graph, rng: random.Random
    ) -> None:
        """Cast the turns; none is taken yet."""
        self.config, self.kit = memory.config, memory.kit
        self.question = question
        self.shown = self.kit.render(evidence) if evidence else ()
        self.graph = graph
        self.rng = rng
        self.turns = cast(self.config, graph)
        self.taken: list[int] = []
        named = self.config.fallback if self.config.topology == "dynamic" and not self.config.graph else None
        self.redirects = (named or self.config.topology) == "random" and self.config.routes == "redirect"

    # ------------------------------------------------------------------------------------- what a kind of team says

    def told(self, turn: Turn) -> tuple[Part, ...]:
        """What a turn is told of those before it, as parts of its prompt; nothing, unless a kind of team says more."""
        return ()

    async def ask(self, turn: Turn, request: Request) -> Reply:
        """The turn's reply, by its agent's reader."""
        return await self.kit.reader(turn.name).generate(request)

    async def read(self, turn: Turn) -> Report:
        """The report in a reply, by rule."""
        return read_reply(turn.reply)

    def spent(self) -> Iterator[tuple[str, Mapping[str, int]]]:
        """Tokens of every call with the role that it was made in."""
        return ((turn.name, turn.tokens()) for turn in self.turns)

    # --------------------------------------------------------------------------------------------------- the turns

    async def all(self) -> None:
        """Take the turns, generation by generation; those of one generation beside each other.

        Raises:
            whatever the first failing turn raises; the others of its generation are then stopped.
        """
        for generation in self.graph.generations:
            failure: BaseException | None = None
            try:
                async with asyncio.TaskGroup() as group:
                    for number in generation:
                        group.create_task(self.take(self.turns[number]))
            except BaseExceptionGroup as failed:
                failure = failed.exceptions[0]
            if failure is not None:  # outside the handler, so that its own cause stays
                raise failure

    async def take(self, turn: Turn) -> None:
        """Take one turn: prompt, reply, report.

        Raises:
            OverWindow: the prompt does not fit; the message names the turn.
        """
        self.taken.append(turn.number)
        if self.redirects:
            self._redirect(turn)
        turn.own = own_turn(turn, self.turns, self.graph)
        told = self.told(turn)
        turn.passed = count(self.kit.reader(turn.name).counter, told)
        last = turn.number == self.graph.sink
        request = self._last(told) if last else self._report(turn, told)
        try:
            turn.reply = await self.ask(turn, request if turn.pictures else _without_pictures(request))
        except OverWindow as error:
            raise OverWindow(f"turn {turn.number + 1} of {self.graph.n} ({turn.role}): {error}") from error
        if not last:
            turn.report = await self.read(turn)
            return
        said = {"empty": not turn.reply.text.strip(), "truncated": turn.reply.finish == "length"}
        turn.flags += [name for name, yes in {**said, "refused": turn.reply.finish == "refused"}.items() if yes]

    def _last(self, told: tuple[Part, ...]) -> Request:
        """The benchmark's own answer prompt, with what is told beside the evidence: without it, a single agent's."""
        return self._prompt(self.question, told)

    def _report(self, turn: Turn, told: tuple[Part, ...]) -> Request:
        """The same task without its answer format, and what a report is."""
        base = self._prompt(replace(self.question, instruction="", prefill=""), told)
        task = next(message.parts for message in base.messages if message.role == "user")
        names = ", ".join(f"{agent + 1} ({role_of(self.config, agent)})" for agent in self._free(turn))
        redirect = prompts.words("redirect.v1", colleagues=names) if self.redirects and names else ()
        messages = prompts.fill("agent.v1", role=prompts.roles()[turn.role], task=task, redirect=redirect)
        return Request(messages, self._sampling(base.sampling, turn), sample=turn.number)

    def _prompt(self, question: Question, told: tuple[Part, ...]) -> Request:
        between = (Text("\n\n"),) if self.shown and told else ()
        return self.kit.prompt(question, Readout(parts=(*self.shown, *between, *told)))

    def _sampling(self, base: Sampling, turn: Turn) -> Sampling:
        """The run's decoding with this method's limits; a drawn report has a seed, so that a rerun draws the same."""
        heat = base.temperature if self.config.temperature is None else self.config.temperature
        seed = self.kit.rng("vmas", self.question.id, turn.number).getrandbits(31) if heat else base.seed
        return replace(base, temperature=heat, max_tokens=self.config.agent_tokens, seed=seed)

    # ---------------------------------------------------------------------------------------------------- redirect

    def _redirect(self, turn: Turn) -> None:
        """Give a turn to the agent that the turn before named, or drawn among those it could name, if it named none."""
        if turn.number in (0, self.graph.sink):
            return
        before = self.turns[turn.number - 1]
        free = self._free(before)
        named = None if before.report.next is None else before.report.next - 1
        if named not in free:
            turn.flags.append("drawn")
            named = self.rng.choice(free)
        turn.agent, turn.role = named, role_of(self.config, named)

    def _free(self, turn: Turn) -> list[int]:
        """Agents that a turn may name: those yet unheard, else all others; none if the last turn is next.

        The agent of the last turn decides and is not named, unless it is the only one there is.
        """
        if turn.number + 1 >= self.graph.sink:
            return []
        last = self.turns[self.graph.sink].agent
        workers = [agent for agent in range(agents_of(self.config)) if agent != last] or [last]
        heard = {other.agent for other in self.turns[: turn.number + 1]}
        return [a for a in workers if a not in heard] or [a for a in workers if a != turn.agent] or workers

    # -------------------------------------------------------------------------------------------------- the record

    def trace(self) -> dict[str, Any]:
        """Every turn, the order in which they were begun, tokens by agent and in all, and flags by turn."""
        steps = [turn.line() for turn in self.turns]
        agents: dict[str, dict[str, int]] = {}
        for name, tokens in self.spent():
            sums = agents.setdefault(name, dict.fromkeys(COUNTS, 0))
            for kind, n in tokens.items():
                sums[kind] += n
        total = sum(sums[kind] for sums in agents.values() for kind in ("prompt", "visual", "output"))
        flags = [f"turn {step['turn']}: {flag}" for step in steps for flag in step["flags"]]
        return {"order": [n + 1 for n in self.taken], "steps": steps, "agents": agents, "tokens": total, "flags": flags}


def _without_pictures(request: Request) -> Request:
    """The request with a word in place of each picture and video."""
    messages = tuple(Message(message.role, tuple(_words(message.parts))) for message in request.messages)
    return replace(request, messages=messages)


def _words(parts: Iterable[Part]) -> Iterable[Part]:
    return (part if isinstance(part, Text) else Text(UNSEEN) for part in parts)
