"""Run folders that are damaged, unfinished or mixed: what each command says, and what makes them whole again."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.faults.conftest import TOYS, Said, hostile, records, refused, run_words, summary, toy

Cli = Callable[..., Said]


@pytest.fixture
def run(cli: Cli) -> Path:
    """A finished run."""
    return Path(summary(cli(*run_words()))["run"])


def lines(path: Path, change: Callable[[list[str]], list[str]]) -> None:
    """Rewrite a file's lines."""
    path.write_text("".join(change(path.read_text().splitlines(keepends=True))))


def value(path: Path, change: Callable[[Any], Any]) -> None:
    """Rewrite a JSON file."""
    held = json.loads(path.read_text())
    change(held)
    path.write_text(json.dumps(held))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda m: m.write_text(""), "manifest.json: not JSON"),
        (lambda m: m.write_bytes(b'{"format": 1, "x": "\xe9"}'), "manifest.json: not JSON"),
        (lambda m: m.write_text("[]"), "made by memharness another program in run format None"),
        (lambda m: m.write_text('{"format": 1}'), "manifest.json: damaged, it has no memharness"),
        (lambda m: m.write_text('{"format": 9, "memharness": "9.9"}'), "made by memharness 9.9 in run format 9"),
        (lambda m: (m.unlink(), m.mkdir()), "manifest.json: cannot be read"),
    ],
)
def test_a_damaged_manifest(cli: Cli, run: Path, spoil: Callable[[Path], Any], message: str) -> None:
    spoil(run / "manifest.json")
    for command in ("score", "verify", "show"):
        refused(cli(command, run, "--json"), message)
    refused(cli(*run_words()), message)
    assert message in cli("leaderboard", run).err
    if not (run / "manifest.json").is_dir():
        again = summary(cli(*run_words(), "--fresh"))
        assert again["outcomes"] == {"ok": 6}
        assert list(run.parent.glob(f"{run.name}.old-*"))  # kept aside


@pytest.mark.parametrize(
    "spoil",
    [
        lambda s: s.unlink(),
        lambda s: s.write_bytes(s.read_bytes()[:200]),
        lambda s: s.write_text("[]"),
        lambda s: s.write_text("{}"),
        lambda s: value(s, lambda held: held.pop("scores")),
    ],
)
def test_a_damaged_summary_is_made_again_from_the_records(cli: Cli, run: Path, spoil: Callable[[Path], Any]) -> None:
    before = json.loads((run / "summary.json").read_text())
    spoil(run / "summary.json")
    for words in (["verify", run], ["show", run], run_words()):
        refused(cli(*words), "summary.json", f"`memharness score {run}` makes it again")
    assert "summary.json" in cli("leaderboard", run).err
    assert summary(cli("score", run, "--json")) == before
    assert cli("verify", run).code == 0


@pytest.mark.parametrize(
    ("name", "change", "code", "message"),
    [
        ("records.jsonl", lambda t: [*t[:2], "{broken\n", *t[3:]], 2, "records.jsonl: line 3: not JSON"),
        ("records.jsonl", lambda t: [*t[:-1], t[-1][:20]], 2, "do not match at question"),
        ("records.jsonl", lambda t: t[:2] + t[3:], 2, "do not match at question"),
        ("records.jsonl", lambda t: [t[1], t[0], *t[2:]], 2, "do not match at question"),
        ("records.jsonl", lambda t: [*t, t[-1]], 2, "do not match at question"),
        ("records.jsonl", lambda t: ['{"question": "x"}\n', *t[1:]], 2, "do not match at question"),
        ("records.jsonl", lambda t: [t[0].replace('"ok"', '"great"'), *t[1:]], 2, "damaged (ValueError: 'great'"),
        ("records.jsonl", lambda t: [t[0].replace('"answer":"c0-0"', '"answer":"z"'), *t[1:]], 1, "recomputed 0.0"),
        ("gold.jsonl", lambda t: [t[0], "x\n", *t[2:]], 2, "gold.jsonl: line 2: not JSON"),
        ("gold.jsonl", lambda t: [*t[:-1], t[-1][:20]], 2, "do not match at question"),
        ("gold.jsonl", lambda t: [t[0].replace("c0-0", "zzz"), *t[1:]], 1, "recomputed 0.0"),
        ("scores.jsonl", lambda t: [t[0].replace('"right":1.0', '"right":0.5'), *t[1:]], 1, "stored 0.5, recomputed 1"),
        ("scores.jsonl", lambda t: [t[0].replace('"right":1.0', '"right":NaN'), *t[1:]], 2, "line 1: damaged"),
        ("scores.jsonl", lambda t: t[1:], 1, "scores.jsonl: no line for"),
        ("scores.jsonl", lambda t: [*t, t[0].replace('"unit":"', '"unit":"z')], 1, "stored 6, recomputed 7"),
        ("scores.jsonl", lambda t: [t[0], "x\n", *t[2:]], 2, "scores.jsonl: line 2: not JSON"),
    ],
)
def test_verify_says_which_line(
    cli: Cli, run: Path, name: str, change: Callable[[list[str]], list[str]], code: int, message: str
) -> None:
    lines(run / name, change)
    said = cli("verify", run, "--json")
    assert said.code == code
    if code == 2:
        refused(said, str(run), message)
    else:
        found = json.loads(said.out)
        assert found["equal"] is False
        assert any(message in line for line in found["differences"])
    if name != "scores.jsonl" and code == 2:  # what cannot be paired is not scored in silence either
        refused(cli("score", run, "--json"), message)


