"""Working memory from a plan, without a learned step: text first, then the page from what the text leaves."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memharness.methods.memo.units import Action, EvidenceUnit, Plan, Record, Rule, Template
from memharness.pages import Block, Layout, Style, missing, smallest
from memharness.reader import Counter
from memharness.types import Evidence, ReaderError, UserError

PROBE = 64
"""Side in pixels of the picture that tells whether any page can be paid for: no page worth reading is smaller."""

STYLES = tuple(Style(font_px=px) for px in (16, 14, 12))
"""Styles of a page, the preferred one first; none smaller than what recognition was measured to read well."""
FINE = STYLES[-1:]
"""The style that holds most: what does not fit in it fits in none, so only the page that is kept is tried in others."""
LONGEST_ASPECT = 4
"""Longest side of a page as a multiple of the shortest: readers that bring pictures to tiles distort longer ones."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Words of a unit that stand in the text: characters `start` to `end` of its record."""

    unit: EvidenceUnit
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class WorkingMemory:
    """What the reader is shown, a = (T, V), before the page is drawn.

    Attributes:
        text: T, without white space at its end; empty for none.
        layout: V; None for no page.
        shown: how each unit is shown at last, by id: `text`, `key` (its key spans only), `image`, `dual`, `omitted`.
        evidence: where the shown words come from, by units in the extractor's order.
        note: why there is no page although one was wanted; empty if there is nothing to say.
    """

    text: str
    layout: Layout | None
    shown: Mapping[str, str]
    evidence: tuple[Evidence, ...]
    note: str = ""


