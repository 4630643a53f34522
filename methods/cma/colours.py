"""Pictures measured without a model: named palette, pHash, and how far two pictures are from each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL.Image import Image as Picture

COLOUR_NAMES: dict[str, tuple[str, str]] = {
    "red": ("red", "红色"),
    "orange": ("orange", "橙色"),
    "yellow": ("yellow", "黄色"),
    "green": ("green", "绿色"),
    "turquoise": ("turquoise", "青色"),
    "blue": ("blue", "蓝色"),
    "purple": ("purple", "紫色"),
    "pink": ("pink", "粉色"),
    "brown": ("brown", "棕色"),
    "white": ("white", "白色"),
    "grey": ("grey", "灰色"),
    "black": ("black", "黑色"),
}
COLOURS = 6  # of a palette
EDGE = 64  # pixels are counted, and two pictures compared, at this edge
LEAST = 0.01  # share of the pixels under which a colour is not listed


def palette(picture: Picture) -> list[tuple[str, str, float]]:
    """The main colours: `#rrggbb`, name, share of the pixels; largest share first, one entry a name."""
    small = picture.convert("RGB").resize((EDGE, EDGE))
    quantised = small.quantize(16, method=0)
    table, pixels = quantised.getpalette() or [], EDGE * EDGE
    found: dict[str, tuple[int, int]] = {}
    counts = np.bincount(np.asarray(quantised).ravel(), minlength=16)
    for count, index in sorted(((int(one), at) for at, one in enumerate(counts) if one), reverse=True):
        red, green, blue = table[3 * index : 3 * index + 3]
        name = colour_name(red, green, blue)
        total, code = found.get(name, (0, (red << 16) + (green << 8) + blue))
        found[name] = total + count, code
    listed = sorted(((-count, name, code) for name, (count, code) in found.items() if count >= LEAST * pixels))
    return [(f"#{code:06x}", name, -count / pixels) for count, name, code in listed[:COLOURS]]


def colour_name(red: int, green: int, blue: int) -> str:
    """The name of a colour by hue, lightness and chroma; one of `COLOUR_NAMES`.

    Args:
        red: 0 to 255.
        green: 0 to 255.
        blue: 0 to 255.
    """
    import colorsys

    hue, light, _ = colorsys.rgb_to_hls(red / 255, green / 255, blue / 255)
    chroma, hue = (max(red, green, blue) - min(red, green, blue)) / 255, hue * 360
    if light < 0.13:
        return "black"
    if chroma < 0.12:
        return "white" if light > 0.85 else "grey" if light > 0.2 else "black"
    if hue < 45 and light < 0.42 and (hue >= 14 or chroma < 0.35):
        return "brown"
    if (hue < 14 or hue >= 320) and light > 0.7:
        return "pink"
    for limit, name in (
        (14, "red"), (44, "orange"), (68, "yellow"), (160, "green"), (195, "turquoise"), (255, "blue"), (300, "purple"),
        (342, "pink"),
    ):  # fmt: skip
        if hue < limit:
            return name
    return "red"


def measure(picture: Picture) -> dict[str, Any]:
    """The pHash of a picture (64 bits, hex), as a fact of its card."""
    import imagehash

    return {"phash": str(imagehash.phash(picture.convert("RGB")))}


def pixels(picture: Picture) -> NDArray[np.float32]:
    """A picture to be compared: (64, 64, 3) in [0, 1]."""
    small = picture.convert("RGB").resize((EDGE, EDGE))
    return np.asarray(small, dtype=np.float32) / np.float32(255)


def distance(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """Share of places at which two pictures differ visibly, in [0, 1]; small where one thing was changed."""
    return float((np.abs(one - other).max(axis=2) > 0.12).mean())


def opened(data: bytes) -> Picture | None:
    """A picture of bytes in RGB; None if they are none that can be read."""
    import io

    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data)) as picture:
            return picture.convert("RGB")
    except (UnidentifiedImageError, OSError, Image.DecompressionBombError):
        return None
