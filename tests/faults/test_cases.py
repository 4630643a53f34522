"""Small inputs that broke other evaluators, through the command line; the rules themselves are tested by unit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.faults.conftest import SAMPLES, Said, hostile, records, run_words, summary, toy

Cli = Callable[..., Said]
PLAIN = ["run", "--reader", "extractive", "--json"]


def written(path: Path, value: Any) -> str:
    """A data file."""
    path.write_text(json.dumps(value))
    return str(path)


def hotpot() -> Any:
    """The sample's questions."""
    return json.loads((SAMPLES / "hotpotqa/sample/hotpot_sample.json").read_text())


def locomo() -> Any:
    """The sample's conversations."""
    return json.loads((SAMPLES / "locomo/sample/locomo_sample.json").read_text())


def gold(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The gold of a run."""
    return [json.loads(line) for line in (Path(found["run"]) / "gold.jsonl").read_text().splitlines()]


def test_c01_c02_a_judge_s_words(cli: Cli, shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No reply but a plain verdict makes an answer right: not words inside words, not a truthy string, not prose."""
    run = summary(cli(*PLAIN, "--bench", "atm", "--method", "recency"))["run"]
    replies = [
        ({name.replace("correct", "accuracy"): value for name, value in reply.items()}, right)
        for reply, right in json.loads((shared / "cases/c02_json_booleans.json").read_text())["replies"]
    ]
    words = json.loads((shared / "cases/c01_verdict_words.json").read_text())["replies"]
    replies += [(reply, "unparsed") for reply, _ in words]  # this rubric asks for JSON, so a bare word is no verdict
    for reply, right in replies:
        text = reply if isinstance(reply, str) else json.dumps(reply)
        monkeypatch.setenv("MEMHARNESS_TEST_VERDICT", text)
        summary(cli("score", run, "--judge", hostile("Judge"), "--json"))
        rows = [json.loads(line) for line in (Path(run) / "scores.jsonl").read_text().splitlines()]
        judged = [row["scores"]["qs"] for row in rows if row["category"] == "open_end"]
        assert judged
        if right == "right":
            assert set(judged) == {1.0}, text
        else:
            assert 1.0 not in judged, text
        if right == "unparsed":
            assert {score[1] for score in judged} == {"judge_error"}, text


def test_c07_ids_that_give_the_answer_away_reach_neither_method_nor_prompt(cli: Cli, tmp_path: Path) -> None:
    rows = hotpot()
    for number, row in enumerate(rows):
        row["_id"] = f"answer_b1c2_{number}_abs"
    data = written(tmp_path / "data.json", rows)
    found = summary(cli(*PLAIN, "--bench", "hotpotqa", "--method", "bm25", "--data", data))
    assert "answer_b1c2" not in (Path(found["run"]) / "records.jsonl").read_text()
    assert "answer_b1c2_0_abs" in (Path(found["run"]) / "gold.jsonl").read_text()


def test_c09_an_integer_answer_of_zero_is_gold(cli: Cli, tmp_path: Path) -> None:
    rows = locomo()
    rows[0]["qa"][0]["answer"] = 0
    data = written(tmp_path / "data.json", rows)
    words = [*PLAIN, "--bench", "locomo", "--method", "null", "--data", data, "--limit", "1"]
    found = summary(cli(*words))
    assert gold(found)[0]["answers"] == ["0"]
    file = tmp_path / "p.jsonl"
    file.write_text(json.dumps({"id": gold(found)[0]["native_id"], "prediction": "0"}) + "\n")
    said = cli("evaluate", "locomo", "--data", data, "--predictions", file, "--json")
    assert json.loads(said.out)["scores"]["f1.1"] > 0


def test_c10_gold_that_is_the_whole_memory_is_left_out_of_recall(cli: Cli, tmp_path: Path) -> None:
    rows = hotpot()
    named = {title for title, _ in rows[0]["supporting_facts"]}
    rows[0]["context"] = [paragraph for paragraph in rows[0]["context"] if paragraph[0] in named]
    data = written(tmp_path / "data.json", rows)
    found = summary(cli(*PLAIN, "--bench", "hotpotqa", "--method", "oracle", "--data", data, "--until", "recall"))
    assert found["n"] == 24
    assert found["scores"]["recall@2"]["n"] == 23


def test_c16_a_question_without_an_answer_has_the_abstention_metric_only(cli: Cli) -> None:
    found = summary(cli(*PLAIN, "--bench", "locomo", "--method", "null"))
    traps = [line for line in gold(found) if line.get("abstain")]
    assert traps
    scores = [json.loads(line) for line in (Path(found["run"]) / "scores.jsonl").read_text().splitlines()]
    rows = {row["unit"]: row["scores"] for row in scores}
    for line in traps:
        assert not line["answers"]
        assert isinstance(rows[line["question"]]["set_f1"], list), "not applicable"
    assert found["scores"]["abstention"]["n"] == len(traps)


def test_c17_outcomes_come_from_the_path_and_are_told_apart(cli: Cli) -> None:
    words = [*run_words(reader=hostile("Rough")), "-R", "how=timeout-error", "-R", "on=What is word 1"]
    found = summary(cli(*words))
    assert found["outcomes"] == {"ok": 4, "timeout": 2}
    right = found["scores"]["right"]
    assert (right["n"], right["n_valid"]) == (6, 4)
    assert right["value_valid"] == pytest.approx(right["value"] * 6 / 4)


def test_c22_a_swallowed_k_is_counted(cli: Cli) -> None:
    found = summary(cli(*run_words(hostile("Rude")), "-M", "how=short", "--items", "3"))
    assert found["flags"] == {"short_readout": 6}
    assert {record["requested"] for record in records(found)} == {3}
    over = summary(cli(*run_words(), "-M", "duplicate_k=true", "--items", "2"))
    assert over["outcomes"] == {"over_budget": 6}


def test_c26_only_errors_are_asked_again(cli: Cli, tmp_path: Path) -> None:
    flaky, log = tmp_path / "flaky", tmp_path / "prompts"
    flaky.write_text("word 1?")
    words = [*run_words(reader=toy("Flaky")), "-R", f"log={log}", "-R", f"reply={flaky}"]
    assert summary(cli(*words))["outcomes"] == {"ok": 4, "reader_error": 2}
    flaky.write_text("")
    assert summary(cli(*words))["outcomes"] == {"ok": 6}
    assert summary(cli(*words))["outcomes"] == {"ok": 6}
    assert log.read_text().count("What is word 0?") == 2
    assert log.read_text().count("What is word 1?") == 4


def test_c27_features_that_are_off_are_listed(cli: Cli) -> None:
    found = summary(cli(*run_words(hostile("Rude")), "-M", "how=holds-nothing"))
    assert found["outcomes"] == {"method_error": 6}
    said = cli("run", "--method", "graphmemix", "--bench", "hotpotqa", "--reader", "extractive", "--limit", "1",
               "--embedder", hostile("Vectors"), "--json")  # fmt: skip
    manifest = json.loads((Path(summary(said)["run"]) / "manifest.json").read_text())
    assert manifest["described"]["features"]
