"""The script that measures speed, on few assets and without a look at the clock."""

from __future__ import annotations

from pathlib import Path

import pytest


def test_what_is_measured_agrees_with_numpy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for pin in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):  # the script starts itself again where they are set
        monkeypatch.delenv(pin, raising=False)
    from tests.perf.episodic import measure

    found = measure(tmp_path, 120, rounds=1)
    assert found.agreed and min(found.inserts, found.bare, found.vectors, found.ours, found.numpy) > 0
