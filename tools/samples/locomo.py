"""Writes the LoCoMo sample: two conversations in the native layout, with questions of all five categories."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from samples.locomo_talks import EMPTY_DATES, TALKS, Row
from samples.text import as_json, lines, readme

FOLDER = "benchmarks/locomo/sample"
HOLDS = (
    "{talks} conversations of {sessions} sessions and {turns} turns, and {questions} questions of all five categories,"
    " with the oddities of the real file (numbers as answers, dates without sessions, two ids in one evidence field,"
    " category 5 with and without an answer)"
)
ORIGIN = "The people and every sentence were made up, and the image addresses lead nowhere; the file is written"


def conversation(name: str, script: str) -> dict[str, Any]:
    """Return one native conversation, without its questions, from its script."""
    talk: dict[str, Any] = {}
    observation: dict[str, Any] = {}
    summary: dict[str, str] = {}
    events: dict[str, Any] = {}
    speakers: list[str] = []
    turns: list[dict[str, Any]] = []
    number = 0
    for label, words in lines(script):
        if label == "SESSION":
            number += 1
            turns = []
            talk[f"session_{number}_date_time"], talk[f"session_{number}"] = words, turns
            observation[f"session_{number}_observation"] = {speaker: [] for speaker in speakers}
            events[f"events_session_{number}"] = {"date": words.split(" on ")[1]}
        elif label == "SUMMARY":
            summary[f"session_{number}_summary"] = words
        elif label == "FACT":
            turn, speaker, fact = words.split(" | ")
            observation[f"session_{number}_observation"].setdefault(speaker, []).append([fact, turn])
        elif label == "EVENT":
            speaker, event = words.split(" | ")
            events[f"events_session_{number}"].setdefault(speaker, []).append(event)
        elif label == "IMAGE":
            address, caption, query = (part.strip() for part in words.split("|"))
            shown = {"img_url": [address] if address else None, "blip_caption": caption, "query": query or None}
            turns[-1].update({key: value for key, value in shown.items() if value})
        else:
            speakers += [label] if label not in speakers else []
            turns.append({"speaker": label, "dia_id": f"D{number}:{len(turns) + 1}", "text": words})
    dates = {f"session_{number + 1 + i}_date_time": date for i, date in enumerate(EMPTY_DATES[name])}
    people = {"speaker_a": speakers[0], "speaker_b": speakers[1]}
    return {
        "conversation": {**people, **talk, **dates},
        "event_summary": events,
        "observation": observation,
        "session_summary": summary,
        "sample_id": name,
    }


def question(row: Row) -> dict[str, Any]:
    """Return one native question; a field that is None is left out, as LoCoMo does."""
    category, words, answer, trap, evidence = row
    fields = {
        "question": words,
        "answer": answer,
        "evidence": evidence,
        "category": category,
        "adversarial_answer": trap,
    }
    return {key: value for key, value in fields.items() if value is not None}


def files() -> Iterator[tuple[str, bytes]]:
    """Yield every file of the sample: path from the repository's root, and bytes."""
    talks = [{"qa": [question(row) for row in rows], **conversation(name, script)} for name, script, rows in TALKS]
    sessions = [s for talk in talks for s in talk["conversation"].values() if isinstance(s, list)]
    counts = {"talks": len(talks), "sessions": len(sessions), "turns": sum(map(len, sessions)),
              "questions": sum(len(talk["qa"]) for talk in talks)}  # fmt: skip
    yield f"{FOLDER}/locomo_sample.json", as_json(talks)
    yield f"{FOLDER}/README.md", readme("LoCoMo", HOLDS.format(**counts), ORIGIN)
