"""Tables as VLMEvalKit publishes them: tab-separated text whose pictures stand in its cells, read in constant memory.

A cell may hold line breaks in quotes and megabytes of base64. One record is held at a time; of its pictures only the
references into the media store are kept.
"""

from __future__ import annotations

import ast
import base64
import binascii
import codecs
import csv
from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path
from typing import IO

from memharness.datafile import REMEDY, Ids, Row, existing
from memharness.media import MediaStore
from memharness.types import DataError, Image

CELL = 1 << 28
"""Characters that one cell may hold: a quote that is never closed fails here instead of filling the memory."""
REFERENCE = 64
"""An image cell of at most so many characters names the row that holds the picture (VLMEvalKit, image_base.py)."""
ABSENT = frozenset({"", "nan"})
"""How a missing cell is written, in any case. `None` and `NA` are texts here, though pandas drops them."""


def read_tsv(path: Path, columns: Collection[str] = ()) -> Iterator[Row]:
    """The records of a tab-separated file with a header, one at a time; an absent cell is None.

    A byte-order mark is passed over (`marked` tells) and lines may end in CRLF.

    Args:
        path: a UTF-8 file, quoted as `csv` quotes.
        columns: names that the header must hold.

    Raises:
        DataError: for a missing file, one that is not UTF-8, a wrong header, a record with too few or too many cells,
            or one that ends inside a quoted cell.
    """
    with _opened(path) as file:
        lines = _Lines(file, path)
        header = _header(path, _next(lines, "header") or [], columns)
        number, start = 0, lines.number + 1
        while (cells := _next(lines, f"record {number + 1}")) is not None:
            where, start = f"{path}: record {number + 1} (line {start})", lines.number + 1
            if cells == [""]:  # a blank line
                continue
            number += 1
            if len(cells) != len(header):
                raise DataError(
                    f"{where}: has {len(cells)} cells where the header has {len(header)}: cut off, or a tab or a "
                    f"quote that is not quoted; {REMEDY}"
                )
            named = zip(header, cells, strict=True)
            yield Row({name: None if _absent(cell) else cell for name, cell in named}, where)


def read_pictured(
    path: Path, media: MediaStore, columns: Collection[str] = ()
) -> Iterator[tuple[Row, tuple[Image, ...]]]:
    """The records of a VLMEvalKit table, each with its pictures, in constant memory.

    `index` and `image` must be there, and `index` must differ from row to row. An image cell is base64, a list literal
    of base64, or the index of the row, anywhere in the file, that holds the picture. The row's own image cell is
    left out of what is yielded.

    Raises:
        DataError: as `read_tsv`; for a repeated index, a missing or unreadable picture, and an index that no row has
            or whose row holds no picture of its own.
    """
    known: dict[str, tuple[Image, ...]] = {}
    met = Ids()
    for row in read_tsv(path, {"index", "image", *columns}):
        index, cell = row.text("index").strip(), row.text("image").strip()
        row = Row({name: value for name, value in row.values.items() if name != "image"}, row.where)
        met.add(index, row, "index")
        if len(cell) > REFERENCE:
            known[index] = _decoded(cell, index, row, media)
            yield row, known[index]
            continue
        if cell not in known:  # it may stand further down
            known |= _pictures(path, media)
        if cell not in known:
            raise row.error("image", f"points to row {cell!r}, which is not there or holds no picture of its own")
        yield row, known[cell]


def marked(path: Path) -> bool:
    """Whether a file starts with a byte-order mark, as files saved by a spreadsheet do: such may have lost data."""
    with _opened(path) as file:
        return file.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8


def _opened(path: Path) -> IO[bytes]:
    try:
        return existing(path).open("rb")
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); {REMEDY}") from None


class _Lines(Iterator[str]):
    """A file's lines, decoded one by one, so that a byte that is not UTF-8 is found where it stands."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self.file, self.path, self.number = file, path, 0

    def __next__(self) -> str:
        line = next(self.file)
        self.number += 1
        if self.number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
            if line.startswith(b"version https://git-lfs"):
                raise DataError(
                    f"{self.path}: only a Git LFS pointer, not the file; run `git lfs pull` where it came from"
                )
        try:
            return line.decode("utf-8")
        except UnicodeDecodeError as error:
            tabs = line[: error.start].count(b"\t")
            where = f"{self.path}: line {self.number}: byte {error.start + 1}, after {tabs} tabs"
            raise DataError(f"{where}: not UTF-8; {REMEDY}") from None


def _next(lines: _Lines, what: str) -> list[str] | None:
    """The cells of the next record; None at the end.

    A record of one line whose cells hold no quote but those around them, as nearly all do, is cut at its tabs: the
    reader of `csv` looks at each character of a picture.
    """
    line = next(lines, None)
    if line is None:
        return None
    start = lines.number
    cells = line.rstrip("\r\n").split("\t")
    if all(map(_plain, cells)):
        return [cell[1:-1] if cell.startswith('"') else cell for cell in cells]
    csv.field_size_limit(max(csv.field_size_limit(), CELL))
    try:
        return next(csv.reader(chain((line,), lines), delimiter="\t", strict=True))
    except csv.Error as error:
        problem = f"not a tab-separated record ({error})"
        if "unexpected end" in str(error):
            problem = "the file ends inside a quoted cell: it is cut off"
        if "field limit" in str(error):
            problem = f"a cell of more than {CELL} characters: a quote is not closed"
        raise DataError(f"{lines.path}: {what} (line {start}): {problem}; {REMEDY}") from None


def _absent(cell: str) -> bool:
    return len(cell) <= REFERENCE and cell.strip().lower() in ABSENT


def _plain(cell: str) -> bool:
    """Whether a cell holds no quote, or one at each end and none between."""
    quotes = cell.count('"')
    return not quotes or (quotes == 2 and len(cell) > 1 and cell[0] == cell[-1] == '"')


def _header(path: Path, header: list[str], columns: Collection[str]) -> list[str]:
    if not header:
        raise DataError(f"{path}: line 1: no header: the file is empty; {REMEDY}")
    if lost := sorted(set(columns) - set(header)):
        found = ", ".join(repr(name[:40]) for name in header[:20])
        raise DataError(f"{path}: line 1: the header lacks {', '.join(lost)}; it has {found}; is it tab-separated?")
    if twice := sorted({name for name in header if header.count(name) > 1}):
        raise DataError(f"{path}: line 1: the header names {twice[0]!r} twice; {REMEDY}")
    return header


def _pictures(path: Path, media: MediaStore) -> dict[str, tuple[Image, ...]]:
    """The pictures of every row that holds its own, by index."""
    found = {}
    for row in read_tsv(path, ("index", "image")):
        index, cell = row.text("index").strip(), row.text("image").strip()
        if len(cell) > REFERENCE:
            found[index] = _decoded(cell, index, row, media)
    return found


def _decoded(cell: str, index: str, row: Row, media: MediaStore) -> tuple[Image, ...]:
    coded = [cell]
    if cell.startswith("["):
        try:
            coded = ast.literal_eval(cell)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            raise row.error("image", "starts as a list and is none") from None
        if not coded or not all(isinstance(one, str) for one in coded):
            raise row.error("image", "is a list that holds something that is no picture")
    single = len(coded) == 1
    return tuple(
        media.keep(_bytes(one, row), index if single else f"{index}_{place}", f"{row.where}: image")
        for place, one in enumerate(coded, 1)
    )


def _bytes(coded: str, row: Row) -> bytes:
    try:
        return base64.b64decode(coded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise row.error("image", f"is not base64 ({error})") from None
