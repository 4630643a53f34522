"""Controls and baselines: what a memory method has to beat (`bm25`, `dense`), and the floors and ceilings around it."""

from memharness.methods.controls.bounds import Constant, FullContext, Null, Oracle
from memharness.methods.controls.picks import Random, Recency
from memharness.methods.controls.rankers import BM25, Dense, DenseRounds

__all__ = ["BM25", "Constant", "Dense", "DenseRounds", "FullContext", "Null", "Oracle", "Random", "Recency"]
