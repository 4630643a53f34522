"""Published data files, read so that every fault is named: file, record, field, what is wrong and what to do."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memharness.types import DataError

REMEDY = "fetch the file again or correct it"
_KINDS = {str: "text", list: "a list", dict: "a mapping", int: "a whole number", bool: "true or false"}
_REQUIRED: Any = object()


@dataclass(frozen=True, slots=True)
class Row:
    """A mapping from a data file that knows where it stands (`file: record`).

    A field that is null counts as missing; every reader of a field takes a default for fields that may be missing.
    """

    values: Mapping[str, Any]
    where: str

    def error(self, field: str, problem: str, remedy: str = REMEDY) -> DataError:
        """The error to raise about a field."""
        return DataError(f"{self.where}: {field}: {problem}; {remedy}")

    def has(self, field: str) -> bool:
        """Whether the field is there and not null."""
        return self.values.get(field) is not None

    def text(self, field: str, default: str = _REQUIRED) -> str:
        """A text field.

        Raises:
            DataError: if it is no text, or is required and missing or blank.
        """
        value = self._typed(field, str, default)
        if default is _REQUIRED and not value.strip():
            raise self.error(field, "is empty")
        return str(value)

    def texts(self, field: str, default: Sequence[str] = _REQUIRED) -> tuple[str, ...]:
        """A list of texts."""
        value = self._typed(field, list, default)
        for place, one in enumerate(value):
            if not isinstance(one, str):
                raise self.error(f"{field}[{place}]", f"must be text, not {kind(one)}")
        return tuple(value)

    def whole(self, field: str) -> int:
        """A whole number."""
        return int(self._typed(field, int, _REQUIRED))

    def number(self, field: str, default: float) -> float:
        """A number."""
        value = self.values.get(field)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(field, f"must be a number, not {kind(value)}")
        return float(value)

    def row(self, field: str) -> Row:
        """A mapping field."""
        return Row(self._typed(field, dict, _REQUIRED), f"{self.where}: {field}")

    def rows(self, field: str, name: str = "") -> list[Row]:
        """A list of mappings, each known by its `name` field where it has one, else by its place."""
        return as_rows(self._typed(field, list, _REQUIRED), self.where, name or field)

    def _typed(self, field: str, wanted: type, default: Any) -> Any:
        value = self.values.get(field)
        if value is None:
            if default is _REQUIRED:
                raise self.error(field, "is missing")
            return default
        if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
            raise self.error(field, f"must be {_KINDS[wanted]}, not {kind(value)}")
        return value


def kind(value: object) -> str:
    """What a JSON value is, in words."""
    return _KINDS.get(type(value), "nothing" if value is None else "a number")


def as_rows(values: object, where: str, name: str = "record") -> list[Row]:
    """A list of mappings as rows that know their place.

    Raises:
        DataError: if `values` is no list, or one of them no mapping.
    """
    if not isinstance(values, list):
        raise DataError(f"{where}: must hold a list of records, not {kind(values)}; {REMEDY}")
    rows = []
    for place, value in enumerate(values):
        here = f"{where}: {name} {place}"
        if not isinstance(value, dict):
            raise DataError(f"{here}: must be a mapping, not {kind(value)}; {REMEDY}")
        rows.append(Row(value, here))
    return rows


def read_json(path: Path) -> Any:
    """A JSON file's value.

    Raises:
        DataError: if there is no such file, or it is not UTF-8, not JSON (with the line), or a Git LFS pointer.
    """
    text = _read_text(path)
    try:
        return json.loads(text, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise DataError(f"{path}: line {error.lineno} column {error.colno}: not JSON ({error.msg}); {REMEDY}") from None
    except ValueError as error:  # NaN, or a number with thousands of digits
        raise DataError(f"{path}: not JSON that can be read ({error}); {REMEDY}") from None
    except RecursionError:
        raise DataError(f"{path}: not JSON that can be read (nested too deep); {REMEDY}") from None


def _no_number(name: str) -> None:
    """Refuse the constants that Python's reader takes and JSON does not have."""
    raise ValueError(f"{name} is no JSON value")