class Builder:
    """Builds for one question. Whatever a plan asks for, no counter of the budget is exceeded."""

    def __init__(
        self,
        records: Sequence[Record],
        counters: Sequence[Counter],
        limit: int,
        *,
        pictures: bool,
        unit_ids: bool = False,
    ) -> None:
        """Bind.

        Args:
            records: of the context, in order.
            counters: all must hold.
            limit: tokens, under each.
            pictures: whether a page may be made.
            unit_ids: whether every unit's id stands in the text.
        """
        self.records = {record.id: record for record in records}
        self._order = {record.id: at for at, record in enumerate(records)}
        self._counters = counters
        self._limit = limit
        self._unit_ids = unit_ids
        self.pictures = pictures

    # -------------------------------------------------------------------------------------------------------- text

    def packet(self, entries: Sequence[Entry], named: Sequence[str] = ()) -> str:
        """The text T: a line for each source, in the order of its first entry; by time where records have times.

        Args:
            entries: best first.
            named: units whose id is written before their words.
        """
        sources = list(dict.fromkeys(entry.unit.source for entry in entries))
        dated = any(self.records[source].time for source in sources)
        if dated:
            sources.sort(key=lambda source: self._order[source])
        lines: list[str] = []
        time = ""
        for source in sources:
            record = self.records[source]
            own = sorted((entry for entry in entries if entry.unit.source == source), key=lambda entry: entry.start)
            if record.time != time:
                time = record.time
                lines.append(time.replace("T", " "))
            words = " ".join(self._words(entry, record, named) for entry in own)
            lines.append(": ".join(filter(None, (_head(record, words), words))))
        return "\n".join(filter(None, lines))

    def _words(self, entry: Entry, record: Record, named: Sequence[str]) -> str:
        words = record.text[entry.start : entry.end].strip()
        return f"[{entry.unit.id}] {words}" if self._unit_ids or entry.unit.id in named else words

    def text_holds(self, entries: Sequence[Entry], named: Sequence[str] = (), limit: int | None = None) -> bool:
        """Whether the text alone holds the budget under every counter."""
        packet = self.packet(entries, named)
        most = self._limit if limit is None else limit
        return all(counter.text(packet) <= most for counter in self._counters)

    def fill(
        self, units: Sequence[EvidenceUnit], named: Sequence[str] = (), limit: int | None = None
    ) -> tuple[list[Entry], list[EvidenceUnit]]:
        """Entries for as many units as the budget holds, and the units left over; earlier units come first.

        A unit that does not fit whole is tried without its context where its priority lets that be omitted.
        """
        entries: list[Entry] = []
        over: list[EvidenceUnit] = []
        for unit in units:
            for some in _forms(unit):
                if self.text_holds([*entries, *some], named, limit):
                    entries += some
                    break
            else:
                over.append(unit)
        return entries, over

    def cut(self, units: Sequence[EvidenceUnit]) -> list[Entry]:
        """Entries for the units in order, the last one cut to the whole words that the budget holds."""
        entries: list[Entry] = []
        for unit in units:
            whole = Entry(unit, unit.start, unit.end)
            if self.text_holds([*entries, whole]):
                entries.append(whole)
                continue
            ends = [unit.start + at for at, char in enumerate(unit.content) if char.isspace()]
            low, high = 0, len(ends)
            while low < high:
                middle = (low + high) // 2
                fits = self.text_holds([*entries, Entry(unit, unit.start, ends[middle])])
                low, high = (middle + 1, high) if fits else (low, middle)
            # Tokens grow with words up to seams, so the bisection may land one word too far.
            while low and not self.text_holds([*entries, Entry(unit, unit.start, ends[low - 1])]):
                low -= 1
            if low and unit.content[: ends[low - 1] - unit.start].strip():
                entries.append(Entry(unit, unit.start, ends[low - 1]))
            break
        return entries

    # -------------------------------------------------------------------------------------------------------- page

    def cannot_page(self, text: str = "", limit: int | None = None) -> str:
        """Why no page can stand beside a text; empty if one may."""
        if not self.pictures:
            return "the reader sees no pictures, or pages are switched off: text only"
        most = self._limit if limit is None else limit
        for counter in self._counters:
            left = most - (counter.text(text) if text else 0)
            try:
                price = counter.image(PROBE, PROBE)
            except ReaderError:
                continue
            if price > left:
                return f"a picture costs {price} tokens or more by {counter.name}, {max(left, 0)} are left: text only"
        return ""

    def layout(
        self,
        units: Sequence[EvidenceUnit],
        templates: Sequence[Template],
        text: str = "",
        limit: int | None = None,
        styles: Sequence[Style] = STYLES,
    ) -> Layout | None:
        """The page of these units in the first template that fits beside a text, under every counter."""
        most = self._limit if limit is None else limit
        left = [(counter, most - (counter.text(text) if text else 0)) for counter in self._counters]

        def excess(width: int, height: int) -> int:
            if max(width, height) > LONGEST_ASPECT * min(width, height):
                raise ReaderError("no reader is given so long a page")
            return max((counter.image(width, height) - room for counter, room in left), default=0)

        blocks = self.blocks(units)
        if not blocks:
            return None
        pages = (smallest(blocks, template.value, excess, 0, styles) for template in templates)
        return next((page for page in pages if page is not None), None)

    def blocks(self, units: Sequence[EvidenceUnit]) -> list[Block]:
        """A block for each source: title or source, its units' words, information type, time and key spans.

        Units of one source share a block, as they share a line of the text. The information type is written where the
        page mixes types; the source's id where it has no name; nothing is highlighted in words that are all key span.
        Blocks stand in the order of their records where those have times, otherwise best first.
        """
        sources = list(dict.fromkeys(unit.source for unit in units))
        if any(self.records[source].time for source in sources):
            sources.sort(key=lambda source: self._order[source])
        mixed = len({self.records[source].kind for source in sources}) > 1
        return [
            self._block([unit for unit in units if unit.source == source], self.records[source], mixed)
            for source in sources
        ]

    def _block(self, units: Sequence[EvidenceUnit], record: Record, mixed: bool) -> Block:
        text, spans = "", []
        for unit in sorted(units, key=lambda unit: unit.start):
            words = unit.content.strip()
            text += " " if text else ""
            shift = len(text) - (len(unit.content) - len(unit.content.lstrip()))
            own = [
                (max(len(text), start + shift), min(end + shift, len(text) + len(words)))
                for start, end in unit.highlights
            ]
            if own != [(len(text), len(text) + len(words))]:
                spans += own
            text += words
        title = record.title or record.speaker
        return Block(
            "+".join(unit.id for unit in units),
            title,
            text,
            "" if record.title else record.id,
            record.kind if mixed else "",
            _when(record.time),
            tuple(spans),
        )

    def drawable(self, unit: EvidenceUnit) -> bool:
        """Whether the bundled fonts cover everything that a unit's block says."""
        record = self.records[unit.source]
        return not any(map(missing, (record.title, record.speaker, record.kind, record.id, unit.content)))

    # ------------------------------------------------------------------------------------------------------- build

    def build(self, units: Sequence[EvidenceUnit], plan: Plan) -> WorkingMemory:
        """The working memory of a plan.

        1. Text and dual units become text, the surest first, while they fit. 2. A text unit that does not fit and may
        be shown goes to the page. 3. What the text leaves fixes the page; templates are tried in the plan's order. 4.
        While no template fits, the least sure unit leaves the page; it becomes text if there is room, else is omitted.
        """
        limit = min(self._limit, plan.target_usage) if plan.target_usage > 0 else self._limit
        sure = sorted(units, key=lambda unit: -plan.confidence.get(unit.id, 0.0))
        of = {action: [unit for unit in sure if plan.action(unit) is action] for action in Action}
        dual = {unit.id for unit in of[Action.DUAL]}
        entries, over = self.fill(
            [unit for unit in sure if plan.action(unit) in (Action.TEXT, Action.DUAL)], sorted(dual), limit
        )
        moved = [unit for unit in over if unit.id not in dual and unit.priority.key is not Rule.TEXT]
        text = self.packet(entries, sorted(dual))
        note = ""
        paged: list[EvidenceUnit] = []
        layout = None
        wanted = [unit for unit in sure if plan.action(unit) in (Action.IMAGE, Action.DUAL)] + moved
        if wanted:
            note = self.cannot_page(text, limit)
            able = [unit for unit in wanted if self.drawable(unit)] if not note else []
            undrawn = len(wanted) - len(able)
            if not note and undrawn:
                note = f"{undrawn} units hold characters that the page's fonts lack: not on the page"
            paged, layout = self._paged(able, plan.templates, text, limit)
        on_page = {unit.id for unit in paged}
        named = sorted(dual & on_page)
        if dual - on_page:  # their ids were written to tie text and page together
            while entries and not self._together(self.packet(entries, named), layout, limit):
                entries = entries[:-1]  # a tokenizer may, at a seam, count a shorter text as longer
            text = self.packet(entries, named)
        placed = on_page | {entry.unit.id for entry in entries}
        entries, text = self._fallen(
            [unit for unit in wanted if unit.id not in placed], entries, named, layout, limit, text
        )
        return WorkingMemory(
            text, layout, _shown(units, entries, on_page), self._evidence(units, entries, on_page), note
        )

    def plain(self, units: Sequence[EvidenceUnit], entries: Sequence[Entry]) -> WorkingMemory:
        """A working memory of text alone."""
        return WorkingMemory(
            self.packet(entries), None, _shown(units, entries, frozenset()), self._evidence(units, entries, frozenset())
        )

    def _paged(
        self, wanted: Sequence[EvidenceUnit], templates: Sequence[Template], text: str, limit: int
    ) -> tuple[list[EvidenceUnit], Layout | None]:
        """The longest beginning of the wanted units that some template holds, found by bisection, and its page."""
        low, high = 0, len(wanted)
        while low < high:
            middle = (low + high + 1) // 2
            fits = self.layout(wanted[:middle], templates, text, limit, FINE) is not None
            low, high = (middle, high) if fits else (low, middle - 1)
        return list(wanted[:low]), self.layout(wanted[:low], templates, text, limit) if low else None

    def _fallen(
        self,
        left: Sequence[EvidenceUnit],
        entries: list[Entry],
        named: Sequence[str],
        layout: Layout | None,
        limit: int,
        text: str,
    ) -> tuple[list[Entry], str]:
        """Take what the page could not hold into the text, where text and page then still hold the budget."""
        for unit in left:
            for some in _forms(unit):
                tried = self.packet([*entries, *some], named)
                if self._together(tried, layout, limit):
                    entries, text = [*entries, *some], tried
                    break
        return entries, text

    def _together(self, text: str, layout: Layout | None, limit: int) -> bool:
        return all(
            (counter.text(text) if text else 0) + (counter.image(layout.width, layout.height) if layout else 0) <= limit
            for counter in self._counters
        )

    def _evidence(
        self, units: Sequence[EvidenceUnit], entries: Sequence[Entry], on_page: set[str] | frozenset[str]
    ) -> tuple[Evidence, ...]:
        found: list[Evidence] = []
        for unit in units:
            ranges = [(entry.start, entry.end) for entry in entries if entry.unit.id == unit.id]
            if unit.id in on_page:
                ranges = [(unit.start, unit.end)]
            found += itertools.chain.from_iterable(
                self.records[unit.source].pointers(start, end) for start, end in ranges
            )
        return tuple(dict.fromkeys(found))


