"""Where lines stand: every word once, in order, inside its column; and what each template adds."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memharness.pages import TEMPLATES, Block, Layout, Line, Style, Template, lay_out
from memharness.pages.wording import clusters
from memharness.types import DataError, UserError
from tests.pages.sample import BLOCKS

STYLE = Style(font_px=14)
TALL = 100_000


def laid(template: Template, width: int = 420, blocks: tuple[Block, ...] = BLOCKS, style: Style = STYLE) -> Layout:
    """A page that fits."""
    layout = lay_out(blocks, template, width, TALL, style)
    assert layout is not None
    return layout


def words(layout: Layout, block: Block, role: str) -> str:
    """What a page shows of one part of a block, blanks apart."""
    return "".join("".join(line.text.split()) for line in layout.lines if (line.block, line.role) == (block.id, role))


def solid(text: str) -> str:
    """A text as it is drawn, blanks apart."""
    return "".join("".join(cluster.drawn for cluster in clusters(text)).split())


def overlap(one: Line, other: Line) -> bool:
    """Whether two lines' boxes share pixels."""
    return (
        one.x < other.x + other.width - 0.5 and other.x < one.x + one.width - 0.5
        and one.y < other.y + other.height and other.y < one.y + one.height
    )  # fmt: skip


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("width", [260, 420, 900])
def test_every_word_stands_on_the_page_once_and_nothing_overlaps(template: Template, width: int) -> None:
    layout = laid(template, width)
    for block in BLOCKS:
        assert words(layout, block, "text") == solid(block.text)
        heading = words(layout, block, "title")
        assert heading.endswith(solid(block.title) + solid(block.kind))
        shown = "".join(solid(line.text) for line in layout.lines if line.block == block.id)
        assert solid(block.source) in shown
        assert solid(block.when.replace("T", " ")) in shown
    for line in layout.lines:
        assert STYLE.margin <= line.x
        assert line.x + line.width <= width - STYLE.margin + 1
        assert STYLE.margin <= line.y
        assert line.y + line.height <= layout.height - STYLE.margin
        assert "".join(run.text for run in line.runs) == line.text == line.text.strip(" ")
    assert not [pair for pair in itertools.combinations(layout.lines, 2) if overlap(*pair)]


@pytest.mark.parametrize("template", TEMPLATES)
def test_key_spans_are_highlighted_and_nothing_else(template: Template) -> None:
    layout = laid(template)
    for block in BLOCKS:
        lines = [line for line in layout.lines if (line.block, line.role) == (block.id, "text")]
        shown = "".join(run.text for line in lines for run in line.runs if run.key)
        assert solid(shown) == solid("".join(block.text[start:end] for start, end in block.spans))
        assert all(run.font.endswith("bold.ttf") for line in lines for run in line.runs if run.key)
    assert not [line for line in layout.lines if line.key and line.role != "text"]


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_page_is_as_high_as_its_blocks_need_and_not_made_if_that_is_too_high(template: Template) -> None:
    layout = laid(template)
    assert lay_out(BLOCKS, template, 420, layout.height, STYLE) == layout
    assert lay_out(BLOCKS, template, 420, layout.height - 1, STYLE) is None
    assert [lay_out(BLOCKS, template, width, TALL, STYLE) for width in (1, 16, 60)] == [None] * 3, "no room for words"


