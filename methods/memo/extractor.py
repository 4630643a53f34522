"""Evidence extraction (q, R, B) → sources and key spans: without gold by words, meaning and links, or by a model."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from memharness.methods.memo import target
from memharness.methods.memo.units import Priority, Record, Rule, Selection
from memharness.retrieval import BM25, fuse, searchable, words
from memharness.types import MethodError, Question

if TYPE_CHECKING:
    from memharness.method import MeteredEmbedder, MeteredReader

Floats = NDArray[np.float32]

LONGEST = 320
"""Characters from which a part of a record is split into its sentences."""
ATTEMPTS = 3
SHORTEST_NAME = 4
"""Letters from which a title of one word counts as a name: shorter ones (It, Her, You) are mostly just words."""

_STOP = re.compile(r"(?<=[.!?。！？])[\"'”’)\]]*\s+(?=\S)|\n+")
_EXACT = re.compile(
    r"\b(when|what (year|date|day|month|time|number)|which (year|date|day|month)"
    r"|how (many|much|old|long|far|often|tall))\b",
    re.IGNORECASE,
)


def sentences(record: Record) -> list[tuple[int, int]]:
    """The spans a record is chosen by: its parts, long ones split into sentences, without white space around them."""
    found: list[tuple[int, int]] = []
    for start, end, _ in record.pieces:
        cuts = [start]
        if end - start > LONGEST:
            cuts += [match.end() for match in _STOP.finditer(record.text, start, end)]
        for low, high in zip(cuts, [*cuts[1:], end], strict=True):
            text = record.text[low:high]
            if text.strip():
                found.append((low + len(text) - len(text.lstrip()), low + len(text.rstrip())))
    return found


def titled(record: Record, text: str) -> str:
    """A span as it is searched: what the record is called, when and by whom it was said, then its words."""
    head = " ".join(filter(None, (record.time.replace("T", " "), record.speaker, record.title)))
    return f"{head}: {text}" if head else text


class Names:
    """Finds records that a text names: a title, without what stands in brackets at its end, as a run of whole words."""

    def __init__(self, titles: Sequence[str]) -> None:
        """Index the titles of records by their first word, longest first."""
        self._by_first: dict[str, dict[tuple[str, ...], set[int]]] = {}
        for row, title in enumerate(titles):
            name = tuple(words(re.sub(r"\s*\([^()]*\)\s*$", "", title)))
            if len(name) > 1 or (name and len(name[0]) >= SHORTEST_NAME):
                self._by_first.setdefault(name[0], {}).setdefault(name, set()).add(row)

    def within(self, text: str) -> set[int]:
        """Rows of the records named; where two names begin at one word, the longer one."""
        said, found, at = words(text), set[int](), 0
        while at < len(said):
            known = self._by_first.get(said[at], {})
            fitting = [name for name in known if tuple(said[at : at + len(name)]) == name]
            longest = max(fitting, key=len, default=None)
            if longest is None:
                at += 1
            else:
                found |= known[longest]
                at += len(longest)
        return found


class Index:
    """The spans of one context and what a question is compared with."""

    def __init__(self, records: Sequence[Record]) -> None:
        """Split the records and index them by words; `embed` adds the meaning."""
        self.records = records
        self.spans = [(row, span) for row, record in enumerate(records) for span in sentences(record)]
        self.owner = np.array([row for row, _ in self.spans], dtype=np.int64)
        self.texts = [
            titled(records[row], records[row].text[start:end]) for row, (start, end) in self.spans
        ]  # fmt: skip
        self._words = BM25(self.texts)
        self._names = Names([record.title for record in records])
        self._named = [
            sorted(self._names.within(records[row].text[start:end]) - {row}) for row, (start, end) in self.spans
        ]
        self._lead = np.array([at == 0 or self.owner[at - 1] != row for at, row in enumerate(self.owner)], dtype=bool)
        self._vectors: Floats | None = None

    async def embed(self, embedder: MeteredEmbedder, known: dict[str, Floats]) -> None:
        """Embed every span, once: vectors of equal spans are taken from `known`, and new ones go there."""
        new = [text for text in dict.fromkeys(self.texts) if text not in known]
        if new:
            known.update(zip(new, await embedder.embed(new, "item"), strict=True))
        self._vectors = np.array([known[text] for text in self.texts], dtype=np.float32)

    def lexical(self, question: Question) -> Floats:
        """BM25 of each span."""
        return self._words.scores(searchable(question))

    async def dense(self, question: Question, embedder: MeteredEmbedder) -> Floats:
        """Cosine of each span."""
        if self._vectors is None or not len(self.spans):
            return np.zeros(len(self.spans), dtype=np.float32)
        query = await embedder.embed([searchable(question)], "query")
        # In float64, rounded once: equal spans then score the same wherever they stand in the matrix.
        cosines: Floats = (self._vectors.astype(np.float64) @ query[0].astype(np.float64)).astype(np.float32)
        return cosines

    def best(self, scores: Floats) -> Floats:
        """Each record's best span; −∞ for a record without words."""
        out = np.full(len(self.records), -np.inf, dtype=np.float32)
        np.maximum.at(out, self.owner, scores)
        return out

    def linked(self, question: Question, relevance: Floats, hops: int) -> Floats:
        """Relevance of each span, raised where its record is named by the question or by a relevant span.

        r(j) = ½ (f(j) + link(record of j) · w(j)), where f ∈ [0, 1] is the relevance by words and meaning; w is 1 for a
        record's first span, which says what the record is about, and f(j) for its others; link is 1 for a record named
        in the question, otherwise the largest r of a span elsewhere that names it, and 0 where none does.

        Args:
            question: what is asked.
            relevance: f, shape (n,).
            hops: how many times links are followed.
        """
        weight = np.where(self._lead, 1.0, relevance)
        link = np.zeros(len(self.records))
        link[sorted(self._names.within(searchable(question)))] = 1.0
        found: NDArray[np.float64] = (relevance + link[self.owner] * weight) / 2
        for _ in range(hops):
            for span, named in enumerate(self._named):
                for row in named:
                    link[row] = max(link[row], found[span])
            found = (relevance + link[self.owner] * weight) / 2
        return found.astype(np.float32)


