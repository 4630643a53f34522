"""The configuration of L²-VMAS, with the paper's reading and ours of every point it leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from memharness.config import Config, option
from memharness.methods.l2vmas.trigger import Mode
from memharness.methods.vmas.config import READINGS, TeamConfig

TABLE = "L²-VMAS, Table 4"

Residual = Literal["preln", "paper"]


class L2VMASConfig(TeamConfig):
    """Options of `l2vmas`: a team as in `vmas`, whose agents tell each other nothing in words."""

    readings: ClassVar[Mapping[str, tuple[Any, Any]]] = {
        **READINGS,
        "trigger": ("rise", "literal"),
        "other": (True, False),
        "match": (True, False),
    }

    modules: str = option(
        "", "folder of trained modules (`memharness train l2vmas`); none: plain means in their place", how=True
    )
    modules_sha256: str = option("", "their content, filled in when they are read", neutral=True)
    banks: Literal["both", "perception", "thinking"] = option(
        "both", "memories in use; one alone is Table 6's ablation", source="L²-VMAS, section 3.2"
    )
    triggering: bool = option(True, "off: nothing is ever injected, and decoding is the model's own")
    calls: Literal["entropy", "fixed"] = option(
        "entropy",
        "what calls on the memory: entropy (eq. 8), or every W tokens whatever it is",
        source="L²-VMAS, section 3.3; fixed is our reading of Table 6's 'w/o Triggering', which says nothing of it",
    )
    attribution: Literal["gate", "none"] = option(
        "gate",
        "which memory: the gate chooses; none: the k units most like the window, of either",
        source="L²-VMAS, section 3.3; none is our reading of Table 6's 'w/o Attribution', which says nothing of it",
    )

    granularity: int = option(3, "g: a block is 2^g vision patches a side, seen at g sizes", source=TABLE, ge=1, le=6)
    remainder: Literal["resize", "pad"] = option(
        "resize",
        "a picture's edge that fills no block: brought to whole blocks, or padded with grey",
        source="memharness: the paper does not say",
    )
    capacity: int = option(50, "N: most units of the thinking memory", source=TABLE, unit="units", ge=1)
    delimiters: str = option(
        ".,;:?!\n",
        "S_d: a chunk may end behind one of these",
        source="memharness: the paper gives no set; MemGen: , . \\n",
    )
    chunk: int = option(
        256, "most vectors of a chunk, without which the bank is not bounded", source="memharness", unit="vectors", ge=1
    )

    window: int = option(
        16, "W: tokens whose entropy is watched, and least tokens between two calls", source=TABLE, ge=1
    )
    threshold: float = option(0.5, "λ of the trigger", source=TABLE, ge=0)
    trigger: Mode | None = option(
        None,
        "rise: entropy has risen; literal: eq. 8 as printed, which is true when it has fallen",
        source="sensible: rise ('sustained high-entropy regions'); paper-literal: literal",
    )
    k: int = option(5, "units retrieved", source=TABLE, unit="units", ge=1)
    length: int = option(8, "L: latent vectors injected", source=TABLE, unit="vectors", ge=1)
    merged: int = option(
        8, "most vectors of a merged value", source="memharness: 'not inflationary' is all the paper says", ge=1
    )
    other: bool | None = option(
        None,
        "where the memory that the gate chose is empty, the other one is called on",
        source="sensible: true; paper-literal: false (undefined there: nothing is injected)",
    )
    match: bool | None = option(
        None,
        "injected vectors are brought to the mean norm of the model's input embeddings",
        source="sensible: true (LatentMAS found it needed); paper-literal: false",
    )

    def uses(self, bank: Literal["perception", "thinking"]) -> bool:
        """Whether a memory is in use."""
        return self.banks in ("both", bank)


class ModulesConfig(Config):
    """The shape of the trainable modules; stored with their weights."""

    inner: int | None = option(
        None,
        "width inside the compressors; none: the model's",
        source="memharness: the paper gives none; two layers at 4,096 are 0.4 B parameters each",
        ge=1,
    )
    layers: int = option(2, "layers of a compressor", source="VisMem's code, of the same author", ge=1)
    heads: int = option(8, "attention heads of a compressor", source="VisMem's code", ge=1)
    positions: int = option(
        0, "first vectors with a learned position", source="memharness: 0, order is not seen; VisMem's code: 2048", ge=0
    )
    residual: Residual = option(
        "preln", "how a layer adds up: as transformers do, or eq. 11 as printed", source="memharness; paper: eq. 11"
    )
    gate: int = option(128, "width of the gate's hidden layer", source="memharness: the paper leaves g_φ open", ge=1)


SB3 = "stable-baselines3's default, whose names Table 4 has"
Part = Literal["compress", "merging", "refining", "gate"]


class TrainingConfig(Config):
    """How one stage is trained. Fields that are None have the value of their stage, see `of_stage`."""

    stage: Literal[1, 2, 3] = option(1, "1: synthesis, called on at random; 2: orchestration; 3: all", source=TABLE)
    literal: bool = option(
        False,
        "stage 1 leaves C_refine out, as Table 4 has it; but nothing that is injected would then ever be trained there",
        source="memharness: false; paper: true",
    )
    gate_only: bool = option(
        False,
        "stage 2 unlocks the gate alone, as the text has it; Table 4 ticks C and C_refine as well",
        source="L²-VMAS, Table 4: false; section 3.4: true",
    )
    algorithm: Literal["ppo", "grpo"] = option("ppo", "grpo: advantages within a group, no critic", source=TABLE)
    clip_range: float | None = option(None, "ε", source=TABLE, gt=0)
    max_grad_norm: float = option(0.5, "gradients are cut to this norm", source=TABLE, gt=0)
    target_kl: float = option(0.02, "passes end when the policy has moved 1.5 times as far", source=TABLE, gt=0)
    gamma: float = option(0.995, "discount", source=TABLE, ge=0, le=1)
    gae_lambda: float | None = option(None, "λ of GAE", source=TABLE, ge=0, le=1)
    steps: int | None = option(
        None,
        "how long, in actions (tokens and calls) that were rolled out",
        source="L²-VMAS, Table 4, which does not say what a step is: as in stable-baselines3",
        unit="actions",
        ge=1,
    )
    learning_rate: float | None = option(None, "Adam's, falling in a line to 0", source=TABLE, gt=0)
    n_steps: int = option(2048, "actions of one environment before an update", source=TABLE, unit="actions", ge=1)
    num_envs: int = option(8, "rollouts beside each other", source=TABLE, ge=1)
    mini_batch_size: int = option(128, "actions before a step of Adam", source=TABLE, unit="actions", ge=1)
    n_epochs: int = option(10, "passes over what was rolled out", source=SB3, ge=1)
    vf_coef: float = option(0.5, "weight of the critic's loss", source=SB3, ge=0)
    ent_coef: float = option(
        0.0,
        "reward of an action for its surprise, −log π, which keeps the policy from settling early",
        source=SB3,
        ge=0,
    )
    together: int = option(
        16,
        "turns replayed beside each other: more are faster, and take more memory",
        source="memharness",
        unit="turns",
        ge=1,
        how=True,
    )
    group: int = option(1, "rollouts of one question; grpo needs 2", source="memharness", ge=1)
    temperature: float = option(1.0, "at which tokens are drawn", source="memharness: the paper does not say", gt=0)
    retrieval_temperature: float = option(0.1, "at which units are drawn by similarity", source="memharness", gt=0)
    rate: float = option(0.1, "stage 1: chance of a token to call on the memory", source="memharness", gt=0, le=1)
    gate_gradient: Literal["relaxed", "score"] = option(
        "relaxed",
        "how the gate learns: through the injected vectors by the Gumbel-sigmoid, straight through its hard value, or "
        "as one more drawn action",
        source="L²-VMAS, eq. 18-20: relaxed",
    )
    gate_temperature: float = option(2.0, "τ_0 of the Gumbel-sigmoid", source="memharness: the paper gives none", gt=0)
    gate_least: float = option(0.5, "τ_min", source="memharness: the paper gives none", gt=0)
    gate_rate: float = option(0.99, "λ of its annealing, an update", source="memharness: none given", gt=0, lt=1)
    seed: int = option(0, "of modules, rollouts and batches")

    def of_stage(self) -> TrainingConfig:
        """This config with its stage's values where none were given."""
        table = {"clip_range": (0.2, 0.2, 0.1), "gae_lambda": (0.95, 0.95, 0.98), "steps": (100_000, 80_000, 50_000),
                 "learning_rate": (1e-4, 5e-5, 2e-5)}  # fmt: skip
        filled = {name: by[self.stage - 1] for name, by in table.items() if getattr(self, name) is None}
        return self.model_copy(update=filled)

    def trained(self) -> tuple[Part, ...]:
        """The modules that this stage unlocks (Table 4)."""
        if self.stage == 1:
            return ("compress", "merging") if self.literal else ("compress", "merging", "refining")
        if self.stage == 2:
            return ("gate",) if self.gate_only else ("compress", "refining", "gate")
        return ("compress", "merging", "refining", "gate")
