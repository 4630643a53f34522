"""Mem-Gallery: long multimodal dialogues with pictures, and nine kinds of questions about them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

from memharness.benchmark import Benchmark, BenchmarkCard, Recorded, ScoreRow, means
from memharness.config import Config, option
from memharness.datafile import Row, files_in, kind, read_json, refuse_repeats
from memharness.identity import opaque_id
from memharness.judging import Judge
from memharness.metric import Metric
from memharness.scoring import text
from memharness.scoring.metrics import (
    Abstained,
    AnswerLength,
    HitRate,
    Precision,
    Recall,
    RecallReadout,
    backed,
    readout_missing,
)
from memharness.scoring.recall import hit, precision, recall
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
    Image,
    Item,
    Part,
    Question,
    Score,
    Text,
    UserError,
    did_you_mean,
)

CATEGORIES = {
    "FR": "factual retrieval",
    "VS": "visual search: the answer is picture ids",
    "TTL": "test-time learning",
    "TR": "temporal reasoning",
    "VR": "visual reasoning",
    "MR": "multi-entity reasoning",
    "KR": "knowledge resolution",
    "CD": "conflict detection",
    "AR": "answer refusal",
}
INSTRUCTIONS = {
    "AR": 'If the conversations say nothing about it, reply "Not mentioned." and nothing else.',
    "CD": 'Reply "Yes." or "No." and nothing else.',
    "VS": "Reply with the ids of the pictures alone, such as D3:IMG_002, separated by commas.",
}
"""Answer-format words of three categories, to the effect of the official ones."""
USER, ASSISTANT = "/user", "/assistant"
COUNTS = {
    "contexts": 20,
    "sessions": 240,
    "rounds": 3962,
    "questions": 1711,
    "pictures": 1003,
    "question pictures": 487,
}


class MemGalleryOptions(Config):
    """Toggles of Mem-Gallery."""

    units: Literal["role", "round"] = option(
        "role",
        "What one item is: each speaker's turn of a round and a profile item with the user's name, or the whole round.",
        source="`role`: GraphMemix's 7,944 memories; `round`: the official runner",
    )
    instructions: bool = option(
        True,
        "Give AR, CD and VS questions their official answer-format words, which tell the category.",
        source="official runner (run_bench.py)",
    )
    verdict: Literal["strict", "official"] = option(
        "strict",
        "How a judge's score is read: one of five levels, as the judge is asked for, or officially, where the parser "
        "keeps three of them (under 0.25 is 0, under 0.75 is 0.5, the rest 1).",
        source="memharness; `official`: memengine/evaluate/evaluation.py",
    )


@dataclass(frozen=True)
class MemGalleryScores(Metric):
    """The official answer metrics in one pass: em, f1 (stemmed), bleu (BLEU-4), bleu_1, bleu_2 (evaluation.py)."""

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Score one question under the official keys, in lower case."""
        asked = unit[0]
        values = text.mem_gallery_scores(asked.record.answer or "", asked.gold.answers[0])
        missing = asked.record.answer is None
        return {name: Score(0.0 if missing else value) for name, value in values.items()}


@dataclass(frozen=True)
class MemGalleryRounds(Metric):
    """The official retrieval metrics, over rounds: recall, precision and hit `@k_official`.

    Questions without a clue (AR) count 0, so the official recall cannot pass 1,527 / 1,711; and the list is cut
    before repeats are dropped.
    """

    k: int = 10
    needs: ClassVar[Literal["answer", "readout"]] = "readout"
    names: ClassVar[tuple[str, ...]] = ("recall", "precision", "hit")

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Score one question."""
        asked = unit[0]
        gold = {round_of(evidence.item) for evidence in asked.gold.evidence}
        missing = readout_missing(asked)
        shown = [round_of(evidence.item) for evidence in asked.record.evidence or ()]
        values = (figure(shown, gold, self.k, cut_first=True) for figure in (recall, precision, hit))
        return {
            f"{name}@{self.k}_official": missing or Score(value or 0.0)
            for name, value in zip(self.names, values, strict=True)
        }


def round_of(item: str) -> str:
    """The round that an item belongs to."""
    return item.removesuffix(USER).removesuffix(ASSISTANT)


@dataclass(frozen=True)
class Dialogue:
    """One published file: a context. `name` is the file's stem."""

    path: Path
    name: str
    user: str
    sessions: Sequence[Row]
    rounds: Sequence[tuple[Row, Row]]
    questions: Sequence[Row]


