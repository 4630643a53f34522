"""MEC's contract: what a turn asks for, the words a back end is given, and the reply; and the part without a model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, get_args

if TYPE_CHECKING:
    from memharness.methods.cma.candidates import Candidate

Task = Literal["generate", "edit", "composite", "understand", "pure_chat"]
TASKS: tuple[Task, ...] = get_args(Task)
MAKING: tuple[Task, ...] = ("generate", "edit", "composite")


@dataclass(frozen=True)
class Turn:
    """What the controller knows of a turn before anything is retrieved.

    Attributes:
        words: the user's.
        uploads: pictures that came with it.
        held: pictures in memory, those that came with it included.
        language: `en` or `zh`.
        history: the dialogue so far as text, compacted if long.
        preferences: what the user said to hold for good, one sentence each.
    """

    words: str
    uploads: int = 0
    held: int = 0
    language: str = "en"
    history: str = ""
    preferences: tuple[str, ...] = ()

    def status(self) -> str:
        """The picture state in one line, as a classifier is told."""
        brought = f"The user brought {self.uploads} with this turn." if self.uploads else "None came with this turn."
        return f"{self.held} pictures are in memory. {brought}" if self.held else "There is no picture yet."


@dataclass(frozen=True)
class Plan:
    """What a turn asks for.

    Attributes:
        task: the kind of work.
        by: `rules`, `reader`, `fallback` (rules, since a reader's reply could not be read) or `retrieval` (settled by
            how many pictures were retrieved).
        rule: which rule.
        flags: what went otherwise than meant.
    """

    task: Task
    by: Literal["rules", "reader", "fallback", "retrieval"]
    rule: str = ""
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Said:
    """Words made for a turn, and what went otherwise than meant."""

    text: str
    flags: tuple[str, ...] = ()


class Controller(Protocol):
    """The multimodal executive controller."""

    async def classify(self, turn: Turn) -> Plan:
        """What the turn asks for."""

    async def rewrite(self, task: Task, turn: Turn, sources: Sequence[Candidate]) -> Said:
        """The words a back end is given, for a task of `MAKING`; `sources` are the pictures it is given, in order."""

    async def reply(self, task: Task, turn: Turn, sources: Sequence[Candidate]) -> Said:
        """The reply to a turn that makes no picture."""

    async def compact(self, lines: str) -> Said:
        """Older turns in fewer words."""


def language_of(words: str) -> str:
    """`zh` if there is a Chinese character in the words, else `en`."""
    return "zh" if re.search(r"[㐀-鿿]", words) else "en"


# ----------------------------------------------------------------------------------------------------- classification

_POLITE = re.compile(
    r"^(?:(?:ok(?:ay)?|now|so|then|please|hey|hi|hello|great|nice|thanks|thank you|and|well|good|next|perfect|yes|no)\b"
    r"[,.!:;\s]*)*(?:(?:can|could|would|will) you\s+(?:please\s+|kindly\s+|now\s+)*|would you mind\s+|"
    r"i(?:'d| would) (?:like|love|want) (?:you )?to\s+|i (?:want|need) (?:you )?to\s+|let(?:'s| us)\s+|please\s+)?",
    re.IGNORECASE,
)
_POLITE_ZH = re.compile(
    r"^(?:(?:好的?|嗯|现在|接下来|然后|请|谢谢)[，,。!！\s]*)*(?:请|麻烦)?(?:你|您)?(?:能不能|可不可以|能|可以|帮我|给我)*"
)
TASK_OF: Mapping[str, Task] = {
    "new": "generate",
    "change": "edit",
    "fuse": "composite",
    "look": "understand",
    "chat": "pure_chat",
}
"""The task by the intent that CoRE's rules read (`reading.read_turn`): one reading of a turn serves both."""


def plainly(words: str) -> str:
    """A request without the politeness around it."""
    stripped = _POLITE_ZH.sub("", _POLITE.sub("", words.strip(), count=1), count=1).strip()
    return stripped or words.strip()


