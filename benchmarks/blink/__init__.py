"""BLINK: fourteen tasks of visual perception, as multiple choice over one to four pictures."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Literal

from memharness.benchmark import BenchmarkCard, ScoreRow, means
from memharness.choiceqa import LETTER, ChoiceBenchmark, Entry, by_task
from memharness.choicerows import data_files, lettered_choices, picture, right_letter
from memharness.config import Config, option
from memharness.datafile import Ids, Row, existing, kind, read_json, stream_parquet
from memharness.media import MediaStore
from memharness.metric import Metric
from memharness.scoring.choice_metrics import ChoiceAccuracy, failure
from memharness.tsv import read_pictured
from memharness.types import (
    Answer,
    Asked,
    Asset,
    Choice,
    DataError,
    Finding,
    Image,
    Score,
    Text,
    UserError,
    did_you_mean,
)

TASKS = (
    "Art_Style",
    "Counting",
    "Forensic_Detection",
    "Functional_Correspondence",
    "IQ_Test",
    "Jigsaw",
    "Multi-view_Reasoning",
    "Object_Localization",
    "Relative_Depth",
    "Relative_Reflectance",
    "Semantic_Correspondence",
    "Spatial_Relation",
    "Visual_Correspondence",
    "Visual_Similarity",
)
FILES = ("*/val-*.parquet", "*/val/*.parquet", "val-*.parquet", "BLINK*.tsv")
"""Where the questions lie in a folder, the first that is there: the Hugging Face shards, or VLMEvalKit's table."""
PICTURES = ("image_1", "image_2", "image_3", "image_4")
HIDDEN = "hidden"
"""The answer of every question of the test split."""


class BLINKOptions(Config):
    """Toggles of BLINK."""

    words: Literal["prompt", "question"] = option(
        "prompt",
        "Which words ask: the data's full prompt, without the options at its end, or its short question.",
        source="official code asks with the prompt; VLMEvalKit's table holds the question alone",
    )
    extractor: Literal["memharness", "vlmevalkit"] = option(
        "memharness",
        "The rule that reads the letter; VLMEvalKit's own gives letters to some replies that chose nothing.",
        source="memharness, since an answer is never guessed; the authors asked GPT-3.5",
    )


@dataclass(frozen=True)
class BLINKAccuracy(ChoiceAccuracy):
    """Accuracy as written, and as the official script counts: scores `accuracy` and `accuracy_as_coded`, 0 or 1.

    The script compares the recorded letter with "(B)" as text, so "(B) Point B" is wrong; it is meant for letters that
    a model has read from the replies before.
    """

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Score one question."""
        asked = unit[0]
        coded = Score(float(asked.record.answer == f"({asked.gold.answers[0]})"))
        return {**super().score(unit, facts), "accuracy_as_coded": failure(asked) or coded}


class BLINK(ChoiceBenchmark):
    """A context is one question; its pictures come before its words, which name them by their order."""

    card = BenchmarkCard(
        name="blink",
        title="BLINK",
        paper="Fu et al., ECCV 2024, arXiv:2404.12390",
        licence="Apache-2.0",
        source="https://huggingface.co/datasets/BLINK-Benchmark/BLINK, code github.com/zeyofu/BLINK_Benchmark",
        revision="cbb5717ea541ba92bbf9a63b99972493a1a133b8",
        version=1,
        splits={"all": "the validation questions of all fourteen tasks", "TASK": "one task by name, such as Art_Style"},
        counts={"questions": 1901},
        cluster="none: each question has its own pictures",
        primary="accuracy",
        assets=(Asset("hf://datasets/BLINK-Benchmark/BLINK@cbb5717ea541ba92bbf9a63b99972493a1a133b8", ""),),
        errata=(
            "two means are in use: the paper's `Total` is the unweighted mean of the tasks, VLMEvalKit and lmms-eval "
            "give the mean over questions (`Overall`); both are reported",
            "the answers of the test split (1,907 questions) are hidden: its publisher's server scores it, and it is "
            "refused here",
            "the authors read letters from long replies with GPT-3.5; the rule here returns a letter or none, and "
            "counts `unparsed`",
            "the official script compares recorded letters as text: a recorded `(C) Point C` is wrong to it, and right "
            "in `accuracy`; `Total_as_coded` is its figure",
            "Relative_Reflectance was uploaded again in 2025, after the pinned revision",
        ),
        images=True,
        prompt="direct.v1",
        steps=("TSV form: fetch https://opencompass.openxlab.space/utils/VLMEval/BLINK.tsv and give --data FILE",),
    )
    options_class = BLINKOptions
    options: BLINKOptions

    def entries(self, subset: str | None) -> Iterator[Entry]:
        """The questions of all tasks or of one, in file order.

        Raises:
            DataError: for an id that comes twice, pictures with a gap, an answer that is hidden or no option, and what
                the readers refuse.
            UserError: for an unknown task.
        """
        if subset not in (None, "all", *TASKS):
            hint = did_you_mean(subset or "", TASKS)
            raise UserError(f"subset {subset!r}: no such task{hint}; there are: {', '.join(TASKS)}")
        met = Ids()
        for path in self.files():
            for name, row, images in _rows(path, self.data.media):
                met.add(name, row, "idx")
                entry = _entry(name, row, images, self.options.words)
                if subset in (None, "all", entry.category):
                    yield entry

    def metrics(self) -> Sequence[Metric]:
        """Accuracy, as written and as coded."""
        return (BLINKAccuracy(self.options.extractor),)

    def report(self, rows: Iterable[ScoreRow]) -> Mapping[str, float]:
        """Each task, `Total` (their unweighted mean, as the official script) and `Overall` over all questions.

        `Total_as_coded` is the script's own figure.
        """
        rows = list(rows)
        figures = by_task(rows, mean="Total", pooled="Overall")
        coded = [value for name, value in means(rows).items() if name.startswith("accuracy_as_coded.")]
        return {**figures, "Total_as_coded": fmean(coded)} if coded else figures

    def predictions(self, path: Path) -> Iterable[tuple[str, Answer]]:
        """Answers from an official file or a folder of them.

        Either `{idx: "(A)"}`, or a task's `{"val": [{"idx", "prediction", "full_prediction"}]}`, whose `prediction`
        counts, as in the official script; or VLMEvalKit's TSV.

        Raises:
            DataError: for a file in another form.
        """
        if path.suffix == ".tsv":
            yield from super().predictions(path)
            return
        files = sorted(path.glob("*.json")) if path.is_dir() else [path]
        if not files:
            raise DataError(f"{path}: holds no .json file; name an official prediction file or the folder of a model's")
        for file in files:
            yield from _predictions(file)

    def files(self) -> Sequence[Path]:
        """The file named, or the validation shards or table of the folder named.

        Raises:
            DataError: if there is none.
        """
        return data_files(self.card.name, self.data.path, None, {"all": FILES}, (".tsv", ".parquet"))

    def digest(self) -> Mapping[str, str]:
        """Digests of the data files, which hold the pictures, by their names from the folder."""
        root = self.data.path if self.data.path.is_dir() else self.data.path.parent
        return {str(path.relative_to(root)): self.data.media.digest(existing(path)) for path in self.files()}

    def check(self) -> Sequence[Finding]:
        """As every choice benchmark; then tasks and pictures."""
        found = list(super().check())
        entries = [entry for entries in (self._read or {}).values() for entry in entries]
        return [*found, *_findings(str(self.data.path), entries)] if entries else found


def _rows(path: Path, media: MediaStore) -> Iterator[tuple[str, Row, tuple[Image, ...]]]:
    """Id, record and pictures, in the Hugging Face form or VLMEvalKit's."""
    if path.suffix == ".tsv":
        for row, images in read_pictured(path, media, ("question", "A", "B", "answer", "category")):
            name = row.text("index").strip()
            yield name, Row(row.values, f"{row.where} (index {name})"), images
        return
    for row in stream_parquet(path):
        name = row.text("idx")
        row = Row(row.values, f"{row.where} ({name})")
        there = [field for field in PICTURES if row.has(field)]
        if not there or there != list(PICTURES[: len(there)]):
            missing = next(field for field in PICTURES if field not in there)
            raise row.error(missing, f"is missing, though there is {' and '.join(there) or 'no picture'}")
        yield name, row, tuple(picture(row, field, path.parent, media) for field in there)


