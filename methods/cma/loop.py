"""The deployment loop: a reader reasons, calls tools and reads their results until it replies."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memharness.methods.cma import prompts
from memharness.methods.cma.calls import FORMAT, Hands, Said, Step, read
from memharness.methods.cma.controller import describe
from memharness.methods.cma.executive import Done, Scene
from memharness.methods.cma.making import Watch
from memharness.methods.cma.tools import REGISTRY, Desk, Offline, Tool
from memharness.reader import Message, Request, Sampling
from memharness.types import OverWindow, Part, Text

if TYPE_CHECKING:
    from memharness.method import MeteredReader
    from memharness.methods.cma.candidates import Candidate

PATIENCE = 2  # replies in a row that cannot be read, after which nothing more is asked
JSON_FORMAT = (
    'Reply with one JSON object and nothing else. To use tools: {"calls": [{"name": "...", "arguments": {...}}]}. To '
    'reply to the user: {"reply": "..."}.'
)
CLOSING = "No more tool calls can be made. Reply to the user now, from what there is, and say what is not done."
PARTIAL = {
    "en": "I had to stop before this was done ({}).",
    "zh": "我没能做完就停下了（{}）。",
}
REASONS = {
    "over_rounds": {"en": "no rounds left", "zh": "轮数用完"},
    "over_calls": {"en": "no tool calls left", "zh": "工具调用次数用完"},
    "unreadable": {
        "en": "the model named no tool and gave no reply in the agreed form",
        "zh": "模型没有按约定格式回复",
    },
    "over_window": {"en": "the model's window is full", "zh": "模型窗口已满"},
}


@dataclass(frozen=True)
class Loop:
    """Plays a turn with tools.

    Attributes:
        reader: reasons.
        desk: lays out a turn's desk.
        rounds: most rounds of calls.
        calls: most calls.
        tokens: most tokens of a reply.
    """

    reader: MeteredReader
    desk: Callable[[Scene, Watch], Desk]
    rounds: int
    calls: int
    tokens: int

    async def act(self, scene: Scene, watch: Watch) -> Done:
        """Play a turn. Out of rounds, calls, window or sense, it ends with what there is, and says so.

        Raises:
            OverWindow: the first prompt does not fit.
            ReaderError: the reader failed.
        """
        desk = self.desk(scene, watch)
        for data in scene.loose:
            desk.keep(data, "upload", ())
        tools = {name: tool for name, tool in REGISTRY.items() if not (tool.online and isinstance(desk.web, Offline))}
        hands = Hands(tools, desk, self.calls)
        native = "tools" in self.reader.card.capabilities
        messages = list(self._opening(scene, desk, tools, native))
        flags: list[str] = []
        said, stopped = Said(fault="nothing was asked"), ""
        unread, last = 0, ""
        for number in range(self.rounds):
            try:
                with watch.timed("plan"):
                    reply = await self.reader.generate(self._request(messages, tools, native))
            except OverWindow:
                if not number:
                    raise
                stopped = "over_window"
                break
            said, last = read(reply, native), reply.text.strip() or last
            if said.reply is not None:
                flags += {"length": ["truncated"], "refused": ["refused"]}.get(reply.finish, [])
                break
            unread = 0 if said.calls else unread + 1
            if unread == PATIENCE:
                stopped = "unreadable"
                break
            with watch.timed("tools", apart="generate"):
                steps = await hands.run(said.calls)
            messages += self._told(said, reply.text, steps)
            if any(step.status == "over_budget" for step in steps):
                stopped = "over_calls"
                break
        else:
            stopped = "over_rounds"
        text = said.reply
        if text is None:
            flags.append(stopped)
            text = await self._close(messages, native, scene, stopped, last, desk, watch)
        return self._done(scene, desk, hands, text, flags, stopped, number + 1)

    def _opening(self, scene: Scene, desk: Desk, tools: Mapping[str, Tool], native: bool) -> tuple[Message, ...]:
        turn = scene.turn
        functions = "" if native else "Tools:\n" + "\n".join(json.dumps(tool.function()) for tool in tools.values())
        pictures = [describe(one) for one in scene.candidates]
        came = [str(one.asset.index) for one in scene.candidates if came_with(one, scene)]
        came += desk.products
        return prompts.fill(
            "loop.v1",
            format="" if native else JSON_FORMAT,
            tools=functions,
            history=f"Dialogue so far:\n{turn.history}" if turn.history else "",
            pictures="\n".join(("Pictures in memory, by number:", *pictures))
            if pictures
            else "There is no picture yet.",
            preferences="\n".join(("The user's lasting wishes:", *turn.preferences)) if turn.preferences else "",
            uploads=f"Came with this message: {', '.join(came)}." if came else "",
            words=turn.words,
        )

    def _request(self, messages: Sequence[Message], tools: Mapping[str, Tool], native: bool) -> Request:
        sampling = Sampling(max_tokens=self.tokens)
        if native:
            return Request(tuple(messages), sampling, tools=tuple(tool.function() for tool in tools.values()))
        schema = FORMAT if "schema" in self.reader.card.capabilities else None
        return Request(tuple(messages), sampling, schema=schema)

    def _told(self, said: Said, text: str, steps: Sequence[Step]) -> list[Message]:
        """What the reader said, and what came of it. Results go back as words of the user, which every reader takes."""
        calls = [{"name": one.name, "arguments": one.arguments} for one in said.calls]
        spoken = json.dumps({"calls": calls}, ensure_ascii=False) if calls else text or "(nothing)"
        sees = "image" in self.reader.card.capabilities
        results: list[Part] = []
        for step in steps:
            line = f"Call {step.number}, {step.call.name}: {step.status}: {step.text}"
            results.append(Text(("\n" if results else "") + line))
            results += [Text("\n"), *step.shown] if sees and step.shown else []
        again = "" if steps else f"That could not be read: {said.fault}."
        return [Message("assistant", (Text(spoken),)), *prompts.fill("loop_results.v1", results=results, again=again)]

    async def _close(
        self, messages: list[Message], native: bool, scene: Scene, stopped: str, last: str, desk: Desk, watch: Watch
    ) -> str:
        """A last word from the reader where it can still give one; then what there is, said by rule."""
        if stopped in ("over_rounds", "over_calls"):
            closing = [*messages, Message("user", (Text(CLOSING),))]
            try:
                with watch.timed("plan"):
                    reply = await self.reader.generate(self._request(closing, {}, native))
                said = read(reply, native)
                if said.reply:
                    return said.reply
                last = reply.text.strip() or last
            except OverWindow:
                pass
        language = scene.turn.language
        head = PARTIAL[language].format(REASONS[stopped][language])
        made = ", ".join(f"{name} ({product.operation})" for name, product in desk.made().items())
        return "\n".join(filter(None, (head, made, last if stopped == "unreadable" else "")))

    def _done(
        self, scene: Scene, desk: Desk, hands: Hands, text: str, flags: list[str], stopped: str, rounds: int
    ) -> Done:
        """The pictures of memory that tools worked with are what a turn was answered from; else those retrieved."""
        used = tuple(desk.used) or desk.retrieved or ()
        index = {one.asset.id: one.asset.index for one in scene.candidates}
        products = tuple(desk.made().values())
        trace: dict[str, Any] = {
            "task": task_of(desk), "by": "loop", "rounds": rounds, "steps": [step.line() for step in hands.steps],
            "retrieved": [index[id] for id in used],
            "outcome": "partial" if stopped else "backend_error" if desk.failures and not products else "ok",
        }  # fmt: skip
        if desk.failures:
            trace["error"] = desk.failures[-1]
        return Done(text, used, products, trace, tuple(flags))


def came_with(one: Candidate, scene: Scene) -> bool:
    """Whether a picture of memory came with this turn."""
    return one.asset.kind == "upload" and one.asset.turn == scene.number


def task_of(desk: Desk) -> str:
    """What a turn came to, by what was made last."""
    if not desk.made():
        return "understand" if desk.used else "pure_chat"
    operation = list(desk.made().values())[-1].operation
    return {"generate": "generate", "fetch": "generate", "compose": "composite", "collage": "composite"}.get(
        operation, "edit"
    )
