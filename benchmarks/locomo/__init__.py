"""LoCoMo: ten very long conversations between two people, and five kinds of questions about them."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

from memharness.benchmark import Benchmark, BenchmarkCard, Recorded, ScoreRow, means
from memharness.config import Config, option
from memharness.datafile import Row, existing, files_in, read_records, refuse_repeats
from memharness.identity import opaque_id
from memharness.judging import Judge
from memharness.metric import Metric
from memharness.scoring.choice import extract_choice
from memharness.scoring.metrics import (
    Abstained,
    AnswerLength,
    Recall,
    RecallAll,
    RecallReadout,
    backed,
    not_applicable,
    readout_missing,
)
from memharness.scoring.recall import locomo_recall
from memharness.scoring.text import LOCOMO_ABSTENTIONS, abstains, gold_text, locomo_score, mem0_f1
from memharness.types import (
    Answer,
    Asked,
    Asset,
    Case,
    Choice,
    DataError,
    Derived,
    Evidence,
    Finding,
    Gold,
    Image,
    Item,
    Part,
    Question,
    Readout,
    Score,
    Text,
    UserError,
    did_you_mean,
)

CONVERSATIONS = (
    *("conv-26", "conv-30", "conv-41", "conv-42", "conv-43"),
    *("conv-44", "conv-47", "conv-48", "conv-49", "conv-50"),
)
"""The published order; audits count conversations by it."""
ADVERSARIAL = 5
DATE_HINT = "Answer with an approximate date, worked out from the date of the conversation."
"""To the effect of the official addition to category 2 questions."""
NOT_MENTIONED = "Not mentioned in the conversation"
TIME_FORM = "%I:%M %p on %d %B, %Y"
COUNTS = {
    "conversations": 10,
    "sessions": 272,
    "turns": 5882,
    "questions": 1986,
    "category 1": 282,
    "category 2": 321,
    "category 3": 96,
    "category 4": 841,
    "category 5": 446,
}
SHA256 = "79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4"
_SESSION = re.compile(r"session_(\d+)")
_TURN = re.compile(r"D0*(\d+):0*(\d+)")


class LoCoMoOptions(Config):
    """Toggles of LoCoMo."""

    errata: Literal["published", "corrected"] = option(
        "published",
        "Gold answers and evidence as published, or corrected by `errata_file`.",
        source="data as published",
    )
    errata_file: str = option(
        "",
        "The audit's errors.json (github.com/dial481/locomo-audit @ 9493fb4, CC BY-NC 4.0); its content is hashed.",
        exclude=True,
    )
    date_hint: bool = option(
        True,
        "Ask category 2 questions for an approximate date, which tells the category.",
        source="official prompts (task_eval/gpt_utils.py)",
    )
    adversarial: Literal["open", "choice"] = option(
        "open",
        "Ask category 5 questions openly, or with two choices, the trap and that it is not mentioned, in seeded order. "
        "Choices tell the category and the trap.",
        source="memharness; officially `choice`, whose code fails on the data as released and whose order is unseeded",
    )
    phrases: str = option(
        "|".join(LOCOMO_ABSTENTIONS),
        "Lower-case phrases, separated by |, that count as declining in category 5.",
        source="official evaluator (task_eval/evaluation.py)",
    )


@dataclass(frozen=True)
class LoCoMoScores(Metric):
    """The official `f1`, by each category's own rule, and Mem0's and A-Mem's `set_f1`.

    Category 5 scores 1 in `f1` if the answer declines, and has no `set_f1` (evaluation.py: eval_question_answering).

    Attributes:
        phrases: lower-case phrases that decline, separated by "|".
    """

    phrases: str = "|".join(LOCOMO_ABSTENTIONS)

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Score one question."""
        return {"f1": self._f1(unit[0]), "set_f1": _set_f1(unit[0])}

    def _f1(self, asked: Asked) -> Score:
        said = spoken(asked)
        if said is None:
            return Score(0.0)
        category = int(asked.gold.category)
        if category == ADVERSARIAL:
            return Score(float(abstains(said, self.phrases.split("|"))))
        return Score(max(locomo_score(category, said, gold) for gold in asked.gold.answers))


