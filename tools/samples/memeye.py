"""Writes the MemEye sample: a toy shelf and a window box, seen again and again, asked about in both modes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from samples.drawing import Picture, jpeg
from samples.text import as_json, readme

FOLDER = "benchmarks/memeye/sample"
HOLDS = (
    "{tasks} tasks, each as a multiple-choice file of four rotations and as an open one: {rounds} rounds with"
    " {pictures} pictures and {questions} questions"
)
ORIGIN = "Every sentence and every picture was made up and drawn"
LETTERS = "ABCD"
COLOURS = {"red": "#c8453c", "blue": "#3d6fb0", "green": "#4f9153", "yellow": "#e2b93b", "white": "#f4f1ea"}


@dataclass(frozen=True)
class Task:
    """A task: rounds by session (user, picture and caption or nothing, assistant), and questions.

    A question is (id, X, Y, words, options, place of the right one, open answer, clue rounds).
    """

    name: str
    user: str
    sessions: Sequence[tuple[str, Sequence[tuple[str, tuple[Picture, str] | None, str]]]]
    questions: Sequence[tuple[str, str, str, str, tuple[str, ...], int, str, tuple[str, ...]]]


def shelf(toys: Sequence[tuple[str, str, str]], clock: str = "") -> Picture:
    """Draw a shelf of toys, each (shape, colour, number on it), and a wall clock's words above it."""
    view = Picture(320, 200, "#e7ddcc")
    view.box(0, 150, 320, 14, "#8a6540")
    for place, (shape, colour, number) in enumerate(toys):
        x = 34 + place * 62
        if shape == "ball":
            view.disc(x + 20, 128, 22, COLOURS[colour], edge="#3b3b3b")
        elif shape == "block":
            view.box(x, 108, 42, 42, COLOURS[colour], edge="#3b3b3b")
        else:
            view.shape([(x, 150), (x + 21, 96), (x + 42, 150)], COLOURS[colour], edge="#3b3b3b")
        if number:
            view.text(x + 20, 120, number, 16, "#1d1d1d", align="middle", bold=True)
    if clock:
        view.box(120, 14, 80, 30, "#2b2f36", radius=4)
        view.text(160, 20, clock, 16, "#9fe29a", align="middle")
    return view


def window(flowers: Sequence[str], label: str, *, rain: bool = False) -> Picture:
    """Draw a window box with a row of flowers and a label on the box."""
    view = Picture(320, 200, "#b9c4cc" if rain else "#cfe6f2")
    view.box(20, 130, 280, 50, "#7c5a3a", radius=4)
    for place, colour in enumerate(flowers):
        x = 48 + place * 46
        view.line([(x, 132), (x, 96)], "#3f7a44", 4)
        for dx, dy in ((-9, 0), (9, 0), (0, -9), (0, 9)):
            view.disc(x + dx, 88 + dy, 8, COLOURS[colour])
        view.disc(x, 88, 6, "#6a4a1c")
    view.box(110, 142, 100, 26, "#f4f1ea", radius=3)
    view.text(160, 146, label, 16, "#333333", align="middle", bold=True)
    if rain:
        for n in range(24):
            view.line([(13 * n + 4, 10 + 7 * (n % 5)), (13 * n, 24 + 7 * (n % 5))], "#6f8494", 2)
    return view


