"""Exact retrieval: inner product, BM25, and the fusion of several views of the same items."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from memharness.types import Item, Question

if TYPE_CHECKING:
    import bm25s

Floats: TypeAlias = NDArray[np.float32]
Doubles: TypeAlias = NDArray[np.float64]
Ids: TypeAlias = NDArray[np.int64]

# At most this many scores are held at once (64 MiB, and a copy while they are partitioned), however many queries and
# vectors there are. BLAS likes few large blocks, so the queries of a block are as many as fit.
_CELLS = 1 << 24
_ROWS = 1 << 16
_PAIRS = 1 << 12  # computed again in float64 at a time
_SHARE = 1 << 20  # scores worth a thread of their own

# Two scores nearer than this share of |q| |v| may be out of order: sixteen times the resolution of float32 at 1, far
# more than BLAS is seen to lose.
_NEAR = 2.0**-20
_NONE = np.finfo(np.float32).min

_WORD = re.compile(r"[^\W_]+")
_SPACELESS = re.compile("([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+)")
_RRF = 60


def top_k(queries: Floats, vectors: Floats, k: int) -> tuple[Ids, Floats]:
    """Find each query's `k` vectors of largest inner product, exactly; equal vectors come in row order.

    The ranking is that of float64 arithmetic. BLAS gives one pair of vectors other last bits at other places of a
    block, so float32 scores too near each other to be trusted are computed again in float64: the ranking does not
    depend on the machine, nor on how many queries are asked together.

    Args:
        queries: (q, d) float32.
        vectors: (n, d) float32.
        k: how many to return; fewer come back where n < k.

    Returns:
        Row numbers (q, min(k, n)) and scores of the same shape, best first.

    Raises:
        ValueError: the shapes do not fit together, `k` is below 1, or a value is not finite.
    """
    if queries.ndim != 2 or vectors.ndim != 2 or queries.shape[1] != vectors.shape[1]:
        raise ValueError(f"queries {queries.shape} and vectors {vectors.shape} must be (q, d) and (n, d)")
    if k < 1:
        raise ValueError(f"k = {k}: at least 1 is needed")
    if not (np.isfinite(queries).all() and np.isfinite(vectors).all()):
        raise ValueError("queries and vectors must be finite")
    k = min(k, len(vectors))
    ids = np.empty((len(queries), k), dtype=np.int64)
    scores = np.empty((len(queries), k), dtype=np.float32)
    if k and len(queries):
        near = _NEAR * _lengths(queries)[:, None] * _lengths(vectors).max()
        width = min(_ROWS, len(vectors))
        height = min(_CELLS // width, len(queries))
        room = np.empty((height, width), dtype=np.float32)
        # BLAS brings its own threads; what comes after a product is shared out over as many, row by row.
        threads = min(os.cpu_count() or 1, 1 + room.size // _SHARE)
        with ThreadPoolExecutor(threads) as pool:
            each = pool.map if threads > 1 else map
            for start in range(0, len(queries), height):
                block = slice(start, start + height)
                shares = _shares(len(queries[block]), threads)
                found = _search(queries[block], vectors, k, near[block], room, shares, each)
                for share, (share_ids, share_scores) in zip(shares, found, strict=True):
                    ids[block][share], scores[block][share] = share_ids, share_scores
    return ids, scores


def _search(
    queries: Floats,
    vectors: Floats,
    k: int,
    near: Floats,
    room: Floats,
    shares: Sequence[slice],
    each: Callable[..., Iterable[tuple[Ids, Floats]]],
) -> Iterable[tuple[Ids, Floats]]:
    """Return, for each share of the queries, ids and scores of the `k` best."""
    kept: list[list[tuple[Ids, Floats]]] = [[] for _ in shares]
    for start in range(0, len(vectors), _ROWS):
        chunk = vectors[start : start + _ROWS]
        products = np.matmul(queries, chunk.T, out=room[: len(queries), : len(chunk)])
        found = each(partial(_candidates, k=k, offset=start), [products[s] for s in shares], [near[s] for s in shares])
        for part, candidates in zip(kept, found, strict=True):
            part.append(candidates)
    return each(partial(_ranked, vectors=vectors, k=k), kept, [queries[s] for s in shares], [near[s] for s in shares])


def _ranked(
    chunks: Sequence[tuple[Ids, Floats]], queries: Floats, near: Floats, *, vectors: Floats, k: int
) -> tuple[Ids, Floats]:
    ids, scores = (np.concatenate(part, axis=1) for part in zip(*chunks, strict=True))
    order = np.argsort(-scores, axis=1)
    ids, scores = np.take_along_axis(ids, order, axis=1), np.take_along_axis(scores, order, axis=1)
    _settle(ids, scores, queries, vectors, near)
    return ids[:, :k], scores[:, :k]


def _candidates(scores: Floats, near: Floats, *, k: int, offset: int) -> tuple[Ids, Floats]:
    """Return ids and scores of all that may be among each row's `k` largest, filled up with `_NONE` to equal length.

    Partitioning values and then comparing is several times faster than `argpartition`, and loses no tie at the cut.
    """
    rows, width = scores.shape
    k = min(k, width)
    cut = np.partition(scores, -k, axis=1)[:, -k, None] - near
    row, column = np.divmod(np.flatnonzero(scores >= cut), width)
    counts = np.bincount(row, minlength=rows)
    place = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    ids = np.zeros((rows, counts.max()), dtype=np.int64)
    kept = np.full(ids.shape, _NONE)
    ids[row, place] = column + offset
    kept[row, place] = scores[row, column]
    return ids, kept


def _settle(ids: Ids, scores: Floats, queries: Floats, vectors: Floats, near: Floats) -> None:
    """Put, in place, each run of sorted scores that lie too near one another in the order of (-float64 score, id)."""
    gaps = np.full((scores.shape[0], scores.shape[1] + 1), np.inf)
    gaps[:, 1:-1] = scores[:, :-1] - scores[:, 1:]
    apart = gaps > near
    at = np.nonzero(~(apart[:, :-1] & apart[:, 1:]) & (scores > _NONE))
    run = np.cumsum(apart[:, :-1][at])
    found = ids[at]
    exact = np.empty(len(found))
    for start in range(0, len(found), _PAIRS):  # all of them at once may be every score there is: equal vectors
        some = slice(start, start + _PAIRS)
        pairs = queries[at[0][some]].astype(np.float64), vectors[found[some]].astype(np.float64)
        exact[some] = np.einsum("pd,pd->p", *pairs)
    order = np.lexsort((found, -exact, run))
    ids[at], scores[at] = found[order], exact[order]


def _shares(count: int, threads: int) -> list[slice]:
    step = -(-count // threads)
    return [slice(start, start + step) for start in range(0, count, step)]


def _lengths(vectors: Floats) -> Floats:
    squares: Floats = np.einsum("nd,nd->n", vectors, vectors)
    return np.sqrt(squares)


def words(text: str) -> list[str]:
    """Split text for BM25: NFKC, case-folded runs of letters and digits; no stop words, no stemming.

    IDF already makes common words cheap, and a stop list or a stemmer would tie the harness to English. Chinese and
    Japanese are written without spaces: of a run of their characters each pair of neighbours is a word, as is usual.
    """
    return [word for run in runs(text) for word in _split(run)]


def runs(text: str) -> list[str]:
    """NFKC, case-folded runs of letters and digits, whatever the script."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def _split(run: str) -> Iterator[str]:
    if run.isascii():
        yield run
        return
    for part in _SPACELESS.split(run):
        if not _SPACELESS.fullmatch(part):
            yield from [part] if part else []
        elif len(part) == 1:
            yield part
        else:
            yield from (part[at : at + 2] for at in range(len(part) - 1))


