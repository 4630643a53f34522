"""Runs the engine in this process on the toy plug-ins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from memharness.run.api import execute
from memharness.run.progress import Quiet
from memharness.run.spec import RunSpec

TOYS = Path(__file__).with_name("toys.py")


def toy(name: str) -> str:
    """The class path of a toy."""
    return f"{TOYS}:{name}"


def spec(out: Path, *, method: str = "Everything", bench: str = "Numbers", reader: str = "Toy", **more: Any) -> RunSpec:
    """A spec over toys; `m`, `b` and `r` are options of method, benchmark and reader."""
    options = {
        long: more.pop(short, {})
        for short, long in (("m", "method_options"), ("b", "bench_options"), ("r", "reader_options"))
    }
    return RunSpec(method=toy(method), bench=toy(bench), reader=toy(reader), out=str(out), **options, **more)


def run(out: Path, **more: Any) -> dict[str, Any]:
    """The summary of a run."""
    return execute(spec(out, **more), Quiet())


def lines(summary: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Lines of a file of a run."""
    return [json.loads(line) for line in (Path(summary["run"]) / name).read_text().splitlines()]


def ledger(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """All calls of a run."""
    files = sorted((Path(summary["run"]) / "ledger").glob("*.jsonl"))
    found = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return [line for line in found if line["kind"] not in ("clock", "ready", "model")]
