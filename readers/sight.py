"""Pictures as latents: cut into blocks of vision patches, at several granularities, through the model's own encoder."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image as Picture

    from memharness.readers.network import Network

_AT_ONCE = 64  # blocks that go through the encoder together, which bounds its memory

Remainder = Literal["resize", "pad"]


def levels_of(side: int, merge: int) -> int:
    """How often a block can be halved before it is less than one vector, and once more for the block as it is.

    Args:
        side: of a block, in vision patches.
        merge: patches, along a side, that become one vector.

    Returns:
        g for a side of 2^g patches at merge 2.

    Raises:
        ValueError: not even one vector fits, or a block is not a whole number of vectors.
    """
    if side < merge or side % merge:
        raise ValueError(f"a block of {side} patches: this model makes one vector of {merge} × {merge} patches")
    levels = 1
    while side % 2 == 0 and (side := side // 2) >= merge and side % merge == 0:
        levels += 1
    return levels


def grid(width: int, height: int, size: int, most: int, whole: Callable[[float], int]) -> tuple[int, int, float]:
    """How a picture is cut: columns and rows of blocks of `size` pixels, at most `most`, and the scale it is shown at.

    Args:
        width: of the picture, in pixels.
        height: of the picture, in pixels.
        size: of a block, in pixels.
        most: blocks; a picture of more is made smaller, in its own shape, and none is made larger.
        whole: how many blocks a fraction of one is: `round` or `math.ceil`.
    """
    scale = min(1.0, math.sqrt(most * size * size / (width * height)))
    while True:
        columns, rows = (max(1, whole(edge * scale / size)) for edge in (width, height))
        if columns * rows <= most:
            return columns, rows, scale
        scale *= 0.99


def blocks_of(picture: Picture, size: int, most: int, remainder: Remainder) -> torch.Tensor:
    """A picture as square blocks, row by row, f32 of shape (blocks, 3, size, size) in 0 … 255.

    Args:
        picture: of any size.
        size: of a block, in pixels.
        most: blocks.
        remainder: what becomes of an edge that fills no block. `resize` brings the picture to the nearest whole number
            of blocks, which is one at least; `pad` adds grey (127.5) on the right and at the bottom.
    """
    import numpy as np
    import torch

    pixels = torch.from_numpy(np.array(picture.convert("RGB"), np.float32)).permute(2, 0, 1)
    columns, rows, scale = grid(picture.width, picture.height, size, most, math.ceil if remainder == "pad" else round)
    width, height = columns * size, rows * size
    if remainder == "pad":
        pixels = _scaled(pixels, min(height, round(picture.height * scale)), min(width, round(picture.width * scale)))
        edge = (0, width - pixels.shape[2], 0, height - pixels.shape[1])
        pixels = torch.nn.functional.pad(pixels, edge, value=127.5)
    pixels = _scaled(pixels, height, width)
    return pixels.reshape(3, rows, size, columns, size).permute(1, 3, 0, 2, 4).reshape(-1, 3, size, size)


def _scaled(pixels: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """Resized as the processors do it: smoothed when it gets smaller."""
    import torch

    height, width = max(1, height), max(1, width)
    if pixels.shape[1:] == (height, width):
        return pixels
    return torch.nn.functional.interpolate(
        pixels[None], size=(height, width), mode="bicubic", antialias=True, align_corners=False
    )[0].clamp(0, 255)


def halved(blocks: torch.Tensor, times: int) -> torch.Tensor:
    """Blocks at 1 / 2^times of their size: `down_i` of the paper, plain bilinear interpolation.

    Source: L²-VMAS eq. 4.
    """
    import torch

    if times == 0:
        return blocks
    return torch.nn.functional.interpolate(
        blocks, scale_factor=0.5**times, mode="bilinear", align_corners=False, recompute_scale_factor=False
    )


class Sight:
    """The vision encoder and projector of a model, fed with blocks straight, past its processor's resizing.

    The processor lifts whatever is below its least size (65,536 pixels for Qwen3-VL), which would make all
    granularities of a block the same picture; so its resizing and tiling are off, and what is left of it (rescaling,
    normalising, cutting into patches in the model's order) is its own.
    """

    def __init__(self, network: Network) -> None:
        """Bind to a loaded network that sees."""
        vision = network.config.vision_config
        patch = vision.patch_size
        self.patch = int(patch[0] if isinstance(patch, list | tuple) else patch)
        self.merge = int(getattr(vision, "spatial_merge_size", 0) or round(1 / network.config.downsample_ratio))
        self._device = network.device
        self._look = network.model.get_image_features
        self._processor = network.processor.image_processor
        tiles = hasattr(self._processor, "crop_to_patches")
        self._whole = {"do_resize": False, **({"crop_to_patches": False} if tiles else {})}

    def encode(self, blocks: torch.Tensor, levels: int, deepstack: bool) -> torch.Tensor:
        """Latents of blocks (see `LatentDecoding.see`), fine to coarse.

        Args:
            blocks: (blocks, 3, size, size), 0 … 255.
            levels: sizes of each block.
            deepstack: whether to give what DeepStack adds as well.

        Returns:
            (blocks, n, width), or with DeepStack (blocks, n, 1 + layers, width).
        """
        import torch

        rows = []
        for start in range(0, len(blocks), _AT_ONCE):
            some = blocks[start : start + _AT_ONCE]
            rows.append(torch.cat([self._encode(halved(some, level), deepstack) for level in range(levels)], dim=1))
        return torch.cat(rows)

    def _encode(self, blocks: torch.Tensor, deepstack: bool) -> torch.Tensor:
        import torch

        made = self._processor(list(blocks), return_tensors="pt", **self._whole)
        inputs = {name: made[name].to(self._device) for name in ("pixel_values", "image_grid_thw") if name in made}
        seen = features(self._look(**inputs))
        latents = torch.stack(seen, dim=1) if deepstack else seen[0]
        return latents.reshape(len(blocks), -1, *latents.shape[1:])


def features(output: Any) -> list[torch.Tensor]:
    """What a vision encoder gives: the projected vectors, shape (vectors, width), then DeepStack's additions, alike."""
    import torch

    seen = output.pooler_output
    first = torch.cat(list(seen)) if isinstance(seen, (tuple, list)) else seen.flatten(0, 1)
    return [first, *(torch.cat(list(layer)) for layer in getattr(output, "deepstack_features", None) or [])]
