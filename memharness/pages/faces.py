"""The bundled fonts: which of them covers a character, how wide words are in it, and what all of them are by content.

Latin, Greek and Cyrillic in two weights; Han characters in common use (GB 2312, JIS X 0208, KS X 1001, Big5 level 1),
kana, bopomofo and every Hangul syllable in one; arrows, mathematics and other symbols in one. `tools/fonts.py` makes
them. Words are drawn glyph by glyph (Pillow's basic layout, which every wheel of it has): scripts that need shaping are
not covered.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from memharness.identity import digest, file_digest

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont

FOLDER = Path(__file__).parent / "fonts"
BODY = "sans-regular.ttf"
BOLD = "sans-bold.ttf"
FALLBACKS = ("cjk.otf", "math.ttf", "symbols.ttf", "symbols2.ttf")  # a character is drawn in the first that has it


@functools.lru_cache(1 << 15)
def face(character: str) -> str | None:
    """The first font that covers a character; None if none does."""
    return next((file for file in (BODY, *FALLBACKS) if ord(character) in _coverage(file)), None)


@functools.cache
def font(file: str, px: int) -> FreeTypeFont:
    """A bundled font with an em of `px` pixels."""
    from PIL import ImageFont

    return ImageFont.truetype(FOLDER / file, px, layout_engine=ImageFont.Layout.BASIC)


@functools.lru_cache(1 << 16)
def width(text: str, file: str, px: int) -> float:
    """Pixels that a text advances when it is drawn in one go, kerning included."""
    return font(file, px).getlength(text)


@functools.cache
def fonts_digest() -> str:
    """SHA-256 (hex) over the bundled fonts."""
    return digest({file: file_digest(FOLDER / file) for file in (BODY, BOLD, *FALLBACKS)})


@functools.cache
def _coverage(file: str) -> frozenset[int]:
    from fontTools.ttLib import TTFont

    with TTFont(FOLDER / file, lazy=True) as opened:
        return frozenset(opened.getBestCmap())
