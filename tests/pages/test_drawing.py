"""Drawn pages: the same bytes everywhere, ink where the layout says, legible in grey, kept by content."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from memharness.media import MediaStore
from memharness.pages import (
    TEMPLATES,
    Layout,
    Page,
    Style,
    Template,
    downscaled,
    draw,
    drawing,
    kept,
    lay_out,
    stacked,
)
from memharness.types import UserError
from tests.pages.sample import BLOCKS

SCRIPT = """
from memharness.pages import TEMPLATES, draw, lay_out
from tests.pages.sample import BLOCKS
for template in TEMPLATES:
    print(draw(lay_out(BLOCKS, template, 500, 9999)).sha256)
"""


def laid(template: Template = "cards", width: int = 500, style: Style | None = None) -> Layout:
    """A page that fits."""
    layout = lay_out(BLOCKS, template, width, 9999, style)
    assert layout is not None
    return layout


def pixels(page: Page) -> NDArray[np.uint8]:
    """Height × width × 3."""
    return np.asarray(Image.open(io.BytesIO(page.png)))


def chunks(png: bytes) -> Iterator[bytes]:
    """Names of a PNG's chunks."""
    at = 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        yield png[at + 4 : at + 8]
        at += 12 + length


def test_another_process_draws_the_same_bytes() -> None:
    here = [draw(laid(template)).sha256 for template in TEMPLATES]
    root = Path(__file__).parents[2]
    there = subprocess.run([sys.executable, "-c", SCRIPT], cwd=root, capture_output=True, text=True, check=True)
    assert there.stdout.split() == here
    assert len(set(here)) == len(TEMPLATES)


def test_the_picture_is_rgb_of_the_layouts_size_without_metadata() -> None:
    page = draw(laid())
    assert pixels(page).shape == (page.height, page.width, 3) == (page.layout.height, page.layout.width, 3)  # type: ignore[union-attr]
    assert set(chunks(page.png)) == {b"IHDR", b"IDAT", b"IEND"}


@pytest.mark.parametrize("template", TEMPLATES)
def test_ink_stays_in_the_boxes_of_lines_and_shapes(template: Template) -> None:
    layout = laid(template, 500)
    bare = pixels(draw(replace(layout, shapes=(), style=replace(layout.style, key=""))))
    ink = (bare < 200).any(axis=2)
    allowed = np.zeros(ink.shape, bool)
    for line in layout.lines:
        left, right = int(line.x) - 1, int(line.x + line.width) + 2  # an edge may be smoothed into the next pixel
        allowed[line.y : line.y + line.height, left:right] = True
        assert ink[line.y : line.y + line.height, left:right].any(), line.text
    assert not (ink & ~allowed).any()


def test_key_spans_stand_out_without_colour() -> None:
    layout = laid("plain")
    grey = np.asarray(Image.open(io.BytesIO(draw(layout).png)).convert("L"))
    for line in layout.lines:
        for run in line.runs:
            corner = grey[line.y + 2, round(run.x) + 1]
            assert (corner < 235) == run.key
            assert corner > 190, "words on it stay legible"


def test_colours_by_kind() -> None:
    style = Style(inks=(("place", "#ff0000"),), labels=False)
    layout = laid("plain", 500, style)
    colours = {line.block: line.runs[0].colour for line in layout.lines if line.role == "text"}
    assert colours["b1"] == "#ff0000"
    assert colours["b2"] == "#000000"
    assert next(line.text for line in layout.lines if line.role == "title") == "Cape Arrow"


def test_a_kept_page_is_read_the_second_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = kept(laid(), tmp_path)
    monkeypatch.setattr(drawing, "draw", lambda layout: pytest.fail("drawn again"))
    again = kept(laid(), tmp_path)
    assert again == first
    monkeypatch.undo()
    assert first == draw(laid())


def test_another_page_is_another_entry(tmp_path: Path) -> None:
    layouts = [laid(), laid("plain"), laid(width=501), laid(style=Style(font_px=15)), laid(style=Style(ink="#000001"))]
    for layout in layouts:
        kept(layout, tmp_path)
    assert len(list(tmp_path.iterdir())) == len(layouts)


def test_a_kept_page_that_is_cut_short_is_drawn_again(tmp_path: Path) -> None:
    whole = kept(laid(), tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_bytes(whole.png[:-9])
    assert kept(laid(), tmp_path) == whole
    assert file.read_bytes() == whole.png


def test_by_default_pages_are_kept_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path))
    kept(laid())
    assert [file.suffix for file in (tmp_path / "pages").iterdir()] == [".png"]


def test_a_folder_that_cannot_be_written_is_the_users_mistake(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match="file"):
        kept(laid(), tmp_path / "file")


def test_the_record_finds_the_page_by_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path))
    page = draw(laid())
    store = MediaStore()
    image = store.keep(page.png, "page", "readout")
    assert (image.sha256, image.width, image.height, image.mime) == (page.sha256, page.width, page.height, "image/png")
    assert store.path(image).read_bytes() == page.png


def test_shrinking() -> None:
    page = draw(laid())
    half = downscaled(page, factor=2)
    assert (half.width, half.height) == (250, round(page.height / 2))
    assert half.layout is page.layout
    assert downscaled(page, size=(250, half.height)) == half
    assert downscaled(page, factor=1) is page
    assert (downscaled(page, factor=1e9).width, downscaled(page, factor=1e9).height) == (1, 1)
    for wrong in ({}, {"factor": 2.0, "size": (1, 1)}, {"factor": 0.5}, {"size": (0, 5)}, {"size": (501, 5)}):
        with pytest.raises(ValueError, match=r"give a factor or a size|cannot be shrunk"):
            downscaled(page, **wrong)  # type: ignore[arg-type]


def test_stacking() -> None:
    one, other = draw(laid(width=300)), draw(laid(width=500))
    stack = stacked([one, other])
    assert (stack.width, stack.height, stack.layout) == (500, one.height + other.height, None)
    assert np.array_equal(pixels(stack)[: one.height, :300], pixels(one))
    assert np.array_equal(pixels(stack)[one.height :], pixels(other))
    with pytest.raises(ValueError, match="at least one"):
        stacked([])
