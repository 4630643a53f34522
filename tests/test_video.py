"""Frames of videos: which ones, that they are the same each time and never another file's, and every way to fail."""

from __future__ import annotations

import builtins
import shutil
import struct
import threading
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pillow

from memharness import video
from memharness.media import MediaStore
from memharness.types import DataError, UserError
from memharness.video import Clip, Frame, frames, natural, seconds

av = pytest.importorskip("av")
WHERE = "q.json: record 0: video"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MediaStore:
    """A store, with kept frames in a folder of their own."""
    monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path / "home"))
    return MediaStore()


def film(
    path: Path,
    greys: Sequence[int],
    *,
    rate: int = 4,
    codec: str = "mpeg4",
    size: tuple[int, int] = (64, 48),
    options: dict[str, str] | None = None,
    first: int = 0,
) -> Path:
    """A video with one flat grey a frame."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as out:
        track = out.add_stream(codec, rate=rate, options=options or {"qscale": "2"})
        track.width, track.height, track.pix_fmt = *size, "bgr0" if codec == "ffv1" else "yuv420p"
        for place, grey in enumerate(greys):
            frame = av.VideoFrame.from_image(Pillow.new("RGB", size, (grey,) * 3))
            frame.pts, frame.time_base = place + first, Fraction(1, rate)
            out.mux(track.encode(frame))
        out.mux(track.encode())
    return path


def greys(store: MediaStore, found: Sequence[Frame]) -> list[int]:
    """The grey of each frame, to the nearest ten."""
    shown = [store.open(frame.image).getpixel((20, 20))[0] for frame in found]  # type: ignore[index]
    return [round(grey / 10) * 10 for grey in shown]


RAMP = [10 * n for n in range(1, 25)]  # 24 frames: 10, 20 … 240


# ------------------------------------------------------------------------------------------------------------- which


def test_middles_of_equal_segments(tmp_path: Path, store: MediaStore) -> None:
    path = film(tmp_path / "a.mp4", RAMP)  # 6 s, 4 frames a second
    found = frames(store, path, Clip(4), "v/a.mp4", WHERE)
    assert [frame.seconds for frame in found] == [0.75, 2.25, 3.75, 5.25]
    assert greys(store, found) == [40, 100, 160, 220]  # frames 3, 9, 15 and 21 of 0 … 23
    assert found[0].image.source == "v/a.mp4@0.750s"
    assert (found[0].image.mime, found[0].image.width, found[0].image.height) == ("image/jpeg", 64, 48)


def test_bounds_are_seconds(tmp_path: Path, store: MediaStore) -> None:
    path = film(tmp_path / "a.mp4", RAMP)
    assert greys(store, frames(store, path, Clip(2, start=2.0, end=4.0), "a", WHERE)) == [110, 150]
    assert greys(store, frames(store, path, Clip(1, start=4.0), "a", WHERE)) == [210]  # to the end
    assert greys(store, frames(store, path, Clip(1, end=2.0), "a", WHERE)) == [50]  # from the beginning


@pytest.mark.parametrize(
    ("name", "codec", "options"),
    [
        ("a.mp4", "libx264", {"g": "12", "bf": "3", "crf": "10"}),
        ("a.mkv", "ffv1", {}),
        ("a.avi", "mpeg4", {"qscale": "2", "bf": "2", "g": "12"}),
        ("a.webm", "libvpx-vp9", {"crf": "10", "b": "0", "g": "30"}),
    ],
)
def test_seeking_finds_what_decoding_from_the_start_finds(
    tmp_path: Path, store: MediaStore, monkeypatch: pytest.MonkeyPatch, name: str, codec: str, options: dict[str, str]
) -> None:
    if codec not in av.codecs_available:
        pytest.skip(f"this PyAV has no encoder {codec}")
    path = film(tmp_path / name, [10 * (1 + n % 24) for n in range(240)], rate=4, codec=codec, options=options)
    sought = frames(store, path, Clip(4), name, WHERE)  # 15 s apart: past JUMP
    assert [frame.seconds for frame in sought] == pytest.approx([7.5, 22.5, 37.5, 52.5], abs=0.2)
    monkeypatch.setattr(video, "JUMP", 1e9)
    monkeypatch.setattr(video, "SAMPLER", -1)
    straight = frames(store, path, Clip(4), name, WHERE)
    assert [frame.image.sha256 for frame in sought] == [frame.image.sha256 for frame in straight]
    assert greys(store, straight) == [10 * (1 + int(frame.seconds * 4 + 1e-6) % 24) for frame in straight]


def test_a_track_that_starts_late_is_counted_from_its_start(tmp_path: Path, store: MediaStore) -> None:
    late = film(tmp_path / "late.mp4", RAMP, first=8)
    assert greys(store, frames(store, late, Clip(4), "a", WHERE)) == [40, 100, 160, 220]


def test_a_file_without_a_stated_length_is_measured(tmp_path: Path, store: MediaStore) -> None:
    path = tmp_path / "live.mkv"
    with av.open(str(path), "w", format="matroska", options={"live": "1"}) as out:
        track = out.add_stream("ffv1", rate=4)
        track.width, track.height, track.pix_fmt = 64, 48, "bgr0"
        for place, grey in enumerate(RAMP):
            frame = av.VideoFrame.from_image(Pillow.new("RGB", (64, 48), (grey,) * 3))
            frame.pts, frame.time_base = place, Fraction(1, 4)
            out.mux(track.encode(frame))
        out.mux(track.encode())
    with av.open(str(path)) as opened:
        assert not opened.duration and not opened.streams.video[0].duration
    assert seconds(path, WHERE) == pytest.approx(6.0, abs=0.05)
    assert greys(store, frames(store, path, Clip(4), "a", WHERE)) == [40, 100, 160, 220]


def test_a_frame_is_turned_as_the_header_says(tmp_path: Path, store: MediaStore) -> None:
    path = tmp_path / "a.mp4"
    with av.open(str(path), "w") as out:
        track = out.add_stream("mpeg4", rate=4, options={"qscale": "2"})
        track.width, track.height, track.pix_fmt = 64, 48, "yuv420p"
        picture = Pillow.new("RGB", (64, 48), "black")
        picture.paste("white", (0, 0, 32, 48))  # white on the left
        frame = av.VideoFrame.from_image(picture)
        frame.pts, frame.time_base = 0, Fraction(1, 4)
        out.mux(track.encode(frame))
        out.mux(track.encode())
    (lying,) = frames(store, path, Clip(1), "a", WHERE)
    assert (lying.image.width, lying.image.height) == (64, 48)
    body = bytearray(path.read_bytes())
    matrix = body.index(b"tkhd") + 4 + 40
    one = 1 << 16
    body[matrix : matrix + 36] = struct.pack(">9i", 0, one, 0, -one, 0, 0, 48 * one, 0, 1 << 30)  # a quarter, clockwise
    path.write_bytes(body)
    (upright,) = frames(store, path, Clip(1), "a", WHERE)
    assert (upright.image.width, upright.image.height) == (48, 64)
    shown = store.open(upright.image)
    assert shown.getpixel((24, 5))[0] > 200 > 50 > shown.getpixel((24, 60))[0]  # type: ignore[index]


@pytest.mark.parametrize(
    ("limits", "size"),
    [
        ({"max_side": 32}, (32, 24)),
        ({"max_pixels": 768}, (32, 24)),
        ({"max_side": 640, "max_pixels": 10**6}, (64, 48)),
        ({"max_side": 32, "max_pixels": 192}, (16, 12)),
    ],
)
def test_frames_are_made_smaller_never_larger(
    tmp_path: Path, store: MediaStore, limits: dict[str, int], size: tuple[int, int]
) -> None:
    (found,) = frames(store, film(tmp_path / "a.mp4", RAMP), Clip(1, **limits), "a", WHERE)
    assert (found.image.width, found.image.height) == size
    assert store.open(found.image).size == size


@given(st.integers(1, 4000), st.integers(1, 4000), st.none() | st.integers(1, 3000), st.none() | st.integers(1, 10**6))
def test_size_holds_both_limits_and_the_shape(width: int, height: int, side: int | None, pixels: int | None) -> None:
    new = Clip(1, max_side=side, max_pixels=pixels).size(width, height)
    assert 1 <= new[0] <= width and 1 <= new[1] <= height
    assert side is None or max(new) <= side
    assert pixels is None or new[0] * new[1] <= max(pixels, max(new))  # a line of one pixel cannot get thinner
    if min(new) > 20:
        assert new[0] / new[1] == pytest.approx(width / height, rel=0.06)


@given(st.integers(1, 64), st.floats(0, 50), st.floats(0.1, 50), st.floats(1, 200))
def test_times_lie_inside_bounds_and_in_order(count: int, start: float, span: float, length: float) -> None:
    clip = Clip(count, start, start + span, beyond="cut")
    if start >= length:
        with pytest.raises(DataError, match="shorter than its bounds"):
            clip.times(length, WHERE)
        return
    times = clip.times(length, WHERE)
    assert len(times) == count and times == sorted(times)
    assert start <= times[0] and times[-1] <= min(start + span, length)


# --------------------------------------------------------------------------------------------------------- the cache


def test_frames_are_decoded_once(tmp_path: Path, store: MediaStore, monkeypatch: pytest.MonkeyPatch) -> None:
    path = film(tmp_path / "a.mp4", RAMP)
    first = frames(store, path, Clip(3), "a", WHERE)

    def never(*_: object) -> Any:
        raise AssertionError("decoded again")

    monkeypatch.setattr(video, "_from_file", never)
    assert frames(store, path, Clip(3), "a", WHERE) == first
    assert frames(MediaStore(), path, Clip(3), "a", WHERE) == first  # another process


def test_equal_names_never_share_frames(tmp_path: Path, store: MediaStore) -> None:
    one = film(tmp_path / "clevrer" / "video_10009.mp4", [50] * 8)
    two = film(tmp_path / "perception" / "video_10009.mp4", [200] * 8)
    clip = Clip(2)
    assert greys(store, frames(store, one, clip, "video_10009.mp4", WHERE)) == [50, 50]
    assert greys(store, frames(store, two, clip, "video_10009.mp4", WHERE)) == [200, 200]
    assert greys(store, frames(store, one, clip, "video_10009.mp4", WHERE)) == [50, 50]


def test_two_cuts_counts_and_sizes_of_one_file_never_share_frames(tmp_path: Path, store: MediaStore) -> None:
    path = film(tmp_path / "a.mp4", RAMP)
    clips = [Clip(2), Clip(2, 0, 3), Clip(2, 3, 6), Clip(3), Clip(2, max_side=32), Clip(2, max_pixels=900)]
    found = [tuple(frame.image.sha256 for frame in frames(store, path, clip, "a", WHERE)) for clip in clips]
    assert len(set(found)) == len(clips)


def test_a_file_that_was_replaced_gives_its_own_frames(tmp_path: Path, store: MediaStore) -> None:
    path = film(tmp_path / "a.mp4", [50] * 8)
    assert greys(store, frames(store, path, Clip(1), "a", WHERE)) == [50]
    film(path, [200] * 9)
    assert greys(store, frames(store, path, Clip(1), "a", WHERE)) == [200]


def test_half_cleaned_frames_are_made_again(tmp_path: Path, store: MediaStore) -> None:
    path = film(tmp_path / "a.mp4", RAMP)
    first = frames(store, path, Clip(3), "a", WHERE)
    store.path(first[1].image).unlink()
    assert frames(store, path, Clip(3), "a", WHERE) == first
    assert store.path(first[1].image).is_file()
    assert not list((tmp_path / "home" / "frames").rglob(".*"))  # nothing half-made stays


def test_many_threads_ask_for_one_video(tmp_path: Path, store: MediaStore) -> None:
    path = film(tmp_path / "a.mp4", RAMP)
    found: list[list[Frame]] = []
    threads = [
        threading.Thread(target=lambda: found.append(frames(store, path, Clip(3), "a", WHERE))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6 and all(one == found[0] for one in found)


def test_a_disk_that_refuses_is_named(tmp_path: Path, store: MediaStore) -> None:
    path = film(tmp_path / "a.mp4", RAMP)
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home" / "frames").write_text("a file where a folder should be")
    with pytest.raises(UserError, match="frames"):
        frames(store, path, Clip(3), "a", WHERE)


# ---------------------------------------------------------------------------------------------------- frame folders


def stills(folder: Path, shades: Sequence[int], name: str = "{:05d}.jpg", first: int = 1) -> Path:
    """A folder of frames, numbered."""
    folder.mkdir(parents=True)
    for place, grey in enumerate(shades, first):
        Pillow.new("RGB", (64, 48), (grey,) * 3).save(folder / name.format(place), quality=95)
    return folder


def test_a_folder_of_frames_is_a_video_of_its_rate(tmp_path: Path, store: MediaStore) -> None:
    folder = stills(tmp_path / "s01e02", RAMP, name="{}.jpg")  # 1.jpg … 10.jpg … 24.jpg: 8 s at 3 a second
    assert seconds(folder, WHERE, rate=3.0) == 8.0
    found = frames(store, folder, Clip(4), "tvqa/s01e02", WHERE, rate=3.0)
    assert [frame.seconds for frame in found] == [1.0, 3.0, 5.0, 7.0]
    assert greys(store, found) == [40, 100, 160, 220]
    assert found[1].image.source == "tvqa/s01e02/10.jpg"
    assert greys(store, frames(store, folder, Clip(2, 2.0, 4.0), "a", WHERE, rate=3.0)) == [80, 110]
    (small,) = frames(store, folder, Clip(1, max_side=16), "a", WHERE, rate=3.0)
    assert (small.image.width, small.image.height) == (16, 12)


def test_natural_order() -> None:
    names = ["f10.jpg", "f2.jpg", "f1.jpg", "f1b.jpg", "10.jpg", "9.jpg", "a1x20.png", "a1x3.png"]
    assert sorted(names, key=natural) == [
        "9.jpg", "10.jpg", "a1x3.png", "a1x20.png", "f1.jpg", "f1b.jpg", "f2.jpg", "f10.jpg",
    ]  # fmt: skip


def test_a_folder_with_a_hole_or_nothing_is_refused(tmp_path: Path, store: MediaStore) -> None:
    folder = stills(tmp_path / "a", RAMP)
    (folder / "00007.jpg").unlink()
    with pytest.raises(DataError, match=r"q\.json.*frame 8 comes after frame 6"):
        frames(store, folder, Clip(2), "a", WHERE, rate=3.0)
    (tmp_path / "b").mkdir()
    with pytest.raises(DataError, match="holds no frame"):
        frames(store, tmp_path / "b", Clip(2), "a", WHERE, rate=3.0)
    (folder / "00007.jpg").write_bytes(b"no picture")
    with pytest.raises(DataError, match="not a readable picture"):
        frames(store, folder, Clip(24), "a", WHERE, rate=3.0)


# ----------------------------------------------------------------------------------------------------------- faults


def test_a_folder_where_a_file_is_meant(tmp_path: Path, store: MediaStore) -> None:
    folder = stills(tmp_path / "a.mp4", RAMP)
    with pytest.raises(DataError, match="no such video"):
        frames(store, folder, Clip(2), "a", WHERE)
    with pytest.raises(DataError, match="cannot be decoded as a video"):
        seconds(folder, WHERE)


def test_a_missing_video_is_named(tmp_path: Path, store: MediaStore) -> None:
    with pytest.raises(DataError, match=r"q\.json: record 0: video: .*gone\.mp4: no such video; fetch it"):
        frames(store, tmp_path / "gone.mp4", Clip(2), "a", WHERE)


@pytest.mark.parametrize(
    ("clip", "words"),
    [
        (Clip(2, 2.0, 9.0), "is 6.00 s long, shorter than its bounds 2 to 9 s"),
        (Clip(2, 7.0, 9.0), "shorter than its bounds"),
        (Clip(2, 7.0, 9.0, beyond="cut"), "shorter than its bounds"),
        (Clip(2, 3.0, 3.0), "the bounds 3 to 3 s hold nothing"),
        (Clip(2, 4.0, 3.0), "hold nothing"),
        (Clip(2, -1.0, 3.0), "hold nothing"),
    ],
)
def test_bounds_outside_the_video_are_refused(tmp_path: Path, store: MediaStore, clip: Clip, words: str) -> None:
    path = film(tmp_path / "a.mp4", RAMP)
    with pytest.raises(DataError) as error:
        frames(store, path, clip, "a", WHERE)
    assert words in str(error.value) and WHERE in str(error.value)


def test_an_end_past_the_video_can_be_cut(tmp_path: Path, store: MediaStore) -> None:
    path = film(tmp_path / "a.mp4", RAMP)
    assert greys(store, frames(store, path, Clip(2, 4.0, 9.0, beyond="cut"), "a", WHERE)) == [190, 230]
    assert len(frames(store, path, Clip(2, 4.0, 6.4), "a", WHERE)) == 2  # rounding is no fault


@pytest.mark.parametrize(
    "spoil",
    [
        lambda body: b"",
        lambda body: b"this is no video",
        lambda body: body[: len(body) // 2],  # the index of an mp4 file stands at its end
        lambda body: b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 2\n",
    ],
)
def test_what_is_no_video_is_refused(tmp_path: Path, store: MediaStore, spoil: Callable[[bytes], bytes]) -> None:
    path = film(tmp_path / "a.mp4", RAMP)
    path.write_bytes(spoil(path.read_bytes()))
    for look in (lambda: frames(store, path, Clip(2), "a", WHERE), lambda: seconds(path, WHERE)):
        with pytest.raises(DataError, match=r"q\.json: record 0: video: .*a\.mp4: cannot be decoded as a video.*fetch"):
            look()


def test_a_file_that_breaks_off_is_refused_not_padded(tmp_path: Path, store: MediaStore) -> None:
    path = film(tmp_path / "a.mkv", RAMP * 2, codec="ffv1", options={}, size=(160, 120))  # 12 s, its length up front
    body = path.read_bytes()
    path.write_bytes(body[: len(body) // 2])
    assert len(frames(store, path, Clip(2, 0, 4), "a", WHERE)) == 2  # what is there can be seen
    with pytest.raises(DataError, match=r"its pictures end at .* the file is cut off|cannot be decoded"):
        frames(store, path, Clip(4), "a", WHERE)


def test_sound_alone_is_no_video(tmp_path: Path, store: MediaStore) -> None:
    path = tmp_path / "a.wav"
    with av.open(str(path), "w") as out:
        track = out.add_stream("pcm_s16le", rate=8000)
        frame = av.AudioFrame(format="s16", layout="mono", samples=800)
        frame.rate = 8000
        frame.planes[0].update(bytes(1600))
        out.mux(track.encode(frame))
        out.mux(track.encode())
    with pytest.raises(DataError, match="holds no video track"):
        frames(store, path, Clip(2), "a", WHERE)


def test_without_pyav_the_remedy_is_named(tmp_path: Path, store: MediaStore, monkeypatch: pytest.MonkeyPatch) -> None:
    path = film(tmp_path / "a.mp4", RAMP)
    shutil.rmtree(tmp_path / "home", ignore_errors=True)
    imported = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "av":
            raise ImportError(name)
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    for look in (lambda: frames(store, path, Clip(2), "a", WHERE), lambda: seconds(path, WHERE)):
        with pytest.raises(UserError, match=r"pip install memharness-bench\[video\]"):
            look()
