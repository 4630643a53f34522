"""Writes the MVBench sample: questions about drawn films, some about a stretch of one, one about a folder of frames."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from samples.films import cups, film, frames, kitchen, lamp, rolling
from samples.text import as_json, readme

FOLDER = "benchmarks/mvbench/sample"
HOLDS = (
    "{questions} questions of {tasks} tasks about {films} drawn films and a folder of frames, some with start and end;"
    " two films of different folders share one name"
)
ORIGIN = "Every film, question and option was made up and drawn"
RATE = 2  # frames a second; folders of frames have 3

# Scene, and how long it is in seconds.
FILMS = {
    "clevrer/video_validation/video_10009.avi": (rolling("#c8372d"), 6),
    "clevrer/video_validation/video_10010.avi": (rolling("#2c9a4b", left=True, more=3), 6),
    "perception/videos/video_10009.avi": (lamp, 6),  # the name of another folder's film
    "perception/videos/video_204.avi": (cups, 8),
    "star/Charades_v1_480/KTC01.avi": (kitchen, 8),
}
# Scene, and how many frames.
STILLS = {"tvqa/frames_fps3_hq/harbour_s01e02_seg01_clip_07": (rolling("#7a4a9b", more=2), 12)}

Asked = tuple[str, str, list[str], str] | tuple[str, str, list[str], str, float, float]
QUESTIONS: dict[str, list[Asked]] = {
    "action_sequence": [
        ("KTC01.avi", "What happened just before the person lifted the pot?",
         ["They sat down.", "They opened the cupboard.", "They put out the light.", "They ate."],
         "They opened the cupboard.", 0.0, 5.5),
        ("KTC01.avi", "What happened after the person lifted the pot?",
         ["They put out the light.", "They opened the cupboard.", "They left by the window.", "They washed a cup."],
         "They put out the light.", 4.0, 8.0),
    ],
    "episodic_reasoning": [
        ("harbour_s01e02_seg01_clip_07", "Where is the ball when the scene ends?",
         ["On the left", "Under the table", "Behind a door", "In a box", "On the right"], "On the right", 0.0, 4.0),
    ],
    "moving_direction": [
        ("video_10009.avi", "Which way does the red ball roll?", ["Up.", "To the left.", "To the right.", "It rests."],
         "To the right."),
        ("video_10010.avi", "Which way does the green ball roll?", ["To the left.", "To the right.", "It rests."],
         "To the left."),
    ],
    "moving_count": [
        ("video_10010.avi", "How many things move?", ["0", "1", "3", "4"], "1"),
    ],
    "object_shuffle": [
        ("video_204.avi", "Under which cup is the ball in the end?",
         ["The left one.", "The middle one.", "The right one."], "The middle one."),
    ],
    "state_change": [
        ("video_10009.avi", "Is the lamp lit at the end?", ["yes", "no", "it has no lamp"], "yes"),
    ],
}  # fmt: skip


def rows(asked: list[Asked]) -> list[dict[str, Any]]:
    """Return questions in the native form."""
    told = []
    for name, question, candidates, answer, *bounds in asked:
        row: dict[str, Any] = {"video": name, "question": question, "candidates": candidates, "answer": answer}
        if bounds:
            row |= {"start": bounds[0], "end": bounds[1]}
        told.append(row)
    return told


def files() -> Iterator[tuple[str, bytes]]:
    """Yield every file of the sample: path from the repository's root, and bytes."""
    for task, asked in QUESTIONS.items():
        yield f"{FOLDER}/json/{task}.json", as_json(rows(asked))
    for name, (scene, seconds) in FILMS.items():
        yield f"{FOLDER}/video/{name}", film(scene, seconds, RATE)
    for name, (scene, count) in STILLS.items():
        for place, body in enumerate(frames(scene, count), 1):
            yield f"{FOLDER}/video/{name}/{place:05d}.jpg", body
    holds = HOLDS.format(questions=sum(map(len, QUESTIONS.values())), tasks=len(QUESTIONS), films=len(FILMS))
    yield f"{FOLDER}/README.md", readme("MVBench", holds, ORIGIN)
