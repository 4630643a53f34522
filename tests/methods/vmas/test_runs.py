"""Whole runs through the engine: complete records, and ledgers of agents that sum to the run's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memharness.media import MediaStore
from memharness.method import Phase
from memharness.methods.vmas.topologies import STATIC
from memharness.reader import Reply, Request
from memharness.readers.extractive import Extractive
from memharness.run.api import execute, verify
from memharness.run.progress import Quiet
from memharness.run.spec import RunSpec
from memharness.types import OverWindow, Text, UserError
from tests.readers.tiny import tiny_model
from tests.run.harness import ledger, lines

HASHING = f"{Path(__file__).parents[1] / 'verifying.py'}:Hashing"
TOPOLOGIES = (*STATIC, "dynamic")


def run(out: Path, bench: str, method: str = "vmas", reader: str = "extractive", **more: Any) -> dict[str, Any]:
    """A run's summary; options of the method are words of the command line."""
    options = more.pop("m", {})
    spec = RunSpec(
        method=method, bench=bench, reader=reader, out=str(out), embedder=HASHING, method_options=options, **more
    )
    return execute(spec, Quiet())


def complete(summary: dict[str, Any], turns: int) -> None:
    """Every question has its record, every turn its place in it, and every agent's ledger its part of the run's."""
    records = lines(summary, "records.jsonl")
    assert len(records) == summary["n"] > 0
    assert summary["outcomes"] == {"ok": len(records)}
    calls = ledger(summary)
    assert {line["role"] for line in calls} == {f"agent{turn + 1}" for turn in range(turns)}
    of_run = dict.fromkeys(("text", "image", "output"), 0)
    for record in records:
        trace = record["trace"]
        assert [step["turn"] for step in trace["steps"]] == list(range(1, turns + 1))
        assert record["answer"] == trace["steps"][-1]["text"].strip()
        spent = record["spent"]["answer"]
        assert spent["calls"] == turns
        for mine, its in (("prompt", "text"), ("visual", "image"), ("output", "output")):
            by_agent = {name: sums[mine] for name, sums in trace["agents"].items()}
            assert sum(by_agent.values()) == spent[its]
            of_run[its] += spent[its]
            for name, tokens in by_agent.items():
                assert tokens == sum(
                    line[its] for line in calls if line["question"] == record["question"] and line["role"] == name
                )
        assert trace["tokens"] == sum(spent[kind] for kind in ("text", "image", "output"))
    totals = summary["tokens"]["answer"]
    assert {kind: totals[kind] for kind in of_run} == of_run
    assert verify(Path(summary["run"])) == []


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("bench", ["mmbench", "mmstar"])
def test_every_topology_on_the_samples(tmp_path: Path, bench: str, topology: str) -> None:
    complete(run(tmp_path, bench, m={"topology": topology, "turns": "5"}), 5)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_every_topology_on_published_rows(tmp_path: Path, shared: Path, topology: str) -> None:
    data = str(shared / "data" / "mmbench" / "MMBench_samples_EN.tsv")
    complete(run(tmp_path, "mmbench", data=data, limit="12", m={"topology": topology, "turns": "5"}), 5)


def test_single_costs_what_one_turn_costs(tmp_path: Path) -> None:
    single = run(tmp_path, "mmstar", "single")
    complete(single, 1)
    team = run(tmp_path, "mmstar", m={"turns": "1"})
    assert single["tokens"] == team["tokens"]
    assert [r["answer"] for r in lines(single, "records.jsonl")] == [r["answer"] for r in lines(team, "records.jsonl")]
    assert single["identity"] != team["identity"]


def test_a_text_benchmark_has_a_memory(tmp_path: Path) -> None:
    summary = run(tmp_path, "hotpotqa", limit="2", m={"turns": "3", "topology": "complete"})
    complete(summary, 3)
    assert all(len(record["evidence"]) > 2 for record in lines(summary, "records.jsonl"))


@pytest.fixture
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield tiny_model("qwen3_vl", tmp_path_factory.getbasetemp() / "tiny")


