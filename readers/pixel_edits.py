"""Edits of pictures whose content is not known, by pixels alone: colours, light, words, parts, turns and collage."""

from __future__ import annotations

import io
import re
import warnings
from typing import TYPE_CHECKING

from memharness.imaging import MOST_PIXELS, ImageError, ImageRequest

if TYPE_CHECKING:
    from PIL.Image import Image

    from memharness.scenes import Change

FULL_COLOUR = 64  # saturation (of 255) from which a pixel is said to have a colour
NEAR = 10  # of 256 steps of hue: how far a pixel's colour may be from the one that is named
_TURNS = (
    (re.compile(r"\bmirror\w*|\bflip\w*|镜像|翻转", re.IGNORECASE), "mirror"),
    (re.compile(r"\brotate\w*|\bturn (?:it )?(?:clockwise|sideways)|旋转", re.IGNORECASE), "rotate"),
    (re.compile(r"\b(?:grey|gray)scale\b|\bblack[ -]and[ -]white\b|黑白", re.IGNORECASE), "grey"),
    (re.compile(r"\bbright(?:er|en)\w*|\blighter\b|亮一?些|更亮|调亮", re.IGNORECASE), "brighter"),
    (re.compile(r"\bdark(?:er|en)\w*|\bdimmer\b|暗一?些|更暗|调暗", re.IGNORECASE), "darker"),
    (re.compile(r"\bcrop\w*|裁剪|裁切", re.IGNORECASE), "crop"),
)


def opened(data: bytes) -> Image:
    """A reference as 8-bit RGB on white, upright; of an animation the first frame.

    Raises:
        ImageError: it cannot be decoded, or is larger than 8,192 × 8,192 pixels.
    """
    from PIL import Image as Pillow
    from PIL import ImageOps

    from memharness.episodic.picture import flat

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Pillow.DecompressionBombWarning)  # the limit here is lower
            with Pillow.open(io.BytesIO(data)) as picture:
                if picture.width * picture.height > MOST_PIXELS:
                    raise ImageError(f"a picture to start from is too large ({picture.width:,} × {picture.height:,})")
                return flat(ImageOps.exif_transpose(picture))
    except (OSError, SyntaxError, ValueError, Pillow.DecompressionBombError) as error:
        raise ImageError(f"a picture to start from cannot be decoded ({error})") from None


def edited(request: ImageRequest, change: Change | None) -> tuple[bytes, tuple[str, ...]]:
    """A request's pictures changed by their pixels, as PNG; and what was done, in words.

    Raises:
        ImageError: the words name no change that pixels alone allow.
    """
    pictures = [opened(data) for data in request.images]
    notes: tuple[str, ...] = ()
    if len(pictures) > 1:
        picture, notes = beside(pictures), ("put beside each other: what the pictures show is not known",)
    else:
        picture = _changed(pictures[0], request.prompt, change)
    if request.size is not None:
        picture = picture.resize(request.size)
    file = io.BytesIO()
    picture.save(file, "PNG", compress_level=6)
    return file.getvalue(), notes


def beside(pictures: list[Image], gap: int = 4) -> Image:
    """Pictures in a row on white, all as high as the first."""
    from PIL import Image as Pillow

    height = pictures[0].height
    row = [one.resize((max(1, round(one.width * height / one.height)), height)) for one in pictures]
    sheet = Pillow.new("RGB", (sum(one.width for one in row) + gap * (len(row) - 1), height), "white")
    left = 0
    for one in row:
        sheet.paste(one, (left, 0))
        left += one.width + gap
    return sheet


def _changed(picture: Image, words: str, change: Change | None) -> Image:
    from PIL import Image as Pillow
    from PIL import ImageEnhance, ImageOps

    if change is not None and change.operation == "text":
        return lettered(picture, change.value)
    done = next((what for pattern, what in _TURNS if pattern.search(words)), None)
    match done:
        case "mirror":
            return ImageOps.mirror(picture)
        case "rotate":
            return picture.transpose(Pillow.Transpose.ROTATE_270)
        case "grey":
            return ImageOps.grayscale(picture).convert("RGB")
        case "brighter" | "darker":
            return ImageEnhance.Brightness(picture).enhance(1.4 if done == "brighter" else 0.6)
        case "crop":
            wide, tall = picture.size
            return picture.crop((wide // 8, tall // 8, wide - wide // 8, tall - tall // 8))
    if change is not None and change.operation == "recolour":
        return recoloured(picture, change.value, change.colour)
    if change is not None and change.operation == "relight":
        return relit(picture, change.value)
    raise ImageError(
        "pil: names no change that can be made to a picture by its pixels (a colour, a light, words, a crop, a turn)"
    )


def recoloured(picture: Image, colour: str, source: str = "") -> Image:
    """Pixels of one colour (of any full colour, if none is named) in another, as light and shade as they were."""
    import numpy as np
    from PIL import Image as Pillow

    from memharness.scenes.vocabulary import COLOUR_VALUES

    pixels = np.asarray(picture.convert("HSV")).astype(np.int16)
    target = np.asarray(Pillow.new("RGB", (1, 1), COLOUR_VALUES[colour]).convert("HSV"))[0, 0]
    chosen = pixels[..., 1] >= FULL_COLOUR
    if source:
        hue = int(np.asarray(Pillow.new("RGB", (1, 1), COLOUR_VALUES[source]).convert("HSV"))[0, 0, 0])
        apart = np.abs(pixels[..., 0] - hue)
        chosen &= np.minimum(apart, 256 - apart) <= NEAR
    if not chosen.any():
        raise ImageError(f"pil: no pixel is {source or 'of a full colour'}; there is nothing to make {colour}")
    pixels[chosen, 0], pixels[chosen, 1] = target[0], target[1]
    return Pillow.fromarray(pixels.astype(np.uint8), "HSV").convert("RGB")


def relit(picture: Image, light: str) -> Image:
    """The whole picture in a light of the vocabulary."""
    import numpy as np
    from PIL import Image as Pillow

    from memharness.scenes.backdrops import lit

    tables = [[lit((value,) * 3, light)[band] for value in range(256)] for band in range(3)]
    pixels = np.asarray(picture)
    return Pillow.fromarray(
        np.stack([np.asarray(tables[band], np.uint8)[pixels[..., band]] for band in range(3)], axis=-1), "RGB"
    )


def lettered(picture: Image, words: str) -> Image:
    """Words on a bar along the lower edge, in letters as large as fit."""
    from PIL import ImageDraw, ImageFont

    picture = picture.copy()
    wide, tall = picture.size
    bar = max(8, tall // 8)
    pen = ImageDraw.Draw(picture)
    pen.rectangle((0, tall - bar, wide, tall), fill="white")
    for size in range(bar - 2, 5, -1):
        font = ImageFont.load_default(size)
        if pen.textlength(words, font) <= wide - 4:
            break
    pen.text((wide / 2, tall - bar / 2), words, fill="black", font=font, anchor="mm")
    return picture
