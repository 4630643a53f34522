"""RealWorldQA: 765 questions about what a camera sees, answered with a letter, a word or a number."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from memharness.benchmark import BenchmarkCard, ScoreRow
from memharness.choiceqa import LETTER, ChoiceBenchmark, Entry
from memharness.choicerows import data_files, lettered_choices, pictured_rows, right_letter, split_choices
from memharness.config import Config, option
from memharness.datafile import Ids, Row
from memharness.metric import Metric
from memharness.scoring.choice import after_thinking
from memharness.scoring.choice_metrics import choice_score, failure, thinking_score, unclosed
from memharness.scoring.choice_rules import extractor
from memharness.types import Asked, Asset, Choice, Image, Score, Status, Text

SUBSETS = {"test": ("data/test-*.parquet", "test-*.parquet", "RealWorldQA.tsv")}
NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
# The publisher's own answer-format words, which end the question.
_FORMAT = re.compile(r"\n+\s*(?P<words>(?:Please|Answer)\b[^\n]*)\s*\Z")
_OPTIONS = re.compile(r"^\s*A[.)]\s", re.MULTILINE)
CHOICE, FREE = "choice", "free"


class RealWorldQAOptions(Config):
    """Toggles of RealWorldQA."""

    extractor: Literal["memharness", "vlmevalkit", "mmstar"] = option(
        "memharness",
        "The rule that reads the letter of a question with options.",
        source="memharness; the publisher names no evaluator",
    )


@dataclass(frozen=True)
class RealWorldQAScores(Metric):
    """Scores `accuracy` and `unclosed_thinking`, 0 or 1, over every question.

    With options, the letter that the answer declares, as `ChoiceAccuracy`. Without, whether the answer and the gold
    one are equal once lower-cased and without a final period, a number word as its digits (lmms-eval, realworldqa).

    Attributes:
        extractor: the rule that reads the letter: `memharness`, `vlmevalkit` or `mmstar`.
    """

    extractor: str = "memharness"

    def __post_init__(self) -> None:
        """Refuse an unknown extractor where the metric is named."""
        extractor(self.extractor)

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Score one question."""
        asked = unit[0]
        accuracy = choice_score(asked, self.extractor) if asked.question.choices else free_score(asked)
        return {"accuracy": accuracy, "unclosed_thinking": thinking_score(asked)}


def free_score(asked: Asked) -> Score:
    """Exact match of a word or number; an answer without any is unparsed."""
    if failed := failure(asked):
        return failed
    said = plain(after_thinking(asked.record.answer or "") or "")
    if not said:
        why = "its thinking never ends" if unclosed(asked) else "the answer is empty"
        return Score(0.0, Status.UNPARSED, why)
    return Score(float(any(said == plain(gold) for gold in asked.gold.answers)))


def plain(answer: str) -> str:
    """Lower case, no final period, a number word as digits."""
    said = answer.lower().strip().rstrip(".").rstrip()
    return str(NUMBERS.index(said)) if said in NUMBERS else said


class RealWorldQA(ChoiceBenchmark):
    """Each question is a context of its own, with one picture."""

    card = BenchmarkCard(
        name="realworldqa",
        title="RealWorldQA",
        paper="xAI, announcement of Grok-1.5 Vision, April 2024 (no paper)",
        licence="CC BY-ND 4.0 (xai-org/RealworldQA, the publisher) or CC BY 4.0 (lmms-lab/RealWorldQA): they disagree",
        source="https://huggingface.co/datasets/xai-org/RealworldQA; TSV: opencompass.openxlab.space/utils/VLMEval",
        revision="xai-org/RealworldQA @ 17e7f75e092e47169732462ea3cdfebe911105dd",
        version=1,
        splits={"test": "all questions"},
        counts={"questions": 765},
        cluster="none: each question has its own picture",
        primary="accuracy",
        assets=(Asset("hf://datasets/xai-org/RealworldQA@17e7f75e092e47169732462ea3cdfebe911105dd", ""),),
        errata=(
            "the publisher's licence and that of the copy most harnesses use disagree: the stricter one, without "
            "derivatives, is what `data prepare` shows for acceptance",
            "options stand in the question's text: they are read from its lines, and the publisher's last sentence "
            "(how to answer) is the instruction",
            "questions without options are compared word for word, so a whole sentence is wrong however true; "
            "`accuracy` covers both kinds, and the report gives each",
            "a script in use draws a letter at random where none is found; here that is `unparsed`, and counts 0",
            "questions have no ids in the parquet form: theirs is the place in file order, from 0. MD5 sums of the TSV "
            "form drift (4de008f5…, 92321028…): a run records the SHA-256 of its data",
            "published figures set pixel limits for the reader (Qwen: 768 to 5,120 patches of 28 by 28): pictures are "
            "given to the reader as published, and its own options limit them",
        ),
        images=True,
        prompt="direct.v1",
    )
    options_class = RealWorldQAOptions
    options: RealWorldQAOptions

    def entries(self, subset: str | None) -> Iterator[Entry]:
        """The questions in file order."""
        place = 0
        met = Ids()
        for path in data_files("realworldqa", self.data.path, subset, SUBSETS):
            for row, images in pictured_rows(path, self.data.media, "question", "answer"):
                name = str(row.values["index"]).strip() if row.has("index") else str(place)
                met.add(name, row, "index")
                yield _entry(Row(row.values, f"{row.where} (question {name})"), name, images)
                place += 1

    def metrics(self) -> Sequence[Metric]:
        """Accuracy over all questions, with and without options."""
        return (RealWorldQAScores(self.options.extractor),)

    def report(self, rows: Iterable[ScoreRow]) -> Mapping[str, float]:
        """`Overall`, the accuracy with options and without (`choice`, `free`), and the share `unparsed`."""
        values: dict[str, list[float]] = {"Overall": [], CHOICE: [], FREE: [], "unparsed": []}
        for row in rows:
            score = row.scores["accuracy"]
            for key in ("Overall", row.category):
                values[key].append(score.value or 0.0)
            values["unparsed"].append(float(score.status is Status.UNPARSED))
        return {key: sum(one) / len(one) for key, one in values.items() if one}


def _entry(row: Row, name: str, images: tuple[Image, ...]) -> Entry:
    words, choices, instruction = asked_in(row)
    if choices:
        return Entry(
            id=name,
            parts=(*images, Text(words)),
            answers=(right_letter(row, choices),),
            choices=choices,
            category=CHOICE,
            instruction=instruction or LETTER,
        )
    return Entry(
        id=name,
        parts=(*images, Text(words)),
        answers=(row.text("answer").strip(),),
        category=FREE,
        instruction=instruction,
    )


def asked_in(row: Row) -> tuple[str, tuple[Choice, ...], str]:
    """The words, options and answer format of a question: options of columns A, B …, else of the lines of its text.

    Raises:
        DataError: for options that end before the second, and words that want a letter where there are no options.
    """
    text, instruction = row.text("question"), ""
    if said := _FORMAT.search(text):
        text, instruction = text[: said.start()], said["words"].strip()
    if columns := lettered_choices(row):
        return text.strip(), columns, instruction
    heads = list(_OPTIONS.finditer(text))
    if not heads and "letter" not in instruction:
        return text.strip(), (), instruction
    choices = split_choices(text[heads[-1].start() :], between=r"^\s*") if heads else ()
    if len(choices) < 2:
        found = "has an option A and no B" if heads else f"has no options, though it says {instruction!r}"
        raise row.error("question", found, "options stand in lines `A. …`, `B. …`, or in columns A, B …")
    return text[: heads[-1].start()].strip(), choices, instruction
