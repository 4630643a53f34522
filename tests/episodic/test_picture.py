"""Hostile and odd pictures at the door."""

from __future__ import annotations

import gzip
import io
import socket
import struct
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from memharness.episodic import EpisodicMemory
from memharness.episodic.picture import MOST_BYTES, MOST_PIXELS, look
from memharness.types import DataError
from tests.episodic.pictures import chunk, encoded, noise, plain, png_bomb, shown


def refused(memory: EpisodicMemory, data: bytes, told: str) -> None:
    """Nothing is kept of it."""
    with pytest.raises(DataError, match=told) as error:
        memory.add(data, session="s", id="the picture")
    assert str(error.value).startswith("asset the picture: ")
    assert memory.assets() == [] and memory.check() == []
    assert not [path for path in memory.folder.rglob("*.*") if path.suffix[:7] != ".sqlite"]


def thumbnail(memory: EpisodicMemory, data: bytes) -> Image.Image:
    """What a picture looks like once it is kept; the original stays as it was."""
    asset = memory.add(data, session="s")
    assert memory.original(asset) == data
    made = shown(memory.thumbnail(asset))
    assert (made.format, made.mode) == ("WEBP", "RGB")
    return made


def near(picture: Image.Image, place: tuple[int, int], colour: tuple[int, int, int], within: int = 12) -> bool:
    """Whether a pixel is of about this colour."""
    return int(np.abs(np.array(picture.getpixel(place)) - colour).max()) <= within


KINDS = ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "AVIF"]


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_taken(memory: EpisodicMemory, kind: str) -> None:
    data = plain((200, 30, 40), (30, 20), kind)
    asset = memory.add(data, session="s")
    assert asset.mime == f"image/{kind.lower()}" and (asset.width, asset.height) == (30, 20)
    assert near(shown(memory.thumbnail(asset)), (5, 5), (200, 30, 40))
    assert memory.check() == []


@pytest.mark.parametrize(("width", "height"), [(50_000, 50_000), (8193, 8192), (2**31 - 1, 1), (1, 2**31 - 1)])
def test_a_bomb_is_refused_by_its_header_before_it_is_decoded(memory: EpisodicMemory, width: int, height: int) -> None:
    tracemalloc.start()
    try:
        refused(memory, png_bomb(width, height), r"pixels, and at most 67,108,864 are taken")
        assert tracemalloc.get_traced_memory()[1] < 10 << 20
    finally:
        tracemalloc.stop()


def test_the_limit_itself_is_not_over_the_limit() -> None:
    assert MOST_PIXELS == 8192 * 8192
    with pytest.raises(DataError, match="damaged or cut short"):  # its rows end early; its size is not what is wrong
        look(png_bomb(8192, 8192), 64, "picture")


@pytest.mark.parametrize(("side", "told"), [(9_000, "has 9,000 × 9,000 pixels"), (20_000, "has too many pixels")])
@pytest.mark.parametrize("kind", ["GIF", "TIFF", "BMP"])
def test_other_kinds_of_bombs(memory: EpisodicMemory, kind: str, side: int, told: str) -> None:
    data = bytearray(plain("red", (4, 4), kind))
    if kind == "GIF":  # the screen's size
        data[6:10] = side.to_bytes(2, "little") * 2
    elif kind == "BMP":
        data[18:26] = side.to_bytes(4, "little") * 2
    else:  # tags 256 and 257 of the directory
        start = int.from_bytes(data[4:8], "little")
        for entry in range(int.from_bytes(data[start : start + 2], "little")):
            at = start + 2 + 12 * entry
            if int.from_bytes(data[at : at + 2], "little") in (256, 257):
                data[at + 2 : at + 12] = struct.pack("<HII", 4, 1, side)
    refused(memory, bytes(data), told)


@pytest.mark.parametrize("lossless", [False, True])
def test_a_webp_bomb(memory: EpisodicMemory, lossless: bool) -> None:
    side = 16_382  # one less is what is written
    if lossless:
        data = bytearray(encoded(Image.new("RGB", (40, 40)), "WEBP", lossless=True))
        at = data.index(b"VP8L") + 9
        flags = int.from_bytes(data[at : at + 4], "little") >> 28 << 28
        data[at : at + 4] = (flags | side << 14 | side).to_bytes(4, "little")
    else:
        frames = [Image.new("RGBA", (40, 40), (250, 0, 0, alpha)) for alpha in (80, 90)]
        data = bytearray(encoded(frames[0], "WEBP", save_all=True, append_images=frames[1:]))
        at = data.index(b"VP8X") + 12
        data[at : at + 6] = side.to_bytes(3, "little") * 2
    refused(memory, bytes(data), "has too many pixels")


