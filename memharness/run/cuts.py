"""A score of a run by parts of the benchmark, beside what answers that read nothing score on the same questions."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from memharness.benchmark import Benchmark, Episode, ScoreRow
from memharness.identity import digest
from memharness.media import MediaStore
from memharness.metric import Judged, Metric
from memharness.registry import plugin
from memharness.run import judgements
from memharness.run.data import open_benchmark
from memharness.run.floors import AT_ONCE, PROBED, Rule, rules
from memharness.run.play import Played, play, record_of
from memharness.run.runtime import runtime
from memharness.run.score import asked_in, grouped, score_unit
from memharness.run.sides import Run
from memharness.run.spec import RunSpec
from memharness.stats import Interval, Paired, interval, paired
from memharness.types import Asked, DataError, Gold, Status, UserError, did_you_mean

ALL = "all"

Values = dict[str, float | None]  # a score by unit; None where it failed


@dataclass(frozen=True)
class Part:
    """One part of the benchmark.

    Attributes:
        kind: of the cut; empty for the whole.
        name: of the part; `all` for the whole.
        own: what the run scores, failures counting 0.
        valid: what it scores where it has a value of its own.
        floors: what each floor scores on the same questions, and on those only.
        ceiling: what gold itself scores; None where that is unknown.
        best: the floor that scores most here, the first of equals; None without floors.
        gains: the run less each floor, question by question.
    """

    kind: str
    name: str
    own: Interval
    valid: Interval
    floors: Mapping[str, Interval]
    ceiling: Interval | None
    best: str | None
    gains: Mapping[str, Paired]

    @property
    def gain(self) -> Paired | None:
        """The run less the best floor."""
        return self.gains[self.best] if self.best is not None else None


@dataclass(frozen=True)
class Cuts:
    """One score of one run, by parts.

    Attributes:
        run: its folder.
        method: in words.
        score: its name.
        parts: the whole first.
        notes: what a reader of the figures must know.
    """

    run: str
    method: str
    bench: str
    data_state: str
    score: str
    parts: Sequence[Part]
    notes: Sequence[str] = ()

    def to_json(self) -> dict[str, Any]:
        """As JSON; of paired differences without the ids of the questions."""
        parts = [
            {
                **{name: value for name, value in vars(part).items() if name in ("kind", "name", "best")},
                "own": asdict(part.own),
                "valid": asdict(part.valid),
                "floors": {name: asdict(floor) for name, floor in part.floors.items()},
                "ceiling": part.ceiling and asdict(part.ceiling),
                "differences": {name: {**asdict(one.difference), "p": one.p} for name, one in part.gains.items()},
            }
            for part in self.parts
        ]
        return {**vars(self), "parts": parts, "notes": list(self.notes)}


def cuts(path: Path, scores: Sequence[str] = ()) -> list[Cuts]:
    """Scores of a finished run by the parts that its benchmark names.

    Floors are played on the run's own questions and scored by the metric that gives the score; constant answers that
    are 0 everywhere, or the same as another on each question, are left out. Intervals respect clusters. The best floor
    of a part is picked there, by the gold that scores it: that works against the run.

    Args:
        path: the run's folder.
        scores: names of scores, or of runtimes (`wall`, `seconds`; see `memharness.run.runtime`); none for the score
            that leads tables.

    Raises:
        UserError: for a folder that is no finished run, a score that it has not, or data that are not at hand or not
            the same any more.
    """
    run = Run(path)
    manifest = run.folder.manifest()
    spec = RunSpec.from_json(manifest["spec"], str(run.folder.manifest_path))
    benchmark = open_benchmark(spec.bench, spec.data, dict(spec.bench_options), MediaStore())
    with plugin(f"benchmark {spec.bench}"):
        if digest(benchmark.digest()) != manifest["described"]["memory"]["data"]:
            raise DataError(f"{benchmark.data.path}: not the data of this run, so floors would not be of its questions")
    golds = _golds(run)
    found = []
    for name in scores or (run.summary["primary"],):
        wanted = _named(run, name)
        floors, ceiling, notes = _floors(benchmark, run, name, spec.subset)
        for words, values in wanted.items():
            made = _parts(benchmark, values, golds, floors, ceiling)
            head = str(path), run.summary["method"], run.bench, run.summary["data_state"], words
            found.append(Cuts(*head, made, notes))
    return found


def _golds(run: Run) -> dict[str, Gold]:
    """Gold by unit: of a group or an episode that of its first question."""
    golds: dict[str, Gold] = {}
    for asked in asked_in(run.folder):
        if isinstance(asked, Asked):
            for unit in (asked.question.id, asked.gold.group, asked.record.context):
                golds.setdefault(unit or asked.question.id, asked.gold)
    return golds


def _named(run: Run, name: str) -> dict[str, Values]:
    """A score of the run by units, under its name; one of further judges by the name and whose it is.

    Raises:
        UserError: if the run has no such score.
    """
    if own := run.values(name) or _runtime(run, name):
        return {name: own}
    found = {
        f"{name} by {one.head['judge']}": {
            row.unit: row.scores[name].value
            for row in one.rows
            if name in row.scores and row.scores[name].status is not Status.NOT_APPLICABLE
        }
        for one in judgements.of_run(run.folder)
        if name in one.head["names"]
    }
    if not found:
        known = dict.fromkeys(name for row in run.rows.values() for name in row.scores)
        raise UserError(f"--metric {name}: {run.folder.path} has no such score{did_you_mean(name, known)}")
    return found


def _runtime(run: Run, name: str) -> Values:
    """Seconds by question."""
    told = (asked for asked in asked_in(run.folder) if isinstance(asked, Asked))
    timed = ((asked.question.id, runtime(asked.record.trace, asked.record.seconds)) for asked in told)
    return {unit: seconds[name] for unit, seconds in timed if name in seconds}


# ------------------------------------------------------------------------------------------------------------- floors


def _floors(
    benchmark: Benchmark, run: Run, name: str, subset: str | None
) -> tuple[dict[str, Values], Values, list[str]]:
    """What floors and gold score on the run's questions, and notes."""
    contexts = {row.context for row in run.rows.values()}
    return asyncio.run(_measured(benchmark, [one for one in benchmark.contexts(subset) if one in contexts], run, name))


