"""What pictures cost: worked examples of the publishers, limits, and odd sizes. Equality with the processors
themselves is in tests/readers/test_hf_counters.py."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness import image_tokens
from memharness.types import ReaderError

SIDE = st.integers(1, 20_000)


@pytest.mark.parametrize("rule", image_tokens.NAMED.values())
def test_a_picture_without_pixels_costs_nothing(rule: image_tokens.Callable[[int, int], int]) -> None:
    assert rule(0, 0) == rule(0, 7) == rule(7, 0) == 0


@pytest.mark.parametrize("name", image_tokens.NAMED)
@given(width=SIDE, height=SIDE)
def test_any_shape_costs_at_least_a_token_or_is_refused(name: str, width: int, height: int) -> None:
    try:
        assert image_tokens.NAMED[name](width, height) >= 1
    except ReaderError:
        assert name.startswith("qwen") and max(width, height) > 200 * min(width, height)


def test_openai_tiles_are_as_the_guide_works_them_out() -> None:
    assert image_tokens.openai_tiles(1024, 1024) == 765
    assert image_tokens.openai_tiles(2048, 4096) == 1105
    assert image_tokens.openai_tiles(9999, 3, detail="low") == 85
    # as users measured, less the 8 tokens of an empty message: the shrunk side is rounded
    assert image_tokens.openai_tiles(2049, 513) == 1453 - 8
    assert image_tokens.openai_tiles(2050, 513) == 773 - 8


def test_openai_patches_are_as_the_guide_works_them_out() -> None:
    assert image_tokens.openai_patches(1024, 1024) == 1024
    assert image_tokens.openai_patches(1800, 2400) == 1452
    assert image_tokens.openai_patches(1800, 2400, multiplier=1.62) == math.ceil(1452 * 1.62)
    assert image_tokens.openai_patches(4000, 1474, multiplier=1.62) == 2348  # OpenAI's own calculator


@given(SIDE, SIDE)
def test_patches_never_pass_their_most(width: int, height: int) -> None:
    assert 1 <= image_tokens.openai_patches(width, height) <= 1536


@given(SIDE, SIDE, st.sampled_from([28, 32]))
def test_smart_resize_keeps_its_promises(width: int, height: int, factor: int) -> None:
    least, most = 64 * factor**2, 16384 * factor**2
    if max(width, height) > 200 * min(width, height):
        with pytest.raises(ReaderError, match=rf"{width} × {height} pixels.*no aspect over 200"):
            image_tokens.smart_resize(height, width, factor, least, most)
        return
    high, wide = image_tokens.smart_resize(height, width, factor, least, most)
    assert high % factor == wide % factor == 0 and min(high, wide) >= factor
    assert least <= high * wide <= most


def test_a_tie_is_rounded_to_the_even_side_and_a_thin_side_stays() -> None:
    assert image_tokens.smart_resize(48, 80, 32, 1, 10**9) == (64, 64)  # 1.5 → 2, 2.5 → 2
    assert image_tokens.smart_resize(100, 20_000, 32, 1, 65536) == (32, 3616)  # without the guard, no rows at all


def test_floors_and_tiles_named_by_the_papers() -> None:
    assert image_tokens.qwen3_vl(1, 1) == 64  # half of a budget of 128
    assert image_tokens.qwen2_5_vl(1, 1) == 4
    assert image_tokens.internvl(10, 10) == 256  # one tile alone is over a budget of 128
    assert image_tokens.internvl(4480, 448) == 256 * 11
    assert image_tokens.internvl(4480, 448, most=1) == 256
    assert image_tokens.internvl(448 * 2, 448 * 2) == 256 * 5  # as near as one tile, and large enough for four
    assert image_tokens.glm4v(1, 1) == 9  # 3 × 3, the first grid of 6,272 pixels
