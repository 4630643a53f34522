"""How far judges agree on a run: Krippendorff's alpha over the questions that they both gave a verdict on.

Alpha is 1 for perfect agreement and 0 for what chance would give. Verdicts of binary and label rubrics are taken as
nominal; graded ones at the level that the rubric states, which is interval for levels whose mean is reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from memharness.run.judgements import Judgement

Verdicts = Mapping[str, float | str | None]


def agreements(judgements: Sequence[Judgement]) -> list[dict[str, Any]]:
    """For every rubric, each pair of its judges, and all of them where there are more than two."""
    by_rubric: dict[tuple[str, str], list[Judgement]] = {}
    for one in judgements:
        by_rubric.setdefault((one.head["metric"], one.head["rubric"].get("sha256", "")), []).append(one)
    out = []
    for members in by_rubric.values():
        groups = [*combinations(members, 2), *([tuple(members)] if len(members) > 2 else [])]
        out += [_agreement(group) for group in groups]
    return out


def _agreement(group: Sequence[Judgement]) -> dict[str, Any]:
    head = group[0].head
    said = [one.verdicts() for one in group]
    category = {row.unit: row.category for row in group[0].rows}
    categories = sorted(set(category.values()) - {""})

    def within(name: str) -> list[Verdicts]:
        return [{unit: verdict for unit, verdict in one.items() if category.get(unit) == name} for one in said]

    return {
        "rubric": head["rubric"]["rubric"],
        "metric": head["metric"],
        "judges": [one.head["judge"] for one in group],
        "level": head["level"],
        **alpha(said, head["level"]),
        "unparsed": [one.errors() for one in group],
        "categories": {name: alpha(within(name), head["level"]) for name in categories},
    }


def alpha(columns: Sequence[Verdicts], level: Any) -> dict[str, Any]:
    """Krippendorff's alpha of several judges.

    Args:
        columns: verdict by question, a mapping a judge; None where there was none.
        level: `nominal`, `ordinal` or `interval`.

    Returns:
        `alpha` (None where it is undefined, and then `note` says why), `n` (questions on which at least two gave a
        verdict) and `equal` (the share of these on which all verdicts are the same).
    """
    import krippendorff
    import numpy as np

    units = list(dict.fromkeys(unit for column in columns for unit in column))
    said = [[column.get(unit) for column in columns] for unit in units]
    shared = [verdicts for verdicts in said if sum(verdict is not None for verdict in verdicts) > 1]
    found: dict[str, Any] = {"alpha": None, "n": len(shared), "equal": None}
    if not shared:
        return found | {"note": "no question has verdicts of two judges"}
    found["equal"] = sum(len(set(verdicts) - {None}) == 1 for verdicts in shared) / len(shared)
    known = sorted({verdict for verdicts in shared for verdict in verdicts if verdict is not None}, key=str)
    if len(known) == 1:
        return found | {"note": f"every verdict is {known[0]}: alpha is undefined where nothing varies"}
    code = {verdict: place if isinstance(verdict, str) else verdict for place, verdict in enumerate(known)}
    table = [[np.nan if verdict is None else code[verdict] for verdict in verdicts] for verdicts in shared]
    return found | {"alpha": float(krippendorff.alpha(np.transpose(table), level_of_measurement=level))}
