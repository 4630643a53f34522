"""LVBench: multiple choice about videos of half an hour to two hours, which are fetched from their publisher."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from statistics import fmean

from memharness import video
from memharness.benchmark import BenchmarkCard, ScoreRow, means
from memharness.choiceqa import LETTER
from memharness.choicerows import right_letter
from memharness.config import option
from memharness.datafile import Ids, Row, kind, read_json, read_lines, stream_parquet
from memharness.media import VIDEO_TYPES
from memharness.metric import Metric
from memharness.scoring.choice import after_thinking
from memharness.scoring.choice_metrics import ChoiceAccuracy, failure
from memharness.types import (
    Answer,
    Asked,
    Asset,
    Choice,
    DataError,
    Finding,
    Score,
    Status,
    Text,
    UserError,
    did_you_mean,
)
from memharness.videoqa import Footage, VideoBenchmark, VideoEntry, VideoOptions, at_hand

FILE = "video_info.meta.jsonl"
FILES = (FILE, "data/*.parquet", "*.parquet", "*.jsonl")
"""Where the questions lie in a folder, the first that is there: the official file, or lmms-eval's table."""
REVISION = "5059bb7a722f6ab14b3636d53ad93bd0559bcbf8"
TYPES = {
    "key information retrieval": "KIR",
    "event understanding": "EU",
    "summarization": "Sum",
    "entity recognition": "ER",
    "reasoning": "Rea",
    "temporal grounding": "TG",
}
"""Question types, and what the official leaderboard calls them. A question may be of several."""
FOLDERS = ("", "videos", "video", "all_videos")
"""Where videos are looked for, below the folder of the question file."""
SUFFIXES = (*VIDEO_TYPES, *(suffix.upper() for suffix in VIDEO_TYPES))
_MARKS = (re.compile(r"(?:^|\n)\s*\(([A-Z])\)\s*"), re.compile(r"(?:^|\s)\(([A-Z])\)\s+"))
_TIME = r"\d+(?::\d{1,2}){1,2}"
_SPAN = re.compile(rf"\s*({_TIME})\s*[-–—~]\s*({_TIME})\s*")
OTHER = 0.05
"""Share by which a video may differ from the length that the data states and be the one that is meant."""


class LVBenchOptions(VideoOptions):
    """Toggles of LVBench."""

    frames: int = option(
        64,
        "Frames shown of a video: those in the middle of so many equal segments. 0 shows none: the blind control, and "
        "the way to score predictions without decoding.",
        source="memharness; Qwen2.5-VL shows up to 768, other figures are made with 16 to 256",
        ge=0,
        le=9999,
    )