@pytest.mark.parametrize("name", [b"zTXt", b"iCCP"])
def test_what_comes_before_the_pixels_may_not_explode_either(memory: EpisodicMemory, name: bytes) -> None:
    data = plain()
    at = data.index(b"IDAT") - 4
    inside = chunk(name, b"k\0\0" + zlib.compress(bytes(100_000_000), 1))
    refused(memory, data[:at] + inside + data[at:], "damaged or cut short .*too large")


def test_a_file_that_is_too_large_is_not_looked_at(memory: EpisodicMemory) -> None:
    class Long(bytes):
        def __len__(self) -> int:
            return MOST_BYTES + 1

    refused(memory, Long(plain()), "has 268,435,457 bytes, and at most 268,435,456 are taken")


SVG = '<svg xmlns="http://www.w3.org/2000/svg"><image href="http://127.0.0.1:{port}/secret.png"/></svg>'
STARTS = [
    "",
    '<?xml version="1.0"?>\n',
    "\ufeff  \n",
    '<!-- a drawing -->\n<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://127.0.0.1:{port}/svg11.dtd">\n',
]


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("coding", ["utf-8", "utf-16"])
def test_an_svg_is_refused_and_nothing_it_names_is_fetched(memory: EpisodicMemory, start: str, coding: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)
        port = str(server.getsockname()[1])
        refused(
            memory,
            (start + SVG).replace("{port}", port).encode(coding),
            "is an SVG, .* none is fetched: send it as PNG",
        )
        with pytest.raises(TimeoutError):
            server.accept()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 100,
        b"just words",
        gzip.compress(SVG.encode()),
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\nshowpage\n",
        b"%PDF-1.7\n",
        b"P6 1 1 255 abc",
        b"<html><body><p>no picture</p></body></html>",
    ],
)
def test_what_is_no_picture_of_a_kind_that_is_taken(memory: EpisodicMemory, data: bytes) -> None:
    refused(memory, data, "is no picture of a kind that is taken; take one of PNG, JPG, WEBP")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_a_picture_that_is_cut_short_is_refused(memory: EpisodicMemory, kind: str, share: float) -> None:
    data = noise(kind=kind)
    refused(memory, data[: int(len(data) * share)], "damaged or cut short|no picture of a kind")


def test_a_large_jpeg_that_is_cut_short_is_refused(memory: EpisodicMemory) -> None:
    data = noise((600, 400), "JPEG")  # so large that it is decoded small
    refused(memory, data[: len(data) - 2000], "damaged or cut short")


def test_cmyk(memory: EpisodicMemory) -> None:
    picture = Image.new("CMYK", (40, 40), (0, 255, 255, 0))
    assert near(thumbnail(memory, encoded(picture, "JPEG", quality=95)), (20, 20), (255, 0, 0))
    assert near(thumbnail(memory, encoded(picture, "TIFF")), (20, 20), (255, 0, 0))


def test_sixteen_bits_are_scaled_and_not_cut_off(memory: EpisodicMemory) -> None:
    ramp = np.linspace(0, 65535, 64 * 64).reshape(64, 64).astype(np.uint16)
    for kind in ("PNG", "TIFF"):
        made = thumbnail(memory, encoded(Image.fromarray(ramp), kind))
        assert near(made, (0, 0), (0, 0, 0)) and near(made, (63, 63), (255, 255, 255))
        assert near(made, (32, 32), (128, 128, 128))


