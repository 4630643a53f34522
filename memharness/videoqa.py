"""Multiple choice about videos: frames stand for the video, and are sampled when a question is asked, not before."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from memharness import video
from memharness.benchmark import Ask, Fact, Observe, Recorded
from memharness.choiceqa import ChoiceBenchmark, Entry
from memharness.config import Config, option
from memharness.datafile import existing
from memharness.types import Answer, Case, DataError, Finding, Image, Part, Text, UserError

NAMED = 3  # videos of a kind that a finding names


class VideoOptions(Config):
    """Which frames of a video a question shows; the default of `frames` is each benchmark's own."""

    frames: int = option(
        8,
        "Frames shown of a video: those in the middle of so many equal segments of its bounds. 0 shows none: the "
        "blind control, and the way to score predictions without decoding.",
        source="MVBench official code (8; also 16, 64)",
        ge=0,
        le=9999,
    )
    max_side: int | None = option(
        None, "Most pixels along a frame's longer side; larger frames are made smaller, in proportion.", unit="px", ge=8
    )
    max_pixels: int | None = option(
        None, "Most pixels of a frame; larger frames are made smaller, in proportion.", unit="px", ge=64
    )
    times: bool = option(False, "Write the time of each frame before it, counted from the video's beginning.")
    bounds: Literal["cut", "refuse"] = option(
        "cut",
        "What becomes of an end past the video's own: cut to it, or refused. A start past it is always refused.",
        source="MVBench official code cuts in silence; here `data check` names each",
    )
    missing: Literal["refuse", "leave_out"] = option(
        "refuse",
        "Questions whose video is not at hand: refused when a reader would see pixels (the captions view asks them "
        "without), or left out of the data.",
    )


@dataclass(frozen=True, slots=True)
class Footage:
    """The stretch of a video that a question is about.

    Attributes:
        path: a video file or a folder of frames; None if it is not at hand.
        source: the name the data gives it.
        where: file, record and field that name it, for errors.
        start: seconds; None is the beginning.
        end: seconds; None is the end.
        rate: frames a second of a folder of frames.
    """

    path: Path | None
    source: str
    where: str
    start: float | None = None
    end: float | None = None
    rate: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoEntry(Entry):
    """A question about a video."""

    footage: Footage


class VideoBenchmark(ChoiceBenchmark):
    """Questions about videos. Reading the data touches no video: frames are sampled as each episode is played.

    A question's frames come before its words. Where the video is not at hand one missing picture stands for them: the
    pixels view refuses it by name, the captions view asks without.
    """

    options: VideoOptions

    @abstractmethod
    def asked(self, subset: str | None) -> Iterator[VideoEntry]:
        """Every published question in file order, whether or not its video is at hand.

        Raises:
            DataError: for a file that is missing or not as published.
            UserError: for an unknown subset.
        """

    def entries(self, subset: str | None) -> Iterator[Entry]:
        """The questions, without those that `missing=leave_out` leaves out."""
        for entry in self.asked(subset):
            if entry.footage.path is not None or self.options.missing == "refuse":
                yield entry

    def episode(self, context: str) -> Recorded:
        """A question that gets its frames when the episode is played."""
        recorded = super().episode(context)
        assert self._read is not None
        footage = [entry.footage for entry in self._read[context] if isinstance(entry, VideoEntry)]
        return Filmed(recorded, footage, self.frames)

    def frames(self, footage: Footage) -> tuple[Part, ...]:
        """The frames of a question as parts, each behind its time if `times` is set.

        Raises:
            DataError: if the video cannot be decoded or is shorter than its bounds.
            UserError: if PyAV is not installed.
        """
        options = self.options
        if not options.frames:
            return ()
        if footage.path is None:
            return (Image(None, source=footage.source),)
        clip = video.Clip(
            options.frames, footage.start, footage.end, options.max_side, options.max_pixels, options.bounds
        )
        media, source = self.data.media, footage.source
        sampled = video.frames(media, footage.path, clip, source, footage.where, rate=footage.rate)
        timed = (
            (Text(f"{clock(frame.seconds)}:"), frame.image) if options.times else (frame.image,) for frame in sampled
        )
        return tuple(part for parts in timed for part in parts)

    def files(self) -> Sequence[Path]:
        """The files that hold the questions."""
        return [path for path, _ in self.sources(None)]

    @abstractmethod
    def sources(self, subset: str | None) -> Sequence[tuple[Path, str]]:
        """The files that hold the questions, each with the subset it belongs to.

        Raises:
            DataError: if there is none.
            UserError: for an unknown subset.
        """

    def digest(self) -> Any:
        """Digests of the question files and, if frames are shown, of the videos at hand, by their published names."""
        root = self.data.path if self.data.path.is_dir() else self.data.path.parent
        found = {path.relative_to(root).as_posix(): self.data.media.digest(existing(path)) for path in self.files()}
        if self.options.frames:
            for entry in self.asked(None):
                footage = entry.footage
                if footage.path is not None and footage.source not in found:
                    found |= self._digests(footage.path, footage.source)
        return found

    def _digests(self, path: Path, source: str) -> dict[str, str]:
        if path.is_file():
            return {source: self.data.media.digest(path)}
        stills = (file for file in path.iterdir() if file.suffix.lower() in video.PICTURES)
        return {f"{source}/{file.name}": self.data.media.digest(file) for file in stills}

    def check(self) -> Sequence[Finding]:
        """As every choice benchmark; then videos that are not at hand, or shorter than the bounds asked about."""
        found = list(super().check())
        if any(finding.level == "error" for finding in found):
            return found
        entries = list(self.asked(self._subset))
        return [*found, *self.lost(entries), *_short(str(self.data.path), entries)]

    def lost(self, entries: Sequence[VideoEntry]) -> Iterable[Finding]:
        """Videos that are not at hand, by category; a benchmark may say more about them."""
        where = str(self.data.path)
        for category, n in Counter(entry.category for entry in entries).items():
            gone = [e.footage.source for e in entries if e.category == category and e.footage.path is None]
            if gone:
                names = dict.fromkeys(gone)
                yield Finding(
                    "warning", where, f"{category}: {len(gone)} of {n} questions have no video: {_some(names)}"
                )