def _forms(unit: EvidenceUnit) -> list[list[Entry]]:
    """A unit as text: whole; then, where its context may be omitted, each of its key spans alone."""
    forms = [[Entry(unit, unit.start, unit.end)]]
    if unit.priority.context is Rule.OMIT and unit.spans != ((unit.start, unit.end),):
        forms.append([Entry(unit, start, end) for start, end in unit.spans])
    return forms


def _when(time: str) -> str:
    """A record's time, where a timeline can order by it."""
    try:
        Block("", "", "", "", when=time).moment()
    except UserError:
        return ""
    return time


def _head(record: Record, words: str) -> str:
    """What a line begins with: the record's name, unless its words begin with it, and its speaker."""
    title = "" if record.title and words.startswith(record.title) else record.title
    return ", ".join(filter(None, (title, record.speaker)))


def _shown(
    units: Sequence[EvidenceUnit], entries: Sequence[Entry], on_page: set[str] | frozenset[str]
) -> dict[str, str]:
    out: dict[str, str] = {}
    for unit in units:
        own = [entry for entry in entries if entry.unit.id == unit.id]
        whole = any((entry.start, entry.end) == (unit.start, unit.end) for entry in own)
        if unit.id in on_page:
            out[unit.id] = "dual" if own else "image"
        else:
            out[unit.id] = ("text" if whole else "key") if own else "omitted"
    return out
