"""The chain from an item that was observed to an answer that was judged, and where it broke for a miss.

Only what is known is said. Whether a memory stored an item, for one, shows when some question recalls it or the
method's trace names it, and otherwise stays unknown: a break is then placed between the first link it may be and the
last.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from memharness.scoring.choice import after_thinking
from memharness.types import Asked, Evidence, Item, Outcome, Score, Status

LINKS = ("observed", "stored", "recalled", "shown", "read", "judged")
FILLING = ("open", "data", "observe", "ready", "load")  # stages of a memory before anything is asked of it


class State(StrEnum):
    """What is known of a link."""

    YES = "yes"
    PARTLY = "partly"
    NO = "no"
    UNKNOWN = "unknown"
    NONE = "none"  # there is nothing for this link to do


BROKEN = (State.NO, State.PARTLY)


@dataclass(frozen=True, slots=True)
class Link:
    """One link of a chain: its name, its state, and why, in words for a person."""

    name: str
    state: State
    why: str


@dataclass(frozen=True)
class Known:
    """What the files of a run say of a question beyond its record.

    Attributes:
        items: the context's items by id; None if they are not at hand.
        stored: ids that the memory is known to hold.
        prompt: the answer prompt, if there was one.
        rendered: how the harness shows a pointer of this run's view, as text of the prompt; None without items.
        track: `evidence` or `answer`.
        reads: whether a reader was to answer at all.
        score: the score that decides, None if the question has none.
        right: whether it is reached; None if nothing decides.
    """

    items: Mapping[str, Item] | None
    stored: Set[str]
    prompt: str | None
    rendered: Callable[[Evidence], str] | None
    track: str
    reads: bool
    score: Score | None
    right: bool | None


def chain(asked: Asked, known: Known) -> tuple[Link, ...]:
    """The six links of a question, in order."""
    gold = list(dict.fromkeys(pointer.item for pointer in asked.gold.evidence))
    found = [*_memory(asked, known, gold), _shown(asked, known, gold), _read(asked, known), _judged(asked, known)]
    return tuple(Link(name, state, why) for name, (state, why) in zip(LINKS, found, strict=True))


def first_break(links: Sequence[Link]) -> str:
    """Where a miss broke: `recalled`; `stored or recalled`, `observed … read` where earlier links are unknown.

    `unknown` where every link held or had nothing to do.
    """
    last = next((at for at, link in enumerate(links) if link.state in BROKEN), None)
    open_ = [at for at, link in enumerate(links[:last]) if link.state is State.UNKNOWN]
    if last is None and not open_:
        return "unknown"
    end = open_[-1] if last is None else last
    begin = open_[0] if open_ else end
    if begin == end:
        return links[begin].name
    return f"{links[begin].name} {'or' if end == begin + 1 else '…'} {links[end].name}"


Found = tuple[State, str]


def _share(held: int, of: int, what: str) -> Found:
    """How many of the gold items a link passed on."""
    state = State.YES if held == of else State.PARTLY if held else State.NO
    return state, f"{held} of {of} gold item{'s' if of > 1 else ''} {what}"


def _memory(asked: Asked, known: Known, gold: Sequence[str]) -> Iterator[Found]:
    """Observed, stored, recalled."""
    error = asked.record.error or {}
    failed = asked.record.outcome is Outcome.METHOD_ERROR and error.get("where") in FILLING
    if failed:
        yield State.NO, f"the memory failed in {error.get('where')}: {error.get('message')}"
        yield State.UNKNOWN, "the memory failed before"
        yield State.NO, "nothing could be recalled"
    elif not gold:
        nothing = _no_gold(asked, known)
        yield from (nothing, nothing)
        yield _recall_failed(asked) or nothing
    else:
        yield _observed(known, gold)
        held = sum(item in known.stored for item in gold)
        words = "recalled for some question of this context, or named in the method's trace"
        yield (
            (State.YES, f"every gold item was {words}")
            if held == len(gold)
            else (State.UNKNOWN, f"{held} of {len(gold)} gold items were {words}; of the others nothing is known")
        )
        yield _recalled(asked, gold)


def _no_gold(asked: Asked, known: Known) -> Found:
    if asked.gold.abstain:
        return State.NONE, "the right answer is that memory holds none"
    if known.items is not None and not known.items:
        return State.NONE, "this question has no memory behind it"
    return State.UNKNOWN, "the data name no gold evidence"


def _observed(known: Known, gold: Sequence[str]) -> Found:
    if known.items is not None:
        return _share(sum(item in known.items for item in gold), len(gold), "among the items given to the memory")
    if all(item in known.stored for item in gold):
        return State.YES, "every gold item is known to be stored"
    return State.UNKNOWN, "the context's items are not at hand"


def _recall_failed(asked: Asked) -> Found | None:
    error = asked.record.error or {}
    if asked.record.evidence is None and error.get("where") in ("recall", "answer", "trace"):
        return State.NO, f"{asked.record.outcome.value} in {error['where']}: {error.get('message', '')}"
    return None


def _recalled(asked: Asked, gold: Sequence[str]) -> Found:
    if asked.record.evidence is None:
        return _recall_failed(asked) or (State.UNKNOWN, "the record holds no readout")
    held = {pointer.item for pointer in asked.record.evidence}
    return _share(sum(item in held for item in gold), len(gold), "in the readout")


def _shown(asked: Asked, known: Known, gold: Sequence[str]) -> Found:
    record = asked.record
    if record.outcome in (Outcome.OVER_BUDGET, Outcome.OVER_WINDOW):
        return State.NO, f"{record.outcome.value}: the reader was not asked"
    if not known.reads:
        return State.NONE, "retrieval only: no reader was asked"
    if not gold:
        return _no_gold(asked, known)
    if record.evidence is not None and not {pointer.item for pointer in record.evidence} & set(gold):
        return State.NO, "no gold item was recalled"
    if known.prompt is None or record.evidence is None:
        own = "the method made its own prompts" if known.track == "answer" else "no prompt was kept"
        return State.UNKNOWN, own
    if known.rendered is None:
        return State.UNKNOWN, "without the context's items the prompt cannot be checked"
    return _in_prompt(record.evidence, gold, known.prompt, known.rendered)


def _in_prompt(
    evidence: Iterable[Evidence], gold: Sequence[str], prompt: str, rendered: Callable[[Evidence], str]
) -> Found:
    pieces: dict[str, list[str]] = {}
    for pointer in evidence:
        if pointer.item in gold:
            pieces.setdefault(pointer.item, []).append(rendered(pointer).strip())
    bare = [item for item, texts in pieces.items() if not any(texts)]
    there = [item for item, texts in pieces.items() if any(texts) and all(text in prompt for text in texts)]
    if len(there) + len(bare) < len(pieces):
        return State.UNKNOWN, "the method showed its evidence in words of its own"
    why = f"; {len(bare)} had nothing to show in this view" if bare else ""
    state, words = _share(len(there), len(gold), "in the prompt")
    return state, words + why


def _read(asked: Asked, known: Known) -> Found:
    record = asked.record
    if not known.reads:
        return State.NONE, "retrieval only: no reader was asked"
    if record.outcome is not Outcome.OK:
        message = (record.error or {}).get("message", "")
        return State.NO, f"{record.outcome.value}{f': {message}' if message else ''}"
    if known.right:
        return State.YES, "the answer counts as right"
    if known.score is not None and known.score.status is Status.UNPARSED:
        return State.UNKNOWN, f"the answer could not be parsed: {known.score.note}"
    if "empty_answer" in record.flags or not (record.answer or "").strip():
        return State.NO, "the answer is empty"
    cut = "; it was cut at the limit of tokens" if "truncated" in record.flags else ""
    if known.right is None:
        return State.UNKNOWN, f"nothing says whether the answer is right{cut}"
    if _says_gold(asked):
        return State.UNKNOWN, f"the answer has the words of a gold answer and was scored as wrong{cut}"
    other = "counts as wrong" if asked.question.form == "choice" else "has not the words of a gold answer"
    return State.NO, f"the answer {other}{cut}"


def _judged(asked: Asked, known: Known) -> Found:
    score = known.score
    if score is None or score.status is Status.NOT_APPLICABLE:
        return State.NONE, "not scored"
    if score.status is not Status.OK:
        return State.NO, f"{score.status.value}: {score.note}"
    if score.value is None:
        return State.NONE, "there was no answer to score"
    state, words = State.YES, f"scored {score.value:.3g}"
    if known.reads and not known.right and _says_gold(asked):
        return State.UNKNOWN, f"{words}, although the answer has the words of a gold answer"
    return state, words


def _says_gold(asked: Asked) -> bool:
    """Whether the words of a gold answer were said; the letter of an option is found in any sentence."""
    return asked.question.form != "choice" and holds(asked.record.answer or "", asked.gold.answers)


def holds(reply: str, answers: Iterable[str]) -> bool:
    """Whether a reply, after any thinking, has all words of a gold answer in a row."""
    said = _words(after_thinking(reply) or "")
    return any(f" {words} " in f" {said} " for answer in answers if (words := _words(answer)))


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def named(value: Any, among: Set[str]) -> set[str]:
    """The ids of `among` that stand as a whole key or string somewhere in a trace."""
    found: set[str] = set()
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, str):
            if one in among:
                found.add(one)
        elif isinstance(one, Mapping):
            left += one.keys()
            left += one.values()
        elif isinstance(one, list | tuple):
            left += one
    return found
