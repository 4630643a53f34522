"""MMStar: 1,500 questions that cannot be answered without their picture, 250 in each of six categories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from memharness.benchmark import BenchmarkCard, ScoreRow
from memharness.choiceqa import LETTER, ChoiceBenchmark, Entry
from memharness.choicerows import data_files, inline_choices, lettered_choices, pictured_rows, right_letter
from memharness.config import Config, option
from memharness.datafile import Ids, Row
from memharness.metric import Metric
from memharness.scoring.choice_metrics import ChoiceAccuracy
from memharness.types import Asset, Image, Status, Text

SUBSETS = {"val": ("MMStar.tsv", "mmstar.parquet")}


class MMStarOptions(Config):
    """Toggles of MMStar."""

    extractor: Literal["memharness", "mmstar", "vlmevalkit"] = option(
        "memharness",
        "The rule that reads the letter; MMStar's own takes the first character, so that `Because` is B.",
        source="memharness, since an answer is never guessed; officially `mmstar`",
    )


class MMStar(ChoiceBenchmark):
    """Each question is a context of its own, with one picture."""

    card = BenchmarkCard(
        name="mmstar",
        title="MMStar",
        paper="Chen et al., NeurIPS 2024, arXiv:2403.20330",
        licence="none stated, neither with the data nor in the repository",
        source="https://huggingface.co/datasets/Lin-Chen/MMStar; evaluator github.com/MMStar-Benchmark/MMStar",
        revision="Lin-Chen/MMStar @ bc98d668301da7b14f648724866e57302778ab27; evaluate/mmstar.py @ 79e6d1c",
        version=1,
        splits={"val": "all questions"},
        counts={"questions": 1500},
        cluster="none: each question has its own picture",
        primary="accuracy",
        assets=(Asset("hf://datasets/Lin-Chen/MMStar@bc98d668301da7b14f648724866e57302778ab27", ""),),
        errata=(
            "the official extractor takes the first character in any case: `The answer is (B)` is wrong and `Because` "
            "is B; it is the toggle extractor=mmstar, and the default returns a letter or none",
            "`final score` is the official one, hits over all questions (1,500); `average` is lmms-eval's, the mean of "
            "the 18 means of l2 categories: another number from the same answers",
            "on half of the questions models ignore `the letter only`: a figure depends on how answers are read and "
            "asked for, so both are in the identity of a run",
            "the parquet form holds the options in the question's text, the TSV form in columns: both are read, and "
            "where a folder has both, the TSV counts",
        ),
        images=True,
        prompt="direct.v1",
    )
    options_class = MMStarOptions
    options: MMStarOptions

    def entries(self, subset: str | None) -> Iterator[Entry]:
        """The questions in file order; ids are `index` (TSV, parquet) or `id` (JSON lines)."""
        met = Ids()
        for path in data_files("mmstar", self.data.path, subset, SUBSETS):
            for row, images in pictured_rows(path, self.data.media, "question", "answer"):
                entry = _entry(row, images)
                met.add(entry.id, row, "index")
                yield entry

    def metrics(self) -> Sequence[Metric]:
        """Accuracy over all questions."""
        return (ChoiceAccuracy(self.options.extractor),)

    def report(self, rows: Iterable[ScoreRow]) -> Mapping[str, float]:
        """Official keys: `final score`, each category, `category(l2 category)`; and lmms-eval's `average`.

        Denominators are fixed: every question counts, answered or not (1,500 and 250 where all were asked).
        """
        values: dict[tuple[int, str], list[float]] = {}
        for row in rows:
            category, _, l2 = row.category.partition("/")
            score = row.scores["accuracy"]
            keys = [(0, "final score"), (2, category), *([(4, f"{category}({l2})")] if l2 else [])]
            for key in keys:
                values.setdefault(key, []).append(score.value or 0.0)
            values.setdefault((3, "unparsed"), []).append(float(score.status is Status.UNPARSED))
        means = {key: sum(one) / len(one) for key, one in values.items()}
        if fine := [mean for (rank, _), mean in means.items() if rank == 4]:
            means[1, "average"] = sum(fine) / len(fine)
        return {key: means[rank, key] for rank, key in sorted(means)}


def _entry(row: Row, images: tuple[Image, ...]) -> Entry:
    name = str(row.values.get("index" if row.has("index") else "id", "")).strip()
    if not name:
        raise row.error("index", "is missing")
    row = Row(row.values, f"{row.where} (index {name})")
    choices, words = lettered_choices(row), row.text("question")
    if not choices:
        words, choices = inline_choices(row, "question")
    l2 = row.text("l2_category", "")
    return Entry(
        id=name,
        parts=(*images, Text(words)),
        answers=(right_letter(row, choices),),
        choices=choices,
        category=f"{row.text('category', '')}/{l2}" if l2 else row.text("category", ""),
        instruction=LETTER,
    )
