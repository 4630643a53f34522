"""The regression gate: a baseline's runs made again and held against it.

An exact run must give what it gave: outcome, answer, scores and tokens of every question. Better or cheaper is a
difference too, since the same code cannot do better; whoever meant it writes a new baseline and says why. A sampled run
(a reader that draws, a server that batches) must not be worse by δ: the lower bound of the paired difference of its
primary score, clusters respected, must lie above -δ.
"""

from __future__ import annotations

import platform
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import memharness
from memharness.ledger import KINDS
from memharness.registry import entries
from memharness.run import api, baseline
from memharness.run.baseline import Baseline, Measured, Told, alike
from memharness.run.data import benchmark_class, sample_path
from memharness.run.folder import RunFolder
from memharness.run.gather import pairs
from memharness.run.progress import Quiet
from memharness.run.score import rows
from memharness.run.setup import setup
from memharness.run.spec import RunSpec
from memharness.types import Outcome, Status, UserError, did_you_mean

READER = "extractive"
LIMIT = "4"
"""Questions of each benchmark's sample: enough to reach a method's every step, few enough to run before each commit."""

DELTA = 0.02
PACKAGES = ("numpy", "torch", "transformers", "tokenizers", "bm25s", "scipy", "nltk", "pillow")  # what figures rest on
NOTHING = Told("")
TAKEN_IN = "taken in"
NEW = "not in the baseline"

Tell = Callable[[int, int, str], None]
"""Told how many runs are done, of how many, and which comes next."""


@dataclass(frozen=True)
class Figure:
    """The mean of one score over the questions that it applies to, failures counting 0, before and after.

    `lower` is the lower bound of the mean difference, for the primary score of a sampled run; None where there is none.
    """

    name: str
    before: float | None
    after: float | None
    primary: bool = False
    lower: float | None = None

    @property
    def change(self) -> float:
        """After less before; what there was not counts 0."""
        return (self.after or 0.0) - (self.before or 0.0)


@dataclass(frozen=True)
class Changed:
    """A question whose line differs; `what` holds before and after by the name of a score, `outcome` or `tokens`."""

    before: Told
    after: Told
    what: Mapping[str, tuple[Any, Any]]

    @property
    def name(self) -> str:
        """The source's id if there is one, else the harness's own."""
        return self.before.name or self.after.name or self.before.id or self.after.id