@dataclass(frozen=True)
class LVBenchAccuracy(ChoiceAccuracy):
    """Accuracy over all questions, over those of each type, and as the official code reads letters.

    Scores `accuracy`, one of `KIR EU Sum ER Rea TG` for every type the question is of, and `accuracy_as_coded`. The
    official reader takes the first character of the first word of what stands before the first ")" and after the first
    "(": of "The answer is B" that is T, and wrong.
    """

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Score one question."""
        asked = unit[0]
        scores = super().score(unit, facts)
        coded = Score(float(as_coded(asked.record.answer or "") == asked.gold.answers[0]))
        types = dict.fromkeys(asked.gold.extra["types"], scores["accuracy"])
        return {**scores, **types, "accuracy_as_coded": failure(asked) or coded}


def as_coded(said: str) -> str:
    """The letter that the official code reads (lvbench/utils/answer_util.py); empty if there is none."""
    before = (after_thinking(said) or "").strip().split(")")[0].strip()
    pieces = before.split("(")
    inside = pieces[1].strip() if len(pieces) > 1 else before
    return inside.split(" ")[0][:1]


class LVBench(VideoBenchmark):
    """A context is one question; frames of the whole video come before its words."""

    card = BenchmarkCard(
        name="lvbench",
        title="LVBench",
        paper="Wang et al., ICCV 2025, arXiv:2406.08035",
        licence="CC BY-NC-SA 4.0 (questions); videos by their owners' terms",
        source="https://huggingface.co/datasets/zai-org/LVBench, code github.com/zai-org/LVBench",
        revision=REVISION,
        version=1,
        splits={"all": "all questions", "TYPE": "those of one type: KIR, EU, Sum, ER, Rea or TG"},
        counts={"questions": 1549, "videos": 103},
        cluster="the video",
        primary="accuracy",
        assets=(Asset(f"https://huggingface.co/datasets/zai-org/LVBench/resolve/{REVISION}/{FILE}", FILE),),
        errata=(
            "a question may be of several types and counts in each, so the types hold more than all questions",
            "the official script leaves unanswered questions out; here every question counts",
            "the official reader of letters takes the first character of a reply: `accuracy_as_coded`; `accuracy` "
            "takes a declared letter, else counts the reply `unparsed` and wrong",
            "published figures differ by 10 points and more with the frames shown: a run records frames and pixels",
            "time_reference says where the answer lies; it stays in the gold, and frames are of the whole video",
        ),
        images=True,
        prompt="direct.v1",
        steps=(
            f"`data prepare` fetches {FILE}, `memharness data path lvbench` says where; the videos are not in the "
            "release",
            "fetch each from https://www.youtube.com/watch?v=KEY, KEY being `key` in the file, and put it as KEY.mp4 "
            "(or .mkv, .webm, .mov, .avi) beside the file or into videos/",
            "or unpack video_chunks/*.zip (62 GB) of lmms-lab/LVBench there",
            "`data check` names the keys whose video is not at hand; missing=leave_out leaves their questions out",
            "frames need PyAV: pip install memharness-bench[video]",
        ),
    )
    options_class = LVBenchOptions
    options: LVBenchOptions

    def asked(self, subset: str | None) -> Iterator[VideoEntry]:
        """The questions video by video, or those of one type.

        Raises:
            DataError: for a uid that comes twice, options or an answer that do not fit, an unknown type, and what the
                readers refuse.
            UserError: for an unknown type.
        """
        types = {"all", *TYPES.values()}
        if subset is not None and subset not in types:
            hint = did_you_mean(subset, types)
            raise UserError(f"subset {subset!r}: lvbench has all, {', '.join(TYPES.values())}{hint}")
        met = Ids()
        for path, _ in self.sources(None):
            for film, row in _rows(path):
                entry = self._entry(path.parent, film, row)
                met.add(entry.id, row, "uid")
                if subset in (None, "all", *entry.extra["types"]):
                    yield entry

    def sources(self, subset: str | None) -> Sequence[tuple[Path, str]]:
        """The question file: the one named, the official one of the folder named, or lmms-eval's table there."""
        path = self.data.path
        if not path.is_dir():
            return [(path, "")]
        found = next((files for pattern in FILES if (files := sorted(path.glob(pattern)))), [])
        if not found:
            raise DataError(f"{path}: holds no {FILE}, nor a table data/*.parquet; name the file with --data")
        return [(file, "") for file in found]

    def metrics(self) -> Sequence[Metric]:
        """Accuracy, in all, by type and as coded."""
        return (LVBenchAccuracy(),)

    def report(self, rows: Iterable[ScoreRow]) -> Mapping[str, float]:
        """The six types, `Average` (their mean), `Overall` over all questions, as on the official leaderboard."""
        rows = list(rows)
        figures = means(rows)
        if "accuracy" not in figures:
            return {}
        types = {short: figures[short] for short in TYPES.values() if short in figures}
        others = {name: figures[name] for name in ("accuracy_as_coded", "unclosed_thinking")}
        unread = fmean(float(row.scores["accuracy"].status is Status.UNPARSED) for row in rows)
        return {
            **types,
            "Average": fmean(types.values()),
            "Overall": figures["accuracy"],
            **others,
            "unparsed": unread,
        }

    def predictions(self, path: Path) -> Iterable[tuple[str, Answer]]:
        """Answers from the official form `{uid: letter}`, or from VLMEvalKit's TSV.

        Raises:
            DataError: for a file in another form.
        """
        if path.suffix == ".tsv":
            yield from super().predictions(path)
            return
        value = read_json(path)
        if not isinstance(value, dict):
            raise DataError(f"{path}: must be {{uid: letter}}, not {kind(value)}")
        row = Row(value, str(path))
        yield from ((name, Answer(row.text(name, ""))) for name in value)

    def lost(self, entries: Sequence[VideoEntry]) -> Iterable[Finding]:
        """The keys whose video is not at hand, and videos that are not as long as the data says."""
        where = str(self.data.path)
        films = {entry.cluster: entry for entry in entries}
        gone = [key for key, entry in films.items() if entry.footage.path is None]
        if gone:
            questions = sum(entry.footage.path is None for entry in entries)
            absent = f"{len(gone)} of {len(films)} videos, of {questions} questions, are not at hand"
            how = "fetch each from https://www.youtube.com/watch?v=KEY as KEY.mp4"
            yield Finding("warning", where, f"{absent}; {how}: {', '.join(gone)}")
        for key, entry in films.items():
            yield from _other_length(key, entry)

    def check(self) -> Sequence[Finding]:
        """As every video benchmark; then types, and time references that cannot be read."""
        found = list(super().check())
        if any(finding.level == "error" and finding.where == str(self.data.path) for finding in found):
            return found
        return [*found, *_findings(str(self.data.path), list(self.asked(self._subset)))]

    def _entry(self, folder: Path, film: Row, row: Row) -> VideoEntry:
        name = _text(row, "uid")
        row = Row(row.values, f"{row.where} (uid {name})")
        key, source = _key(film)
        question, choices = _choices(row)
        letter = right_letter(row, choices)
        reference = row.text("time_reference", "")
        places = [folder / place for place in FOLDERS] + [folder.parent / place for place in FOLDERS]
        path = at_hand(places, [*([source] if source else []), *(f"{key}{suffix}" for suffix in SUFFIXES)])
        types = _types(row)
        info = film.row("video_info") if film.has("video_info") else Row({}, film.where)
        return VideoEntry(
            id=name,
            parts=(Text(question),),
            answers=(letter,),
            choices=choices,
            category="+".join(types),
            instruction=LETTER,
            extra={
                "types": list(types),
                "genre": film.text("type", ""),
                "time_reference": reference,
                "seconds": span(reference),
                "minutes": info.number("duration_minutes", 0.0),
            },
            cluster=key,
            footage=Footage(path, source or f"{key}.mp4", f"{row.where}: video {key}"),
        )


