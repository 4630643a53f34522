"""The nouns of the harness: what is remembered, asked, known, shown, answered and written down."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal


class UserError(Exception):
    """A user's mistake (exit code 2). The message names the file, record and field, and says what to do."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` (did you mean X?)` for a near miss, else nothing."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f" (did you mean {near[0]}?)" if near else ""


class DataError(UserError):
    """A data file that is not as its benchmark publishes it: `file: record: field: what is wrong; what to do`."""


class MethodError(Exception):
    """A memory method failed: the question's outcome is `method_error`, never a wrong answer."""


class ReaderError(Exception):
    """A reader failed after its retries: the question's outcome is `reader_error`."""


class OverWindow(ReaderError):
    """The prompt is longer than the reader's window: the outcome is `over_window`; nothing is cut in silence."""


class BudgetError(Exception):
    """Evidence costs more than the budget: the outcome is `over_budget`."""


# ---------------------------------------------------------------------------------------------- what is remembered


@dataclass(frozen=True, slots=True)
class Text:
    """Words that were really said, written or shown."""

    text: str


@dataclass(frozen=True, slots=True)
class Image:
    """A picture by content hash. `sha256` is None when the data names a picture that is not at hand (`missing`).

    Attributes:
        sha256: hex digest of the file's bytes, the key into the media store; None if missing.
        mime: media type such as `image/jpeg`.
        width: pixels.
        height: pixels.
        source: the name the data gives the file, relative to the data root.
    """

    sha256: str | None
    mime: str = ""
    width: int = 0
    height: int = 0
    source: str = ""

    @property
    def missing(self) -> bool:
        """Whether the pixels are not at hand."""
        return self.sha256 is None


@dataclass(frozen=True, slots=True)
class Video:
    """A video by content hash; `seconds` is its duration. `sha256` is None if the file is not at hand."""

    sha256: str | None
    mime: str = ""
    width: int = 0
    height: int = 0
    seconds: float = 0.0
    source: str = ""

    @property
    def missing(self) -> bool:
        """Whether the file is not at hand."""
        return self.sha256 is None


Part = Text | Image | Video


@dataclass(frozen=True, slots=True)
class Derived:
    """Text that a machine made about an item. It never poses as content.

    Attributes:
        kind: `caption`, `short_caption`, `ocr`, `tags`, `summary` …
        text: the words.
        part: index of the part it describes; None if the whole item.
    """

    kind: str
    text: str
    part: int | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where something happened; degrees WGS 84."""

    name: str = ""
    latitude: float | None = None
    longitude: float | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """One remembered thing: a dialogue turn, an e-mail, a photo, a video, a paragraph, an observation.

    Attributes:
        id: unique within its context; carries no answer.
        context: the memory it belongs to.
        order: position in the order of experience, from 0.
        parts: what was really said or seen.
        derived: machine-made text about it, kept apart.
        time: ISO 8601 as precise as the source, or None.
        label: the public name an answer may cite (`D1:IMG_001`, `email202411160004`), or None.
        keys: other grains at which evidence is scored (`round`, `session` …).
    """

    id: str
    context: str
    order: int
    parts: tuple[Part, ...]
    derived: tuple[Derived, ...] = ()
    time: str | None = None
    speaker: str | None = None
    place: Place | None = None
    session: str | None = None
    kind: str = "turn"
    label: str | None = None
    keys: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """The item's own words, without anything derived."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text) and part.text)

    def derived_text(self, *kinds: str) -> str:
        """Derived text of these kinds (all kinds if none is named), one line each."""
        return "\n".join(d.text for d in self.derived if d.text and (not kinds or d.kind in kinds))


# --------------------------------------------------------------------------------------------------- what is asked


@dataclass(frozen=True, slots=True)
class Choice:
    """One option of a question; its parts may be pictures."""

    key: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """All that a method may see of a question.

    Attributes:
        id: opaque where the source's id would carry the answer.
        parts: words and pictures, interleaved as asked.
        instruction: the benchmark's own answer-format words, if any.
        derived: machine-made text about the question's pictures.
        time: when it is asked, ISO 8601, or None.
        form: `text`, `choice` or `action`.
        prefill: words the benchmark makes every answer begin with; empty for none.
    """

    id: str
    context: str
    parts: tuple[Part, ...]
    choices: tuple[Choice, ...] = ()
    instruction: str = ""
    derived: tuple[Derived, ...] = ()
    time: str | None = None
    form: Literal["text", "choice", "action"] = "text"
    prefill: str = ""

    def text(self) -> str:
        """The question's words."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    def derived_text(self, *kinds: str) -> str:
        """Derived text of these kinds (all kinds if none is named), one line each."""
        return "\n".join(d.text for d in self.derived if d.text and (not kinds or d.kind in kinds))


@dataclass(frozen=True, slots=True)
class Evidence:
    """A pointer into memory: an item, optionally one of its parts and a character span of that part."""

    item: str
    part: int | None = None
    span: tuple[int, int] | None = None
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Gold:
    """What only scoring may see. Never an argument of anything a method implements.

    Attributes:
        answers: accepted answers, typed as text; empty if the question has none.
        evidence: gold evidence; empty if the data names none.
        category: the benchmark's question type, as it names it.
        group: questions of one context scored together (rotations, circular passes), or None.
        cluster: what questions share for statistics (conversation, scenario …).
        native_id: the source's own id, used in prediction files.
        abstain: whether the right answer is that memory holds none.
        extra: what the official scorer needs besides.
    """

    answers: tuple[str, ...]
    evidence: tuple[Evidence, ...] = ()
    category: str = ""
    group: str | None = None
    cluster: str = ""
    native_id: str = ""
    abstain: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Case:
    """A question with its gold, as an episode hands it to the runner."""

    question: Question
    gold: Gold


# -------------------------------------------------------------------------------------------- what is shown, answered


@dataclass(frozen=True, slots=True)
class Readout:
    """What a memory returns for a question: ordered evidence and, optionally, the parts to show.

    Without `parts` the harness renders the evidence by the run's view. `trace` holds intermediate artefacts (JSON-able)
    that go into the record; it is never shown to a reader. `available` is the number of items the memory holds, so
    that a readout shorter than the budget can be told from a small memory; None if the method does not know.
    """

    evidence: tuple[Evidence, ...] = ()
    parts: tuple[Part, ...] | None = None
    trace: Mapping[str, Any] = field(default_factory=dict)
    available: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A final answer. `text` is None when there is none; `extra` holds structured output (supporting facts …)."""

    text: str | None
    parts: tuple[Part, ...] = ()
    readout: Readout | None = None
    trace: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)


