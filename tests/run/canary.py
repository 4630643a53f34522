"""Benchmarks whose gold carries a canary, to see whether it ever sings where a method or reader could hear it."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from memharness.benchmark import Ask, Benchmark, Data, Episode, Fact, Observe
from memharness.benchmarks.atm import ATMBench
from memharness.benchmarks.hotpotqa import HotpotQA
from memharness.benchmarks.locomo import LoCoMo
from memharness.benchmarks.mem_gallery import MemGallery
from memharness.metric import Metric
from memharness.registry import entries, find
from memharness.types import Answer, Case

CANARY = "xqzcanaryxqz"


class Planted(Episode):
    """An episode with a canary in every gold object."""

    def __init__(self, inner: Episode) -> None:
        """Wrap an episode."""
        self.inner, self.context, self.planned, self.live = inner, inner.context, inner.planned, inner.live

    async def play(self) -> AsyncGenerator[Observe | Ask | Fact, list[Answer]]:
        """The same events; gold evidence stays as it is, since the oracle may return it."""
        events = self.inner.play()
        answers: list[Answer] | None = None
        while True:
            try:
                event = await (anext(events) if answers is None else events.asend(answers))
            except StopAsyncIteration:
                return
            answers = yield Ask([self.plant(case) for case in event.cases]) if isinstance(event, Ask) else event

    def plant(self, case: Case) -> Case:
        """Plant it in each field that is words."""
        gold = replace(
            case.gold,
            answers=(CANARY,),
            category=CANARY,
            group=CANARY,
            cluster=CANARY,
            native_id=CANARY,
            extra={CANARY: CANARY},
        )
        return Case(case.question, gold)


def planted(kind: type[Benchmark]) -> type[Benchmark]:
    """A benchmark class with canaries in its gold and no metric that would need the real one."""

    class Canaries(kind):  # type: ignore[misc, valid-type]
        """See `Planted`."""

        def __init__(self, data: Data, options: Any) -> None:
            """On the wrapped benchmark's own sample."""
            super().__init__(data, options)

        def episode(self, context: str) -> Episode:
            """Planted."""
            return Planted(super().episode(context))

        def metrics(self) -> Sequence[Metric]:
            """The answer's length only: the real ones need the real gold."""
            from memharness.scoring.metrics import AnswerLength

            return [AnswerLength()]

        def report(self, rows: Any) -> dict[str, float]:
            """Nothing."""
            return {}

    return Canaries


ATM, Gallery, Loco, Hotpot = planted(ATMBench), planted(MemGallery), planted(LoCoMo), planted(HotpotQA)


def __getattr__(name: str) -> type[Benchmark]:
    """`of_NAME` for any benchmark by its name, with underscores for dashes."""
    for known in entries("benchmarks"):
        if name == f"of_{known.replace('-', '_')}":
            return planted(find("benchmarks", known))
    raise AttributeError(name)


def sings(run: Path, out: Path) -> list[str]:
    """Files, cached requests and replies that hold the canary. Gold and scores may; nothing else may."""
    found = [
        str(file.relative_to(run))
        for file in run.rglob("*")
        if file.is_file() and file.name not in ("gold.jsonl", "scores.jsonl") and CANARY.encode() in file.read_bytes()
    ]
    cache = out / "cache" / "requests.sqlite"
    if cache.exists():
        rows = sqlite3.connect(cache).execute("SELECT value FROM replies")
        found += ["request cache" for (value,) in rows if CANARY.encode() in zlib.decompress(value)]
    return found
