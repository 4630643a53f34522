"""What one agent saw reaches another through the memory, once it has been trained; `tests/perf` has it in full."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memharness.methods.l2vmas.config import TrainingConfig
from memharness.methods.l2vmas.modules import Shape, fresh
from memharness.methods.l2vmas.training import CURVE
from memharness.readers.hf import HFReader
from tests.methods.l2vmas.learning import MADE, accuracy, learn, learn_to_route, routing, taught


async def test_stage_1_carries_what_was_seen_to_who_did_not_see_it(tmp_path: Path) -> None:
    reader = await taught(tmp_path, 2)
    try:
        untrained, _ = await accuracy(reader, fresh(Shape(reader.width, 2, 2), MADE, 2))
        modules = await learn(reader, tmp_path / "out", 2, steps=1_536)
        greedy, shuffled = await accuracy(reader, modules)
        assert untrained <= 0.25 and greedy >= 0.5  # chance is 1 in 8
        assert shuffled == pytest.approx(1 / 8, abs=0.06)  # what another saw is worth nothing
        rewards = [json.loads(line)["reward"] for line in (tmp_path / "out" / CURVE).read_text("utf-8").splitlines()]
        assert sum(rewards[-3:]) > 2 * sum(rewards[:3])
        await the_gate_alone(reader, modules, tmp_path / "gate")
    finally:
        await reader.close()


async def the_gate_alone(reader: HFReader, modules: Any, folder: Path) -> None:
    before = {name: tensor.clone() for name, tensor in modules.state_dict().items()}
    await learn_to_route(reader, modules, folder, 2, steps=768)
    moved = {name.split(".")[0] for name, tensor in modules.state_dict().items() if not tensor.equal(before[name])}
    assert moved == {"gate"}
    routed, _, calls = await routing(reader, modules)  # which is asserted to find something in both memories
    assert calls == 64 and routed >= 0.9  # the trigger fires in each of them


def test_only_stage_2_has_a_gate_alone() -> None:
    assert TrainingConfig(stage=2, gate_only=True).trained() == ("gate",)
    assert TrainingConfig(stage=2).trained() == ("compress", "refining", "gate")