@dataclass(frozen=True)
class LoCoMoRecall(Metric):
    """The official `recall_official` of the whole readout: evidence as published, unrepaired; 1 without evidence."""

    needs: ClassVar[Literal["answer", "readout"]] = "readout"

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Score one question."""
        asked = unit[0]
        shown = [evidence.item for evidence in asked.record.evidence or ()]
        recalled = Score(locomo_recall(shown, asked.gold.extra["evidence"]))
        return {"recall_official": readout_missing(asked) or recalled}


def _set_f1(asked: Asked) -> Score:
    said = spoken(asked)
    if not asked.gold.answers:
        return not_applicable("no gold answer")
    return Score(0.0 if said is None else max(mem0_f1(said, gold).f1 for gold in asked.gold.answers))


def spoken(asked: Asked) -> str | None:
    """The answer in words: of a two-choice question, the words of the choice it made, if it made one."""
    said, choices = asked.record.answer, asked.gold.extra.get("choices")
    if said is None or not choices:
        return said
    chosen = extract_choice(said, "".join(choices), choices)
    return said if chosen is None else str(choices[chosen])


@dataclass(frozen=True)
class Conversation:
    """One published sample: a context. Turns come session by session, each with its session's number and time."""

    name: str
    where: str
    turns: Sequence[tuple[int, str, Row]]
    questions: Sequence[Row]

    @property
    def ids(self) -> frozenset[str]:
        """The ids of all turns."""
        return frozenset(row.text("dia_id") for _, _, row in self.turns)


@dataclass(frozen=True)
class Repair:
    """Evidence made usable: the turns found, and the published entries that name none or needed mending."""

    turns: tuple[str, ...]
    mended: tuple[str, ...]
    lost: tuple[str, ...]


def repair(published: Sequence[str], turns: frozenset[str]) -> Repair:
    """Read evidence as published: split at ";" and spaces, zero padding and brackets stripped, the rest lost."""
    found: dict[str, None] = {}
    mended, lost = [], []
    for entry in published:
        if entry in turns:
            found[entry] = None
            continue
        mended.append(entry)
        for word in re.split(r"[;\s]+", entry.strip("; \t")):
            match = _TURN.fullmatch(word.strip("()[]"))
            name = f"D{match[1]}:{match[2]}" if match else ""
            if name in turns:
                found[name] = None
            else:
                lost.append(word)
    return Repair(tuple(found), tuple(mended), tuple(lost))


