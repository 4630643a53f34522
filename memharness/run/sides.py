"""One side of a comparison: a finished run, or several of one method averaged, by unit and by question."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from memharness.benchmark import ScoreRow
from memharness.identity import digest
from memharness.registry import find
from memharness.run.api import load_summary
from memharness.run.folder import RunFolder
from memharness.run.gather import pairs
from memharness.run.score import rows
from memharness.run.wire import case_in
from memharness.stats import averaged
from memharness.store import read_lines
from memharness.types import DataError, Status, UserError, parts_text

AMOUNTS = ("tokens", "asked", "calls", "price", "items")
"""Of a question: lifecycle tokens, those of asking alone, lifecycle calls and price in USD; items of the readout."""

WORDS = 64  # characters of a value that is told
_DIGEST = re.compile(r"[0-9a-f]{32,}")

Amounts = dict[str, float]


@dataclass(frozen=True, slots=True)
class Told:
    """A question as a run tells it.

    Attributes:
        text: the question in words.
        gold: its answers.
        answer: what was answered, None if nothing was.
        outcome: what became of it.
        flags: of its record.
        context: whose it is.
        attempt: the attempt that counts.
        spent: what that attempt cost, by phase.
        items: pieces of evidence in the readout, None without one.
    """

    text: str
    gold: tuple[str, ...]
    answer: str | None
    outcome: str
    flags: tuple[str, ...]
    context: str
    attempt: int
    spent: Mapping[str, Mapping[str, int]]
    items: int | None


@dataclass(frozen=True)
class Must:
    """Something that runs must have in common, with its values in two of them, as words."""

    field: str
    a: str
    b: str

    def __str__(self) -> str:
        """`budget (2000 and 4000)`."""
        return f"{self.field} ({self.a} and {self.b})"


class Run:
    """A finished run, read as it is needed."""

    def __init__(self, path: Path) -> None:
        """Read its summary and manifest.

        Raises:
            UserError: if the folder is no finished run.
        """
        self.folder = RunFolder(path)
        self.summary = load_summary(path)
        self.described: Mapping[str, Any] = self.folder.manifest()["described"]
        self.bench: str = self.folder.manifest()["spec"].get("bench", "")
        try:
            _needed(self), _free(self)
        except (KeyError, TypeError) as error:
            where = self.folder.manifest_path
            raise UserError(f"{where}: damaged, `described` lacks {error}; run again with --fresh") from None

    @cached_property
    def rows(self) -> dict[str, ScoreRow]:
        """The scores by unit, in the run's order.

        Raises:
            DataError: if a unit comes twice, or a line is damaged.
        """
        found: dict[str, ScoreRow] = {}
        for number, row in enumerate(rows(self.folder), 1):
            if row.unit in found:
                path = self.folder.path
                raise DataError(
                    f"{path / 'scores.jsonl'}: line {number}: {row.unit} is there twice, so it is unknown which score "
                    f"counts; `memharness score {path}` makes the file again"
                )
            found[row.unit] = row
        return found

    def values(self, name: str) -> dict[str, float | None]:
        """A score by the units it applies to; None where it failed."""
        return {
            unit: score.value
            for unit, row in self.rows.items()
            if (score := row.scores.get(name)) is not None and score.status is not Status.NOT_APPLICABLE
        }

    @cached_property
    def questions(self) -> dict[str, Told]:
        """Its questions by id, in the run's order.

        Raises:
            DataError: if records and gold do not match.
        """
        return dict(self._told())

    def _told(self) -> Iterator[tuple[str, Told]]:
        for record, line in pairs(self.folder):
            if record is None:
                continue
            case = case_in(line)
            yield (
                case.question.id,
                Told(
                    parts_text(case.question.parts), tuple(case.gold.answers), record.get("answer"), record["outcome"],
                    tuple(record.get("flags", ())), record["context"], record["attempt"], record.get("spent", {}),
                    len(record["evidence"]) if "evidence" in record else None,
                ),
            )  # fmt: skip

    @cached_property
    def costs(self) -> dict[str, Amounts]:
        """What each question cost, by `AMOUNTS`: the attempt that counts, and its share of observing its context.

        Over all questions it adds up to the lifecycle cost of the summary, without the judge's. `price` is missing
        where a model has none, `items` where there is no readout.
        """
        observed, paid, priced = self._ledger()
        asked: dict[str, int] = {}
        for told in self.questions.values():
            asked[told.context] = asked.get(told.context, 0) + 1
        common: Amounts = {}  # what starting up cost belongs to no context, and so to all questions
        for context in set(observed) - set(asked):
            _add(common, observed[context])
        out = {}
        for name, told in self.questions.items():
            own: Amounts = {
                "asked": sum(_tokens(sums) for phase, sums in told.spent.items() if phase != "judge"),
                "calls": sum(sums.get("calls", 0) for phase, sums in told.spent.items() if phase != "judge"),
                "price": paid.get((name, told.attempt), 0.0),
            }
            own["tokens"] = own["asked"]
            _add(own, observed.get(told.context, {}), 1 / asked[told.context])
            _add(own, common, 1 / len(self.questions))
            if told.items is not None:
                own["items"] = told.items
            out[name] = {key: own[key] for key in AMOUNTS if key in own and (priced or key != "price")}
        return out

    def _ledger(self) -> tuple[dict[str, Amounts], dict[tuple[str, int], float], bool]:
        """What observing each context cost, the price of each question's attempts, and whether all has a price.

        The observation that counts is that of the first worker which was ready, as in the summary.
        """
        ready: dict[str, str] = {}
        observed: dict[tuple[str, str], Amounts] = {}
        paid: dict[tuple[str, int], float] = {}
        priced = True
        for path in self.folder.files("ledger"):
            for _, line in read_lines(path):
                if line["kind"] == "ready":
                    ready.setdefault(line["context"], path.stem)
                if line["kind"] in ("clock", "ready", "model") or line["phase"] == "judge":
                    continue
                priced = priced and (line["price"] is not None or line["kind"] != "generate")
                if line["status"] != "ok":
                    continue
                price = line["price"] or 0.0
                if line["phase"] == "observe":
                    sums = observed.setdefault((line["context"], path.stem), {})
                    _add(sums, {"tokens": _tokens(line), "calls": 1, "price": price})
                elif line["question"] is not None:
                    key = (line["question"], line["attempt"])
                    paid[key] = paid.get(key, 0.0) + price
        counted = {context: sums for (context, by), sums in observed.items() if ready.get(context, by) == by}
        return counted, paid, priced


class Side:
    """Runs that differ in their seed only, averaged by question. Mostly it is one run.

    Repeats of a question are no further questions: they are averaged first, so that the error is that of the questions.

    Attributes:
        runs: the runs.
        name: their folders, in words.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        """Read summaries and manifests.

        Raises:
            UserError: if a folder is no finished run, or the runs differ in more than the seed.
        """
        self.runs = [Run(path) for path in paths]
        first = self.runs[0]
        for other in self.runs[1:]:
            if other.folder.path.resolve() == first.folder.path.resolve():
                raise UserError(f"compare: {other.folder.path} is named twice as a repeat")
            unequal = [*_must(first, other), *(one for one in _may(first, other) if one.field != "seed")]
            if unequal:
                raise UserError(
                    f"compare: {first.folder.path} and {other.folder.path} are no repeats of one run: they differ in "
                    f"{', '.join(map(str, unequal))}, not only in the seed"
                )
        self.summary, self.bench = first.summary, first.bench
        self.name = ", ".join(str(run.folder.path) for run in self.runs)

    @cached_property
    def rows(self) -> dict[str, ScoreRow]:
        """Category, cluster and native id by unit; scores are those of the first run that has it."""
        return {unit: row for run in reversed(self.runs) for unit, row in run.rows.items()}

    @cached_property
    def questions(self) -> dict[str, Told]:
        """Questions by id, as the first run that has it tells it."""
        return {name: told for run in reversed(self.runs) for name, told in run.questions.items()}

    def values(self, name: str) -> dict[str, float]:
        """A score by the units it applies to, a failure counting 0: the mean over repeats."""
        return averaged((unit, value or 0.0) for run in self.runs for unit, value in run.values(name).items())

    def failed(self, name: str) -> set[str]:
        """Units on which a run has no value of its own of a score that applies."""
        return {unit for run in self.runs for unit, value in run.values(name).items() if value is None}

    def shares(self, name: str) -> bool:
        """Whether some run has a value of this score other than 0 and 1, so that it is no verdict."""
        return any(value not in (0.0, 1.0, None) for run in self.runs for value in run.values(name).values())

    @cached_property
    def costs(self) -> dict[str, Amounts]:
        """What each question cost, by `AMOUNTS`: the mean over repeats. See `Run.costs`."""
        out: dict[str, Amounts] = {name: {} for name in self.questions}
        for amount in AMOUNTS:
            known = ((name, cost[amount]) for run in self.runs for name, cost in run.costs.items() if amount in cost)
            for name, value in averaged(known).items():
                out[name][amount] = value
        return out


