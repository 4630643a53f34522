"""Sessions of pictures and turns, read from this project's native layout or from WEAVEBench's."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from memharness.datafile import Row, as_rows, existing, files_in, read_json, read_lines, refuse_repeats
from memharness.types import DataError, did_you_mean

TASKS = ("generate", "edit", "composite", "understand", "pure_chat")
ALIASES = {"cross-reference-edit": "composite", "mmu": "understand"}  # the paper's other names
DIFFICULTIES = ("easy", "medium", "hard", "very_hard")
NEGATIVES = ("none", "semantic", "structural")
KINDS = ("upload", "generated", "edited", "composed", "fetched")
UPLOADED = ("upload", "fetched")
NAMED = re.compile(r"Image #(\d+)")  # how WEAVEBench's words name a picture


@dataclass(frozen=True, slots=True)
class Asset:
    """A picture of a session.

    Attributes:
        id: the source's own.
        number: what its label says; the creation index in the native layout, which is not the turn's number.
        created: number of the turn that brought it; 0 if it was there before the first.
        kind: `upload`, `generated`, `edited`, `composed` or `fetched`.
        parents: ids of the pictures it was made from.
        path: the file; None if the data hold no pixels.
        source: the name the data give the file.
        sha256: of the file's bytes, where the data say it.
    """

    id: str
    number: int
    created: int
    kind: str
    parents: tuple[str, ...] = ()
    path: Path | None = None
    source: str = ""
    sha256: str = ""
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: what the user says and brings, which pictures it needs, and what comes of it.

    Attributes:
        uploads: ids of pictures the user brings with it.
        gold: ids of the pictures it needs, R*; empty if it needs none.
        confounders: ids of pictures made to be taken for gold ones.
        output: id of the picture that answers it, if one does.
        answer: the assistant's words, if the data hold them.
        span: turns back to the oldest picture needed, as the data state it; None if they do not.
        checks: what the picture that answers it should show, as `memharness.scenes.Check` writes it.
    """

    number: int
    text: str
    task: str
    where: str
    uploads: tuple[str, ...] = ()
    gold: tuple[str, ...] = ()
    difficulty: str = ""
    tags: tuple[str, ...] = ()
    negatives: str = "none"
    confounders: tuple[str, ...] = ()
    output: str | None = None
    answer: str = ""
    span: int | None = None
    checks: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Session:
    """One session: a context.

    Attributes:
        assets: by id, in order of creation.
        label: how a picture is called; `{}` stands for its number.
    """

    id: str
    where: str
    turns: Sequence[Turn]
    assets: Mapping[str, Asset]
    lang: str = ""
    domains: tuple[str, ...] = ()
    label: str = "image {}"

    def brought(self, turn: Turn) -> Sequence[Asset]:
        """The pictures that are there when a turn is asked and were not before: uploads, and what came first of all."""
        early = (asset for asset in self.assets.values() if turn.number == 1 and asset.created == 0)
        return (*early, *(self.assets[name] for name in turn.uploads))

    def at_hand(self, turn: Turn) -> Sequence[Asset]:
        """The pictures there are when a turn is asked."""
        return [asset for asset in self.assets.values() if asset.created < turn.number or asset.id in turn.uploads]


