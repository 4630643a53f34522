"""What a picture costs in tokens, by its size in pixels: the readers' rules as pure formulas.

Each function's defaults are its family's published settings; a checkpoint may have its own. Marks before and after a
picture are words of the prompt, not tokens of the picture. A picture without pixels costs nothing.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

from memharness.types import ReaderError

LONGEST_ASPECT = 200  # beyond it the Qwen and GLM processors refuse a picture


def nominal28(width: int, height: int) -> int:
    """One token for each 28 × 28 pixels of area, begun ones counted whole; no reader's own count.

    Source: MemOCR (Shi et al. 2026), whose budgets are pixels / 784.
    """
    return -(-width * height // 784)


def smart_resize(height: int, width: int, factor: int, min_pixels: float, max_pixels: float) -> tuple[int, int]:
    """Height and width that the Qwen-VL processors resize a picture to.

    Both become multiples of `factor`, the nearest ones (Python's round, which takes the even neighbour of a tie), and
    the area is brought within the two limits at the same aspect.

    Raises:
        ReaderError: the aspect is over 200, which these processors refuse.

    Source: Qwen2-VL's image processor, with the guard that keeps a side from shrinking to nothing.
    """
    if max(height, width) > LONGEST_ASPECT * min(height, width):
        raise ReaderError(
            f"a picture of {width} × {height} pixels: this model's processor takes no aspect over {LONGEST_ASPECT}; "
            f"crop it or split it"
        )
    high, wide = round(height / factor) * factor, round(width / factor) * factor
    if high * wide > max_pixels:
        shrink = math.sqrt(height * width / max_pixels)
        high = max(factor, math.floor(height / shrink / factor) * factor)
        wide = max(factor, math.floor(width / shrink / factor) * factor)
    elif high * wide < min_pixels:
        grow = math.sqrt(min_pixels / (height * width))
        high, wide = math.ceil(height * grow / factor) * factor, math.ceil(width * grow / factor) * factor
    return high, wide


def qwen_vl(width: int, height: int, factor: int, min_pixels: float, max_pixels: float) -> int:
    """One token for each `factor` × `factor` pixels of the resized picture.

    Raises:
        ReaderError: the aspect is over 200.
    """
    if width < 1 or height < 1:
        return 0
    high, wide = smart_resize(height, width, factor, min_pixels, max_pixels)
    return high * wide // factor**2


def qwen2_5_vl(width: int, height: int) -> int:
    """Qwen2-VL and Qwen2.5-VL: 14-pixel patches merged 2 × 2, from 4 to 16,384 tokens.

    Source: preprocessor_config of the Instruct checkpoints (min_pixels 3136, max_pixels 12845056).
    """
    return qwen_vl(width, height, factor=28, min_pixels=3136, max_pixels=12845056)


def qwen3_vl(width: int, height: int) -> int:
    """Qwen3-VL: 16-pixel patches merged 2 × 2, never under 65,536 pixels, so from 64 to 16,384 tokens.

    Source: preprocessor_config of the checkpoints (shortest_edge 65536, longest_edge 16777216, which are areas).
    """
    return qwen_vl(width, height, factor=32, min_pixels=65536, max_pixels=16777216)


def glm4v(
    width: int,
    height: int,
    factor: int = 28,
    min_pixels: int = 112 * 112,
    max_pixels: int = 28 * 28 * 15000,
    frames: int = 2,
) -> int:
    """GLM-4.1V: as Qwen-VL, but a side under `factor` is first brought up to it, and the limits count each frame.

    A still picture is `frames` equal ones to this model, so its own area has half the limits.

    Raises:
        ReaderError: the aspect, after that, is over 200.

    Source: the image processor of GLM-4.1V in transformers, whose defaults these are.
    """
    if width < 1 or height < 1:
        return 0
    if min(width, height) < factor:
        scale = max(factor / height, factor / width)
        width, height = int(width * scale), int(height * scale)
    return qwen_vl(width, height, factor, min_pixels / frames, max_pixels / frames)


def internvl(
    width: int, height: int, tile: tuple[int, int] = (448, 448), least: int = 1, most: int = 12, each: int = 256
) -> int:
    """InternVL 2 to 3.5: a picture is cut into `least` to `most` tiles, and seen whole besides if there are several.

    The grid is the one whose aspect is nearest to the picture's; of two as near, the later one in order of tiles if the
    picture's area is more than half of its. With `each` tokens a tile, 256 is the least a picture costs.

    Args:
        width: pixels.
        height: pixels.
        tile: height and width of a tile in pixels.
        least: fewest tiles, the whole picture apart.
        most: most tiles, the whole picture apart; 1 for no cutting.
        each: tokens of a tile.

    Source: InternVL 1.5 (Chen et al. 2024), dynamic resolution; its processor in transformers.
    """
    if width < 1 or height < 1:
        return 0
    aspect, area = width / height, width * height
    best, nearest = (1, 1), math.inf
    for columns, rows in _grids(least, most):
        away = abs(aspect - columns / rows)
        if away < nearest or (away == nearest and area > 0.5 * tile[0] * tile[1] * columns * rows):
            best, nearest = (columns, rows), away
    tiles = best[0] * best[1]
    return each * (tiles + 1 if tiles > 1 else 1)


@functools.cache
def _grids(least: int, most: int) -> tuple[tuple[int, int], ...]:
    """Columns and rows of every grid of `least` to `most` tiles, fewest tiles first, then fewest columns."""
    grids = [(columns, rows) for columns in range(1, most + 1) for rows in range(1, most + 1)]
    return tuple(sorted((grid for grid in grids if least <= grid[0] * grid[1] <= most), key=lambda g: (g[0] * g[1], g)))


def openai_tiles(width: int, height: int, detail: str = "high", base: int = 85, each: int = 170) -> int:
    """OpenAI's rule of 512-pixel tiles (GPT-4o, GPT-4.1, GPT-5 and their like; `base` and `each` differ by model).

    The picture is shrunk into 2048 × 2048, then until its short side is at most 768; every tile begun costs `each`,
    and the picture `base` besides. With `detail` low it costs `base`, whatever its size.

    Source: OpenAI's guide to images and vision (GPT-4o's figures). Rounding of the shrunk sides is not documented; to
    the nearest pixel is what users measured.
    """
    if width < 1 or height < 1:
        return 0
    if detail == "low":
        return base
    for limit, side in ((2048, max), (768, min)):
        if (now := side(width, height)) > limit:
            width, height = max(1, round(width * limit / now)), max(1, round(height * limit / now))
    return base + each * -(-width // 512) * -(-height // 512)


def openai_patches(width: int, height: int, multiplier: float = 1.0, most: int = 1536) -> int:
    """OpenAI's rule of 32-pixel patches (mini and nano models), at most 1,536 of them.

    A picture of more is shrunk, at the same aspect, until whole patches fill one of its sides. What a model bills for a
    patch is `multiplier`: 1.62 for minis and 2.46 for nanos by the guide, 1.2 and 1.5 for GPT-5's by its price page and
    by users' measurements. The default counts patches.

    Source: OpenAI's guide to images and vision.
    """
    if width < 1 or height < 1:
        return 0
    wide, high = -(-width // 32), -(-height // 32)
    if wide * high > most:
        shrink = math.sqrt(most / (width * height)) * 32
        across, down = width * shrink / 32, height * shrink / 32
        fit = min(max(1, math.floor(across)) / across, max(1, math.floor(down)) / down)
        wide, high = math.ceil(across * fit - 1e-9), math.ceil(down * fit - 1e-9)
    return math.ceil(min(wide * high, most) * multiplier)


NAMED: Mapping[str, Callable[[int, int], int]] = MappingProxyType(
    {
        "nominal28": nominal28,
        "qwen2.5-vl": qwen2_5_vl,
        "qwen3-vl": qwen3_vl,
        "internvl": internvl,
        "openai-tiles": openai_tiles,
        "openai-patches": openai_patches,
    }
)
