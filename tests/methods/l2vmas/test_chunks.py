"""Where thoughts are cut: only behind delimiters, as often as the entropy says, the same each time."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from memharness.methods.l2vmas.chunks import Chunker

DELIMITERS = ".,;:?!\n"


def cut(tokens: list[tuple[str, float]], *, most: float = 1.0, limit: int = 100, seed: int = 0) -> list[list[int]]:
    chunker: Chunker[int] = Chunker(DELIMITERS, most, limit, random.Random(seed))
    chunks, text = [], ""
    for at, (token, entropy) in enumerate(tokens):
        text += token
        chunk = chunker.step(text, entropy, at)
        if chunk is not None:
            chunks.append(chunk)
    rest = chunker.rest()
    assert chunker.rest() == []
    return [*chunks, rest] if rest else chunks


def test_certain_cuts_and_none() -> None:
    words = [("It", 9.0), (" is.", 9.0), (" Now", 9.0), (",", 0.0), (" then", 9.0)]
    assert cut(words) == [[0, 1], [2, 3, 4]]  # entropy over log |V| is clipped to 1; a sure token never ends a chunk
    assert cut([("a", 1.0), (".", -0.1), (".", 0.0)]) == [[0, 1, 2]]
    assert cut([]) == []


def test_a_chunk_stays_bounded() -> None:
    assert cut([("word ", 1.0)] * 7, limit=3) == [[0, 1, 2], [3, 4, 5], [6]]


def test_how_often() -> None:
    tokens = [(".", 0.3)] * 10_000
    cuts = len(cut(tokens)) - 1
    assert 2_800 < cuts < 3_200  # a draw of .3 each: 4 standard deviations are 183
    assert cut(tokens, seed=1) == cut(tokens, seed=1) != cut(tokens, seed=2)


@given(st.lists(st.tuples(st.sampled_from([" a", ".", "b,", "\n", "c"]), st.floats(0, 3)), max_size=80), st.integers())
def test_nothing_is_lost_and_cuts_stand_behind_delimiters(tokens: list[tuple[str, float]], seed: int) -> None:
    chunks = cut(tokens, most=2.0, limit=7, seed=seed)
    assert [at for chunk in chunks for at in chunk] == list(range(len(tokens)))
    for chunk in chunks[:-1]:
        assert tokens[chunk[-1]][0].endswith(tuple(DELIMITERS)) or len(chunk) == 7
    assert all(len(chunk) <= 7 for chunk in chunks)
