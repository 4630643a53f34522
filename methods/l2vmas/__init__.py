"""L²-VMAS: a team of agents that share two latent memories in the place of words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memharness.method import Kit, Memory, Method, MethodCard, Phase
from memharness.methods.l2vmas.config import L2VMASConfig
from memharness.methods.vmas.team import agent_name, agents_of, settle
from memharness.types import UserError

if TYPE_CHECKING:
    from memharness.methods.l2vmas.synthesis import Synthesis

AGENTS = tuple(agent_name(agent) for agent in range(10))


class L2VMAS(Method[L2VMASConfig]):
    """Agents on a graph, decoded step by step: what they saw and thought is kept as latents and called on."""

    card = MethodCard(
        name="l2vmas",
        title="L²-VMAS, dual latent memory",
        paper="Dual Latent Memory for Visual Multi-agent System (L²-VMAS)",
        version=1,
        track="answer",
        roles=dict.fromkeys(AGENTS, ("observe", "answer")),
        needs={agent: frozenset({"latent"}) for agent in AGENTS},
        embeds=True,
        notes="All agents are one model. Without -M modules=FOLDER plain means stand for the trained modules.",
    )
    config_class = L2VMASConfig

    @classmethod
    def settle(cls, config: L2VMASConfig, able: Callable[[str], frozenset[str]]) -> L2VMASConfig:
        """Fill in what the preset decides, and the content of what was trained in place of its path.

        Raises:
            UserError: for a role nobody wrote, or a trained thing that is missing or damaged.
        """
        filled = settle(config)
        if config.modules:
            from memharness.methods.l2vmas.modules import content

            filled = filled.model_copy(update={"modules_sha256": content(Path(config.modules))})
        return filled

    async def start(self, kit: Kit) -> None:
        """Load the modules and the graph policy.

        Raises:
            UserError: agents bound to different models, whose latents mean nothing to each other; or modules that do
                not fit the model.
        """
        latent = kit.latent(AGENTS[0])
        for agent in self.roles():
            other = kit.latent(agent).card
            if (other.name, other.model, other.revision) != (latent.card.name, latent.card.model, latent.card.revision):
                raise UserError(f"--model {agent}={other.name}:{other.model}: all agents of l2vmas must be one model")
        self.synthesis: Synthesis = await kit.device.run(self._synthesis, latent.width, latent.device)
        self.designer = None
        if self.config.topology == "dynamic" and self.config.graph:
            from memharness.methods.vmas.dynamic import designer

            self.designer = await designer(self.config, kit)

    def _synthesis(self, width: int, device: Any) -> Synthesis:
        from memharness.methods.l2vmas.modules import Shape, load
        from memharness.methods.l2vmas.synthesis import Means

        config = self.config
        if not config.modules:
            return Means(config.length, config.merged)
        modules = load(Path(config.modules), Shape(width, config.length, config.merged))
        return modules.to(device)

    def roles(self) -> Mapping[str, Sequence[Phase]]:
        """One role an agent that has a turn."""
        return dict.fromkeys(AGENTS[: agents_of(self.config)], ("observe", "answer"))

    def embeds(self) -> bool:
        """Only for the graphs of a trained policy."""
        return self.config.topology == "dynamic" and bool(self.config.graph)

    def features(self) -> Mapping[str, bool]:
        """What runs, and above all whether the modules are trained ones."""
        dynamic = self.config.topology == "dynamic"
        return {
            "modules_trained": bool(self.config.modules),
            "modules_means": not self.config.modules,
            "triggering": self.config.triggering,
            "dynamic_trained": dynamic and bool(self.config.graph),
            f"dynamic_fallback_{self.config.fallback}": dynamic and not self.config.graph,
        }

    def open(self, context: str, kit: Kit) -> Memory:
        """A fresh memory."""
        from memharness.methods.l2vmas.team import LatentTeam

        return LatentTeam(self.config, kit, self.designer, self.synthesis)
