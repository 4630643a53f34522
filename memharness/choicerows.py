"""Questions with options and pictures as published: files of a subset, pictures in any form, options in any place."""

from __future__ import annotations

import base64
import binascii
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from memharness.datafile import Row, files_in, kind, read_records, stream_parquet
from memharness.media import MediaStore
from memharness.tsv import ABSENT, read_pictured
from memharness.types import Choice, DataError, Image, Text, UserError, did_you_mean

SUFFIXES = (".tsv", ".parquet", ".jsonl", ".json")
"""Of the data files that `pictured_rows` reads."""
_INLINE = re.compile(r"\s*\b(?:Options|Choices):\s*(?=\(?A\s*[:.)])")
_PICTURE_NAME = re.compile(r"[^\0]{1,255}\.(?:jpe?g|png|gif|webp|bmp)", re.IGNORECASE)


def data_files(
    name: str,
    path: Path,
    subset: str | None,
    subsets: Mapping[str, Sequence[str]],
    suffixes: Sequence[str] = SUFFIXES,
) -> list[Path]:
    """The files to read: the one named, or those of the subset in the folder named.

    Args:
        name: the benchmark's.
        path: a file or folder.
        subset: the one asked for; None is the first.
        subsets: file name patterns of each subset; the first pattern that is there counts, with all its shards.
        suffixes: of files in the layouts that can be read.

    Raises:
        UserError: for an unknown subset, or one that the file named is not of.
        DataError: for a file of another kind, or a folder without the subset's files, nor exactly one that could be
            meant.
    """
    if subset is not None and subset not in subsets:
        raise UserError(f"subset {subset!r}: {name} has {', '.join(subsets)}{did_you_mean(subset, subsets)}")
    if not path.is_dir():
        if path.suffix not in suffixes:
            raise DataError(f"{path}: expected a {' or '.join(suffixes)} file, as it was published")
        of = [one for one, patterns in subsets.items() if any(map(path.match, patterns))]
        if subset and of and subset not in of:
            raise UserError(f"subset {subset!r}: {path.name} is {of[0]}; name the file or the folder of {subset}")
        return [path]
    patterns = subsets[subset or next(iter(subsets))]
    for pattern in patterns:
        if found := sorted(path.glob(pattern)):
            return found
    only = [file for file in files_in(path, *suffixes) if file.name != "PREPARED.json"]
    if subset is None and len(only) == 1:
        return only
    other = ", or another --subset" if len(subsets) > 1 else ""
    raise DataError(f"{path}: holds no {' or '.join(patterns)}; name the file with --data{other}")


def pictured_rows(path: Path, media: MediaStore, *columns: str) -> Iterator[tuple[Row, tuple[Image, ...]]]:
    """The records of a data file in any published layout, each with its pictures, one at a time.

    `.tsv` is VLMEvalKit's form (`tsv.read_pictured`); `.parquet` the Hugging Face form, whose `image` is encoded bytes;
    `.json` and `.jsonl` hold base64, or a path beside the file, in `image` or `image_path`.

    Args:
        path: the file.
        media: where pictures are kept.
        columns: what the header of a TSV must hold besides `index` and `image`.

    Raises:
        DataError: as the readers of these forms, or for a record without a picture.
    """
    if path.suffix == ".tsv":
        yield from read_pictured(path, media, columns)
        return
    records = stream_parquet(path) if path.suffix == ".parquet" else read_records(path)
    for row in records:
        field = "image" if row.has("image") or not row.has("image_path") else "image_path"
        image = picture(row, field, path.parent, media)
        yield Row({name: value for name, value in row.values.items() if name != field}, row.where), (image,)