def must_match(a: Side, b: Side) -> list[Must]:
    """In what two sides differ that a comparison needs equal. A judge counts where both have one."""
    return _must(a.runs[0], b.runs[0])


def may_differ(a: Side, b: Side) -> list[Must]:
    """In what two sides differ that may: what a comparison is about. Options are those of one method only."""
    seeds = [", ".join(str(run.described["memory"]["seed"]) for run in side.runs) for side in (a, b)]
    found = [one for one in _may(a.runs[0], b.runs[0]) if one.field != "seed"]
    return found + ([Must("seed", *seeds)] if seeds[0] != seeds[1] else [])


def _must(a: Run, b: Run) -> list[Must]:
    out = _unequal(_needed(a), _needed(b))
    judges = a.summary.get("judge"), b.summary.get("judge")
    if None not in judges:
        if judges[0] != judges[1]:
            out.append(Must("judge", *map(_words, judges)))
        rubrics = a.summary.get("rubrics") or {}, b.summary.get("rubrics") or {}
        out += [
            Must(f"rubric of {name}", _words(rubrics[0][name]), _words(rubrics[1][name]))
            for name in rubrics[0]
            if name in rubrics[1] and rubrics[0][name] != rubrics[1][name]
        ]
    return out


def _may(a: Run, b: Run) -> list[Must]:
    one, two = _free(a), _free(b)
    if one["method"] == two["method"]:
        for free, side in ((one, a), (two, b)):
            free |= {f"-M {name}": value for name, value in side.described["memory"]["config"].items()}
    if one["reader"] != two["reader"]:
        one.pop("reader identity"), two.pop("reader identity")  # of two readers it goes without saying
    return _unequal(one, two)


