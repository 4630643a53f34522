"""BLINK: its fourteen tasks, the two means, the authors' recorded letters, and every fault of the data."""

from __future__ import annotations

import io
import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from PIL import Image as Pillow

from memharness.benchmarks.blink import BLINK, TASKS
from memharness.types import DataError, Image, Text, UserError

Open = Callable[..., Any]


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path / "home"))


def png(shade: int = 9) -> dict[str, Any]:
    """A picture as an image column holds it."""
    out = io.BytesIO()
    Pillow.new("RGB", (8, 6), (shade, 0, 0)).save(out, "PNG")
    return {"bytes": out.getvalue(), "path": f"{shade}.png"}


def row(**changes: Any) -> dict[str, Any]:
    """A record in the Hugging Face form."""
    return {
        "idx": "val_Art_Style_1",
        "sub_task": "Art_Style",
        "question": "Which has the same style?",
        "prompt": "Styles differ (A lot). Which of the second and the third image has the style of the first?\n"
        "Select from the following choices.\n(A) the second image\n(B) the third image\n",
        "image_1": png(1),
        "image_2": png(2),
        "image_3": png(3),
        "image_4": None,
        "choices": ["the second image", "the third image"],
        "answer": "(B)",
        **changes,
    }


def shards(folder: Path, *rows: dict[str, Any], split: str = "val") -> Path:
    """A folder with one shard a task, as the hub has it."""
    tasks = defaultdict(list)
    for one in rows:
        tasks[one["sub_task"] or "Art_Style"].append(one)
    schema = pyarrow.Table.from_pylist([row(image_4=png())]).schema
    for task, held in tasks.items():
        (folder / task).mkdir(parents=True, exist_ok=True)
        table = pyarrow.Table.from_pylist(held, schema=schema)
        pyarrow.parquet.write_table(table, folder / task / f"{split}-00000-of-00001.parquet")
    return folder


def cases(opened: Any, subset: str | None = None) -> list[Any]:
    return [opened.episode(context).cases[0] for context in opened.contexts(subset)]


def test_pictures_come_before_the_prompt_without_its_options(tmp_path: Path, bench: Open) -> None:
    (case,) = cases(bench(BLINK, shards(tmp_path, row())))
    *pictures, words = case.question.parts
    assert [picture.source for picture in pictures] == ["1.png", "2.png", "3.png"]
    assert words.text.startswith("Styles differ (A lot).") and words.text.endswith("Select from the following choices.")
    assert [choice.parts for choice in case.question.choices] == [
        (Text("the second image"),), (Text("the third image"),)
    ]  # fmt: skip
    assert (case.gold.answers, case.gold.native_id, case.gold.category) == (("B",), "val_Art_Style_1", "Art_Style")
    (short,) = cases(bench(BLINK, tmp_path, words="question"))
    assert short.question.parts[-1] == Text("Which has the same style?")


