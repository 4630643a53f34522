"""A memory as a folder: JSON lines, f32 vectors and pictures, and a digest of every file."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from memharness.episodic.asset import Asset
from memharness.episodic.database import Database
from memharness.episodic.files import ENDINGS, Files
from memharness.episodic.rows import assets_where, cards_where, events_where
from memharness.store import disk_error, encode
from memharness.types import UserError

FORMAT = "memharness-episodic"
VERSION = 1
MANIFEST = "manifest.json"
ASSETS, CARDS, EVENTS, SPACES = "assets.jsonl", "cards.jsonl", "events.jsonl", "spaces.jsonl"


def export(db: Database, files: Files, folder: Path, session: str | None) -> None:
    """Write a memory, or one session and what its pictures were made from; see `EpisodicMemory.export`."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder}: is there and not empty; name a new folder to export to")
    building = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    try:
        building.mkdir(parents=True)
        # Nobody can delete a picture while it is copied.
        with db.writing():
            _Export(building).write(db, files, session)
        building.replace(folder)
    except OSError as error:
        raise disk_error(error, folder) from error
    finally:
        shutil.rmtree(building, ignore_errors=True)


class _Export:
    """A folder that is being written, and the digests of its files so far."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._digests: dict[str, str] = {}

    def write(self, db: Database, files: Files, session: str | None) -> None:
        assets = assets_where(db, "1 ORDER BY serial")
        if session is not None:
            assets = _with_ancestors(assets, session)
        ids = {asset.id for asset in assets}
        for asset in assets:
            if asset.sha256 is not None and not asset.deleted and picture_name(asset) not in self._digests:
                self._file(picture_name(asset), [files.read(asset.sha256, asset.mime, asset.id)])
        self._lines(ASSETS, map(asdict, assets))
        cards = cards_where(db, "1", ())
        self._lines(
            CARDS,
            ({"asset": id, "writer": writer, **asdict(card)} for id, writer, card in cards if id in ids),
        )
        self._lines(EVENTS, map(asdict, events_where(db, "?1 IS NULL OR session=?1", (session,))))
        self._lines(SPACES, list(self._spaces(db, ids)))
        manifest = {"format": FORMAT, "version": VERSION, "assets": len(assets), "files": self._digests}
        (self._folder / MANIFEST).write_text(encode(manifest) + "\n", encoding="utf-8")

    def _spaces(self, db: Database, ids: set[str]) -> Iterator[dict[str, Any]]:
        for number, space, width in db.rows("SELECT number, name, width FROM space ORDER BY number"):
            rows = (
                "SELECT asset.id, vector.value FROM vector JOIN asset ON asset.serial=vector.asset "
                "WHERE vector.space=? AND vector.value IS NOT NULL AND NOT asset.deleted ORDER BY asset.serial"
            )
            owners: list[str] = []
            name = f"vectors/{number}.f32"
            self._file(name, _values(db.blocks(rows, (number,), 1000), ids, owners))
            yield {"space": space, "width": width, "file": name, "assets": owners}

    def _lines(self, name: str, values: Iterable[Mapping[str, Any]]) -> None:
        self._file(name, (encode(value).encode() + b"\n" for value in values))

    def _file(self, name: str, pieces: Iterable[bytes]) -> None:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256()
        with path.open("wb") as file:
            for piece in pieces:
                file.write(piece)
                digest.update(piece)
        self._digests[name] = digest.hexdigest()


def _values(blocks: Iterable[list[Any]], ids: set[str], owners: list[str]) -> Iterator[bytes]:
    """The vectors of these assets; whose they are is added to `owners`."""
    for block in blocks:
        for id, value in block:
            if id in ids:
                owners.append(id)
                yield value


def _with_ancestors(assets: Sequence[Asset], session: str) -> list[Asset]:
    """A session's assets, and those of others that they were made from, however far back."""
    wanted: set[str] = set()
    for asset in reversed(assets):  # whoever has a parent was made after it
        if asset.session == session or asset.id in wanted:
            wanted |= {asset.id, *(parent.id for parent in asset.parents)}
    if not wanted:
        raise UserError(f"export: no session is called {session!r}")
    return [asset for asset in assets if asset.id in wanted]


def picture_name(asset: Asset) -> str:
    """Where the original of an asset lies in an export."""
    return f"assets/{str(asset.sha256)[:2]}/{asset.sha256}.{ENDINGS[asset.mime]}"
