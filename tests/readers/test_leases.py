"""The pool of sessions: bounded, fair, and free of deadlocks whatever the pattern of leases."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memharness.readers.leases import Pool
from memharness.types import UserError


async def turn(times: int = 5) -> None:
    for _ in range(times):
        await asyncio.sleep(0)


async def test_a_lease_is_all_or_nothing_and_first_come_first_served() -> None:
    pool = Pool(4, 400)
    order: list[str] = []

    async def question(name: str, n: int, done: asyncio.Event) -> None:
        async with pool.lease(n):
            order.append(name)
            await done.wait()

    events = {name: asyncio.Event() for name in "abcd"}
    tasks = []
    for name, n in zip("abcd", (3, 2, 1, 4), strict=True):
        tasks.append(asyncio.create_task(question(name, n, events[name])))
        await turn()
    assert order == ["a"]  # one is free, but b, who needs two, is before c
    events["a"].set()
    await turn()
    assert order == ["a", "b", "c"] and pool.free == (1, 100)
    for event in events.values():
        event.set()
    await asyncio.gather(*tasks)
    assert order == ["a", "b", "c", "d"] and pool.free == (4, 400) and pool.peak == (4, 400)


async def test_a_cancelled_wait_lets_those_behind_it_in() -> None:
    pool = Pool(2, 2)
    async with pool.lease(1):
        large = asyncio.create_task(pool.take(2, 2))
        small = asyncio.create_task(pool.take(1, 1))
        await turn()
        assert not large.done() and not small.done()
        large.cancel()
        await turn()
        assert small.done() and pool.free == (0, 0)
    assert pool.free == (1, 1)


async def test_a_grant_and_a_cancel_in_one_turn_lose_nothing() -> None:
    pool = Pool(1, 1)
    await pool.take(1, 1)
    waiting = asyncio.create_task(pool.take(1, 1))
    await turn()
    pool.give(1, 1)  # grants it …
    waiting.cancel()  # … before it could run
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert pool.free == (1, 1)


async def test_what_can_never_be_held_says_what_to_raise() -> None:
    pool = Pool(4, 100)
    with pytest.raises(UserError, match="needs 5 sessions at once, max_sessions=4; raise max_sessions"):
        pool.lease(5)
    with pytest.raises(UserError, match=r"2 sessions of 51 cached tokens .* max_cached_tokens=100; raise"):
        pool.lease(2, room=51)
    with pytest.raises(ValueError, match="at least 1"):
        pool.lease(0)
    assert pool.lease(4).room == 25


async def test_a_holder_cannot_wait_for_more() -> None:
    pool, other = Pool(4, 4), Pool(1, 1)
    async with pool.lease(2) as lease:
        with pytest.raises(ValueError, match=r"2 session\(s\) is already held here; take all sessions"):
            await pool.lease(1).__aenter__()

        async def child() -> None:
            assert pool.held() is lease

        await asyncio.create_task(child())
        async with other.lease(1) as second:
            assert (pool.held(), other.held()) == (lease, second)
        lease.use()
        lease.use()
        with pytest.raises(ValueError, match=r"all 2 session\(s\) of the lease are open"):
            lease.use()
        lease.put_back()
    assert pool.held() is None and pool.free == (3, 3)  # one session is still open, and keeps its share
    lease.put_back()
    assert pool.free == (4, 4)


leases = st.tuples(st.integers(1, 6), st.integers(1, 40), st.integers(0, 3), st.booleans())


@settings(max_examples=50, deadline=None)
@given(st.lists(leases, max_size=30), st.integers(1, 6), st.integers(1, 120))
def test_no_pattern_of_leases_deadlocks_or_leaks(
    wanted: list[tuple[int, int, int, bool]], sessions: int, positions: int
) -> None:
    pool = Pool(sessions, positions)
    held = [0, 0]

    def change(n: int, room: int) -> None:
        held[0] += n
        held[1] += n * room
        assert 0 <= held[0] <= sessions and 0 <= held[1] <= positions

    async def question(n: int, room: int, turns: int) -> None:
        async with pool.lease(n, room):
            change(n, room)
            try:
                await turn(turns)
            finally:
                change(-n, room)

    async def play() -> list[BaseException | None]:
        tasks = []
        for n, room, turns, cancelled in wanted:
            if n > sessions or n * room > positions:
                with pytest.raises(UserError):
                    pool.lease(n, room)
                continue
            tasks.append(asyncio.create_task(question(n, room, turns)))
            await turn(turns)
            if cancelled:
                tasks[-1].cancel()  # before it began, as it waits, as it holds, or after its end
        async with asyncio.timeout(5):
            return await asyncio.gather(*tasks, return_exceptions=True)

    assert all(end is None or isinstance(end, asyncio.CancelledError) for end in asyncio.run(play()))
    assert pool.free == (sessions, positions) and held == [0, 0]