async def _measured(
    benchmark: Benchmark, contexts: Sequence[str], run: Run, name: str
) -> tuple[dict[str, Values], Values, list[str]]:
    played = _Stage(benchmark, contexts)
    ceiling = await played.scores(lambda case, items: benchmark.gold_answer(case), name)
    if not ceiling:
        return {}, {}, [f"{name}: no floors, since an answer alone gives no such score"]
    own = run.values(name)
    asked = {unit: value for unit, value in ceiling.items() if unit in own}
    notes = []
    if lost := len(own) - len(asked):
        notes.append(f"{lost:,} of {len(own):,} questions came of the run's own answers: no floor was asked them")
    found: dict[str, Values] = {}
    for floor, _, rule in rules(benchmark, played.cases):
        values = {unit: value for unit, value in (await played.scores(rule, name)).items() if unit in own}
        if any(values.values()) and values not in found.values():
            found[floor] = values
    for one in benchmark.floors():
        values = await played.scores(one.answer, name)
        found[one.name] = {unit: value for unit, value in values.items() if unit in own}
    if not any(value for values in found.values() for value in values.values()):
        return {}, asked, [*notes, f"{name}: every floor scores 0 on it"]
    return found, asked, notes


class _Stage:
    """The contexts of a run, played with given answers; recorded ones once."""

    def __init__(self, benchmark: Benchmark, contexts: Sequence[str]) -> None:
        self.benchmark, self.contexts = benchmark, contexts
        self.metrics = [metric for metric in benchmark.metrics() if not isinstance(metric, Judged)]
        self.cases: list[Any] = []
        self._recorded: dict[str, Played] = {}

    async def scores(self, rule: Rule, name: str) -> Values:
        """A score by unit, where it applies."""
        doors = asyncio.Semaphore(AT_ONCE)
        played = await asyncio.gather(*(self._one(context, rule, doors) for context in self.contexts))
        self.cases = self.cases or [case for one in played for case, _ in one.cases]
        told = [one for place, lived in enumerate(played) for one in self._told(place, lived)]
        # The other metrics may cost much more: some look at pictures.
        giving = [metric for metric in self.metrics if await _gives(metric, told, name)]
        rows = [await score_unit(*unit, giving, None, override=False) for unit in grouped(told, giving)]
        return {row.unit: row.scores[name].value for row in rows if _applies(row, name)}

    async def _one(self, context: str, rule: Rule, doors: asyncio.Semaphore) -> Played:
        if (before := self._recorded.get(context)) is not None:
            return Played(before.items, [(case, rule(case, before.items)) for case, _ in before.cases])
        episode: Episode = self.benchmark.episode(context)
        async with doors:
            played = await play(episode, rule)
        if not episode.live:
            self._recorded[context] = played
        return played

    def _told(self, place: int, played: Played) -> list[Asked | Mapping[str, float]]:
        told: list[Asked | Mapping[str, float]] = [
            Asked(case.question, case.gold, record_of(case, answer, self.contexts[place], place, index))
            for index, (case, answer) in enumerate(played.cases)
            if answer is not None
        ]
        return [*told, played.facts] if told and played.facts else told


