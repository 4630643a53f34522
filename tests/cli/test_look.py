"""`memharness list`, `show` and `doctor`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memharness import registry
from memharness.cli import doctor, look
from memharness.registry import Entry
from tests.cli.conftest import RUN, TOYS, Said

Cli = Callable[..., Said]


def test_list_shows_every_kind_with_its_distribution(cli: Cli) -> None:
    said = cli("list")
    rows = [line.split() for line in said.out.splitlines()]
    assert ["benchmarks", "locomo", "memharness-bench", "memharness.benchmarks.locomo:LoCoMo"] in rows
    assert {row[0] for row in rows if row} >= {"methods", "benchmarks", "readers", "embedders"}
    assert not any(line.endswith(" ") for line in said.out.splitlines())


def test_list_of_one_kind_and_as_json(cli: Cli) -> None:
    found = json.loads(cli("list", "readers", "--json").out)
    assert list(found) == ["readers"]
    assert found["readers"][0].keys() == {"kind", "name", "target", "distribution"}


def test_list_of_benchmarks_says_what_each_holds_and_where_its_data_are(cli: Cli, home: Path) -> None:
    prepared = home / "data" / "hotpotqa"
    prepared.mkdir(parents=True)
    (prepared / "PREPARED.json").write_text("{}")
    out = cli("list", "benchmarks").out
    rows = {
        line.split("  ")[0]: [cell.strip() for cell in line.split("  ") if cell.strip()] for line in out.splitlines()
    }
    holds = "10 conversations, 272 sessions, 5,882 turns, 1,986 questions, …"
    assert rows["locomo"] == ["locomo", holds, "CC BY-NC 4.0 (data and code)", "f1", "sample"]
    assert rows["hotpotqa"][-2:] == ["joint_f1", "prepared"]
    assert "sample: only the small bundled sample is here" in out
    found = {row["name"]: row for row in json.loads(cli("list", "benchmarks", "--json").out)["benchmarks"]}
    assert found["locomo"]["counts"]["questions"] == 1986
    assert found["locomo"]["target"] == "memharness.benchmarks.locomo:LoCoMo"


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("no.such.module:Bench", "cannot import no.such.module"),
        ("memharness.types:Gold", "is not a Benchmark class"),
        ("memharness.types:Nothing", "has no Nothing"),
    ],
)
def test_a_broken_benchmark_does_not_break_the_list(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, target: str, reason: str
) -> None:
    real = registry.entries
    broken = Entry("benchmarks", "torn", target, "outside")
    for module in (look, registry):
        monkeypatch.setattr(
            module, "entries", lambda kind: {**real(kind), **({"torn": broken} if kind == "benchmarks" else {})}
        )
    said = cli("list", "benchmarks")
    assert said.code == 0
    row = next(line for line in said.out.splitlines() if line.startswith("torn"))
    assert "broken: " in row
    assert reason in row
    assert "locomo" in said.out
    found = {row["name"]: row for row in json.loads(cli("list", "benchmarks", "--json").out)["benchmarks"]}
    assert reason in found["torn"]["broken"]


def test_list_imports_no_plugin() -> None:
    prefixes = (
        "memharness.benchmarks.",
        "memharness.methods.",
        "memharness.readers.",
        "torch",
        "numpy",
        "transformers",
    )
    code = (
        "import sys; from memharness.cli import command_line; command_line(['list'])\n"
        f"sys.exit(any(name.startswith({prefixes!r}) for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, timeout=60, check=False)
    assert done.returncode == 0


def test_show_a_benchmark_has_paper_licence_and_options(cli: Cli) -> None:
    out = cli("show", "locomo").out
    for words in (
        "LoCoMo",
        "paper",
        "licence",
        "CC BY-NC 4.0",
        "revision",
        "errata",
        "default from",
        "adversarial",
        "open | choice",
        "reveals",
        "answer.v1",
        "LoCoMoScores",
        "Recall(abstentions=True)@10",
        "each qa with its `<model>_prediction`",
        'JSON lines {"id": native id',
    ):
        assert words in out
    assert "cannot be fetched" not in out


def test_show_a_benchmark_without_a_prediction_file_or_with_steps(cli: Cli) -> None:
    out = cli("show", f"{TOYS}:Numbers").out
    assert 'predictions  JSON lines {"id": native id' in out
    assert "not published yet: there is nothing to fetch" in cli("show", "m2ca").out


def test_show_a_method_says_where_defaults_come_from(cli: Cli) -> None:
    out = cli("show", "bm25").out
    assert "track" in out
    assert "int | none, ≥ 1" in out


def test_one_name_may_be_two_things(cli: Cli) -> None:
    out = cli("show", "openai").out
    assert "openai (reader)" in out
    assert "openai (embedder)" in out


@pytest.mark.parametrize(
    ("name", "kind"), [("Everything", "method"), ("Numbers", "benchmark"), ("Toy", "reader"), ("Right", "metric")]
)
def test_show_a_class_by_its_file(cli: Cli, name: str, kind: str) -> None:
    said = cli("show", f"{TOYS}:{name}")
    assert said.code == 0
    assert f"({kind})" in said.out


def test_show_a_run_is_its_summary(cli: Cli) -> None:
    run = json.loads(cli(*RUN, "--json").out)["run"]
    assert "everything on numbers" in cli("show", run).out
    assert json.loads(cli("show", run, "--json").out)["run"] == run


def test_show_a_folder_that_is_no_run(cli: Cli, tmp_path: Path) -> None:
    assert "not a run folder" in cli("show", tmp_path).err


# ------------------------------------------------------------------------------------------------------------- doctor


def test_doctor_looks_at_everything_and_says_what_to_do(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Entry("readers", "torn", "no.such.module:Reader", "outside")
    real = registry.entries
    monkeypatch.setattr(
        doctor, "entries", lambda kind: {**real(kind), **({"torn": broken} if kind == "readers" else {})}
    )
    said = cli("doctor", "--no-models", "--json")
    found = {line["what"]: line for line in json.loads(said.out)["findings"]}
    assert said.code == 1
    assert found["reader torn"]["state"] == "broken"
    assert "no.such.module" in found["reader torn"]["finding"]
    assert found["torch"]["state"] == "ok"
    assert "data prepare locomo" in found["data of locomo"]["finding"]
    assert found["extra alfworld"]["state"] in ("ok", "missing")


def test_doctor_asks_each_model_a_word(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    kept = {
        "readers": ("extractive", "openai"),
        "embedders": (),
        "image_backends": ("pil", "diffusers"),
        "benchmarks": (),
        "methods": (),
        "metrics": (),
        "commands": (),
        "trainers": (),
    }
    real = registry.entries
    monkeypatch.setattr(doctor, "entries", lambda kind: {name: real(kind)[name] for name in kept[kind]})
    found = {line["what"]: line for line in json.loads(cli("doctor", "--json").out)["findings"]}
    assert found["reader extractive"]["state"] == "ok"
    assert "answers" in found["reader extractive"]["finding"]
    assert found["reader openai"]["state"] == "missing"
    assert found["image backend pil"]["finding"].startswith("draws, 256x256")
    assert found["image backend diffusers"]["state"] == "missing"


def test_a_home_that_cannot_be_written(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path / "file" / "home"))
    assert doctor._home().state == "broken"
    assert "set MEMHARNESS_HOME" in doctor._home().finding
