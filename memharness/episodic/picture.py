"""Pictures as strangers send them: measured before they are decoded, decoded whole before they are kept."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memharness.episodic.files import ENDINGS
from memharness.types import DataError

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

MOST_PIXELS = 1 << 26  # 8,192 × 8,192: 256 MiB when decoded
MOST_BYTES = 1 << 28  # of an original
QUALITY = 80  # of a thumbnail

# Pillow knows many more; some of them run other programs (EPS) or open other files.
_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "AVIF")
_TURNED = (5, 6, 7, 8)  # values of EXIF's orientation that exchange width and height
_ORIENTATION = 0x0112


@dataclass(frozen=True)
class Look:
    """What a picture is: media type, size as shown in pixels, and its thumbnail (WebP)."""

    mime: str
    width: int
    height: int
    thumbnail: bytes


def look(data: bytes, edge: int, where: str) -> Look:
    """Decode a picture (of an animation, the first frame) and make its thumbnail.

    Args:
        data: PNG, JPEG, WebP, GIF, BMP, TIFF or AVIF; at most `MOST_BYTES`, and `MOST_PIXELS` by its own header.
        edge: pixels of the thumbnail's longer edge, at most; nothing is enlarged.
        where: what it is, for the error.

    Raises:
        DataError: if it is too large (nothing is decoded then), an SVG, of another kind, damaged or cut short.
    """
    from PIL import Image as Pillow
    from PIL import UnidentifiedImageError

    if len(data) > MOST_BYTES:
        raise DataError(f"{where}: has {len(data):,} bytes, and at most {MOST_BYTES:,} are taken; make it smaller")
    if _is_svg(data):
        raise DataError(f"{where}: is an SVG, a drawing that may name other files; none is fetched: send it as PNG")
    try:
        with Pillow.open(io.BytesIO(data), formats=_FORMATS) as picture:
            width, height = picture.size
            if width * height > MOST_PIXELS:
                raise DataError(_too_large(where, f"{width:,} × {height:,}"))
            if picture.getexif().get(_ORIENTATION, 1) in _TURNED:
                width, height = height, width
            mime = _mime(picture)
            picture.draft(picture.mode, (edge, edge))  # JPEG only: decoded as small as is enough, yet to its end
            return Look(mime, width, height, _thumbnail(picture, edge))
    except DataError:
        raise
    except (Pillow.DecompressionBombError, Pillow.DecompressionBombWarning):  # whose limit is higher
        raise DataError(_too_large(where, "too many")) from None
    except UnidentifiedImageError:
        known = ", ".join(ending.upper() for ending in ENDINGS.values())
        raise DataError(f"{where}: is no picture of a kind that is taken; take one of {known}") from None
    except Exception as error:  # a damaged file ends in whatever Pillow's parsers trip over
        raise DataError(f"{where}: is a picture that is damaged or cut short ({error}); send it again") from None


def _too_large(where: str, size: str) -> str:
    return f"{where}: has {size} pixels, and at most {MOST_PIXELS:,} are taken; make it smaller"


def _mime(picture: Picture) -> str:
    return "image/jpeg" if picture.format == "MPO" else f"image/{str(picture.format).lower()}"


def _thumbnail(picture: Picture, edge: int) -> bytes:
    from PIL import ImageOps

    shown = flat(ImageOps.exif_transpose(picture))
    shown.thumbnail((edge, edge))
    file = io.BytesIO()
    shown.save(file, "WEBP", quality=QUALITY, method=4)
    return file.getvalue()


def flat(picture: Picture) -> Picture:
    """A picture of any mode as 8-bit RGB on white."""
    from PIL import Image as Pillow

    if picture.mode.startswith("I") or picture.mode == "F":
        picture = _eight_bits(picture)
    if picture.has_transparency_data:
        clear = picture.convert("RGBA")
        white = Pillow.new("RGBA", clear.size, "white")
        return Pillow.alpha_composite(white, clear).convert("RGB")
    return picture.convert("RGB")


def _eight_bits(picture: Picture) -> Picture:
    """Grey of more than 8 bits, scaled down; Pillow's own conversion would cut everything above 255 off."""
    import numpy as np
    from PIL import Image as Pillow

    values = np.asarray(picture).astype(np.float64)
    if picture.mode == "F":  # has no range of its own
        values = np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
        low, high = values.min(), values.max()
        values = (values - low) / (high - low) * 65535 if high > low else values * 0
    return Pillow.fromarray((np.clip(values, 0, 65535) / 257).round().astype(np.uint8), "L")


def _is_svg(data: bytes) -> bool:
    start = data[:4096].replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n").lower()  # UTF-16 too
    return start.startswith(b"<") and b"<svg" in start
