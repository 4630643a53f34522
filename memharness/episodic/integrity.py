"""Whether all that is kept can be found, and all that is found is kept: check and repair."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import numpy as np

from memharness.episodic import words
from memharness.episodic.asset import Finding
from memharness.episodic.database import Database
from memharness.episodic.files import HALF_WRITTEN, Files, content_of
from memharness.episodic.vectors import Vectors
from memharness.store import disk_error
from memharness.types import UserError

DAMAGED = "damaged"  # the folder that files with other bytes than their name says are moved to


def examine(db: Database, files: Files, vectors: Vectors, *, mend: bool) -> list[Finding]:
    """Find what is wrong, and mend it if asked to.

    Originals are read before the write lock is taken, since they never change; all else is seen in one state.
    """
    broken = _broken(db)
    if broken:  # nothing that it says can be trusted
        message = f"the database is damaged ({broken}); take back a copy or an export of the memory"
        return [Finding("database", str(db.path), message)]
    changed = _changed(db, files)
    found: list[Finding] = []
    with db.writing(synced=mend):
        try:
            found += _originals(db, files, changed, mend)
            found += _strays(db, files, mend)
        except OSError as error:
            raise disk_error(error, files.originals) from error
        found += _parents(db, mend)
        found += _vectors(db, mend)
        found += _words(db, mend)
    bad = [finding for finding in found if finding.kind == "unreachable vector"]
    if bad and mend:
        vectors.forget()
    return found if bad and not mend else found + _reached(db, vectors, mend)


def _broken(db: Database) -> str:
    """What SQLite finds wrong with its file; empty where all is well."""
    try:
        return "; ".join(str(line) for (line,) in db.rows("PRAGMA integrity_check(3)") if line != "ok")
    except UserError as error:
        return str(error)


def _changed(db: Database, files: Files) -> set[Path]:
    """Originals whose bytes are not those that their name says."""
    found = set()
    for (sha256, _), path in _named(db, files).items():
        try:
            with path.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
                    found.add(path)
        except OSError:
            continue  # looked at again, once nobody can remove it meanwhile
    return found


def _named(db: Database, files: Files) -> dict[tuple[str, str], Path]:
    """The originals that live assets name, by digest and media type."""
    rows = db.rows("SELECT DISTINCT sha256, mime FROM asset WHERE sha256 IS NOT NULL AND NOT deleted ORDER BY sha256")
    return {(sha256, mime): files.path(sha256, mime) for sha256, mime in rows}


def _originals(db: Database, files: Files, changed: set[Path], mend: bool) -> Iterator[Finding]:
    for (sha256, mime), path in _named(db, files).items():
        if path.is_file() and (path not in changed or _digest(path) == sha256):  # it may have been added again since
            continue
        ids = ", ".join(id for (id,) in db.rows("SELECT id FROM asset WHERE sha256=? AND NOT deleted", (sha256,)))
        kind = "wrong hash" if path.is_file() else "missing file"
        what = "other bytes than its name says" if path.is_file() else "the file is not there"
        if mend:
            if path.is_file():
                aside = files.originals.with_name(DAMAGED) / path.name
                aside.parent.mkdir(exist_ok=True)
                path.replace(aside)
                what += f" (moved to {aside.parent.name}/)"
            files.remove(sha256, mime)
            db.run("UPDATE asset SET lost=sha256, sha256=NULL WHERE sha256=? AND NOT deleted", (sha256,))
        mending = "is without a picture until the same bytes are added again"
        yield Finding(kind, str(path), f"{what}; asset {ids} {mending if mend else f'{mending}, if repaired'}", mend)


def _strays(db: Database, files: Files, mend: bool) -> Iterator[Finding]:
    """Files that no live asset names; one that was lost and is back is taken back."""
    originals = _named(db, files)
    paths, contents = set(originals.values()), {sha256 for sha256, _ in originals}
    lost = {sha for (sha,) in db.rows("SELECT DISTINCT lost FROM asset WHERE lost IS NOT NULL AND NOT deleted")}
    for path in files.here():
        content = content_of(path)
        if path in paths or (path.parent == files.thumbnails and content in contents and path.suffix == ".webp"):
            continue
        if content in lost and path.parent.parent == files.originals and _digest(path) == content:
            if mend:
                db.run("UPDATE asset SET sha256=lost, lost=NULL WHERE lost=?", (content,))
            yield Finding("orphan file", str(path), "a picture that was lost is back; repair takes it back", mend)
            continue
        kind = "half-written file" if fnmatch(path.name, HALF_WRITTEN) else "orphan file"
        if mend:
            path.unlink(missing_ok=True)
        yield Finding(kind, str(path), "no asset names it; repair removes it", mend)


def _digest(path: Path) -> str:
    return "" if path.is_symlink() else hashlib.sha256(path.read_bytes()).hexdigest()


def _parents(db: Database, mend: bool) -> list[Finding]:
    rows = db.rows(
        "SELECT parent.child, parent.place, parent.parent, coalesce(asset.id, '') FROM parent "
        "LEFT JOIN asset ON asset.serial=parent.child "
        "WHERE asset.id IS NULL OR parent.parent NOT IN (SELECT id FROM asset) ORDER BY parent.child, parent.place"
    )
    if mend:
        db.run_each("DELETE FROM parent WHERE child=? AND place=?", [row[:2] for row in rows])
    return [
        Finding("broken parent", child, f"its parent {parent!r} is not in the memory; repair removes the link", mend)
        for _, _, parent, child in rows
    ]


def _vectors(db: Database, mend: bool) -> list[Finding]:
    """Vectors that no query can reach: of no live asset, of another width than their space, or not finite."""
    found = []
    rows = "SELECT vector.version, vector.value, space.name, space.width, asset.id, asset.deleted FROM vector "
    rows += "LEFT JOIN space ON space.number=vector.space LEFT JOIN asset ON asset.serial=vector.asset "
    for block in db.blocks(rows + "WHERE vector.value IS NOT NULL ORDER BY vector.version", (), 1000):
        for version, value, space, width, id, deleted in block:
            if space is None:
                why = "it is of no space"
            elif id is None or deleted:
                why = "its asset is deleted" if id else "it is of no asset"
            elif len(value) != 4 * width or not np.isfinite(np.frombuffer(value, "<f4")).all():
                why = "its bytes are damaged"
            else:
                continue
            found.append((version, f"{id or '?'} in {space or '?'}", why))
    if mend:  # under a new version, so that every process hears of it
        db.run_each(
            "INSERT OR REPLACE INTO vector (asset, space, value) SELECT asset, space, NULL FROM vector WHERE version=?",
            [(version,) for version, _, _ in found],
        )
    return [Finding("unreachable vector", what, f"{why}; repair removes it", mend) for _, what, why in found]


def _words(db: Database, mend: bool) -> list[Finding]:
    """Words that no query can reach, or that lead to nothing."""
    said = _said(db)
    indexed = {
        (asset, writer): content for asset, writer, content in db.rows("SELECT asset, writer, content FROM said")
    }
    wrong = sorted(key for key in said.keys() | indexed.keys() if said.get(key) != indexed.get(key))
    found = []
    if not words.index_is_whole(db):
        message = "the index does not hold what is said; repair makes it again"
        found.append(Finding("unreachable words", "words", message, mend))
    for serial, writer in wrong:
        id = db.value("SELECT id FROM asset WHERE serial=?", (serial,)) or "?"
        whose = f"what {writer} says" if writer else "what it says itself"
        found.append(
            Finding("unreachable words", id, f"{whose} is not what is indexed; repair makes the index again", mend)
        )
    if found and mend:
        db.run("DELETE FROM said")
        rows = [(serial, writer, content) for (serial, writer), content in sorted(said.items())]
        db.run_each("INSERT INTO said (asset, writer, content) VALUES (?,?,?)", rows)
        db.run("INSERT INTO words (words) VALUES ('rebuild')")
    return found


def _said(db: Database) -> dict[tuple[int, str], str]:
    """What should be indexed, by asset and writer."""
    said = {
        (serial, words.OWN): words.indexed(words.own_words(prompt, text))
        for serial, prompt, text in db.rows("SELECT serial, prompt, text FROM asset WHERE NOT deleted")
    }
    rows = db.rows(
        "SELECT asset, writer, tags, description FROM card WHERE asset IN (SELECT serial FROM asset WHERE NOT deleted)"
    )
    for serial, writer, tags, description in rows:
        said[serial, writer] = words.indexed(words.card_words(json.loads(tags), description))
    return {key: content for key, content in said.items() if content}


def _reached(db: Database, vectors: Vectors, mend: bool) -> list[Finding]:
    """Count, in each space, what a query reaches, and compare it with what is kept."""
    found = []
    with db.reading():
        kept = db.rows(
            "SELECT space.name, space.width, count(vector.value) FROM space "
            "LEFT JOIN vector ON vector.space=space.number GROUP BY space.number ORDER BY space.number"
        )
        for space, width, count in kept:
            reached = len(vectors.top(space, np.zeros(width, np.float32), count + 1))
            if reached != count:
                message = f"{count} vectors are kept and a query reaches {reached}; repair reads them again"
                found.append(Finding("unreachable vector", f"space {space}", message, mend))
        if found and mend:
            vectors.forget()
    return found
