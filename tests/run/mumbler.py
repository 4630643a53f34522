"""A judge that never gives a verdict."""

from __future__ import annotations

from memharness.reader import Reply, Request
from memharness.types import Usage
from tests.run.toys import Toy


class Mumbler(Toy):
    """Says neither yes nor no."""

    async def generate(self, request: Request) -> Reply:
        """Mumble."""
        return Reply("hm", Usage(text=1, output=1))
