"""Plug-ins that misbehave, each in the one way its option names: what outside code may do to the engine."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # loaded by its file, so the tests are not on the path

from memharness.benchmark import Ask, Episode, Fact, Observe, Recorded
from memharness.config import Config, option
from memharness.media import MediaStore
from memharness.method import Budget, Kit, Memory, Method, MethodCard
from memharness.metric import Metric
from memharness.reader import Embedder, Reader, ReaderCard, Reply, Request
from memharness.types import (
    Answer,
    Asked,
    Case,
    Evidence,
    Gold,
    Image,
    Item,
    OverWindow,
    Question,
    Readout,
    Score,
    Text,
    Usage,
    parts_text,
)
from tests.run.toys import Counter4, NoOptions, Numbers, Right, card

BIG = 10_000_000


class How(Config):
    """In which way it misbehaves; in none if empty."""

    how: str = option("", "the fault")
    on: str = option("", "only where the prompt or question holds this")


# ------------------------------------------------------------------------------------------------------------ methods


class Rude(Method[How]):
    """A method of the evidence track with one fault."""

    card = MethodCard("rude", "Rude", "", 1, "evidence", embeds=False)
    config_class = How

    def __init__(self, config: How) -> None:
        """Fail at once if asked to."""
        super().__init__(config)
        if config.how == "init":
            raise RuntimeError("no weights in this box")

    async def start(self, kit: Kit) -> None:
        """Fail if asked to."""
        if self.config.how == "start":
            raise RuntimeError("cannot load weights")

    def open(self, context: str, kit: Kit) -> Memory:
        """A memory, or what is none."""
        return "a string" if self.config.how == "open" else RudeMemory(self.config, kit)  # type: ignore[return-value]


class RudeMemory(Memory):
    """Keeps ids, and its fault."""

    def __init__(self, config: How, kit: Kit) -> None:
        """Keep nothing yet."""
        self.how, self.on, self.kit = config.how, config.on, kit
        self.ids: list[str] = []

    async def observe(self, items: Sequence[Item]) -> None:
        """Keep ids."""
        self.ids += [item.id for item in items]

    def stored(self) -> Any:
        """Items held."""
        return 0 if self.how == "holds-nothing" else len(self.ids)

    async def close(self) -> None:
        """Fail if asked to."""
        if self.how == "close":
            raise RuntimeError("cannot close")

    async def recall(self, question: Question, budget: Budget) -> Any:
        """A readout with one fault."""
        good = Readout(tuple(Evidence(item) for item in self.ids), available=len(self.ids))
        if self.on not in question.text():
            return good
        match self.how:
            case "unknown-item":
                return Readout((Evidence("i0"), Evidence("nowhere")))
            case "unknown-part":
                return Readout((Evidence("i0", 7),))
            case "no-readout":
                return list(self.ids)
            case "hang":
                await asyncio.sleep(3600)
            case "odd-trace":
                return Readout(good.evidence, trace={"object": object()})
            case "nan-trace":
                return Readout(good.evidence, trace={"loss": float("nan"), "array": np.float32("inf")})
            case "surrogate-trace":
                return Readout(good.evidence, trace={"words": "\udcff"})
            case "nan-score":
                return Readout(tuple(Evidence(item, score=float("nan")) for item in self.ids))
            case "strings":
                return Readout(tuple(self.ids))  # type: ignore[arg-type]
            case "exit":
                sys.exit(3)
            case "cancel":
                raise asyncio.CancelledError
            case "short":
                return Readout(good.evidence[:1], available=len(self.ids))
            case "repeats":
                return Readout(good.evidence + good.evidence)
            case "many":
                return Readout(good.evidence * 1000)
        return good


class Wordy(Method[How]):
    """A method of the answer track with one fault in its answer."""

    card = MethodCard("wordy", "Wordy", "", 1, "answer")
    config_class = How

    def open(self, context: str, kit: Kit) -> Memory:
        """A memory."""
        return WordyMemory(self.config, kit)


class WordyMemory(RudeMemory):
    """Answers without reading."""

    async def answer(self, question: Question, budget: Budget) -> Any:
        """An answer with one fault."""
        answers = {
            "huge": Answer("x" * BIG),
            "surrogate": Answer("caf\udce9 \ud83d"),
            "lines": Answer('one\ntwo\r\n\u2028three\x00\x1b[31m "quoted" – é 你 🐈'),
            "none": Answer(None),
            "number": Answer(42),  # type: ignore[arg-type]
            "text": "just text",
            "unknown-item": Answer("x", readout=Readout((Evidence("nowhere"),))),
            "error-words": Answer("Error: unhandled errors in a TaskGroup (1 sub-exception)"),
        }
        return answers[self.how]


class Embedding(Method[NoOptions]):
    """Embeds what it observes, so that an embedder's faults are met."""

    card = MethodCard("embedding", "Embedding", "", 1, "evidence", embeds=True)
    config_class = NoOptions

    def open(self, context: str, kit: Kit) -> Memory:
        """A memory."""
        return EmbeddingMemory(How(), kit)


