"""Visual-only memory: the same records on one page, shrunk to the budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from memharness.config import Config, option
from memharness.method import Budget, Kit, Memory, Method, MethodCard
from memharness.methods.readouts.history import HistoryMemory, keep, shrunk
from memharness.pages import Block, Page, Style, kept, lay_out, missing
from memharness.types import Question, Readout

NARROWEST = 240
"""Pixels: no page is begun narrower."""
UNSEEN = "?"
"""What stands on a page for a character that no bundled font covers."""


class VisualConfig(Config):
    """Options of `visual-only`."""

    font_px: int = option(
        14, "height of an em before shrinking", source="memharness: the paper does not say", unit="pixels", ge=8, le=48
    )
    without_budget: int = option(
        4096, "the limit where no --budget is given", source="paper: the 4,096-token window", unit="tokens", ge=1
    )


def covered(text: str) -> tuple[str, int]:
    """A text that can be drawn, and how many of its characters had to be replaced."""
    lost = set(missing(text))
    return "".join(UNSEEN if char in lost else char for char in text), sum(char in lost for char in text)


def square(blocks: Sequence[Block], style: Style) -> Page:
    """The page of blocks as wide as it is high, as far as whole lines allow; readers distort such a page least."""
    width = NARROWEST
    tall = 1 << 24
    for _ in range(4):  # a page's area hardly changes with its width, so this settles at once
        layout = lay_out(blocks, "plain", width, tall, style)
        if layout is None:
            width *= 2
            continue
        better = max(NARROWEST, round(math.sqrt(layout.width * layout.height)))
        if abs(better - width) < style.font_px:
            break
        width = better
    layout = lay_out(blocks, "plain", width, tall, style)
    if layout is None:
        raise ValueError(f"no page of {width} pixels holds these blocks")
    return kept(layout)


class VisualOnlyMemory(HistoryMemory):
    """Recalls its whole history as a picture, whatever is asked."""

    def __init__(self, config: VisualConfig, kit: Kit) -> None:
        """Start empty."""
        super().__init__()
        self.config = config
        self.kit = kit
        self._page: Page | None = None
        self._replaced = 0

    async def ready(self) -> None:
        """Draw the page, once for all questions."""
        await super().ready()
        self._page = None
        text, self._replaced = covered(self.history.text)
        if text:
            style = Style(font_px=self.config.font_px)
            self._page = await self.kit.device.run(square, [Block("history", "", text, "")], style)

    async def recall(self, question: Question, budget: Budget) -> Readout:
        """The page at the largest size that the budget holds under every counter.

        Raises:
            MethodError: it holds at no size.
        """
        if self._page is None:
            return Readout()
        limit = self.config.without_budget if budget.tokens is None else budget.tokens
        page = shrunk(self._page, budget, limit)
        trace = {
            "page": {"width": page.width, "height": page.height, "sha256": page.sha256},
            "shrunk": round(self._page.width / page.width, 4),
            "replaced_characters": self._replaced,
        }
        shown = self.history.shown(len(self.history.text))
        return Readout(shown, (keep(page, self.kit.images, "visual-only"),), trace)


class VisualOnly(Method[VisualConfig]):
    """Records as one page: what a budget holds if pictures are cheaper than words."""

    card: ClassVar[MethodCard] = MethodCard(
        name="visual-only",
        title="Visual-only memory",
        paper="MEMO, arXiv:2609.07471, baseline (its definition is not published)",
        version=1,
        track="evidence",
        roles={"answer": ("read",)},
        needs={"answer": frozenset({"image"})},
        notes="The text of text-only on one page, shrunk to the budget. All of it counts as shown, legible or not.",
    )
    config_class: ClassVar[type[Config]] = VisualConfig

    def open(self, context: str, kit: Kit) -> Memory:
        """A fresh memory."""
        return VisualOnlyMemory(self.config, kit)
