"""Multiple choice about pictures without a memory: what the benchmarks of that form share."""

from __future__ import annotations

import base64
import binascii
import re
import string
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from statistics import fmean
from typing import Any

from memharness.benchmark import Benchmark, Recorded, ScoreRow
from memharness.datafile import Row, files_in, kind, read_records, stream_parquet
from memharness.identity import opaque_id
from memharness.media import MediaStore, tree_digest
from memharness.metric import Metric
from memharness.scoring.choice_metrics import ChoiceAccuracy
from memharness.tsv import ABSENT, marked, read_pictured, read_tsv
from memharness.types import (
    Answer,
    Case,
    Choice,
    DataError,
    Finding,
    Gold,
    Image,
    Part,
    Question,
    Status,
    Text,
    UserError,
    did_you_mean,
)

SUFFIXES = (".tsv", ".parquet", ".jsonl", ".json")
"""Of the data files that `pictured_rows` reads."""
LETTER = "Answer with the letter of the right option."
"""The answer-format words of data that come with none."""
_INLINE = re.compile(r"\s*\b(?:Options|Choices):\s*(?=\(?A\s*[:.)])")
_PICTURE_NAME = re.compile(r"[^\0]{1,255}\.(?:jpe?g|png|gif|webp|bmp)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Entry:
    """One published question. Pictures are references into the media store, so that a list of entries stays small.

    Attributes:
        id: the source's own id.
        parts: words and pictures, interleaved as asked.
        choices: the options; empty for a question with a free answer.
        answers: the right option's key, or the accepted free answers.
        category: the finest category the official report names; further levels before it, with a slash after each.
        context: what passes of one question share; its own id where there is one pass.
        group: as `Gold.group`.
        instruction: the answer-format words.
        extra: what the official scorer needs besides.
        cluster: what questions share for statistics (a video, a pair); empty is their context.
        prefill: as `Question.prefill`.
    """

    id: str
    parts: tuple[Part, ...]
    answers: tuple[str, ...]
    choices: tuple[Choice, ...] = ()
    category: str = ""
    context: str = ""
    group: str | None = None
    instruction: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    cluster: str = ""
    prefill: str = ""


class ChoiceBenchmark(Benchmark):
    """Questions that each stand alone: a context holds no item, and one question or the passes of one."""

    _read: Mapping[str, list[Entry]] | None = None
    _subset: str | None = None

    @abstractmethod
    def entries(self, subset: str | None) -> Iterator[Entry]:
        """The questions in file order, streamed.

        Raises:
            DataError: for a file that is missing or not as published.
            UserError: for an unknown subset.
        """

    def contexts(self, subset: str | None = None) -> Sequence[str]:
        """One context a question, or a group of passes, in file order.

        Raises:
            DataError: as `entries`, or if there is no question at all.
            UserError: for an unknown subset.
        """
        if self._read is None or subset != self._subset:
            self._read, self._subset = None, subset
            read: dict[str, list[Entry]] = {}
            for entry in self.entries(subset):
                read.setdefault(opaque_id(self.card.name, entry.context or entry.id), []).append(entry)
            if not read:
                of = f" of subset {subset!r}" if subset else ""
                raise DataError(f"{self.data.path}: holds no question{of}; name other data with --data")
            self._read = read
        return list(self._read)

    def episode(self, context: str) -> Recorded:
        """Nothing to remember, then the question or its passes."""
        if self._read is None:
            self.contexts(self._subset)
        assert self._read is not None
        cases = [self.case(context, place, entry) for place, entry in enumerate(self._read[context])]
        return Recorded(context, (), cases)

    def case(self, context: str, place: int, entry: Entry) -> Case:
        """An entry as the runner takes it."""
        question = Question(
            opaque_id(self.card.name, context, place),
            context,
            entry.parts,
            entry.choices,
            entry.instruction,
            form="choice" if entry.choices else "text",
            prefill=entry.prefill,
        )
        gold = Gold(
            answers=entry.answers,
            category=entry.category,
            group=entry.group,
            cluster=entry.cluster or context,
            native_id=entry.id,
            extra={"items": 0, **entry.extra},
        )
        return Case(question, gold)

    def metrics(self) -> Sequence[Metric]:
        """Accuracy over all questions."""
        return (ChoiceAccuracy(),)

    def predictions(self, path: Path) -> Iterable[tuple[str, Answer]]:
        """Answers by native id from a VLMEvalKit prediction file in its TSV form: columns `index` and `prediction`.

        Raises:
            DataError: for a file in another form, or an index that comes twice.
        """
        if path.suffix != ".tsv":
            raise DataError(f"{path}: expected a .tsv with the columns index and prediction (VLMEvalKit)")
        seen: set[str] = set()
        for row in read_tsv(path, ("index", "prediction")):
            name = row.text("index").strip()
            if name in seen:
                raise row.error("index", f"{name!r} comes twice", "give each question one prediction")
            seen.add(name)
            yield name, Answer(row.text("prediction", ""))

    def check(self) -> Sequence[Finding]:
        """Counts, options a row, pictures that are not at hand, byte-order marks; of the subset read last."""
        try:
            self.contexts(self._subset)
        except DataError as error:
            return [Finding("error", str(self.data.path), str(error))]
        assert self._read is not None
        entries = [entry for entries in self._read.values() for entry in entries]
        return list(_findings(str(self.data.path), self.card.counts, self._read, entries, self.files()))

    def digest(self) -> Any:
        """Digests of the data files, and of the pictures that a JSON file names beside it."""
        found = tree_digest(self.data.path, self.data.media)
        if self.data.path.suffix in (".json", ".jsonl"):
            self.contexts(self._subset)
            images = (part for read in (self._read or {}).values() for entry in read for part in entry.parts)
            found |= {i.source: i.sha256 for i in images if isinstance(i, Image) and i.source and i.sha256}
        return found

    def files(self) -> Sequence[Path]:
        """The data files that were named, for what is to be said about them; pictures apart."""
        path = self.data.path
        return [path] if path.is_file() else sorted(path.rglob("*.tsv"))


def _findings(
    where: str,
    published: Mapping[str, int],
    contexts: Mapping[str, Sequence[Entry]],
    entries: Sequence[Entry],
    files: Iterable[Path],
) -> Iterator[Finding]:
    size = next((name for name, n in published.items() if n in (len(contexts), len(entries))), None)
    whole = f"as many as the published {size}" if size else "a part of the release"
    yield Finding("info", where, f"{len(contexts)} questions in {len(entries)} rows: {whole}")
    options = Counter(len(entry.choices) for entry in entries)
    yield Finding("info", where, "options a row: " + ", ".join(f"{n} with {k or 'none'}" for k, n in options.items()))
    images = [part for entry in entries for part in entry.parts if isinstance(part, Image)]
    if lost := [image.source for image in images if image.missing]:
        yield Finding("warning", where, f"{len(lost)} of {len(images)} pictures are not at hand, first {lost[0]}")
    for file in files:
        if file.suffix == ".tsv" and marked(file):
            yield Finding(
                "warning", str(file), "starts with a byte-order mark, which is passed over; a spreadsheet that saved "
                "it may have cut long cells",
            )  # fmt: skip


# ------------------------------------------------------------------------------------------------ rows with pictures


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


# ---------------------------------------------------------------------------------------------------------- figures


def by_task(rows: Iterable[ScoreRow], *, pooled: str, mean: str) -> dict[str, float]:
    """Accuracy of each category, of all questions and as the mean of the categories, which are not the same.

    Args:
        rows: scored questions; one that failed counts 0.
        pooled: name of the figure over all questions.
        mean: name of the unweighted mean over the categories.

    Returns:
        the categories in order, the two means, every other score's mean, and `unparsed`, the share of questions whose
        answer declares no option.
    """
    values: dict[str, list[float]] = {}
    tasks: dict[str, list[float]] = {}
    unparsed: list[float] = []
    for row in rows:
        for name, score in row.scores.items():
            if score.status is not Status.NOT_APPLICABLE:
                values.setdefault(name, []).append(score.value or 0.0)
        if "accuracy" in row.scores:
            tasks.setdefault(row.category, []).append(row.scores["accuracy"].value or 0.0)
            unparsed.append(float(row.scores["accuracy"].status is Status.UNPARSED))
    if not tasks:
        return {}
    figures = {task: fmean(tasks[task]) for task in sorted(tasks)}
    both = {mean: fmean(figures.values()), pooled: fmean(values.pop("accuracy"))}
    return {**figures, **both, **{name: fmean(values[name]) for name in values}, "unparsed": fmean(unparsed)}
