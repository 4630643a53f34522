"""Writes the Mem-Gallery sample: dialogues with pictures, and questions of all nine types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from samples.drawing import jpeg
from samples.gallery_bees import BEES
from samples.gallery_clocks import CLOCKS
from samples.gallery_dialogue import Dialogue
from samples.text import as_json, lines, readme

FOLDER = "benchmarks/mem_gallery/sample"
HOLDS = (
    "{dialogues} dialogues of {sessions} sessions and {rounds} rounds with {pictures} pictures, and {questions}"
    " questions of all nine types (FR VS TTL TR VR MR KR CD AR)"
)
ORIGIN = "The people, every sentence and every picture were made up and drawn"


def sessions(dialogue: Dialogue) -> tuple[list[dict[str, Any]], dict[str, bytes]]:
    """Return the native sessions of a dialogue and its pictures by file name."""
    found: list[dict[str, Any]] = []
    files: dict[str, bytes] = {}
    pictures = 0
    for label, words in lines(dialogue.script):
        if label == "SESSION":
            found.append({"session_id": f"D{len(found) + 1}", "date": words, "dialogues": []})
            pictures = 0
            continue
        session = found[-1]
        rounds = session["dialogues"]
        if label == "USER":
            rounds.append({"round": f"{session['session_id']}:{len(rounds) + 1}", "user": words})
        elif label == "ASSISTANT":
            rounds[-1]["assistant"] = words
        else:  # a picture line: "IMAGE: key | caption"
            key, caption = words.split(" | ")
            pictures += 1
            name = f"{session['session_id']}_IMG_{pictures:03d}.jpg"
            files[name] = jpeg(dialogue.pictures[key]().done())
            rounds[-1]["image_id"] = [f"{session['session_id']}:IMG_{pictures:03d}"]
            rounds[-1]["input_image"] = [f"../image/{dialogue.name}/{name}"]
            rounds[-1]["image_caption"] = [caption]
    return found, files


def questions(dialogue: Dialogue) -> tuple[list[dict[str, Any]], dict[str, bytes]]:
    """Return the native questions of a dialogue and their pictures by file name."""
    rows: list[dict[str, Any]] = []
    files: dict[str, bytes] = {}
    for point, words, answer, clue, *shown in dialogue.questions:
        row: dict[str, Any] = {"point": point, "question": words}
        caption = ""
        if shown:
            key, caption = shown[0].split(" | ")
            name = f"QA_IMG_{len(files) + 1:03d}.jpg"
            files[name] = jpeg(dialogue.pictures[key]().done(shift=(4, -3), light=1.04))
            row["question_image"] = f"../image/{dialogue.name}/{name}"
        # An AR question names the session it seems to be about; nothing there is a clue.
        where, clues = (clue.split(), []) if point == "AR" else ([], clue.split())
        row |= {
            "answer": answer,
            "session_id": where or list(dict.fromkeys(c.split(":")[0] for c in clues)),
            "clue": clues,
        }
        if caption:
            row["image_caption"] = caption
        rows.append(row)
    return rows, files


def files() -> Iterator[tuple[str, bytes]]:
    """Yield every file of the sample: path from the repository's root, and bytes."""
    counts = dict.fromkeys(("dialogues", "sessions", "rounds", "pictures", "questions"), 0)
    for dialogue in (BEES, CLOCKS):
        told, shared = sessions(dialogue)
        asked, shown = questions(dialogue)
        body = {"character_profile": dialogue.profile, "multi_session_dialogues": told, "human-annotated QAs": asked}
        yield f"{FOLDER}/dialog/{dialogue.name}.json", as_json(body)
        for name, picture in (shared | shown).items():
            yield f"{FOLDER}/image/{dialogue.name}/{name}", picture
        sizes = (1, len(told), sum(len(s["dialogues"]) for s in told), len(shared) + len(shown), len(asked))
        counts = {key: counts[key] + size for key, size in zip(counts, sizes, strict=True)}
    yield f"{FOLDER}/README.md", readme("Mem-Gallery", HOLDS.format(**counts), ORIGIN)
