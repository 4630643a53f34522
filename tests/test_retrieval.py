"""Exact inner-product search, BM25 and fusion."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from memharness import retrieval
from memharness.retrieval import BM25, fuse, top_k, words


def plain_top_k(queries: np.ndarray, vectors: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    scores = queries.astype(np.float64) @ vectors.astype(np.float64).T
    ids = np.array([np.lexsort((np.arange(len(vectors)), -row))[:k] for row in scores]).reshape(len(queries), -1)
    return ids, np.take_along_axis(scores, ids, axis=1)


def unit(rng: np.random.Generator, count: int, width: int = 48) -> np.ndarray:
    vectors = rng.standard_normal((count, width), dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


# Small integers have exact float32 products, so ties are everywhere and the plain ranking is the only right one.
grid = st.integers(-2, 2).map(float)


@settings(deadline=None)
@given(st.data(), st.integers(1, 5), st.integers(1, 40), st.integers(1, 4), st.integers(1, 50))
def test_top_k_is_the_plain_ranking_with_ties_in_row_order(data, q, n, d, k):
    queries = data.draw(arrays(np.float32, (q, d), elements=grid))
    vectors = data.draw(arrays(np.float32, (n, d), elements=grid))
    ids, scores = top_k(queries, vectors, k)
    expected_ids, expected = plain_top_k(queries, vectors, min(k, n))
    assert ids.shape == scores.shape == (q, min(k, n))
    assert ids.dtype == np.int64
    assert scores.dtype == np.float32
    np.testing.assert_array_equal(ids, expected_ids)
    np.testing.assert_array_equal(scores, expected)


def test_blocks_of_queries_and_rows_change_nothing(monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(1)
    vectors, queries = unit(rng, 1000), unit(rng, 300)
    whole = top_k(queries, vectors, 25)
    np.testing.assert_array_equal(whole[0], plain_top_k(queries, vectors, 25)[0])
    monkeypatch.setattr(retrieval, "_CELLS", 7 * 90)
    monkeypatch.setattr(retrieval, "_ROWS", 90)
    monkeypatch.setattr(retrieval, "_SHARE", 100)
    ids, scores = top_k(queries, vectors, 25)
    np.testing.assert_array_equal(ids, whole[0])
    np.testing.assert_allclose(scores, whole[1], atol=1e-6)


def test_equal_vectors_tie_wherever_they_stand_and_however_many_queries_are_asked():
    # BLAS gives one pair of vectors other last bits at other places of a block.
    rng = np.random.default_rng(2)
    vectors = unit(rng, 1003, 384)
    for copy in (321, 640, 1000, 1002):
        vectors[copy] = vectors[17]
    queries = unit(rng, 131, 384)
    queries[40] = vectors[17]
    ids, scores = top_k(queries, vectors, 30)
    assert ids[40, :5].tolist() == [17, 321, 640, 1000, 1002]
    assert len(set(scores[40, :5].tolist())) == 1
    for row in range(len(queries)):
        present = [i for i in ids[row].tolist() if i in (17, 321, 640, 1000, 1002)]
        assert present == sorted(present)
        np.testing.assert_array_equal(top_k(queries[row : row + 1], vectors, 30)[0][0], ids[row])


def test_equal_vectors_by_the_thousand():
    vectors = np.repeat(unit(np.random.default_rng(4), 1), 3000, axis=0)
    queries = np.concatenate([vectors[:20], -vectors[:20], np.zeros_like(vectors[:5])])
    ids, _ = top_k(queries, vectors, 10)
    np.testing.assert_array_equal(ids, np.tile(np.arange(10), (45, 1)))


def test_near_ties_are_ranked_as_float64_ranks_them():
    rng = np.random.default_rng(3)
    base = unit(rng, 1, 384)[0]
    vectors = (base + 1e-7 * rng.standard_normal((400, 384))).astype(np.float32)
    queries = unit(rng, 5, 384)
    np.testing.assert_array_equal(top_k(queries, vectors, 20)[0], plain_top_k(queries, vectors, 20)[0])


def test_top_k_of_nothing():
    none = np.zeros((0, 3), np.float32)
    assert top_k(none, np.ones((4, 3), np.float32), 2)[0].shape == (0, 2)
    assert top_k(np.ones((2, 3), np.float32), none, 2)[0].shape == (2, 0)


@pytest.mark.parametrize(
    ("queries", "vectors", "k", "message"),
    [
        (np.ones((1, 3)), np.ones((1, 4)), 1, r"\(1, 3\).*\(1, 4\)"),
        (np.ones(3), np.ones((1, 3)), 1, r"\(q, d\)"),
        (np.ones((1, 3)), np.ones((1, 3)), 0, "k = 0"),
        (np.full((1, 3), np.nan), np.ones((1, 3)), 1, "finite"),
        (np.ones((1, 3)), np.full((1, 3), np.inf), 1, "finite"),
    ],
)
def test_top_k_refuses(queries: np.ndarray, vectors: np.ndarray, k: int, message: str):
    with pytest.raises(ValueError, match=message):
        top_k(queries.astype(np.float32), vectors.astype(np.float32), k)


def test_words_are_folded_letters_and_digits():
    assert words("Café-Noir's 2nd ﬁle_name, STRASSE/straße!") == [
        "café", "noir", "s", "2nd", "file", "name", "strasse", "strasse",
    ]  # fmt: skip
    assert words("日本 42 ___") == ["日本", "42"]
    assert words("把红灯改成blue色 灯 カメラ") == ["把红", "红灯", "灯改", "改成", "blue", "色", "灯", "カメ", "メラ"]


def test_bm25_is_lucenes_formula():
    texts = ["a cat sat", "the cat and the cat", "dogs bark"]
    k1, b, average = 1.5, 0.75, 10 / 3

    def term(frequency: int, length: int, documents: int) -> float:
        idf = np.log(1 + (3 - documents + 0.5) / (documents + 0.5))
        return float(idf * frequency / (frequency + k1 * (1 - b + b * length / average)))

    expected = [term(1, 3, 2), term(2, 5, 2), 0.0]
    np.testing.assert_allclose(BM25(texts).scores("Cat? zebra"), expected, rtol=1e-6)
    np.testing.assert_allclose(BM25(texts).scores("cat cat"), 2 * np.array(expected), rtol=1e-6)


def test_bm25_ranks_with_ties_by_position():
    ids, scores = BM25(["x", "cat", "y", "cat"]).top_k("cat", 3)
    assert ids.tolist() == [1, 3, 0]
    assert scores[0] == scores[1] > scores[2] == 0


@pytest.mark.parametrize("texts", [[], [""], ["", "?!"]])
def test_bm25_over_no_words_scores_zero(texts: list[str]):
    assert BM25(texts).scores("anything").tolist() == [0.0] * len(texts)
    assert BM25(["cat"]).scores("").tolist() == [0.0]
    assert len(BM25(texts).top_k("anything", 5)[0]) == len(texts)


def test_bm25_is_the_same_in_every_process():
    program = (
        "from memharness.retrieval import BM25\n"
        "texts = [' '.join(f'w{(i * j) % 37}' for j in range(9)) for i in range(50)]\n"
        "print(BM25(texts).scores(' '.join(f'w{i}' for i in range(37))).tobytes().hex())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def test_fuse_adds_scaled_scores_or_reciprocal_ranks():
    a, b = np.array([1, 2, 3], np.float32), np.array([9, 9, 9], np.float32)
    assert fuse([a]).tolist() == [0, 0.5, 1]
    assert fuse([a, b]).tolist() == [0, 0.25, 0.5]
    assert fuse([a, -a], weights=[3, 1]).tolist() == [0.25, 0.5, 0.75]
    assert fuse([b, a], "rrf") == pytest.approx([(1 / 61 + 1 / 63) / 2, 1 / 62, (1 / 63 + 1 / 61) / 2])
    assert fuse([np.empty(0, np.float32)]).shape == (0,)


@pytest.mark.parametrize(("views", "weights"), [([], None), ([[1], [1, 2]], None), ([[1]], [1, 1])])
def test_fuse_refuses(views: list[list[float]], weights: list[float] | None):
    with pytest.raises(ValueError, match="at least one view"):
        fuse([np.array(view, np.float32) for view in views], weights=weights)
