"""What a Mem-Gallery dialogue of the sample is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from samples.drawing import Picture


@dataclass(frozen=True)
class Dialogue:
    """One dialogue.

    `script` holds SESSION, USER, ASSISTANT and IMAGE lines; `questions` are (type, question, answer, clue rounds) and,
    where a picture is shown with the question, "picture | caption"; `pictures` maps a picture's key to its drawing.
    """

    name: str
    profile: Mapping[str, Any]
    script: str
    questions: Sequence[tuple[str, ...]]
    pictures: Mapping[str, Callable[[], Picture]]