def read_lines(path: Path) -> list[Row]:
    """A JSON-lines file's records; blank lines are passed over.

    Raises:
        DataError: as `read_json`, with the line.
    """
    rows = []
    for number, line in enumerate(_read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line, parse_constant=_no_number)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}: line {number}: not JSON ({error}); {REMEDY}") from None
        if not isinstance(value, dict):
            raise DataError(f"{path}: line {number}: must be a mapping, not {kind(value)}; {REMEDY}")
        rows.append(Row(value, f"{path}: line {number}"))
    return rows


def read_records(path: Path, *, inside: str = "") -> list[Row]:
    """The records of a JSON, JSON-lines or parquet file.

    Args:
        path: the file; its suffix says which.
        inside: the key under which a JSON mapping may hold the list.

    Raises:
        DataError: as `read_json`, or if a parquet file cannot be read.
    """
    if path.suffix == ".jsonl":
        return read_lines(path)
    if path.suffix == ".parquet":
        return as_rows(_read_parquet(path), str(path))
    value = read_json(path)
    if inside and isinstance(value, dict) and inside in value:
        value = value[inside]
    return as_rows(value, str(path))


def stream_parquet(path: Path, batch: int = 16) -> Iterator[Row]:
    """A parquet file's records, one after another, bytes inside structs included, in the memory of one row group.

    Args:
        path: the file.
        batch: records that are Python objects at once.

    Raises:
        DataError: if there is no such file, or it cannot be read as parquet: at once, or from the record on where it
            breaks.
    """
    import pyarrow
    import pyarrow.parquet

    number = 0
    try:
        with pyarrow.parquet.ParquetFile(existing(path), buffer_size=1 << 20, pre_buffer=False) as file:
            for records in file.iter_batches(batch_size=batch):
                for values in records.to_pylist():
                    yield Row(values, f"{path}: record {number}")
                    number += 1
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{path}: from record {number} on: cannot be read as parquet ({error}); {REMEDY}") from None


class Ids:
    """The ids met so far, for records that are read one by one: of each, only where it stands is kept."""

    def __init__(self) -> None:
        """None yet."""
        self._first: dict[str, str] = {}

    def add(self, name: str, row: Row, field: str) -> None:
        """Take the id of a record.

        Raises:
            DataError: if a record before has it, naming this record, the id and that record.
        """
        if name in self._first:
            raise row.error(field, f"{name!r} is already the id of {self._first[name]}", "give each record its own id")
        self._first[name] = row.where


def refuse_repeats(ids: Iterable[tuple[str, Row]], field: str) -> None:
    """Refuse an id that two records share.

    Raises:
        DataError: as `Ids.add`.
    """
    met = Ids()
    for name, row in ids:
        met.add(name, row, field)


def files_in(folder: Path, *suffixes: str) -> Iterator[Path]:
    """The folder's own files with these suffixes, by name.

    Raises:
        DataError: if the folder cannot be read.
    """
    try:
        found = sorted(folder.iterdir())
    except OSError as error:
        raise DataError(f"{folder}: cannot be read ({error.strerror}); {REMEDY}") from None
    return (path for path in found if path.is_file() and path.suffix in suffixes)


def existing(path: Path) -> Path:
    """The path, if there is a file.

    Raises:
        DataError: if there is none.
    """
    if not path.is_file():
        found = "a folder, not a file" if path.is_dir() else "no such file"
        raise DataError(f"{path}: {found}; name the file or folder as it was published")
    return path


def _read_text(path: Path) -> str:
    try:
        text = existing(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: byte {error.start}: not UTF-8; {REMEDY}") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); {REMEDY}") from None
    if text.startswith("version https://git-lfs"):
        raise DataError(f"{path}: only a Git LFS pointer, not the file; run `git lfs pull` where it came from")
    return text


def _read_parquet(path: Path) -> list[dict[str, Any]]:
    import pyarrow
    import pyarrow.parquet

    try:
        records: list[dict[str, Any]] = pyarrow.parquet.read_table(existing(path)).to_pylist()
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{path}: cannot be read as parquet ({error}); {REMEDY}") from None
    return records
