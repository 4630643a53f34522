"""Pictures and videos by content hash, and digests of data files, remembered by path, size and time."""

from __future__ import annotations

import hashlib
import io
import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from memharness.store import whole
from memharness.types import DataError, Image, UserError, Video

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

VIDEO_TYPES = {
    ".mp4": "video/mp4",
    ".mov": "video/quicktime",
    ".avi": "video/x-msvideo",
    ".webm": "video/webm",
    ".mkv": "video/x-matroska",
}


def home() -> Path:
    """Where downloads, converted models and file digests are kept: `MEMHARNESS_HOME`, by default the user's cache."""
    named = os.environ.get("MEMHARNESS_HOME")
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(named) if named else (Path(base) if base else Path.home() / ".cache") / "memharness"


def kept_at(sha: str) -> Path:
    """Where `MediaStore.keep` keeps the bytes of a hash."""
    return home() / "media" / sha[:2] / sha


class MediaStore:
    """Maps content hashes to files. Files stay where they are; only their digests and sizes are remembered.

    One store serves all threads of a run: contexts are opened side by side.
    """

    def __init__(self, index: Path | None = None) -> None:
        """Open the digest index (default: `home()/files.sqlite`)."""
        self._index = index or home() / "files.sqlite"
        self._files: dict[str, Path] = {}
        self._db: sqlite3.Connection | None = None
        self._lock = threading.Lock()  # a transaction belongs to the connection, not to the thread that began it

    def image(self, path: Path, source: str, where: str) -> Image:
        """An Image for a file; `missing` if there is no such file.

        Args:
            path: the file.
            source: the name the data gives it.
            where: file, record and field that name it, for the error.

        Raises:
            DataError: if the file is not a readable picture.
        """
        if not path.is_file():
            return Image(None, source=source)
        sha, mime, width, height = self._known(path, where, picture=True)
        self._files[sha] = path
        return Image(sha, mime, width, height, source)

    def keep(self, data: bytes, source: str, where: str) -> Image:
        """An Image for bytes that a data file holds: kept once by content, under `home()/media`.

        Args:
            data: an encoded picture.
            source: the name the data gives it.
            where: file, record and field that hold it, for the error.

        Raises:
            DataError: if the bytes are not a readable picture, or only the beginning of one.
        """
        sha = hashlib.sha256(data).hexdigest()
        path = kept_at(sha)
        mime, width, height = _picture_header(io.BytesIO(data), where)
        if not path.is_file():  # nothing unreadable is kept, so what is there needs no second look
            _read_through(data, where)
            with whole(path) as temporary:
                temporary.write_bytes(data)
        self._files[sha] = path
        return Image(sha, mime, width, height, source)

    def video(self, path: Path, source: str, *, width: int = 0, height: int = 0, seconds: float = 0.0) -> Video:
        """A Video for a file; `missing` if there is no such file. Size and duration are the data's own."""
        if not path.is_file():
            return Video(None, source=source, width=width, height=height, seconds=seconds)
        sha, _, _, _ = self._known(path, source, picture=False)
        self._files[sha] = path
        mime = VIDEO_TYPES.get(path.suffix.lower(), "application/octet-stream")
        return Video(sha, mime, width, height, seconds, source)

    def path(self, media: Image | Video) -> Path:
        """The file behind a hash: one seen by this store, kept by any, or seen by any and not changed since.

        Raises:
            DataError: if it is missing.
        """
        if media.sha256 is not None and media.sha256 not in self._files:
            found = next((path for path in self._remembered(media.sha256) if path.is_file()), None)
            self._files |= {media.sha256: found} if found else {}
        if media.sha256 is None or media.sha256 not in self._files:
            raise DataError(
                f"{media.source or media.sha256}: the file is not at hand; fetch the media or use --view captions"
            )
        return self._files[media.sha256]

    def _remembered(self, sha: str) -> Iterator[Path]:
        """Files that held these bytes when they were last looked at, in this process or an earlier one."""
        yield kept_at(sha)
        with self._lock:
            rows = (
                self._open().execute("SELECT path, size, time FROM files WHERE sha=? ORDER BY path", (sha,)).fetchall()
            )
        for name, size, time in rows:
            path = Path(name)
            if path.is_file() and (path.stat().st_size, path.stat().st_mtime_ns) == (size, time):
                yield path

    def open(self, image: Image) -> Picture:
        """The decoded picture, turned as its EXIF says.

        Raises:
            DataError: if it is missing or cannot be decoded.
        """
        from PIL import Image as Pillow
        from PIL import ImageOps

        path = self.path(image)
        try:
            with Pillow.open(path) as picture:
                return ImageOps.exif_transpose(picture).convert("RGB")
        except (OSError, SyntaxError, ValueError, Pillow.DecompressionBombError) as error:  # Pillow's, by file format
            raise DataError(f"{path}: cannot be decoded as a picture ({error}); fetch it again") from None

    def digest(self, path: Path) -> str:
        """SHA-256 (hex) of a file, remembered until its size or time changes."""
        return self._known(path, str(path), picture=False)[0]

    def _known(self, path: Path, where: str, *, picture: bool) -> tuple[str, str, int, int]:
        try:
            file = path.open("rb")
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror}); fetch it again or make it readable") from None
        with file:
            stat = os.fstat(file.fileno())
            key = (str(path.resolve()), stat.st_size, stat.st_mtime_ns)
            with self._lock:
                row = (
                    self._open()
                    .execute("SELECT sha, mime, width, height FROM files WHERE path=? AND size=? AND time=?", key)
                    .fetchone()
                )
            if row and (row[1] or not picture):
                return row[0], row[1], row[2], row[3]
            mime, width, height = _picture_header(path, where) if picture else ("", 0, 0)
            sha = hashlib.file_digest(file, "sha256").hexdigest()
        with self._lock, self._open() as db:
            db.execute("INSERT OR REPLACE INTO files VALUES (?,?,?,?,?,?,?)", (*key, sha, mime, width, height))
        return sha, mime, width, height

    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            try:
                self._index.parent.mkdir(parents=True, exist_ok=True)
                db = sqlite3.connect(self._index, timeout=60, check_same_thread=False)
                db.execute("PRAGMA journal_mode=WAL")
                db.execute(
                    "CREATE TABLE IF NOT EXISTS files "
                    "(path TEXT PRIMARY KEY, size INT, time INT, sha TEXT, mime TEXT, width INT, height INT)"
                )
            except (OSError, sqlite3.Error) as error:
                raise UserError(
                    f"{self._index}: cannot be used ({error}); delete it, or set MEMHARNESS_HOME to another folder"
                ) from None
            self._db = db
        return self._db