class EmbeddingMemory(RudeMemory):
    """Ranks by dot product."""

    async def observe(self, items: Sequence[Item]) -> None:
        """Embed."""
        await super().observe(items)
        self.vectors = await self.kit.embedder.embed([item.text() for item in items])

    async def recall(self, question: Question, budget: Budget) -> Readout:
        """Rank."""
        query = await self.kit.embedder.embed([question.text()], "query")
        order = np.argsort(-(self.vectors @ query[0]))
        return Readout(tuple(Evidence(self.ids[i]) for i in order[: budget.items or 2]))


class NotAMethod:
    """Nothing of the kind."""


# ------------------------------------------------------------------------------------------------- readers, embedders


class Rough(Reader):
    """A reader with one fault."""

    config_class = How

    def __init__(self, model: str, config: Any, media: MediaStore) -> None:
        """Fail at once if asked to."""
        super().__init__(model, config, media)
        self.media = media
        if config.how == "init":
            raise RuntimeError("no such graphics card")
        sees = frozenset({"image"}) if config.how == "looks" else frozenset()
        window = 64 if config.how == "window" else 100_000
        self.card = ReaderCard(
            "rough", model, "1", "python", window=window, cache=config.how != "uncached", capabilities=sees
        )
        self.counter = Counter4()

    async def start(self) -> None:
        """Fail if asked to."""
        if self.config.how == "start":
            raise OSError(28, "No space left on device", "/weights")

    async def generate(self, request: Request) -> Any:
        """A reply with one fault."""
        prompt = "\n".join(parts_text(message.parts) for message in request.messages)
        usage = Usage(text=self.counter.text(prompt), output=1)
        if self.config.on not in prompt:
            return Reply("c0-0", usage)
        match self.config.how:
            case "window":
                if usage.text + request.sampling.max_tokens > 64:
                    raise OverWindow(f"{usage.text} tokens of prompt and {request.sampling.max_tokens} of answer > 64")
            case "empty":
                return Reply("", usage)
            case "space":
                return Reply(" \n\t ", usage)
            case "text":
                return "c0-0"
            case "nothing":
                return None
            case "mapping":
                return {"text": "c0-0"}
            case "no-text":
                return Reply(None, usage)  # type: ignore[arg-type]
            case "no-usage":
                return Reply("c0-0", None)  # type: ignore[arg-type]
            case "error-words":
                return Reply("Error codes were introduced in 1998.", usage)
            case "timeout-error":
                raise TimeoutError("of its own")
            case "hang":
                await asyncio.sleep(3600)
            case "huge":
                return Reply("y" * BIG, usage)
            case "surrogate":
                return Reply("half \ud83d", usage)
            case "refuse":
                return Reply("I cannot help with that.", usage, "refused")
            case "cut":
                return Reply("c0", usage, "length")
            case "exit":
                sys.exit(4)
            case "recursion":
                return await self.generate(request)
            case "looks":
                for part in request.parts():
                    if isinstance(part, Image):
                        self.media.open(part)
        return Reply("c0-0", usage)


class Judge(Rough):
    """Says what the environment tells it to, and is not cached, since that changes."""

    def __init__(self, model: str, config: Any, media: MediaStore) -> None:
        """Nothing to load."""
        super().__init__(model, config, media)
        self.card = replace(self.card, cache=False)

    async def generate(self, request: Request) -> Reply:
        """A verdict, or what should be one."""
        return Reply(os.environ["MEMHARNESS_TEST_VERDICT"], Usage(text=1, output=1))


class Vectors(Embedder):
    """Good vectors: a base for bad ones."""

    config_class = NoOptions
    width = 4

    def __init__(self, model: str, config: Any, media: MediaStore) -> None:
        """Nothing to load."""
        super().__init__(model, config, media)
        self.card = ReaderCard(type(self).__name__.lower(), model, "1", "python")
        self.counter = Counter4()

    async def embed(self, inputs: Sequence[Any], kind: str) -> Any:
        """All alike."""
        return self.make(len(inputs)), [1] * len(inputs)

    def make(self, n: int) -> Any:
        """Unit vectors."""
        return np.full((n, 4), 0.5, np.float32)


