"""Units of work: which are done, which are claimed, which are free; read from the run's folder as others write it."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memharness.run.folder import RunFolder
from memharness.store import Claims
from memharness.types import Outcome

UNIT = 256  # questions: small enough to share a long context, large enough that a claim costs nothing
SPAN = 1 << 20  # units a context may have
FINISH = SPAN << 32  # the claim on finishing the run


@dataclass(slots=True)
class Before:
    """What earlier attempts left of one context: attempts and final outcomes by question position."""

    attempts: dict[int, int] = field(default_factory=dict)
    final: set[int] = field(default_factory=set)


class Work:
    """The units of a run as this process sees them.

    A unit is up to 256 questions of a context (a whole context if it is live). It is done once its gold line is
    written, which happens after its last record; so what a kill leaves half done is taken up again.
    """

    def __init__(self, folder: RunFolder) -> None:
        """Watch a run's folder."""
        self._folder = folder
        self._claims = Claims(folder.path / "claims.lock")
        self._offsets: dict[Path, int] = {}
        self._done: set[tuple[int, int]] = set()
        self._sizes: dict[int, int] = {}
        self._before: dict[int, Before] = {}
        self._held: set[int] = set()
        self._latest = 0.0
        self._first = True

    def refresh(self) -> None:
        """Read what other workers wrote since the last look.

        At the first look, units in which an earlier run's questions failed are opened again: errors are asked anew,
        finished answers never are.
        """
        for kind in ("records", "gold"):
            for path in self._folder.files(kind):
                if path.stem != self._folder.worker:
                    self._read(kind, path)
        if self._first:
            self._first = False
            for context, before in self._before.items():
                self._done -= {(context, index // UNIT) for index in set(before.attempts) - before.final}

    def _read(self, kind: str, path: Path) -> None:
        start = self._offsets.get(path, 0)
        if path.stat().st_size <= start:
            return
        with path.open("rb") as file:
            file.seek(start)
            for line in file:
                if not line.endswith(b"\n"):
                    break  # torn by a kill, or still being written
                start += len(line)
                value = json.loads(line)
                self._gold(value) if kind == "gold" else self._record(value)
        self._offsets[path] = start

    def now(self) -> float:
        """Wall-clock seconds, later than any gold line seen: a clock set back does not make a rerun the older one."""
        self._latest = max(time.time(), self._latest + 1e-6)
        return self._latest

    def _gold(self, line: dict[str, Any]) -> None:
        self._latest = max(self._latest, line.get("at", 0.0))
        if "size" in line:
            self._sizes[line["context"]] = line["size"]
        else:
            self._done.add((line["context"], line["unit"]))

    def _record(self, line: dict[str, Any]) -> None:
        before = self._before.setdefault(line["context_index"], Before())
        index = line["index"]
        before.attempts[index] = max(before.attempts.get(index, 0), line["attempt"])
        if Outcome(line["outcome"]).final:
            before.final.add(index)

    def before(self, context: int) -> Before:
        """What earlier attempts left of a context."""
        return self._before.get(context, Before())

    def finish_unit(self, context: int, unit: int) -> None:
        """Note a unit that this process has done, and let go of it."""
        self._done.add((context, unit))
        self.give(context, unit)

    def finish_context(self, context: int, size: int) -> None:
        """Note how many questions a context turned out to have."""
        self._sizes[context] = size

    def is_done(self, context: int, unit: int) -> bool:
        """Whether a unit is done."""
        return (context, unit) in self._done

    def open_units(
        self, context: int, planned: int | None, chosen: frozenset[int] | None, live: bool
    ) -> list[int] | None:
        """Units of a context that are not done; None while their number is not known."""
        if live:
            units = {0}
        elif chosen is not None:
            units = {index // UNIT for index in chosen}
        else:
            size = self._sizes.get(context, planned)
            if size is None:
                return None
            units = set(range(-(-size // UNIT)))
        return sorted(unit for unit in units if (context, unit) not in self._done)

    def take(self, context: int, unit: int) -> bool:
        """Claim a unit; False if another process holds it or has done it meanwhile."""
        number = context * SPAN + unit
        if number in self._held:
            return True
        if not self._claims.take(number):
            return False
        self.refresh()
        if self.is_done(context, unit):
            self._claims.give(number)
            return False
        self._held.add(number)
        return True

    def give(self, context: int, unit: int) -> None:
        """Give a unit back."""
        number = context * SPAN + unit
        if number in self._held:
            self._held.discard(number)
            self._claims.give(number)

    def take_memory(self, context: int) -> bool:
        """Claim a context's memory folder."""
        return self._claims.take(context * SPAN + SPAN - 1)

    def give_memory(self, context: int) -> None:
        """Give a context's memory folder back."""
        self._claims.give(context * SPAN + SPAN - 1)

    def take_finish(self) -> bool:
        """Claim the finishing of the run."""
        return self._claims.take(FINISH)

    def give_finish(self) -> None:
        """Give the finishing of the run back."""
        self._claims.give(FINISH)

    def close(self) -> None:
        """Give everything back."""
        self._claims.close()
