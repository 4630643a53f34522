"""Archives: unpacked where they lie, resumed, and never out of their folder or beyond their bounds."""

from __future__ import annotations

import contextlib
import io
import stat
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.cli import unpack as module
from memharness.cli.unpack import Member, is_archive, mark, unpack, unpacked
from memharness.types import UserError

FILES = {"top.json": b"{}", "deep/er/film.mp4": bytes(range(256)) * 50, "deep/empty.txt": b""}
SHA = "a" * 64


def nobody(done: int, whole: int | None) -> None:
    """Tell nobody."""


def pack(path: Path, files: dict[str, bytes] | None = None) -> Path:
    """An archive of these files, of the kind its name says."""
    files = FILES if files is None else files
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, body in files.items():
                packed.writestr(name, body)
        return path
    with tarfile.open(path, f"w:{path.suffix[1:].removeprefix('t').replace('ar', '')}") as tar:
        for name, body in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(body)
            tar.addfile(info, io.BytesIO(body))
    return path


def held(folder: Path) -> dict[str, bytes]:
    """The files of a folder, without archives and notes."""
    files = (file for file in folder.rglob("*") if file.is_file() and not file.name.startswith("."))
    return {str(file.relative_to(folder)): file.read_bytes() for file in files if not is_archive(file)}


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz", "a.tgz", "a.tar.bz2", "a.tar.xz", "a.txz"])
def test_every_kind_is_unpacked_beside_itself(tmp_path: Path, name: str) -> None:
    archive = pack(tmp_path / name)
    told: list[int] = []
    assert unpack(archive, SHA, lambda done, whole: told.append(done)) == len(FILES)
    assert held(tmp_path) == FILES
    assert told[-1] == sum(map(len, FILES.values()))
    assert unpacked(tmp_path) == set(FILES)
    assert not list(tmp_path.rglob("*.part"))


def test_what_is_whole_is_left_alone_and_what_was_lost_comes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = pack(tmp_path / "a.zip")
    unpack(archive, SHA, nobody)
    (tmp_path / "top.json").unlink()
    written = spied(monkeypatch)
    assert unpack(archive, SHA, nobody) == 3
    assert written == ["top.json"]
    assert unpack(archive, SHA, nobody) == 3
    assert written == ["top.json"]
    assert unpack(archive, "b" * 64, nobody) == 3  # another file of that name: all of it again
    assert len(written) == 4


@pytest.mark.parametrize("name", ["a.zip", "a.tar.xz"])
def test_a_killed_process_is_gone_on_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    archive = pack(tmp_path / name)
    whole = module._write

    def dies(archive: Path, member: Member, target: Path) -> None:
        if member.name == "deep/empty.txt":
            raise KeyboardInterrupt
        whole(archive, member, target)

    monkeypatch.setattr(module, "_write", dies)
    with pytest.raises(KeyboardInterrupt):
        unpack(archive, SHA, nobody)
    with mark(archive).open("a") as file:
        file.write('"torn')
    assert unpacked(tmp_path) == {"top.json", "deep/er/film.mp4"}
    monkeypatch.setattr(module, "_write", whole)
    written = spied(monkeypatch)
    assert unpack(archive, SHA, nobody) == 3
    assert written == ["deep/empty.txt"]
    assert held(tmp_path) == FILES


