"""Tools that work on pixels without any model, the same bytes each time: collage, crop, text overlay."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import pydantic

from memharness.methods.cma.tools.back_end import Reference, made
from memharness.methods.cma.tools.desk import Desk
from memharness.methods.cma.tools.tool import Arguments, Result, Tool, ToolError

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

MOST_EDGE = 4096  # pixels of a collage's longer edge
Place = Literal[
    "top left", "top", "top right", "left", "centre", "right", "bottom left", "bottom", "bottom right"
]  # fmt: skip
Colour = str


class Collage(Arguments):
    """Arguments of `collage`."""

    pictures: list[Reference] = pydantic.Field(min_length=1, max_length=25, description="row by row, left to right")
    columns: int | None = pydantic.Field(None, ge=1, le=25, description="by default as square as it gets")
    cell: int = pydantic.Field(256, ge=16, le=1024, description="edge of a cell in pixels")
    gap: int = pydantic.Field(8, ge=0, le=128, description="pixels between cells and around them")
    background: Colour = pydantic.Field("#ffffff", pattern=r"^#[0-9a-fA-F]{6}$", description="as #rrggbb")


class Crop(Arguments):
    """Arguments of `crop`."""

    picture: Reference
    left: int = pydantic.Field(ge=0, description="pixels from the left edge")
    top: int = pydantic.Field(ge=0, description="pixels from the top edge")
    width: int = pydantic.Field(ge=1, description="pixels")
    height: int = pydantic.Field(ge=1, description="pixels")


class Overlay(Arguments):
    """Arguments of `overlay`."""

    picture: Reference
    text: str = pydantic.Field(min_length=1, max_length=400, description="the words, exactly; line breaks hold")
    place: Place = pydantic.Field("bottom", description="where in the picture")
    size: int | None = pydantic.Field(None, ge=6, le=512, description="pixels; a twelfth of the height by default")
    colour: Colour = pydantic.Field("#ffffff", pattern=r"^#[0-9a-fA-F]{6}$", description="as #rrggbb")
    outline: Colour = pydantic.Field("#000000", pattern=r"^#[0-9a-fA-F]{6}$", description="as #rrggbb")


async def collage(desk: Desk, asked: Collage) -> Result:
    """Pictures side by side on a grid, each whole and in the middle of its cell."""
    from PIL import Image as Pillow
    from PIL import ImageOps

    n, cell, gap = len(asked.pictures), asked.cell, asked.gap
    columns = min(n, asked.columns or math.isqrt(n - 1) + 1)
    rows = -(-n // columns)
    size = (columns * (cell + gap) + gap, rows * (cell + gap) + gap)
    if max(size) > MOST_EDGE:
        raise ToolError(f"collage: {size[0]}x{size[1]} is more than {MOST_EDGE} pixels; use a smaller cell")
    sheet = Pillow.new("RGB", size, asked.background)
    for place, name in enumerate(asked.pictures):
        picture = ImageOps.contain(desk.open(name), (cell, cell), Pillow.Resampling.LANCZOS)
        left = gap + place % columns * (cell + gap) + (cell - picture.width) // 2
        top = gap + place // columns * (cell + gap) + (cell - picture.height) // 2
        sheet.paste(picture, (left, top))
    return made(desk, desk.draw(sheet, "collage", asked.pictures))


async def crop(desk: Desk, asked: Crop) -> Result:
    """A part of a picture."""
    picture = desk.open(asked.picture)
    box = (asked.left, asked.top, asked.left + asked.width, asked.top + asked.height)
    if box[2] > picture.width or box[3] > picture.height:
        raise ToolError(
            f"crop: the box ends at {box[2]}x{box[3]}, outside picture {asked.picture}, which is "
            f"{picture.width}x{picture.height}"
        )
    return made(desk, desk.draw(picture.crop(box), "crop", (asked.picture,), box=list(box)))


async def overlay(desk: Desk, asked: Overlay) -> Result:
    """Words on a picture, in bundled fonts."""
    from memharness.pages import missing

    if lacking := "".join(sorted(set(missing(asked.text)))):
        raise ToolError(f"overlay: no bundled font has {lacking!r}")
    picture = desk.open(asked.picture)
    write(picture, asked)
    return made(desk, desk.draw(picture, "overlay", (asked.picture,), text=asked.text))


def write(picture: Picture, asked: Overlay) -> None:
    """Draw the words into the picture.

    Raises:
        ToolError: if they do not fit.
    """
    from PIL import ImageDraw

    from memharness.pages.faces import BODY, face, font

    px = asked.size or max(10, picture.height // 12)
    stroke, margin, step = max(1, px // 12), px // 2, round(px * 1.3)
    lines = asked.text.split("\n")
    drawn = [[(one, font(face(one) or BODY, px)) for one in line] for line in lines]
    widths = [sum(face_.getlength(one) for one, face_ in line) for line in drawn]
    if max(widths) + 2 * margin > picture.width or len(lines) * step + 2 * margin > picture.height:
        raise ToolError(f"overlay: the words do not fit into {picture.width}x{picture.height} at size {px}")
    pen = ImageDraw.Draw(picture)
    down = 0.0 if "top" in asked.place else 1.0 if "bottom" in asked.place else 0.5
    across = 0.0 if "left" in asked.place else 1.0 if "right" in asked.place else 0.5
    top = margin + down * (picture.height - 2 * margin - len(lines) * step)
    for row, line in enumerate(drawn):
        left = margin + across * (picture.width - 2 * margin - widths[row])
        for one, face_ in line:
            pen.text(
                (left, top + row * step + px), one, asked.colour, face_, anchor="ls",
                stroke_width=stroke, stroke_fill=asked.outline,
            )  # fmt: skip
            left += face_.getlength(one)


TOOLS = (
    Tool(
        "collage",
        "Put pictures side by side on a grid, unchanged to the pixel but for their size.",
        Collage, collage, False,
    ),
    Tool("crop", "Cut a rectangle out of a picture.", Crop, crop, False),
    Tool(
        "overlay",
        "Write words on a picture, exactly as given, in a printed face (Latin, Greek, Cyrillic, Han, kana, Hangul).",
        Overlay, overlay, False,
    ),
)  # fmt: skip
