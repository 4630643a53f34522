"""Whole runs of l2vmas: complete records, ledgers of agents that sum to the run's, bounded banks, failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from memharness.methods.l2vmas.dual import DualMemory
from memharness.methods.vmas.topologies import STATIC
from memharness.readers.frozen import Frozen
from memharness.run.api import execute, verify
from memharness.run.progress import Quiet
from memharness.run.spec import RunSpec
from tests.readers.tiny import tiny_model
from tests.run.harness import ledger, lines

TOPOLOGIES = (*STATIC, "dynamic")
TURNS = 5
QUICK: dict[str, Any] = {"turns": TURNS, "agent_tokens": 9, "window": 4, "threshold": 0.0}
KINDS = {"prompt": "text", "visual": "image", "output": "output", "latent": "latent"}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.getbasetemp() / "tiny"


def run(out: Path, bench: str, reader: str, *, m: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A run's summary; `m` are options of the method beside the quick ones."""
    options = {"dtype": "f32", **more.pop("r", {})} if reader.startswith("hf:") else {}
    spec = RunSpec(
        "l2vmas", bench, reader, method_options={**QUICK, **(m or {})}, reader_options=options, out=str(out),
        **{"limit": "2", "max_tokens": 12, **more},
    )  # fmt: skip
    return execute(spec, Quiet())


def complete(summary: dict[str, Any]) -> None:
    """Every question has its record, every turn its place in it, and every agent's ledger its part of the run's."""
    records, calls = lines(summary, "records.jsonl"), ledger(summary)
    assert len(records) == summary["n"] > 0 and summary["outcomes"] == {"ok": len(records)}
    assert {line["role"] for line in calls if line["phase"] == "answer"} == {f"agent{n + 1}" for n in range(TURNS)}
    assert {line["kind"] for line in calls if line["phase"] == "answer"} == {"latent"}
    of_run: Counter[str] = Counter()
    for record in records:
        steps = record["trace"]["steps"]
        assert [step["turn"] for step in steps] == list(range(1, TURNS + 1))
        assert record["answer"] == steps[-1]["text"].strip()
        spent = record["spent"]["answer"]
        assert spent["calls"] == TURNS
        for step in steps:
            mine = [
                line for line in calls
                if (line["question"], line["role"], line["phase"]) == (record["question"], step["agent"], "answer")
            ]  # fmt: skip
            assert len(mine) == 1
            assert {name: step["tokens"][name] for name in KINDS} == {name: mine[0][its] for name, its in KINDS.items()}
            assert step["tokens"]["latent"] == sum(call["latents"] for call in step["memory"])
            assert step["tokens"]["passed"] == 0
        for name, its in KINDS.items():
            assert sum(step["tokens"][name] for step in steps) == spent[its]
            of_run[its] += spent[its]
        assert record["trace"]["tokens"] == sum(spent[kind] for kind in ("text", "image", "output"))
        assert record["trace"]["memory"]["calls"] == sum(len(step["memory"]) for step in steps)
    assert {kind: summary["tokens"]["answer"][kind] for kind in of_run} == dict(of_run)
    assert verify(Path(summary["run"])) == []


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("bench", ["mmbench", "mmstar", "hotpotqa"])
def test_every_topology_on_the_samples(bench: str, topology: str, models: Path, tmp_path: Path) -> None:
    model = tiny_model("text" if bench == "hotpotqa" else "qwen3_vl", models)
    summary = run(tmp_path, bench, f"hf:{model}", limit="1", m={"topology": topology})
    complete(summary)
    # Pictures become perception units once a question, which is charged to observe and to no agent.
    observed = [line for line in ledger(summary) if line["phase"] == "observe"]
    seen = [record["trace"]["memory"]["perception"] for record in lines(summary, "records.jsonl")]
    assert sum(line["image"] for line in observed) == 21 * sum(seen)
    assert all(units > 0 for units in seen) == (bench != "hotpotqa")
    assert summary["tokens"]["answer"]["latent"] > 0


def test_on_published_rows(models: Path, tmp_path: Path, shared: Path) -> None:
    data = str(shared / "data" / "mmbench" / "MMBench_samples_EN.tsv")
    model = tiny_model("qwen3_vl", models)
    complete(run(tmp_path, "mmbench", f"hf:{model}", data=data, m={"topology": "complete"}))


@pytest.mark.model
def test_smollm2_on_a_text_benchmark(tmp_path: Path) -> None:
    options = {"topology": "layered", "memory": "bm25", "agent_tokens": 10}
    complete(run(tmp_path, "hotpotqa", "smollm2", limit="1", items=1, max_tokens=10, m=options))


# ---------------------------------------------------------------------------------------------------------- ablations


