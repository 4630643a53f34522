"""From a benchmark's gold to what the extractor should have found (paper §3, Evidence Extractor Training).

This is training, and the one place where this method reads gold: `Gold.evidence` and `Gold.answers` become targets of
questions that are never asked in a run. Nothing here is imported by the memory itself.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Literal

from memharness.benchmark import Benchmark
from memharness.methods.memo.target import Extraction
from memharness.methods.memo.units import Record, Span
from memharness.retrieval import BM25, searchable, words
from memharness.scoring.text import hotpot
from memharness.trainers import recorded
from memharness.types import Case, Evidence, Item, Question, UserError

_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*(?:\s+|$)")


@dataclass(frozen=True, slots=True)
class Rule:
    """How a benchmark's gold becomes spans.

    Attributes:
        chunk: what one record is, in words.
        span: where gold names a whole record, the span is the `record`, or the `sentence` that fits best (weak).
        unique: whether words of evidence that two groups share are a leak. The state of a closed drawer is not.
    """

    chunk: str
    span: Literal["record", "sentence"]
    unique: bool = True


RULES: Mapping[str, Rule] = {
    "hotpotqa": Rule("a paragraph; spans are its supporting sentences", "sentence"),
    "2wiki": Rule("a paragraph; spans are its supporting sentences", "sentence"),
    "locomo": Rule(
        "a turn with speaker and time; its source is native, its span the sentence that fits best", "sentence"
    ),
    "alfworld": Rule(
        "an entity of the state before a step; those that the step changes, whole", "record", unique=False
    ),
}


@dataclass(frozen=True, slots=True)
class Example:
    """One question with its records and what should be found in them.

    Attributes:
        group: what is never divided between splits: the conversation, the game, or the question itself.
        found: sources, in the gold's order, with key spans.
        weak: whether a source or a span is a weak label.
        unique: see `Rule`.
    """

    case: Case
    group: str
    records: tuple[Record, ...]
    found: Extraction
    weak: bool
    unique: bool = True


@dataclass(frozen=True)
class Supervised:
    """What a benchmark's data teach: examples in its order, and how many questions were left out, by reason."""

    examples: Sequence[Example]
    left_out: Mapping[str, int] = field(default_factory=dict)


def supervise(benchmark: Benchmark, subset: str | None = None, limit: int | None = None, most: int = 64) -> Supervised:
    """Examples of a benchmark.

    Args:
        benchmark: one of `RULES`, bound to its data.
        subset: of the benchmark.
        limit: most examples; None is no limit.
        most: records in an example. Of a longer memory those with evidence stay, and those that BM25 finds nearest to
            the question, in order of experience.

    Raises:
        UserError: a benchmark without a rule, a live one, or data in which there is nothing to learn.
        DataError: data that are not as published.
    """
    name = benchmark.card.name
    if name not in RULES:
        raise UserError(f"--bench {name}: there is no rule that makes spans of its gold; there are: {', '.join(RULES)}")
    return asyncio.run(_supervise(benchmark, RULES[name], subset, limit, most))


async def _supervise(benchmark: Benchmark, rule: Rule, subset: str | None, limit: int | None, most: int) -> Supervised:
    examples: list[Example] = []
    left_out: Counter[str] = Counter()
    memory = _Memory([])
    async for _, items, case in recorded(benchmark, subset):
        if limit is not None and len(examples) >= limit:
            break
        memory = memory if memory.items is items and len(memory.records) == len(items) else _Memory(items)
        made = example(memory, case, rule, most)
        if isinstance(made, str):
            left_out[made] += 1
        else:
            examples.append(made)
    if not examples:
        why = "; ".join(f"{n} × {reason}" for reason, n in left_out.items()) or "no question"
        raise UserError(f"{benchmark.data.path}: nothing to learn from: {why}")
    return Supervised(examples, dict(left_out))


