"""SimpleVQA: short factual questions about a picture, half in Chinese and half in English, graded by a judge."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from memharness.benchmark import BenchmarkCard, ScoreRow
from memharness.choiceqa import ChoiceBenchmark, Entry
from memharness.choicerows import data_files, pictured_rows
from memharness.config import Config, option
from memharness.datafile import Ids, Row
from memharness.judging import Judge
from memharness.metric import Metric
from memharness.scoring.choice import after_thinking
from memharness.scoring.choice_metrics import failure, thinking_score
from memharness.scoring.text import gold_text
from memharness.types import Asked, Asset, Image, Score, Status, Text

SUBSETS = {"test": ("test.parquet", "data/test-*.parquet", "SimpleVQA.tsv", "simpleVQA_final_modified.json")}
RUBRIC = "simplevqa.v1"
SHORT = "Answer with a short phrase."
SHARES = {"co": "is_correct", "in": "is_incorrect", "na": "is_not_attempted"}
"""What the official report calls the judge's three labels."""

# EvalAI's answer processor: words it writes with apostrophes where one apostrophe is missing. Two of its entries change
# nothing, one goes the wrong way round ("somebody'd"), and those with a capital I never match: kept so.
_CONTRACTED = re.findall(
    r"\S+",
    """
    ain't aren't can't could've couldn't couldn't've didn't doesn't don't hadn't hadn't've hasn't haven't he'd he'd've
    he's how'd how'll how's isn't it'd it'd've it'll ma'am mightn't mightn't've might've mustn't must've needn't not've
    o'clock oughtn't 'ow's'at shan't she'd've should've shouldn't shouldn't've somebody'd've somebody'll somebody's
    someone'd someone'd've someone'll someone's something'd something'd've something'll that's there'd there'd've
    there're there's they'd they'd've they'll they're they've 'twas wasn't we'd've we've weren't what'll what're what's
    what've when's where'd where's where've who'd who'd've who'll who's who've why'll why're why's won't would've
    wouldn't wouldn't've y'all y'all'll y'all'd've you'd you'd've you'll you're you've
    """,
)
_CONTRACTIONS = {
    word[:place] + word[place + 1 :]: word for word in _CONTRACTED for place, mark in enumerate(word) if mark == "'"
} | {"somebody'd": "somebodyd"}
_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_DIGITS = {"none": "0"} | {word: str(number) for number, word in enumerate(_NUMBERS)}
_MARKS = ';/[]"{}()=+\\_-><@`!'
_PERIOD = re.compile(r"\.(?!\d)")
PERIODS = 32
"""Periods that the original deletes: it passes a flag where a count belongs."""


def evalai(text: str) -> str:
    """Normalise as EvalAI's answer processor, which lmms-eval compares SimpleVQA by (vqa_eval_metric.py).

    Lower case; commas and question marks deleted; `'s` a word of its own; a mark deleted where a space stands beside it
    anywhere in the text, else made a space; periods deleted unless a digit follows; number words to ten as digits; a,
    an and the dropped; apostrophes put back into contractions.
    """
    said = text.lower().replace(",", "").replace("?", "").replace("'s", " 's").strip()
    said = said.replace("\n", " ").replace("\t", " ").strip()
    before = said
    for mark in _MARKS:
        beside = f"{mark} " in before or f" {mark}" in before
        said = said.replace(mark, "" if beside else " ")
    words = (_DIGITS.get(word, word) for word in _PERIOD.sub("", said, count=PERIODS).split())
    return " ".join(_CONTRACTIONS.get(word, word) for word in words if word not in ("a", "an", "the"))


class SimpleVQAOptions(Config):
    """Toggles of SimpleVQA."""

    short: bool = option(
        True,
        "Ask for a short phrase, without which exact match says little. Off asks the question alone.",
        source="lmms-eval (simplevqa); VLMEvalKit asks the question alone",
    )


