"""Laying a page out, and the search for the cheapest page that holds some blocks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from memharness.pages.block import Block, Style, Template
from memharness.pages.layout import Layout, Line, Shape, TooNarrow, Unit, placed
from memharness.pages.templates import compose, narrowest, widest
from memharness.pages.wording import glyph_name, missing
from memharness.types import DataError, ReaderError

STYLES = (Style(font_px=16), Style(font_px=14), Style(font_px=12), Style(font_px=10))
STEP = 1.06  # from one width that the search tries to the next
WIDEST = 120  # em of the widest page that the search tries
LONGEST = 3  # times one side that the other is, on a page that is only passed over if no other is cheap enough
NEAR = 4  # tokens that a page may cost more than the cheapest for being nearer to a square


def lay_out(
    blocks: Sequence[Block], template: Template, width: int, height: int, style: Style | None = None
) -> Layout | None:
    """Place every line of some blocks on a page of a width; None if they need more than a height, or it is too narrow.

    Args:
        blocks: at least one, in order.
        template: how they are arranged.
        width: of the page in pixels.
        height: the most it may have in pixels; the page is as high as its blocks need.
        style: sizes and colours (default: `Style()`).

    Raises:
        DataError: a character is covered by no bundled font; the message names it.
        UserError: a block of a timeline has a `when` that is not ISO 8601.
        ValueError: there are no blocks.
    """
    style = style or Style()
    _check(blocks)
    page = _page(blocks, template, width, style)
    return (
        _finished(page, blocks, template, width, style) if page and page.height + 2 * style.margin <= height else None
    )


def smallest(
    blocks: Sequence[Block],
    template: Template,
    cost: Callable[[int, int], int],
    most_tokens: int,
    styles: Sequence[Style] = STYLES,
) -> Layout | None:
    """A page that holds some blocks at about the least cost, in the first style that has one for so many tokens.

    Widths are tried from the longest word's to where no line wraps, each 6 % wider than the last; a page is as high as
    its blocks need at its width, and its right edge is drawn in as far as it gets no higher. Of the cheapest and those
    that cost up to 4 tokens more, the one nearest to a square is taken: readers bring a picture to whole patches, or to
    a fixed shape, which distorts that one least. A page whose one side is over 3 times the other is taken only if no
    other is cheap enough, and a shape that `cost` refuses never.

    Args:
        blocks: at least one, in order.
        template: how they are arranged.
        cost: tokens of a picture by width and height, such as `Counter.image`. For several counters that must all hold,
            give the largest of cost less what is left of each, and 0 as `most_tokens`.
        most_tokens: the most a page may cost.
        styles: the preferred one first (default: 16, 14 and 12 pixels).

    Raises:
        DataError: a character is covered by no bundled font; the message names it.
        UserError: a block of a timeline has a `when` that is not ISO 8601.
        ValueError: there are no blocks.
    """
    _check(blocks)
    for style in styles:
        tried = _tried(blocks, template, cost, style)
        for longest in (LONGEST, math.inf):
            found = _cheapest(blocks, template, cost, most_tokens, style, tried, longest)
            if found:
                return _finished(found.page, blocks, template, found.width, style)
    return None


class Found(NamedTuple):
    """A page with what it costs and how far it is from a square."""

    price: int
    away: float
    width: int
    page: Unit


def _tried(
    blocks: Sequence[Block], template: Template, cost: Callable[[int, int], int], style: Style
) -> Sequence[Found]:
    """A page of every width, with a price that it cannot get under by being drawn in; the least first."""
    tried: list[Found] = []
    for width in _widths(blocks, template, style):
        page = _page(blocks, template, width, style)
        price = _price(cost, round(width / STEP), _height(page, style)) if page else None
        if page and price is not None:
            tried.append(_found(price, width, page, style))
    return sorted(tried, key=lambda page: page[:3])


def _cheapest(
    blocks: Sequence[Block],
    template: Template,
    cost: Callable[[int, int], int],
    most_tokens: int,
    style: Style,
    tried: Sequence[Found],
    longest: float,
) -> Found | None:
    """The squarest of the pages that, drawn in, hold the budget and cost at most `NEAR` tokens more than the cheapest.

    A page whose one side is over `longest` times the other does not count.
    """
    found: list[Found] = []
    least = math.inf
    for hopeful in tried:
        if hopeful.price > least + NEAR:
            break
        drawn_in = _drawn_in(blocks, template, hopeful, cost, style)
        if drawn_in and drawn_in.away <= math.log(longest):
            found.append(drawn_in)
            least = min(least, drawn_in.price)
    near = (page for page in found if page.price <= min(least + NEAR, most_tokens))
    return min(near, key=lambda page: (page.away, page.price), default=None)


def _found(price: int, width: int, page: Unit, style: Style) -> Found:
    return Found(price, abs(math.log(width / _height(page, style))), width, page)


def _check(blocks: Sequence[Block]) -> None:
    """See that every character can be drawn."""
    if not blocks:
        raise ValueError("a page needs at least one block")
    for block in blocks:
        for name in ("title", "text", "source", "kind", "when"):
            text: str = getattr(block, name)
            for character in missing(text):
                of = f" ({block.source})" if block.source and name != "source" else ""
                raise DataError(
                    f"block {block.id}{of}: {name}, character {text.find(character)}: {glyph_name(character)} is in no "
                    f"bundled font; show this block as text, or leave the character out"
                )


def _page(blocks: Sequence[Block], template: Template, width: int, style: Style) -> Unit | None:
    try:
        return compose(blocks, template, width - 2 * style.margin, style)
    except TooNarrow:
        return None


def _height(page: Unit, style: Style) -> int:
    return page.height + 2 * style.margin


def _widths(blocks: Sequence[Block], template: Template, style: Style) -> Iterator[int]:
    width = narrowest(blocks, template, style) + 2.0 * style.margin
    most = min(widest(blocks, style) * 2, style.ems(WIDEST)) + 2 * style.margin
    while width < most:
        yield round(width)
        width *= STEP
    yield math.ceil(most)


def _price(cost: Callable[[int, int], int], width: int, height: int) -> int | None:
    try:
        return cost(width, height)
    except ReaderError:  # a shape that this model does not take
        return None


def _drawn_in(
    blocks: Sequence[Block], template: Template, hopeful: Found, cost: Callable[[int, int], int], style: Style
) -> Found | None:
    """The page as narrow as it gets without getting higher, by bisection, with its price; None if that is refused."""
    low, width, page = round(hopeful.width / STEP), hopeful.width, hopeful.page
    while low < width:
        middle = (low + width) // 2
        narrower = _page(blocks, template, middle, style)
        if narrower and narrower.height <= page.height:
            width, page = middle, narrower
        else:
            low = middle + 1
    price = _price(cost, width, _height(page, style))
    return None if price is None else _found(price, width, page, style)


def _finished(page: Unit, blocks: Sequence[Block], template: Template, width: int, style: Style) -> Layout:
    parts = list(placed(page, style.margin, style.margin))
    return Layout(
        width,
        _height(page, style),
        template,
        style,
        tuple(blocks),
        tuple(part for part in parts if isinstance(part, Line)),
        tuple(part for part in parts if isinstance(part, Shape)),
    )
