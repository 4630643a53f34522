"""Small pictures as files."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
from PIL import Image


def encoded(picture: Image.Image, kind: str = "PNG", **more: Any) -> bytes:
    """A picture as a file's bytes."""
    file = io.BytesIO()
    picture.save(file, kind, **more)
    return file.getvalue()


def plain(colour: str | tuple[int, ...] = "red", size: tuple[int, int] = (24, 16), kind: str = "PNG") -> bytes:
    """One colour."""
    return encoded(Image.new("RGB", size, colour), kind)


def numbered(number: int) -> bytes:
    """A picture unlike that of any other number below 2**24."""
    return plain((number & 255, number >> 8 & 255, number >> 16), (8, 6))


def noise(size: tuple[int, int] = (64, 48), kind: str = "PNG", **more: Any) -> bytes:
    """Many colours, so that cutting the file short cuts pixels off; the same ones each time."""
    pixels = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), np.uint8)
    return encoded(Image.fromarray(pixels), kind, **more)


def shown(data: bytes) -> Image.Image:
    """A file's picture."""
    return Image.open(io.BytesIO(data))


def chunk(name: bytes, data: bytes) -> bytes:
    """A PNG chunk."""
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png_bomb(width: int, height: int) -> bytes:
    """A few bytes that say they are a picture of any size."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = zlib.compress(b"\0" * 1000)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
