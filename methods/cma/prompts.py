"""The prompt files of this method, by name and version."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import cache
from importlib import resources

from memharness.prompts import Template
from memharness.reader import Message
from memharness.types import Part, Text


def fill(name: str, **slots: str | Sequence[Part]) -> tuple[Message, ...]:
    """The messages of a prompt file with its slots filled; a line whose only slot is empty is left out."""
    return _template(name).fill({key: _parts(value) for key, value in slots.items()})


def _parts(value: str | Sequence[Part]) -> Sequence[Part]:
    return ((Text(value),) if value else ()) if isinstance(value, str) else value


@cache
def _template(name: str) -> Template:
    text = (resources.files(__package__) / f"{name}.txt").read_text("utf-8")
    pieces = re.split(r"^# (system|user)\n", text, flags=re.MULTILINE)
    messages = tuple((role, body.rstrip("\n")) for role, body in zip(pieces[1::2], pieces[2::2], strict=True))
    return Template(name, hashlib.sha256(text.encode()).hexdigest(), messages)  # type: ignore[arg-type]
