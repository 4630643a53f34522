"""Runs against a baseline on the questions that both were asked: what differs, and whether chance would do as much.

Questions are matched by id; where they share a cluster, the cluster is the unit (`memharness.stats`). A failure counts
0 over all questions and is left out over valid ones. The verdict on a difference b - a, where more is better:

- `better`, `worse`: its whole interval lies above, or below, 0, and its p value (Holm's, of all runs compared with the
  baseline) is at most 1 - level.
- `tie`: its interval lies within -δ and +δ, or every question scores alike.
- `non-inferior`: it lies above -δ, but may reach +δ.
- `not shown`: anything else; the data cannot tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from memharness.run.sides import AMOUNTS, Must, Side, Told, cluster_word, conditions, may_differ, must_match
from memharness.stats import (
    SEED,
    Flips,
    Interval,
    Ratio,
    SignFlip,
    benjamini_hochberg,
    holm,
    interval,
    items_needed,
    macro,
    mcnemar_exact,
    paired,
    ratio,
    sign_flip,
)
from memharness.stats.clusters import t_quantile
from memharness.types import UserError

LEVEL = 0.95
DELTA = 0.02

Verdict = Literal["better", "worse", "tie", "non-inferior", "not shown"]
Kind = Literal["regressed", "fixed", "stayed wrong", "unchanged"]
KINDS: tuple[Kind, ...] = ("regressed", "stayed wrong", "fixed", "unchanged")

Values = Mapping[str, float]


@dataclass(frozen=True)
class Contrast:
    """Two means of one score on the same units, and what their difference is worth.

    Attributes:
        name: what the mean is over, or a category.
        n: units.
        a: the baseline's mean with its interval.
        b: the other run's.
        difference: b - a with its interval.
        p: two-sided p value of no difference, None where there is no interval.
        adjusted: `p` within its family, None with it.
        verdict: see the module.
    """

    name: str
    n: int
    a: Interval
    b: Interval
    difference: Interval
    p: float | None
    adjusted: float | None
    verdict: Verdict

    def judged(self, adjusted: float | None, delta: float) -> Contrast:
        """With its p value within a family, and the verdict that follows."""
        return replace(self, adjusted=adjusted, verdict=verdict(self.difference, adjusted, delta))


@dataclass(frozen=True)
class Compared:
    """One score of two runs.

    Attributes:
        score: its name.
        binary: whether every value of it in either run is 0 or 1, and neither is averaged over repeats.
        clusters: how many clusters the matched units lie in, or None where the benchmark names none.
        cut: clusters of either run of which no unit is matched.
        dropped: units that both have but to which the score applies in one only.
        only_a: units of the baseline that the other run lacks.
        only_b: units of the other run that the baseline lacks.
        all: over all matched units, failures counting 0: the micro mean.
        valid: over those that failed on neither side, None where none failed.
        macro: unweighted mean over categories, None with under two.
        categories: one contrast a category; `adjusted` is Holm's over all categories of all runs compared.
        sign_flip: the randomisation test on `all`.
        mcnemar: where it is binary; ignores clusters.
        lower: units that score lower than in the baseline.
        higher: units that score higher.
        needed: units with which a difference of δ would be seen 4 times in 5, at the discordance and the clustering
            found here; None of scores that are no verdicts, and without an interval.
    """

    score: str
    binary: bool
    clusters: int | None
    cut: tuple[str, ...]
    dropped: tuple[str, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    all: Contrast
    valid: Contrast | None
    macro: Contrast | None
    categories: tuple[Contrast, ...]
    sign_flip: SignFlip
    mcnemar: Flips | None
    lower: int
    higher: int
    needed: int | None = None


@dataclass(frozen=True)
class Change:
    """A unit in both runs.

    Attributes:
        unit: its id.
        native_id: its id in the source.
        kind: `regressed` (lower than in the baseline), `fixed` (higher), `stayed wrong` (0 in both), `unchanged`.
        a: the baseline's score; a failure is 0.
        b: the other run's.
        outcome_a: what became of it in the baseline.
        outcome_b: in the other run.
    """

    unit: str
    native_id: str
    category: str
    cluster: str
    kind: Kind
    a: float
    b: float
    outcome_a: str
    outcome_b: str
    text: str
    gold: tuple[str, ...]
    answer_a: str | None
    answer_b: str | None


@dataclass(frozen=True)
class Against:
    """A run against the baseline.

    Attributes:
        run: what it is.
        forced: what must be equal and is not; empty unless the comparison was forced.
        differs: what may differ and does.
        only_a: questions only the baseline asked.
        only_b: questions only this run asked.
        scores: by score, those asked for in full.
        others: every other score that both have; `adjusted` is Benjamini and Hochberg's over them.
        costs: ratios of amounts by `sides.AMOUNTS`, over the questions where both have them.
        outcomes: how many matched questions came to each outcome, baseline first; over all repeats.
        flags: the same of flags.
        changes: every matched unit of the first score, worst first within each kind.
    """

    run: Mapping[str, Any]
    forced: tuple[Must, ...]
    differs: tuple[Must, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    scores: tuple[Compared, ...]
    others: tuple[Contrast, ...]
    costs: Mapping[str, Ratio]
    outcomes: Mapping[str, tuple[int, int]]
    flags: Mapping[str, tuple[int, int]]
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Comparison:
    """Runs against a baseline.

    Attributes:
        baseline: what it is.
        bench: the benchmark.
        data_state: `given`, `prepared` or `sample`.
        shared: what runs must have in common, as the baseline has it, in words.
        unit: what clusters, in the words of the benchmark's card.
        delta: δ of the verdicts.
        level: confidence level of every interval.
        seed: of every resampling.
        runs: the others, in the order given.
    """

    baseline: Mapping[str, Any]
    bench: str
    data_state: str
    shared: Mapping[str, str]
    unit: str
    delta: float
    level: float
    seed: int
    runs: tuple[Against, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


def compare(
    runs: Sequence[Path | Sequence[Path]],
    *,
    scores: Sequence[str] = (),
    delta: float = DELTA,
    force: bool = False,
) -> Comparison:
    """Compare finished runs with the first of them.

    Args:
        runs: run folders, two or more; the first is the baseline. Several in place of one are its repeats with other
            seeds, averaged by question.
        scores: names of scores to compare in full; none is the one that leads tables.
        delta: δ, in the unit of the scores, above 0.
        force: compare though something differs that must not; the result says what.

    Raises:
        UserError: under two runs, one that is not finished, no question in common, a score that one lacks, or something
            that must be equal is not.
        DataError: a run's files are damaged.
    """
    if len(runs) < 2:
        raise UserError("compare: name two runs or more, the baseline first")
    if not 0 < delta < float("inf"):
        raise UserError(f"--delta {delta}: must be more than 0")
    baseline, *others = [Side([run] if isinstance(run, Path) else run) for run in runs]
    for other in others:
        if not force and (unequal := must_match(baseline, other)):
            raise UserError(
                f"compare: {baseline.name} and {other.name} differ in {', '.join(map(str, unequal))}, so "
                "their figures do not measure the same; --force compares them nonetheless, and says so"
            )
    names = _chosen(baseline, others, scores)
    found = [_against(baseline, other, names) for other in others]
    return Comparison(
        _run(baseline),
        baseline.summary["bench"],
        baseline.summary["data_state"],
        conditions(baseline.runs[0]),
        cluster_word(baseline.bench),
        delta,
        LEVEL,
        SEED,
        tuple(_in_families(found, delta)),
    )


def verdict(difference: Interval, p: float | None, delta: float, level: float = LEVEL) -> Verdict:
    """What may be said of a difference; see the module.

    Args:
        difference: b - a with its interval.
        p: its p value, adjusted for its family.
        delta: δ.
        level: confidence level of the interval.
    """
    low, high = difference.low, difference.high
    if p is None or difference.value is None:
        return "not shown"
    if low is None or high is None:  # no spread: every question alike, or all changed by the same amount
        low = high = difference.value
    if p <= 1 - level + 1e-12 and (low > 0 or high < 0):
        return "better" if low > 0 else "worse"
    if low > -delta:
        return "tie" if high < delta else "non-inferior"
    return "not shown"


def _run(side: Side) -> dict[str, Any]:
    told = side.summary
    names = ("identity", "method", "reader", "config", "until", "judge", "seed", "control", "n")
    complete = all(run.summary.get("complete") for run in side.runs)
    return {"run": side.name, "repeats": len(side.runs), "complete": complete, **{n: told.get(n) for n in names}}


def _chosen(baseline: Side, others: Sequence[Side], scores: Sequence[str]) -> list[str]:
    """The scores to compare in full, of which each run must have each."""
    common = [name for name in baseline.summary["scores"] if all(name in other.summary["scores"] for other in others)]
    if not common:
        raise UserError("compare: the runs have no score in common; `memharness score RUN` scores a run again")
    for name in scores:
        if name not in common:
            raise UserError(f"--metric {name}: not every run has a score of this name; they share {', '.join(common)}")
    primary: str = baseline.summary.get("primary") or ""
    return list(dict.fromkeys(scores)) or [primary if primary in common else common[0]]


def _against(baseline: Side, other: Side, names: Sequence[str]) -> Against:
    a, b = baseline.questions, other.questions
    both = [name for name in a if name in b]
    if not both:
        raise UserError(f"compare: no question of {baseline.name} was asked in {other.name}")
    rest = [name for name in baseline.summary["scores"] if name in other.summary["scores"] and name not in names]
    return Against(
        _run(other),
        tuple(must_match(baseline, other)),
        tuple(may_differ(baseline, other)),
        tuple(name for name in a if name not in b),
        tuple(name for name in b if name not in a),
        tuple(_score(baseline, other, name) for name in names),
        tuple(_micro(name, *_zeroed(baseline, other, name), _clusters(baseline)) for name in rest),
        _costs(baseline, other, both),
        _tally(*(_records(side, both, lambda told: [told.outcome]) for side in (baseline, other))),
        _tally(*(_records(side, both, lambda told: told.flags) for side in (baseline, other))),
        tuple(_changes(baseline, other, names[0])),
    )  # fmt: skip


def _zeroed(baseline: Side, other: Side, name: str) -> tuple[dict[str, float], dict[str, float]]:
    """A score of both runs by the units it applies to in both; a failure is 0."""
    a, b = baseline.values(name), other.values(name)
    return _of(a, b, a.keys() & b.keys())


def _clusters(side: Side) -> dict[str, str] | None:
    found = {unit: row.cluster for unit, row in side.rows.items()}
    return found if any(found.values()) else None


def _score(baseline: Side, other: Side, name: str) -> Compared:
    a, b = _zeroed(baseline, other, name)
    raw = baseline.values(name), other.values(name)
    clusters = _clusters(baseline)
    categories = {unit: baseline.rows[unit].category for unit in a}
    whole = _micro("all", a, b, clusters)
    failed = (baseline.failed(name) | other.failed(name)) & a.keys()
    binary = len(baseline.runs) == len(other.runs) == 1 and not (baseline.shares(name) or other.shares(name))
    in_use = {clusters[unit] for unit in a} if clusters else set()
    every = {row.cluster: None for side in (baseline, other) for row in side.rows.values()}
    return Compared(
        name,
        binary,
        len(in_use) if clusters else None,
        tuple(cluster for cluster in every if cluster not in in_use) if clusters else (),
        tuple(
            unit for side, mate, rows in ((*raw, other.rows), (*raw[::-1], baseline.rows))
            for unit in side if unit not in mate and unit in rows
        ),
        tuple(unit for unit in raw[0] if unit not in other.rows),
        tuple(unit for unit in raw[1] if unit not in baseline.rows),
        whole,
        _micro("valid", *_of(a, b, a.keys() - failed), clusters) if failed else None,
        _macro(a, b, categories, clusters) if len(set(categories.values())) > 1 else None,
        tuple(_by_category(a, b, categories, clusters)) if len(set(categories.values())) > 1 else (),
        sign_flip([b[unit] - a[unit] for unit in a], [clusters[unit] for unit in a] if clusters else None),
        mcnemar_exact(a, b) if binary else None,
        sum(b[unit] < a[unit] for unit in a),
        sum(b[unit] > a[unit] for unit in a),
    )  # fmt: skip


def _of(a: Values, b: Values, units: Container[str]) -> tuple[dict[str, float], dict[str, float]]:
    """Both sides' values of some units."""
    return {unit: a[unit] for unit in a if unit in units}, {unit: b[unit] for unit in a if unit in units}


