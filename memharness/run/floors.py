"""What answers that read nothing score under a benchmark's own metrics, and the ceiling that gold itself reaches."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from memharness.benchmark import Benchmark, ScoreRow, means
from memharness.media import MediaStore
from memharness.metric import Judged, Metric
from memharness.registry import plugin
from memharness.run.data import open_benchmark
from memharness.run.play import Played, play, record_of
from memharness.run.score import grouped, score_unit
from memharness.types import Answer, Asked, Case, Item, Question, Readout, Status, Text, UserError

ABSTENTIONS = ("unknown", "Not mentioned in the conversation")
FREQUENT = 10  # gold answers of a question type that are tried as its constant
PROBED = 50  # answers that tell which scores a metric gives
AT_ONCE = 8  # live episodes: an engine may take a process for each
GOLD = "gold itself"

Rule = Callable[[Case, Sequence[Item]], Answer | None]  # None: this floor says nothing to this question


@dataclass(frozen=True)
class Figures:
    """What one floor scores.

    Attributes:
        name: of the floor.
        about: what it is, where its name does not say it.
        n: questions it answers.
        figures: the benchmark's official figures, the leading one first.
    """

    name: str
    about: str
    n: int
    figures: Mapping[str, float]


@dataclass(frozen=True)
class Floors:
    """The floors of a benchmark, its ceiling last.

    Attributes:
        primary: the card's primary score.
        leading: the score that leads here: the primary one, unless only a judge can give it.
        picked: the score that the best constants were picked by; None if none could be.
        judged: metrics that are left out, since a judge must say.
        notes: what a reader of the figures should know.
    """

    bench: str
    data: str
    data_state: str
    subset: str | None
    options: Mapping[str, Any]
    contexts: int
    questions: int
    primary: str
    leading: str
    picked: str | None
    judged: Sequence[str]
    floors: Sequence[Figures]
    notes: Sequence[str] = field(default=())


def floors(bench: str, data: str | None, subset: str | None, options: Mapping[str, Any]) -> Floors:
    """Play every episode with each floor's answers and score them as `evaluate` would.

    Raises:
        UserError: for an unknown benchmark, option, path or subset, or data that holds no question.
    """
    benchmark = open_benchmark(bench, data, dict(options), MediaStore())
    with plugin(f"benchmark {bench}"):
        return asyncio.run(_floors(benchmark, subset, options))


async def _floors(benchmark: Benchmark, subset: str | None, options: Mapping[str, Any]) -> Floors:
    card = benchmark.card
    stage = _Stage(benchmark, subset)
    told = await stage.play(lambda case, items: benchmark.gold_answer(case))
    cases = [case for played in stage.played for case, _ in played.cases]
    if not cases:
        raise UserError(f"{benchmark.data.path}: holds no question to measure floors on")
    scorer = await _Scorer.over(benchmark, told)
    ceiling = await scorer.figures(GOLD, "the gold answer and evidence as the prediction: the ceiling", told)
    rows = []
    for name, about, rule in rules(benchmark, cases):
        rows.append(await scorer.figures(name, about, await stage.play(rule)))
    placed = list(stage.placed())
    picked = scorer.speaking(placed)
    best, notes = _best_constants(benchmark, placed, scorer, picked)
    if best:
        about = "the best constant answer of each question type, picked with gold: see notes"
        rows.append(await scorer.figures("best constant by type", about, await stage.play(_by_category(best))))
    rows += [
        await scorer.figures(own.name, "this benchmark's own", await stage.play(own.answer))
        for own in benchmark.floors()
    ]
    return Floors(
        card.name,
        str(benchmark.data.path),
        benchmark.data.state,
        subset,
        dict(options),
        len(stage.contexts),
        len(cases),
        card.primary,
        scorer.leading,
        picked,
        [str(metric) for metric in benchmark.metrics() if isinstance(metric, Judged)],
        [*rows, ceiling],
        notes,
    )


# ------------------------------------------------------------------------------------------------ playing and scoring


class Placed(NamedTuple):
    """A case and where it stands."""

    context: str
    context_at: int
    at: int
    case: Case


def _asked(placed: Placed, answer: Answer) -> Asked:
    record = record_of(placed.case, answer, placed.context, placed.context_at, placed.at)
    return Asked(placed.case.question, placed.case.gold, record)


class _Stage:
    """Every episode of a selection, played as often as needed: a recorded one once, a live one for every floor."""

    def __init__(self, benchmark: Benchmark, subset: str | None) -> None:
        self.benchmark = benchmark
        self.contexts = list(benchmark.contexts(subset))
        self.played: list[Played] = []  # the first time, with gold: what constants are chosen from
        self._recorded: set[int] = set()

    async def play(self, rule: Rule) -> list[Asked | Mapping[str, float]]:
        """Questions with the answers of a rule, context by context, and facts after those of a live one."""
        first = not self.played
        doors = asyncio.Semaphore(AT_ONCE)
        played = await asyncio.gather(*(self._one(place, rule, doors) for place in range(len(self.contexts))))
        if first:
            self.played = list(played)
        return [one for place, lived in enumerate(played) for one in self._told(place, lived)]

    async def _one(self, place: int, rule: Rule, doors: asyncio.Semaphore) -> Played:
        if place in self._recorded:
            before = self.played[place]
            return Played(before.items, [(case, rule(case, before.items)) for case, _ in before.cases])
        episode = self.benchmark.episode(self.contexts[place])
        self._recorded |= set() if episode.live else {place}
        async with doors:
            return await play(episode, rule)

    def placed(self) -> Iterable[Placed]:
        """The questions that gold answers lead to."""
        for place, played in enumerate(self.played):
            for index, (case, _) in enumerate(played.cases):
                yield Placed(self.contexts[place], place, index, case)

    def _told(self, place: int, played: Played) -> Iterable[Asked | Mapping[str, float]]:
        context = self.contexts[place]
        for index, (case, answer) in enumerate(played.cases):
            if answer is not None:
                yield _asked(Placed(context, place, index, case), answer)
        if played.facts and any(answer is not None for _, answer in played.cases):
            yield played.facts


@dataclass(frozen=True)
class _Scorer:
    """Scores answers by a benchmark's own metrics.

    Attributes:
        metrics: all that need no judge.
        leading: the score that leads.
        sources: the metric that gives a score, by the score's name.
    """

    benchmark: Benchmark
    metrics: Sequence[Metric]
    leading: str
    sources: Mapping[str, Metric]

    @classmethod
    async def over(cls, benchmark: Benchmark, told: Sequence[Asked | Mapping[str, float]]) -> _Scorer:
        """A scorer that leads with the primary score, or with the first that needs no judge."""
        metrics = [metric for metric in benchmark.metrics() if not isinstance(metric, Judged)]
        named = [(metric, await _names(told[:PROBED], metric)) for metric in metrics]
        known = [name for _, names in named for name in names]
        if not known:
            raise UserError(f"{benchmark.card.name}: every metric needs a judge, so nothing can be said about floors")
        primary = benchmark.card.primary
        return cls(
            benchmark,
            metrics,
            primary if primary in known else known[0],
            {name: metric for metric, names in named for name in names},
        )

    async def figures(self, name: str, about: str, told: Sequence[Asked | Mapping[str, float]]) -> Figures:
        """The official figures of answers, the leading one first."""
        rows = await _scored(told, self.metrics)
        leads = means(rows).get(self.leading)
        official = {self.leading: leads} if leads is not None else {}
        official |= self.benchmark.report(rows)
        return Figures(name, about, sum(isinstance(one, Asked) for one in told), official)

    def speaking(self, cases: Sequence[Placed]) -> str | None:
        """The score that words alone can raise, the leading one if it is one: recall says nothing about a constant."""
        told = [_asked(placed, Answer(self.benchmark.gold_answer(placed.case).text)) for placed in cases]
        for name in sorted(self.sources, key=lambda name: name != self.leading):
            if self.sources[name].unit != "episode" and any(self.by_category(name, told).values()):
                return name
        return None

    def by_category(self, name: str, told: Sequence[Asked]) -> Mapping[str, float]:
        """A score's means by question type."""
        metric = self.sources[name]
        found: dict[str, list[float]] = {}
        for _, _, unit, facts in grouped(told, [metric]):  # without rows: this is asked of many candidates
            score = metric.score(unit, facts).get(name)
            if score is not None and score.status is not Status.NOT_APPLICABLE:
                found.setdefault(unit[0].gold.category, []).append(score.value or 0.0)
        return {category: sum(values) / len(values) for category, values in found.items()}


