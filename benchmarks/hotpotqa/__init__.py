"""HotpotQA: two-hop questions, each over its own ten paragraphs, with supporting facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar

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
    Readout,
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
    """One published question: paragraphs are (title, sentences), sentences as published, with their leading space.

    `more` is what a benchmark of this form has besides.
    """

    id: str
    question: str
    answer: str
    facts: tuple[Fact, ...]
    paragraphs: tuple[tuple[str, tuple[str, ...]], ...]
    type: str
    level: str
    where: str
    more: Any = None

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
        return {name: _figure(value) for name, value in values.items()}


_figure = lru_cache(maxsize=1024)(Score)
"""A score without a note: thousands of questions share a few dozen figures, each made once."""


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
        assets=tuple(
            Asset(f"http://curtis.ml.cmu.edu/datasets/hotpot/{FILES[split]}", FILES[split])
            for split in ("distractor", "fullwiki")
        ),
        errata=(
            "some supporting facts name a sentence or a title that the context does not hold: they stay in the gold, "
            "as in the official evaluator, and `data check` counts them",
            "fullwiki files are at times published as distractor ones: `data check` says which it is",
            "some contexts hold fewer than 10 paragraphs: Recall@k does not apply where k covers them all",
        ),
    )
    options_class: ClassVar[type[Config]] = HotpotQAOptions
    options: Any
    files: ClassVar[Mapping[str, str]] = FILES
    sizes: ClassVar[Mapping[str, int]] = SIZES

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
            UserError: for an unknown subset, or one of a single file, which may be of another.
            DataError: if the folder holds no such file, or several and no subset chooses.
        """
        path, subset, files = self.root, self._subset, self.files
        if subset is not None and subset not in files:
            hint = did_you_mean(subset, files)
            raise UserError(f"subset {subset!r}: {self.card.name} has {', '.join(files)}{hint}")
        if subset is not None:
            if path.is_file():
                raise UserError(f"subset {subset!r}: {path} is one file; name the folder it lies in, or no subset")
            return path / files[subset]
        if not path.is_dir():
            return path
        found = self.held()
        official = path / next(iter(files.values()))
        if official in found:
            return official
        if len(found) != 1:
            names = ", ".join(file.name for file in found) or "none"
            raise DataError(f"{path}: expected one {self.card.title} file, found {names}; name the file with --data")
        return found[0]

    @cached_property
    def root(self) -> Path:
        """The file named, or the folder of the official files: the one named, or the one in it, as an archive makes."""
        path = self.data.path
        folders = [path, *filter(Path.is_dir, sorted(path.iterdir()))] if path.is_dir() else []
        return next((one for one in folders if any((one / name).is_file() for name in self.files.values())), path)

    def held(self) -> list[Path]:
        """The files of the folder that may hold questions."""
        return list(files_in(self.root, *SUFFIXES))

    def episode(self, context: str) -> Recorded:
        """The paragraphs of one question, then the question."""
        entry = self.entries()[context]
        return Recorded(context, items(entry), (self.case(entry),))

    def case(self, entry: Entry) -> Case:
        """The question of an entry, and its gold."""
        return case(entry)

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

    def gold_answer(self, case: Case) -> Answer:
        """The answer with its facts, also those that the context does not hold."""
        extra = {"sp": case.gold.extra["facts"]}
        return Answer(case.gold.answers[0], readout=Readout(case.gold.evidence), extra=extra)

    def predictions(self, path: Path) -> Iterable[tuple[str, Answer]]:
        """Answers from the official form `{"answer": {id: text}, "sp": {id: [[title, sentence]]}}`.

        An id in only one of the two is an answer without facts, or facts without an answer; both are scored.
        """
        file = Row(mapping(read_json(path), path), str(path))
        answers, facts = file.row("answer"), file.row("sp") if file.has("sp") else Row({}, f"{path}: sp")
        for name in dict.fromkeys((*answers.values, *facts.values)):
            text = answers.text(name, "") if name in answers.values else None
            yield name, Answer(text, extra={"sp": pairs(facts, name)} if name in facts.values else {})

    def check(self) -> Sequence[Finding]:
        """Counts, supporting facts that do not resolve, repeated titles, paragraphs without a sentence."""
        try:
            entries = list(self.entries().values())
        except DataError as error:
            return [Finding("error", str(self.data.path), str(error))]
        where = str(self.file())
        return [*_findings(where, entries, self.sizes), *self.remarks(where, entries)]

    def remarks(self, where: str, entries: Sequence[Entry]) -> Iterable[Finding]:
        """Which setting the data are of: in the distractor one the context holds every title of a supporting fact."""
        if any(_lost(entry) for entry in entries):
            yield Finding("warning", where, "this is fullwiki data, not distractor: its contexts lack gold paragraphs")
        else:
            yield Finding("info", where, "distractor data: each context holds all titles of its supporting facts")

    def digest(self) -> Any:
        """Digest of the file named, or of each data file in the folder named, since a subset may choose any of them."""
        files = self.held() if self.root.is_dir() else (self.root,)
        return {file.name: self.data.media.digest(existing(file)) for file in files}


