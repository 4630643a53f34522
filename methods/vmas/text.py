"""A team that talks in words: what is passed on of each report, and who takes reports apart."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

from memharness.methods.vmas import prompts
from memharness.methods.vmas.config import VmasConfig
from memharness.methods.vmas.reports import Report, read_reply, split
from memharness.methods.vmas.team import TeamMemory, Turn, Work
from memharness.methods.vmas.topologies import Graph
from memharness.reader import Request, Sampling
from memharness.types import Evidence, Part, Question

EXTRACTOR = "extractor"


class TextTeam(TeamMemory):
    """Keeps items as they are; agents read each other's reports."""

    config: VmasConfig

    def work(self, question: Question, evidence: tuple[Evidence, ...], graph: Graph, rng: random.Random) -> Work:
        """One question's turns, none taken yet."""
        return TextWork(self, question, evidence, graph, rng)


class TextWork(Work):
    """One question's turns, told in words."""

    config: VmasConfig

    def __init__(
        self, memory: TextTeam, question: Question, evidence: tuple[Evidence, ...], graph: Graph, rng: random.Random
    ) -> None:
        """Cast the turns; none is taken yet."""
        super().__init__(memory, question, evidence, graph, rng)
        self.extractions: dict[int, dict[str, int]] = {}

    def told(self, turn: Turn) -> tuple[Part, ...]:
        """The reports a turn is told, oldest first, under a line that says what they are; nothing if there is none."""
        depth = self.graph.depth
        heard = {*turn.hears, *([] if turn.own is None else [turn.own])}
        ordered = sorted(heard, key=lambda number: (depth[number], number))
        blocks = [self._block(self.turns[number], number == turn.own) for number in ordered]
        return prompts.words("heard.v1", reports="\n\n".join(blocks)) if blocks else ()

    def _block(self, turn: Turn, own: bool) -> str:
        who = "Your own earlier report" if own else f"Agent {turn.agent + 1}, {turn.role}"
        told = turn.report.told(self.config.content, reasoning=self.config.reasoning)
        return f"[{who}]\n{told or '(nothing)'}"

    async def read(self, turn: Turn) -> Report:
        """The report in a reply, by rule, or its sections by the extractor; if that gives none, those of the rule.

        Raises:
            OverWindow: the report does not fit the extractor's window.
        """
        report = read_reply(turn.reply)
        whole = report.told("full")
        if not self.config.extracts() or not whole:
            return report
        sampling = Sampling(max_tokens=max(64, self.config.agent_tokens))
        request = Request(prompts.fill("extract.v1", report=whole), sampling)
        reply = await self.kit.reader(EXTRACTOR).generate(request)
        usage = reply.usage
        self.extractions[turn.number] = {"prompt": usage.text, "output": usage.output, "reasoning": usage.reasoning}
        made = split(reply.text)
        if not made.whole or "unstructured" in made.flags:
            turn.flags.append("extraction_failed")
            return report
        flags = tuple(flag for flag in report.flags if flag not in ("unstructured", "no_conclusion"))
        return replace(made, whole=report.whole, reasoning=report.reasoning, next=report.next, flags=flags)

    def spent(self) -> Iterator[tuple[str, Mapping[str, int]]]:
        """Tokens of the turns and of taking their reports apart."""
        return chain(super().spent(), ((EXTRACTOR, tokens) for tokens in self.extractions.values()))

    def trace(self) -> dict[str, Any]:
        """As any team's, with what was passed on: the content, and each extraction's cost."""
        trace = super().trace()
        for number, tokens in self.extractions.items():
            trace["steps"][number]["extraction"] = tokens
        return {"content": self.config.content, **trace}
