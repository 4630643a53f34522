"""Small real plug-ins for tests of the runner: no files, no weights, everything deterministic."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from memharness.benchmark import Ask, Benchmark, BenchmarkCard, Episode, Fact, Observe, Recorded, means
from memharness.config import Config, option
from memharness.identity import opaque_id
from memharness.media import MediaStore
from memharness.method import Budget, Kit, Memory, Method, MethodCard
from memharness.metric import Judged, Metric
from memharness.reader import Decoding, LatentReader, Message, Reader, ReaderCard, Reply, Request, Sampling, Step
from memharness.types import (
    Answer,
    Asked,
    Case,
    Evidence,
    Gold,
    Item,
    OverWindow,
    Question,
    ReaderError,
    Readout,
    Score,
    Status,
    Text,
    Usage,
    parts_text,
)


def card(name: str, **more: Any) -> BenchmarkCard:
    """A card that says little."""
    filled: dict[str, Any] = {"title": name, "paper": "", "licence": "", "source": "", "revision": "1", "version": 1,
                              "splits": {}, "counts": {}, "cluster": "", "primary": "right"}  # fmt: skip
    return BenchmarkCard(name=name, **(filled | more))


class NoOptions(Config):
    """Nothing to set."""


@dataclass(frozen=True)
class Right(Metric):
    """Whether the answer is a gold one."""

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """One score, `right`."""
        return {"right": Score(float(unit[0].record.answer in unit[0].gold.answers))}


@dataclass(frozen=True)
class AllRight(Metric):
    """Whether every question of a group is right (as in circular evaluation)."""

    unit = "group"

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """One score, `all_right`."""
        return {"all_right": Score(float(all(asked.record.answer in asked.gold.answers for asked in unit)))}


@dataclass(frozen=True)
class Found(Metric):
    """Whether the readout holds the gold evidence; valid without an answer."""

    needs = "readout"

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """One score, `found`."""
        held = {e.item for e in unit[0].record.evidence or ()}
        return {"found": Score(float(all(e.item in held for e in unit[0].gold.evidence)))}


@dataclass(frozen=True)
class Won(Metric):
    """Episode success, from its facts."""

    unit = "episode"

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Two scores, `won` and `steps`."""
        return {"won": Score(facts["won"]), "steps": Score(facts["steps"])}


@dataclass(frozen=True)
class Verdict(Judged):
    """A judge says yes or no; anything else is a judge error."""

    rubric = "toy.v1"

    def ask(self, unit: Sequence[Asked]) -> Request:
        """Ask whether the answer is right."""
        words = f"gold: {unit[0].gold.answers[0]}; answer: {unit[0].record.answer}"
        return Request((Message("user", (Text(words),)),))

    def read(self, unit: Sequence[Asked], reply: Reply) -> Mapping[str, Score]:
        """One score, `verdict`."""
        if reply.text not in ("yes", "no"):
            return {"verdict": Score(None, Status.JUDGE_ERROR, reply.text)}
        return {"verdict": Score(float(reply.text == "yes"))}


class SizeOptions(Config):
    """How large."""

    contexts: int = option(2, "contexts", ge=1)
    questions: int = option(3, "questions per context", ge=0)
    planned: bool = option(True, "say beforehand how many")
    canary: str = option("", "planted in gold")


class Numbers(Benchmark):
    """Context c remembers `word w is N`; question i asks for word i. Groups pair neighbouring questions."""

    card = card("numbers")
    options_class = SizeOptions
    sample = "."

    def contexts(self, subset: str | None = None) -> Sequence[str]:
        """Numbered."""
        return [f"c{n}" for n in range(self.options.contexts)]

    def case(self, context: str, at: int) -> Case:
        """Question `at` of a context."""
        question = Question(opaque_id(context, at), context, (Text(f"What is word {at}?"),))
        gold = Gold(
            (f"{context}-{at}",), (Evidence(f"i{at}"),), category=("even", "odd")[at % 2], group=f"{context}/{at // 2}",
            cluster=context, native_id=f"{context}/{at}", extra={"canary": self.options.canary},
        )  # fmt: skip
        return Case(question, gold)

    def episode(self, context: str) -> Episode:
        """Recorded."""
        n = self.options.questions
        items = [Item(f"i{at}", context, at, (Text(f"word {at} is {context}-{at}"),)) for at in range(max(n, 1))]
        episode = Recorded(context, items, [self.case(context, at) for at in range(n)])
        if not self.options.planned:
            episode.planned = None
        return episode

    def metrics(self) -> Sequence[Metric]:
        """Question, group and readout metrics, and a judged one."""
        return [Right(), AllRight(), Found(), Verdict()]

    def report(self, rows: Any) -> Mapping[str, float]:
        """Plain means."""
        return means(rows)

    def digest(self) -> str:
        """No files."""
        return "numbers"


