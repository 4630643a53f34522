"""An image back end that paints one colour, which is the digest of all it was asked."""

from __future__ import annotations

import hashlib
import io
from typing import Any

from PIL import Image

from memharness.config import Config, option
from memharness.imaging import ImageBackend, ImageBackendCard, ImageRequest, Made, received, refuse_what_it_cannot


class FlatConfig(Config):
    """How it paints."""

    side: int = option(16, "Width and height where none is asked for.", unit="pixels", ge=1)


class Flat(ImageBackend):
    """Every request has a colour of its own."""

    config_class = FlatConfig

    def __init__(self, model: str, config: Any) -> None:
        """Nothing to load."""
        super().__init__(model, config)
        self.card = ImageBackendCard("outside-flat", "", frozenset({"generate", "edit", "compose"}), 4, seeded=True)

    async def make(self, request: ImageRequest) -> tuple[Made, ...]:
        """One flat picture for each that is wanted."""
        refuse_what_it_cannot(self.card, request)
        made = []
        for seed in range(request.seed or 0, (request.seed or 0) + request.n):
            colour = hashlib.sha256(repr((request.prompt, request.images, seed)).encode()).digest()[:3]
            file = io.BytesIO()
            Image.new("RGB", request.size or (self.config.side,) * 2, tuple(colour)).save(file, "PNG")
            made.append(received(file.getvalue(), request, seed=seed, seconds=0.0))
        return tuple(made)
