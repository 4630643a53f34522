"""MemEye: dialogues whose pictures must have been seen, asked as rotated multiple choice and as open questions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from memharness.benchmark import BenchmarkCard, ScoreRow, means
from memharness.benchmarks.mem_gallery import (
    Dialogue,
    MemGallery,
    MemGalleryRounds,
    check_clues,
    images_of,
    read_dialogue,
    rounds_of,
)
from memharness.config import Config, option
from memharness.datafile import REMEDY, Row, as_rows, kind, refuse_repeats
from memharness.identity import opaque_id
from memharness.judging import Judge
from memharness.metric import Metric
from memharness.scoring import text
from memharness.scoring.choice_metrics import chosen, failure, thinking_score
from memharness.scoring.metrics import (
    AnswerLength,
    HitRate,
    Precision,
    Recall,
    RecallReadout,
    backed,
    not_applicable,
)
from memharness.types import (
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
    Score,
    Status,
    Text,
)

SIGHT = {"X1": "scene", "X2": "region", "X3": "instance", "X4": "pixel"}
"""How closely a picture must have been seen."""
REASONING = {"Y1": "atomic", "Y2": "relational", "Y3": "evolutionary"}
OPEN = "_Open"
ROTATIONS = 4
LETTER = "Reply with the letter of the right option."
"""The official multiple-choice instruction, to its effect."""
COUNTS = {"contexts": 16, "items": 3392, "semantic questions": 371, "questions": 1855}
REVISION = "f139f89d08bf0f66986153b5ff010cac24ba383d"
_IMAGES = re.compile(r"^(?:\.{1,2}/)?(?:data/)?image/")


class MemEyeOptions(Config):
    """Toggles of MemEye."""

    units: Literal["role", "round"] = option(
        "role",
        "What one item is: each speaker's turn of a round, or the whole round.",
        source="`role`: GraphMemix's 3,392 role memories; `round`: the official runner",
    )
    mode: Literal["both", "choice", "open"] = option(
        "both", "Which files are asked: the multiple-choice ones, the open ones, or both.", source="GraphMemix: both"
    )
    extractor: Literal["memharness", "memeye"] = option(
        "memharness",
        "Who reads the letter from a reply. The official rule takes the first letter that stands alone, which gives "
        "replies that chose nothing the letter of their article.",
        source="memharness; `memeye`: benchmark/evaluator.py (extract_choice)",
    )
    verdict: Literal["strict", "official"] = option(
        "strict",
        "How a judge's score is read: one of five levels, as the judge is asked for, or officially, where the parser "
        "keeps three of them (under 0.25 is 0, under 0.75 is 0.5, the rest 1).",
        source="memharness; `official`: benchmark/evaluator.py",
    )


@dataclass(frozen=True)
class MemEyeChoice(Metric):
    """One rotation of a multiple-choice question: `row_em`, `valid_choice` and `unclosed_thinking`, each 0 or 1.

    Attributes:
        extractor: the rule that reads the letter.
    """

    extractor: str = "memharness"

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Score one row."""
        asked = unit[0]
        names = ("row_em", "valid_choice", "unclosed_thinking")
        if not asked.question.choices:
            return dict.fromkeys(names, not_applicable("an open question"))
        if failed := failure(asked):
            return dict.fromkeys(names, failed)
        letter = choice_of(asked, self.extractor)
        unread = Score(0.0, Status.UNPARSED, "the answer declares no option")
        right = unread if letter is None else Score(float(letter == asked.gold.answers[0]))
        return dict(zip(names, (right, Score(float(letter is not None)), thinking_score(asked)), strict=True))