class BM25:
    """BM25 (Lucene's IDF, k1 = 1.5, b = 0.75) over a fixed list of texts, by `bm25s`; tokens are those of `words`."""

    def __init__(self, texts: Sequence[str], *, k1: float = 1.5, b: float = 0.75) -> None:
        """Index `texts`; an empty list, or texts without a single word, score 0 everywhere."""
        self._n = len(texts)
        self._index = _bm25_index([words(text) for text in texts], k1, b)

    def scores(self, query: str) -> Floats:
        """Return the query's score against each text, (n,) float32; words unknown to the texts add nothing."""
        known = [] if self._index is None else [w for w in words(query) if w in self._index.vocab_dict]
        if self._index is None or not known:
            return np.zeros(self._n, dtype=np.float32)
        return np.asarray(self._index.get_scores(known), dtype=np.float32)

    def top_k(self, query: str, k: int) -> tuple[Ids, Floats]:
        """Return the ids and scores of the `k` best texts, each (min(k, n),), ties by position."""
        scores = self.scores(query)
        best = np.argsort(-scores, kind="stable")[:k]
        return best, scores[best]


def _bm25_index(documents: list[list[str]], k1: float, b: float) -> bm25s.BM25 | None:
    if not any(documents):
        return None
    import bm25s

    # Word numbers follow first appearance: bm25s takes its own from a set, whose order changes from process to process,
    # and with it the order in which a document's scores are added.
    vocabulary: dict[str, int] = {}
    ids = [[vocabulary.setdefault(word, len(vocabulary)) for word in document] for document in documents]
    index = bm25s.BM25(k1=k1, b=b, method="lucene", backend="numpy")
    index.index((ids, vocabulary), show_progress=False)
    return index