def test_a_team_of_tiny_vision_models_sees_pictures(tmp_path: Path, tiny: Path) -> None:
    options = {"topology": "layered", "turns": "5", "agent_tokens": "12", "pictures": "ends", "content": "conclusion"}
    summary = run(tmp_path, "mmstar", reader=f"hf:{tiny}", limit="2", max_tokens=8, m=options)
    complete(summary, 5)
    for record in lines(summary, "records.jsonl"):
        visual = [step["tokens"]["visual"] for step in record["trace"]["steps"]]
        assert [n > 0 for n in visual] == [True, True, False, False, True]
        assert [step["tokens"]["passed"] > 0 for step in record["trace"]["steps"]] == [False, False, True, True, True]


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("bench", ["mmbench", "mmstar"])
def test_every_topology_with_a_tiny_vision_model(tmp_path: Path, tiny: Path, bench: str, topology: str) -> None:
    options = {"topology": topology, "turns": "5", "agent_tokens": "8"}
    summary = run(tmp_path, bench, reader=f"hf:{tiny}", limit="1", max_tokens=8, m=options)
    complete(summary, 5)
    assert summary["tokens"]["answer"]["image"] > 0


@pytest.mark.model
def test_smollm2_on_a_text_benchmark(tmp_path: Path) -> None:
    options = {"topology": "layered", "turns": "5", "agent_tokens": "8", "memory": "bm25"}
    complete(run(tmp_path, "hotpotqa", reader="smollm2", limit="1", items=1, max_tokens=8, m=options), 5)


def test_agents_may_be_different_models(tmp_path: Path) -> None:
    other = f"{__file__}:Other"
    summary = run(tmp_path, "mmstar", m={"turns": "3"}, models={"agent2": other})
    assert {line["role"]: line["model"] for line in ledger(summary)} == {
        "agent1": "extractive", "agent2": "other", "agent3": "extractive",
    }  # fmt: skip
    with pytest.raises(UserError, match="vmas has no role agent4"):
        run(tmp_path, "mmstar", m={"turns": "3"}, models={"agent4": other})


class Other(Extractive):
    """The extractive reader under another name."""

    def __init__(self, model: str, config: Any, media: MediaStore) -> None:
        super().__init__(model, config, media)
        self.card = replace(self.card, name="other")


class Narrow(Extractive):
    """The extractive reader with a window of 150 words."""

    async def generate(self, request: Request) -> Reply:
        length = sum(len(part.text.split()) for part in request.parts() if isinstance(part, Text))
        if length > 150:
            raise OverWindow(f"{length} words; the window has 150")
        return await super().generate(request)


def test_a_prompt_over_the_window_is_an_outcome(tmp_path: Path) -> None:
    narrow = f"{__file__}:Narrow"
    summary = run(tmp_path, "mmstar", m={"turns": "8", "topology": "complete"}, models={"agent7": narrow})
    assert set(summary["outcomes"]) <= {"over_window", "ok"}
    over = [record for record in lines(summary, "records.jsonl") if record["outcome"] == "over_window"]
    assert over
    assert all("answer" not in record for record in over)
    assert "turn 7 of 8 (locator)" in over[0]["error"]["message"]


def test_a_rerun_with_another_seed_draws_other_graphs(tmp_path: Path) -> None:
    def graphs(seed: int) -> list[Any]:
        summary = run(tmp_path / str(seed), "mmstar", m={"topology": "random"}, seed=seed)
        return [record["trace"]["edges"] for record in lines(summary, "records.jsonl")]

    first = graphs(0)
    assert first == graphs(0)
    assert first != graphs(1)
    assert len({str(edges) for edges in first}) > 1


def test_roles_are_those_of_the_config() -> None:
    from memharness.methods.vmas import VMAS
    from memharness.methods.vmas.config import VmasConfig

    def named(**options: Any) -> Mapping[str, tuple[Phase, ...]]:
        return {role: tuple(phases) for role, phases in VMAS(VmasConfig(**options)).roles().items()}

    assert named(turns=3) == dict.fromkeys(["agent1", "agent2", "agent3"], ("answer",))
    assert list(named(turns=9, agents=2)) == ["agent1", "agent2"]
    assert list(named(turns=2, agents=9)) == ["agent1", "agent2"]
