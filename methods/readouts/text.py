"""Text-only memory: the records in order, cut at the budget."""

from __future__ import annotations

from typing import ClassVar

from memharness.config import Config
from memharness.method import Budget, Kit, Memory, Method, MethodCard
from memharness.methods.readouts.history import HistoryMemory, beginning
from memharness.types import Question, Readout, Text


class TextOnlyMemory(HistoryMemory):
    """Recalls the beginning of its history, whatever is asked."""

    async def recall(self, question: Question, budget: Budget) -> Readout:
        """As much of the history's beginning, in whole words, as the budget holds under every counter."""
        end = beginning(self.history.text, lambda text: budget.holds((Text(text),)))
        shown = self.history.text[:end].rstrip()
        trace = {"characters": [end, len(self.history.text)]}
        return Readout(self.history.shown(end), (Text(shown),) if shown else (), trace)


class TextOnly(Method[Config]):
    """Records as text, in order: what a budget holds without any selection."""

    card: ClassVar[MethodCard] = MethodCard(
        name="text-only",
        title="Text-only memory",
        paper="MEMO, arXiv:2609.07471, baseline (its definition is not published)",
        version=1,
        track="evidence",
        notes="Records concatenated in order and cut at the budget with the reader's tokenizer.",
    )
    config_class: ClassVar[type[Config]] = Config

    def open(self, context: str, kit: Kit) -> Memory:
        """A fresh memory."""
        return TextOnlyMemory()
