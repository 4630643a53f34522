"""Pictures and videos by content hash: what is remembered about a file, until when, and what is turned."""

from __future__ import annotations

import hashlib
import io
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from PIL import Image as Pillow

from memharness.media import MediaStore, home, tree_digest
from memharness.types import DataError, Image, UserError

ORIENTATION = 0x0112


@pytest.fixture
def store(tmp_path: Path) -> MediaStore:
    """A store with an index of its own."""
    return MediaStore(tmp_path / "index" / "files.sqlite")


def picture(path: Path, size: tuple[int, int] = (4, 2), orientation: int = 1) -> Path:
    """A picture whose first pixel is red, the rest blue."""
    made = Pillow.new("RGB", size, "blue")
    made.putpixel((0, 0), (255, 0, 0))
    exif = Pillow.Exif()
    exif[ORIENTATION] = orientation
    made.save(path, exif=exif)
    return path


def sha(path: Path) -> str:
    """The digest of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


# ------------------------------------------------------------------------------------------------------------ pictures


def test_a_picture_is_its_content(tmp_path: Path, store: MediaStore) -> None:
    path = picture(tmp_path / "a.png")
    found = store.image(path, "images/a.png", "data.json: record 1: image")
    assert found == Image(sha(path), "image/png", 4, 2, "images/a.png")
    assert store.path(found) == path
    assert not found.missing


# Corner of the first pixel after turning, by EXIF orientation: 1 stays, 3 half a turn, 6 and 8 quarter turns …
CORNERS = {1: (0, 0), 2: (3, 0), 3: (3, 1), 4: (0, 1), 5: (0, 0), 6: (1, 0), 7: (1, 3), 8: (0, 3)}


@pytest.mark.parametrize("orientation", CORNERS)
def test_exif_turns_pixels_and_size_alike(tmp_path: Path, store: MediaStore, orientation: int) -> None:
    found = store.image(picture(tmp_path / "a.png", orientation=orientation), "a.png", "w")
    shown = store.open(found)
    assert shown.size == (found.width, found.height) == ((2, 4) if orientation >= 5 else (4, 2))
    assert shown.mode == "RGB"
    assert shown.getpixel(CORNERS[orientation]) == (255, 0, 0)


def test_pictures_of_other_modes_are_shown_as_rgb(tmp_path: Path, store: MediaStore) -> None:
    Pillow.new("P", (3, 3)).save(tmp_path / "a.gif")
    found = store.image(tmp_path / "a.gif", "a.gif", "w")
    assert found.mime == "image/gif"
    assert store.open(found).mode == "RGB"


def test_a_missing_picture_is_no_error_until_it_is_wanted(tmp_path: Path, store: MediaStore) -> None:
    found = store.image(tmp_path / "a.jpg", "images/a.jpg", "w")
    assert found == Image(None, source="images/a.jpg")
    assert found.missing
    for wanted in (store.path, store.open):
        with pytest.raises(DataError, match=r"images/a.jpg: the file is not at hand; .* --view captions"):
            wanted(found)
    with pytest.raises(DataError, match="00ff: the file is not at hand"):
        store.path(Image("00ff"))


@pytest.mark.parametrize("content", [b"", b"not a picture", b"\x89PNG\r\n\x1a\n" + b"\0" * 40])
def test_a_file_that_is_no_picture(tmp_path: Path, store: MediaStore, content: bytes) -> None:
    (tmp_path / "a.jpg").write_bytes(content)
    with pytest.raises(DataError, match=r"data.json: record 3: image: .*a.jpg is not a readable picture"):
        store.image(tmp_path / "a.jpg", "a.jpg", "data.json: record 3: image")


def test_a_picture_cut_short_is_named_when_it_is_opened(tmp_path: Path, store: MediaStore) -> None:
    path = picture(tmp_path / "a.jpg", (256, 256))
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(DataError, match=r"a.jpg: cannot be decoded as a picture .* fetch it again"):
        store.open(store.image(path, "a.jpg", "w"))


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize("left", [0.3, 0.7, 0.97])
def test_a_picture_cut_short_inside_a_data_file_is_not_kept(
    tmp_path: Path, store: MediaStore, monkeypatch: pytest.MonkeyPatch, kind: str, left: float
) -> None:
    monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path / "home"))
    out = io.BytesIO()
    Pillow.effect_noise((120, 90), 80).convert("RGB").save(out, kind)
    whole = out.getvalue()
    with pytest.raises(DataError, match=r"data.tsv: record 2: image: .*(cut short|not a readable picture)") as error:
        store.keep(whole[: int(len(whole) * left)], "7", "data.tsv: record 2: image")
    assert "0x" not in str(error.value)  # no address of an object, which says nothing and differs each time
    assert not list((tmp_path / "home").rglob("media/*/*"))
    assert store.open(store.keep(whole, "7", "w")).size == (120, 90)


def test_bytes_of_no_kind_of_picture_are_named_alike_each_time(store: MediaStore) -> None:
    with pytest.raises(DataError, match=r"record 2: image: is not a readable picture \(of no known kind\); fetch"):
        store.keep(b"junk", "7", "data.tsv: record 2: image")


def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, store: MediaStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, *_: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    path = picture(tmp_path / "a.png")
    monkeypatch.setattr(Path, "open", refuse)
    for read in (lambda: store.digest(path), lambda: store.image(path, "a.png", "w")):
        with pytest.raises(DataError, match=r"a.png: cannot be read \(Permission denied\); fetch it again or make it"):
            read()


def test_a_picture_too_large_to_decode_is_a_fault_of_the_data(
    tmp_path: Path, store: MediaStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = picture(tmp_path / "a.png", (64, 64))
    monkeypatch.setattr(Pillow, "MAX_IMAGE_PIXELS", 1000)
    with pytest.raises(DataError, match="not a readable picture"):
        store.image(path, "a.png", "w")


def test_a_video_is_not_decoded(tmp_path: Path, store: MediaStore) -> None:
    (tmp_path / "a.MP4").write_bytes(b"film")
    found = store.video(tmp_path / "a.MP4", "v/a.MP4", width=640, height=480, seconds=2.5)
    assert found.sha256 == hashlib.sha256(b"film").hexdigest()
    assert (found.mime, found.width, found.height, found.seconds) == ("video/mp4", 640, 480, 2.5)
    assert store.path(found) == tmp_path / "a.MP4"
    gone = store.video(tmp_path / "b.mp4", "v/b.mp4", seconds=3.0)
    assert gone.missing
    assert (gone.source, gone.seconds) == ("v/b.mp4", 3.0)


# ------------------------------------------------------------------------------------------------ remembered digests


def swap(path: Path, content: bytes) -> None:
    """Other bytes of the same size and time, which nobody can see without reading them."""
    stat = path.stat()
    assert len(content) == stat.st_size
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_a_digest_is_remembered_across_stores_until_size_or_time_change(tmp_path: Path) -> None:
    index, path = tmp_path / "files.sqlite", tmp_path / "a.json"
    path.write_bytes(b"one")
    first = MediaStore(index).digest(path)
    swap(path, b"two")
    assert MediaStore(index).digest(path) == first  # so it was not read again
    os.utime(path, ns=(1, 1))
    assert MediaStore(index).digest(path) == sha(path) != first
    before = path.stat()
    path.write_bytes(b"three")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert MediaStore(index).digest(path) == sha(path)


def test_a_digest_without_a_size_is_no_picture_yet(tmp_path: Path, store: MediaStore) -> None:
    path = picture(tmp_path / "a.png")
    assert store.digest(path) == sha(path)
    assert store.image(path, "a.png", "w").width == 4
    assert store.digest(path) == sha(path)


def test_one_file_under_two_names_is_remembered_once(tmp_path: Path, store: MediaStore) -> None:
    path = picture(tmp_path / "a.png")
    (tmp_path / "b.png").symlink_to(path)
    found = store.image(tmp_path / "b.png", "b.png", "w")
    assert found.sha256 == sha(path)
    assert store.path(found).read_bytes() == path.read_bytes()


def test_an_index_that_is_none_is_named(tmp_path: Path) -> None:
    index, path = tmp_path / "files.sqlite", tmp_path / "a"
    index.write_bytes(b"not a database at all, but long enough to be looked at" * 40)
    path.write_bytes(b"x")
    with pytest.raises(UserError, match=r"files\.sqlite"):
        MediaStore(index).digest(path)


def test_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMHARNESS_HOME", "/one")
    assert home() == Path("/one")
    monkeypatch.setenv("MEMHARNESS_HOME", "")
    monkeypatch.setenv("XDG_CACHE_HOME", "/two")
    assert home() == Path("/two/memharness")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert home() == Path.home() / ".cache/memharness"


# --------------------------------------------------------------------------------------------------------------- trees


def test_a_tree_is_its_data_files_by_relative_name(tmp_path: Path, store: MediaStore) -> None:
    data = tmp_path / "data"
    for name in ("b.json", "a/a.json", "PREPARED.json", "a/PREPARED.json", ".hidden", ".cache/x.json", "a/.git/y"):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_text(name)
    assert tree_digest(data, store) == {name: sha(data / name) for name in ("a/a.json", "b.json")}
    assert tree_digest(data / "b.json", store) == {"b.json": sha(data / "b.json")}


def test_a_hidden_folder_above_the_data_hides_nothing(tmp_path: Path, store: MediaStore) -> None:
    data = tmp_path / ".cache" / "data"
    data.mkdir(parents=True)
    (data / "a.json").write_text("a")
    assert list(tree_digest(data, store)) == ["a.json"]


def test_many_threads_share_a_store(tmp_path: Path, store: MediaStore) -> None:
    files = [picture(tmp_path / f"{n}.png", (n % 7 + 1, 3)) for n in range(120)]
    with ThreadPoolExecutor(8) as threads:
        seen = list(threads.map(lambda file: store.image(file, file.name, "w"), files * 4))
        kept = list(threads.map(lambda file: store.keep(file.read_bytes(), file.name, "w"), files[:7] * 20))
    assert [image.width for image in seen] == [n % 7 + 1 for n in range(120)] * 4
    assert all(store.path(image).read_bytes() == files[n % 7].read_bytes() for n, image in enumerate(kept))


def test_a_hash_is_found_again_by_another_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path / "home"))
    path = picture(tmp_path / "a.png")
    seen = MediaStore().image(path, "a.png", "w")
    kept = MediaStore().keep(picture(tmp_path / "b.png", (3, 3)).read_bytes(), "b.png", "w")
    (tmp_path / "b.png").unlink()
    later = MediaStore()
    assert later.path(seen) == path
    assert later.open(kept).size == (3, 3)
    picture(path, (9, 9))  # changed since: no file is known to hold those bytes any more
    with pytest.raises(DataError, match="not at hand"):
        MediaStore().path(seen)
    with pytest.raises(DataError, match="not at hand"):
        MediaStore().path(Image("0" * 64, source="never"))
