"""Assets and cards as rows of the database, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from memharness.episodic import words
from memharness.episodic.asset import Asset, Card, Event, Parent
from memharness.episodic.database import Database
from memharness.episodic.files import Files
from memharness.store import encode
from memharness.types import UserError

_ASSET = (
    "SELECT id, session, place, turn, kind, sha256, mime, width, height, size, prompt, source, text, current, "
    "feedback, gallery, deleted, (SELECT json_group_array(json_array(parent, operation)) FROM "
    "(SELECT parent, operation FROM parent WHERE child=asset.serial ORDER BY place)) FROM asset WHERE "
)
_AT_ONCE = 500  # rows asked for by number
_CARD = "tags, description, palette, language, status, cost, facts"


def asset_of(row: Sequence[Any]) -> Asset:
    """An asset from a row of `_ASSET`."""
    (id, session, place, turn, kind, sha256, mime, width, height, size) = row[:10]
    (prompt, source, text, current, feedback, gallery, deleted, pairs) = row[10:]
    parents = () if pairs == "[]" else tuple(Parent(*pair) for pair in json.loads(pairs))
    return Asset(
        id, session, place, turn, kind, sha256, mime, width, height, size, parents, prompt, source, text,
        bool(current), feedback, bool(gallery), bool(deleted),
    )  # fmt: skip


def assets_where(db: Database, condition: str, values: Sequence[Any] = ()) -> list[Asset]:
    """Assets that a condition holds for; it may end in an order."""
    return [asset_of(row) for row in db.rows(_ASSET + condition, values)]


def assets_by_serial(db: Database, serials: Sequence[int]) -> list[Asset]:
    """Assets in the order of these serials, which must all be there."""
    found: dict[int, Asset] = {}
    for start in range(0, len(serials), _AT_ONCE):
        some = serials[start : start + _AT_ONCE]
        rows = db.rows(f"{_ASSET}serial IN ({','.join('?' * len(some))}) ORDER BY serial", some)
        found.update(zip(sorted(some), map(asset_of, rows), strict=True))
    return [found[serial] for serial in serials]


def insert_asset(db: Database, asset: Asset) -> int:
    """Write an asset, its parents and what it is found by, inside a transaction.

    Returns:
        its serial.
    """
    serial = db.run(
        "INSERT INTO asset (id, session, place, turn, kind, sha256, mime, width, height, size, prompt, source, text, "
        "current, feedback, gallery, deleted) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        (
            asset.id, asset.session, asset.index, asset.turn, asset.kind, asset.sha256, asset.mime, asset.width,
            asset.height, asset.size, asset.prompt, asset.source, asset.text, asset.current, asset.feedback,
            asset.gallery, asset.deleted,
        ),
    ).lastrowid  # fmt: skip
    assert serial is not None  # a row was inserted
    if asset.parents:
        pairs = [(serial, place, parent.id, parent.operation) for place, parent in enumerate(asset.parents)]
        db.run_each("INSERT INTO parent VALUES (?,?,?,?)", pairs)
    if (asset.prompt or asset.text) and not asset.deleted:
        words.put(db, serial, words.OWN, words.own_words(asset.prompt, asset.text))
    return serial


def remove_unnamed(db: Database, files: Files, sha256: str, mime: str) -> None:
    """Remove a picture's files if no live asset has them. The write lock keeps others from naming it meanwhile."""
    with db.writing():
        if db.value("SELECT 1 FROM asset WHERE sha256=? AND NOT deleted", (sha256,)) is None:
            files.remove(sha256, mime)


def card_of(row: Sequence[Any]) -> Card:
    """A card from its columns."""
    tags, description, palette, language, status, cost, facts = row
    return Card(
        tuple(json.loads(tags)),
        description,
        tuple(json.loads(palette)),
        language,
        status,
        json.loads(cost),
        json.loads(facts),
    )


def cards_where(db: Database, condition: str, values: Sequence[Any]) -> list[tuple[str, str, Card]]:
    """Asset ids, writers and cards of live assets that a condition holds for, by order of creation."""
    rows = db.rows(
        f"SELECT asset.id, card.writer, {_CARD} FROM card JOIN asset ON asset.serial=card.asset "
        f"WHERE NOT asset.deleted AND {condition} ORDER BY asset.serial, card.writer",
        values,
    )
    return [(id, writer, card_of(columns)) for id, writer, *columns in rows]


def insert_card(db: Database, serial: int, writer: str, card: Card) -> None:
    """Write a writer's card and what it is found by, in place of an earlier one, inside a transaction.

    Raises:
        UserError: for cost or facts that JSON has no form for.
    """
    columns = (
        as_json("card: tags", list(card.tags)), card.description, as_json("card: palette", list(card.palette)),
        card.language, card.status, as_json("card: cost", card.cost), as_json("card: facts", card.facts),
    )  # fmt: skip
    db.run("INSERT OR REPLACE INTO card VALUES (?,?,?,?,?,?,?,?,?)", (serial, writer, *columns))
    words.drop(db, serial, writer)
    words.put(db, serial, writer, words.card_words(card.tags, card.description))


def events_where(db: Database, condition: str, values: Sequence[Any]) -> list[Event]:
    """Events that a condition holds for, in the order in which they were remembered."""
    rows = db.rows(f"SELECT session, turn, type, payload FROM event WHERE {condition} ORDER BY serial", values)
    return [Event(session, turn, type, json.loads(payload)) for session, turn, type, payload in rows]


def insert_events(db: Database, events: Sequence[Event]) -> None:
    """Write events, inside a transaction.

    Raises:
        UserError: for a payload that JSON has no form for.
    """
    rows = [(one.session, one.turn, one.type, as_json("payload", one.payload)) for one in events]
    db.run_each("INSERT INTO event (session, turn, type, payload) VALUES (?,?,?,?)", rows)


def as_json(name: str, value: Mapping[str, Any] | list[Any]) -> str:
    """JSON text.

    Raises:
        UserError: if JSON has no form for it, NaN and infinities included.
    """
    try:
        return encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise UserError(f"{name}: cannot be written as JSON ({error})") from None
