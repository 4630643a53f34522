"""A judge at work: one call a batch, by schema where it can be, and no reply that is a failure becomes a score."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from memharness.benchmark import ScoreRow
from memharness.judging import Judge
from memharness.ledger import Call
from memharness.run.asking import Asker, Bill, judges
from memharness.run.score import scored
from memharness.types import Asked, Outcome, Status, Usage, UserError
from tests.judging import judges as rules

Make = Callable[..., Asked]
JUDGES = Path(rules.__file__)


def spec(name: str) -> str:
    """The class path of a judge."""
    return f"{JUDGES}:{name}"


def kind(name: str) -> Any:
    """The class of a judge as a spec loads it."""
    from memharness.registry import find

    return find("readers", spec(name))


def judge(
    out: Path, name: str, metric: Judge, units: Sequence[Asked], **how: Any
) -> tuple[list[ScoreRow], list[Call], Bill]:
    """Rows of a judge's verdicts, its calls and its bill."""
    calls: list[Call] = []
    bill = Bill(calls.append)

    async def go() -> list[ScoreRow]:
        async with judges([spec(name)], out, bill.add, **how) as found:
            return [row async for row in scored(lambda: units, [metric], Asker(found[spec(name)]))]

    return asyncio.run(go()), calls, bill


def test_a_second_judging_makes_no_call(asked: Make, tmp_path: Path) -> None:
    units = [asked("7 May 2023", name="q1"), asked("in May", name="q2"), asked("", name="q3")]
    first, _, bill = judge(tmp_path, "Perfect", Judge(), units)
    assert [row.scores["judge"].value for row in first] == [1, 0, 0]
    assert (bill.calls, bill.new) == (2, 2), "the empty answer needs none"
    before = kind("Perfect").calls
    again, _, bill = judge(tmp_path, "Perfect", Judge(), units)
    assert again == first
    assert (bill.calls, bill.new) == (2, 0)
    assert kind("Perfect").calls == before
    _, _, bill = judge(tmp_path, "Perfect", Judge("locomo-strict.v1"), units)
    assert bill.new == 2, "another rubric is another question"


def test_equal_answers_to_one_question_are_asked_once(asked: Make, tmp_path: Path) -> None:
    _, _, bill = judge(tmp_path, "Yes", Judge(), [asked(name="q1"), asked(name="q2")])
    assert (bill.calls, bill.new) == (2, 1)


@pytest.mark.parametrize("name", ["binary.v1", "atm.v1", "memeye.v1", "h2hmem.v1", "simplevqa.v1", "locomo-strict.v1"])
def test_a_judge_that_can_is_held_to_the_schema(asked: Make, tmp_path: Path, name: str) -> None:
    units = [asked("7 May 2023", name="a1"), asked("in May", name="b2")]
    rows, _, _ = judge(tmp_path, "Schema", Judge(name), units)
    leading = Judge(name).names[0]
    assert [row.scores[leading].value for row in rows] == [1, 0]


def test_one_call_a_group_and_failures_are_left_out_of_it(asked: Make, tmp_path: Path) -> None:
    units = [
        asked("7 May 2023", name="a1", group="s1"),
        asked("in May", name="a2", group="s2"),
        asked("in May", name="a3", group="s1"),
        asked(None, name="a4", group="s1", outcome=Outcome.READER_ERROR),
        asked("", name="a5", group="s1"),
        asked("7 May 2023", name="a6", group="s1", context=1),
        asked("7 May 2023", name="a7", context=1),
        asked(None, name="a8", group="s9", outcome=Outcome.TIMEOUT, context=1),
    ]
    kind("Schema").asked.clear()
    rows, calls, _ = judge(tmp_path, "Schema", Judge("h2hmem.v1"), units)
    assert len(calls) == 4
    assert {call.phase for call in calls} == {"judge"}
    shown = [[name for name in (f"a{n}" for n in range(1, 9)) if f"question_id: {name}" in str(request)]
             for request in kind("Schema").asked]  # fmt: skip
    assert sorted(shown) == [["a1", "a3"], ["a2"], ["a6"], ["a7"]]
    assert [row.scores["judge_h2hmem"].value for row in rows] == [1, 0, 0, None, 0, 1, 1, None]
    assert (rows[3].failed, rows[7].failed) == ("reader_error", "timeout")
    assert rows[3].scores["judge_h2hmem"].status is Status.OK, "a failure of the reader is not the judge's"


@pytest.mark.parametrize("name", ["binary.v1", "h2hmem.v1", "simplevqa.v1"])
@pytest.mark.parametrize(
    ("script", "note"),
    [("refuse", "the judge refused: CORRECT"), ("window", "too long"), ("error", "the judge is down")],
)
def test_a_judge_that_fails_gives_no_score(
    asked: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, script: str, note: str
) -> None:
    monkeypatch.setenv("MEMHARNESS_TEST_SCRIPT", script)
    rows, _, _ = judge(tmp_path, "Scripted", Judge(name), [asked(), asked("7 May 2023", name="q2")])
    found = [score for row in rows for score in row.scores.values()]
    assert {(score.value, score.status) for score in found} == {(None, Status.JUDGE_ERROR)}
    assert all(note in score.note for score in found)
    assert all("replies" not in row.extra for row in rows)


def test_a_judge_that_is_too_slow_gives_no_score(asked: Make, tmp_path: Path) -> None:
    rows, calls, _ = judge(tmp_path, "Slow", Judge(), [asked()], timeout=0.01)
    assert rows[0].scores["judge"].status is Status.JUDGE_ERROR
    assert "no reply in 0.01 s" in rows[0].scores["judge"].note
    assert [call.status for call in calls] == ["timeout"]


def test_a_hosted_judge_needs_a_limit_before_anything_is_asked(asked: Make, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Hosted: calls cost money; give --max-cost USD"):
        judge(tmp_path, "Hosted", Judge(), [asked()])
    units = [asked(f"in May {n}", name=f"q{n}") for n in range(40)]
    with pytest.raises(UserError, match=r"--max-cost 1e-09: .* USD are spent"):
        judge(tmp_path, "Hosted", Judge(), units, max_cost=1e-9)


def test_a_bill_counts_each_call_once_and_what_was_really_bought() -> None:
    lines: list[Call] = []
    bill = Bill(lines.append)
    call = {"kind": "generate", "phase": "judge", "role": "judge", "model": "m", "context": "", "question": None}
    usage = Usage(text=10, output=2)
    bill.add(Call(**call, attempt=1, usage=usage, price=0.5))
    bill.add(Call(**call, attempt=1, usage=usage, price=0.5, hit=True))
    bill.add(Call(**call, attempt=1, usage=Usage(), status="ReaderError", price=0.0))
    assert bill.line() == {
        "calls": 2, "new": 2, "tokens": {"text": 20, "image": 0, "output": 4}, "price": 1.0,
    }  # fmt: skip
    bill.add(Call(**call, attempt=1, usage=usage, price=None))
    assert bill.line()["price"] is None
    assert len(lines) == 4
