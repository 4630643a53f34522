"""MVBench: twenty tasks of temporal understanding, as multiple choice about short videos."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from memharness.benchmark import BenchmarkCard, ScoreRow
from memharness.choiceqa import LETTER, by_task
from memharness.config import option
from memharness.datafile import Row, read_records, stream_parquet
from memharness.metric import Metric
from memharness.scoring.choice import after_thinking
from memharness.scoring.choice_metrics import ChoiceAccuracy, failure
from memharness.types import (
    Asked,
    Asset,
    Choice,
    DataError,
    Finding,
    Score,
    Text,
    UserError,
    did_you_mean,
)
from memharness.videoqa import Footage, VideoBenchmark, VideoEntry, VideoOptions, at_hand

REVISION = "230a2d4fac8900333c61754641c7a13e069ac9c6"
RATE = 3.0
"""Frames a second of a folder of frames (episodic_reasoning)."""
PREFILL = "Best option:("
"""What the official code makes every answer begin with."""


class Task(NamedTuple):
    """A task: its official name, and its folders below `video/`.

    Attributes:
        folder: of the main branch, whose videos are whole.
        cut: of the branch `video`, where its clips are cut to their bounds or converted; empty if it is the same.
        bounded: whether its questions are about the stretch from `start` to `end`.
    """

    title: str
    folder: str
    cut: str = ""
    bounded: bool = False


CLEVRER, PERCEPTION, STAR = "clevrer/video_validation", "perception/videos", "star/Charades_v1_480"
CHARADES = "star/Charades_segment"
TASKS = {
    "action_antonym": Task("Action Antonym", "ssv2_video", "ssv2_video_mp4"),
    "action_count": Task("Action Count", PERCEPTION),
    "action_localization": Task("Action Localization", "sta/sta_video", "sta/sta_video_segment", True),
    "action_prediction": Task("Action Prediction", STAR, CHARADES, True),
    "action_sequence": Task("Action Sequence", STAR, CHARADES, True),
    "character_order": Task("Character Order", PERCEPTION),
    "counterfactual_inference": Task("Counterfactual Inference", CLEVRER),
    "egocentric_navigation": Task("Egocentric Navigation", "vlnqa"),
    "episodic_reasoning": Task("Episodic Reasoning", "tvqa/frames_fps3_hq", "tvqa/video_fps3_hq_segment", True),
    "fine_grained_action": Task("Fine-grained Action", "Moments_in_Time_Raw/videos"),
    "fine_grained_pose": Task("Fine-grained Pose", "nturgbd", "nturgbd_convert"),
    "moving_attribute": Task("Moving Attribute", CLEVRER),
    "moving_count": Task("Moving Count", CLEVRER),
    "moving_direction": Task("Moving Direction", CLEVRER),
    "object_existence": Task("Object Existence", CLEVRER),
    "object_interaction": Task("Object Interaction", STAR, CHARADES, True),
    "object_shuffle": Task("Object Shuffle", PERCEPTION),
    "scene_transition": Task("Scene Transition", "scene_qa/video"),
    "state_change": Task("State Change", PERCEPTION),
    "unexpected_action": Task("Unexpected Action", "FunQA_test/test"),
}


class MVBenchOptions(VideoOptions):
    """Toggles of MVBench."""

    prefill: bool = option(
        False,
        f"Make every answer begin with `{PREFILL}`, as the official code does; not every model server can.",
        source="official code begins so; off, since thinking models and agents do not answer at once",
    )


@dataclass(frozen=True)
class MVBenchAccuracy(ChoiceAccuracy):
    """Accuracy as written, and as the official code counts: scores `accuracy` and `accuracy_as_coded`, 0 or 1.

    The official comparison takes the reply's first word, without full stops, in lower case, and is content if that word
    lies in "(x)" or "(x)" in it. So an empty reply, and one that is a bracket, count as right (Ask-Anything, issues 126
    and 227); `accuracy` counts them as unparsed and wrong. Both read what comes after the prefill.
    """

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Score one question."""
        asked = unit[0]
        said = (asked.record.answer or "").strip().removeprefix(PREFILL[:-1])
        plain = replace(asked, record=replace(asked.record, answer=None if asked.record.answer is None else said))
        return {**super().score([plain], facts), "accuracy_as_coded": failure(asked) or Score(as_coded(said, asked))}


