"""ATM-Bench: questions over one person's e-mails, photos and videos of several years."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from memharness.benchmark import Benchmark, BenchmarkCard, Recorded, ScoreRow, means
from memharness.benchmarks.atm.exact_match import deterministic_accuracy, list_jaccard
from memharness.config import Config, option
from memharness.datafile import Row, as_rows, read_json, read_lines, read_records, refuse_repeats
from memharness.identity import opaque_id
from memharness.judging import Judge
from memharness.metric import Judged, Metric
from memharness.scoring.metrics import (
    Abstained,
    AnswerLength,
    HitRate,
    Recall,
    RecallGold,
    RecallReadout,
    backed,
    not_applicable,
    readout_missing,
)
from memharness.scoring.recall import recall
from memharness.scoring.text import gold_text
from memharness.types import (
    Answer,
    Asked,
    Asset,
    Case,
    DataError,
    Derived,
    Evidence,
    Finding,
    Gold,
    Item,
    Part,
    Place,
    Question,
    Readout,
    Score,
    Status,
    Text,
    UserError,
    did_you_mean,
)

if TYPE_CHECKING:
    from memharness.reader import Reply, Request

NUMBER, LIST, OPEN = "number", "list_recall", "open_end"
TYPES = (NUMBER, LIST, OPEN)
POOLS = {f"niah{size}": size for size in (25, 50, 100, 200)}
SUBSETS = ("main", "hard", "all", *POOLS)
COUNTS = {
    "emails": 6742,
    "images": 3759,
    "videos": 533,
    "main questions": 1013,
    "hard questions": 31,
}
CUTS = (1, 5, 10, 25, 50, 100)
INSTRUCTION = (
    "Answer from the stored memories alone and give only the answer. If they do not support one, reply Unknown. If you "
    "are asked to find or list e-mails, photos or videos, reply with their ids alone, separated by commas."
)
"""To the effect of the official answer contract; the same for every question, so it tells no category."""
ABSTENTIONS = "unknown|no information|not available|no evidence|insufficient information"
DERIVED = {"short_caption": "short_caption", "caption": "caption", "ocr_text": "ocr"}
"""Machine-made fields of a picture or video, and the kind of derived text each becomes."""

_STEM = re.compile(r"(\d{4})(\d\d)(\d\d)_(\d\d)(\d\d)(\d\d)")
_ID = re.compile(r"\d{8}_\d{6}\S*|email\d+", re.IGNORECASE)
_FIGURE = re.compile(
    r"\d|\b(?:january|february|march|april|may|june|july|august|september|october|november|december|noon|midnight"
    r"|am|pm|gbp|usd|eur|pounds?|dollars?|euros?|hours?|minutes?|days?|weeks?|months?|years?|times?)\b",
    re.IGNORECASE,
)


class ATMOptions(Config):
    """Toggles of ATM-Bench."""

    verdict: Literal["strict", "official"] = option(
        "strict",
        "How the judge's reply is read: its JSON alone, or officially, where a reply that is not JSON and holds "
        "`accurate`, `correct`, `matches`, `true` or `yes` anywhere counts as right.",
        source="memharness; `official`: memqa/utils/evaluator",
    )
    instruction: bool = option(
        True, "Give every question the official answer contract.", source="official answer contract (memqa)"
    )


@dataclass(frozen=True)
class ATMScores(Metric):
    """The official scores that need no judge, in one pass.

    `em`: the evaluator's deterministic accuracy, on all questions. `jaccard`: of the ids, on list questions.
    `qs_closed`: the question-type score of number (em) and list questions (jaccard), never of open ones; it is not QS.
    """

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Score one question."""
        asked = unit[0]
        said, gold, kind = asked.record.answer, asked.gold.answers[0], asked.gold.category
        em = Score(0.0 if said is None else float(deterministic_accuracy(gold, said, asked.question.text())))
        jaccard = (
            Score(0.0 if said is None else list_jaccard(gold, said)) if kind == LIST else not_applicable("no list")
        )
        closed = {NUMBER: em, LIST: jaccard}.get(kind, not_applicable("open question: a judge must say"))
        return {"em": em, "jaccard": jaccard, "qs_closed": closed}


