"""The figures of a calibration: judges of known worth get the verdict that they deserve."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.judging.bank import KINDS, RIGHT, SPECIFIC, VAGUE, Known, chosen, read_bank
from memharness.run.calibrate import Verdict, calibrate, figures
from memharness.run.progress import Quiet
from memharness.stats import interval
from tests.judging.test_asking import kind, spec

Rule = Callable[[str, int], bool | None]


def verdicts(rule: Rule, questions: int = 60, conversations: int = 0, kinds: tuple[str, ...] = KINDS) -> list[Verdict]:
    """What a judge says by a rule on (kind, question)."""
    out = []
    for n in range(questions):
        conversation = f"c{n % conversations}" if conversations else ""
        for worth in kinds:
            known = Known(f"q{n}", "?", ("g",), worth, worth, ("even", "odd")[n % 2], conversation)
            out.append(Verdict(known, rule(worth, n), None))
    return out


def test_a_judge_that_always_says_yes_is_useless() -> None:
    for conversations in (0, 10):
        found = figures(verdicts(lambda kind, n: True, conversations=conversations))
        assert found["kinds"][RIGHT]["value"] == 0
        assert [found["kinds"][kind]["value"] for kind in (SPECIFIC, VAGUE)] == [1, 1]
        assert [one["value"] for one in found["youden"].values()] == [0, 0, 0]
        assert found["youden"]["all wrong"]["balanced_accuracy"] == 0.5
        assert found["verdict"]["word"] == "useless"
        assert "no better than a constant: it accepts every answer" in found["verdict"]["text"]
        assert "false accept 100 %" in found["verdict"]["text"]


def test_so_is_one_that_always_says_no_and_one_that_says_nothing() -> None:
    found = figures(verdicts(lambda kind, n: False))["verdict"]
    assert found == {
        "word": "useless",
        "text": "no better than a constant: it accepts no answer, right or wrong (false reject 100 %)",
    }
    silent = figures(verdicts(lambda kind, n: None))
    assert silent["verdict"] == {"word": "useless", "text": "no verdict could be read on 100 % of the answers"}
    assert silent["judge_error"] == {"n": 180, "share": 1}
    assert silent["kinds"][VAGUE] | {"note": ""} == silent["kinds"][VAGUE] | {"n": 0, "value": None, "note": ""}


def test_and_one_that_tosses_a_coin_or_is_always_wrong() -> None:
    toss = random.Random(7)
    coin = figures(verdicts(lambda kind, n: toss.random() < 0.5, questions=200))
    assert coin["verdict"]["word"] == "useless"
    assert "Youden's J" in coin["verdict"]["text"]
    inverted = figures(verdicts(lambda kind, n: (kind != RIGHT) != (n % 9 == 0)))
    assert inverted["youden"]["all wrong"]["value"] < 0
    assert inverted["verdict"]["word"] == "useless"


def test_a_good_judge_is_useful() -> None:
    found = figures(verdicts(lambda kind, n: (kind == RIGHT) != (n % 20 == 0), conversations=10))
    assert found["verdict"]["word"] == "useful"
    assert "better than a constant: Youden's J 0.90 against wrong-specific" in found["verdict"]["text"]


def test_a_judge_that_lets_vague_answers_pass_is_said_to_be_blind_to_them() -> None:
    found = figures(verdicts(lambda kind, n: kind != SPECIFIC or n % 30 == 0))
    assert found["kinds"][SPECIFIC]["value"] == pytest.approx(1 / 30)
    assert found["kinds"][VAGUE]["value"] == 1
    assert found["verdict"]["word"] == "partly useful"
    assert "does not tell wrong-vague answers from right ones" in found["verdict"]["text"]


def test_a_judge_that_often_gives_no_verdict_is_said_to() -> None:
    found = figures(verdicts(lambda kind, n: None if n % 4 == 0 else (kind == RIGHT) != (n % 20 == 1)))
    assert found["verdict"]["word"] == "partly useful"
    assert "no verdict on 25 % of the answers" in found["verdict"]["text"]
    assert found["kinds"][RIGHT]["judge_error"] == 15
    assert found["kinds"][RIGHT]["n"] == 45


def test_a_bank_with_one_side_measures_nothing_and_a_small_one_shows_nothing() -> None:
    for kinds, lacking in (((RIGHT,), "wrong"), ((SPECIFIC, VAGUE), "right")):
        found = figures(verdicts(lambda kind, n: n % 2 == 0, kinds=kinds))
        assert found["verdict"] == {"word": "not measured", "text": f"the banks hold no {lacking} answers"}
    found = figures(verdicts(lambda kind, n: (kind == RIGHT) != (n == 0), questions=30, conversations=3))
    assert found["verdict"]["word"] == "not shown"
    assert found["youden"]["all wrong"]["low"] is None


def test_intervals_respect_conversations() -> None:
    def rule(kind: str, n: int) -> bool:
        return kind == RIGHT or (kind == VAGUE and n % 12 < 6)

    plain, clustered = (figures(verdicts(rule, 600, conversations=n))["kinds"][VAGUE] for n in (0, 12))
    assert plain["value"] == clustered["value"] == 0.5
    assert (plain["method"], clustered["method"], clustered["clusters"]) == ("wilson", "cluster-t", 12)
    assert clustered["high"] - clustered["low"] > 4 * (plain["high"] - plain["low"])


def test_figures_by_category_are_the_same_figures_on_its_answers() -> None:
    made = verdicts(lambda kind, n: (n % 3 == 0) == (kind == RIGHT))
    found = figures(made)
    odd = figures([one for one in made if one.known.category == "odd"])
    assert found["categories"]["odd"] == odd["kinds"]
    assert set(found["categories"]) == {"odd", "even"}


@given(st.integers(40, 200), st.data())
def test_the_interval_of_j_is_newcombe_s_where_nothing_clusters(n: int, data: st.DataObject) -> None:
    right, wrong = data.draw(st.integers(1, n - 1)), data.draw(st.integers(1, n - 1))
    made = verdicts(lambda kind, at: at < (right if kind == RIGHT else wrong), n, kinds=(RIGHT, SPECIFIC))
    found = figures(made)["youden"][SPECIFIC]
    p, q = (interval([1.0] * k + [0.0] * (n - k)) for k in (right, wrong))
    j = right / n - wrong / n
    assert found["value"] == pytest.approx(j)
    low = j - math.sqrt((p.value - p.low) ** 2 + (q.high - q.value) ** 2)  # type: ignore[operator]
    high = j + math.sqrt((p.high - p.value) ** 2 + (q.value - q.low) ** 2)  # type: ignore[operator]
    assert (found["low"], found["high"]) == (pytest.approx(max(low, -1)), pytest.approx(min(high, 1)))


# ------------------------------------------------------------------------------------------------------ on real banks


def audit(shared: Path) -> list[Path]:
    """Both banks of the audit."""
    return [shared / f"data/locomo/locomo_audit_ap_v{version}.json" for version in (1, 2)]


def test_the_audit_s_own_figures_stand_beside_a_judge_s(shared: Path) -> None:
    answers = chosen([read_bank(path) for path in audit(shared)])
    found = figures([Verdict(known, True, 1.0) for known in answers])
    recorded = found["recorded"]
    assert round(100 * recorded[SPECIFIC]["value"], 2) == 10.61
    assert round(100 * recorded[VAGUE]["value"], 2) == 62.81
    assert (recorded[VAGUE]["method"], recorded[VAGUE]["clusters"]) == ("cluster-t", 10)
    assert RIGHT not in recorded
    assert {name: one[VAGUE]["n"] for name, one in found["categories"].items()} == {
        "1": 282, "2": 321, "3": 96, "4": 841,
    }  # fmt: skip
    assert found["kinds"][VAGUE]["clusters"] == 10
    assert found["verdict"]["word"] == "useless"


def test_measuring_again_asks_nothing_and_finds_the_same(shared: Path, tmp_path: Path) -> None:
    found = calibrate(spec("ByVague"), audit(shared), "locomo-generous.v1", Quiet(), limit=30, out=tmp_path)
    before = kind("ByVague").calls
    again = calibrate(spec("ByVague"), audit(shared), "locomo-generous.v1", Quiet(), limit=30, out=tmp_path)
    assert (again["new"], kind("ByVague").calls) == (0, before)
    assert {**again, "new": found["new"]} == found
    assert json.loads(Path(found["file"]).with_suffix(".json").read_text()) == again


def test_a_limit_takes_whole_questions_of_every_conversation(shared: Path, tmp_path: Path) -> None:
    found = calibrate(spec("Perfect"), audit(shared), "locomo-strict.v1", Quiet(), limit=20, out=tmp_path)
    assert (found["questions"], found["answers"], found["limit"]) == (20, 60, 20)
    assert [one["n"] for one in found["kinds"].values()] == [20, 20, 20]
    assert found["verdict"]["word"] == "useful"
    rows = [json.loads(line) for line in Path(found["file"]).read_text().splitlines()]
    assert len(rows) == 61
    assert rows[0]["judge"] == spec("Perfect")
    assert len({row["cluster"] for row in rows[1:]}) == 10
    assert any("lower bound" in note for note in found["notes"])


def test_a_wrong_answer_that_is_the_gold_is_noted(tmp_path: Path) -> None:
    path = bank(tmp_path)
    with path.open("a") as file:
        file.write(json.dumps({"id": "q9", "question": "?", "gold": "May", "kind": VAGUE, "answer": "may "}) + "\n")
    found = calibrate(spec("No"), [path], "binary.v1", Quiet(), out=tmp_path)
    assert any("though word for word the gold: 1 (q9)" in note for note in found["notes"])


def test_a_judge_cannot_tell_from_an_id_what_an_answer_is_worth(tmp_path: Path) -> None:
    kind("Schema").asked.clear()
    calibrate(spec("Schema"), [bank(tmp_path)], "h2hmem.v1", Quiet(), out=tmp_path)
    assert len(kind("Schema").asked) == 30
    for request in kind("Schema").asked:
        assert not any(word in str(request) for word in ("wrong-", "right'", "q0", "q9"))


def bank(folder: Path) -> Path:
    """Ten questions, three answers each."""
    lines: list[dict[str, Any]] = []
    for n in range(10):
        about = {"id": f"q{n}", "question": "?", "gold": f"the {n}th of May 2023"}
        answers = {RIGHT: about["gold"], SPECIFIC: f"the {n}th of September 2023", VAGUE: "spring"}
        lines += [about | {"kind": kind, "answer": answer} for kind, answer in answers.items()]
    path = folder / "bank.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize("rubric", ["binary.v1", "atm.v1", "mem-gallery.v1", "memeye.v1", "h2hmem.v1", "simplevqa.v1"])
def test_every_kind_of_rubric_can_be_measured(tmp_path: Path, rubric: str) -> None:
    found = calibrate(spec("Schema"), [bank(tmp_path)], rubric, Quiet(), out=tmp_path)
    assert found["asked"] == "schema"
    assert found["calls"] == 30, "each answer in a call of its own, so that none sees another"
    assert [one["value"] for one in found["kinds"].values()] == [0, 0, 0]
    assert found["kinds"][RIGHT]["score"] == (None if rubric == "simplevqa.v1" else 1)
    assert found["verdict"]["word"] == "useful"


def test_a_judge_by_length_accepts_what_is_long(tmp_path: Path) -> None:
    found = calibrate(spec("ByLength"), [bank(tmp_path)], "binary.v1", Quiet(), out=tmp_path)
    assert found["asked"] == "words"
    assert [found["kinds"][kind]["value"] for kind in KINDS] == [1, 1, 0]
    assert found["verdict"]["word"] == "useless"
