"""Asking an image back end for a picture: what it made, or why it made none."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memharness.types import DataError, Image

if TYPE_CHECKING:
    from memharness.imaging import ImageBackend, Made
    from memharness.method import Images


class Watch:
    """Wall-clock seconds by stage of a turn."""

    def __init__(self) -> None:
        """Begin at nothing."""
        self.seconds: dict[str, float] = {}

    @contextmanager
    def timed(self, stage: str, apart: str = "") -> Iterator[None]:
        """Add what passes inside to a stage, but for what is meanwhile added to another."""
        begun, before = time.perf_counter(), self.seconds.get(apart, 0.0)
        try:
            yield
        finally:
            passed = time.perf_counter() - begun - (self.seconds.get(apart, 0.0) - before)
            self.seconds[stage] = self.seconds.get(stage, 0.0) + passed


@dataclass(frozen=True)
class Product:
    """A picture that came of a turn.

    Attributes:
        image: as the harness keeps it.
        data: its bytes.
        parents: asset ids, or names of earlier products, it was made from.
        operation: `generate`, `edit`, `compose`, `crop` …
        notes: what the back end did otherwise than asked, and how it came about; JSON values.
    """

    image: Image
    data: bytes
    operation: str
    parents: tuple[str, ...] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Failure:
    """Why there is no picture: an outcome of the turn."""

    message: str


async def make(
    backend: ImageBackend,
    images: Images,
    *,
    prompt: str,
    pictures: Sequence[bytes] = (),
    size: tuple[int, int] | None = None,
    seed: int | None = None,
    parents: Sequence[str] = (),
    where: str,
) -> Product | Failure:
    """One picture of a back end, whose route follows from how many pictures it is given.

    What the back end cannot do, refuses or does wrong is a `Failure`: neither a crash of the run nor an error of the
    method, since the turn was retrieved and planned all the same.
    """
    from memharness.imaging import ImageError, ImageRequest

    request = ImageRequest(prompt=prompt, images=tuple(pictures), size=size, seed=seed)
    try:
        made = await backend.make(request)
        if not made:
            return Failure(f"{backend.card.name} made no picture")
        image = images.keep(made[0].data, f"{where}.{request.route}", where)
    except (ImageError, DataError) as error:
        return Failure(str(error))
    return Product(image, made[0].data, request.route, tuple(parents), _notes(made[0]))


def _notes(made: Made) -> dict[str, Any]:
    return {"seed": made.seed, "cached": made.cached, "notes": list(made.notes)}