@dataclass(frozen=True)
class ATMQuestionScore(Judged):
    """The official question-type score `qs`, and `joint_strict@k` and `joint_partial@k` of it with recall.

    Number questions score em, list questions the Jaccard index, open ones the judge's verdict. Joint scores are over
    questions with evidence; as officially, any score above 0 counts as correct in them (joint_accuracy.py).

    Attributes:
        verdict: `strict` or `official`, how the judge's reply is read.
    """

    verdict: Literal["strict", "official"] = "strict"
    rubric: ClassVar[str] = "atm.v1"
    cuts: ClassVar[tuple[int, ...]] = (5, 10)

    @property
    def judge(self) -> Judge:
        """What judges open questions."""
        return Judge(self.rubric, self.verdict)

    @property
    def key(self) -> Mapping[str, str]:
        """The judge's."""
        return self.judge.key

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Scores of number and list questions and of missing answers; none if the judge must say."""
        asked = unit[0]
        if asked.record.answer is None:
            return self._scores(asked, Score(0.0))
        if asked.gold.category == OPEN:
            return {}
        return self._scores(asked, ATMScores().score(unit, facts)["qs_closed"])

    def ask(self, unit: Sequence[Asked]) -> Request:
        """The rubric, then question, reference and answer."""
        return self.judge.ask(unit)

    def ask_in_words(self, unit: Sequence[Asked]) -> Request:
        """The same without a schema."""
        return self.judge.ask_in_words(unit)

    def read(self, unit: Sequence[Asked], reply: Reply) -> Mapping[str, Score]:
        """The verdict; a reply without one is a judge error under `strict`."""
        (verdict,) = self.judge.read(unit, reply).values()
        return self._scores(unit[0], verdict)

    def _scores(self, asked: Asked, qs: Score) -> Mapping[str, Score]:
        gold = [evidence.item for evidence in asked.gold.evidence]
        shown = [evidence.item for evidence in asked.record.evidence or ()]
        barred = readout_missing(asked) or (qs if qs.status is Status.JUDGE_ERROR else None)
        if not gold:
            barred = not_applicable("no gold")
        scores = {"qs": qs}
        for k in self.cuts:
            share = recall(shown, gold, k) or 0.0
            scores[f"joint_strict@{k}"] = barred or Score(float(bool(qs.value) and share == 1))
            scores[f"joint_partial@{k}"] = barred or Score(float(bool(qs.value)) * share)
        return scores


class ATMBench(Benchmark):
    """One memory of e-mails, photos and videos in order of time; all questions are asked over it.

    In a needle-in-a-haystack subset each question has a memory of its own, its published pool.
    """

    card = BenchmarkCard(
        name="atm",
        title="ATM-Bench",
        paper="arXiv:2603.01990",
        licence="CC BY-NC 4.0 (data), MIT (official code)",
        source="https://huggingface.co/datasets/Jingbiao/ATM-Bench, code github.com/JingbiaoMei/ATM-Bench",
        revision="78e826dc07e97466b2f54443831ef9a83ab8b27c",
        version=1,
        splits={
            "main": "1,013 questions over the whole archive (the default)",
            "hard": "31 hard questions over the whole archive",
            "all": "main and hard questions over one memory",
            "niah25 niah50 niah100 niah200": "the hard questions, each over its own pool of that many items",
        },
        counts=COUNTS,
        cluster="none: one person's archive; questions on the same evidence are not marked",
        primary="em",
        assets=(Asset("hf://datasets/Jingbiao/ATM-Bench@78e826dc07e97466b2f54443831ef9a83ab8b27c", ""),),
        errata=(
            "the paper counts 6,741 e-mails and 25 hard questions, the release 6,742 and 31",
            "recall is over the questions with evidence, as officially; recall@10_all is over all",
            "docs/metrics.md calls Recall@k a hit rate; the official code, and this, compute the share of gold found",
            "the official EM accepts a text inside the other in either direction: it is no equality",
            "time stamps of videos are UTC and those of photos local: both take the local time in the file's name",
            "without a judge there is no qs: qs_closed covers number and list questions only",
        ),
        images=True,
    )
    options_class = ATMOptions
    options: ATMOptions

    _subset: str = "main"

    def contexts(self, subset: str | None = None) -> Sequence[str]:
        """One context, or one a question for `niah…`."""
        chosen = subset or "main"
        if chosen not in SUBSETS:
            raise UserError(f"subset {chosen!r}: atm has {', '.join(SUBSETS)}{did_you_mean(chosen, SUBSETS)}")
        if chosen != self._subset:
            self._subset = chosen
            self.__dict__.pop("episodes", None)
        return list(self.episodes)

    def episode(self, context: str) -> Recorded:
        """One context's episode."""
        return self.episodes[context]

    @cached_property
    def episodes(self) -> Mapping[str, Recorded]:
        """The episodes of the chosen subset by context, validated.

        Raises:
            DataError: for data that is not as published, evidence that names no item, or an unreadable picture.
        """
        subset = self._subset
        questions = self._questions(subset)
        if subset in POOLS:
            return {episode.context: episode for episode in (self._pool(subset, row) for _, row in questions)}
        items = [replace(item, context=subset) for item in self.items]
        known = frozenset(item.id for item in items)
        return {subset: Recorded(subset, items, [self._case(subset, split, row, known) for split, row in questions])}

    @cached_property
    def items(self) -> Sequence[Item]:
        """All items in order of time.

        Raises:
            DataError: for a missing or mistyped field, two items of one id, or no item at all.
        """
        pairs = [*self._emails(), *self._media("image"), *self._media("video")]
        if not pairs:
            raise DataError(
                f"{self.root}: no e-mail, photo or video; fetch raw_memory/email/emails.json and processed_memory/"
            )
        refuse_repeats(((item.id, row) for item, row in pairs), "id")
        items = sorted((item for item, _ in pairs), key=lambda item: (item.time or "", item.id))
        return [replace(item, order=order) for order, item in enumerate(items)]

    @cached_property
    def root(self) -> Path:
        """The folder that holds atm-bench/, raw_memory/ and processed_memory/: the one named, or data/ in it."""
        path = self.data.path
        for root in (path, path / "data"):
            if (root / "atm-bench").is_dir():
                return root
        raise DataError(f"{path}: holds no atm-bench/ or data/atm-bench/; name the folder as it was downloaded")

    def metrics(self) -> Sequence[Metric]:
        """The official ones; `ATMQuestionScore` needs a judge."""
        return (
            ATMScores(),
            ATMQuestionScore(self.options.verdict),
            *(Recall(k=k, abstentions=True) for k in CUTS),
            Recall(k=10, over_all=True),
            RecallGold(),
            HitRate(k=1, abstentions=True),
            RecallReadout(),
            Abstained(ABSTENTIONS),
            AnswerLength(),
        )

    def report(self, rows: Iterable[ScoreRow]) -> Mapping[str, float]:
        """Means over all questions, and by question type (`qs.number`)."""
        return means(backed(rows))

    def predictions(self, path: Path) -> Iterable[tuple[str, Answer]]:
        """Answers from the official JSON lines `{"id", "answer" or "prediction"}`.

        `retrieval_ids`, in the line or in a `retrieval_recall_details.json` beside the file, is the readout.
        """
        details = path.with_name("retrieval_recall_details.json")
        shown = {row.text("id"): row for row in as_rows(read_json(details), str(details))} if details.is_file() else {}
        rows = read_lines(path)
        refuse_repeats(((row.text("id"), row) for row in rows), "id")
        for row in rows:
            name = row.text("id")
            field = next((key for key in ("answer", "prediction") if key in row.values), None)
            if field is None:
                raise row.error("answer", "is missing, and so is prediction", 'give lines {"id", "answer"}')
            source = row if row.has("retrieval_ids") else shown.get(name)
            readout = Readout(tuple(map(Evidence, source.texts("retrieval_ids")))) if source else None
            yield name, Answer(row.text(field, "") if row.has(field) else None, readout=readout)

    def check(self) -> Sequence[Finding]:
        """Counts against the card, question types that had to be guessed, media that are not at hand."""
        try:
            items = self.items
            known = frozenset(item.id for item in items)
            splits = {
                split: self._questions(split) for split in SUBSETS if split != "all" and self._file(split).is_file()
            }
            for split, rows in splits.items():
                for _, row in rows:
                    if split in POOLS:
                        self._pool(split, row)
                    else:
                        self._case(split, split, row, known)
        except DataError as error:
            return [Finding("error", str(self.data.path), str(error))]
        named = {split: [row for _, row in rows] for split, rows in splits.items()}
        return list(_findings(str(self.root), items, named))

    def digest(self) -> Any:
        """Digests of the question and memory files and of the media at hand, by their published names."""
        questions = sorted((self.root / "atm-bench").rglob("*.json"))
        read = [path for path in (*questions, *self._sources().values()) if path.is_file()]
        files = {path.relative_to(self.root).as_posix(): self.data.media.digest(path) for path in read}
        media = (part for item in self.items for part in item.parts if not isinstance(part, Text))
        return files | {part.source: part.sha256 for part in media if part.sha256}

    def _sources(self) -> Mapping[str, Path]:
        processed = self.root / "processed_memory"
        return {
            "email": self.root / "raw_memory" / "email" / "emails.json",
            "image": processed / "image_batch_results.json",
            "video": processed / "video_batch_results.json",
        }

    def _splits(self, subset: str) -> tuple[str, ...]:
        return ("main", "hard") if subset == "all" else (subset,)

    def _file(self, split: str) -> Path:
        folder = self.root / "atm-bench"
        if split in POOLS:
            return folder / "niah" / f"atm-bench-hard-{split}.json"
        return folder / ("atm-bench.json" if split == "main" else "atm-bench-hard.json")

    def _questions(self, subset: str) -> list[tuple[str, Row]]:
        """The questions of a subset with their split."""
        found = []
        for split in self._splits(subset):
            rows = read_records(self._file(split), inside="qas")
            if not rows:
                raise DataError(f"{self._file(split)}: holds no question; fetch the file again")
            found += [(split, Row(row.values, f"{row.where} ({row.text('id')})")) for row in rows]
        refuse_repeats(((row.text("id"), row) for _, row in found), "id")
        return found

    def _rows(self, source: str) -> list[Row]:
        path = self._sources()[source]
        return read_records(path) if path.is_file() else []

    def _emails(self) -> Iterable[tuple[Item, Row]]:
        for row in self._rows("email"):
            name, summary = row.text("id"), row.text("short_summary", "")
            yield (
                Item(
                    id=name,
                    context="",
                    order=0,
                    parts=(Text(row.text("detail", "")),),
                    derived=(Derived("short_summary", summary, 0),) if summary.strip() else (),
                    time=_iso_time(row),
                    kind="email",
                    label=name,
                ),
                row,
            )

    def _media(self, kind: Literal["image", "video"]) -> Iterable[tuple[Item, Row]]:
        for row in self._rows(kind):
            file = PurePosixPath(row.text(f"{kind}_path").replace("\\", "/")).name
            name = PurePosixPath(file).stem
            if not name:
                raise row.error(f"{kind}_path", "names no file")
            yield (
                Item(
                    id=name,
                    context="",
                    order=0,
                    parts=(self._part(kind, file, row),),
                    derived=_derived(row),
                    time=_stem_time(name) or _iso_time(row),
                    place=_place(row),
                    kind=kind,
                    label=name,
                ),
                row,
            )

    def _part(self, kind: Literal["image", "video"], file: str, row: Row) -> Part:
        path, source = self.root / "raw_memory" / kind / file, f"raw_memory/{kind}/{file}"
        if kind == "image":
            return self.data.media.image(path, source, f"{row.where}: image_path")
        width, height = int(row.number("width", 0)), int(row.number("height", 0))
        return self.data.media.video(path, source, width=width, height=height, seconds=row.number("duration", 0.0))

    def _pool(self, subset: str, row: Row) -> Recorded:
        """One question over its own pool."""
        pool, context = frozenset(row.texts("niah_evidence_ids")), opaque_id("atm", subset, row.text("id"))
        unknown = sorted(pool - {item.id for item in self.items})
        if unknown:
            raise row.error("niah_evidence_ids", f"{unknown[0]!r} names no item", "fetch the release's memory files")
        if not pool:
            raise row.error("niah_evidence_ids", "is empty", "a context needs something to remember")
        chosen = [item for item in self.items if item.id in pool]
        items = [replace(item, context=context, order=order) for order, item in enumerate(chosen)]
        return Recorded(context, items, [self._case(context, subset, row, pool)])

    def _case(self, context: str, split: str, row: Row, known: frozenset[str]) -> Case:
        native, answer = row.text("id"), _answer(row)
        evidence = tuple(dict.fromkeys(row.texts("evidence_ids")))
        for one in evidence:
            if one not in known:
                raise row.error("evidence_ids", f"{one!r} names no item", "fetch the release's memory files")
        kind, guessed = _type(row, answer)
        question = Question(
            id=opaque_id("atm", native),
            context=context,
            parts=(Text(row.text("question")),),
            instruction=INSTRUCTION if self.options.instruction else "",
        )
        gold = Gold(
            answers=(answer,),
            evidence=tuple(map(Evidence, evidence)),
            category=kind,
            native_id=native,
            abstain=deterministic_accuracy(answer, "unknown"),
            extra={"items": len(known), "split": split, "qtype_guessed": guessed, "answer": row.values["answer"]},
        )
        return Case(question, gold)