def _micro(name: str, a: Values, b: Values, clusters: Mapping[str, str] | None) -> Contrast:
    found = paired(a, b, clusters, level=LEVEL)
    of = None if clusters is None else [clusters[unit] for unit in a]
    one, two = (interval(list(side.values()), of, level=LEVEL) for side in (a, b))
    return Contrast(name, len(a), one, two, found.difference, found.p, found.p, "not shown")


def _macro(a: Values, b: Values, categories: Mapping[str, str], clusters: Mapping[str, str] | None) -> Contrast:
    nothing = dict.fromkeys(a, 0.0)
    found = macro(a, b, categories, clusters, level=LEVEL)
    one, two = (macro(nothing, side, categories, clusters, level=LEVEL).difference for side in (a, b))
    return Contrast("macro", len(a), one, two, found.difference, found.p, found.p, "not shown")


def _by_category(
    a: Values, b: Values, categories: Mapping[str, str], clusters: Mapping[str, str] | None
) -> Iterable[Contrast]:
    several = clusters is not None and len({clusters[unit] for unit in a}) > 1
    for category in sorted(set(categories.values())):
        found = _micro(category, *_of(a, b, {unit for unit in a if categories[unit] == category}), clusters)
        if several and found.difference.clusters == 1 and found.n > 1:
            # That a benchmark is clustered is known here: items of its one cluster must not pass for independent.
            note = "one cluster: no interval"
            one, two, between = (
                replace(of, low=None, high=None, df=None, method="none", note=note)
                for of in (found.a, found.b, found.difference)
            )
            found = replace(found, a=one, b=two, difference=between, p=1.0 if found.p == 1.0 else None)
        yield found


