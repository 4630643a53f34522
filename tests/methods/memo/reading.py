"""Readers for tests of labelling, as plug-ins by file: what they say depends on what they are shown."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from memharness.config import Config
from memharness.media import MediaStore
from memharness.reader import Reader, ReaderCard, Reply, Request
from memharness.types import Image, ReaderError, Text, Usage

PAGE_TOKENS = 6


class ReadingConfig(Config):
    """Nothing to set."""


class Words:
    """A token a word; a page costs the same whatever its size."""

    name = "words"

    def text(self, text: str) -> int:
        return len(text.split())

    def image(self, width: int, height: int) -> int:
        return PAGE_TOKENS


class TextOnly(Reader):
    """Says `Porto` if the evidence does, else `unknown`; `calls` counts."""

    config_class = ReadingConfig
    sees = False

    def __init__(self, model: str, config: ReadingConfig, media: MediaStore) -> None:
        super().__init__(model, config, media)
        self.counter = Words()
        capabilities = frozenset({"image"} if self.sees else ())
        self.card = ReaderCard(type(self).__name__, model, "1", "test", capabilities=capabilities)
        self.calls = 0

    async def generate(self, request: Request) -> Reply:
        self.calls += 1
        return Reply("Porto" if self.knows(request) else "unknown", Usage())

    def knows(self, request: Request) -> bool:
        return "Porto" in evidence(request)


class Seeing(TextOnly):
    """Takes a page for a text that says `Porto`."""

    sees = True

    def knows(self, request: Request) -> bool:
        return super().knows(request) or any(isinstance(part, Image) for part in request.parts())


class Blind(Seeing):
    """Is given pages and reads none of them."""

    def knows(self, request: Request) -> bool:
        return "Porto" in evidence(request)


class Failing(TextOnly):
    """Has lost its engine."""

    async def generate(self, request: Request) -> Reply:
        raise ReaderError("the engine is gone")


class Slow(TextOnly):
    """Writes a line for each call into the file that CALLS names, and takes its time."""

    async def generate(self, request: Request) -> Reply:
        with Path(os.environ["CALLS"]).open("a") as file:
            file.write("call\n")
        await asyncio.sleep(0.03)
        return await super().generate(request)


def evidence(request: Request) -> str:
    """The words between the prompt's `Evidence:` and its question."""
    words = "".join(part.text for part in request.messages[-1].parts if isinstance(part, Text))
    return words.partition("Question:")[0]