def picture(row: Row, field: str, folder: Path, media: MediaStore) -> Image:
    """The picture of a field: encoded bytes (`{"bytes", "path"}`), base64, or the name of a file in `folder`.

    A name may have leading folders of its publisher's: what is left of them is looked for too. A file that is not there
    is `missing`.

    Raises:
        DataError: if the field holds none of these, or is no readable picture.
    """
    value, where = row.values.get(field), f"{row.where}: {field}"
    if isinstance(value, dict):
        if isinstance(value.get("bytes"), bytes):
            return media.keep(value["bytes"], str(value.get("path") or ""), where)
        value = value.get("path")
    if isinstance(value, bytes):
        return media.keep(value, "", where)
    if not isinstance(value, str) or not value.strip():
        raise row.error(
            field, "is missing" if value is None or value == "" else f"must be a picture, not {kind(value)}"
        )
    if not _PICTURE_NAME.fullmatch(value):
        try:
            return media.keep(base64.b64decode(value, validate=True), "", where)
        except (binascii.Error, ValueError) as error:
            raise row.error(field, f"is neither base64 nor the name of a picture ({error})") from None
    pieces = PurePosixPath(value).parts
    if ".." in pieces or PurePosixPath(value).is_absolute():
        raise row.error(field, f"{value!r} lies outside the data folder", "pictures lie beside the data file")
    names = [PurePosixPath(*pieces[start:]) for start in range(len(pieces))]
    found = next((name for name in names if (folder / name).is_file()), names[0])
    return media.image(folder / found, str(found), where)


# ---------------------------------------------------------------------------------------------------------- options


def lettered_choices(row: Row) -> tuple[Choice, ...]:
    """The options of columns A, B, C …; what is empty or "nan" is absent.

    Raises:
        DataError: if there is one option only, or one behind a gap (A and C, but no B).
    """
    texts = {letter: _option(row, letter) for letter in string.ascii_uppercase if letter in row.values}
    found = "".join(letter for letter, text in texts.items() if text is not None)
    if gaps := set(string.ascii_uppercase[: max(len(found), 2)]) - set(found) if found else ():
        raise row.error(min(gaps), f"is missing, though there is {' and '.join(found)}", "options have no gaps")
    return tuple(Choice(letter, (Text(texts[letter] or ""),)) for letter in found)


def _option(row: Row, letter: str) -> str | None:
    value = row.values[letter]
    if value is None or value != value:  # NaN, as pandas writes it
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise row.error(letter, f"must be text, not {kind(value)}")
    text = str(value).strip()
    return None if text.lower() in ABSENT else text


def inline_choices(row: Row, field: str) -> tuple[str, tuple[Choice, ...]]:
    """A question's words, and the options in its text: the words, then `Options: A: a car, B: a bus`.

    Raises:
        DataError: if the text has no two options.
    """
    text = row.text(field)
    heads = list(_INLINE.finditer(text))
    choices = split_choices(text[heads[-1].end() :]) if heads else ()
    if len(choices) < 2:
        raise row.error(field, "has no options: expected `Options: A: …, B: …` in it, or columns A, B …")
    return text[: heads[-1].start()].rstrip(), choices


def split_choices(text: str, between: str = r"(?:^|[,;\n])\s*") -> tuple[Choice, ...]:
    """The options of a text `A: a car, B: a bus`, each up to the mark of the letter that comes next.

    Args:
        text: options and nothing else; a mark is `A:`, `A.`, `A)` or `(A)` with a space or line break after it.
        between: what must stand before a mark, a pattern.
    """
    marks: list[re.Match[str]] = []
    for letter in string.ascii_uppercase:
        mark = re.compile(rf"{between}\(?{letter}[:.)]+(?=\s|$)", re.MULTILINE)
        if (found := mark.search(text, marks[-1].end() if marks else 0)) is None:
            break
        marks.append(found)
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    bodies = (text[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True))
    return tuple(Choice(letter, (Text(body),)) for letter, body in zip(string.ascii_uppercase, bodies, strict=False))


def right_letter(row: Row, choices: Sequence[Choice], field: str = "answer") -> str:
    """The letter of the right option.

    Raises:
        DataError: if it is missing (as in a test split) or not among the options.
    """
    if not row.has(field) or not str(row.values[field]).strip():
        raise row.error(field, "is missing", "use a split whose answers are public: a test split is scored elsewhere")
    letter = row.text(field).strip()
    if letter not in (keys := [choice.key for choice in choices]):
        raise row.error(field, f"{letter!r} is not among the options {', '.join(keys) or '(none)'}")
    return letter