@dataclass(frozen=True)
class MemEyeDebiased(Metric):
    """All rotations of a question: `debiased_em`, the share of them that are right (0, .25, .5, .75, 1), officially.

    `same_letter` is 1 where every rotation got one and the same letter although the right one moved: an answer by
    position. A group of which a selection asked only some rotations does not apply.

    Attributes:
        extractor: the rule that reads the letter.
    """

    unit: ClassVar[Literal["question", "group", "episode"]] = "group"
    extractor: str = "memharness"

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Score one group."""
        names = ("debiased_em", "same_letter")
        planned = unit[0].gold.extra["rotations"]
        if len(unit) < planned:
            return dict.fromkeys(names, not_applicable(f"{len(unit)} of {planned} rotations were asked"))
        if failed := next(filter(None, map(failure, unit)), None):
            return dict.fromkeys(names, failed)
        letters = [choice_of(asked, self.extractor) for asked in unit]
        right = [letter == asked.gold.answers[0] for letter, asked in zip(letters, unit, strict=True)]
        if not any(letters):
            unread = Score(0.0, Status.UNPARSED, "no rotation's answer declares an option")
            return {"debiased_em": unread, "same_letter": not_applicable("no answer declares an option")}
        moved = len({asked.gold.answers[0] for asked in unit}) > 1
        same = Score(float(len(set(letters)) == 1)) if moved else not_applicable("the right letter does not move")
        return {"debiased_em": Score(sum(right) / len(right)), "same_letter": same}


@dataclass(frozen=True)
class MemEyeOpen(Metric):
    """The official metrics of open answers: open_em, contains, f1 (stemmed), bleu (BLEU-4), bleu_1, bleu_2.

    Its BERTScore needs a model of its own and is not computed. Source: benchmark/evaluator.py.
    """

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Score one question."""
        asked = unit[0]
        names = ("open_em", "contains", "f1", "bleu", "bleu_1", "bleu_2")
        if asked.question.choices:
            return dict.fromkeys(names, not_applicable("multiple choice"))
        if asked.record.answer is None:
            return dict.fromkeys(names, Score(0.0))
        said, gold = asked.record.answer, asked.gold.answers[0]
        grams = text.bleu(said, gold, text.memeye)
        values = (
            text.exact_match(said, gold, text.memeye),
            text.contains(said, gold, text.memeye),
            text.token_f1(said, gold, text.memeye, stemmed=True).f1,
            *(grams.bleu_4, grams.bleu_1, grams.bleu_2),
        )
        return {name: Score(float(value or 0.0)) for name, value in zip(names, values, strict=True)}


def official_choice(reply: str, letters: str) -> str | None:
    """The letter that MemEye's `extract_choice` reads: the first of these rules that applies, in any case.

    The whole reply is a letter; it begins with one before "." ")" ":" "," or a space; "answer" or "choice" is followed
    by "is" or ":" and one; the first letter that stands alone. Else None (its INVALID).
    """
    reply, of = reply.strip().upper(), f"[{letters}]"
    if re.fullmatch(of, reply):
        return reply
    for rule in (rf"({of})[.):\s,]", rf".*?\b(?:ANSWER|CHOICE)\b\s*(?:IS|:)\s*:?\s*\(?({of})\b", rf".*?\b({of})\b"):
        if match := re.match(rule, reply, re.DOTALL):
            return match[1]
    return None


def choice_of(asked: Asked, rule: str) -> str | None:
    """The option key that the answer declares, by a rule's name."""
    if rule != "memeye":
        return chosen(asked, rule)
    letters = "".join(choice.key for choice in asked.question.choices)
    return official_choice(asked.record.answer or "", letters)