def read_sessions(path: Path, *, implicit: bool = False) -> tuple[Sequence[Session], Sequence[Path]]:
    """The sessions of a file or folder, and the files that hold them.

    The native layout is `sessions/*.json` (a session each), `sessions.json` (a list of them) or `sessions.jsonl`, with
    pictures named relative to the folder; WEAVEBench's is `test/test.json` or `test.json`.

    Args:
        path: the file or folder.
        implicit: whether WEAVEBench's words are to name pictures by caption, not by number.

    Raises:
        DataError: for data in neither layout, or that contradict themselves.
    """
    files = _files(path)
    sessions: list[Session] = []
    rows: list[tuple[str, Row]] = []
    for file in files:
        for row in _records(file):
            if row.has("chats"):
                sessions.append(_weave(row, file.parent, implicit))
            else:
                sessions.append(_native(row, file.parent.parent if file.parent.name == "sessions" else file.parent))
            rows.append((sessions[-1].id, row))
    if not sessions:
        raise DataError(f"{path}: holds no session; name the folder or file of the sessions")
    refuse_repeats(rows, "session_id")
    return sessions, files


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [existing(path)]
    for folder in (path / "sessions", path):
        if folder.is_dir() and folder.name == "sessions" and (files := list(files_in(folder, ".json"))):
            return files
    for name in ("sessions.json", "sessions.jsonl", "test/test.json", "test.json"):
        if (path / name).is_file():
            return [path / name]
    raise DataError(
        f"{path}: holds no session; expected sessions/*.json, sessions.json, sessions.jsonl, or WEAVEBench's "
        "test/test.json"
    )


def _records(file: Path) -> list[Row]:
    if file.suffix == ".jsonl":
        return read_lines(file)
    value = read_json(file)
    return as_rows(value, str(file), "session") if isinstance(value, list) else as_rows([value], str(file), "session")


# ------------------------------------------------------------------------------------------------------ native layout


def _native(row: Row, root: Path) -> Session:
    name = row.text("session_id")
    row = Row(row.values, f"{row.where} ({name})")
    assets = _assets(row, root)
    turns = [_turn(turn) for turn in row.rows("turns", "turn")]
    session = Session(name, row.where, turns, assets, row.text("lang", ""), row.texts("domains", ()))
    check_session(session)
    return session


def _assets(row: Row, root: Path) -> dict[str, Asset]:
    rows = row.rows("assets", "asset")
    refuse_repeats(((one.text("asset_id"), one) for one in rows), "asset_id")
    rows.sort(key=lambda one: one.whole("index"))
    for place, one in enumerate(rows):
        if one.whole("index") != place:
            raise one.error("index", f"{one.whole('index')} where {place} is due", "number assets from 0 as they came")
    return {one.text("asset_id"): _asset(one, root) for one in rows}


def _asset(row: Row, root: Path) -> Asset:
    source = row.text("path", "")
    return Asset(
        row.text("asset_id"),
        row.whole("index"),
        row.whole("created_turn"),
        _one_of(row, "kind", KINDS),
        row.texts("parent_ids", ()),
        inside(root, source, row, "path") if source else None,
        source,
        row.text("sha256", ""),
        row.text("caption", ""),
    )


def _turn(row: Row) -> Turn:
    task = row.text("task_type")
    return Turn(
        row.whole("turn"),
        row.text("user_text"),
        ALIASES.get(task) or _one_of(row, "task_type", TASKS),
        row.where,
        row.texts("uploads", ()),
        row.texts("gt_images"),
        _one_of(row, "difficulty", DIFFICULTIES) if row.has("difficulty") else "",
        row.texts("tags", ()),
        _one_of(row, "negatives", NEGATIVES) if row.has("negatives") else "none",
        row.texts("confounders", ()),
        row.text("output_asset", "") or None,
        row.text("gt_answer", ""),
        row.whole("span_max") if row.has("span_max") else None,
        tuple(_check(check) for check in row.rows("checks", "check")) if row.has("checks") else (),
    )


def _check(row: Row) -> Mapping[str, Any]:
    """A check as it stands, held to what it can be."""
    from memharness.scenes import Check

    try:
        Check.from_json(row.values)
    except ValueError as error:
        raise row.error("check", str(error)) from None
    return row.values


def _one_of(row: Row, field: str, known: Sequence[str]) -> str:
    word = row.text(field)
    if word not in known:
        raise row.error(field, f"{word!r} is none of {', '.join(known)}{did_you_mean(word, known)}")
    return word


