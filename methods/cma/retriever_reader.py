"""CoRE by a reader: candidates by rank with their cards and thumbnails, one JSON list out, read strictly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from memharness.episodic.words import indexed
from memharness.methods.cma import prompts
from memharness.methods.cma.candidates import Candidate, Retrieval
from memharness.methods.cma.replies import NotInForm, first_object
from memharness.reader import Request, Sampling, count
from memharness.retrieval import BM25
from memharness.types import Image, OverWindow, Part, Text

if TYPE_CHECKING:
    from memharness.method import Images, MeteredReader

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"images": {"type": "array", "items": {"type": "integer", "minimum": 0}}},
    "required": ["images"],
    "additionalProperties": False,
}
Outcome = Literal["ok", "parse_error", "out_of_range", "refused"]


@dataclass(frozen=True)
class Line:
    """A candidate as it is shown: its rank, its words, and the picture if it is shown."""

    rank: int
    text: str
    picture: Image | None = None


def line_of(rank: int, candidate: Candidate, picture: Image | None = None) -> Line:
    """A candidate by its card; where the card failed or is not there, by the words that brought or made it."""
    card = candidate.card
    if card is not None and card.status == "ok":
        return Line(
            rank, f"[{rank}] tags: {', '.join(card.tags)} | description: {' '.join(card.description.split())}", picture
        )
    words = " ".join(candidate.words.split())
    return Line(rank, f"[{rank}] no card | {candidate.asset.kind}" + (f" | request: {words}" if words else ""), picture)


def retrieval_request(query: str, lines: Sequence[Line], history: Sequence[str] = (), max_tokens: int = 64) -> Request:
    """What the retriever is asked; also the input of its training rows.

    Args:
        query: the user's words.
        lines: the candidates in order of creation.
        history: earlier dialogue; the paper's prompt has none.
        max_tokens: of the reply.
    """
    shown: list[Part] = []
    for line in lines:
        begin = "\n" if shown else ""
        if line.picture is not None:
            shown += [Text(f"{begin}rank {line.rank}: "), line.picture]
            begin = "\n"
        shown.append(Text(begin + line.text))
    messages = prompts.fill(
        "retriever.v1", candidates=shown or "(none)", history="\n".join(history), query=" ".join(query.split())
    )
    if not history:
        messages = tuple(replace(one, parts=_without_heading(one.parts)) for one in messages)
    return Request(messages, Sampling(max_tokens=max_tokens))


def _without_heading(parts: Sequence[Part]) -> tuple[Part, ...]:
    """The heading of a dialogue that is not shown is not shown either."""
    return tuple(
        Text(part.text.replace("Dialogue so far:\n", "")) if isinstance(part, Text) else part for part in parts
    )


def read_ranks(reply: str, count: int) -> tuple[Outcome, tuple[int, ...], tuple[int, ...]]:
    """The outcome, the ranks that are there in order of creation, and those that are not.

    Order and repeats do not matter. A reply without an object that lists whole numbers alone is a parse error.
    """
    try:
        said = first_object(reply, "images")["images"]
    except NotInForm:
        return "parse_error", (), ()
    if not isinstance(said, list) or not all(type(rank) is int for rank in said):
        return "parse_error", (), ()
    known = tuple(sorted({rank for rank in said if 0 <= rank < count}))
    lost = tuple(sorted(set(said).difference(known)))
    return ("out_of_range" if lost else "ok"), known, lost


@dataclass(frozen=True)
class ReaderRetriever:
    """Asks the reader of role `retriever` on every turn with pictures to choose from.

    Attributes:
        reader: who chooses.
        images: keeps thumbnails so that they can be shown.
        pool: most candidates shown, by the text prefilter; 0 for all (the paper).
        history: lines of dialogue shown before the request; 0 for none (the paper's prompt).
        max_tokens: of a reply.
    """

    reader: MeteredReader
    images: Images
    pool: int = 0
    history: int = 0
    max_tokens: int = 64

    async def retrieve(
        self, query: str, uploads: Sequence[bytes], candidates: Sequence[Candidate], history: Sequence[str]
    ) -> Retrieval:
        """See `Retriever`. What does not fit the reader's window is prefiltered by text; the trace says so."""
        if not candidates:
            return Retrieval((), "none", {"outcome": "ok", "shown": 0})
        sees = "image" in self.reader.card.capabilities
        lines = [line_of(rank, one, self._thumbnail(one) if sees else None) for rank, one in enumerate(candidates)]
        told = list(history[-self.history :]) if self.history else []
        order = prefilter(query, lines)
        most = min(self.pool or len(lines), len(lines))
        while True:
            request = self._request(query, lines, order[:most], told)
            if most > 1 and not self._fits(request):
                most = max(1, most * 3 // 4)
                continue
            try:
                reply = await self.reader.generate(request)
            except OverWindow:
                if most == 1:
                    raise
                most = max(1, most * 3 // 4)
                continue
            break
        outcome, ranks, lost = read_ranks(reply.text, len(candidates))
        if reply.finish == "refused":
            outcome, ranks, lost = "refused", (), ()
        trace: dict[str, Any] = {"outcome": outcome, "shown": most, "pixels": sees, "reply": reply.text[:500]}
        if most < len(lines):
            trace["prefilter"] = {"kept": sorted(order[:most]), "of": len(lines), "by": "bm25"}
        if lost:
            trace["lost"] = list(lost)
        return Retrieval(tuple(candidates[rank].asset.id for rank in ranks), "reader", trace)

    def _request(self, query: str, lines: Sequence[Line], kept: Sequence[int], history: Sequence[str]) -> Request:
        request = retrieval_request(query, [lines[rank] for rank in sorted(kept)], history, self.max_tokens)
        return replace(request, schema=SCHEMA) if "schema" in self.reader.card.capabilities else request

    def _fits(self, request: Request) -> bool:
        window = self.reader.card.window
        return window is None or count(self.reader.counter, request.parts()) + self.max_tokens <= window

    def _thumbnail(self, candidate: Candidate) -> Image | None:
        if candidate.thumbnail is None:
            return None
        name = f"thumbnail of {candidate.asset.id}"
        return self.images.keep(candidate.thumbnail, name, name)


def prefilter(query: str, lines: Sequence[Line]) -> list[int]:
    """Places of lines by BM25 of the query, best first; of equal ones the latest first."""
    scores = BM25([indexed(line.text) for line in lines]).scores(indexed(query))
    return sorted(range(len(lines)), key=lambda at: (-float(scores[at]), -at))
