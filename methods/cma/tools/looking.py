"""Tools that only look: inspect, best, retrieve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pydantic

from memharness.methods.cma.controller import describe
from memharness.methods.cma.tools.back_end import Reference
from memharness.methods.cma.tools.desk import Desk
from memharness.methods.cma.tools.tool import Arguments, Result, Tool, ToolError
from memharness.retrieval import words

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

Criterion = Literal["words", "sharpness", "brightness", "contrast", "colour", "size"]


class Inspect(Arguments):
    """Arguments of `inspect`."""

    pictures: list[Reference] = pydantic.Field(min_length=1, max_length=8, description="which")


class Best(Arguments):
    """Arguments of `best`."""

    pictures: list[Reference] = pydantic.Field(min_length=2, max_length=25, description="which to choose among")
    by: Criterion = pydantic.Field("words", description="words: agreement of notes and `text`; the others by pixels")
    text: str = pydantic.Field("", max_length=1000, description="what the best one shows, for `words`")


class Retrieve(Arguments):
    """Arguments of `retrieve`."""

    query: str = pydantic.Field(min_length=1, max_length=2000, description="the user's request, or what is looked for")


async def inspect(desk: Desk, asked: Inspect) -> Result:
    """Notes, size and measures of pictures, and the pictures themselves."""
    lines = []
    for name in asked.pictures:
        picture = desk.open(name)
        notes = f"this turn, by {desk.products[name].operation}" if name in desk.products else about(desk, name)
        measures = ", ".join(f"{key} {measure(picture, key):.0f}" for key in ("brightness", "contrast", "sharpness"))
        lines.append(f"{name}: {picture.width}x{picture.height}; {measures}; {notes}")
    return Result("\n".join(lines), tuple(image for name in asked.pictures for image in desk.image(name)))


async def best(desk: Desk, asked: Best) -> Result:
    """One of several pictures: the highest by a measure, the first among equals."""
    if asked.by == "words" and not asked.text.strip():
        raise ToolError("best: `by` is words, so `text` must say what the best picture shows")
    scores = [(await _score(desk, name, asked), name) for name in asked.pictures]
    top, winner = max(scores, key=lambda one: one[0])
    table = ", ".join(f"{name}: {score:.2f}" for score, name in scores)
    return Result(f"{winner} is best by {asked.by} ({top:.2f}); {table}", desk.image(winner))


async def retrieve(desk: Desk, asked: Retrieve) -> Result:
    """Earlier pictures that a request needs, by CoRE; possibly none."""
    scene = desk.scene
    found = await desk.retriever.retrieve(asked.query, scene.uploads, scene.candidates, scene.lines)
    known = {one.asset.id: one for one in scene.candidates}
    desk.retrieved = tuple(id for id in dict.fromkeys(found.ids) if id in known)
    lines = [describe(known[id]) for id in desk.retrieved]
    return Result("\n".join(lines) or "no earlier picture is needed", tuple(
        image for id in desk.retrieved for image in desk.image(str(known[id].asset.index))
    ))  # fmt: skip


def about(desk: Desk, name: str) -> str:
    """What is noted of a picture of memory."""
    one = desk.candidate(name)
    parents = ", ".join(parent.id for parent in one.asset.parents)
    state = [
        "" if one.asset.current else "superseded",
        one.asset.feedback or "",
        "gallery" if one.asset.gallery else "",
    ]
    notes = [describe(one), f"made from {parents}" if parents else "", *state]
    return "; ".join(filter(None, notes))


def measure(picture: Picture, by: str) -> float:
    """A figure of a picture's pixels.

    `brightness` the mean of grey, `contrast` its standard deviation, `sharpness` the variance of its Laplacian,
    `colour` the mean distance between a pixel's strongest and weakest channel, `size` the number of pixels.
    """
    import numpy as np

    grey = np.asarray(picture.convert("L"), np.float64)
    match by:
        case "brightness":
            return float(grey.mean())
        case "contrast":
            return float(grey.std())
        case "colour":
            rgb = np.asarray(picture.convert("RGB"), np.float64)
            return float((rgb.max(axis=2) - rgb.min(axis=2)).mean())
        case "size":
            return float(grey.size)
    padded = np.pad(grey, 1, mode="edge")
    around = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
    return float((around - 4 * grey).var())


async def _score(desk: Desk, name: str, asked: Best) -> float:
    if asked.by != "words":
        return measure(desk.open(name), asked.by)
    notes = desk.products[name].operation if name in desk.products else about(desk, name)
    wanted, found = set(words(asked.text)), set(words(notes))
    return len(wanted & found) / len(wanted) if wanted else 0.0


TOOLS = (
    Tool(
        "inspect", "Look at pictures: notes, size, brightness, contrast, sharpness, and the pictures themselves.",
        Inspect, inspect, True,
    ),
    Tool("best", "Choose the best of several pictures by one criterion.", Best, best, True),
    Tool(
        "retrieve", "Find the earlier pictures of this dialogue that a request needs; there may be none.",
        Retrieve, retrieve, True,
    ),
)  # fmt: skip
