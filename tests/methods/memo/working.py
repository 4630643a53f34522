"""What the tests of MEMO share: named counters, records of several kinds, and a memory opened on a kit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memharness.budget import PictureRule, RunBudget
from memharness.config import build
from memharness.image_tokens import NAMED
from memharness.media import MediaStore
from memharness.method import Memory, Method
from memharness.reader import Counter
from memharness.readers.counters import Bytes4
from memharness.registry import find
from memharness.types import Item, Question, Readout, Text
from tests.methods.kit import FakeKit, as_kit

ALL: tuple[Counter, ...] = (Bytes4(), *(PictureRule(name, Bytes4()) for name in NAMED))
"""Bytes4's own rule and every named one."""


def named(*names: str) -> tuple[Counter, ...]:
    """Counters by rule, `bytes4` for its own."""
    return tuple(Bytes4() if name == "bytes4" else PictureRule(name, Bytes4()) for name in names)


def paragraph(number: int, title: str, *sentences: str) -> Item:
    """A paragraph with sentences as parts, as HotpotQA has them."""
    parts = tuple(Text(sentence if at == 0 else f" {sentence}") for at, sentence in enumerate(sentences))
    return Item(f"p{number}", "c", number, parts, kind="paragraph", label=title)


def turn(number: int, speaker: str, when: str, text: str) -> Item:
    """A dated turn of a dialogue."""
    return Item(f"D1:{number}", "c", number, (Text(text),), time=when, speaker=speaker)


def asked(text: str, form: Any = "text") -> Question:
    """A question of context `c`."""
    return Question("q", "c", (Text(text),), form=form)


async def opened(name: str, items: Sequence[Item], kit: FakeKit | None = None, **options: Any) -> tuple[Any, FakeKit]:
    """A method's memory of these items, ready."""
    kit = kit or FakeKit(images=MediaStore())
    method: type[Method[Any]] = find("methods", name)
    memory: Memory = method(build(method.config_class, options, "-M", name)).open("c", as_kit(kit))
    await memory.observe(kit.know(items))
    await memory.ready()
    return memory, kit


def budget(kit: FakeKit, tokens: int | None, counters: Sequence[Counter] = ALL, items: int | None = None) -> RunBudget:
    """The harness's budget under these counters."""
    return RunBudget(items, tokens, counters, kit.renderer)


async def recalled(
    name: str,
    items: Sequence[Item],
    question: Question,
    tokens: int | None = 128,
    counters: Sequence[Counter] = ALL,
    **options: Any,
) -> Readout:
    """A readout, checked by the harness as a run would check it."""
    memory, kit = await opened(name, items, **options)
    limits = budget(kit, tokens, counters)
    readout: Readout = await memory.recall(question, limits)
    limits.check(readout, readout.parts or ())
    return readout
