"""How many calls a server is sent at once: as many as it takes, found out as TCP finds out."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

CUT = 0.7  # of the limit that is kept when the server is busy


class Congestion:
    """A window of calls in flight: doubled each round at first, then grown by one a round, cut when the server is busy.

    Slow start and one multiplicative cut for each episode of congestion, as in TCP Reno (Jacobson 1988): of the calls
    that were in flight together only the first that meets a busy server cuts. Places are given in order of arrival.
    One event loop only.
    """

    def __init__(self, most: int, start: int = 16) -> None:
        """Begin with `start` calls at once and never allow more than `most`; start = most keeps the limit fixed at it.

        Args:
            most: calls at once, whatever the server takes; at least 1.
            start: calls at once to begin with.
        """
        self.most = most
        self.limit = float(min(start, most))
        self.busy = 0  # in flight now
        self.cuts = 0
        self._slow_start = True
        self._begun = 0
        self._cut_at = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def place(self) -> AsyncIterator[int]:
        """Hold a place in the window. Yields the ticket that `busy_signal` wants back."""
        await self._enter()
        self._begun += 1
        try:
            yield self._begun
        finally:
            self.busy -= 1
            self._admit()

    def answered(self) -> None:
        """Grow: a call was answered."""
        grown = 1.0 if self._slow_start else 1.0 / self.limit
        self.limit = min(float(self.most), self.limit + grown)
        self._admit()

    def busy_signal(self, ticket: int) -> None:
        """Cut: the server was busy (429, or 503) for the call of this ticket."""
        if ticket <= self._cut_at:  # it was sent before the last cut, which its congestion has brought about already
            return
        self.limit = max(1.0, self.limit * CUT)
        self._cut_at = self._begun
        self._slow_start = False
        self.cuts += 1

    async def _enter(self) -> None:
        if not self._waiting and self.busy < int(self.limit):
            self.busy += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the place came together with the cancellation: pass it on
                self.busy -= 1
                self._admit()
            raise

    def _admit(self) -> None:
        while self._waiting and self.busy < int(self.limit):
            turn = self._waiting.popleft()
            if not turn.done():
                self.busy += 1
                turn.set_result(None)
