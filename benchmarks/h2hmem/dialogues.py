"""H2HMem's dialogue folders: sessions of turns, and questions that name the sessions which hold their answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memharness.datafile import Row, kind, read_json
from memharness.scoring.text import gold_text
from memharness.types import DataError

PARTS = ("dyadic", "multi-party")
CATEGORIES = {
    "unimodal precise recall": "UPR",
    "cross-modal related retrieval": "CRR",
    "knowledge resolution": "KR",
    "temporal reasoning": "TR",
    "multimodal causal reasoning": "MCR",
    "multimodal causal inference": "MCR",
    "reference & evolution tracking": "RET",
    "cross-turn reference tracking": "RET",
    "test-time learning": "TTL",
    "conflict detection": "CD",
    "answer refusal": "AR",
}
"""The sub types as published, two of them under two names; the official evaluator maps them alike."""
_ALIAS = re.compile(r"S(\d+)-(\d+)")


@dataclass(frozen=True)
class Dialogue:
    """One dialogue folder: a context. `sessions` and `questions` are by session name, in number order."""

    name: str
    folder: Path
    sessions: Mapping[str, Row]
    questions: Mapping[str, Sequence[Row]]

    def sessions_of(self, row: Row) -> list[str]:
        """The sessions that hold a question's answer, aliases resolved; some of them may not be in memory."""
        own = number(self.folder)
        names: dict[str, None] = {}
        for name in row.texts("answer_session"):
            alias = _ALIAS.fullmatch(name)
            names[f"session{int(alias[2])}" if alias and int(alias[1]) == own else name] = None
        return list(names)

    def asked(self) -> Iterable[tuple[str, str, Row]]:
        """All questions: native id, session they were asked in, row."""
        for session, rows in self.questions.items():
            for place, row in enumerate(rows):
                yield f"{self.name}/{session}:{place}", session, row


def read_dialogue(folder: Path, name: str) -> Dialogue:
    """One dialogue folder.

    Raises:
        DataError: for a missing or mistyped field, a dialogue without turns or questions, a question without an
            answer, or one that names a session which the dialogue has not.
    """
    sessions: dict[str, Row] = {}
    questions: dict[str, Sequence[Row]] = {}
    for scene in sorted((folder / "scenes").glob("session*"), key=number):
        if (scene / "session.json").is_file():
            sessions[scene.name] = row = read_mapping(scene / "session.json")
            row.text("timeline_date", "")
            for turn in row.rows("dialogue", "turn"):
                turn.text("role"), turn.row("content").text("text", "")
        if (scene / "questions.json").is_file():
            questions[scene.name] = read_mapping(scene / "questions.json").rows("questions", "question")
    if not any(row.rows("dialogue") for row in sessions.values()):
        raise DataError(f"{folder}: no session.json holds a turn; fetch the dialogue again")
    if not any(questions.values()):
        raise DataError(f"{folder}: no questions.json holds a question; fetch the dialogue again")
    dialogue = Dialogue(name, folder, sessions, questions)
    for _, _, row in dialogue.asked():
        _check(dialogue, row)
    return dialogue


def read_mapping(path: Path) -> Row:
    """A JSON file that holds a mapping.

    Raises:
        DataError: if it is none.
    """
    value = read_json(path)
    if not isinstance(value, dict):
        raise DataError(f"{path}: must be a mapping, not {kind(value)}; fetch it again")
    return Row(value, str(path))


def answer_of(row: Row) -> str:
    """The gold answer of a question, or what a result row says it is; numbers as text.

    Raises:
        DataError: if it is neither text nor a number.
    """
    try:
        return gold_text(row.values.get("original_answer")) or ""
    except TypeError as error:
        raise row.error("original_answer", str(error)) from None


def category(row: Row) -> str:
    """The short name of a question's sub type; as published where it is none of the nine."""
    plain = re.sub(r"\s*\([A-Z]+\)$", "", row.row("question_type").text("sub_type").strip())
    return CATEGORIES.get(plain.lower(), plain)


def number(path: Path) -> int:
    """The number in the name of a folder such as `session10`."""
    return int(re.sub(r"\D", "", path.name) or 0)


def _check(dialogue: Dialogue, row: Row) -> None:
    row.row("question").text("text"), row.row("question_type").text("sub_type")
    if not answer_of(row).strip():
        raise row.error("original_answer", "is missing or empty", "a question without an answer cannot be scored")
    for name in dialogue.sessions_of(row):
        if name not in dialogue.sessions and name not in dialogue.questions:
            raise row.error("answer_session", f"{name!r} is no session of this dialogue", "name one as its folder is")
