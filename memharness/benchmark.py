"""The benchmark contract: contexts, episodes, official metrics and the benchmark's own prediction file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from memharness.types import Answer, Asset, Case, Finding, Gold, Item, Readout, Score

if TYPE_CHECKING:
    from memharness.config import Config
    from memharness.media import MediaStore
    from memharness.metric import Metric


@dataclass(frozen=True)
class BenchmarkCard:
    """What a benchmark is. `memharness show NAME` prints it.

    Attributes:
        version: raised by hand when results change (loader, prompt words, official metric).
        splits: name of each subset and what it is.
        counts: what the published files hold, by name, for `check`.
        cluster: what questions share for statistics, in words.
        reveals: official instructions that give a category away, and the option that switches each off.
        errata: known defects of the data or the official scorer, and what is done about each.
        primary: name of the score that leads tables.
        prompt: the harness's answer prompt for these questions; `direct.v1` where there is no memory to ask about.
        steps: how the data is brought, where `data prepare` cannot bring all of it.
    """

    name: str
    title: str
    paper: str
    licence: str
    source: str
    revision: str
    version: int
    splits: Mapping[str, str]
    counts: Mapping[str, int]
    cluster: str
    primary: str
    assets: Sequence[Asset] = ()
    reveals: Sequence[str] = ()
    errata: Sequence[str] = ()
    images: bool = False
    prompt: str = "answer.v1"
    steps: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Observe:
    """Items to remember, in order."""

    items: Sequence[Item]


@dataclass(frozen=True, slots=True)
class Ask:
    """Questions to ask now, all at once. The episode resumes with their answers in this order."""

    cases: Iterable[Case]


@dataclass(frozen=True, slots=True)
class Fact:
    """What happened in a live episode (`{"won": 1, "steps": 17}`), for episode metrics."""

    facts: Mapping[str, float]


class Episode(ABC):
    """One context's life.

    Attributes:
        context: its id.
        live: whether later events depend on answers. A recorded episode (one Observe, one Ask) may be split between
            processes and its `asend` receives no answers; a live one is played whole and receives them.
        planned: number of questions, if known beforehand.
    """

    context: str
    live: bool = False
    planned: int | None = None

    @abstractmethod
    def play(self) -> AsyncGenerator[Observe | Ask | Fact, list[Answer]]:
        """Yield what happens. After an Ask of a live episode, `yield` returns the answers in the order asked."""


class Recorded(Episode):
    """An episode that was recorded before: observe everything, then ask everything."""

    def __init__(self, context: str, items: Sequence[Item], cases: Sequence[Case]) -> None:
        """Keep the items and cases of `context`."""
        self.context = context
        self.items = items
        self.cases = cases
        self.planned = len(cases)

    async def play(self) -> AsyncGenerator[Observe | Ask | Fact, list[Answer]]:
        """One Observe, one Ask."""
        yield Observe(self.items)
        yield Ask(self.cases)


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """The scores of one unit (a question, a group or an episode): a line of `scores.jsonl`.

    A score whose value is None although it applies failed (its note says how): it counts 0 over all units and is left
    out over valid ones. `failed` is the outcome of the first question of the unit that has none of its own.
    """

    unit: str
    context: str
    category: str
    cluster: str
    scores: Mapping[str, Score]
    failed: str | None = None
    native_id: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Floor:
    """An answer that reads nothing: what any score must be compared with. `memharness show NAME --floors` prints it.

    Attributes:
        name: `first option`, `always empty` …
        answer: the answer to a case, given the items observed so far. It may use gold only to know a ceiling.
    """

    name: str
    answer: Callable[[Case, Sequence[Item]], Answer]


@dataclass(frozen=True, slots=True)
class Data:
    """Resolved data of a benchmark.

    Attributes:
        path: file or folder the user named, the prepared folder, or the bundled sample.
        state: `given`, `prepared` or `sample`; results on samples never share a table with the real thing.
        media: where pictures are kept by content hash.
    """

    path: Path
    state: str
    media: MediaStore


class Benchmark(ABC):
    """One benchmark, bound to its data and options. See `benchmarks/hotpotqa` for the smallest complete example.

    A class states its `card`, its `options_class` (toggles; official behaviour is the default) and its metrics, and
    is constructed once per run by the registry. Everything read from the data is validated here.
    """

    card: ClassVar[BenchmarkCard]
    options_class: ClassVar[type[Config]]
    sample: ClassVar[str] = "sample"

    def __init__(self, data: Data, options: Any) -> None:
        """Bind to data. Read it lazily, in `contexts`.

        Args:
            data: where the data lies, and the media store.
            options: an instance of `options_class`.
        """
        self.data = data
        self.options = options

    @abstractmethod
    def contexts(self, subset: str | None = None) -> Sequence[str]:
        """Context ids in benchmark order.

        Raises:
            DataError: for a file that is missing or not as published.
            UserError: for an unknown subset.
        """

    @abstractmethod
    def episode(self, context: str) -> Episode:
        """One context's episode; cheap to make again."""

    @abstractmethod
    def metrics(self) -> Sequence[Metric]:
        """The metrics of a run, the official ones first."""

    def report(self, rows: Iterable[ScoreRow]) -> Mapping[str, float]:
        """Figures under the official evaluator's own key names, with its means and its rounding.

        The default is the mean of every score over all units, and over each category as `name.category`.
        """
        return means(rows)

    def cuts(self, gold: Gold) -> Mapping[str, Sequence[str]]:
        """Which parts of the benchmark a question belongs to, by the kind of cut: what `memharness cuts` shows.

        A question may be in several parts of one kind (its tags), or in none.
        """
        return {"category": (gold.category,)} if gold.category else {}

    def floors(self) -> Sequence[Floor]:
        """Floors of this benchmark's own, beside those that fit every one (empty, options by place, constants)."""
        return ()

    def gold_answer(self, case: Case) -> Answer:
        """The gold itself as a prediction: what it scores is the ceiling under the official scorer."""
        answers = case.gold.answers
        return Answer(answers[0] if answers else None, readout=Readout(case.gold.evidence))

    def predictions(self, path: Path) -> Iterable[tuple[str, Answer]]:
        """Answers by native id from the benchmark's own prediction file or folder.

        Raises:
            UserError: if this benchmark has no format of its own, or the file is not in it.
        """
        raise NotImplementedError

    def check(self) -> Sequence[Finding]:
        """What is wrong or noteworthy in the data: counts against the card, ids, evidence, pictures."""
        return ()

    def digest(self) -> Any:
        """What identifies the data content, for the run's identity: file digests by relative name."""
        from memharness.media import tree_digest

        return tree_digest(self.data.path)


def means(rows: Iterable[ScoreRow]) -> dict[str, float]:
    """Mean of every score over all its applicable units (failures count 0), overall and as `name.category`."""
    sums: dict[str, list[float]] = {}
    for row in rows:
        for name, score in row.scores.items():
            if score.status == "not_applicable":
                continue
            value = score.value or 0.0
            for key in (name, f"{name}.{row.category}") if row.category else (name,):
                total = sums.setdefault(key, [0.0, 0.0])
                total[0] += value
                total[1] += 1
    return {key: total / n for key, (total, n) in sums.items()}
