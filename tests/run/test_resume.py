"""Kills, torn lines, two processes, full disks and other versions: nothing is lost, nothing counts twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from memharness.store import Appender, RequestCache
from memharness.types import UserError
from tests.run.harness import ledger, lines, run, toy

ROOT = Path(__file__).resolve().parents[2]


def command(out: Path, *more: str, contexts: int = 4, questions: int = 300) -> list[str]:
    """A run of the real command in a process of its own."""
    return [
        sys.executable, "-m", "memharness", "run",
        "--method", toy("Everything"), "--bench", toy("Numbers"), "--reader", toy("Toy"),
        "-B", f"contexts={contexts}", "-B", f"questions={questions}", "--out", str(out), "--json", "--items", "20",
        "-R", "slow=0.02", *more,
    ]  # fmt: skip


def finish(out: Path, *more: str, **size: int) -> dict[str, Any]:
    """Run to the end in a process of its own."""
    done = subprocess.run(command(out, *more, **size), capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def written(out: Path) -> int:
    """Record lines on disk by now."""
    return sum(file.read_bytes().count(b"\n") for file in out.glob("runs/*/records/*.jsonl"))


def story(summary: dict[str, Any]) -> list[tuple[Any, ...]]:
    """What must be equal whatever happened on the way."""
    return [
        (r["question"], r["outcome"], r.get("answer"), r["evidence"], r["prompt"])
        for r in lines(summary, "records.jsonl")
    ]


def test_killed_at_a_random_count_ten_times_over(tmp_path: Path) -> None:
    calm = finish(tmp_path / "calm")
    rng = random.Random(7)
    total = calm["n"]
    out = tmp_path / "killed"
    for _ in range(10):
        target = written(out) + rng.randint(1, total // 16)
        process = subprocess.Popen(
            command(out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT, start_new_session=True
        )
        while written(out) < target and process.poll() is None:
            time.sleep(0.002)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert not list(out.glob("runs/*/DONE")), "killed too late for the test to mean anything"
    rough = finish(out)
    assert story(rough) == story(calm)
    assert (
        rough["scores"] == calm["scores"]
        and rough["outcomes"] == calm["outcomes"]
        and rough["identity"] == calm["identity"]
    )
    assert rough["tokens"] == calm["tokens"]  # lifecycle cost: what was killed is in `spent` only
    questions = [r["question"] for r in lines(rough, "records.jsonl")]
    assert len(questions) == len(set(questions)) == total


def test_killed_by_its_own_reader_keeps_every_reply_it_paid_for(tmp_path: Path) -> None:
    killed = subprocess.run(
        command(tmp_path, "-R", "kill_at=100", contexts=1), capture_output=True, cwd=ROOT, timeout=120
    )
    assert killed.returncode == -signal.SIGKILL
    cache = RequestCache(tmp_path / "cache" / "requests.sqlite")
    kept = cache._db.execute("SELECT count(*) FROM replies").fetchone()[0]
    cache.close()
    done = finish(tmp_path, contexts=1)
    calls = ledger(done)
    bought = [c for c in calls if c["kind"] == "generate" and not c["hit"] and c["status"] == "ok"]
    assert kept >= 30 and len({c["question"] for c in bought}) == len(bought) == done["n"], "no reply was bought twice"


def test_a_torn_last_line_is_dropped_and_counted(tmp_path: Path) -> None:
    first = run(tmp_path, b={"contexts": 2, "questions": 3}, r={"fail_on": "word 2?"})
    file = next(Path(first["run"]).glob("records/*.jsonl"))
    file.write_bytes(file.read_bytes() + b'{"question":"torn in the mid')
    again = run(tmp_path, b={"contexts": 2, "questions": 3}, r={"fail_on": "word 2?"})
    assert again["outcomes"] == first["outcomes"] and any("torn" in note for note in again["notes"])


def test_errors_are_asked_again_and_finished_answers_never(tmp_path: Path) -> None:
    flaky = tmp_path / "flaky"
    flaky.write_text("word 1?")
    size = {"contexts": 1, "questions": 3}
    first = run(tmp_path, reader="Flaky", b=size, r={"log": str(tmp_path / "prompts"), "reply": str(flaky)})
    assert first["outcomes"] == {"ok": 2, "reader_error": 1} and not (Path(first["run"]) / "DONE").exists()
    flaky.write_text("")
    second = run(tmp_path, reader="Flaky", b=size, r={"log": str(tmp_path / "prompts"), "reply": str(flaky)})
    assert second["outcomes"] == {"ok": 3} and second["run"] == first["run"] and (Path(second["run"]) / "DONE").exists()
    asked = (tmp_path / "prompts").read_text()
    assert asked.count("What is word 0?") == 1 and asked.count("What is word 1?") == 2
    assert [r["attempt"] for r in lines(second, "records.jsonl")] == [1, 2, 1]


def test_of_two_finished_attempts_the_first_counts_and_it_is_said(tmp_path: Path) -> None:
    """Case c26: re-running only what was wrong and keeping what flipped to right is not a score."""
    done = run(tmp_path, b={"contexts": 1, "questions": 2}, r={"reply": "wrong"})
    folder = Path(done["run"])
    record = lines(done, "records.jsonl")[0] | {"attempt": 2, "answer": "c0-0"}
    (folder / "records" / "zz.jsonl").write_text(json.dumps(record) + "\n")
    (folder / "DONE").unlink()
    (folder / "gold").mkdir()
    gold = [
        {key: value for key, value in line.items() if key not in ("context", "context_index")}
        for line in lines(done, "gold.jsonl")
    ]
    (folder / "gold" / "a.jsonl").write_text(
        json.dumps({"context": 0, "unit": 0, "name": "c0", "at": 1.0, "cases": gold}) + "\n"
    )
    again = run(tmp_path, b={"contexts": 1, "questions": 2}, r={"reply": "wrong"})
    assert again["scores"]["right"]["value"] == 0.0 and again["flags"] == {"finished_twice": 1}
    assert any("more than one finished attempt" in note for note in again["notes"])


def test_two_processes_share_one_run(tmp_path: Path) -> None:
    alone = finish(tmp_path / "alone")
    out = tmp_path / "both"
    both = [subprocess.Popen(command(out), stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) for _ in range(2)]
    said = [json.loads(process.communicate(timeout=120)[0]) for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert said[0]["scores"] == said[1]["scores"] == alone["scores"] and story(said[0]) == story(alone)
    assert len(list(Path(said[0]["run"]).glob("records/*.jsonl"))) == 2
    assert written(out) == alone["n"], "no question was asked twice"


def test_workers_and_one_process_agree_and_one_context_is_split(tmp_path: Path) -> None:
    one = finish(tmp_path / "one", contexts=1, questions=1200)
    three = finish(tmp_path / "three", "--workers", "3", contexts=1, questions=1200)
    assert story(three) == story(one) and three["scores"] == one["scores"]
    assert sum(file.stat().st_size > 0 for file in Path(three["run"]).glob("records/*.jsonl")) >= 2


def test_a_dead_worker_s_units_are_taken_over(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = subprocess.Popen(
        command(out, "-R", "kill_at=500"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT
    )
    time.sleep(0.3)
    done = finish(out)
    first.wait()
    assert done["n"] == 1200 and done["outcomes"] == {"ok": 1200}


def test_ctrl_c_keeps_what_is_finished(tmp_path: Path) -> None:
    process = subprocess.Popen(
        command(tmp_path, "-R", "slow=0.05"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    while written(tmp_path) < 50:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130 and out == "" and "same command again" in err and "Traceback" not in err


def test_a_full_disk_stops_the_run_and_it_goes_on_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = {"contexts": 1, "questions": 40}
    real, count = Appender.add, 0

    def full(self: Appender, value: Any) -> None:
        nonlocal count
        count += self.path.parent.name == "records"
        if count == 20:  # a real ENOSPC, from the device that is always full
            self._file.close()
            self._file = open("/dev/full", "ab", buffering=0)  # noqa: SIM115
        real(self, value)

    with monkeypatch.context() as patch:
        patch.setattr(Appender, "add", full)
        with pytest.raises(UserError, match="the disk is full; free space and run the same command again"):
            run(tmp_path, b=size)
    done = run(tmp_path, b=size)
    assert done["outcomes"] == {"ok": 40}
    assert len([c for c in ledger(done) if c["hit"]]) >= 1  # replies paid for before were kept


def test_a_run_of_another_format_is_refused_and_fresh_keeps_it_aside(tmp_path: Path) -> None:
    first = run(tmp_path)
    manifest = Path(first["run"]) / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"format": 0, "memharness": "0.0.1"}))
    with pytest.raises(UserError, match=r"made by memharness 0\.0\.1 in run format 0; .* --fresh"):
        run(tmp_path)
    again = run(tmp_path, fresh=True)
    assert again["run"] == first["run"] and len(list((tmp_path / "runs").glob("*.old-*"))) == 1


def test_a_run_over_other_code_asks(tmp_path: Path) -> None:
    first = run(tmp_path)
    manifest = Path(first["run"]) / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"code": "0" * 16}))
    with pytest.raises(UserError, match="made by other code"):
        run(tmp_path)
    assert run(tmp_path, resume_anyway=True)["scores"] == first["scores"]


def test_a_finished_run_is_shown_not_run(tmp_path: Path) -> None:
    first = run(tmp_path, r={"log": str(tmp_path / "prompts")})
    asked = (tmp_path / "prompts").read_text()
    assert run(tmp_path, r={"log": str(tmp_path / "prompts")}) == first
    assert (tmp_path / "prompts").read_text() == asked


def test_a_file_that_is_no_cache_is_named(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "requests.sqlite").write_text("not a database, but long enough to be taken for one" * 40)
    with pytest.raises(UserError, match=r"requests\.sqlite: not a usable request cache"):
        run(tmp_path)
