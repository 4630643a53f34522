"""The runner: plays episodes, recorded and live, on one loop whose window is questions in flight."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import AsyncGenerator, Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, cast

from memharness import ledger
from memharness.benchmark import Ask, Fact, Observe
from memharness.budget import Remembering, RunBudget, counters
from memharness.ledger import Account, Clock, charging
from memharness.method import Answers, Control, Memory, Recalls
from memharness.prompts import Renderer, answer_request
from memharness.registry import plugin
from memharness.run.kit import DeviceThread, Models, RunKit
from memharness.run.metered import Timeout, cancelled
from memharness.run.progress import Progress
from memharness.run.setup import Pick, Setup
from memharness.run.wire import case_out, record_out
from memharness.run.work import UNIT, Work
from memharness.types import (
    Answer,
    BudgetError,
    Case,
    Evidence,
    Image,
    Item,
    MethodError,
    Outcome,
    OverWindow,
    Part,
    ReaderError,
    Readout,
    Record,
    Text,
    UserError,
    parts_text,
)

OPENING = 2  # contexts observed at once: observing is compute, and the window is for questions
PLUGIN_FAULTS = (Exception, SystemExit, asyncio.CancelledError)  # the last two never of our own making, once looked at
ITEMS = 10  # evidence items when no budget names a number; the K of every paper here


class Opened:
    """One context being lived: its memory, items, and why it failed if it did."""

    def __init__(self, pick: Pick, memory: Memory, kit: RunKit, renderer: Renderer, session: int) -> None:
        """Bind to a memory that was just opened."""
        self.pick = pick
        self.memory = memory
        self.kit = kit
        self.renderer = renderer
        self.session = session
        self.door = next((door for door in (Control, Answers, Recalls) if isinstance(memory, door)), None)
        self.items: dict[str, Item] = {}
        self.unready = False
        self.error: dict[str, str] | None = None
        self.facts: dict[str, float] = {}


class Runner:
    """Runs what is left to run of one folder, in this process."""

    def __init__(
        self, setup: Setup, models: Models, work: Work, progress: Progress, readouts: Mapping[str, Readout] | None
    ) -> None:
        """Bind.

        Args:
            setup: the resolved run.
            models: started models.
            work: units, claimed as they are reached.
            progress: told what happens.
            readouts: readouts of an earlier run by question id, for `--readouts`; None to ask the method.
        """
        self.setup = setup
        self.models = models
        self.work = work
        self.progress = progress
        self.readouts = readouts
        self.clock = Clock()
        self.device = DeviceThread()
        self._window = asyncio.Semaphore(setup.spec.concurrency)
        self._changed = asyncio.Event()
        self._observing = 0
        self._sessions = 0
        reader = Remembering(models.role("answer").counter)
        self._counters = counters(setup.spec.counters, reader) if setup.spec.budget is not None else ()
        self._noted = counters(("reader", "nominal28"), reader)
        self._records = setup.folder.appender("records")
        self._gold = setup.folder.appender("gold")
        self._ledger = setup.folder.appender("ledger")

    # ------------------------------------------------------------------------------------------------ which contexts

    async def run(self, picks: Iterable[Pick]) -> None:
        """Work until every unit of these contexts is done, by this process or another.

        Raises:
            UserError: a user's mistake, found late; what was finished is kept.
        """
        left = list(picks)
        self.work.refresh()
        try:
            await self._pass(left)
            while left := [
                pick for pick in left if self.work.open_units(pick.index, pick.planned, pick.chosen, pick.live) != []
            ]:
                await asyncio.sleep(0.2)  # another process holds these; if it dies its locks fall and we take over
                self.work.refresh()
                await self._pass(left)
        except* UserError as group:
            raise _first(group) from None
        finally:
            self._ledger.add(
                {"kind": "clock", "seconds": {name: round(s, 6) for name, s in self.clock.seconds().items()}}
            )
            self.setup.folder.sync()

    async def _pass(self, picks: Iterable[Pick]) -> None:
        async with asyncio.TaskGroup() as group:
            for pick in picks:
                unit = self._first_unit(pick)
                if unit is None:
                    continue
                while self._window.locked() or self._observing >= OPENING:
                    self._changed.clear()
                    await self._changed.wait()
                self._observing += 1
                group.create_task(self._context(pick))

    def _first_unit(self, pick: Pick) -> int | None:
        """Claim something of a context before it is opened, so that two processes do not observe it for one unit."""
        units = self.work.open_units(pick.index, pick.planned, pick.chosen, pick.live)
        return next((unit for unit in ([0] if units is None else units) if self.work.take(pick.index, unit)), None)

    # --------------------------------------------------------------------------------------------------- one context

    async def _context(self, pick: Pick) -> None:
        observing = True

        def observed() -> None:
            nonlocal observing
            if observing:
                observing = False
                self._observing -= 1
                self._changed.set()

        own = self.work.take_memory(pick.index)
        folder = self.setup.folder.memory(pick.index)
        folder = folder if own else folder.with_name(f"{folder.name}.{self.setup.folder.worker}")
        try:
            await self._live_through(self._open(pick, folder), folder, observed)
        finally:
            observed()
            if own:
                self.work.give_memory(pick.index)

    def _open(self, pick: Pick, folder: Path) -> Opened:
        spec = self.setup.spec
        self._sessions += 1
        items: dict[str, Item] = {}
        renderer = Renderer(items, self.setup.view)
        kit = RunKit(
            pick.context, folder, self.models, self.setup.media, self.device, renderer,
            seed=spec.seed, items=spec.items or ITEMS, sampling=self.setup.sampling, prompt=spec.prompt,
        )  # fmt: skip
        try:
            memory: Memory = self.setup.method.open(pick.context, kit)
            opened = Opened(pick, memory, kit, renderer, self._sessions)
            if opened.door is None:
                raise MethodError(f"{type(memory).__name__} has neither recall nor answer")
            if opened.door is Control and not self.setup.method.card.control:
                raise UserError(f"{self.setup.method.card.name}: it sees gold, so its card must say control=True")
        except UserError:
            raise
        except (Exception, SystemExit) as error:
            opened = Opened(pick, _Failed(), kit, renderer, self._sessions)
            opened.error = _error(error, "open")
        opened.items = items
        return opened

    async def _live_through(self, opened: Opened, folder: Path, observed: Any) -> None:
        pick = opened.pick
        loaded = await self._load(opened, folder)
        play: AsyncGenerator[Observe | Ask | Fact, list[Answer]] = self.setup.benchmark.episode(pick.context).play()
        answers: list[Answer] | None = None
        done: list[dict[str, Any]] = []  # a live episode's gold, written when it has ended
        try:
            while True:
                event = await self._next(pick, play, answers)
                answers = None
                if event is None:
                    break
                if isinstance(event, Observe):
                    await self._observe(opened, event.items, loaded)
                elif isinstance(event, Fact):
                    opened.facts.update(event.facts)
                else:
                    await self._ready(opened, folder, loaded)
                    observed()
                    if pick.live:
                        answers = await self._ask_live(opened, event.cases, done)
                    else:
                        await self._ask_recorded(opened, event.cases)
            if pick.live:
                self._end_live(opened, done)
        finally:
            await play.aclose()
            try:
                await opened.memory.close()
            except Exception as error:
                self.progress.note(f"context {pick.context}: closing its memory failed: {error}")

    async def _next(
        self, pick: Pick, play: AsyncGenerator[Observe | Ask | Fact, list[Answer]], answers: list[Answer] | None
    ) -> Observe | Ask | Fact | None:
        """What happens next in an episode; None once it has ended."""
        with plugin(f"benchmark {self.setup.spec.bench}: context {pick.context}"):
            try:
                return await (anext(play) if answers is None else play.asend(answers))
            except StopAsyncIteration:
                return None

    async def _load(self, opened: Opened, folder: Path) -> bool:
        if self.readouts is not None:
            return True
        if (  # a live episode is played again from its start, so what its memory held before is of another life
            not opened.pick.live
            and (folder / "READY").is_file()
            and not opened.error
            and await self._guard(opened, "load", opened.memory.load())
        ):
            return True
        if folder.exists():
            await asyncio.to_thread(shutil.rmtree, folder)
        return False

    async def _observe(self, opened: Opened, items: Iterable[Item], loaded: bool) -> None:
        items = list(items)
        for item in items:
            if item.id in opened.items:
                opened.error = opened.error or {
                    "type": "MethodError",
                    "message": f"item id {item.id!r} comes twice",
                    "where": "data",
                }
            opened.items[item.id] = item
        if loaded or opened.error:
            return
        opened.unready = True
        await self._guard(opened, "observe", opened.memory.observe(items))
        self.progress.phase("observe", len(items))

    async def _ready(self, opened: Opened, folder: Path, loaded: bool) -> None:
        if opened.error or loaded or not opened.unready:
            return
        await self._guard(opened, "ready", self._make_ready(opened))
        opened.unready = False
        if not opened.error:
            self._ledger.add(
                {"kind": "ready", "context": opened.pick.context, "session": opened.session, "items": len(opened.items)}
            )
            if folder.exists():
                (folder / "READY").write_text("")

    async def _make_ready(self, opened: Opened) -> None:
        await opened.memory.ready()
        await opened.kit.drain()
        if opened.items and opened.memory.stored() == 0:
            raise MethodError(f"{len(opened.items)} items were observed and the memory holds none")

    async def _guard(self, opened: Opened, where: str, work: Any) -> Any:
        """Run a memory's own work in phase observe; a failure fails this context's questions and no others."""
        account = Account(opened.pick.context)
        with charging(account, "observe"), self.clock.running("observe"):
            try:
                return await work
            except UserError:
                raise
            except PLUGIN_FAULTS as error:
                if isinstance(error, asyncio.CancelledError) and cancelled():
                    raise
                opened.error = _error(error, where)
                return None

    # ------------------------------------------------------------------------------------------------------- asking

    async def _ask_recorded(self, opened: Opened, cases: Iterable[Case]) -> None:
        pick, before = opened.pick, self.work.before(opened.pick.index)
        iterator, unit, size = iter(cases), -1, 0
        async with asyncio.TaskGroup() as group:
            while chunk := list(islice(iterator, UNIT)):
                unit += 1
                size += len(chunk)
                chosen = [
                    (unit * UNIT + at, case)
                    for at, case in enumerate(chunk)
                    if pick.chosen is None or unit * UNIT + at in pick.chosen
                ]
                if not chosen or self.work.is_done(pick.index, unit) or not self.work.take(pick.index, unit):
                    continue
                tasks = [
                    group.create_task(self._question(opened, case, index, before.attempts.get(index, 0) + 1))
                    for index, case in chosen
                    if index not in before.final and await self._place()
                ]
                group.create_task(self._end_unit(opened, unit, chosen, tasks))
        if pick.planned is None and pick.chosen is None:
            self._gold.add({"context": pick.index, "size": size})
            self.work.finish_context(pick.index, size)

    async def _place(self) -> bool:
        await self._window.acquire()
        return True

    async def _end_unit(
        self, opened: Opened, unit: int, chosen: list[tuple[int, Case]], tasks: list[asyncio.Task[Answer]]
    ) -> None:
        if tasks:
            await asyncio.wait(tasks)
        if all(not task.cancelled() and task.exception() is None for task in tasks):
            self._write_gold(opened, unit, [{"index": index, **case_out(case)} for index, case in chosen])

    async def _ask_live(self, opened: Opened, cases: Iterable[Case], done: list[dict[str, Any]]) -> list[Answer]:
        attempts = self.work.before(opened.pick.index).attempts
        async with asyncio.TaskGroup() as group:
            tasks = []
            for case in cases:
                index = len(done)
                done.append({"index": index, **case_out(case)})
                await self._place()
                tasks.append(group.create_task(self._question(opened, case, index, attempts.get(index, 0) + 1)))
        return [task.result() for task in tasks]

    def _end_live(self, opened: Opened, done: list[dict[str, Any]]) -> None:
        self._write_gold(opened, 0, done, session=opened.session, facts=opened.facts)

    def _write_gold(self, opened: Opened, unit: int, cases: list[dict[str, Any]], **more: Any) -> None:
        """Written when no question of the unit is open any more; `gold.jsonl` is made of these at the end."""
        line = {
            "context": opened.pick.index,
            "unit": unit,
            "name": opened.pick.context,
            "at": self.work.now(),
            "cases": cases,
        }
        self._gold.add(line | {name: value for name, value in more.items() if value})
        self.work.finish_unit(opened.pick.index, unit)

    # -------------------------------------------------------------------------------------------------- one question

    async def _question(self, opened: Opened, case: Case, index: int, attempt: int) -> Answer:
        question = case.question
        account = Account(opened.pick.context, question.id, attempt)
        record = Record(question.id, opened.pick.context, opened.pick.index, index, Outcome.NOT_ASKED, attempt)
        begun = time.perf_counter()
        try:
            with charging(account, "recall"):
                answer = await self._story(opened, case, record)
        finally:
            self._window.release()
            self._changed.set()
        record.seconds = time.perf_counter() - begun
        try:
            self._write_record(opened, record, account)
        except (TypeError, ValueError, RecursionError) as error:  # `trace` or `extra` has no JSON form
            record.outcome, record.error = Outcome.METHOD_ERROR, _error(error, "trace")
            record.answer, record.evidence, record.extra, record.trace, answer = None, None, {}, {}, Answer(None)
            self._write_record(opened, record, account)
        self.progress.question(record.outcome.value)
        return answer

    def _write_record(self, opened: Opened, record: Record, account: Account) -> None:
        line = record_out(record, account.spent)
        if opened.pick.live:
            line["session"] = opened.session
        self._records.add(line)

    async def _story(self, opened: Opened, case: Case, record: Record) -> Answer:
        """Everything between a question and its record; the outcome comes from the path taken here."""
        stage = ["recall"]
        try:
            if opened.error:
                record.outcome, record.error = Outcome.METHOD_ERROR, opened.error
                return Answer(None)
            budget = RunBudget(
                self.setup.spec.items, self.setup.spec.budget, self._counters, opened.renderer, self._noted
            )
            answer = await self._answer(opened, case, record, budget, stage)
            if record.outcome is Outcome.NOT_ASKED:
                record.outcome = Outcome.OK
            record.answer, record.extra = answer.text, answer.extra
            return answer
        except UserError:
            raise
        except Timeout as error:
            record.outcome, record.error = Outcome.TIMEOUT, _error(error, stage[0])
        except BudgetError as error:
            record.outcome, record.error = Outcome.OVER_BUDGET, _error(error, stage[0])
        except OverWindow as error:
            record.outcome, record.error = Outcome.OVER_WINDOW, _error(error, stage[0])
        except ReaderError as error:
            record.outcome, record.error = Outcome.READER_ERROR, _error(error, stage[0])
        except PLUGIN_FAULTS as error:
            if isinstance(error, asyncio.CancelledError) and cancelled():
                raise
            record.outcome, record.error = Outcome.METHOD_ERROR, _error(error, stage[0])
        return Answer(None)

    async def _answer(self, opened: Opened, case: Case, record: Record, budget: RunBudget, stage: list[str]) -> Answer:
        memory = opened.memory
        if self.readouts is not None:
            readout = self.readouts.get(case.question.id)
            if readout is None:
                raise MethodError("the run whose readouts are read again has none for this question")
            return await self._read(opened, case, record, budget, readout, stage)
        if opened.door is Answers:
            return await self._whole_answer(opened, case, record, budget, stage)
        with self.clock.running("recall"):
            if opened.door is Control:
                readout = await cast(Control, memory).recall_with_gold(case.question, case.gold, budget)
            else:
                readout = await cast(Recalls, memory).recall(case.question, budget)
        return await self._read(opened, case, record, budget, readout, stage)

    async def _whole_answer(
        self, opened: Opened, case: Case, record: Record, budget: RunBudget, stage: list[str]
    ) -> Answer:
        stage[0] = "answer"
        with ledger.in_phase("answer"), self.clock.running("answer"):
            answer = await cast(Answers, opened.memory).answer(case.question, budget)
        self.progress.phase("answer", 1)
        if not isinstance(answer, Answer):
            raise MethodError(f"answer() returned {type(answer).__name__}, not an Answer")
        if answer.readout is not None:
            _check_pointers(answer.readout, opened.items)
            record.evidence = answer.readout.evidence
            record.trace = answer.readout.trace
        record.trace = {**record.trace, **answer.trace}
        record.pictures = tuple(part for part in answer.parts if isinstance(part, Image))
        if not isinstance(answer.text, str):
            raise MethodError("answer() returned no text")
        if not answer.text.strip():
            record.flags = (*record.flags, "empty_answer")
        return answer

    async def _read(
        self, opened: Opened, case: Case, record: Record, budget: RunBudget, readout: Readout, stage: list[str]
    ) -> Answer:
        if not isinstance(readout, Readout):
            raise MethodError(f"recall() returned {type(readout).__name__}, not a Readout")
        _check_pointers(readout, opened.items)
        record.evidence, record.trace, record.requested = readout.evidence, readout.trace, budget.items
        shown: tuple[Part, ...] = opened.renderer.evidence(readout.evidence) if readout.parts is None else readout.parts
        record.cost = budget.check(readout, shown)
        record.view = self.setup.view
        record.flags = _flags(readout, budget.items or opened.kit.items)
        self.progress.phase("recall", 1)
        if not self.setup.reads:
            return Answer(None, readout=readout)
        stage[0] = "read"
        request = answer_request(
            case.question, Readout(parts=shown), opened.renderer, self.setup.sampling, self.setup.spec.prompt
        )
        record.prompt = "\n\n".join(f"{m.role}: {parts_text(m.parts)}" for m in request.messages)
        with ledger.in_phase("read"), self.clock.running("read"):
            reply = await self.models.role("answer").generate(request)
        self.progress.phase("read", 1)
        if reply.finish == "refused":
            record.outcome = Outcome.REFUSED
        flags = [("truncated", reply.finish == "length"), ("empty_answer", not reply.text.strip())]
        record.flags += tuple(name for name, yes in flags if yes)
        return Answer(reply.text.strip(), readout=readout)


def _check_pointers(readout: Readout, items: Mapping[str, Item]) -> None:
    for pointer in readout.evidence:
        if not isinstance(pointer, Evidence):
            raise MethodError(f"the readout holds {type(pointer).__name__} {str(pointer)[:80]!r}, not Evidence")
        if pointer.item not in items:
            raise MethodError(f"the readout points to item {pointer.item!r}, which was never observed")


class _Failed(Memory):
    """Stands where a memory could not be opened."""

    async def observe(self, items: Iterable[Item]) -> None:
        """Nothing."""


def _flags(readout: Readout, wanted: int) -> tuple[str, ...]:
    """`empty_readout`, and `short_readout` where the memory holds more than it gave (a swallowed k)."""
    delivered = len({pointer.item for pointer in readout.evidence})
    shows = any(not isinstance(part, Text) or part.text.strip() for part in readout.parts or ())
    if not delivered and not shows:
        return ("empty_readout",)
    if readout.available is not None and delivered < min(wanted, readout.available):
        return ("short_readout",)
    return ()


def _error(error: BaseException, where: str) -> dict[str, str]:
    cause = error.__cause__ or error
    return {"type": type(cause).__name__, "message": str(error)[:2000] or type(error).__name__, "where": where}


def _first(group: BaseExceptionGroup[UserError]) -> UserError:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
