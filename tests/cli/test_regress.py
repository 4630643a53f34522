"""`memharness regress`: exit codes, what is said, and a method that was broken on purpose."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from memharness.methods.graphmemix import memory
from memharness.methods.graphmemix.forest import Edge, Forest, solve
from memharness.run.baseline import read
from tests.cli.conftest import TOYS, Said

Cli = Callable[..., Said]
COMMITTED = Path(__file__).resolve().parents[2] / "results" / "baselines" / "samples.json"


@pytest.fixture
def baseline(tmp_path: Path) -> Path:
    """A baseline of one run of toys, written by hand and not measured yet."""
    run = {"method": f"{TOYS}:Everything", "bench": f"{TOYS}:Numbers", "reader": f"{TOYS}:Toy"}
    path = tmp_path / "b.json"
    path.write_text(json.dumps({"format": 1, "runs": [{"run": run}]}))
    return path


def worst(utility: Mapping[str, float], edges: list[Edge], size: int, **more: Any) -> Forest:
    """A forest solver that was broken on purpose: it may only choose among the items of least utility."""
    low = sorted(utility, key=lambda item: utility[item])[:size]
    inside = [edge for edge in edges if {edge.left, edge.right} <= set(low)]
    return solve({item: utility[item] for item in low}, inside, size, **more)


@pytest.mark.model
def test_a_broken_forest_solver_is_found_and_named(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `make regress` would say: the committed baseline, one of its runs."""
    monkeypatch.setattr(memory, "solve", worst)
    said = cli("regress", "--baseline", COMMITTED, "--only", "graphmemix:h2hmem")
    assert said.code == 1
    head, primary, *more = said.out.splitlines()
    assert re.fullmatch(r"graphmemix on h2hmem: slipped, \d of 4 questions differ", head)
    assert re.fullmatch(r"  f1 +0\.\d{3} → 0\.\d{3}  \(-0\.\d{3}\)  slipped", primary)
    assert any(re.fullmatch(r"  recall@10 +\S+ → \S+  \(-\S+\)  lower", line) for line in more)
    assert re.search(r"\n  dyadic/dialogue1/session0:\d\n    .*→", said.out)  # a question, by the source's own id
    assert re.search(r"\n    before: .+\n    after:  unknown\n", said.out)
    assert "1 runs, 4 questions: 1 slipped" in said.out
    assert "if this was meant: memharness regress --baseline" in said.out
    assert max(map(len, said.out.splitlines()[:-2])) <= 80


def test_a_baseline_by_hand_is_measured_and_held(cli: Cli, baseline: Path) -> None:
    said = cli("regress", "--baseline", baseline)
    assert said.code == 1
    assert "Everything on Numbers: not measured yet" in said.out
    said = cli("regress", "--baseline", baseline, "--update", "--reason", "first")
    assert (said.code, said.out) == (0, f"wrote {baseline}: 1 runs taken in, 0 changed\n")
    assert cli("regress", "--baseline", baseline).code == 0
    assert "nothing differs; not written" in cli("regress", "--baseline", baseline, "--update", "--reason", "x").out
    assert json.loads(cli("regress", "--baseline", baseline, "--json").out)["held"] is True
    baseline.write_text(baseline.read_text().replace('"right": 1', '"right": 2', 1))
    found = json.loads(cli("regress", "--baseline", baseline, "--json").out)
    assert (found["held"], found["questions"]) == (False, 6)
    (run,) = found["differences"]
    assert (run["run"], run["slipped"]) == ("Everything on Numbers", True)
    assert run["figures"][0]["name"] == "right"
    assert run["questions"][0]["what"] == {"right": [2.0, 1.0]}
    assert run["questions"][0]["answers"] == ["c0-0", "c0-0"]


