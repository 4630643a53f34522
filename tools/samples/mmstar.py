"""Writes the MMStar sample: a question of each of the six categories about a drawn picture."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from samples.drawing import Picture
from samples.scenes import as_tsv, bars, boats, clock, coded, jars, kite, table, triangle
from samples.text import readme

FOLDER = "benchmarks/mmstar/sample"
HOLDS = "{questions} questions about drawn pictures, of all six categories and {fine} of the 18 l2 categories"
ORIGIN = "Every picture, question and option was made up and drawn"
COLUMNS = ("index", "question", "A", "B", "C", "D", "answer", "category", "l2_category", "bench", "image")

QUESTIONS: list[tuple[Callable[[], Picture], str, list[str], str, str, str]] = [
    (kite, "What does the picture show?", ["A kite over a hill", "A boat at sea", "A street", "A kitchen"], "A",
     "coarse perception", "image scene and topic"),
    (kite, "Which of these fits the mood of the picture?", ["Gloomy", "Cheerful", "Frightening", "Mournful"], "B",
     "coarse perception", "image emotion"),
    (jars, "How many jars are there in all?", ["2", "3", "5", "6"], "C", "fine-grained perception", "object counting"),
    (jars, "Where does the empty jar stand?", ["Upper shelf, left", "Upper shelf, right", "Lower shelf, left",
     "Lower shelf, right"], "D", "fine-grained perception", "localization"),
    (table, "What is on the table?", ["A ball", "A book", "A lamp", "A cup"], "B", "instance reasoning",
     "single-instance reasoning"),
    (boats, "How does the rowing boat compare with the sailing boat?", ["It is larger.", "It has a sail.",
     "It is smaller.", "It is further left."], "C", "instance reasoning", "cross-instance relation reasoning"),
    (bars, "By how much is Wednesday above Tuesday?", ["1", "3", "5", "8"], "B", "logical reasoning",
     "diagram reasoning"),
    (clock, "Which time does the clock show?", ["4:00", "12:20", "6:00", "8:00"], "A", "logical reasoning",
     "common reasoning"),
    (boats, "What moves the boat with the blue sail?", ["A motor", "Oars", "The current alone", "Wind"], "D",
     "science & technology", "biology & chemistry & physics"),
    (triangle, "How long is the side without a number?", ["5", "6", "7", "12"], "A", "math", "geometry"),
    (bars, "What is the mean of the four bars?", ["3", "4", "4.5", "5"], "C", "math", "statistical reasoning"),
]  # fmt: skip


def files() -> Iterator[tuple[str, bytes]]:
    """Yield every file of the sample: path from the repository's root, and bytes."""
    rows = [
        {
            "index": str(index),
            "question": question,
            **dict(zip("ABCD", options, strict=True)),
            "answer": answer,
            "category": category,
            "l2_category": fine,
            "bench": "sample",
            "image": coded(draw),
        }
        for index, (draw, question, options, answer, category, fine) in enumerate(QUESTIONS)
    ]
    yield f"{FOLDER}/MMStar.tsv", as_tsv(COLUMNS, rows)
    holds = HOLDS.format(questions=len(rows), fine=len({row["l2_category"] for row in rows}))
    yield f"{FOLDER}/README.md", readme("MMStar", holds, ORIGIN)
