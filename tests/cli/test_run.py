"""`memharness run`: one JSON object, exit codes, config files, interruption, and money asked for first."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memharness.cli import run as run_module
from memharness.cli.words import read_config, read_ids
from memharness.types import UserError
from tests.cli.conftest import RUN, TOYS, Said

Cli = Callable[..., Said]
KEYS = {
    "run",
    "identity",
    "method",
    "bench",
    "reader",
    "data_state",
    "n",
    "outcomes",
    "scores",
    "tokens",
    "calls",
    "seconds",
    "price",
}


def test_json_is_one_object_and_nothing_else(cli: Cli) -> None:
    said = cli(*RUN, "--json")
    assert said.code == 0
    summary = json.loads(said.out)
    assert said.out.count("\n") == 1
    assert summary.keys() >= KEYS
    assert summary["n"] == 6
    assert summary["outcomes"] == {"ok": 6}
    assert summary["scores"]["right"].keys() >= {"value", "low", "high", "n", "n_valid"}
    assert "SAMPLE" in said.err
    assert "6/6 questions" in said.err


def test_whatever_a_plugin_prints_stays_out_of_the_json(cli: Cli, tmp_path: Path) -> None:
    loud = tmp_path / "loud.py"
    loud.write_text(
        f"import os, sys\nsys.path.insert(0, {str(TOYS.parents[2])!r})\n"
        "from tests.run.toys import Everything\n"
        "class Loud(Everything):\n"
        "    def open(self, context, kit):\n"
        "        print('printed'); os.write(1, b'written\\n'); os.system('echo said by a child')\n"
        "        return super().open(context, kit)\n"
    )
    said = cli(*RUN, "--method", f"{loud}:Loud", "--json")
    assert said.code == 0
    assert json.loads(said.out)["n"] == 6
    for words in ("printed", "written", "said by a child"):
        assert words in said.err


def test_the_table_has_score_interval_n_tokens_and_seconds(cli: Cli) -> None:
    said = cli(*RUN)
    assert said.code == 0
    for words in (
        "SAMPLE",
        "everything on numbers",
        "right",
        "95 % interval",
        "text tokens",
        "seconds",
        "records and scores: results/runs/",
    ):
        assert words in said.out


def test_a_second_time_nothing_is_done_again(cli: Cli) -> None:
    first = json.loads(cli(*RUN, "--json").out)
    said = cli(*RUN, "--json")
    assert json.loads(said.out) == first
    assert "already finished" in said.err


def test_failures_past_the_limit_exit_with_1(cli: Cli) -> None:
    words = [*RUN, "-R", "fail_on=What is word 1"]
    assert cli(*words).code == 1
    said = cli(*words, "--max-failures", "2")
    assert said.code == 0
    assert "reader_error 2" in said.out
    assert "n valid" in said.out


def test_what_overruns_the_window_is_no_failure_of_the_run(cli: Cli) -> None:
    said = cli(*RUN, "-R", "over_on=What is word 1", "--json")
    assert said.code == 0
    assert json.loads(said.out)["outcomes"] == {"ok": 4, "over_window": 2}


def test_dry_run_spends_and_writes_nothing(cli: Cli, tmp_path: Path) -> None:
    said = cli(*RUN, "--dry-run", "--json")
    plan = json.loads(said.out)
    assert said.code == 0
    assert plan["questions"] == 6
    assert plan["calls"] == {"read": 6}
    assert plan["price"] == 0
    assert not (tmp_path / "results").exists()
    shown = cli(*RUN, "--dry-run").out
    assert "would ask 6 questions of 2 contexts" in shown
    assert "price: 0.00 USD" in shown


def test_readouts_are_read_again_without_naming_method_and_benchmark(cli: Cli) -> None:
    first = json.loads(cli(*RUN, "--json").out)
    said = cli("run", "--readouts", first["run"], "--reader", f"{TOYS}:Toy", "-R", "reply=c0-1", "--fresh", "--json")
    assert said.code == 0
    again = json.loads(said.out)
    assert again["method"] == "everything"
    assert again["run"] != first["run"]
    assert again["scores"]["right"]["value"] == pytest.approx(1 / 6)


# ------------------------------------------------------------------------------------------------------ config files


def test_a_config_file_names_the_flags_and_words_win(cli: Cli, tmp_path: Path) -> None:
    config = tmp_path / "run.yaml"
    config.write_text(
        f"method: {TOYS}:Everything\nbench_class: {TOYS}:Numbers\nreader: {TOYS}:Toy\n"
        "B: {contexts: 3, questions: 5}\nR: {reply: c0-1}\nmax-failures: 4\nlimit: 7\nseed: 3\n"
    )
    summary = json.loads(cli("run", "--config", config, "--json").out)
    assert summary["n"] == 7
    assert summary["seed"] == 3
    words = ["--seed", "4", "-B", "contexts=1", "--limit", "1-4"]
    summary = json.loads(cli("run", *words, "--config", config, "--json").out)
    assert summary["n"] == 4  # of 5: one context by the words, five questions by the file
    assert summary["seed"] == 4
    assert summary["scores"]["right"]["value"] == 0.25


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("metod: bm25", "metod: there is no such flag (did you mean method?)"),
        ("json: true", "json: there is no such flag"),
        ("- method", "expected flags by name"),
        ("method: [", "not YAML"),
        ("M: 3", "M: expected a mapping"),
        ("method: {a: b}", "method: expected one value"),
    ],
)
def test_a_config_file_that_is_wrong(cli: Cli, tmp_path: Path, text: str, message: str) -> None:
    config = tmp_path / "run.yaml"
    config.write_text(text)
    said = cli("run", "--config", config)
    assert said.code == 2
    assert str(config) in said.err
    assert message in said.err


def test_a_value_of_the_wrong_type_in_a_config_file(cli: Cli, tmp_path: Path) -> None:
    config = tmp_path / "run.yaml"
    config.write_text("seed: soon")
    said = cli(*RUN, "--config", config)
    assert said.code == 2
    assert "--seed" in said.err


def test_options_keep_their_types_through_a_config_file(tmp_path: Path) -> None:
    config = tmp_path / "run.yaml"
    config.write_text(
        "M: {a: 1, b: '1', c: [x, 2], d: null, e: 'yes', f: '{x'}\nfresh: true\ncounter: [reader, nominal28]"
    )
    found = read_config(config, {"M": "method_options", "fresh": "fresh", "counter": "counters"})
    from memharness.config import parse_pairs, read_word

    words = parse_pairs(found["method_options"], "-M")
    assert {name: read_word(word, Any) for name, word in words.items()} == {
        "a": 1,
        "b": "1",
        "c": ["x", 2],
        "d": None,
        "e": "yes",
        "f": "{x",
    }
    assert found["fresh"] is True
    assert found["counters"] == ["reader", "nominal28"]


def test_ids_stand_one_a_line(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "ids.txt"
    file.write_text("c0/1\n\nc1/2\n")
    assert json.loads(cli(*RUN, "--ids", file, "--json").out)["n"] == 2
    file.write_text("c0/1\nc7/9\n")
    assert "'c7/9'" in cli(*RUN, "--ids", file).err
    file.write_text("\n")
    with pytest.raises(UserError, match="holds no id"):
        read_ids(file)


def test_text_options_take_words_as_they_are_typed(cli: Cli, tmp_path: Path) -> None:
    constant = ["run", "--method", "constant", *RUN[3:], "--json"]
    for said in ("No", "1999", "null", "a # b", "passage: "):
        words = [*constant, "-M", f"text={said}", "-R", f"reply={said}", "-B", "contexts=1", "-B", "questions=1"]
        run = tmp_path / json.loads(cli(*words).out)["run"]
        assert json.loads((run / "records.jsonl").read_text())["answer"] == said


def test_models_by_role_are_the_same_in_words_and_in_a_file(cli: Cli, tmp_path: Path) -> None:
    config = tmp_path / "run.yaml"
    config.write_text(f"model:\n  answer: '{TOYS}:Toy'\n")
    base = [*RUN[:5], "--json"]
    by_file = json.loads(cli(*base, "--config", config).out)
    by_word = json.loads(cli(*base, "--model", f"answer={TOYS}:Toy").out)
    assert by_file == by_word
    assert by_word["reader"] == json.loads(cli(*RUN, "--json").out)["reader"]


# ---------------------------------------------------------------------------------------------- interruption, workers


def test_an_interrupted_run_says_how_to_go_on_and_does(tmp_path: Path, home: Path) -> None:
    words = [*RUN, "-B", "questions=30", "-R", "slow=0.2", "--concurrency", "2", "--json"]
    command = [sys.executable, "-m", "memharness", *words]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ})
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not _lines(tmp_path):
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert out == ""
    assert "finished work is kept: run the same command again" in err
    assert "Traceback" not in err
    kept = _lines(tmp_path)
    assert 0 < kept < 60
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, env={**os.environ})
    assert json.loads(done.stdout)["n"] == 60
    assert json.loads(done.stdout)["outcomes"] == {"ok": 60}


def _lines(folder: Path) -> int:
    return sum(file.read_bytes().count(b"\n") for file in folder.glob("results/runs/*/records/*.jsonl"))


def test_worker_processes_share_a_run(cli: Cli) -> None:
    said = cli(*RUN, "-B", "contexts=6", "-R", "slow=0.05", "--workers", "2", "--json")
    assert said.code == 0
    assert json.loads(said.out)["outcomes"] == {"ok": 18}


def test_work_is_hidden_but_there(cli: Cli) -> None:
    assert "work" not in [line.split()[0] for line in cli("--help").out.splitlines() if line.startswith("  ")]
    assert cli("work", "nowhere").code == 2


# -------------------------------------------------------------------------------------------------------------- money

HOSTED = ["run", "--method", f"{TOYS}:Everything", "--bench", f"{TOYS}:Numbers", "--view", "captions", "--reader"]


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that no server will ever see."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.mark.usefixtures("key")
def test_a_hosted_reader_needs_max_cost_or_a_yes(cli: Cli, tmp_path: Path) -> None:
    said = cli(*HOSTED, "openai:gpt-4o-mini")
    assert said.code == 2
    assert "give --max-cost USD" in said.err
    assert "prices of 20" in said.err
    assert not _lines(tmp_path)


@pytest.mark.usefixtures("key")
def test_an_estimate_over_max_cost_is_refused_before_anything_is_spent(cli: Cli, tmp_path: Path) -> None:
    said = cli(*HOSTED, "openai:gpt-4o-mini", "--max-cost", "0.00001")
    assert said.code == 2
    assert "--max-cost 1e-05: this run may cost" in said.err
    assert not _lines(tmp_path)


@pytest.mark.usefixtures("key")
def test_a_hosted_model_without_a_price_is_said_and_bounded(cli: Cli) -> None:
    assert "price: unknown" in cli(*HOSTED, "openai:nobody-knows", "--dry-run").out
    assert json.loads(cli(*HOSTED, "openai:nobody-knows", "--dry-run", "--json").out)["price"] is None
    said = cli(*HOSTED, "openai:nobody-knows", "--max-cost", "0.0001")
    assert said.code == 2
    assert "price unknown, at most" in said.err


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize(("reply", "code"), [(True, 0), (False, 2)])
def test_the_user_is_asked_on_a_terminal(cli: Cli, monkeypatch: pytest.MonkeyPatch, reply: bool, code: int) -> None:
    from memharness.run import api

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda *words, **more: reply)
    blank = {"outcomes": {"ok": 1}, "scores": {}}
    monkeypatch.setattr(api, "execute", lambda *words: blank)
    said = cli(*HOSTED, "openai:gpt-4o-mini", "--json")
    assert said.code == code
    assert bool(said.out) == reply


def test_failures_are_what_a_rerun_would_ask_again() -> None:
    outcomes = {
        "ok": 5,
        "refused": 1,
        "over_budget": 1,
        "over_window": 1,
        "timeout": 2,
        "method_error": 4,
        "not_asked": 8,
    }
    assert run_module.failures({"outcomes": outcomes}) == 14