class MemGallery(Benchmark):
    """Each dialogue file is a context; its sessions are observed in order, then all its questions are asked."""

    card = BenchmarkCard(
        name="mem-gallery",
        title="Mem-Gallery",
        paper="arXiv:2601.03515, ACL 2026",
        licence="MIT (upstream licences of the pictures are not itemised)",
        source="https://huggingface.co/datasets/Ethan-Bei/Mem-Gallery, code github.com/YuanchenBei/Mem-Gallery",
        revision="af912daba984e896e253016b7c7e334ef92c2a6f",
        version=1,
        splits={"all": "every dialogue file", "NAME": "the dialogue file of that name"},
        counts=COUNTS,
        cluster="the dialogue",
        primary="recall@10",
        assets=(Asset("hf://datasets/Ethan-Bei/Mem-Gallery@af912daba984e896e253016b7c7e334ef92c2a6f", ""),),
        reveals=("AR, CD and VS questions carry answer-format words that tell the category: instructions=false",),
        errata=(
            "questions have no ids: theirs are `DIALOGUE:0`, the place in its file",
            "184 AR questions have no clue: recall@10 leaves them out, recall@10_official counts them 0",
            "the official normaliser drops a, an, the and `and`; adapters that drop fewer words give other EM figures",
            "the official BERTScore needs a model of its own and is not computed",
        ),
        images=True,
    )
    options_class: ClassVar[type[Config]] = MemGalleryOptions
    options: Any

    def contexts(self, subset: str | None = None) -> Sequence[str]:
        """The dialogues by file name; `subset` may name one."""
        names = list(self.episodes)
        if subset is None or subset == "all":
            return names
        if subset not in names:
            hint = did_you_mean(subset, names)
            raise UserError(f"subset {subset!r}: no such dialogue{hint}; there are: {', '.join(names)}")
        return [subset]

    def episode(self, context: str) -> Recorded:
        """One dialogue's episode."""
        return self.episodes[context]

    @cached_property
    def episodes(self) -> Mapping[str, Recorded]:
        """All episodes by context, validated.

        Raises:
            DataError: for data that is not as published, or a picture that cannot be read.
        """
        return {dialogue.name: self._episode(dialogue) for dialogue in self.dialogues}

    @cached_property
    def dialogues(self) -> Sequence[Dialogue]:
        """The dialogue files, read and validated but for their pictures."""
        return [self.read(path) for path in self.held()]

    def read(self, path: Path) -> Dialogue:
        """One dialogue file; see `read_dialogue`."""
        return read_dialogue(path)

    def metrics(self) -> Sequence[Metric]:
        """The official ones, then retrieval over questions with gold at item grain, and answer length."""
        return (
            MemGalleryScores(),
            Judge("mem-gallery.v1", self.options.verdict),
            Recall(k=10),
            MemGalleryRounds(k=10),
            Precision(k=10),
            HitRate(k=10),
            RecallReadout(),
            Abstained(),
            AnswerLength(),
        )

    def report(self, rows: Iterable[ScoreRow]) -> Mapping[str, float]:
        """Micro means over all questions, and by category (`em.VS`)."""
        return means(backed(rows))

    def predictions(self, path: Path) -> Iterable[tuple[str, Answer]]:
        """Answers from the official result files: a folder of `<dialogue>_results.json`, or one such file.

        Rows hold no id: they are matched by position and must repeat the question's words.

        Raises:
            DataError: if no file belongs to a dialogue of the data, or a row's question differs.
        """
        known = {dialogue.name: dialogue for dialogue in self.dialogues}
        files = sorted(path.glob("*_results.json")) if path.is_dir() else [path]
        matched = [(file, known.get(file.stem.removesuffix("_results"))) for file in files]
        if not any(dialogue for _, dialogue in matched):
            raise DataError(
                f"{path}: no `<dialogue>_results.json` for any dialogue of the data ({', '.join(known)}); "
                "name the folder or file of the official results"
            )
        for file, dialogue in matched:
            if dialogue:
                yield from _predictions(file, dialogue)

    def check(self) -> Sequence[Finding]:
        """Counts against the card, categories, pictures that are named but not at hand."""
        try:
            episodes = self.episodes
        except DataError as error:
            return [Finding("error", str(self.data.path), str(error))]
        return list(_findings(str(self.data.path), self.dialogues, episodes))

    def digest(self) -> Any:
        """Digests of the dialogue files and of the pictures at hand, by their published names."""
        files = {f"dialog/{dialogue.path.name}": self.data.media.digest(dialogue.path) for dialogue in self.dialogues}
        return files | {image.source: image.sha256 for image in images_of(self.episodes) if image.sha256}

    def held(self) -> list[Path]:
        """The dialogue files of the data.

        Raises:
            DataError: if there is none.
        """
        path = self.data.path
        if path.is_file():
            return [path]
        if not path.exists():
            raise DataError(f"{path}: no such file or folder; name the folder that holds dialog/")
        for folder in (path / "dialog", path / "data" / "dialog", path):
            files = list(files_in(folder, ".json")) if folder.is_dir() else []
            if files:
                return files
        raise DataError(f"{path}: holds no dialogue; name the folder of dialog/*.json, dialog itself or one file")

    def _episode(self, dialogue: Dialogue) -> Recorded:
        build = self._role_items if self.options.units == "role" else self._round_items
        told = (item for session, row in dialogue.rounds for item in build(dialogue, session, row))
        items = [replace(item, order=order) for order, item in enumerate((*self.profile(dialogue), *told))]
        return Recorded(dialogue.name, items, self.cases(dialogue, items))

    def profile(self, dialogue: Dialogue) -> Iterable[Item]:
        """What is remembered of the user before the first session: the name, as the official runner shows it."""
        if self.options.units == "role":
            yield Item("profile", dialogue.name, 0, (Text(dialogue.user),), kind="profile")

    def _role_items(self, dialogue: Dialogue, session: Row, row: Row) -> Iterable[Item]:
        pictures, captions, label = self._pictures(dialogue, row, first=1)
        name = row.text("round")
        yield _item(
            dialogue, session, name, USER, (Text(row.text("user", "")), *pictures), captions, dialogue.user, label
        )
        yield _item(dialogue, session, name, ASSISTANT, (Text(row.text("assistant", "")),), (), "assistant", None)

    def _round_items(self, dialogue: Dialogue, session: Row, row: Row) -> Iterable[Item]:
        pictures, captions, label = self._pictures(dialogue, row, first=1)
        said = Text(f"user ({dialogue.user}): {row.text('user', '')}")
        parts: tuple[Part, ...] = (said, *pictures, Text(f"assistant: {row.text('assistant', '')}"))
        yield _item(dialogue, session, row.text("round"), "", parts, captions, None, label)

    def _pictures(
        self, dialogue: Dialogue, row: Row, *, first: int
    ) -> tuple[tuple[Image, ...], tuple[Derived, ...], str | None]:
        """A round's pictures, their captions (`first` is the part index of the first picture) and its label."""
        names, captions, labels = (row.texts(key, ()) for key in ("input_image", "image_caption", "image_id"))
        if any(one and len(one) != len(names) for one in (captions, labels)):
            raise row.error("input_image", "image_id and image_caption must be as many as the pictures")
        images = tuple(self.image(dialogue, name, row, "input_image") for name in names)
        derived = tuple(Derived("caption", words, first + n) for n, words in enumerate(captions) if words.strip())
        return images, derived, labels[0] if len(labels) == 1 else None

    def image(self, dialogue: Dialogue, name: str, row: Row, field: str) -> Image:
        """A picture that a field names, relative to the dialogue file.

        Raises:
            DataError: if it lies outside the data folder, or is no picture.
        """
        # Without resolving links: image/ may be a link to a larger disk.
        folder = Path(os.path.normpath(dialogue.path.absolute())).parent
        path = Path(os.path.normpath(folder / name))
        if not path.is_relative_to(folder.parent):
            raise row.error(field, f"{name!r} lies outside the data folder", "pictures lie in image/ beside dialog/")
        return self.data.media.image(path, path.relative_to(folder.parent).as_posix(), f"{row.where}: {field}")

    def cases(self, dialogue: Dialogue, items: Sequence[Item]) -> list[Case]:
        """The questions of a dialogue with their gold."""
        by_round = rounds_of(items)
        return [
            Case(self._question(dialogue, row, n), _gold(dialogue, row, n, by_round, len(items)))
            for n, row in enumerate(dialogue.questions)
        ]

    def _question(self, dialogue: Dialogue, row: Row, index: int) -> Question:
        parts: tuple[Part, ...] = (Text(row.text("question")),)
        derived: tuple[Derived, ...] = ()
        if row.has("question_image"):
            parts += (self.image(dialogue, row.text("question_image"), row, "question_image"),)
            caption = row.text("image_caption", "")
            derived = (Derived("caption", caption, 1),) if caption.strip() else ()
        return Question(
            id=opaque_id(self.card.name, dialogue.name, index),
            context=dialogue.name,
            parts=parts,
            instruction=INSTRUCTIONS.get(row.text("point"), "") if self.options.instructions else "",
            derived=derived,
        )


