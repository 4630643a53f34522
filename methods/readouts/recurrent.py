"""MemAgent and MemOCR: a memory that a model overwrites chunk by chunk, shown as text or as a page of Markdown."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any, ClassVar

from memharness.config import Config, option
from memharness.method import Budget, Kit, Memory, Method, MethodCard
from memharness.methods.readouts.history import HistoryMemory, beginning, chunks, halves, keep, shrunk
from memharness.methods.readouts.visual import covered, square
from memharness.pages import Style, markdown
from memharness.reader import Message, Request, Sampling
from memharness.types import Question, Readout, Text

MEMAGENT = "MemAgent code @ 76b7a658"
MEMOCR = "MemOCR code @ 61ceddfd"
EMPTY = "(empty)"
THOUGHT = "</think>"


class RecurrentConfig(Config):
    """Options of `memagent`."""

    chunk: int = option(5000, "tokens of history read at a time", source=MEMAGENT, unit="tokens", ge=1)
    longest: int = option(
        120_000, "tokens of history from which only the two ends are read", source=MEMAGENT, unit="tokens", ge=2
    )
    memory_tokens: int = option(1024, "tokens a memory may be written in", source=MEMAGENT, unit="tokens", ge=1)
    temperature: float = option(0.7, "of the model that writes the memory", source=MEMAGENT, ge=0)
    top_p: float = option(0.95, "of the model that writes the memory", source=MEMOCR, gt=0, le=1)


class MemOCRConfig(RecurrentConfig):
    """Options of `memocr`."""

    font_px: int = option(
        14, "height of an em of body text before shrinking", source="memharness", unit="pixels", ge=8, le=48
    )
    padding: int = option(10, "blank pixels around the page", source=MEMOCR, unit="pixels", ge=0, le=200)
    without_budget: int = option(
        4096, "the limit where no --budget is given", source="MEMO: the 4,096-token window", unit="tokens", ge=1
    )


class RecurrentMemory(HistoryMemory):
    """Reads the history for each question, a chunk at a time, and keeps only what it writes down."""

    prompt = "memagent.v1"

    def __init__(self, config: RecurrentConfig, kit: Kit) -> None:
        """Start empty."""
        super().__init__()
        self.config = config
        self.kit = kit

    async def write(self, question: Question) -> tuple[str, int]:
        """The memory after the last chunk, and how many chunks there were.

        Of a reply that thinks aloud, what follows the last `</think>` counts.
        """
        agent = self.kit.reader("agent")
        config = self.config
        seed = self.kit.rng(question.id).getrandbits(31)
        text = halves(self.history.text, config.longest, agent.counter)
        memory, parts = EMPTY, list(chunks(text, config.chunk, agent.counter))
        for chunk in parts:
            words = f"Question: {question.text()}\n\nMemory so far:\n{memory}\n\nNext part:\n{chunk}\n\nNew memory:"
            request = Request(
                (Message("system", (Text(_prompt(self.prompt)),)), Message("user", (Text(words),))),
                Sampling(config.temperature, config.top_p, config.memory_tokens, seed=seed),
            )
            memory = (await agent.generate(request)).text.rpartition(THOUGHT)[2].strip() or EMPTY
        return memory, len(parts)

    async def recall(self, question: Question, budget: Budget) -> Readout:
        """The memory as text, cut at the budget."""
        memory, read = await self.write(question)
        end = beginning(memory, lambda text: budget.holds((Text(text),)))
        shown = memory[:end].rstrip()
        trace = {"chunks": read, "memory": memory, "cut": end < len(memory)}
        return Readout((), (Text(shown),) if shown else (), trace)


class MemOCRMemory(RecurrentMemory):
    """The same memory in Markdown, shown as a page."""

    prompt = "memocr.v1"
    config: MemOCRConfig

    async def recall(self, question: Question, budget: Budget) -> Readout:
        """The memory as a page, shrunk until it holds the budget under every counter; its area is then at most B · 784.

        Raises:
            MethodError: it holds at no size.
        """
        memory, read = await self.write(question)
        text, replaced = covered(memory)
        blocks = markdown(text)
        trace: dict[str, Any] = {"chunks": read, "memory": memory, "replaced_characters": replaced}
        if not blocks:
            return Readout((), (), trace)
        limit = self.config.without_budget if budget.tokens is None else budget.tokens
        style = Style(font_px=self.config.font_px, margin=self.config.padding, key="")
        drawn = await self.kit.device.run(square, blocks, style)
        page = shrunk(drawn, budget, limit)
        trace["page"] = {"width": page.width, "height": page.height, "sha256": page.sha256}
        trace["shrunk"] = round(drawn.width / page.width, 4)
        return Readout((), (keep(page, self.kit.images, "memocr"),), trace)


class MemAgent(Method[RecurrentConfig]):
    """A text memory overwritten chunk by chunk. Any model may write it: `--model agent=SPEC`."""

    card: ClassVar[MethodCard] = MethodCard(
        name="memagent",
        title="MemAgent: a memory overwritten chunk by chunk",
        paper="https://arxiv.org/abs/2507.02259",
        version=1,
        track="evidence",
        roles={"agent": ("recall",)},
        notes="The published checkpoints are trained for this loop; with another model in role `agent` it is not "
        "MemAgent's own figure. It points to no evidence, so recall is 0.",
    )
    config_class: ClassVar[type[Config]] = RecurrentConfig

    def open(self, context: str, kit: Kit) -> Memory:
        """A fresh memory."""
        return RecurrentMemory(self.config, kit)


class MemOCR(Method[MemOCRConfig]):
    """A Markdown memory overwritten chunk by chunk and read as a page."""

    card: ClassVar[MethodCard] = MethodCard(
        name="memocr",
        title="MemOCR: Markdown memory read as a page",
        paper="https://arxiv.org/abs/2601.21468",
        version=1,
        track="evidence",
        roles={"agent": ("recall",), "answer": ("read",)},
        needs={"answer": frozenset({"image"})},
        notes="The page is drawn by this harness, not by a browser. The published checkpoint is meituan/MemOCR-7B.",
    )
    config_class: ClassVar[type[Config]] = MemOCRConfig

    def open(self, context: str, kit: Kit) -> Memory:
        """A fresh memory."""
        return MemOCRMemory(self.config, kit)


@cache
def _prompt(name: str) -> str:
    return (resources.files(__package__) / f"{name}.txt").read_text("utf-8").strip()
