from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pillow

from memharness.benchmark import ScoreRow
from memharness.benchmarks.simplevqa import SimpleVQA, SimpleVQAMatch, evalai, figures
from memharness.judging import Judge
from memharness.reader import Reply
from memharness.run.api import execute
from memharness.run.evaluate import evaluate
from memharness.run.progress import Quiet
from memharness.run.spec import RunSpec
from memharness.types import Asked, Case, DataError, Image, Outcome, Score, Status, Text, Usage


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path / "home"))


def jpeg() -> bytes:
    out = io.BytesIO()
    Pillow.new("RGB", (8, 8), "red").save(out, "JPEG")
    return out.getvalue()


BASE = {
    "data_id": 7,
    "language": "CN",
    "question": "这是什么？",
    "answer": "钟",
    "vqa_category": "Object Identification",
    "image_description": "zanzibar",
    "atomic_question": "zanzibar",
    "atomic_fact": "zanzibar",
}


def cases(bench: Any) -> list[Case]:
    return [case for context in bench.contexts() for case in bench.episode(context).cases]


def lines(path: Path, *rows: Mapping[str, Any]) -> Path:
    coded = base64.b64encode(jpeg()).decode()
    path.write_text("".join(json.dumps({**BASE, "image": coded, **row}) + "\n" for row in rows))
    return path


# --------------------------------------------------------------------------------------------------------- the data


def test_every_published_form(bench: Callable[..., Any], tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    coded = base64.b64encode(jpeg()).decode()
    for image in ({"bytes": jpeg(), "path": None}, coded):
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist([{**BASE, "image": image}]), tmp_path / "test.parquet")
        (case,) = cases(bench(SimpleVQA, tmp_path))
        assert case.gold.native_id == "7"
    (tmp_path / "t.tsv").write_text(f"index\tquestion\tanswer\tlanguage\timage\n9\t这是什么？\t钟\tCN\t{coded}\n")
    (case,) = cases(bench(SimpleVQA, tmp_path / "t.tsv"))
    assert (case.gold.native_id, case.gold.category) == ("9", "CN/")
    (case,) = cases(bench(SimpleVQA, lines(tmp_path / "a.jsonl", {"answer": 79})))
    assert case.gold.answers == ("79",)


def test_only_picture_and_question_are_shown(bench: Callable[..., Any], tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", {})
    (case,) = cases(bench(SimpleVQA, path))
    assert [type(part) for part in case.question.parts] == [Image, Text]
    assert "zanzibar" not in repr(case.question)
    assert case.question.instruction == "Answer with a short phrase."
    assert cases(bench(SimpleVQA, path, short=False))[0].question.instruction == ""
    assert case.gold.category == "CN/Object Identification"


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"answer": ""}, r"line 1 \(data_id 7\): answer: is missing"),
        ({"answer": None}, r"answer: is missing"),
        ({"answer": ["a"]}, r"answer: a gold answer must be a string or a number"),
        ({"question": " "}, r"question: is empty"),
        ({"data_id": None}, r"line 1: index: is missing"),
        ({"image": "no picture"}, r"image: is neither base64 nor the name of a picture"),
    ],
)
def test_what_is_wrong_with_a_row(
    bench: Callable[..., Any], tmp_path: Path, row: Mapping[str, Any], problem: str
) -> None:
    with pytest.raises(DataError, match=problem):
        bench(SimpleVQA, lines(tmp_path / "a.jsonl", row)).contexts()


def test_a_repeated_id(bench: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"line 2: data_id: '7' is already the id of .*line 1"):
        bench(SimpleVQA, lines(tmp_path / "a.jsonl", {}, {})).contexts()


def test_pictures_that_the_archive_still_holds_are_missing(bench: Callable[..., Any], tmp_path: Path) -> None:
    opened = bench(SimpleVQA, lines(tmp_path / "a.jsonl", {"image": "images/7.jpg"}))
    assert cases(opened)[0].question.parts[0] == Image(None, source="images/7.jpg")
    assert any("not at hand, first images/7.jpg" in finding.message for finding in opened.check())


# ---------------------------------------------------------------------------------------------- the judge-free figure


# Recorded from the original normaliser (lmms-eval, vqa_eval_metric.py), quirks included.
VECTORS = {
    "The Eiffel Tower.": "eiffel tower",
    "two dogs, and a cat!": "2 dogs and cat",
    "None": "0",
    "3.5": "3.5",
    "end. Next": "end next",
    "red/blue": "red blue",
    "red / blue": "red blue",
    "well-known": "well known",
    "well- known": "well known",
    "well-known - yes": "wellknown yes",  # one space beside a mark deletes that mark everywhere
    "dont": "don't",
    "isnt it": "isn't it",
    "somebody'd": "somebodyd",
    "Tom's hat": "tom 's hat",
    "1,000": "1000",
    "a the an": "",
    "Ten": "10",
    "line\nbreak\tand tab": "line break and tab",
    "日本。": "日本。",
    "": "",
    "x" + "." * 40: "x" + "." * 8,
}


@pytest.mark.parametrize(("text", "wanted"), VECTORS.items())
def test_evalai_normalisation_equals_the_original(text: str, wanted: str) -> None:
    assert evalai(text) == wanted


@given(st.text(max_size=40))
def test_normalised_text_has_single_spaces_and_no_articles(text: str) -> None:
    words = evalai(text).split()
    assert evalai(text) == " ".join(words)
    assert not {"a", "an", "the"} & set(words)


