"""Parquet files read record by record: structs with bytes, bounded memory, and files that are none."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from memharness.datafile import read_records, stream_parquet
from memharness.types import DataError


def write(path: Path, rows: list[dict[str, Any]], group: int = 4) -> Path:
    """A parquet file of row groups of `group` records."""
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path, row_group_size=group)
    return path


def pictured(number: int, size: int = 10) -> dict[str, Any]:
    """A record with a struct and a list of structs, as image columns are published."""
    one = {"bytes": os.urandom(size), "path": f"{number}.jpg"}
    return {"idx": number, "image": one, "image_list": [one, {"bytes": b"x", "path": None}], "none": None}


def test_records_come_in_order_and_whole(tmp_path: Path) -> None:
    rows = [pictured(number) for number in range(11)]
    path = write(tmp_path / "a.parquet", rows)
    for batch in (1, 3, 100):
        found = list(stream_parquet(path, batch))
        assert [row.values for row in found] == rows
        assert [row.where for row in found] == [f"{path}: record {number}" for number in range(11)]
    assert [row.values for row in read_records(path)] == rows  # the same, read at once
    assert not found[0].has("none") and found[3].row("image").text("path") == "3.jpg"


def test_memory_is_that_of_a_row_group(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", [pictured(number, 100_000) for number in range(200)], group=10)
    before = pyarrow.total_allocated_bytes()
    held = [pyarrow.total_allocated_bytes() - before for _ in stream_parquet(path, 5)]
    assert len(held) == 200
    assert max(held) < 4 * 10 * 200_000 < path.stat().st_size / 4  # bytes stand in two columns of each record


def test_an_abandoned_stream_leaves_nothing_open(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", [pictured(number) for number in range(9)])
    stream = stream_parquet(path)
    assert next(stream).whole("idx") == 0
    stream.close()  # type: ignore[attr-defined]
    assert not [fd for fd in Path("/proc/self/fd").iterdir() if fd.exists() and fd.resolve() == path]


@pytest.mark.parametrize("keep", [0, 3, 0.5, 0.99])
def test_a_truncated_file_is_named(tmp_path: Path, keep: float) -> None:
    path = write(tmp_path / "a.parquet", [pictured(number) for number in range(9)])
    body = path.read_bytes()
    path.write_bytes(body[: int(keep * len(body)) if keep < 1 else int(keep)])
    with pytest.raises(
        DataError, match=r"a\.parquet: from record 0 on: cannot be read as parquet .*; fetch the file again"
    ):
        list(stream_parquet(path, 2))


def test_a_damaged_row_group_is_named_by_its_record(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", [pictured(number, 5_000) for number in range(8)], group=4)
    body = bytearray(path.read_bytes())
    second = pyarrow.parquet.ParquetFile(path).metadata.row_group(1).column(0)
    at = second.dictionary_page_offset or second.data_page_offset
    body[at : at + 40] = b"\xff" * 40
    path.write_bytes(body)
    with pytest.raises(DataError, match=r"from record 4 on: cannot be read as parquet"):
        list(stream_parquet(path, 2))


def test_no_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        list(stream_parquet(tmp_path / "gone.parquet"))
    with pytest.raises(DataError, match="a folder, not a file"):
        list(stream_parquet(tmp_path))
    (tmp_path / "lfs.parquet").write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(DataError, match="cannot be read as parquet"):
        list(stream_parquet(tmp_path / "lfs.parquet"))