def spied(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what is written from now on."""
    written: list[str] = []
    whole = module._write

    def write(archive: Path, member: Member, target: Path) -> None:
        written.append(member.name)
        whole(archive, member, target)

    monkeypatch.setattr(module, "_write", write)
    return written


# ------------------------------------------------------------------------------------------------------------- attacks


@pytest.mark.parametrize("kind", ["a.zip", "a.tar"])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("../out.txt", "leads out"),
        ("deep/../../out.txt", "leads out"),
        ("/tmp/out.txt", "leads out"),
        ("..\\out.txt", "leads out"),
        ("C:/out.txt", "leads out"),
        ("PREPARED.json", "not a name it may use"),
        (".{kind}.unpacked", "not a name it may use"),
        ("{kind}", "not a name it may use"),
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, kind: str, name: str, message: str) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    with pytest.raises(UserError, match=message):
        unpack(pack(folder / kind, {"fine.txt": b"1", name.format(kind=kind): b"2"}), SHA, nobody)
    assert held(tmp_path) == {"in/fine.txt": b"1"}


names = st.lists(st.sampled_from(["..", ".", "a", "b", "/", "//", "\\", "C:", "\x01", "é"]), min_size=1, max_size=6)


@given(pieces=names)
def test_no_name_leads_out_of_the_folder(pieces: list[str]) -> None:
    name = "/".join(pieces)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "in"
        folder.mkdir()
        archive = folder / "a.tar"
        with contextlib.suppress(UserError):
            unpack(pack(archive, {name: b"x"}), SHA, nobody)
        assert list(Path(temporary).iterdir()) == [folder]
        assert not Path("/a").exists()


def linked_zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as packed:
        info = zipfile.ZipInfo("link")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        packed.writestr(info, "/etc/passwd")


def linked_tar(path: Path, kind: bytes = tarfile.SYMTYPE) -> None:
    with tarfile.open(path, "w") as tar:
        info = tarfile.TarInfo("link")
        info.type, info.linkname = kind, "/etc/passwd"
        tar.addfile(info)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("a.zip", linked_zip),
        ("a.tar", linked_tar),
        ("b.tar", lambda path: linked_tar(path, tarfile.LNKTYPE)),
        ("c.tar", lambda path: linked_tar(path, tarfile.FIFOTYPE)),
        ("d.tar", lambda path: linked_tar(path, tarfile.CHRTYPE)),
    ],
)
def test_links_and_devices_are_refused(tmp_path: Path, name: str, make: Callable[[Path], None]) -> None:
    make(tmp_path / name)
    with pytest.raises(UserError, match="is a link or device"):
        unpack(tmp_path / name, SHA, nobody)
    assert not (tmp_path / "link").exists()


@pytest.mark.parametrize("name", ["a.zip", "a.tar.xz"])
def test_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(module, "ALLOWANCE", 1 << 20)
    archive = pack(tmp_path / name, {f"{n}.bin": bytes(1 << 20) for n in range(8)})
    with pytest.raises(UserError, match="more than 200 times its own size"):
        unpack(archive, SHA, nobody)


def test_a_disk_without_room_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RESERVE", 1 << 62)
    with pytest.raises(UserError, match=r"no room on the disk to unpack top\.json"):
        unpack(pack(tmp_path / "a.zip"), SHA, nobody)


def lies(path: Path) -> None:
    """A zip whose member is longer than it states."""
    pack(path, {"x": b"12345678"})
    raw = path.read_bytes()
    path.write_bytes(raw.replace((8).to_bytes(4, "little"), (3).to_bytes(4, "little")))


def torn(path: Path) -> None:
    body = pack(path, {"x": bytes(range(256)) * 400}).read_bytes()
    path.write_bytes(body[: len(body) // 2])


def flipped(path: Path) -> None:
    body = bytearray(pack(path, {"x": bytes(range(256)) * 400}).read_bytes())
    body[60] ^= 0xFF
    path.write_bytes(bytes(body))


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("a.zip", lies),
        ("a.zip", torn),
        ("a.zip", flipped),
        ("a.tar.gz", torn),
        ("a.tar.gz", flipped),
        ("a.tar.bz2", torn),
        ("a.tar.xz", torn),
        ("a.tar.xz", flipped),
        ("a.tar", torn),
        ("a.tar", lambda path: path.write_bytes(b"no archive at all")),
    ],
)
def test_a_damaged_archive_is_said_and_nothing_half_made_is_left(
    tmp_path: Path, name: str, spoil: Callable[[Path], None]
) -> None:
    spoil(tmp_path / name)
    with pytest.raises(UserError, match="cannot be unpacked"):
        unpack(tmp_path / name, SHA, nobody)
    assert held(tmp_path) == {}
    assert not list(tmp_path.rglob("*.part"))


def test_a_locked_archive_is_said(tmp_path: Path) -> None:
    archive = pack(tmp_path / "a.zip", {"x": b"1"})
    raw = bytearray(archive.read_bytes())
    for head, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        raw[raw.index(head) + at] |= 1
    archive.write_bytes(bytes(raw))
    with pytest.raises(UserError, match="locked with a password"):
        unpack(archive, SHA, nobody)


def test_a_file_where_a_folder_should_be_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "deep").write_text("in the way")
    with pytest.raises(UserError, match="mend that"):
        unpack(pack(tmp_path / "a.zip"), SHA, nobody)


@pytest.fixture(autouse=True)
def _nothing_outside() -> Iterator[None]:
    yield
    assert not Path("/tmp/out.txt").exists()
