"""AgentOCR: an agent's history as a stack of small pictures, drawn once a segment and compressed as one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

import pydantic

from memharness.config import Config, option
from memharness.method import Budget, Kit, Memory, Method, MethodCard
from memharness.methods.memo.units import Record
from memharness.methods.readouts.history import HistoryMemory, keep, shrunk
from memharness.methods.readouts.visual import covered
from memharness.pages import Block, Page, Style, downscaled, kept, lay_out, stacked
from memharness.prompts import header
from memharness.types import Evidence, Item, Question, Readout, Text

CODE = "AgentOCR code @ 25736f7"
RETURN = "⏎"
"""Stands for a line's end in the compact form."""
LEAST = 28
"""Pixels of the shorter side of a compressed picture."""
INKS = (("observation", "#0000a0"), ("action", "#a00000"))


class AgentOCRConfig(Config):
    """Options of `agentocr`."""

    font_px: int = option(10, "height of an em", source=CODE, unit="pixels", ge=6, le=48)
    width: int = option(392, "of the picture", source=CODE + ", its ALFWorld script", unit="pixels", ge=120)
    compact: bool = option(False, f"join a record's lines by {RETURN}, so that they wrap as one", source=CODE)
    compression: str = option(
        "budget",
        "c: the picture's area is divided by it, each side by its root; a number from 1, or budget, the least that "
        "holds the budget",
        source=CODE + ": the trained agent states c before each step",
    )
    without_budget: int = option(
        4096, "the limit where no --budget is given", source="MEMO: the 4,096-token window", unit="tokens", ge=1
    )

    @pydantic.field_validator("compression")
    @classmethod
    def _a_factor(cls, value: str) -> str:
        if value != "budget" and not _at_least_one(value):
            raise ValueError("expected budget, or a number from 1 on")
        return value


def _at_least_one(word: str) -> bool:
    try:
        return 1 <= float(word) < math.inf
    except ValueError:
        return False


def segments(item: Item, *, compact: bool) -> Iterator[tuple[str, str]]:
    """The kind (`observation` or `action`) and words of each segment of an item.

    A segment is a line. Of an observation's two parts the first is the command that led to it.
    """
    texts = [part.text for part in item.parts if isinstance(part, Text) and part.text.strip()]
    if not texts or item.derived:  # words about pictures stand in the record only
        texts = [Record.of(item).text]
    head = header(item)
    for at, text in enumerate(texts):
        kind = "action" if item.kind == "observation" and len(texts) > 1 and at == 0 else "observation"
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if head and at == 0 and lines:
            lines[0] = f"{head}: {lines[0]}"
        for line in [RETURN.join(lines)] if compact and lines else lines:
            yield kind, line


class AgentOCRMemory(HistoryMemory):
    """Recalls its whole history as one stacked picture, whatever is asked."""

    def __init__(self, config: AgentOCRConfig, kit: Kit) -> None:
        """Start empty."""
        super().__init__()
        self.config = config
        self.kit = kit
        self._drawn: dict[tuple[str, str], Page] = {}
        self._stack: Page | None = None
        self._counts = {"segments": 0, "drawn": 0, "replaced_characters": 0}

    async def ready(self) -> None:
        """Draw the segments that are new, and stack them all."""
        await super().ready()
        self._stack = await self.kit.device.run(self._stacked)

    def _stacked(self) -> Page | None:
        self._counts["segments"] = self._counts["replaced_characters"] = 0
        pages = []
        for item in self.items:
            for kind, words in segments(item, compact=self.config.compact):
                text, replaced = covered(words)
                self._counts["segments"] += 1
                self._counts["replaced_characters"] += replaced
                pages.append(self._segment(kind, text))
        return stacked(pages) if pages else None

    def _segment(self, kind: str, text: str) -> Page:
        """The picture of a segment; equal segments are drawn once."""
        if (kind, text) not in self._drawn:
            style = Style(font_px=self.config.font_px, margin=2, gap=0, inks=INKS, labels=False)
            layout = lay_out([Block("s", "", text, "", kind=kind)], "plain", self.config.width, 1 << 24, style)
            if layout is None:
                raise ValueError(f"a picture {self.config.width} pixels wide has no room for a word")
            self._drawn[kind, text] = kept(layout)
            self._counts["drawn"] += 1
        return self._drawn[kind, text]

    async def recall(self, question: Question, budget: Budget) -> Readout:
        """The stack, compressed.

        Raises:
            MethodError: with `compression=budget`, it holds the budget at no size.
        """
        if self._stack is None:
            return Readout()
        page = self._compressed(self._stack, budget)
        trace = {
            **self._counts,
            "compression": round(self._stack.width * self._stack.height / (page.width * page.height), 4),
            "page": {"width": page.width, "height": page.height, "sha256": page.sha256},
        }
        evidence = tuple(Evidence(item.id) for item in self.items)
        return Readout(evidence, (keep(page, self.kit.images, "agentocr"),), trace)

    def _compressed(self, stack: Page, budget: Budget) -> Page:
        if self.config.compression == "budget":
            limit = self.config.without_budget if budget.tokens is None else budget.tokens
            return shrunk(stack, budget, limit, least=LEAST)
        side = math.sqrt(float(self.config.compression))
        width, height = (min(full, max(LEAST, round(full / side))) for full in (stack.width, stack.height))
        return stack if (width, height) == (stack.width, stack.height) else downscaled(stack, size=(width, height))


class AgentOCR(Method[AgentOCRConfig]):
    """The history as a picture, with a compression factor."""

    card: ClassVar[MethodCard] = MethodCard(
        name="agentocr",
        title="AgentOCR: history as compressed pictures",
        paper="https://arxiv.org/abs/2601.04786",
        version=1,
        track="evidence",
        roles={"answer": ("read",)},
        needs={"answer": frozenset({"image"})},
        notes="The trained agent states its own compression factor in each reply; here it is an option, by default the "
        "least that holds the budget. A fixed factor that exceeds the budget is the outcome over_budget.",
    )
    config_class: ClassVar[type[Config]] = AgentOCRConfig

    def open(self, context: str, kit: Kit) -> Memory:
        """A fresh memory."""
        return AgentOCRMemory(self.config, kit)
