"""Which runs can be told apart: groups of ties, and who is not ranked at all."""

from __future__ import annotations

import random
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.report.leaderboard import Standing, boards, standings
from memharness.report.leaderboard.ties import Scored, letters
from memharness.stats import holm, paired
from tests.report.runs import summary

Scores = dict[str, Scored]


def made(*means: float, n: int = 200, clusters: int = 20, seed: int = 0) -> Scores:
    """Scores of runs on the same units, that differ in their mean."""
    rng = random.Random(seed)
    noise = [rng.gauss(0, 0.1) for _ in range(n)]
    return {
        str(at): {
            f"q{unit}": (mean + noise[unit] + rng.gauss(0, 0.02), f"c{unit % clusters}" if clusters else "")
            for unit in range(n)
        }
        for at, mean in enumerate(means)
    }


def stood(scores: Scores, **changes: Any) -> dict[str, Standing]:
    """The standings of runs with these scores; `changes` gives fields by run."""
    runs = []
    for run, found in scores.items():
        change = changes.get(f"run{run}", {})
        mean = None if "scores" in change else sum(value for value, _ in found.values()) / len(found)
        runs.append(summary(mean, run=run, **change))
    return standings(boards(runs), lambda one: scores[one["run"]])


@pytest.mark.parametrize("clusters", [20, 0])
def test_what_differs_is_apart_and_what_does_not_is_tied(clusters: int) -> None:
    found = stood(made(0.5, 0.8, 0.5001, clusters=clusters))
    assert found == {"1": Standing("a"), "0": Standing("b"), "2": Standing("b")}


def test_alike_runs_and_too_few_clusters_are_tied() -> None:
    same = made(0.5)["0"]
    assert stood({"0": same, "1": dict(same)}) == {"0": Standing("a"), "1": Standing("a")}
    assert set(stood(made(0.2, 0.9, clusters=4)).values()) == {Standing("a")}


def test_claims_hold_over_all_pairs() -> None:
    """The groups are those of Holm's correction over every pair of the board."""
    scores = made(0.5, 0.504, 0.508, 0.512, 0.6, n=120, clusters=12, seed=4)
    found = stood(scores)
    order = sorted(scores, key=lambda run: -sum(value for value, _ in scores[run].values()))
    pairs = list(combinations(order, 2))
    tests = []
    for a, b in pairs:
        left, right = ({unit: value for unit, (value, _) in scores[run].items()} for run in (a, b))
        tests.append(paired(left, right, {unit: cluster for unit, (_, cluster) in scores[a].items()}).p)
    apart = {pair for pair, p in zip(pairs, holm(tests), strict=True) if p is not None and p < 0.05}
    assert 0 < len(apart) < len(pairs)
    assert {pair for pair in pairs if not set(found[pair[0]].group) & set(found[pair[1]].group)} == apart


def test_missing_cells_and_controls_and_unfinished_runs_are_not_ranked() -> None:
    scores = made(0.5, 0.6, 0.7, 0.8, 0.9)
    del scores["1"]["q7"], scores["1"]["q8"]
    found = stood(
        scores,
        run2={"control": True},
        run3={"complete": False},
        run4={"scores": {"f1": {"value": None, "n": 0, "n_valid": 0}}},
    )
    assert found["1"] == Standing("", "2 of 200 cells missing")
    assert found["2"].why == "control"
    assert found["3"].why == "incomplete"
    assert found["4"].why == "no primary score"
    assert found["0"].group == "a"


@pytest.mark.parametrize(
    "change",
    [{"budget": 500}, {"items": 3}, {"view": "pixels"}, {"judge": "other"}, {"rubrics": {"Judge": {"rubric": "x"}}}],
)
def test_other_limits_view_and_judge_are_ranked_among_themselves(change: dict[str, Any]) -> None:
    scores = made(0.2, 0.5, 0.8, 0.9)
    found = stood(scores, run0=change, run2=change)
    assert [found[run].group for run in ("2", "0", "3", "1")] == ["a", "b", "a", "b"]
    alone = stood(made(0.2, 0.5), run0=change)
    assert {one.why for one in alone.values()} == {"nothing to compare with"}


@given(st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.sampled_from(
    list(combinations(range(n), 2)) or [(0, 0)])))))  # fmt: skip
def test_runs_share_a_letter_exactly_when_they_are_not_apart(drawn: tuple[int, set[tuple[int, int]]]) -> None:
    n, apart = drawn
    apart = {pair for pair in apart if pair[0] != pair[1]}
    groups = letters(n, sorted(apart))
    assert len(groups) == n
    assert all(groups)
    for a, b in combinations(range(n), 2):
        assert bool(set(groups[a]) & set(groups[b])) == ((a, b) not in apart)
    members = {letter: {run for run in range(n) if letter in groups[run]} for letter in "".join(groups)}
    for one, other in combinations(members.values(), 2):
        assert not one <= other
        assert not other <= one
    for inside in members.values():  # as large as can be
        for run in set(range(n)) - inside:
            assert any((min(run, one), max(run, one)) in apart for one in inside)


def test_groups_past_the_alphabet_have_numbers() -> None:
    groups = letters(28, combinations(range(28), 2))
    assert groups[0] == "a"
    assert groups[25:] == ["z", "(27)", "(28)"]
