"""Recomputes GraphMemix's Tables 4, 5 and 6 and Figure 2 from the records of a run.

`python tools/graphmemix_tables.py RUN [RUN2]`: RUN is a run folder of graphmemix with candidates in its records (rows
c, d, e); RUN2 is the same with `-M edges=fixed`, for the other half of Table 6. The tables come first, then Figure 2
as CSV. A gold pair is a question with one of its gold items.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

K = 10  # source top-K of Tables 4 and 5, Hit@K of Table 6


@dataclass(frozen=True)
class Asked:
    """A question as the tables see it.

    Attributes:
        gold: gold items.
        shown: items of the readout, in order; none where the method failed.
        trace: what the method wrote down.
    """

    gold: frozenset[str]
    shown: tuple[str, ...]
    trace: Mapping[str, Any]

    @property
    def direct(self) -> frozenset[str]:
        """Gold among the first K of the prior ranking."""
        return self.gold & {item for item, _ in self.trace["prior"][:K]}

    @property
    def recoverable(self) -> frozenset[str]:
        """Gold that only the candidate graph reaches."""
        return (self.gold & {item for item, _ in self.trace["candidates"]}) - self.direct


def read(run: Path) -> list[Asked]:
    """The questions of a run.

    Raises:
        SystemExit: `run` is no finished run of graphmemix with candidates.
    """
    try:
        gold = {_key(line): line for line in _lines(run / "gold.jsonl") if "question" in line}
        records = list(_lines(run / "records.jsonl"))
    except OSError as error:
        raise SystemExit(f"{run}: not a finished run ({error.strerror}: {Path(error.filename).name})") from None
    asked = [
        Asked(
            frozenset(row[0] for row in gold[_key(record)].get("evidence", ())),
            tuple(dict.fromkeys(row[0] for row in record.get("evidence", ()))),
            record.get("trace", {}),
        )
        for record in records
    ]
    if not any("candidates" in one.trace for one in asked):
        raise SystemExit(f"{run}: no record holds candidates; run graphmemix with row c, d or e")
    return asked


def table4(asked: Sequence[Asked]) -> dict[str, float]:
    """Where gold pairs are, in %: in the source top-K, elsewhere in the candidate graph, or in neither."""
    seen = _traced(asked)
    pairs = sum(len(one.gold) for one in seen)
    direct, recoverable = sum(len(one.direct) for one in seen), sum(len(one.recoverable) for one in seen)
    parts = {"direct": direct, "recoverable": recoverable, "no_access": pairs - direct - recoverable}
    return {name: 100 * part / pairs if pairs else 0.0 for name, part in parts.items()}


def table5(asked: Sequence[Asked]) -> dict[str, float]:
    """Recovery: questions with recoverable gold, those that gained some, and recovered pairs among those retained."""
    seen = _traced(asked)
    gained = [len(one.recoverable & set(one.shown)) for one in seen]
    questions, recovered = sum(bool(one.recoverable) for one in seen), sum(map(bool, gained))
    retained = sum(len(one.gold & set(one.shown)) for one in seen)
    return {
        "recoverable_questions": questions,
        "recovered_questions": recovered,
        "rate": 100 * recovered / questions if questions else 0.0,
        "share": 100 * sum(gained) / retained if retained else 0.0,
    }


def table6(asked: Sequence[Asked]) -> dict[str, float]:
    """Edges and components of the selected forest per question, before pruning, and Hit@K in % over all with gold."""
    forests = [one.trace["forest"] for one in asked if "forest" in one.trace]
    gold = [one for one in asked if one.gold]
    return {
        "edges": fmean(len(forest["edges"]) for forest in forests) if forests else 0.0,
        "components": fmean(forest["components"] for forest in forests) if forests else 0.0,
        f"hit@{K}": 100 * fmean(bool(one.gold & set(one.shown[:K])) for one in gold) if gold else 0.0,
    }


def figure2(asked: Sequence[Asked]) -> Iterator[tuple[str, int, float, float, float, int]]:
    """Rows (panel, step, mean, low, high, n) with 95 % normal intervals over questions.

    Panel a is the rise of J after each accepted swap, panel b the cumulative benefit after each accepted edge; a
    question that has stopped counts with its last value.
    """
    forests = [one.trace["forest"] for one in asked if "forest" in one.trace]
    panels = {
        "a": [[value - forest["climb"][0] for value in forest["climb"]] for forest in forests],
        "b": [[0.0, *forest["gains"]] for forest in forests],
    }
    for panel, courses in panels.items():
        for step in range(max(map(len, courses), default=0)):
            values = [course[min(step, len(course) - 1)] for course in courses]
            mean, n = fmean(values), len(values)
            half = 1.96 * stdev(values) / n**0.5 if n > 1 else 0.0
            yield panel, step, mean, mean - half, mean + half, n


def main(arguments: Sequence[str]) -> int:
    """Print everything; return 0."""
    if not 1 <= len(arguments) <= 2:
        raise SystemExit(__doc__)
    asked = read(Path(arguments[0]))
    rows = [("Table 4", table4(asked)), ("Table 5", table5(asked)), ("Table 6", table6(asked))]
    if len(arguments) == 2:
        rows.append(("Table 6 (RUN2)", table6(read(Path(arguments[1])))))
    for name, row in rows:
        print(f"{name}: " + ", ".join(f"{key} {value:.2f}".removesuffix(".00") for key, value in row.items()))
    print("panel,step,mean,low,high,n")
    for panel, step, mean, low, high, n in figure2(asked):
        print(f"{panel},{step},{mean:.6f},{low:.6f},{high:.6f},{n}")
    return 0


def _traced(asked: Sequence[Asked]) -> list[Asked]:
    return [one for one in asked if one.gold and "candidates" in one.trace]


def _key(line: Mapping[str, Any]) -> tuple[int, int]:
    return line["context_index"], line["index"]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
