"""Confidence intervals and paired tests that respect clusters: what a score, and a difference of scores, is worth.

One question decides everything here: what is the independent unit? Questions over one conversation are not independent
(naive errors can be three times too small), so where items share a cluster the cluster is the unit, and Student's t has
one degree of freedom fewer than there are clusters, and fewer yet where clusters are unequal. With under six clusters
no interval is honest, and none is given.

    >>> interval([1] * 45 + [0] * 5)          # 0.900, Wilson .786 to .957

`score` is one mean, `pairs` two on the same items, `ratios` a ratio of two totals; `clusters` is the error that all
three stand on. `resampling` asks the same without a formula, `families` are many tests at once, `power` is how many
items a gap needs. scipy is imported only where quantiles are needed.
"""

from memharness.stats.clusters import MIN_CLUSTERS
from memharness.stats.families import benjamini_hochberg, holm
from memharness.stats.pairs import Flips, NonInferior, Paired, averaged, macro, mcnemar_exact, non_inferior, paired
from memharness.stats.power import design_effect, items_needed
from memharness.stats.ratios import Ratio, ratio
from memharness.stats.resampling import DRAWS, SEED, SignFlip, cluster_bootstrap, sign_flip
from memharness.stats.score import WILSON_FROM, Interval, interval

__all__ = [
    "DRAWS",
    "MIN_CLUSTERS",
    "SEED",
    "WILSON_FROM",
    "Flips",
    "Interval",
    "NonInferior",
    "Paired",
    "Ratio",
    "SignFlip",
    "averaged",
    "benjamini_hochberg",
    "cluster_bootstrap",
    "design_effect",
    "holm",
    "interval",
    "items_needed",
    "macro",
    "mcnemar_exact",
    "non_inferior",
    "paired",
    "ratio",
    "sign_flip",
]
