"""MEC by a reader: classification with a schema, rewritten prompts, replies from pictures, history and cards."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memharness.methods.cma import prompts
from memharness.methods.cma.controller import TASKS, Plan, RuleController, Said, Task, Turn, by_rules, describe
from memharness.reader import Message, Request, Sampling
from memharness.types import Image, Part, Text

if TYPE_CHECKING:
    from memharness.method import MeteredReader
    from memharness.methods.cma.candidates import Candidate
    from memharness.methods.cma.config import CMAConfig

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"task_type": {"type": "string", "enum": list(TASKS)}},
    "required": ["task_type"],
    "additionalProperties": False,
}
_ALIASES = {"cross-reference-edit": "composite", "compose": "composite", "mmu": "understand", "chat": "pure_chat"}
_OBJECT = re.compile(r"\{[^{}]*\}")


def read_task(reply: str) -> Task | None:
    """The task in a reply: of its JSON objects the last that names one. None where none does; nothing is guessed."""
    for found in reversed(_OBJECT.findall(reply.rpartition("</think>")[2])):
        try:
            said = json.loads(found).get("task_type")
        except json.JSONDecodeError:
            continue
        said = _ALIASES.get(str(said), said)
        if said in TASKS:
            return said  # type: ignore[no-any-return]
    return None


def _around(turn: Turn) -> dict[str, str]:
    """The dialogue and the preferences under a heading each, or nothing."""
    return {
        "history": f"Dialogue so far:\n{turn.history}" if turn.history else "",
        "preferences": "\n".join(("The user's lasting wishes:", *turn.preferences)) if turn.preferences else "",
    }


class ReaderController:
    """Asks the reader of role `controller`. What it says that cannot be used is replaced by rule, and flagged."""

    def __init__(self, reader: MeteredReader, config: CMAConfig, pictures: Mapping[str, Image]) -> None:
        """Bind to a reader and to the pictures by asset id, which may grow."""
        self.reader = reader
        self.config = config
        self.pictures = pictures
        self._rules = RuleController()

    async def classify(self, turn: Turn) -> Plan:
        """The task by the reader's JSON; by the rules, as `fallback` and flagged, if there is none in its reply."""
        messages = prompts.fill("classify.v1", status=turn.status(), words=turn.words)
        schema = SCHEMA if "schema" in self.reader.card.capabilities else None
        reply = await self.reader.generate(Request(messages, Sampling(max_tokens=48), schema=schema))
        task = None if reply.finish == "refused" else read_task(reply.text)
        if task is not None:
            return Plan(task, "reader")
        plan = by_rules(turn)
        return Plan(plan.task, "fallback", plan.rule, ("task_unparsed",))

    async def rewrite(self, task: Task, turn: Turn, sources: Sequence[Candidate]) -> Said:
        """The reader's prompt for a task of making; the rules' words, flagged, if it gives none or is cut off."""
        pictures = "\n".join(f"Picture {place}: {describe(one)}" for place, one in enumerate(sources, 1))
        messages = prompts.fill(f"{task}.v1", words=turn.words, pictures=pictures, **_around(turn))
        said = await self._ask(messages, self.config.prompt_tokens)
        text = said.text.strip("\"'“”` \n")
        if text and not said.flags:
            return Said(text)
        plain = await self._rules.rewrite(task, turn, sources)
        return Said(plain.text, ("prompt_not_rewritten", *said.flags))

    async def reply(self, task: Task, turn: Turn, sources: Sequence[Candidate]) -> Said:
        """A reply from the dialogue, the cards and, where the reader sees, the pictures themselves."""
        shown, blind = self._shown(sources)
        name = "understand.v1" if task == "understand" else "chat.v1"
        messages = prompts.fill(name, words=turn.words, pictures=shown, **_around(turn))
        said = await self._ask(messages, self.config.reply_tokens)
        flags = (*said.flags, *(("pictures_not_seen",) if blind else ()))
        if said.text:
            return Said(said.text, flags)
        plain = await self._rules.reply(task, turn, sources)
        return Said(plain.text, ("empty_reply", *flags))

    async def compact(self, lines: str) -> Said:
        """A summary by the reader; first sentences, flagged, if it gives none."""
        said = await self._ask(prompts.fill("compact.v1", history=lines), self.config.reply_tokens)
        if said.text and len(said.text) < len(lines):
            return said
        return Said((await self._rules.compact(lines)).text, ("history_cut_by_rule",))

    def _shown(self, sources: Sequence[Candidate]) -> tuple[tuple[Part, ...], bool]:
        """Cards with pictures in place, and whether there were pictures that this reader cannot see."""
        sees = "image" in self.reader.card.capabilities
        out: list[Part] = []
        blind = False
        for one in sources:
            out.append(Text(("\n" if out else "Pictures:\n") + describe(one) + "\n"))
            picture = self.pictures.get(one.asset.id)
            if picture is not None and not picture.missing:
                blind = blind or not sees
                out += [picture] if sees else []
        return tuple(out), blind

    async def _ask(self, messages: tuple[Message, ...], most: int) -> Said:
        reply = await self.reader.generate(Request(messages, Sampling(max_tokens=most)))
        flags = {"refused": ("refused",), "length": ("truncated",)}.get(reply.finish, ())
        return Said(reply.text.rpartition("</think>")[2].strip(), flags)
