from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.scoring import text
from memharness.scoring.text import (
    NORMALISERS,
    abstains,
    bleu,
    contains,
    exact_match,
    gold_text,
    hotpot,
    hotpot_f1,
    locomo,
    locomo_f1,
    locomo_multi_f1,
    locomo_score,
    mem0_exact_match,
    mem0_f1,
    mem_gallery,
    mem_gallery_scores,
    memeye,
    overlap,
    token_f1,
)

TIGHT = 1e-9
PROSE = st.text(alphabet=st.sampled_from("aAnTthedrunsing,.;:_-'’0123456789 éŁ"), max_size=40)


def test_hotpot_vectors(shared: Path) -> None:
    vectors = json.loads((shared / "golden/hotpot_answer_vectors.json").read_text())["vectors"]
    assert len(vectors) == 15
    for row in vectors:
        said, gold = row["prediction"], row["gold"]
        assert hotpot(said) == row["norm_prediction"]
        assert hotpot(gold) == row["norm_gold"]
        assert exact_match(said, gold, hotpot) == row["em"]
        expected = (row["precision"], row["recall"], row["f1"])
        assert hotpot_f1(said, gold) == pytest.approx(expected, abs=TIGHT), row


def test_hotpot_closed_words_are_all_or_nothing() -> None:
    assert hotpot_f1("yes, they were", "yes").f1 == 0
    assert hotpot_f1("noanswer", "no answer").f1 == 0
    assert hotpot_f1("no answer", "answer").f1 == pytest.approx(2 / 3)


def test_locomo_vectors(shared: Path) -> None:
    vectors = json.loads((shared / "golden/locomo_vectors.json").read_text())["answer_vectors"]
    assert len(vectors) == 12
    for row in vectors:
        assert locomo(row["prediction"]) == row["norm_prediction"]
        score = locomo_score(row["category"], row["prediction"], row["answer"])
        assert score == pytest.approx(row["score"], abs=TIGHT), row


def test_locomo_stemming_and_splitting() -> None:
    assert locomo_f1("runs", "running") == 1
    assert locomo_f1("ran", "running") == 0
    assert locomo_f1("May 7, 2023", "7 May 2023") == 1
    # "and" separates no answers.
    assert locomo_multi_f1("pottery and swimming", "pottery, swimming") == pytest.approx(2 / 3)


def test_locomo_has_five_categories() -> None:
    with pytest.raises(ValueError, match="categories 1 to 5"):
        locomo_score(6, "x", "x")


def locomo_questions(shared: Path) -> list[tuple[int, str]]:
    """Category and gold answer of each question; in category 5 mostly the trap stands in for it."""
    conversations = json.loads((shared / "data/locomo/locomo10.json").read_text())
    questions = [qa for talk in conversations for qa in talk["qa"]]
    return [(qa["category"], gold_text(qa.get("answer", qa.get("adversarial_answer"))) or "") for qa in questions]


def means(scores: list[tuple[int, float]]) -> tuple[float, dict[int, float]]:
    by_category: dict[int, list[float]] = defaultdict(list)
    for category, score in scores:
        by_category[category].append(score)
    return fmean(score for _, score in scores), {key: fmean(values) for key, values in by_category.items()}


def test_locomo_gold_as_prediction(shared: Path) -> None:
    questions = locomo_questions(shared)
    assert len(questions) == 1986
    overall, by_category = means([(category, locomo_score(category, gold, gold)) for category, gold in questions])
    expected = {1: 1.0, 2: 1.0, 3: 0.9274, 4: 1.0, 5: 0.0045}
    assert by_category == pytest.approx(expected, abs=5e-5)
    assert overall == pytest.approx(0.7729, abs=5e-5)
    answerable = [(category, locomo_score(category, gold, gold)) for category, gold in questions if category != 5]
    assert means(answerable)[0] == pytest.approx(0.9955, abs=5e-5)


def test_locomo_constant_answer(shared: Path) -> None:
    constant = "Not mentioned in the conversation"
    scores = [(category, locomo_score(category, constant, gold)) for category, gold in locomo_questions(shared)]
    overall, by_category = means(scores)
    assert overall == pytest.approx(0.2330, abs=5e-5)
    assert by_category[5] == 1
    assert means([row for row in scores if row[0] != 5])[0] == pytest.approx(0.0108, abs=5e-5)


def gallery_files(shared: Path) -> list[Path]:
    files = sorted((shared / "golden/mem_gallery").glob("*_results.json"))
    assert len(files) == 12
    return files


def test_mem_gallery_recorded_scores(shared: Path) -> None:
    for file in gallery_files(shared):
        recorded = json.loads(file.with_name(file.name.replace("_results", "_evaluate_result")).read_text())
        rows = json.loads(file.read_text())
        scored = [(row["category"], mem_gallery_scores(row["system_answer"], row["original_answer"])) for row in rows]
        for name in ("f1", "bleu", "bleu_1", "bleu_2", "em"):
            values = [scores[name] for _, scores in scored]
            assert values == pytest.approx(list(map(float, recorded[f"overall_{name}"])), abs=TIGHT), file.name
            official = recorded["avg_overall_metrics_final"][name.upper()]
            assert fmean(values) == pytest.approx(official, abs=TIGHT), (file.name, name)
            _, by_category = means([(category, scores[name]) for category, scores in scored])
            official_by_category = {
                category: pair[name.upper()]
                for category, pairs in recorded["avg_category_metrics_final"].items()
                for pair in pairs
                if name.upper() in pair
            }
            assert by_category == pytest.approx(official_by_category, abs=TIGHT), (file.name, name)


