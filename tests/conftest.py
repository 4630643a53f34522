"""Fixtures of the whole suite."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data and official figures; tests that need it skip where it is absent."""
    folder = Path(os.environ.get("MEMHARNESS_SHARED", ROOT.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"no shared data at {folder} (set MEMHARNESS_SHARED)")
    return folder
