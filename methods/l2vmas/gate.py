"""Which memory to call on: a learnable gate over the window of hidden states (L²-VMAS eq. 17–20)."""

from __future__ import annotations

import torch
from torch import nn


class Gate(nn.Module):
    """The chance p that perception is what an agent lacks; thinking has 1 - p.

    The paper leaves g_φ open. Here: the window's mean and its last state, each normalised, through one hidden layer.
    """

    def __init__(self, width: int, inner: int) -> None:
        """Make a gate for hidden states of this width, with a hidden layer of `inner`."""
        super().__init__()
        self._norm = nn.LayerNorm(width)
        self._net = nn.Sequential(nn.Linear(2 * width, inner), nn.GELU(), nn.Linear(inner, 1))

    def forward(self, window: torch.Tensor) -> torch.Tensor:
        """The logit a of p = sigmoid(a), a scalar (eq. 17).

        Args:
            window: (w, width), oldest first; w is W, and less only where an agent began a moment ago.
        """
        states = self._norm(window.to(self._norm.weight.dtype))
        logit: torch.Tensor = self._net(torch.cat([states.mean(0), states[-1]]))[0]
        return logit


def relaxed(logit: torch.Tensor, temperature: float, generator: torch.Generator) -> torch.Tensor:
    """The Gumbel-sigmoid of a logit, in (0, 1), with a gradient (eq. 18, 19).

    Args:
        logit: any shape.
        temperature: τ > 0; the smaller, the nearer to 0 or 1.
        generator: draws the logistic noise, on the CPU.
    """
    uniform = torch.rand(logit.shape, generator=generator, dtype=torch.float64)
    uniform = uniform.clamp(1e-12, 1 - 1e-12)
    noise = (uniform.log() - (1 - uniform).log()).to(logit.device, logit.dtype)
    return torch.sigmoid((logit + noise) / temperature)


def annealed(step: int, first: float, least: float, rate: float) -> float:
    """The temperature at a training step: max(τ_min, τ_0 · rate^step) (eq. 20; its λ is not the trigger's)."""
    return max(least, first * rate**step)
