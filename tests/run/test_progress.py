"""Progress: counts, rates and the time left, in plain lines or drawn on a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from memharness.run.progress import Live, Plain, Quiet, Tally, duration, progress_for, short


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        """Stand at zero."""
        self.now = 0.0

    def __call__(self) -> float:
        """The time in seconds."""
        return self.now


def test_rate_and_time_left() -> None:
    clock = Clock()
    tally = Tally(clock)
    assert tally.left() is None
    tally.start(100, 2)
    assert tally.left() is None
    clock.now = 10.0
    for _ in range(20):
        tally.question("ok")
    assert tally.rate(tally.done) == 2.0
    assert tally.left() == 40.0
    tally.start(None, 2)
    assert tally.left() is None


def test_phases_come_in_the_order_of_the_data_flow() -> None:
    tally = Tally()
    tally.tokens("read", 5)
    tally.phase("observe", 3)
    assert tally.phases() == ["observe", "read"]


def test_plain_lines_are_few_and_the_last_one_is_there() -> None:
    clock, stream = Clock(), io.StringIO()
    plain = Plain(stream, every=5.0, clock=clock)
    plain.start(1540, 12)
    for second in range(1, 13):
        clock.now = float(second)
        plain.phase("observe", 10)
        plain.tokens("read", 1_000)
        plain.question("ok" if second % 4 else "over_window")
    plain.close()
    plain.close()
    lines = stream.getvalue().splitlines()
    assert len(lines) == 3
    assert lines[-1] == "12/1,540 questions · 1/s · 25:28 left · observe 120 · read 12k tokens · over_window 3"


def test_plain_says_nothing_when_nothing_happened() -> None:
    stream = io.StringIO()
    Plain(stream).close()
    assert stream.getvalue() == ""


def test_plain_without_a_known_total() -> None:
    clock, stream = Clock(), io.StringIO()
    plain = Plain(stream, clock=clock)
    plain.start(None, 3)
    clock.now = 2.0
    plain.question("ok")
    plain.note("a note")
    plain.close()
    assert stream.getvalue() == "note: a note\n1 questions · 0.5/s\n"


def test_live_draws_what_was_told() -> None:
    live = Live(io.StringIO())
    try:
        live.start(40, 3)
        for outcome in ("ok", "ok", "timeout"):
            live.phase("read", 1)
            live.tokens("read", 1234)
            live.question(outcome)
        live.note("as [bold]it[/bold] is")
        console = Console(file=io.StringIO(), width=100, record=True)
        console.print(live.picture())
        text = console.export_text()
    finally:
        live.close()
        live.close()
    assert "3/40 questions of 3 contexts" in text
    assert "3,702" in text
    assert "timeout 1" in text
    assert "left" in text


def test_live_before_anything_is_known() -> None:
    live = Live(io.StringIO())
    try:
        console = Console(file=io.StringIO(), width=100, record=True)
        console.print(live.picture())
        assert "0/? questions" in console.export_text()
    finally:
        live.close()


def test_quiet_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    quiet = Quiet()
    quiet.start(1, 1)
    quiet.phase("read", 1)
    quiet.question("ok")
    quiet.tokens("read", 1)
    quiet.note("x")
    quiet.close()
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """It is."""
        return True


def test_a_terminal_gets_the_live_table_and_a_log_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(progress_for(io.StringIO()), Plain)
    monkeypatch.setenv("TERM", "xterm")
    live = progress_for(Screen())
    live.close()
    assert isinstance(live, Live)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(progress_for(Screen()), Plain)


@pytest.mark.parametrize(("seconds", "words"), [(7.2, "0:07"), (59.9, "1:00"), (760, "12:40"), (11109, "3:05:09")])
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("n", "words"),
    [(0, "0"), (999, "999"), (1000, "1.0k"), (9_940, "9.9k"), (9_960, "10k"), (3_400_000, "3.4M"), (2 * 10**9, "2.0G")],
)
def test_counts_in_short(n: int, words: str) -> None:
    assert short(n) == words
