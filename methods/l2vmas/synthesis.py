"""What makes keys, merged values, injected memory and the gate's choice: learned modules, or plain means."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import nn

from memharness.methods.l2vmas.compressor import Compressor
from memharness.methods.l2vmas.config import Residual
from memharness.methods.l2vmas.gate import Gate


class Synthesis(Protocol):
    """The four places where L²-VMAS computes something of latents. All tensors are (n, width)."""

    def key(self, value: torch.Tensor) -> torch.Tensor:
        """The key of a value, and the query of a window, (width,) (eq. 3)."""

    def merge(self, values: torch.Tensor) -> torch.Tensor:
        """One value for a base and what is merged into it, not longer than they (eq. 7)."""

    def refine(self, values: torch.Tensor) -> torch.Tensor:
        """The memory to inject: `length` vectors (eq. 9)."""

    def perception(self, window: torch.Tensor) -> float:
        """The chance that perception is what is missing (eq. 17)."""


class Learned(nn.Module):
    """The paper's modules: C with one output, C_merge, C_refine, all alike, and the gate."""

    def __init__(
        self,
        width: int,
        *,
        length: int,
        merged: int,
        inner: int,
        layers: int,
        heads: int,
        residual: Residual,
        gate: int,
        positions: int = 0,
    ) -> None:
        """Make untrained modules.

        Args:
            width: d_model.
            length: L, vectors injected.
            merged: most vectors of a merged value.
            inner: width inside the compressors.
            layers: of each compressor.
            heads: of each compressor.
            residual: see `Compressor`.
            gate: width of the gate's hidden layer.
            positions: see `Compressor`.
        """
        super().__init__()

        def compressor(y: int) -> Compressor:
            return Compressor(width, y, inner=inner, layers=layers, heads=heads, residual=residual, positions=positions)

        self.compress = compressor(1)
        self.merging = compressor(merged)
        self.refining = compressor(length)
        self.gate = Gate(width, gate)

    def key(self, value: torch.Tensor) -> torch.Tensor:
        """See `Synthesis`."""
        key: torch.Tensor = self.compress(value)[0]
        return key

    def merge(self, values: torch.Tensor) -> torch.Tensor:
        """See `Synthesis`; of fewer vectors than it writes, as many as there were."""
        merged: torch.Tensor = self.merging(values)[: len(values)]
        return merged

    def refine(self, values: torch.Tensor) -> torch.Tensor:
        """See `Synthesis`."""
        refined: torch.Tensor = self.refining(values)
        return refined

    def perception(self, window: torch.Tensor) -> float:
        """See `Synthesis`."""
        with torch.no_grad():
            return float(torch.sigmoid(self.gate(window)))


class Means:
    """Without training: means in the place of each module. What runs where no trained modules are given.

    A key is a mean, merging and refining are means of equal stretches. The gate has no opinion (.5), which calls on
    thinking where there is any.
    """

    def __init__(self, length: int, merged: int) -> None:
        """As `Learned`."""
        self._length = length
        self._merged = merged

    def key(self, value: torch.Tensor) -> torch.Tensor:
        """See `Synthesis`."""
        return value.float().mean(0)

    def merge(self, values: torch.Tensor) -> torch.Tensor:
        """See `Synthesis`."""
        return _stretches(values, min(self._merged, len(values)))

    def refine(self, values: torch.Tensor) -> torch.Tensor:
        """See `Synthesis`."""
        return _stretches(values, self._length)

    def perception(self, window: torch.Tensor) -> float:
        """See `Synthesis`; it has no opinion."""
        return 0.5


def _stretches(values: torch.Tensor, length: int) -> torch.Tensor:
    """Means of `length` stretches of a sequence, as equal as can be; a shorter sequence is stretched."""
    pooled: torch.Tensor = nn.functional.adaptive_avg_pool1d(values.float().T[None], length)[0].T
    return pooled


def matched(latents: torch.Tensor, norm: float) -> torch.Tensor:
    """Latents, (n, width), each brought to a norm: that of the model's own input embeddings."""
    norms = latents.float().norm(dim=-1, keepdim=True)
    scaled: torch.Tensor = latents * (norm / norms.clamp(min=1e-6)).to(latents.dtype)
    return scaled


def injected(synthesis: Synthesis, values: torch.Tensor, norm: float | None) -> torch.Tensor:
    """What goes into the decoding for the values retrieved, (L, width), brought to a norm if one is given."""
    latents = synthesis.refine(values)
    return latents if norm is None else matched(latents, norm)
