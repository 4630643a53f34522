"""Judges at work: opened as readers, asked by schema or in words, and why one gave no reply."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Protocol

from memharness.ledger import Account, Call, charging
from memharness.media import MediaStore
from memharness.metric import Judged, Metric, must_see
from memharness.reader import Reply
from memharness.run import prices
from memharness.run.kit import Models
from memharness.run.metered import Meter, Metered, Timeout
from memharness.run.setup import make_reader
from memharness.store import RequestCache
from memharness.types import Asked, Outcome, ReaderError, UserError

AT_ONCE = 64  # batches asked at once: each is many answers long


class NoReply(Exception):
    """The judge gave no reply to read: it failed, refused or timed out. The message says how."""


class Judging(Protocol):
    """What gives replies to judged metrics: a judge, or what is kept of its replies."""

    async def prepare(self, told: Iterable[Asked | Mapping[str, float]], metrics: Sequence[Metric]) -> None:
        """See the questions of a scoring pass before it begins."""

    async def reply(self, metric: Judged, unit: Sequence[Asked]) -> Reply:
        """The reply on a unit. Raises NoReply if there is none."""


class Asker:
    """A judge that is asked: by schema if it can be held to one, else in words."""

    def __init__(self, reader: Metered) -> None:
        """Ask a started reader."""
        self._reader = reader
        self._batches: dict[tuple[str, str, str], Reply | NoReply] = {}

    @property
    def identity(self) -> dict[str, Any]:
        """What makes two judges the same model with the same options."""
        return self._reader.reader.identity()

    @property
    def by_schema(self) -> bool:
        """Whether it is held to the rubric's schema."""
        return "schema" in self._reader.card.capabilities

    def begins(self, spec: str) -> dict[str, Any]:
        """The line of the ledger that says who judges from here on; of several passes over a run the last counts."""
        card = {**vars(self._reader.card), "capabilities": sorted(self._reader.card.capabilities)}
        return {"kind": "model", "spec": spec, "card": card, "judging": time.time()}

    async def prepare(self, told: Iterable[Asked | Mapping[str, float]], metrics: Sequence[Metric]) -> None:
        """Ask about every batch, so that its questions can then be scored one by one.

        Raises:
            UserError: if a metric shows pictures to a judge that sees none.
        """
        card = self._reader.card
        must_see(f"{card.name}:{card.model}" if card.model else card.name, card.capabilities, metrics)
        batched = [metric for metric in metrics if isinstance(metric, Judged) and metric.batch]
        calls = ((metric, batch) for batch in _batches(told) for metric in batched) if batched else iter(())
        while some := list(islice(calls, AT_ONCE)):
            await asyncio.gather(*(self._batch(metric, batch) for metric, batch in some))

    async def reply(self, metric: Judged, unit: Sequence[Asked]) -> Reply:
        """The reply on a unit, or on the batch that its question is a part of.

        Raises:
            NoReply: the judge failed, refused, timed out, or could not hold the prompt.
        """
        if not metric.batch:
            return await self._ask(metric, unit)
        found = self._batches[_place(metric, unit[0])]
        if isinstance(found, NoReply):
            raise found
        return found

    async def _batch(self, metric: Judged, batch: Sequence[Asked]) -> None:
        open_ones = [asked for asked in batch if asked.record.outcome is Outcome.OK and not metric.score([asked], {})]
        if not open_ones:
            return
        found: Reply | NoReply
        try:
            found = await self._ask(metric, open_ones)
        except NoReply as error:
            found = error
        self._batches |= {_place(metric, asked): found for asked in open_ones}

    async def _ask(self, metric: Judged, unit: Sequence[Asked]) -> Reply:
        record = unit[0].record
        request = metric.ask(unit) if self.by_schema else metric.ask_in_words(unit)
        with charging(Account(record.context, record.question, record.attempt), "judge"):
            try:
                reply = await self._reader.generate(request)
            except (ReaderError, Timeout) as error:
                raise NoReply(str(error)[:500]) from None
        if reply.finish == "refused":
            raise NoReply(f"the judge refused: {reply.text[:200]}")
        return reply


