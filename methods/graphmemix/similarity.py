"""The verifier without a model: support of nodes and relations from embeddings and BM25, on the 0–5 scale.

No constant here is fitted. The forms (BM25 as what the cosine does not know, relations graded by their anchor, the best
over views) were compared, in about 60 variants, on 12 Mem-Gallery dialogues and LoCoMo; reasonable ones lie within .02
of each other in Recall@10, and the controls .07 to .26 below.
"""

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


def edge_support(prior: Prior, row: Mapping[str, int], eligible: Mapping[str, Sequence[str]]) -> list[Increment]:
    """G = 5 × the anchor's relevance, relative to the best item of the question.

    ECV asks what a neighbour adds to an anchor that is already known. Without a reader, the honest expectation is that
    the turn beside a relevant turn (its answer, its question) is as useful as the turn it hangs on; the neighbour's own
    similarity is what graph expansion is there to get around, so it does not grade the relation.

    Args:
        prior: retrieval's scores of all items.
        row: an item's row.
        eligible: candidate → its anchors.
    """
    best = max(float(prior.rank.max()), 1e-9)
    return [
        Increment(candidate, anchor, 5.0 * max(0.0, float(prior.rank[row[anchor]])) / best, "new_fact")
        for candidate, anchors in eligible.items()
        for anchor in anchors
    ]
