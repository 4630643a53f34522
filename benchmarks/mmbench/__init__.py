"""MMBench: multiple choice about one picture, each question asked once for every place its options can take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from memharness.benchmark import BenchmarkCard, ScoreRow
from memharness.choiceqa import LETTER, ChoiceBenchmark, Entry
from memharness.choicerows import data_files, lettered_choices, pictured_rows, right_letter
from memharness.config import Config, option
from memharness.datafile import Ids, Row
from memharness.media import MediaStore
from memharness.metric import Metric
from memharness.scoring.choice_metrics import ChoiceAccuracy, CircularAccuracy
from memharness.types import (
    Asset,
    Choice,
    Finding,
    Image,
    Part,
    Status,
    Text,
    parts_text,
)

SUBSETS = {
    "en": ("MMBench_DEV_EN.tsv", "en/dev-*.parquet"),
    "cn": ("MMBench_DEV_CN.tsv", "cn/dev-*.parquet"),
    "cc": ("CCBench.tsv", "cc/test-*.parquet"),
    "en-v1.1": ("MMBench_DEV_EN_V11.tsv",),
    "cn-v1.1": ("MMBench_DEV_CN_V11.tsv",),
}
"""The files of each subset: VLMEvalKit's name, and the Hugging Face shards."""
OFFSET = 10**6
"""A copy's index is its base row's plus a multiple of this, or of a larger power of ten (VLMEvalKit, tools.py)."""
ABBREVIATIONS = {
    "coarse_perception": "CP",
    "finegrained_perception (instance-level)": "FP-S",
    "finegrained_perception (cross-instance)": "FP-C",
    "attribute_reasoning": "AR",
    "relation_reasoning": "RR",
    "logic_reasoning": "LR",
}
"""What the official report calls an l2-category."""


class MMBenchOptions(Config):
    """Toggles of MMBench."""

    circular: bool = option(
        True,
        "Ask each question in all passes: those a file carries, else made by turning the options. Off asks each once.",
        source="MMBench (CircularEval); VLMEvalKit, tools.py: CIRCULAR",
    )
    extractor: Literal["memharness", "vlmevalkit", "mmstar"] = option(
        "memharness",
        "The rule that reads the letter; VLMEvalKit's own gives letters to some replies that chose nothing.",
        source="memharness, since an answer is never guessed; officially `vlmevalkit`",
    )


@dataclass(frozen=True, slots=True)
class Asking:
    """One published row: a base question or one of its copies."""

    index: int
    row: Row
    images: tuple[Image, ...]
    choices: tuple[Choice, ...]
    letter: str


