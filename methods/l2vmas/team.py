"""A team that talks by memory: the turns of `vmas`, one after the other, with latents in the place of reports."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from memharness.method import Kit
from memharness.methods.l2vmas.config import L2VMASConfig
from memharness.methods.l2vmas.dual import DualMemory, Which
from memharness.methods.l2vmas.synthesis import Synthesis
from memharness.methods.l2vmas.turn import Speaker, Spoken
from memharness.methods.vmas.team import TeamMemory, Turn, Work
from memharness.reader import Reply, Request
from memharness.types import Evidence, Image, Part, Question

if TYPE_CHECKING:
    import random

    from memharness.methods.vmas.dynamic import Designer
    from memharness.methods.vmas.topologies import Graph


class LatentTeam(TeamMemory):
    """Keeps items as they are; each question gets a dual memory of its own, which dies with it."""

    config: L2VMASConfig

    def __init__(self, config: L2VMASConfig, kit: Kit, designer: Designer | None, synthesis: Synthesis) -> None:
        """Bind to a settled config, a kit and the modules."""
        super().__init__(config, kit, designer)
        self.synthesis = synthesis

    def work(self, question: Question, evidence: tuple[Evidence, ...], graph: Graph, rng: random.Random) -> Work:
        """One question's turns, with an empty memory."""
        return LatentWork(self, question, evidence, graph, rng)


class LatentWork(Work):
    """One question's turns. An agent is told nothing; it decodes with the memory that those before it left."""

    config: L2VMASConfig

    def __init__(
        self, memory: LatentTeam, question: Question, evidence: tuple[Evidence, ...], graph: Graph, rng: random.Random
    ) -> None:
        """Cast the turns; none is taken yet."""
        super().__init__(memory, question, evidence, graph, rng)
        config = self.config
        banks: list[Which] = [bank for bank in ("perception", "thinking") if config.uses(bank)]
        self.latent = self.kit.latent(self.turns[0].name)
        self.memory = DualMemory(
            memory.synthesis,
            capacity=config.capacity,
            k=config.k,
            norm=self.latent.norm if config.match else None,
            other=bool(config.other),
            banks=banks,
            apart=config.attribution == "gate",
        )
        self.spoken: dict[int, Spoken] = {}

    async def all(self) -> None:
        """See the pictures, then take the turns in topological order, each with all thoughts of those before it.

        One after the other also where the graph would let turns run beside each other: the memory is one and in order.
        """
        await self._see()
        for number in self.graph.order:
            await self.take(self.turns[number])
            await self.remember(number)

    async def remember(self, number: int) -> None:
        """Take a turn's thoughts into the memory."""
        await self.kit.device.run(self.memory.think, self.spoken[number].chunks)

    async def _see(self) -> None:
        """Fill the perception memory, before the first agent (section 3.2). What that costs is charged to observe."""
        if not self.config.uses("perception") or "image" not in self.latent.card.capabilities:
            return
        with self.kit.phase("observe"):
            for image in dict.fromkeys(pictures((*self.shown, *self.question.parts, *_choices(self.question)))):
                blocks = await self.latent.see(
                    image,
                    2**self.config.granularity,
                    levels=self.config.granularity,
                    remainder=self.config.remainder,
                )
                await self.kit.device.run(self.memory.see, blocks)

    async def ask(self, turn: Turn, request: Request) -> Reply:
        """The turn's reply, decoded with the memory."""
        latent = self.kit.latent(turn.name)
        speaker = Speaker(latent, self.kit.device, self.config)
        spoken = await speaker.speak(request, self.memory, self.kit.rng("l2vmas", self.question.id, turn.number))
        self.spoken[turn.number] = spoken
        if spoken.refused:
            turn.flags.append(f"{spoken.refused} memories did not fit")
        return spoken.reply

    def trace(self) -> dict[str, Any]:
        """As a team in words, and what the memory held and was asked for."""
        trace = super().trace()
        for step, turn in zip(trace["steps"], self.turns, strict=True):
            spoken = self.spoken[turn.number]
            step["memory"] = [injection.line() for injection in spoken.injections]
            step["tokens"]["latent"] = spoken.reply.usage.latent
            step["chunks"] = len(spoken.chunks)
        memory = self.memory
        trace["memory"] = {
            "calls": memory.calls,
            "perception": len(memory.perception),
            "thinking": len(memory.thinking),
            "vectors": memory.vectors,
            "most_vectors": memory.most,
            "bytes": memory.bytes,
            "most_bytes": memory.most_bytes,
        }
        return trace


def pictures(parts: Iterable[Part]) -> Iterable[Image]:
    """The pictures among parts that are at hand."""
    return (part for part in parts if isinstance(part, Image) and not part.missing)


def _choices(question: Question) -> Iterable[Part]:
    return (part for choice in question.choices for part in choice.parts)
