"""Frames of a video: the same ones each time they are asked for, kept under a key of what they show."""

from __future__ import annotations

import itertools
import math
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from memharness.identity import digest
from memharness.media import MediaStore, home
from memharness.store import disk_error
from memharness.types import DataError, Image, UserError

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

SAMPLER = 1
"""Raised by hand when the same request would give other frames: a part of every key."""
SLACK = 0.5
"""Seconds by which a bound may pass the end: annotations and file headers round differently."""
TORN = 2.0
"""Seconds before its stated end at which a track may stop and still be whole."""
JUMP = 10.0
"""Seconds ahead from which seeking beats decoding on."""
PICTURES = (".jpg", ".jpeg", ".png", ".webp")

_decoding = threading.Lock()  # of two questions about one video, the second finds the frames of the first


@dataclass(frozen=True, slots=True)
class Clip:
    """Which frames are wanted: those on screen in the middle of `count` equal segments of [start, end].

    Attributes:
        count: number of frames.
        start: seconds from the beginning; None is the beginning.
        end: seconds from the beginning; None is the end.
        max_side: most pixels along the longer side; a larger frame is made smaller, in proportion.
        max_pixels: most pixels in all.
        beyond: an `end` past the video's own is refused, or cut to it. A `start` past it is always refused.
    """

    count: int
    start: float | None = None
    end: float | None = None
    max_side: int | None = None
    max_pixels: int | None = None
    beyond: Literal["refuse", "cut"] = "refuse"

    def times(self, length: float, where: str) -> list[float]:
        """The middle of each segment, in seconds, of a video that is `length` seconds long.

        Raises:
            DataError: if the bounds are empty, or lie outside the video.
        """
        start = 0.0 if self.start is None else self.start
        end = length if self.end is None else self.end
        if not 0 <= start < end:
            raise DataError(f"{where}: the bounds {start:g} to {end:g} s hold nothing; correct start and end")
        if start >= length or (self.beyond == "refuse" and end > length + SLACK):
            raise DataError(
                f"{where}: is {length:.2f} s long, shorter than its bounds {start:g} to {end:g} s; "
                "fetch the video again or correct the bounds"
            )
        span = min(end, length) - start
        return [start + span * (place + 0.5) / self.count for place in range(self.count)]

    def size(self, width: int, height: int) -> tuple[int, int]:
        """Width and height within the limits, in proportion, never larger than they are."""
        scale = 1.0
        if self.max_side is not None:
            scale = min(scale, self.max_side / max(width, height))
        if self.max_pixels is not None:
            scale = min(scale, math.sqrt(self.max_pixels / (width * height)))
        return (width, height) if scale == 1.0 else (max(1, int(width * scale)), max(1, int(height * scale)))


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame and the time it stands for, in seconds from the video's beginning."""

    seconds: float
    image: Image


def frames(store: MediaStore, path: Path, clip: Clip, source: str, where: str, *, rate: float = 0.0) -> list[Frame]:
    """The frames of a video file, or of a folder of frames, in order of time.

    They are decoded once and kept under `home()/frames`. The key is the digest of the file's bytes, the bounds, the
    count, the size and the sampler's version, so files of one name, and two cuts of one file, never share frames.

    Args:
        store: where frames are registered as pictures.
        path: the file or folder.
        clip: which frames.
        source: the name the data gives the video.
        where: file, record and field that name it, for errors.
        rate: frames a second of a folder of frames.

    Raises:
        DataError: if the video is missing, cannot be decoded, ends before it should, or is shorter than its bounds.
        UserError: if PyAV is not installed, or the disk refuses.
    """
    if path.is_dir() and rate:
        return _from_folder(store, path, clip, source, where, rate)
    if not path.is_file():
        raise DataError(f"{where}: {path}: no such video; fetch it, see the steps on the benchmark's card")
    key = digest(
        {
            "file": store.digest(path),
            "bounds": [clip.start, clip.end, clip.beyond],
            "count": clip.count,
            "size": [clip.max_side, clip.max_pixels],
            "sampler": SAMPLER,
        }
    )
    kept = _kept(key, clip.count, lambda: _from_file(path, clip, where))
    return [Frame(at, store.image(file, f"{source}@{at:.3f}s", where)) for at, file in kept]