class MemEye(MemGallery):
    """Each file is a context: its sessions are observed in order, then every rotation of its questions is asked."""

    card = BenchmarkCard(
        name="memeye",
        title="MemEye",
        paper="arXiv:2605.15128",
        licence="Apache-2.0 (code and text); pictures mixed: Pitt Ads, stock, generated",
        source="https://huggingface.co/datasets/MemEyeBench/MemEye, code github.com/MinghoKwok/MemEye",
        revision=REVISION,
        version=1,
        splits={
            "all": "every file",
            "NAME": "the file of that name, such as Brand_Memory_Test; Brand_Memory_Test_Open holds its open questions",
        },
        counts=COUNTS,
        cluster="the task, over its multiple-choice and open files",
        primary="debiased_em",
        assets=(Asset(f"hf://datasets/MemEyeBench/MemEye@{REVISION}", ""),),
        errata=(
            "question ids are the data's own behind the file's name, `Brand_Memory_Test:ID`, with `:0` to `:3` for the "
            "rotations of a multiple-choice one",
            "files with `concat` in their name join the others and are not read",
            "the judge's official parser keeps three of the five levels its prompt asks for: verdict=official",
            "a multiple-choice question counts four rows and an open one one: a mean over rows weighs them 4 to 1; "
            "`NAME.semantic` weighs each of the 371 questions once",
            "the paper names 438 pictures, the public snapshot holds 495",
            "the official extractor reads articles as letters: extractor=memeye",
            "pictures are named as TASK/FILE in image/, or by a path that holds image/: both are found",
            "no released record was at hand when this was written: the layout is the one that the official reader "
            "documents, and the older one with options as one mapping",
        ),
        images=True,
    )
    options_class = MemEyeOptions

    def read(self, path: Path) -> Dialogue:
        """One file, in which the user may have no name."""
        dialogue = read_dialogue(path, _check, user="user")
        refuse_repeats(((row.text("question_id"), row) for row in dialogue.questions), "question_id")
        return dialogue

    def held(self) -> list[Path]:
        """The files of the mode asked for."""
        mode = self.options.mode
        files = [path for path in super().held() if "concat" not in path.name.lower()]
        kept = [path for path in files if mode == "both" or path.stem.endswith(OPEN) == (mode == "open")]
        if not kept:
            raise DataError(f"{self.data.path}: holds no file for mode={mode}; give the folder of dialog/*.json")
        return kept

    def profile(self, dialogue: Dialogue) -> Iterable[Item]:
        """Nothing: what the file says of the user is the task's family."""
        return ()

    def image(self, dialogue: Dialogue, name: str, row: Row, field: str) -> Image:
        """A picture that a field names, in image/ beside dialog/."""
        return super().image(dialogue, f"../image/{_IMAGES.sub('', name)}", row, field)

    def cases(self, dialogue: Dialogue, items: Sequence[Item]) -> list[Case]:
        """The questions of a file, each rotation of its options a case."""
        by_round = rounds_of(items)
        made: list[Case] = []
        for row in dialogue.questions:
            rotations = _rotations(row)
            for n, (choices, answer) in enumerate(rotations or [((), _open_answer(row))]):
                question = self._asked(dialogue, row, len(made), choices)
                gold = _gold(dialogue, row, answer, by_round, n, len(rotations), len(items))
                made.append(Case(question, gold))
        return made

    def metrics(self) -> Sequence[Metric]:
        """The official ones, the judge, then retrieval by item and by round, and answer length."""
        return (
            MemEyeDebiased(self.options.extractor),
            MemEyeChoice(self.options.extractor),
            MemEyeOpen(),
            Judge("memeye.v1", self.options.verdict),
            Recall(k=10),
            MemGalleryRounds(k=10),
            Precision(k=10),
            HitRate(k=10),
            RecallReadout(),
            AnswerLength(),
        )

    def report(self, rows: Iterable[ScoreRow]) -> Mapping[str, float]:
        """Means over rows; `NAME.X2`, `NAME.Y1` and `NAME.X2-Y1` by cell; `NAME.semantic` weighs each question once."""
        rows = list(backed(rows))
        figures = dict(means(rows))
        sums: dict[str, list[float]] = {}
        semantic: dict[str, dict[str, list[float]]] = {}
        for row in rows:
            question = self._semantic(row)
            for name, score in row.scores.items():
                if score.status is Status.NOT_APPLICABLE:
                    continue
                value = score.value or 0.0
                semantic.setdefault(name, {}).setdefault(question, []).append(value)
                for axis in re.split(r"[-+]", row.category):
                    sums.setdefault(f"{name}.{axis}", []).append(value)
        figures |= {name: sum(values) / len(values) for name, values in sums.items()}
        for name, questions in semantic.items():
            each = [sum(values) / len(values) for values in questions.values()]
            figures[f"{name}.semantic"] = sum(each) / len(each)
        return figures

    def predictions(self, path: Path) -> Any:
        """The official runner's own file is documented nowhere: only JSON lines by native id are read.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError

    def check(self) -> Sequence[Finding]:
        """Counts against the card, questions without a mirror, rotations that do not rotate, pictures not at hand."""
        try:
            episodes = self.episodes
        except DataError as error:
            return [Finding("error", str(self.data.path), str(error))]
        where = str(self.data.path)
        findings = list(_counts(where, self.dialogues))
        findings += [finding for dialogue in self.dialogues for finding in _still(dialogue)]
        lost = [image.source for image in images_of(episodes) if image.missing]
        if lost:
            words = f"{len(lost)} pictures are not at hand, such as {lost[0]}; pixels need them"
            findings.append(Finding("warning", where, words))
        return findings

    def _semantic(self, row: ScoreRow) -> str:
        """What the rotations of a question and its open mirror share: the task and the question's id."""
        name = row.native_id.removeprefix(f"{row.context}:")
        if not row.context.endswith(OPEN):
            name = name.rpartition(":")[0]
        return f"{row.context.removesuffix(OPEN)}/{name}"

    def _asked(self, dialogue: Dialogue, row: Row, index: int, choices: tuple[Choice, ...]) -> Question:
        shown = [(name, field) for field in ("question_image", "question_images") for name in _texts(row, field)]
        captions = _texts(row, "image_caption")
        if captions and len(captions) != len(shown):
            raise row.error("image_caption", f"holds {len(captions)} captions of {len(shown)} pictures")
        parts: tuple[Part, ...] = (
            Text(row.text("question")),
            *(self.image(dialogue, name, row, field) for name, field in shown),
        )
        return Question(
            id=opaque_id(self.card.name, dialogue.name, index),
            context=dialogue.name,
            parts=parts,
            choices=choices,
            instruction=LETTER if choices else "",
            derived=tuple(Derived("caption", words, n) for n, words in enumerate(captions, 1) if words.strip()),
            form="choice" if choices else "text",
        )