class LoCoMo(Benchmark):
    """Each conversation is a context; its turns are observed session by session, then all its questions are asked."""

    card = BenchmarkCard(
        name="locomo",
        title="LoCoMo",
        paper="Maharana et al., ACL 2024, arXiv:2402.17753",
        licence="CC BY-NC 4.0 (data and code)",
        source="https://github.com/snap-research/LoCoMo",
        revision="3eb6f2c585f5e1699204e3c3bdf7adc5c28cb376",
        version=1,
        splits={"all": "all conversations", "NAME": "the conversation of that sample_id, such as conv-26"},
        counts=COUNTS,
        cluster="the conversation",
        primary="f1",
        assets=(
            Asset(
                "https://raw.githubusercontent.com/snap-research/LoCoMo/3eb6f2c585f5e1699204e3c3bdf7adc5c28cb376/data/locomo10.json",
                "locomo10.json",
                SHA256,
                2805274,
            ),
        ),
        reveals=(
            "category 2 questions ask for an approximate date: date_hint=false",
            "category 5 questions as two choices show the category and the trap: adversarial=open (the default)",
        ),
        errata=(
            "questions have no ids: theirs are `conv-26_qa0`, the place within `qa`",
            "categories are the data's own ids: 1 multi-hop, 2 temporal, 3 open-domain, 4 single-hop, 5 adversarial; "
            "several published tables swap the names",
            "9 evidence entries name no turn: those that can be are split and unpadded, the rest dropped "
            "(`data check` lists them); recall_official takes them as published",
            "6 gold answers are numbers: they are read as text",
            "444 category 5 questions have no answer, on which the official code fails: answers are empty, the trap is "
            "kept for scoring only",
            "an audit finds 99 wrong gold answers in 1,540: errata=corrected with errata_file; some of its corrections "
            "are remarks rather than answers, so they suit a judge better than token F1",
            "`query`, the words a picture was searched by, gives answers away: it is never shown",
            "the official files round each score to 3 decimals; nothing is rounded here",
        ),
    )
    options_class = LoCoMoOptions
    options: LoCoMoOptions

    def contexts(self, subset: str | None = None) -> Sequence[str]:
        """The conversations in file order; `subset` may name one."""
        names = list(self.episodes)
        if subset is None or subset == "all":
            return names
        if subset not in names:
            hint = did_you_mean(subset, names)
            raise UserError(f"subset {subset!r}: no such conversation{hint}; there are: {', '.join(names)}")
        return [subset]

    def episode(self, context: str) -> Recorded:
        """One conversation's episode."""
        return self.episodes[context]

    @cached_property
    def episodes(self) -> Mapping[str, Recorded]:
        """All episodes by context, validated.

        Raises:
            DataError: for data that is not as published.
            UserError: for errata without their file, or with one that is not about this data.
        """
        corrections = self._corrections()
        return {one.name: self._episode(one, corrections) for one in self.conversations}

    @cached_property
    def conversations(self) -> Sequence[Conversation]:
        """The conversations, validated."""
        rows = read_records(self.file)
        if not rows:
            raise DataError(f"{self.file}: holds no conversation; fetch the file again")
        refuse_repeats(((row.text("sample_id"), row) for row in rows), "sample_id")
        return [read_conversation(row) for row in rows]

    @cached_property
    def file(self) -> Path:
        """The file to read: the one named, or the only JSON file (else `locomo10.json`) in the folder named."""
        path = self.data.path
        if not path.is_dir():
            return path
        found = list(files_in(path, ".json"))
        official = path / "locomo10.json"
        if official in found:
            return official
        if len(found) != 1:
            names = ", ".join(file.name for file in found) or "none"
            raise DataError(
                f"{path}: expected locomo10.json or one JSON file, found {names}; name the file with --data"
            )
        return found[0]

    def metrics(self) -> Sequence[Metric]:
        """The official ones first. Category 5 names the turns that its trap twists, so recall counts it, apart too.

        The judges score categories 1 to 4, as published figures of judges do: category 5 has no reference answer.
        """
        return (
            LoCoMoScores(self.options.phrases),
            LoCoMoRecall(),
            Judge("locomo-strict.v1"),
            Judge("locomo-generous.v1"),
            Recall(k=10, abstentions=True),
            RecallAll(k=10, abstentions=True),
            RecallReadout(),
            Abstained(self.options.phrases),
            AnswerLength(),
        )

    def report(self, rows: Iterable[ScoreRow]) -> Mapping[str, float]:
        """Micro means over all questions, by category (`f1.1` … `f1.5`) and over categories 1 to 4 (`f1.1-4`)."""
        rows = backed(rows)
        answerable = means(row for row in rows if row.category != str(ADVERSARIAL))
        return means(rows) | {f"{name}.1-4": value for name, value in answerable.items() if "." not in name}

    def gold_answer(self, case: Case) -> Answer:
        """The gold answer; of a category 5 question what the data hold in its place, which is mostly the trap."""
        extra = case.gold.extra
        published = gold_text(extra.get("answer", extra.get("adversarial_answer")))
        return Answer(next(iter(case.gold.answers), published), readout=Readout(case.gold.evidence))

    def predictions(self, path: Path) -> Iterable[tuple[str, Answer]]:
        """Answers from the official output: the data's own form, each qa with its `<model>_prediction`.

        `<model>_prediction_context`, if there, is the readout. Rows are matched by sample_id and position and must
        repeat the question's words.

        Raises:
            DataError: if a row's question differs, or the file holds predictions of several models, or none.
        """
        known = {one.name: one for one in self.conversations}
        for sample in read_records(path):
            conversation = known.get(sample.text("sample_id"))
            if conversation is not None:
                yield from _predictions(sample, conversation)

    def check(self) -> Sequence[Finding]:
        """Counts against the card, and evidence that names no turn."""
        try:
            conversations = self.conversations
        except DataError as error:
            return [Finding("error", str(self.data.path), str(error))]
        return list(_findings(str(self.file), conversations))

    def digest(self) -> Any:
        """Digest of the file read, and of the errata if they are applied."""
        files = {self.file.name: self.data.media.digest(existing(self.file))}
        if self.options.errata == "corrected":
            files["errata"] = self.data.media.digest(self._errata_file())
        return files

    def _errata_file(self) -> Path:
        path = Path(self.options.errata_file)
        if not self.options.errata_file or not path.is_file():
            raise UserError(
                f"errata=corrected: errata_file={self.options.errata_file or 'not given'}: no such file; give the "
                "audit's errors.json with -B errata_file=PATH"
            )
        return path

    def _corrections(self) -> Mapping[tuple[str, int], Row]:
        """Corrected questions by conversation and position."""
        if self.options.errata == "published":
            return {}
        return dict(_correction(row) for row in read_records(self._errata_file()))

    def _episode(self, conversation: Conversation, corrections: Mapping[tuple[str, int], Row]) -> Recorded:
        items = [_item(conversation, order, *turn) for order, turn in enumerate(conversation.turns)]
        turns = conversation.ids
        cases = []
        for index, row in enumerate(conversation.questions):
            correction = corrections.get((conversation.name, index))
            if correction is not None:
                row = _corrected(row, correction)
            cases.append(self._case(conversation, row, index, turns))
        return Recorded(conversation.name, items, cases)

    def _case(self, conversation: Conversation, row: Row, index: int, turns: frozenset[str]) -> Case:
        category = row.whole("category")
        name = opaque_id("locomo", conversation.name, index)
        trap = row.text("adversarial_answer", "")
        answer = _answer(row)
        texts = (
            _choices(name, trap) if category == ADVERSARIAL and trap and self.options.adversarial == "choice" else {}
        )
        question = Question(
            id=name,
            context=conversation.name,
            parts=(Text(row.text("question")),),
            choices=tuple(Choice(key, (Text(words),)) for key, words in texts.items()),
            instruction=DATE_HINT if category == 2 and self.options.date_hint else "",
            form="choice" if texts else "text",
        )
        extra: dict[str, Any] = {"evidence": list(row.texts("evidence")), "items": len(turns)}
        extra |= {key: row.values[key] for key in ("answer", "adversarial_answer", "errata") if row.has(key)}
        gold = Gold(
            answers=() if category == ADVERSARIAL or answer is None else (answer,),
            evidence=tuple(map(Evidence, repair(row.texts("evidence"), turns).turns)),
            category=str(category),
            cluster=conversation.name,
            native_id=f"{conversation.name}_qa{index}",
            abstain=category == ADVERSARIAL,
            extra=extra | ({"choices": texts} if texts else {}),
        )
        return Case(question, gold)


