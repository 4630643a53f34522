"""A benchmark without files: who carries what, in as many contexts as asked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memharness.benchmark import Benchmark, BenchmarkCard, Episode, Recorded
from memharness.config import Config, option
from memharness.identity import opaque_id
from memharness.metric import Metric
from memharness.scoring.metrics import ExactMatch, Recall
from memharness.types import Case, Evidence, Gold, Item, Question, Text
from memharness_outside.metric import Shortness

NAMES = ("Ada", "Bo", "Cy", "Dee", "Eli", "Fay", "Gus", "Hal")
THINGS = ("a lamp", "a kite", "a drum", "a map", "a rope", "a cup", "a book", "a coin")


class FactsOptions(Config):
    """Options of `outside-facts`."""

    contexts: int = option(3, "number of contexts", ge=1)


class Facts(Benchmark):
    """Each context tells what eight people carry and asks about each of them."""

    card = BenchmarkCard(
        name="outside-facts", title="Who carries what", paper="", licence="Apache-2.0", source="made on the spot",
        revision="1", version=1, splits={"all": "everything"}, counts={}, cluster="context", primary="em",
    )  # fmt: skip
    options_class = FactsOptions
    sample = "."

    def contexts(self, subset: str | None = None) -> Sequence[str]:
        """Numbered contexts."""
        return [f"room-{number}" for number in range(self.options.contexts)]

    def episode(self, context: str) -> Episode:
        """Eight facts, eight questions."""
        shift = int(context.rpartition("-")[2])
        carried = [THINGS[(at + shift) % 8] for at in range(8)]
        items = [
            Item(f"i{at}", context, at, (Text(f"{name} carries {thing}."),), speaker=name)
            for at, (name, thing) in enumerate(zip(NAMES, carried, strict=True))
        ]
        cases = [
            Case(
                Question(opaque_id(context, at), context, (Text(f"What does {name} carry?"),)),
                Gold((carried[at],), (Evidence(f"i{at}"),), cluster=context, native_id=f"{context}:{at}"),
            )
            for at, name in enumerate(NAMES)
        ]
        return Recorded(context, items, cases)

    def metrics(self) -> Sequence[Metric]:
        """Exact match, recall, and one of this package's own."""
        return [ExactMatch(), Recall(k=3), Shortness()]

    def digest(self) -> str:
        """There are no files: the code is the data, and its version is in the card."""
        return str(Path(__file__).stem)
