"""A kit without models for tests of methods: a hashing embedder, a counter of words, the harness's own budget."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import random
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image as Picture

from memharness.budget import RunBudget
from memharness.identity import digest
from memharness.method import Captioner, Device, Images, Kit, MeteredEmbedder, MeteredReader, Phase
from memharness.prompts import Renderer, answer_request
from memharness.reader import LatentReader, ReaderCard, Request, Sampling
from memharness.retrieval import words
from memharness.types import DataError, Evidence, Image, Item, Part, Question, Readout, Text, UserError, parts_text

T = TypeVar("T")


class HashingEmbedder:
    """Texts with words in common are near each other: each word adds ±1 at a place of its own.

    `calls` lists (number of inputs, kind), one entry a call.
    """

    def __init__(self, width: int = 64) -> None:
        self.width = width
        self.card = ReaderCard(name="hashing", model="hashing", revision=str(width), backend="numpy")
        self.calls: list[tuple[int, str]] = []

    async def embed(
        self, inputs: Sequence[str | Sequence[Part]], kind: Literal["item", "query"] = "item"
    ) -> NDArray[np.float32]:
        self.calls.append((len(inputs), kind))
        await asyncio.sleep(0)
        texts = [one if isinstance(one, str) else parts_text(tuple(one)) for one in inputs]
        return np.array([self.vector(text) for text in texts], dtype=np.float32).reshape(len(texts), self.width)

    def vector(self, text: str) -> NDArray[np.float32]:
        out = np.zeros(self.width)
        for word in words(text):
            number = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8])
            out[number // 2 % self.width] += 1 if number % 2 else -1
        if not out.any():
            out[0] = 1
        return (out / np.linalg.norm(out)).astype(np.float32)


class WordCounter:
    """A token a word, one an image."""

    name = "words"

    def text(self, text: str) -> int:
        return len(text.split())

    def image(self, width: int, height: int) -> int:
        return 1


class DirectDevice:
    """Runs at once, in this thread."""

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        return function(*arguments)


class HashCaptioner:
    """Calls a picture by its hash."""

    async def caption(self, image: Image) -> str:
        return f"picture {image.sha256}"


class NoImages:
    """Has no pictures."""

    def open(self, image: Image) -> Picture:
        raise DataError(f"{image.source}: not at hand")

    def path(self, image: Image) -> Path:
        raise DataError(f"{image.source}: not at hand")

    def keep(self, data: bytes, source: str, where: str) -> Image:
        raise DataError(f"{where}: there is no place for pictures")


@dataclass
class FakeKit:
    """A kit over a store of items that the test shares with the memory; `readers` are by role."""

    items: int = 10
    seed: int = 0
    context: str = "c"
    folder: Path = Path("unused")
    embedder: MeteredEmbedder = field(default_factory=HashingEmbedder)
    captioner: Captioner = field(default_factory=HashCaptioner)
    images: Images = field(default_factory=NoImages)
    device: Device = field(default_factory=DirectDevice)
    readers: Mapping[str, MeteredReader] = field(default_factory=dict)
    known: dict[str, Item] = field(default_factory=dict)
    view: Literal["pixels", "captions"] = "captions"
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    @property
    def renderer(self) -> Renderer:
        return Renderer(self.known, self.view)

    def reader(self, role: str = "answer") -> MeteredReader:
        if role not in self.readers:
            raise AssertionError(f"the test gave no reader for role {role}")
        return self.readers[role]

    def latent(self, role: str = "answer") -> LatentReader:
        raise UserError(f"the reader of role {role} cannot be decoded step by step")

    async def open_reader(self, spec: str) -> MeteredReader:
        raise UserError(f"no reader is called {spec}")

    def rng(self, *key: object) -> random.Random:
        return random.Random(digest([self.seed, *map(str, key)]))

    def phase(self, name: Phase) -> AbstractContextManager[None]:
        return contextlib.nullcontext()

    def background(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.get_running_loop().create_task(work))

    def render(self, evidence: Sequence[Evidence]) -> tuple[Part, ...]:
        return self.renderer.evidence(evidence)

    def prompt(self, question: Question, readout: Readout) -> Request:
        return answer_request(question, readout, self.renderer, Sampling())

    def budget(self, items: int | None = None, tokens: int | None = None) -> RunBudget:
        """The harness's budget over the known items, counted in words."""
        return RunBudget(items, tokens, (WordCounter(),), self.renderer)

    def know(self, items: Sequence[Item]) -> Sequence[Item]:
        """Let the renderer know these items, as the runner does when they are observed."""
        self.known.update({item.id: item for item in items})
        return items


def as_kit(kit: FakeKit) -> Kit:
    """The same kit; a type checker thereby holds it to the protocol."""
    return kit


def item(number: int, text: str, **more: Any) -> Item:
    """An item `i<number>` at that place in the order of context `c`."""
    return Item(f"i{number}", "c", number, (Text(text),), **more)


def question(text: str, id: str = "q") -> Question:
    """A question of context `c`."""
    return Question(id, "c", (Text(text),))