def _texts(row: Row, field: str) -> tuple[str, ...]:
    """A field that holds a text, a list of texts, or nothing."""
    if isinstance(row.values.get(field), list):
        return row.texts(field)
    return (row.text(field),) if row.has(field) else ()


def _check(row: Row, rounds: set[str]) -> None:
    """Refuse a question that is not as published."""
    row.text("question_id"), row.text("question"), row.texts("session_id", ())
    _cell(row)
    if not _rotations(row):
        _open_answer(row)
    check_clues(row, rounds)


def _cell(row: Row) -> str:
    """The question's cell, such as `X2-Y1`; several levels of one axis are joined by +."""
    value = row.values.get("point")
    axes = value if isinstance(value, list) else []
    if len(axes) != 2 or not all(isinstance(axis, list) and axis for axis in axes):
        raise row.error("point", "must be [[X levels], [Y levels]]")
    for axis, known in zip(axes, (SIGHT, REASONING), strict=True):
        for level in axis:
            if level not in known:
                raise row.error("point", f"{level!r} is no level; there are: {', '.join(known)}")
    return "-".join("+".join(axis) for axis in axes)


def _open_answer(row: Row) -> str:
    return _words(row, "answer", "a question without an answer cannot be scored")


def _words(row: Row, field: str, remedy: str = REMEDY) -> str:
    """An answer or an option; numbers as text."""
    value = row.values.get(field)
    try:
        words = text.gold_text(value) or ""
    except TypeError:
        raise row.error(field, f"must be text or a number, not {kind(value)}") from None
    if not words.strip():
        raise row.error(field, "is missing or empty", remedy)
    return words