def _rows(path: Path) -> Iterator[tuple[Row, Row]]:
    """What is said of the video, and the question: two records in the official file, one in a table."""
    if path.suffix == ".parquet":
        yield from ((row, row) for row in stream_parquet(path))
        return
    for film in read_lines(path):
        film = Row(film.values, f"{film.where} ({film.text('key')})")
        yield from ((film, row) for row in film.rows("qa"))


def _text(row: Row, field: str) -> str:
    value = row.values.get(field)
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else row.text(field)


def _key(film: Row) -> tuple[str, str]:
    """The video's key, and the file that a table names; empty in the official file."""
    named = next((film.text(field) for field in ("video_path", "video_name") if film.has(field)), "")
    path = PurePosixPath(named)
    if path.is_absolute() or ".." in path.parts:
        raise film.error("video_path", f"{named!r} lies outside the data folder", "videos lie beside the file")
    key = film.text("key") if film.has("key") or not named else path.stem
    if "/" in key or key in (".", ".."):
        raise film.error("key", f"{key!r} is no YouTube id")
    return key, named


def _choices(row: Row) -> tuple[str, tuple[Choice, ...]]:
    """A question's words, and its options: from a list beside them, or in the text as `(A) …`, each on its line.

    Raises:
        DataError: if there are no two options, or their letters are not A, B, C …
    """
    text = row.text("question")
    if row.has("options"):
        bodies = row.texts("options")
        letters = string.ascii_uppercase[: len(bodies)]
    else:
        text, *pieces = next((found for mark in _MARKS if len(found := mark.split(text)) > 3), [text])
        letters, bodies = "".join(pieces[::2]), tuple(pieces[1::2])
    if not 2 <= len(bodies) <= len(string.ascii_uppercase) or letters != string.ascii_uppercase[: len(bodies)]:
        there = f"the options {', '.join(letters)}" if letters else "no options"
        raise row.error("question", f"holds {there}; expected a line each for (A), (B) and so on")
    pairs = zip(letters, bodies, strict=True)
    return text.strip(), tuple(Choice(letter, (Text(body.strip()),)) for letter, body in pairs)


def _types(row: Row) -> tuple[str, ...]:
    named = row.texts("question_type")
    for name in named:
        if name.strip().lower() not in TYPES:
            hint = did_you_mean(name, TYPES)
            raise row.error("question_type", f"{name!r} is no type{hint}; there are: {', '.join(TYPES)}")
    if not named:
        raise row.error("question_type", "names no type")
    return tuple(dict.fromkeys(TYPES[name.strip().lower()] for name in named))


def span(reference: str) -> tuple[float, float] | None:
    """Seconds of `mm:ss-mm:ss`, either side of which may be `h:mm:ss`; None if it is not of that form."""
    match = _SPAN.fullmatch(reference)
    if match is None:
        return None
    start, end = (_seconds(time) for time in match.groups())
    return (start, end) if start <= end else None


def _seconds(time: str) -> float:
    total = 0
    for piece in time.split(":"):
        total = 60 * total + int(piece)
    return float(total)


def _other_length(key: str, entry: VideoEntry) -> Iterator[Finding]:
    """A video that is not as long as the data says is another one, or broke off."""
    footage, stated = entry.footage, 60 * entry.extra["minutes"]
    if footage.path is None or not stated:
        return
    try:
        length = video.seconds(footage.path, footage.where)
    except UserError:  # said elsewhere: it cannot be read, or PyAV is not installed
        return
    if abs(length - stated) > OTHER * stated + 1:
        message = f"{key} is {length / 60:.1f} min long where the data says {stated / 60:.1f}; fetch it again"
        yield Finding("warning", str(footage.path), message)


def _findings(where: str, entries: Sequence[VideoEntry]) -> Iterator[Finding]:
    types = Counter(short for entry in entries for short in entry.extra["types"])
    named = ", ".join(f"{short} {types[short]}" for short in TYPES.values() if types[short])
    several = sum(len(entry.extra["types"]) > 1 for entry in entries)
    yield Finding("info", where, f"types: {named}; {several} questions are of several")
    yield Finding("info", where, f"{len({entry.cluster for entry in entries})} videos")
    odd = [entry for entry in entries if entry.extra["time_reference"] and entry.extra["seconds"] is None]
    if odd:
        example = f"{odd[0].id} has {odd[0].extra['time_reference']!r}"
        yield Finding(
            "warning", where, f"{len(odd)} time references cannot be read, such as uid {example}; kept as text"
        )
