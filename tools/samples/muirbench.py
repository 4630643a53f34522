"""Writes the MuirBench sample: questions over several drawn pictures, each beside a twin that has no answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from samples.cards import Draw, apples, coded, dial, house, island, plant
from samples.scenes import as_tsv
from samples.text import readme

FOLDER = "benchmarks/muirbench/sample"
HOLDS = (
    "{questions} questions of {tasks} tasks over {pictures} drawn pictures, half of them unanswerable twins of the"
    " others, in VLMEvalKit's table"
)
ORIGIN = "Every picture, question and option was made up and drawn"
COLUMNS = ("index", "question", "A", "B", "C", "D", "answer", "task", "image_relation", "image_type",
           "counterpart_idx", "image")  # fmt: skip
NONE = "None of the choices provided"


class Pair(NamedTuple):
    """An answerable question, and what differs in its unanswerable twin: other words, options or pictures."""

    task: str
    relation: str
    kind: str
    question: str
    options: list[str]
    answer: str
    pictures: list[Draw]
    twin_question: str | None = None
    twin_options: list[str] | None = None
    twin_pictures: list[Draw] | None = None


PAIRS = [
    Pair("Counting", "Independent", "Drawings",
         "How many apples are there in <image> and <image> together?", ["5", "7", "8", NONE], "B",
         [apples(3), apples(4)], twin_options=["5", "6", "8", NONE]),
    Pair("Difference Spotting", "Scene-Multiview", "Drawings",
         "<image> <image> What was changed from the first picture to the second?",
         ["A window was bricked up", "Smoke rises from the chimney", "The door was painted", NONE], "C",
         [house("#2f55b0"), house("#c8372d")], twin_pictures=[house("#2f55b0"), house("#2f55b0")]),
    Pair("Ordering", "Temporal", "Drawings",
         "<image> <image> <image> In which order were these pictures taken?",
         ["first, second, third", "second, third, first", "third, first, second", NONE], "B",
         [plant(3), plant(0), plant(2)], twin_pictures=[plant(2), plant(3), plant(0)],
         twin_options=["first, second, third", "second, third, first", "second, first, third", NONE]),
    Pair("Visual Retrieval", "Partial Similarity", "Drawings",
         "Which picture shows the same house as this one? <image>", ["<image>", "<image>", "<image>", NONE], "A",
         [house("#3c9a4b"), house("#3c9a4b", smoke=True), house("#c8372d"), house("#2f55b0")],
         twin_pictures=[house("#3c9a4b"), house("#e0b020"), house("#c8372d"), house("#2f55b0")]),
    Pair("Image-Text Matching", "Overall Similarity", "Drawings",
         "Which picture shows a clock at four?", ["<image>", "<image>", "<image>", NONE], "C",
         [dial(2), dial(8), dial(4)], twin_question="Which picture shows a clock at eleven?"),
    Pair("Geographic Understanding", "Complementary", "Maps",
         "On which coast does the cross lie that is in <image> and not in <image>?",
         ["the west", "the east", "the north", NONE], "A", [island(16, 38), island(48, 56)],
         twin_options=["the south", "the east", "the north", NONE]),
]  # fmt: skip


def rows() -> Iterator[dict[str, str]]:
    """Yield the rows: each answerable question, then its twin."""
    for place, pair in enumerate(PAIRS):
        told = [
            (pair.question, pair.options, pair.answer, pair.pictures),
            (pair.twin_question or pair.question, pair.twin_options or pair.options, "D",
             pair.twin_pictures or pair.pictures),
        ]  # fmt: skip
        for half, (question, options, answer, pictures) in enumerate(told):
            yield {
                "index": str(2 * place + half),
                "question": question,
                **dict(zip("ABCD", options, strict=True)),
                "answer": answer,
                "task": pair.task,
                "image_relation": pair.relation,
                "image_type": pair.kind,
                "counterpart_idx": str(2 * place + 1 - half),
                "image": coded(pictures),
            }


def files() -> Iterator[tuple[str, bytes]]:
    """Yield every file of the sample: path from the repository's root, and bytes."""
    told = list(rows())
    yield f"{FOLDER}/MUIRBench.tsv", as_tsv(COLUMNS, told)
    pictures = sum(len(pair.pictures) + len(pair.twin_pictures or pair.pictures) for pair in PAIRS)
    holds = HOLDS.format(questions=len(told), tasks=len({pair.task for pair in PAIRS}), pictures=pictures)
    yield f"{FOLDER}/README.md", readme("MuirBench", holds, ORIGIN)
