"""How a run tells where it is: silently, in plain lines for a log, or live on a terminal."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Protocol

from memharness.ledger import PHASES

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live as RichLive


class Progress(Protocol):
    """What the runner tells, as it happens. Called from the runner's own thread."""

    def start(self, total_questions: int | None, total_contexts: int) -> None:
        """The run's size, None while unknown. May be told again when more is known."""

    def phase(self, name: str, delta: int) -> None:
        """`delta` more units of a phase are finished: items observed, questions recalled, read, answered or judged."""

    def question(self, outcome: str) -> None:
        """One more question has its outcome."""

    def tokens(self, phase: str, n: int) -> None:
        """`n` more tokens were used in a phase."""

    def note(self, text: str) -> None:
        """Something the user should read."""

    def close(self) -> None:
        """The run is over, or was interrupted."""


class Quiet:
    """Says nothing: for worker processes and for programs that call the runner."""

    def start(self, total_questions: int | None, total_contexts: int) -> None:
        """Nothing."""

    def phase(self, name: str, delta: int) -> None:
        """Nothing."""

    def question(self, outcome: str) -> None:
        """Nothing."""

    def tokens(self, phase: str, n: int) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


class Tally:
    """What was told so far, and the rates and the time left that follow from it. Base of the ones that show it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start counting; `clock` gives seconds."""
        self.clock = clock
        self.begun = clock()
        self.total: int | None = None
        self.contexts = 0
        self.done = 0
        self.outcomes: dict[str, int] = {}
        self.units: dict[str, int] = {}
        self.spent: dict[str, int] = {}

    def start(self, total_questions: int | None, total_contexts: int) -> None:
        """Keep the run's size."""
        self.total, self.contexts = total_questions, total_contexts
        self.changed()

    def phase(self, name: str, delta: int) -> None:
        """Count units of a phase."""
        self.units[name] = self.units.get(name, 0) + delta
        self.changed()

    def question(self, outcome: str) -> None:
        """Count an outcome."""
        self.done += 1
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        self.changed()

    def tokens(self, phase: str, n: int) -> None:
        """Count tokens of a phase."""
        self.spent[phase] = self.spent.get(phase, 0) + n
        self.changed()

    def changed(self) -> None:
        """Called after each count; shows it, if it is time."""

    def rate(self, count: int) -> float:
        """Units a second since the start."""
        return count / max(self.clock() - self.begun, 1e-9)

    def left(self) -> float | None:
        """Seconds until the last question, None while that cannot be told."""
        if not self.done or self.total is None:
            return None
        return max(self.total - self.done, 0) / self.rate(self.done)

    def phases(self) -> list[str]:
        """Phases with something to tell, in the order of the data flow."""
        return [name for name in PHASES if self.units.get(name) or self.spent.get(name)]

    def failures(self) -> str:
        """Counts of outcomes other than `ok`, or nothing."""
        return " · ".join(f"{name} {n:,}" for name, n in sorted(self.outcomes.items()) if name != "ok")


class Plain(Tally):
    """Plain lines for a log: at most one every few seconds, and one at the end."""

    def __init__(
        self, stream: IO[str] | None = None, every: float = 5.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Write to `stream` (default stderr) at most once in `every` seconds."""
        super().__init__(clock)
        self.stream = stream or sys.stderr
        self.every = every
        self._said = self.begun
        self._counted = 0

    def changed(self) -> None:
        """Write a line if the last one is old enough."""
        if self.clock() - self._said >= self.every:
            self._say()

    def note(self, text: str) -> None:
        """Write it now."""
        print(f"note: {text}", file=self.stream, flush=True)

    def close(self) -> None:
        """Write where the run ended, unless that was the last line."""
        if self.done != self._counted:
            self._say()

    def _say(self) -> None:
        self._said, self._counted = self.clock(), self.done
        print(self.line(), file=self.stream, flush=True)

    def line(self) -> str:
        """`312/1,540 questions · 12.3/s · 1:40 left · observe 1,204 (401k tokens) · …`."""
        total = f"/{self.total:,}" if self.total is not None else ""
        words = [f"{self.done:,}{total} questions", f"{self.rate(self.done):.3g}/s"]
        left = self.left()
        if left:
            words.append(f"{duration(left)} left")
        for name in self.phases():
            units, spent = self.units.get(name), self.spent.get(name)
            counted = [f"{units:,}"] if units else []
            counted += [f"{short(spent)} tokens"] if spent else []
            words.append(f"{name} {', '.join(counted)}")
        if failures := self.failures():
            words.append(failures)
        return " · ".join(words)


class Live(Tally):
    """A table on a terminal that redraws itself: a bar over questions, then count, rate and tokens of each phase."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        """Draw on `stream` (default stderr) until closed."""
        super().__init__()
        from rich.console import Console
        from rich.live import Live as RichLive

        self.console = Console(file=stream or sys.stderr)
        self._live: RichLive | None = RichLive(
            get_renderable=self.picture, console=self.console, refresh_per_second=4, transient=True
        )
        self._live.start()

    def note(self, text: str) -> None:
        """Print it above the table, where it stays."""
        self.console.print(f"note: {text}", style="yellow", highlight=False, markup=False)

    def close(self) -> None:
        """Take the table away."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def picture(self) -> RenderableType:
        """The table as it stands."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        total = f"{self.total:,}" if self.total is not None else "?"
        left = self.left()
        top = Table.grid(padding=(0, 2, 0, 0))
        top.add_row(
            ProgressBar(total=self.total or None, completed=self.done, width=30),
            f"[bold]{self.done:,}[/]/{total} questions of {self.contexts:,} context{'' if self.contexts == 1 else 's'}",
            f"{self.rate(self.done):.3g}/s",
            f"{duration(left)} left" if left is not None else f"{duration(self.clock() - self.begun)} so far",
        )
        names = self.phases()
        if not names and not self.failures():
            return top
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
        table.add_column("phase")
        for heading in ("done", "per s", "tokens", "tokens/s"):
            table.add_column(heading, justify="right")
        for name in names:
            units, spent = self.units.get(name, 0), self.spent.get(name, 0)
            table.add_row(
                name,
                f"{units:,}" if units else "",
                f"{self.rate(units):.3g}" if units else "",
                f"{spent:,}",
                f"{self.rate(spent):,.0f}" if spent else "",
            )
        failures = self.failures()
        return Group(top, table, f"[yellow]{failures}[/]") if failures else Group(top, table)


def progress_for(stream: IO[str] | None = None) -> Progress:
    """Live on a terminal, plain lines elsewhere. `stream` is stderr by default: stdout belongs to results."""
    stream = stream or sys.stderr
    drawable = stream.isatty() and os.environ.get("TERM") != "dumb"
    return Live(stream) if drawable else Plain(stream)


def duration(seconds: float) -> str:
    """`0:07`, `12:40`, `3:05:09`."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def short(n: int) -> str:
    """A count in at most four characters or so: `950`, `12k`, `3.4M`."""
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if n >= size:
            value = n / size
            return f"{value:.1f}{unit}" if value < 9.95 else f"{value:.0f}{unit}"
    return str(n)
