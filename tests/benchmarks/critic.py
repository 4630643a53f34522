"""A judge that sees: its points say which pictures it was shown, so that a test can tell."""

from __future__ import annotations

import json
from typing import Any

from memharness.config import Config
from memharness.media import MediaStore
from memharness.reader import Reader, ReaderCard, Reply, Request
from memharness.types import Image, Usage, parts_text


class NoOptions(Config):
    """Nothing to set."""


class Bytes:
    """A fourth of the characters; a picture is ten."""

    name = "bytes4"

    def text(self, text: str) -> int:
        """Tokens."""
        return len(text) // 4

    def image(self, width: int, height: int) -> int:
        """Tokens."""
        return 10


class Critic(Reader):
    """Faithfulness: how many pictures it was shown. Correctness: 9 if all of them can be opened."""

    config_class = NoOptions
    capabilities = frozenset({"image", "schema"})

    def __init__(self, model: str, config: Any, media: MediaStore) -> None:
        """Nothing to load."""
        super().__init__(model, config, media)
        self.media = media
        self.card = ReaderCard(type(self).__name__.lower(), model, "1", "python", capabilities=self.capabilities)
        self.counter = Bytes()

    async def generate(self, request: Request) -> Reply:
        """Its points; of kites it will not say."""
        words = parts_text(request.messages[-1].parts)
        pictures = [part for part in request.parts() if isinstance(part, Image)]
        opened = [self.media.open(picture).size for picture in pictures]
        points = {
            "reason": "",
            "faithfulness": len(pictures),
            "preservation": None if "about: (none)" in words else 4,
            "correctness": 9 if all(opened) else 0,
        }
        text = "A kite is beyond me." if "kite" in words else self.say(points)
        return Reply(text, Usage(text=len(words) // 4, image=10 * len(pictures), output=9))

    def say(self, points: dict[str, Any]) -> str:
        """The reply."""
        return json.dumps(points)


class Speaker(Critic):
    """The same in words."""

    capabilities = frozenset({"image"})

    def say(self, points: dict[str, Any]) -> str:
        """Three lines."""
        lines = ("faithfulness", "preservation", "correctness")
        return "\n".join(f"{line.title()}: {'none' if points[line] is None else points[line]}" for line in lines)


class Blind(Critic):
    """Sees nothing."""

    capabilities = frozenset()
