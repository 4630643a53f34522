from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pillow

from memharness.benchmarks.realworldqa import RealWorldQA, RealWorldQAScores, plain
from memharness.metric import parse_metric
from memharness.run.evaluate import evaluate
from memharness.types import Asked, Case, DataError, Image, Outcome, Score, Status, Text, UserError, parts_text

OPTIONS = "Where is it?\n\nA. Left. Or so\nB. Right\nC. None\n\nPlease answer with the letter of the option only."


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path / "home"))


def jpeg() -> bytes:
    out = io.BytesIO()
    Pillow.new("RGB", (8, 8), "red").save(out, "JPEG")
    return out.getvalue()


def parquet(folder: Path, *rows: Mapping[str, Any], shards: int = 1) -> Path:
    import pyarrow
    import pyarrow.parquet

    (folder / "data").mkdir(exist_ok=True)
    whole = [{"image": {"bytes": jpeg(), "path": None}, **row} for row in rows]
    for shard in range(shards):
        path = folder / f"data/test-0000{shard}-of-0000{shards}.parquet"
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(whole[shard::shards]), path)
    return folder


def cases(bench: Any) -> list[Case]:
    return [case for context in bench.contexts() for case in bench.episode(context).cases]


def test_options_and_answer_format_are_taken_out_of_the_text(bench: Callable[..., Any], tmp_path: Path) -> None:
    (case,) = cases(bench(RealWorldQA, parquet(tmp_path, {"question": OPTIONS, "answer": "B"})))
    assert [type(part) for part in case.question.parts] == [Image, Text]
    assert case.question.text() == "Where is it?"
    assert {one.key: parts_text(one.parts) for one in case.question.choices} == {
        "A": "Left. Or so",
        "B": "Right",
        "C": "None",
    }
    assert case.question.instruction == "Please answer with the letter of the option only."
    assert (case.question.form, case.gold.category) == ("choice", "choice")


def test_a_free_answer(bench: Callable[..., Any], tmp_path: Path) -> None:
    question = "How many are there?\nAnd why A. or B. here?\nPlease answer with a single word or number."
    (case,) = cases(bench(RealWorldQA, parquet(tmp_path, {"question": question, "answer": " 3 "})))
    assert case.question.text() == "How many are there?\nAnd why A. or B. here?"
    assert case.question.choices == ()
    assert case.question.instruction == "Please answer with a single word or number."
    assert (case.question.form, case.gold.category, case.gold.answers) == ("text", "free", ("3",))


def test_ids_are_places_in_file_order_over_all_shards(bench: Callable[..., Any], tmp_path: Path) -> None:
    rows = [{"question": f"Number {n}?", "answer": str(n)} for n in (0, 2, 1, 3)]  # dealt out to two shards
    found = cases(bench(RealWorldQA, parquet(tmp_path, *rows, shards=2)))
    assert [(case.gold.native_id, case.gold.answers[0]) for case in found] == [
        ("0", "0"),
        ("1", "1"),
        ("2", "2"),
        ("3", "3"),
    ]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"question": OPTIONS, "answer": "D"}, r"\(question 0\): answer: 'D' is not among the options A, B, C"),
        ({"question": OPTIONS, "answer": ""}, r"\(question 0\): answer: is missing"),
        ({"question": "How many?", "answer": None}, r"\(question 0\): answer: is missing"),
        ({"question": "Where?\nA. Left\nPlease answer.", "answer": "A"}, r"question: has an option A and no B"),
        (
            {"question": "Where?\nPlease give the letter alone.", "answer": "A"},
            r"question: has no options, though it says 'Please give the letter alone.'; options stand in lines `A. …`",
        ),
        ({"question": None, "answer": "A"}, r"question: is missing"),
    ],
)
def test_what_is_wrong_with_a_row(
    bench: Callable[..., Any], tmp_path: Path, row: Mapping[str, Any], problem: str
) -> None:
    with pytest.raises(DataError, match=problem):
        bench(RealWorldQA, parquet(tmp_path, row)).contexts()


