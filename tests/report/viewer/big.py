"""A large run written as the runner writes one, without asking anybody: its questions and answers are made up."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from memharness.benchmark import Benchmark, Episode, Recorded
from memharness.config import Config, option
from memharness.identity import Chain, digest, opaque_id
from memharness.media import MediaStore
from memharness.metric import Metric
from memharness.run.data import open_benchmark
from memharness.run.folder import RunFolder
from memharness.run.gather import gather
from memharness.run.score import score
from memharness.run.summary import summarise
from memharness.run.wire import case_out, record_out
from memharness.store import write_atomic
from memharness.types import Case, Evidence, Gold, Item, Outcome, Question, Record, Text
from tests.run.harness import spec
from tests.run.toys import Found, Right, card

WORDS = ("harbour", "violin", "ticket", "garden", "bridge", "letter", "winter", "bakery", "canoe", "museum")
PLACE = f"{Path(__file__)}:Town"


class TownOptions(Config):
    """How large."""

    contexts: int = option(10, "contexts", ge=1)
    questions: int = option(100, "questions a context", ge=1)
    items: int = option(200, "items a context", ge=1)


class Town(Benchmark):
    """Talk of a town, made up by rule."""

    card = card("town")
    options_class = TownOptions
    sample = "."

    def contexts(self, subset: str | None = None) -> Sequence[str]:
        """Numbered."""
        return [f"street {n}" for n in range(self.options.contexts)]

    def episode(self, context: str) -> Episode:
        """Recorded."""
        draw = random.Random(context)
        items = [
            Item(
                f"t{at}",
                context,
                at,
                (Text(_sentence(draw, at)),),
                time=f"2024-01-{1 + at * 27 // self.options.items:02d}",
            )
            for at in range(self.options.items)
        ]
        return Recorded(context, items, list(self._cases(context, draw)))

    def _cases(self, context: str, draw: random.Random) -> Iterator[Case]:
        for at in range(self.options.questions):
            asked = Question(
                opaque_id(context, at), context, (Text(f"Question {at} of {context}: {_sentence(draw, at)}?"),)
            )
            gold = Gold(
                (draw.choice(WORDS),), (Evidence(f"t{draw.randrange(self.options.items)}"),),
                f"kind {at % 7}", cluster=context, native_id=f"{context}/{at}",
            )  # fmt: skip
            yield Case(asked, gold)

    def metrics(self) -> Sequence[Metric]:
        """Two."""
        return [Right(), Found()]

    def digest(self) -> str:
        """No files."""
        return "town"


def _sentence(draw: random.Random, at: int) -> str:
    return f"{at} {' '.join(draw.choice(WORDS) for _ in range(12))}"


def make(out: Path, *, contexts: int, questions: int, items: int = 200, seed: int = 0) -> Path:
    """A finished run of `contexts` × `questions` records; every record has a prompt of some 2,000 characters.

    Args:
        out: where to make it.
        seed: another seed answers otherwise.
    """
    options = {"contexts": contexts, "questions": questions, "items": items}
    made = spec(out, b=options, seed=seed).to_json() | {"bench": PLACE}
    benchmark = open_benchmark(PLACE, None, options, MediaStore())
    folder = RunFolder(out / f"town-{seed}")
    memory = {"method": "everything", "benchmark": "town", "benchmark_version": 1, "options": options, "subset": None,
              "data": digest(benchmark.digest()), "config": {}, "embedder": None, "models": {},
              "seed": seed}  # fmt: skip
    described = {
        "memory": memory, "readout": {"view": "captions"}, "reply": {"selection": {"limit": None, "ids": None}},
        "track": "evidence", "control": False, "data": {"state": "given"},
    }  # fmt: skip
    folder.open(made, Chain.of(memory, {}, {}), described, "code", fresh=False, anyway=False)
    for at, context in enumerate(benchmark.contexts()):
        _context(folder, benchmark.episode(context), at, random.Random(f"{context} {seed}"))
    folder.close()
    notes = gather(folder)
    asyncio.run(score(folder, benchmark.metrics(), None))
    summary = summarise(folder, benchmark, notes, complete=True)
    write_atomic(folder.path / "summary.json", json.dumps(summary))
    folder.finish()
    return folder.path


def _context(folder: RunFolder, episode: Episode, number: int, draw: random.Random) -> None:
    assert isinstance(episode, Recorded)
    records, cases = folder.appender("records"), list(episode.cases)
    for at, case in enumerate(cases):
        record = Record(case.question.id, episode.context, number, at, Outcome.OK)
        record.answer = case.gold.answers[0] if draw.random() < 0.6 else draw.choice(WORDS)
        held = draw.sample(range(len(episode.items)), 10)
        record.evidence = tuple(Evidence(f"t{one}", score=draw.random()) for one in held)
        record.prompt = "user: " + "\n".join(episode.items[one].text() for one in held) + case.question.text()
        record.view = "captions"
        records.add(record_out(record, {"read": {"text": 500, "output": 3, "calls": 1}}))
    lines = [{"index": at, **case_out(case)} for at, case in enumerate(cases)]
    folder.appender("gold").add({"context": number, "unit": 0, "name": episode.context, "at": 1.0, "cases": lines})
