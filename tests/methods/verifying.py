"""A reader that follows the verifier and ECV protocols by word overlap, and a hashing embedder, for the real engine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from memharness.config import Config, option
from memharness.media import MediaStore
from memharness.reader import Embedder, Reader, ReaderCard, Reply, Request
from memharness.retrieval import words
from memharness.types import Part, Text, Usage, parts_text


class VerifyingOptions(Config):
    """How the reader fails."""

    prose_on: str = option("", "answer a verifier's request in prose where it holds this")
    prose_times: int = option(99, "so many times a request, counted by its turns")


class WordCount:
    """A token a word."""

    name = "words"

    def text(self, text: str) -> int:
        """Words."""
        return len(text.split())

    def image(self, width: int, height: int) -> int:
        """None."""
        return 0


def overlap(question: str, text: str) -> float:
    """Share of the question's words in a text, on the scale 0-5."""
    asked = set(words(question))
    return round(5 * len(asked & set(words(text))) / max(len(asked), 1), 3)


def node_reply(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Candidates with a word in common."""
    scored = [(card["id"], overlap(payload["question"], card["snippet"])) for card in payload["candidates"]]
    return {"selected": [{"id": name, "score": score} for name, score in scored if score > 0]}


def ecv_reply(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Each candidate's first anchor, by the candidate's own overlap."""
    return {
        "candidates": [
            {
                "id": card["id"],
                "direct_support": (own := overlap(payload["question"], card["snippet"])),
                "best_anchor_id": card["eligible_anchor_relations"][0]["anchor_id"],
                "incremental_support": own,
                "role": "new_fact" if own else "irrelevant",
            }
            for card in payload["candidates"]
        ]
    }


class Verifying(Reader):
    """JSON in, JSON out; any other request is answered with one word."""

    config_class = VerifyingOptions
    capabilities: frozenset[str] = frozenset({"schema"})

    def __init__(self, model: str, config: Any, media: MediaStore) -> None:
        super().__init__(model, config, media)
        self.card = ReaderCard("verifying", model, "1", "python", capabilities=self.capabilities)
        self.counter = WordCount()

    async def generate(self, request: Request) -> Reply:
        prompt = parts_text(request.messages[min(1, len(request.messages) - 1)].parts)
        return Reply(self.say(request, prompt), Usage(text=self.counter.text(prompt), output=1))

    def say(self, request: Request, prompt: str) -> str:
        """The words of the reply."""
        if request.schema is None:
            return "answer"
        if self.config.prose_on and self.config.prose_on in prompt and request.sample < self.config.prose_times:
            return "I would rather not."
        payload = json.loads(prompt)
        return json.dumps(ecv_reply(payload) if "anchor_evidence" in payload else node_reply(payload))


class Plain(Verifying):
    """The same without the capability."""

    capabilities = frozenset()


class Hashing(Embedder):
    """Texts with words in common are near each other: each word adds ±1 at a place of its own."""

    config_class = Config

    def __init__(self, model: str, config: Any, media: MediaStore) -> None:
        super().__init__(model, config, media)
        self.width = 64
        self.card = ReaderCard("hashing", model, "1", "numpy")

    async def embed(
        self, inputs: Sequence[Sequence[Part]], kind: Literal["item", "query"]
    ) -> tuple[NDArray[np.float32], Sequence[int]]:
        texts = [" ".join(part.text for part in one if isinstance(part, Text)) for one in inputs]
        out = np.zeros((len(texts), self.width))
        out[:, 0] = 1e-3
        for row, text in enumerate(texts):
            for word in words(text):
                number = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8])
                out[row, number // 2 % self.width] += 1 if number % 2 else -1
        out /= np.linalg.norm(out, axis=1, keepdims=True)
        return out.astype(np.float32), [len(text.split()) for text in texts]
