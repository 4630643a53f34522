"""A question that was answered, and replies."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memharness.reader import Reply
from memharness.types import Asked, Choice, Gold, Outcome, Question, Record, Text, Usage

Make = Callable[..., Asked]


def asked(
    answer: str | None = "in May",
    gold: tuple[str, ...] = ("7 May 2023",),
    *,
    name: str = "q1",
    question: str = "When did Ann move?",
    choices: tuple[str, ...] = (),
    abstain: bool = False,
    group: str | None = None,
    outcome: Outcome = Outcome.OK,
    context: int = 0,
) -> Asked:
    """One question with its gold and record."""
    options = tuple(Choice(key, (Text(words),)) for key, words in zip("ABCD", choices, strict=False))
    return Asked(
        Question(name, f"c{context}", (Text(question),), options),
        Gold(gold, abstain=abstain, group=group),
        Record(name, f"c{context}", context, 0, outcome, answer=answer),
    )


def reply(text: str, finish: str = "stop") -> Reply:
    """A judge's reply."""
    return Reply(text, Usage(), finish)  # type: ignore[arg-type]


@pytest.fixture(name="asked")
def asked_fixture() -> Make:
    """Makes an Asked."""
    return asked


@pytest.fixture(name="reply")
def reply_fixture() -> Callable[..., Reply]:
    """Makes a Reply."""
    return reply