def _in_families(runs: Sequence[Against], delta: float) -> Iterable[Against]:
    """With adjusted p values: Holm over the runs, and over the categories of all runs; BH over a run's other scores."""
    places = range(len(runs[0].scores))
    overall = [holm([run.scores[place].all.p for run in runs]) for place in places]
    by_category = []
    for place in places:
        flat = iter(holm([one.p for run in runs for one in run.scores[place].categories]))
        by_category.append([[next(flat) for _ in run.scores[place].categories] for run in runs])
    for at, run in enumerate(runs):
        scores = []
        for place, found in enumerate(run.scores):
            pairs = zip(found.categories, by_category[place][at], strict=True)
            scores.append(
                replace(
                    found,
                    all=found.all.judged(overall[place][at], delta),
                    valid=found.valid and found.valid.judged(found.valid.p, delta),
                    macro=found.macro and found.macro.judged(found.macro.p, delta),
                    categories=tuple(one.judged(p, delta) for one, p in pairs),
                    needed=_needed(found, delta),
                )
            )
        explored = zip(run.others, benjamini_hochberg([one.p for one in run.others]), strict=True)
        yield replace(run, scores=tuple(scores), others=tuple(one.judged(p, delta) for one, p in explored))


def _needed(found: Compared, delta: float) -> int | None:
    """How many units a difference of δ takes, were they drawn as these were."""
    between, n = found.all.difference, found.all.n
    discordance = (found.lower + found.higher) / n if n else 0.0
    if not found.binary or between.low is None or between.value is None or between.df is None or discordance < delta:
        return None
    error = (between.value - between.low) / t_quantile(LEVEL, between.df)
    clustering = error**2 * n / (discordance - between.value**2)  # over the error of independent units, squared
    return math.ceil(items_needed(delta, discordance, level=LEVEL) * max(1.0, clustering))


