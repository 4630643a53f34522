"""MuirBench: multiple choice over several pictures, each answerable question beside an unanswerable twin."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from memharness.benchmark import BenchmarkCard, ScoreRow
from memharness.choiceqa import LETTER, ChoiceBenchmark, Entry, by_task
from memharness.choicerows import data_files, lettered_choices, picture, right_letter
from memharness.config import Config, option
from memharness.datafile import Ids, Row, existing, kind, stream_parquet
from memharness.media import MediaStore
from memharness.metric import Metric
from memharness.scoring.choice_metrics import ChoiceAccuracy
from memharness.tsv import read_pictured
from memharness.types import (
    Asked,
    Asset,
    Choice,
    Finding,
    Image,
    Part,
    Score,
    Text,
    UserError,
    did_you_mean,
    parts_text,
)

TASKS = (
    "Action Understanding",
    "Attribute Similarity",
    "Cartoon Understanding",
    "Counting",
    "Diagram Understanding",
    "Difference Spotting",
    "Geographic Understanding",
    "Image-Text Matching",
    "Ordering",
    "Scene Understanding",
    "Visual Grounding",
    "Visual Retrieval",
)
FILES = ("data/test-*.parquet", "test-*.parquet", "*.parquet", "MUIRBench*.tsv", "*.tsv")
"""Where the questions lie in a folder, the first that is there: the Hugging Face shards, or VLMEvalKit's table."""
PLACE = "<image>"
"""What marks the place of a picture in a question or an option."""
UNSTATED = "task not stated"
"""The task of a question whose table has no column for it."""
NONE = "None of the choices provided"
"""The option that is right in an unanswerable question."""


class MuirBenchOptions(Config):
    """Toggles of MuirBench."""

    extractor: Literal["memharness", "vlmevalkit"] = option(
        "memharness",
        "The rule that reads the letter; VLMEvalKit's own gives letters to some replies that chose nothing.",
        source="memharness, since an answer is never guessed; the official parser draws a letter where it finds none",
    )


@dataclass(frozen=True)
class MuirBenchAccuracy(ChoiceAccuracy):
    """Accuracy over all questions, over the answerable or the unanswerable ones, and by the pictures' relation.

    Scores `accuracy`, `answerable` or `unanswerable`, and `relation: …`, each question in those it belongs to.
    """

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Score one question."""
        scores = super().score(unit, facts)
        extra = unit[0].gold.extra
        names = ["unanswerable" if extra["unanswerable"] else "answerable"]
        names += [f"relation: {extra['relation']}"] if extra["relation"] else []
        return {**scores, **dict.fromkeys(names, scores["accuracy"])}


class MuirBench(ChoiceBenchmark):
    """A context is one question; pictures stand at their places in question and options."""

    card = BenchmarkCard(
        name="muirbench",
        title="MuirBench",
        paper="Wang et al., ICLR 2025, arXiv:2406.09411",
        licence="CC BY 4.0",
        source="https://huggingface.co/datasets/MUIRBENCH/MUIRBENCH, code github.com/muirbench/MuirBench",
        revision="9191cbf6edb43b4a9da97514e2d5436b490d36c8 (14 June 2024)",
        version=1,
        splits={"all": "all twelve tasks", "TASK": "one task by name, such as Counting"},
        counts={"questions": 2600, "question pictures": 11264},
        cluster="the pair of an answerable question and its unanswerable twin",
        primary="accuracy",
        assets=(Asset("hf://datasets/MUIRBENCH/MUIRBENCH@9191cbf6edb43b4a9da97514e2d5436b490d36c8", ""),),
        errata=(
            "the official parser draws a letter at random (seeded) where a reply gives none: here such a reply is "
            "`unparsed` and wrong",
            "some evaluators compare the whole reply to the letter, or put all pictures first: here pictures stand "
            "where the data puts them, and their number must match",
            "the official prompt writes `Choices:` and a hint before `Answer:`; the words here are the harness's own",
        ),
        images=True,
        prompt="direct.v1",
        steps=("TSV form: fetch https://opencompass.openxlab.space/utils/VLMEval/MUIRBench.tsv and give --data FILE",),
    )
    options_class = MuirBenchOptions
    options: MuirBenchOptions

    def entries(self, subset: str | None) -> Iterator[Entry]:
        """The questions in file order, or those of one task.

        Raises:
            DataError: for pictures that are not as many as their places, options or answers that do not fit, an id that
                comes twice, and what the readers refuse.
            UserError: for an unknown task.
        """
        task = _task(subset)
        met = Ids()
        for path in self.files():
            for name, row, images in _rows(path, self.data.media):
                met.add(name, row, "idx")
                entry = _entry(name, row, images)
                if task is None or entry.category == task:
                    yield entry

    def metrics(self) -> Sequence[Metric]:
        """Accuracy, in all and by part."""
        return (MuirBenchAccuracy(self.options.extractor),)

    def report(self, rows: Iterable[ScoreRow]) -> Mapping[str, float]:
        """Each task, `Average` of the tasks, `Overall` over all questions, and the parts that the metric names."""
        return by_task(rows, mean="Average", pooled="Overall")

    def files(self) -> Sequence[Path]:
        """The file named, or the shards or table of the folder named.

        Raises:
            DataError: if there is none.
        """
        return data_files(self.card.name, self.data.path, None, {"all": FILES}, (".tsv", ".parquet"))

    def digest(self) -> Mapping[str, str]:
        """Digests of the data files, which hold the pictures."""
        return {path.name: self.data.media.digest(existing(path)) for path in self.files()}

    def check(self) -> Sequence[Finding]:
        """As every choice benchmark; then tasks, pictures and unanswerable twins."""
        found = list(super().check())
        entries = [entry for entries in (self._read or {}).values() for entry in entries]
        return [*found, *_findings(str(self.data.path), entries)] if entries else found


def _task(subset: str | None) -> str | None:
    known = {task.lower(): task for task in TASKS}
    if subset is None or subset == "all":
        return None
    if (wanted := subset.replace("_", " ").lower()) not in known:
        raise UserError(f"subset {subset!r}: no such task{did_you_mean(subset, TASKS)}; there are: {', '.join(TASKS)}")
    return known[wanted]


def _rows(path: Path, media: MediaStore) -> Iterator[tuple[str, Row, tuple[Image, ...]]]:
    """Id, record and pictures, in the Hugging Face form or VLMEvalKit's."""
    if path.suffix == ".tsv":
        for row, images in read_pictured(path, media, ("question", "A", "B", "answer")):
            name = row.text("index").strip()
            yield name, Row(row.values, f"{row.where} (index {name})"), images
        return
    for row in stream_parquet(path):
        name = number(row, "idx")
        row = Row(row.values, f"{row.where} (idx {name})")
        listed = row.values.get("image_list")
        if not isinstance(listed, list) or not listed:
            raise row.error("image_list", f"must be a list of pictures, not {kind(listed)}")
        places = {f"image_list[{place}]": value for place, value in enumerate(listed)}
        held = Row(places, row.where)
        yield name, row, tuple(picture(held, place, path.parent, media) for place in places)