def read_conversation(row: Row) -> Conversation:
    """One sample.

    Raises:
        DataError: for a missing or mistyped field, a repeated dia_id, an empty conversation, a time that is not in the
            published form, an unknown category, or an answerable question without an answer.
    """
    name = row.text("sample_id")
    row = Row(row.values, f"{row.where} ({name})")
    talk = row.row("conversation") if row.has("conversation") else row  # an older release has it all in one mapping
    numbers = sorted(int(match[1]) for key in talk.values if (match := _SESSION.fullmatch(key)) and talk.has(key))
    turns = [
        (number, when, turn)
        for number in numbers
        for when in (_iso_time(talk, f"session_{number}_date_time"),)
        for turn in talk.rows(f"session_{number}", f"session_{number} turn")
    ]
    if not turns:
        raise row.error("conversation", "holds no session with turns", "a context needs something to remember")
    for _, _, turn in turns:
        _check_turn(turn)
    refuse_repeats(((turn.text("dia_id"), turn) for _, _, turn in turns), "dia_id")
    questions = row.rows("qa")
    if not questions:
        raise row.error("qa", "holds no question")
    for question in questions:
        _check_question(question)
    return Conversation(name, row.where, turns, questions)


def _check_turn(turn: Row) -> None:
    turn.text("speaker"), turn.text("text", ""), turn.texts("img_url", ()), turn.text("blip_caption", "")
    if not _TURN.fullmatch(turn.text("dia_id")):
        raise turn.error("dia_id", f"{turn.text('dia_id')!r} is not of the form D1:2")


def _check_question(row: Row) -> None:
    row.text("question"), row.texts("evidence")
    if row.whole("category") not in range(1, ADVERSARIAL + 1):
        raise row.error("category", f"{row.whole('category')} is no category; there are 1 to 5")
    answer = _answer(row)
    if row.whole("category") != ADVERSARIAL and not (answer and answer.strip()):
        raise row.error("answer", "is missing or empty", "only category 5 questions may have none")


def _answer(row: Row) -> str | None:
    try:
        return gold_text(row.values.get("answer"))
    except TypeError as error:
        raise row.error("answer", str(error)) from None


def _iso_time(talk: Row, field: str) -> str:
    """A session's time as ISO 8601 to the minute."""
    value = talk.text(field)
    try:
        return time.strftime("%Y-%m-%dT%H:%M", time.strptime(value, TIME_FORM))
    except ValueError:
        raise talk.error(field, f"{value!r} is not of the form '1:56 pm on 8 May, 2023'") from None


