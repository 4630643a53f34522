"""The verifier without a model: support of nodes and relations from embeddings and BM25, on the 0–5 scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memharness.methods.graphmemix.verifier import Increment
from memharness.methods.graphmemix.views import Prior


def node_support(prior: Prior, rows: Sequence[int]) -> list[float]:
    """V = 5 × BM25 relative to the best item of the question: what the source score does not know already.

    Args:
        prior: retrieval's scores of all items.
        rows: the candidates' rows.
    """
    return [5.0 * float(prior.lexical[row]) for row in rows]


def edge_support(
    prior: Prior,
    row: Mapping[str, int],
    eligible: Mapping[str, Sequence[str]],
    kinds: Mapping[tuple[str, str], Sequence[str]],
) -> list[Increment]:
    """G = 5 × the weaker node's relevance: a relation is as good as the less relevant thing it joins.

    Args:
        prior: retrieval's scores of all items.
        row: an item's row.
        eligible: candidate → its anchors.
        kinds: schema relations of a pair.
    """
    found = []
    for candidate, anchors in eligible.items():
        for anchor in anchors:
            worth = min(float(prior.rank[row[candidate]]), float(prior.rank[row[anchor]]))
            if worth > 0:
                found.append(Increment(candidate, anchor, 5.0 * min(worth, 1.0), "new_fact"))
    return found
