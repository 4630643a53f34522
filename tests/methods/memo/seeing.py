"""A reader that sees pictures, and says how many and how large the ones it was given are."""

from __future__ import annotations

from typing import Any, ClassVar

from memharness.config import Config
from memharness.media import MediaStore
from memharness.reader import Reader, ReaderCard, Reply, Request
from memharness.readers.counters import Bytes4
from memharness.types import Image, Usage


class Seeing(Reader):
    """Opens every picture of its prompt."""

    config_class: ClassVar[type[Config]] = Config

    def __init__(self, model: str, config: Any, media: MediaStore) -> None:
        super().__init__(model, config, media)
        self.card = ReaderCard("seeing", "", "1", "test", capabilities=frozenset({"image"}), cache=False)
        self.counter = Bytes4()

    async def generate(self, request: Request) -> Reply:
        sizes = [self.media.open(part).size for part in request.parts() if isinstance(part, Image)]
        return Reply(" ".join(f"{width}x{height}" for width, height in sizes) or "none", Usage())
