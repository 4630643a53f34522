"""The items of contexts, in order of time, from the benchmark's data if these are still what a run read."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memharness.benchmark import Benchmark
from memharness.identity import digest
from memharness.media import MediaStore
from memharness.report.viewer.shards import Shards
from memharness.run.data import open_benchmark
from memharness.run.play import play
from memharness.run.spec import RunSpec
from memharness.run.wire import part_out
from memharness.types import Item, UserError


@dataclass(frozen=True)
class Memory:
    """One context.

    Attributes:
        first: number of its first item among all that were written.
        numbers: number of each item by id.
        items: by id; None where the data are not at hand, and then only the ids that records hold have a number.
    """

    first: int
    numbers: Mapping[str, int]
    items: Mapping[str, Item] | None


class Source:
    """The benchmark that a run asked, bound to its data again.

    Attributes:
        key: what makes the items of two runs the same.
        why: why there are no items; empty if there are.
        media: knows the pictures of the data.
        benchmark: None if it cannot be opened.
    """

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        """Open a run's benchmark, and see whether its data are those of the run."""
        told = manifest["described"]["memory"]
        self.key = digest([told["benchmark"], told["benchmark_version"], told["options"], told["data"], told["subset"]])
        self.media = MediaStore()
        self.benchmark: Benchmark | None = None
        self.why = ""
        try:
            spec = RunSpec.from_json(manifest["spec"], "manifest.json")
            self.benchmark = open_benchmark(spec.bench, spec.data, dict(spec.bench_options), self.media)
            self.benchmark.contexts(spec.subset)
            if digest(self.benchmark.digest()) != told["data"]:
                self.why = "the benchmark's data are not those that the run read"
        except UserError as error:
            self.why = f"the benchmark's data are not at hand ({error})"
        except Exception as error:  # a plug-in of any make: the run can be looked at without it
            self.why = f"the benchmark cannot be opened again ({type(error).__name__})"

    def items(self, context: str) -> tuple[Sequence[Item] | None, str]:
        """A context's items in the order of experience; None, and why, if they cannot be had again."""
        if self.why or self.benchmark is None:
            return None, self.why
        try:
            episode = self.benchmark.episode(context)
            if episode.live:
                return None, "a live episode's items came from its answers and are not kept"
            return asyncio.run(play(episode, lambda case, items: None)).items, ""
        except Exception as error:  # as above
            return None, f"the context's items cannot be read again ({type(error).__name__}: {error})"


class Memories:
    """All items that were written, numbered through; a context that two runs share is written once."""

    def __init__(self, shards: Shards) -> None:
        """Write into `shards`."""
        self._shards = shards
        self._first: dict[tuple[str, str], int] = {}

    def context(self, source: Source, name: str, ids: Iterable[str]) -> tuple[Memory, str]:
        """One context, and why its items are missing, if they are.

        Args:
            source: where its items come from.
            name: of the context.
            ids: items that records name, the only ones known without the data.
        """
        items, why = source.items(name)
        ordered = [Item(one, name, at, ()) for at, one in enumerate(ids)] if items is None else in_time(items)
        # Without the data each run knows other ids, so these are not shared.
        key = (f"{source.key}{'' if items is not None else id(source)}", name)
        if key not in self._first:
            self._first[key] = self._shards.count
            for item in ordered:
                self._shards.add(item_out(item) if items is not None else {"id": item.id})
        first = self._first[key]
        numbers = {item.id: first + at for at, item in enumerate(ordered)}
        return Memory(first, numbers, None if items is None else {item.id: item for item in ordered}), why


def in_time(items: Sequence[Item]) -> list[Item]:
    """Items by time where every one has its time, else as they were experienced."""
    ordered = sorted(items, key=lambda item: item.order)
    return sorted(ordered, key=lambda item: item.time or "") if all(item.time for item in items) else ordered


def item_out(item: Item) -> dict[str, Any]:
    """An item as a page takes it; what is empty is left out."""
    line: dict[str, Any] = {"id": item.id, "parts": [part_out(part) for part in item.parts]}
    more = {
        "label": item.label,
        "time": item.time,
        "speaker": item.speaker,
        "place": item.place.name if item.place else "",
        "session": item.session,
        "kind": item.kind,
        "derived": [[d.kind, d.text, d.part] for d in item.derived],
    }
    return line | {name: value for name, value in more.items() if value}


class Uses:
    """How often a run recalled each item, and for how many questions it was gold."""

    def __init__(self) -> None:
        """Nothing was used yet."""
        self.recalled: array[int] = array("I")
        self.gold: array[int] = array("I")

    def count(self, numbers: Iterable[int], *, gold: bool) -> None:
        """Count one question's items."""
        column = self.gold if gold else self.recalled
        for number in set(numbers):
            if number >= len(column):
                column.extend([0] * (number + 1 - len(column)))
            column[number] += 1

    def rows(self, start: int, end: int) -> list[list[int]]:
        """Both counts of the items `start` … `end` - 1."""
        held = (self.recalled[start:end], self.gold[start:end])
        return [[*column, *[0] * (end - start - len(column))] for column in held]
