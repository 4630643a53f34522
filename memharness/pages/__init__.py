"""Text to page: blocks laid out by a template, checked for coverage, drawn the same every time.

    blocks = [Block("u1", "Ada Lovelace", "She wrote the first program.", "hotpotqa: Ada Lovelace", spans=((0, 9),))]
    layout = smallest(blocks, "cards", counter.image, most_tokens=96)      # None: no page holds them at that price
    page = kept(layout)                                                    # drawn once, then read from the cache
    image = media.keep(page.png, "page", "readout")

Latin, Greek, Cyrillic, Han in common use, kana and Hangul are covered, and symbols; emoji are drawn by name
(`memharness.pages.wording`). Any other character is an error that names it: `missing(text)` says so beforehand. How
legible pages are, by template, font size and shrinking, is in `legibility.csv` and `legibility.svg` beside this file.
"""

from memharness.pages.block import TEMPLATES, Block, Style, Template
from memharness.pages.drawing import Page, downscaled, draw, kept, page_key, stacked
from memharness.pages.layout import Layout, Line, Run, Shape
from memharness.pages.markup import markdown
from memharness.pages.search import STYLES, lay_out, smallest
from memharness.pages.wording import glyph_name, missing

__all__ = [
    "STYLES",
    "TEMPLATES",
    "Block",
    "Layout",
    "Line",
    "Page",
    "Run",
    "Shape",
    "Style",
    "Template",
    "downscaled",
    "draw",
    "glyph_name",
    "kept",
    "lay_out",
    "markdown",
    "missing",
    "page_key",
    "smallest",
    "stacked",
]
