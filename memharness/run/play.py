"""An episode played without a method: what is observed, what is asked, and what came of given answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from memharness.benchmark import Ask, Episode, Fact, Observe, Recorded
from memharness.types import Answer, Case, Image, Item, Outcome, Record

Answering = Callable[[Case, Sequence[Item]], Answer | None]  # a case, and the items observed so far; None: no answer


@dataclass(slots=True)
class Played:
    """What happened in an episode: its items, its cases with the answers given, and its facts."""

    items: list[Item] = field(default_factory=list)
    cases: list[tuple[Case, Answer | None]] = field(default_factory=list)
    facts: dict[str, float] = field(default_factory=dict)


async def play(episode: Episode, answering: Answering) -> Played:
    """Play an episode to its end; a live one goes on with the answers given."""
    if isinstance(episode, Recorded):  # its play() may prepare pictures, which nobody looks at here
        items = list(episode.items)
        return Played(items, [(case, answering(case, items)) for case in episode.cases])
    played = Played()
    events = episode.play()
    answers: list[Answer] | None = None
    try:
        while True:
            try:
                event = await (anext(events) if answers is None else events.asend(answers))
            except StopAsyncIteration:
                return played
            answers = None
            if isinstance(event, Observe):
                played.items += event.items
            elif isinstance(event, Fact):
                played.facts |= event.facts
            elif isinstance(event, Ask):
                given = [(case, answering(case, played.items)) for case in event.cases]
                played.cases += given
                answers = [answer or Answer(None) for _, answer in given] if episode.live else None
    finally:
        await events.aclose()


def record_of(case: Case, answer: Answer | None, context: str, context_index: int, index: int) -> Record:
    """The record of an answer that no runner made; a case without one was not asked."""
    outcome = Outcome.OK if answer is not None else Outcome.NOT_ASKED
    record = Record(case.question.id, context, context_index, index, outcome)
    if answer is not None:
        record.answer, record.extra = answer.text, answer.extra
        record.evidence = answer.readout.evidence if answer.readout else None
        record.pictures = tuple(part for part in answer.parts if isinstance(part, Image))
    return record