@dataclass(frozen=True)
class SimpleVQAMatch(Metric):
    """The figure that needs no judge: `exact_match` after EvalAI's normalisation (lmms-eval), and `unclosed_thinking`.

    An answer that is empty, or whose thinking never ends, is status `unparsed` and counts 0.
    """

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Score one question."""
        return {"exact_match": _match(unit[0]), "unclosed_thinking": thinking_score(unit[0])}


def _match(asked: Asked) -> Score:
    if failed := failure(asked):
        return failed
    said = after_thinking(asked.record.answer or "")
    if said is None or not said.strip():
        return Score(0.0, Status.UNPARSED, "its thinking never ends" if said is None else "the answer is empty")
    return Score(float(any(evalai(said) == evalai(gold) for gold in asked.gold.answers)))


class SimpleVQA(ChoiceBenchmark):
    """Each question is a context of its own, with one picture and a free answer."""

    card = BenchmarkCard(
        name="simplevqa",
        title="SimpleVQA",
        paper="Cheng et al., ICCV 2025, arXiv:2502.13059",
        licence="Apache-2.0 (repository and data card)",
        source="https://huggingface.co/datasets/m-a-p/SimpleVQA; TSV form: opencompass.openxlab.space/utils/VLMEval",
        revision="m-a-p/SimpleVQA, main: no revision is pinned; the data is held to the digest of the first download",
        version=1,
        splits={"test": "all questions"},
        counts={"questions": 2025, "questions in mirrors": 2024},
        cluster="none: each question has its own picture",
        primary="co",
        assets=(Asset("https://huggingface.co/datasets/m-a-p/SimpleVQA/resolve/main/test.parquet", "test.parquet"),),
        errata=(
            "scores co, in and na are the judge's labels (--judge): shares of all questions, and the report makes "
            "accuracy_given_attempted (CGA = CO/(CO+IN)) and f1 (2·CGA·CO/(CGA+CO)) of them",
            "in VLMEvalKit a judge's reply that cannot be read is in none of the three shares; here it is "
            "`judge_error`, a question that failed is `failed`, and the five shares sum to 1. Nothing is rounded",
            "the official judge is one hosted model with a Chinese prompt at temperature 1; the rubric here is worded "
            "by memharness, so a figure is only comparable with the same judge and rubric",
            "lmms-eval has no judge and compares after EvalAI's normalisation: that is `exact_match`, another figure",
            "the release counts 2,025 questions, some mirrors 2,024",
        ),
        images=True,
        prompt="direct.v1",
        steps=("the JSON form names pictures that lie in simpleVQA_datasets.zip of the same source: unpack it beside",),
    )
    options_class = SimpleVQAOptions
    options: SimpleVQAOptions

    def entries(self, subset: str | None) -> Iterator[Entry]:
        """The questions in file order; ids are `data_id`, in the TSV form `index`."""
        met = Ids()
        for path in data_files("simplevqa", self.data.path, subset, SUBSETS):
            for row, images in pictured_rows(path, self.data.media, "question", "answer"):
                field = "data_id" if row.has("data_id") else "index"
                name = str(row.values.get(field) if row.has(field) else "").strip()
                if not name:
                    raise row.error(field, "is missing")
                met.add(name, row, field)
                yield self._entry(Row(row.values, f"{row.where} ({field} {name})"), name, images)

    def _entry(self, row: Row, name: str, images: tuple[Image, ...]) -> Entry:
        try:
            answer = (gold_text(row.values.get("answer")) or "").strip()
        except TypeError as error:
            raise row.error("answer", str(error)) from None
        if not answer:
            raise row.error("answer", "is missing", "a question without an answer cannot be graded")
        return Entry(
            id=name,
            parts=(*images, Text(row.text("question"))),
            answers=(answer,),
            category=f"{row.text('language', '')}/{row.text('vqa_category', '')}",
            instruction=SHORT if self.options.short else "",
        )

    def metrics(self) -> Sequence[Metric]:
        """The judge's three labels, and exact match, which needs no judge."""
        return (Judge(RUBRIC), SimpleVQAMatch())

    def report(self, rows: Iterable[ScoreRow]) -> Mapping[str, float]:
        """Official keys, if there was a judge; `exact_match`; each also by language (`f1.CN`)."""
        groups: dict[str, list[ScoreRow]] = {}
        for row in rows:
            language = row.category.partition("/")[0]
            for name in ("", f".{language}") if language else ("",):
                groups.setdefault(name, []).append(row)
        return {f"{key}{name}": value for name, group in groups.items() for key, value in figures(group).items()}


def figures(rows: Sequence[ScoreRow]) -> dict[str, float]:
    """The official figures of some questions; shares are of all of them and sum to 1."""
    found: dict[str, float] = {}
    judged = [row for row in rows if "co" in row.scores]
    if judged:
        n = len(judged)
        labels = {key: sum(row.scores[name].value or 0.0 for row in judged) / n for name, key in SHARES.items()}
        unread = [row.scores["co"] for row in judged if row.scores["co"].value is None]
        errors = sum(score.status is Status.JUDGE_ERROR for score in unread)
        right, attempted = labels["is_correct"], labels["is_correct"] + labels["is_incorrect"]
        given = right / attempted if attempted else 0.0
        found = {
            **labels,
            "judge_error": errors / n,
            "failed": (len(unread) - errors) / n,
            "is_given_attempted": attempted,
            "accuracy_given_attempted": given,
            "f1": 2 * given * right / (given + right) if given + right else 0.0,
        }
    matched = [row.scores["exact_match"].value or 0.0 for row in rows if "exact_match" in row.scores]
    return found | ({"exact_match": sum(matched) / len(matched)} if matched else {})