def by_rules(turn: Turn) -> Plan:
    """The task from the words and the pictures that came with them, without a model.

    Whether a change needs one picture or several is often not in the words, so what is retrieved may still turn an edit
    into a composite: see `settle`. Where there is no picture yet, nothing is changed and no question is about one.
    """
    from memharness.methods.cma.reading import read_turn

    if not turn.words.strip():
        return Plan("understand" if turn.uploads else "pure_chat", "rules", "no words")
    reading = read_turn(turn.words, turn.uploads, max(turn.held, 1))
    task = TASK_OF[reading.intent]
    if not turn.held:
        task = "pure_chat" if task in ("understand", "pure_chat") else "generate"
    return Plan(task, "rules", reading.rule)


def settle(plan: Plan, sources: int) -> Plan:
    """The task by how many pictures there are to make it of: an edit of several is a composite, of none a new picture.

    Where rules read no request in the words and pictures are needed all the same, a question is about them, and
    anything else asks for a change of them.
    """
    if plan.by == "rules" and plan.task == "pure_chat" and sources:
        changed: Task = "edit" if sources == 1 else "composite"
        return Plan("understand" if "question" in plan.rule else changed, "retrieval", "needs pictures", plan.flags)
    if plan.task == "edit" and sources > 1:
        return Plan("composite", "retrieval", "an edit of several", plan.flags)
    if plan.task == "composite" and sources == 1:
        return Plan("edit", "retrieval", "a composite of one", plan.flags)
    if plan.task in ("edit", "composite") and not sources:
        return Plan("generate", "retrieval", f"{plan.task} of none", (*plan.flags, "nothing_to_edit"))
    return plan


# -------------------------------------------------------------------------------------------------- without a model

_STAYS = {"en": "Everything else stays as it is.", "zh": "其余部分保持不变。"}
_NO_MODEL = {
    "en": "I have read that. I answer in words of my own only with a language model; ask me for a picture, or about "
    "one.",
    "zh": "我看到了。没有语言模型时我不能自由对话；可以让我画图，或询问已有的图。",
}
_NO_PICTURE = {"en": "I find no earlier picture that this is about.", "zh": "我没有找到这句话所指的图。"}


class RuleController:
    """MEC without a model: rules, the user's own words as prompts, and replies from the cards."""

    async def classify(self, turn: Turn) -> Plan:
        """See `by_rules`."""
        return by_rules(turn)

    async def rewrite(self, task: Task, turn: Turn, sources: Sequence[Candidate]) -> Said:
        """The request without its politeness; what stays is said for an edit, preferences for a new picture."""
        words = plainly(turn.words)
        if task == "generate":
            return Said("\n".join((words, *turn.preferences)))
        return Said(f"{words}\n{_STAYS[turn.language]}" if task == "edit" else words)

    async def reply(self, task: Task, turn: Turn, sources: Sequence[Candidate]) -> Said:
        """What the cards of the pictures say, one line each; a fixed sentence where there is no picture."""
        if task == "understand":
            return Said("\n".join(map(describe, sources)) or _NO_PICTURE[turn.language])
        return Said(_NO_MODEL[turn.language], ("no_model",))

    async def compact(self, lines: str) -> Said:
        """The first sentence of each line, cut at a word."""
        return Said("\n".join(_short(line) for line in lines.splitlines() if line.strip()))


def describe(candidate: Candidate) -> str:
    """A picture in one line: its number, what its card says, and the words that made it."""
    asset, card = candidate.asset, candidate.card
    about = [card.description] if card and card.description else []
    about += [asset.prompt] if asset.prompt and asset.prompt not in " ".join(about) else []
    about += [f"tags: {', '.join(card.tags)}"] if card and card.tags else []
    return f"[{asset.index}] " + (" | ".join(about) or f"{asset.kind}, {asset.width}x{asset.height}")


def _short(line: str, most: int = 100) -> str:
    first = re.split(r"(?<=[.!?。！？])\s*", line, maxsplit=1)[0]
    if len(first) <= most:
        return first
    cut = first[:most]
    return (cut.rpartition(" ")[0] if " " in cut[most // 2 :] else cut) + "…"
