from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memharness.benchmark import BenchmarkCard, Data
from memharness.choiceqa import ChoiceBenchmark, Entry
from memharness.config import Config
from memharness.media import MediaStore
from memharness.types import Choice, DataError, Image, Text


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path / "home"))


# --------------------------------------------------------------------------------------------------------- benchmark


class NoOptions(Config):
    """None."""


class Two(ChoiceBenchmark):
    """Two questions, one of them in two passes."""

    card = BenchmarkCard("two", "Two", "", "", "", "", 1, {}, {"questions": 2}, "", "accuracy")
    options_class = NoOptions

    def entries(self, subset: str | None) -> Iterator[Entry]:
        choices = (Choice("A", (Text("x"),)), Choice("B", (Text("y"),)))
        lost = Image(None, source="gone.jpg")
        yield Entry("7", (Text("one?"),), ("A",), choices, context="7", group="7", extra={"pass": 0, "passes": 2})
        yield Entry("8", (lost, Text("two?")), ("word",), category="free")
        yield Entry("107", (Text("one?"),), ("B",), choices, context="7", group="7", extra={"pass": 1, "passes": 2})


def two(tmp_path: Path) -> Two:
    path = tmp_path / "two.tsv"
    path.write_text("﻿index\timage\n")
    return Two(Data(path, "given", MediaStore(tmp_path / "files.sqlite")), NoOptions())


def test_passes_share_a_context_that_holds_nothing(tmp_path: Path) -> None:
    bench = two(tmp_path)
    first, second = bench.contexts()
    passes, (free,) = bench.episode(first).cases, bench.episode(second).cases
    assert not bench.episode(first).items
    assert [case.gold.native_id for case in passes] == ["7", "107"]
    assert {case.gold.group for case in passes} == {"7"}
    assert [case.question.form for case in (*passes, free)] == ["choice", "choice", "text"]
    assert free.gold.group is None
    assert len({case.question.id for case in (*passes, free)}) == 3
    assert all(case.gold.extra["items"] == 0 and case.gold.cluster for case in (*passes, free))


class Nothing(Two):
    """No question of any subset but `full`."""

    def entries(self, subset: str | None) -> Iterator[Entry]:
        return super().entries(subset) if subset == "full" else iter(())


def test_data_without_a_question_are_named(tmp_path: Path) -> None:
    bench = Nothing(two(tmp_path).data, NoOptions())
    with pytest.raises(DataError, match=r"two.tsv: holds no question; name other data with --data"):
        bench.contexts()
    with pytest.raises(DataError, match=r"two.tsv: holds no question of subset 'half'"):
        bench.contexts("half")
    assert [finding.level for finding in bench.check()] == ["error"]
    assert len(bench.contexts("full")) == 2
    assert not [finding for finding in bench.check() if finding.level == "error"]  # of the subset read last


def test_check_says_what_there_is(tmp_path: Path) -> None:
    said = {finding.message: finding.level for finding in two(tmp_path).check()}
    assert said["2 questions in 3 rows: as many as the published questions"] == "info"
    assert said["options a row: 2 with 2, 1 with none"] == "info"
    assert said["1 of 1 pictures are not at hand, first gone.jpg"] == "warning"
    assert any("byte-order mark" in message for message, level in said.items() if level == "warning")


def test_predictions_are_read_from_a_tsv(tmp_path: Path) -> None:
    path = tmp_path / "model_two.tsv"
    path.write_text("index\tquestion\tprediction\n7\tone?\t(A)\n8\ttwo?\t\n")
    answers = {name: answer.text for name, answer in two(tmp_path).predictions(path)}
    assert answers == {"7": "(A)", "8": ""}
    path.write_text("index\tprediction\n7\tA\n7\tB\n")
    with pytest.raises(DataError, match=r"record 2 \(line 3\): index: '7' comes twice"):
        list(two(tmp_path).predictions(path))
    with pytest.raises(DataError, match=r"model.xlsx: expected a .tsv with the columns index and prediction"):
        list(two(tmp_path).predictions(tmp_path / "model.xlsx"))
