"""Fixtures of the benchmark tests: a benchmark on a folder, its official figures, a copy of a sample to spoil."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import memharness.benchmarks
from memharness.benchmark import Benchmark, Data, ScoreRow
from memharness.config import build
from memharness.media import MediaStore
from memharness.metric import Judged
from memharness.types import Answer, Asked, Case, Evidence, Outcome, Record

FOLDER = Path(memharness.benchmarks.__file__).parent
Open = Callable[..., Any]


@pytest.fixture
def bench(tmp_path: Path) -> Open:
    """Opens a benchmark class on a path with options."""

    def opened(kind: type[Benchmark], path: Path, **options: Any) -> Benchmark:
        data = Data(path, "given", MediaStore(tmp_path / "files.sqlite"))
        return kind(data, build(kind.options_class, options, "-B", kind.card.name))

    return opened


@pytest.fixture
def sample(tmp_path: Path) -> Callable[[str], Path]:
    """Copies a bundled sample to a folder that a test may change."""

    def copied(name: str) -> Path:
        source = FOLDER / name / "sample"
        if not source.is_dir():
            pytest.skip(f"no sample of {name}")
        return Path(shutil.copytree(source, tmp_path / name))

    return copied


@pytest.fixture
def change() -> Callable[[Path, Callable[[Any], Any]], None]:
    """Rewrites a JSON file by a function that changes its value in place, or returns a new one."""

    def changed(path: Path, function: Callable[[Any], Any]) -> None:
        value = json.loads(path.read_text())
        new = function(value)
        path.write_text(json.dumps(value if new is None else new))

    return changed


def asked(case: Case, answer: str | None = None, evidence: Iterable[Evidence] | None = None, **extra: Any) -> Asked:
    """A question that was answered."""
    shown = None if evidence is None else tuple(evidence)
    record = Record(
        case.question.id, case.question.context, 0, 0, Outcome.OK, answer=answer, evidence=shown, extra=extra
    )
    return Asked(case.question, case.gold, record)


@pytest.fixture(name="asked")
def asked_fixture() -> Callable[..., Asked]:
    """Makes an Asked of a case, an answer, evidence and extra output."""
    return asked


def scored(benchmark: Benchmark, answers: dict[str, Answer]) -> list[ScoreRow]:
    """Every question's row as `evaluate` makes it; a question without a prediction was not asked."""
    rows = []
    for context in benchmark.contexts():
        for case in benchmark.episode(context).cases:  # type: ignore[attr-defined]
            given = answers.get(case.gold.native_id)
            unit = asked(case, given and given.text, given.readout.evidence if given and given.readout else None)
            unit.record.extra = given.extra if given else {}
            unit.record.outcome = Outcome.OK if given else Outcome.NOT_ASKED
            scores = {}
            for metric in benchmark.metrics():
                if not isinstance(metric, Judged):
                    scores.update(metric.score([unit], {}))
            failed = None if given else "not_asked"
            rows.append(ScoreRow(case.question.id, context, case.gold.category, case.gold.cluster, scores, failed))
    return rows


@pytest.fixture
def evaluate() -> Callable[[Benchmark, Path], list[ScoreRow]]:
    """Rows of a prediction file in the benchmark's own form."""

    def evaluated(benchmark: Benchmark, path: Path) -> list[ScoreRow]:
        return scored(benchmark, dict(benchmark.predictions(path)))

    return evaluated


@pytest.fixture
def rows_of() -> Callable[[Benchmark, dict[str, str]], list[ScoreRow]]:
    """Rows of answers by native id."""

    def rows(benchmark: Benchmark, answers: dict[str, str]) -> list[ScoreRow]:
        return scored(benchmark, {name: Answer(text) for name, text in answers.items()})

    return rows
