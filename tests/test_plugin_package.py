"""A package that lives outside memharness is installed for real, and everything it brings is found and used."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "tests" / "plugin_package"
BROUGHT = {
    "methods": "outside-last",
    "benchmarks": "outside-facts",
    "readers": "outside-echo",
    "embedders": "outside-hash",
    "image_backends": "outside-flat",
    "metrics": "Shortness",
}
Command = Callable[..., Any]


def everything_in(folder: Path) -> dict[str, int]:
    """Files under a folder with their times, but for Python's own cache."""
    files = [file for file in folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    return {str(file.relative_to(folder)): file.stat().st_mtime_ns for file in files}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the package is installed. It is built from a copy, so that the tree stays as it is."""
    folder = tmp_path_factory.mktemp("outside")
    shutil.copytree(PACKAGE, folder / "source", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build"))
    words = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    before = everything_in(PACKAGE)
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", *words, "--target", str(folder / "site"), str(folder / "source")],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert everything_in(PACKAGE) == before
    return folder / "site"


@pytest.fixture(scope="module")
def outside(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Runs `memharness … --json` in a process that sees the installed package, away from the checkout."""
    work = tmp_path_factory.mktemp("work")

    def run(*words: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-m", "memharness", *words, "--json"],
            capture_output=True, text=True, timeout=120, check=False, cwd=work,
            env={**os.environ, "PYTHONPATH": str(site), "MEMHARNESS_HOME": str(work / "home")},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("\n") == 1
        found = json.loads(done.stdout)
        return {**found, "run": work / found["run"]} if "run" in found else found

    return run


def test_the_installed_copy_is_what_is_imported(site: Path) -> None:
    code = "import memharness_outside; print(memharness_outside.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True, cwd=site.parent,
        env={**os.environ, "PYTHONPATH": str(site)},
    )  # fmt: skip
    assert Path(done.stdout.strip()).is_relative_to(site)


def test_what_it_brings_is_listed(outside: Command) -> None:
    listed = outside("list")
    for kind, name in BROUGHT.items():
        found = {entry["name"]: entry for entry in listed[kind]}
        assert found[name]["distribution"] == "memharness-outside"
        assert len(found) > 1  # beside what memharness brings


def test_method_benchmark_reader_and_metric_are_used(outside: Command) -> None:
    summary = outside("run", "--method", "outside-last", "--bench", "outside-facts", "--reader", "outside-echo")
    assert (summary["method"], summary["bench"], summary["reader"]) == ("outside-last", "outside-facts", "outside-echo")
    assert summary["n"] == 24
    assert summary["outcomes"] == {"ok": 24}
    assert summary["scores"]["shortness"]["value"] == 1  # every answer is two words, which are free
    assert summary["scores"]["em"]["value"] == pytest.approx(1 / 8)  # it always answers with the last fact
    assert summary["scores"]["recall@3"]["value"] == pytest.approx(3 / 8)
    manifest = json.loads((summary["run"] / "manifest.json").read_text())
    described = manifest["described"]
    assert described["memory"]["class"] == "memharness_outside.method:Last"
    assert described["memory"]["benchmark"] == "outside-facts"
    assert described["reply"]["answer"]["name"] == "outside-echo"


def test_its_options_reach_it(outside: Command) -> None:
    words = ["run", "--method", "outside-last", "--bench", "outside-facts", "--reader", "outside-echo"]
    summary = outside(*words, "-M", "n=8", "-B", "contexts=1")
    assert summary["n"] == 8
    again = outside("score", str(summary["run"]), "--metric", "Recall@8")
    assert again["scores"]["recall@8"]["value"] == 1  # all eight items are in the readout
    assert again["scores"]["recall@3"]["value"] == pytest.approx(3 / 8)


def test_its_metric_scores_a_run_of_our_benchmark(outside: Command) -> None:
    words = ["--method", "constant", "--bench", "hotpotqa", "--reader", "outside-echo", "--limit", "2"]
    summary = outside("run", *words)
    assert "shortness" not in summary["scores"]
    again = outside("score", str(summary["run"]), "--metric", "Shortness(free=1)")
    assert again["scores"]["shortness"]["value"] == 0.5  # "Not mentioned." is one word more than is free


def test_its_embedder_serves_a_method_of_ours(outside: Command) -> None:
    words = ["--method", "dense", "--bench", "outside-facts", "--reader", "outside-echo", "--embedder", "outside-hash"]
    summary = outside("run", *words)
    assert summary["outcomes"] == {"ok": 24}
    assert summary["scores"]["recall@3"]["value"] > 0.9  # a question and its fact share name and verb
    manifest = json.loads((summary["run"] / "manifest.json").read_text())
    assert manifest["described"]["memory"]["embedder"]["name"] == "outside-hash"


def test_its_image_back_end_makes_the_pictures_of_a_method_of_ours(outside: Command) -> None:
    words = ["--method", "cma", "-M", "images=outside-flat", "-M", "size=24x16"]
    summary = outside("run", *words, "--bench", "m2ca", "--reader", "outside-echo")
    records = [json.loads(line) for line in (summary["run"] / "records.jsonl").read_text().splitlines()]
    made = [picture for record in records for picture in record.get("pictures", ())]
    sizes = {(picture["width"], picture["height"]) for picture in made}
    assert sizes == {(24, 16), (16, 16)}  # of new ones, and of edits
    manifest = json.loads((summary["run"] / "manifest.json").read_text())
    assert "outside-flat" in json.dumps(manifest["described"]["memory"])


def test_our_controls_and_reader_take_its_benchmark(outside: Command) -> None:
    summary = outside("run", "--method", "oracle", "--bench", "outside-facts", "--reader", "outside-echo")
    assert summary["scores"]["em"]["value"] == 1
