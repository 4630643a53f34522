"""Writes the SimpleVQA sample: short factual questions about drawn pictures, in English and in Chinese."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from samples.drawing import Picture
from samples.scenes import clock, flag, picture, tile, triangle
from samples.text import as_json, readme

FOLDER = "benchmarks/simplevqa/sample"
HOLDS = "{questions} questions about {pictures} drawn pictures, half in English and half in Chinese"
ORIGIN = "Every picture and question was made up and drawn"
PICTURES: dict[str, Callable[[], Picture]] = {"flag": flag, "tile": tile, "triangle": triangle, "clock": clock}

QUESTIONS = [
    ("flag", "EN", "What is the capital of the country whose flag this is?", "Tokyo", "Object Identification",
     "Geography", "Which country's flag is white with a red disc?", "Japan"),
    ("flag", "CN", "这是哪个国家的国旗？", "日本", "Object Identification", "Geography", "图中的物体是什么？", "国旗"),
    ("tile", "EN", "Which chemical element is this?", "Gold", "Text Recognition", "Natural Science",
     "Which letters stand on the tile?", "Au"),
    ("tile", "CN", "图中元素的原子序数是多少？", "79", "Text Recognition", "Natural Science", "图中写着哪个数字？",
     "79"),
    ("triangle", "EN", "How long is the side that has no number?", "5", "Logic and Science", "Mathematics",
     "How long are the two other sides?", "3 and 4"),
    ("clock", "CN", "钟上显示几点？", "四点", "Object Identification", "Everyday Life", "时针指向哪里？", "四"),
]  # fmt: skip


def files() -> Iterator[tuple[str, bytes]]:
    """Yield every file of the sample: path from the repository's root, and bytes."""
    rows = [
        {
            "data_id": number,
            "image": f"images/{name}.jpg",
            "image_description": "",
            "language": language,
            "question": question,
            "answer": answer,
            "original_category": field,
            "source": "sample",
            "atomic_question": atom,
            "atomic_fact": fact,
            "vqa_category": kind,
        }
        for number, (name, language, question, answer, kind, field, atom, fact) in enumerate(QUESTIONS)
    ]
    yield f"{FOLDER}/simpleVQA_final_modified.json", as_json(rows)
    for name, draw in PICTURES.items():
        yield f"{FOLDER}/images/{name}.jpg", picture(draw)
    yield f"{FOLDER}/README.md", readme("SimpleVQA", HOLDS.format(questions=len(rows), pictures=len(PICTURES)), ORIGIN)