def _read_through(data: bytes, where: str) -> None:
    """Find out whether a picture ends where it should, at the least cost.

    Raises:
        DataError: if it does not.
    """
    from PIL import Image as Pillow

    try:
        with Pillow.open(io.BytesIO(data)) as picture:
            if picture.format == "JPEG":
                picture.draft("RGB", (1, 1))  # as small as it can be decoded: read to the end all the same
                picture.load()
            else:
                picture.verify()
    except (OSError, SyntaxError, ValueError) as error:
        raise DataError(f"{where}: is a picture that is damaged or cut short ({error}); fetch it again") from None


def _picture_header(path: Path | io.BytesIO, where: str) -> tuple[str, int, int]:
    from PIL import Image as Pillow
    from PIL import UnidentifiedImageError

    try:
        with Pillow.open(path) as picture:
            width, height = picture.size
            if picture.getexif().get(0x0112, 1) in (5, 6, 7, 8):  # turned a quarter: what is shown is height × width
                width, height = height, width
            return Pillow.MIME.get(picture.format or "", ""), width, height
    except UnidentifiedImageError:
        raise _unreadable(path, where, "of no known kind") from None
    except (OSError, SyntaxError, ValueError, Pillow.DecompressionBombError) as error:
        raise _unreadable(path, where, str(error)) from None


def _unreadable(path: Path | io.BytesIO, where: str, why: str) -> DataError:
    name = f"{path} " if isinstance(path, Path) else ""
    return DataError(f"{where}: {name}is not a readable picture ({why}); fetch it again or remove it")


def _ours(name: Path) -> bool:
    """Whether a file is what a download left beside the data, not data."""
    return name.name == "PREPARED.json" or any(part.startswith(".") for part in name.parts)


def tree_digest(path: Path, store: MediaStore | None = None) -> dict[str, str]:
    """Digest of every file under a path by relative name; of the file itself under its own name."""
    store = store or MediaStore()
    if path.is_file():
        return {path.name: store.digest(path)}
    files = sorted(file for file in path.rglob("*") if file.is_file() and not _ours(file.relative_to(path)))
    return {str(file.relative_to(path)): store.digest(file) for file in files}
