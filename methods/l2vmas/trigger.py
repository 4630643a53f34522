"""When an agent calls on the memory: entropy over a sliding window (L²-VMAS eq. 8)."""

from __future__ import annotations

import math
import random
from collections import deque
from statistics import fmean
from typing import Literal

Mode = Literal["rise", "literal"]


class Trigger:
    """Watches the entropy of one agent's decoding.

    With μ and σ the mean and standard deviation (divided by W) of the last W entropies and H̄ the mean of the last 2W,
    eq. 8 fires at H̄ > μ + λσ. Since H̄ is half μ and half the mean before it, that is true when entropy has *fallen*,
    which the paper's words ("sustained high-entropy regions") contradict. `rise` exchanges the two means, μ > H̄ + λσ;
    `literal` is as printed. In both, nothing fires before 2W entropies are known, or within W steps of the last time.
    """

    def __init__(self, window: int, threshold: float, mode: Mode) -> None:
        """Begin to watch.

        Args:
            window: W, in tokens.
            threshold: λ.
            mode: which inequality.
        """
        self._window = window
        self._threshold = threshold
        self._mode = mode
        self._entropies: deque[float] = deque(maxlen=2 * window)
        self._since = window  # steps since the memory was last called on

    def step(self, entropy: float) -> bool:
        """Take the entropy of one more token, in nats; say whether to call on the memory behind it."""
        self._entropies.append(entropy)
        self._since += 1
        if self._since < self._window or len(self._entropies) < 2 * self._window:
            return False
        recent = list(self._entropies)[-self._window :]
        short, long = fmean(recent), fmean(self._entropies)
        spread = math.sqrt(fmean((one - short) ** 2 for one in recent))  # not statistics.pstdev: its sums are fractions
        high, low = (short, long) if self._mode == "rise" else (long, short)
        return high > low + self._threshold * spread

    def fired(self) -> None:
        """The memory was called on and gave something; where it had nothing to give, the wait does not begin anew."""
        self._since = 0


class Chance:
    """Fires at random, as stage I of training has it, and never within W steps of the last time."""

    def __init__(self, window: int, rate: float, rng: random.Random) -> None:
        """Begin; `rate` is the chance of a token to fire where it may."""
        self._window = window
        self._rate = rate
        self._rng = rng
        self._since = window

    def step(self, entropy: float) -> bool:
        """See `Trigger.step`."""
        self._since += 1
        return self._since >= self._window and self._rng.random() < self._rate

    def fired(self) -> None:
        """See `Trigger.fired`."""
        self._since = 0


class Fixed:
    """Calls on the memory every W tokens, however sure the agent is: what is left without entropy (Table 6)."""

    def __init__(self, window: int) -> None:
        """Begin to count; `window` is W, in tokens."""
        self._window = window
        self._since = 0

    def step(self, entropy: float) -> bool:
        """Take one more token; its entropy does not matter."""
        self._since += 1
        return self._since >= self._window

    def fired(self) -> None:
        """As `Trigger.fired`."""
        self._since = 0
