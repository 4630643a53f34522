"""Writes the LVBench sample: questions of all six types about two drawn films, in the official file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from samples.films import HEIGHT, WIDTH, film, garden, quay
from samples.text import readme

FOLDER = "benchmarks/lvbench/sample"
HOLDS = "{questions} questions of all six types, some of two, about {films} drawn films of {seconds} s"
ORIGIN = "Every film, question and option was made up and drawn"
SECONDS, RATE = 20, 1

FILMS = {"sample_Quay": (quay, "documentary"), "sample_Grdn": (garden, "selfmedia")}
KIR, EU, SUM = "key information retrieval", "event understanding", "summarization"
ER, REA, TG = "entity recognition", "reasoning", "temporal grounding"
QUESTIONS: dict[str, list[tuple[str, list[str], str, list[str], str]]] = {
    "sample_Quay": [
        ("What colour is the boat's sail?", ["red", "white", "blue", "black"], "B", [ER], "00:05-00:12"),
        ("What happens to the flag?", ["It is lowered", "It tears", "It turns from green to red", "Nothing"], "C",
         [EU, KIR], "00:08-00:10"),
        ("When does night fall?", ["00:02-00:04", "00:06-00:08", "00:09-00:11", "00:13-00:15"], "D", [TG],
         "00:13-00:15"),
        ("What is the film about?", ["A storm at sea", "A day at a quay", "A race", "A fishing trip"], "B", [SUM],
         "00:00-00:20"),
    ],
    "sample_Grdn": [
        ("What falls on the plant before its flower opens?", ["Snow", "Leaves", "Rain", "Ash"], "C", [KIR],
         "00:06-00:10"),
        ("Why is the sky grey for a while?", ["Night falls", "It rains", "There is a fire", "The lens is dirty"], "B",
         [REA], "00:06-00:10"),
        ("Which animal comes last?", ["A snail", "A bird", "A cat", "A bee"], "A", [ER, REA], "00:16-00:20"),
        ("What grows in the garden?", ["A tree", "Grass", "A cactus", "A flower"], "D", [SUM], "00:00-00:20"),
    ],
}  # fmt: skip


def lines() -> Iterator[dict[str, Any]]:
    """Yield the videos in the native form, uids counted through."""
    uid = 0
    for key, (_, genre) in FILMS.items():
        asked = []
        for question, options, answer, types, reference in QUESTIONS[key]:
            words = "".join(f"\n({letter}) {option}" for letter, option in zip("ABCD", options, strict=True))
            asked.append(
                {
                    "uid": str(uid),
                    "question": question + words,
                    "answer": answer,
                    "question_type": types,
                    "time_reference": reference,
                }
            )
            uid += 1
        info = {
            "duration_minutes": round(SECONDS / 60, 3),
            "fps": float(RATE),
            "resolution": {"width": WIDTH, "height": HEIGHT},
        }
        yield {"key": key, "type": genre, "qa": asked, "video_info": info}


def files() -> Iterator[tuple[str, bytes]]:
    """Yield every file of the sample: path from the repository's root, and bytes."""
    body = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines())
    yield f"{FOLDER}/video_info.meta.jsonl", body.encode()
    for key, (scene, _) in FILMS.items():
        yield f"{FOLDER}/videos/{key}.avi", film(scene, SECONDS, RATE)
    questions = sum(map(len, QUESTIONS.values()))
    holds = HOLDS.format(questions=questions, films=len(FILMS), seconds=SECONDS)
    yield f"{FOLDER}/README.md", readme("LVBench", holds, ORIGIN)
