"""The nouns of episodic visual memory: an asset, what it was made from, a writer's card, an event, a finding."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from memharness.types import UserError

Kind = Literal["upload", "generated", "edited", "composed", "fetched"]
Feedback = Literal["liked", "rejected"]
Status = Literal["pending", "ok", "failed"]

_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")


@dataclass(frozen=True)
class Parent:
    """An asset that another was made from, and how.

    Attributes:
        id: the parent's id.
        operation: `edit`, `compose`, `crop` … or the words that asked for it.
    """

    id: str
    operation: str


@dataclass(frozen=True)
class Asset:
    """A picture of a session, or a thing remembered without one; a deleted asset stays as a tombstone.

    Attributes:
        id: unique in the memory.
        session: the session it came up in.
        index: 0-based place in its session, by order of creation. It never changes, whatever is deleted.
        turn: the turn it came up in; several assets, or none, may share one.
        kind: how it came to be.
        sha256: hex digest of the original's bytes; None without a picture.
        mime: media type of the original, such as `image/png`; empty without a picture.
        width: pixels, as shown (after EXIF rotation); 0 without a picture.
        height: pixels, as shown.
        size: bytes of the original.
        parents: what it was made from, in the order given.
        prompt: the words that made it; empty once deleted.
        source: the name or address it came under, kept as words and never opened; empty once deleted.
        text: further words about it; empty once deleted.
        current: whether it is the version that holds now.
        feedback: what the user thought of it.
        gallery: whether it was promoted to the gallery.
        deleted: whether it is a tombstone.
    """

    id: str
    session: str
    index: int
    turn: int
    kind: Kind
    sha256: str | None
    mime: str
    width: int
    height: int
    size: int
    parents: tuple[Parent, ...]
    prompt: str
    source: str
    text: str
    current: bool
    feedback: Feedback | None
    gallery: bool
    deleted: bool


@dataclass(frozen=True)
class Card:
    """What one writer says about an asset.

    Attributes:
        tags: short words.
        description: sentences.
        palette: colours, most frequent first, each `#rrggbb`.
        language: of the words, such as `en`.
        status: `pending` while it is being written, `failed` if that came to nothing.
        cost: what writing it cost, such as `{"tokens": 812, "seconds": 0.4}`.
        facts: what was measured, such as pHash, words in the picture, sharpness; JSON values.
    """

    tags: tuple[str, ...] = ()
    description: str = ""
    palette: tuple[str, ...] = ()
    language: str = "en"
    status: Status = "ok"
    cost: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what no reader of a card could use.

        Raises:
            UserError: for an unknown status or a colour that is none.
        """
        one_of("status", self.status, get_args(Status))
        for colour in self.palette:
            if not _COLOUR.fullmatch(colour):
                raise UserError(f"card: palette: {colour!r} is no colour; write it as #rrggbb")


@dataclass(frozen=True)
class Event:
    """Something that happened in a session and is no asset: a retrieval, a tool call, a summary.

    Attributes:
        session: the session.
        turn: the turn.
        type: what kind of event; the caller's own word.
        payload: JSON values.
    """

    session: str
    turn: int
    type: str
    payload: Mapping[str, Any]


@dataclass(frozen=True)
class Finding:
    """Something that is not as it should be.

    Attributes:
        kind: `database`, `missing file`, `wrong hash`, `orphan file`, `half-written file`, `unreachable vector`,
            `unreachable words` or `broken parent`.
        what: the file or asset it is about.
        message: what is wrong, and what mending did or would do.
        mended: whether `repair` mended it.
    """

    kind: str
    what: str
    message: str
    mended: bool = False


def one_of(name: str, value: object, known: tuple[str, ...]) -> None:
    """Refuse a value that is not one of a few words.

    Raises:
        UserError: if it is not.
    """
    if value not in known:
        raise UserError(f"{name}: {value!r} is none of {', '.join(known)}")


def storable(**texts: str) -> None:
    """Refuse text that a database cannot keep as it is.

    Raises:
        UserError: for what is no text, or holds half a surrogate pair, naming the field.
    """
    for name, text in texts.items():
        if not isinstance(text, str):
            raise UserError(f"{name}: must be text, not {type(text).__name__}")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise UserError(f"{name}: {text!r} holds half a surrogate pair, which is no character") from None