def inside(root: Path, name: str, row: Row, field: str) -> Path:
    """A file named relative to the data folder.

    Raises:
        DataError: if the name leads out of it.
    """
    # Without resolving links: the pictures may be a link to a larger disk.
    folder = Path(os.path.normpath(root.absolute()))
    path = Path(os.path.normpath(folder / name))
    if not path.is_relative_to(folder):
        raise row.error(field, f"{name!r} lies outside the data folder", "name files relative to it")
    return path


def check_session(session: Session) -> None:
    """Hold a session to what episodes rely on.

    Raises:
        DataError: for turns out of order, a picture that no turn or two turns bring, and a turn that names a picture
            that is not there when it is asked.
    """
    if not session.turns:
        raise DataError(f"{session.where}: turns: holds no turn; fetch the file again or correct it")
    brought = {asset.id: 0 for asset in session.assets.values() if asset.created == 0}
    for place, turn in enumerate(session.turns, 1):
        row = Row({}, turn.where)
        if turn.number != place:
            raise row.error("turn", f"{turn.number} where {place} is due", "number turns from 1, in order")
        _check_brought(session, turn, row, brought)
        there = {asset.id for asset in session.at_hand(turn)}
        for field, names in (("gt_images", turn.gold), ("confounders", turn.confounders)):
            for name in names:
                if name not in session.assets:
                    raise row.error(field, f"{name!r} is no asset of the session{did_you_mean(name, session.assets)}")
                if name not in there:
                    raise row.error(field, f"{name!r} is not there yet at this turn", "name earlier pictures alone")
    for before, asset in pairwise(session.assets.values()):
        if _came(asset) < _came(before):
            raise DataError(
                f"{session.where}: assets: {asset.id!r} (turn {asset.created}) follows {before.id!r} (turn "
                f"{before.created}) by its index and came before it; index is the order of creation"
            )
    for asset in session.assets.values():
        if asset.id not in brought:
            raise DataError(
                f"{session.where}: assets: {asset.id!r} is no turn's upload or output; name it at turn {asset.created}"
            )
        if lost := [name for name in asset.parents if name not in session.assets]:
            raise DataError(f"{session.where}: assets: {asset.id!r}: parent_ids: {lost[0]!r} is no asset")


def _came(asset: Asset) -> tuple[int, bool]:
    """When a picture came: what a turn is asked with comes before what it makes."""
    return asset.created, asset.created > 0 and asset.kind not in UPLOADED


def _check_brought(session: Session, turn: Turn, row: Row, brought: dict[str, int]) -> None:
    named = [("uploads", name) for name in turn.uploads] + [("output_asset", turn.output)] * (turn.output is not None)
    for field, name in named:
        asset = session.assets.get(str(name))
        if asset is None:
            raise row.error(field, f"{name!r} is no asset of the session{did_you_mean(str(name), session.assets)}")
        if asset.id in brought:
            raise row.error(field, f"{name!r} was brought by turn {brought[asset.id]} already")
        if asset.created != turn.number:
            raise row.error(field, f"{name!r} says it was created at turn {asset.created}", "let the two agree")
        if (asset.kind in UPLOADED) != (field == "uploads"):
            raise row.error(field, f"{name!r} is of kind {asset.kind}", "uploads and fetched pictures are uploads")
        brought[asset.id] = turn.number


# --------------------------------------------------------------------------------------------------------- WEAVEBench


