"""Plug-ins of the throughput script: a benchmark that streams prompts from a file, and a reader that knows one word."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import Any

from memharness.benchmark import Ask, Benchmark, BenchmarkCard, Episode, Fact, Observe
from memharness.config import Config
from memharness.media import MediaStore
from memharness.metric import Metric
from memharness.reader import Reader, ReaderCard, Reply, Request
from memharness.scoring.metrics import F1, ExactMatch
from memharness.types import Answer, Case, Gold, Question, Text, Usage

REPLY = "lol"


class NoOptions(Config):
    """Nothing to set."""


class Prompts(Benchmark):
    """One context without items; `--data` is a JSONL file of {"id", "prompt", "answer"}, read a line at a time."""

    card = BenchmarkCard(
        name="prompts", title="Prompts", paper="", licence="CC0-1.0", source="made by throughput.py", revision="1",
        version=1, splits={}, counts={}, cluster="", primary="em",
    )  # fmt: skip
    options_class = NoOptions

    def contexts(self, subset: str | None = None) -> Sequence[str]:
        """The only one."""
        return ["all"]

    def episode(self, context: str) -> Episode:
        """An episode that holds no question before it is asked."""
        return Stream(context, self.cases)

    def cases(self) -> Iterator[Case]:
        """Questions as they are read."""
        with self.data.path.open() as file:
            for line in file:
                row = json.loads(line)
                question = Question(row["id"], "all", (Text(row["prompt"]),))
                yield Case(question, Gold((row["answer"],), native_id=row["id"]))

    def metrics(self) -> Sequence[Metric]:
        """Both peers' metrics at once."""
        return [ExactMatch(), F1()]


class Stream(Episode):
    """Asks from a generator."""

    def __init__(self, context: str, cases: Any) -> None:
        """Keep the function that makes the generator."""
        self.context = context
        self.cases = cases

    async def play(self) -> AsyncGenerator[Observe | Ask | Fact, list[Answer]]:
        """One Ask."""
        yield Ask(self.cases())


class Words:
    """A token is a word."""

    name = "words"

    def text(self, text: str) -> int:
        """Words."""
        return len(text.split())

    def image(self, width: int, height: int) -> int:
        """None are sent."""
        return 0


class Constant(Reader):
    """Always the same word, at once. Its replies are cached no more than the peers' mock models' are."""

    config_class = NoOptions

    def __init__(self, model: str, config: Mapping[str, Any], media: MediaStore) -> None:
        """Nothing to load."""
        super().__init__(model, config, media)
        self.card = ReaderCard("constant-word", REPLY, "1", "python", cache=False)
        self.counter = Words()
        self.usage = Usage(text=20, output=1)

    async def generate(self, request: Request) -> Reply:
        """The word."""
        return Reply(REPLY, self.usage)
