"""Plots of runs: what is shown is worked out first, as rows, and written as CSV beside the picture."""

from memharness.report.plots.kinds import KINDS, SUFFIXES, plot

__all__ = ["KINDS", "SUFFIXES", "plot"]
