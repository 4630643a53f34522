from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.scoring.recall import exclusion, hit, locomo_recall, precision, recall, recall_all, recall_any, top

IDS = st.lists(st.sampled_from("abcdef"), max_size=12)
K = st.integers(1, 8)


def test_three_recalls_are_three_metrics() -> None:
    retrieved, gold = ["s1", "x"], ["s1", "s2"]
    assert recall(retrieved, gold) == 0.5
    assert recall_any(retrieved, gold) == 1
    assert recall_all(retrieved, gold) == 0
    assert hit(retrieved, gold, 1) == 1
    assert precision(retrieved, gold) == 0.5


def test_without_gold_there_is_no_figure() -> None:
    for metric in (recall, recall_any, recall_all, hit, precision):
        assert metric(["a"], []) is None


def test_repeats_take_no_second_place_unless_the_list_is_cut_first() -> None:
    retrieved = ["a", "a", "b", "c"]
    assert top(retrieved, 2) == ["a", "b"]
    assert top(retrieved, 2, cut_first=True) == ["a"]
    assert recall(retrieved, ["b"], 2) == 1
    assert recall(retrieved, ["b"], 2, cut_first=True) == 0
    assert precision(retrieved, ["a"], 2) == 0.5
    assert precision(retrieved, ["a"], 2, cut_first=True) == 1


def test_precision_of_what_was_delivered_or_of_k() -> None:
    assert precision(["a"], ["a"], 10) == 1
    assert precision(["a"], ["a"], 10, of_k=True) == 0.1
    assert precision([], ["a"], 10) == 0
    with pytest.raises(ValueError, match="needs a k"):
        precision(["a"], ["a"], of_k=True)


def test_k_is_at_least_one() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        recall(["a"], ["a"], 0)


def test_locomo_vectors(shared: Path) -> None:
    vectors = json.loads((shared / "golden/locomo_vectors.json").read_text())
    for row in vectors["recall_vectors"]:
        assert locomo_recall(row["context"], row["evidence"]) == row["recall"], row
    # The answer vectors were run without a context.
    assert {row["recall"] for row in vectors["answer_vectors"]} == {locomo_recall(None, ["D1:1"])}


def test_locomo_without_evidence_is_one_and_without_hits_zero() -> None:
    assert locomo_recall(["D1:1"], []) == 1
    assert locomo_recall([], ["D1:1"]) == 0


def test_case_denominators(shared: Path) -> None:
    a, b, c, d = json.loads((shared / "cases/c10_recall_denominators.json").read_text())["instances"]
    assert exclusion(a["gold"]) is None
    assert (recall_any(a["retrieved"], a["gold"]), recall_all(a["retrieved"], a["gold"])) == (a["any"], a["all"])
    assert exclusion(b["gold"], abstention=True) == b["excluded"]
    assert exclusion(c["gold"], haystack=["u1", "u2"]) == "gold is not indexed"
    assert exclusion(d["gold"], haystack=d["haystack"]) == "gold is the whole haystack"


def test_k_that_covers_the_haystack_is_excluded() -> None:
    sessions = [f"s{number}" for number in range(19)]
    assert exclusion(["s3"], sessions, 50) == "k covers the whole haystack"
    assert exclusion(["s3"], sessions, 19) == "k covers the whole haystack"
    assert exclusion(["s3"], sessions, 18) is None
    assert exclusion([], sessions, 5) == "no gold"
    assert exclusion(["s3", "gone"], sessions, 5) is None


@given(IDS, IDS, K)
def test_recalls_are_ordered_and_bounded(retrieved: list[str], gold: list[str], k: int) -> None:
    every, share, some = (metric(retrieved, gold, k) for metric in (recall_all, recall, recall_any))
    if not gold:
        assert every is share is some is None
    else:
        assert every is not None and share is not None and some is not None
        assert 0 <= every <= share <= some <= 1


@given(IDS, IDS, K)
def test_recall_grows_with_k(retrieved: list[str], gold: list[str], k: int) -> None:
    less, more = recall(retrieved, gold, k), recall(retrieved, gold, k + 1)
    assert less is more is None or (less is not None and more is not None and less <= more)


@given(IDS, K, st.booleans())
def test_top_is_distinct_and_short(retrieved: list[str], k: int, cut_first: bool) -> None:
    shown = top(retrieved, k, cut_first=cut_first)
    assert len(shown) == len(set(shown)) <= k