def seconds(path: Path, where: str, *, rate: float = 0.0) -> float:
    """How long a video file or a folder of frames is, by its header or the number of its frames.

    Raises:
        DataError: if the file cannot be read as a video, or the folder holds no whole series of frames.
        UserError: if PyAV is not installed.
    """
    if path.is_dir() and rate:
        return len(_series(path, where)) / rate
    av = _pyav()
    try:
        with av.open(str(path)) as container:
            return _length(container, _track(container))
    except (av.error.FFmpegError, LookupError, ValueError) as error:
        raise _undecodable(path, where, error) from None


def natural(name: str) -> list[tuple[bool, int, str]]:
    """A sort key that takes digits as numbers: `f2` comes before `f10`."""
    return [(piece.isdigit(), int(piece) if piece.isdigit() else 0, piece) for piece in re.split(r"(\d+)", name)]


# ------------------------------------------------------------------------------------------------------------ kept


def _kept(key: str, count: int, make: Callable[[], Iterable[tuple[float, Picture]]]) -> list[tuple[float, Path]]:
    """Time and file of each frame under a key, made if they are not all there."""
    folder = home() / "frames" / key[:2] / key
    found = _listed(folder)
    if len(found) == count:
        return found
    with _decoding:
        if len(_listed(folder)) != count:
            _write(folder, count, make())
        return _listed(folder)


def _listed(folder: Path) -> list[tuple[float, Path]]:
    """The kept frames: `0003@12.480.jpg` is the fourth, of 12.48 s."""
    return [(float(file.stem.partition("@")[2]), file) for file in sorted(folder.glob("[0-9]*@*.jpg"))]


def _write(folder: Path, count: int, pictures: Iterable[tuple[float, Picture]]) -> None:
    """Write frames into a folder that appears whole or not at all; several processes may write the same one."""
    temporary = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".", dir=folder.parent))
        for place, (at, picture) in enumerate(pictures):
            # Full colour resolution and hardly any loss: a reader sees what the video shows.
            picture.save(temporary / f"{place:04d}@{at:.3f}.jpg", "JPEG", quality=95, subsampling=0)
        try:
            temporary.rename(folder)
        except OSError:
            if (
                len(_listed(folder)) != count
            ):  # what is left of one that was cleaned up by half; else one who was faster
                shutil.rmtree(folder, ignore_errors=True)
                temporary.rename(folder)
    except OSError as error:
        raise disk_error(error, folder) from None
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


# ---------------------------------------------------------------------------------------------------------- folders


def _from_folder(store: MediaStore, folder: Path, clip: Clip, source: str, where: str, rate: float) -> list[Frame]:
    files = _series(folder, where)
    out = []
    for at in clip.times(len(files) / rate, where):
        file = files[min(int(at * rate), len(files) - 1)]
        image = store.image(file, f"{source}/{file.name}", where)
        if (size := clip.size(image.width, image.height)) != (image.width, image.height):
            image = _smaller(store, image, size, where)
        out.append(Frame(at, image))
    return out


def _smaller(store: MediaStore, image: Image, size: tuple[int, int], where: str) -> Image:
    def make() -> Iterator[tuple[float, Picture]]:
        yield 0.0, _resized(store.open(image), size)

    key = digest({"file": image.sha256, "size": list(size), "sampler": SAMPLER})
    ((_, file),) = _kept(key, 1, make)
    return store.image(file, image.source, where)


def _series(folder: Path, where: str) -> list[Path]:
    """The frames of a folder in order of their numbers.

    Raises:
        DataError: if there is none, or a number is left out.
    """
    names = sorted((f for f in folder.iterdir() if f.suffix.lower() in PICTURES), key=lambda file: natural(file.name))
    if not names:
        raise DataError(f"{where}: {folder}: holds no frame; fetch the frames, see the steps on the benchmark's card")
    numbers = [int(found[-1]) for file in names if (found := re.findall(r"\d+", file.stem))]
    for before, number in itertools.pairwise(numbers):
        if number != before + 1:
            raise DataError(
                f"{where}: {folder}: frame {number} comes after frame {before}; every frame must be there once, or "
                "all later ones stand for the wrong time: fetch the frames again"
            )
    return names


