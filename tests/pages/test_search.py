"""The cheapest page: within the budget under every counter, in the preferred style, and no plain try much cheaper."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memharness.image_tokens import NAMED, nominal28
from memharness.pages import TEMPLATES, Block, Layout, Style, Template, lay_out, smallest
from memharness.readers.counters import Bytes4
from memharness.types import DataError, ReaderError
from tests.pages.sample import BLOCKS

STYLE = Style(font_px=14)
COUNTERS: dict[str, Callable[[int, int], int]] = {**NAMED, "bytes4": Bytes4().image}


def shapely(page: Layout) -> bool:
    """Whether neither side is over three times the other."""
    return 1 / 3 <= page.width / page.height <= 3


@pytest.mark.parametrize("template", ["columns", "table"])
@pytest.mark.parametrize("counter", COUNTERS)
def test_no_page_costs_more_than_it_may_under_any_counter(template: Template, counter: str) -> None:
    cost = COUNTERS[counter]
    free = smallest(BLOCKS, template, cost, 100_000, [STYLE])
    assert free is not None
    price = cost(free.width, free.height)
    assert smallest(BLOCKS, template, cost, price, [STYLE]) == free, "what it costs is enough"
    less = smallest(BLOCKS, template, cost, price - 1, [STYLE])
    assert less is None or cost(less.width, less.height) < price


@pytest.mark.parametrize("template", TEMPLATES)
def test_no_width_gives_a_much_cheaper_page(template: Template) -> None:
    found = smallest(BLOCKS, template, nominal28, 100_000)
    assert found is not None
    tried = [lay_out(BLOCKS, template, width, 100_000, found.style) for width in range(100, 900, 7)]
    best = min(nominal28(page.width, page.height) for page in tried if page and shapely(page))
    assert shapely(found)
    assert nominal28(found.width, found.height) <= 1.02 * best + 4


def test_the_first_style_that_fits_is_taken() -> None:
    large, small = Style(font_px=20), Style(font_px=14)
    dear, cheap = (smallest(BLOCKS, "cards", nominal28, 9999, [style]) for style in (large, small))
    assert dear is not None
    assert cheap is not None
    price, least = nominal28(dear.width, dear.height), nominal28(cheap.width, cheap.height)
    assert smallest(BLOCKS, "cards", nominal28, price, [large, small]) == dear
    assert smallest(BLOCKS, "cards", nominal28, least, [large, small]) == cheap
    assert smallest(BLOCKS, "cards", nominal28, least // 2, [large, small]) is None


def test_a_long_strip_is_taken_only_if_nothing_else_is_cheap_enough() -> None:
    blocks = [Block(f"b{index}", "", "a few words here", "") for index in range(24)]
    free = smallest(blocks, "plain", nominal28, 9999, [Style()])
    assert free is not None
    assert shapely(free)
    strip = smallest(blocks, "plain", nominal28, 130, [Style()])
    assert strip is not None
    assert not shapely(strip)
    assert nominal28(free.width, free.height) > 130


def test_of_equal_prices_the_squarest_shape_is_taken() -> None:
    layout = smallest(BLOCKS, "plain", lambda width, height: 256, 256, [STYLE])  # a reader of one fixed size
    assert layout is not None
    assert 0.8 < layout.width / layout.height < 1.25


def test_the_right_edge_is_drawn_in() -> None:
    layout = smallest([Block("a", "", "Constantinople", "")], "plain", nominal28, 100)
    assert layout is not None
    right = max(line.x + line.width for line in layout.lines)
    assert layout.width - layout.style.margin - right < 2


def test_a_shape_that_the_reader_refuses_is_passed_over() -> None:
    def cost(width: int, height: int) -> int:
        if width < 400:
            raise ReaderError("too narrow for this model")
        return nominal28(width, height)

    layout = smallest(BLOCKS, "columns", cost, 1000)
    assert layout is not None
    assert layout.width >= 400


def test_several_counters_hold_at_once_by_what_is_left_of_each() -> None:
    left = {"qwen2.5-vl": 120, "bytes4": 150}
    layout = smallest(
        BLOCKS[:2], "cards", lambda w, h: max(COUNTERS[name](w, h) - most for name, most in left.items()), 0
    )
    assert layout is not None
    assert all(COUNTERS[name](layout.width, layout.height) <= most for name, most in left.items())


def test_a_glyph_no_font_has_is_an_error_not_a_page_that_does_not_fit() -> None:
    with pytest.raises(DataError, match=r"U\+05E9 HEBREW LETTER SHIN"):
        smallest([Block("x", "", "שלום", "")], "cards", nominal28, 1)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.text("abcde fghij klmno\n漢", min_size=1, max_size=120), min_size=1, max_size=5),
    st.sampled_from(TEMPLATES),
    st.sampled_from(sorted(COUNTERS)),
    st.integers(1, 400),
)
def test_never_over_budget(texts: list[str], template: Template, counter: str, most: int) -> None:
    blocks = [Block(f"b{index}", "", text, "") for index, text in enumerate(texts)]
    layout = smallest(blocks, template, COUNTERS[counter], most)
    assert layout is None or COUNTERS[counter](layout.width, layout.height) <= most