def guess_type(answer: str) -> str:
    """The question type an answer suggests, where the data names none.

    A list of nothing but ids is `list_recall`; few words that hold a figure, date or unit are `number`; the rest is
    `open_end`. The release names every type, so this is for data without them.
    """
    pieces = [piece for piece in re.split(r"[,;\s]+", answer.strip()) if piece]
    if pieces and all(_ID.fullmatch(piece) for piece in pieces):
        return LIST
    plain = [word for word in answer.split() if not _FIGURE.search(word)]
    return NUMBER if any(char.isdigit() for char in answer) and len(plain) <= 2 else OPEN


def _type(row: Row, answer: str) -> tuple[str, bool]:
    if not row.has("qtype"):
        return guess_type(answer), True
    if row.text("qtype") not in TYPES:
        raise row.error("qtype", f"{row.text('qtype')!r} is no question type; there are: {', '.join(TYPES)}")
    return row.text("qtype"), False


def _answer(row: Row) -> str:
    value = row.values.get("answer")
    if isinstance(value, list):
        value = ", ".join(row.texts("answer"))
    try:
        answer = gold_text(value)
    except TypeError as error:
        raise row.error("answer", str(error)) from None
    if not answer or not answer.strip():
        raise row.error("answer", "is missing or empty", "a question without an answer cannot be scored")
    return answer


