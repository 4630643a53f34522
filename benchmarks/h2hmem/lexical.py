"""H2HMem's lexical metrics: overlap of word sets and single-word BLEU, cut into words as NLTK cuts them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from memharness.metric import Metric
from memharness.types import Asked, Score

_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_DASHES = frozenset({"–", "—", "...", ".."})
"""What the official code adds to NLTK's stop words and is no ASCII punctuation mark."""
_LETTERS = "c d e f g h k l m n p r s t v w"
_TITLES = "mr mrs ms dr prof jr sr st gen col lt maj adm sen rep reps messrs ph.d m.b.a"
_TIMES = "a.m p.m a.d jan feb aug sep sept oct nov dec tues wed fri yr"
_NAMES = "u.s u.s.a u.k u.n n.y l.a d.c ave inc ltd co corp cos bros vs ft mg ok ill wash ore pa"
_ABBREVIATIONS = frozenset(" ".join((_LETTERS, _TITLES, _TIMES, _NAMES)).split())
"""What of NLTK's English abbreviations, which end no sentence, everyday prose has; "etc", "e.g" and "no" are none."""


@dataclass(frozen=True)
class H2HMemScores(Metric):
    """The official lexical metrics in one pass: precision, recall and f1 of word sets, and bleu_1.

    The official code drops NLTK's English stop words, `no` and `not` among them, so that a gold answer "No" holds no
    word and scores 0 whatever was said: those are `precision`, `recall` and `f1`, as coded. `f1_as_written` is F1 over
    all words. `bleu_1` keeps stop words officially (smoothing method 4).

    Source: evaluate_metrics/Lexical_metrics/Lexical_metrics.py @ 0722eb5.
    """

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Score one question."""
        said, gold = words(unit[0].record.answer or ""), words(unit[0].gold.answers[0])
        precision, recall, f1 = overlap(content(said), content(gold))
        values = {
            "f1": f1,
            "precision": precision,
            "recall": recall,
            "bleu_1": bleu_1(said, gold),
            "f1_as_written": overlap(said, gold)[2],
        }
        return {name: Score(value) for name, value in values.items()}


def words(text: str) -> list[str]:
    """Lower-cased words as NLTK's `word_tokenize` cuts them, without those that are all ASCII punctuation.

    The text is lower-cased first, as officially. So sentences are told apart by NLTK's own rules over its
    abbreviations: after an initial or a number a lower-case word begins none, and "10. he" keeps its full stop. The
    data of NLTK's model, which it would have to download, know more abbreviations of newspapers and a few names.
    """
    lower = " ".join(text.lower().split())
    found = (word for sentence in _sentences().tokenize(lower) for word in _tokenizer().tokenize(sentence))
    return [word for word in found if not _PUNCTUATION.issuperset(word)]


def content(said: Sequence[str]) -> list[str]:
    """Words without NLTK's English stop words and the dashes that the official code adds to them."""
    return [word for word in said if word not in _stop_words()]


def overlap(said: Sequence[str], gold: Sequence[str]) -> tuple[float, float, float]:
    """Precision, recall and F1 of two word sets; 0 where there is no common word."""
    left, right = set(said), set(gold)
    same = len(left & right)
    if not same:
        return 0.0, 0.0, 0.0
    precision, recall = same / len(left), same / len(right)
    return precision, recall, 2 * precision * recall / (precision + recall)


def bleu_1(said: Sequence[str], gold: Sequence[str]) -> float:
    """NLTK's sentence BLEU of single words with smoothing method 4; 0 where either text has no word."""
    if not said or not gold:
        return 0.0
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    return float(sentence_bleu([gold], said, weights=(1.0, 0, 0, 0), smoothing_function=SmoothingFunction().method4))


@cache
def _sentences() -> Any:
    from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer

    known = PunktParameters()
    known.abbrev_types = set(_ABBREVIATIONS)
    return PunktSentenceTokenizer(known)


@cache
def _tokenizer() -> Any:
    from nltk.tokenize import NLTKWordTokenizer

    return NLTKWordTokenizer()


@cache
def _stop_words() -> frozenset[str]:
    from bm25s.stopwords import STOPWORDS_EN_PLUS  # NLTK's 179, which NLTK itself would have to download

    return frozenset(STOPWORDS_EN_PLUS) | _DASHES