class Filmed(Recorded):
    """A recorded episode whose questions get their frames as it is played: decoding is slow, planning is not."""

    def __init__(
        self, before: Recorded, footage: Sequence[Footage], show: Callable[[Footage], tuple[Part, ...]]
    ) -> None:
        """Keep an episode without frames, and how to get them."""
        super().__init__(before.context, before.items, before.cases)
        self.footage = footage
        self.show = show

    async def play(self) -> AsyncGenerator[Observe | Ask | Fact, list[Answer]]:
        """One Observe, one Ask."""
        yield Observe(self.items)
        pairs = zip(self.cases, self.footage, strict=True)
        yield Ask([await asyncio.to_thread(self._with_frames, case, footage) for case, footage in pairs])

    def _with_frames(self, case: Case, footage: Footage) -> Case:
        question = case.question
        return Case(replace(question, parts=(*self.show(footage), *question.parts)), case.gold)


def at_hand(folders: Iterable[Path], names: Iterable[str]) -> Path | None:
    """The first of these names that lies in one of these folders; None if none does."""
    names = list(names)
    places = (folder / name for folder in folders for name in names)
    return next((place for place in places if place.exists()), None)


def clock(seconds: float) -> str:
    """A time as `mm:ss`, or `h:mm:ss` from an hour on."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute:02d}:{second:02d}"


def _some(names: Iterable[str]) -> str:
    names = list(names)
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")


def _short(where: str, entries: Iterable[VideoEntry]) -> Iterator[Finding]:
    """Bounds that do not fit, and files that are no videos, by their headers."""
    known: dict[Path, float] = {}
    cut: list[str] = []
    for entry in entries:
        footage = entry.footage
        if footage.path is None:
            continue
        try:
            if footage.path not in known:
                known[footage.path] = video.seconds(footage.path, footage.where, rate=footage.rate)
            length = known[footage.path]
            video.Clip(1, footage.start, footage.end, beyond="cut").times(length, footage.where)
        except DataError as error:
            yield Finding("error", where, str(error))
            continue
        except UserError as error:  # PyAV is not installed
            yield Finding("warning", where, f"no video was looked into: {error}")
            return
        if footage.end is not None and footage.end > length + video.SLACK:
            cut.append(f"{footage.source} ({length:.1f} s, asked about to {footage.end:g} s)")
    if cut:
        yield Finding("warning", where, f"{len(cut)} questions end past their video, and are cut to it: {_some(cut)}")
