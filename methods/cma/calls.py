"""Tool calls in a reader's reply, native or as JSON in the text, and running them under a turn's budget."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Literal

from memharness.identity import digest
from memharness.methods.cma.tools import Desk, Result, Tool, ToolError
from memharness.reader import Reply
from memharness.types import Image, did_you_mean

Status = Literal["ok", "error", "duplicate", "over_budget"]
RUNNING = "(running)"

FORMAT: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "calls": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}},
                "required": ["name", "arguments"],
            },
        },
        "reply": {"type": "string"},
    },
}
"""What a reader without tool calls of its own writes instead."""


@dataclass(frozen=True)
class Call:
    """A tool call as a model made it; `arguments` may be JSON text."""

    name: str
    arguments: Mapping[str, Any] | str


@dataclass(frozen=True)
class Step:
    """What became of a call."""

    number: int
    call: Call
    status: Status
    text: str
    shown: tuple[Image, ...] = ()
    seconds: float = 0.0

    def line(self) -> dict[str, Any]:
        """For the record."""
        about = {"tool": self.call.name, "arguments": self.call.arguments, "status": self.status}
        return {**about, "result": self.text[:500], "seconds": round(self.seconds, 6)}


@dataclass(frozen=True)
class Said:
    """A reply taken apart: calls to make, or a final reply, or what is wrong with it."""

    calls: tuple[Call, ...] = ()
    reply: str | None = None
    fault: str = ""


def read(reply: Reply, native: bool) -> Said:
    """The calls or the final words in a reply.

    A reader with tool calls of its own ends by making none. Another writes one JSON object, as `FORMAT`; its first
    object that has `calls`, `reply`, or a call's own `name` counts, and text around it does not.
    """
    text = reply.text.rpartition("</think>")[2].strip()
    if native:
        if reply.tools:
            return Said(tuple(Call(str(one.get("name", "")), one.get("arguments") or "{}") for one in reply.tools))
        return Said(reply=text) if text else Said(fault="the reply is empty")
    for found in _objects(text):
        if isinstance(found.get("calls"), list) and found["calls"]:
            made = [_call(one) for one in found["calls"]]
            return Said(tuple(one for one in made if one)) if all(made) else Said(fault="a call has no name")
        if one := _call(found):
            return Said((one,))
        if isinstance(found.get("reply"), str) and found["reply"].strip():
            return Said(reply=found["reply"].strip())
    return Said(fault='the reply holds no JSON object with "calls" or "reply"')


def _call(found: Any) -> Call | None:
    if not isinstance(found, dict) or not isinstance(found.get("name"), str):
        return None
    arguments = found.get("arguments", {})
    return Call(found["name"], arguments if isinstance(arguments, dict | str) else {})


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text, outermost first to last."""
    decoder, at = json.JSONDecoder(), text.find("{")
    while at >= 0:
        try:
            found, end = decoder.raw_decode(text, at)
        except (json.JSONDecodeError, RecursionError):
            end = at + 1
        else:
            yield found
        at = text.find("{", end)


@dataclass
class Hands:
    """Runs the calls of one turn.

    Attributes:
        tools: by name.
        desk: what they work on.
        limit: most calls a turn.
        steps: what became of every call so far.
    """

    tools: Mapping[str, Tool]
    desk: Desk
    limit: int
    steps: list[Step] = field(default_factory=list)
    _seen: dict[str, int] = field(default_factory=dict)
    _changes: int = 0

    @property
    def spent(self) -> bool:
        """Whether no further call would be made."""
        return sum(step.status in ("ok", "error") for step in self.steps) >= self.limit

    async def run(self, calls: Iterable[Call]) -> Sequence[Step]:
        """Run calls in order: neighbours that only read beside each other, the others one by one.

        A call that was made before this turn with the same arguments is not made again; one that reads may be, once
        something has changed. What is wrong with a call is its result, for the model to read.
        """
        done: list[Step] = []
        for reads, group in groupby(calls, key=self._reads):
            some = list(group)
            if reads:
                prepared = [self._prepare(call) for call in some]
                done += await asyncio.gather(*(self._finish(one) for one in prepared))
            else:
                for call in some:
                    done.append(await self._finish(self._prepare(call)))
        return done

    def _reads(self, call: Call) -> bool:
        tool = self.tools.get(call.name)
        return tool is not None and tool.read_only

    def _prepare(self, call: Call) -> tuple[int, Tool | None, Any]:
        """Everything about a call that depends on the order of calls; a step is kept for it in that order."""
        number = len(self.steps) + 1

        def settled(status: Status, text: str) -> tuple[int, None, None]:
            self.steps.append(Step(number, call, status, text))
            return number, None, None

        tool = self.tools.get(call.name)
        if self.spent:
            return settled("over_budget", f"not done: all {self.limit} calls of this turn are used")
        if tool is None:
            hint = did_you_mean(call.name, self.tools)
            return settled("error", f"there is no tool {call.name!r}{hint}; there are: {', '.join(self.tools)}")
        try:
            arguments = tool.read(call.arguments)
        except ToolError as error:
            return settled("error", str(error))
        key = digest([tool.name, arguments.model_dump(mode="json"), self._changes if tool.read_only else 0])
        if key in self._seen:
            before = self.steps[self._seen[key] - 1]
            gave = f", which gave: {before.text}" if before.text != RUNNING else ""
            return settled("duplicate", f"not done again: it is call {before.number}{gave}")
        self._seen[key] = number
        self.steps.append(Step(number, call, "ok", RUNNING))
        return number, tool, arguments

    async def _finish(self, prepared: tuple[int, Tool | None, Any]) -> Step:
        number, tool, arguments = prepared
        step = self.steps[number - 1]
        if tool is None:
            return step
        begun = time.perf_counter()
        status: Status = "ok"
        try:
            result = await tool.run(self.desk, arguments)
        except ToolError as error:
            status, result = "error", Result(str(error))
        if status == "ok" and not tool.read_only:
            self._changes += 1
        seconds = time.perf_counter() - begun
        step = self.steps[number - 1] = Step(number, step.call, status, result.text, result.shown, seconds)
        return step
