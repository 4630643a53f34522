"""What every candidate shows, by the words of its making and its parents', which pixels check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memharness.methods.cma.candidates import Candidate
from memharness.methods.cma.colours import distance, pixels
from memharness.methods.cma.depiction import Depiction, changed, changes, pictured, shown, together
from memharness.methods.cma.reading import read_turn, requests

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NEAR = 0.2
"""Share of places that differ under which one picture counts as made of another, whatever the method took it for."""
CLEARLY = 0.5
"""How much nearer than the stated parent another picture must be to be taken in its stead."""


@dataclass(frozen=True)
class Told:
    """One candidate with what is known of it.

    Attributes:
        parents: places of what it was made from, the one it keeps most of first.
        seen: what it shows.
    """

    candidate: Candidate
    parents: tuple[int, ...]
    seen: Depiction


class Gallery:
    """Candidates as they unfolded. Looking at pixels is put off until something must be compared, and kept."""

    def __init__(self) -> None:
        """Begin with no pixels known."""
        self._pixels: dict[str, NDArray[np.float32]] = {}

    def tell(
        self, candidates: Sequence[Candidate], uploads: frozenset[int] = frozenset(), query: str = ""
    ) -> list[Told]:
        """What each shows, in order: `uploads` are places of those that came with `query`."""
        told: list[Told] = []
        place = {one.asset.id: at for at, one in enumerate(candidates)}
        for at, one in enumerate(candidates):
            words = query if at in uploads else one.words
            if one.asset.kind in ("upload", "fetched"):
                told.append(Told(one, (), _brought(words)))
                continue
            parents = self._parents(at, candidates, place)
            told.append(Told(one, parents, _made(words, [told[parent] for parent in parents])))
        return told

    def _parents(self, at: int, candidates: Sequence[Candidate], place: Mapping[str, int]) -> tuple[int, ...]:
        """Stated parents, nearest by pixels first; what is far nearer than they are takes their place."""
        one = candidates[at]
        if read_turn(one.words, held=at).intent == "new":
            return ()
        stated = [place[parent.id] for parent in one.asset.parents if place.get(parent.id, at) < at]
        gaps = {other: gap for other in range(at) if (gap := self.gap(one, candidates[other])) is not None}
        stated.sort(key=lambda other: (gaps.get(other, 1.0), other))
        if any(
            change.operation in ("light", "view")
            for clause in requests(one.words).clauses
            for change in changes(clause)
        ):
            return tuple(stated)  # nothing looks as it did before
        nearest = min(gaps, key=lambda other: (gaps[other], -other), default=None)
        if nearest is None or nearest in stated or gaps[nearest] > NEAR:
            return tuple(stated)
        best = min((gaps.get(other, 1.0) for other in stated), default=1.0)
        if gaps[nearest] > CLEARLY * best:
            return tuple(stated)
        return (nearest, *(stated if len(stated) > 1 else ()))

    def gap(self, one: Candidate, other: Candidate) -> float | None:
        """How far apart two pictures are, in [0, 1]; None where one has no pixels."""
        first, second = self._look(one), self._look(other)
        return None if first is None or second is None else distance(first, second)

    def _look(self, one: Candidate) -> NDArray[np.float32] | None:
        digest = one.asset.sha256
        if digest is None:
            return None
        if digest not in self._pixels:
            picture = one.picture()
            if picture is None:
                return None
            self._pixels[digest] = pixels(picture)
        return self._pixels[digest]


def _brought(words: str) -> Depiction:
    """What an upload shows: what its turn says of it, before any change."""
    asked = requests(words)
    told = shown(" . ".join(asked.told), whole=False)
    made = [change for clause in asked.clauses for change in changes(clause)]
    things = [change.target for change in made if change.target and change.operation not in ("add", "text")]
    return replace(told, things=(*told.things, *(thing for thing in things if thing.sort == "thing")))


def _made(words: str, parents: Sequence[Told]) -> Depiction:
    if not parents:
        return pictured(words)
    base = parents[0].seen
    asked = requests(words)
    if len(parents) > 1:
        taken = [] if asked.merges else list(read_turn(words).loose)
        return together([parent.seen for parent in parents], base, taken)
    made = [change for clause in asked.clauses for change in changes(clause)]
    return changed(base, made)
