"""Compressors C, C_merge and C_refine: any number of vectors in, a fixed number out (L²-VMAS eq. 10–12)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import nn

from memharness.methods.l2vmas.config import Residual


class Compressor(nn.Module):
    """A small transformer that reads a sequence into `length` learnable tokens, which stand behind it.

    The tokens see everything; what they read sees itself and not them (eq. 12). There are no positions among what is
    read unless `positions` says how many are learned: keys of a unit should not depend on them, and a chunk may be of
    any length. The paper gives neither layers nor heads nor widths; `inner` keeps them affordable, since two layers as
    wide as an 8B model are 0.4 B parameters.
    """

    def __init__(
        self, width: int, length: int, *, inner: int, layers: int, heads: int, residual: Residual, positions: int = 0
    ) -> None:
        """Make an untrained one.

        Args:
            width: d_model of what is read and written.
            length: y, vectors written.
            inner: width inside; where it is not `width`, a linear map leads in and another out.
            layers: of attention and feed-forward.
            heads: of attention; they divide `inner`.
            residual: `paper` is eq. 11 as printed, FF(LN(z + SA(LN(z)))) + z, where what attention gave goes through
                the feed-forward only; `preln` adds both in turn, as transformers do.
            positions: how many first vectors have a learned position.

        Raises:
            ValueError: the heads do not divide the inner width.
        """
        super().__init__()
        if inner % heads:
            raise ValueError(f"{heads} heads do not divide an inner width of {inner}")
        self.length = length
        self._in = nn.Identity() if inner == width else nn.Linear(width, inner)
        self._out = nn.Identity() if inner == width else nn.Linear(inner, width)
        self._tokens = nn.Parameter(torch.randn(length, inner) * 0.02)
        self._places = nn.Parameter(torch.randn(positions, inner) * 0.02) if positions else None
        self._layers = nn.ModuleList(_Layer(inner, heads, residual) for _ in range(layers))
        self._norm = nn.LayerNorm(inner)

    def forward(self, read: torch.Tensor) -> torch.Tensor:
        """What was read, in `length` vectors.

        Args:
            read: (x, width), x at least 1.

        Returns:
            (length, width), in the dtype of the parameters.

        Raises:
            ValueError: there is nothing to read.
        """
        written: torch.Tensor = self.many([read])[0]
        return written

    def many(self, reads: Sequence[torch.Tensor]) -> torch.Tensor:
        """As `forward`, of several beside each other: (b, length, width). Shorter ones are filled up, unseen."""
        if not all(map(len, reads)):
            raise ValueError("nothing to compress")
        longest = max(map(len, reads))
        filled = nn.utils.rnn.pad_sequence([read.to(self._tokens.dtype) for read in reads], batch_first=True)
        z = self._in(filled)
        if self._places is not None:
            known = min(longest, len(self._places))
            z = torch.cat([z[:, :known] + self._places[:known], z[:, known:]], dim=1)
        z = torch.cat([z, self._tokens.expand(len(reads), -1, -1)], dim=1)
        mask = z.new_zeros(len(reads), 1, z.shape[1], z.shape[1])
        mask[:, :, :longest, longest:] = -math.inf
        for row, read in enumerate(reads):
            mask[row, :, :, len(read) : longest] = -math.inf
        for layer in self._layers:
            z = layer(z, mask)
        written: torch.Tensor = self._out(self._norm(z[:, longest:]))
        return written


class _Layer(nn.Module):
    """Masked self-attention and a feed-forward of four times the width."""

    def __init__(self, width: int, heads: int, residual: Residual) -> None:
        super().__init__()
        self._heads = heads
        self._residual = residual
        self._before = nn.LayerNorm(width)
        self._between = nn.LayerNorm(width)
        self._to = nn.Linear(width, 3 * width, bias=False)
        self._from = nn.Linear(width, width, bias=False)
        self._forward = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, z: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        between = z + self._attend(self._before(z), mask)
        kept = z if self._residual == "paper" else between
        after: torch.Tensor = kept + self._forward(self._between(between))
        return after

    def _attend(self, z: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        query, key, value = (
            part.unflatten(-1, (self._heads, -1)).transpose(-3, -2) for part in self._to(z).chunk(3, dim=-1)
        )
        seen = nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        attended: torch.Tensor = self._from(seen.transpose(-3, -2).flatten(-2))
        return attended