SHELF = Task(
    "Toy_Shelf_Log",
    "Nele",
    (
        (
            "2025-03-02",
            (
                (
                    "This is my shelf on the first day.",
                    (
                        shelf([("ball", "red", "4"), ("block", "blue", "7"), ("cone", "green", "")], "09:15"),
                        "A shelf with three toys under a small clock.",
                    ),
                    "Thank you, I will remember how it stands.",
                ),
                ("I dust it every Sunday.", None, "A good habit."),
            ),
        ),
        (
            "2025-03-09",
            (
                (
                    "I changed something today.",
                    (
                        shelf([("ball", "red", "4"), ("block", "yellow", "7"), ("cone", "green", "2")], "10:40"),
                        "The shelf with three toys again.",
                    ),
                    "I see it.",
                ),
                (
                    "And in the evening my brother came by.",
                    (
                        shelf([("cone", "green", "2"), ("ball", "red", "4")], "18:05"),
                        "The shelf with fewer toys.",
                    ),
                    "He seems to have rearranged it.",
                ),
            ),
        ),
    ),
    (
        ("T1", "X3", "Y1", "Which number stood on the ball on the first day?", ("2", "4", "7", "9"), 1, "4", ("D1:1",)),
        (
            "T2",
            "X2",
            "Y3",
            "What colour did the block have before and after I changed it?",
            ("blue, then yellow", "yellow, then blue", "red, then blue", "green, then yellow"),
            0,
            "blue, then yellow",
            ("D1:1", "D2:1"),
        ),
        (
            "T3",
            "X1",
            "Y2",
            "Which toy was gone in the evening of 9 March?",
            ("the ball", "the cone", "the block", "none"),
            2,
            "the block",
            ("D2:1", "D2:2"),
        ),
        (
            "T4",
            "X4",
            "Y1",
            "What time did the clock show in the picture with two toys?",
            ("09:15", "10:40", "16:05", "18:05"),
            3,
            "18:05",
            ("D2:2",),
        ),
    ),
)
BOX = Task(
    "Window_Box_Diary",
    "Ruben",
    (
        (
            "2025-05-11",
            (
                (
                    "My window box, just planted.",
                    (
                        window(["red", "red", "white", "yellow", "red"], "EAST 3"),
                        "A window box with five flowers and a label.",
                    ),
                    "Lovely colours.",
                ),
                ("I water it at seven.", None, "Before the sun is on it, well done."),
            ),
        ),
        (
            "2025-05-25",
            (
                (
                    "Two weeks later, and it rains.",
                    (
                        window(["red", "white", "yellow", "red"], "EAST 3", rain=True),
                        "A window box in the rain.",
                    ),
                    "One fewer than before, it seems.",
                ),
            ),
        ),
    ),
    (
        (
            "W1",
            "X3",
            "Y1",
            "How many red flowers were planted?",
            ("two", "three", "four", "five"),
            1,
            "three",
            ("D1:1",),
        ),
        (
            "W2",
            "X4",
            "Y1",
            "What does the label on the box say?",
            ("WEST 3", "EAST 5", "EAST 3", "NORTH 3"),
            2,
            "EAST 3",
            ("D1:1",),
        ),
        (
            "W3",
            "X2",
            "Y3",
            "Which colour has one flower fewer after two weeks?",
            ("red", "white", "yellow", "blue"),
            0,
            "red",
            ("D1:1", "D2:1"),
        ),
        (
            "W4",
            "X1",
            "Y2",
            "On which of the two days did it rain?",
            ("11 May", "25 May", "both", "neither"),
            1,
            "25 May",
            ("D2:1",),
        ),
    ),
)
TASKS = (SHELF, BOX)


def talk(task: Task) -> tuple[list[dict[str, Any]], dict[str, bytes]]:
    """Return the native sessions of a task and its pictures by file name."""
    sessions, pictures = [], {}
    for number, (date, told) in enumerate(task.sessions, 1):
        rounds: list[dict[str, Any]] = []
        for place, (user, shown, assistant) in enumerate(told, 1):
            row: dict[str, Any] = {"round": f"D{number}:{place}", "user": user, "assistant": assistant}
            if shown:
                view, caption = shown
                name = f"D{number}_IMG_{place:03d}.jpg"
                pictures[name] = jpeg(view.done())
                row["image_id"] = [f"D{number}:IMG_{place:03d}"]
                row["input_image"] = [f"{task.name}/{name}"]
                row["image_caption"] = [caption]
            rounds.append(row)
        sessions.append({"session_id": f"D{number}", "date": date, "dialogues": rounds})
    return sessions, pictures


def rotations(options: Sequence[str], right: int) -> list[dict[str, str]]:
    """Return the four rotations of the options: contents move one letter each time, and the right letter with them."""
    made = []
    for shift in range(4):
        turned = [options[(place - shift) % 4] for place in range(4)]
        made.append({**dict(zip(LETTERS, turned, strict=True)), "answer": LETTERS[(right + shift) % 4]})
    return made


def questions(task: Task, *, choice: bool) -> list[dict[str, Any]]:
    """Return the native questions of a task in one mode."""
    rows = []
    for name, x, y, words, options, right, answer, clue in task.questions:
        row: dict[str, Any] = {
            "question_id": name,
            "point": [[x], [y]],
            "question": words,
            "answer": LETTERS[right] if choice else answer,
            "session_id": list(dict.fromkeys(one.split(":")[0] for one in clue)),
            "clue": list(clue),
        }
        rows.append(row | ({"options": rotations(options, right)} if choice else {}))
    return rows


def files() -> Iterator[tuple[str, bytes]]:
    """Yield every file of the sample: path from the repository's root, and bytes."""
    shown = rounds = 0
    for task in TASKS:
        sessions, pictures = talk(task)
        shown, rounds = shown + len(pictures), rounds + sum(len(one["dialogues"]) for one in sessions)
        for choice, suffix in ((True, ""), (False, "_Open")):
            body = {
                "character_profile": {"name": task.user, "task_family": task.name},
                "multi_session_dialogues": sessions,
                "human-annotated QAs": questions(task, choice=choice),
            }
            yield f"{FOLDER}/dialog/{task.name}{suffix}.json", as_json(body)
        for name, content in pictures.items():
            yield f"{FOLDER}/image/{task.name}/{name}", content
    asked = sum(len(task.questions) for task in TASKS)
    words = HOLDS.format(tasks=len(TASKS), rounds=rounds, pictures=shown, questions=asked)
    yield f"{FOLDER}/README.md", readme("MemEye", words, ORIGIN)