async def _gives(metric: Metric, told: Sequence[Asked | Mapping[str, float]], name: str) -> bool:
    """Whether a metric gives a score of this name, as far as its first units tell."""
    for unit in islice(grouped(told, [metric]), PROBED):
        if name in (await score_unit(*unit, [metric], None, override=False)).scores:
            return True
    return False


def _applies(row: ScoreRow, name: str) -> bool:
    return name in row.scores and row.scores[name].status is not Status.NOT_APPLICABLE


# -------------------------------------------------------------------------------------------------------------- parts


def _parts(
    benchmark: Benchmark, values: Values, golds: Mapping[str, Gold], floors: Mapping[str, Values], ceiling: Values
) -> list[Part]:
    """The whole, then the parts by kind, in the order in which the benchmark names kinds and its questions parts."""
    members: dict[tuple[str, str], list[str]] = {("", ALL): list(values)}
    kinds: dict[str, dict[str, None]] = {}
    with plugin(f"benchmark {benchmark.card.name}"):
        for unit in values:
            for kind, names in benchmark.cuts(golds[unit]).items():
                kinds.setdefault(kind, {}).update(dict.fromkeys(names))
                for name in names:
                    members.setdefault((kind, name), []).append(unit)
    order = [("", ALL), *((kind, name) for kind, names in kinds.items() for name in sorted(names, key=_by_number))]
    clusters = {unit: gold.cluster for unit, gold in golds.items() if gold.cluster}
    return [_part(kind, name, members[kind, name], values, clusters, floors, ceiling) for kind, name in order]


def _by_number(name: str) -> tuple[float, str]:
    """Parts that begin with a number in its order, after those that do not and keep theirs."""
    digits = name[: len(name) - len(name.lstrip("0123456789"))]
    return (float(digits) if digits else -1.0, name if digits else "")


def _part(
    kind: str,
    name: str,
    units: Sequence[str],
    values: Values,
    clusters: Mapping[str, str],
    floors: Mapping[str, Values],
    ceiling: Values,
) -> Part:
    shares = all(0 <= (value or 0.0) <= 1 for value in values.values())  # of the whole score, not of this part

    def over(some: Mapping[str, float | None], of: Sequence[str]) -> Interval:
        known = [clusters[unit] for unit in of] if clusters else None
        return interval([some[unit] or 0.0 for unit in of], known, shares=shares)

    own = {unit: values[unit] or 0.0 for unit in units}
    beside = {floor: [unit for unit in units if unit in some] for floor, some in floors.items()}
    measured = {floor: over(floors[floor], of) for floor, of in beside.items() if of}
    best = max(measured, key=lambda floor: measured[floor].value or 0.0, default=None)
    gains = {
        floor: paired({unit: floors[floor][unit] or 0.0 for unit in beside[floor]}, own, clusters or None)
        for floor in measured
    }
    top = [unit for unit in units if unit in ceiling]
    return Part(
        kind,
        name,
        over(own, units),
        over(values, [unit for unit in units if values[unit] is not None]),
        measured,
        over(ceiling, top) if top else None,
        best,
        gains,
    )
