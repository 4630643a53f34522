"""MuirBench: pictures at their places in questions and options, twins, tasks, and every fault of the data."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from PIL import Image as Pillow

from memharness.benchmarks.muirbench import TASKS, MuirBench
from memharness.prompts import Renderer, answer_request
from memharness.reader import Sampling
from memharness.types import DataError, Image, Readout, Text, UserError, parts_text

Open = Callable[..., Any]


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path / "home"))


def png(shade: int) -> dict[str, Any]:
    """A picture as an image column holds it."""
    out = io.BytesIO()
    Pillow.new("RGB", (8, 6), (shade, 0, 0)).save(out, "PNG")
    return {"bytes": out.getvalue(), "path": f"{shade}.png"}


def row(**changes: Any) -> dict[str, Any]:
    """A record in the Hugging Face form."""
    return {
        "idx": "0",
        "task": "Counting",
        "image_relation": "Independent",
        "image_type": "Drawings",
        "question": "How many cats are in <image> and <image> together?",
        "options": ["2", "3", "None of the choices provided"],
        "answer": "B",
        "image_list": [png(1), png(2)],
        "counterpart_idx": "1",
        **changes,
    }


def shard(folder: Path, *rows: dict[str, Any], name: str = "data/test-00000-of-00001.parquet") -> Path:
    """A folder with a shard of these records."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows)), path, row_group_size=2)
    return folder


def cases(opened: Any, subset: str | None = None) -> list[Any]:
    return [opened.episode(context).cases[0] for context in opened.contexts(subset)]


def test_pictures_stand_at_their_places_in_question_then_options(tmp_path: Path, bench: Open) -> None:
    asked = row(
        question="Which is like <image>?", options=["this: <image>", "<image>", "neither"], answer="A",
        image_list=[png(1), png(2), png(3)],
    )  # fmt: skip
    (case,) = cases(bench(MuirBench, shard(tmp_path, asked)))
    first, second, third = case.question.parts, case.question.choices[0].parts, case.question.choices[1].parts
    assert [type(part) for part in first] == [Text, Image, Text]
    assert (first[0].text, first[2].text) == ("Which is like ", "?")
    assert list(second) == [Text("this: "), second[1]] and third == (third[0],)
    assert [image.source for image in (first[1], second[1], third[0])] == ["1.png", "2.png", "3.png"]
    assert case.question.choices[2].parts == (Text("neither"),)
    assert (case.gold.answers, case.gold.native_id, case.gold.category) == (("A",), "0", "Counting")
    assert case.gold.extra["items"] == 0


def test_without_places_all_pictures_come_first(tmp_path: Path, bench: Open) -> None:
    (case,) = cases(bench(MuirBench, shard(tmp_path, row(question="How many cats?"))))
    assert [type(part) for part in case.question.parts] == [Image, Image, Text]


def test_the_reader_sees_them_there(tmp_path: Path, bench: Open) -> None:
    (case,) = cases(
        bench(MuirBench, shard(tmp_path, row(options=["<image>", "3"], image_list=[png(1), png(2), png(3)])))
    )
    request = answer_request(case.question, Readout(), Renderer({}, "pixels"), Sampling(), "direct.v1")
    (message,) = request.messages
    shown = ["I" if isinstance(part, Image) else part.text for part in message.parts]
    assert shown == [
        "How many cats are in \n", "I", "\n and \n", "I", "\n together?\nA. ", "I",
        "\nB. 3\nAnswer with the letter of the right option.",
    ]  # fmt: skip
    blind = answer_request(case.question, Readout(), Renderer({}, "captions"), Sampling(), "direct.v1")
    assert all(isinstance(part, Text) for part in blind.parts())


def test_twins_share_a_cluster_and_the_unanswerable_one_is_known(tmp_path: Path, bench: Open) -> None:
    twin = row(idx="1", answer="C", counterpart_idx="0")
    alone = row(idx="7", counterpart_idx=None)
    one, two, three = cases(bench(MuirBench, shard(tmp_path, row(), twin, alone)))
    assert one.gold.cluster == two.gold.cluster == "0 & 1"
    assert three.gold.cluster == three.question.context
    assert [case.gold.extra["unanswerable"] for case in (one, two, three)] == [False, True, False]
    assert "0 & 1" not in repr(one.question)


def test_numbers_and_texts_are_the_same_ids(tmp_path: Path, bench: Open) -> None:
    rows = [row(idx=4, counterpart_idx=5), row(idx=5, counterpart_idx=4, answer="C")]
    one, two = cases(bench(MuirBench, shard(tmp_path, *rows)))
    assert (one.gold.native_id, one.gold.cluster) == ("4", "4 & 5") and two.gold.cluster == "4 & 5"