def as_coded(said: str, asked: Asked) -> float:
    """The official comparison of a reply with the right option; thinking is cut, and counts where it never closes."""
    answer = after_thinking(said)
    word = (said if answer is None else answer).lower().split(" ")[0].replace(".", "")
    right = f"({asked.gold.answers[0].lower()})"
    return float(word in right or right in word)


class MVBench(VideoBenchmark):
    """A context is one question; its frames come before its words."""

    card = BenchmarkCard(
        name="mvbench",
        title="MVBench",
        paper="Li et al., CVPR 2024, arXiv:2311.17005",
        licence="MIT (questions); videos by their owners' terms, for research only",
        source="https://huggingface.co/datasets/OpenGVLab/MVBench, code github.com/OpenGVLab/Ask-Anything",
        revision=REVISION,
        version=1,
        splits={"all": "all twenty tasks", "TASK": "one task by name, such as object_shuffle"},
        counts={"questions": 4000},
        cluster="the video",
        primary="accuracy",
        assets=tuple(
            Asset(
                f"https://huggingface.co/datasets/OpenGVLab/MVBench/resolve/{REVISION}/json/{task}.json",
                f"json/{task}.json",
            )
            for task in TASKS
        ),
        errata=(
            "two means are in use: the paper's `Avg` is the mean of the tasks, VLMEvalKit gives the mean over "
            "questions (`Overall`); both are reported",
            "the official comparison counts an empty reply as right: `accuracy_as_coded`; `accuracy` counts it wrong",
            "clips of fine_grained_pose come from NTU RGB+D, which forbids passing them on: they are not in the "
            "release, and `data check` names them; missing=leave_out leaves their questions out",
            "clevrer and perception hold files of one name: frames are kept by the file's content, bounds, count and "
            "size, never by name",
            "the official code maps seconds to frame numbers by the average rate; here the frame on screen at that "
            "second is taken, so frames may differ by one, and those of a folder start at second 0 with the first",
            "bounds past a video's end are cut to it in silence officially; `data check` names them, and a start past "
            "the end is refused",
            "no question has an id of its own: ids are `task:place in its file`, from 0",
        ),
        images=True,
        prompt="direct.v1",
        steps=(
            "`data prepare` fetches the questions into json/, `memharness data path mvbench` says where; if the hub "
            "wants a login for them, fetch them by hand",
            "fetch video/*.zip (17 GB) of OpenGVLab/MVBench and unpack each in video/ beside json/, so that there is "
            "video/star/Charades_v1_480, video/clevrer/video_validation and so on; what data0613.zip holds belongs "
            "into the same folders, and is found where it is too",
            "or unpack the branch `video`, whose clips are cut already, in video/",
            "ask for the 200 clips of fine_grained_pose at NTU RGB+D, and put them into video/nturgbd",
            "frames need PyAV: pip install memharness-bench[video]",
        ),
    )
    options_class = MVBenchOptions
    options: MVBenchOptions

    def asked(self, subset: str | None) -> Iterator[VideoEntry]:
        """The questions of all tasks or of one, task by task.

        Raises:
            DataError: for options or an answer that do not fit, and what the readers refuse.
            UserError: for an unknown task.
        """
        places: dict[str, int] = {}
        for path, task in self.sources(subset):
            for row in stream_parquet(path) if path.suffix == ".parquet" else read_records(path):
                place = places.setdefault(task, 0)
                places[task] += 1
                yield self._entry(task, place, row)

    def sources(self, subset: str | None) -> Sequence[tuple[Path, str]]:
        """The question files of the tasks, each with its task: `json/TASK.json`, `TASK.json` or parquet below `TASK/`.

        Raises:
            DataError: if there is none, or a file named is no task's.
            UserError: for an unknown task, or one that the file named is not of.
        """
        if subset not in (None, "all", *TASKS):
            hint = did_you_mean(subset or "", TASKS)
            raise UserError(f"subset {subset!r}: no such task{hint}; there are: {', '.join(TASKS)}")
        path = self.data.path
        if not path.is_dir():
            if path.stem not in TASKS:
                raise DataError(f"{path}: named like no task; there are: {', '.join(TASKS)}")
            if subset not in (None, "all", path.stem):
                raise UserError(f"subset {subset!r}: {path.name} is {path.stem}; name the folder of all tasks")
            return [(path, path.stem)]
        tasks = TASKS if subset in (None, "all") else (subset,)
        found = [(file, task) for task in tasks for file in _files(path, task)]
        if not found:
            raise DataError(f"{path}: holds no question file; expected json/TASK.json, such as json/action_count.json")
        return found

    def metrics(self) -> Sequence[Metric]:
        """Accuracy, as written and as coded."""
        return (MVBenchAccuracy(),)

    def report(self, rows: Iterable[ScoreRow]) -> Mapping[str, float]:
        """Each task by its official name, `Avg` (their mean) and `Overall` over all questions."""
        figures = by_task(rows, mean="Avg", pooled="Overall")
        return {TASKS[name].title if name in TASKS else name: value for name, value in figures.items()}

    def check(self) -> Sequence[Finding]:
        """As every video benchmark; then tasks that are not whole, and right answers that stand twice."""
        found = list(super().check())
        if any(finding.level == "error" and finding.where == str(self.data.path) for finding in found):
            return found
        return [*found, *_findings(str(self.data.path), list(self.asked(self._subset)), self._subset)]

    def _entry(self, task: str, place: int, row: Row) -> VideoEntry:
        texts = row.texts("candidates")
        if not 2 <= len(texts) <= len(string.ascii_uppercase):
            raise row.error("candidates", f"must be a list of two options or more, not of {len(texts)}")
        answer = row.text("answer")
        right = [letter for letter, text in zip(string.ascii_uppercase, texts, strict=False) if text == answer]
        if not right:
            raise row.error("answer", f"{answer!r} is not among the candidates {', '.join(map(repr, texts))}")
        footage = self._footage(task, row)
        return VideoEntry(
            id=f"{task}:{place}",
            parts=(Text(row.text("question")),),
            answers=(right[-1],),  # as the official code, where an answer stands twice
            choices=tuple(Choice(key, (Text(text),)) for key, text in zip(string.ascii_uppercase, texts, strict=False)),
            category=task,
            instruction=LETTER,
            extra={"twice": len(right) > 1},
            cluster=f"{TASKS[task].folder}/{row.text('video')}",
            prefill=PREFILL if self.options.prefill else "",
            footage=footage,
        )

    def _footage(self, task: str, row: Row) -> Footage:
        """The video of a question: whole, with its bounds, or a clip that was cut to them already."""
        kind, name, where = TASKS[task], _name(row), f"{row.where}: video"
        start, end = (row.number(k, 0.0) if kind.bounded and row.has(k) else None for k in ("start", "end"))
        if start is not None and end is not None and not 0 <= start < end:
            raise row.error("start", f"the bounds {start:g} to {end:g} s hold nothing")
        root = self._root()
        roots = (root / "video", root / "video" / "data0613", root, root / "data0613")
        if whole := at_hand((base / kind.folder for base in roots), [str(name)]):
            return Footage(whole, f"{kind.folder}/{name}", where, start, end, RATE)
        cuts = [f"{name.stem}_{row.values.get('start')}_{row.values.get('end')}.mp4"] if kind.bounded else []
        names = [str(name), str(name.with_suffix(".mp4")), f"{name}.mp4", *cuts]
        if kind.cut and (clip := at_hand((base / kind.cut for base in roots), names)):
            return Footage(clip, f"{kind.cut}/{clip.name}", where)
        return Footage(None, f"{kind.folder}/{name}", where)

    def _root(self) -> Path:
        path = self.data.path
        folder = path if path.is_dir() else path.parent
        return folder.parent if folder.name == "json" else folder


def _name(row: Row) -> PurePosixPath:
    name = PurePosixPath(row.text("video"))
    if name.is_absolute() or ".." in name.parts or not name.name:
        raise row.error("video", f"{str(name)!r} lies outside the data folder", "videos lie in video/")
    return name


def _files(root: Path, task: str) -> list[Path]:
    for pattern in (f"json/{task}.json", f"{task}.json", f"{task}.parquet", f"{task}/**/*.parquet"):
        if found := sorted(root.glob(pattern)):
            return found
    return []


def _findings(where: str, entries: Sequence[VideoEntry], subset: str | None) -> Iterator[Finding]:
    sizes = Counter(entry.category for entry in entries)
    yield Finding("info", where, "tasks: " + ", ".join(f"{task} {n}" for task, n in sorted(sizes.items())))
    if subset in (None, "all") and (absent := [task for task in TASKS if task not in sizes]):
        yield Finding("warning", where, f"{len(absent)} of {len(TASKS)} tasks are not there: {', '.join(absent)}")
    if twice := [entry.id for entry in entries if entry.extra["twice"]]:
        yield Finding(
            "warning", where, f"{len(twice)} questions hold the right answer twice, first {twice[0]}: the last counts"
        )
