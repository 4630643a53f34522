"""Readers that say what a script makes of a request and remember what they were asked; and a team around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from memharness.config import build
from memharness.methods.vmas import VMAS, Single
from memharness.reader import ReaderCard, Reply, Request, count
from memharness.types import Answer, Image, Item, Question, Text, Usage, parts_text
from tests.methods.kit import FakeKit, WordCounter, as_kit

Script = Callable[[Request], str | Reply]


@dataclass
class Scripted:
    """Counts words as tokens and a picture as one."""

    name: str
    script: Script
    log: list[tuple[str, Request]]
    card: ReaderCard = field(default_factory=lambda: ReaderCard("scripted", "", "1", "python"))
    counter: WordCounter = field(default_factory=WordCounter)

    async def generate(self, request: Request) -> Reply:
        self.log.append((self.name, request))
        said = self.script(request)
        if isinstance(said, Reply):
            return said
        images = sum(isinstance(part, Image) for part in request.parts())
        text = sum(count(self.counter, message.parts) for message in request.messages) - images
        return Reply(said, Usage(text=text, image=images, output=len(said.split())))


def prompt(request: Request) -> str:
    """All of a request as text."""
    return "\n".join(parts_text(message.parts) for message in request.messages)


class Team:
    """`vmas` (or `single`) on scripted readers: `log` lists who was asked what, in order."""

    def __init__(self, script: Script, method: str = "vmas", items: Sequence[Item] = (), **options: Any) -> None:
        self.log: list[tuple[str, Request]] = []
        kinds: dict[str, Any] = {"vmas": VMAS, "single": Single}
        kind = kinds[method]
        config = kind.settle(build(kind.config_class, options, "-M", method), lambda role: frozenset())
        self.method = kind(config)
        self.config = config
        readers = {role: Scripted(role, script, self.log) for role in self.method.roles()}
        self.kit = FakeKit(readers=readers, view="pixels")
        self.items = self.kit.know(items)

    async def answer(self, question: Question, **limits: int | None) -> Answer:
        """One question to a fresh memory."""
        await self.method.start(as_kit(self.kit))
        memory = self.method.open("c", as_kit(self.kit))
        await memory.observe(self.items)
        await memory.ready()
        found: Answer = await memory.answer(question, self.kit.budget(**limits))
        return found

    def prompts(self) -> dict[str, list[str]]:
        """Every prompt by the role that read it."""
        out: dict[str, list[str]] = {}
        for name, request in self.log:
            out.setdefault(name, []).append(prompt(request))
        return out


def asked(text: str = "Which option flies?", id: str = "q", picture: bool = False, **more: Any) -> Question:
    """A question of context `c`."""
    seen = (Image("a" * 64, "image/png", 32, 32, "kite.png"),) if picture else ()
    return Question(id, "c", (*seen, Text(text)), **more)
