"""Writes the BLINK sample: a question of each of the fourteen tasks over drawn pictures."""

from __future__ import annotations

from collections.abc import Iterator

from samples.cards import Draw, apples, coded, framed, grey, house, island, pattern, plant, spots, torn
from samples.scenes import as_tsv
from samples.text import readme

FOLDER = "benchmarks/blink/sample"
HOLDS = "{questions} questions, one of each task, over {pictures} drawn pictures, in VLMEvalKit's table"
ORIGIN = "Every picture, question and option was made up and drawn"
COLUMNS = ("index", "question", "A", "B", "C", "D", "answer", "category", "image")
SECOND, THIRD = "the second image", "the third image"

QUESTIONS: list[tuple[str, str, list[str], str, list[Draw]]] = [
    ("Art_Style", "Which image is painted in the style of the first image?", [SECOND, THIRD], "B",
     [pattern("discs", "#2f55b0"), pattern("stripes", "#2f55b0"), pattern("discs", "#c8372d")]),
    ("Counting", "How many apples lie on the cloth?", ["4", "5", "6", "7"], "C", [apples(6)]),
    ("Forensic_Detection", "These houses have two windows. In which image was one painted out?",
     ["the first image", SECOND, THIRD, "the fourth image"], "A",
     [house("#c8372d", windows=1), house("#3c9a4b"), house("#e0b020"), house("#2f55b0")]),
    ("Functional_Correspondence", "R in the first image marks a place to walk on. Which point of the second is one?",
     ["Point A", "Point B", "Point C", "Point D"], "B",
     [spots([("R", 48, 60)]), spots([("A", 12, 40), ("B", 48, 44), ("C", 84, 40), ("D", 20, 14)])]),
    ("IQ_Test", "Each wall repeats the shape of the one before in the next colour. Which wall breaks the rule?",
     ["the first image", SECOND, THIRD, "none of them"], "C",
     [pattern("boxes", "#c8372d"), pattern("boxes", "#e0b020"), pattern("stripes", "#3c9a4b")]),
    ("Jigsaw", "The lower right corner of the first image is missing. Which image fits there?", [SECOND, THIRD], "A",
     [torn(pattern("boxes", "#2f55b0")), pattern("boxes", "#2f55b0"), pattern("discs", "#2f55b0")]),
    ("Multi-view_Reasoning", "The second image was taken after the camera moved. Which way did it move?",
     ["left", "right"], "B", [island(60, 38), island(48, 38, drift=-12)]),
    ("Object_Localization", "Which box holds the whole flower and nothing else?", ["Box A", "Box B"], "B",
     [framed(plant(3), [("A", 30, 26, 36, 44), ("B", 33, 4, 30, 26)])]),
    ("Relative_Depth", "Which point is closer to the camera?", ["A is closer", "B is closer"], "B",
     [spots([("A", 48, 28), ("B", 48, 64)])]),
    ("Relative_Reflectance", "Which patch is darker?", ["A is darker", "B is darker", "about the same"], "A",
     [grey([("A", 60), ("B", 190)])]),
    ("Semantic_Correspondence", "R in the first image lies on the far end of a path. Which point of the second does?",
     ["Point A", "Point B", "Point C", "Point D"], "D",
     [spots([("R", 48, 26)]), spots([("A", 30, 66), ("B", 64, 66), ("C", 48, 54), ("D", 48, 28)], "#dfe8d2")]),
    ("Spatial_Relation", "Is the cross to the left of the mountain?", ["yes", "no"], "A", [island(22, 36)]),
    ("Visual_Correspondence", "Which point of the second image is the point R of the first?",
     ["Point A", "Point B", "Point C", "Point D"], "C",
     [spots([("R", 40, 48)]), spots([("A", 16, 30), ("B", 76, 34), ("C", 42, 50), ("D", 60, 66)])]),
    ("Visual_Similarity", "Which image is more like the first?", [SECOND, THIRD], "A",
     [house("#3c9a4b"), house("#3c9a4b", windows=1), plant(2)]),
]  # fmt: skip


def files() -> Iterator[tuple[str, bytes]]:
    """Yield every file of the sample: path from the repository's root, and bytes."""
    rows = [
        {
            "index": str(index),
            "question": question,
            **dict(zip("ABCD", options, strict=False)),
            "answer": answer,
            "category": task,
            "image": coded(pictures),
        }
        for index, (task, question, options, answer, pictures) in enumerate(QUESTIONS)
    ]
    yield f"{FOLDER}/BLINK.tsv", as_tsv(COLUMNS, rows)
    holds = HOLDS.format(questions=len(rows), pictures=sum(len(pictures) for *_, pictures in QUESTIONS))
    yield f"{FOLDER}/README.md", readme("BLINK", holds, ORIGIN)