def _batches(told: Iterable[Asked | Mapping[str, float]]) -> Iterator[list[Asked]]:
    """Questions of one context that share `Gold.group`; one without a group is a batch of its own."""
    questions = (asked for asked in told if isinstance(asked, Asked))
    for _, context in groupby(questions, key=lambda asked: asked.record.context_index):
        groups: dict[object, list[Asked]] = {}
        for asked in context:
            groups.setdefault(asked.gold.group or (asked.question.id,), []).append(asked)
        yield from groups.values()


def _place(metric: Judged, asked: Asked) -> tuple[str, str, str]:
    return str(metric), asked.record.context, asked.question.id


class Bill:
    """What a judge's calls cost: each once, whether it was made now or kept from before."""

    def __init__(self, write: Callable[[Call], None]) -> None:
        """Add up what passes on to `write`."""
        self._write = write
        self.calls = 0
        self.new = 0
        self.tokens = dict.fromkeys(("text", "image", "output"), 0)
        self.price: float | None = 0.0

    def add(self, call: Call) -> None:
        """Add a call; failed ones are passed on and not added, since they gave no reply."""
        self._write(call)
        self.new += not call.hit
        if call.status != "ok":
            return
        self.calls += 1
        for kind in self.tokens:
            self.tokens[kind] += getattr(call.usage, kind)
        self.price = None if call.price is None or self.price is None else self.price + call.price

    def line(self) -> dict[str, Any]:
        """As JSON: `calls`, those of them that were `new`, `tokens` by kind, `price` in USD (None if unknown)."""
        price = None if self.price is None else round(self.price, 6)
        return {"calls": self.calls, "new": self.new, "tokens": dict(self.tokens), "price": price}


def out_of(run: Path, out: str) -> Path:
    """The folder that holds a run's request cache, also if it is looked at from another working folder."""
    runs = run.resolve().parent
    return runs.parent if runs.name == "runs" else Path(out)


@asynccontextmanager
async def judges(
    specs: Sequence[str],
    out: Path,
    write: Callable[[Call], None],
    *,
    timeout: float | None = None,
    max_cost: float | None = None,
    media: MediaStore | None = None,
    tokens: Callable[[str, int], None] | None = None,
) -> AsyncIterator[Mapping[str, Metered]]:
    """Judges by reader spec, started, metered and cached; closed at the end.

    Args:
        specs: reader specs.
        out: the folder that holds the request cache.
        write: appends a call to a ledger.
        timeout: seconds of service a call may take.
        max_cost: most USD to spend on all of them together; hosted judges need it.
        media: the media store to share.
        tokens: told every call's phase and tokens, for progress.

    Raises:
        UserError: for an unknown reader, or a hosted one without a price limit; nothing is started then.
    """
    media = media or MediaStore()
    readers = {spec: make_reader(spec, {}, media) for spec in specs}
    hosted = {spec: reader for spec, reader in readers.items() if reader.card.hosted}
    if hosted and max_cost is None:
        raise UserError(f"{', '.join(hosted)}: calls cost money; give --max-cost USD")
    paid = {f"{reader.card.name}:{reader.card.model}" for reader in hosted.values()}
    cache = RequestCache(out / "cache" / "requests.sqlite")
    meter = Meter(
        write,
        cache=cache,
        timeout=timeout,
        price=lambda model, usage: prices.cost(model, usage) if model in paid else 0.0,
        bound=prices.dearest().of,
        max_cost=max_cost,
        tokens=tokens,
    )
    models = Models({"answer": specs[0]}, readers, None, meter, lambda name: make_reader(name, {}, media))
    try:
        yield {spec: await models.open(spec, "judge") for spec in specs}
    finally:
        await models.close()
        cache.close()
