"""The runner on toy plug-ins: outcomes, live episodes, groups, roles, leases, failures and both denominators."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memharness.types import UserError
from tests.run import harness
from tests.run.harness import ledger, lines, run


def test_recorded_run_scores_questions_groups_and_readouts(tmp_path: Path) -> None:
    summary = run(tmp_path, b={"contexts": 3, "questions": 5})
    assert summary["n"] == 15 and summary["outcomes"] == {"ok": 15}
    assert summary["scores"]["right"]["value"] == 1.0 and summary["scores"]["right"]["n"] == 15
    assert summary["scores"]["all_right"]["n"] == 9  # groups of two, two and one in each context
    assert summary["scores"]["found"]["value"] == 1.0
    assert "verdict" not in summary["scores"]  # no judge was named
    assert [(r["context_index"], r["index"]) for r in lines(summary, "records.jsonl")] == [
        (c, i) for c in range(3) for i in range(5)
    ]
    assert (Path(summary["run"]) / "DONE").is_file()


def test_live_answers_become_items_and_facts_are_scored(tmp_path: Path) -> None:
    summary = run(tmp_path, bench="Corridor", b={"contexts": 4})
    assert summary["scores"]["won"] == summary["scores"]["won"] | {"value": 1.0, "n": 4}
    assert summary["scores"]["steps"]["value"] == 3.0
    records = lines(summary, "records.jsonl")
    assert [r["answer"] for r in records[:3]] == ["go 1", "go 2", "go 3"]
    assert "You said go 1" in records[1]["prompt"] and "You said go 2" not in records[1]["prompt"]


def test_live_with_a_failing_reader_still_ends_and_counts_zero(tmp_path: Path) -> None:
    summary = run(tmp_path, bench="Corridor", b={"contexts": 1}, r={"fail_on": "Step 2"})
    assert summary["outcomes"] == {"ok": 3, "reader_error": 1}
    assert summary["scores"]["won"]["value"] == 0.0 and summary["scores"]["won"]["n_valid"] == 0


def test_a_live_episode_played_again_begins_with_an_empty_memory(tmp_path: Path) -> None:
    size: dict[str, Any] = {"bench": "Corridor", "m": {"keep": True}, "b": {"contexts": 1}, "r": {"fail_on": "Step 2"}}
    first = run(tmp_path, **size)
    assert first["outcomes"]["reader_error"] == 1
    again = run(tmp_path, **size)
    evidence = [record["evidence"] for record in lines(again, "records.jsonl")]
    assert evidence[:2] == [[["start"]], [["start"], ["s1"]]]


def test_answer_track_with_five_roles_is_charged_by_role(tmp_path: Path) -> None:
    summary = run(tmp_path, method="Panel", b={"contexts": 1, "questions": 4})
    assert summary["scores"]["right"]["value"] == 1.0 and summary["track"] == "answer"
    calls = ledger(summary)
    assert {c["role"] for c in calls} == {"agent0", "agent1", "agent2", "agent3", "chair"}
    assert len(calls) == 20 and not any(c["hit"] for c in calls)  # samples keep the four drafts apart
    assert {c["question"] for c in calls} == {r["question"] for r in lines(summary, "records.jsonl")}
    assert summary["calls"] == {"answer": 20}


def test_role_can_be_bound_to_another_reader_and_unknown_role_is_refused(tmp_path: Path) -> None:
    other = harness.toy("Toy") + ""
    summary = run(tmp_path, method="Panel", b={"contexts": 1, "questions": 1}, models={"chair": other})
    assert summary["models"] == {"chair": other}
    with pytest.raises(UserError, match=r"no role chiar \(did you mean chair\?\)"):
        run(tmp_path, method="Panel", models={"chiar": other})


def test_latent_sessions_are_leased_at_once_and_charged_in_vectors(tmp_path: Path) -> None:
    summary = run(tmp_path, method="Musing", reader="Latent", b={"contexts": 1, "questions": 6})
    assert summary["scores"]["right"]["value"] == 1.0
    calls = ledger(summary)
    sessions = [c for c in calls if c["kind"] == "latent"]
    assert len(sessions) == 12 and all(c["latent"] == 3 for c in sessions)
    assert summary["tokens"]["answer"]["latent"] == 36


def test_method_that_needs_a_latent_reader_says_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="needs a reader that decodes step by step"):
        run(tmp_path, method="Musing", b={"contexts": 1, "questions": 1})


@pytest.mark.parametrize("stage", ["open", "observe", "ready", "recall"])
def test_a_failing_context_leaves_the_others_alone(tmp_path: Path, stage: str) -> None:
    summary = run(tmp_path, m={"fail_in": "c1", "stage": stage}, b={"contexts": 3, "questions": 4})
    assert summary["outcomes"] == {"ok": 8, "method_error": 4}
    failed = [r for r in lines(summary, "records.jsonl") if r["outcome"] == "method_error"]
    assert {r["context"] for r in failed} == {"c1"} and all(r["error"]["where"] == stage for r in failed)
    right = summary["scores"]["right"]
    assert right["n"] == 12 and right["value"] == pytest.approx(8 / 12)
    assert right["n_valid"] == 8 and right["value_valid"] == 1.0


def test_a_group_with_one_failure_is_invalid(tmp_path: Path) -> None:
    summary = run(tmp_path, b={"contexts": 1, "questions": 4}, r={"fail_on": "What is word 1?"})
    assert summary["scores"]["all_right"] == summary["scores"]["all_right"] | {"n": 2, "n_valid": 1, "value": 0.5}


def test_recall_stays_valid_where_the_reader_failed(tmp_path: Path) -> None:
    summary = run(tmp_path, b={"contexts": 1, "questions": 4}, r={"fail_on": "What is word 1?"})
    assert summary["scores"]["found"]["n_valid"] == 4 and summary["scores"]["right"]["n_valid"] == 3


def test_outcomes_come_from_the_path_not_from_words(tmp_path: Path) -> None:
    odd = {"fail_on": "word 0?", "over_on": "word 1?", "crash_on": "word 2?"}
    summary = run(
        tmp_path, b={"contexts": 1, "questions": 5}, r=odd | {"reply": "Error: codes were introduced in 1998."}
    )
    assert summary["outcomes"] == {"reader_error": 2, "over_window": 1, "ok": 2}
    crashed = lines(summary, "records.jsonl")[2]
    assert crashed["error"]["type"] == "ZeroDivisionError"


def test_time_out_counts_from_service(tmp_path: Path) -> None:
    summary = run(tmp_path, b={"contexts": 1, "questions": 3}, r={"slow": 5.0, "slow_on": "word 2?"}, timeout=0.2)
    assert summary["outcomes"] == {"ok": 2, "timeout": 1}


def test_40_observed_and_0_stored_is_a_method_error(tmp_path: Path) -> None:
    summary = run(tmp_path, m={"forget": True}, b={"contexts": 1, "questions": 4})
    assert summary["outcomes"] == {"method_error": 4}
    assert "the memory holds none" in lines(summary, "records.jsonl")[0]["error"]["message"]


def test_more_than_k_is_over_budget_and_k_is_honoured_otherwise(tmp_path: Path) -> None:
    size = {"contexts": 1, "questions": 5}
    assert run(tmp_path / "a", m={"duplicate_k": True}, b=size, items=3)["outcomes"] == {"over_budget": 5}
    kept = run(tmp_path / "b", b=size, items=3)
    assert all(len(r["evidence"]) == 3 and r["requested"] == 3 for r in lines(kept, "records.jsonl"))


def test_token_budget_is_counted_as_shown_and_never_cut_in_silence(tmp_path: Path) -> None:
    size = {"contexts": 1, "questions": 6}
    over = run(tmp_path / "a", m={"duplicate_k": True}, b=size, budget=10)
    assert over["outcomes"] == {"over_budget": 6}
    fit = run(tmp_path / "b", b=size, budget=15, counters=("reader", "nominal28"))
    records = lines(fit, "records.jsonl")
    assert fit["outcomes"] == {"ok": 6} and all(max(r["cost"].values()) <= 15 for r in records)
    assert set(records[0]["cost"]) == {"quarter", "nominal28+quarter"} and "short_readout" in records[0]["flags"]


def test_a_record_carries_native_and_nominal_cost_without_a_budget(tmp_path: Path) -> None:
    size = {"contexts": 1, "questions": 2}
    free = run(tmp_path / "a", b=size)
    costs = [record["cost"] for record in lines(free, "records.jsonl")]
    assert all(set(cost) == {"quarter", "nominal28+quarter"} and cost["quarter"] > 0 for cost in costs)
    manifest = json.loads((Path(free["run"]) / "manifest.json").read_text())
    assert manifest["described"]["readout"]["counters"] == []  # what is only noted is no part of the identity
    held = run(tmp_path / "b", b=size, budget=10_000, counters=("qwen3-vl",))
    assert set(lines(held, "records.jsonl")[0]["cost"]) == {"quarter", "nominal28+quarter", "qwen3-vl+quarter"}


def test_empty_reply_is_an_answer_with_a_flag(tmp_path: Path) -> None:
    summary = run(tmp_path, b={"contexts": 1, "questions": 2}, r={"reply": " "})
    assert summary["outcomes"] == {"ok": 2} and summary["flags"] == {"empty_answer": 2}


def test_until_recall_scores_readouts_and_reads_nothing(tmp_path: Path) -> None:
    first = run(tmp_path, b={"contexts": 2, "questions": 3}, until="recall")
    assert set(first["scores"]) == {"found"} and "read" not in first["calls"]
    again = run(tmp_path, readouts=first["run"])
    assert again["scores"]["right"]["value"] == 1.0 and again["identity"] != first["identity"]
    assert [r["evidence"] for r in lines(again, "records.jsonl")] == [
        r["evidence"] for r in lines(first, "records.jsonl")
    ]


def test_context_without_questions_and_generator_of_unknown_length(tmp_path: Path) -> None:
    with_none = run(tmp_path, b={"contexts": 2, "questions": 300, "planned": False})
    assert with_none["n"] == 600 and (Path(with_none["run"]) / "DONE").is_file()
    again = run(tmp_path, b={"contexts": 2, "questions": 300, "planned": False})
    assert again["scores"] == with_none["scores"]


def test_selection_by_limit_range_and_ids(tmp_path: Path) -> None:
    size = {"contexts": 3, "questions": 4}
    assert run(tmp_path, b=size, limit="5")["n"] == 5
    ranged = run(tmp_path, b=size, limit="4-6")
    assert [(r["context"], r["index"]) for r in lines(ranged, "records.jsonl")] == [("c0", 3), ("c1", 0), ("c1", 1)]
    assert run(tmp_path, b=size, ids=("c2/3",))["n"] == 1
    with pytest.raises(UserError, match="1 of 2 ids name no question"):
        run(tmp_path, b=size, ids=("c2/3", "c9/9"))
    with pytest.raises(UserError, match="expected a number of questions"):
        run(tmp_path, b=size, limit="7-3")


def test_judged_metric_is_asked_by_the_engine_and_unreadable_verdicts_are_a_column(tmp_path: Path) -> None:
    size = {"contexts": 1, "questions": 4}
    judged = run(tmp_path / "a", b=size, judge=harness.toy("Toy"))
    assert judged["scores"]["verdict"]["value"] == 1.0 and judged["calls"]["judge"] == 4
    odd = run(tmp_path / "b", b=size | {"canary": "x"}, judge=f"{harness.TOYS.with_name('mumbler.py')}:Mumbler")
    assert odd["scores"]["verdict"] == odd["scores"]["verdict"] | {"n": 4, "n_valid": 0, "value": 0.0, "judge_error": 4}


def test_a_control_must_say_so_on_its_card(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="card must say control=True"):
        run(tmp_path, method="Peeker")


def test_memory_is_taken_up_again_only_if_it_was_ready(tmp_path: Path) -> None:
    from tests.run import toys  # noqa: F401  (the class below is the one the registry loaded)

    size = {"contexts": 1, "questions": 3}
    first = run(tmp_path, m={"keep": True}, b=size, r={"fail_on": "word 2?"})
    folder = Path(first["run"]) / "memory" / "000000"
    assert (folder / "READY").is_file()
    again = run(tmp_path, m={"keep": True}, b=size, r={"fail_on": "word 2?"})
    assert again["calls"].get("observe", 0) == 0
    (folder / "READY").unlink()
    (folder / "junk").write_text("left by a killed process")
    run(tmp_path, m={"keep": True}, b=size, r={"fail_on": "word 2?"})
    assert not (folder / "junk").exists() and (folder / "READY").is_file()
