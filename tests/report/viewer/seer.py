"""A reader that may be shown pictures: it names the first one it sees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from memharness.media import MediaStore
from memharness.reader import Reply, Request
from memharness.types import Image, Usage
from tests.run.toys import Toy


class Seer(Toy):
    """Sees."""

    def __init__(self, model: str, config: Any, media: MediaStore) -> None:
        """As the toy, but with eyes."""
        super().__init__(model, config, media)
        self.card = replace(self.card, name="seer", capabilities=frozenset({"image"}))

    async def generate(self, request: Request) -> Reply:
        """The name of the first picture."""
        seen = [part for message in request.messages for part in message.parts if isinstance(part, Image)]
        return Reply(seen[0].source if seen else "nothing", Usage(text=1, image=len(seen), output=2))