def rounds_of(items: Iterable[Item]) -> Mapping[str, Sequence[Evidence]]:
    """The items of each round, as evidence."""
    by_round: dict[str, list[Evidence]] = {}
    for item in items:
        by_round.setdefault(round_of(item.id), []).append(Evidence(item.id))
    return by_round


def read_dialogue(
    path: Path, check: Callable[[Row, set[str]], None] | None = None, user: str | None = None
) -> Dialogue:
    """One dialogue file.

    Args:
        path: the file.
        check: refuses a question, given the rounds there are; by default by Mem-Gallery's rules.
        user: the user's name where the file gives none; None requires one.

    Raises:
        DataError: for a missing or mistyped field, a repeated round, a dialogue without rounds or questions, an
            unknown category, a clue that names no round, or a question without an answer.
    """
    value = read_json(path)
    if not isinstance(value, dict):
        raise DataError(f"{path}: must be a mapping with multi_session_dialogues, not {kind(value)}; fetch it again")
    file = Row(value, str(path))
    sessions = file.rows("multi_session_dialogues", "session")
    rounds = [(session, row) for session in sessions for row in _rounds(session)]
    if not rounds:
        raise file.error("multi_session_dialogues", "holds no round", "a context needs something to remember")
    refuse_repeats(((row.text("round"), row) for _, row in rounds), "round")
    questions = file.rows("human-annotated QAs", "question")
    if not questions:
        raise file.error("human-annotated QAs", "holds no question")
    known = {row.text("round") for _, row in rounds}
    for row in questions:
        (check or _check_question)(row, known)
    profile = file.row("character_profile")
    name = profile.text("name") if user is None else profile.text("name", user)
    return Dialogue(path, path.stem, name, sessions, rounds, questions)


