"""Published archives, unpacked where they lie: safely, within bounds, and from where a killed process stopped."""

from __future__ import annotations

import json
import lzma
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO

from memharness.store import disk_error
from memharness.types import UserError

ENDINGS = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
RATIO = 200  # how many times its own size an archive may hold, beyond ALLOWANCE; text packs 70 : 1, bombs 1,000 : 1
ALLOWANCE = 1 << 30  # bytes
RESERVE = 100 << 20  # bytes of the disk that stay free
BLOCK = 1 << 20
BROKEN = (zipfile.BadZipFile, tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, NotImplementedError, RuntimeError)

Told = Callable[[int, int | None], None]  # bytes so far, and of the whole if known


@dataclass(frozen=True)
class Member:
    """A file in an archive; `open` gives its bytes and may be called while its archive is read."""

    name: str
    size: int
    open: Callable[[], IO[bytes]]


def is_archive(path: Path) -> bool:
    """Whether a file's name is that of an archive."""
    return path.name.lower().endswith(ENDINGS)


def unpack(archive: Path, sha256: str, tell: Told) -> int:
    """Unpack an archive into the folder it lies in, and note beside it what came of it.

    A file appears under its name only when it is whole. Only files and folders are taken, and only to places inside
    the folder.

    Args:
        archive: the file.
        sha256: its digest; what was unpacked from another file of that name is unpacked again.
        tell: told how many bytes were written.

    Returns:
        the number of files.

    Raises:
        UserError: for an archive that is damaged, locked, holds a link or a name that leads out of the folder, or is
            larger inside than it may be; or a disk that is full.
    """
    note = _Note(mark(archive), sha256)
    if note.done and all((archive.parent / name).is_file() for name in note.names):
        return len(note.names)
    most = ALLOWANCE + RATIO * archive.stat().st_size
    written = 0
    try:
        with note:
            for member in _members(archive):
                target = _place(archive, member.name)
                written += member.size
                if written > most:
                    raise _refused(archive, f"it holds more than {RATIO} times its own size")
                if not (member.name in note.names and target.is_file() and target.stat().st_size == member.size):
                    _write(archive, member, target)
                    note.add(member.name)
                tell(written, None)
            note.end()
    except BROKEN as error:
        raise _refused(archive, str(error) or type(error).__name__) from None
    except OSError as error:
        if error.errno is None:  # a decompressor's own word, not the disk's
            raise _refused(archive, str(error)) from None
        raise disk_error(error, archive.parent) from None
    return len(note.names)


def mark(archive: Path) -> Path:
    """The note beside an archive: what was unpacked from it."""
    return archive.with_name(f".{archive.name}.unpacked")


def unpacked(folder: Path) -> set[str]:
    """Files under a folder that came out of archives, relative to it."""
    found = set()
    for note in folder.rglob(".*.unpacked"):
        names = _Note(note, None).names
        found |= {str((note.parent / name).relative_to(folder)) for name in names}
    return found


class _Note:
    """The note of one archive: the digest it is about, each file as it was finished, and `done` at the end."""

    def __init__(self, path: Path, sha256: str | None) -> None:
        """Read it; with a digest, only what was noted about that very file counts."""
        self.path = path
        self.sha256 = sha256
        self.names: dict[str, None] = {}
        self.done = False
        lines = path.read_text("utf-8").split("\n") if path.is_file() else [""]
        if sha256 is not None and lines[0] != sha256:
            return
        for line in lines[1:-1]:  # what follows the last line break was torn by a kill
            if line == "done":
                self.done = True
            else:
                self.names[json.loads(line)] = None

    def __enter__(self) -> _Note:
        lines = [str(self.sha256), *map(json.dumps, self.names)]
        self.path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        self._file = self.path.open("a", encoding="utf-8")
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def add(self, name: str) -> None:
        """A file is whole."""
        self.names[name] = None
        self._file.write(f"{json.dumps(name)}\n")
        self._file.flush()

    def end(self) -> None:
        """All are."""
        self.done = True
        self._file.write("done\n")


def _members(archive: Path) -> Iterator[Member]:
    return _zip_members(archive) if archive.name.lower().endswith(".zip") else _tar_members(archive)


def _zip_members(archive: Path) -> Iterator[Member]:
    with zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():
            if info.is_dir():
                _place(archive, info.filename)
                continue
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind not in (0, stat.S_IFREG):
                raise _refused(archive, f"{info.filename!r} is a link or device")
            if info.flag_bits & 1:
                raise _refused(archive, f"{info.filename!r} is locked with a password")
            yield Member(info.filename, info.file_size, lambda info=info: opened.open(info))  # type: ignore[misc]


def _tar_members(archive: Path) -> Iterator[Member]:
    with tarfile.open(archive) as opened:
        for info in opened:
            if info.isdir():
                _place(archive, info.name)
                continue
            if not info.isreg():
                raise _refused(archive, f"{info.name!r} is a link or device")

            def content(info: tarfile.TarInfo = info) -> IO[bytes]:
                found = opened.extractfile(info)
                assert found is not None  # it is a regular file
                return found

            yield Member(info.name, info.size, content)


def _place(archive: Path, name: str) -> Path:
    """Where a member belongs."""
    path = PurePosixPath(name)
    foreign = "\\" in name or "\0" in name or PureWindowsPath(name).drive
    if not path.parts or path.is_absolute() or ".." in path.parts or foreign:
        raise _refused(archive, f"{name!r} leads out of the folder")
    target = archive.parent / path
    if target in (archive, mark(archive)) or target.name == "PREPARED.json":
        raise _refused(archive, f"{name!r} is not a name it may use")
    return target


def _write(archive: Path, member: Member, target: Path) -> None:
    if shutil.disk_usage(archive.parent).free < member.size + RESERVE:
        raise UserError(f"{archive}: no room on the disk to unpack {member.name} ({member.size:,} bytes); make room")
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.part")
    left = member.size
    try:
        with member.open() as source, temporary.open("wb") as file:
            while block := source.read(min(BLOCK, left + 1)):
                left -= len(block)
                if left < 0:
                    break  # more than it states; never more than that on the disk
                file.write(block)
        if left:
            raise _refused(archive, f"{member.name!r} is not as long as it states")
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _refused(archive: Path, reason: str) -> UserError:
    return UserError(
        f"{archive}: cannot be unpacked: {reason}; remove it and prepare the data again, or unpack it yourself and "
        "give --data PATH"
    )
