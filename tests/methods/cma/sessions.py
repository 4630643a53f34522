"""Pictures of a dialogue as they come up, for retrievers: what a memory would hand them, without one."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from PIL import Image as Pillow

from memharness.episodic import Asset, Card, Parent
from memharness.media import MediaStore
from memharness.methods.cma.candidates import Candidate, Retrieval
from memharness.methods.cma.retriever import ModelFreeRetriever
from memharness.methods.cma.writer import ModelFreeWriter
from memharness.reader import Counter, ReaderCard, Reply, Request
from memharness.types import Usage


def painted(*colours: str, size: int = 48) -> bytes:
    """A PNG of stripes, one a colour."""
    picture = Pillow.new("RGB", (size, size), colours[0])
    for place, colour in enumerate(colours):
        picture.paste(colour, (0, place * size // len(colours), size, (place + 1) * size // len(colours)))
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


def asset(index: int, data: bytes | None = None, **more: Any) -> Asset:
    """An asset of session `s`."""
    values: dict[str, Any] = {
        "id": f"image-{index}", "session": "s", "index": index, "turn": index + 1, "kind": "generated",
        "sha256": hashlib.sha256(data).hexdigest() if data else None, "mime": "image/png" if data else "",
        "width": 48 if data else 0, "height": 48 if data else 0, "size": len(data or b""), "parents": (), "prompt": "",
        "source": "", "text": "", "current": True, "feedback": None, "gallery": False, "deleted": False,
    }  # fmt: skip
    return Asset(**values | more)


async def candidate(index: int, words: str, data: bytes | None = None, **more: Any) -> Candidate:
    """A picture with its model-free card; its thumbnail is the picture itself."""
    one = asset(index, data, prompt=words, **more)
    picture = Pillow.open(io.BytesIO(data)).convert("RGB") if data else None
    card: Card = await ModelFreeWriter().write(one, picture, words, "en")
    return Candidate(one, card, data)


@dataclass
class Dialogue:
    """Turns played in order; each picture is a new one unless it says what it was made from."""

    candidates: list[Candidate] = field(default_factory=list)
    history: list[str] = field(default_factory=list)
    retriever: ModelFreeRetriever = field(default_factory=ModelFreeRetriever)

    async def made(self, words: str, *parents: int, **more: Any) -> None:
        """A turn that made a picture of others."""
        kind = ("generated", "edited", "composed")[min(len(parents), 2)]
        above = tuple(Parent(self.candidates[place].asset.id, "edit") for place in parents)
        self.said(words)
        values: dict[str, Any] = {"kind": kind, "parents": above, "turn": self.turn} | more
        self.candidates.append(await candidate(len(self.candidates), words, **values))

    def said(self, words: str) -> None:
        """Words of the user."""
        self.history.append(f"Turn {self.turn + 1}, user: {words}")

    @property
    def turn(self) -> int:
        """The last turn played."""
        return len(self.history)

    async def ask(self, query: str, *uploads: bytes) -> list[int]:
        """The places of what the retriever picks."""
        found = await self.retrieval(query, *uploads)
        return [int(id.removeprefix("image-")) for id in found.ids]

    async def retrieval(self, query: str, *uploads: bytes) -> Retrieval:
        """What the retriever says."""
        return await self.retriever.retrieve(query, uploads, self.candidates, self.history)


class Scripted:
    """A reader that replies what it is told, one after another (the last again and again); `asked` are the requests."""

    def __init__(self, *replies: Reply | str | Exception, window: int | None = None, **can: bool) -> None:
        able = frozenset(name for name, has in can.items() if has)
        self.card = ReaderCard("scripted", "scripted", "1", "test", window=window, capabilities=able)
        self.counter: Counter = Letters()
        self.replies = list(replies)
        self.asked: list[Request] = []

    async def generate(self, request: Request) -> Reply:
        """The next reply."""
        self.asked.append(request)
        said = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(said, Exception):
            raise said
        return Reply(said, Usage(text=7, output=3)) if isinstance(said, str) else said


class Letters:
    """Counts a token a character, and a thousand a picture."""

    name = "letters"

    def text(self, text: str) -> int:
        """Characters."""
        return len(text)

    def image(self, width: int, height: int) -> int:
        """A thousand."""
        return 1000


class Kept:
    """Keeps pictures in a media store, as a kit does."""

    def __init__(self, media: MediaStore) -> None:
        self.media = media

    def keep(self, data: bytes, source: str, where: str) -> Any:
        """An image for bytes."""
        return self.media.keep(data, source, where)

    def open(self, image: Any) -> Any:
        """The decoded picture."""
        return self.media.open(image)

    def path(self, image: Any) -> Any:
        """Its file."""
        return self.media.path(image)


def shown(request: Request) -> str:
    """All text of a request."""
    return "".join(part.text for part in request.parts() if hasattr(part, "text"))


def facts(colours: Sequence[tuple[str, float]] = ()) -> dict[str, Any]:
    """Facts as a writer measures them."""
    return {"kind": "generated", "width": 48, "height": 48, "colours": [list(one) for one in colours], "ocr": None}