@dataclass(frozen=True)
class Verdict:
    """One run held against the baseline.

    Attributes:
        problem: why it does not hold, where no figure says so: it does not run, it is not in the baseline …
        figures: means that differ; of a sampled run, its primary score always.
        changed: questions that differ, the worst first.
        n: questions of the run.
        notes: what may explain a difference: other data, another version.
    """

    title: str
    kind: str
    held: bool
    n: int = 0
    problem: str = ""
    delta: float | None = None
    figures: tuple[Figure, ...] = ()
    changed: tuple[Changed, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def slipped(self) -> bool:
        """Whether the primary score is lower."""
        return any(figure.primary and figure.change < 0 for figure in self.figures)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, for `--json`."""
        return {
            "run": self.title,
            "kind": self.kind,
            "held": self.held,
            "slipped": self.slipped,
            "n": self.n,
            "problem": self.problem,
            "delta": self.delta,
            "figures": [vars(figure) | {"change": figure.change} for figure in self.figures],
            "questions": [
                {
                    "id": one.before.id or one.after.id,
                    "name": one.name,
                    "what": {name: list(pair) for name, pair in one.what.items()},
                    "answers": [one.before.answer, one.after.answer],
                }
                for one in self.changed
            ],
            "notes": list(self.notes),
        }


@dataclass
class Report:
    """What a check, or an update, found; `left_out` is what an update could not run, and why."""

    path: Path
    verdicts: list[Verdict] = field(default_factory=list)
    left_out: dict[tuple[str, str], str] = field(default_factory=dict)

    @property
    def held(self) -> bool:
        """Whether every run holds."""
        return all(verdict.held for verdict in self.verdicts)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, for `--json`."""
        broken = [verdict.to_json() for verdict in self.verdicts if not verdict.held or verdict.notes]
        return {
            "baseline": str(self.path),
            "held": self.held,
            "runs": len(self.verdicts),
            "questions": sum(verdict.n for verdict in self.verdicts),
            "differences": broken,
            "left_out": [{"run": f"{method} on {bench}", "why": why} for (method, bench), why in self.left_out.items()],
        }


# ----------------------------------------------------------------------------------------------------------- the gate


def check(path: Path, only: Sequence[str], delta: float | None, tell: Tell) -> Report:
    """Make a baseline's runs again and compare.

    Args:
        path: the baseline.
        only: `METHOD`, `METHOD:BENCH` or `:BENCH`; all runs if empty.
        delta: δ of sampled runs, in place of the baseline's own.
        tell: told what is done.

    Raises:
        UserError: for a baseline that cannot be read, or an `only` that names nothing.
    """
    before = baseline.read(path)
    wanted = [run for run in before.runs if _matches(run.spec, only)]
    fresh = list(_unknown(before, only))
    if not wanted and not fresh:
        raise _names_nothing(before, only)
    report = Report(path)
    with _bench() as out:
        for done, run in enumerate(wanted):
            tell(done, len(wanted), run.title)
            after = _tried(run, out)
            report.verdicts.append(_broken(run, after) if isinstance(after, str) else compare(run, after, delta))
    tell(len(wanted), len(wanted), "")
    report.verdicts += [Verdict(run.title, run.kind, False, problem=NEW) for run in fresh]
    return report


def update(path: Path, reason: str, only: Sequence[str], delta: float | None, tell: Tell) -> tuple[Report, bool]:
    """Write a baseline anew: its runs measured again, and what is registered but not in it taken in.

    A file that is not there yet is made of every method on every benchmark's sample, or of what `only` leaves; the
    latter does not claim to hold all.

    Returns:
        What differs from the baseline before, and whether anything does, so that it was written.

    Raises:
        UserError: as `check`, or if the reason is empty or the disk refuses.
    """
    if not reason.strip():
        raise UserError("regress --update: say why with --reason TEXT; it goes into the baseline")
    before = baseline.read(path) if path.is_file() else Baseline(holds=() if only else _distributions())
    gone = [run for run in before.runs if _matches(run.spec, only) and not _registered(run.spec)]
    wanted = [run for run in before.runs if run not in gone and _matches(run.spec, only)]
    fresh = list(_unknown(replace(before, left_out={}), only)) if path.is_file() else list(_every(only))
    if not wanted and not fresh and not gone:
        raise _names_nothing(before, only)
    report, measured = Report(path), [run for run in before.runs if not _matches(run.spec, only)]
    report.verdicts += [Verdict(run.title, run.kind, False, problem="no longer registered; taken out") for run in gone]
    with _bench() as out:
        for done, run in enumerate([*wanted, *fresh]):
            tell(done, len(wanted) + len(fresh), run.title)
            after = _tried(run, out)
            if not isinstance(after, str):
                margin = delta if delta is not None and run.kind == "sampled" else after.delta
                measured.append(replace(after, delta=margin))
                report.verdicts.append(_renewed(run, after))
            elif run in fresh:
                report.left_out[run.spec.method, run.spec.bench] = after
            else:
                raise UserError(f"{run.title}: {after}; mend it, or take the run out of {path} by hand")
    tell(len(wanted) + len(fresh), len(wanted) + len(fresh), "")
    left_out = {pair: why for pair, why in before.left_out.items() if not _matches(RunSpec(*pair), only)}
    now = replace(before, left_out=left_out | report.left_out, runs=tuple(sorted(measured, key=lambda run: run.key)))
    if now == replace(before, runs=tuple(sorted(before.runs, key=lambda run: run.key))):
        return report, False
    stamped = replace(
        now,
        reason=reason.strip(),
        date=datetime.now(UTC).date().isoformat(),
        memharness=memharness.__version__,
        versions=_versions(),
        changed=tuple(_changes(report.verdicts)),
    )
    baseline.write(path, stamped)
    return report, True


def _renewed(run: Measured, after: Measured) -> Verdict:
    """What an update changes of a run: every difference, also of a sampled one."""
    if not run.told:
        return Verdict(run.title, run.kind, False, n=_asked(after), problem=TAKEN_IN)
    return compare(replace(run, kind="exact"), after, None)


def _changes(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """What an update changes, a line a run; runs taken in together are one line."""
    taken = [verdict.title for verdict in verdicts if verdict.problem == TAKEN_IN]
    if taken:
        yield f"taken in: {taken[0]}" if len(taken) == 1 else f"taken in: {len(taken)} runs, {taken[0]} to {taken[-1]}"
    for verdict in verdicts:
        if verdict.held or verdict.problem == TAKEN_IN:
            continue
        moved = [f"{one.name} {_plain(one.before)} → {_plain(one.after)}" for one in verdict.figures]
        words = verdict.problem or f"{len(verdict.changed)} of {verdict.n} questions differ"
        yield f"{verdict.title}: {'; '.join([words, *moved])}"


def _plain(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"


# ----------------------------------------------------------------------------------------------------------- the plan


def _distributions() -> tuple[str, ...]:
    """Who brings methods and benchmarks here."""
    found = [*entries("methods").values(), *entries("benchmarks").values()]
    return tuple(sorted({entry.distribution for entry in found}))


def _every(only: Sequence[str], of: Sequence[str] | None = None) -> Iterator[Measured]:
    """Every registered method on every registered benchmark, unmeasured; of some distributions, or of all."""
    for method, one in entries("methods").items():
        for bench, other in entries("benchmarks").items():
            spec = RunSpec(method, bench, reader=READER, limit=LIMIT)
            if _matches(spec, only) and (of is None or {one.distribution, other.distribution} <= set(of)):
                yield Measured(spec)


def _unknown(before: Baseline, only: Sequence[str]) -> Iterator[Measured]:
    """What is registered and should be in a baseline that claims to hold all, but is not: neither run nor left out."""
    known = {(run.spec.method, run.spec.bench) for run in before.runs} | set(before.left_out)
    for run in _every(only, before.holds):
        if (run.spec.method, run.spec.bench) not in known:
            yield run


def _registered(spec: RunSpec) -> bool:
    """Whether a run's method and benchmark are still there; what is named by class is looked for when it is run."""
    named = ((entries("methods"), spec.method), (entries("benchmarks"), spec.bench))
    return all(":" in name or name in known for known, name in named)


def _matches(spec: RunSpec, only: Sequence[str]) -> bool:
    names = (spec.method, f"{spec.method}:{spec.bench}", f":{spec.bench}")
    return not only or any(name in only for name in names)


def _names_nothing(before: Baseline, only: Sequence[str]) -> UserError:
    if not only:
        return UserError("the baseline holds no run, and no method or benchmark is registered that it should hold")
    known = {run.spec.method for run in before.runs} | set(entries("methods"))
    known |= {f":{run.spec.bench}" for run in before.runs} | {f":{bench}" for bench in entries("benchmarks")}
    near = did_you_mean(only[0].partition(":")[0] or only[0], known)
    return UserError(f"--only {only[0]}: names no run{near}; expected METHOD, METHOD:BENCH or :BENCH")


# ---------------------------------------------------------------------------------------------------------- measuring


@contextmanager
def _bench() -> Iterator[Path]:
    """Where runs are made and thrown away; one request cache serves them all, so that texts are embedded once."""
    with tempfile.TemporaryDirectory(prefix="memharness-regress-") as folder:
        yield Path(folder)


def _full(run: Measured, out: Path) -> RunSpec:
    """The spec as it is run: on the bundled sample, whatever was prepared on this machine, unless it names data."""
    spec = replace(run.spec, out=str(out))
    if spec.data is None:
        sample = sample_path(benchmark_class(spec.bench))
        if sample is None:
            raise UserError(f"{spec.bench} has no bundled sample; name data in the run's spec")
        spec = replace(spec, data=str(sample))
    return spec


def _tried(run: Measured, out: Path) -> Measured | str:
    """The run measured, or why it does not run."""
    try:
        return measure(run, out)
    except UserError as error:
        return str(error)


def measure(run: Measured, out: Path) -> Measured:
    """Make a run and keep what it told.

    Raises:
        UserError: whatever keeps it from running; no question with an outcome that a rerun would leave alone; hosted
            models without `max_cost` in its spec.
    """
    ready = setup(_full(run, out))
    if ready.hosted and run.spec.max_cost is None:
        raise UserError(f"asks {', '.join(ready.hosted)}, which costs money; state max_cost in the baseline's run")
    summary = api.execute(ready.spec, Quiet(), ready)
    folder = ready.folder
    try:
        if not any(n for outcome, n in summary["outcomes"].items() if Outcome(outcome).final):
            raise UserError(f"no question was answered: {_first_error(folder)}")
        told = tuple(_told(folder, clusters=run.kind == "sampled"))
    finally:
        shutil.rmtree(folder.path, ignore_errors=True)
    return Measured(
        run.spec,
        run.kind,
        run.delta if run.kind == "exact" or run.delta is not None else DELTA,
        summary["primary"],
        summary["data_digest"][:16],
        {"method": ready.method.card.version, "bench": ready.benchmark.card.version},
        _tokens(summary["tokens"].get("observe", {})),
        told,
    )


def _first_error(folder: RunFolder) -> str:
    """Why the first question of a run failed."""
    record = next((record for record, _ in pairs(folder) if record is not None), {})
    error = record.get("error", {})
    return f"{record.get('outcome')}: {error.get('message', '')}"[:300]


def _told(folder: RunFolder, *, clusters: bool) -> Iterator[Told]:
    """What a finished run told, question by question, then what only groups and episodes have."""
    scored: dict[str, dict[str, baseline.Kept]] = {}
    cluster: dict[str, str] = {}
    for row in rows(folder):
        cluster[row.unit] = row.cluster if clusters else ""
        scored.setdefault(row.unit, {}).update(
            (name, (baseline.kept(score.value), score.status.value))
            for name, score in row.scores.items()
            if score.status is not Status.NOT_APPLICABLE
        )
    for record, gold in pairs(folder):
        if record is None:
            continue
        name = record["question"]
        spent = {phase: _tokens(sums) for phase, sums in record.get("spent", {}).items()}
        yield Told(
            name,
            gold.get("native_id", ""),
            record["outcome"],
            record.get("answer"),
            scored.pop(name, {}),
            {phase: sums for phase, sums in spent.items() if sums},
            cluster.get(name, ""),
        )
    for name, scores in scored.items():
        if scores:
            yield Told(name, scores=scores, cluster=cluster[name])


def _tokens(sums: Mapping[str, int]) -> dict[str, int]:
    """Counts that are not zero. Calls are left out: how many texts one call embeds depends on what was kept before."""
    return {kind: sums[kind] for kind in KINDS if sums.get(kind)}


def _versions() -> dict[str, str]:
    """Python and the packages that figures rest on, for whoever meets a difference after an upgrade."""
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


# ---------------------------------------------------------------------------------------------------------- comparing


def _broken(run: Measured, why: str) -> Verdict:
    return Verdict(run.title, run.kind, False, n=_asked(run), problem=f"does not run: {why}")


def _asked(run: Measured) -> int:
    return sum(bool(told.outcome) for told in run.told)


def compare(before: Measured, after: Measured, delta: float | None) -> Verdict:
    """One run held against what it gave before; see the module for the two rules."""
    if not before.told:
        return Verdict(before.title, before.kind, False, problem="not measured yet")
    primary = before.primary or after.primary
    changed = sorted(_changed(before.told, after.told), key=lambda one: _worst(one, primary))
    moved = tuple(
        replace(figure, primary=figure.name == primary)
        for figure in _means(before.told, after.told)
        if not alike(figure.before, figure.after)
    )
    verdict = Verdict(
        before.title,
        before.kind,
        not changed and before.observed == after.observed,
        _asked(after),
        figures=tuple(sorted(moved, key=lambda figure: (not figure.primary, figure.name))),
        changed=tuple(changed),
        notes=tuple(_notes(before, after)),
    )
    return verdict if before.kind == "exact" else _sampled(verdict, before, after, primary, delta)


def _sampled(verdict: Verdict, before: Measured, after: Measured, primary: str, delta: float | None) -> Verdict:
    """The verdict by non-inferiority of the primary score; failures count 0, and every question must be in both."""
    from memharness.stats import non_inferior

    margin = delta if delta is not None else DELTA if before.delta is None else before.delta
    base, new = _values(before.told, primary), _values(after.told, primary)
    clusters = {told.id: told.cluster for told in before.told}
    found = non_inferior(base, new, margin, clusters if any(clusters.values()) else None)
    lost = [*found.compared.only_a, *found.compared.only_b]
    problem = ""
    if lost:
        problem = f"{len(lost)} questions have no partner, the first is {lost[0]}; the selection or the data changed"
    elif found.held is None:
        problem = f"no bound can be given ({found.note}): ask more questions, or of more clusters"
    elif not found.held:
        problem = f"{primary} may be lower by {margin:g} or more"
    lead = Figure(primary, found.compared.a, found.compared.b, primary=True, lower=found.lower)
    slips = [one for one in verdict.changed if (change := one.what.get(primary)) and _fell(*change)]
    return replace(
        verdict,
        held=not problem,
        problem=problem,
        delta=margin,
        figures=(lead,),
        changed=tuple(slips) if problem else (),
    )


def _values(told: Iterable[Told], name: str) -> dict[str, float]:
    return {one.id: one.scores[name][0] or 0.0 for one in told if name in one.scores}


def _means(before: Sequence[Told], after: Sequence[Told]) -> Iterator[Figure]:
    """The mean of every score on each side."""
    names = dict.fromkeys(name for told in (*before, *after) for name in told.scores)
    for name in names:
        yield Figure(name, _mean(before, name), _mean(after, name))


def _mean(told: Sequence[Told], name: str) -> float | None:
    values = _values(told, name).values()
    return sum(values) / len(values) if values else None


def _changed(before: Sequence[Told], after: Sequence[Told]) -> Iterator[Changed]:
    """Units whose lines differ, in the baseline's order, new ones last."""
    left, right = ({told.id: told for told in side} for side in (before, after))
    for name in dict.fromkeys([*left, *right]):
        old, new = left.get(name, NOTHING), right.get(name, NOTHING)
        what: dict[str, tuple[Any, Any]] = {}
        if old.outcome != new.outcome:
            what["outcome"] = (old.outcome or "not asked", new.outcome or "not asked")
        for score in sorted({*old.scores, *new.scores}):
            first, second = old.scores.get(score), new.scores.get(score)
            if first is None or second is None or not alike(first[0], second[0]) or first[1] != second[1]:
                what[score] = (_said(first), _said(second))
        if old.answer != new.answer:
            what["answer"] = (old.answer, new.answer)
        for phase in sorted({*old.tokens, *new.tokens}):
            one, other = old.tokens.get(phase, {}), new.tokens.get(phase, {})
            what |= {
                f"{phase} {kind}": (one.get(kind, 0), other.get(kind, 0))
                for kind in sorted({*one, *other})
                if one.get(kind, 0) != other.get(kind, 0)
            }
        if what:
            yield Changed(old, new, what)


def _said(score: baseline.Kept | None) -> float | str | None:
    """A kept score in a word: its value, or the status that tells why there is none of its own."""
    if score is None:
        return "not applicable"
    value, status = score
    return value if status == Status.OK else status


def _fell(before: Any, after: Any) -> bool:
    return _amount(after) < _amount(before)


def _amount(said: Any) -> float:
    return float(said) if isinstance(said, int | float) else 0.0


def _worst(one: Changed, primary: str) -> tuple[float, bool, float]:
    """Sorts the largest loss of the primary score first, then other outcomes, then the largest loss of other scores."""

    def change(name: str) -> float:
        before, after = one.what.get(name, (0.0, 0.0))
        return _amount(after) - _amount(before)

    scores = {*one.before.scores, *one.after.scores}
    return change(primary), "outcome" not in one.what, sum(map(change, scores))


def _notes(before: Measured, after: Measured) -> Iterator[str]:
    if before.observed != after.observed:
        counts = [
            f"{kind} {before.observed.get(kind, 0):,} → {after.observed.get(kind, 0):,}"
            for kind in sorted({*before.observed, *after.observed})
            if before.observed.get(kind, 0) != after.observed.get(kind, 0)
        ]
        yield f"observing costs otherwise: {', '.join(counts)}"
    if before.data and before.data != after.data:
        yield "its data are not those of the baseline"
    for what, name in (("method", before.spec.method), ("bench", before.spec.bench)):
        old, new = before.versions.get(what), after.versions.get(what)
        if old is not None and old != new:
            yield f"{name} is of version {new}; the baseline's was {old}"
