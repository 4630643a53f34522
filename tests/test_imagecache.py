"""Pictures are made once: in a process, across processes, and never kept where they failed or were lost."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memharness.imagecache import CachedImages
from memharness.imaging import ImageBackend, ImageError, ImageRequest, Made, open_images

MUG = ImageRequest("a blue mug", seed=3, size=(32, 32))


class Counted(ImageBackend):
    """`pil`, counting what it is asked; fails for prompts that say so."""

    def __init__(self, side: int = 256) -> None:
        """Count from nothing."""
        self.pil = open_images("pil", side=side)
        self.card = self.pil.card
        self.asked: list[ImageRequest] = []

    def identity(self) -> Any:
        """Of `pil`."""
        return self.pil.identity()

    async def make(self, request: ImageRequest) -> tuple[Made, ...]:
        """Draw, after the others had their turn."""
        self.asked.append(request)
        await asyncio.sleep(0)
        if "fail" in request.prompt:
            raise ImageError("asked for")
        return await self.pil.make(request)


async def test_what_was_made_is_not_made_again(tmp_path: Path) -> None:
    first, second = Counted(), Counted()
    (made,) = await CachedImages(first, tmp_path).make(MUG)
    (kept,) = await CachedImages(second, tmp_path).make(MUG)
    assert len(first.asked) == 1 and second.asked == []
    assert not made.cached and kept == replace(made, cached=True)


async def test_equal_requests_at_a_time_share_one_call(tmp_path: Path) -> None:
    backend = Counted()
    cache = CachedImages(backend, tmp_path)
    made = await asyncio.gather(*(cache.make(MUG) for _ in range(5)))
    assert len(backend.asked) == 1 and len({one[0].sha256 for one in made}) == 1


async def test_of_two_processes_at_a_time_the_first_one_counts(tmp_path: Path) -> None:
    both = asyncio.Barrier(2)

    class Moody(Counted):
        """Makes another picture each time, as a model on a GPU may."""

        def __init__(self, seed: int) -> None:
            super().__init__()
            self.seed = seed

        async def make(self, request: ImageRequest) -> tuple[Made, ...]:
            await both.wait()
            return await super().make(replace(request, seed=self.seed))

    caches = [CachedImages(Moody(seed), tmp_path) for seed in (1, 2)]
    made = await asyncio.gather(*(cache.make(MUG) for cache in caches))
    (kept,) = await CachedImages(Counted(), tmp_path).make(MUG)
    assert kept.cached and {one[0].sha256 for one in made} == {kept.sha256}


async def test_everything_that_is_asked_counts(tmp_path: Path) -> None:
    cache = CachedImages(Counted(), tmp_path)
    (mug,) = await cache.make(MUG)
    edit = ImageRequest("make the mug red", (mug.data,))
    requests = [
        MUG, replace(MUG, prompt="a red mug"), replace(MUG, seed=4), replace(MUG, seed=None), replace(MUG, n=2),
        replace(MUG, size=None), replace(MUG, negative="fog"), replace(MUG, extra={"steps": 4}), edit,
        replace(edit, images=(mug.data, mug.data)), replace(edit, images=(b"x",)),
    ]  # fmt: skip
    keys = [cache.key(request) for request in requests]
    assert len(set(keys)) == len(keys)
    assert CachedImages(Counted(side=64), tmp_path).key(MUG) not in keys


async def test_a_failure_is_not_kept(tmp_path: Path) -> None:
    backend = Counted()
    cache = CachedImages(backend, tmp_path)
    for _ in range(2):
        with pytest.raises(ImageError, match="asked for"):
            await cache.make(ImageRequest("fail"))
    assert len(backend.asked) == 2


@pytest.mark.parametrize("harm", ["lost", "changed"])
async def test_a_picture_that_is_gone_is_made_anew(tmp_path: Path, harm: str) -> None:
    backend = Counted()
    cache = CachedImages(backend, tmp_path)
    (made,) = await cache.make(MUG)
    file = tmp_path / made.sha256[:2] / made.sha256
    file.unlink() if harm == "lost" else file.write_bytes(b"other")
    (again,) = await cache.make(MUG)
    assert again.data == made.data and not again.cached and len(backend.asked) == 2
    assert (await cache.make(MUG))[0].cached and len(backend.asked) == 2


async def test_it_starts_and_closes_what_it_holds(tmp_path: Path) -> None:
    events: list[str] = []

    class Told(Counted):
        async def start(self) -> None:
            events.append("start")

        async def close(self) -> None:
            events.append("close")

    cache = CachedImages(Told(), tmp_path)
    await cache.start()
    await cache.close()
    assert events == ["start", "close"]