def select(
    index: Index,
    question: Question,
    scores: Floats,
    kept: Sequence[int],
    *,
    room: float,
    cost: Callable[[str], int],
    least: float,
    most: int,
) -> list[Selection]:
    """The best spans of the kept records, best first, until they would cost `room` tokens.

    Args:
        index: the context's spans.
        question: what is asked.
        scores: of each span, larger is better.
        kept: rows of the records that may be read.
        room: tokens that all spans together may cost.
        cost: tokens of a span with its record's name.
        least: share of the best score under which a span is no evidence.
        most: spans.
    """
    allowed = np.isin(index.owner, np.asarray(kept, dtype=np.int64))
    order = [int(at) for at in np.argsort(-scores, kind="stable") if allowed[at]]
    chosen: list[Selection] = []
    for at in order[:most]:
        if chosen and scores[at] < least * scores[order[0]]:
            break
        room -= cost(index.texts[at])
        if chosen and room < 0:
            break
        row, span = index.spans[at]
        record = index.records[row]
        chosen.append(Selection(record.id, (span,), float(scores[at]), priority(question, record, span)))
    return chosen


def priority(question: Question, record: Record, span: tuple[int, int]) -> Priority:
    """Figures that the question asks for, and numbered things in commands, must stay text; the rest may be shown."""
    exact = question.form == "action" or _EXACT.search(question.text()) is not None
    figures = any(char.isdigit() for char in record.text[span[0] : span[1]])
    return Priority(key=Rule.TEXT if exact and figures else Rule.VISUAL)


def relevance(lexical: Floats, dense: Floats) -> Floats:
    """F ∈ [0, 1]: both views scaled to [0, 1] and averaged."""
    return fuse([lexical, dense])


async def ask(
    reader: MeteredReader, question: Question, records: Sequence[Record], budget: int
) -> tuple[list[Selection], dict[str, object]]:
    """The trained extractor's selections, and what is to be said of the call.

    Its reply is held to the JSON schema where the reader can be; a reply out of form is asked for again.

    Raises:
        MethodError: no attempt gave a reply in form.
    """
    request = target.extractor_request(question, records, budget)
    held = "schema" in reader.card.capabilities
    if held:
        request = replace(request, schema=target.EXTRACTION_SCHEMA)
    by_id = {record.id: record for record in records}
    error = ""
    for attempt in range(ATTEMPTS):
        # Greedy first; another draw after a reply out of form, since the same words would bring the same reply.
        sampling = replace(request.sampling, temperature=0.7 if attempt else 0.0)
        reply = await reader.generate(replace(request, sampling=sampling, sample=attempt))
        try:
            found = target.read_extraction(reply.text, records)
        except target.NotInForm as fault:
            error = str(fault)
            continue
        chosen: list[Selection] = []
        for source, spans in found:
            rules = [priority(question, by_id[source], span) for span in spans] if source in by_id else []
            rule = next((one for one in rules if one.key is Rule.TEXT), Priority())
            chosen.append(Selection(source, spans, 1.0 - len(chosen) / (len(found) + 1), rule))
        return chosen, {"attempts": attempt + 1, "schema": held}
    raise MethodError(f"extractor: no reply in form in {ATTEMPTS} attempts, last: {error}")
