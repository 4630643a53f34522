"""The prompt files of this method, by name and version, and the roles in `roles.v1.txt`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

from memharness.prompts import Template, merge
from memharness.reader import Message
from memharness.types import Part, Text

DECIDER = "decider"
"""The last turn: it has no text of its own, since it reads the harness's answer prompt."""


@cache
def roles() -> Mapping[str, str]:
    """Every role an agent can be given, and the sentences that say so."""
    return {name: text for name, (text,) in _sections("roles.v1").items()}


def fill(name: str, **slots: str | Sequence[Part]) -> tuple[Message, ...]:
    """The messages of a prompt file with its slots filled; a line whose only slot is empty is left out."""
    return _template(name).fill({key: _parts(value) for key, value in slots.items()})


def _parts(value: str | Sequence[Part]) -> Sequence[Part]:
    return ((Text(value),) if value else ()) if isinstance(value, str) else value


def words(name: str, **slots: str) -> tuple[Part, ...]:
    """A prompt file that is one piece of a longer prompt."""
    return merge([part for message in fill(name, **slots) for part in message.parts])


@cache
def _template(name: str) -> Template:
    text = _read(name)
    messages = tuple((role, body) for role, bodies in _sections(name).items() for body in bodies)
    return Template(name, hashlib.sha256(text.encode()).hexdigest(), messages)  # type: ignore[arg-type]


def _sections(name: str) -> Mapping[str, tuple[str, ...]]:
    """What stands under each `# heading` of a file."""
    pieces = re.split(r"^# (\w+)\n", _read(name), flags=re.MULTILINE)
    return {heading: (body.rstrip("\n"),) for heading, body in zip(pieces[1::2], pieces[2::2], strict=True)}


def _read(name: str) -> str:
    return (resources.files(__package__) / f"{name}.txt").read_text("utf-8")
