"""An answer-track method without a model: it takes the last picture, paints a plain one, and says how long it took."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable

from memharness.config import Config
from memharness.method import Budget, Kit, Memory, Method, MethodCard
from memharness.types import Answer, Evidence, Image, Item, Question, Readout

DRAWS = ("draw", "make", "give", "put", "change", "turn", "paint", "add", "画", "把", "换")


class NoOptions(Config):
    """Nothing to set."""


class Painter(Method[NoOptions]):
    """Paints what it is asked in one colour, which its words decide."""

    card = MethodCard("painter", "Painter", "", 1, "answer")
    config_class = NoOptions

    def open(self, context: str, kit: Kit) -> Memory:
        """A memory of names."""
        return PainterMemory(kit)


class PainterMemory(Memory):
    """Keeps the names of pictures."""

    def __init__(self, kit: Kit) -> None:
        """Nothing seen yet."""
        self.kit = kit
        self.seen: list[str] = []

    async def observe(self, items: Iterable[Item]) -> None:
        """Remember which items are pictures."""
        self.seen += [item.id for item in items if item.kind == "image"]

    def stored(self) -> int:
        """One at least: words are not kept, and are no loss."""
        return max(1, len(self.seen))

    async def answer(self, question: Question, budget: Budget) -> Answer:
        """The last picture as the readout, and a new one where the words ask for one."""
        words = question.text()
        drawn = words.casefold().startswith(DRAWS)
        image = paint(words, self.kit) if drawn else None
        seconds = {"write": 0.25, "annotate": 0.25, "retrieve": 0.5, "plan": 1.0}
        return Answer(
            "Here it is." if drawn else "red",
            (image,) if image else (),
            Readout(tuple(map(Evidence, self.seen[-1:])), trace={"seen": len(self.seen)}),
            {"seconds": seconds | ({"generate": 4.0} if drawn else {})},
        )


def paint(words: str, kit: Kit) -> Image:
    """A plain picture of 16 × 16 pixels."""
    from PIL import Image as Pillow

    data = io.BytesIO()
    Pillow.new("RGB", (16, 16), tuple(hashlib.sha256(words.encode()).digest()[:3])).save(data, "PNG")
    return kit.images.keep(data.getvalue(), "painted.png", "painter")
