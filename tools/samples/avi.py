"""Writes a Motion-JPEG AVI file: a container that everything plays and that is small enough to write by hand."""

from __future__ import annotations

import struct
from collections.abc import Sequence


def chunk(name: bytes, body: bytes) -> bytes:
    """Return one RIFF chunk, padded to an even length."""
    return name + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)


def listing(name: bytes, *chunks: bytes) -> bytes:
    """Return a RIFF list of chunks."""
    return chunk(b"LIST", name + b"".join(chunks))


def motion_jpeg(frames: Sequence[bytes], width: int, height: int, rate: int, made: str) -> bytes:
    """Return an AVI file.

    Args:
        frames: the pictures in order, each a baseline JPEG file of `width` by `height` pixels.
        width: pixels.
        height: pixels.
        rate: frames a second.
        made: when it was filmed, for the file's ICRD field.
    """
    largest = max(map(len, frames))
    main = struct.pack(
        "<14I", 1_000_000 // rate, largest * rate, 0, 0x10, len(frames), 0, 1, largest, width, height, 0, 0, 0, 0
    )
    stream = struct.pack("<4s4sIHHIIIIIIiI4H", b"vids", b"MJPG", 0, 0, 0, 0, 1, rate, 0, len(frames), largest, -1, 0,
                         0, 0, width, height)  # fmt: skip
    layout = struct.pack("<IiiHH4sIiiII", 40, width, height, 1, 24, b"MJPG", width * height * 3, 0, 0, 0, 0)
    header = listing(b"hdrl", chunk(b"avih", main), listing(b"strl", chunk(b"strh", stream), chunk(b"strf", layout)))
    info = listing(b"INFO", chunk(b"ICRD", made.encode("ascii") + b"\0"), chunk(b"ISFT", b"memharness samples\0"))
    index, offset = [], 4
    for frame in frames:
        index.append(struct.pack("<4sIII", b"00dc", 0x10, offset, len(frame)))
        offset += 8 + len(frame) + len(frame) % 2
    movie = listing(b"movi", *(chunk(b"00dc", frame) for frame in frames))
    return chunk(b"RIFF", b"AVI " + header + info + movie + chunk(b"idx1", b"".join(index)))