class Corridor(Benchmark):
    """A live game: the reader must say `go N` for N = 1, 2, 3. What it said becomes the next item."""

    card = card("corridor", primary="won")
    options_class = SizeOptions
    sample = "."

    def contexts(self, subset: str | None = None) -> Sequence[str]:
        """Numbered games."""
        return [f"game{n}" for n in range(self.options.contexts)]

    def episode(self, context: str) -> Episode:
        """A fresh game."""
        return CorridorGame(context)

    def metrics(self) -> Sequence[Metric]:
        """Steps right, and whether the game was won."""
        return [Right(), Won()]

    def digest(self) -> str:
        """No files."""
        return "corridor"


class CorridorGame(Episode):
    """Three doors, at most five steps."""

    live = True
    planned = 5

    def __init__(self, context: str) -> None:
        """Stand before the first door."""
        self.context = context

    async def play(self) -> AsyncGenerator[Observe | Ask | Fact, list[Answer]]:
        """Observe, ask, observe what came of it …"""
        door, steps = 1, 0
        yield Observe([Item("start", self.context, 0, (Text("word go is 1"),), kind="observation")])
        while door <= 3 and steps < 5:
            steps += 1
            question = Question(
                opaque_id(self.context, steps), self.context, (Text(f"Step {steps}: which door?"),), form="action"
            )
            answers = yield Ask([Case(question, Gold((f"go {door}",), cluster=self.context))])
            said = answers[0].text or "nothing"
            door += said == f"go {door}"
            yield Observe(
                [
                    Item(
                        f"s{steps}",
                        self.context,
                        steps,
                        (Text(f"You said {said}. word go is {door}"),),
                        kind="observation",
                    )
                ]
            )
        yield Fact({"won": float(door > 3), "steps": float(steps)})


