"""The file of a baseline: what is written is read back, and what is damaged is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memharness.run import baseline
from memharness.run.baseline import Baseline, Measured, Told, alike, kept
from memharness.run.spec import RunSpec
from memharness.types import Outcome, Status, UserError

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
NAMES = st.text("abcXYZ@_9", min_size=1, max_size=8)
VALUES = st.floats(-3, 3).map(kept)
SCORES = st.dictionaries(NAMES, st.tuples(st.none() | VALUES, st.sampled_from([*Status]).map(str)), max_size=3)
COUNTS = st.dictionaries(st.sampled_from(["text", "output"]), st.integers(1, 10**9), min_size=1)
TOLD = st.builds(
    Told,
    id=NAMES,
    name=TEXT.map(str.strip),
    outcome=st.sampled_from([*Outcome]).map(str),
    answer=st.none() | TEXT,
    scores=SCORES,
    tokens=st.dictionaries(st.sampled_from(["recall", "read"]), COUNTS),
    cluster=TEXT.map(str.strip),
)
RUNS = st.builds(
    Measured,
    spec=st.builds(RunSpec, NAMES, NAMES, limit=st.sampled_from(["4", "2-9", None]), seed=st.integers(0, 9)),
    kind=st.sampled_from(baseline.KINDS),
    delta=st.none() | st.floats(0, 1),
    primary=NAMES,
    data=NAMES,
    versions=st.dictionaries(NAMES, st.integers(0, 9)),
    observed=COUNTS,
    told=st.lists(TOLD, max_size=3, unique_by=lambda told: told.id).map(tuple),
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("baseline") / "b.json"


@settings(max_examples=30, deadline=None)
@given(st.lists(RUNS, max_size=3, unique_by=lambda run: run.key))
def test_what_is_written_is_read_back(file: Path, runs: list[Measured]) -> None:
    made = Baseline("why", "2026-11-30", "1", {"python": "3"}, ("a", "b"), ("dist",), {("m", "b"): "no"}, tuple(runs))
    baseline.write(file, made)
    back = baseline.read(file)
    assert sorted(back.runs, key=lambda run: run.key) == sorted(runs, key=lambda run: run.key)
    assert (back.reason, back.changed, back.holds, back.left_out) == ("why", ("a", "b"), ("dist",), {("m", "b"): "no"})
    before = file.read_bytes()
    baseline.write(file, back)
    assert file.read_bytes() == before


def test_a_question_is_a_line(file: Path) -> None:
    told = tuple(Told(f"q{n}", outcome="ok", answer="two\nlines", scores={"f1": (1 / 3, "ok")}) for n in range(3))
    baseline.write(file, Baseline(runs=(Measured(RunSpec("m", "b"), told=told),)))
    lines = [line for line in file.read_text().splitlines() if '{"id"' in line]
    assert [json.loads(line.strip().rstrip(","))["id"] for line in lines] == ["q0", "q1", "q2"]


def test_half_a_surrogate_pair_is_kept(file: Path) -> None:
    told = (Told("q", outcome="ok", answer="\ud83d é"),)
    baseline.write(file, Baseline(runs=(Measured(RunSpec("m", "b"), told=told),)))
    assert baseline.read(file).runs[0].told == told


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [(0.333333, 0.333334, True), (0.333333, 0.333335, False), (None, None, True), (None, 0.0, False), (1, 1.0, True)],
)
def test_a_unit_of_the_last_decimal_is_no_difference(before: float | None, after: float | None, same: bool) -> None:
    assert alike(before, after) is same


@given(st.floats(-2, 2), st.floats(-1e-9, 1e-9))
def test_the_last_bits_of_another_cpu_are_no_difference(value: float, noise: float) -> None:
    assert alike(kept(value), kept(value + noise))


GOOD: dict[str, Any] = {
    "format": 1,
    "runs": [{"run": {"method": "m", "bench": "b"}, "questions": [{"id": "q1", "scores": {"f1": 1}}]}],
}


def broken(path: str, value: Any) -> dict[str, Any]:
    """The good file with one place changed; `path` is like runs.0.kind."""
    whole: dict[str, Any] = json.loads(json.dumps(GOOD))
    place: Any = whole
    *before, last = [int(word) if word.isdigit() else word for word in path.split(".")]
    for word in before:
        place = place[word]
    place[last] = value
    return whole


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("format", 9, "format: is 9"),
        ("runs", {}, "runs: must be a list"),
        ("runs.0", 3, "run 0: must be a mapping"),
        ("runs.0.run", None, "run 0: run: is missing"),
        ("runs.0.run.method", "", "run 0: run: method: is empty"),
        ("runs.0.run.colour", "red", "unknown key colour"),
        ("runs.0.run.limit", [4], "run 0: run: limit: "),
        ("runs.0.run.out", "x", "out: has no place in a baseline"),
        ("runs.0.kind", "vague", "(m on b): kind: is 'vague', not exact or sampled"),
        ("runs.0.delta", -1, "(m on b): delta: is -1"),
        ("runs.0.questions.0.id", None, "questions 0: id: is missing"),
        ("runs.0.questions.0.outcome", "fine", "questions 0 (q1): outcome: 'fine' is none"),
        ("runs.0.questions.0.scores.f1", "high", 'scores: f1: "high" is no score'),
        ("runs.0.questions.0.scores.f1", [1, "odd"], "scores: f1: 'odd' is no status"),
        ("runs.0.questions.0.tokens", {"read": {"text": 1.5}}, "tokens: read: text: must be a whole number"),
        ("runs.0.questions", [{"id": "q"}, {"id": "q"}], "'q' stands twice"),
        ("runs", [GOOD["runs"][0]] * 2, "stands twice with the same options"),
    ],
)
def test_what_is_damaged_is_named(file: Path, path: str, value: Any, said: str) -> None:
    file.write_text(json.dumps(broken(path, value)))
    with pytest.raises(UserError) as error:
        baseline.read(file)
    assert said in str(error.value)
    assert str(file) in str(error.value)


@pytest.mark.parametrize(("text", "said"), [('{"format": 1,\n"runs": [}', "line 2 column 10"), ("[]", "mapping")])
def test_what_is_no_json_is_named_by_line(file: Path, text: str, said: str) -> None:
    file.write_text(text)
    with pytest.raises(UserError, match=said):
        baseline.read(file)


def test_a_baseline_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no such file.*--update"):
        baseline.read(tmp_path / "none.json")