def number(row: Row, field: str) -> str:
    """An index as text, however it is typed; empty if it is absent.

    Raises:
        DataError: if the required `idx` is absent, or it is no number.
    """
    value = row.values.get(field)
    text = "" if value is None else str(value).strip()
    if not text and field == "idx":
        raise row.error(field, "is missing")
    if isinstance(value, bool | float | list | dict):
        raise row.error(field, f"must be a whole number or text, not {value!r}")
    return text


def _entry(name: str, row: Row, images: Sequence[Image]) -> Entry:
    question = row.text("question")
    options = row.texts("options") if row.has("options") else None
    if options is None:
        choices = lettered_choices(row)
    elif 2 <= len(options) <= len(string.ascii_uppercase):
        choices = tuple(
            Choice(*pair) for pair in zip(string.ascii_uppercase, ((Text(o),) for o in options), strict=False)
        )
    else:
        raise row.error("options", f"must be a list of two options or more, not of {len(options)}")
    letter = right_letter(row, choices)
    right = next(parts_text(choice.parts) for choice in choices if choice.key == letter)
    texts = [question, *(parts_text(choice.parts) for choice in choices)]
    parts, *placed = interleaved(texts, images, row)
    twin = number(row, "counterpart_idx")
    return Entry(
        id=name,
        parts=parts,
        answers=(letter,),
        choices=tuple(Choice(choice.key, own) for choice, own in zip(choices, placed, strict=True)),
        category=row.text("task") if options else row.text("task", "") or row.text("category", UNSTATED),
        instruction=LETTER,
        extra={
            "relation": row.text("image_relation", ""),
            "image_type": row.text("image_type", ""),
            "unanswerable": right.strip().rstrip(".").lower() == NONE.lower(),
            "twin": twin,
        },
        cluster=" & ".join(sorted((name, twin))) if twin else "",
    )


def interleaved(texts: Sequence[str], images: Sequence[Image], row: Row) -> list[tuple[Part, ...]]:
    """Texts with pictures in place of their `<image>` marks, in order; without any mark all come before the first.

    Raises:
        DataError: if there are marks, and not as many as pictures.
    """
    marks = sum(text.count(PLACE) for text in texts)
    if marks and marks != len(images):
        raise row.error(
            "image_list", f"holds {len(images)} pictures for {marks} {PLACE} in question and options", "they must match"
        )
    left = iter(images)
    placed = []
    for text in texts:
        first, *rest = text.split(PLACE)
        parts: list[Part] = [Text(first)] if first.strip() else []
        for words in rest:
            parts += [next(left), Text(words)] if words.strip() else [next(left)]
        placed.append(tuple(parts))
    return placed if marks else [(*images, *placed[0]), *placed[1:]]


def _findings(where: str, entries: Sequence[Entry]) -> Iterator[Finding]:
    tasks = Counter(entry.category for entry in entries)
    yield Finding("info", where, "tasks: " + ", ".join(f"{task} {n}" for task, n in sorted(tasks.items())))
    shown = [part for e in entries for parts in (e.parts, *(c.parts for c in e.choices)) for part in parts]
    pictures = sum(isinstance(part, Image) for part in shown)
    unanswerable = sum(entry.extra["unanswerable"] for entry in entries)
    yield Finding("info", where, f"{pictures} pictures; {unanswerable} questions are unanswerable")
    if unknown := sorted(set(tasks) - set(TASKS)):
        yield Finding("warning", where, f"tasks that the release does not name: {', '.join(unknown)}")
    ids = {entry.id for entry in entries}
    if alone := [entry.id for entry in entries if entry.extra["twin"] and entry.extra["twin"] not in ids]:
        yield Finding("warning", where, f"{len(alone)} questions name a twin that is not there, first {alone[0]}")
