"""Normalisers, exact match, token F1 and BLEU, each as its official evaluator computes it."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

Normaliser = Callable[[str], str]

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_ARTICLES_AND = re.compile(r"\b(?:a|an|the|and)\b")
_ARTICLES_BEFORE_WORD = re.compile(r"\b(?:a|an|the)\b(?=\s+\w)")
# Every ASCII punctuation mark but "_", and "." only where it is not a decimal point.
_LOOSE_PUNCTUATION = re.compile(
    rf"[{re.escape(string.punctuation.replace('_', '').replace('.', ''))}]|\.(?!\d)|(?<!\d)\."
)

HOTPOT_CLOSED = frozenset({"yes", "no", "noanswer"})
LOCOMO_ABSTENTIONS = ("no information available", "not mentioned")


class Overlap(NamedTuple):
    """Token overlap of a prediction with a gold answer, each figure in [0, 1]."""

    precision: float
    recall: float
    f1: float


class Bleu(NamedTuple):
    """Sentence BLEU with uniform weights up to 1-, 2- and 4-grams, each in [0, 1]."""

    bleu_1: float
    bleu_2: float
    bleu_4: float


NO_OVERLAP = Overlap(0.0, 0.0, 0.0)


def gold_text(value: object) -> str | None:
    """Return a gold answer as text: numbers in their JSON spelling (0 stays "0"), None for a missing one.

    Raises:
        TypeError: if `value` is neither a string, a number nor None.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise TypeError(f"a gold answer must be a string or a number, not {type(value).__name__}")


@lru_cache(maxsize=64)  # exact match and F1 of one question ask for the same texts
def hotpot(text: str) -> str:
    """Normalise as hotpot_evaluate_v1.py: lower case, ASCII punctuation deleted, a|an|the dropped, spaces collapsed."""
    return _collapse(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)))


def locomo(text: str) -> str:
    """Normalise as LoCoMo's task_eval/evaluation.py: HotpotQA's rule that drops "and" too."""
    return _collapse(_ARTICLES_AND.sub(" ", text.lower().translate(_NO_PUNCTUATION)))


def mem_gallery(text: str) -> str:
    """Normalise as Mem-Gallery's evaluation.py: a|an|the|and dropped, punctuation to spaces, decimals and "_" kept."""
    return _collapse(_LOOSE_PUNCTUATION.sub(" ", _ARTICLES_AND.sub(" ", text.lower())))


def memeye(text: str) -> str:
    """Normalise as MemEye: Mem-Gallery's rule, but only a|an|the are dropped and only before a word."""
    return _collapse(_LOOSE_PUNCTUATION.sub(" ", _ARTICLES_BEFORE_WORD.sub(" ", text.lower())))


NORMALISERS: Mapping[str, Normaliser] = {
    "hotpot": hotpot,
    "locomo": locomo,
    "mem_gallery": mem_gallery,
    "memeye": memeye,
}


def exact_match(prediction: str, gold: str, normalise: Normaliser) -> bool:
    """Return whether the two texts are equal once normalised (two empty ones are)."""
    return normalise(prediction) == normalise(gold)


def contains(prediction: str, gold: str | None, normalise: Normaliser) -> bool | None:
    """Return whether the prediction holds the gold answer, or None where the gold answer is empty.

    An empty string is part of every text, so an empty gold answer would be right whatever was said.
    """
    wanted = normalise(gold or "")
    return wanted in normalise(prediction) if wanted else None


def overlap(prediction: Sequence[str], gold: Sequence[str]) -> Overlap:
    """Return precision, recall and F1 of the multiset overlap of two token sequences; all 0 without a common token."""
    same = (Counter(prediction) & Counter(gold)).total()
    if same == 0:
        return NO_OVERLAP
    precision, recall = same / len(prediction), same / len(gold)
    return Overlap(precision, recall, 2 * precision * recall / (precision + recall))


def token_f1(prediction: str, gold: str, normalise: Normaliser, *, stemmed: bool = False) -> Overlap:
    """Return the overlap of the normalised words, Porter-stemmed on request."""
    words, wanted = normalise(prediction).split(), normalise(gold).split()
    return overlap(stems(words), stems(wanted)) if stemmed else overlap(words, wanted)


