"""What a verifier reads of a candidate: a short text, and a separate, query-aware budget for words read in pictures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from textwrap import wrap

from memharness.retrieval import words
from memharness.types import Image, Item, Text, Video

SAME = 0.94  # lines more alike than this are one line (official code)
_NUMBER = re.compile(r"\d|[$€£¥]")


def snippet(item: Item, question: str, characters: int, ocr_characters: int) -> str:
    """The item's own words and captions, cut at `characters`, then the OCR lines that fit the question best."""
    own = " ".join(
        filter(None, [item.text(), item.derived_text("caption") or item.derived_text("short_caption", "summary")])
    )
    text = _cut(" ".join(own.split()), characters)
    ocr = best_lines(item.derived_text("ocr").splitlines(), question, ocr_characters)
    return f"{text} [text in picture: {ocr}]" if ocr else text


def best_lines(lines: Sequence[str], question: str, characters: int) -> str:
    """Lines by 100 · overlap with the question + 12 if they hold a number + length / 120, without near-duplicates."""
    asked = set(words(question))

    def worth(line: str) -> float:
        own = set(words(line))
        overlap = len(own & asked) / len(asked) if asked else 0.0
        return 100 * overlap + 12 * bool(_NUMBER.search(line)) + len(line) / 120

    kept: list[str] = []
    left = characters
    for line in sorted(_pieces(lines, characters), key=lambda line: (-worth(line), line)):
        if len(line) <= left and not any(SequenceMatcher(None, line, other).ratio() >= SAME for other in kept):
            kept.append(line)
            left -= len(line) + 3
    return " / ".join(kept)


def _pieces(lines: Sequence[str], characters: int) -> Iterator[str]:
    """The lines without surplus space; one longer than the whole budget is broken between words."""
    for line in lines:
        yield from wrap(" ".join(line.split()), characters) if characters else ()


def modalities(item: Item) -> list[str]:
    """Kinds of parts an item has: `text`, `image`, `video`."""
    names = {Text: "text", Image: "image", Video: "video"}
    return sorted({names[type(part)] for part in item.parts})


def _cut(text: str, characters: int) -> str:
    return text if len(text) <= characters else text[: characters - 1].rstrip() + "…"
