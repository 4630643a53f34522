"""What an export holds, checked whole before any of it is kept."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, TypeVar, get_args

import numpy as np

from memharness.datafile import Row, read_json, read_lines
from memharness.episodic.asset import Asset, Card, Event, Feedback, Kind, Parent, one_of, storable
from memharness.episodic.database import Database
from memharness.episodic.export import ASSETS, CARDS, EVENTS, FORMAT, MANIFEST, SPACES, VERSION, picture_name
from memharness.episodic.files import ENDINGS, Files
from memharness.episodic.picture import look
from memharness.episodic.rows import insert_asset, insert_card, insert_events, remove_unnamed
from memharness.episodic.vectors import Vectors
from memharness.types import DataError, UserError

T = TypeVar("T")

SHOWN = 20  # problems that an error names

_DIGEST = re.compile(r"[0-9a-f]{64}")
_REMEDY = "export it again, or take the file from where the export was made"


def take(db: Database, files: Files, vectors: Vectors, folder: Path, edge: int) -> int:
    """Take in what `export` wrote; see `EpisodicMemory.take`."""
    read = _read(folder)
    problems = _looked_through(folder, read, edge)
    if problems:
        raise _refused(folder, problems)
    kept: list[Asset] = []
    try:
        with db.writing(synced=True):
            new = _new(db, folder, read.assets)
            for asset in new.values():
                if asset.sha256 is not None and not asset.deleted:
                    kept.append(asset)
                    files.keep(asset.sha256, asset.mime, _bytes(folder, asset))
            _insert(db, vectors, folder, read, new)
    except BaseException:
        with suppress(UserError):  # what stays is named by no row: `repair` removes it
            for asset in kept:
                remove_unnamed(db, files, str(asset.sha256), asset.mime)
        raise
    return len(new)


@dataclass(frozen=True)
class _Import:
    """What an export holds, every record typed."""

    assets: list[Asset]
    cards: list[tuple[str, str, Card]]  # asset, writer, card
    events: list[Event]
    spaces: list[tuple[str, int, str, tuple[str, ...]]]  # name, width, file, assets
    digests: dict[str, str]


def _read(folder: Path) -> _Import:
    """Check every file against the manifest, then read the lines.

    Raises:
        DataError: naming each file or record that is wrong.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise DataError(f"{folder}: no export of an episodic memory is there (no {MANIFEST}); name its folder")
    manifest = Row(_mapping(read_json(path), path), str(path))
    if manifest.text("format", "") != FORMAT or manifest.values.get("version") != VERSION:
        raise manifest.error("format, version", f"must be {FORMAT}, {VERSION}", "export it with this memharness")
    digests = manifest.row("files").values
    problems = [f"{name}: is not listed" for name in (ASSETS, CARDS, EVENTS, SPACES) if name not in digests]
    problems += [problem for name, sha in digests.items() if (problem := _wrong(folder, name, sha))]
    if problems:
        raise _refused(folder, problems)
    return _Import(
        _records(folder / ASSETS, _asset),
        _records(folder / CARDS, _card),
        _records(folder / EVENTS, _event),
        _records(folder / SPACES, _space),
        dict(digests),
    )


def _records(path: Path, make: Callable[[Row], T]) -> list[T]:
    found = []
    for row in read_lines(path):
        try:
            found.append(make(row))
        except DataError:
            raise
        except UserError as error:
            raise DataError(f"{row.where}: {error}; {_REMEDY}") from None
    return found


def _mapping(value: object, path: Path) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DataError(f"{path}: must be a mapping; {_REMEDY}")
    return value


def _wrong(folder: Path, name: str, digest: object) -> str | None:
    """What is wrong with a file that the manifest lists."""
    path = PurePosixPath(name)
    foreign = "\\" in name or "\0" in name or PureWindowsPath(name).drive
    if not path.parts or path.is_absolute() or ".." in path.parts or foreign:
        return f"{name!r}: leads out of the folder"
    try:
        if not (folder / path).resolve(strict=True).is_relative_to(folder.resolve()):
            return f"{name!r}: is a link that leads out of the folder"
        if not (folder / path).is_file():
            return f"{name}: is no file"
        with (folder / path).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return f"{name}: cannot be read ({error.strerror or error})"
    return None if found == digest else f"{name}: its sha256 is {found}, and {digest} is listed"


def _looked_through(folder: Path, read: _Import, edge: int) -> list[str]:
    """What is wrong in what the records say of each other and of the files."""
    problems = []
    places, ids = Counter((a.session, a.index) for a in read.assets), Counter(a.id for a in read.assets)
    problems += [f"assets.jsonl: two assets are called {id!r}" for id, count in ids.items() if count > 1]
    problems += [f"assets.jsonl: two assets at {place}" for place, count in places.items() if count > 1]
    alive = {asset.id for asset in read.assets if not asset.deleted}
    problems += [f"cards.jsonl: {id!r} is no asset of this export" for id, _, _ in read.cards if id not in alive]
    for name, width, file, owners in read.spaces:
        problems += [f"spaces.jsonl: {id!r} is no asset of this export" for id in owners if id not in alive]
        if file not in read.digests:
            problems.append(f"spaces.jsonl: {name}: {file!r} is not listed")
        elif (folder / file).stat().st_size != 4 * width * len(owners):
            problems.append(f"{file}: is not {len(owners)} vectors of width {width}")
    met: set[str] = set()
    for asset in read.assets:
        if asset.sha256 is None or asset.deleted or asset.sha256 in met:
            continue
        met.add(asset.sha256)
        if read.digests.get(picture_name(asset)) != asset.sha256:
            problems.append(f"assets.jsonl: {asset.id}: {picture_name(asset)} is not listed with that sha256")
            continue
        try:
            data = _bytes(folder, asset)
            seen = look(data, edge, f"{picture_name(asset)}: asset {asset.id}")
        except DataError as error:
            problems.append(str(error))
            continue
        facts = (seen.mime, seen.width, seen.height, len(data))
        if facts != (asset.mime, asset.width, asset.height, asset.size):
            problems.append(f"assets.jsonl: {asset.id}: mime, width, height, size: the picture's are {facts}")
    return problems


