"""Files of pictures, named by their content: an original is on the disk before a row names it."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from memharness.store import disk_error, whole
from memharness.types import DataError, UserError

ENDINGS = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/webp": "webp",
    "image/gif": "gif",
    "image/bmp": "bmp",
    "image/tiff": "tif",
    "image/avif": "avif",
}
HALF_WRITTEN = ".*.tmp"  # what `store.whole` calls a file until it is whole
_DIGEST = re.compile(r"[0-9a-f]{64}")


class Files:
    """`assets/ab/<sha256>.<ext>` and `thumbs/<sha256>-<edge>.webp`. No name that a caller gives becomes a path.

    Files are written and removed only while the database's write lock is held, so a file that no row names then is
    named by nobody, and one that is half written then was left by a process that died.
    """

    def __init__(self, folder: Path) -> None:
        """Files under a folder."""
        self.originals = folder / "assets"
        self.thumbnails = folder / "thumbs"

    def path(self, sha256: str, mime: str) -> Path:
        """Where an original lies."""
        return self.originals / sha256[:2] / f"{sha256}.{ENDINGS[mime]}"

    def thumbnail_path(self, sha256: str, edge: int) -> Path:
        """Where a thumbnail lies."""
        return self.thumbnails / f"{sha256}-{edge}.webp"

    def keep(self, sha256: str, mime: str, data: bytes) -> Path | None:
        """Have an original on the disk, so that it outlives a power loss.

        Returns:
            its path if it was written now; None if it was there, and whole.

        Raises:
            UserError: if the disk is full or refuses.
        """
        path = self.path(sha256, mime)
        with suppress(OSError):
            if path.read_bytes() == data:
                return None
        with whole(path) as temporary, temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        try:
            for folder in (path.parent, self.originals, self.originals.parent):
                _sync(folder)
        except OSError as error:
            with suppress(OSError):
                path.unlink()
            raise disk_error(error, path) from error
        return path

    def read(self, sha256: str, mime: str, owner: str) -> bytes:
        """An original's bytes, checked.

        Args:
            sha256: its digest.
            mime: its media type.
            owner: the asset, for the error.

        Raises:
            DataError: if it is missing or has changed.
        """
        path = self.path(sha256, mime)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise DataError(f"{path}: asset {owner}: cannot be read ({error.strerror}); {_REMEDY}") from None
        if hashlib.sha256(data).hexdigest() != sha256:
            raise DataError(f"{path}: asset {owner}: has changed since it was kept; {_REMEDY}")
        return data

    def read_thumbnail(self, sha256: str, edge: int) -> bytes | None:
        """A thumbnail that was kept; None if there is none, or a power loss cut it short."""
        try:
            data = self.thumbnail_path(sha256, edge).read_bytes()
        except OSError:
            return None
        return data if data[:4] == b"RIFF" and int.from_bytes(data[4:8], "little") + 8 == len(data) else None

    def keep_thumbnail(self, sha256: str, edge: int, data: bytes) -> None:
        """Keep a thumbnail, unless it is there or the disk refuses: it can be made again at any time."""
        if self.read_thumbnail(sha256, edge) is None:
            with suppress(UserError), whole(self.thumbnail_path(sha256, edge)) as temporary:
                temporary.write_bytes(data)

    def remove(self, sha256: str, mime: str) -> None:
        """Remove an original and its thumbnails.

        Raises:
            UserError: if the disk refuses.
        """
        path = self.path(sha256, mime)
        try:
            for file in (path, *self.thumbnails.glob(f"{sha256}-*.webp")):
                file.unlink(missing_ok=True)
        except OSError as error:
            raise disk_error(error, path) from error

    def here(self) -> Iterator[Path]:
        """Every file under the two folders."""
        for folder in (self.originals, self.thumbnails):
            if folder.is_dir():
                yield from sorted(path for path in folder.rglob("*") if not path.is_dir() or path.is_symlink())


def content_of(path: Path) -> str | None:
    """The digest that a file's name holds; None if the name is of another form."""
    name = path.name.partition("-")[0].partition(".")[0]
    return name if _DIGEST.fullmatch(name) else None


def _sync(folder: Path) -> None:
    """Make the names in a folder survive a power loss."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


_REMEDY = "`memharness episodic check` names all that is wrong; add the picture again under its id, or repair"