def _derived(row: Row) -> tuple[Derived, ...]:
    texts = [(kind, row.text(field, "")) for field, kind in DERIVED.items()]
    texts.append(("tags", ", ".join(row.texts("tags", ()))))
    return tuple(Derived(kind, words, 0) for kind, words in texts if words.strip())


def _place(row: Row) -> Place | None:
    names = (row.text("location_name", ""), row.text("city", ""))
    name = ", ".join(dict.fromkeys(filter(None, (one.strip() for one in names))))
    degrees = row.values.get("location")
    if not degrees:
        return Place(name) if name else None
    numbers = isinstance(degrees, list) and len(degrees) == 2 and all(type(one) in (int, float) for one in degrees)
    if not numbers:
        raise row.error("location", "must be [latitude, longitude] in degrees, or null")
    return Place(name, float(degrees[0]), float(degrees[1]))


def _stem_time(name: str) -> str | None:
    """The local time in a media file's name; None if it holds none."""
    match = _STEM.match(name)
    if not match:
        return None
    year, month, day, *clock = match.groups()
    return _iso(f"{year}-{month}-{day} {':'.join(clock)}")


def _iso_time(row: Row) -> str:
    value = row.text("timestamp")
    found = _iso(value)
    if found is None:
        raise row.error("timestamp", f"{value!r} is no date and time", "write it as 2024-11-16 09:30:00")
    return found


