"""MVBench: which frames a question shows, from which file, when they are sampled, and every fault."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from PIL import Image as Pillow

import memharness.video
from memharness.benchmark import Ask, Observe
from memharness.benchmarks.mvbench import PREFILL, TASKS, MVBench, as_coded
from memharness.prompts import Renderer, answer_request
from memharness.reader import Sampling
from memharness.types import DataError, Image, Outcome, Readout, Text, UserError

pytest.importorskip("av")
Open = Callable[..., Any]


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path / "home"))


@pytest.fixture
def data(sample: Callable[[str], Path]) -> Path:
    """The sample, in a folder that a test may change."""
    return sample("mvbench")


def asked_of(opened: Any, task: str, place: int = 0) -> Any:
    """A case as data, before it has frames."""
    opened.contexts()
    held = [opened.episode(context).cases[0] for context in opened.contexts()]
    return next(case for case in held if case.gold.native_id == f"{task}:{place}")


async def played(opened: Any, task: str, place: int = 0) -> Any:
    """A case as the runner gets it."""
    case = asked_of(opened, task, place)
    observe, ask = [event async for event in opened.episode(case.question.context).play()]
    assert isinstance(observe, Observe) and not observe.items and isinstance(ask, Ask)
    (shown,) = ask.cases
    assert shown.gold == case.gold and shown.question.id == case.question.id
    return shown


def change(folder: Path, task: str, **changes: Any) -> Path:
    """Change the first question of a task; a field set to None is left out."""
    path = folder / "json" / f"{task}.json"
    rows = json.loads(path.read_text())
    rows[0] = {name: value for name, value in {**rows[0], **changes}.items() if value is not None}
    path.write_text(json.dumps(rows))
    return folder


def look(opened: Any, image: Image, place: tuple[int, int]) -> tuple[int, ...]:
    return tuple(opened.data.media.open(image).getpixel(place))


# ------------------------------------------------------------------------------------------------------- the questions


def test_questions_answers_and_ids(bench: Open, data: Path) -> None:
    opened = bench(MVBench, data)
    assert len(opened.contexts()) == 8
    case = asked_of(opened, "action_sequence", 1)
    assert case.question.parts == (Text("What happened after the person lifted the pot?"),)
    assert [choice.key for choice in case.question.choices] == ["A", "B", "C", "D"]
    assert (case.gold.answers, case.gold.category) == (("A",), "action_sequence")
    assert case.gold.cluster == "star/Charades_v1_480/KTC01.avi" == asked_of(opened, "action_sequence").gold.cluster
    assert asked_of(opened, "episodic_reasoning").gold.answers == ("E",)
    (only,) = opened.contexts("object_shuffle")
    assert opened.episode(only).cases[0].gold.native_id == "object_shuffle:0"
    with pytest.raises(UserError, match=r"subset 'object_shufle'.*did you mean object_shuffle"):
        opened.contexts("object_shufle")


def test_twenty_tasks_by_their_official_names() -> None:
    assert len(TASKS) == 20 and len({task.title for task in TASKS.values()}) == 20
    assert {name for name, task in TASKS.items() if task.bounded} == {
        "action_sequence", "action_prediction", "action_localization", "episodic_reasoning", "object_interaction",
    }  # fmt: skip


def test_parquet_is_the_same_data(tmp_path: Path, bench: Open, data: Path) -> None:
    before = [asked_of(bench(MVBench, data), "moving_direction", place) for place in (0, 1)]
    for path in (data / "json").iterdir():
        table = pyarrow.Table.from_pylist(json.loads(path.read_text()))
        folder = data / path.stem / "train"
        folder.mkdir(parents=True)
        pyarrow.parquet.write_table(table, folder / "0000.parquet")
    shutil.rmtree(data / "json")
    opened = bench(MVBench, data)
    assert [asked_of(opened, "moving_direction", place) for place in (0, 1)] == before
    assert "moving_direction/train/0000.parquet" in opened.digest()


def test_one_file_of_a_task(bench: Open, data: Path) -> None:
    opened = bench(MVBench, data / "json/state_change.json")
    assert len(opened.contexts()) == 1
    case = opened.episode(opened.contexts()[0])
    assert case.footage[0].path == data / "video/perception/videos/video_10009.avi"  # beside json/
    with pytest.raises(
        UserError, match=r"subset 'object_shuffle': state_change\.json is state_change; name the folder"
    ):
        bench(MVBench, data / "json/state_change.json").contexts("object_shuffle")
    (data / "odd.json").write_text("[]")
    with pytest.raises(DataError, match=r"odd\.json: named like no task"):
        bench(MVBench, data / "odd.json").contexts()


# ---------------------------------------------------------------------------------------------------------- the frames


async def test_frames_come_before_the_words_and_are_sampled_when_played(
    bench: Open, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = bench(MVBench, data)
    sampled = memharness.video.frames
    calls: list[Path] = []

    def counted(store: Any, path: Path, *rest: Any, **more: Any) -> Any:
        calls.append(path)
        return sampled(store, path, *rest, **more)

    monkeypatch.setattr(memharness.video, "frames", counted)
    case = asked_of(opened, "moving_direction")
    assert case.question.parts == (Text("Which way does the red ball roll?"),)
    opened.digest(), opened.metrics()
    assert calls == []  # reading data and planning decode nothing
    shown = await played(opened, "moving_direction")
    assert calls == [data / "video/clevrer/video_validation/video_10009.avi"]
    *frames, words = shown.question.parts
    assert [type(frame) for frame in frames] == [Image] * 8
    assert words == Text("Which way does the red ball roll?")
    assert frames[0].source == "clevrer/video_validation/video_10009.avi@0.375s"
    assert look(opened, frames[0], (8, 44))[0] > 150 > look(opened, frames[0], (8, 44))[1]  # the ball is left
    assert look(opened, frames[-1], (88, 44))[0] > 150 > look(opened, frames[-1], (88, 44))[1]


async def test_files_of_one_name_show_their_own_frames(bench: Open, data: Path) -> None:
    opened = bench(MVBench, data)
    ball = await played(opened, "moving_direction")
    lamp = await played(opened, "state_change")
    assert {p.sha256 for p in ball.question.parts[:8]}.isdisjoint(p.sha256 for p in lamp.question.parts[:8])
    assert look(opened, lamp.question.parts[0], (4, 4))[0] < 100 < look(opened, lamp.question.parts[7], (4, 4))[0]


async def test_bounds_are_kept_and_two_cuts_differ(bench: Open, data: Path) -> None:
    opened = bench(MVBench, data, frames=2)
    first, second = await played(opened, "action_sequence"), await played(opened, "action_sequence", 1)
    assert [part.source.partition("@")[2] for part in first.question.parts[:2]] == ["1.375s", "4.125s"]
    assert [part.source.partition("@")[2] for part in second.question.parts[:2]] == ["5.000s", "7.000s"]
    assert first.question.parts[0] != second.question.parts[0]
    assert look(opened, second.question.parts[0], (2, 2))[0] > 200 > look(opened, second.question.parts[1], (2, 2))[0]


async def test_a_folder_of_frames(bench: Open, data: Path) -> None:
    opened = bench(MVBench, data, frames=4)
    shown = await played(opened, "episodic_reasoning")
    assert [Path(part.source).name for part in shown.question.parts[:4]] == [
        "00002.jpg", "00005.jpg", "00008.jpg", "00011.jpg",
    ]  # fmt: skip


@pytest.mark.parametrize("count", [0, 1, 16])
async def test_frames_size_and_times_are_options(bench: Open, data: Path, count: int) -> None:
    opened = bench(MVBench, data, frames=count, max_side=48, times=True)
    parts = (await played(opened, "moving_direction")).question.parts
    assert len(parts) == 2 * count + 1
    assert all((part.width, part.height) == (48, 36) for part in parts[1:-1:2])
    if count == 1:
        assert parts[0] == Text("00:03:")


async def test_the_pixels_view_shows_frames_and_the_captions_view_words(bench: Open, data: Path) -> None:
    question = (await played(bench(MVBench, data), "moving_count")).question
    seen = answer_request(question, Readout(), Renderer({}, "pixels"), Sampling(), "direct.v1")
    assert sum(isinstance(part, Image) for part in seen.parts()) == 8
    blind = answer_request(question, Readout(), Renderer({}, "captions"), Sampling(), "direct.v1")
    assert all(isinstance(part, Text) for part in blind.parts())


async def test_the_prefill_reaches_the_request(bench: Open, data: Path) -> None:
    for on in (False, True):
        question = asked_of(bench(MVBench, data, prefill=on), "moving_count").question
        request = answer_request(question, Readout(), Renderer({}, "captions"), Sampling(), "direct.v1")
        assert request.prefill == (PREFILL if on else "")


# ------------------------------------------------------------------------------------------------- where a video lies


async def test_a_missing_video_is_refused_in_pixels_and_asked_without_in_captions(bench: Open, data: Path) -> None:
    (data / "video/perception/videos/video_204.avi").unlink()
    opened = bench(MVBench, data)
    question = (await played(opened, "object_shuffle")).question
    assert question.parts[0] == Image(None, source="perception/videos/video_204.avi")
    with pytest.raises(UserError, match=r"--view pixels: perception/videos/video_204\.avi is not at hand"):
        answer_request(question, Readout(), Renderer({}, "pixels"), Sampling(), "direct.v1")
    request = answer_request(question, Readout(), Renderer({}, "captions"), Sampling(), "direct.v1")
    assert "Under which cup" in request.parts()[0].text  # type: ignore[union-attr]
    (warning,) = [f.message for f in opened.check() if "no video" in f.message]
    assert warning == "object_shuffle: 1 of 1 questions have no video: perception/videos/video_204.avi"
    assert len(bench(MVBench, data, missing="leave_out").contexts()) == 7


async def test_what_is_at_hand_and_shown_is_part_of_the_identity(bench: Open, data: Path) -> None:
    before = bench(MVBench, data).digest()
    assert "clevrer/video_validation/video_10009.avi" in before and "perception/videos/video_10009.avi" in before
    assert "tvqa/frames_fps3_hq/harbour_s01e02_seg01_clip_07/00001.jpg" in before
    blind = bench(MVBench, data, frames=0).digest()
    assert set(blind) == {f"json/{path.name}" for path in (data / "json").iterdir()}
    (data / "video/perception/videos/video_204.avi").unlink()
    assert before.keys() - bench(MVBench, data).digest().keys() == {"perception/videos/video_204.avi"}


@pytest.mark.parametrize("place", ["video/data0613/star/Charades_v1_480", "star/Charades_v1_480"])
async def test_videos_are_found_where_archives_put_them(bench: Open, data: Path, place: str) -> None:
    (data / place).parent.mkdir(parents=True)
    shutil.move(data / "video/star/Charades_v1_480", data / place)
    shown = await played(bench(MVBench, data, frames=1), "action_sequence", 1)
    assert shown.question.parts[0].source == "star/Charades_v1_480/KTC01.avi@6.000s"


async def test_clips_that_are_cut_already_are_shown_whole(bench: Open, data: Path) -> None:
    """The branch `video` names cut files; main's names with its bounds lead to them too."""
    cut = data / "video/star/Charades_segment"
    shutil.move(data / "video/star/Charades_v1_480", cut)
    (cut / "KTC01.avi").rename(cut / "KTC01_4.0_8.0.mp4")
    shown = await played(bench(MVBench, data, frames=2), "action_sequence", 1)
    assert [part.source for part in shown.question.parts[:2]] == [
        "star/Charades_segment/KTC01_4.0_8.0.mp4@2.000s", "star/Charades_segment/KTC01_4.0_8.0.mp4@6.000s",
    ]  # fmt: skip
    missing = await played(bench(MVBench, data), "action_sequence", 0)  # 0 to 5.5 s was never cut
    assert missing.question.parts[0].missing
    change(data, "action_sequence", video="KTC01_4.0_8.0.mp4")
    named = await played(bench(MVBench, data, frames=1), "action_sequence", 0)
    assert named.question.parts[0].source.endswith("KTC01_4.0_8.0.mp4@4.000s")  # not once more by start and end