def conditions(side: Run) -> dict[str, str]:
    """What must be equal and is set in a run, in words; of the benchmark's options those not at their default."""
    options = side.summary.get("options") or {}
    shown = {}
    for name, value in _needed(side).items():
        option = name.removeprefix("option ")
        if value not in (None, [], "") and (option == name or option in options):
            shown[name] = _words(value)
    return shown | ({"judge": side.summary["judge"]} if side.summary.get("judge") else {})


def _unequal(one: Mapping[str, Any], two: Mapping[str, Any]) -> list[Must]:
    return [
        Must(key, _words(one.get(key)), _words(two.get(key)))
        for key in dict.fromkeys([*one, *two])
        if one.get(key) != two.get(key)
    ]


def _needed(side: Run) -> dict[str, Any]:
    memory, readout, reply = (side.described[name] for name in ("memory", "readout", "reply"))
    ids = reply["selection"]["ids"]
    return {
        "benchmark": memory["benchmark"],
        "benchmark version": memory["benchmark_version"],
        "data digest": memory["data"],
        "subset": memory["subset"],
        "selection by --limit": reply["selection"]["limit"],
        "selection by --ids": None if ids is None else f"{len(ids)} ids {digest(ids)[:8]}",
        "budget": readout["budget"],
        "items": readout["items"],
        "counters": readout["counters"],
        "view": readout["view"],
        "track": side.described["track"],
        "prompt": reply["prompt"],
        **{f"option {name}": value for name, value in memory["options"].items()},
    }


def _free(side: Run) -> dict[str, Any]:
    memory, reply = side.described["memory"], side.described["reply"]
    return {
        "method": memory["method"],
        "version": memory["version"],
        "reader": side.summary["reader"] if reply["until"] is None else "none",
        "reader identity": reply["answer"],
        "models": side.summary.get("models") or {},
        "embedder": side.summary.get("embedder"),
        "max tokens": reply["sampling"]["max_tokens"],
        "seed": memory["seed"],
    }


def cluster_word(bench: str) -> str:
    """What clusters, as the benchmark's card says it; `cluster` where the benchmark is not installed here."""
    try:
        word: str = find("benchmarks", bench).card.cluster
    except (UserError, AttributeError):
        return "cluster"
    return word.removeprefix("the ") or "cluster"


def _words(value: object) -> str:
    """A value in few words: digests by their beginning, nothing as `none`."""
    if isinstance(value, Mapping):
        text = " ".join(f"{key}={_words(item)}" for key, item in value.items() if item not in ("", None, {}))
    elif isinstance(value, list):
        text = ", ".join(map(_words, value))
    else:
        text = "" if value is None else str(value)
        text = text[:12] if _DIGEST.fullmatch(text) else text
    return text if 0 < len(text) <= WORDS else f"{text[: WORDS - 1]}…" if text else "none"


def _tokens(sums: Mapping[str, Any]) -> float:
    return float(sum(sums.get(kind, 0) for kind in ("text", "image", "output")))


def _add(to: Amounts, more: Mapping[str, float], share: float = 1.0) -> None:
    for name, value in more.items():
        to[name] = to.get(name, 0.0) + value * share
