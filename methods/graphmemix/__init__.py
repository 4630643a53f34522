"""GraphMemix: query-aware evidence forests over a question-independent relation store (arXiv 2608.26983)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from memharness.method import Kit, Memory, Method, MethodCard, Phase
from memharness.methods.graphmemix.config import GraphMemixConfig
from memharness.methods.graphmemix.memory import GraphMemixMemory


class GraphMemix(Method[GraphMemixConfig]):
    """Evidence forests. `-M row=a` … `row=e` are the ablation rows of the paper's Table 3; e is the whole method."""

    card = MethodCard(
        name="graphmemix",
        title="GraphMemix: query-aware evidence forests",
        paper="https://arxiv.org/abs/2608.26983",
        version=1,
        track="evidence",
        roles={"verifier": ("recall",), "ecv": ("recall",)},
        embeds=True,
        needs={"verifier": frozenset({"schema"}), "ecv": frozenset({"schema"})},
        notes="With verifier=similarity no model is asked in recall: support comes from embeddings and BM25.",
    )
    config_class = GraphMemixConfig

    @classmethod
    def settle(cls, config: GraphMemixConfig, able: Callable[[str], frozenset[str]]) -> GraphMemixConfig:
        """`verifier=auto` becomes `reader` if both roles' readers can follow a JSON schema, else `similarity`."""
        if config.verifier != "auto":
            return config
        follows = all("schema" in able(role) for role in ("verifier", "ecv"))
        return config.model_copy(update={"verifier": "reader" if follows else "similarity"})

    def roles(self) -> Mapping[str, Sequence[Phase]]:
        """The verifier and ECV, where this config asks them."""
        _, node, edges, _ = self.config.switches()
        asks = {"verifier": node, "ecv": edges in ("ecv", "rerank")}
        return {role: self.card.roles[role] for role, yes in asks.items() if yes and self.config.verifier == "reader"}

    def features(self) -> Mapping[str, bool]:
        """Which stages run."""
        multi_view, node, edges, forest = self.config.switches()
        return {
            "multi_view": multi_view,
            "node_verifier": node,
            "relations": edges != "none",
            "forest": forest,
            "verified_by_reader": self.config.verifier == "reader",
        }

    def open(self, context: str, kit: Kit) -> Memory:
        """A fresh memory."""
        return GraphMemixMemory(self.config, kit)
