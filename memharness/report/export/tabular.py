"""The tables of a run as files: Parquet, CSV, one JSON document, or a folder that Hugging Face `datasets` loads."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from memharness.report.export.rows import TABLES, Column, Values, table
from memharness.report.tables import SAMPLE_WARNING, number
from memharness.run.folder import RunFolder
from memharness.run.pictures import Picture
from memharness.run.summary import Summary
from memharness.store import encode

if TYPE_CHECKING:
    import pandas

BATCH = 1_000  # rows held at once
MEDIA = (
    Column("sha256", "string", "digest of the file's bytes, as the questions name it"),
    Column("mime", "string", "media type"),
    Column("width", "int64", "pixels"),
    Column("height", "int64", "pixels"),
)


def frames(run: Path) -> dict[str, pandas.DataFrame]:
    """The tables of a run as data frames, with Arrow's types.

    Raises:
        UserError: if the folder is no run.
    """
    import pandas
    import pyarrow

    folder = RunFolder(run)
    out = {}
    for name, columns in TABLES.items():
        made = pyarrow.Table.from_pylist([_whole(row) for row in table(folder, name)], _schema(columns))
        out[name] = made.to_pandas(types_mapper=pandas.ArrowDtype)
    return out


def write_parquet(folder: RunFolder, out: Path, summary: Summary, media: Mapping[str, Picture]) -> None:
    """`questions.parquet`, `scores.parquet`, `tokens.parquet`, `README.md`, and the pictures."""
    _tables(folder, out)
    (out / "README.md").write_text(_readme(summary, media), "utf-8")
    _copy(media, out)


def write_csv(folder: RunFolder, out: Path, summary: Summary, media: Mapping[str, Picture]) -> None:
    """The same as CSV; a list stands as JSON, nothing as an empty cell."""
    for name, columns in TABLES.items():
        with (out / f"{name}.csv").open("w", encoding="utf-8", newline="", errors="backslashreplace") as file:
            writer = csv.writer(file)
            writer.writerow([column.name for column in columns])
            for row in table(folder, name):
                writer.writerow([_cell(row[column.name]) for column in columns])
    (out / "README.md").write_text(_readme(summary, media), "utf-8")
    _copy(media, out)


def write_json(folder: RunFolder, file: IO[str], summary: Summary) -> None:
    """One document: the summary, what the columns hold, and a list of rows for each table, a row a line."""
    columns = {name: {one.name: one.words for one in of} for name, of in TABLES.items()}
    file.write(f'{{"format": 1,\n"summary": {encode(summary)},\n"columns": {encode(columns)}')
    for name in TABLES:
        file.write(f',\n"{name}": [')
        for place, row in enumerate(table(folder, name)):
            file.write(f"{',' if place else ''}\n{encode(row)}")
        file.write("\n]")
    file.write("\n}\n")


def write_hf(folder: RunFolder, out: Path, summary: Summary, media: Mapping[str, Picture]) -> None:
    """Parquet files and a dataset card: `load_dataset(FOLDER, "questions")`; pictures are the table `media`."""
    _tables(folder, out)
    names = [*TABLES]
    if media:
        _write_media(out / "media.parquet", media)
        names.append("media")
    (out / "README.md").write_text(_card(summary, names) + _readme(summary, media), "utf-8")


def _tables(folder: RunFolder, out: Path) -> None:
    from pyarrow import RecordBatch
    from pyarrow.parquet import ParquetWriter

    for name, columns in TABLES.items():
        schema = _schema(columns)
        with ParquetWriter(out / f"{name}.parquet", schema) as writer:
            for batch in _batches(table(folder, name)):
                writer.write_batch(RecordBatch.from_pylist([_whole(row) for row in batch], schema))


def _schema(columns: Sequence[Column]) -> Any:
    """An Arrow schema whose fields say what they hold."""
    import pyarrow

    types = {
        "string": pyarrow.string(), "int64": pyarrow.int64(), "double": pyarrow.float64(), "bool": pyarrow.bool_(),
        "list<string>": pyarrow.list_(pyarrow.string()), "list<double>": pyarrow.list_(pyarrow.float64()),
    }  # fmt: skip
    return pyarrow.schema(
        [pyarrow.field(one.name, types[one.type], metadata={"description": one.words}) for one in columns]
    )


def _batches(rows: Iterator[Values]) -> Iterator[list[Values]]:
    while batch := list(islice(rows, BATCH)):
        yield batch


def _whole(row: Values) -> Values:
    """A row whose texts UTF-8 can hold: half a surrogate pair, which JSON may escape, becomes its escape."""

    def held(value: Any) -> Any:
        if isinstance(value, list):
            return [held(one) for one in value]
        return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value

    return {name: held(value) for name, value in row.items()}


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return encode(value) if isinstance(value, list) else value


def _write_media(path: Path, media: Mapping[str, Picture]) -> None:
    """Pictures as `datasets` keeps them: bytes and a name, with the feature named in the file's metadata."""
    import pyarrow
    from pyarrow.parquet import ParquetWriter

    features: dict[str, Any] = {one.name: {"dtype": one.type, "_type": "Value"} for one in MEDIA}
    features["image"] = {"_type": "Image"}
    image = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    schema = _schema(MEDIA).append(pyarrow.field("image", image))
    schema = schema.with_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    with ParquetWriter(path, schema) as writer:
        for picture in media.values():
            shown = picture.image
            row: Values = {"sha256": shown.sha256, "mime": shown.mime, "width": shown.width, "height": shown.height}
            row["image"] = {"bytes": picture.path.read_bytes(), "path": picture.name}
            writer.write_batch(pyarrow.RecordBatch.from_pylist([row], schema))


def _copy(media: Mapping[str, Picture], out: Path) -> None:
    if media:
        (out / "media").mkdir()
    for picture in media.values():
        shutil.copyfile(picture.path, out / "media" / picture.name)


def _card(summary: Summary, names: Iterable[str]) -> str:
    """The head of a dataset card: which file each table is."""
    lines = ["---", f"pretty_name: {json.dumps(_title(summary), ensure_ascii=False)}", "tags:", "- memharness"]
    lines.append("configs:")
    for name in names:
        lines += [f"- config_name: {name}", "  data_files:", "  - split: test", f"    path: {name}.parquet"]
        lines += ["  default: true"] if name == "questions" else []
    return "\n".join([*lines, "---", "", ""])


def _title(summary: Summary) -> str:
    return f"{summary['method']} on {summary['bench']}, read by {summary['reader']}"


def _readme(summary: Summary, media: Mapping[str, Picture]) -> str:
    """What the run was, its figures, and what every column holds."""
    lines = [f"# {_title(summary)}", "", f"Run `{summary['identity']}`, {summary['n']:,} questions."]
    if summary["data_state"] == "sample":
        lines += ["", f"**{SAMPLE_WARNING}.**"]
    lines += ["", "| score | mean | n |", "| --- | ---: | ---: |"]
    lines += [f"| {name} | {number(one['value'])} | {one['n']:,} |" for name, one in summary["scores"].items()]
    for name, columns in TABLES.items():
        lines += ["", f"## {name}", "", "| column | type | what it holds |", "| --- | --- | --- |"]
        lines += [f"| {one.name} | {one.type} | {one.words} |" for one in columns]
    if media:
        lines += ["", "## media", "", f"{len(media):,} pictures of questions and recalled evidence, by SHA-256."]
    return "\n".join([*lines, ""])
