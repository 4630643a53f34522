"""Pictures that were made before: kept by what was asked of which back end, so that none is paid for twice."""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

from memharness.identity import digest
from memharness.imaging import ImageBackend, ImageRequest, Made
from memharness.store import RequestCache, whole


class CachedImages(ImageBackend):
    """A back end whose pictures are kept, with seed, route and notes; errors are not.

    Equal requests in flight share one call. The pictures are files named by their content beside the cache: one that is
    missing or was changed is made anew.
    """

    def __init__(self, backend: ImageBackend, folder: Path) -> None:
        """Keep what `backend` makes under `folder`.

        Raises:
            UserError: the folder holds a file that is no such cache, or cannot be written.
        """
        self.card = backend.card
        self.backend = backend
        self.folder = folder
        self._cache = RequestCache(folder / "requests.sqlite")

    def identity(self) -> Any:
        """The back end's."""
        return self.backend.identity()

    async def start(self) -> None:
        """See `ImageBackend.start`."""
        await self.backend.start()

    async def close(self) -> None:
        """Close the back end and the cache."""
        await self.backend.close()
        self._cache.close()

    async def make(self, request: ImageRequest) -> tuple[Made, ...]:
        """See `ImageBackend.make`."""

        async def call() -> dict[str, Any]:
            return {"made": [self._keep(one) for one in await self.backend.make(request)]}

        key = self.key(request)
        for again in itertools.count():  # once more only for a picture whose file was lost
            kept = digest([key, again])
            value, cached = await self._cache.reply(kept, call)
            value = self._cache.get(kept) or value  # another process may have been first: its pictures count
            made = [self._kept(one, request, cached) for one in value["made"]]
            if all(made):
                return tuple(one for one in made if one is not None)
        raise AssertionError("counting ends nowhere")

    def key(self, request: ImageRequest) -> str:
        """Digest of the back end and all that is asked of it."""
        references = [hashlib.sha256(data).hexdigest() for data in request.images]
        asked = [request.route, request.prompt, references, request.size, request.seed, request.n, request.negative]
        return digest([self.identity(), *asked, dict(request.extra)])

    def _keep(self, made: Made) -> dict[str, Any]:
        path = self._file(made.sha256)
        if not path.is_file():
            with whole(path) as temporary:
                temporary.write_bytes(made.data)
        shown = ("sha256", "width", "height", "seed", "notes", "seconds", "usage")
        return {name: getattr(made, name) for name in shown}

    def _kept(self, one: dict[str, Any], request: ImageRequest, cached: bool) -> Made | None:
        path = self._file(one["sha256"])
        data = path.read_bytes() if path.is_file() else b""
        if hashlib.sha256(data).hexdigest() != one["sha256"]:
            path.unlink(missing_ok=True)
            return None
        made = Made(data=data, route=request.route, **{**one, "notes": tuple(one["notes"])})
        return replace(made, cached=cached)

    def _file(self, sha: str) -> Path:
        return self.folder / sha[:2] / sha
