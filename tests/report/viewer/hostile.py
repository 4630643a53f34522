"""A benchmark, a method, a reader and a metric that put a script into every field that a run may keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memharness.benchmark import Benchmark, Episode, Recorded
from memharness.media import MediaStore
from memharness.method import Budget, Kit, Memory, Method, MethodCard
from memharness.metric import Judged, Metric
from memharness.reader import Message, Reader, ReaderCard, Reply, Request
from memharness.types import (
    Asked,
    Case,
    Choice,
    Derived,
    Evidence,
    Gold,
    Image,
    Item,
    Place,
    Question,
    Readout,
    Score,
    Text,
    Usage,
)
from tests.run.toys import Counter4, NoOptions, card

CODE = "window.pwned=1"
EVIL = (
    f"</script><script>{CODE}</script><img src=x onerror={CODE}><svg onload={CODE}>\"'`${{{CODE}}}{{{{7*7}}}}"
    f"\u2028\u2029\u202e\0 javascript:{CODE}//<!--<script>]]>&lt;script&gt;"
)


HALF = "\ud800"  # of a surrogate pair: no UTF-8, and no address


def evil(name: str) -> str:
    """The script, told apart by a name that is short enough to be seen where texts are cut."""
    return f"{name}{EVIL}"


class Hostile(Benchmark):
    """Two contexts, three questions each: right, wrong and failing."""

    card = card(evil("bench"), primary=evil("right"))
    options_class = NoOptions
    sample = "."

    def contexts(self, subset: str | None = None) -> Sequence[str]:
        """By name."""
        return [evil("c0"), evil("c1")]

    def episode(self, context: str) -> Episode:
        """Recorded."""
        items = [self._item(context, at) for at in range(4)]
        return Recorded(context, items, [self._case(context, at) for at in range(3)])

    def _item(self, context: str, at: int) -> Item:
        parts = (Text(evil("said") + HALF), Image(None, evil("mime"), 1, 1, evil("source")))
        derived = tuple(Derived(evil(kind), evil("derived"), 1) for kind in ("caption", "ocr"))
        return Item(
            evil(f"i{at}"), context, at, parts, derived, evil("time"), evil("speaker"), Place(evil("place")),
            evil("session"), evil("kind"), evil("label"), {evil("key"): evil("value")},
        )  # fmt: skip

    def _case(self, context: str, at: int) -> Case:
        choices = tuple(Choice(evil(key), (Text(evil("option")),)) for key in "AB")
        question = Question(
            evil(f"q{context[:2]}{at}") + HALF, context, (Text(evil("asked")), Image(None, source=evil("picture"))),
            choices, evil("instruction"), (Derived(evil("caption"), evil("about"), 1),), evil("time"),
        )  # fmt: skip
        gold = Gold(
            (evil("gold") if at == 0 else evil("other"),), (Evidence(evil("i0")), Evidence(evil("gone"))),
            evil("category"), evil("group"), evil("cluster"), evil("native"), False, {evil("extra"): evil("given")},
        )  # fmt: skip
        return Case(question, gold)

    def metrics(self) -> Sequence[Metric]:
        """One of questions, one of groups, one of a judge."""
        return [Same(), Together(), Said()]

    def digest(self) -> str:
        """No files."""
        return "hostile"


@dataclass(frozen=True)
class Same(Metric):
    """Whether the answer is the gold one."""

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """One score and a note."""
        right = float((unit[0].record.answer or "").endswith(unit[0].gold.answers[0]))
        return {evil("right"): Score(right, note=evil("note")), "__proto__": Score(1.0)}


@dataclass(frozen=True)
class Together(Metric):
    """A score of a group."""

    unit = "group"

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Always 1."""
        return {evil("together"): Score(1.0, note=evil("note"))}


@dataclass(frozen=True)
class Said(Judged):
    """What a judge says does not matter; its words are kept."""

    rubric = evil("rubric")

    def ask(self, unit: Sequence[Asked]) -> Request:
        """Anything."""
        return Request((Message("user", (Text("judge"),)),))

    def read(self, unit: Sequence[Asked], reply: Reply) -> Mapping[str, Score]:
        """Always 1."""
        return {evil("judged"): Score(1.0, note=evil("verdict"))}


class Wicked(Method[NoOptions]):
    """Recalls two items, with a forest in its trace; fails at the third question of a context."""

    card = MethodCard(evil("method"), evil("title"), "", 1, "evidence")
    config_class = NoOptions

    def features(self) -> Mapping[str, Any]:
        """Named badly."""
        return {evil("feature"): True}

    def open(self, context: str, kit: Kit) -> Memory:
        """A fresh memory."""
        return WickedMemory()


class WickedMemory(Memory):
    """Keeps nothing."""

    async def observe(self, items: Sequence[Item]) -> None:
        """Look away."""

    async def recall(self, question: Question, budget: Budget) -> Readout:
        """Two items."""
        if question.id.startswith(("qc02", "qc12")):
            raise RuntimeError(evil("failure"))
        ids = [evil("i0"), evil("i1")]
        shape = {"items": ids, "edges": [[*ids, 0.5]], "climb": [0.1, 0.2], "objective": 0.2}
        trace = {"forest": shape, evil("trace"): [evil("value")], "__proto__": {"polluted": evil("proto")}}
        return Readout(tuple(Evidence(one, score=0.5) for one in ids), trace=trace)


class Liar(Reader):
    """Says the gold answer of first questions, after some thinking."""

    config_class = NoOptions

    def __init__(self, model: str, config: Any, media: MediaStore) -> None:
        """Nothing to load."""
        super().__init__(model, config, media)
        self.card = ReaderCard(evil("reader"), model, evil("1"), "python", window=1_000_000, max_inflight=4)
        self.counter = Counter4()

    async def generate(self, request: Request) -> Reply:
        """Always the same."""
        return Reply(f"<think>{evil('thought')}</think>{evil('gold')}", Usage(text=1, output=1))
