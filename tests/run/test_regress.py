"""The gate: exact runs hold or are named, sampled ones by δ, and what is new is named."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memharness.registry import Entry
from memharness.run import baseline, regress
from memharness.run.baseline import Baseline, Measured, Told
from memharness.run.regress import NEW, Report, check, compare, update
from memharness.run.spec import RunSpec
from memharness.types import UserError
from tests.run.harness import TOYS, toy

REASON = "to have one"


def told(*_: Any) -> None:
    """Nobody listens."""


def plan(path: Path, **more: Any) -> Path:
    """A baseline of one run of toys, not measured yet."""
    spec = RunSpec(toy("Everything"), toy("Numbers"), reader=toy("Toy"))
    baseline.write(path, Baseline(runs=(Measured(replace(spec, **more)),)))
    return path


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    """A measured baseline of one run."""
    path = plan(tmp_path / "b.json")
    update(path, REASON, (), None, told)
    return path


def edited(path: Path, change: Callable[[list[dict[str, Any]]], Any]) -> Path:
    """The baseline with its questions changed by hand."""
    value = json.loads(path.read_text())
    change(value["runs"][0]["questions"])
    path.write_text(json.dumps(value))
    return path


def test_a_run_that_is_as_it_was_holds(measured: Path) -> None:
    report = check(measured, (), None, told)
    assert report.held
    assert report.verdicts[0].n == 6
    kept = baseline.read(measured)
    assert kept.reason == REASON
    assert kept.changed == ("taken in: Everything on Numbers",)
    assert {"python", "numpy"} <= set(kept.versions)
    assert kept.runs[0].primary == "right"
    names = {name for one in kept.runs[0].told for name in one.scores}
    assert names == {"right", "found", "all_right"}  # those of groups too
    assert kept.runs[0].told[0].tokens["read"]["output"] == 2


def test_updating_what_holds_writes_nothing(measured: Path) -> None:
    before = measured.read_bytes()
    _, written = update(measured, "again", (), None, told)
    assert not written
    assert measured.read_bytes() == before


def test_a_lower_score_slips_and_names_question_and_answers(measured: Path) -> None:
    def better_before(questions: list[dict[str, Any]]) -> None:
        questions[0] |= {"answer": "other words"}
        questions[1]["scores"]["right"] = 2

    (verdict,) = check(edited(measured, better_before), (), None, told).verdicts
    assert not verdict.held
    assert verdict.slipped
    assert [figure.name for figure in verdict.figures] == ["right"]
    assert verdict.figures[0].change == pytest.approx(-1 / 6)
    worst, other = verdict.changed
    assert worst.name == "c0/1"
    assert worst.what == {"right": (2.0, 1.0)}
    assert other.what == {"answer": ("other words", "c0-0")}


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda q: q[0]["scores"].update(right=0), ("right", 0.0, 1.0)),  # better is a difference too
        (lambda q: q[0]["scores"].pop("found"), ("found", "not applicable", 1.0)),
        (lambda q: q[0]["scores"].update(right=[1, "unparsed"]), ("right", "unparsed", 1.0)),
        (lambda q: q[0]["tokens"]["read"].update(output=3), ("read output", 3, 2)),
        (lambda q: q[0].update(outcome="refused"), ("outcome", "refused", "ok")),
        (lambda q: q.pop(0), ("outcome", "not asked", "ok")),
        (lambda q: q.append({"id": "gone", "outcome": "ok"}), ("outcome", "ok", "not asked")),
    ],
)
def test_every_difference_of_an_exact_run_is_one(measured: Path, change: Any, what: tuple[str, Any, Any]) -> None:
    (verdict,) = check(edited(measured, change), (), None, told).verdicts
    assert not verdict.held
    assert not verdict.slipped
    assert verdict.changed[0].what[what[0]] == what[1:]


def test_what_explains_a_difference_is_noted(measured: Path) -> None:
    value = json.loads(measured.read_text())
    value["runs"][0] |= {"data": "0123", "versions": {"method": 0, "bench": 1}, "observed": {"text": 5}}
    measured.write_text(json.dumps(value))
    (verdict,) = check(measured, (), None, told).verdicts
    assert not verdict.held
    assert verdict.notes == (
        "observing costs otherwise: text 5 → 0",
        "its data are not those of the baseline",
        f"{TOYS}:Everything is of version 1; the baseline's was 0",
    )


def test_a_run_that_fails_is_a_difference_and_no_baseline(tmp_path: Path, measured: Path) -> None:
    text = measured.read_text().replace(":Everything", ":Nothing")
    measured.write_text(text)
    (verdict,) = check(measured, (), None, told).verdicts
    assert verdict.problem.startswith("does not run: ")
    assert "Nothing" in verdict.problem
    with pytest.raises(UserError, match=r"take the run out of .* by hand"):
        update(measured, REASON, (), None, told)
    assert measured.read_text() == text


def test_errors_of_questions_are_kept_as_outcomes(tmp_path: Path, measured: Path) -> None:
    def wrong(questions: list[dict[str, Any]]) -> None:
        questions[0]["outcome"] = "ok"

    path = plan(tmp_path / "failing.json", reader_options={"fail_on": "What is word 0"})
    update(path, REASON, (), None, told)
    assert check(path, (), None, told).held
    (verdict,) = check(edited(path, wrong), (), None, told).verdicts
    assert verdict.changed[0].what["outcome"] == ("ok", "reader_error")


def test_an_update_says_what_it_changed(measured: Path) -> None:
    edited(measured, lambda questions: questions[1]["scores"].update(right=0))
    _, written = update(measured, "it got better", (), None, told)
    assert written
    assert baseline.read(measured).changed == ("Everything on Numbers: 1 of 6 questions differ; right 0.8333 → 1",)
    assert check(measured, (), None, told).held


@pytest.mark.parametrize("reason", ["", "  "])
def test_an_update_needs_a_reason(measured: Path, reason: str) -> None:
    with pytest.raises(UserError, match="--reason"):
        update(measured, reason, (), None, told)


# ------------------------------------------------------------------------------------------------------------- sampled


def sampled(values: Sequence[float], clusters: int = 12, delta: float = 0.05) -> Measured:
    lines = [
        Told(f"q{n}", outcome="ok", scores={"f1": (value, "ok")}, cluster=f"c{n % clusters}")
        for n, value in enumerate(values)
    ]
    return Measured(RunSpec("m", "b"), "sampled", delta, "f1", told=tuple(lines))


RIGHT = [float(n % 3 > 0) for n in range(600)]


def test_a_sampled_run_may_change_within_delta() -> None:
    after = [1 - value if n in (7, 8) else value for n, value in enumerate(RIGHT)]
    verdict = compare(sampled(RIGHT), sampled(after), None)
    assert verdict.held
    assert verdict.delta == 0.05
    assert verdict.figures[0].lower is not None
    assert -0.05 < verdict.figures[0].lower < 0
    assert not verdict.changed


def test_a_sampled_run_that_loses_delta_does_not_hold() -> None:
    after = [0.0 if n % 10 == 1 else value for n, value in enumerate(RIGHT)]
    verdict = compare(sampled(RIGHT), sampled(after), None)
    assert not verdict.held
    assert verdict.slipped
    assert verdict.problem == "f1 may be lower by 0.05 or more"
    assert all(one.what["f1"] == (1.0, 0.0) for one in verdict.changed)
    assert compare(sampled(RIGHT), sampled(after), 0.5).held  # δ given in place of the baseline's own


def test_a_sampled_run_with_too_few_clusters_proves_nothing() -> None:
    after = [1 - value if n == 7 else value for n, value in enumerate(RIGHT)]
    verdict = compare(sampled(RIGHT, clusters=5), sampled(after, clusters=5), None)
    assert not verdict.held
    assert "no bound can be given" in verdict.problem
    assert compare(sampled(RIGHT, clusters=5), sampled(RIGHT, clusters=5), None).held  # nothing changed: nothing lost


def test_a_failure_counts_0_and_a_missing_question_is_named() -> None:
    failed = (*sampled(RIGHT).told[:-1], Told("q599", outcome="timeout", scores={"f1": (None, "ok")}, cluster="c11"))
    after = replace(sampled(RIGHT), told=failed)
    assert compare(sampled(RIGHT), after, None).figures[0].change == pytest.approx(-1 / 600)
    after = replace(sampled(RIGHT), told=failed[:-1])
    assert "1 questions have no partner, the first is q599" in compare(sampled(RIGHT), after, None).problem


def test_delta_is_written_down_when_a_sampled_baseline_is(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    run = Measured(RunSpec(toy("Everything"), toy("Numbers"), reader=toy("Toy")), "sampled")
    baseline.write(path, Baseline(runs=(run,)))
    update(path, REASON, (), None, told)
    assert baseline.read(path).runs[0].delta == regress.DELTA
    assert {one.cluster for one in baseline.read(path).runs[0].told} == {"c0", "c1"}
    update(path, REASON, (), 0.1, told)
    assert baseline.read(path).runs[0].delta == 0.1
    (verdict,) = check(path, (), None, told).verdicts
    assert (verdict.held, verdict.delta) == (True, 0.1)


# -------------------------------------------------------------------------------------------------- what is registered


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Entry]]:
    """A registry of toys under names; tests add to it."""
    found = {
        "methods": {"all": Entry("methods", "all", toy("Everything"), "ours")},
        "benchmarks": {"numbers": Entry("benchmarks", "numbers", toy("Numbers"), "ours")},
    }
    monkeypatch.setattr(regress, "entries", found.__getitem__)
    monkeypatch.setattr("memharness.registry.entries", lambda kind: found.get(kind, {}))
    monkeypatch.setattr(regress, "READER", toy("Toy"))
    monkeypatch.setattr(regress, "LIMIT", "2")
    return found


def names(report: Report, problem: str) -> list[str]:
    return [verdict.title for verdict in report.verdicts if verdict.problem == problem]


def test_the_first_baseline_holds_everything_and_names_what_is_new(tmp_path: Path, registry: Any) -> None:
    path = tmp_path / "b.json"
    update(path, REASON, (), None, told)
    made = baseline.read(path)
    assert made.holds == ("ours",)
    assert [run.title for run in made.runs] == ["all on numbers"]
    assert check(path, (), None, told).held
    registry["methods"]["another"] = Entry("methods", "another", toy("Everything"), "ours")
    registry["methods"]["foreign"] = Entry("methods", "foreign", toy("Everything"), "theirs")
    registry["benchmarks"]["halls"] = Entry("benchmarks", "halls", toy("Corridor"), "ours")
    report = check(path, (), None, told)
    assert not report.held
    assert names(report, NEW) == ["all on halls", "another on numbers", "another on halls"]  # not what others brought
    assert names(check(path, ["another"], None, told), NEW) == ["another on numbers", "another on halls"]
    update(path, "two more", [":numbers"], None, told)
    assert [run.title for run in baseline.read(path).runs] == ["all on numbers", "another on numbers"]
    update(path, "all of it", (), None, told)
    assert check(path, (), None, told).held
    del registry["methods"]["another"]
    assert "does not run" in "".join(verdict.problem for verdict in check(path, (), None, told).verdicts)
    report, written = update(path, "one fewer", (), None, told)
    assert written
    assert {run.spec.method for run in baseline.read(path).runs} == {"all"}


def test_a_pair_that_cannot_run_is_left_out_with_the_reason(tmp_path: Path, registry: Any) -> None:
    path = tmp_path / "b.json"
    registry["methods"]["seer"] = Entry("methods", "seer", f"{Path(__file__).parent / 'seer.py'}:Seer", "ours")
    report, _ = update(path, REASON, (), None, told)
    made = baseline.read(path)
    assert [run.title for run in made.runs] == ["all on numbers"]
    assert made.left_out == report.left_out
    assert "needs a reader with the capability image" in made.left_out["seer", "numbers"]
    assert check(path, (), None, told).held
    registry["methods"]["seer"] = registry["methods"]["all"]  # now it can
    assert check(path, (), None, told).held
    update(path, "it can", (), None, told)
    assert [run.title for run in baseline.read(path).runs] == ["all on numbers", "seer on numbers"]
    assert not baseline.read(path).left_out


def test_a_run_of_which_no_question_is_answered_is_none(tmp_path: Path, registry: Any) -> None:
    path = tmp_path / "b.json"
    spec = RunSpec(toy("Everything"), toy("Numbers"), reader=toy("Toy"), reader_options={"fail_on": "What is"})
    baseline.write(path, Baseline(runs=(Measured(spec),)))
    (verdict,) = check(path, (), None, told).verdicts
    assert verdict.problem.startswith("does not run: no question was answered: reader_error: ")


def test_only_names_something(measured: Path) -> None:
    with pytest.raises(UserError, match=r"--only gaphmemix: names no run \(did you mean graphmemix\?\)"):
        check(measured, ["gaphmemix"], None, told)


def test_hosted_models_need_a_limit(tmp_path: Path) -> None:
    path = plan(tmp_path / "b.json", reader="openai:gpt-x")
    with pytest.raises(UserError, match="costs money; state max_cost"):
        update(path, REASON, (), None, told)
