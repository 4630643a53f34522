"""Official result files of H2HMem, read as predictions: those that its baselines write, and the leaderboard's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from memharness.benchmarks.h2hmem.dialogues import PARTS, Dialogue, answer_of, read_mapping
from memharness.datafile import Row
from memharness.types import Answer, DataError

BOARD = {
    "prediction_dyadic.json": "dyadic",
    "prediction_multi_party.json": "multi-party",
    "prediction_multiparty.json": "multi-party",
}
"""The leaderboard's files, one of them under two names, and the part that each answers."""


def read_results(path: Path, dialogues: Sequence[Dialogue]) -> Iterable[tuple[str, Answer]]:
    """Answers by native id.

    Args:
        path: a folder of result files, or one of them.
        dialogues: the data.

    Raises:
        DataError: if no file belongs to a dialogue of the data, two files to one session, or a row to no question.
    """
    none = True
    for scope, file in _files(path).items():
        asked = [
            (name, row)
            for dialogue in dialogues
            for name, _, row in dialogue.asked()
            if name.startswith((f"{scope}:", f"{scope}/"))
        ]
        if asked:
            none = False
            yield from _matched(file, asked, scope)
    if none:
        raise DataError(
            f"{path}: holds no results_*.json under dyadic/ or multi-party/ for any dialogue of the data, and no "
            "prediction_dyadic.json or prediction_multi_party.json; name the folder that holds them"
        )


def _files(path: Path) -> dict[str, Path]:
    """Result files by what they answer: `dyadic/dialogue10/session3`, or `dyadic`."""
    found: dict[str, Path] = {}
    for file in sorted(path.rglob("*.json")) if path.is_dir() else [path]:
        scope = BOARD.get(file.name) or (_session(file) if file.name.startswith("results_") else None)
        if scope in found:
            raise DataError(f"{file}: answers the same questions as {found[scope]}; keep one method's results there")
        if scope:
            found[scope] = file
    return found


def _session(file: Path) -> str | None:
    """The dialogue and the session that a result file's path names."""
    folders = file.absolute().parts[:-1]
    for at, part in enumerate(folders):
        if part in PARTS and folders[at + 1 :] and folders[at + 1].startswith("dialogue"):
            session = next((name for name in folders[at + 2 :] if name.startswith("session")), None)
            return f"{part}/{folders[at + 1]}/{session}" if session else None
    return None


def _matched(file: Path, asked: Sequence[tuple[str, Row]], scope: str) -> Iterable[tuple[str, Answer]]:
    """Answers of rows that come in no order; the same words asked twice go to the questions in turn."""
    waiting: dict[tuple[str, str], list[str]] = {}
    for name, row in asked:
        waiting.setdefault((row.row("question").text("text"), answer_of(row)), []).append(name)
    body = read_mapping(file)
    for row in body.rows("predictions" if body.has("predictions") else "results", "row"):
        failed = row.values.get("success") is False  # its answer is the message of an error
        if failed and not row.has("question_text"):
            continue  # the baselines' own record of a crash names no question
        names = waiting.get((row.text("question_text"), answer_of(row)))
        if not names:
            problem = f"is no question of {scope} with this original_answer, or stands here once too often"
            raise row.error("question_text", problem, "give the results of this data")
        yield names.pop(0), Answer(row.text("system_answer", "") if row.has("system_answer") and not failed else None)