def _bytes(folder: Path, asset: Asset) -> bytes:
    """The original of an asset, checked once more: the folder may have changed.

    Raises:
        DataError: if it has.
    """
    try:
        data = (folder / picture_name(asset)).read_bytes()
    except OSError as error:
        raise DataError(f"{folder / picture_name(asset)}: cannot be read ({error.strerror}); {_REMEDY}") from None
    if hashlib.sha256(data).hexdigest() != asset.sha256:
        raise DataError(f"{folder / picture_name(asset)}: changed while it was taken in; {_REMEDY}")
    return data


def _new(db: Database, folder: Path, assets: Sequence[Asset]) -> dict[str, Asset]:
    """The assets that are not here yet, inside a transaction."""
    new: dict[str, Asset] = {}
    problems = []
    for asset in assets:
        here = db.rows("SELECT session, place, coalesce(sha256, lost) FROM asset WHERE id=?", (asset.id,))
        at = db.value("SELECT id FROM asset WHERE session=? AND place=?", (asset.session, asset.index))
        if here and here[0] == (asset.session, asset.index, asset.sha256):
            continue
        if here:
            problems.append(f"{asset.id!r}: another asset is called so here")
        elif at is not None:
            problems.append(f"{asset.id!r}: place {asset.index} of session {asset.session!r} is {at!r} here")
        problems += [
            f"{asset.id!r}: its parent {parent.id!r} is neither before it in the export nor here"
            for parent in asset.parents
            if parent.id not in new and not db.rows("SELECT 1 FROM asset WHERE id=?", (parent.id,))
        ]
        new[asset.id] = asset
    if problems:
        raise _refused(folder, problems, "take it into a memory that has none of these sessions")
    return new


def _insert(db: Database, vectors: Vectors, folder: Path, read: _Import, new: Mapping[str, Asset]) -> None:
    serials = {id: insert_asset(db, asset) for id, asset in new.items()}
    for id, writer, card in read.cards:
        if id in serials:
            insert_card(db, serials[id], writer, card)
    fresh = {event.session for event in read.events}
    fresh -= {session for (session,) in db.rows("SELECT DISTINCT session FROM event")}
    insert_events(db, [event for event in read.events if event.session in fresh])
    for space, width, file, owners in read.spaces:
        with (folder / file).open("rb") as values:
            for id in owners:
                value = np.frombuffer(values.read(4 * width), "<f4")
                if id in serials:
                    vectors.put(serials[id], space, value)


def _asset(row: Row) -> Asset:
    kind: Any = row.text("kind")
    feedback: Any = row.text("feedback", "") or None
    one_of("kind", kind, get_args(Kind))
    one_of("feedback", feedback or "", ("", *get_args(Feedback)))
    sha256, mime = row.text("sha256", "") or None, row.text("mime", "")
    if sha256 is not None and not _DIGEST.fullmatch(sha256):
        raise row.error("sha256", f"{sha256!r} is no SHA-256", _REMEDY)
    if sha256 is not None and mime not in ENDINGS:
        raise row.error("mime", f"{mime!r} is none of {', '.join(ENDINGS)}", _REMEDY)
    asset = Asset(
        row.text("id"), row.text("session"), _count(row, "index"), row.whole("turn"), kind, sha256, mime,
        _count(row, "width"), _count(row, "height"), _count(row, "size"),
        tuple(Parent(parent.text("id"), parent.text("operation", "")) for parent in row.rows("parents")),
        row.text("prompt", ""), row.text("source", ""), row.text("text", ""),
        _flag(row, "current"), feedback, _flag(row, "gallery"), _flag(row, "deleted"),
    )  # fmt: skip
    storable(id=asset.id, session=asset.session, prompt=asset.prompt, source=asset.source, text=asset.text)
    return asset


def _count(row: Row, name: str) -> int:
    if row.whole(name) < 0:
        raise row.error(name, "must not be negative", _REMEDY)
    return row.whole(name)


def _flag(row: Row, name: str) -> bool:
    value = row.values.get(name)
    if not isinstance(value, bool):
        raise row.error(name, "must be true or false", _REMEDY)
    return value


def _card(row: Row) -> tuple[str, str, Card]:
    card = Card(
        tags=row.texts("tags"),
        description=row.text("description", ""),
        palette=row.texts("palette"),
        language=row.text("language", ""),
        status=row.text("status"),  # type: ignore[arg-type]  # the card looks at it
        cost=row.row("cost").values,
        facts=row.row("facts").values,
    )
    return row.text("asset"), row.text("writer"), card


def _event(row: Row) -> Event:
    return Event(row.text("session"), row.whole("turn"), row.text("type"), row.row("payload").values)


def _space(row: Row) -> tuple[str, int, str, tuple[str, ...]]:
    if row.whole("width") < 1:
        raise row.error("width", "must be at least 1", _REMEDY)
    return row.text("space"), row.whole("width"), row.text("file"), row.texts("assets")


def _refused(folder: Path, problems: Sequence[str], remedy: str = _REMEDY) -> DataError:
    more = f"; and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
    return DataError(f"{folder}: nothing was taken in: {'; '.join(problems[:SHOWN])}{more}; {remedy}")