class Narrow(Vectors):
    """Of another width than it says."""

    def make(self, n: int) -> Any:
        """Three wide."""
        return np.zeros((n, 3), np.float32)


class Short(Vectors):
    """One vector too few."""

    def make(self, n: int) -> Any:
        """One less."""
        return np.zeros((n - 1, 4), np.float32)


class NotNumbers(Vectors):
    """NaN."""

    def make(self, n: int) -> Any:
        """NaN."""
        return np.full((n, 4), np.nan, np.float32)


class Lists(Vectors):
    """Python lists."""

    def make(self, n: int) -> Any:
        """Lists."""
        return [[0.5] * 4] * n


class Doubles(Vectors):
    """f64, which as bytes would be twice as wide."""

    def make(self, n: int) -> Any:
        """f64."""
        return np.full((n, 4), 0.5, np.float64)


class FewCounts(Vectors):
    """Token counts for all inputs but one."""

    async def embed(self, inputs: Sequence[Any], kind: str) -> Any:
        """One count less."""
        return self.make(len(inputs)), [1] * (len(inputs) - 1)


# --------------------------------------------------------------------------------------------------------- benchmarks


@dataclass(frozen=True)
class Crooked(Metric):
    """A metric with one fault."""

    how: str = ""

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Any:
        """A score with one fault."""
        match self.how:
            case "nan":
                return {"crooked": Score(float("nan"))}
            case "infinite":
                return {"crooked": Score(float("inf"))}
            case "numpy-nan":
                return {"crooked": Score(np.float32("nan"))}  # type: ignore[arg-type]
            case "raises":
                raise KeyError("answers")
            case "number":
                return {"crooked": 1.0}
            case "list":
                return [1.0]
            case "nothing":
                return None
            case "text":
                return {"crooked": Score("high")}  # type: ignore[arg-type]
            case "same-name":
                return {"right": Score(1.0)}
        return {"crooked": Score(True)}


class OddOptions(How):
    """What `Numbers` needs besides."""

    canary: str = option("", "planted in gold")


class Odd(Numbers):
    """`Numbers` with one fault in its data or its metric."""

    card = card("odd")
    options_class = OddOptions

    def contexts(self, subset: str | None = None) -> Sequence[str]:
        """Two."""
        return ["c0", "c1"]

    def episode(self, context: str) -> Episode:
        """Three questions."""
        items = [Item(f"i{at}", context, at, (Text(f"word {at} is {context}-{at}"),)) for at in range(3)]
        cases = [self.case(context, at) for at in range(3)]
        match self.options.how:
            case "same-item":
                items.append(items[0])
            case "no-items":
                items = []
            case "no-questions":
                cases = []
            case "surrogate":
                broken = Text("What is word 1? \ud83d")
                cases[1] = Case(Question(cases[1].question.id, context, (broken,)), cases[1].gold)
            case "dangling-gold":
                cases[1] = Case(cases[1].question, Gold(("x",), (Evidence("nowhere"),), cluster=context))
            case "no-answers":
                cases[1] = Case(cases[1].question, Gold((), (), cluster=context))
            case "raises":
                return Breaking(context, items, cases)
        return Recorded(context, items, cases)

    def metrics(self) -> Sequence[Metric]:
        """One good, one crooked."""
        how = self.options.how
        return [Right(), Crooked(how.removeprefix("metric-"))] if how.startswith("metric-") else [Right()]

    def digest(self) -> str:
        """No files."""
        return "odd"


class Breaking(Recorded):
    """Fails in the middle of c1."""

    async def play(self) -> AsyncGenerator[Observe | Ask | Fact, list[Answer]]:
        """Observe, then fail."""
        yield Observe(self.items)
        if self.context == "c1":
            raise KeyError("turns")
        yield Ask(self.cases)


# ------------------------------------------------------------------------------------------------------- JSON verdicts


class Mumbling(Reader):
    """Claims to obey schemas and never does."""

    config_class = NoOptions

    def __init__(self, model: str, config: Any, media: MediaStore) -> None:
        """Nothing to load."""
        super().__init__(model, config, media)
        able = frozenset({"schema", "verify"})
        self.card = ReaderCard("mumbling", model, "1", "python", window=100_000, capabilities=able)
        self.counter = Counter4()

    async def generate(self, request: Request) -> Reply:
        """Half a JSON object, whatever the schema."""
        return Reply('{"candidates": [{"id": "1", "sup' if request.schema else "unknown", Usage(text=9, output=9))
