"""Judges that follow a simple rule, for a judge is tested by judges whose worth is known."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from dataclasses import replace
from typing import Any

from memharness.config import Config
from memharness.media import MediaStore
from memharness.reader import Reader, ReaderCard, Reply, Request
from memharness.types import OverWindow, ReaderError, Usage, parts_text

FIELDS = re.compile(r"Reference answer: (.*?)\nAnswer to grade: (.*?)(?=\n\nquestion_id: |\Z)", re.DOTALL)


class Quarter:
    """A fourth of the characters, rounded up."""

    name = "quarter"

    def text(self, text: str) -> int:
        """Tokens."""
        return -(-len(text) // 4)

    def image(self, width: int, height: int) -> int:
        """Tokens."""
        return 0


class RuleOptions(Config):
    """Nothing to set."""


class Rule(Reader):
    """A judge that says a word by a rule on (reference, answer); it counts its calls."""

    config_class = RuleOptions
    capabilities: frozenset[str] = frozenset()
    calls = 0
    asked: list[Request] = []  # noqa: RUF012  (of the class, on purpose: tests look at it)

    def __init__(self, model: str, config: Any, media: MediaStore) -> None:
        """Nothing to load."""
        super().__init__(model, config, media)
        name = type(self).__name__.lower()
        self.card = ReaderCard(name, model, "1", "python", capabilities=self.capabilities)
        self.counter = Quarter()

    async def generate(self, request: Request) -> Reply:
        """The rule's word, in the form that the request asks for."""
        type(self).calls += 1
        type(self).asked.append(request)
        prompt = "\n".join(parts_text(message.parts) for message in request.messages)
        return Reply(self.say(request, prompt), Usage(text=self.counter.text(prompt), output=3))

    def say(self, request: Request, prompt: str) -> str:
        """The whole reply."""
        found = FIELDS.findall(prompt)
        if not found:
            return "That is not for me to say."
        reference, answer = found[-1]
        return self.word(self.right(reference, answer), request, prompt)

    def right(self, reference: str, answer: str) -> bool:
        """The rule."""
        raise NotImplementedError

    def word(self, right: bool, request: Request, prompt: str) -> str:
        """Right or wrong, as the rubric wants it."""
        if "Score: X" in prompt:
            return f"Score: {1 if right else 0}"
        return "CORRECT" if right else "INCORRECT"


class Yes(Rule):
    """Accepts everything."""

    def right(self, reference: str, answer: str) -> bool:
        """Always."""
        return True


class No(Rule):
    """Accepts nothing."""

    def right(self, reference: str, answer: str) -> bool:
        """Never."""
        return False


class ByLength(Rule):
    """Accepts what is long."""

    def right(self, reference: str, answer: str) -> bool:
        """Over twenty characters."""
        return len(answer) > 20


class Perfect(Rule):
    """Accepts the reference and nothing else."""

    def right(self, reference: str, answer: str) -> bool:
        """Equal."""
        return answer.strip() == reference.strip()


class ByVague(Perfect):
    """Knows the reference, and lets vague words pass for it too."""

    def right(self, reference: str, answer: str) -> bool:
        """Equal, or vague."""
        return super().right(reference, answer) or "some" in answer.lower() or "around" in answer.lower()


class Garbage(Rule):
    """Never comes to a verdict."""

    def say(self, request: Request, prompt: str) -> str:
        """Prose."""
        return "That is a matter of opinion, and it depends."


class Schema(Perfect):
    """Perfect, and held to a schema: it fills in whatever the schema asks for."""

    capabilities = frozenset({"schema"})

    def say(self, request: Request, prompt: str) -> str:
        """JSON."""
        assert request.schema is not None
        if "verdicts" in request.schema["properties"]:
            entries = re.findall(r"question_id: (\w+)", prompt)
            told = [self.right(*fields) for fields in FIELDS.findall(prompt)]
            made = [
                {"question_id": name, "reasoning": "r", "score": float(right)}
                for name, right in zip(entries, told, strict=True)
            ]
            return json.dumps({"verdicts": made})
        (reference, answer), fields = FIELDS.findall(prompt)[-1], request.schema["properties"]
        right = self.right(reference, answer)
        values = {"boolean": (True, False), "CORRECT": ("CORRECT", "WRONG"), "true": ("true", "false"), "0": (1, 0)}
        values["correct"] = ("correct", "incorrect")
        return json.dumps({name: self.value(field, values, right) for name, field in fields.items()})

    def value(self, field: Any, values: Any, right: bool) -> Any:
        """A value of a field."""
        kind = str(field["enum"][0]) if "enum" in field else field["type"]
        return values[kind][not right] if kind in values else "because"


class Scripted(Rule):
    """Says what the environment tells it to, and is not cached, since that changes."""

    def __init__(self, model: str, config: Any, media: MediaStore) -> None:
        """Nothing to load."""
        super().__init__(model, config, media)
        self.card = replace(self.card, cache=False)

    async def generate(self, request: Request) -> Reply:
        """The text, or the end, that `SCRIPT` names."""
        script = os.environ["MEMHARNESS_TEST_SCRIPT"]
        match script:
            case "refuse":
                return Reply("CORRECT, but I will not say so", Usage(text=1, output=1), "refused")
            case "window":
                raise OverWindow("too long for this judge")
            case "error":
                raise ReaderError("the judge is down")
        return Reply(script, Usage(text=1, output=1))


class Moody(Rule):
    """Cannot be reached while `MEMHARNESS_TEST_DOWN` is set, and makes up its mind about `c1` only on a second try."""

    async def generate(self, request: Request) -> Reply:
        """Down, undecided, or right."""
        if os.environ.get("MEMHARNESS_TEST_DOWN"):
            type(self).calls += 1
            raise ReaderError("the judge is down")
        return await super().generate(request)

    def say(self, request: Request, prompt: str) -> str:
        """Never the same twice."""
        return "CORRECT" if "c0-" in prompt or type(self).calls > 100 else "Hard to say."


class Mortal(Perfect):
    """Perfect, until it is killed at its fifth call; `MEMHARNESS_TEST_IMMORTAL` spares it."""

    async def generate(self, request: Request) -> Reply:
        """As ever."""
        if type(self).calls >= 4 and not os.environ.get("MEMHARNESS_TEST_IMMORTAL"):
            os.kill(os.getpid(), signal.SIGKILL)
        return await super().generate(request)


class Slow(Yes):
    """Takes its time."""

    async def generate(self, request: Request) -> Reply:
        """After a second."""
        await asyncio.sleep(1)
        return await super().generate(request)


class Hosted(Yes):
    """Costs money, one call at a time."""

    def __init__(self, model: str, config: Any, media: MediaStore) -> None:
        """Nothing to load."""
        super().__init__(model, config, media)
        self.card = replace(self.card, hosted=True, model="gpt-4o-mini", max_inflight=1)
