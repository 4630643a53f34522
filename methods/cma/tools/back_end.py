"""Tools that ask the image back end: generate, edit, compose."""

from __future__ import annotations

from typing import Annotated

import pydantic

from memharness.methods.cma.tools.desk import Desk
from memharness.methods.cma.tools.tool import Arguments, Result, Tool

Reference = Annotated[
    str,
    pydantic.Field(
        pattern=r"^(\d{1,6}|new-\d{1,4})$", description="a picture: its number in memory, or new-1, new-2 …"
    ),
    pydantic.BeforeValidator(lambda value: str(value) if type(value) is int else value),
]


class Generate(Arguments):
    """Arguments of `generate`."""

    prompt: str = pydantic.Field(min_length=1, max_length=4000, description="what is to be seen")
    width: int | None = pydantic.Field(None, ge=16, le=4096, description="pixels; the run's size by default")
    height: int | None = pydantic.Field(None, ge=16, le=4096, description="pixels; the run's size by default")


class Edit(Arguments):
    """Arguments of `edit`."""

    picture: Reference
    prompt: str = pydantic.Field(min_length=1, max_length=4000, description="what changes, and what stays")


class Compose(Arguments):
    """Arguments of `compose`."""

    pictures: list[Reference] = pydantic.Field(min_length=2, max_length=16, description="in the order the prompt uses")
    prompt: str = pydantic.Field(min_length=1, max_length=4000, description="what comes from which picture, and where")


async def generate(desk: Desk, asked: Generate) -> Result:
    """A picture from words."""
    size = (asked.width or desk.size[0], asked.height or desk.size[1])
    return made(desk, await desk.make(asked.prompt, (), size))


async def edit(desk: Desk, asked: Edit) -> Result:
    """One picture, changed."""
    return made(desk, await desk.make(asked.prompt, (asked.picture,)))


async def compose(desk: Desk, asked: Compose) -> Result:
    """Several pictures fused."""
    return made(desk, await desk.make(asked.prompt, asked.pictures))


def made(desk: Desk, name: str) -> Result:
    """The result that names a new picture and shows it."""
    image = desk.products[name].image
    return Result(f"made {name}, {image.width}x{image.height}", (image,))


TOOLS = (
    Tool("generate", "Make a new picture from words alone.", Generate, generate, False),
    Tool("edit", "Change one existing picture as told; the rest stays.", Edit, edit, False),
    Tool(
        "compose",
        "Fuse two or more existing pictures into one new scene. Use collage instead where faces, logos, captions or "
        "dates must stay exact to the pixel.",
        Compose, compose, False,
    ),
)  # fmt: skip
