"""Drawing a layout: the same bytes for the same page, in every process of one installation; shrinking and stacking.

PNG bytes depend on the versions of Pillow, FreeType and zlib, which is why the cache's key holds them.
"""

from __future__ import annotations

import functools
import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memharness.identity import digest
from memharness.media import home
from memharness.pages.faces import font, fonts_digest
from memharness.pages.layout import Layout, Line, Shape
from memharness.store import whole

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw

VERSION = 1  # of wrapping, templates and drawing: raised when a page of the same blocks looks different
PAPER = "#ffffff"
COMPRESSION = 3  # of zlib: pages get no smaller beyond, only slower
END = b"IEND\xaeB`\x82"
"""What a whole PNG ends with."""


@dataclass(frozen=True, slots=True)
class Page:
    """A drawn page.

    Attributes:
        png: the encoded picture, RGB without metadata.
        sha256: hex digest of `png`, its key in a media store.
        width: pixels.
        height: pixels.
        layout: what it was drawn from, before any shrinking; None for a stack of pages.
    """

    png: bytes
    sha256: str
    width: int
    height: int
    layout: Layout | None


def draw(layout: Layout) -> Page:
    """Draw a page; equal layouts give equal bytes."""
    from PIL import Image, ImageDraw

    picture = Image.new("RGB", (layout.width, layout.height), PAPER)
    canvas = ImageDraw.Draw(picture)
    for shape in layout.shapes:
        _shape(canvas, shape)
    for line in layout.lines:
        _words(canvas, line, layout.style.key)
    return _encoded(picture, layout)


def kept(layout: Layout, folder: Path | None = None) -> Page:
    """The page of a layout, read if it was drawn before, else drawn and kept.

    Args:
        layout: of the page.
        folder: where pages are kept by content (default: `home() / "pages"`).

    Raises:
        UserError: it cannot be written.
    """
    path = (folder or home() / "pages") / f"{page_key(layout)}.png"
    try:
        png = path.read_bytes()
    except OSError:  # if it cannot be written either, that says why
        png = b""
    if png.endswith(END):
        return Page(png, hashlib.sha256(png).hexdigest(), layout.width, layout.height, layout)
    page = draw(layout)
    with whole(path) as temporary:
        temporary.write_bytes(page.png)
    return page


def page_key(layout: Layout) -> str:
    """SHA-256 (hex) of all that a page's bytes depend on: blocks, template, size, style, fonts, versions."""
    return digest(
        {
            "blocks": layout.blocks,
            "template": layout.template,
            "size": (layout.width, layout.height),
            "style": layout.style,
            "fonts": fonts_digest(),
            "versions": (VERSION, *_versions()),
        }
    )


def downscaled(page: Page, *, factor: float | None = None, size: tuple[int, int] | None = None) -> Page:
    """The page made smaller, by a factor of each side or to a size in pixels (LANCZOS).

    Raises:
        ValueError: neither or both are given, or the page would not get smaller.
    """
    from PIL import Image

    if (factor is None) == (size is None):
        raise ValueError("give a factor or a size")
    width, height = size or (max(1, round(page.width / (factor or 1))), max(1, round(page.height / (factor or 1))))
    if not (1 <= width <= page.width and 1 <= height <= page.height):
        raise ValueError(f"a page of {page.width} × {page.height} pixels cannot be shrunk to {width} × {height}")
    if (width, height) == (page.width, page.height):
        return page
    return _encoded(_decoded(page).resize((width, height), Image.Resampling.LANCZOS), page.layout)


def stacked(pages: Sequence[Page]) -> Page:
    """Pages one below another, as wide as the widest.

    Raises:
        ValueError: there are none.
    """
    from PIL import Image

    if not pages:
        raise ValueError("a stack needs at least one page")
    picture = Image.new("RGB", (max(page.width for page in pages), sum(page.height for page in pages)), PAPER)
    top = 0
    for page in pages:
        picture.paste(_decoded(page), (0, top))
        top += page.height
    return _encoded(picture, None)


def _words(canvas: ImageDraw, line: Line, key: str) -> None:
    # Capitals stand in the middle of the line: they reach 0.71 em above the baseline in every bundled font.
    baseline = line.y + round((line.height + 0.71 * line.px) / 2)
    for run in line.runs:
        if run.key and key:
            box = (round(run.x), line.y + 1, round(run.x + run.width) - 1, line.y + line.height - 2)
            canvas.rectangle(box, fill=key)
    for run in line.runs:
        drawn = font(run.font, line.px)
        canvas.text((run.x, baseline), run.text, run.colour, drawn, anchor="ls")
        if run.twice:
            canvas.text((run.x + 0.5, baseline), run.text, run.colour, drawn, anchor="ls")


def _shape(canvas: ImageDraw, shape: Shape) -> None:
    box = (shape.x0, shape.y0, shape.x1, shape.y1)
    match shape.kind:
        case "frame":
            canvas.rectangle(box, outline=shape.colour)
        case "rule":
            canvas.rectangle(box, fill=shape.colour)
        case "disc":
            canvas.ellipse(box, fill=shape.colour)
        case "tick":
            wide, high = shape.x1 - shape.x0, shape.y1 - shape.y0
            corners = ((0.2, 0.5), (0.42, 0.75), (0.82, 0.2))
            canvas.line([(shape.x0 + round(x * wide), shape.y0 + round(y * high)) for x, y in corners], shape.colour, 2)


def _encoded(picture: Image, layout: Layout | None) -> Page:
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", compress_level=COMPRESSION)
    png = buffer.getvalue()
    return Page(png, hashlib.sha256(png).hexdigest(), *picture.size, layout)


def _decoded(page: Page) -> Image:
    from PIL import Image

    return Image.open(io.BytesIO(page.png))


@functools.cache
def _versions() -> tuple[str | None, ...]:
    import PIL
    from PIL import features

    return PIL.__version__, features.version("freetype2"), features.version("zlib_ng") or features.version("zlib")
