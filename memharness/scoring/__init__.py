"""Pure scoring functions: texts and ids in, numbers out, each after one official evaluator."""

from memharness.scoring.choice import extract_choice
from memharness.scoring.dates import dates_equal
from memharness.scoring.recall import exclusion, hit, precision, recall_all, recall_any
from memharness.scoring.text import NORMALISERS, bleu, contains, exact_match, gold_text, token_f1
from memharness.scoring.verdict import Verdict, boolean_verdict, word_verdict

# `recall` itself stays in its module, whose name it would hide here.
__all__ = [
    "NORMALISERS",
    "Verdict",
    "bleu",
    "boolean_verdict",
    "contains",
    "dates_equal",
    "exact_match",
    "exclusion",
    "extract_choice",
    "gold_text",
    "hit",
    "precision",
    "recall_all",
    "recall_any",
    "token_f1",
    "word_verdict",
]
