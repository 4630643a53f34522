"""HotpotQA: two-hop questions, each over its own ten paragraphs, with supporting facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memharness.benchmark import Benchmark, BenchmarkCard, Recorded, ScoreRow
from memharness.config import Config
from memharness.datafile import Row, existing, files_in, kind, read_json, read_records, refuse_repeats
from memharness.identity import opaque_id
from memharness.metric import Metric
from memharness.scoring.facts import hotpot_scores
from memharness.scoring.metrics import AnswerLength, Recall, RecallReadout, backed
from memharness.scoring.text import gold_text
from memharness.types import (
    Answer,
    Asked,
    Asset,
    Case,
    DataError,
    Evidence,
    Finding,
    Gold,
    Item,
    Outcome,
    Question,
    Score,
    Status,
    Text,
    UserError,
    did_you_mean,
)

FILES = {
    "distractor": "hotpot_dev_distractor_v1.json",
    "fullwiki": "hotpot_dev_fullwiki_v1.json",
    "train": "hotpot_train_v1.1.json",
}
"""The official file of each split."""
SIZES = {"distractor": 7405, "fullwiki": 7405, "train": 90447}
"""Questions of each split."""
SUFFIXES = (".json", ".jsonl", ".parquet")

Fact = tuple[str, int]
"""A supporting fact: the paragraph's title and the sentence's index, from 0."""


class HotpotQAOptions(Config):
    """HotpotQA has no toggles: its questions carry no instruction and its evaluator has no variants."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One published question: paragraphs are (title, sentences), sentences as published, with their leading space."""

    id: str
    question: str
    answer: str
    facts: tuple[Fact, ...]
    paragraphs: tuple[tuple[str, tuple[str, ...]], ...]
    type: str
    level: str
    where: str

    @property
    def context(self) -> str:
        """The id of the question's own memory."""
        return opaque_id("hotpotqa", self.id)

    def place(self, fact: Fact) -> Evidence | None:
        """The sentence a fact names, as evidence; None if these paragraphs do not hold it."""
        title, sentence = fact
        for index, (name, sentences) in enumerate(self.paragraphs):
            if name == title and 0 <= sentence < len(sentences):
                return Evidence(item_id(index), part=sentence)
        return None


def item_id(index: int) -> str:
    """The id of a paragraph by its position, which says nothing about whether it is a supporting one."""
    return f"p{index}"


