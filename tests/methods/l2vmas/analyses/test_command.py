"""`memharness vmas-analyse` on real runs of tiny models: files written, nothing done twice, and the law of cost."""

from __future__ import annotations

import csv
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from memharness.cli import command_line
from tests.readers.tiny import tiny_model

TEAM = ["-M", "topology=complete", "-M", "agent_tokens=16", "-M", "memory=bm25", "--items", "1", "--max-tokens", "8",
        "--limit", "1", "-R", "dtype=f32"]  # fmt: skip
CALLING = ["-M", "window=4", "-M", "threshold=0"]
PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny model of words, as a reader."""
    return f"hf:{tiny_model('text', tmp_path_factory.getbasetemp() / 'tiny')}"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


def analyse(*arguments: str) -> None:
    assert command_line(["vmas-analyse", *arguments]) == 0


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def turns(words: str, results: Path) -> list[dict[str, str]]:
    """Rows of the analysis of turns, performed once."""
    out = results / "turns.png"
    analyse("turns", "--bench", "hotpotqa", "--reader", words, "--at", "turns=1-5", *TEAM, *CALLING,
            "--results", str(results), "--out", str(out))  # fmt: skip
    assert out.read_bytes().startswith(PNG)
    return table(out.with_suffix(".csv"))


def test_cost_grows_in_a_line_where_text_grows_faster(turns: list[dict[str, str]], results: Path) -> None:
    """With everything passed on, turn n is told n - 1 reports; a turn of l2vmas is told nothing, whichever it is."""
    spent = {(row["method"], int(row["at"])): float(row["tokens"]) for row in turns}
    assert sorted(spent) == [(method, n) for method in ("l2vmas", "vmas") for n in range(1, 6)]
    assert spent["vmas", 1] == spent["l2vmas", 1]  # alone, both are one agent

    steps = []  # prompts of l2vmas' turns, over all its runs
    for folder in results.glob("runs/hotpotqa-l2vmas-*"):
        for line in (folder / "records.jsonl").read_text("utf-8").splitlines():
            steps += [step["tokens"] for step in json.loads(line)["trace"]["steps"]]
    dearest = max(step["prompt"] + step["output"] for step in steps)
    assert all(spent["l2vmas", n] <= n * dearest for n in range(1, 6))
    grown = {m: [spent[m, n + 1] - spent[m, n] for n in range(1, 5)] for m in ("vmas", "l2vmas")}
    assert max(grown["l2vmas"]) <= dearest
    # What is passed on in all grows as n(n - 1) / 2: each turn more costs more than the one before it.
    assert all(later > earlier for earlier, later in itertools.pairwise(grown["vmas"]))
    passed = {int(row["at"]): float(row["passed_in"]) for row in turns if row["method"] == "vmas"}
    assert passed[1] == 0 and passed[5] - passed[4] > passed[3] - passed[2] > 0
    assert {row["passed_in"] for row in turns if row["method"] == "l2vmas"} == {"0.0"}
    assert any(float(row["latent"]) > 0 for row in turns if row["method"] == "l2vmas")
    for row in turns:
        assert float(row["tokens"]) == sum(float(row[kind]) for kind in ("prompt", "visual", "output"))


def test_finished_runs_are_not_repeated_and_may_be_given(
    turns: list[dict[str, str]], words: str, results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledgers = {file: file.stat().st_mtime_ns for file in results.glob("runs/*/ledger/*")}
    same = ["turns", "--bench", "hotpotqa", "--reader", words, "--at", "turns=1-5", *TEAM, *CALLING]
    same += ["--results", str(results)]
    analyse(*same, "--dry-run", "--json")
    planned = json.loads(capsys.readouterr().out)["runs"]
    assert len(planned) == 10 and all(run["finished"] for run in planned)
    analyse(*same, "--out", str(tmp_path / "again.svg"))
    assert {file: file.stat().st_mtime_ns for file in results.glob("runs/*/ledger/*")} == ledgers
    analyse("turns", str(results / "runs"), "--out", str(tmp_path / "given.png"), "--json")
    told = json.loads(capsys.readouterr().out)
    assert told["plot"] == str(tmp_path / "given.png") and len(told["rows"]) == 10
    assert table(tmp_path / "again.csv") == turns
    assert sorted(map(str, table(tmp_path / "given.csv"))) == sorted(map(str, turns))
    longest = next(
        run["run"] for run in planned
        if (run["spec"]["method"], run["spec"]["method_options"]["turns"]) == ("l2vmas", 5)
    )  # fmt: skip
    analyse("triggering", longest, "--bins", "4", "--out", str(tmp_path / "places.png"))
    found = table(tmp_path / "places.csv")
    assert {row["at"] for row in found} == {"all", "1", "2", "3", "4"}
    whole = next(row for row in found if row["line"] == "thinking" and row["at"] == "all")
    assert 0 < float(whole["calls"]) < float(whole["tokens"])


def test_contents(results: Path, tmp_path: Path) -> None:
    out = tmp_path / "contents.png"
    varied = ["--at", "turns=2,3", "--at", "content=conclusion,full"]
    analyse("contents", "--bench", "mmbench", "--bench", "mmstar", "--reader", "extractive", "--limit", "2", *varied,
            "--results", str(results), "--out", str(out))  # fmt: skip
    assert out.read_bytes().startswith(PNG)
    found = table(out.with_suffix(".csv"))
    assert [(row["panel"], row["line"], row["at"]) for row in found] == [
        (bench, content, n) for bench in ("mmbench", "mmstar") for content in ("conclusion", "full") for n in ("2", "3")
    ]  # fmt: skip
    assert all(float(row["passed_in"]) > 0 and row["failed"] == "0" for row in found)


def test_ablations_and_sensitivity(words: str, results: Path, tmp_path: Path) -> None:
    shared = ["--bench", "hotpotqa", "--reader", words, *TEAM, "-M", "turns=2", "--results", str(results)]
    analyse("ablations", *shared, *CALLING, "--out", str(tmp_path / "ablations.png"))
    found = table(tmp_path / "ablations.csv")
    assert [row["line"] for row in found] == [
        "w/o triggering", "w/o attribution", "w/o perception", "w/o thinking", "L²-VMAS",
    ]  # fmt: skip
    assert float(found[-1]["change"]) == 0 and float(found[3]["latent"]) == 0  # words alone: nothing else to call on
    swept = ["--at", "window=4,16", "--at", "threshold=0.5", "--at", "length=2,8"]
    analyse("sensitivity", *shared, *swept, "--out", str(tmp_path / "sensitivity.png"))
    made = [(row["panel"], row["line"], row["at"]) for row in table(tmp_path / "sensitivity.csv")]
    assert made == [("baseline", "hotpotqa", ""), ("window", "hotpotqa", "4"), ("window", "hotpotqa", "16"),
                    ("length", "hotpotqa", "2"), ("length", "hotpotqa", "8")]  # fmt: skip
    for name in ("ablations", "sensitivity"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["turns", "--bench", "mmstar"], "vmas-analyse turns: name the plot with --out"),
        (["turns", "--bench", "mmstar", "--out", "x.gif"], "--out x.gif: name the plot with --out, a file that ends"),
        (["turns", "--out", "x.png"], "name finished runs, or perform some with --bench"),
        (["turns", "--bench", "a", "--bench", "b", "--data", "d", "--out", "x.png"], "--data d: is of one benchmark"),
        (["turns", "/nowhere", "--out", "x.png"], "vmas-analyse /nowhere: no such folder"),
        (["turns", "--at", "turns", "--out", "x.png"], "--at turns: expected NAME=VALUE"),
        (["triggering", "--bins", "0", "--out", "x.png"], "--bins 0: must be at least 1"),
        (["sensitivty", "--out", "x.png"], "did you mean sensitivity?"),
    ],
)
def test_mistakes(arguments: list[str], said: str, capsys: pytest.CaptureFixture[Any]) -> None:
    assert command_line(["vmas-analyse", *arguments]) == 2
    assert said in capsys.readouterr().err
