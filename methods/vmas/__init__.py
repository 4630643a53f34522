"""Text visual multi-agent systems on six topologies, and the single agent they are held against (L²-VMAS)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from memharness.method import Kit, Memory, Method, MethodCard, Phase
from memharness.methods.vmas.config import RecallConfig, VmasConfig
from memharness.methods.vmas.team import agent_name, agents_of, settle
from memharness.methods.vmas.text import EXTRACTOR, TextTeam

if TYPE_CHECKING:
    from memharness.methods.vmas.dynamic import Designer

PAPER = "Dual Latent Memory for Visual Multi-agent System (L²-VMAS), its baselines"


class Single(Method[RecallConfig]):
    """One agent, one call: a team of one turn, which reads the benchmark's own prompt."""

    card = MethodCard(
        name="single",
        title="Single agent",
        paper=PAPER,
        version=1,
        track="answer",
        roles={"agent1": ("answer",)},
    )
    config_class = RecallConfig

    def open(self, context: str, kit: Kit) -> Memory:
        """A memory whose team has one turn."""
        return TextTeam(VmasConfig(turns=1, memory=self.config.memory).settled(), kit)


class VMAS(Method[VmasConfig]):
    """A team of agents on a graph, told each other's reports in words; its last turn answers."""

    card = MethodCard(
        name="vmas",
        title="Text visual multi-agent system",
        paper=PAPER,
        version=1,
        track="answer",
        roles={**{agent_name(agent): ("answer",) for agent in range(10)}, EXTRACTOR: ("answer",)},
        embeds=True,
        notes="Roles agent1 … agentN are the agents of the config. `dynamic` without -M graph=FOLDER is its fallback.",
    )
    config_class = VmasConfig
    designer: Designer | None = None

    @classmethod
    def settle(cls, config: VmasConfig, able: Callable[[str], frozenset[str]]) -> VmasConfig:
        """Fill in what the preset decides, and a trained policy's content in place of its path.

        Raises:
            UserError: for a role nobody wrote, or a policy that is missing or damaged.
        """
        return settle(config)

    async def start(self, kit: Kit) -> None:
        """Load the graph policy and embed the roles, if there is one."""
        if self.config.topology == "dynamic" and self.config.graph:
            from memharness.methods.vmas.dynamic import designer

            self.designer = await designer(self.config, kit)

    def roles(self) -> Mapping[str, Sequence[Phase]]:
        """One role an agent that has a turn, and the extractor where it is asked."""
        used = [agent_name(agent) for agent in range(agents_of(self.config))]
        return dict.fromkeys([*used, EXTRACTOR] if self.config.extracts() else used, ("answer",))

    def embeds(self) -> bool:
        """Only for the graphs of a trained policy."""
        return self.config.topology == "dynamic" and bool(self.config.graph)

    def features(self) -> Mapping[str, bool]:
        """What runs, and above all whether a dynamic graph is a trained one or its fallback."""
        dynamic = self.config.topology == "dynamic"
        return {
            "dynamic_trained": dynamic and bool(self.config.graph),
            f"dynamic_fallback_{self.config.fallback}": dynamic and not self.config.graph,
            "extractor": self.config.extracts(),
        }

    def open(self, context: str, kit: Kit) -> Memory:
        """A fresh memory."""
        return TextTeam(self.config, kit, self.designer)
