"""Pages: what laying out and drawing costs against a bare Pillow draw of the same lines, and what a kept page costs.

Both sides draw on a picture of the same size and encode it with the same options, in turns, every page another text.
The bare side is told where every line stands and draws it in one font in one call; this project's side also measures,
wraps, arranges, checks coverage, and draws weights, highlights and frames.

Run: python tests/perf/pages.py [pages]
"""

from __future__ import annotations

import io
import os
import platform
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import PIL
from PIL import Image, ImageDraw, ImageFont, features

from memharness.image_tokens import nominal28
from memharness.pages import TEMPLATES, Block, Layout, Style, Template, draw, kept, lay_out, smallest
from memharness.pages.drawing import COMPRESSION
from memharness.pages.faces import BODY, FOLDER

PROSE = (
    "the tower was finished in autumn after two winters of storms and its lamp burned oil until a clockwork lens came "
    "by ship from Marseille; Johanna kept the light for years, wrote down weather three times a day (in pencil) then "
    "rowed out twice 1874 1889 27 9:15 46.5 % 'quay' Halcyon ferry-boat Thursday blue folder station kettle drawer"
)
WORDS = PROSE.split()
STYLE = Style(font_px=14)


def blocks(rng: random.Random) -> list[Block]:
    """Eight blocks of some 40 words, no two alike."""

    def made(index: int) -> Block:
        text = " ".join(rng.choices(WORDS, k=rng.randint(30, 50)))
        start = rng.randrange(len(text) - 30)
        title, source = " ".join(rng.choices(WORDS, k=3)), f"folder {rng.randint(1, 99)}, page {index}"
        return Block(f"b{index}", title, text, source, "note", f"2024-0{index + 1}-11", ((start, start + 25),))

    return [made(index) for index in range(8)]


def bare(layout: Layout, font: ImageFont.FreeTypeFont) -> bytes:
    """The same lines at the same places, in one font."""
    picture = Image.new("RGB", (layout.width, layout.height), "white")
    canvas = ImageDraw.Draw(picture)
    for line in layout.lines:
        canvas.text((line.x, line.y), line.text, fill="black", font=font)
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", compress_level=COMPRESSION)
    return buffer.getvalue()


def ours(page: list[Block], template: Template) -> Layout:
    """A page of 700 pixels, laid out and drawn."""
    layout = lay_out(page, template, 700, 100_000, STYLE)
    assert layout is not None
    draw(layout)
    return layout


def seconds(call: Callable[[], object]) -> float:
    """How long one call takes on the processor: other processes do not count."""
    start = time.process_time()
    call()
    return time.process_time() - start


def main() -> int:
    """Print the comparison; return 0 if no template costs more than twice the bare draw and a kept page is read."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    rng = random.Random(5)
    font = ImageFont.truetype(FOLDER / BODY, STYLE.font_px, layout_engine=ImageFont.Layout.BASIC)
    print(f"machine   {platform.machine()}, {platform.platform()}, Python {platform.python_version()}")
    print(f"pillow    {PIL.__version__}, FreeType {features.version('freetype2')}, basic layout")
    print(
        f"pages     {count} a template after 3 to warm up, 8 blocks of some 40 words, {STYLE.font_px} px, 700 px wide"
    )
    print(f"load      {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; medians of processor seconds")
    worst = 0.0
    for template in TEMPLATES:
        pairs = []
        for turn in range(count + 3):
            page = blocks(rng)
            mine = seconds(lambda page=page, template=template: ours(page, template))  # type: ignore[misc]
            layout = lay_out(page, template, 700, 100_000, STYLE)
            plain = seconds(lambda layout=layout: bare(layout, font))  # type: ignore[misc]
            if turn >= 3:
                pairs.append((mine, plain))
        mine, plain = (median(side) for side in zip(*pairs, strict=True))
        ratio = median(one / other for one, other in pairs)
        worst = max(worst, ratio)
        print(f"{template:10}{1000 * mine:7.1f} ms, bare {1000 * plain:5.1f} ms: {ratio:.2f} times")
    page = blocks(rng)
    found = smallest(page, "cards", nominal28, 4096)
    assert found is not None
    print(f"search    {1000 * seconds(lambda: smallest(page, 'cards', nominal28, 4096)):.1f} ms for the cheapest page")
    with tempfile.TemporaryDirectory() as folder:
        first = seconds(lambda: kept(found, Path(folder)))
        again = median(seconds(lambda: kept(found, Path(folder))) for _ in range(20))
    print(f"kept      {1000 * first:.1f} ms to draw and keep, {1000 * again:.2f} ms to read again")
    print(f"target    at most 2 times the bare draw: {'met' if worst <= 2 else 'missed'} ({worst:.2f})")
    return 0 if worst <= 2 and again < first / 4 else 1


if __name__ == "__main__":
    sys.exit(main())
