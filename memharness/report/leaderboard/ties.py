"""Which runs can be told apart: paired differences on the questions that both answered, and groups of ties.

Two runs of a board are tied unless the difference of their primary scores is shown at 95 %, after Holm's correction
over all pairs of the board that may be compared. A group is a set of runs that are all tied with each other, as large
as can be; a run may stand in several, which is written as several letters (Piepho 2004, the insert-and-absorb form).
So `a` and `ab` are tied, `ab` and `b` are tied, and `a` and `b` are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from memharness.report.leaderboard.boards import Board, Entry, conditions, lead
from memharness.report.tables import Summary
from memharness.run.folder import RunFolder
from memharness.run.score import rows as score_rows
from memharness.stats import holm, paired
from memharness.types import Status

LEVEL = 0.05
LETTERS = "abcdefghijklmnopqrstuvwxyz"

Scored = dict[str, tuple[float, str]]  # unit -> (the primary score, 0 where it failed; its cluster)
Load = Callable[[Summary], Scored]


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a run stands among those it may be compared with.

    Attributes:
        group: its tie groups as letters, `a` the group of the best; empty where it is not ranked.
        why: why it is not ranked, else empty.
    """

    group: str
    why: str = ""


def standings(made: Iterable[Board], load: Load | None = None) -> dict[str, Standing]:
    """The standing of every run of these boards, by run.

    Controls, runs that did not finish every question, and runs that lack a question which others of their table have
    are not ranked, and say so. Runs of other limits, view or judge are ranked among themselves.

    Args:
        made: the boards.
        load: gives a run's primary scores by unit; default from the run's `scores.jsonl`.

    Raises:
        DataError: a run's scores are missing or damaged.
    """
    out: dict[str, Standing] = {}
    for board in made:
        groups: dict[tuple[object, ...], list[Entry]] = {}
        for entry in board.entries:
            if why := _excluded(entry):
                out[entry.summary["run"]] = Standing("", why)
            else:
                groups.setdefault(conditions(entry.summary), []).append(entry)
        for members in groups.values():
            out |= _ranked([entry.summary for entry in members], load or scored)
    return out


def _excluded(entry: Entry) -> str:
    if entry.marks:
        return entry.marks[0]
    return "" if lead(entry.summary).get("value") is not None else "no primary score"


def scored(summary: Summary) -> Scored:
    """A run's primary score of every unit that it applies to, and the unit's cluster; what failed counts 0."""
    name = summary["primary"]
    return {
        row.unit: (row.scores[name].value or 0.0, row.cluster)
        for row in score_rows(RunFolder(Path(summary["run"])))
        if name in row.scores and row.scores[name].status is not Status.NOT_APPLICABLE
    }


def _ranked(members: Sequence[Summary], load: Load) -> dict[str, Standing]:
    if len(members) == 1:
        return {members[0]["run"]: Standing("", "nothing to compare with")}
    values = [load(summary) for summary in members]
    units = set().union(*values)
    whole = [at for at, found in enumerate(values) if len(found) == len(units)]
    out = {
        summary["run"]: Standing("", f"{len(units) - len(found):,} of {len(units):,} cells missing")
        for summary, found in zip(members, values, strict=True)
        if len(found) < len(units)
    }
    pairs = list(combinations(range(len(whole)), 2))
    tests = holm([_p(values[whole[a]], values[whole[b]]) for a, b in pairs])
    apart = [pair for pair, p in zip(pairs, tests, strict=True) if p is not None and p < LEVEL]
    for at, groups in zip(whole, letters(len(whole), apart), strict=True):
        out[members[at]["run"]] = Standing(groups)
    return out


def _p(a: Scored, b: Scored) -> float | None:
    clusters = {unit: cluster for unit, (_, cluster) in a.items()}
    known = clusters if any(clusters.values()) else None
    left, right = ({unit: value for unit, (value, _) in one.items()} for one in (a, b))
    return paired(left, right, known).p


def letters(n: int, apart: Iterable[tuple[int, int]]) -> list[str]:
    """The tie groups of n runs, best first, as letters; `apart` are the pairs shown to differ."""
    groups = [frozenset(range(n))]
    for a, b in apart:
        split = [
            part for group in groups for part in ((group - {a}, group - {b}) if {a, b} <= group else (group,)) if part
        ]
        groups = [group for at, group in enumerate(split) if not any(
            group < other or (group == other and at > place) for place, other in enumerate(split)
        )]  # fmt: skip
    named = [(_letter(at), group) for at, group in enumerate(sorted(groups, key=sorted))]
    return ["".join(letter for letter, group in named if run in group) for run in range(n)]


def _letter(at: int) -> str:
    """The letter of a group; past the alphabet its number, as (27)."""
    return LETTERS[at] if at < len(LETTERS) else f"({at + 1})"
