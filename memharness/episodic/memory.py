"""The memory itself: one folder that several processes may hold open."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, get_args

from numpy.typing import ArrayLike

from memharness.episodic import integrity
from memharness.episodic import words as index
from memharness.episodic.asset import Asset, Card, Event, Feedback, Finding, Kind, Parent, one_of, storable
from memharness.episodic.database import Database
from memharness.episodic.export import export as export_memory
from memharness.episodic.files import Files
from memharness.episodic.picture import Look, look
from memharness.episodic.rows import (
    assets_by_serial,
    assets_where,
    cards_where,
    events_where,
    insert_asset,
    insert_card,
    insert_events,
    remove_unnamed,
)
from memharness.episodic.take import take as take_export
from memharness.episodic.vectors import Vectors
from memharness.identity import opaque_id
from memharness.types import UserError

CACHE = 1 << 30  # bytes of vectors held in memory, at most
NO_PICTURE = Look("", 0, 0, b"")


class EpisodicMemory:
    """Pictures of sessions, what writers say of them, and vectors to find them by.

        with EpisodicMemory.open(Path("memory")) as memory:
            cat = memory.add(png, session="s1", turn=1)
            memory.write_card(cat.id, "reader", Card(tags=("cat", "sofa"), description="A cat asleep on a sofa."))
            memory.put_vector(cat.id, "clip", vector)
            [(asset, score), *_] = memory.search("clip", query, 10)

    The folder holds `memory.sqlite` (write-ahead log), `assets/ab/<sha256>.<ext>` (originals, byte for byte) and
    `thumbs/<sha256>-<edge>.webp`. Each write is one transaction: once a call has returned, the death of the process
    loses nothing of it. An original is on the disk before the row that names it; a power loss may take back writes
    without a picture since the last checkpoint, and nothing before that. Several processes and threads may hold one
    folder open (each process opens it for itself; the file system must know locks); writers wait for each other.
    """

    def __init__(self, folder: Path, db: Database, edge: int, cache: int) -> None:
        """Put together; use `open`."""
        self.folder = folder
        self.edge = edge
        self._db = db
        self._files = Files(folder)
        self._vectors = Vectors(db, cache)

    @classmethod
    def open(cls, folder: Path, *, edge: int = 384, cache: int = CACHE, create: bool = True) -> EpisodicMemory:
        """Open a memory.

        Args:
            folder: made if it is not there.
            edge: pixels of a thumbnail's longer edge, at most.
            cache: bytes of vectors to hold in memory, at most; a space larger than that is read from the disk in blocks
                at each search.
            create: whether to make the memory if there is none.

        Raises:
            UserError: if there is none and none is to be made, it cannot be opened, or it is something else.
        """
        file = folder / "memory.sqlite"
        if not create and not file.is_file():
            raise UserError(f"{folder}: no episodic memory is there (no {file.name}); name the folder that holds one")
        if not 1 <= edge <= 4096:
            raise UserError(f"edge: {edge}: a thumbnail's edge is between 1 and 4096 pixels")
        return cls(folder, Database(file), edge, cache)

    def close(self) -> None:
        """Close it; nothing waits to be written."""
        self._db.close()

    def __enter__(self) -> EpisodicMemory:
        """The memory."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    # ---------------------------------------------------------------------------------------------------- assets

    def add(
        self,
        data: bytes | None,
        *,
        session: str,
        kind: Kind = "upload",
        turn: int = 0,
        id: str | None = None,
        parents: Sequence[Parent] = (),
        prompt: str = "",
        source: str = "",
        text: str = "",
    ) -> Asset:
        """Remember a picture.

        The picture is decoded before it is kept: at most 2**26 pixels by its header, checked before decoding, and
        2**28 bytes (`picture.MOST_PIXELS`, `picture.MOST_BYTES`). PNG, JPEG, WebP, GIF, BMP, TIFF and AVIF are taken;
        of an animation the first frame becomes the thumbnail. Equal bytes are kept once.

        Args:
            data: the original's bytes; None for an asset without a picture.
            session: the session; made by its first asset.
            kind: how it came to be.
            turn: the turn it came up in.
            id: its id, unique in the memory; by default an opaque one that follows from session and place.
            parents: what it was made from; all must be in the memory, and may be deleted.
            prompt: the words that made it.
            source: the name or address it came under; only kept.
            text: further words about it.

        Returns:
            the asset. With an `id` that the session has, what is there (a tombstone too) is returned as it is, so a
            call may be made again; if its file was lost meanwhile, it is kept again.

        Raises:
            DataError: for a picture that is not taken; nothing is kept then.
            UserError: for an `id` that names another asset, an unknown parent or kind, or a disk that refuses; nothing
                is kept then.
        """
        one_of("kind", kind, get_args(Kind))
        _named(session=session)
        if id is not None:
            _named(id=id)
        storable(prompt=prompt, source=source, text=text)
        seen = NO_PICTURE if data is None else look(data, self.edge, f"asset {id or f'in session {session}'}")
        sha256 = None if data is None else hashlib.sha256(data).hexdigest()

        def new(id: str, place: int) -> Asset:
            return Asset(
                id, session, place, turn, kind, sha256, seen.mime, seen.width, seen.height, len(data or b""),
                tuple(parents), prompt, source, text, True, None, False, False,
            )  # fmt: skip

        if data is None or sha256 is None:
            with self._db.writing():
                return self._known(id, session, sha256) or self._place(id, session, parents, new)
        try:
            with self._db.writing(synced=True):
                asset = self._known(id, session, sha256) or self._place(id, session, parents, new)
                if not asset.deleted:
                    self._files.keep(sha256, seen.mime, data)
                    self._db.run("UPDATE asset SET sha256=lost, lost=NULL WHERE lost=?", (sha256,))
                    self._files.keep_thumbnail(sha256, self.edge, seen.thumbnail)
        except BaseException:
            with suppress(UserError):  # what stays is named by no row: `repair` removes it
                remove_unnamed(self._db, self._files, sha256, seen.mime)
            raise
        return self.asset(asset.id)

    def _known(self, id: str | None, session: str, sha256: str | None) -> Asset | None:
        """The asset that an id names, inside a transaction.

        Raises:
            UserError: if it is of another session or another picture.
        """
        rows = self._db.rows("SELECT session, coalesce(sha256, lost) FROM asset WHERE id=?", (id,)) if id else []
        if not rows:
            return None
        if rows[0] != (session, sha256):
            other = "another picture" if rows[0][0] == session else f"an asset of session {rows[0][0]!r}"
            raise UserError(f"id: {id!r} already names {other}; give each asset an id of its own")
        return self.asset(str(id))

    def _place(
        self, id: str | None, session: str, parents: Sequence[Parent], new: Callable[[str, int], Asset]
    ) -> Asset:
        """Put a new asset at the next place of its session, inside a transaction."""
        for parent in parents:
            storable(operation=parent.operation)
            self._serial(parent.id, "parents", dead=True)
        place = self._db.value("SELECT coalesce(max(place) + 1, 0) FROM asset WHERE session=?", (session,))
        asset = new(id or self._free_id(session, place), place)
        insert_asset(self._db, asset)
        return asset

    def _free_id(self, session: str, place: int) -> str:
        ids = (opaque_id("asset", session, place, attempt) for attempt in itertools.count())
        return next(id for id in ids if self._db.value("SELECT 1 FROM asset WHERE id=?", (id,)) is None)

    def asset(self, id: str) -> Asset:
        """The asset of an id, as it is now; a deleted one too.

        Raises:
            UserError: there is none.
        """
        found = assets_where(self._db, "id=?", (id,))
        if not found:
            raise UserError(f"asset: {id!r}: none of this id is in {self.folder}; `assets` lists them")
        return found[0]

    def assets(
        self,
        session: str | None = None,
        *,
        kind: Kind | None = None,
        current: bool | None = None,
        gallery: bool | None = None,
        deleted: bool = False,
    ) -> list[Asset]:
        """Assets by order of creation.

        Args:
            session: only of this one.
            kind: only of this one.
            current: only those that are, or are not.
            gallery: only those that are in it, or are not.
            deleted: whether tombstones are listed as well.
        """
        wanted = {"session": session, "kind": kind, "current": current, "gallery": gallery}
        wanted |= {} if deleted else {"deleted": False}
        given = {name: value for name, value in wanted.items() if value is not None}
        condition = " AND ".join(f"{name}=?" for name in given) or "1"
        return assets_where(self._db, f"{condition} ORDER BY serial", list(given.values()))

    def original(self, asset: Asset) -> bytes:
        """The bytes that were added, checked against their digest.

        Raises:
            DataError: if the file is missing or has changed.
            UserError: if the asset has no picture, or is deleted.
        """
        now = self.asset(asset.id)
        if now.deleted:
            raise UserError(f"asset {asset.id}: was deleted; its picture is no longer kept")
        if now.sha256 is None:
            raise UserError(f"asset {asset.id}: has no picture")
        return self._files.read(now.sha256, now.mime, asset.id)

    def thumbnail(self, asset: Asset) -> bytes:
        """The thumbnail (WebP, RGB, turned as shown, on white), made again from the original if it is not there.

        Raises:
            DataError: if it must be made and the original is missing or has changed.
            UserError: if the asset has no picture, or is deleted.
        """
        now = self.asset(asset.id)
        kept = None if now.deleted or now.sha256 is None else self._files.read_thumbnail(now.sha256, self.edge)
        if kept is not None:
            return kept
        made = look(self.original(now), self.edge, f"asset {asset.id}").thumbnail
        with suppress(UserError), self._db.writing():  # what cannot be kept now is made again
            if not self.asset(asset.id).deleted:
                self._files.keep_thumbnail(str(now.sha256), self.edge, made)
        return made

    def mark(
        self,
        id: str,
        *,
        current: bool | None = None,
        feedback: Feedback | Literal[""] | None = None,
        gallery: bool | None = None,
    ) -> None:
        """Say what became of an asset; None leaves a mark as it is, and "" takes feedback back.

        Raises:
            UserError: for an unknown or deleted asset, or an unknown feedback.
        """
        if feedback is not None:
            one_of("feedback", feedback, ("", *get_args(Feedback)))
        with self._db.writing():
            self._db.run(
                "UPDATE asset SET current=coalesce(?, current), gallery=coalesce(?, gallery), "
                "feedback=CASE WHEN ?3 IS NULL THEN feedback ELSE nullif(?3, '') END WHERE serial=?4",
                (current, gallery, feedback, self._serial(id, "mark")),
            )

    def delete(self, id: str) -> None:
        """Leave a tombstone: facts, place and parents stay; words, cards, vectors and marks go at once.

        The original and its thumbnails go with the last asset that has them. Deleting twice changes nothing.

        Raises:
            UserError: for an unknown asset, or a file that cannot be removed (the asset is deleted all the same, and
                `repair` removes the file).
        """
        asset = self.asset(id)
        if not asset.deleted:
            with self._db.writing(synced=asset.sha256 is not None):
                serial = self._serial(id, "delete", dead=True)
                index.drop(self._db, serial)
                self._vectors.withdraw(serial)
                self._db.run("DELETE FROM card WHERE asset=?", (serial,))
                self._db.run(
                    "UPDATE asset SET deleted=1, prompt='', source='', text='', current=0, feedback=NULL, gallery=0 "
                    "WHERE serial=?",
                    (serial,),
                )
        if asset.sha256 is not None:
            remove_unnamed(self._db, self._files, asset.sha256, asset.mime)

    # ------------------------------------------------------------------------------------------ cards and words

    def write_card(self, id: str, writer: str, card: Card) -> None:
        """Keep a writer's card, in place of its earlier one; other writers' stay.

        Raises:
            UserError: for an unknown or deleted asset, or a card that cannot be kept.
        """
        _named(writer=writer)
        storable(
            description=card.description, language=card.language, **{f"tag {n}": t for n, t in enumerate(card.tags)}
        )
        with self._db.writing():
            insert_card(self._db, self._serial(id, "write_card"), writer, card)

    def card(self, id: str, writer: str) -> Card | None:
        """A writer's card; None if it wrote none, or the asset is deleted.

        Raises:
            UserError: for an unknown asset.
        """
        found = cards_where(self._db, "asset.id=? AND card.writer=?", (self.asset(id).id, writer))
        return found[0][2] if found else None

    def cards(self, session: str, writer: str) -> dict[str, Card]:
        """A writer's cards of a session's live assets by id, in order of creation."""
        found = cards_where(self._db, "asset.session=? AND card.writer=?", (session, writer))
        return {id: card for id, _, card in found}

    def match(
        self, words: str, k: int, *, session: str | None = None, writer: str | None = None
    ) -> list[tuple[Asset, float]]:
        """Live assets that hold any of the words, best first: a prefilter.

        Args:
            words: in any language; Chinese and Japanese characters count one by one.
            k: how many, at most.
            session: only of this one.
            writer: only by its cards, besides prompt and text of the asset; else by the best of all cards.

        Returns:
            assets and scores: BM25 of what is said best of each, over all that is said in the memory (score
            descending, order of creation).
        """
        if k < 1:
            raise UserError(f"match: k = {k}: at least 1 is needed")
        index.catch_up(self._db)
        with self._db.reading():
            return self._scored(index.find(self._db, words, k, session, writer))

    # -------------------------------------------------------------------------------------------------- vectors

    def put_vector(self, id: str, space: str, vector: ArrayLike) -> None:
        """Keep an asset's vector in a space, in place of an earlier one; it is kept as float32.

        Args:
            id: the asset.
            space: names the model and all that decides its vectors; the first vector decides the width.
            vector: (width,), finite. For cosine similarity, give unit vectors.

        Raises:
            UserError: for an unknown or deleted asset, or a vector that is none or of another width.
        """
        _named(space=space)
        with self._db.writing():
            self._vectors.put(self._serial(id, "put_vector"), space, vector)

    def search(self, space: str, query: ArrayLike, k: int, *, session: str | None = None) -> list[tuple[Asset, float]]:
        """The `k` live assets of largest inner product with the query, exactly: nothing approximate, ties in order.

        Args:
            space: the space.
            query: (width,), finite.
            k: how many, at most.
            session: only of this one.

        Returns:
            assets and scores (score descending, then order of creation), the same in every process.

        Raises:
            UserError: for an unknown space, or a query that does not fit it.
        """
        with self._db.reading():
            return self._scored(self._vectors.top(space, query, k, session))

    def _scored(self, found: Sequence[tuple[int, float]]) -> list[tuple[Asset, float]]:
        assets = assets_by_serial(self._db, [serial for serial, _ in found])
        return list(zip(assets, (score for _, score in found), strict=True))

    # --------------------------------------------------------------------------------------------------- events

    def remember(self, session: str, turn: int, type: str, payload: Mapping[str, Any]) -> None:
        """Keep an event of a session.

        Raises:
            UserError: for a payload that JSON has no form for.
        """
        _named(session=session, type=type)
        with self._db.writing():
            insert_events(self._db, [Event(session, turn, type, payload)])

    def events(self, session: str) -> list[Event]:
        """A session's events, in the order in which they were remembered."""
        return events_where(self._db, "session=?", (session,))

    # ------------------------------------------------------------------------------------------- export and care

    def export(self, folder: Path, session: str | None = None) -> None:
        """Write all, or one session and what its pictures were made from, as a folder of JSON lines, f32 and pictures.

        Others cannot write meanwhile. The folder appears whole or not at all.

        Raises:
            UserError: if the folder is there and not empty, the session unknown, or the disk refuses.
            DataError: for an original that is missing or has changed.
        """
        export_memory(self._db, self._files, folder, session)

    def take(self, folder: Path) -> int:
        """Take in what `export` wrote. All is checked before anything is kept, and all is kept or nothing.

        Assets keep ids and places. One that is here already stays as it is, so taking twice changes nothing; events
        are taken for sessions that have none here.

        Returns:
            how many assets came in.

        Raises:
            DataError: for whatever is wrong, each file and record named: a digest that differs, a file that is missing,
                a name that leads out of the folder, a record that is none, a picture that `add` would not take.
            UserError: for assets whose id or place another one has here, or a disk that refuses.
        """
        return take_export(self._db, self._files, self._vectors, folder, self.edge)

    def check(self) -> list[Finding]:
        """What is not as it should be: nothing, where all is well. Nothing is changed.

        Every original is read and compared with its digest; everything kept must be found by a query, and everything
        found must be kept.
        """
        return integrity.examine(self._db, self._files, self._vectors, mend=False)

    def repair(self) -> list[Finding]:
        """Mend what `check` finds; others cannot write meanwhile.

        Files that no asset names are removed. A picture that is lost makes its asset one without a picture, until the
        same bytes are added again; a file with other bytes than its name says is moved to `damaged/`.

        Returns:
            what was found, and whether it was mended.
        """
        return integrity.examine(self._db, self._files, self._vectors, mend=True)

    def _serial(self, id: str, call: str, *, dead: bool = False) -> int:
        """The row of an asset, inside a transaction.

        Raises:
            UserError: there is none, or it is deleted and may not be.
        """
        rows = self._db.rows("SELECT serial, deleted FROM asset WHERE id=?", (id,))
        if not rows:
            raise UserError(f"{call}: {id!r}: no asset of this id is in {self.folder}; `assets` lists them")
        serial, deleted = rows[0]
        if deleted and not dead:
            raise UserError(f"{call}: {id!r}: was deleted")
        return int(serial)


def _named(**names: str) -> None:
    """Refuse a name that is empty or cannot be kept."""
    storable(**names)
    for name, value in names.items():
        if not value.strip():
            raise UserError(f"{name}: is empty; give it a name")
