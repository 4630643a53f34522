"""The six templates: what each makes of blocks in columns of a given width.

- `plain`: one flowing column as wide as the page.
- `columns`: text flows through columns like a newspaper's; a title is never the last line of one.
- `cards`: a frame around each block.
- `timeline`: blocks in order of `when` along a line; those without it come last.
- `checklist`: a box before each block, ticked where its kind is `done`.
- `table`: a row for each block; a column each for date, title, and text with its source, as far as there are any.

A page wider than a column may be has several columns, but for `plain` and `table`; only `columns` divides a block.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from memharness.pages.block import Block, Style, Template
from memharness.pages.layout import (
    Measured,
    Role,
    Shape,
    TooNarrow,
    Unit,
    Words,
    flow,
    joined,
    line_height,
    measured,
    natural,
    piled,
    wrap,
)

LEAST = 5  # em that words have at least; a narrower page does not fit
CELL = 6  # em of a word at the most that no column of a table may break
LEVELS = {1: 1.5, 2: 1.3, 3: 1.15}  # em of a title by level
LATEST = datetime.max.replace(tzinfo=UTC)


def compose(blocks: Sequence[Block], template: Template, width: int, style: Style) -> Unit:
    """All blocks as one unit of a width in pixels.

    Raises:
        TooNarrow: they cannot be set at this width.
        UserError: a block of a timeline has a `when` that is not ISO 8601.
    """
    if width < LEAST * style.font_px:
        raise TooNarrow
    if template == "table":
        return _table(blocks, width, style)
    gutter = style.ems(style.gutter)
    columns = 1 if template == "plain" else math.ceil((width + gutter) / (style.ems(style.measure) + gutter))
    column = (width - (columns - 1) * gutter) // columns
    page = flow(list(_UNITS[template](blocks, column, style)), columns, column + gutter)
    if template == "columns":
        for index in range(1, len(page.parts)):
            x = index * (column + gutter) - gutter // 2
            page.parts.append((x, 0, Shape("rule", 0, 0, 0, page.height - 1, style.rule)))
    return page


def widest(blocks: Sequence[Block], style: Style) -> float:
    """Pixels of the longest line that the blocks have if none is wrapped, with room for what a template adds."""
    return max((natural(words) for block in blocks for words in _whole(block, style)), default=0) + 3 * style.font_px


def narrowest(blocks: Sequence[Block], template: Template, style: Style) -> float:
    """Pixels of a column that need break no word but those over 12 em: they are addresses and the like."""
    lines = (words for block in blocks for words in _whole(block, style))
    longest = min(max((word.width for words in lines for word in words), default=0.0), 12.0 * style.font_px)
    inset = 0 if template in ("plain", "columns") else style.ems(1.3)
    return max(LEAST * style.font_px, math.ceil(longest)) + inset


def _whole(block: Block, style: Style) -> Iterator[Sequence[Measured]]:
    yield from _title(block, style, dated=True)[0]
    yield from _text(block, style)
    yield from _source(block, style, dated=True)


# ------------------------------------------------------------------------------------------------ parts of a block


def _title(block: Block, style: Style, *, dated: bool) -> tuple[list[Sequence[Measured]], int]:
    """Title and kind, and before them the date if it is wanted here; with the height of an em."""
    px = round(style.font_px * LEVELS.get(block.level, 1.0))
    lines: list[Sequence[Measured]] = (
        list(measured(block.title, px, _ink(block, style), bold=True)) if block.title else [()]
    )
    if block.kind and style.labels:
        lines[-1] = joined(lines[-1], measured(block.kind, px, style.quiet)[0], px)
    if dated and block.when:
        lines[0] = joined(measured(_date(block), px, style.quiet)[0], lines[0], px)
    return [line for line in lines if line], px


def _text(block: Block, style: Style) -> Sequence[Sequence[Measured]]:
    if not block.text:
        return ()
    return measured(block.text, style.font_px, _ink(block, style), spans=block.spans)


def _source(block: Block, style: Style, *, dated: bool) -> Sequence[Sequence[Measured]]:
    words = " · ".join(part for part in (block.source, _date(block) if dated else "") if part)
    return measured(words, style.small_px, style.quiet) if words else ()


def _date(block: Block) -> str:
    return block.when.replace("T", " ")


def _ink(block: Block, style: Style) -> str:
    return dict(style.inks).get(block.kind, style.ink)


def _lines(
    paragraphs: Sequence[Sequence[Measured]], width: float, px: int, block: Block, role: Role, style: Style
) -> list[Unit]:
    """Every line of some paragraphs as a unit; an empty paragraph is half a line of blank."""
    height = line_height(px, style)
    units: list[Unit] = []
    gap = 0
    for words in paragraphs:
        if not words:
            gap = height // 2 if units else 0
        for line in wrap(words, width, px):
            units.append(Unit(height, gap, parts=[(0, 0, Words(line, block.id, role, px))]))
            gap = 0
    return units


def _entry(block: Block, width: float, style: Style, *, dated: str = "source") -> list[Unit]:
    """A block as lines: title and kind, text, source; the date stands in the title, the source, or not here.

    The title keeps with the text's first line, the source with its last.
    """
    if width < LEAST * style.font_px:
        raise TooNarrow
    titles, px = _title(block, style, dated=dated == "title")
    head = _lines(titles, width, px, block, "title", style)
    body = _lines(_text(block, style), width, style.font_px, block, "text", style)
    foot = _lines(_source(block, style, dated=dated == "source"), width, style.small_px, block, "source", style)
    units = [*head, *body, *foot]
    for unit in [*head, *units[len(head) + len(body) - 1 : -1]]:
        unit.keep = True
    if units:
        units[-1].keep = False
    return units


def _spaced(entries: Sequence[Sequence[Unit]], gap: int) -> Iterator[Unit]:
    for units in entries:
        for index, unit in enumerate(units):
            if index == 0:
                unit.gap = gap
            yield unit


# ------------------------------------------------------------------------------------------------------- templates


def _plain(blocks: Sequence[Block], width: int, style: Style) -> Iterator[Unit]:
    return _spaced([_entry(block, width, style) for block in blocks], style.ems(style.gap))


def _cards(blocks: Sequence[Block], width: int, style: Style) -> Iterator[Unit]:
    pad = max(4, style.ems(0.45))
    for block in blocks:
        inside = piled(_entry(block, width - 2 * pad, style))
        height = inside.height + 2 * (pad - 1)
        frame = Shape("frame", 0, 0, width - 1, height - 1, style.rule)
        yield Unit(height, style.ems(style.gap), parts=[(0, 0, frame), (pad, pad - 1, inside)])


def _timeline(blocks: Sequence[Block], width: int, style: Style) -> Iterator[Unit]:
    indent, gap = style.ems(1.1), style.ems(style.gap)
    radius = max(2, style.ems(0.22))
    middle, centre = radius, line_height(style.font_px, style) // 2
    ordered = sorted(blocks, key=lambda block: block.moment() if block.when else LATEST)
    for index, block in enumerate(ordered):
        inside = piled(_entry(block, width - indent, style, dated="title"))
        first, last = index == 0, index == len(ordered) - 1
        height = inside.height + (0 if last else gap)
        top, end = (centre if first else 0), (centre if last else height - 1)
        rail = Shape("rule", middle, top, middle, end, style.rule)
        dot = Shape("disc", 0, centre - radius, 2 * radius, centre + radius, style.ink if block.when else style.rule)
        yield Unit(height, parts=[(0, 0, rail), (0, 0, dot), (indent, 0, inside)])


def _checklist(blocks: Sequence[Block], width: int, style: Style) -> Iterator[Unit]:
    side, indent = style.ems(0.75), style.ems(1.2)
    for block in blocks:
        inside = piled(_entry(block, width - indent, style))
        top = (line_height(style.font_px, style) - side) // 2
        box: list[tuple[int, int, Words | Shape | Unit]] = [(0, top, Shape("frame", 0, 0, side, side, style.ink))]
        if block.kind == "done":
            box.append((0, top, Shape("tick", 0, 0, side, side, style.ink)))
        yield Unit(inside.height, style.ems(style.gap), parts=[*box, (indent, 0, inside)])


_UNITS: Mapping[Template, Callable[[Sequence[Block], int, Style], Iterator[Unit]]] = {
    "plain": _plain,
    "columns": _plain,
    "cards": _cards,
    "timeline": _timeline,
    "checklist": _checklist,
}


def _table(blocks: Sequence[Block], width: int, style: Style) -> Unit:
    """Rows with a rule between them, and one between the columns, whose widths follow what stands in them."""
    rows = [_cells(block, style) for block in blocks]
    used = [index for index in range(3) if any(row[index] for row in rows)]
    between, pad = style.ems(0.9), max(2, style.ems(0.2))
    widths = _shares([[row[index] for row in rows] for index in used], width - between * (len(used) - 1), style)
    lefts = [sum(widths[:at]) + between * at for at in range(len(used))]
    table = Unit(0)
    for block, row in zip(blocks, rows, strict=True):
        if table.parts:
            table.parts.append((0, table.height + pad, Shape("rule", 0, 0, width - 1, 0, style.rule)))
            table.height += 2 * pad + 1
        cells = [
            piled(
                [
                    unit
                    for part in row[index]
                    for unit in _lines(part.paragraphs, wide, part.px, block, part.role, style)
                ]
            )
            for index, wide in zip(used, widths, strict=True)
        ]
        table.parts += [(left, table.height, cell) for left, cell in zip(lefts, cells, strict=True)]
        table.height += max(cell.height for cell in cells)
    for left in lefts[1:]:
        table.parts.append((left - between // 2, 0, Shape("rule", 0, 0, 0, table.height - 1, style.rule)))
    return table


class Part(NamedTuple):
    """Words of one size within a cell of a table."""

    paragraphs: Sequence[Sequence[Measured]]
    px: int
    role: Role


def _cells(block: Block, style: Style) -> tuple[Sequence[Part], Sequence[Part], Sequence[Part]]:
    """What stands in the columns for date, title with kind, and text with source."""
    when = measured(_date(block), style.small_px, style.quiet) if block.when else ()
    titles, px = _title(block, style, dated=False)
    text = Part(_text(block, style), style.font_px, "text")
    source = Part(_source(block, style, dated=False), style.small_px, "source")
    columns = ([Part(when, style.small_px, "when")], [Part(titles, px, "title")], [text, source])
    dated, titled, told = ([part for part in parts if part.paragraphs] for parts in columns)
    return dated, titled, told


def _shares(columns: Sequence[Sequence[Sequence[Part]]], width: int, style: Style) -> list[int]:
    """Pixels of each column: what its longest word needs, and of the rest a share by how much longer its lines are.

    Raises:
        TooNarrow: the longest words alone need more.
    """
    least, most = [], []
    for cells in columns:
        lines = [words for cell in cells for part in cell for words in part.paragraphs if words]
        longest = max((word.width for words in lines for word in words), default=0.0)
        least.append(math.ceil(min(longest, CELL * style.font_px)))
        most.append(max(least[-1], min(math.ceil(max(map(natural, lines), default=0.0)), style.ems(style.measure))))
    spare, wanted = width - sum(least), sum(most) - sum(least)
    if spare < 0:
        raise TooNarrow
    share = min(1.0, spare / wanted) if wanted else 0.0
    return [low + int((high - low) * share) for low, high in zip(least, most, strict=True)]