# ------------------------------------------------------------------------------------------------------------ files


def _from_file(path: Path, clip: Clip, where: str) -> Iterator[tuple[float, Picture]]:
    av = _pyav()
    try:
        with av.open(str(path)) as container:
            track = _track(container)
            track.thread_type = "AUTO"
            length = _length(container, track)
            times = clip.times(length, where)
            for at, frame in zip(times, _on_screen(container, track, times, where), strict=True):
                picture: Picture = frame.to_image()
                if frame.rotation:  # filmed upright, stored lying: the header says how to turn it
                    picture = picture.rotate(frame.rotation, expand=True)
                yield at, _resized(picture, clip.size(*picture.size))
    except (av.error.FFmpegError, LookupError, ValueError) as error:
        raise _undecodable(path, where, error) from None


def _on_screen(container: Any, track: Any, times: Iterable[float], where: str) -> Iterator[Any]:
    """The frame on screen at each time: the last that begins at or before it. The first frame begins at 0."""
    decoded: Iterator[Any] = container.decode(track)
    shown = following = next(decoded, None)
    if shown is None:
        raise ValueError("no frame in its video track")
    first = _stamp(shown)

    def begins(frame: Any) -> float:
        return float((_stamp(frame) - first) * track.time_base)

    for at in times:
        if at - begins(shown) > JUMP:
            decoded, shown = _seek(container, track, int(at / track.time_base) + first)
            if shown is None or begins(shown) > at:  # an index that leads past the time: decode from the beginning
                decoded, shown = _seek(container, track, first)
            if shown is None:
                raise ValueError(f"no frame can be found for {at:.2f} s")
            following = shown
        while following is not None and begins(following) <= at:
            shown, following = following, next(decoded, None)
        if following is None and at - (end := begins(shown) + float((shown.duration or 0) * track.time_base)) > TORN:
            raise DataError(
                f"{where}: its pictures end at {end:.2f} s, before the frame of {at:.2f} s that its header "
                "promises: the file is cut off; fetch it again"
            )
        yield shown


def _seek(container: Any, track: Any, stamp: int) -> tuple[Iterator[Any], Any]:
    """Decoding from the last key frame at or before a stamp, and the first frame it gives; None if it gives none."""
    container.seek(stamp, stream=track, backward=True)
    decoded: Iterator[Any] = container.decode(track)
    return decoded, next(decoded, None)


def _stamp(frame: Any) -> int:
    stamp = frame.pts if frame.pts is not None else frame.dts
    if stamp is None:
        raise ValueError("its frames carry no time stamps")
    return int(stamp)


def _length(container: Any, track: Any) -> float:
    """Seconds of the video track by its own header, the file's, or the last packet of a file that states neither."""
    import av

    if track.duration:
        length = float(track.duration * track.time_base)
    elif container.duration:
        length = float(container.duration / av.time_base)
    else:
        ends = [p.pts + (p.duration or 0) for p in container.demux(track) if p.pts is not None]
        if not ends:
            raise ValueError("no packet in its video track")
        container.seek(0)
        length = float((max(ends) - (track.start_time or 0)) * track.time_base)
    # Of some kinds of file what is left of them is measured, but the header still counts the frames.
    stated = float(track.frames / track.average_rate) if track.frames and track.average_rate else 0.0
    if stated > length + TORN:
        raise ValueError(f"it breaks off at {length:.2f} of {stated:.2f} s")
    return length


def _track(container: Any) -> Any:
    if not container.streams.video:
        raise ValueError("it holds no video track")
    return container.streams.video[0]


def _resized(picture: Picture, size: tuple[int, int]) -> Picture:
    from PIL import Image as Pillow

    return picture if picture.size == size else picture.resize(size, Pillow.Resampling.BICUBIC)


def _undecodable(path: Path, where: str, error: Exception) -> DataError:
    return DataError(f"{where}: {path}: cannot be decoded as a video ({error}); fetch it again")


def _pyav() -> Any:
    try:
        import av
    except ImportError:
        raise UserError("frames of a video need PyAV: pip install memharness-bench[video]") from None
    return av