class Counter4:
    """A fourth of the characters, rounded up."""

    name = "quarter"

    def text(self, text: str) -> int:
        """Tokens."""
        return -(-len(text) // 4)

    def image(self, width: int, height: int) -> int:
        """Tokens."""
        return 0


class ToyOptions(Config):
    """How the toy reader behaves."""

    fail_on: str = option("", "raise a ReaderError where the prompt holds this")
    over_on: str = option("", "raise OverWindow where the prompt holds this")
    slow: float = option(0.0, "seconds a call takes", how=True)
    slow_on: str = option("", "only where the prompt holds this")
    crash_on: str = option("", "raise a bare exception where the prompt holds this")
    reply: str = option("", "always say this")
    log: str = option("", "append every prompt to this file", how=True)
    kill_at: int = option(0, "SIGKILL this process at the nth call", how=True)


class Toy(Reader):
    """Answers `What is word N?` from `word N is X`, `which door?` from `word go is N`; judges by equality."""

    config_class = ToyOptions
    calls = 0

    def __init__(self, model: str, config: Any, media: MediaStore) -> None:
        """Nothing to load."""
        super().__init__(model, config, media)
        self.card = ReaderCard("toy", model, "1", "python", window=100_000, max_inflight=64)
        self.counter = Counter4()

    async def generate(self, request: Request) -> Reply:
        """See the class."""
        prompt = "\n".join(parts_text(message.parts) for message in request.messages)
        type(self).calls += 1
        if self.config.log:
            with open(self.config.log, "a") as file:
                file.write(prompt.replace("\n", " ") + "\n")
        if self.config.kill_at and type(self).calls >= self.config.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.config.slow and self.config.slow_on in prompt:
            await asyncio.sleep(self.config.slow)
        for word, error in (
            (self.config.fail_on, ReaderError),
            (self.config.over_on, OverWindow),
            (self.config.crash_on, ZeroDivisionError),
        ):
            if word and word in prompt:
                raise error(f"asked for by {word!r}")
        return Reply(self.config.reply or _say(prompt), Usage(text=self.counter.text(prompt), output=2))


def _say(prompt: str) -> str:
    import re

    if prompt.startswith("gold: "):
        gold, answer = re.fullmatch(r"gold: (.*); answer: (.*)", prompt).groups()  # type: ignore[union-attr]
        return "yes" if gold == answer else "no"
    if "which door?" in prompt:
        return "go " + (re.findall(r"word go is (\d+)", prompt) or ["?"])[-1]
    asked = re.findall(r"What is word (\d+)\?", prompt)
    found = re.findall(rf"word {asked[-1]} is (\S+)", prompt) if asked else []
    return found[-1] if found else "unknown"


class AllConfig(Config):
    """How the toy method fails."""

    fail_in: str = option("", "context whose observe fails")
    stage: str = option("observe", "where it fails: open, observe, ready or recall")
    forget: bool = option(False, "store nothing, say nothing")
    duplicate_k: bool = option(False, "return more than the budget's items")
    keep: bool = option(False, "write what was observed and take it up again")


class Everything(Method[AllConfig]):
    """Returns every item, newest last."""

    card = MethodCard("everything", "Everything", "", 1, "evidence")
    config_class = AllConfig

    def open(self, context: str, kit: Kit) -> Memory:
        """A fresh memory."""
        if self.config.fail_in == context and self.config.stage == "open":
            raise RuntimeError("cannot open")
        return EverythingMemory(self.config, context, kit)


class EverythingMemory(Memory):
    """Keeps ids."""

    observed = 0  # over the whole process, for tests of `load`

    def __init__(self, config: AllConfig, context: str, kit: Kit) -> None:
        """Keep nothing yet."""
        self.config, self.context, self.kit = config, context, kit
        self.ids: list[str] = []

    def fails(self, stage: str) -> None:
        """Fail if asked to."""
        if self.config.fail_in == self.context and self.config.stage == stage:
            raise RuntimeError(f"cannot {stage}")

    async def observe(self, items: Sequence[Item]) -> None:
        """Keep ids."""
        self.fails("observe")
        type(self).observed += len(items)
        if not self.config.forget:
            self.ids += [item.id for item in items]

    async def ready(self) -> None:
        """Write ids down, in the background as a slow index would."""
        self.fails("ready")
        if self.config.keep:
            self.kit.background(self.write())

    async def write(self) -> None:
        """Write ids down."""
        await asyncio.sleep(0)
        (self.kit.folder / "ids.txt").write_text("\n".join(self.ids))

    async def load(self) -> bool:
        """Take up what was written."""
        if not self.config.keep:
            return False
        self.ids = (self.kit.folder / "ids.txt").read_text().split("\n")
        return True

    async def recall(self, question: Question, budget: Budget) -> Readout:
        """All of it."""
        self.fails("recall")
        evidence = [Evidence(item) for item in self.ids]
        if self.config.duplicate_k:
            return Readout(tuple(evidence))
        kept = evidence[-budget.items :] if budget.items else evidence
        return Readout(budget.fit(kept, question), available=len(self.ids))

    def stored(self) -> int:
        """Items held."""
        return len(self.ids)


class Panel(Method[NoOptions]):
    """Answer track: five roles at temperature 0.7 and a chair that takes the most frequent draft."""

    card = MethodCard(
        "panel", "A panel of five", "", 1, "answer",
        roles={f"agent{n}": ("answer",) for n in range(4)} | {"chair": ("answer",)},
    )  # fmt: skip
    config_class = NoOptions

    def open(self, context: str, kit: Kit) -> Memory:
        """A fresh memory."""
        return PanelMemory(kit)


class PanelMemory(Memory):
    """Keeps items; asks four agents beside each other, then the chair."""

    def __init__(self, kit: Kit) -> None:
        """Keep the kit."""
        self.kit = kit
        self.items: list[Item] = []

    async def observe(self, items: Sequence[Item]) -> None:
        """Keep items."""
        self.items += items

    async def answer(self, question: Question, budget: Budget) -> Answer:
        """Draft four times, decide once."""
        readout = Readout(tuple(Evidence(item.id) for item in self.items))
        base = self.kit.prompt(question, readout)
        requests = [Request(base.messages, Sampling(temperature=0.7), sample=n) for n in range(4)]
        drafts = await asyncio.gather(*(self.kit.reader(f"agent{n}").generate(r) for n, r in enumerate(requests)))
        final = await self.kit.reader("chair").generate(base)
        return Answer(final.text, readout=readout, trace={"drafts": [draft.text for draft in drafts]})


class Latent(Toy, LatentReader):
    """A fake latent reader with three leases; records how many sessions were ever open at once."""

    sessions = 3
    most = 0

    def __init__(self, model: str, config: Any, media: MediaStore) -> None:
        """Three sessions."""
        super().__init__(model, config, media)
        self.free, self.turn = self.sessions, asyncio.Condition()
        self.width, self.dtype, self.device = 4, "f32", "cpu"
        self.vocabulary, self.norm = 9, 1.0
        self.held = 0

    async def see(self, image: Any, blocks: int) -> Any:
        """Nothing to see."""
        return [[0.0] * 4] * blocks

    def lease(self, n: int) -> Any:
        """All n at once."""

        @asynccontextmanager
        async def taken() -> Any:
            async with self.turn:
                await self.turn.wait_for(lambda: self.free >= n)
                self.free -= n
                self.held += n
                type(self).most = max(type(self).most, self.held)
            try:
                yield self
            finally:
                async with self.turn:
                    self.free += n
                    self.held -= n
                    self.turn.notify_all()

        return taken()

    def decode(self, request: Request, *, window: int) -> Any:
        """A session that spells the toy's reply."""

        @asynccontextmanager
        async def session() -> Any:
            yield Spelling((await self.generate(request)).text)

        return session()

    async def replay(self, request: Request, tokens: Sequence[int], injections: Mapping[int, Any]) -> Any:
        """Not trained here."""
        return [0.0] * len(tokens)


class Spelling(Decoding):
    """Spells a reply, a character a step; injected latents are counted."""

    def __init__(self, text: str) -> None:
        """Start before the first character."""
        self.text, self.at, self.injected = text, 0, 0

    @property
    def usage(self) -> Usage:
        """Characters as tokens."""
        return Usage(output=self.at, latent=self.injected)

    async def run(self, until: Any, limit: int) -> Reply:
        """Spell on."""
        for _ in range(limit):
            if self.at >= len(self.text):
                break
            self.at += 1
            await asyncio.sleep(0)
            if until(Step(ord(self.text[self.at - 1]), self.text[: self.at], 0.5, self.at)):
                break
        return Reply(self.text[: self.at], self.usage)

    async def inject(self, latents: Any) -> None:
        """Count them."""
        self.injected += len(latents)

    def hidden(self, n: int) -> Any:
        """Zeros."""
        return [[0.0] * 4] * n


class Musing(Method[NoOptions]):
    """Answer track: two sessions of one question on one latent reader, leased at once, with an injection mid-word."""

    card = MethodCard("musing", "Two latent sessions", "", 1, "answer", roles={"agent": ("answer",)})
    config_class = NoOptions

    def open(self, context: str, kit: Kit) -> Memory:
        """A fresh memory."""
        return MusingMemory(kit)


class MusingMemory(PanelMemory):
    """Decodes twice beside each other; answers with the first."""

    async def answer(self, question: Question, budget: Budget) -> Answer:
        """Inject after the second character of each."""
        model = self.kit.latent("agent")
        request = self.kit.prompt(question, Readout(tuple(Evidence(item.id) for item in self.items)))

        async def one() -> Reply:
            async with model.decode(request, window=4) as decoding:
                await decoding.run(lambda step: step.index >= 2, 100)
                await decoding.inject(decoding.hidden(3))
                return await decoding.run(lambda step: False, 100)

        async with model.lease(2):
            first, _ = await asyncio.gather(one(), one())
        return Answer(first.text, trace={"latent": first.usage.latent})


class Peeker(Everything):
    """Sees gold although its card does not say so."""

    card = MethodCard("peeker", "Peeker", "", 1, "evidence")

    def open(self, context: str, kit: Kit) -> Memory:
        """A memory with the door that only controls have."""
        return PeekerMemory(self.config, context, kit)


class PeekerMemory(EverythingMemory):
    """Returns the gold evidence."""

    async def recall_with_gold(self, question: Question, gold: Gold, budget: Budget) -> Readout:
        """Cheat."""
        return Readout(gold.evidence)


class Flaky(Toy):
    """Fails where the prompt holds what the file named by `reply` says just now; replies as the toy does otherwise."""

    async def generate(self, request: Request) -> Reply:
        """See the class."""
        prompt = "\n".join(parts_text(message.parts) for message in request.messages)
        with open(self.config.log, "a") as file:
            file.write(prompt.replace("\n", " ") + "\n")
        with open(self.config.reply) as file:
            word = file.read().strip()
        if word and word in prompt:
            raise ReaderError("flaky")
        return Reply(_say(prompt), Usage(text=self.counter.text(prompt), output=2))


class Cheat(Everything):
    """A control, by its card, that shows the reader what it should not."""

    card = MethodCard("cheat", "Cheat", "", 1, "evidence", control=True)

    def open(self, context: str, kit: Kit) -> Memory:
        """A memory that leaks."""
        return CheatMemory(self.config, context, kit)


class CheatMemory(EverythingMemory):
    """Puts gold words into the readout."""

    async def recall_with_gold(self, question: Question, gold: Gold, budget: Budget) -> Readout:
        """Leak."""
        return Readout(parts=(Text(str(dict(gold.extra))),))
