"""Who pays: the question whose task makes a call, whoever is beside it; and seconds that overlap count once."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.ledger import Account, Call, Clock, account, charging, in_phase, phase
from memharness.types import Usage


def charge(tokens: int) -> None:
    """What a metered call does."""
    account().add(phase(), Usage(text=tokens, image=2, output=1))


# ------------------------------------------------------------------------------------------------------------ accounts


def test_nothing_is_open_at_the_start() -> None:
    assert account() == Account("")
    assert phase() == "observe"
    charge(3)  # start-up of a plug-in is nobody's
    assert account().spent == {}


def test_an_account_sums_by_phase() -> None:
    with charging(Account("c", "q", 2), "recall") as mine:
        charge(3)
        charge(4)
        with in_phase("judge"):
            mine.add(phase(), Usage(cached=5, reasoning=6, latent=7), calls=2)
        assert phase() == "recall"
    none = dict.fromkeys(("text", "image", "output", "latent", "cached", "reasoning"), 0)
    assert mine.spent["recall"] == none | {"text": 7, "image": 4, "output": 2, "calls": 2}
    assert mine.spent["judge"] == none | {"latent": 7, "cached": 5, "reasoning": 6, "calls": 2}


def test_inner_accounts_give_way_to_outer_ones_even_on_errors() -> None:
    outer, inner = Account("c"), Account("c", "q")
    with charging(outer, "observe"):
        with pytest.raises(ZeroDivisionError), charging(inner, "read"), in_phase("answer"):
            raise ZeroDivisionError
        assert account() is outer
        assert phase() == "observe"
    assert account().context == ""


def test_a_phase_that_is_none() -> None:
    with (
        pytest.raises(ValueError, match="'raed' is not a phase; phases are observe, recall, read, answer, judge"),
        in_phase("raed"),
    ):
        pass


async def test_tasks_beside_each_other_pay_for_themselves() -> None:
    async def question(n: int) -> Account:
        with charging(Account("c", f"q{n}"), "recall") as mine:
            for _ in range(n):
                charge(n)
                await asyncio.sleep(0)

            async def helper() -> None:  # a task inherits who pays
                with in_phase("read"):
                    await asyncio.sleep(0)
                    charge(100)

            await asyncio.gather(helper(), helper())
            assert phase() == "recall"
        return mine

    accounts = await asyncio.gather(*(question(n) for n in range(1, 20)))
    for n, mine in enumerate(accounts, 1):
        assert mine.question == f"q{n}"
        assert mine.spent["recall"]["text"] == n * n
        assert mine.spent["recall"]["calls"] == n
        assert mine.spent["read"]["text"] == 200


class Batcher:
    """An engine that answers in batches, from a task of its own: the caller is charged in the caller's task."""

    def __init__(self) -> None:
        """Nothing waits."""
        self.waiting: list[tuple[int, asyncio.Future[int]]] = []
        self.batches: list[int] = []

    async def serve(self) -> None:
        """Answer whatever waits, together."""
        while True:
            await asyncio.sleep(0.001)
            batch, self.waiting = self.waiting, []
            self.batches += [len(batch)] if batch else []
            for tokens, reply in batch:
                reply.set_result(tokens)

    async def call(self, tokens: int) -> None:
        """One call, charged when its reply is there."""
        reply: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.waiting.append((tokens, reply))
        charge(await reply)


async def test_batched_callers_are_charged_to_the_right_question() -> None:
    engine = Batcher()
    with charging(Account("nobody"), "observe") as server:  # whose context the engine's task runs in
        serving = asyncio.create_task(engine.serve())

    async def question(n: int) -> Account:
        with charging(Account("c", f"q{n}"), "read") as mine:
            await asyncio.gather(*(engine.call(n) for _ in range(3)))
        return mine

    accounts = await asyncio.gather(*(question(n) for n in range(10)))
    serving.cancel()
    assert max(engine.batches) > 3  # questions really shared a batch
    assert server.spent == {}
    assert [mine.spent["read"]["text"] for mine in accounts] == [3 * n for n in range(10)]


# --------------------------------------------------------------------------------------------------------------- lines


def test_a_call_as_a_line() -> None:
    usage = Usage(text=1, image=2, cached=3, output=4, reasoning=5, latent=6)
    call = Call("generate", "read", "answer", "m", "c", "q", 1, usage, queued=0.12345678, seconds=1.0, price=0.5)
    line = call.line()
    counts = [line[name] for name in ("text", "image", "cached", "output", "reasoning", "latent")]
    assert counts == [1, 2, 3, 4, 5, 6]
    assert (line["queued"], line["status"], line["hit"], line["price"]) == (0.123457, "ok", False, 0.5)
    assert set(line) >= {"kind", "phase", "role", "model", "context", "question", "attempt", "inputs"}


# --------------------------------------------------------------------------------------------------------------- clock


class Hands:
    """A clock that goes when told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Take the place of the real one."""
        self.now = 100.0
        monkeypatch.setattr("memharness.ledger.time.perf_counter", lambda: self.now)


def test_overlapping_tasks_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    hands, clock = Hands(monkeypatch), Clock()
    assert clock.seconds() == {}
    with clock.running("read"):
        hands.now += 1
        with clock.running("read"), clock.running("recall"):
            hands.now += 2
            assert clock.seconds() == {"read": 3, "recall": 2}
        hands.now += 3
    hands.now += 10
    with pytest.raises(ZeroDivisionError), clock.running("read"):
        hands.now += 1
        raise ZeroDivisionError
    assert clock.seconds() == {"read": 7, "recall": 2}


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 10)), max_size=8))
def test_a_clock_measures_the_union(spans: list[tuple[int, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        hands, clock = Hands(patch), Clock()
        open_spans: dict[int, ExitStack] = {}
        for moment in range(42):
            hands.now = 100.0 + moment
            for at, (start, length) in enumerate(spans):
                if moment == start:
                    open_spans[at] = ExitStack()
                    open_spans[at].enter_context(clock.running("read"))
                if moment == start + length:
                    open_spans.pop(at).close()
        seconds = clock.seconds().get("read", 0.0)
    covered = {moment for start, length in spans for moment in range(start, start + length)}
    assert seconds == len(covered)
