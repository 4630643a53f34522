"""A memory of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memharness.episodic import EpisodicMemory


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the memory lies."""
    return tmp_path / "memory"


@pytest.fixture
def memory(folder: Path) -> Iterator[EpisodicMemory]:
    """An empty one."""
    with EpisodicMemory.open(folder, edge=64) as made:
        yield made
