"""Where a train of thought is cut: at delimiters, by a draw whose chance is the token's entropy (L²-VMAS eq. 6)."""

from __future__ import annotations

import random
from typing import Generic, TypeVar

State = TypeVar("State")


class Chunker(Generic[State]):
    """Collects the hidden states of one agent's tokens, and cuts them into chunks.

    After a token whose text ends in a delimiter the chunk ends with probability clip(H / log |V|, 0, 1), H being the
    entropy of the distribution that this token was drawn from. A chunk is the states of the tokens since the last cut,
    the delimiter's included. What is left behind the last cut is a chunk too (the paper does not say), and so is
    whatever has grown to `limit` states, since a bank of so many chunks is not bounded otherwise.
    """

    def __init__(self, delimiters: str, most: float, limit: int, rng: random.Random) -> None:
        """Begin with nothing.

        Args:
            delimiters: characters after which a chunk may end.
            most: log |V| in nats, of as many logits as the model gives.
            limit: most states of a chunk.
            rng: draws the cuts; seeded, so that a rerun cuts at the same places.
        """
        self._delimiters = tuple(delimiters)
        self._most = most
        self._limit = limit
        self._rng = rng
        self._states: list[State] = []

    def step(self, text: str, entropy: float, state: State) -> list[State] | None:
        """Take one more token; return the chunk that ends with it, if one does.

        Args:
            text: decoded so far, the token included: a tokenizer may hide a delimiter inside of a longer token.
            entropy: in nats.
            state: the hidden state that the token was drawn from.
        """
        self._states.append(state)
        drawn = text.endswith(self._delimiters) and self._rng.random() < min(max(entropy / self._most, 0.0), 1.0)
        return self.rest() if drawn or len(self._states) >= self._limit else None

    def rest(self) -> list[State]:
        """What has not been cut off, which is then forgotten here."""
        states, self._states = self._states, []
        return states
