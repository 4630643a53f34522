"""`pil`: pictures without weights. Words are drawn as scenes; the same request gives the same bytes."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, ClassVar

from memharness.config import Config, option
from memharness.identity import digest
from memharness.imaging import (
    ImageBackend,
    ImageBackendCard,
    ImageError,
    ImageRequest,
    Made,
    received,
    refuse_what_it_cannot,
)
from memharness.types import UserError

if TYPE_CHECKING:
    from memharness.scenes import Change, Scene


class PilConfig(Config):
    """How `pil` draws."""

    side: int = option(256, "width and height where none is asked for", unit="pixels", ge=16, le=4096)


class PilImages(ImageBackend):
    """Draws what `memharness.scenes` can read in the words.

    A picture that `pil` drew carries its scene, so that a change is the scene drawn anew. Any other picture is changed
    by its pixels (`memharness.readers.pixel_edits`), several of them are put beside each other. An instruction that
    names no change it knows is an `ImageError`: a copy would look like success.
    """

    config: PilConfig
    config_class: ClassVar[type[Config]] = PilConfig

    def __init__(self, model: str, config: Any) -> None:
        """Nothing to load.

        Raises:
            UserError: a model is named.
        """
        import PIL

        from memharness import scenes

        if model:
            raise UserError(f"images pil:{model}: pil has no models; write just pil")
        super().__init__(model, config)
        routes = frozenset({"generate", "edit", "compose"})
        drawing = f"scenes {scenes.VERSION}, Pillow {PIL.__version__}"  # whose bytes they are
        self.card = ImageBackendCard("pil", drawing, routes, max_references=9, seeded=True)

    async def make(self, request: ImageRequest) -> tuple[Made, ...]:
        """See `ImageBackend.make`; only generating depends on the seed."""
        refuse_what_it_cannot(self.card, request)
        return await asyncio.to_thread(self._make, request)

    def _make(self, request: ImageRequest) -> tuple[Made, ...]:
        # Without a seed the words are the seed: one prompt, one picture.
        seed = int(digest(request.prompt)[:8], 16) if request.seed is None else abs(request.seed)
        made = []
        for at in range(request.n):
            begun = time.perf_counter()
            drawing = request.route == "generate"
            data, notes = self._drawn(request, seed + at) if drawing else self._changed(request)
            used = seed + at if drawing else None
            made.append(received(data, request, seed=used, seconds=time.perf_counter() - begun, notes=notes))
        return tuple(made)

    def _drawn(self, request: ImageRequest, seed: int) -> tuple[bytes, tuple[str, ...]]:
        from memharness.scenes import png, read_scene

        try:
            return png(read_scene(request.prompt, seed), request.size or (self.config.side, self.config.side)), ()
        except ValueError as error:
            raise ImageError(f"pil: {error}") from None

    def _changed(self, request: ImageRequest) -> tuple[bytes, tuple[str, ...]]:
        from memharness.readers.pixel_edits import edited, opened
        from memharness.scenes import Change, png, read_change, scene_of

        change = read_change(request.prompt)
        scenes = [scene for scene in map(scene_of, request.images) if scene is not None]
        if request.route == "compose" and change is None:
            change = Change("fuse")
        if change is not None and len(scenes) == len(request.images):
            after = _applied(change, scenes)
            size = request.size or opened(request.images[0]).size
            notes = ("the change leaves the picture as it was",) if after == scenes[0] else ()
            return png(after, size), notes
        return edited(request, change)


def _applied(change: Change, scenes: list[Scene]) -> Scene:
    from memharness.scenes import apply

    try:
        return apply(change, scenes)
    except ValueError as error:
        raise ImageError(f"pil: {error}") from None
