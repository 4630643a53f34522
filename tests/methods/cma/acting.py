"""Assets, pictures, a back end that paints a colour by its request, and the desk of a turn."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image as Pillow

from memharness.episodic import Asset
from memharness.imaging import ImageBackend, ImageBackendCard, ImageError, ImageRequest, Made, refuse_what_it_cannot
from memharness.media import MediaStore
from memharness.methods.cma.candidates import Candidate
from memharness.methods.cma.controller import Turn, language_of
from memharness.methods.cma.executive import Scene
from memharness.methods.cma.making import Watch
from memharness.methods.cma.retriever import Retrieval
from memharness.methods.cma.tools import Desk, Offline, Web
from memharness.types import Image


def png(colour: str = "red", size: tuple[int, int] = (32, 24)) -> bytes:
    """A picture of one colour."""
    out = io.BytesIO()
    Pillow.new("RGB", size, colour).save(out, "PNG")
    return out.getvalue()


def asset(index: int, **more: Any) -> Asset:
    """A picture of session `c` that was generated."""
    values: dict[str, Any] = {
        "id": f"image-{index}", "session": "c", "index": index, "turn": index + 1, "kind": "generated",
        "sha256": f"{index:064x}", "mime": "image/png", "width": 32, "height": 24, "size": 1, "parents": (),
        "prompt": "", "source": "", "text": "", "current": True, "feedback": None, "gallery": False, "deleted": False,
    }  # fmt: skip
    return Asset(**values | more)


class Painter(ImageBackend):
    """Paints the colour that a request's words and pictures hash to; `fails` says when it does not."""

    def __init__(self, fails: Callable[[ImageRequest], bool] = lambda request: False, **card: Any) -> None:
        values: dict[str, Any] = {
            "name": "painter", "model": "", "routes": frozenset({"generate", "edit", "compose"}), "max_references": 4,
            "seeded": True,
        }  # fmt: skip
        self.card = ImageBackendCard(**values | card)
        self.fails = fails
        self.asked: list[ImageRequest] = []

    def identity(self) -> Any:
        return "painter"

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def make(self, request: ImageRequest) -> tuple[Made, ...]:
        self.asked.append(request)
        refuse_what_it_cannot(self.card, request)
        if self.fails(request):
            raise ImageError("the paint is dry")
        key = hashlib.sha256(repr((request.prompt, request.images, request.seed)).encode()).hexdigest()
        data = png(f"#{key[:6]}", request.size or (32, 24))
        sha256 = hashlib.sha256(data).hexdigest()
        width, height = request.size or (32, 24)
        return (Made(data, width, height, sha256, request.seed, request.route, (), 0.0),)


class Picks:
    """A retriever that returns what it was told, whatever it is asked; `asked` lists the queries."""

    def __init__(self, *ids: str) -> None:
        self.ids = ids
        self.asked: list[str] = []

    async def retrieve(
        self, query: str, uploads: Sequence[bytes], candidates: Sequence[Candidate], history: Sequence[str]
    ) -> Retrieval:
        self.asked.append(query)
        return Retrieval(self.ids, "rules" if self.ids else "none", {})


def scene(
    words: str = "Make it red.", originals: Mapping[str, bytes] | None = None, prompts: Sequence[str] = (), **more: Any
) -> Scene:
    """A turn over pictures `image-0`, `image-1` … made of these words."""
    given = originals if originals is not None else {"image-0": png("blue"), "image-1": png("green", (48, 48))}
    candidates = [
        Candidate(asset(number, id=id, prompt=dict(enumerate(prompts)).get(number, "")), None, None)
        for number, id in enumerate(given)
    ]
    turn = Turn(words, 0, len(candidates), language_of(words), **more)
    return Scene(turn, (), (), candidates, (), given, 7, "c, turn 1")


def desk(
    tmp_path: Path,
    *,
    over: Scene | None = None,
    picks: Picks | None = None,
    painter: Painter | None = None,
    web: Web | None = None,
    watch: Watch | None = None,
) -> Desk:
    """The desk of a turn, with pictures kept under a folder of the test's own."""
    store = MediaStore(tmp_path / "files.sqlite")
    over = over or scene()
    shown: dict[str, Image] = {id: store.keep(data, id, "test") for id, data in over.originals.items()}
    return Desk(
        over, picks or Picks(), painter or Painter(), store, shown, (64, 64), web or Offline(), watch or Watch()
    )
