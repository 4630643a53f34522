"""The floors and ceilings: no evidence, all of it, the gold evidence, and one fixed answer to everything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from memharness.config import Config, option
from memharness.method import Budget, Kit, Memory, Method, MethodCard
from memharness.methods.controls.store import Store
from memharness.types import Answer, Evidence, Gold, Item, Question, Readout


class Forgets(Memory):
    """A memory that keeps nothing; `stored` stays None, since holding nothing is no failure here."""

    async def observe(self, items: Sequence[Item]) -> None:
        """Forget."""


class NullMemory(Forgets):
    """Recalls nothing."""

    async def recall(self, question: Question, budget: Budget) -> Readout:
        """An empty readout."""
        return Readout(available=0)


class Null(Method[Config]):
    """No memory: what the reader knows, or guesses, by itself."""

    card: ClassVar[MethodCard] = MethodCard(
        name="null",
        title="No evidence",
        paper="",
        version=1,
        track="evidence",
        control=True,
        notes="The floor of every evidence method: what the reader answers without memory.",
    )
    config_class: ClassVar[type[Config]] = Config

    def open(self, context: str, kit: Kit) -> Memory:
        """A memory that recalls nothing."""
        return NullMemory()


class OracleMemory(Store):
    """Recalls the gold evidence."""

    async def recall_with_gold(self, question: Question, gold: Gold, budget: Budget) -> Readout:
        """The gold evidence in the data's order, each pointer once, as far as the budget goes."""
        return self.readout(tuple(dict.fromkeys(gold.evidence)), question, budget)


class Oracle(Method[Config]):
    """The gold evidence itself: the ceiling of every evidence method under the same budget and reader."""

    card: ClassVar[MethodCard] = MethodCard(
        name="oracle",
        title="Gold evidence",
        paper="",
        version=1,
        track="evidence",
        control=True,
        notes="Sees gold. Its recall is below 1 only where a question has more gold items than the budget holds.",
    )
    config_class: ClassVar[type[Config]] = Config

    def open(self, context: str, kit: Kit) -> Memory:
        """A memory that recalls by gold."""
        return OracleMemory()


class FullContextConfig(Config):
    """Options of `full-context`."""

    keep: Literal["all", "newest", "oldest"] = option(
        "all",
        "What to show of a context that exceeds the budget: `all` of it (the outcome is then over_budget), or the "
        "`newest` or `oldest` items that fit.",
    )


class FullContextMemory(Store):
    """Recalls everything."""

    def __init__(self, config: FullContextConfig) -> None:
        """Keep what `config` says of a context over the budget."""
        super().__init__()
        self._keep = config.keep
        self._all: tuple[Evidence, ...] = ()

    async def ready(self) -> None:
        """Put the items in order, once for all questions."""
        self._all = tuple(Evidence(item.id) for item in sorted(self.items, key=lambda item: item.order))

    async def recall(self, question: Question, budget: Budget) -> Readout:
        """Every item in order, or the run of newest or oldest ones that fits."""
        if self._keep == "oldest":
            return self.readout(self._all, question, budget)
        kept = self._all if self._keep == "all" else _newest(self._all, question, budget)
        return Readout(kept, available=len(self.items))


def _newest(ordered: tuple[Evidence, ...], question: Question, budget: Budget) -> tuple[Evidence, ...]:
    kept = budget.fit(ordered[::-1], question)[::-1]
    # The same items cost a few tokens more or less in the other order (tokenizers merge over seams), so make sure.
    while budget.fit(kept, question) != kept:
        kept = kept[1:]
    return kept


class FullContext(Method[FullContextConfig]):
    """The whole context in the prompt: what a long window does without a memory method."""

    card: ClassVar[MethodCard] = MethodCard(
        name="full-context",
        title="Whole context",
        paper="",
        version=1,
        track="evidence",
        control=True,
        notes="By default shows everything, so that a context over the budget is a recorded outcome, not a cut.",
    )
    config_class: ClassVar[type[Config]] = FullContextConfig

    def open(self, context: str, kit: Kit) -> Memory:
        """A memory that recalls everything."""
        return FullContextMemory(self.config)


class ConstantConfig(Config):
    """Options of `constant`."""

    text: str = option("Not mentioned.", "The answer given to every question.")


class ConstantMemory(Forgets):
    """Answers without looking."""

    def __init__(self, config: ConstantConfig) -> None:
        """Answer with the text of `config`."""
        self._answer = Answer(config.text)

    async def answer(self, question: Question, budget: Budget) -> Answer:
        """The fixed text."""
        return self._answer


class Constant(Method[ConstantConfig]):
    """One fixed answer to every question: what a metric pays for no knowledge at all."""

    card: ClassVar[MethodCard] = MethodCard(
        name="constant",
        title="Fixed answer",
        paper="",
        version=1,
        track="answer",
        control=True,
        notes="Calls no reader. Refusals such as `Not mentioned.` collect every unanswerable question.",
    )
    config_class: ClassVar[type[Config]] = ConstantConfig

    def open(self, context: str, kit: Kit) -> Memory:
        """A memory that answers with the fixed text."""
        return ConstantMemory(self.config)