def _item(conversation: Conversation, order: int, number: int, when: str, turn: Row) -> Item:
    parts: tuple[Part, ...] = (Text(turn.text("text", "")),)
    derived: tuple[Derived, ...] = ()
    caption = turn.text("blip_caption", "")
    if turn.has("img_url") or caption:
        parts += (Image(None, source=next(iter(turn.texts("img_url", ())), "")),)
    if caption.strip():
        derived = (Derived("caption", caption, 1),)
    session = f"session_{number}"
    return Item(
        id=turn.text("dia_id"),
        context=conversation.name,
        order=order,
        parts=parts,
        derived=derived,
        time=when,
        speaker=turn.text("speaker"),
        session=session,
        keys={"session": session},
    )


def _choices(question: str, trap: str) -> dict[str, str]:
    """The two choices by letter; which comes first is drawn from the question's id, so that a rerun draws the same."""
    texts = (trap, NOT_MENTIONED) if int(opaque_id("order", question), 16) % 2 else (NOT_MENTIONED, trap)
    return dict(zip("AB", texts, strict=True))


def _correction(row: Row) -> tuple[tuple[str, int], Row]:
    match = re.fullmatch(r"locomo_(\d)_qa(\d+)", row.text("question_id"))
    if not match:
        raise row.error("question_id", f"{row.text('question_id')!r} is not of the form locomo_0_qa1")
    return (CONVERSATIONS[int(match[1])], int(match[2])), row


def _corrected(row: Row, correction: Row) -> Row:
    """The question with the audit's answer and, where the audit names turns, its evidence."""
    if correction.text("question").strip() != row.text("question").strip():
        raise correction.error("question", f"differs from {row.where}", "give the errata of this release")
    changed = {"answer": correction.text("correct_answer"), "errata": correction.text("error_type")}
    evidence = list(correction.texts("correct_evidence", ()))
    return Row({**row.values, **changed, **({"evidence": evidence} if evidence else {})}, row.where)


def _predictions(sample: Row, conversation: Conversation) -> Iterable[tuple[str, Answer]]:
    rows = sample.rows("qa")
    models = sorted({key for row in rows for key in row.values if key.endswith("_prediction")})
    if len(models) != 1:
        found = ", ".join(models) or "none"
        raise sample.error("qa", f"expected one `<model>_prediction`, found {found}", "keep one model's in the file")
    if len(rows) > len(conversation.questions):
        raise sample.error("qa", f"has {len(rows)} questions, the data has {len(conversation.questions)}")
    for index, (row, asked) in enumerate(zip(rows, conversation.questions, strict=False)):
        if row.text("question") != asked.text("question"):
            raise row.error("question", f"differs from {asked.where}", "give rows in data order")
        if models[0] in row.values:
            said = row.text(models[0], "") if row.has(models[0]) else None
            shown = row.texts(f"{models[0]}_context", ()) if row.has(f"{models[0]}_context") else None
            readout = None if shown is None else Readout(tuple(map(Evidence, shown)))
            yield f"{conversation.name}_qa{index}", Answer(said, readout=readout)


def _findings(where: str, conversations: Sequence[Conversation]) -> Iterable[Finding]:
    categories = Counter(row.whole("category") for one in conversations for row in one.questions)
    found = {
        "conversations": len(conversations),
        "sessions": sum(len({number for number, _, _ in one.turns}) for one in conversations),
        "turns": sum(len(one.turns) for one in conversations),
        "questions": categories.total(),
    } | {f"category {n}": categories[n] for n in range(1, ADVERSARIAL + 1)}
    counts = ", ".join(f"{n} {name}" for name, n in found.items())
    whole = "the whole release" if found == COUNTS else f"partial, {len(conversations)} of 10 conversations"
    yield Finding("info", where, f"{counts}: {whole}")
    for one in conversations:
        turns = one.ids
        for row in one.questions:
            evidence = repair(row.texts("evidence"), turns)
            for entry in evidence.mended:
                mended = repair([entry], turns)
                read = [f"read as {', '.join(mended.turns)}"] if mended.turns else []
                lost = [f"dropped {word}, which names no turn" for word in mended.lost]
                yield Finding("warning", row.where, f"evidence: {entry!r}: {'; '.join(read + lost)}")
            if not evidence.turns:
                yield Finding("info", row.where, "evidence: names no turn; recall does not apply")