def hotpot_f1(prediction: str, gold: str) -> Overlap:
    """Return HotpotQA's token F1: yes, no and noanswer count only when equal (hotpot_evaluate_v1.py)."""
    said, wanted = hotpot(prediction), hotpot(gold)
    if said != wanted and (said in HOTPOT_CLOSED or wanted in HOTPOT_CLOSED):
        return NO_OVERLAP
    return overlap(said.split(), wanted.split())


def locomo_f1(prediction: str, answer: str) -> float:
    """Return LoCoMo's F1 over Porter stems, with no rule for yes and no."""
    return token_f1(prediction, answer, locomo, stemmed=True).f1


def locomo_multi_f1(prediction: str, answer: str) -> float:
    """Return LoCoMo's multi-answer F1: both texts split at ",", the mean over golds of the best prediction."""
    said, wanted = prediction.split(","), answer.split(",")
    return sum(max(locomo_f1(one, gold) for one in said) for gold in wanted) / len(wanted)


def abstains(prediction: str, phrases: Iterable[str] = LOCOMO_ABSTENTIONS) -> bool:
    """Return whether the prediction holds one of the (lower-case) phrases that decline to answer."""
    said = prediction.lower()
    return any(phrase in said for phrase in phrases)


def locomo_score(category: int, prediction: str, answer: str) -> float:
    """Return LoCoMo's official score of one question, in [0, 1].

    Categories are the dataset's own ids: 1 multi-hop, 2 temporal, 3 open domain (only the part of the gold answer
    before ";" counts), 4 single-hop, 5 adversarial (right when the prediction abstains, whatever the gold answer).

    Raises:
        ValueError: if `category` is not one of 1 to 5.
    """
    if category == 1:
        return locomo_multi_f1(prediction, answer)
    if category in (2, 4):
        return locomo_f1(prediction, answer)
    if category == 3:
        return locomo_f1(prediction, answer.split(";")[0])
    if category == 5:
        return float(abstains(prediction))
    raise ValueError(f"LoCoMo has categories 1 to 5, not {category}")


def mem0_f1(prediction: str, gold: str) -> Overlap:
    """Return the F1 that Mem0 and A-Mem report on LoCoMo: sets of words, split after . , ! ? became spaces."""
    said, wanted = _mem0_words(prediction), _mem0_words(gold)
    return overlap(sorted(said), sorted(wanted))


def mem0_exact_match(prediction: str, gold: str) -> bool:
    """Return Mem0's and A-Mem's exact match: equality of the lower-cased, stripped texts."""
    return prediction.strip().lower() == gold.strip().lower()


def bleu(prediction: str, gold: str, normalise: Normaliser) -> Bleu:
    """Return NLTK's sentence BLEU with smoothing method 1; all 0 when either text has no word left."""
    said, wanted = normalise(prediction).split(), normalise(gold).split()
    if not said or not wanted:
        return Bleu(0.0, 0.0, 0.0)
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    # The three share their n-gram counts, so one call is three times cheaper than three.
    values = sentence_bleu(
        [wanted],
        said,
        weights=[(1.0,), (0.5, 0.5), (0.25, 0.25, 0.25, 0.25)],
        smoothing_function=SmoothingFunction().method1,
    )
    return Bleu(*(float(value) for value in values))


def mem_gallery_scores(prediction: str, gold: str) -> dict[str, float]:
    """Return Mem-Gallery's official answer metrics of one question under the keys em, f1, bleu, bleu_1, bleu_2.

    `bleu` is BLEU-4. Source: benchmark/memengine/evaluate/evaluation.py.
    """
    grams = bleu(prediction, gold, mem_gallery)
    return {
        "em": float(exact_match(prediction, gold, mem_gallery)),
        "f1": token_f1(prediction, gold, mem_gallery, stemmed=True).f1,
        "bleu": grams.bleu_4,
        "bleu_1": grams.bleu_1,
        "bleu_2": grams.bleu_2,
    }


def stems(words: Iterable[str]) -> list[str]:
    """Return each word's Porter stem (NLTK's default mode, which the official evaluators use)."""
    return [_stem(word) for word in words]


@lru_cache(maxsize=1 << 16)
def _stem(word: str) -> str:
    return _stemmer()(word)


@cache
def _stemmer() -> Callable[[str], str]:
    from nltk.stem.porter import PorterStemmer

    stem: Callable[[str], str] = PorterStemmer().stem
    return stem


def _mem0_words(text: str) -> set[str]:
    return set(re.sub(r"[.,!?]", " ", text.lower()).split())


def _collapse(text: str) -> str:
    return " ".join(text.split())
