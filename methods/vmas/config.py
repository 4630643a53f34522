"""The configuration of text visual multi-agent systems, with every reading of what the paper leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from memharness.config import Config, option
from memharness.methods.vmas.topologies import Hub, Static, Topology

PAPER = "L²-VMAS, appendix D.1"
CONTENTS = "L²-VMAS, section 2.1 and appendix B.1"
CODE = "G-Designer's code"

Content = Literal["conclusion", "perception", "thinking", "full"]
Encoder = Literal["gcn", "vgae"]

Readings = Mapping[str, tuple[Any, Any]]

# What the paper's words leave open or print otherwise: our reading, then the printed one.
READINGS: Readings = {"hub": ("last", "both"), "routes": ("drawn", "redirect")}


class RecallConfig(Config):
    """What agents are shown of a memory, on benchmarks that have one."""

    memory: Literal["all", "bm25"] = option(
        "all",
        "what agents are shown of the memory: all of it in order, or the items that BM25 ranks first (`--items`)",
        source="memharness: the paper's benchmarks have no memory",
    )


class TeamConfig(RecallConfig):
    """Options of a team, whatever its agents tell each other. A reading named beside `preset` wins over it."""

    readings: ClassVar[Readings] = READINGS

    topology: Topology = option("linear", "who hears whom", source=PAPER)
    turns: int = option(
        5,
        "turns N_A; a turn is one agent's complete pass, and the last one answers",
        source="L²-VMAS, Fig. 2 with Table 1: its tables never say N_A, but their tokens are those of the 5th turn",
        unit="turns",
        ge=1,
        le=10,
    )
    agents: int | None = option(
        None,
        "agents that take the turns in rotation; none: as many as turns",
        source="L²-VMAS, eq. 1: N_A counts turns; an agent's earlier report is its 'historical status'",
        ge=1,
        le=10,
    )
    roles: str = option(
        "observer,locator,transcriber,reasoner,sceptic",
        "roles of the agents before the last, in rotation, of those in `roles.v1.txt`",
        source="memharness; ViF has five: perception, localisation, counting, text, common sense",
    )
    pictures: Literal["all", "sources", "ends", "last", "none"] = option(
        "all",
        "which turns see pictures: all, those that hear nobody, those and the last, the last alone, or none",
        source="L²-VMAS, eq. 2: every agent is given the task's visual inputs",
    )
    agent_tokens: int = option(
        512, "most tokens of a turn before the last, which has the run's own limit", unit="tokens", ge=1
    )
    temperature: float | None = option(
        None, "of the turns before the last; none: the run's", source="the paper names no decoding settings", ge=0, le=2
    )
    preset: Literal["sensible", "paper-literal"] = option(
        "sensible", "how the fields that are not named, and have no default, are read", source="memharness"
    )
    hub: Hub | None = option(
        None,
        "centralized: the hub collects and decides (last), or also hands out the work first (both)",
        source="sensible: last; paper-literal: both ('collection, transmission, and distribution')",
    )
    routes: Literal["drawn", "redirect"] | None = option(
        None,
        "random: a graph drawn anew for each question (drawn), or each agent names the next one (redirect)",
        source="sensible: drawn, as MacNet; paper-literal: redirect ('dynamically redirects … based on contexts')",
    )
    layers: int | None = option(
        None, "layered: layers before the last turn; none: int(log2(agents in them))", source="MacNet's code", ge=1
    )
    graph: str = option("", "dynamic: folder of a trained graph policy", how=True)
    graph_sha256: str = option("", "dynamic: its content, filled in when it is read", neutral=True)
    edges: Literal["sample", "likely"] = option(
        "sample", "dynamic: draw each edge by its probability, or keep those of 0.5 and more", source=CODE
    )
    fallback: Static = option("complete", "dynamic without a trained policy: this topology, and the manifest says so")

    def settled(self) -> Self:
        """This config with nothing left open: what enters the identity."""
        literal = self.preset == "paper-literal"
        return self.model_copy(
            update={name: pair[literal] for name, pair in self.readings.items() if getattr(self, name) is None}
        )

    def role_names(self) -> tuple[str, ...]:
        """The roles, in rotation."""
        return tuple(name.strip() for name in self.roles.split(",") if name.strip())


class VmasConfig(TeamConfig):
    """Options of `vmas`."""

    readings: ClassVar[Readings] = {**READINGS, "extract": ("sections", "reader")}

    content: Content = option(
        "full", "what is passed on of a report: conclusion, with perception or thinking, or everything", source=CONTENTS
    )
    reasoning: bool = option(
        True, "`full` includes what a thinking model thought before its report", source="L²-VMAS, B.1: 'complete'"
    )
    extract: Literal["sections", "reader"] | None = option(
        None,
        "how perception and thinking are told apart: by the sections that agents are asked for, or by the model bound "
        "to role `extractor`",
        source="sensible: sections; paper-literal: reader (the paper asks GPT-5.1, by a prompt missing from its text)",
    )

    def extracts(self) -> bool:
        """Whether a model is asked to take reports apart."""
        return self.extract == "reader" and self.content != "full" and self.turns > 1


class PolicyConfig(Config):
    """A trainable graph policy and its training; stored with the weights."""

    encoder: Encoder = option(
        "gcn",
        "gcn: role and task embeddings side by side; vgae: a virtual task node and a variational code",
        source="G-Designer's code does the first, its paper (and L²-VMAS, which follows it) says the second",
    )
    hidden: int = option(16, "width between the two graph convolutions", source=CODE, ge=1)
    code: int = option(16, "width of a node's code", source=CODE, ge=1)
    scale: Literal["none", "minmax"] = option(
        "none",
        "minmax puts the logits of a graph into [-1, 1], where no edge is likelier than 0.73 or less likely than 0.27",
        source="memharness; G-Designer's code: minmax",
    )
    learns: Literal["all", "gcn"] = option(
        "all", "which weights are trained", source="memharness; G-Designer's code never steps its MLP"
    )
    iterations: int = option(10, "updates", source=CODE, ge=1)
    batch: int = option(4, "tasks an update", source=CODE, ge=1)
    samples: int = option(1, "graphs a task and update; with 2 or more, their mean reward is the baseline", ge=1)
    baseline: bool = option(
        True, "subtract the mean reward of a task's graphs, or of the batch", source="memharness; G-Designer: none"
    )
    lr: float = option(0.01, "Adam's step", source="memharness; G-Designer's code: 0.1", gt=0)
    dropout: float = option(0.5, "between the convolutions, in training", source=CODE, ge=0, lt=1)
    kl: float = option(0.01, "vgae: weight of the divergence from the prior", source="memharness", ge=0)
    seed: int = option(0, "of weights, batches and graphs")
