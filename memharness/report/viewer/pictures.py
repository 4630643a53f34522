"""Pictures of a page by content hash: a thumbnail each, and the original beside it."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from memharness.media import MediaStore, home
from memharness.store import disk_error
from memharness.types import DataError, Image, Part

LARGEST = 480  # pixels of a thumbnail's longer side: sharp at the width the page gives it on dense screens
NAME = 12  # hex digits that name a picture, as in the prompts of records
SUFFIX = {"image/jpeg": "jpg", "image/png": "png", "image/gif": "gif", "image/webp": "webp", "image/bmp": "bmp"}


class Pictures:
    """Copies what a page shows, once each.

    Attributes:
        known: by the first digits of the hash: suffix of the original (empty if left out), and the thumbnail's size.
    """

    def __init__(self, folder: Path, *, originals: bool) -> None:
        """Copy into `folder`."""
        self._folder, self._originals = folder, originals
        self.known: dict[str, tuple[str, int, int]] = {}
        self._absent: set[str] = set()

    def add_parts(self, parts: Iterable[Part], media: MediaStore) -> None:
        """Take the pictures among parts that are at hand."""
        for part in parts:
            if isinstance(part, Image) and part.sha256 and self._new(part.sha256[:NAME]):
                self._take(part.sha256[:NAME], _file(part, media))

    def add_named(self, names: Iterable[str]) -> None:
        """Take pictures that a prompt names, if they were made while running and so kept by content."""
        for name in names:
            if self._new(name):
                self._take(name, _kept(name))

    def _new(self, name: str) -> bool:
        return name not in self.known and name not in self._absent

    def _take(self, name: str, path: Path | None) -> None:
        from PIL import Image as Pillow
        from PIL import ImageOps

        if path is None:
            self._absent.add(name)
            return
        try:
            with Pillow.open(path) as picture:
                suffix = SUFFIX.get(Pillow.MIME.get(picture.format or "", ""), "") if self._originals else ""
                picture.draft("RGB", (LARGEST, LARGEST))
                small = ImageOps.exif_transpose(picture).convert("RGB")
            small.thumbnail((LARGEST, LARGEST))
        except (OSError, SyntaxError, ValueError, Pillow.DecompressionBombError):  # damaged since: shown as not at hand
            self._absent.add(name)
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            small.save(self._folder / f"{name}.thumb.jpg", quality=82)
            if suffix:
                shutil.copyfile(path, self._folder / f"{name}.{suffix}")
        except OSError as error:
            raise disk_error(error, self._folder) from error
        self.known[name] = (suffix, *small.size)


def _file(image: Image, media: MediaStore) -> Path | None:
    try:
        return media.path(image)
    except DataError:
        return _kept(image.sha256 or "")


def _kept(digest: str) -> Path | None:
    """A picture of this hash, or of one that begins so, among those kept by content."""
    return next((home() / "media" / digest[:2]).glob(f"{digest}*"), None)
