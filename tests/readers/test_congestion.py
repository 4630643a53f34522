from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memharness.readers.congestion import CUT, Congestion


async def test_it_doubles_each_round_until_the_server_is_busy() -> None:
    window = Congestion(64, start=4)
    for expected in (8, 16, 32, 64, 64):
        for _ in range(int(window.limit)):
            window.answered()
        assert window.limit == expected


async def test_one_cut_for_calls_that_were_in_flight_together() -> None:
    window = Congestion(64, start=10)
    async with window.place() as first, window.place() as second:
        window.busy_signal(first)
        window.busy_signal(second)
    assert (window.limit, window.cuts) == (10 * CUT, 1)
    async with window.place() as third:
        window.busy_signal(third)
    assert window.cuts == 2
    assert window.limit == pytest.approx(10 * CUT * CUT)


async def test_after_a_cut_it_grows_by_one_a_round_and_never_below_one() -> None:
    window = Congestion(64, start=2)
    for _ in range(10):
        async with window.place() as ticket:
            window.busy_signal(ticket)
    assert window.limit == 1
    window.answered()
    assert window.limit == 2
    window.answered()
    assert window.limit == 2.5


async def test_places_go_in_order_and_a_cancelled_wait_frees_its_turn() -> None:
    window = Congestion(1)
    order: list[int] = []

    async def work(name: int) -> None:
        async with window.place():
            order.append(name)
            await asyncio.sleep(0)

    async with window.place():
        tasks = [asyncio.create_task(work(n)) for n in range(4)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.sleep(0)
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == [0, 2, 3]
    assert window.busy == 0


async def test_a_place_given_to_a_cancelled_wait_is_passed_on() -> None:
    window = Congestion(1)
    async with window.place():
        first = asyncio.create_task(window._enter())
        second = asyncio.create_task(window._enter())
        await asyncio.sleep(0)
    first.cancel()  # its turn is set, and it has not run yet
    await asyncio.wait_for(second, 1)
    assert window.busy == 1


@settings(max_examples=60, deadline=None)
@given(
    most=st.integers(1, 20),
    start=st.integers(1, 20),
    calls=st.lists(st.sampled_from(["ok", "busy", "cancel", "error"]), max_size=60),
)
def test_never_more_than_allowed_and_nothing_is_lost(most: int, start: int, calls: list[str]) -> None:
    window = Congestion(most, start)
    peak = 0
    done = 0

    async def call(kind: str) -> None:
        nonlocal peak, done
        async with window.place() as ticket:
            peak = max(peak, window.busy)
            await asyncio.sleep(0)
            if kind == "busy":
                window.busy_signal(ticket)
            elif kind == "error":
                raise RuntimeError
            else:
                window.answered()
            done += 1

    async def go() -> None:
        tasks = [asyncio.create_task(call(kind)) for kind in calls]
        await asyncio.sleep(0)
        for task, kind in zip(tasks, calls, strict=True):
            if kind == "cancel":
                task.cancel()
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)

    asyncio.run(go())
    assert peak <= most
    assert window.busy == 0
    assert 1 <= window.limit <= most
    assert done >= sum(kind in ("ok", "busy") for kind in calls)
