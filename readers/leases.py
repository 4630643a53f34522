"""Memory for decoding sessions: a bounded pool, leased first come, first served, with no way to a deadlock.

A question takes all sessions it will have open together in one lease. Whoever holds a lease cannot wait for another
one, so no two questions can wait for each other; and the queue is strict, so a large lease is never passed for ever by
small ones.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from dataclasses import dataclass

from memharness.types import UserError

_held: contextvars.ContextVar[tuple[Lease, ...]] = contextvars.ContextVar("held_leases", default=())


@dataclass(slots=True, eq=False)
class _Waiter:
    sessions: int
    positions: int
    granted: asyncio.Future[None]


class Pool:
    """A number of sessions, and of positions in their key-value caches, that may be held at once.

    Attributes:
        sessions: most sessions open together.
        positions: most cached positions of all of them together.
        free: sessions and positions that nobody holds.
        peak: most sessions and positions that were held together so far.
    """

    def __init__(self, sessions: int, positions: int) -> None:
        """Make a pool of this size; a session's room, unless asked otherwise, is an equal share of it."""
        self.sessions = sessions
        self.positions = positions
        self.room = max(1, positions // sessions)
        self.free = (sessions, positions)
        self.peak = (0, 0)
        self._queue: deque[_Waiter] = deque()

    def lease(self, sessions: int, room: int | None = None) -> Lease:
        """A lease of sessions that may cache `room` positions each (the equal share, if None).

        Raises:
            UserError: the pool would never hold it.
            ValueError: less than one session, or than one position each.
        """
        room = self.room if room is None else room
        if sessions < 1 or room < 1:
            raise ValueError(f"a lease of {sessions} sessions of {room} positions: at least 1 of each is needed")
        if sessions > self.sessions:
            raise UserError(
                f"a question needs {sessions} sessions at once, max_sessions={self.sessions}; raise max_sessions, "
                "or let fewer agents of a question be open together"
            )
        if sessions * room > self.positions:
            raise UserError(
                f"a question needs {sessions} sessions of {room} cached tokens at once, "
                f"max_cached_tokens={self.positions}; raise max_cached_tokens, or ask for less"
            )
        return Lease(self, sessions, room)

    def held(self) -> Lease | None:
        """The lease on this pool that the running task, or the one that started it, holds."""
        return next((lease for lease in _held.get() if lease.pool is self and lease.open), None)

    async def take(self, sessions: int, positions: int) -> None:
        """Wait in the queue until this much is free, then hold it."""
        if not self._queue and self._fits(sessions, positions):
            return self._hold(sessions, positions)
        waiter = _Waiter(sessions, positions, asyncio.get_running_loop().create_future())
        self._queue.append(waiter)
        try:
            await waiter.granted
        except asyncio.CancelledError:
            if waiter in self._queue:
                self._queue.remove(waiter)
                self._serve()  # those behind may fit where this one did not
            elif not waiter.granted.cancelled():
                self.give(sessions, positions)  # granted and cancelled in the same turn of the loop
            raise

    def give(self, sessions: int, positions: int) -> None:
        """Give back, and let in whoever fits now, in order."""
        self.free = (self.free[0] + sessions, self.free[1] + positions)
        self._serve()

    def _serve(self) -> None:
        while self._queue and (self._queue[0].granted.done() or self._fits(*_size(self._queue[0]))):
            waiter = self._queue.popleft()
            if not waiter.granted.done():
                self._hold(*_size(waiter))
                waiter.granted.set_result(None)

    def _fits(self, sessions: int, positions: int) -> bool:
        return sessions <= self.free[0] and positions <= self.free[1]

    def _hold(self, sessions: int, positions: int) -> None:
        self.free = (self.free[0] - sessions, self.free[1] - positions)
        used = (self.sessions - self.free[0], self.positions - self.free[1])
        self.peak = (max(self.peak[0], used[0]), max(self.peak[1], used[1]))


def _size(waiter: _Waiter) -> tuple[int, int]:
    return waiter.sessions, waiter.positions


class Lease:
    """Sessions of one question, taken at once by `async with`. See `memharness.reader.Lease`.

    Sessions opened inside, by the same task or by tasks that it starts, are of this lease. A session that is still open
    when the lease ends keeps its own share until it ends too.
    """

    def __init__(self, pool: Pool, sessions: int, room: int) -> None:
        """Describe a lease; `Pool.lease` checks it."""
        self.pool = pool
        self.sessions = sessions
        self.room = room
        self.open = False
        self._unused = 0

    async def __aenter__(self) -> Lease:
        """Wait until all sessions are free, then hold them.

        Raises:
            ValueError: this task already holds a lease of the pool: waiting for more could wait for ever.
        """
        held = self.pool.held()
        if held is not None:
            raise ValueError(
                f"a lease of {held.sessions} session(s) is already held here; take all sessions of a question at once"
            )
        await self.pool.take(self.sessions, self.sessions * self.room)
        self.open, self._unused = True, self.sessions
        _held.set((*_held.get(), self))
        return self

    async def __aexit__(self, *error: object) -> None:
        """Give back what no session of it uses any more."""
        _held.set(tuple(lease for lease in _held.get() if lease is not self))
        self.open = False
        unused, self._unused = self._unused, 0
        self.pool.give(unused, unused * self.room)

    def use(self) -> None:
        """Take one of the sessions.

        Raises:
            ValueError: all of them are open.
        """
        if not self._unused:
            raise ValueError(
                f"all {self.sessions} session(s) of the lease are open; lease as many as are open at the same time"
            )
        self._unused -= 1

    def put_back(self) -> None:
        """Give a session back: to the lease, or to the pool if the lease has ended."""
        if self.open:
            self._unused += 1
        else:
            self.pool.give(1, self.room)
