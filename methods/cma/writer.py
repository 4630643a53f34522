"""PAE, the writer of cards: its contract, and the one without a model, of measured pixels and the turn's words."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from memharness.episodic import Card
from memharness.methods.cma.colours import COLOUR_NAMES, measure, palette
from memharness.methods.cma.lexicon import lexicon

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

    from memharness.episodic import Asset

TAGS = 5
"""Fewest tags of a card where there is material for so many (CMA, appendix: at least 5)."""
MOST_TAGS = 16

OPERATIONS = {
    "upload": ("uploaded", "上传"),
    "generated": ("generated", "生成"),
    "edited": ("edited", "编辑"),
    "composed": ("composed", "合成"),
    "fetched": ("fetched", "获取"),
}

Ocr = Callable[["Picture"], str]


class Writer(Protocol):
    """Makes the card of one picture, when it comes into memory and again when the words of its turn are known."""

    @property
    def name(self) -> str:
        """Under which the memory keeps its cards."""

    async def write(self, asset: Asset, picture: Picture | None, words: str, language: str) -> Card:
        """A card.

        Args:
            asset: facts: kind, parents, size.
            picture: the pixels; None where there are none.
            words: the user's of the turn that brought or made it; may be empty.
            language: `en` or `zh`, of these words.

        Raises:
            ReaderError: a reader failed.
        """


@dataclass(frozen=True)
class ModelFreeWriter:
    """Palette with names, pHash, words in the picture, size, file and lineage, and the turn's own words.

    Attributes:
        language: of tags and description: `en`, `zh`, or `session` for that of the turn's words.
        ocr: reads the words in a picture; None leaves that out, and the card says so.
    """

    language: str = "session"
    ocr: Ocr | None = None
    name: str = "model-free"

    async def write(self, asset: Asset, picture: Picture | None, words: str, language: str) -> Card:
        """See `Writer`. Nothing is guessed: what was not measured is not on the card."""
        begun = time.perf_counter()
        language = language if self.language == "session" else self.language
        facts = _facts(asset, picture, words)
        colours: tuple[str, ...] = ()
        shares: tuple[tuple[str, float], ...] = ()
        if picture is not None:
            found = palette(picture)
            colours = tuple(code for code, _, _ in found)
            shares = tuple((name, share) for _, name, share in found)
            facts |= measure(picture) | {
                "colours": [[name, round(share, 3)] for name, share in shares],
                "ocr": self.ocr(picture) if self.ocr else None,
            }
        tags = _tags(asset, words, [name for name, _ in shares], str(facts.get("ocr") or ""), language)
        cost = {"seconds": round(time.perf_counter() - begun, 6)}
        description = describe(asset, words, shares, str(facts.get("ocr") or ""), language)
        return Card(tags, description, colours, language, "ok", cost, facts)


def _facts(asset: Asset, picture: Picture | None, words: str) -> dict[str, Any]:
    """What is known of a picture without a look at it."""
    facts: dict[str, Any] = {"words": words, "kind": asset.kind, "size": asset.size, "mime": asset.mime}
    facts |= {"width": asset.width, "height": asset.height, "pixels": picture is not None}
    return facts | {"parents": [[parent.id, parent.operation] for parent in asset.parents]}


def _tags(asset: Asset, words: str, colours: Sequence[str], seen: str, language: str) -> tuple[str, ...]:
    """Words of the turn that name something, then colours, operation, shape and words in the picture."""
    place = 1 if language == "zh" else 0
    tags = [*lexicon().content(words)[: MOST_TAGS - TAGS]]
    tags += [COLOUR_NAMES[name][place] for name in colours[:3]]
    tags += [OPERATIONS[asset.kind][place]]
    if asset.width and asset.height:
        tags.append(shape(asset.width, asset.height)[place])
    tags += [f"“{line}”" for line in seen.split("\n")[:1] if line]
    return tuple(dict.fromkeys(tags))[:MOST_TAGS]


def shape(width: int, height: int) -> tuple[str, str]:
    """Square, wide or tall, in English and Chinese."""
    if abs(width - height) * 20 <= max(width, height):
        return "square", "方形"
    return ("landscape format", "横幅") if width > height else ("portrait format", "竖幅")


def describe(asset: Asset, words: str, colours: Sequence[tuple[str, float]], seen: str, language: str) -> str:
    """A description in sentences of what is known, and no more."""
    zh = language == "zh"
    place = 1 if zh else 0
    lines = []
    if words:
        lines.append(f"原话：{words}" if zh else f"Asked for in these words: {words}")
    if asset.parents:
        parents = ("、" if zh else ", ").join(parent.id for parent in asset.parents)
        lines.append(f"由 {parents} 而来。" if zh else f"Made from {parents}.")
    if colours:
        named = [f"{COLOUR_NAMES[name][place]} {share:.0%}" for name, share in colours]
        lines.append(f"主要颜色：{'、'.join(named)}。" if zh else f"Main colours: {', '.join(named)}.")
    if seen:
        text = " / ".join(seen.split("\n"))
        lines.append(f"图中文字：“{text}”。" if zh else f"Words in the picture: “{text}”.")
    operation, size = OPERATIONS[asset.kind][place], f"{asset.width} × {asset.height}"
    about = f"{operation}，{size} 像素。" if zh else f"{operation.capitalize()}, {size} pixels."
    return " ".join([*lines, about])


@cache
def rapid_ocr() -> Ocr | None:
    """Reads the words in a picture by RapidOCR, a line a line; None where the package is not installed."""
    import logging

    try:
        from rapidocr import RapidOCR
    except ImportError:
        return None
    import numpy as np

    logging.getLogger("RapidOCR").setLevel(logging.ERROR)
    engine = RapidOCR(params={"Global.log_level": "error", "EngineConfig.onnxruntime.intra_op_num_threads": 1})

    def read(picture: Picture) -> str:
        pixels = np.ascontiguousarray(np.asarray(picture.convert("RGB"))[:, :, ::-1])  # it reads BGR
        return "\n".join(str(line) for line in getattr(engine(pixels), "txts", None) or ())

    return read


def facts_of(card: Card | None) -> Mapping[str, Any]:
    """What was measured of a picture; nothing where there is no card."""
    return card.facts if card is not None else {}