@dataclass(frozen=True)
class HotpotQAScores(Metric):
    """The official twelve in one pass: em f1 prec recall, sp_* of supporting facts, joint_* (hotpot_evaluate_v1.py).

    Supporting facts are the answer's own `extra["sp"]` if it has them; otherwise they are read off the readout, where
    evidence without a part means every sentence of its paragraph. A missing answer or missing facts are 0 in the mean
    over all questions.
    """

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Score one question under the official keys."""
        asked = unit[0]
        extra = asked.gold.extra
        values = hotpot_scores(asked.record.answer, stated_facts(asked), asked.gold.answers[0], extra["facts"])
        return {name: Score(value) for name, value in values.items()}


def stated_facts(asked: Asked) -> list[tuple[Any, ...]] | None:
    """The supporting facts an answer states; None if it states none and no readout stands behind it."""
    record = asked.record
    if record.extra.get("sp") is not None:
        return [tuple(fact) for fact in record.extra["sp"]]
    if record.evidence is None or record.outcome is not Outcome.OK:
        return None
    paragraphs: Mapping[str, Sequence[Any]] = asked.gold.extra["paragraphs"]
    stated: list[tuple[Any, ...]] = []
    for evidence in record.evidence:
        if evidence.item in paragraphs:
            title, length = paragraphs[evidence.item]
            stated += [(title, n) for n in (range(length) if evidence.part is None else (evidence.part,))]
    return stated


class HotpotQA(Benchmark):
    """Each question is a context of its own: its paragraphs are the items, its sentences their parts."""

    card = BenchmarkCard(
        name="hotpotqa",
        title="HotpotQA",
        paper="Yang et al., EMNLP 2018, arXiv:1809.09600",
        licence="CC BY-SA 4.0 (data), Apache-2.0 (official evaluator)",
        source="https://hotpotqa.github.io, evaluator github.com/hotpotqa/hotpot",
        revision="files v1 (dev) and v1.1 (train); evaluator hotpot_evaluate_v1.py @ 3635853",
        version=1,
        splits={
            "distractor": "dev questions, 2 gold paragraphs among 10",
            "fullwiki": "dev questions, retrieved paragraphs that often lack the gold ones",
            "train": "training questions in the distractor setting",
        },
        counts=SIZES,
        cluster="none: each question has its own paragraphs",
        primary="joint_f1",
        assets=(Asset(f"http://curtis.ml.cmu.edu/datasets/hotpot/{FILES['distractor']}", FILES["distractor"]),),
        errata=(
            "some supporting facts name a sentence or a title that the context does not hold: they stay in the gold, "
            "as in the official evaluator, and `data check` counts them",
            "fullwiki files are at times published as distractor ones: `data check` says which it is",
            "some contexts hold fewer than 10 paragraphs: Recall@k does not apply where k covers them all",
        ),
    )
    options_class = HotpotQAOptions
    options: HotpotQAOptions

    _subset: str | None = None
    _entries: dict[str, Entry] | None = None

    def contexts(self, subset: str | None = None) -> Sequence[str]:
        """One context a question, in file order. `subset` is a split, when the data is a folder of official files."""
        if subset != self._subset:
            self._subset, self._entries = subset, None
        return list(self.entries())

    def entries(self) -> Mapping[str, Entry]:
        """The questions by context id, read once.

        Raises:
            DataError: for a file that is not as published.
        """
        if self._entries is None:
            self._entries = {entry.context: entry for entry in read_entries(self.file())}
        return self._entries

    def file(self) -> Path:
        """The file to read: the one named, or the official one of the subset in the folder named.

        Raises:
            UserError: for an unknown subset.
            DataError: if the folder holds no such file, or several and no subset chooses.
        """
        path, subset = self.data.path, self._subset
        if subset is not None and subset not in FILES:
            raise UserError(f"subset {subset!r}: hotpotqa has {', '.join(FILES)}{did_you_mean(subset, FILES)}")
        if not path.is_dir():
            return path
        if subset is not None:
            return path / FILES[subset]
        found = list(files_in(path, *SUFFIXES))
        official = path / FILES["distractor"]
        if official in found:
            return official
        if len(found) != 1:
            names = ", ".join(file.name for file in found) or "none"
            raise DataError(f"{path}: expected one HotpotQA file, found {names}; name the file with --data")
        return found[0]

    def episode(self, context: str) -> Recorded:
        """The paragraphs of one question, then the question."""
        entry = self.entries()[context]
        return Recorded(context, _items(entry), (_case(entry),))

    def metrics(self) -> Sequence[Metric]:
        """The official twelve, then paragraph recall and answer length."""
        return (HotpotQAScores(), Recall(k=2), Recall(k=5), RecallReadout(), AnswerLength())

    def report(self, rows: Iterable[ScoreRow]) -> Mapping[str, float]:
        """Means over all questions under the official keys, without categories."""
        values: dict[str, list[float]] = {}
        for row in backed(rows):
            for name, score in row.scores.items():
                if score.status is not Status.NOT_APPLICABLE:
                    values.setdefault(name, []).append(score.value or 0.0)
        return {name: sum(scored) / len(scored) for name, scored in values.items()}

    def predictions(self, path: Path) -> Iterable[tuple[str, Answer]]:
        """Answers from the official form `{"answer": {id: text}, "sp": {id: [[title, sentence]]}}`.

        An id in only one of the two is an answer without facts, or facts without an answer; both are scored.
        """
        file = Row(_mapping(read_json(path), path), str(path))
        answers, facts = file.row("answer"), file.row("sp") if file.has("sp") else Row({}, f"{path}: sp")
        for name in dict.fromkeys((*answers.values, *facts.values)):
            text = answers.text(name, "") if name in answers.values else None
            yield name, Answer(text, extra={"sp": _pairs(facts, name)} if name in facts.values else {})

    def check(self) -> Sequence[Finding]:
        """Counts, supporting facts that do not resolve, repeated titles, paragraphs without a sentence."""
        try:
            entries = list(self.entries().values())
        except DataError as error:
            return [Finding("error", str(self.data.path), str(error))]
        return list(_findings(str(self.file()), entries))

    def digest(self) -> Any:
        """Digest of the file named, or of each data file in the folder named, since a subset may choose any of them."""
        path = self.data.path
        files = files_in(path, *SUFFIXES) if path.is_dir() else (path,)
        return {file.name: self.data.media.digest(existing(file)) for file in files}


def read_entries(path: Path) -> list[Entry]:
    """The questions of a file in the official list form or the Hugging Face column form (JSON, JSON lines, parquet).

    Raises:
        DataError: for a missing or mistyped field, a repeated id, an empty context or a question without an answer.
    """
    rows = read_records(path)
    if not rows:
        raise DataError(f"{path}: holds no question; fetch the file again")
    entries = [_entry(row) for row in rows]
    refuse_repeats(((entry.id, row) for entry, row in zip(entries, rows, strict=True)), "_id")
    return entries


def _entry(row: Row) -> Entry:
    name = row.text("_id" if row.has("_id") or not row.has("id") else "id")
    row = Row(row.values, f"{row.where} ({name})")
    try:
        answer = gold_text(row.values.get("answer"))
    except TypeError as error:
        raise row.error("answer", str(error)) from None
    if not answer or not answer.strip():
        raise row.error("answer", "is missing or empty", "use a split whose answers are public (train, dev)")
    paragraphs = _paragraphs(row)
    if not paragraphs:
        raise row.error("context", "is empty", "a question needs at least one paragraph; fetch the file again")
    return Entry(
        name,
        row.text("question"),
        answer,
        _facts(row),
        paragraphs,
        row.text("type", ""),
        row.text("level", ""),
        row.where,
    )


def _paragraphs(row: Row) -> tuple[tuple[str, tuple[str, ...]], ...]:
    value = row.values.get("context")
    if isinstance(value, dict):
        columns = row.row("context")
        titles, sentences = columns.texts("title"), columns.values.get("sentences")
        value = [list(pair) for pair in _zipped(columns, "sentences", titles, sentences)]
    if not isinstance(value, list):
        raise row.error("context", f"must be a list of [title, sentences], not {kind(value)}")
    paragraphs = []
    for place, pair in enumerate(value):
        if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], list)):
            raise row.error(f"context[{place}]", "must be [title, [sentence, …]]")
        if not all(isinstance(sentence, str) for sentence in pair[1]):
            raise row.error(f"context[{place}]", "holds a sentence that is not text")
        paragraphs.append((pair[0], tuple(pair[1])))
    return tuple(paragraphs)


def _facts(row: Row) -> tuple[Fact, ...]:
    value = row.values.get("supporting_facts")
    if isinstance(value, dict):
        columns = row.row("supporting_facts")
        pairs = list(_zipped(columns, "sent_id", columns.texts("title"), columns.values.get("sent_id")))
        row = Row({**row.values, "supporting_facts": [list(pair) for pair in pairs]}, row.where)
    return tuple((title, number) for title, number in _pairs(row, "supporting_facts"))


def _zipped(row: Row, field: str, names: Sequence[str], values: object) -> Iterable[tuple[str, Any]]:
    if not isinstance(values, list) or len(values) != len(names):
        raise row.error(field, "must be a list as long as title")
    return zip(names, values, strict=True)


def _pairs(row: Row, field: str) -> list[list[Any]]:
    value = row.values.get(field)
    if not isinstance(value, list):
        raise row.error(field, f"must be a list of [title, sentence], not {kind(value)}")
    for place, pair in enumerate(value):
        whole = isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) and type(pair[1]) is int
        if not whole:
            raise row.error(f"{field}[{place}]", "must be [title, sentence number]")
    return value


def _mapping(value: object, path: Path) -> dict[str, Any]:
    if not isinstance(value, dict):
        form = '{"answer": {id: text}, "sp": {id: [[title, sentence]]}}'
        raise DataError(f"{path}: must be {form}, not {kind(value)}")
    return value


def _items(entry: Entry) -> tuple[Item, ...]:
    return tuple(
        Item(
            id=item_id(index),
            context=entry.context,
            order=index,
            parts=tuple(map(Text, sentences)),
            kind="paragraph",
            label=title,
            keys={"title": title},
        )
        for index, (title, sentences) in enumerate(entry.paragraphs)
    )


def _case(entry: Entry) -> Case:
    question = Question(opaque_id("hotpotqa", entry.context, 0), entry.context, (Text(entry.question),))
    placed = (entry.place(fact) for fact in dict.fromkeys(entry.facts))
    gold = Gold(
        answers=(entry.answer,),
        evidence=tuple(evidence for evidence in placed if evidence is not None),
        category=entry.type,
        native_id=entry.id,
        extra={
            "facts": [list(fact) for fact in entry.facts],
            "paragraphs": {item_id(n): [title, len(lines)] for n, (title, lines) in enumerate(entry.paragraphs)},
            "items": len(entry.paragraphs),
            "level": entry.level,
        },
    )
    return Case(question, gold)


def _findings(where: str, entries: Sequence[Entry]) -> Iterable[Finding]:
    split = next((name for name, size in SIZES.items() if size == len(entries)), None)
    size = f"{len(entries)} questions"
    whole = f"{size}: the size of the {split} split" if split else f"{size}: a part of the release"
    yield Finding("info", where, whole)
    yield from _unresolved(where, entries)
    for entry in entries:
        titles = Counter(title for title, _ in entry.paragraphs)
        for title in (title for title, n in titles.items() if n > 1):
            yield Finding("warning", entry.where, f"context: two paragraphs titled {title!r}; facts go to the first")
        if not all(lines for _, lines in entry.paragraphs):
            yield Finding("warning", entry.where, "context: a paragraph has no sentence")


def _unresolved(where: str, entries: Sequence[Entry]) -> Iterable[Finding]:
    """Facts whose title is not in the context (fullwiki), and facts whose sentence is not in the paragraph."""
    facts = [(entry, fact) for entry in entries for fact in entry.facts if entry.place(fact) is None]
    lost = [entry for entry, (title, _) in facts if title not in (name for name, _ in entry.paragraphs)]
    if lost:
        yield Finding(
            "warning",
            where,
            f"{len(lost)} supporting facts of {len({entry.id for entry in lost})} questions name a title that is "
            f"not in the context: this is fullwiki data, not distractor; they stay in the gold, as officially",
        )
    for entry, (title, sentence) in facts:
        if title in (name for name, _ in entry.paragraphs):
            yield Finding("warning", entry.where, f"supporting_facts: {title!r} has no sentence {sentence}")
