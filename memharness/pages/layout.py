"""Where every line of a page stands: words wrapped by measured width, then columns of equal height.

A template makes **units** of one column's width, one after another; `flow` spreads them over the page's columns. Only a
page that is kept gets its lines made: a search over widths needs heights alone.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from memharness.pages.block import Block, Style, Template
from memharness.pages.faces import BODY
from memharness.pages.faces import width as advance
from memharness.pages.wording import Piece, Word, paragraphs

Role = Literal["title", "text", "source", "when"]


@dataclass(frozen=True, slots=True)
class Run:
    """Letters drawn in one go, from `x` on, in a bundled font; bold by a second stroke where the font has no weight."""

    text: str
    x: float
    width: float
    font: str
    twice: bool
    key: bool
    colour: str


@dataclass(frozen=True, slots=True)
class Line:
    """A line of words and its box in pixels.

    Attributes:
        text: as drawn: emoji by name, blanks in a row as one.
        x: left edge.
        y: upper edge.
        width: what the words advance.
        height: of the line.
        block: id of the block it belongs to.
        role: which part of the block.
        px: height of an em.
        runs: its letters by font, weight and colour.
    """

    text: str
    x: int
    y: int
    width: float
    height: int
    block: str
    role: Role
    px: int
    runs: tuple[Run, ...]

    @property
    def key(self) -> bool:
        """Whether some of its words are highlighted."""
        return any(run.key for run in self.runs)

    @property
    def bold(self) -> bool:
        """Whether all of its words are bold."""
        return all(run.font.endswith("bold.ttf") or run.twice for run in self.runs)


@dataclass(frozen=True, slots=True)
class Shape:
    """A frame, a rule, a disc or a tick within a box, in pixels; `y1` and `x1` are within it."""

    kind: Literal["frame", "rule", "disc", "tick"]
    x0: int
    y0: int
    x1: int
    y1: int
    colour: str

    def moved(self, x: int, y: int) -> Shape:
        """The shape so many pixels further."""
        return replace(self, x0=self.x0 + x, x1=self.x1 + x, y0=self.y0 + y, y1=self.y1 + y)


@dataclass(frozen=True, slots=True)
class Layout:
    """A page before it is drawn. `height` is what its blocks need at its width."""

    width: int
    height: int
    template: Template
    style: Style
    blocks: tuple[Block, ...]
    lines: tuple[Line, ...]
    shapes: tuple[Shape, ...]


class Measured(NamedTuple):
    """A word with its width and that of the blank after it, in pixels."""

    width: float
    blank: float
    word: Word


class Words(NamedTuple):
    """Words of one line that has no place yet."""

    words: Sequence[Measured]
    block: str
    role: Role
    px: int


@dataclass(slots=True)
class Unit:
    """What is not divided between columns; its upper left corner is (0, 0).

    Attributes:
        height: pixels.
        gap: blank pixels before it, unless it begins a column.
        keep: whether the next unit must stand in the same column.
        parts: (x, y, what stands there).
    """

    height: int
    gap: int = 0
    keep: bool = False
    parts: list[tuple[int, int, Words | Shape | Unit]] = field(default_factory=list)


class TooNarrow(Exception):
    """A column has no room for words: the page does not fit."""


def line_height(px: int, style: Style) -> int:
    """Pixels of a line."""
    return math.ceil(px * style.leading)


@functools.lru_cache(4096)
def measured(
    text: str, px: int, colour: str, bold: bool = False, spans: tuple[tuple[int, int], ...] = ()
) -> tuple[tuple[Measured, ...], ...]:
    """The words of each paragraph of a text with their widths."""
    return tuple(
        tuple(_measure(word, px) for word in words) for words in paragraphs(text, spans, bold=bold, colour=colour)
    )


def joined(first: Sequence[Measured], second: Sequence[Measured], px: int) -> tuple[Measured, ...]:
    """Two lines of words as one, a blank between them."""
    if not first or not second:
        return (*first, *second)
    last = first[-1].word
    blank = replace(last.pieces[-1], text=" ", face=BODY, key=False)
    return (*first[:-1], _measure(Word(last.pieces, blank), px), *second)


def natural(words: Sequence[Measured]) -> float:
    """Pixels of a line that holds all these words."""
    return sum(word.width + word.blank for word in words) - (words[-1].blank if words else 0)


def wrap(words: Sequence[Measured], width: float, px: int) -> Iterator[Sequence[Measured]]:
    """Fill lines with words, each line as full as it gets; a word that is wider than a line is broken where it ends.

    Raises:
        TooNarrow: one letter is wider than a line.
    """
    line: list[Measured] = []
    used = 0.0
    for word in words:
        if line and used + word.width > width:
            yield line
            line, used = [], 0.0
        if word.width > width:
            *full, word = _broken(word, width, px)
            yield from ([part] for part in full)
        line.append(word)
        used += word.width + word.blank
    if line:
        yield line


def _measure(word: Word, px: int) -> Measured:
    blank = advance(" ", word.blank.font, px) if word.blank else 0.0
    return Measured(sum(advance(piece.text, piece.font, px) for piece in word.pieces), blank, word)


def _broken(whole: Measured, width: float, px: int) -> Iterator[Measured]:
    """A word in parts that each fit a line; the last one keeps the blank after it."""
    pieces: list[Piece] = []
    used = 0.0
    for piece in whole.word.pieces:
        for letter in piece.text:
            wide = advance(letter, piece.font, px)
            if wide > width:
                raise TooNarrow
            if used + wide > width:
                yield _measure(Word(tuple(pieces), None), px)
                pieces, used = [], 0.0
            if pieces and _look(pieces[-1]) == _look(piece):
                pieces[-1] = replace(piece, text=pieces[-1].text + letter)
            else:
                pieces.append(replace(piece, text=letter))
            used += wide
    yield _measure(Word(tuple(pieces), whole.word.blank), px)


def piled(units: Sequence[Unit]) -> Unit:
    """Units one below another as one."""
    stack = Unit(0, units[0].gap if units else 0)
    for index, unit in enumerate(units):
        stack.height += unit.gap if index else 0
        stack.parts.append((0, stack.height, unit))
        stack.height += unit.height
    return stack


def flow(units: Sequence[Unit], columns: int, pitch: int) -> Unit:
    """Units in columns `pitch` pixels apart, one filled after another, at the least height that holds all."""
    groups = [piled(list(group)) for group in _kept(units)]
    low = max((group.height for group in groups), default=0)
    high = piled(groups).height
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if len(_filled(groups, middle)) <= columns else (middle + 1, high)
    filled = [piled(column) for column in _filled(groups, low)]
    return Unit(low, parts=[(index * pitch, 0, column) for index, column in enumerate(filled)])


def _kept(units: Sequence[Unit]) -> Iterator[Sequence[Unit]]:
    """Runs of units that must stand together."""
    group: list[Unit] = []
    for unit in units:
        group.append(unit)
        if not unit.keep:
            yield group
            group = []
    if group:
        yield group


def _filled(units: Sequence[Unit], height: int) -> list[list[Unit]]:
    """The columns that units fill up to a height."""
    columns: list[list[Unit]] = []
    used = 0
    for unit in units:
        if columns and used + unit.gap + unit.height <= height:
            columns[-1].append(unit)
            used += unit.gap + unit.height
        else:
            columns.append([unit])
            used = unit.height
    return columns


def placed(unit: Unit, x: int, y: int) -> Iterator[Line | Shape]:
    """The lines and shapes of a unit whose upper left corner stands at a place, in order of their making."""
    for right, down, part in unit.parts:
        match part:
            case Unit():
                yield from placed(part, x + right, y + down)
            case Shape():
                yield part.moved(x + right, y + down)
            case _:
                yield _line(part, x + right, y + down, unit.height)


def _line(content: Words, x: int, y: int, height: int) -> Line:
    """A line with its letters joined into runs as long as they are drawn alike."""
    pieces: list[Piece] = []
    for index, (_, _, word) in enumerate(content.words):
        pieces += word.pieces
        if word.blank and index < len(content.words) - 1:
            pieces.append(word.blank)
    runs: list[Run] = []
    at = float(x)
    for (font, twice, key, colour), group in itertools.groupby(pieces, _look):
        text = "".join(piece.text for piece in group)
        wide = advance(text, font, content.px)
        runs.append(Run(text, at, wide, font, twice, key, colour))
        at += wide
    return Line(
        "".join(run.text for run in runs), x, y, at - x, height, content.block, content.role, content.px, tuple(runs)
    )


def _look(piece: Piece) -> tuple[str, bool, bool, str]:
    return piece.font, piece.bold and piece.font == piece.face, piece.key, piece.colour