def test_a_tsv_with_option_columns(bench: Callable[..., Any], tmp_path: Path, sample: Callable[[str], Path]) -> None:
    folder = sample("realworldqa")
    path = folder / "RealWorldQA.tsv"
    cell = path.read_text().split('"')[-2]
    path.write_text(f"index\tquestion\tA\tB\tanswer\timage\n4\tWhich?\tx\ty\tB\t{cell}\n6\tHow many?\t\t\t3\t{cell}\n")
    choice, free = cases(bench(RealWorldQA, folder))
    assert (choice.gold.native_id, choice.question.form) == ("4", "choice")
    assert choice.question.instruction == "Answer with the letter of the right option."
    assert (free.gold.native_id, free.question.form, free.gold.answers) == ("6", "text", ("3",))


@pytest.mark.parametrize(
    ("said", "gold", "right"),
    [
        ("3", "3", True),
        ("Three.", "3", True),
        ("three", "Three", True),
        (" NO ", "No", True),
        ("Main Street.", "main street", True),
        ("There are 3.", "3", False),
        ("13", "3", False),
        ("3.0", "3", False),
    ],
)
def test_free_answers_are_compared_word_for_word(said: str, gold: str, right: bool) -> None:
    assert (plain(said) == plain(gold)) is right


def test_scores(
    bench: Callable[..., Any], tmp_path: Path, sample: Callable[[str], Path], asked: Callable[..., Asked]
) -> None:
    metric = RealWorldQAScores()
    by_form = {case.question.form: case for case in cases(bench(RealWorldQA, sample("realworldqa")))}
    free, choice = by_form["text"], by_form["choice"]
    gold = free.gold.answers[0]
    assert metric.score([asked(free, f"<think>7?</think>{gold}.")], {}) == {
        "accuracy": Score(1.0),
        "unclosed_thinking": Score(0.0),
    }
    assert metric.score([asked(free, "something else")], {})["accuracy"] == Score(0.0)
    for nothing in ("", " ", ".", None, f"<think>{gold}"):
        assert metric.score([asked(free, nothing)], {})["accuracy"].status is Status.UNPARSED
    assert metric.score([asked(free, f"<think>{gold}")], {})["unclosed_thinking"] == Score(1.0)
    failed = asked(free)
    failed.record.outcome = Outcome.TIMEOUT
    assert metric.score([failed], {})["accuracy"].value is None
    assert metric.score([asked(choice, "no idea")], {})["accuracy"].status is Status.UNPARSED
    kinds = {"RealWorldQAScores": RealWorldQAScores}
    assert parse_metric("RealWorldQAScores(extractor=mmstar)", kinds) == RealWorldQAScores("mmstar")
    with pytest.raises(UserError, match="extractor 'x'"):
        RealWorldQAScores("x")


def test_the_sample_and_its_report(bench: Callable[..., Any], tmp_path: Path, sample: Callable[[str], Path]) -> None:
    folder = sample("realworldqa")
    found = cases(bench(RealWorldQA, folder))
    assert [case.question.form for case in found] == ["choice"] * 4 + ["text"] * 4
    assert all(case.question.instruction.startswith("Please") for case in found)
    answers = {case.gold.native_id: case.gold.answers[0] for case in found}
    path = tmp_path / "p.jsonl"
    path.write_text("".join(json.dumps({"id": name, "prediction": said}) + "\n" for name, said in answers.items()))
    assert evaluate("realworldqa", str(folder), path, {}).scores == {
        "Overall": 1,
        "choice": 1,
        "free": 1,
        "unparsed": 0,
    }
    path.write_text(json.dumps({"id": "0", "prediction": "it is unclear"}) + "\n")
    scores = evaluate("realworldqa", str(folder), path, {}).scores
    assert scores == {"Overall": 0, "choice": 0, "free": 0, "unparsed": 1 / 8}


def test_both_licences_are_named() -> None:
    assert "CC BY-ND 4.0" in RealWorldQA.card.licence
    assert "CC BY 4.0" in RealWorldQA.card.licence