def _iso(value: str) -> str | None:
    try:
        return datetime.fromisoformat(value.strip()).isoformat()
    except ValueError:
        return None


def _findings(where: str, items: Sequence[Item], splits: Mapping[str, Sequence[Row]]) -> Iterable[Finding]:
    kinds = Counter(item.kind for item in items)
    found = {f"{kind}s": kinds[kind] for kind in ("email", "image", "video")}
    found |= {f"{split} questions": len(rows) for split, rows in splits.items() if split not in POOLS}
    counts = ", ".join(f"{n} {name}" for name, n in found.items())
    yield Finding("info", where, f"{counts}: {'the whole release' if found == COUNTS else 'partial'}")
    for split, rows in splits.items():
        types = Counter(_type(row, _answer(row)) for row in rows)
        named = ", ".join(f"{n} {kind}" for (kind, _), n in sorted(types.items()))
        yield Finding("info", where, f"{split}: {named}")
        guessed = sum(n for (_, one), n in types.items() if one)
        if guessed:
            words = f"{split}: {guessed} questions name no qtype; it is guessed from the answer"
            yield Finding("warning", where, words)
        sizes = {len(set(row.texts("niah_evidence_ids"))) for row in rows} if split in POOLS else set()
        if sizes - {POOLS.get(split)}:
            words = f"{split}: pools hold {', '.join(map(str, sorted(sizes)))} items, not {POOLS[split]} each"
            yield Finding("warning", where, words)
    for kind in ("image", "video"):
        parts = [part for item in items if item.kind == kind for part in item.parts if not isinstance(part, Text)]
        lost = [part.source for part in parts if part.missing]
        if lost:
            yield Finding("warning", where, f"{len(lost)} {kind}s are not at hand, such as {lost[0]}; pixels need them")