def calls_of(summary: dict[str, Any]) -> list[tuple[int, str]]:
    """(after, memory) of every call of a run."""
    return [
        (call["after"], call["memory"])
        for record in lines(summary, "records.jsonl")
        for step in record["trace"]["steps"]
        for call in step["memory"]
    ]


def test_each_part_can_be_left_out(models: Path, tmp_path: Path) -> None:
    model = f"hf:{tiny_model('qwen3_vl', models)}"
    of = {
        name: calls_of(run(tmp_path, "mmstar", model, m=options, limit="1"))
        for name, options in {
            "triggering": {"calls": "fixed"},
            "attribution": {"calls": "fixed", "attribution": "none"},
            "perception": {"calls": "fixed", "banks": "thinking"},
            "thinking": {"calls": "fixed", "banks": "perception"},
            "memory": {"triggering": "false"},
        }.items()
    }  # fmt: skip
    assert {after % 4 for after, _ in of["triggering"]} == {0}  # every W tokens, whatever the entropy
    assert {memory for _, memory in of["attribution"]} == {"both"}
    assert {memory for _, memory in of["perception"]} == {"thinking"}
    assert {memory for _, memory in of["thinking"]} == {"perception"}
    assert of["memory"] == []


# ------------------------------------------------------------------------------------------------- bounded and reported


def test_the_banks_are_bounded_and_reported_in_bytes(models: Path, tmp_path: Path) -> None:
    options = {"capacity": 3, "chunk": 5, "merged": 2, "agent_tokens": 24, "topology": "complete"}
    summary = run(tmp_path, "mmstar", f"hf:{tiny_model('qwen3_vl', models)}", limit="1", m=options)
    for record in lines(summary, "records.jsonl"):
        told = record["trace"]["memory"]
        assert told["thinking"] == 3  # what five turns thought is more than that
        # A key beside each value: 21 vectors a block at g = 3, and one unit over the capacity while room is made.
        assert told["vectors"] <= told["most_vectors"] <= 22 * told["perception"] + (3 + 1) * (5 + 1)
        # f32, 32 wide; what a merged value was made of is kept beside it: at most 2 + 3 · 5 vectors a unit.
        assert 4 * 32 * told["vectors"] <= told["bytes"] <= told["most_bytes"]
        assert told["most_bytes"] <= 4 * 32 * (22 * told["perception"] + (3 + 1) * (5 + 1 + 2 + 3 * 5))


# ------------------------------------------------------------------------------------------------------------ failures


def failing(monkeypatch: pytest.MonkeyPatch, where: type[Any], name: str, at: Callable[[int], bool]) -> None:
    """Have a method of a class run out of memory at some of its calls."""
    plain, count = getattr(where, name), [0]

    def call(*arguments: Any, **options: Any) -> Any:
        count[0] += 1
        if at(count[0]):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        return plain(*arguments, **options)

    monkeypatch.setattr(where, name, call)


def outcomes(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """(outcome, what went wrong) of each record, in order."""
    records = lines(summary, "records.jsonl")
    return [(record["outcome"], record.get("error", {}).get("message", "")) for record in records]


def test_an_agent_out_of_memory_is_an_outcome_and_the_run_goes_on(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = f"hf:{tiny_model('text', models)}"
    failing(monkeypatch, Frozen, "states", lambda call: call == 30)  # in the middle of one agent's decoding
    summary = run(tmp_path, "hotpotqa", model, concurrency=1)
    (bad, why), *others = sorted(outcomes(summary), reverse=True)
    assert bad == "reader_error" and "OutOfMemoryError with " in why and "positions cached: CUDA out of memory" in why
    assert [outcome for outcome, _ in others] == ["ok"]
    statuses = Counter(line["status"] for line in ledger(summary) if line["kind"] == "latent")
    assert statuses["ReaderError"] == 1 and statuses["ok"] >= TURNS

    monkeypatch.undo()  # there is memory again: the same command asks that question, and no other
    again = run(tmp_path, "hotpotqa", model, concurrency=1)
    assert again["run"] == summary["run"] and again["outcomes"] == {"ok": 2}


def test_a_memory_that_does_not_fit_is_an_outcome(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, DualMemory, "call", lambda call: call == 1)
    summary = run(tmp_path, "hotpotqa", f"hf:{tiny_model('text', models)}", concurrency=1)
    found = sorted(outcomes(summary))
    assert found[0][0] == "method_error" and "CUDA out of memory" in found[0][1]
    assert found[1][0] == "ok"


def test_a_session_that_is_refused_its_room_is_an_outcome_that_names_the_turn(models: Path, tmp_path: Path) -> None:
    room = {"max_sessions": 1, "max_cached_tokens": 40}
    summary = run(tmp_path, "hotpotqa", f"hf:{tiny_model('text', models)}", r=room)
    for outcome, why in outcomes(summary):
        assert outcome == "over_window"
        assert why.startswith("turn 1 of 5 (observer): ") and "max_cached_tokens" in why
