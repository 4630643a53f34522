"""Words of assets and cards, found by FTS5: one row for what an asset itself says, one a card."""

from __future__ import annotations

import re
from collections.abc import Iterable

from memharness.episodic.database import Database
from memharness.retrieval import runs
from memharness.types import UserError

_LAST = "SELECT coalesce(max(id), 0) FROM words_docsize"  # row that is indexed

OWN = ""  # the writer of an asset's own words; a card's writer is never empty

# Chinese and Japanese have no spaces, so each character counts as a word.
_CHARACTER = re.compile("([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])")


def tokens(text: str) -> list[str]:
    """What is indexed and asked: `retrieval.runs`, and each Chinese or Japanese character by itself."""
    return _CHARACTER.sub(r" \1 ", " ".join(runs(text))).split()


def indexed(text: str) -> str:
    """A text as it is indexed."""
    return " ".join(tokens(text))


def own_words(prompt: str, text: str) -> str:
    """What an asset says itself: the words that made it and came with it."""
    return f"{prompt}\n{text}"


def card_words(tags: Iterable[str], description: str) -> str:
    """What a card says."""
    return "\n".join((*tags, description))


def put(db: Database, serial: int, writer: str, text: str) -> None:
    """Have an asset found by these words of a writer, who has said nothing of it yet, inside a transaction."""
    content = indexed(text)
    if content:
        db.run("INSERT INTO said (asset, writer, content) VALUES (?,?,?)", (serial, writer, content))


def drop(db: Database, serial: int, writer: str | None = None) -> None:
    """Have an asset found by no words, or by none of a writer, inside a transaction."""
    for number, content in db.rows(
        "SELECT number, content FROM said WHERE asset=?1 AND (?2 IS NULL OR writer=?2)", (serial, writer)
    ):
        if db.value("SELECT 1 FROM words_docsize WHERE id=?", (number,)):  # what was never indexed cannot be taken out
            db.run("INSERT INTO words (words, rowid, content) VALUES ('delete',?,?)", (number, content))
        db.run("DELETE FROM said WHERE number=?", (number,))


def catch_up(db: Database) -> None:
    """Index what was said since somebody last looked for words: many rows at once cost far less than each by itself."""
    if is_behind(db):
        with db.writing():
            db.run(f"INSERT INTO words (rowid, content) SELECT number, content FROM said WHERE number > ({_LAST})")


def is_behind(db: Database) -> bool:
    """Whether there are words that are not indexed yet."""
    return bool(db.value(f"SELECT (SELECT max(number) FROM said) > ({_LAST})"))


def index_is_whole(db: Database) -> bool:
    """Whether the index holds what is said; what is not indexed yet is not asked for."""
    try:
        db.run("INSERT INTO words (words, rank) VALUES ('integrity-check', ?)", (not is_behind(db),))
    except UserError:
        return False
    return True


def find(db: Database, text: str, k: int, session: str | None, writer: str | None) -> list[tuple[int, float]]:
    """Serials of the `k` best assets that hold any of the words, and their scores: BM25 of the best row, larger better.

    Args:
        db: the database.
        text: words to look for; none means nothing is found.
        k: how many, at most.
        session: only assets of this one.
        writer: only cards of this one, besides the assets' own words.
    """
    wanted = list(dict.fromkeys(tokens(text)))
    if not wanted:
        return []
    query = " OR ".join(f'"{word}"' for word in wanted)
    statement = (
        "WITH found AS MATERIALIZED (SELECT rowid AS number, bm25(words) AS score FROM words WHERE words MATCH ?1) "
        "SELECT said.asset, -min(found.score) AS best FROM found JOIN said USING (number) "
        "JOIN asset ON asset.serial=said.asset WHERE (?2 IS NULL OR asset.session=?2) "
        "AND (?3 IS NULL OR said.writer IN ('', ?3)) GROUP BY said.asset ORDER BY best DESC, said.asset LIMIT ?4"
    )
    return db.rows(statement, (query, session, writer, k))