@pytest.mark.parametrize("template", ["cards", "timeline", "checklist", "columns"])
@pytest.mark.parametrize("width", [300, 361, 700, 1100])
def test_no_column_is_wider_than_the_measure(template: Template, width: int) -> None:
    blocks = tuple(replace(block, text=block.text * 4) for block in BLOCKS)
    layout = laid(template, width, blocks)
    assert max(line.width for line in layout.lines) <= STYLE.ems(24)
    lefts = {line.x for line in layout.lines}
    assert len(lefts) == -(-(width - 16 + 17) // (STYLE.ems(24) + 17))


def test_plain_is_one_column_however_wide() -> None:
    layout = laid("plain", 900)
    assert {line.x for line in layout.lines} == {STYLE.margin}
    assert max(line.width for line in layout.lines) > STYLE.ems(24)


def test_cards_have_a_frame_around_each_block() -> None:
    layout = laid("cards", 700)
    frames = [shape for shape in layout.shapes if shape.kind == "frame"]
    assert len(frames) == len(BLOCKS)
    for frame, block in zip(frames, BLOCKS, strict=True):
        for line in layout.lines:
            inside = frame.x0 < line.x < line.x + line.width < frame.x1 and frame.y0 < line.y < frame.y1
            assert inside == (line.block == block.id)


def test_a_timeline_is_in_order_of_time_and_what_has_none_comes_last() -> None:
    layout = laid("timeline", 420)
    order = [block for block, _ in itertools.groupby(line.block for line in layout.lines)]
    assert order == ["b1", "b5", "b2", "b3", "b4"]
    assert layout.lines[0].text == "1874-10 Cape Arrow place"
    assert sum(shape.kind == "disc" for shape in layout.shapes) == len(BLOCKS)


def test_times_with_offsets_are_compared_as_times() -> None:
    east = Block("east", "", "first", "", when="2024-01-01T01:00+05:00")
    west = Block("west", "", "second", "", when="2023-12-31T21:00")
    layout = laid("timeline", 300, (west, east))
    assert [line.text for line in layout.lines if line.role == "text"] == ["first", "second"]


def test_a_time_that_is_none_is_the_users_mistake() -> None:
    with pytest.raises(UserError, match="block b9: when='8 May, 2023' is not ISO 8601"):
        lay_out([Block("b9", "", "x", "", when="8 May, 2023")], "timeline", 300, 300)


def test_a_table_has_a_row_for_each_block_and_columns_that_line_up() -> None:
    layout = laid("table", 700)
    lefts = {role: {line.x for line in layout.lines if line.role == role} for role in ("when", "title", "text")}
    assert all(len(xs) == 1 for xs in lefts.values())
    tops = [min(line.y for line in layout.lines if line.block == block.id) for block in BLOCKS]
    rules = sorted(shape.y0 for shape in layout.shapes if shape.x1 - shape.x0 > 600)
    assert len(rules) == len(BLOCKS) - 1
    assert all(one < rule < other for one, rule, other in zip(tops, rules, tops[1:], strict=False))


def test_a_table_has_no_column_for_what_no_block_has() -> None:
    layout = laid("table", 300, (Block("a", "", "only words", ""), Block("b", "", "and more", "")))
    assert {line.x for line in layout.lines} == {STYLE.margin}
    assert len(layout.shapes) == 1


def test_a_checklist_ticks_what_is_done() -> None:
    layout = laid("checklist", 300)
    boxes = [shape for shape in layout.shapes if shape.kind == "frame"]
    (tick,) = [shape for shape in layout.shapes if shape.kind == "tick"]
    assert len(boxes) == len(BLOCKS)
    done = next(line for line in layout.lines if line.block == "b3")
    assert done.y <= tick.y0 < tick.y1 <= done.y + done.height
    assert all(box.x1 < line.x for box in boxes for line in layout.lines)


def test_columns_divide_blocks_but_never_leave_a_title_last() -> None:
    blocks = tuple(replace(block, title=block.title or "T", text=block.text * 3) for block in BLOCKS)
    for width in range(700, 1300, 7):
        layout = laid("columns", width, blocks)
        for _, column in itertools.groupby(layout.lines, key=lambda line: line.x):
            assert list(column)[-1].role != "title"


def test_a_word_longer_than_a_line_is_broken() -> None:
    address = "https://example.org/" + "abcdefghij" * 12
    layout = laid("plain", 160, (Block("a", "", f"See {address} now", ""),))
    assert words(layout, layout.blocks[0], "text") == solid(f"See {address} now")
    assert max(line.width for line in layout.lines) <= 160 - 16


def test_headings_are_larger_the_higher_their_level() -> None:
    blocks = tuple(Block(f"h{level}", "Heading", "", "", level=level) for level in (0, 1, 2, 3, 6))
    sizes = [line.px for line in laid("plain", 300, blocks).lines]
    assert sizes == [14, 21, 18, 16, 14]


def test_a_glyph_no_font_has_is_named_with_its_place() -> None:
    blocks = (BLOCKS[0], Block("b7", "Greeting", "He said שלום.", "turn 12"))
    with pytest.raises(DataError, match=r"block b7 \(turn 12\): text, character 8: U\+05E9 HEBREW LETTER SHIN"):
        lay_out(blocks, "cards", 400, TALL)
    with pytest.raises(DataError, match=r"block b8: source, character 0: U\+0E44 THAI"):
        lay_out([Block("b8", "", "x", "ไทย")], "cards", 400, TALL)


@pytest.mark.parametrize("span", [(0, 0), (3, 2), (-1, 2), (0, 9)])
def test_a_span_outside_its_text_is_refused(span: tuple[int, int]) -> None:
    with pytest.raises(UserError, match=r"block b1: key span .* is not in its text of 4 characters"):
        Block("b1", "", "four", "", spans=(span,))


def test_a_style_out_of_range_is_refused() -> None:
    with pytest.raises(UserError, match="font_px=2"):
        Style(font_px=2)
    with pytest.raises(UserError, match="'red' is not a colour"):
        Style(inks=(("action", "red"),))


def test_a_page_needs_blocks() -> None:
    with pytest.raises(ValueError, match="at least one block"):
        lay_out([], "cards", 300, 300)


WORDS = st.text(st.sampled_from("ab Ж漢、「。-/\n😀é\u0301W"), max_size=80)
ANY = st.builds(
    lambda title, text, source, kind, cut: Block(
        "x", title, text, source, kind=kind, spans=((0, cut),) if 0 < cut <= len(text) else ()
    ),
    WORDS, WORDS, WORDS, st.sampled_from(["", "note", "done"]), st.integers(0, 20),
)  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(st.lists(ANY, min_size=1, max_size=6), st.sampled_from(TEMPLATES), st.integers(100, 900), st.integers(8, 30))
def test_any_blocks_keep_their_words_and_the_page_its_edges(
    blocks: list[Block], template: Template, width: int, font_px: int
) -> None:
    blocks = [replace(block, id=f"b{index}") for index, block in enumerate(blocks)]
    try:
        layout = lay_out(blocks, template, width, TALL, Style(font_px=font_px))
    except DataError:
        return  # a mark with nothing under it
    if layout is None:
        return
    for block in blocks:
        assert words(layout, block, "text") == solid(block.text)
    assert all(line.x + line.width <= width - 8 + 1 and line.y + line.height <= layout.height for line in layout.lines)
    assert not [pair for pair in itertools.combinations(layout.lines, 2) if overlap(*pair)]