# ----------------------------------------------------------------------------------------------------------- faults


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"answer": "It flew."}, ["answer", "'It flew.' is not among the candidates 'They sat down.'"]),
        ({"answer": None}, ["answer", "is missing"]),
        ({"candidates": ["They sat down."]}, ["candidates", "two options or more, not of 1"]),
        ({"candidates": "A or B"}, ["candidates", "must be a list"]),
        ({"video": "../../secret.mp4"}, ["video", "lies outside the data folder"]),
        ({"video": None}, ["video", "is missing"]),
        ({"question": ""}, ["question", "is empty"]),
        ({"start": "early"}, ["start", "must be a number, not text"]),
        ({"start": 3.0, "end": 3.0}, ["start", "the bounds 3 to 3 s hold nothing"]),
        ({"start": -1.0, "end": 3.0}, ["start", "the bounds -1 to 3 s hold nothing"]),
    ],
)
def test_faults_of_the_data_are_named(bench: Open, data: Path, changes: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(DataError) as error:
        bench(MVBench, change(data, "action_sequence", **changes)).contexts()
    for word in ["action_sequence.json: record 0", *words]:
        assert word in str(error.value)


async def test_bounds_outside_the_video(bench: Open, data: Path) -> None:
    late = bench(MVBench, change(data, "action_sequence", start=20.0, end=30.0))
    with pytest.raises(DataError, match=r"action_sequence\.json: record 0: video: is 8\.00 s long, shorter than its b"):
        await played(late, "action_sequence")
    assert any(f.level == "error" and "shorter than its bounds 20 to 30 s" in f.message for f in late.check())
    long = change(data, "action_sequence", start=4.0, end=30.0)
    assert len((await played(bench(MVBench, long), "action_sequence")).question.parts) == 9
    words = [finding.message for finding in bench(MVBench, long).check() if finding.level == "warning"]
    assert any("1 questions end past their video" in w and "8.0 s, asked about to 30 s" in w for w in words)
    with pytest.raises(DataError, match="shorter than its bounds 4 to 30 s"):
        await played(bench(MVBench, long, bounds="refuse"), "action_sequence")


async def test_an_unreadable_video(bench: Open, data: Path) -> None:
    path = data / "video/perception/videos/video_204.avi"
    path.write_bytes(path.read_bytes()[:2000])
    opened = bench(MVBench, data)
    with pytest.raises(DataError, match=r"object_shuffle\.json: record 0: video: .*it breaks off at 1\.00 of 8\.00 s"):
        await played(opened, "object_shuffle")
    path.write_bytes(b"")
    with pytest.raises(DataError, match="cannot be decoded as a video"):
        await played(bench(MVBench, data), "object_shuffle")
    assert any(f.level == "error" and "cannot be decoded" in f.message for f in bench(MVBench, data).check())


def test_without_pyav_reading_and_checking_still_work(bench: Open, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> Any:
        raise UserError("frames of a video need PyAV: pip install memharness-bench[video]")

    monkeypatch.setattr(memharness.video, "_pyav", gone)
    opened = bench(MVBench, data)
    assert len(opened.contexts()) == 8
    assert any("no video was looked into: frames of a video need PyAV" in f.message for f in opened.check())


def test_no_files_and_odd_files(tmp_path: Path, bench: Open, data: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"holds no question file; expected json/TASK\.json"):
        bench(MVBench, tmp_path / "empty").contexts()
    (data / "json/state_change.json").write_text('{"video": 1}')
    opened = bench(MVBench, data)
    with pytest.raises(DataError, match=r"state_change\.json: must hold a list of records"):
        opened.contexts()
    assert [finding.level for finding in opened.check()] == ["error"]


# ----------------------------------------------------------------------------------------------------------- scores


def test_the_right_answer_that_stands_twice_is_the_last(bench: Open, data: Path) -> None:
    opened = bench(MVBench, change(data, "moving_count", candidates=["1", "0", "1", "4"]))
    assert asked_of(opened, "moving_count").gold.answers == ("C",)
    words = " ".join(finding.message for finding in opened.check())
    assert "1 questions hold the right answer twice, first moving_count:0: the last counts" in words


@pytest.mark.parametrize(
    ("said", "right", "coded"),
    [
        ("(A)", 1, 1),
        ("(a) up", 1, 1),
        ("A. Up", 1, 1),
        ("(B)", 0, 0),
        ("The answer is (A).", 1, 0),  # the official code reads "the"
        ("", 0, 1),  # … and takes nothing, and brackets, for right
        ("(", 0, 1),
        (")", 0, 1),
        (".", 0, 1),
        ("Best option:(A) They sat down.", 1, 1),
        ("Best option:(A", 1, 1),
        ("Best option:(", 0, 1),
        ("<think>(A) or (B)</think>(B)", 0, 0),
        ("<think>it must be (A", 0, 0),  # not taken for an empty reply
        (None, 0, 1),
    ],
)
def test_accuracy_as_written_and_as_coded(
    bench: Open, data: Path, asked: Callable[..., Any], said: str | None, right: float, coded: float
) -> None:
    opened = bench(MVBench, change(data, "action_sequence", answer="They sat down."))
    unit = asked(asked_of(opened, "action_sequence"), said)
    (metric,) = opened.metrics()
    scores = metric.score([unit], {})
    assert (scores["accuracy"].value, scores["accuracy_as_coded"].value) == (right, coded)
    if not right and said not in ("(B)", "<think>(A) or (B)</think>(B)"):
        assert scores["accuracy"].status == "unparsed"
    unit.record.outcome = Outcome.READER_ERROR
    failed = metric.score([unit], {})
    assert failed["accuracy"].value is None and failed["accuracy_as_coded"].value is None


def test_means_over_tasks_and_over_questions(bench: Open, data: Path, rows_of: Callable[..., Any]) -> None:
    opened = bench(MVBench, data)
    held = [opened.episode(context).cases[0] for context in opened.contexts()]
    told = {case.gold.native_id: f"({case.gold.answers[0]})" for case in held}
    figures = opened.report(rows_of(opened, told))
    assert figures["Avg"] == figures["Overall"] == 1 and figures["Action Sequence"] == 1
    wrong = {**told, "action_sequence:0": "", "moving_count:0": "(D)"}
    figures = opened.report(rows_of(opened, wrong))
    assert figures["Avg"] == pytest.approx((0.5 + 1 + 0 + 1 + 1 + 1) / 6) and figures["Overall"] == 6 / 8
    assert (figures["unparsed"], figures["accuracy_as_coded"]) == (1 / 8, 7 / 8)


def test_check_of_one_task_says_nothing_of_the_others(bench: Open, data: Path) -> None:
    opened = bench(MVBench, data)
    assert any("tasks are not there" in finding.message for finding in opened.check())
    (data / "video/clevrer/video_validation/video_10009.avi").unlink()
    opened.contexts("object_shuffle")
    assert [f.message for f in opened.check() if f.level != "info"] == []
    assert "tasks: object_shuffle 1" in [finding.message for finding in opened.check()]


def test_stills_of_another_kind_do_not_count(bench: Open, data: Path) -> None:
    folder = data / "video/tvqa/frames_fps3_hq/harbour_s01e02_seg01_clip_07"
    (folder / "Thumbs.db").write_bytes(b"x")
    assert not [f for f in bench(MVBench, data).check() if f.level == "error"]
    Pillow.new("RGB", (4, 4)).save(folder / "00014.jpg")
    assert [f.message for f in bench(MVBench, data).check() if "frame 14 comes after frame 12" in f.message]
    assert as_coded("(e)", type("A", (), {"gold": type("G", (), {"answers": ("E",)})})) == 1  # type: ignore[arg-type]
