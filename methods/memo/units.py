"""Records as text, evidence units that quote them, and the plan for presenting units (paper eq. 1 and 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from memharness.prompts import NAMES, SHOWN
from memharness.types import Evidence, Item, Text

Span = tuple[int, int]
"""Start and end of characters in a record's text, end excluded."""


class Action(StrEnum):
    """How a unit is presented (eq. 3): as text, on the page, both (and paid for twice), or not at all."""

    TEXT = "text"
    IMAGE = "image"
    DUAL = "dual"
    DROP = "drop"


class Template(StrEnum):
    """How a page is arranged."""

    CARDS = "cards"
    TIMELINE = "timeline"
    TABLE = "table"
    CHECKLIST = "checklist"
    COLUMNS = "columns"


class Rule(StrEnum):
    """What may become of some of a unit's words when the budget is tight."""

    TEXT = "text"  # must stay as text
    VISUAL = "visual"  # may be shown on the page instead
    OMIT = "omit"  # may be left out


@dataclass(frozen=True, slots=True)
class Priority:
    """c_i of eq. 1: one rule for what lies in a key span, one for the context around it."""

    key: Rule = Rule.VISUAL
    context: Rule = Rule.OMIT


@dataclass(frozen=True, slots=True)
class Record:
    """A remembered item as the extractor reads it: one source chunk.

    Attributes:
        id: the item's.
        text: the words of its parts, then what was written about its pictures; spans count characters of it.
        title: its citable name, or empty.
        time: ISO 8601, or empty.
        speaker: or empty.
        kind: the item's kind: `paragraph`, `turn`, `state` …
        pieces: (start, end, part) of each part's words in `text`; part is None for words about the whole item.
    """

    id: str
    text: str
    title: str = ""
    time: str = ""
    speaker: str = ""
    kind: str = ""
    pieces: tuple[tuple[int, int, int | None], ...] = ()

    @classmethod
    def of(cls, item: Item) -> Record:
        """The record of an item. Parts are joined by one space, unless the data brings white space of its own."""
        words: list[tuple[str, int | None]] = [
            (part.text, at) for at, part in enumerate(item.parts) if isinstance(part, Text)
        ]
        words += [(f"{NAMES[d.kind]}: {d.text}", d.part) for kind in SHOWN for d in item.derived if d.kind == kind]
        text, pieces = "", []
        for piece, part in words:
            if not piece.strip():
                continue
            if text and not text[-1].isspace() and not piece[0].isspace():
                text += " "
            pieces.append((len(text), len(text) + len(piece), part))
            text += piece
        return cls(item.id, text, item.label or "", item.time or "", item.speaker or "", item.kind, tuple(pieces))

    def pointers(self, start: int, end: int) -> tuple[Evidence, ...]:
        """Where characters `start` to `end` stand in the item: one pointer a part, a whole part without a span.

        Words that a machine wrote about a part point to that part.
        """
        found: list[Evidence] = []
        for first, last, part in self.pieces:
            low, high = max(start, first), min(end, last)
            if not self.text[low:high].strip():
                continue
            own = self.text[first:last]
            whole = self.text[low:high].strip() == own.strip() or part is None or own.startswith(_DERIVED)
            found.append(Evidence(self.id, part, None if whole else (low - first, high - first)))
        return tuple(dict.fromkeys(found))


_DERIVED = tuple(f"{name}: " for name in NAMES.values())


@dataclass(frozen=True, slots=True)
class EvidenceUnit:
    """ν_i = (id, x_i, h_i, s_i, c_i) of eq. 1: the smallest thing that is retained, presented or omitted.

    Attributes:
        id: `u1`, `u2` … in the extractor's order, best first.
        content: x_i, copied verbatim: `record.text[start : start + len(content)]`.
        spans: h_i, key spans in characters of the record's text, in order, inside the content.
        source: s_i, the record's id.
        priority: c_i.
        start: where the content begins in the record's text.
        score: how relevant the extractor holds it, larger is better; the model's back end gives its order only.
    """

    id: str
    content: str
    spans: tuple[Span, ...]
    source: str
    priority: Priority = Priority()
    start: int = 0
    score: float = 0.0

    @property
    def end(self) -> int:
        """Where the content ends in the record's text."""
        return self.start + len(self.content)

    @property
    def highlights(self) -> tuple[Span, ...]:
        """The key spans in characters of the content."""
        return tuple((start - self.start, end - self.start) for start, end in self.spans)

    @property
    def key(self) -> str:
        """The words of the key spans, gaps marked."""
        return " … ".join(self.content[start:end].strip() for start, end in self.highlights)