def test_memeye_normaliser_scores_lower_on_mem_gallery(shared: Path) -> None:
    # The two evaluators' exact match differs systematically on the same predictions; they are not one metric.
    rows = [row for file in gallery_files(shared) for row in json.loads(file.read_text())]
    ours = dict.fromkeys(("mem_gallery", "memeye"), 0)
    for row in rows:
        for name in ours:
            ours[name] += exact_match(row["system_answer"], row["original_answer"], NORMALISERS[name])
    assert ours["memeye"] < ours["mem_gallery"]


@pytest.mark.parametrize(
    ("raw", "normal"),
    [
        ("The cat, and a DOG!", "cat dog"),
        ("D1:IMG_001.", "d1 img_001"),
        ("3.14 or 3. or .5", "3.14 or 3 or 5"),
        ("co-operate", "co operate"),
        ("1,234", "1 234"),
        ("’tis", "’tis"),
    ],
)
def test_mem_gallery_normaliser(raw: str, normal: str) -> None:
    assert mem_gallery(raw) == normal


def test_memeye_keeps_and_and_a_lone_article() -> None:
    assert memeye("The cat and a dog") == "cat and dog"
    assert memeye("A") == "a"


def test_mem0_scores_sets_of_unstemmed_words() -> None:
    assert mem0_f1("red red car", "red car").f1 == 1
    assert mem0_f1("cars", "car").f1 == 0
    assert mem0_f1("The car.", "car").f1 == pytest.approx(2 / 3)
    assert mem0_f1("", "car").f1 == 0
    assert mem0_f1("", "").f1 == 0
    assert mem0_exact_match(" Red Car ", "red car")
    assert not mem0_exact_match("red car.", "red car")


def test_bleu_of_nothing_is_zero() -> None:
    assert bleu("", "x", mem_gallery) == (0, 0, 0)
    assert bleu("the", "x", mem_gallery) == (0, 0, 0)
    assert bleu("x", "a", mem_gallery) == (0, 0, 0)


def test_case_integer_gold(shared: Path) -> None:
    rows = json.loads((shared / "cases/c09_integer_gold.json").read_text())["rows"]
    golds = [gold_text(row["answer"]) for row in rows]
    assert golds == ["4", "2019", "0"]
    exact = [exact_match(row["prediction"], gold or "", hotpot) for row, gold in zip(rows, golds, strict=True)]
    assert exact == [True, False, True]
    assert all(contains(row["prediction"], gold, hotpot) for row, gold in zip(rows, golds, strict=True))


def test_gold_text_keeps_none_and_refuses_structures() -> None:
    assert gold_text(None) is None
    assert gold_text("") == ""
    assert gold_text(2.5) == "2.5"
    for value in (["x"], {"x": 1}, True):
        with pytest.raises(TypeError, match="a gold answer must be"):
            gold_text(value)


def test_case_empty_gold(shared: Path) -> None:
    rows = json.loads((shared / "cases/c16_empty_gold_and_dates.json").read_text())["rows"]
    assert contains(rows[0]["prediction"], rows[0]["gold"], hotpot) is rows[0]["right"] is None
    # Without a gold answer only the abstention counts.
    assert contains(rows[1]["prediction"], rows[1]["gold"], hotpot) is None
    assert abstains(rows[1]["prediction"])
    assert not abstains("a red kite")
    assert contains("a red kite", "The kite", hotpot) is True
    assert contains("a red kite", "the", hotpot) is None


def test_abstention_phrases_can_be_replaced() -> None:
    assert not abstains("I do not know")
    assert abstains("I do NOT know", phrases=("do not know",))


@given(PROSE)
@pytest.mark.parametrize("name", ["hotpot", "locomo", "mem_gallery"])
def test_normalisers_are_idempotent(name: str, raw: str) -> None:
    normalise = NORMALISERS[name]
    assert normalise(normalise(raw)) == normalise(raw)


@given(st.text(max_size=40))
def test_normalised_text_has_single_spaces(raw: str) -> None:
    for normalise in NORMALISERS.values():
        normal = normalise(raw)
        assert normal == " ".join(normal.split())


@given(PROSE, PROSE)
def test_f1_is_symmetric_and_bounded(one: str, other: str) -> None:
    for normalise in NORMALISERS.values():
        for stemmed in (False, True):
            there = token_f1(one, other, normalise, stemmed=stemmed)
            back = token_f1(other, one, normalise, stemmed=stemmed)
            assert there.f1 == pytest.approx(back.f1)
            assert (there.precision, there.recall) == (back.recall, back.precision)
            assert all(0 <= value <= 1 for value in there)
    assert mem0_f1(one, other).f1 == pytest.approx(mem0_f1(other, one).f1)
    assert hotpot_f1(one, other).f1 == pytest.approx(hotpot_f1(other, one).f1)


@given(PROSE)
def test_a_text_matches_itself(raw: str) -> None:
    for normalise in NORMALISERS.values():
        assert exact_match(raw, raw, normalise)
        assert token_f1(raw, raw, normalise).f1 == (1 if normalise(raw) else 0)


@given(PROSE, PROSE)
def test_bleu_is_bounded(one: str, other: str) -> None:
    assert all(0 <= value <= 1 + TIGHT for value in bleu(one, other, mem_gallery))


@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abc")))
def test_overlap_counts_common_tokens(one: list[str], other: list[str]) -> None:
    same = sum(min(one.count(token), other.count(token)) for token in "abc")
    found = overlap(one, other)
    if same == 0:
        assert found == text.NO_OVERLAP
    else:
        assert found.precision * len(one) == pytest.approx(same)
        assert found.recall * len(other) == pytest.approx(same)