def _costs(baseline: Side, other: Side, both: Sequence[str]) -> dict[str, Ratio]:
    a, b = baseline.costs, other.costs
    clusters = _clusters(baseline)
    known = clusters if clusters is not None and all(unit in clusters for unit in both) else None
    out = {}
    for name in AMOUNTS:
        one, two = ({unit: side[unit][name] for unit in both if name in side[unit]} for side in (a, b))
        if one.keys() & two.keys() and (any(one.values()) or any(two.values())):
            out[name] = ratio(one, two, known, level=LEVEL)
    return out


def _records(side: Side, both: Sequence[str], of: Callable[[Told], Sequence[str]]) -> Iterable[Sequence[str]]:
    """What the records of all repeats say of some questions."""
    return [of(run.questions[name]) for run in side.runs for name in both if name in run.questions]


def _tally(a: Iterable[Sequence[str]], b: Iterable[Sequence[str]]) -> dict[str, tuple[int, int]]:
    counts: dict[str, list[int]] = {}
    for side, told in enumerate((a, b)):
        for names in told:
            for name in names:
                counts.setdefault(name, [0, 0])[side] += 1
    return {name: (one, two) for name, (one, two) in counts.items()}


def _changes(baseline: Side, other: Side, name: str) -> Iterable[Change]:
    """Every matched unit: kind by kind, the largest change first, then the lowest score."""
    a, b = _zeroed(baseline, other, name)
    order = sorted(a, key=lambda unit: (KINDS.index(_kind(a[unit], b[unit])), -abs(b[unit] - a[unit]), b[unit]))
    for unit in order:
        row = baseline.rows[unit]
        one, two = baseline.questions.get(unit), other.questions.get(unit)  # None of a group or an episode
        yield Change(
            unit, row.native_id, row.category, row.cluster, _kind(a[unit], b[unit]), a[unit], b[unit],
            one.outcome if one else row.failed or "ok", two.outcome if two else other.rows[unit].failed or "ok",
            one.text if one else "", one.gold if one else (), one.answer if one else None, two.answer if two else None,
        )  # fmt: skip


def _kind(a: float, b: float) -> Kind:
    if a == b:
        return "unchanged" if a else "stayed wrong"
    return "regressed" if b < a else "fixed"