def _rotations(row: Row) -> list[tuple[tuple[Choice, ...], str]]:
    """Options and right letter of each rotation; empty for an open question. The older form has one mapping."""
    value = row.values.get("options")
    if value is None:
        return []
    if isinstance(value, dict):
        value = [{**value, "answer": row.values.get("answer")}]
    if not isinstance(value, list) or not value:
        raise row.error("options", f"must be a list of rotations or one mapping, not {kind(value)}")
    return [_rotation(one) for one in as_rows(value, row.where, "options")]


def _rotation(row: Row) -> tuple[tuple[Choice, ...], str]:
    keys = sorted(key for key in row.values if key != "answer")
    if keys != [chr(ord("A") + n) for n in range(len(keys))] or len(keys) < 2:
        raise row.error("letters", f"are {', '.join(keys) or 'none'}", "options are A, B, C … without a gap")
    answer = row.text("answer")
    if answer not in keys:
        raise row.error("answer", f"{answer!r} is not among the options {', '.join(keys)}")
    return tuple(Choice(key, (Text(_words(row, key)),)) for key in keys), answer


def _gold(
    dialogue: Dialogue,
    row: Row,
    answer: str,
    by_round: Mapping[str, Sequence[Evidence]],
    rotation: int,
    rotations: int,
    items: int,
) -> Gold:
    clues = dict.fromkeys(row.texts("clue"))
    name = row.text("question_id")
    return Gold(
        answers=(answer,),
        evidence=tuple(evidence for clue in clues for evidence in by_round[clue]),
        category=_cell(row),
        group=opaque_id("memeye-group", dialogue.name, name) if rotations else None,
        cluster=dialogue.name.removesuffix(OPEN),
        native_id=f"{dialogue.name}:{name}" + (f":{rotation}" if rotations else ""),
        extra={"items": items, "clue": list(clues), "rotation": rotation, "rotations": rotations},
    )


def _counts(where: str, dialogues: Sequence[Dialogue]) -> Iterable[Finding]:
    questions: Counter[str] = Counter()
    for dialogue in dialogues:
        questions.update(f"{dialogue.name.removesuffix(OPEN)}/{row.text('question_id')}" for row in dialogue.questions)
    rows = sum(max(1, len(_rotations(row))) for dialogue in dialogues for row in dialogue.questions)
    rounds = sum(len(dialogue.rounds) for dialogue in dialogues)
    found = {"contexts": len(dialogues), "items": 2 * rounds, "semantic questions": len(questions), "questions": rows}
    counts = ", ".join(f"{n:,} {name}" for name, n in found.items())
    whole = "the whole release" if found == COUNTS else f"partial, {len(dialogues)} of {COUNTS['contexts']} files"
    yield Finding("info", where, f"{counts}: {whole}")
    alone = [name for name, n in questions.items() if n != 2]
    if alone:
        yield Finding(
            "warning", where, f"{len(alone)} questions lack their mirror in the other mode, such as {alone[0]}"
        )


def _still(dialogue: Dialogue) -> Iterable[Finding]:
    """Questions whose rotations are too few, never move the right letter, or disagree."""
    for row in dialogue.questions:
        rotations = _rotations(row)
        letters = [answer for _, answer in rotations]
        if letters and (len(letters) != ROTATIONS or len(set(letters)) == 1):
            named = ", ".join(letters)
            yield Finding("warning", row.where, f"options: {len(letters)} rotations, the right letters are {named}")
        if len({choice.parts for choices, answer in rotations for choice in choices if choice.key == answer}) > 1:
            yield Finding("warning", row.where, "options: its rotations call different options right")