def _rounds(session: Row) -> list[Row]:
    session.text("session_id"), session.text("date")
    return session.rows("dialogues", f"session {session.text('session_id')} round")


def _check_question(row: Row, rounds: set[str]) -> None:
    row.text("question"), row.texts("session_id", ())
    if row.text("point") not in CATEGORIES:
        raise row.error("point", f"{row.text('point')!r} is no category; there are: {', '.join(CATEGORIES)}")
    if not _answer(row).strip():
        raise row.error("answer", "is empty", "a question without an answer cannot be scored")
    check_clues(row, rounds)


def check_clues(row: Row, rounds: set[str]) -> None:
    """Refuse a clue that names no round."""
    for clue in row.texts("clue"):
        if clue not in rounds:
            raise row.error("clue", f"{clue!r} is no round of this dialogue", "name rounds as in `round`")


def _answer(row: Row) -> str:
    try:
        answer = text.gold_text(row.values.get("answer"))
    except TypeError as error:
        raise row.error("answer", str(error)) from None
    return answer or ""


def _item(
    dialogue: Dialogue,
    session: Row,
    name: str,
    role: str,
    parts: tuple[Part, ...],
    derived: tuple[Derived, ...],
    speaker: str | None,
    label: str | None,
) -> Item:
    session_id = session.text("session_id")
    return Item(
        id=name + role,
        context=dialogue.name,
        order=0,
        parts=parts,
        derived=derived,
        time=session.text("date"),
        speaker=speaker,
        session=session_id,
        kind="turn" if role else "round",
        label=label,
        keys={"round": name, "session": session_id},
    )