def test_a_change_without_a_mean_that_moves_is_shown(cli: Cli, baseline: Path) -> None:
    cli("regress", "--baseline", baseline, "--update", "--reason", "first")
    baseline.write_text(baseline.read_text().replace('"answer": "c0-0"', '"answer": "C0-0 said long ago"'))
    said = cli("regress", "--baseline", baseline)
    assert said.code == 1
    assert "Everything on Numbers: 1 of 6 questions differ" in said.out
    assert "no mean moved" in said.out
    assert "before: C0-0 said long ago\n    after:  c0-0" in said.out
    assert "1 runs, 6 questions: 1 differ otherwise" in said.out
    said = cli("regress", "--baseline", baseline, "--update", "--reason", "said anew")
    assert "before: C0-0 said long ago" in said.out
    assert "0 runs taken in, 1 changed" in said.out


def test_a_sampled_run_says_its_bound(cli: Cli, baseline: Path) -> None:
    value = json.loads(baseline.read_text())
    value["runs"][0] |= {"kind": "sampled"}
    baseline.write_text(json.dumps(value))
    cli("regress", "--baseline", baseline, "--update", "--reason", "first")
    assert cli("regress", "--baseline", baseline).code == 0
    value = json.loads(baseline.read_text())
    value["runs"][0]["questions"][0]["scores"]["right"] = 0
    baseline.write_text(json.dumps(value))
    said = cli("regress", "--baseline", baseline, "--delta", "0.1")
    assert said.code == 1
    assert "no bound can be given (2 clusters are too few" in said.out
    assert "right  0.833 → 1.000  (+0.167), lower bound none, δ 0.1" in said.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--update"], "say why with --reason"),
        (["--update", "--reason", " "], "say why with --reason"),
        (["--reason", "x"], "give --update too"),
        (["--only", "nobody"], "--only nobody: names no run"),
        (["--delta", "-1"], "greater than or equal to 0"),
    ],
)
def test_bad_words(cli: Cli, baseline: Path, words: list[str], said: str) -> None:
    result = cli("regress", "--baseline", baseline, *words)
    assert result.code == 2
    assert said in result.err
    assert result.err.splitlines()[-1].startswith("error: ")


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    assert "no such file" in cli("regress", "--baseline", tmp_path / "none.json").err
    broken = tmp_path / "broken.json"
    broken.write_text('{"format": 1,\n "runs": [,]}')
    said = cli("regress", "--baseline", broken)
    assert said.code == 2
    assert f"{broken}: line 2 column 11" in said.err
    (tmp_path / "file").write_text("")
    said = cli(
        "regress", "--baseline", tmp_path / "file" / "b.json", "--update", "--reason", "x", "--only", "null:mmstar"
    )
    assert said.code == 2
    assert "b.json" in said.err


# ---------------------------------------------------------------------------------------------- examples in the docs

EXAMPLES = COMMITTED.parents[2] / "docs" / "examples"


def test_the_workflow_runs_a_target_that_is_there() -> None:
    workflow = yaml.safe_load((EXAMPLES / "regress.yml").read_text())
    steps = workflow["jobs"]["regress"]["steps"]
    targets = re.findall(r"^(\w+):", (COMMITTED.parents[2] / "Makefile").read_text(), re.MULTILINE)
    called = [word for step in steps for word in re.findall(r"make (\w+)", step.get("run", ""))]
    assert called == ["setup", "regress"]
    assert set(called) <= set(targets)


def test_the_pre_commit_hook_is_a_command_that_is_there() -> None:
    (repo,) = yaml.safe_load((EXAMPLES / "pre-commit-config.yaml").read_text())["repos"]
    (hook,) = repo["hooks"]
    program, *words = hook["entry"].split()
    assert (program, words[0]) == ("memharness", "regress")
    runs = read(COMMITTED).runs
    assert words[words.index("--baseline") + 1] == str(COMMITTED.relative_to(EXAMPLES.parents[1]))
    assert words[words.index("--only") + 1] in {run.spec.method for run in runs}


def test_the_baseline_in_the_docs_can_be_read(tmp_path: Path) -> None:
    text = (EXAMPLES.parent / "ci.md").read_text()
    (example,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    file = tmp_path / "mine.json"
    file.write_text(example)
    (run,) = read(file).runs
    assert (run.kind, run.delta, run.spec.max_cost) == ("sampled", 0.03, 2.0)
