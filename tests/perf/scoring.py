"""Loading LoCoMo, and scoring 7,405 HotpotQA-sized predictions beside the official script.

Run: python tests/perf/scoring.py [--locomo locomo10.json] [--official hotpot_evaluate_v1.py] [--questions hotpot.json]
Without --questions the bundled sample is repeated to the size of the dev split. The official script is run as its
users run it, in a process of its own, so its figure holds its start and its reading too; ours is printed both ways.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import memharness.benchmarks
from memharness.benchmark import Data, ScoreRow
from memharness.benchmarks.hotpotqa import HotpotQA, HotpotQAOptions
from memharness.benchmarks.locomo import LoCoMo, LoCoMoOptions
from memharness.media import MediaStore
from memharness.types import Asked, Outcome, Record

SIZE = 7405
SAMPLE = Path(memharness.benchmarks.__file__).parent / "hotpotqa/sample/hotpot_sample.json"


def repeated(source: Path, folder: Path) -> tuple[Path, Path]:
    """Write `SIZE` questions with ids of their own, and predictions that are half right; return both paths."""
    rows = json.loads(source.read_text("utf-8"))
    questions = [{**rows[n % len(rows)], "_id": f"q{n}"} for n in range(SIZE)]
    said = {row["_id"]: row["answer"] if n % 2 else "another answer of some words" for n, row in enumerate(questions)}
    facts = {row["_id"]: row["supporting_facts"][: 1 + n % 2] for n, row in enumerate(questions)}
    data, predictions = folder / "questions.json", folder / "predictions.json"
    data.write_text(json.dumps(questions), "utf-8")
    predictions.write_text(json.dumps({"answer": said, "sp": facts}), "utf-8")
    return data, predictions


def ours(data: Path, predictions: Path, folder: Path) -> tuple[dict[str, float], float, float]:
    """Return the official figures, and seconds of scoring after loading, and of both."""
    begun = time.perf_counter()
    bench = HotpotQA(Data(data, "given", MediaStore(folder / "files.sqlite")), HotpotQAOptions())
    cases = [case for context in bench.contexts() for case in bench.episode(context).cases]
    answers = dict(bench.predictions(predictions))
    official, *_ = bench.metrics()
    loaded = time.perf_counter()
    rows = []
    for case in cases:
        answer = answers[case.gold.native_id]
        record = Record(case.question.id, case.question.context, 0, 0, Outcome.OK, answer=answer.text)
        record.extra = answer.extra
        scores = official.score([Asked(case.question, case.gold, record)], {})
        rows.append(ScoreRow(case.question.id, case.question.context, "", "", scores))
    report = dict(bench.report(rows))
    ended = time.perf_counter()
    return report, ended - loaded, ended - begun


def peer(script: Path, data: Path, predictions: Path) -> tuple[dict[str, Any], float]:
    """Return what the official script prints, and its seconds from start to end."""
    begun = time.perf_counter()
    done = subprocess.run([sys.executable, script, predictions, data], capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - begun
    return eval(done.stdout.strip().splitlines()[-1], {"__builtins__": {}}), seconds  # it prints a Python dict


def locomo(path: Path, folder: Path) -> float:
    """Return the seconds of loading LoCoMo whole: conversations, items and questions."""
    begun = time.perf_counter()
    bench = LoCoMo(Data(path, "given", MediaStore(folder / "files.sqlite")), LoCoMoOptions())
    asked = sum(len(bench.episodes[name].cases) for name in bench.contexts())
    seconds = time.perf_counter() - begun
    print(f"loading LoCoMo: {asked:,} questions in {seconds:.2f} s (limit 1)")
    return seconds


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--locomo", type=Path, help="locomo10.json as published")
    parser.add_argument("--official", type=Path, help="hotpot_evaluate_v1.py")
    parser.add_argument("--questions", type=Path, default=SAMPLE, help="a file in HotpotQA's form, to repeat")
    arguments = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        data, predictions = repeated(arguments.questions, folder)
        report, scoring, whole = ours(data, predictions, folder)
        print(
            f"scoring {SIZE:,} HotpotQA predictions: {scoring:.2f} s after loading (limit 0.5), {whole:.2f} s with it"
        )
        if arguments.official:
            figures, seconds = peer(arguments.official, data, predictions)
            worst = max(abs(figures[name] - report[name]) for name in figures)
            print(f"official script: {seconds:.2f} s with start and reading; {len(figures)} figures within {worst:.1e}")
        if arguments.locomo:
            locomo(arguments.locomo, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