def read_entries(path: Path, more: Callable[[Row], Any] = lambda row: None) -> list[Entry]:
    """The questions of a file in the official list form or the Hugging Face column form (JSON, JSON lines, parquet).

    Args:
        path: the file.
        more: reads what `Entry.more` is to hold.

    Raises:
        DataError: for a missing or mistyped field, a repeated id, an empty context or a question without an answer.
    """
    rows = read_records(path)
    if not rows:
        raise DataError(f"{path}: holds no question; fetch the file again")
    entries = [_entry(row, more) for row in rows]
    refuse_repeats(((entry.id, row) for entry, row in zip(entries, rows, strict=True)), "_id")
    return entries


def _entry(row: Row, more: Callable[[Row], Any]) -> Entry:
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
        more(row),
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
        joined = _zipped(columns, "sent_id", columns.texts("title"), columns.values.get("sent_id"))
        row = Row({**row.values, "supporting_facts": [list(pair) for pair in joined]}, row.where)
    return tuple((title, number) for title, number in pairs(row, "supporting_facts"))


def _zipped(row: Row, field: str, names: Sequence[str], values: object) -> Iterable[tuple[str, Any]]:
    if not isinstance(values, list) or len(values) != len(names):
        raise row.error(field, "must be a list as long as title")
    return zip(names, values, strict=True)


def pairs(row: Row, field: str) -> list[list[Any]]:
    """A field of `[title, sentence number]` pairs."""
    value = row.values.get(field)
    if not isinstance(value, list):
        raise row.error(field, f"must be a list of [title, sentence], not {kind(value)}")
    for place, pair in enumerate(value):
        whole = isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) and type(pair[1]) is int
        if not whole:
            raise row.error(f"{field}[{place}]", "must be [title, sentence number]")
    return value


def mapping(value: object, path: Path) -> dict[str, Any]:
    """The value, if it is a mapping, as an official prediction file is."""
    if not isinstance(value, dict):
        form = '{"answer": {id: text}, "sp": {id: [[title, sentence]]}}'
        raise DataError(f"{path}: must be {form}, not {kind(value)}")
    return value


def items(entry: Entry) -> tuple[Item, ...]:
    """An entry's paragraphs, each with its sentences as parts."""
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


def case(entry: Entry) -> Case:
    """The question of an entry, and its gold."""
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


def _lost(entry: Entry) -> list[Fact]:
    """Supporting facts whose title is not in the context."""
    titles = {title for title, _ in entry.paragraphs}
    return [fact for fact in entry.facts if fact[0] not in titles]


def _findings(where: str, entries: Sequence[Entry], sizes: Mapping[str, int]) -> Iterable[Finding]:
    splits = [name for name, size in sizes.items() if size == len(entries)]
    whole = f"as many as {' and '.join(splits)} have" if splits else "a part of the release"
    yield Finding("info", where, f"{len(entries):,} questions: {whole}")
    lost = [(entry, fact) for entry in entries for fact in _lost(entry)]
    if lost:
        questions = len({entry.id for entry, _ in lost})
        said = f"{len(lost)} supporting facts of {questions} questions name a title that is not in the context"
        yield Finding("warning", where, f"{said}; they stay in the gold, as officially")
    for fault, found in (
        ("supporting facts name a sentence that their paragraph lacks", _beyond),
        ("contexts hold two paragraphs of one title (facts go to the first)", _twice),
        ("contexts hold a paragraph without a sentence", _empty),
    ):
        named = [f"{entry.id} ({what})" for entry in entries for what in found(entry)]
        if named:
            yield Finding("warning", where, f"{len(named)} {fault}, such as {named[0]}")


def _beyond(entry: Entry) -> list[str]:
    lost = _lost(entry)
    return [f"{fact[0]!r} {fact[1]}" for fact in entry.facts if fact not in lost and entry.place(fact) is None]


def _twice(entry: Entry) -> list[str]:
    titles = Counter(title for title, _ in entry.paragraphs)
    return [", ".join(repr(title) for title, n in titles.items() if n > 1)] if len(titles) < titles.total() else []


def _empty(entry: Entry) -> list[str]:
    return [repr(title) for title, lines in entry.paragraphs if not lines][:1]