async def _scored(told: Iterable[Asked | Mapping[str, float]], metrics: Sequence[Metric]) -> list[ScoreRow]:
    # As `evaluate` scores: what a metric makes of a missing answer stands.
    return [await score_unit(*unit, metrics, None, override=False) for unit in grouped(told, metrics)]


async def _names(told: Sequence[Asked | Mapping[str, float]], metric: Metric) -> Sequence[str]:
    return list(dict.fromkeys(name for row in await _scored(told, [metric]) for name in row.scores))


# ------------------------------------------------------------------------------------------------------------- floors


def rules(benchmark: Benchmark, cases: Sequence[Case]) -> Iterable[tuple[str, str, Rule]]:
    """The floors that fit every benchmark, as (name, what it is, rule)."""
    yield "always empty", "", lambda case, items: Answer("", readout=Readout())
    if any(case.question.form == "choice" for case in cases):
        yield "first option", "over choice questions", _option(lambda question: question.choices[0].key)
        yield "last option", "over choice questions", _option(lambda question: question.choices[-1].key)
        yield "longest option", "over choice questions, by characters", _option(longest)
    for text, reasons in _constants(benchmark, cases).items():
        yield f"always {text}", ", ".join(reasons), _always(text)


def _constants(benchmark: Benchmark, cases: Sequence[Case]) -> Mapping[str, list[str]]:
    """Constant answers, and why each is tried."""
    golds = _golds(benchmark, cases)
    found: dict[str, list[str]] = {}
    for letter in sorted({choice.key for case in cases if _chooses(case) for choice in case.question.choices}):
        found.setdefault(letter, []).append("an option's letter")
    if not all(map(_chooses, cases)):
        for text in ABSTENTIONS:
            found.setdefault(text, []).append("declines")
    said = {word: text for text in reversed(golds) if (word := re.sub(r"\W", "", text).casefold()) in ("yes", "no")}
    for word in sorted(said, reverse=True):
        found.setdefault(said[word], []).append(f"gold answers are {word}")
    for text in list(golds)[:1]:
        found.setdefault(text, []).append(f"the most frequent gold answer, {golds[text]:,} of {golds.total():,}")
    return found