def _gold(dialogue: Dialogue, row: Row, index: int, by_round: Mapping[str, Sequence[Evidence]], items: int) -> Gold:
    clues = dict.fromkeys(row.texts("clue"))
    return Gold(
        answers=(_answer(row),),
        evidence=tuple(evidence for clue in clues for evidence in by_round[clue]),
        category=row.text("point"),
        cluster=dialogue.name,
        native_id=f"{dialogue.name}:{index}",
        abstain=row.text("point") == "AR",
        extra={"items": items, "clue": list(clues), "answer": row.values["answer"]},
    )


def _predictions(file: Path, dialogue: Dialogue) -> Iterable[tuple[str, Answer]]:
    value = read_json(file)
    if not isinstance(value, list):
        raise DataError(f"{file}: must be the list of rows that the official runner writes, not {kind(value)}")
    if len(value) > len(dialogue.questions):
        here = f"the {len(dialogue.questions)} questions of {dialogue.path.name}"
        raise DataError(f"{file}: has {len(value)} rows for {here}; give the official results of this data")
    for n, (one, asked) in enumerate(zip(value, dialogue.questions, strict=False)):
        if not isinstance(one, dict):
            raise DataError(f"{file}: row {n}: must be a mapping, not {kind(one)}")
        row = Row(one, f"{file}: row {n}")
        if row.text("question") != asked.text("question"):
            raise row.error("question", f"differs from question {n} of {dialogue.path.name}", "give rows in data order")
        said = row.text("system_answer", "") if row.has("system_answer") else None
        yield f"{dialogue.name}:{n}", Answer(said)


def images_of(episodes: Mapping[str, Recorded]) -> Iterable[Image]:
    """The pictures of items and questions."""
    for episode in episodes.values():
        for parts in (*(i.parts for i in episode.items), *(c.question.parts for c in episode.cases)):
            yield from (part for part in parts if isinstance(part, Image))


def _findings(where: str, dialogues: Sequence[Dialogue], episodes: Mapping[str, Recorded]) -> Iterable[Finding]:
    asked = [row for dialogue in dialogues for row in dialogue.questions]
    found = {
        "contexts": len(dialogues),
        "sessions": sum(len(dialogue.sessions) for dialogue in dialogues),
        "rounds": sum(len(dialogue.rounds) for dialogue in dialogues),
        "questions": len(asked),
        "pictures": sum(len(row.texts("input_image", ())) for dialogue in dialogues for _, row in dialogue.rounds),
        "question pictures": sum(row.has("question_image") for row in asked),
    }
    counts = ", ".join(f"{n} {name}" for name, n in found.items())
    if found == COUNTS:
        yield Finding("info", where, f"{counts}: the whole release")
    else:
        yield Finding("info", where, f"{counts}: partial, {found['contexts']} of {COUNTS['contexts']} contexts")
    without = sum(not row.texts("clue") for row in asked)
    yield Finding("info", where, f"{len(asked) - without} questions with gold evidence, {without} without")
    lost = [image.source for image in images_of(episodes) if image.missing]
    if lost:
        yield Finding("warning", where, f"{len(lost)} pictures are not at hand, such as {lost[0]}; pixels need them")