def test_shards_are_read_in_order_and_tasks_are_subsets(tmp_path: Path, bench: Open) -> None:
    shard(tmp_path, row(), row(idx="1", task="Ordering"), name="data/test-00000-of-00002.parquet")
    shard(tmp_path, row(idx="2"), name="data/test-00001-of-00002.parquet")
    opened = bench(MuirBench, tmp_path)
    assert [case.gold.native_id for case in cases(opened)] == ["0", "1", "2"]
    assert [case.gold.native_id for case in cases(opened, "counting")] == ["0", "2"]
    assert [case.gold.native_id for case in cases(opened, "all")] == ["0", "1", "2"]
    with pytest.raises(UserError, match=r"subset 'Countin': no such task \(did you mean Counting\?\).*Ordering"):
        opened.contexts("Countin")
    assert set(opened.digest()) == {"test-00000-of-00002.parquet", "test-00001-of-00002.parquet"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"image_list": [png(1)]}, ["(idx 0)", "image_list", "holds 1 pictures for 2 <image>", "must match"]),
        ({"image_list": [png(1)] * 3}, ["holds 3 pictures for 2 <image>"]),
        ({"options": ["<image>", "3"]}, ["holds 2 pictures for 3 <image>"]),
        ({"image_list": None}, ["image_list", "must be a list of pictures, not nothing"]),
        ({"image_list": [{"bytes": b"no picture", "path": "a.png"}] * 2}, ["image_list[0]", "not a readable picture"]),
        ({"answer": "D"}, ["answer", "'D' is not among the options A, B, C"]),
        ({"answer": None}, ["answer", "is missing"]),
        ({"options": ["3"], "answer": "A"}, ["options", "two options or more, not of 1"]),
        ({"question": " "}, ["question", "is empty"]),
        ({"task": None}, ["task", "is missing"]),
        ({"idx": None}, ["idx", "is missing"]),
    ],
)
def test_faults_are_named(tmp_path: Path, bench: Open, changes: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(DataError) as error:
        bench(MuirBench, shard(tmp_path, row(**changes))).contexts()
    for word in ["test-00000-of-00001.parquet: record 0", *words]:
        assert word in str(error.value)


def test_a_repeated_id_names_both_records(tmp_path: Path, bench: Open) -> None:
    with pytest.raises(DataError, match=r"record 2 \(idx 0\): idx: '0' is already the id of .*record 0"):
        bench(MuirBench, shard(tmp_path, row(), row(idx="1"), row())).contexts()


def test_a_truncated_shard_and_an_empty_folder(tmp_path: Path, bench: Open) -> None:
    with pytest.raises(DataError, match=r"data/test-\*\.parquet"):
        bench(MuirBench, tmp_path).contexts()
    path = shard(tmp_path, row()) / "data/test-00000-of-00001.parquet"
    path.write_bytes(path.read_bytes()[:-50])
    opened = bench(MuirBench, tmp_path)
    with pytest.raises(DataError, match="cannot be read as parquet"):
        opened.contexts()
    assert [finding.level for finding in opened.check()] == ["error"]


def test_scores_by_part_and_both_means(
    tmp_path: Path, bench: Open, asked: Callable[..., Any], rows_of: Callable[..., Any]
) -> None:
    data = [
        row(),
        row(idx="1", answer="C", counterpart_idx="0"),
        row(idx="2", image_relation="Temporal"),
        row(idx="3", task="Ordering", image_relation="Temporal", answer="A"),
    ]
    opened = bench(MuirBench, shard(tmp_path, *data))
    figures = opened.report(rows_of(opened, {"0": "(B)", "1": "C", "2": "I cannot tell.", "3": "A"}))
    assert figures["Counting"] == pytest.approx(2 / 3) and figures["Ordering"] == 1
    assert figures["Average"] == pytest.approx(5 / 6) and figures["Overall"] == 3 / 4  # not the same mean
    assert (figures["answerable"], figures["unanswerable"]) == (pytest.approx(2 / 3), 1)
    assert (figures["relation: Independent"], figures["relation: Temporal"]) == (1, 0.5)
    assert figures["unparsed"] == 1 / 4


def test_the_table_form_and_the_sample(bench: Open, sample: Callable[[str], Path]) -> None:
    opened = bench(MuirBench, sample("muirbench"))
    told = cases(opened)
    assert len(told) == 12 and len({case.gold.cluster for case in told}) == 6
    assert sum(case.gold.extra["unanswerable"] for case in told) == 6
    assert {case.gold.category for case in told} <= set(TASKS)
    retrieval = next(case for case in told if case.gold.category == "Visual Retrieval")
    assert [type(choice.parts[0]) for choice in retrieval.question.choices] == [Image, Image, Image, Text]
    assert "<image>" not in "".join(parts_text(case.question.parts) for case in told)
    words = " ".join(finding.message for finding in opened.check())
    assert "32 pictures; 6 questions are unanswerable" in words and "twin that is not there" not in words


def test_a_table_that_states_no_task(bench: Open, sample: Callable[[str], Path]) -> None:
    """Nobody has seen the columns of VLMEvalKit's table: its code uses index, image, question, options and answer."""
    path = sample("muirbench") / "MUIRBench.tsv"
    head, rest = path.read_text().split("\n", 1)
    path.write_text(head.replace('"task"', '"kind"') + "\n" + rest)
    assert {case.gold.category for case in cases(bench(MuirBench, path))} == {"task not stated"}


def test_check_names_lone_twins_and_unknown_tasks(tmp_path: Path, bench: Open) -> None:
    opened = bench(MuirBench, shard(tmp_path, row(task="Juggling", counterpart_idx="9")))
    opened.contexts()
    words = " ".join(finding.message for finding in opened.check() if finding.level == "warning")
    assert "does not name: Juggling" in words and "1 questions name a twin that is not there, first 0" in words
