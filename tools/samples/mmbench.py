"""Writes the MMBench sample: drawn pictures with questions in English, and in Chinese with their circular copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from samples.drawing import Picture
from samples.scenes import as_tsv, bars, boats, clock, coded, crossing, jars, kite, table
from samples.text import readme

FOLDER = "benchmarks/mmbench/sample"
HOLDS = (
    "{english} English questions about drawn pictures, without circular copies, and {chinese} Chinese ones with the"
    " {copies} copies of their options turned, whose picture is the index of their base row"
)
ORIGIN = "Every picture, question and option was made up and drawn"
COLUMNS = (
    *("index", "question", "hint", "A", "B", "C", "D", "answer", "category", "image", "source"),
    *("l2-category", "comment", "split"),
)
OFFSET = 10**6

Ask = tuple[int, Callable[[], Picture], str, str, list[str], str, str, str]
"""Index, picture, question, hint, options, right letter, category, l2-category."""

CP, FP_S = "coarse_perception", "finegrained_perception (instance-level)"
FP_C, RR = "finegrained_perception (cross-instance)", "relation_reasoning"
AR, LR = "attribute_reasoning", "logic_reasoning"

ENGLISH: list[Ask] = [
    (3, kite, "What is the weather like in this picture?", "", ["Sunny", "Raining", "Foggy", "Snowing"], "A",
     "image_scene", CP),
    (7, kite, "What colour is the kite?", "", ["Blue", "Green", "White", "Red"], "D", "attribute_recognition", FP_S),
    (12, jars, "How many jars stand on the upper shelf?", "", ["Two", "Three", "Five"], "B", "object_localization",
     FP_S),
    (20, boats, "Where is the rowing boat?", "", ["Left of the sailing boat", "Right of the sailing boat"], "B",
     "spatial_relationship", FP_C),
    (21, boats, "Which of these are true?", "", ["The sail is blue.", "There are two boats.", "There is water.",
     "All of the above."], "D", "attribute_comparison", FP_C),
    (34, crossing, "What must a driver who comes to this crossing do?",
     "The light on the right is meant for traffic on this road.", ["Turn round", "Stop", "Drive on"], "B",
     "future_prediction", LR),
    (35, crossing, "Which street does the sign name?", "", ["Mill Lane", "Hill Road", "Mill Road", "Lane End"], "A",
     "ocr", FP_S),
    (48, bars, "Which statement fits the chart?", "", ["Monday has the highest bar.", "Thursday has the lowest bar.",
     "Tuesday is above Wednesday."], "B", "structuralized_imagetext_understanding", LR),
    (52, clock, "What is this thing for?", "", ["To tell the time", "To weigh", "To cook", "None of these"], "A",
     "function_reasoning", AR),
    (57, table, "What will happen to the book if the table is pulled away at once?", "",
     ["It falls.", "It rises.", "It stays in the air."], "A", "physical_relation", RR),
]  # fmt: skip
CHINESE: list[Ask] = [
    (7, kite, "风筝是什么颜色的？", "", ["蓝色", "绿色", "白色", "红色"], "D", "attribute_recognition", FP_S),
    (12, jars, "上层架子上有几个罐子？", "", ["两个", "三个", "五个"], "B", "object_localization", FP_S),
    (20, boats, "划艇在哪里？", "", ["在帆船左边", "在帆船右边"], "B", "spatial_relationship", FP_C),
]


def row(ask: Ask) -> dict[str, str]:
    """Return a base row; what is absent is left out."""
    index, draw, question, hint, options, answer, category, l2 = ask
    return {
        "index": str(index),
        "question": question,
        "hint": hint,
        **dict(zip("ABCD", options, strict=False)),
        "answer": answer,
        "category": category,
        "image": coded(draw),
        "l2-category": l2,
        "split": "dev",
    }


def copies(ask: Ask) -> Iterator[dict[str, str]]:
    """Yield the further passes: all options move one letter up each time, and the picture is the base row's index."""
    index, *_, options, answer, _, _ = ask
    for turn in range(1, len(options)):
        turned = options[turn:] + options[:turn]
        letter = "ABCD"[turned.index(options["ABCD".index(answer)])]
        yield {
            **row(ask),
            **dict(zip("ABCD", turned, strict=False)),
            "index": str(index + turn * OFFSET),
            "answer": letter,
            "image": str(index),
        }


def files() -> Iterator[tuple[str, bytes]]:
    """Yield every file of the sample: path from the repository's root, and bytes."""
    english = [row(ask) for ask in ENGLISH]
    base = [row(ask) for ask in CHINESE]
    further = [copy for ask in CHINESE for copy in copies(ask)]
    yield f"{FOLDER}/MMBench_DEV_EN.tsv", as_tsv(COLUMNS, english)
    yield f"{FOLDER}/MMBench_DEV_CN.tsv", as_tsv(COLUMNS, base + further)
    holds = HOLDS.format(english=len(english), chinese=len(base), copies=len(further))
    yield f"{FOLDER}/README.md", readme("MMBench", holds, ORIGIN)