class MMBench(ChoiceBenchmark):
    """A context is a question with its passes: the first gives the vanilla figure, all together the circular one."""

    card = BenchmarkCard(
        name="mmbench",
        title="MMBench",
        paper="Liu et al., ECCV 2024, arXiv:2307.06281",
        licence="Apache-2.0 (github.com/open-compass/MMBench)",
        source="https://huggingface.co/datasets/lmms-lab/MMBench; TSV form: opencompass.openxlab.space/utils/VLMEval",
        revision="lmms-lab/MMBench @ 56ba1af8954932c4804bd3f522e05ed96e63b654",
        version=1,
        splits={
            "en": "English dev questions (the default)",
            "cn": "the same in Chinese",
            "cc": "CCBench: Chinese culture, without an l2-category",
            "en-v1.1": "English dev questions of version 1.1, TSV form only",
            "cn-v1.1": "Chinese dev questions of version 1.1, TSV form only",
        },
        counts={"rows of en or cn": 4329, "rows of lmms-lab/MMBench_EN": 4377, "rows of cc": 2040},
        cluster="the question with its passes",
        primary="circular",
        assets=(Asset("hf://datasets/lmms-lab/MMBench@56ba1af8954932c4804bd3f522e05ed96e63b654", ""),),
        errata=(
            "circular and vanilla figures come from one run; each is named, since the two differ by ten points or "
            "more and public tables mix them",
            "the answers of the test split are not public: its publisher's server scores it, and it is refused here",
            "copies that a file carries are used as they are. Where there are none, passes move the contents one "
            "letter up each time; releases of VLMEvalKit turn them either way, which gives the same passes in "
            "another order",
            "a last option that names the others (A and B, all, none) stays in its place and the rest turn, as in "
            "VLMEvalKit; in Chinese such options turn too, there and here",
            "the official reader of answers gives letters to replies that chose nothing, asks a judge for the rest, "
            "and draws one at random where the judge fails: extractor=vlmevalkit is its rule without judge and draw. "
            "The default returns a letter or none, and counts `unparsed`",
            "pandas takes an option whose text is None or NA for a missing one; here only an empty cell and nan are",
            "published MD5 sums of the TSV files drift from release to release: a run records the SHA-256 of its data",
        ),
        images=True,
        prompt="direct.v1",
        steps=("TSV form: fetch MMBench_DEV_EN.tsv (and so on) from the address above into a folder; --data FOLDER",),
    )
    options_class = MMBenchOptions
    options: MMBenchOptions

    def entries(self, subset: str | None) -> Iterator[Entry]:
        """The questions of a subset with their passes: in file order where the file carries them."""
        asked = list(read_rows(data_files("mmbench", self.data.path, subset, SUBSETS), self.data.media))
        bases = _bases(asked)
        questions = set(bases.values())
        if not self.options.circular:
            return (_entry(asking, asking.index, 1) for asking in asked if asking.index in questions)
        if len(questions) == len(asked):
            return _turned_all(asked)
        passes = Counter(bases.values())
        return (_entry(asking, base := bases[asking.index], passes[base]) for asking in asked)

    def metrics(self) -> Sequence[Metric]:
        """CircularEval over the passes, and the accuracy of the first pass."""
        rule = self.options.extractor
        vanilla = ChoiceAccuracy(rule)
        return (CircularAccuracy(rule), vanilla) if self.options.circular else (vanilla,)

    def report(self, rows: Iterable[ScoreRow]) -> Mapping[str, float]:
        """`Overall`, each l2-category (CP, FP-S …) and category, circular; then the same after `vanilla.`.

        With several splits in one file, each figure is given for each split too, after an @. `unparsed` is the share of
        first passes whose answer declares no option.
        """
        values: dict[tuple[int, str], list[float]] = {}
        splits = set()
        for row in rows:
            split, l2, leaf = row.category.split("/")
            splits.add(split)
            levels = [level for level in enumerate(("Overall", ABBREVIATIONS.get(l2, l2), leaf)) if level[1]]
            for name, score in row.scores.items():
                if score.status is Status.NOT_APPLICABLE:
                    continue
                keys = levels
                if name == "unclosed_thinking":
                    keys = [(3, name)]
                elif name == "accuracy":
                    keys = [(rank, f"vanilla.{key}") for rank, key in levels]
                    values.setdefault((3, "unparsed"), []).append(float(score.status is Status.UNPARSED))
                for rank, key in keys:
                    values.setdefault((rank, key), []).append(score.value or 0.0)
                    values.setdefault((4 + rank, f"{key}@{split}"), []).append(score.value or 0.0)
        shown = sorted(key for key in values if key[0] < 4 or len(splits) > 1)
        return {key: sum(values[rank, key]) / len(values[rank, key]) for rank, key in shown}

    def check(self) -> Sequence[Finding]:
        """What every such benchmark's data is checked for, and copies whose right option is not their base's."""
        found = super().check()
        return [*found, *_turned_wrong(self._read or {})] if self._read else found


def read_rows(paths: Iterable[Path], media: MediaStore) -> Iterator[Asking]:
    """The rows of a subset, base questions and copies alike.

    Raises:
        DataError: for an index that is no whole number or comes twice, and what is wrong with options or answer.
    """
    met = Ids()
    for row, images in (one for path in paths for one in pictured_rows(path, media, "question", "A", "B", "answer")):
        index = _index(row)
        met.add(str(index), row, "index")
        row = Row(row.values, f"{row.where} (index {index})")
        row.text("question")
        choices = lettered_choices(row)
        yield Asking(index, row, images, choices, right_letter(row, choices))


def _turned_all(asked: Sequence[Asking]) -> Iterator[Entry]:
    """Every question in all passes that its options allow."""
    offset = OFFSET
    while any(asking.index >= offset for asking in asked):
        offset *= 10
    for asking in asked:
        turns = turning(asking.choices)
        for turn in range(turns):
            yield _entry(turned(asking, turn, turns, offset), asking.index, turns)


