"""A method that only runs with a reader that sees pictures."""

from __future__ import annotations

from memharness.method import MethodCard
from tests.run.toys import Everything


class Seer(Everything):
    """Everything, for eyes."""

    card = MethodCard("seer", "Seer", "", 1, "evidence", needs={"answer": frozenset({"image"})}, roles={"answer": ()})