@dataclass(frozen=True, slots=True)
class Plan:
    """What the manager decides.

    Attributes:
        actions: action by unit id; a unit that is not named is dropped.
        confidence: in [0, 1] by unit id.
        target_usage: tokens the whole memory should take, at most the budget; 0 is no wish.
        templates: page templates in the order they are tried.
    """

    actions: Mapping[str, Action]
    confidence: Mapping[str, float] = field(default_factory=dict)
    target_usage: int = 0
    templates: tuple[Template, ...] = tuple(Template)

    def action(self, unit: EvidenceUnit) -> Action:
        """A unit's action."""
        return self.actions.get(unit.id, Action.DROP)


@dataclass(frozen=True, slots=True)
class Selection:
    """What an extractor chose of one record: key spans, and one score and priority for all of them."""

    source: str
    spans: tuple[Span, ...]
    score: float = 0.0
    priority: Priority = Priority()


def fault(unit: EvidenceUnit, record: Record | None) -> str | None:
    """Why a unit does not quote its source; None if it does."""
    if record is None:
        return "its source is not a record"
    if not unit.spans:
        return "it quotes nothing of its source"
    if not 0 <= unit.start <= unit.end <= len(record.text):
        return "it lies outside its source"
    if record.text[unit.start : unit.end] != unit.content:
        return "its content is not what its source says"
    for start, end in unit.spans:
        if not unit.start <= start < end <= unit.end or not record.text[start:end].strip():
            return "a key span lies outside its content, or is empty"
    return None


def materialise(
    selections: Sequence[Selection], records: Mapping[str, Record], window: int = 0
) -> tuple[tuple[EvidenceUnit, ...], tuple[str, ...]]:
    """Units copied from the raw records, in the order selected, each key span with `window` characters around it.

    A window is widened to whole words and never leaves its record. Windows of one selection that overlap become one
    unit; windows that merely touch stay two. A selection that does not quote its source is rejected.

    Args:
        selections: sources and key spans, best first.
        records: by id.
        window: characters of context before and after each key span (the paper's w).

    Returns:
        The units, and why each rejected selection was rejected, as `source: reason`.
    """
    units: list[EvidenceUnit] = []
    rejected: list[str] = []
    for selection in selections:
        record = records.get(selection.source)
        for spans in _together(selection.spans, record, window) if record else [selection.spans]:
            low, high = _around(spans, record, window)
            content = record.text[low:high] if record else ""
            unit = EvidenceUnit(
                f"u{len(units) + 1}", content, spans, selection.source, selection.priority, low, selection.score
            )
            if reason := fault(unit, record):
                rejected.append(f"{selection.source}: {reason}")
            else:
                units.append(unit)
    return tuple(units), tuple(rejected)


def _together(spans: Sequence[Span], record: Record, window: int) -> list[tuple[Span, ...]]:
    """Spans in order, in groups whose windows overlap."""
    groups: list[list[Span]] = []
    reach = -1
    for span in sorted(set(spans)):
        low, high = _around([span], record, window)
        if groups and low < reach:
            groups[-1].append(span)
        else:
            groups.append([span])
        reach = max(reach, high)
    return [tuple(group) for group in groups] or [()]


def _around(spans: Sequence[Span], record: Record | None, window: int) -> Span:
    """The first and last character of the window around spans, widened to whole words."""
    if record is None or not spans:
        return 0, 0
    text, low, high = record.text, min(start for start, _ in spans), max(end for _, end in spans)
    if not 0 <= low <= high <= len(text):
        return low, high
    if window:
        low, high = max(0, low - window), min(len(text), high + window)
        while low > 0 and not text[low - 1].isspace():
            low -= 1
        while high < len(text) and not text[high].isspace():
            high += 1
    return low, high