def _index(row: Row) -> int:
    value = row.values.get("index")
    text = str(value).strip()
    if value is None or isinstance(value, bool) or not text.isascii() or not text.isdigit():
        raise row.error("index", "is missing" if value is None else f"must be a whole number, not {value!r}")
    return int(text)


def _bases(asked: Sequence[Asking]) -> dict[int, int]:
    """The index of each row's base question: its own, unless it is a copy of one in the file."""
    rows = {asking.index: asking for asking in asked}
    offset = OFFSET
    while any(index >= offset for index in rows):
        copies = {index: index % offset for index in rows if index >= offset}
        if lost := [index for index, base in copies.items() if base not in rows]:
            if len(lost) == len(copies):  # no copy at all: the rows of this file are numbered as high
                offset *= 10
                continue
            raise rows[lost[0]].row.error("index", f"marks a copy of row {copies[lost[0]]}, which is not there")
        for index, base in copies.items():
            _same(rows[index], rows[base])
        return {index: copies.get(index, index) for index in rows}
    return {index: index for index in rows}


def _same(copy: Asking, base: Asking) -> None:
    """Refuse a copy that asks something else."""
    for field in ("question", "hint"):
        said, wanted = copy.row.text(field, "").strip(), base.row.text(field, "").strip()
        if said != wanted:
            raise copy.row.error(field, f"differs from that of row {base.index}, whose copy its index says it is")
    if len(copy.choices) != len(base.choices):
        raise copy.row.error("A", f"has {len(copy.choices)} options where row {base.index} has {len(base.choices)}")


def turning(choices: Sequence[Choice]) -> int:
    """How many options turn: all, but for last ones that name the others (VLMEvalKit, tools.py: CIRCULAR)."""
    n = len(choices)
    while n > 2 and _names_others(choices, n):
        n -= 1
    return n


def _names_others(choices: Sequence[Choice], n: int) -> bool:
    words = parts_text(choices[n - 1].parts).replace(",", " ").split()
    others = {choice.key for choice in choices[: n - 1]}
    return others <= set(words) or not {"all", "none"}.isdisjoint(word.lower() for word in words)


def turned(asking: Asking, turn: int, turns: int, offset: int) -> Asking:
    """A row with its first `turns` options moved up `turn` letters, and the index of that copy."""
    parts = [choice.parts for choice in asking.choices]
    parts[:turns] = parts[turn:turns] + parts[:turn]
    choices = tuple(replace(choice, parts=own) for choice, own in zip(asking.choices, parts, strict=True))
    place = [choice.key for choice in choices].index(asking.letter)
    letter = choices[(place - turn) % turns].key if place < turns else asking.letter
    return replace(asking, index=asking.index + turn * offset, choices=choices, letter=letter)


def _entry(asking: Asking, base: int, passes: int) -> Entry:
    row = asking.row
    hint = row.text("hint", "").strip()
    if hint.lower() == "nan":  # how the Hugging Face form writes an absent one
        hint = ""
    words: tuple[Part, ...] = (Text(f"Hint: {hint}"),) if hint else ()
    l2 = row.text("l2-category" if "l2-category" in row.values else "L2-category", "")
    return Entry(
        id=str(asking.index),
        parts=(*asking.images, *words, Text(row.text("question"))),
        answers=(asking.letter,),
        choices=asking.choices,
        category="/".join(level.replace("/", "|") for level in (row.text("split", ""), l2, row.text("category", ""))),
        context=str(base),
        group=str(base) if passes > 1 else None,
        instruction=LETTER,
        extra={"pass": (asking.index - base) // OFFSET, "passes": passes},
    )


def _turned_wrong(contexts: Mapping[str, Sequence[Entry]]) -> Iterator[Finding]:
    """Carried copies are rotations of their base row: the words of the right option stay the same."""
    for entries in contexts.values():
        right = {parts_text(_right(entry).parts) for entry in entries}
        if len(right) > 1:
            named = " and ".join(sorted(repr(words) for words in right))
            yield Finding("warning", f"index {entries[0].id}", f"its passes hold different answers right: {named}")


def _right(entry: Entry) -> Choice:
    return next(choice for choice in entry.choices if choice.key == entry.answers[0])