def _golds(benchmark: Benchmark, cases: Iterable[Case]) -> Counter[str]:
    """Gold answers as predictions, the most frequent first."""
    said = (benchmark.gold_answer(case).text for case in cases)
    return Counter(dict(Counter(text for text in said if text is not None and text.strip()).most_common()))


def _chooses(case: Case) -> bool:
    return case.question.form == "choice"


def _option(choose: Callable[[Question], str]) -> Rule:
    return lambda case, items: Answer(choose(case.question)) if _chooses(case) else None


def longest(question: Question) -> str:
    """The key of the option with the most characters; the first of equals."""
    return max(
        question.choices,
        key=lambda choice: sum(len(part.text) for part in choice.parts if isinstance(part, Text)),
    ).key


def _always(text: str) -> Rule:
    return lambda case, items: Answer(text)


def _by_category(texts: Mapping[str, str]) -> Rule:
    return lambda case, items: Answer(texts.get(case.gold.category, ""))  # a type that gold answers never led to


def _best_constants(
    benchmark: Benchmark, cases: Sequence[Placed], scorer: _Scorer, name: str | None
) -> tuple[Mapping[str, str], Sequence[str]]:
    """The constant that scores best on each question type, and in words what was chosen; nothing where none can be.

    Candidates are the most frequent gold answers of the type and what floors say everywhere. In live episodes they are
    tried on the questions that gold answers lead to.
    """
    if name is None:
        return {}, ["best constant by type: left out, since no score of a question depends on the words alone"]
    by_category: dict[str, list[Placed]] = {}
    for placed in cases:
        by_category.setdefault(placed.case.gold.category, []).append(placed)
    everywhere = ["", *_constants(benchmark, [placed.case for placed in cases])]
    chosen: dict[str, str] = {}
    notes = []
    for category, members in sorted(by_category.items()):
        frequent = list(_golds(benchmark, [placed.case for placed in members]))[:FREQUENT]
        values: dict[str, float] = {}
        for text in dict.fromkeys((*frequent, *everywhere)):
            told = [_asked(placed, Answer(text)) for placed in members]
            values[text] = scorer.by_category(name, told).get(category, 0.0)
        chosen[category] = max(values, key=lambda text: values[text])
        notes.append(
            f"best constant of {category or 'all questions'}, picked with gold among {len(values)}: "
            f"{chosen[category]!r} ({name} {values[chosen[category]]:.3f})"
        )
    return chosen, notes