def _entry(name: str, row: Row, images: Sequence[Image], words: str) -> Entry:
    if row.text("answer", "").strip().lower() == HIDDEN:
        raise row.error("answer", "is hidden", "use the validation split: the test split is scored by its publisher")
    if not row.has("choices"):  # VLMEvalKit's table
        choices, question = lettered_choices(row), row.text("question")
        letter = right_letter(row, choices)
    else:
        texts = row.texts("choices")
        if not 2 <= len(texts) <= len(string.ascii_uppercase):
            raise row.error("choices", f"must be a list of two options or more, not of {len(texts)}")
        pairs = zip(string.ascii_uppercase, texts, strict=False)
        choices = tuple(Choice(key, (Text(text),)) for key, text in pairs)
        plain = row.text("answer").strip().removeprefix("(").removesuffix(")")
        letter = right_letter(Row({"answer": plain}, row.where), choices)
        prompt = row.text("prompt", "").partition("\n(A)")[0].strip() if words == "prompt" else ""
        question = prompt or row.text("question")
    return Entry(
        id=name,
        parts=(*images, Text(question)),
        answers=(letter,),
        choices=choices,
        category=(row.text("sub_task") if row.has("choices") else row.text("category")).replace(" ", "_"),
        instruction=LETTER,
        extra={"pictures": len(images)},
    )


def _predictions(file: Path) -> Iterator[tuple[str, Answer]]:
    value = read_json(file)
    if not isinstance(value, dict):
        raise DataError(f'{file}: must be {{idx: "(A)"}} or {{"val": [{{idx, prediction}}]}}, not {kind(value)}')
    if not isinstance(value.get("val"), list):
        row = Row(value, str(file))
        yield from ((name, Answer(row.text(name, ""))) for name in value)
        return
    for row in Row(value, str(file)).rows("val"):
        yield row.text("idx"), Answer(row.text("prediction", ""))


def _findings(where: str, entries: Sequence[Entry]) -> Iterator[Finding]:
    tasks = Counter(entry.category for entry in entries)
    yield Finding("info", where, "tasks: " + ", ".join(f"{task} {n}" for task, n in sorted(tasks.items())))
    shown = Counter(entry.extra["pictures"] for entry in entries)
    words = ", ".join(f"{n} with {pictures}" for pictures, n in sorted(shown.items()))
    yield Finding("info", where, f"pictures a question: {words}")
    if unknown := sorted(set(tasks) - set(TASKS)):
        yield Finding("warning", where, f"tasks that the release does not name: {', '.join(unknown)}")
