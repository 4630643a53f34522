"""The web behind an interface, off by default: search, picture search, pages and pictures by address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import pydantic

from memharness.methods.cma.tools.back_end import made
from memharness.methods.cma.tools.desk import Desk
from memharness.methods.cma.tools.tool import Arguments, Result, Tool, ToolError
from memharness.registry import find, plugin
from memharness.types import UserError

OFF = "the web is off in this run; work with the pictures and words that are there"
MOST_PAGE = 8000  # characters of a page that a model is given
MOST_PICTURE = 1 << 26  # bytes


@dataclass(frozen=True)
class Hit:
    """One result of a search."""

    title: str
    address: str
    text: str = ""


@runtime_checkable
class Web(Protocol):
    """What the web tools ask. An implementation has no constructor arguments and raises `ToolError` for what fails."""

    async def search(self, query: str, n: int) -> Sequence[Hit]:
        """Pages on a query."""

    async def pictures(self, query: str, n: int) -> Sequence[Hit]:
        """Pictures on a query; `address` is the picture's own."""

    async def page(self, address: str) -> str:
        """The words of a page."""

    async def picture(self, address: str) -> bytes:
        """The bytes of a picture."""


class Offline:
    """The default: refuses every request."""

    async def search(self, query: str, n: int) -> Sequence[Hit]:
        """Refuse."""
        raise ToolError(OFF)

    async def pictures(self, query: str, n: int) -> Sequence[Hit]:
        """Refuse."""
        raise ToolError(OFF)

    async def page(self, address: str) -> str:
        """Refuse."""
        raise ToolError(OFF)

    async def picture(self, address: str) -> bytes:
        """Refuse."""
        raise ToolError(OFF)


def open_web(name: str) -> Web:
    """The web that a config names: `off`, or a class by `package.module:Class` or `file.py:Class`.

    Raises:
        UserError: if there is no such class, or it is no web.
    """
    if name == "off":
        return Offline()
    if ":" not in name:
        raise UserError(f"-M web={name}: expected off, or package.module:Class")
    with plugin(f"-M web={name}"):
        web = find("webs", name)()
    if not isinstance(web, Web):
        raise UserError(f"-M web={name}: it lacks one of search, pictures, page, picture")
    return web


class Search(Arguments):
    """Arguments of a search."""

    query: str = pydantic.Field(min_length=1, max_length=400, description="what to look for")
    n: int = pydantic.Field(5, ge=1, le=20, description="most results")


class Address(Arguments):
    """Arguments of a fetch."""

    address: str = pydantic.Field(pattern=r"^https?://\S+$", max_length=2000, description="http or https")


async def web_search(desk: Desk, asked: Search) -> Result:
    """Pages on a query."""
    return _listed(await desk.web.search(asked.query, asked.n))


async def web_images(desk: Desk, asked: Search) -> Result:
    """Pictures on a query."""
    return _listed(await desk.web.pictures(asked.query, asked.n))


async def fetch_page(desk: Desk, asked: Address) -> Result:
    """The words of a page, at most `MOST_PAGE` characters."""
    text = await desk.web.page(asked.address)
    more = f"\n({len(text) - MOST_PAGE} more characters)" if len(text) > MOST_PAGE else ""
    return Result(text[:MOST_PAGE] + more)


async def fetch_image(desk: Desk, asked: Address) -> Result:
    """A picture by its address, kept under a name of this turn."""
    data = await desk.web.picture(asked.address)
    if len(data) > MOST_PICTURE:
        raise ToolError(f"{asked.address}: {len(data)} bytes are more than {MOST_PICTURE}")
    return made(desk, desk.keep(data, "fetch", (), address=asked.address))


def _listed(hits: Sequence[Hit]) -> Result:
    lines = [" | ".join(filter(None, (hit.title, hit.address, hit.text))) for hit in hits]
    return Result("\n".join(lines) or "nothing found")


TOOLS = (
    Tool("web_search", "Search the web for pages.", Search, web_search, True, online=True),
    Tool(
        "web_images", "Search the web for pictures, such as of a real product, logo or person.",
        Search, web_images, True, online=True,
    ),
    Tool("fetch_page", "Read a web page.", Address, fetch_page, True, online=True),
    Tool(
        "fetch_image", "Bring a picture from the web, to edit or compose with.",
        Address, fetch_image, False, online=True,
    ),
)  # fmt: skip
