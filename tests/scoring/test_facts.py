from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.scoring.facts import (
    Agreement,
    answer_agreement,
    best_answer,
    fact_agreement,
    hotpot_scores,
    joint,
    wiki_evidence,
    wiki_evidence_aliases,
    wiki_fact_agreement,
)

TIGHT = 1e-9
FACTS = st.sets(st.tuples(st.sampled_from(["A", "B", "C"]), st.integers(0, 2)))


def test_hotpot_file(shared: Path) -> None:
    expected = json.loads((shared / "golden/hotpot_expected_reflexion100.json").read_text())
    predictions = json.loads((shared / "golden/hotpot_pred_reflexion100.json").read_text())
    questions = json.loads((shared / "data/hotpotqa/hotpot_distractor_reflexion100.json").read_text())
    rows = [
        hotpot_scores(
            predictions["answer"].get(question["_id"]),
            predictions["sp"].get(question["_id"]),
            question["answer"],
            question["supporting_facts"],
        )
        for question in questions
    ]
    missing = {key: sum(q["_id"] not in predictions[key] for q in questions) for key in ("answer", "sp")}
    assert missing == {"answer": 3, "sp": 4}
    means = {name: sum(row[name] for row in rows) / len(questions) for name in expected["metrics"]}
    assert means == pytest.approx(expected["metrics"], abs=TIGHT)
    assert set(rows[0]) == set(expected["metrics"])


def test_2wiki_alias_vectors(shared: Path) -> None:
    vectors = json.loads((shared / "golden/2wiki_v11_edge_vectors.json").read_text())
    for row in vectors["update_evi"]:
        found = wiki_evidence_aliases(row["pred"], row["gold_alias_expanded"])
        expected = (row["evi_em"], row["evi_f1"], row["evi_prec"], row["evi_recall"])
        assert found == pytest.approx(expected, abs=TIGHT), row
    for row in vectors["update_answer"]:
        found = best_answer(row["pred"], row["golds"])
        assert found == pytest.approx((row["em"], row["f1"], row["prec"], row["recall"]), abs=TIGHT), row


def test_2wiki_gold_agrees_with_itself(shared: Path) -> None:
    questions = json.loads((shared / "data/2wikimultihopqa/2wiki_dev_sample500.json").read_text())
    full = Agreement(1, 1, 1, 1)
    for question in questions:
        assert wiki_fact_agreement(question["supporting_facts"], question["supporting_facts"]) == full
        assert wiki_evidence(question["evidences"], question["evidences"]) == full


def test_2wiki_titles_are_lower_cased_after_repeats_went() -> None:
    found = wiki_fact_agreement([("Cork", 1), ("CORK", 1), ("X", 0)], [("cork", 1)])
    assert found == pytest.approx((0, 0.8, 2 / 3, 1))


def test_2wiki_evidence_ignores_case_and_punctuation_but_keeps_articles() -> None:
    assert wiki_evidence([("a.", "R", "b")], [("A", "r", "B")]).em == 1
    assert wiki_evidence([("The A", "r", "B")], [("A", "r", "B")]).em == 0


def test_best_answer_needs_one() -> None:
    with pytest.raises(ValueError, match="at least one"):
        best_answer("x", [])


def test_missing_parts_score_zero_and_take_the_joint_along() -> None:
    full = hotpot_scores("Paris", [("A", 0)], "Paris", [("A", 0)])
    assert set(full.values()) == {1.0}
    silent = hotpot_scores(None, [("A", 0)], "Paris", [("A", 0)])
    assert (silent["em"], silent["sp_em"], silent["joint_em"]) == (0, 1, 0)
    bare = hotpot_scores("Paris", None, "Paris", [("A", 0)])
    assert (bare["em"], bare["sp_f1"], bare["joint_f1"]) == (1, 0, 0)


@given(FACTS, FACTS)
def test_fact_agreement_is_symmetric_and_bounded(one: set[tuple[str, int]], other: set[tuple[str, int]]) -> None:
    there, back = fact_agreement(one, other), fact_agreement(other, one)
    assert all(0 <= value <= 1 for value in there)
    assert there.f1 == pytest.approx(back.f1)
    assert (there.precision, there.recall) == (back.recall, back.precision)
    assert there.em == (one == other)


@given(st.lists(st.builds(Agreement, *[st.sampled_from([0.0, 0.5, 1.0])] * 4), min_size=1, max_size=3))
def test_joint_is_never_above_a_part(parts: list[Agreement]) -> None:
    both = joint(parts)
    assert all(both.precision <= part.precision and both.recall <= part.recall for part in parts)
    assert joint([*parts, Agreement(1, 1, 1, 1)]) == both


def test_answer_agreement_of_a_wrong_yes() -> None:
    assert answer_agreement("no", "yes") == (0, 0, 0, 0)