def test_tasks_are_subsets_and_test_shards_are_not_read(tmp_path: Path, bench: Open) -> None:
    shards(tmp_path, row(), row(idx="val_Counting_1", sub_task="Counting", image_2=None, image_3=None))
    shards(tmp_path, row(idx="test_Art_Style_1", answer="hidden"), split="test")
    opened = bench(BLINK, tmp_path)
    assert [case.gold.native_id for case in cases(opened)] == ["val_Art_Style_1", "val_Counting_1"]
    (one,) = cases(opened, "Counting")
    assert [type(part) for part in one.question.parts] == [Image, Text]
    assert set(opened.digest()) == {f"{task}/val-00000-of-00001.parquet" for task in ("Art_Style", "Counting")}
    with pytest.raises(UserError, match=r"subset 'Countin'.*did you mean Counting.*IQ_Test"):
        opened.contexts("Countin")
    with pytest.raises(DataError, match=r"\(test_Art_Style_1\): answer: is hidden; use the validation split"):
        bench(BLINK, tmp_path / "Art_Style/test-00000-of-00001.parquet").contexts()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"image_2": None}, ["image_2", "is missing, though there is image_1 and image_3"]),
        ({"image_1": None, "image_2": None, "image_3": None}, ["image_1", "no picture"]),
        ({"image_1": {"bytes": b"no", "path": "a"}}, ["image_1", "not a readable picture"]),
        ({"answer": "(C)"}, ["answer", "'C' is not among the options A, B"]),
        ({"answer": "the third image"}, ["answer", "is not among the options A, B"]),
        ({"answer": None}, ["answer", "is missing"]),
        ({"choices": ["one"]}, ["choices", "two options or more, not of 1"]),
        ({"question": None, "prompt": None}, ["question", "is missing"]),
        ({"sub_task": None}, ["sub_task", "is missing"]),
        ({"idx": None}, ["idx", "is missing"]),
    ],
)
def test_faults_are_named(tmp_path: Path, bench: Open, changes: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(DataError) as error:
        bench(BLINK, shards(tmp_path, row(**changes))).contexts()
    for word in ["val-00000-of-00001.parquet: record 0", *words]:
        assert word in str(error.value)


def test_a_repeated_id_and_a_truncated_shard(tmp_path: Path, bench: Open) -> None:
    shards(tmp_path, row(), row(sub_task="Jigsaw"))
    with pytest.raises(DataError, match=r"Jigsaw.*'val_Art_Style_1' is already the id of .*Art_Style"):
        bench(BLINK, tmp_path).contexts()
    path = tmp_path / "Jigsaw/val-00000-of-00001.parquet"
    path.write_bytes(path.read_bytes()[:-40])
    opened = bench(BLINK, tmp_path)
    with pytest.raises(DataError, match=r"Jigsaw.*cannot be read as parquet"):
        opened.contexts()
    assert [finding.level for finding in opened.check()] == ["error"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"holds no \*/val-\*\.parquet"):
        bench(BLINK, tmp_path / "empty").contexts()


def test_total_is_the_mean_of_tasks_and_overall_of_questions(
    tmp_path: Path, bench: Open, rows_of: Callable[..., Any]
) -> None:
    data = [row(idx=f"val_Art_Style_{n}") for n in range(3)] + [row(idx="val_Jigsaw_1", sub_task="Jigsaw")]
    opened = bench(BLINK, shards(tmp_path, *data))
    told = {"val_Art_Style_0": "(B)", "val_Art_Style_1": "(A)", "val_Art_Style_2": "", "val_Jigsaw_1": "B"}
    figures = opened.report(rows_of(opened, told))
    assert figures["Art_Style"] == pytest.approx(1 / 3) and figures["Jigsaw"] == 1
    assert figures["Total"] == pytest.approx(2 / 3) and figures["Overall"] == 0.5
    assert figures["unparsed"] == 0.25
    missing = opened.report(rows_of(opened, {"val_Jigsaw_1": "B"}))
    assert missing["Total"] == 0.5 and missing["Overall"] == 0.25  # the denominator stays


def test_official_prediction_files(tmp_path: Path, bench: Open, evaluate: Callable[..., Any]) -> None:
    opened = bench(BLINK, shards(tmp_path, row(), row(idx="val_Jigsaw_1", sub_task="Jigsaw")))
    flat = tmp_path / "GPT4V.json"
    flat.write_text(json.dumps({"val_Art_Style_1": "(B)", "val_Jigsaw_1": "(Z)"}))
    figures = opened.report(evaluate(opened, flat))
    assert (figures["Art_Style"], figures["Jigsaw"], figures["Total"]) == (1, 0, 0.5)
    folder = tmp_path / "model"
    folder.mkdir()
    for task, letter in (("Art_Style", "(B)"), ("Jigsaw", "(B)")):
        told = [{"idx": f"val_{task}_1", "answer": "(B)", "full_prediction": "(A) or so", "prediction": letter}]
        (folder / f"{task}.json").write_text(json.dumps({"val": told, "test": []}))
    assert opened.report(evaluate(opened, folder))["Total"] == 1
    (folder / "Jigsaw.json").write_text("[]")
    with pytest.raises(DataError, match=r"Jigsaw\.json: must be .*idx.* not a list"):
        list(opened.predictions(folder))
    with pytest.raises(DataError, match=r"holds no \.json file"):
        list(opened.predictions(tmp_path / "home"))


def test_recorded_letters_score_as_the_official_script_scores_them(
    tmp_path: Path, bench: Open, shared: Path, evaluate: Callable[..., Any], asked: Callable[..., Any]
) -> None:
    """Gold and the letters of 21 models as their authors recorded them, against the script's own arithmetic."""
    lines = (shared / "data/blink/blink_val_predictions_sample.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    models = sorted({record["model"] for record in records})
    assert len(records) == 1000 and len(models) == 21
    # Two runs laid the pictures of a question side by side, and some of its options in another order.
    records = [record for record in records if not record["model"].endswith("concatenate images")]
    models = sorted({record["model"] for record in records})
    assert len({(record["idx"], record["answer"]) for record in records}) == len({r["idx"] for r in records})
    known = {record["idx"]: record["answer"] for record in records}
    data = [
        row(idx=idx, sub_task=idx.removeprefix("val_").rpartition("_")[0], choices=list("wxyz"), answer=answer,
            prompt="?", image_2=None, image_3=None)
        for idx, answer in known.items()
    ]  # fmt: skip
    opened = bench(BLINK, shards(tmp_path, *data))
    assert len(opened.contexts()) == len(known)
    assert {case.gold.category for case in cases(opened)} <= set(TASKS)
    for model in models[::7]:
        told = {record["idx"]: record["extracted"] for record in records if record["model"] == model}
        path = tmp_path / "predictions.json"
        path.write_text(json.dumps(told))
        tasks: dict[str, list[bool]] = defaultdict(list)
        for idx, answer in known.items():
            tasks[idx.removeprefix("val_").rpartition("_")[0]].append(told.get(idx) == answer)
        figures = opened.report(evaluate(opened, path))
        assert figures["Total_as_coded"] == pytest.approx(sum(sum(r) / len(r) for r in tasks.values()) / len(tasks))
        assert figures["accuracy_as_coded"] == pytest.approx(sum(map(sum, tasks.values())) / len(known))
        assert figures["accuracy_as_coded"] > 0
    (metric,) = opened.metrics()
    by_id = {case.gold.native_id: case for case in cases(opened)}
    differ = []
    for record in records:
        scores = metric.score([asked(by_id[record["idx"]], record["extracted"])], {})
        assert scores["accuracy_as_coded"].value == (record["extracted"] == record["answer"])
        if scores["accuracy"].value != scores["accuracy_as_coded"].value:
            differ.append(record["extracted"])
    assert differ == ["(C) Point C"] * 2  # right, and wrong to the script


def test_the_table_form_and_the_sample(bench: Open, sample: Callable[[str], Path]) -> None:
    opened = bench(BLINK, sample("blink"))
    told = cases(opened)
    assert sorted(case.gold.category for case in told) == sorted(TASKS)
    assert [type(part) for part in told[0].question.parts] == [Image, Image, Image, Text]
    words = " ".join(finding.message for finding in opened.check())
    assert "pictures a question: 5 with 1, 4 with 2, 4 with 3, 1 with 4" in words
    assert not [finding for finding in opened.check() if finding.level != "info"]
