"""What CoRE chooses from, and what it says: candidates with their cards, and a retrieval with how it came about."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

    from memharness.episodic import Asset, Card

Rung = Literal["none", "rules", "text", "pixels", "reader"]


@dataclass(frozen=True)
class Candidate:
    """An earlier picture as a retriever sees it.

    Attributes:
        asset: facts of the memory; `index` is its rank in the order of creation, from 0.
        card: what the writer said of it; None if it said nothing yet.
        thumbnail: WebP; None where there is no picture.
    """

    asset: Asset
    card: Card | None
    thumbnail: bytes | None

    @property
    def words(self) -> str:
        """The words of the turn that brought or made it."""
        said = self.card.facts.get("words") if self.card is not None else None
        return str(said) if said else self.asset.prompt or self.asset.text

    def picture(self) -> Picture | None:
        """The thumbnail, decoded as RGB."""
        if self.thumbnail is None:
            return None
        from PIL import Image

        with Image.open(io.BytesIO(self.thumbnail)) as picture:
            return picture.convert("RGB")


@dataclass(frozen=True)
class Retrieval:
    """The earlier pictures a turn needs.

    Attributes:
        ids: asset ids in order of creation; none if no earlier picture is needed.
        rung: the last rung of the ladder that was climbed.
        trace: what the record keeps: outcome, references as read, scores.
    """

    ids: tuple[str, ...]
    rung: Rung
    trace: Mapping[str, Any] = field(default_factory=dict)
