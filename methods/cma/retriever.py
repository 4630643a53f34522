"""CoRE, the retriever of earlier pictures: its contract, and the one without a model, a ladder of rungs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from memharness.methods.cma.candidates import Candidate, Retrieval, Rung
from memharness.methods.cma.depiction import Change, Phrase, fit
from memharness.methods.cma.lineage import Gallery, Told
from memharness.methods.cma.reading import Reading, read_turn
from memharness.methods.cma.referring import Reference
from memharness.methods.cma.rules import rule
from memharness.methods.cma.writer import facts_of

__all__ = ["Finder", "ModelFreeRetriever", "Retrieval", "Retriever"]

ENOUGH = 0.55
"""Mean fit from which a picture counts as meant where nothing calls for a picture in so many words."""
SAME = 4
"""Bits of pHash by which an upload may differ from a picture in memory and still be it."""


class Retriever(Protocol):
    """Picks the earlier pictures a turn needs, which may be none."""

    async def retrieve(
        self, query: str, uploads: Sequence[bytes], candidates: Sequence[Candidate], history: Sequence[str]
    ) -> Retrieval:
        """Pick.

        Args:
            query: the user's words of the turn.
            uploads: pictures that come with it, as bytes; memory may hold them already.
            candidates: every picture in memory, in order of creation.
            history: the dialogue so far, one line each.

        Raises:
            ReaderError: a reader failed.
        """


class ModelFreeRetriever:
    """CoRE by a ladder: rules; what words and cards say; likeness to what the turn brings; pixels where these tie."""

    def __init__(self) -> None:
        """Begin with no pixels known."""
        self._gallery = Gallery()

    async def retrieve(
        self, query: str, uploads: Sequence[bytes], candidates: Sequence[Candidate], history: Sequence[str]
    ) -> Retrieval:
        """See `Retriever`."""
        brought = _held(uploads, candidates)
        reading = read_turn(query, len(uploads), len(candidates))
        trace: dict[str, Any] = {"outcome": "ok", "intent": reading.intent, "rule": reading.rule}
        if reading.intent in ("new", "chat") and not brought:
            return Retrieval((), "none", trace)
        told = self._gallery.tell(candidates, frozenset(brought), query)
        finder = Finder(told, frozenset(brought), _liked(history, told))
        places, rung = finder.find(reading)
        trace["references"] = [
            {"text": one.text, "form": one.form, "places": list(found)} for one, found in finder.found
        ]
        return Retrieval(tuple(candidates[place].asset.id for place in sorted(places)), rung, trace)


def _held(uploads: Sequence[bytes], candidates: Sequence[Candidate]) -> list[int]:
    """Places of the pictures that a turn brings: the same bytes, or else a likeness; the last of its kind."""
    found = []
    for data in uploads:
        digest = hashlib.sha256(data).hexdigest()
        same = [at for at, one in enumerate(candidates) if one.asset.sha256 == digest]
        found += same[-1:] or _alike(data, candidates)[-1:]
    return sorted(set(found))


def _alike(data: bytes, candidates: Sequence[Candidate]) -> list[int]:
    """Places of pictures whose pHash is that of an upload, by a few bits."""
    import imagehash

    from memharness.methods.cma.colours import measure, opened

    picture = opened(data)
    if picture is None:
        return []
    own = imagehash.hex_to_hash(measure(picture)["phash"])
    known = [(at, facts_of(one.card).get("phash")) for at, one in enumerate(candidates)]
    return [at for at, code in known if code and own - imagehash.hex_to_hash(str(code)) <= SAME]


_LINE = re.compile(r"Turn (\d+), user: (.*)", re.DOTALL)
_LIKING = rule("liking")
_EVERY = re.compile(r"\b(?:all|every|each)\b|所有|全部|每[张幅]", re.IGNORECASE)
_WISHING = rule("wishing")


def _liked(history: Sequence[str], told: Sequence[Told]) -> list[int]:
    """Places of pictures that the user said they like: the one a sentence of praise names, or the last there was."""
    found = []
    for line in history:
        match = _LINE.match(line)
        if not match or not _LIKING.search(match[2]) or _WISHING.search(match[2]):
            continue
        if re.search(r"我说喜欢|说过喜欢|我喜欢的那", match[2]):
            continue
        before = [at for at, one in enumerate(told) if one.candidate.asset.turn < int(match[1])]
        found += before[-1:]
    marked = [at for at, one in enumerate(told) if one.candidate.asset.feedback == "liked"]
    return found or marked


@dataclass
class Finder:
    """Finds what references mean among what is told.

    Attributes:
        told: every candidate with what it shows.
        brought: places of what the turn brings.
        liked: places of what the user likes.
    """

    told: Sequence[Told]
    brought: frozenset[int]
    liked: Sequence[int]

    def __post_init__(self) -> None:
        """Begin with nothing found."""
        self.found: list[tuple[Reference, tuple[int, ...]]] = []
        self._rung: Rung = "rules"
        self._known: dict[Phrase, bool] = {}

    def find(self, reading: Reading) -> tuple[frozenset[int], Rung]:
        """All pictures a turn needs, and the last rung that was climbed for it."""
        places: set[int] = set(self.brought)
        references = list(reading.references)
        spare = list(reading.loose)
        for at, reference in enumerate(references):
            if self.brought and reference.form in ("last", "upload"):
                continue  # the one that came with the turn is meant
            taken = spare if len(references) > 1 and not at and reading.intent != "look" else []
            found = self._resolve(reference, taken, places if len(references) > 1 else self.brought)
            self.found.append((reference, found))
            places |= set(found)
        if not self.found and not self.brought:
            places |= self._loosely(reading)
        elif len(self.found) < 2 and reading.intent != "look" and (reading.takes or reading.intent == "fuse"):
            places |= self._taken_along(reading, places)
        return frozenset(places), self._rung

    def _resolve(self, reference: Reference, taken: Sequence[Phrase], others: Iterable[int]) -> tuple[int, ...]:
        pool = [at for at in range(len(self.told)) if at not in self.brought]
        if not pool:
            return ()
        match reference.form:
            case "last":
                return (pool[-1],)
            case "previous":
                return (pool[-2],) if len(pool) > 1 else (pool[-1],)
            case "liked":
                return tuple(self.liked[-1:]) or (pool[-1],)
            case "rejected":
                bad = [at for at in pool if self.told[at].candidate.asset.feedback == "rejected"]
                return tuple(bad[-1:])
            case "before":
                return self._before(reference.change, pool)
            case "earlier" if reference.inner:
                inner = self._resolve(reference.inner, (), others)
                return tuple(dict.fromkeys(self._preceding(at) for at in inner[-1:]))
            case "parent":
                known = [at for _, found in self.found for at in found]
                return (self._preceding(known[-1] if known else pool[-1]),)
            case "upload":
                kinds = [at for at in pool if self.told[at].candidate.asset.kind in ("upload", "fetched")]
                return self._best(reference, taken, kinds or pool)
            case "composed":
                kinds = [at for at in pool if len(self.told[at].parents) > 1 or self._kind(at) == "composed"]
                return self._best(reference, taken, kinds or pool)
            case "nth":
                return self._nth(reference, pool)
            case "latest" | "original":
                fitting = self._fitting(reference, pool)
                return tuple(fitting[-1:] if reference.form == "latest" else fitting[:1])
        return self._best(reference, taken, pool)

    def _kind(self, at: int) -> str:
        return self.told[at].candidate.asset.kind

    def _preceding(self, at: int) -> int:
        """What a picture was made from, or the one before it."""
        return self.told[at].parents[0] if self.told[at].parents else max(at - 1, 0)

    def _before(self, change: Change | None, pool: Sequence[int]) -> tuple[int, ...]:
        """What a picture was made from by this change."""
        self._rung = "text"
        scored = []
        for at in pool:
            one = self.told[at]
            score = max((_alike_changes(change, made) for made in one.seen.changes), default=0.0)
            if one.parents:
                scored.append((score, at))
        if not scored:
            return (pool[-1],)
        best = max(scored)
        return (self.told[best[1]].parents[0],)

    def _nth(self, reference: Reference, pool: Sequence[int]) -> tuple[int, ...]:
        members = list(range(len(self.told))) if reference.says_nothing else self._fitting(reference, pool)
        return tuple(members[n] for n in reference.numbers if n < len(members)) or tuple(members[-1:])

    def _fitting(self, reference: Reference, pool: Sequence[int]) -> list[int]:
        """All that fit as well as the best does; everything if nothing is said."""
        if reference.says_nothing:
            return list(pool)
        self._rung = "text"
        scores = {at: self._score(reference, at) for at in pool}
        best = max(scores.values())
        return [at for at in pool if scores[at] >= best - 0.12]

    def _best(self, reference: Reference, taken: Sequence[Phrase], pool: Sequence[int]) -> tuple[int, ...]:
        self._rung = "text"
        scores = {at: self._score(reference, at, taken) for at in pool}
        if not scores:
            return ()
        if reference.count is None or reference.count > 1:
            return self._several(reference, scores)
        best = max(scores.values())
        tied = [at for at in pool if scores[at] >= best - 1e-6]
        return (self._by_pixels(reference, tied),)

    def _several(self, reference: Reference, scores: dict[int, float]) -> tuple[int, ...]:
        order = sorted(scores, key=lambda at: (-scores[at], -at))
        if reference.says_nothing and reference.count is None and not _EVERY.search(reference.text):
            return tuple(sorted(order[:2]))  # `these pictures` are the last ones
        if reference.count is not None:
            return tuple(sorted(order[: reference.count]))
        best = scores[order[0]]
        return tuple(sorted(at for at in order if scores[at] >= best - 0.12))

    def _by_pixels(self, reference: Reference, tied: Sequence[int]) -> int:
        """Of what cards cannot tell apart: most of the colour that is asked for; else the latest."""
        colours = {name for phrase in reference.phrases for sort, name in phrase.marks if sort == "colour"}
        if len(tied) < 2 or not colours:
            return tied[-1]
        self._rung = "pixels"
        return max(tied, key=lambda at: (self._share(at, colours), at))

    def _share(self, at: int, colours: Iterable[str]) -> float:
        known = dict(facts_of(self.told[at].candidate.card).get("colours") or ())
        return sum(float(known.get(name, 0.0)) for name in colours)

    def _score(self, reference: Reference, at: int, taken: Sequence[Phrase] = ()) -> float:
        """How well a picture fits, in [0, 1]: the mean over all that is said, weighed by how much it tells apart."""
        seen = self.told[at].seen
        fits = [(_weight(phrase), self._fit(phrase, at)) for phrase in reference.phrases]
        fits += [(0.4, fit(phrase, seen)) for phrase in taken]
        fits += [(1.0, 1.0 - (fit(phrase, seen) if fit(phrase, seen) >= 0.9 else 0.0)) for phrase in reference.absent]
        if reference.light:
            fits.append((1.0, _same(reference.light, seen.light or "day", seen.whole)))
        if reference.view:
            fits.append((0.7, _same(reference.view, seen.view or "level", seen.whole)))
        total = sum(weight for weight, _ in fits)
        score = sum(weight * value for weight, value in fits) / total if total else 0.0
        return score - 0.02 * (len(self.told[at].parents) > 1)

    def _fit(self, phrase: Phrase, at: int) -> float:
        """How well a picture shows a phrase; a name that no picture has counts by its attributes alone."""
        if phrase not in self._known:
            # An upload may show it unsaid, and then counts as it does elsewhere.
            said = any(phrase.name in one.seen.names() or not one.seen.whole for one in self.told)
            self._known[phrase] = said or not phrase.marks
        if self._known[phrase]:
            return fit(phrase, self.told[at].seen)
        things = self.told[at].seen.things
        return 0.8 * max((len(thing.marks & phrase.marks) for thing in things), default=0) / len(phrase.marks)

    def _loosely(self, reading: Reading) -> set[int]:
        """Where no picture is called for in so many words: the last one, unless what is named is elsewhere alone."""
        last = len(self.told) - 1
        if not reading.loose:
            return {last}
        if reading.takes and len(reading.loose) > 1:
            self._rung = "text"
            return {self._showing([phrase], reading) for phrase in reading.loose[:2]}
        return {self._showing(reading.loose, reading)}

    def _showing(self, phrases: Sequence[Phrase], reading: Reading) -> int:
        """The picture that shows some phrases: the last if it may, else the latest (or first) of those that do."""
        last = self.told[-1].seen
        scores = [sum(fit(phrase, one.seen) for phrase in phrases) / len(phrases) for one in self.told]
        best = max(scores)
        telling = reading.back != "last" or any(phrase.marks for phrase in phrases)
        may = scores[-1] >= best - 0.25 or (not last.whole and not telling)
        if best < ENOUGH or (may and reading.back == "last"):
            return len(scores) - 1
        self._rung = "text"
        fitting = [at for at, score in enumerate(scores) if score >= best - 1e-6]
        return fitting[0] if reading.back == "first" else fitting[-1]

    def _taken_along(self, reading: Reading, places: Iterable[int]) -> set[int]:
        """What a picture is given from another: the thing named first, where none of those found shows it."""
        held = set(places)
        rest = [at for at in range(len(self.told)) if at not in held]
        scores = {at: fit(phrase, self.told[at].seen) for phrase in reading.loose[:1] for at in rest}
        best = max(scores.values(), default=0.0)
        here = max((fit(reading.loose[0], self.told[at].seen) for at in held), default=0.0) if scores else 0.0
        if best < 0.9 or here >= best:
            return set()
        self._rung = "text"
        return {max(at for at in rest if scores[at] == best)}


def _weight(phrase: Phrase) -> float:
    return 0.5 if phrase.sort == "word" else 1.0 + 0.5 * len(phrase.marks)


def _same(wanted: str, shown: str, whole: bool) -> float:
    return 1.0 if wanted == shown else 0.0 if whole else 0.2


def _alike_changes(wanted: Change | None, made: Change) -> float:
    """How alike two changes are, in [0, 1]."""
    if wanted is None:
        return 0.0
    score = 0.3 if wanted.operation == made.operation else 0.0
    names = (wanted.target.name if wanted.target else "", made.target.name if made.target else "")
    score += 0.35 if names[0] == names[1] else 0.0
    if wanted.operation == "text" or made.operation == "text":
        return score + (0.35 if wanted.text.casefold() == made.text.casefold() else 0.0)
    union = wanted.values | made.values
    return score + 0.35 * (len(wanted.values & made.values) / len(union) if union else 1.0)
