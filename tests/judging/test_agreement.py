"""Krippendorff's alpha between judges, and what is said where it is undefined."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.benchmark import ScoreRow
from memharness.run.agreement import agreements, alpha
from memharness.run.judgements import Judgement
from memharness.types import Score, Status


def by_hand(columns: list[list[float | None]], level: str) -> float | None:
    """Alpha from its definition: 1 - observed / expected disagreement over pairable values."""
    units = [[v for v in unit if v is not None] for unit in zip(*columns, strict=True)]
    units = [unit for unit in units if len(unit) > 1]
    values = [value for unit in units for value in unit]
    if len(set(values)) < 2:
        return None

    def far(a: float, b: float) -> float:
        return float(a != b) if level == "nominal" else (a - b) ** 2

    observed = sum(far(a, b) / (len(unit) - 1) for unit in units for a, b in permutations(unit, 2)) / len(values)
    counts = Counter(values)
    pairs = sum(n * m * far(a, b) for a, n in counts.items() for b, m in counts.items())
    return 1 - observed / (pairs / (len(values) * (len(values) - 1)))


def columns(values: list[list[float | None]]) -> list[dict[str, float | None]]:
    """Verdict by question for each judge."""
    return [{f"q{place}": value for place, value in enumerate(column)} for column in values]


def test_judges_that_agree_and_that_contradict_each_other() -> None:
    same = alpha(columns([[1, 0, 1, 0], [1, 0, 1, 0]]), "nominal")
    assert (same["alpha"], same["n"], same["equal"]) == (1, 4, 1)
    opposed = alpha(columns([[1, 0, 1, 0], [0, 1, 0, 1]]), "nominal")
    assert opposed["alpha"] == pytest.approx(-0.75)
    assert opposed["equal"] == 0


def test_only_questions_that_both_gave_a_verdict_on_count() -> None:
    found = alpha(columns([[1, 0, None, 1], [1, None, 0, 0]]), "nominal")
    assert found["n"] == 2
    assert found["alpha"] == pytest.approx(by_hand([[1, 1], [1, 0]], "nominal"))


def test_near_misses_weigh_less_on_an_interval_scale() -> None:
    near = columns([[0, 0.25, 1, 0.75], [0.25, 0.25, 1, 1]])
    assert alpha(near, "interval")["alpha"] > 0.8 > alpha(near, "nominal")["alpha"]  # type: ignore[operator]


def test_labels_are_nominal() -> None:
    said = [{"a": "co", "b": "in", "c": "na"}, {"a": "co", "b": "in", "c": "in"}]
    assert alpha(said, "nominal")["alpha"] == pytest.approx(by_hand([[0, 1, 2], [0, 1, 1]], "nominal"))


@pytest.mark.parametrize(
    ("values", "note"),
    [
        ([[1, 1], [1, 1]], "every verdict is 1.0: alpha is undefined where nothing varies"),
        ([[1, None], [None, 1]], "no question has verdicts of two judges"),
        ([[], []], "no question has verdicts of two judges"),
    ],
)
def test_where_alpha_is_undefined_it_says_why(values: list[list[float | None]], note: str) -> None:
    found = alpha(columns([[None if v is None else float(v) for v in column] for column in values]), "nominal")
    assert (found["alpha"], found["note"]) == (None, note)


@given(
    st.integers(2, 3).flatmap(
        lambda judges: st.lists(
            st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, None]), min_size=judges, max_size=judges),
            min_size=1,
            max_size=20,
        )
    ),
    st.sampled_from(["nominal", "interval"]),
)
def test_alpha_is_as_defined(units: list[list[float | None]], level: str) -> None:
    said = [list(column) for column in zip(*units, strict=True)]
    found, expected = alpha(columns(said), level)["alpha"], by_hand(said, level)
    assert found == (None if expected is None else pytest.approx(expected, abs=1e-9))


# ------------------------------------------------------------------------------------------------------------ a run's


def judgement(judge: str, verdicts: list[float | None], rubric: str = "binary.v1", sha: str = "1") -> Judgement:
    """A judgement; None is a judge error, and the last question was settled without a call."""
    head: dict[str, Any] = {
        "judge": judge, "metric": f"Judge(rubric={rubric})", "rubric": {"rubric": rubric, "sha256": sha},
        "names": ["judge"], "level": "nominal",
    }  # fmt: skip
    rows = [
        ScoreRow(
            f"q{n}", "c", "ab"[n % 2], "", extra={"replies": {"Judge": ["x", "stop"]}},
            scores={"judge": Score(None, Status.JUDGE_ERROR) if value is None else Score(value)},
        )
        for n, value in enumerate(verdicts)
    ]  # fmt: skip
    return Judgement(Path(judge), head, [*rows, ScoreRow("empty", "c", "a", "", {"judge": Score(0.0)})])


def test_each_pair_of_judges_of_a_rubric_and_all_of_them() -> None:
    found = agreements(
        [
            judgement("a", [1, 0, 1, None]),
            judgement("b", [1, 0, 0, 1]),
            judgement("c", [1, 0, 1, 1]),
            judgement("a", [1, 0, 1, 1], rubric="other.v1"),
            judgement("a", [1, 0, 1, 1], sha="2"),
        ]
    )
    assert [one["judges"] for one in found] == [["a", "b"], ["a", "c"], ["b", "c"], ["a", "b", "c"]]
    first = found[0]
    assert (first["n"], first["unparsed"], first["level"]) == (3, [1, 0], "nominal")
    assert {name: one["n"] for name, one in first["categories"].items()} == {"a": 2, "b": 1}
    assert first["alpha"] == pytest.approx(by_hand([[1, 0, 1], [1, 0, 0]], "nominal"))
    assert found[3]["n"] == 4
