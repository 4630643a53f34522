from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pillow

from memharness.benchmarks.mmstar import MMStar
from memharness.run.evaluate import evaluate
from memharness.types import Case, DataError, Image, Text, UserError, parts_text


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path / "home"))


def jpeg() -> bytes:
    out = io.BytesIO()
    Pillow.new("RGB", (8, 8), "red").save(out, "JPEG")
    return out.getvalue()


def parquet(path: Path, *rows: Mapping[str, Any]) -> Path:
    import pyarrow
    import pyarrow.parquet

    base = {"answer": "A", "category": "math", "l2_category": "geometry", "image": jpeg()}
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([{**base, **row} for row in rows]), path)
    return path


def cases(bench: Any) -> list[Case]:
    return [case for context in bench.contexts() for case in bench.episode(context).cases]


def predicted(path: Path, answers: Mapping[str, str]) -> Path:
    path.write_text("".join(json.dumps({"id": name, "prediction": said}) + "\n" for name, said in answers.items()))
    return path


def test_the_parquet_form_holds_options_in_the_question(bench: Callable[..., Any], tmp_path: Path) -> None:
    question = "Which fits?\nOptions: A: The cup is red., B: The cup is blue, not red., C: 3, D: None"
    (case,) = cases(bench(MMStar, parquet(tmp_path / "mmstar.parquet", {"index": 0, "question": question})))
    assert [type(part) for part in case.question.parts] == [Image, Text]
    assert case.question.text() == "Which fits?"
    assert [parts_text(one.parts) for one in case.question.choices] == [
        "The cup is red.",
        "The cup is blue, not red.",
        "3",
        "None",
    ]
    assert case.gold.native_id == "0"
    assert case.gold.category == "math/geometry"


def test_the_tsv_form_counts_where_both_are(
    bench: Callable[..., Any], tmp_path: Path, sample: Callable[[str], Path]
) -> None:
    folder = sample("mmstar")
    parquet(folder / "mmstar.parquet", {"index": 99, "question": "x\nOptions: A: 1, B: 2"})
    assert {case.gold.native_id for case in cases(bench(MMStar, folder))} == {str(n) for n in range(11)}


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"index": 0, "question": "Without options?"}, r"record 0 \(index 0\): question: has no options"),
        (
            {"index": 0, "question": "x Options: A: 1, B: 2", "answer": "C"},
            r"answer: 'C' is not among the options A, B",
        ),
        ({"index": None, "question": "x Options: A: 1, B: 2"}, r"record 0: index: is missing"),
        ({"index": 0, "question": "x Options: A: 1, B: 2", "image": b"none"}, r"image: is not a readable picture"),
    ],
)
def test_what_is_wrong_with_a_row(
    bench: Callable[..., Any], tmp_path: Path, row: Mapping[str, Any], problem: str
) -> None:
    with pytest.raises(DataError, match=problem):
        bench(MMStar, parquet(tmp_path / "mmstar.parquet", row)).contexts()


def test_a_repeated_index(bench: Callable[..., Any], tmp_path: Path) -> None:
    row = {"index": 3, "question": "x Options: A: 1, B: 2"}
    with pytest.raises(DataError, match=r"record 1: index: '3' is already the id of .*record 0"):
        bench(MMStar, parquet(tmp_path / "mmstar.parquet", row, row)).contexts()


def test_there_is_one_split(bench: Callable[..., Any], sample: Callable[[str], Path]) -> None:
    opened = bench(MMStar, sample("mmstar"))
    assert opened.contexts("val") == opened.contexts()
    with pytest.raises(UserError, match="subset 'test': mmstar has val"):
        opened.contexts("test")


def test_real_questions(bench: Callable[..., Any], shared: Path) -> None:
    found = cases(bench(MMStar, shared / "data/mmstar/test.jsonl"))
    assert len(found) == 10
    assert not any(part.missing for case in found for part in case.question.parts if isinstance(part, Image))
    assert {case.gold.category for case in found} == {"coarse perception"}
    assert found[0].gold.native_id == "mmstar_0000"
    assert all(len(case.question.choices) == 4 for case in found)


def test_the_digest_covers_pictures_beside_the_file(bench: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images/0.jpg").write_bytes(jpeg())
    row = {"id": "a", "image_path": "far/images/0.jpg", "question": "x?", "A": "1", "B": "2", "answer": "B"}
    path = tmp_path / "test.jsonl"
    path.write_text(json.dumps(row))
    before = bench(MMStar, path).digest()
    assert set(before) == {"test.jsonl", "images/0.jpg"}
    out = io.BytesIO()
    Pillow.new("RGB", (9, 9), "blue").save(out, "JPEG")
    (tmp_path / "images/0.jpg").write_bytes(out.getvalue())
    after = bench(MMStar, path).digest()
    assert (after["test.jsonl"], after["images/0.jpg"]) != (before["test.jsonl"], before["images/0.jpg"])
    assert after["test.jsonl"] == before["test.jsonl"]


def test_official_figures_and_the_mean_of_means(tmp_path: Path) -> None:
    # Two of coarse perception in one l2 category, one in another: a mean of means is not the mean.
    rows = [
        {"index": 0, "category": "coarse perception", "l2_category": "image emotion"},
        {"index": 1, "category": "coarse perception", "l2_category": "image emotion"},
        {"index": 2, "category": "coarse perception", "l2_category": "image style & quality"},
        {"index": 3, "category": "math", "l2_category": "geometry"},
    ]
    path = parquet(tmp_path / "m.parquet", *({**row, "question": "x\nOptions: A: 1, B: 2"} for row in rows))
    answers = predicted(tmp_path / "p.jsonl", {"0": "A", "1": "(B)", "2": "The answer is (A).", "3": "who knows"})
    found = evaluate("mmstar", str(path), answers, {}).scores
    assert found == pytest.approx(
        {
            "final score": 2 / 4,
            "average": (0.5 + 1 + 0) / 3,
            "coarse perception": 2 / 3,
            "math": 0,
            "unparsed": 1 / 4,
            "coarse perception(image emotion)": 0.5,
            "coarse perception(image style & quality)": 1,
            "math(geometry)": 0,
        }
    )
    assert list(found)[:2] == ["final score", "average"]
    official = evaluate("mmstar", str(path), answers, {"extractor": "mmstar"}).scores
    assert official["final score"] == 1 / 4  # "The answer is (A)." has a bracket where its rule wants the letter


def test_a_missing_prediction_stays_in_the_denominator(tmp_path: Path) -> None:
    rows = ({"index": n, "question": "x\nOptions: A: 1, B: 2"} for n in range(4))
    path = parquet(tmp_path / "m.parquet", *rows)
    assert evaluate("mmstar", str(path), predicted(tmp_path / "p.jsonl", {"0": "A"}), {}).scores["final score"] == 0.25


def test_the_sample(bench: Callable[..., Any], tmp_path: Path, sample: Callable[[str], Path]) -> None:
    folder = sample("mmstar")
    found = cases(bench(MMStar, folder))
    assert {case.gold.category.split("/")[0] for case in found} == {
        "coarse perception",
        "fine-grained perception",
        "instance reasoning",
        "logical reasoning",
        "science & technology",
        "math",
    }
    gold = predicted(tmp_path / "p.jsonl", {case.gold.native_id: case.gold.answers[0] for case in found})
    scores = evaluate("mmstar", str(folder), gold, {}).scores
    assert (scores["final score"], scores["average"], scores["unparsed"]) == (1, 1, 0)