class _Memory:
    """The items before a question, as records; one for all questions about the same items."""

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = items
        self.records = {item.id: Record.of(item) for item in items}

    @cached_property
    def index(self) -> BM25:
        return BM25([searchable(item) for item in self.items])

    def candidates(self, question: Question, needed: set[str], most: int) -> tuple[Record, ...]:
        """The records with evidence and those nearest to the question, in order; records without words are no use."""
        useful = {name for name, record in self.records.items() if record.text.strip()}
        if len(useful) > most:
            ranked, _ = self.index.top_k(searchable(question), len(self.items))
            near = [name for at in ranked.tolist() if (name := self.items[at].id) in useful - needed]
            useful = needed | set(near[: max(0, most - len(needed))])
        return tuple(record for name, record in self.records.items() if name in useful)


def example(memory: _Memory, case: Case, rule: Rule, most: int) -> Example | str:
    """One question's example, or why there is none."""
    found, weak = native(memory.records, case, rule)
    if not found and not case.gold.evidence:
        found, weak = by_answer(memory.records, case), True
    if not found:
        return "no evidence in the gold, and no record that says the answer"
    kept = memory.candidates(case.question, {name for name, _ in found}, most)
    return Example(case, case.gold.cluster or case.question.id, kept, found, weak, rule.unique)


# ---------------------------------------------------------------------------------------------------------- the spans


def native(records: Mapping[str, Record], case: Case, rule: Rule) -> tuple[Extraction, bool]:
    """Sources and spans that the gold names, in its order, and whether a span had to be a weak label."""
    found: dict[str, list[Span]] = {}
    weak = False
    for pointer in case.gold.evidence:
        record = records.get(pointer.item)
        if record is None or not record.text.strip():
            continue
        span = _named(record, pointer)
        if span is None and rule.span == "sentence":
            span, weak = best_sentence(record, case), True
        found.setdefault(record.id, []).append(span or (0, len(record.text)))
    return [(source, tuple(sorted(set(spans)))) for source, spans in found.items()], weak


def _named(record: Record, pointer: Evidence) -> Span | None:
    """The span of the part that a pointer names, without white space at its ends; None if it names the whole item."""
    for start, end, part in record.pieces:
        if pointer.part is not None and part == pointer.part:
            low, high = pointer.span or (0, end - start)
            return _trimmed(record.text, start + low, start + high)
    return None


def best_sentence(record: Record, case: Case) -> Span:
    """The sentence of a record that shares most with the answer, then with the question, then the first."""
    said, asked = _words(" ".join(case.gold.answers)), _words(case.question.text())

    def shared(span: Span) -> tuple[int, int]:
        held = _words(record.text[slice(*span)])
        return len(said & held), len(asked & held)

    return max(sentences(record.text), key=shared)


def by_answer(records: Mapping[str, Record], case: Case) -> Extraction:
    """Where the gold names nothing: of the sentences that say an answer word for word, the one nearest the question."""
    answers = [f" {form} " for answer in case.gold.answers if (form := hotpot(answer)) not in ("", "yes", "no")]
    asked = _words(case.question.text())
    best: tuple[int, str, Span] | None = None
    for record in records.values():
        for span in sentences(record.text):
            said = record.text[slice(*span)]
            near = len(asked & _words(said))
            if any(answer in f" {hotpot(said)} " for answer in answers) and (best is None or near > best[0]):
                best = near, record.id, span
    return [(best[1], (best[2],))] if best else []


def sentences(text: str) -> list[Span]:
    """The sentences of a text with any words, as spans without white space at their ends."""
    ends = [*(match.end() for match in _END.finditer(text)), len(text)]
    spans = (_trimmed(text, start, end) for start, end in pairwise([0, *ends]))
    return [(start, end) for start, end in spans if start < end]


def _trimmed(text: str, start: int, end: int) -> Span:
    said = text[start:end]
    return start + len(said) - len(said.lstrip()), end - len(said) + len(said.rstrip())


def _words(text: str) -> frozenset[str]:
    return frozenset(words(text))
