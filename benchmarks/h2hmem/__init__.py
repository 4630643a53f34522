"""H2HMem: what people said and showed to each other, in pairs and in groups, asked about session by session."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

from memharness.benchmark import Benchmark, BenchmarkCard, Recorded, ScoreRow, means
from memharness.benchmarks.h2hmem.dialogues import (
    CATEGORIES,
    PARTS,
    Dialogue,
    answer_of,
    category,
    number,
    read_dialogue,
)
from memharness.benchmarks.h2hmem.lexical import H2HMemScores
from memharness.benchmarks.h2hmem.results import read_results
from memharness.config import Config, option
from memharness.datafile import Row
from memharness.identity import opaque_id
from memharness.judging import Judge
from memharness.metric import Metric
from memharness.scoring.metrics import Abstained, AnswerLength, HitRate, Recall, RecallReadout, backed
from memharness.types import (
    Answer,
    Asset,
    Case,
    DataError,
    Evidence,
    Finding,
    Gold,
    Image,
    Item,
    Part,
    Question,
    Text,
    UserError,
    did_you_mean,
)

INSTRUCTIONS = {
    "CD": 'Reply "Yes" or "No" and nothing else.',
    "AR": 'If the conversations do not hold the answer, reply "Not mentioned" and nothing else.',
}
"""Answer-format words of two categories, to the effect of the official ones."""
COUNTS = {
    "contexts": 25,
    "sessions": 308,
    "items": 7078,
    "picture files": 1300,
    "questions": 2236,
    "questions with evidence": 1982,
}
REVISION = "555a613df9dc462b42e4edd53ff97e799572da99"


class H2HMemOptions(Config):
    """Toggles of H2HMem."""

    questions: Literal["all", "evidence"] = option(
        "all",
        "All 2,236 questions, or the 1,982 whose session is in memory.",
        source="`all`: official evaluator; `evidence`: GraphMemix",
    )
    instructions: bool = option(
        True,
        "Give CD and AR questions their official answer-format words, which tell the category.",
        source="official baselines (A-MEM, MuRAG, Naive RAG, NGM)",
    )


def session_of(item: str) -> str:
    """The session that an item belongs to."""
    return item.partition(":")[0]


@dataclass(frozen=True)
class SessionRecall(Recall):
    """Share of the gold sessions among those of the first k items: score `session_recall@k`.

    Gold evidence is whole sessions, about 23 turns each, so that item recall at 10 cannot pass about .4.
    """

    name: ClassVar[str] = "session_recall"

    def pointer(self, evidence: Evidence) -> str:
        """The session."""
        return session_of(evidence.item)

    def figure(self, shown: Sequence[str], gold: frozenset[str]) -> float:
        """Share of the gold sessions that the first k items touch: the cut is in items."""
        return len(gold.intersection(shown[: self.k])) / len(gold)


class H2HMem(Benchmark):
    """Each dialogue is a context: all its sessions are observed in order, then all its questions are asked."""

    card = BenchmarkCard(
        name="h2hmem",
        title="H2HMem",
        paper="arXiv:2606.09461",
        licence="MIT (README badge and hub card)",
        source="https://huggingface.co/datasets/varib/H2HMEM, code github.com/varib1/H2HMEM",
        revision=REVISION,
        version=1,
        splits={
            "all": "every dialogue",
            "dyadic": "20 dialogues of two people",
            "multi-party": "5 dialogues of a group",
            "NAME": "one dialogue, such as dyadic/dialogue10",
        },
        counts=COUNTS,
        cluster="the dialogue",
        primary="f1",
        assets=(Asset(f"hf://datasets/varib/H2HMEM@{REVISION}", ""),),
        reveals=("CD and AR questions carry answer-format words that tell the category: instructions=false",),
        errata=(
            "questions have no ids: theirs are `dyadic/dialogue10/session3:0`, by place in a session's questions.json",
            "246 questions name session0, which holds no talk, and 8 a session without session.json: they have no "
            "evidence, and questions=evidence leaves them out",
            "13 questions of the multi-party part name their session as S3-2: it is session2 of dialogue3",
            "the README counts 309 sessions; 308 hold session.json",
            "the lexical metrics drop stop words, `no` and `not` among them: gold answers such as No or Before score 0 "
            "whatever was said, as coded; f1_as_written keeps all words",
            "two sub types go by two names each: both count as MCR and RET",
            "evidence is whole sessions: recall@10 cannot pass about .4, so session_recall@10 stands beside it; "
            "recall@10 is over the questions with evidence, recall@10_all over all",
            "pictures have no captions: a captioner makes them, --model captioner=SPEC, where a method wants words",
        ),
        images=True,
    )
    options_class = H2HMemOptions
    options: H2HMemOptions

    def contexts(self, subset: str | None = None) -> Sequence[str]:
        """The dialogues, dyadic first, by number."""
        names = list(self.episodes)
        if subset is None or subset == "all":
            return names
        chosen = [name for name in names if name == subset or name.startswith(f"{subset}/")]
        if not chosen:
            known = (*PARTS, *names)
            hint = did_you_mean(subset, known)
            raise UserError(f"subset {subset!r}: no such part{hint}; there are: {', '.join(known)}")
        return chosen

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
        """The dialogues, read and validated but for their pictures."""
        return [read_dialogue(folder, name) for name, folder in self._folders()]

    def metrics(self) -> Sequence[Metric]:
        """The official ones, the batch judge, then retrieval by session and by turn, and answer length.

        AR questions name the session that they are about, so recall counts them, as GraphMemix does.
        """
        return (
            H2HMemScores(),
            Judge("h2hmem.v1"),
            SessionRecall(k=10, abstentions=True),
            Recall(k=10, abstentions=True),
            Recall(k=10, over_all=True),
            HitRate(k=10, abstentions=True),
            RecallReadout(),
            Abstained(),
            AnswerLength(),
        )

    def report(self, rows: Iterable[ScoreRow]) -> Mapping[str, float]:
        """Micro means over all questions, by category (`f1.UPR`) and by part (`f1.dyadic`)."""
        rows = list(backed(rows))
        figures = dict(means(rows))
        for part in PARTS:
            inside = means(row for row in rows if row.context.startswith(f"{part}/"))
            figures |= {f"{name}.{part}": value for name, value in inside.items() if "." not in name}
        return figures

    def predictions(self, path: Path) -> Iterable[tuple[str, Answer]]:
        """Answers from a folder of official result files, or from the leaderboard's prediction files.

        The former are `{dyadic,multi-party}/dialogueN/scenes/sessionM/…/results_*.json`, the latter
        `prediction_dyadic.json` and `prediction_multi_party.json`. Rows are in no order: they are matched within their
        session, or their part, by the words of question and gold answer.

        Raises:
            DataError: if no file belongs to a dialogue of the data, two files to one session, or a row to no question.
        """
        return read_results(path, self.dialogues)

    def check(self) -> Sequence[Finding]:
        """Counts against the card, sessions that questions name and memory lacks, sub types that nobody knows."""
        try:
            episodes = self.episodes
        except DataError as error:
            return [Finding("error", str(self.data.path), str(error))]
        return list(_findings(str(self.data.path), self.dialogues, episodes))

    def digest(self) -> Any:
        """Digests of the JSON files and of the pictures at hand, by their published names."""
        files = {}
        for dialogue in self.dialogues:
            for file in sorted(dialogue.folder.glob("scenes/*/*.json")):
                files[f"{dialogue.name}/{file.parent.name}/{file.name}"] = self.data.media.digest(file)
        pictures = (image for episode in self.episodes.values() for image in _images(episode))
        return files | {image.source: image.sha256 for image in pictures if image.sha256}

    def _folders(self) -> list[tuple[str, Path]]:
        path = self.data.path
        for root in (path, path / "data", path / "dataset"):
            found = [
                (f"{part}/{folder.name}", folder)
                for part in PARTS
                for folder in sorted((root / part).glob("dialogue*"), key=number)
                if (folder / "scenes").is_dir()
            ]
            if found:
                return found
        raise DataError(f"{path}: holds no dyadic/dialogueN/scenes; name the folder that holds dyadic/ or multi-party/")

    def _episode(self, dialogue: Dialogue) -> Recorded:
        turns = [
            (session, row, place, turn)
            for session, row in dialogue.sessions.items()
            for place, turn in enumerate(row.rows("dialogue", "turn"))
        ]
        items = [self._item(dialogue, order, *turn) for order, turn in enumerate(turns)]
        by_session: dict[str, list[Evidence]] = {}
        for item in items:
            by_session.setdefault(session_of(item.id), []).append(Evidence(item.id))
        cases = []
        for index, (native, session, row) in enumerate(dialogue.asked()):
            gold = _gold(dialogue, native, session, row, by_session, len(items))
            if gold.evidence or self.options.questions == "all":
                cases.append(Case(self._question(dialogue, session, index, row), gold))
        return Recorded(dialogue.name, items, cases)

    def _item(self, dialogue: Dialogue, order: int, session: str, row: Row, place: int, turn: Row) -> Item:
        content = turn.row("content")
        name = content.text("image", "").strip()
        shown = (self._image(dialogue, f"{session}/{name}", content),) if name else ()
        return Item(
            id=f"{session}:{place}",
            context=dialogue.name,
            order=order,
            parts=(Text(content.text("text", "")), *shown),
            time=row.text("timeline_date", "") or None,
            speaker=turn.text("role"),
            session=session,
            label=f"{session}/{name}" if name else session,  # answers cite "2.png in session10", questions "session 3"
            keys={"session": session},
        )

    def _question(self, dialogue: Dialogue, session: str, index: int, row: Row) -> Question:
        asked = row.row("question")
        names = (name.strip() for name in asked.text("image", "").split(","))
        placed = (name if "/" in name else f"{session}/{name}" for name in names if name)
        parts: tuple[Part, ...] = (Text(asked.text("text")), *(self._image(dialogue, name, asked) for name in placed))
        words = INSTRUCTIONS.get(category(row), "") if self.options.instructions else ""
        return Question(opaque_id("h2hmem", dialogue.name, index), dialogue.name, parts, instruction=words)

    def _image(self, dialogue: Dialogue, name: str, row: Row) -> Image:
        """A picture by `sessionN/FILE`."""
        session, _, file = name.partition("/")
        scenes = Path(os.path.normpath((dialogue.folder / "scenes").absolute()))  # without resolving links
        path = Path(os.path.normpath(scenes / session / "image" / file))
        if not session or not path.is_relative_to(scenes):
            raise row.error("image", f"{name!r} lies outside the dialogue", "pictures lie in sessionN/image/")
        return self.data.media.image(path, f"{dialogue.name}/{name}", f"{row.where}: image")


def _gold(
    dialogue: Dialogue, native: str, session: str, row: Row, by_session: Mapping[str, Sequence[Evidence]], items: int
) -> Gold:
    short = category(row)
    return Gold(
        answers=(answer_of(row),),
        evidence=tuple(one for name in dialogue.sessions_of(row) for one in by_session.get(name, ())),
        category=short,
        group=opaque_id("h2hmem-session", dialogue.name, session),
        cluster=dialogue.name,
        native_id=native,
        abstain=short == "AR",
        extra={
            "items": items,
            "answer_session": list(row.texts("answer_session")),
            "main_type": row.row("question_type").text("main_type", ""),
            "difficulty": row.text("difficulty", ""),
        },
    )


def _images(episode: Recorded) -> Iterable[Image]:
    for parts in (*(item.parts for item in episode.items), *(case.question.parts for case in episode.cases)):
        yield from (part for part in parts if isinstance(part, Image))


def _findings(where: str, dialogues: Sequence[Dialogue], episodes: Mapping[str, Recorded]) -> Iterable[Finding]:
    asked = [(dialogue, row) for dialogue in dialogues for _, _, row in dialogue.asked()]
    lost = [names for one, row in asked if one.sessions.keys().isdisjoint(names := one.sessions_of(row))]
    found = {
        "contexts": len(dialogues),
        "sessions": sum(len(dialogue.sessions) for dialogue in dialogues),
        "items": sum(len(episode.items) for episode in episodes.values()),
        "picture files": sum(len(list(dialogue.folder.glob("scenes/*/image/*"))) for dialogue in dialogues),
        "questions": len(asked),
        "questions with evidence": len(asked) - len(lost),
    }
    counts = ", ".join(f"{n:,} {name}" for name, n in found.items())
    whole = "the whole release" if found == COUNTS else f"partial, {len(dialogues)} of {COUNTS['contexts']} dialogues"
    yield Finding("info", where, f"{counts}: {whole}")
    if lost:
        named = Counter(name for names in lost for name in names).most_common(3)
        said = ", ".join(f"{name} ({n})" for name, n in named)
        yield Finding("warning", where, f"{len(lost)} questions name only sessions that hold no talk: {said}")
    strange = sorted({category(row) for _, row in asked} - set(CATEGORIES.values()))
    if strange:
        yield Finding("warning", where, f"question_type: unknown sub types, kept as they are: {', '.join(strange)}")
    missing = [image.source for episode in episodes.values() for image in _images(episode) if image.missing]
    if missing:
        words = f"{len(missing)} pictures are not at hand, such as {missing[0]}; pixels need them"
        yield Finding("warning", where, words)