def test_floats_and_wide_integers(memory: EpisodicMemory) -> None:
    ramp = np.linspace(-3, 5, 64 * 64, dtype=np.float32).reshape(64, 64)
    ramp[0, 1] = np.nan
    made = thumbnail(memory, encoded(Image.fromarray(ramp), "TIFF"))
    assert near(made, (0, 0), (0, 0, 0), 40) and near(made, (63, 63), (255, 255, 255))
    level = thumbnail(memory, encoded(Image.fromarray(np.full((8, 8), 7.5, np.float32)), "TIFF"))
    assert near(level, (4, 4), (0, 0, 0))
    wide = np.full((8, 8), 65535 // 2, np.int32)
    assert near(thumbnail(memory, encoded(Image.fromarray(wide), "TIFF")), (4, 4), (127, 127, 127))


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "TIFF"])
def test_of_an_animation_the_first_frame_is_shown_and_all_is_kept(memory: EpisodicMemory, kind: str) -> None:
    frames = [Image.new("RGB", (40, 30), colour) for colour in ((250, 0, 0), (0, 0, 250))]
    data = encoded(frames[0], kind, save_all=True, append_images=frames[1:], duration=100)
    assert shown(data).n_frames == 2
    assert near(thumbnail(memory, data), (20, 15), (250, 0, 0))


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_a_turned_picture_is_measured_and_shown_as_its_exif_says(
    memory: EpisodicMemory, orientation: int, kind: str
) -> None:
    pixels = np.zeros((20, 60, 3), np.uint8)
    pixels[:10, :30] = (250, 0, 0)  # the first row and column of what is stored are red
    exif = Image.Exif()
    exif[0x0112] = orientation
    asset = memory.add(encoded(Image.fromarray(pixels), kind, exif=exif, quality=95), session="s")
    turned = orientation >= 5
    assert (asset.width, asset.height) == ((20, 60) if turned else (60, 20))
    made = shown(memory.thumbnail(asset))
    assert made.size == (asset.width, asset.height)
    bottom, right = orientation in (3, 4, 7, 8), orientation in (2, 3, 6, 7)
    corner = (made.width - 4 if right else 3, made.height - 4 if bottom else 3)
    assert near(made, corner, (250, 0, 0), 40)
    assert near(made, (made.width - 1 - corner[0], made.height - 1 - corner[1]), (0, 0, 0), 40)


WHITE = {"1": 1, "L": 255, "LA": (0, 0), "RGBA": (9, 9, 9, 0), "I;16": 65535, "LAB": (255, 128, 128), "CMYK": (0,) * 4}


@pytest.mark.parametrize("mode", WHITE)
def test_every_mode_becomes_rgb_on_white(memory: EpisodicMemory, mode: str) -> None:
    picture = Image.new(mode, (20, 20), WHITE[mode])
    made = thumbnail(memory, encoded(picture, "TIFF" if mode in ("LAB", "CMYK") else "PNG"))
    assert near(made, (10, 10), (255, 255, 255))


def test_a_palette_with_a_clear_colour(memory: EpisodicMemory) -> None:
    picture = Image.new("P", (20, 20), 0)
    picture.putpalette([0, 0, 0, 250, 0, 0])
    picture.paste(1, (10, 0, 20, 20))
    made = thumbnail(memory, encoded(picture, "GIF", transparency=0))
    assert near(made, (3, 10), (255, 255, 255), 40) and near(made, (17, 10), (250, 0, 0), 40)


def test_nothing_is_enlarged_and_slivers_stay(memory: EpisodicMemory) -> None:
    assert thumbnail(memory, plain("red", (3, 2))).size == (3, 2)
    assert thumbnail(memory, plain("red", (5000, 1))).size == (64, 1)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF"]), st.data())
def test_damage_anywhere_is_refused_or_taken_and_never_a_crash(kind: str, data: st.DataObject) -> None:
    picture = bytearray(noise((12, 9), kind))
    for _ in range(data.draw(st.integers(1, 6))):
        picture[data.draw(st.integers(0, len(picture) - 1))] = data.draw(st.integers(0, 255))
    try:
        seen = look(bytes(picture), 32, "picture")
    except DataError as error:
        assert str(error).startswith("picture: ")
    else:
        assert shown(seen.thumbnail).size <= (32, 32)


def test_real_pictures(memory: EpisodicMemory, shared: Path) -> None:
    found = sorted(p for p in (shared / "data").rglob("*") if p.suffix.lower() in (".jpg", ".png", ".jpeg"))[:12]
    if not found:
        pytest.skip("no pictures in the shared data")
    for path in found:
        asset = memory.add(path.read_bytes(), session="s", source=str(path))
        with Image.open(io.BytesIO(memory.original(asset))) as picture:
            assert {asset.width, asset.height} == set(picture.size)
    assert memory.check() == []
