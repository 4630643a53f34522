"""The metric contract: pure local scores of a question, a group or an episode, and judged ones."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from memharness.types import Asked, Score, UserError, did_you_mean

if TYPE_CHECKING:
    from memharness.reader import Reply, Request

Unit = Literal["question", "group", "episode"]
PARAMETER = r'\s*\w+\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^,()"]*)\s*'
WRITTEN = re.compile(rf"(\w+)(?:\(((?:{PARAMETER}(?:,{PARAMETER})*)?)\))?(?:@(\d+))?", re.DOTALL)


@dataclass(frozen=True)
class Metric(ABC):
    """A metric is a value: its parameters are its fields; it prints as it is parsed: `F1(norm=hotpot)`, `Recall@10`.

    Subclasses are frozen dataclasses whose fields are numbers, texts or truth values. `k`, if there is such a field,
    prints behind an `@`.

    Attributes:
        unit: what is scored at once. A group is the questions of a context that share `Gold.group`; an episode is a
            context.
        needs: what must have succeeded for the score to be valid: the answer, or only the readout (recall is valid
            even where the reader failed).
    """

    unit: ClassVar[Unit] = "question"
    needs: ClassVar[Literal["answer", "readout"]] = "answer"

    @abstractmethod
    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Score a unit. A question that failed has `record.answer` None, one without a readout `record.evidence` None.

        Args:
            unit: the questions of the unit, in benchmark order; one for `question`.
            facts: what the episode stated as facts; empty for recorded ones.

        Returns:
            one or more scores by name.
        """

    def __str__(self) -> str:
        """The metric as it is parsed."""
        shown = [(f.name, getattr(self, f.name)) for f in fields(self) if f.name != "k"]
        changed = [f"{name}={_word(value)}" for name, value in shown if value != _default(type(self), name)]
        text = type(self).__name__ + (f"({','.join(changed)})" if changed else "")
        return f"{text}@{self.k}" if hasattr(self, "k") else text


@dataclass(frozen=True)
class Judged(Metric):
    """A metric whose verdict a judge model gives. The engine makes the call: metered, cached, retried."""

    @property
    @abstractmethod
    def rubric(self) -> str:
        """Name and version of the rubric; a part of the score's key. A class attribute or a field will do."""

    @property
    def batch(self) -> bool:
        """Whether the answers to questions of a context that share `Gold.group` are judged in one call.

        `ask` is then given all of them that need the judge, and `read` one of them with the common reply.
        """
        return False

    @property
    def sees(self) -> bool:
        """Whether the request shows pictures, so that only a judge that sees can be asked."""
        return False

    @property
    def key(self) -> Mapping[str, str]:
        """What tells this judging from another, besides the judge; it goes into the key of the score."""
        return {"rubric": self.rubric}

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Scores that need no call (an empty answer, a question that does not apply); empty if the judge must say."""
        return {}

    @abstractmethod
    def ask(self, unit: Sequence[Asked]) -> Request:
        """The request to the judge."""

    def ask_in_words(self, unit: Sequence[Asked]) -> Request:
        """The request to a judge that cannot be held to a schema; by default the same without one."""
        return replace(self.ask(unit), schema=None)

    @abstractmethod
    def read(self, unit: Sequence[Asked], reply: Reply) -> Mapping[str, Score]:
        """Scores from its reply; a reply that cannot be read is status `judge_error`, never a guess."""


def must_see(judge: str, capabilities: frozenset[str], metrics: Iterable[Metric]) -> None:
    """Refuse a judge that sees no pictures where a metric shows them.

    Raises:
        UserError: naming both.
    """
    shown = [str(metric) for metric in metrics if isinstance(metric, Judged) and metric.sees]
    if shown and "image" not in capabilities:
        raise UserError(f"judge {judge} sees no pictures, and {shown[0]} shows them; name one that does")


def _default(metric: type[Metric], name: str) -> object:
    return next(f.default for f in fields(metric) if f.name == name)


def _word(value: object) -> str:
    """A parameter as `parse_metric` reads it: text that would be read as something else stands in quotes."""
    if value is None:
        return "null"
    if not isinstance(value, str):
        return str(value)
    plain = re.fullmatch(r"""[^,()"'][^,()"]*""", value) and value == value.strip() and value.isprintable()
    return value if plain else json.dumps(value, ensure_ascii=False)


def parse_metric(text: str, classes: Mapping[str, type[Metric]]) -> Metric:
    """The metric that prints as `text`.

    Args:
        text: such as `Recall@10` or `F1(norm=hotpot)`.
        classes: metric classes by name.

    Raises:
        UserError: for a name, parameter or value that is not one, or a parameter that is missing.
    """
    match = WRITTEN.fullmatch(text.strip())
    if not match:
        raise UserError(f"metric {text!r}: expected Name, Name(key=value,…) or Name@k")
    name, arguments, k = match.groups()
    if name not in classes:
        raise UserError(f"metric {text!r}: no metric is called {name}{did_you_mean(name, classes)}")
    pairs = (pair.partition("=") for pair in re.findall(PARAMETER, arguments or ""))
    words = {key.strip(): word.strip() for key, _, word in pairs}
    if k is not None:
        words["k"] = k
    known = {f.name: f.default is MISSING and f.default_factory is MISSING for f in fields(classes[name])}
    for key in words:
        if key not in known:
            raise UserError(f"metric {text!r}: {name} has no parameter {key}; it has: {', '.join(known) or 'none'}")
    for key, required in known.items():
        if required and key not in words:
            raise UserError(f"metric {text!r}: {name} needs the parameter {key}")
    return classes[name](**_values(text, classes[name], words))


def _values(text: str, metric: type[Metric], words: Mapping[str, str]) -> dict[str, object]:
    """Parameters as their fields want them."""
    if not words:
        return {}
    import typing

    import pydantic

    from memharness.config import read_word

    hints = typing.get_type_hints(metric)
    values: dict[str, object] = {}
    for key, word in words.items():
        try:
            values[key] = pydantic.TypeAdapter(hints[key]).validate_python(read_word(word, hints[key]))
        except ValueError as error:
            reason = error.errors()[0]["msg"] if isinstance(error, pydantic.ValidationError) else error
            raise UserError(f"metric {text!r}: {key}={word}: {reason}") from None
    return values
