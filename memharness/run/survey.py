"""What a benchmark's data hold, counted by walking its episodes, beside what its own check finds."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from memharness.benchmark import Benchmark
from memharness.registry import plugin
from memharness.run.play import Played, play
from memharness.types import Case, DataError, Finding, Image, Part, UserError, Video

T = TypeVar("T")
LIVE = 20  # live episodes that are played unless all are asked for: an engine may take seconds for each
NAMED = 3  # examples in a finding
COMPARED = ("contexts", "items", "questions")  # with the card; what else a card counts is its benchmark's to compare


@dataclass(frozen=True)
class Survey:
    """Counts by name, and findings, the benchmark's own first."""

    counts: Mapping[str, int]
    findings: Sequence[Finding]


def survey(benchmark: Benchmark, subset: str | None = None, *, every: bool = False) -> Survey:
    """Count contexts, items, questions, pictures and videos; find evidence and ids that do not hold.

    Args:
        benchmark: bound to its data.
        subset: the part of the data to walk.
        every: play every live episode.

    Raises:
        UserError: for an unknown subset. A fault of the data is a finding.
    """
    with plugin(f"benchmark {benchmark.card.name}"):
        # The subset is read first, so that the benchmark's own check is of it.
        contexts, unread = _tried(benchmark, lambda: benchmark.contexts(subset))
        own, unchecked = _tried(benchmark, benchmark.check)
        if any(finding.level == "error" for finding in own):
            return Survey({}, own)
        if faults := unchecked or unread:
            return Survey({}, [*own, *faults])
        return asyncio.run(_walk(benchmark, contexts, every, own, whole=subset is None))


def _tried(benchmark: Benchmark, read: Callable[[], Iterable[T]]) -> tuple[list[T], list[Finding]]:
    """What is read, or the fault of the data that prevents it."""
    try:
        return list(read()), []
    except DataError as error:
        return [], [Finding("error", str(benchmark.data.path), str(error))]


@dataclass
class _Walk:
    """What was met so far."""

    items: int = 0
    questions: int = 0
    without: int = 0
    media: dict[tuple[str, str, str], bool] = field(default_factory=dict)  # missing or not, by kind, name and content
    dangling: list[str] = field(default_factory=list)
    same_item: list[str] = field(default_factory=list)
    ids: Counter[str] = field(default_factory=Counter)
    native: Counter[str] = field(default_factory=Counter)

    def take(self, context: str, played: Played) -> None:
        """Count one episode."""
        self.items += len(played.items)
        self.questions += len(played.cases)
        ids = Counter(item.id for item in played.items)
        self.same_item += [f"{name} in {context}" for name, n in ids.items() if n > 1]
        for case, _ in played.cases:
            self.ids[case.question.id] += 1
            self.native[case.gold.native_id] += bool(case.gold.native_id)
            self.without += not case.gold.evidence
            self.dangling += [f"{e.item} of {_name(case)}" for e in case.gold.evidence if e.item not in ids]
        self._media("", (part for item in played.items for part in item.parts))
        for case, _ in played.cases:
            asked = case.question
            self._media("question ", (*asked.parts, *(part for choice in asked.choices for part in choice.parts)))

    def _media(self, of: str, parts: Iterable[Part]) -> None:
        for part in parts:
            if isinstance(part, Image | Video):
                kind = f"{of}{'pictures' if isinstance(part, Image) else 'videos'}"
                self.media[kind, part.source, part.sha256 or ""] = part.missing  # publishers reuse names

    def counts(self, contexts: int) -> Mapping[str, int]:
        """All of it by name; a picture or video that is shown twice counts once."""
        return {
            "contexts": contexts,
            "items": self.items,
            "questions": self.questions,
            "questions without gold evidence": self.without,
            **Counter(kind for kind, _, _ in self.media),
            "missing media": sum(self.media.values()),
            "dangling evidence": len(self.dangling),
            "duplicate ids": len(self.same_item) + len(_twice(self.ids)) + len(_twice(self.native)),
        }

    def findings(self, where: str) -> Iterable[Finding]:
        """What does not hold."""
        if twice := _twice(self.ids):
            yield Finding("error", where, _few(twice, "question ids come twice: a run could not tell them apart"))
        if self.same_item:
            yield Finding("error", where, _few(self.same_item, "item ids come twice in their context"))
        if twice := _twice(self.native):
            yield Finding("warning", where, _few(twice, "native ids come twice: predictions by them are ambiguous"))
        if self.dangling:
            yield Finding("warning", where, _few(self.dangling, "pieces of gold evidence name no item"))
        if lost := [name for (_, name, _), missing in self.media.items() if missing]:
            yield Finding("info", where, _few(lost, "pictures or videos are not at hand"))


async def _walk(
    benchmark: Benchmark, contexts: Sequence[str], every: bool, own: Sequence[Finding], *, whole: bool
) -> Survey:
    walk = _Walk()
    where = str(benchmark.data.path)
    live = 0
    try:
        for context in contexts:
            episode = benchmark.episode(context)
            live += episode.live
            if every or not episode.live or live <= LIVE:
                walk.take(context, await play(episode, lambda case, items: benchmark.gold_answer(case)))
    except UserError as error:
        return Survey(walk.counts(len(contexts)), [*own, Finding("error", where, str(error))])
    found = [*own, *walk.findings(where)]
    if live > LIVE and not every:
        found.append(Finding("info", where, f"{LIVE} of {live} live episodes were played; --all plays every one"))
    counts = walk.counts(len(contexts))
    return Survey(counts, [*found, *(_beside_card(benchmark, counts) if whole else ())])


def _beside_card(benchmark: Benchmark, counts: Mapping[str, int]) -> Iterable[Finding]:
    """Counts that differ from the card's, where the whole release should lie here."""
    if benchmark.data.state != "prepared":
        return
    for name in COMPARED:
        published = benchmark.card.counts.get(name, counts[name])
        if counts[name] != published:
            message = f"{counts[name]:,} {name} where the card counts {published:,}"
            yield Finding("warning", str(benchmark.data.path), message)


def _name(case: Case) -> str:
    return case.gold.native_id or case.question.id


def _twice(ids: Counter[str]) -> list[str]:
    return [name for name, n in ids.items() if n > 1]


def _few(names: Sequence[str], what: str) -> str:
    return f"{len(names):,} {what}, such as {', '.join(names[:NAMED])}"