@pytest.mark.parametrize("name", ["records.jsonl", "gold.jsonl", "scores.jsonl"])
def test_verify_names_a_file_that_is_gone(cli: Cli, run: Path, name: str) -> None:
    (run / name).unlink()
    refused(cli("verify", run, "--json"), str(run / name), "cannot be read")
    if name == "scores.jsonl":
        assert cli("score", run).code == 0
        assert cli("verify", run).code == 0


def test_a_ledger_with_a_broken_line(cli: Cli, run: Path) -> None:
    lines(next(run.glob("ledger/*.jsonl")), lambda text: ["x\n", *text])
    refused(cli("verify", run, "--json"), "ledger", "line 1: not JSON")


def test_an_unfinished_run(cli: Cli, tmp_path: Path) -> None:
    """Stopped in scoring: answers are there, figures are not, and every command says so."""
    refused(cli(*run_words(bench=hostile("Odd")), "-B", "how=metric-raises"), "metric")
    run = next(tmp_path.glob("results/runs/*"))
    for command in ("score", "verify", "show"):
        refused(cli(command, run, "--json"), "not finished; run the same command again")
    refused(cli("leaderboard", run, "--json"), "no finished run")
    (run / "records.jsonl").unlink()
    refused(
        cli("run", "--readouts", run, "--reader", toy("Toy"), "-R", "reply=x", "--json"), "records.jsonl: cannot be"
    )


def test_a_leaderboard_over_all_sorts_of_folders(cli: Cli, run: Path, tmp_path: Path) -> None:
    summary(cli(*run_words(), "-R", "fail_on=What is word 1"))
    (tmp_path / "results/runs/empty").mkdir()
    (tmp_path / "results/runs/file").write_text("no run")
    broken = shutil.copytree(run, tmp_path / "results/runs/broken")
    (broken / "summary.json").write_text("{")
    foreign = shutil.copytree(run, tmp_path / "results/runs/foreign")
    (foreign / "manifest.json").write_text("{}")
    said = cli("leaderboard", "results/runs", tmp_path / "results", "--csv", "board.csv")
    assert said.code == 0
    assert said.err.count("left out: ") == 2
    with (tmp_path / "board.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2
    assert {row["outcome_reader_error"] for row in rows} == {"0", "2"}


def test_a_run_whose_plugin_or_data_have_gone(cli: Cli, tmp_path: Path) -> None:
    plug = tmp_path / "plug.py"
    plug.write_text(TOYS.read_text())
    found = summary(cli(*run_words(f"{plug}:Everything", f"{plug}:Numbers", f"{plug}:Toy")))
    plug.unlink()
    for command in ("score", "verify"):
        refused(cli(command, found["run"]), f"{plug}: no such file")
    assert summary(cli("show", found["run"], "--json"))["n"] == 6  # what was found stays readable
    assert len(json.loads(cli("leaderboard", found["run"], "--json").out)["rows"]) == 1


def test_readouts_of_other_questions_are_errors_not_zeros(cli: Cli, run: Path) -> None:
    lines(run / "records.jsonl", lambda text: text[:-1])
    said = cli("run", "--readouts", run, "--reader", toy("Toy"), "-R", "reply=c0-0", "--json")
    found = summary(said)
    assert found["outcomes"] == {"ok": 5, "method_error": 1}
    assert "has none for this question" in records(found)[-1]["error"]["message"]
