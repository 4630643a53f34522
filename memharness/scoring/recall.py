"""Retrieval figures over evidence ids: recall in its three senses, hit, precision, and when they say nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal

Exclusion = Literal[
    "abstention", "no gold", "gold is not indexed", "gold is the whole haystack", "k covers the whole haystack"
]


def top(retrieved: Iterable[str], k: int | None = None, *, cut_first: bool = False) -> list[str]:
    """Return the first `k` distinct ids in order (all distinct ids without `k`).

    A repeated id takes no second place: repeats are dropped, then the list is cut. `cut_first` does it the other way
    round, as Mem-Gallery's evaluator does, so that repeats use up places.

    Raises:
        ValueError: if `k` is below 1.
    """
    if k is not None and k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
    ids = list(retrieved)
    return list(dict.fromkeys(ids[:k])) if cut_first else list(dict.fromkeys(ids))[:k]


def recall(
    retrieved: Iterable[str], gold: Collection[str], k: int | None = None, *, cut_first: bool = False
) -> float | None:
    """Return the share of the distinct gold ids that are among the first `k`, or None without gold."""
    wanted = set(gold)
    return len(wanted.intersection(top(retrieved, k, cut_first=cut_first))) / len(wanted) if wanted else None


def recall_any(
    retrieved: Iterable[str], gold: Collection[str], k: int | None = None, *, cut_first: bool = False
) -> float | None:
    """Return 1 if at least one gold id is among the first `k`, else 0, or None without gold."""
    share = recall(retrieved, gold, k, cut_first=cut_first)
    return None if share is None else float(share > 0)


def recall_all(
    retrieved: Iterable[str], gold: Collection[str], k: int | None = None, *, cut_first: bool = False
) -> float | None:
    """Return 1 if every gold id is among the first `k`, else 0, or None without gold."""
    share = recall(retrieved, gold, k, cut_first=cut_first)
    return None if share is None else float(share == 1)


hit = recall_any
"""Hit at k is recall_any by another name (ATM-Bench, Mem-Gallery)."""


def precision(
    retrieved: Iterable[str],
    gold: Collection[str],
    k: int | None = None,
    *,
    cut_first: bool = False,
    of_k: bool = False,
) -> float | None:
    """Return the share of gold among the first `k` distinct ids, or None without gold; nothing retrieved is 0.

    The share is of what was delivered, as in Mem-Gallery; `of_k` divides by `k` instead, so that delivering fewer
    does not pay.

    Raises:
        ValueError: if `of_k` is asked for without a `k`.
    """
    if of_k and k is None:
        raise ValueError("precision of k needs a k")
    wanted = set(gold)
    if not wanted:
        return None
    shown = top(retrieved, k, cut_first=cut_first)
    places = k if of_k and k is not None else max(1, len(shown))
    return len(wanted.intersection(shown)) / places


def locomo_recall(context: Sequence[str] | None, evidence: Sequence[str]) -> float:
    """Return LoCoMo's official recall of evidence turns in the retrieved context, in [0, 1].

    Context ids that start with "S" name sessions, and a turn "D3:7" then counts as found when session 3 is there;
    otherwise ids must be equal. Without evidence, or without a record of the context (None), it is 1.
    """
    if context is None or not evidence:
        return 1.0
    if context and context[0].startswith("S"):
        sessions = {name[1:] for name in context}
        return sum(turn.split(":")[0][1:] in sessions for turn in evidence) / len(evidence)
    return sum(turn in set(context) for turn in evidence) / len(evidence)


def exclusion(
    gold: Collection[str], haystack: Collection[str] | None = None, k: int | None = None, *, abstention: bool = False
) -> Exclusion | None:
    """Return why recall says nothing about this question, or None where it does.

    Args:
        gold: the evidence ids.
        haystack: the ids that were indexed, where they are known.
        k: the cut, where there is one.
        abstention: whether the right answer is to decline, so that its evidence is not to be found.
    """
    if abstention:
        return "abstention"
    if not gold:
        return "no gold"
    if haystack is None:
        return None
    indexed = set(haystack)
    if indexed.isdisjoint(gold):
        return "gold is not indexed"
    if indexed <= set(gold):
        return "gold is the whole haystack"
    if k is not None and k >= len(indexed):
        return "k covers the whole haystack"
    return None
