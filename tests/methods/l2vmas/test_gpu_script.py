"""The script that is prepared for a GPU does the same in small on the CPU."""

from __future__ import annotations

import pytest

from tests.perf.l2vmas_gpu import main


def test_in_small_on_the_cpu(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--cpu", "--families", "text", "--questions", "4"]) == 0
    said = capsys.readouterr().out
    assert "text f32: trigger off equal to greedy generate; " in said and "text bf16: " in said
    assert [line.partition(":")[0] for line in said.splitlines()[-4:-1]] == ["single", "vmas", "l2vmas"]
    assert "l2vmas: 4 questions in " in said and said.endswith("all held\n")
