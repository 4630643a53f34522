"""The harness's own prompts: versioned files, evidence shown by view, one way for the runner and for methods."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Literal

from memharness.reader import Message, Request, Sampling
from memharness.types import (
    Derived,
    Evidence,
    Image,
    Item,
    MethodError,
    Part,
    Question,
    Readout,
    Text,
    UserError,
    Video,
)

View = Literal["pixels", "captions"]
SHOWN = ("caption", "ocr", "summary")  # derived text that stands for a picture in the captions view
NAMES = {"caption": "Caption", "ocr": "Text in picture", "summary": "Summary"}


@dataclass(frozen=True)
class Template:
    """A prompt file: its name with version, the hash of its bytes, and its messages with `{slots}`."""

    name: str
    sha256: str
    messages: tuple[tuple[Literal["system", "user"], str], ...]

    def fill(self, slots: Mapping[str, Sequence[Part]]) -> tuple[Message, ...]:
        """Messages with every slot replaced by its parts. A line whose only slot is empty is left out."""
        return tuple(Message(role, _fill(body, slots)) for role, body in self.messages)


@functools.cache
def template(name: str) -> Template:
    """A prompt file of the harness by name and version, such as `answer.v1`.

    Raises:
        UserError: if there is none of that name.
    """
    file = resources.files(__name__) / f"{name}.txt"
    if not file.is_file():
        raise UserError(f"no prompt is called {name}")
    text = file.read_text("utf-8")
    pieces = re.split(r"^# (system|user)\n", text, flags=re.MULTILINE)
    messages = tuple((role, body.rstrip("\n")) for role, body in zip(pieces[1::2], pieces[2::2], strict=True))
    return Template(name, hashlib.sha256(text.encode()).hexdigest(), messages)  # type: ignore[arg-type]


@functools.cache
def _lines(body: str) -> tuple[tuple[str, ...], ...]:
    """Each line as alternating literal text and slot names."""
    return tuple(tuple(re.split(r"\{(\w+)\}", line)) for line in body.split("\n"))


def _fill(body: str, slots: Mapping[str, Sequence[Part]]) -> tuple[Part, ...]:
    out: list[Part] = []
    for line in _lines(body):
        parts: list[Part] = []
        for index, piece in enumerate(line):
            if index % 2:
                parts.extend(slots[piece])
            elif piece:
                parts.append(Text(piece))
        if len(line) > 1 and not parts:
            continue
        if out:
            out.append(Text("\n"))
        out.extend(parts)
    return merge(out)


def merge(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Parts with adjacent texts joined, so that they are counted and sent as one."""
    out: list[Part] = []
    words: list[str] = []
    for part in parts:
        if isinstance(part, Text):
            words.append(part.text)
            continue
        if words:
            out.append(Text("".join(words)))
            words = []
        out.append(part)
    if words:
        out.append(Text("".join(words)))
    return tuple(out)


class Renderer:
    """Shows evidence of one context to a reader, by view."""

    def __init__(self, items: Mapping[str, Item], view: View) -> None:
        """Look items up in `items`, which may grow while the context lives."""
        self.items = items
        self.view = view

    def evidence(self, evidence: Sequence[Evidence]) -> tuple[Part, ...]:
        """Numbered blocks, in order; neighbouring pointers into one item share a block.

        Raises:
            MethodError: for a pointer to an item, part or span that does not exist.
        """
        out: list[Part] = []
        number = 0
        last: str | None = None
        for pointer in evidence:
            item = self._item(pointer)
            if pointer.item != last:
                number += 1
                out.append(Text(("\n" if out else "") + f"[{number}] {header(item)}".rstrip() + "\n"))
                last = pointer.item
            out.extend(self._body(item, pointer))
        return merge(out)

    def parts(self, question: Question) -> tuple[Part, ...]:
        """The question as asked: pictures as pixels, or as their captions."""
        return self._shown(question.parts, question.derived)

    def _item(self, pointer: Evidence) -> Item:
        try:
            return self.items[pointer.item]
        except KeyError:
            raise MethodError(f"the readout points to item {pointer.item!r}, which was never observed") from None

    def _body(self, item: Item, pointer: Evidence) -> tuple[Part, ...]:
        if pointer.part is None:
            if pointer.span is not None:
                raise MethodError(f"the readout points to span {pointer.span} of item {item.id!r} and to no part of it")
            return self._shown(item.parts, item.derived)
        if not 0 <= pointer.part < len(item.parts):
            raise MethodError(
                f"the readout points to part {pointer.part} of item {item.id!r}, which has {len(item.parts)}"
            )
        part = item.parts[pointer.part]
        if pointer.span is not None:
            start, end = pointer.span
            if not isinstance(part, Text) or not 0 <= start <= end <= len(part.text):
                raise MethodError(f"the readout points to span {pointer.span} of item {item.id!r}, outside its text")
            part = Text(part.text[start:end])
        about = tuple(d for d in item.derived if d.part == pointer.part)
        return self._shown((part,), about)

    def _shown(self, parts: Sequence[Part], derived: Sequence[Derived]) -> tuple[Part, ...]:
        out: list[Part] = []
        for part in parts:
            if isinstance(part, Text):
                out.append(Text(part.text + "\n"))
            elif isinstance(part, Image) and self.view == "pixels":
                if part.missing:
                    raise UserError(
                        f"--view pixels: {part.source} is not at hand; fetch the pictures or use --view captions"
                    )
                out += [part, Text("\n")]
        media = any(isinstance(part, Video) or (isinstance(part, Image) and self.view == "captions") for part in parts)
        if media:  # a video is shown by its derived text in both views: no reader here takes video
            out += [
                Text(f"{NAMES[d.kind]}: {d.text}\n") for kind in SHOWN for d in derived if d.kind == kind and d.text
            ]
        return tuple(out)


def header(item: Item) -> str:
    """One line that says what an item is: its citable name, time, speaker, place."""
    place = item.place.name if item.place else None
    time = item.time and item.time.replace("T", " ")  # ISO 8601 as people write it
    return " · ".join(filter(None, (item.label, time, item.speaker, place)))


def choice_lines(question: Question, renderer: Renderer) -> tuple[Part, ...]:
    """`A. …` lines of a question's choices, pictures in place."""
    out: list[Part] = []
    for choice in question.choices:
        out.append(Text(f"{choice.key}. "))
        out.extend(renderer._shown(choice.parts, ()))
    return tuple(out)


def stripped(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Merged parts without white space at the end."""
    merged = merge(parts)
    if merged and isinstance(merged[-1], Text):
        text = merged[-1].text.rstrip()
        return (*merged[:-1], Text(text)) if text else merged[:-1]
    return merged


def answer_request(
    question: Question,
    readout: Readout,
    renderer: Renderer,
    sampling: Sampling,
    name: str = "answer.v1",
) -> Request:
    """The harness's answer prompt: evidence (or the readout's own parts), instruction, question, choices."""
    shown = renderer.evidence(readout.evidence) if readout.parts is None else readout.parts
    shown = stripped(shown)
    slots: dict[str, Sequence[Part]] = {
        "evidence": shown or (Text("(none)"),),
        "shown": shown,  # for prompts that say nothing where nothing is shown
        "instruction": (Text(question.instruction),) if question.instruction else (),
        "question": stripped(renderer.parts(question)),
        "choices": stripped(choice_lines(question, renderer)),
    }
    return Request(template(name).fill(slots), sampling, prefill=question.prefill)