def _weave(row: Row, root: Path, implicit: bool) -> Session:
    """A task of WEAVEBench: user and assistant messages, pictures by 1-based number.

    The task follows from how often the user names a picture, as in its official loader; R* is what the user names. Its
    files hold no captions; `captions`, one an image, may be put beside `images`, and then words may go by them.
    """
    name = str(row.values.get("idx", ""))
    if not name:
        raise row.error("idx", "is missing")
    row = Row(row.values, f"{row.where} ({name})")
    sources = row.texts("images")
    captions = row.texts("captions", ("",) * len(sources))
    if len(captions) != len(sources):
        raise row.error("captions", f"{len(captions)} where {len(sources)} images are", "write one an image")
    made: dict[int, int] = {}  # the turn that makes a picture
    first: dict[int, int] = {}  # the turn that names it first
    turns = []
    for number, (said, replied) in enumerate(_pairs(row), 1):
        words = "\n".join(one.text("content") for one in said)
        named = [int(match) for match in NAMED.findall(words)]
        shown = [_number(one) for one in replied if one.text("type") == "image"]
        for one in (*named, *shown):
            if not 1 <= one <= len(sources):
                raise said[0].error("content", f"names Image #{one}; there are {len(sources)} images")
        first = dict.fromkeys(named, number) | first
        made |= dict.fromkeys(shown, number)
        answer = "\n".join(one.text("content") for one in replied if one.text("type") == "text")
        words = _by_caption(words, captions, row) if implicit else words
        turns.append((number, words, named, shown, answer, said[0].where))
    created = {one: made.get(one, first.get(one, 0)) for one in range(1, len(sources) + 1)}
    order = sorted(created, key=lambda one: (created[one], one in made, one))
    assets = {
        f"#{one}": Asset(
            f"#{one}",
            one,
            created[one],
            "generated" if one in made else "upload",
            path=_weave_picture(root, sources[one - 1], row),
            source=sources[one - 1],
            caption=captions[one - 1],
        )
        for one in order
    }
    session = Session(
        name,
        row.where,
        [_weave_turn(created, made, *turn) for turn in turns],
        assets,
        domains=(row.text("domain", ""),),
        label="Image #{}",
    )
    check_session(session)
    return session


def _by_caption(words: str, captions: Sequence[str], row: Row) -> str:
    """A user's words with `the picture “caption”` in the place of each `Image #k`.

    Raises:
        DataError: for a picture without a caption.
    """

    def phrase(match: re.Match[str]) -> str:
        caption = captions[int(match[1]) - 1].strip().rstrip(".")
        if not caption:
            raise row.error(
                "captions",
                f"holds none for {match[0]}, which a turn names",
                "write one an image (WEAVEBench publishes none), or leave out naming=implicit",
            )
        return f"the picture “{caption}”"

    return NAMED.sub(phrase, words)


def _pairs(row: Row) -> Iterable[tuple[list[Row], list[Row]]]:
    messages = row.rows("chats", "message")
    groups = [(role, list(group)) for role, group in groupby(messages, lambda one: one.text("role"))]
    roles = [role for role, _ in groups]
    if roles != ["user", "assistant"] * (len(groups) // 2) or not groups:
        raise row.error("chats", "must be messages of user and assistant in turn, a user's first")
    return ((said, replied) for (_, said), (_, replied) in zip(groups[::2], groups[1::2], strict=True))


def _number(message: Row) -> int:
    match = NAMED.fullmatch(message.text("content").strip())
    if not match:
        raise message.error("content", "must be Image #k, the picture that is due")
    return int(match[1])


def _weave_turn(
    created: Mapping[int, int],
    made: Mapping[int, int],
    number: int,
    words: str,
    named: Sequence[int],
    shown: Sequence[int],
    answer: str,
    where: str,
) -> Turn:
    if len(shown) > 1:
        raise Row({}, where).error("chats", "one turn makes several pictures; a turn has one target")
    task = ("generate", "edit", "composite")[min(len(named), 2)] if shown else "understand"
    return Turn(
        number,
        words,
        task,
        where,
        uploads=tuple(f"#{one}" for one in sorted(created) if created[one] == number and one not in made),
        gold=tuple(f"#{one}" for one in dict.fromkeys(named)),
        output=f"#{shown[0]}" if shown else None,
        answer=answer,
    )


def _weave_picture(root: Path, name: str, row: Row) -> Path:
    """Pictures are named relative to the file's folder, or to the one above it."""
    paths = [inside(folder, name, row, "images") for folder in (root, root.parent)]
    return next((path for path in paths if path.is_file()), paths[0])