def test_exact_match(bench: Callable[..., Any], sample: Callable[[str], Path], asked: Callable[..., Asked]) -> None:
    metric = SimpleVQAMatch()
    gold = next(case for case in cases(bench(SimpleVQA, sample("simplevqa"))) if case.gold.answers == ("Tokyo",))
    assert metric.score([asked(gold, "<think>Kyoto?</think>The Tokyo.")], {}) == {
        "exact_match": Score(1.0),
        "unclosed_thinking": Score(0.0),
    }
    assert metric.score([asked(gold, "It is Tokyo")], {})["exact_match"] == Score(0.0)
    for nothing in ("", " ", None, "<think>Tokyo"):
        assert metric.score([asked(gold, nothing)], {})["exact_match"].status is Status.UNPARSED
    assert metric.score([asked(gold, "<think>Tokyo")], {})["unclosed_thinking"] == Score(1.0)
    failed = asked(gold)
    failed.record.outcome = Outcome.READER_ERROR
    assert metric.score([failed], {})["exact_match"] == Score(None, Status.OK, "reader_error")


# ------------------------------------------------------------------------------------------------------------ judged


def judged(label: str | None, match: float = 0.0, language: str = "EN", failed: bool = False) -> ScoreRow:
    if failed:
        labels = dict.fromkeys(("co", "in", "na"), Score(None, Status.OK, "reader_error"))
    elif label is None:
        labels = dict.fromkeys(("co", "in", "na"), Score(None, Status.JUDGE_ERROR, "no verdict"))
    else:
        labels = {name: Score(float(name == label)) for name in ("co", "in", "na")}
    return ScoreRow("q", "c", f"{language}/x", "", {**labels, "exact_match": Score(match)})


def test_shares_sum_to_one_with_errors_in_columns_of_their_own() -> None:
    rows = [*[judged("co")] * 5, *[judged("in")] * 2, judged("na"), judged(None), judged(None, failed=True)]
    found = figures(rows)
    shares = ("is_correct", "is_incorrect", "is_not_attempted", "judge_error", "failed")
    assert [found[name] for name in shares] == [0.5, 0.2, 0.1, 0.1, 0.1]
    assert sum(found[name] for name in shares) == pytest.approx(1)
    assert found["is_given_attempted"] == pytest.approx(0.7)
    assert found["accuracy_given_attempted"] == pytest.approx(5 / 7)
    assert found["f1"] == pytest.approx(2 * (5 / 7) * 0.5 / (5 / 7 + 0.5))
    assert figures([judged("na")]) == {
        "is_correct": 0,
        "is_incorrect": 0,
        "is_not_attempted": 1,
        "judge_error": 0,
        "failed": 0,
        "is_given_attempted": 0,
        "accuracy_given_attempted": 0,
        "f1": 0,
        "exact_match": 0,
    }


@given(st.lists(st.sampled_from(["co", "in", "na", None, "failed"]), min_size=1, max_size=30))
def test_shares_sum_to_one_whatever_was_judged(labels: list[str | None]) -> None:
    found = figures([judged(label, failed=label == "failed") for label in labels])
    shares = ("is_correct", "is_incorrect", "is_not_attempted", "judge_error", "failed")
    assert sum(found[name] for name in shares) == pytest.approx(1)
    assert 0 <= found["f1"] <= 1


def test_figures_by_language(bench: Callable[..., Any], sample: Callable[[str], Path]) -> None:
    opened = bench(SimpleVQA, sample("simplevqa"))
    found = opened.report([judged("co", 1.0), judged("in"), judged("co", language="CN")])
    assert found["is_correct"] == pytest.approx(2 / 3)
    assert (found["is_correct.EN"], found["is_correct.CN"]) == (0.5, 1)
    assert (found["exact_match"], found["exact_match.EN"]) == (pytest.approx(1 / 3), 0.5)


def test_the_judges_labels_are_the_scores_the_report_reads(
    bench: Callable[..., Any], sample: Callable[[str], Path], asked: Callable[..., Asked]
) -> None:
    opened = bench(SimpleVQA, sample("simplevqa"))
    judge, _ = opened.metrics()
    assert judge == Judge("simplevqa.v1")
    unit = [asked(cases(opened)[0], "Tokyo, I think")]
    assert judge.score(unit, {}) == {}
    for said, label in {"correct": "co", "incorrect": "in", "not attempted": "na"}.items():
        scores = judge.read(unit, Reply(json.dumps({"reason": "r", "verdict": said}), Usage()))
        assert {name: score.value for name, score in scores.items()} == {
            name: float(name == label) for name in ("co", "in", "na")
        }
        assert figures([ScoreRow("q", "c", "EN/x", "", scores)])["judge_error"] == 0
    unread = judge.read(unit, Reply("I like it", Usage()))
    assert figures([ScoreRow("q", "c", "EN/x", "", unread)])["judge_error"] == 1


def test_a_run_without_a_judge_says_what_is_missing(tmp_path: Path) -> None:
    spec = RunSpec(method="full-context", bench="simplevqa", reader="extractive", out=str(tmp_path))
    summary = execute(spec, Quiet())
    assert summary["primary"] == "exact_match"
    assert summary["unmeasured"] == "co, the score that leads simplevqa, was not measured: give --judge"
    assert execute(replace(spec, until="recall"), Quiet())["unmeasured"] is None


def test_the_sample_without_a_judge(bench: Callable[..., Any], tmp_path: Path, sample: Callable[[str], Path]) -> None:
    folder = sample("simplevqa")
    found = cases(bench(SimpleVQA, folder))
    assert not any(part.missing for case in found for part in case.question.parts if isinstance(part, Image))
    path = tmp_path / "p.jsonl"
    answers = ({"id": case.gold.native_id, "prediction": case.gold.answers[0]} for case in found)
    path.write_text("".join(json.dumps(line) + "\n" for line in answers))
    assert evaluate("simplevqa", str(folder), path, {}).scores == {
        "exact_match": 1,
        "exact_match.EN": 1,
        "exact_match.CN": 1,
    }
