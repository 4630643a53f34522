"""Search is that of numpy over all that is kept: after deletion, reopening, another process's writes, at any size."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from memharness.episodic import EpisodicMemory, vectors
from memharness.episodic.vectors import Floats, best
from memharness.types import DataError, UserError


def exact(rows: dict[Any, Floats], query: Floats, k: int) -> list[tuple[Any, float]]:
    """Numpy over the raw matrix in float64; keys are in order of creation."""
    keys, matrix = list(rows), np.array(list(rows.values()), np.float64)
    scores = (matrix * query.astype(np.float64)).sum(axis=1) if keys else np.empty(0)
    return [(keys[at], float(scores[at])) for at in np.lexsort((np.arange(len(keys)), -scores))[:k]]


def found(memory: EpisodicMemory, query: Floats, k: int, session: str | None = None) -> list[tuple[str, float]]:
    """Ids and scores."""
    return [(asset.id, score) for asset, score in memory.search("x", query, k, session=session)]


def filled(memory: EpisodicMemory, count: int, width: int = 16, seed: int = 0) -> dict[str, Floats]:
    """Assets with random vectors, some of them equal, in three sessions."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, width), dtype=np.float32)
    rows[rng.integers(0, count, count // 4)] = rows[0]
    made = {}
    for number, row in enumerate(rows):
        asset = memory.add(None, session=f"s{number % 3}", id=f"a{number}")
        memory.put_vector(asset.id, "x", row)
        made[asset.id] = row
    return made


@pytest.fixture(params=["held", "read in blocks"])
def cached(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Bytes of cache: enough, or far too few; blocks are small, so that there are many."""
    monkeypatch.setattr(vectors, "BLOCK", 7 * 4 * 16)
    monkeypatch.setattr(vectors, "_READ", 5)
    return 1 << 30 if request.param == "held" else 1


def test_search_is_numpy_after_everything_that_may_happen(folder: Path, cached: int) -> None:
    rng = np.random.default_rng(1)
    queries = rng.standard_normal((6, 16), dtype=np.float32)
    with EpisodicMemory.open(folder, cache=cached) as memory:
        rows = filled(memory, 120)

        def same(memory: EpisodicMemory) -> None:
            for query in queries:
                for k in (1, 10, 200):
                    assert found(memory, query, k) == exact(rows, query, k)
                some = {id: row for id, row in rows.items() if memory.asset(id).session == "s1"}
                assert found(memory, query, 5, "s1") == exact(some, query, 5)

        same(memory)
        for id in rng.permutation(list(rows))[:50]:  # deleted, in any order
            memory.delete(str(id))
            del rows[str(id)]
        same(memory)
        for id in rng.permutation(list(rows))[:20]:  # replaced
            rows[str(id)] = rng.standard_normal(16, dtype=np.float32)
            memory.put_vector(str(id), "x", rows[str(id)])
        same(memory)
        asset = memory.add(None, session="s1")
        rows[asset.id] = rng.standard_normal(16, dtype=np.float32)
        memory.put_vector(asset.id, "x", rows[asset.id])
        same(memory)
        assert memory.check() == []
    with EpisodicMemory.open(folder, cache=cached) as memory:
        same(memory)
        for id in list(rows):
            memory.delete(id)
            del rows[id]
        assert found(memory, queries[0], 3) == [] == found(memory, queries[0], 3, "s1")


OTHER = """
import json, pathlib, sys
import numpy as np
from memharness.episodic import EpisodicMemory
folder, *ids = sys.argv[1:]
with EpisodicMemory.open(pathlib.Path(folder)) as memory:
    query = np.ones(16, np.float32)
    before = [(a.id, s) for a, s in memory.search("x", query, 50)]
    memory.delete(ids[0])
    memory.put_vector(ids[1], "x", 9 * query)
    memory.add(None, session="s0", id="new")
    memory.put_vector("new", "x", 8 * query)
    print(json.dumps([before, [(a.id, s) for a, s in memory.search("x", query, 50)]]))
"""


def test_a_second_process_sees_the_same_and_is_seen(folder: Path, memory: EpisodicMemory) -> None:
    rows = filled(memory, 40)
    query = np.ones(16, np.float32)
    first = found(memory, query, 50)
    told = subprocess.run(
        [sys.executable, "-c", OTHER, str(folder), "a3", "a5"], capture_output=True, text=True, check=True
    )
    before, after = ([(id, score) for id, score in part] for part in json.loads(told.stdout))
    assert before == first == exact(rows, query, 50)
    del rows["a3"]
    rows |= {"a5": 9 * query, "new": 8 * query}
    assert found(memory, query, 50) == after == exact(rows, query, 50)
    assert [id for id, _ in after][:2] == ["a5", "new"]


def test_spaces_are_apart_and_the_least_lately_searched_leaves_memory(folder: Path) -> None:
    with EpisodicMemory.open(folder, cache=3 * 4 * 8) as memory:  # three vectors of width 8
        for number in range(3):
            memory.add(None, session="s", id=f"a{number}")
            for space in "xyz":
                memory.put_vector(f"a{number}", space, np.eye(8, dtype=np.float32)[number] * (1 + (space == "y")))
        for _ in range(2):
            for space, score in (("x", 1.0), ("y", 2.0), ("z", 1.0)):
                assert [(a.id, s) for a, s in memory.search(space, np.eye(8)[1], 1)] == [("a1", score)]
                assert len(memory._vectors._matrices) == 1
        with pytest.raises(UserError, match=r"no vectors in a space called 'w'.*there are: x, y, z"):
            memory.search("w", np.eye(8)[1], 1)


@pytest.mark.parametrize(
    ("vector", "told"),
    [
        ([1.0, float("nan")], "NaN or an infinity"),
        ([1.0, float("inf")], "NaN or an infinity"),
        ([1e300, 0.0], "NaN or an infinity"),
        ([1e30, 0.0], "longer than 1e\\+18"),
        ([[1.0, 2.0]], r"must have the shape \(width,\), not \(1, 2\)"),
        ([], r"must have the shape"),
        (1.0, r"must have the shape"),
        (["a"], "not a vector of numbers"),
        ([1.0, 2.0, 3.0], "of width 3, and the space's are 2 wide"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_what_is_no_vector_is_refused(memory: EpisodicMemory, vector: Any, told: str) -> None:
    memory.add(None, session="s", id="a")
    memory.put_vector("a", "x", [1.0, 2.0])
    for call in (lambda: memory.put_vector("a", "x", vector), lambda: memory.search("x", vector, 1)):
        with pytest.raises(UserError, match=told):
            call()
    assert found(memory, np.ones(2, np.float32), 2) == [("a", 3.0)]
    with pytest.raises(UserError, match="k = 0"):
        memory.search("x", [1.0, 2.0], 0)


def test_a_vector_of_any_number_type_is_kept_as_float32(memory: EpisodicMemory) -> None:
    for number, vector in enumerate(([1, 2], (0.1, 0.2), np.array([3, 4], np.int8), np.float64([0.5, 0.5])[::-1])):
        memory.add(None, session="s", id=f"a{number}")
        memory.put_vector(f"a{number}", "x", vector)
    assert dict(found(memory, np.array([1, 0], np.float32), 9))["a1"] == float(np.float32(0.1))


def test_damaged_bytes_are_said(memory: EpisodicMemory, folder: Path) -> None:
    filled(memory, 3)
    memory._db.run("UPDATE vector SET value=x'00' WHERE asset=2")
    with pytest.raises(DataError, match="vector of asset number 2 is damaged; run `memharness episodic repair`"):
        memory.search("x", np.ones(16), 3)


WIDE = st.floats(-1e6, 1e6, width=32) | st.sampled_from([0.0, 1.0, 1e-30, -1e-38, 1e15, 1 + 2**-23])


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_ties_and_near_ties_are_settled_exactly(data: st.DataObject) -> None:
    width, count = data.draw(st.integers(1, 6)), data.draw(st.integers(0, 24))
    pool = data.draw(arrays(np.float32, (data.draw(st.integers(1, 5)), width), elements=WIDE))
    rows = pool[data.draw(arrays(np.int64, count, elements=st.integers(0, len(pool) - 1)))]
    query = data.draw(arrays(np.float32, width, elements=WIDE))
    k, cut = data.draw(st.integers(1, 26)), data.draw(st.integers(0, count))
    longest = float(np.linalg.norm(rows.astype(np.float64), axis=1).max()) if count else 0.0
    order = data.draw(st.permutations(range(count)))  # a matrix in memory is in no order
    parts = [np.array(order[:cut], np.int64), np.array(order[cut:], np.int64)]
    blocks = [(part, rows[part], longest) for part in parts if len(part)]
    assert best(blocks, query, k) == exact(dict(enumerate(rows)), query, k)


def test_scores_nearer_than_float32_can_tell_are_told_apart() -> None:
    rng = np.random.default_rng(4)
    base, query = rng.standard_normal((2, 384), dtype=np.float32)
    rows = (base + 3e-7 * rng.standard_normal((700, 384))).astype(np.float32)
    wanted = exact(dict(enumerate(rows)), query, 50)
    rough = rows @ query
    assert {at for at, _ in wanted} != set(np.argsort(-rough, kind="stable")[:50].tolist())  # float32 gets it wrong
    longest = float(np.linalg.norm(rows.astype(np.float64), axis=1).max())
    assert best([(np.arange(700), rows, longest)], query, 50) == wanted


def test_rounding_of_blas_decides_nothing() -> None:
    """Many vectors whose scores are equal, or a last bit apart, at every place of a block."""
    rng = np.random.default_rng(3)
    base, query = rng.standard_normal((2, 384), dtype=np.float32)
    rows = np.repeat(base[None], 700, axis=0)
    rows[::3, 5] = np.nextafter(rows[::3, 5], np.float32(9))
    longest = float(np.linalg.norm(rows.astype(np.float64), axis=1).max())
    everywhere = exact(dict(enumerate(rows)), query, 300)
    for height in (1, 7, 64, 700):
        starts = range(0, 700, height)
        blocks = [(np.arange(s, min(s + height, 700)), rows[s : s + height], longest) for s in starts]
        assert best(blocks, query, 300) == everywhere
