"""What is asked in a game and what is remembered of it, in this project's words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memharness.benchmarks.alfworld.states import Record
from memharness.types import Evidence, Item, Question, Text

INSTRUCTION = (
    "You act in a house through a text game. Reply with the one command you give next and with nothing else. "
    "The forms of a command, where O is an object and R a place to put things, each with its number: "
    "go to R; open R; close R; take O from R; move O to R; clean O with R; heat O with R; cool O with R; use O; "
    "slice O with O; examine R; examine O; look; inventory."
)


def question(
    name: str, context: str, goal: str, *, observation: str | None = None, admissible: Sequence[str] | None = None
) -> Question:
    """The question for the next command.

    Args:
        name: the question's id.
        context: its memory.
        goal: the task in the game's words.
        observation: what is seen now; None to leave it out.
        admissible: the commands that the game takes now; None to leave them out.
    """
    lines = [f"Your task in this game: {goal}"]
    if observation is not None:
        lines.append(f"What you see now: {' '.join(observation.split())}")
    if admissible is not None:
        lines += ["The game takes one of these commands now:", *admissible]
    lines.append("Which command do you give next?")
    return Question(name, context, (Text("\n".join(lines)),), instruction=INSTRUCTION, form="action")


def state_items(context: str, told: Mapping[str, Record]) -> list[Item]:
    """One item an entity."""
    return [
        Item(
            id=f"e{order}",
            context=context,
            order=order,
            parts=(Text(record.text),),
            kind="state",
            label=record.name,
            keys={"place": record.place} if record.place else {},
        )
        for order, record in enumerate(told.values())
    ]


def evidence(told: Mapping[str, Record], names: Sequence[str]) -> tuple[Evidence, ...]:
    """The items of `state_items` that these entities are."""
    order = {name: at for at, name in enumerate(told)}
    return tuple(Evidence(f"e{order[name]}") for name in names)


def seen_item(context: str, order: int, said: str | None, observation: str) -> Item:
    """What was seen, after the command that led to it."""
    parts = (Text(f"Command {order}: {said}"), Text(observation)) if said is not None else (Text(observation),)
    return Item(f"o{order}", context, order, parts, kind="observation", keys={"step": str(order)})


def scoring(admissible: Sequence[str], items: int) -> Mapping[str, Any]:
    """What scoring needs besides the expert's command."""
    return {"admissible": list(admissible), "items": items}