def fuse(views: Sequence[Floats], how: Literal["sum", "rrf"] = "sum", weights: Sequence[float] | None = None) -> Floats:
    """Combine several score lists over the same n items into one, larger better.

    Args:
        views: score arrays (n,), one a view.
        how: "sum" adds scores after scaling each view to [0, 1] (a constant view adds 0); "rrf" adds 1 / (60 + rank),
            rank from 1, ties by position (reciprocal rank fusion, Cormack et al. 2009).
        weights: one a view, default 1 each; the result is divided by their sum.

    Returns:
        (n,) float32.

    Raises:
        ValueError: no view, views of unequal length, or another number of weights than views.
    """
    shares = [1.0] * len(views) if weights is None else list(weights)
    if not views or len(shares) != len(views) or len({len(v) for v in views}) != 1:
        raise ValueError("fuse needs at least one view, equal lengths, and one weight a view")
    scale = _unit if how == "sum" else _reciprocal_ranks
    total = np.zeros(len(views[0]))
    for share, view in zip(shares, views, strict=True):
        total += share * scale(view)
    return (total / sum(shares)).astype(np.float32)


def _unit(scores: Floats) -> Doubles:
    low, high = (float(scores.min()), float(scores.max())) if len(scores) else (0.0, 0.0)
    return (scores.astype(np.float64) - low) / (high - low) if high > low else np.zeros(len(scores))


def _reciprocal_ranks(scores: Floats) -> Doubles:
    ranks = np.empty(len(scores))
    ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return 1 / (_RRF + ranks)


def searchable(thing: Item | Question, derived: bool = True) -> str:
    """Write out what retrieval sees of an item, or of a question that looks for one.

    An item begins with a line of its time, speaker, label and place; then come the words and, where `derived`, what
    machines wrote about the pictures or the whole, one `kind: text` a line. A question has no first line.
    """
    lines = [_provenance(thing)] if isinstance(thing, Item) else []
    lines.append(thing.text())
    if derived:
        lines += [f"{about.kind.replace('_', ' ')}: {about.text}" for about in thing.derived if about.text]
    return "\n".join(filter(None, lines))


def _provenance(item: Item) -> str:
    return " ".join(filter(None, (item.time, item.speaker, item.label, item.place.name if item.place else None)))
