"""MEMO: evidence units, presented as text, on a page, or both, under one token budget (arXiv 2609.07471)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from memharness.identity import digest
from memharness.media import tree_digest
from memharness.method import Kit, Memory, MeteredReader, Method, MethodCard, Phase
from memharness.methods.memo.config import MemoConfig
from memharness.methods.memo.memory import MemoMemory
from memharness.types import UserError

OURS = ("deterministic", "model")
ROLES: Mapping[str, Sequence[Phase]] = {"extractor": ("recall",), "manager": ("recall",)}


class Memo(Method[MemoConfig]):
    """Evidence memory organisation. `-M row=neither|extractor|both` are the rows of the paper's component ablation."""

    card = MethodCard(
        name="memo",
        title="MEMO: multimodal evidence memory organisation",
        paper="https://arxiv.org/abs/2609.07471",
        version=1,
        track="evidence",
        roles=ROLES,
        embeds=True,
        notes="No official code is published. By default extractor and manager are deterministic and see no gold; "
        "`memharness train` makes the trained ones. Pages are made only for readers that see pictures.",
    )
    config_class = MemoConfig

    def __init__(self, config: MemoConfig) -> None:
        """Keep the config."""
        super().__init__(config)
        self._opened: dict[str, MeteredReader] = {}

    @classmethod
    def settle(cls, config: MemoConfig, able: Callable[[str], frozenset[str]]) -> MemoConfig:
        """`pictures=auto` becomes on if the answer reader sees pictures; checkpoints enter by their content."""
        trained = {role: _identity(role, getattr(config, role)) for role in ROLES if getattr(config, role) != OURS[0]}
        pictures = config.pictures
        if pictures == "auto":
            pictures = "on" if "image" in able("answer") else "off"
        return config.model_copy(update={"pictures": pictures, "trained": trained})

    def roles(self) -> Mapping[str, Sequence[Phase]]:
        """Extractor and manager, where a reader of that role is asked."""
        return {role: phases for role, phases in ROLES.items() if role in self._used() and self._who(role) == OURS[1]}

    def features(self) -> Mapping[str, bool]:
        """Which stages run, and by whom."""
        used = self._used()
        return {
            "preselection": self.config.preselection() is not None,
            "extractor": "extractor" in used,
            "extractor_trained": "extractor" in used and self._who("extractor") != OURS[0],
            "manager": "manager" in used,
            "manager_trained": "manager" in used and self._who("manager") != OURS[0],
            "pages": "manager" in used and self.config.pictures == "on",
        }

    async def start(self, kit: Kit) -> None:
        """Open the trained checkpoints that the config names."""
        for role in self._used():
            if self._who(role) not in OURS:
                self._opened[role] = await kit.open_reader(_spec(self._who(role)))

    def open(self, context: str, kit: Kit) -> Memory:
        """A fresh memory."""
        asked = {role: kit.reader(role) for role in self._used() if self._who(role) == OURS[1]}
        return MemoMemory(self.config, kit, {**self._opened, **asked}, self.config.pictures == "on")

    def _who(self, role: str) -> str:
        return str(getattr(self.config, role))

    def _used(self) -> Sequence[str]:
        return {"neither": (), "extractor": ("extractor",), "both": tuple(ROLES)}[self.config.row]


def _spec(who: str) -> str:
    """The reader of a checkpoint: a folder is opened by `hf`, anything else is a spec as it stands."""
    return f"hf:{who}" if Path(who).is_dir() else who


def _identity(role: str, who: str) -> str:
    """Who a role is, for the identity: a folder by the digest of its files.

    Raises:
        UserError: it is neither a word of ours, nor a folder, nor a reader spec.
    """
    if who in OURS:
        return who
    folder = Path(who.removeprefix("hf:"))
    if folder.is_dir():
        return digest(tree_digest(folder))
    if ":" in who and not who.startswith(("/", ".")):
        return who
    raise UserError(
        f"-M {role}={who}: there is no such folder; give the folder of a checkpoint that `memharness train` made, "
        f"a reader spec such as hf:MODEL, {OURS[0]}, or {OURS[1]} (the reader of --model {role}=SPEC)"
    )
