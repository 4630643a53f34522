"""What the regression gate found, for a person: which run, which score, by how much, which questions."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from memharness.run.regress import NEW, TAKEN_IN, Changed, Figure, Report, Verdict

if TYPE_CHECKING:
    from rich.console import Console

RUNS = 10  # shown in full; of the rest, the first line
QUESTIONS = 3
WORDS = 66  # characters of an answer: with its heading it fits 80 columns
LONG = 150  # of a reason, which says what to do


def show_check(console: Console, report: Report, only: Sequence[str] = ()) -> None:
    """Print a check: every run that does not hold, then the verdict in one line and what to do."""
    broken = [verdict for verdict in report.verdicts if not verdict.held and verdict.problem != NEW]
    for place, verdict in enumerate(broken):
        for line in lines(verdict) if place < RUNS else [heading(verdict)]:
            _print(console, line, "" if line.startswith(" ") else "bold red")
        if place < RUNS:
            console.print()
    for line in _new(report.verdicts):
        _print(console, line, "bold red")
    for verdict in report.verdicts:
        for note in verdict.notes if verdict.held else ():
            _print(console, f"note: {verdict.title}: {note}", "yellow")
    n = sum(verdict.n for verdict in report.verdicts)
    size = f"{len(report.verdicts):,} runs, {n:,} questions"
    if report.held:
        _print(console, f"{report.path}: {size}: all hold", "bold green")
        return
    _print(console, f"{report.path}: {size}: {_tally(report.verdicts)}", "bold red")
    words = ["memharness", "regress", "--baseline", str(report.path)]
    words += [word for name in only for word in ("--only", name)]
    _print(console, f"if this was meant: {shlex.join(words)} --update --reason '…'", "")


def show_update(console: Console, report: Report, written: bool) -> None:
    """Print what an update changed."""
    for verdict in report.verdicts:
        if not verdict.held and verdict.problem != TAKEN_IN:
            for line in lines(verdict):
                _print(console, line, "" if line.startswith(" ") else "bold")
    for method in dict.fromkeys(method for method, _ in report.left_out):
        whys = [why for (other, _), why in report.left_out.items() if other == method]
        _print(console, f"left out: {method} on {len(whys)} benchmarks: {_words(whys[0], LONG)}", "yellow")
    taken = sum(verdict.problem == TAKEN_IN for verdict in report.verdicts)
    changed = sum(not verdict.held for verdict in report.verdicts) - taken
    if written:
        _print(console, f"wrote {report.path}: {taken:,} runs taken in, {changed:,} changed", "bold green")
    else:
        _print(console, f"{report.path}: nothing differs; not written", "bold green")


def heading(verdict: Verdict) -> str:
    """`graphmemix on locomo: slipped, 3 of 6 questions differ`."""
    if verdict.problem:
        return f"{verdict.title}: {verdict.problem}"
    words = ["slipped"] if verdict.slipped else []
    if verdict.changed:
        words.append(f"{len(verdict.changed)} of {verdict.n} questions differ")
    return f"{verdict.title}: {', '.join(words) or 'differs'}"


def lines(verdict: Verdict) -> Iterator[str]:
    """A run that does not hold, line by line: its scores, notes that may explain it, its worst questions."""
    yield heading(verdict)
    width = max((len(figure.name) for figure in verdict.figures), default=0)
    for figure in verdict.figures:
        yield f"  {figure.name:{width}}  {_moved(figure, verdict)}"
    if not verdict.figures and verdict.changed:
        yield "  no mean moved: answers, outcomes or tokens of single questions did"
    for note in verdict.notes:
        yield f"  note: {note}"
    for one in verdict.changed[:QUESTIONS]:
        yield from _question(one)
    if left := len(verdict.changed) - QUESTIONS:
        yield from [f"  and {left:,} more (--json lists them)"] if left > 0 else []


def _moved(figure: Figure, verdict: Verdict) -> str:
    words = f"{_number(figure.before)} → {_number(figure.after)}  ({figure.change:+.3f})"
    if verdict.kind == "sampled":
        bound = "none" if figure.lower is None else f"{figure.lower:+.3f}"
        return f"{words}, lower bound {bound}, δ {verdict.delta:g}"
    if figure.primary:
        return f"{words}  {'slipped' if figure.change < 0 else 'improved'}"
    return f"{words}  {'lower' if figure.change < 0 else 'higher'}"


def _question(one: Changed) -> Iterator[str]:
    yield f"  {one.name}"
    moved = [f"{name} {_said(old)} → {_said(new)}" for name, (old, new) in one.what.items() if name != "answer"]
    for row in _rows(moved):
        yield f"    {row}"
    if "answer" in one.what:
        yield f"    before: {_words(one.before.answer)}"
        yield f"    after:  {_words(one.after.answer)}"
    elif one.before.answer is not None:
        yield f"    answer: {_words(one.before.answer)}"


def _rows(words: Iterable[str], width: int = 74) -> Iterator[str]:
    """Words joined by dots, in lines that are no wider than a screen."""
    row = ""
    for word in words:
        if row and len(row) + 3 + len(word) > width:
            yield row
            row = ""
        row = f"{row} · {word}" if row else word
    if row:
        yield row


def _new(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """What is registered and not in the baseline, by method."""
    found: dict[str, list[str]] = {}
    for verdict in verdicts:
        if verdict.problem == NEW:
            method, _, bench = verdict.title.partition(" on ")
            found.setdefault(method, []).append(bench)
    for method, benches in found.items():
        names = ", ".join(benches[:3]) + (f" and {len(benches) - 3} more" if len(benches) > 3 else "")
        yield f"{method} on {names}: not in the baseline; --update takes it in"


def _tally(verdicts: Sequence[Verdict]) -> str:
    slipped = sum(verdict.slipped and not verdict.held for verdict in verdicts)
    new = sum(verdict.problem == NEW for verdict in verdicts)
    broken = sum(not verdict.held for verdict in verdicts)
    counts = {"slipped": slipped, "differ otherwise": broken - slipped - new, "not in it": new}
    return ", ".join(f"{n:,} {word}" for word, n in counts.items() if n)


def _said(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".")
    return f"{value:,}" if isinstance(value, int) else str(value) if value is not None else "none"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"


def _words(answer: str | None, most: int = WORDS) -> str:
    if answer is None:
        return "(none)"
    text = " ".join(answer.split())
    shown = text if len(text) <= most else text[: most - 1] + "…"
    return shown or "(empty)"


def _print(console: Console, line: str, style: str) -> None:
    from rich.text import Text

    console.print(Text(line, style=style), soft_wrap=True)
