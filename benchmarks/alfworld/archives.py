"""Archives of games, unpacked once into the user's cache; nothing else in them is taken out."""

from __future__ import annotations

import lzma
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from memharness.media import home
from memharness.store import disk_error
from memharness.types import DataError

GAME = "game.tw-pddl"
SUFFIXES = (".tar.xz", ".tar.gz", ".tgz", ".tar", ".zip")
LARGEST = 8 << 20  # bytes of one game; the published ones hold 0.1 MB
MOST = 4 << 30  # bytes of all games; the published ones hold 0.35 GB
BROKEN = (tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error, EOFError)


def is_archive(path: Path) -> bool:
    """Whether a file's name is that of an archive."""
    return path.is_file() and path.name.endswith(SUFFIXES)


def unpacked(archive: Path, sha256: str) -> Path:
    """The folder with an archive's games, under the cache by its digest; unpacked at the first call.

    Raises:
        DataError: for an archive that is damaged, holds no game, names a place outside its folder or holds more than a
            release can.
        UserError: for a disk that is full or cannot be written.
    """
    folder = home() / "alfworld" / "games" / sha256[:16]
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".part-"))
        try:
            _take(archive, part)
            _place(part, folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    except BROKEN as error:
        raise _refused(archive, f"it is damaged ({error})") from None
    except OSError as error:
        if error.errno is None:  # a decompressor's own word, not the disk's
            raise _refused(archive, f"it is damaged ({error})") from None
        raise disk_error(error, folder) from None
    return folder


def _take(archive: Path, folder: Path) -> None:
    left = MOST
    for name, source in _members(archive):
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name:
            raise _refused(archive, f"{name!r} leads out of its folder")
        data = source.read(LARGEST + 1)
        left -= len(data)
        if len(data) > LARGEST or left < 0:
            raise _refused(archive, f"{name!r} is larger than a game can be, or all of them together")
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    if left == MOST:
        raise _refused(archive, f"it holds no {GAME}")


def _members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """The games in an archive, by name. What is no regular file is none."""
    if archive.name.endswith(".zip"):
        with zipfile.ZipFile(archive) as zipped:
            for name in zipped.namelist():
                if PurePosixPath(name).name == GAME:
                    with zipped.open(name) as source:
                        yield name, source
        return
    with tarfile.open(archive) as tarred:
        for member in tarred:
            if member.isreg() and PurePosixPath(member.name).name == GAME:
                content = tarred.extractfile(member)
                assert content is not None  # it is a regular file
                yield member.name, content


def _place(part: Path, folder: Path) -> None:
    try:
        part.rename(folder)
    except OSError:
        if not folder.is_dir():  # else another process was quicker
            raise


def _refused(archive: Path, reason: str) -> DataError:
    return DataError(f"{archive}: cannot be unpacked: {reason}; fetch it again, or unpack it and name the folder")
