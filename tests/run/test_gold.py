"""Gold isolation, by signature and by two canaries: one in the gold objects, one in the raw data."""

from __future__ import annotations

import inspect
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from memharness import method
from memharness.run.api import execute
from memharness.run.progress import Quiet
from memharness.run.spec import RunSpec
from tests.run.canary import CANARY, sings
from tests.run.harness import run

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
METHODS = ["bm25", "constant", "full-context", "null", "oracle", "random", "recency"]
LEARNED = ["dense", "dense-rounds", "graphmemix"]
BENCHES = {"ATM": "atm", "Gallery": "mem_gallery", "Loco": "locomo", "Hotpot": "hotpotqa"}


def test_only_the_door_of_controls_takes_gold() -> None:
    """No other function that a method implements or calls has a parameter for gold."""
    for name, thing in vars(method).items():
        if inspect.isclass(thing) and thing.__module__ == method.__name__:
            for part, function in vars(thing).items():
                if inspect.isfunction(function):
                    takes = any("Gold" in str(p.annotation) for p in inspect.signature(function).parameters.values())
                    assert takes == (name == "Control" and part == "recall_with_gold"), f"{name}.{part}"


def planted(out: Path, name: str, bench: str, **more: Any) -> list[str]:
    """Run a method on a bundled sample whose gold holds the canary; where it sang."""
    sample = ROOT / "benchmarks" / BENCHES[bench] / "sample"
    data = next(iter(sample.glob("*.json")), sample) if bench in ("Loco", "Hotpot") else sample
    spec = RunSpec(
        method=name, bench=f"{HERE / 'canary.py'}:{bench}", reader="extractive", 
        data=str(data), out=str(out), limit="12", **more,
    )  # fmt: skip
    summary = execute(spec, Quiet())
    assert set(summary["outcomes"]) == {"ok"}, summary["outcomes"]
    return sings(Path(summary["run"]), out)


@pytest.mark.parametrize("bench", BENCHES)
@pytest.mark.parametrize("name", METHODS)
def test_canary_in_gold_objects(tmp_path: Path, name: str, bench: str) -> None:
    options = {"text": "Not mentioned."} if name == "constant" else {}
    assert planted(tmp_path, name, bench, method_options=options) == []


@pytest.mark.model
@pytest.mark.parametrize("bench", BENCHES)
@pytest.mark.parametrize("name", LEARNED)
def test_canary_in_gold_objects_of_methods_that_embed(tmp_path: Path, name: str, bench: str) -> None:
    assert planted(tmp_path, name, bench) == []


def test_the_canary_is_heard_when_a_method_cheats(tmp_path: Path) -> None:
    summary = run(tmp_path, method="Cheat", b={"canary": CANARY})
    assert "records.jsonl" in sings(Path(summary["run"]), tmp_path)


SECRET = {"answer", "notes", "adversarial_answer", "query", "persona_summary", "observation", "session_summary",
          "event_summary", "level", "annotator"}  # fmt: skip


def poison(value: Any) -> Any:
    """The canary in every private field of the raw data, and in a field nobody knows."""
    if isinstance(value, list):
        return [poison(item) for item in value]
    if isinstance(value, dict):
        out = {
            key: (CANARY if isinstance(item, str) and key in SECRET else poison(item)) for key, item in value.items()
        }
        return out | {"unknown_private_field": CANARY} if "question" in value else out
    return value


@pytest.mark.parametrize(
    ("bench", "name"), [("locomo", "locomo"), ("mem-gallery", "mem_gallery"), ("hotpotqa", "hotpotqa"), ("atm", "atm")]
)
def test_canary_in_raw_data(tmp_path: Path, bench: str, name: str) -> None:
    data = tmp_path / "data"
    shutil.copytree(ROOT / "benchmarks" / name / "sample", data)
    for file in data.rglob("*.json"):
        if "raw_memory" not in file.parts and "processed_memory" not in file.parts:
            file.write_text(json.dumps(poison(json.loads(file.read_text()))))
    path = next(iter(data.glob("*.json")), data) if name in ("locomo", "hotpotqa") else data
    spec = RunSpec(
        method="full-context", bench=bench, reader="extractive", data=str(path), out=str(tmp_path / "out"), limit="12"
    )
    summary = execute(spec, Quiet())
    assert set(summary["outcomes"]) == {"ok"}
    assert sings(Path(summary["run"]), tmp_path / "out") == []
