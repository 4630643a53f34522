"""Supporting facts, evidence triples and joint metrics of HotpotQA and 2WikiMultiHopQA."""

from __future__ import annotations

import string
from collections.abc import Collection, Hashable, Iterable, Sequence
from math import prod
from typing import NamedTuple

from memharness.scoring.text import exact_match, hotpot, hotpot_f1

Fact = tuple[str, int]
"""A supporting fact: the paragraph's title and the sentence's index, from 0."""
Triple = tuple[str, str, str]
"""A piece of 2Wiki evidence: subject, relation, object."""

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


class Agreement(NamedTuple):
    """How far a prediction agrees with the gold; each in [0, 1], but 2Wiki v1.1's evidence recall and F1 may pass 1."""

    em: float
    f1: float
    precision: float
    recall: float


DISAGREEMENT = Agreement(0.0, 0.0, 0.0, 0.0)


def answer_agreement(prediction: str, gold: str) -> Agreement:
    """Return EM and token F1 of an answer (hotpot_evaluate_v1.py; 2Wiki's functions are the same)."""
    words = hotpot_f1(prediction, gold)
    return Agreement(float(exact_match(prediction, gold, hotpot)), words.f1, words.precision, words.recall)


def best_answer(prediction: str, golds: Sequence[str]) -> Agreement:
    """Return 2Wiki v1.1's agreement with an answer and its aliases: each figure's own maximum over the golds.

    Raises:
        ValueError: if `golds` is empty.
    """
    if not golds:
        raise ValueError("best_answer needs at least one gold answer")
    return Agreement(*map(max, zip(*(answer_agreement(prediction, gold) for gold in golds), strict=True)))


def fact_agreement(prediction: Iterable[Sequence[object]], gold: Iterable[Sequence[object]]) -> Agreement:
    """Return agreement of two sets of supporting facts (hotpot_evaluate_v1.py, update_sp)."""
    said, wanted = set(map(tuple, prediction)), set(map(tuple, gold))
    return _figures(len(said & wanted), len(said), len(wanted))


def wiki_fact_agreement(prediction: Iterable[Fact], gold: Iterable[Fact]) -> Agreement:
    """Return 2Wiki's agreement of supporting facts (2wikimultihop_evaluate.py).

    Titles are lower-cased after repeats were dropped, so two spellings of one title count as two facts.
    """
    said, wanted = (
        [(title.lower(), index) for title, index in {(*fact,) for fact in facts}] for facts in (prediction, gold)
    )
    return _agreement(said, wanted)


def wiki_evidence(prediction: Iterable[Sequence[str]], gold: Iterable[Sequence[str]]) -> Agreement:
    """Return 2Wiki v1's agreement of evidence triples, as sets, lower-cased and without ASCII punctuation."""
    return _agreement(set(map(_plain, prediction)), set(map(_plain, gold)))


def wiki_evidence_aliases(prediction: Sequence[Sequence[str]], gold: Sequence[Sequence[Sequence[str]]]) -> Agreement:
    """Return 2Wiki v1.1's agreement of evidence, where each gold triple is the list of its spellings.

    Matches are counted over the distinct predictions, so two spellings of one gold triple give recall 2 (kept: it is
    official).
    """
    said = {_plain(triple) for triple in prediction}
    accepted = {_plain(spelling) for spellings in gold for spelling in spellings}
    matches = sum(triple in accepted for triple in said)
    precision = matches / len(said) if said else 0.0
    recall = matches / len(gold) if gold else 0.0
    return Agreement(float(matches == len(said) == len(gold)), _f1(precision, recall), precision, recall)


def joint(parts: Iterable[Agreement]) -> Agreement:
    """Return the joint agreement: products of EM, precision and recall over the parts, and F1 of those products."""
    parts = list(parts)
    precision, recall = prod(part.precision for part in parts), prod(part.recall for part in parts)
    return Agreement(prod(part.em for part in parts), _f1(precision, recall), precision, recall)


def hotpot_scores(
    answer: str | None,
    facts: Iterable[Sequence[object]] | None,
    gold_answer: str,
    gold_facts: Iterable[Sequence[object]],
) -> dict[str, float]:
    """Return one question's twelve HotpotQA figures under the official keys (em, f1, prec, recall, sp_*, joint_*).

    A missing answer or missing facts (None) score 0 and make the joint figures 0; the question stays in the mean.
    """
    said = DISAGREEMENT if answer is None else answer_agreement(answer, gold_answer)
    shown = DISAGREEMENT if facts is None else fact_agreement(facts, gold_facts)
    parts = {"": said, "sp_": shown, "joint_": joint((said, shown))}
    return {
        prefix + name: value
        for prefix, part in parts.items()
        for name, value in zip(("em", "f1", "prec", "recall"), part, strict=True)
    }


def _agreement(prediction: Collection[Hashable], gold: Collection[Hashable]) -> Agreement:
    """Agreement of lists that may hold one thing twice, counted as 2Wiki's script counts it."""
    found, missed = sum(one in gold for one in prediction), sum(one not in prediction for one in gold)
    return _figures(found, len(prediction), found + missed)


def _figures(found: int, said: int, wanted: int) -> Agreement:
    precision = found / said if said else 0.0
    recall = found / wanted if wanted else 0.0
    return Agreement(float(found == said == wanted), _f1(precision, recall), precision, recall)


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


def _plain(triple: Sequence[str]) -> tuple[str, ...]:
    return tuple(" ".join(part.lower().translate(_NO_PUNCTUATION).split()) for part in triple)
