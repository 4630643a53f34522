"""Writes the RealWorldQA sample: questions with options in their text, and questions for a word or a number."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from samples.drawing import Picture
from samples.scenes import as_tsv, bars, boats, clock, coded, crossing, jars, table
from samples.text import readme

FOLDER = "benchmarks/realworldqa/sample"
HOLDS = "{choice} questions with options in their text and {free} for a word or a number, about drawn pictures"
ORIGIN = "Every picture, question and option was made up and drawn"
COLUMNS = ("index", "question", "answer", "image")
# In form as the publisher ends its questions, in words of our own.
LETTER = "Please give the letter of the right option, and no other word."
WORD = "Please give one word or number."

QUESTIONS: list[tuple[Callable[[], Picture], str, list[str], str]] = [
    (crossing, "Which light is on?", ["The upper one", "The middle one", "The lower one"], "A"),
    (crossing, "Where does the sign point?", ["To the left", "To the right"], "A"),
    (boats, "Which boat is further to the right?", ["The sailing boat", "The rowing boat"], "B"),
    (table, "What is nearest to the floor?", ["The book", "The table top", "The ball"], "C"),
    (jars, "How many jars stand on the lower shelf?", [], "2"),
    (clock, "How many numbers are written on the clock?", [], "4"),
    (bars, "On which day is the bar highest?", [], "Wed"),
    (table, "Is the ball on the table?", [], "No"),
]


def question(words: str, options: list[str]) -> str:
    """Return a question with its options and its answer format in one text, as RealWorldQA has them."""
    lines = [f"{letter}. {option}" for letter, option in zip("ABC", options, strict=False)]
    return f"{words}\n\n" + "".join(f"{line}\n" for line in lines) + (LETTER if options else WORD)


def files() -> Iterator[tuple[str, bytes]]:
    """Yield every file of the sample: path from the repository's root, and bytes."""
    rows = [
        {"index": str(index), "question": question(words, options), "answer": answer, "image": coded(draw)}
        for index, (draw, words, options, answer) in enumerate(QUESTIONS)
    ]
    yield f"{FOLDER}/RealWorldQA.tsv", as_tsv(COLUMNS, rows)
    choice = sum(bool(options) for _, _, options, _ in QUESTIONS)
    yield f"{FOLDER}/README.md", readme("RealWorldQA", HOLDS.format(choice=choice, free=len(rows) - choice), ORIGIN)
