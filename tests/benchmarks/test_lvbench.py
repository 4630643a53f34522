"""LVBench: both published forms, options in the text, types that overlap, videos by key, and every fault."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.benchmarks.lvbench import LVBench, as_coded, span
from memharness.types import DataError, Image, Outcome, Text, UserError
from memharness.videoqa import clock

pytest.importorskip("av")
Open = Callable[..., Any]
WORDS = "What year appears?\n(A) 1636\n(B) 1366\n(C) 1363\n(D) 1633"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path / "home"))


@pytest.fixture
def data(sample: Callable[[str], Path]) -> Path:
    """The sample, in a folder that a test may change."""
    return sample("lvbench")


def qa(**changes: Any) -> dict[str, Any]:
    """A question as published; a field set to None is left out."""
    one = {
        "uid": "55",
        "question": WORDS,
        "answer": "D",
        "question_type": ["key information retrieval"],
        "time_reference": "00:15-00:19",
        **changes,
    }
    return {name: value for name, value in one.items() if value is not None}


def write(folder: Path, *asked: dict[str, Any], **film: Any) -> Path:
    """The official file with one video."""
    line = {
        "key": "Cm73ma6Ibcs",
        "type": "tv",
        "qa": list(asked),
        "video_info": {"duration_minutes": 30.5, "fps": 25.0, "resolution": {"width": 640, "height": 360}},
        **film,
    }
    folder.mkdir(exist_ok=True)
    (folder / "video_info.meta.jsonl").write_text(json.dumps(line) + "\n")
    return folder


def cases(opened: Any, subset: str | None = None) -> list[Any]:
    return [opened.episode(context).cases[0] for context in opened.contexts(subset)]


async def played(opened: Any, place: int) -> Any:
    context = opened.contexts()[place]
    _, ask = [event async for event in opened.episode(context).play()]
    (case,) = ask.cases
    return case


# ------------------------------------------------------------------------------------------------------- the questions


def test_options_are_read_out_of_the_text(tmp_path: Path, bench: Open) -> None:
    (case,) = cases(bench(LVBench, write(tmp_path / "lv", qa())))
    assert case.question.parts == (Text("What year appears?"),)
    assert [(choice.key, choice.parts) for choice in case.question.choices] == [
        ("A", (Text("1636"),)), ("B", (Text("1366"),)), ("C", (Text("1363"),)), ("D", (Text("1633"),)),
    ]  # fmt: skip
    gold = case.gold
    assert (gold.answers, gold.native_id, gold.cluster) == (("D",), "55", "Cm73ma6Ibcs")
    assert gold.extra["seconds"] == (15.0, 19.0) and gold.extra["types"] == ["KIR"]
    assert "00:15" not in repr(case.question) and "Cm73ma6Ibcs" not in repr(case.question)


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        ("Which?\n(A)one\n(B)two", ["one", "two"]),
        ("Which of (A) and (B)?\n(A) one (really)\n(B) two\nlines\n(C) three", ["one (really)", "two\nlines", "three"]),
        ("Which? (A) one (B) two (C) three", ["one", "two", "three"]),
    ],
)
def test_options_however_they_stand(tmp_path: Path, bench: Open, question: str, texts: list[str]) -> None:
    (case,) = cases(bench(LVBench, write(tmp_path / "lv", qa(question=question, answer="B"))))
    assert [choice.parts[0].text for choice in case.question.choices] == texts


def test_the_table_form_is_the_same_data(tmp_path: Path, bench: Open) -> None:
    asked = [qa(), qa(uid="56", question_type=["reasoning", "summarization"], answer="A")]
    official = cases(bench(LVBench, write(tmp_path / "official", *asked)))
    table = tmp_path / "table/data/train-00000-of-00001.parquet"
    table.parent.mkdir(parents=True)
    rows = [{**one, "video_path": "Cm73ma6Ibcs.mp4", "type": "tv"} for one in asked]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), table)
    told = cases(bench(LVBench, tmp_path / "table"))
    assert [case.question for case in told] == [case.question for case in official]
    for one, other in zip(told, official, strict=True):
        assert {**one.gold.extra, "minutes": 0} == {**other.gold.extra, "minutes": 0}
        assert one.gold.cluster == other.gold.cluster
    (tmp_path / "table/videos").mkdir()
    (tmp_path / "table/videos/Cm73ma6Ibcs.mp4").write_bytes(b"x")  # beside data/
    opened = bench(LVBench, tmp_path / "table")
    assert opened.episode(opened.contexts()[0]).footage[0].path == tmp_path / "table/videos/Cm73ma6Ibcs.mp4"


def test_options_beside_the_question(tmp_path: Path, bench: Open) -> None:
    (case,) = cases(bench(LVBench, write(tmp_path / "lv", qa(question="Which?", options=["one", "two"], answer="B"))))
    assert [choice.parts[0].text for choice in case.question.choices] == ["one", "two"]


def test_types_are_subsets(bench: Open, data: Path) -> None:
    opened = bench(LVBench, data)
    assert len(opened.contexts()) == len(opened.contexts("all")) == 8
    assert [case.gold.native_id for case in cases(opened, "KIR")] == ["1", "4"]
    with pytest.raises(UserError, match=r"subset 'kir': lvbench has all, KIR, EU, Sum, ER, Rea, TG"):
        opened.contexts("kir")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("00:15-00:19", (15, 19)),
        ("1:02:03-1:02:10", (3723, 3730)),
        ("59:50-1:00:10", (3590, 3610)),
        ("75:10 - 75:12", (4510, 4512)),
        ("00:19–00:19", (19, 19)),
        ("00:19-00:15", None),
        ("14:03", None),
        ("whole video", None),
        ("", None),
    ],
)
def test_time_references(text: str, seconds: tuple[int, int] | None) -> None:
    assert span(text) == seconds


@given(st.integers(0, 36000), st.integers(0, 36000))
def test_a_time_is_read_as_it_is_written(one: int, other: int) -> None:
    start, end = sorted((one, other))
    assert span(f"{clock(start)}-{clock(end)}") == (start, end)


def test_odd_time_references_are_named_not_refused(tmp_path: Path, bench: Open) -> None:
    opened = bench(LVBench, write(tmp_path / "lv", qa(time_reference="towards the end"), qa(uid="7")))
    assert cases(opened)[0].gold.extra["seconds"] is None
    words = " ".join(finding.message for finding in opened.check())
    assert "1 time references cannot be read, such as uid 55 has 'towards the end'; kept as text" in words


# --------------------------------------------------------------------------------------------------------- the videos


async def test_frames_of_the_whole_video_come_first(bench: Open, data: Path) -> None:
    opened = bench(LVBench, data)
    assert len((await played(opened, 0)).question.parts) == 65  # 64 unless said otherwise
    shown = await played(bench(LVBench, data, frames=4, times=True), 0)
    assert [part.text for part in shown.question.parts[::2]] == [
        "00:02:", "00:07:", "00:12:", "00:17:", "What colour is the boat's sail?",
    ]  # fmt: skip
    assert all(isinstance(part, Image) for part in shown.question.parts[1::2])
    assert (await played(bench(LVBench, data, frames=0), 0)).question.parts == cases(opened)[0].question.parts


@pytest.mark.parametrize("place", ["sample_Quay.mkv", "videos/sample_Quay.MP4", "video/sample_Quay.webm"])
async def test_videos_are_found_by_key(bench: Open, data: Path, place: str) -> None:
    (data / place).parent.mkdir(exist_ok=True)
    (data / "videos/sample_Quay.avi").rename(data / place)
    shown = await played(bench(LVBench, data, frames=1), 0)
    assert shown.question.parts[0].source == "sample_Quay.mp4@10.000s"


def test_missing_videos_are_named_with_how_to_get_them(tmp_path: Path, bench: Open, data: Path) -> None:
    (data / "videos/sample_Quay.avi").unlink()
    opened = bench(LVBench, data)
    (warning,) = [finding for finding in opened.check() if finding.level == "warning"]
    assert "1 of 2 videos, of 4 questions, are not at hand" in warning.message
    assert "https://www.youtube.com/watch?v=KEY" in warning.message and warning.message.endswith("KEY.mp4: sample_Quay")
    assert len(bench(LVBench, data, missing="leave_out").contexts()) == 4
    assert any("youtube.com" in step for step in LVBench.card.steps)
    assert set(opened.digest()) == {"video_info.meta.jsonl", "sample_Grdn.mp4"}


def test_a_video_of_another_length_is_named(tmp_path: Path, bench: Open, data: Path) -> None:
    lines = (data / "video_info.meta.jsonl").read_text().splitlines()
    film = json.loads(lines[0])
    film["video_info"]["duration_minutes"] = 65.0
    (data / "video_info.meta.jsonl").write_text("\n".join([json.dumps(film), lines[1]]))
    (warning,) = [finding for finding in bench(LVBench, data).check() if finding.level == "warning"]
    assert warning.message == "sample_Quay is 0.3 min long where the data says 65.0; fetch it again"


async def test_a_file_that_is_no_video(bench: Open, data: Path) -> None:
    (data / "videos/sample_Quay.avi").write_bytes(b"<html>not available</html>")
    opened = bench(LVBench, data)
    with pytest.raises(DataError, match=r"\(uid 0\): video sample_Quay: .*cannot be decoded as a video"):
        await played(opened, 0)
    assert [f for f in opened.check() if f.level == "error" and "cannot be decoded" in f.message]


# ----------------------------------------------------------------------------------------------------------- faults


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"answer": "E"}, ["(uid 55)", "answer", "'E' is not among the options A, B, C, D"]),
        ({"answer": None}, ["answer", "is missing"]),
        ({"question": "What year appears?"}, ["question", "holds no options", "a line each for (A), (B)"]),
        ({"question": "Which?\n(A) x\n(C) y"}, ["question", "holds the options A, C"]),
        ({"question": "Which?\n(B) x\n(C) y"}, ["question", "holds the options B, C"]),
        ({"question": None}, ["question", "is missing"]),
        ({"question_type": ["reasonin"]}, ["question_type", "'reasonin' is no type (did you mean reasoning?)"]),
        ({"question_type": []}, ["question_type", "names no type"]),
        ({"question_type": "reasoning"}, ["question_type", "must be a list, not text"]),
        ({"uid": None}, ["uid", "is missing"]),
    ],
)
def test_faults_are_named(tmp_path: Path, bench: Open, changes: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(DataError) as error:
        bench(LVBench, write(tmp_path / "lv", qa(**changes))).contexts()
    for word in ["video_info.meta.jsonl: line 1 (Cm73ma6Ibcs): qa 0", *words]:
        assert word in str(error.value)


def test_faults_of_files(tmp_path: Path, bench: Open) -> None:
    with pytest.raises(DataError, match=r"uid: '55' is already the id of .*qa 0"):
        bench(LVBench, write(tmp_path / "lv", qa(), qa(uid=55))).contexts()
    with pytest.raises(DataError, match=r"key: '\.\./x' is no YouTube id"):
        bench(LVBench, write(tmp_path / "lv", qa(), key="../x")).contexts()
    (tmp_path / "lv/video_info.meta.jsonl").write_text('{"key": "a", "qa": [')
    opened = bench(LVBench, tmp_path / "lv")
    with pytest.raises(DataError, match="line 1: not JSON"):
        opened.contexts()
    assert [finding.level for finding in opened.check()] == ["error"]
    for look in ("contexts", "digest"):
        with pytest.raises(DataError, match=r"gone\.jsonl: no such file"):
            getattr(bench(LVBench, tmp_path / "gone.jsonl"), look)()
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"holds no video_info\.meta\.jsonl"):
        bench(LVBench, tmp_path / "empty").contexts()


# ----------------------------------------------------------------------------------------------------------- scores


@pytest.mark.parametrize(
    ("said", "right", "letter"),
    [
        ("D", 1, "D"),
        ("(D) 1633", 1, "D"),
        ("D) 1633", 1, "D"),
        ("The answer is (D).", 1, "D"),
        ("The answer is D", 1, "T"),
        ("1633", 1, "1"),
        ("", 0, ""),
        ("(", 0, ""),
        ("A or D", 0, "A"),
    ],
)
def test_accuracy_as_written_and_the_letter_as_coded(
    tmp_path: Path, bench: Open, asked: Callable[..., Any], said: str, right: float, letter: str
) -> None:
    opened = bench(LVBench, write(tmp_path / "lv", qa(question_type=["reasoning", "entity recognition"])))
    unit = asked(cases(opened)[0], said)
    (metric,) = opened.metrics()
    scores = metric.score([unit], {})
    assert as_coded(said) == letter
    assert scores["accuracy"].value == scores["Rea"].value == scores["ER"].value == right
    assert scores["accuracy_as_coded"].value == (letter == "D")
    unit.record.outcome = Outcome.TIMEOUT
    assert {name: score.value for name, score in metric.score([unit], {}).items()} == dict.fromkeys(scores)


def test_figures_as_on_the_leaderboard(
    bench: Open, data: Path, evaluate: Callable[..., Any], rows_of: Callable[..., Any], tmp_path: Path
) -> None:
    opened = bench(LVBench, data)
    told = {case.gold.native_id: case.gold.answers[0] for case in cases(opened)}
    path = tmp_path / "answers.json"
    path.write_text(json.dumps({**told, "6": "D"}))  # uid 6 is of two types: ER and Rea
    figures = opened.report(evaluate(opened, path))
    assert [figures[name] for name in ("KIR", "EU", "Sum", "ER", "Rea", "TG")] == [1, 1, 1, 0.5, 0.5, 1]
    assert figures["Overall"] == 7 / 8 == figures["accuracy_as_coded"]
    assert figures["Average"] == pytest.approx(5 / 6)
    del told["6"]
    assert opened.report(rows_of(opened, told))["Overall"] == 7 / 8  # unanswered counts, unlike officially
    path.write_text("[]")
    with pytest.raises(DataError, match=r"must be \{uid: letter\}, not a list"):
        list(opened.predictions(path))
