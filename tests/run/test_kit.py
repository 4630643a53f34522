"""Models are started once, however many contexts ask for them at one time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from memharness.media import MediaStore
from memharness.run.kit import Models
from tests.run.toys import Toy, ToyOptions


class Counted(Toy):
    """A reader that takes a while to start, and counts how often it was."""

    started = 0

    async def start(self) -> None:
        """Let others go first."""
        await asyncio.sleep(0)
        type(self).started += 1


def test_contexts_that_open_one_reader_at_a_time_share_it(tmp_path: Path) -> None:
    made: list[str] = []

    def make(spec: str) -> Any:
        made.append(spec)
        return Counted("toy", ToyOptions(), MediaStore(tmp_path / "files.sqlite"))

    async def open_twice() -> None:
        models = Models({}, {}, None, None, make)  # type: ignore[arg-type]
        await asyncio.gather(models.open("counted", "extra"), models.open("counted", "extra"))

    asyncio.run(open_twice())
    assert made == ["counted"] and Counted.started == 1
