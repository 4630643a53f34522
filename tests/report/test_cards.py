"""Types and defaults in the words of a user."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Optional

import pytest

from memharness.config import Config, option
from memharness.report.cards import show_card, type_words
from memharness.report.tables import console_for


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (int, "int"),
        (int | None, "int | none"),
        (Optional[str], "str | none"),  # noqa: UP045
        (Literal["a", True, None], "a | true | none"),
        (list[int], "list of int"),
        (tuple[str, ...], "list of str"),
        (dict[str, float], "mapping of str to float"),
        (Mapping[str, list[int]], "mapping of str to list of int"),
        (Annotated[int, "x"], "int"),
        (Any, "Any"),
    ],
)
def test_a_type_as_a_user_writes_it(annotation: Any, words: str) -> None:
    assert type_words(annotation) == words


class Knobs(Config):
    """Options."""

    depth: int = option(3, "how deep", source="paper §4.2", unit="hops", ge=1, le=9)
    name: str = option("", "a name")
    limit: int | None = option(None, "a limit", unit="items")


@dataclass(frozen=True)
class Card:
    """A card."""

    name: str = "thing"
    paper: str = "Somebody 2025"
    notes: str = ""
    roles: Any = None
    works: bool = True
    splits: Any = None


@dataclass(frozen=True)
class Place:
    """A place."""

    url: str
    path: str = ""


class Thing:
    """A thing.

    More words.
    """

    card = Card(splits={"dev": "7 questions"}, roles=(Place("http://x"), Place("http://y", "y.bin")))
    config_class = Knobs


class Bare:
    """Says one thing."""


def shown(plugin: Any) -> str:
    """A card as printed into a file."""
    stream = io.StringIO()
    show_card(console_for(stream), "method", "thing", "pkg.mod:Thing from dist", plugin)
    return stream.getvalue()


def test_a_card_with_options() -> None:
    text = shown(Thing)
    assert text.startswith("thing (method)  pkg.mod:Thing from dist\n")
    rows = [" ".join(line.split()) for line in text.splitlines()]
    assert "paper Somebody 2025" in rows
    assert "works yes" in rows
    assert "splits dev: 7 questions" in rows
    assert "roles url http://x, url http://y, path y.bin" in rows
    assert "depth int, ≥ 1, ≤ 9 3 hops how deep paper §4.2" in rows
    assert "name str empty a name memharness" in rows
    assert "limit int | none none a limit memharness" in rows
    assert "notes" not in text


def test_a_class_without_card_or_options() -> None:
    text = shown(Bare)
    assert "Says one thing." in text
    assert "no options" in text
