"""A reader that repeats the first evidence line, and an embedder that hashes words."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from memharness.config import Config
from memharness.media import MediaStore
from memharness.reader import Embedder, Reader, ReaderCard, Reply, Request
from memharness.types import Part, Text, Usage, parts_text


class NoOptions(Config):
    """Nothing to set."""


class Words:
    """Counts words; honest about it in its name."""

    name = "words"

    def text(self, text: str) -> int:
        """Number of words."""
        return len(text.split())

    def image(self, width: int, height: int) -> int:
        """This reader sees no pictures."""
        return 0


class Echo(Reader):
    """Answers with what the first evidence block says somebody carries."""

    config_class = NoOptions

    def __init__(self, model: str, config: Any, media: MediaStore) -> None:
        """Nothing to load."""
        super().__init__(model, config, media)
        self.card = ReaderCard("outside-echo", "", "1", "python", cache=False, max_inflight=64)
        self.counter = Words()

    async def generate(self, request: Request) -> Reply:
        """The words after `carries`."""
        text = "\n".join(parts_text(message.parts) for message in request.messages)
        found = re.search(r"carries ([^.]+)\.", text)
        reply = found.group(1) if found else "unknown"
        return Reply(reply, Usage(text=len(text.split()), output=len(reply.split())))


class HashEmbedder(Embedder):
    """Bag of hashed words, 64 wide."""

    config_class = NoOptions

    def __init__(self, model: str, config: Any, media: MediaStore) -> None:
        """Nothing to load."""
        super().__init__(model, config, media)
        self.card = ReaderCard("outside-hash", "", "1", "python")
        self.width = 64

    async def embed(
        self, inputs: Sequence[Sequence[Part]], kind: Literal["item", "query"]
    ) -> tuple[Any, Sequence[int]]:
        """Vectors of shape (n, 64)."""
        out = np.zeros((len(inputs), 64), np.float32)
        costs = []
        for row, parts in enumerate(inputs):
            words = re.findall(r"\w+", " ".join(part.text for part in parts if isinstance(part, Text)).lower())
            for word in words:
                out[row, int(hashlib.sha256(word.encode()).hexdigest(), 16) % 64] += 1
            costs.append(len(words))
        norms = np.linalg.norm(out, axis=1, keepdims=True)
        return out / np.where(norms == 0, 1, norms), costs