class Outcome(StrEnum):
    """What became of a question; exactly one each. It comes from the path taken, never from the words of an answer."""

    OK = "ok"
    REFUSED = "refused"
    OVER_BUDGET = "over_budget"
    OVER_WINDOW = "over_window"
    METHOD_ERROR = "method_error"
    READER_ERROR = "reader_error"
    TIMEOUT = "timeout"
    NOT_ASKED = "not_asked"

    @property
    def final(self) -> bool:
        """Whether a rerun leaves it alone. Errors and time-outs are asked again; a finished answer never is."""
        return self in (Outcome.OK, Outcome.REFUSED, Outcome.OVER_BUDGET, Outcome.OVER_WINDOW)


@dataclass(slots=True)
class Record:
    """One question's whole story, one line per attempt in `records/<worker>.jsonl`.

    Attributes:
        context_index: position of the context in benchmark order.
        index: position of the question in its context.
        attempt: 1 for the first.
        answer: the final text, None if there is none (then `outcome` says why).
        evidence: the readout's pointers, in order.
        requested: the most items the budget allowed; None if unlimited.
        cost: tokens of the shown evidence by counter name.
        view: `pixels` or `captions`, whichever the reader was really shown.
        prompt: the answer prompt as text, pictures as `<image sha256>`.
        flags: `truncated`, `empty_readout`, `short_readout`, `empty_answer` …
        error: `{type, message, where}` of a failure.
        trace: the method's intermediate artefacts.
        pictures: those of the answer, in order, by content hash; their bytes are the media store's.
    """

    question: str
    context: str
    context_index: int
    index: int
    outcome: Outcome
    attempt: int = 1
    answer: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] | None = None
    requested: int | None = None
    cost: Mapping[str, int] = field(default_factory=dict)
    view: str | None = None
    prompt: str | None = None
    flags: tuple[str, ...] = ()
    error: Mapping[str, str] | None = None
    trace: Mapping[str, Any] = field(default_factory=dict)
    native_id: str = ""
    seconds: float = 0.0
    pictures: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """What a metric sees: a question, its gold and its record."""

    question: Question
    gold: Gold
    record: Record


class Status(StrEnum):
    """How a score came about. Only `ok` and `unparsed` values are answers; `judge_error` is a column of its own."""

    OK = "ok"
    NOT_APPLICABLE = "not_applicable"
    UNPARSED = "unparsed"
    JUDGE_ERROR = "judge_error"


@dataclass(frozen=True, slots=True)
class Score:
    """A value with its status. `not_applicable` leaves both denominators; `judge_error` leaves the valid one."""

    value: float | None
    status: Status = Status.OK
    note: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call as the engine reports them. `text` and `image` are the prompt's; `cached` is a part of them.

    `reasoning` is a part of `output`. `latent` counts vectors, not tokens.
    """

    text: int = 0
    image: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0
    latent: int = 0


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of a benchmark's published data.

    `url` is a direct address, or `hf://datasets/OWNER/NAME@REVISION` for a hub snapshot. `sha256` is None where the
    publisher gives none: the first download's digest is then recorded and held to.
    """

    url: str
    path: str
    sha256: str | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of `data check`: `error` (cannot run), `warning` (a known defect, handled) or `info`."""

    level: Literal["error", "warning", "info"]
    where: str
    message: str


def part_text(part: Part) -> str:
    """A part as text for prompts on paper: words as they are, media as `<image 1a2b…>`."""
    if isinstance(part, Text):
        return part.text
    name = "image" if isinstance(part, Image) else "video"
    return f"<{name} {part.sha256[:12] if part.sha256 else 'missing'}>"


def parts_text(parts: tuple[Part, ...]) -> str:
    """Parts as text, joined without a separator."""
    return "".join(part_text(part) for part in parts)
