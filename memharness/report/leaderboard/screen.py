"""The leaderboard on a terminal, or piped into a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from memharness.report.leaderboard.boards import Board, Entry, boards, lead
from memharness.report.leaderboard.rows import lines, tokens_used
from memharness.report.leaderboard.ties import Standing
from memharness.report.published import Figure, results
from memharness.report.tables import SAMPLE_WARNING, Summary, interval, number, put, table

if TYPE_CHECKING:
    from rich.console import Console

WORDS = ("tied", "method", "reader", "limits")  # columns of words; all others hold figures


def show_leaderboard(
    console: Console,
    summaries: Iterable[Summary],
    ties: Mapping[str, Standing] | None = None,
    *,
    published: bool = False,
) -> None:
    """Print a table a board, controls below a line; runs that share a letter cannot be told apart.

    Args:
        console: where to.
        summaries: the runs.
        ties: tie groups by run, as `standings` gives them; without them there is no column of letters.
        published: also print what papers say of each benchmark, in a table of its own.
    """
    from rich.text import Text

    made = boards(summaries)
    warned = False
    for board in made:
        if board.sample and not warned:
            warned = True
            console.print(Text(SAMPLE_WARNING, style="bold yellow"))
        _show_board(console, board, ties)
    if published:
        for bench in dict.fromkeys(board.bench for board in made):
            _show_published(console, bench, results(bench))


def _show_board(console: Console, board: Board, ties: Mapping[str, Standing] | None) -> None:
    from rich.text import Text

    cells = [_cells(entry, ties) for entry in board.entries]
    shared = [name for name in ("reader", "limits") if len({row[name] for row in cells}) == 1]
    words = [f"{name} {cells[0][name]}" for name in shared]  # what all have in common is said once
    columns = [name for name in cells[0] if name not in shared]
    console.print(Text(" · ".join([*board.title, *words]), style="bold"))
    made = table(console, *(name if name in WORDS else f">{name}" for name in columns))
    part = _part(board.entries[0])
    for entry, row in zip(board.entries, cells, strict=True):
        if _part(entry) != part:
            part = _part(entry)
            if console.is_terminal:
                made.add_section()
        made.add_row(*(row[name] for name in columns), style="dim" if entry.summary.get("control") else "")
    put(console, made)
    for entry in board.entries:
        standing = (ties or {}).get(entry.summary["run"])
        if standing and "missing" in standing.why:
            console.print(Text(f"not ranked: {entry.name}: {standing.why}", style="yellow"))


def _part(entry: Entry) -> tuple[bool, str]:
    return bool(entry.summary.get("control")), entry.limits


def _cells(entry: Entry, ties: Mapping[str, Standing] | None) -> dict[str, str]:
    summary, score = entry.summary, lead(entry.summary)
    questions = summary.get("n") or 0
    letters = {} if ties is None else {"tied": ties[summary["run"]].group or "–"}
    return letters | {
        "method": entry.name,
        "reader": summary["reader"],
        "limits": entry.limits,
        "value": number(score.get("value")),
        "95 % interval": interval(score),
        "n": f"{score.get('n', questions):,}",
        "valid": f"{score['n_valid']:,}" if "n_valid" in score else "–",
        "tokens/q": f"{tokens_used(summary) / questions:,.0f}" if questions else "–",
    }


def _show_published(console: Console, bench: str, figures: Iterable[Figure]) -> None:
    from rich.text import Text

    said = lines(figures)
    if not said:
        console.print(Text(f"{bench}: the papers print no figure of it", style="dim"))
        return
    console.print(Text(f"{bench} · published, not measured here and never ranked with runs", style="bold"))
    metrics = list(dict.fromkeys(figure.metric for line in said for figure in line))
    made = table(console, "method", "reader", "subset", *(f">{metric}" for metric in metrics), "source")
    for line in said:
        values = {figure.metric: f"{figure.value:g} {unit(figure)}" for figure in line}
        first = line[0]
        made.add_row(first.method, first.reader, first.subset, *(values.get(name, "") for name in metrics), first.place)
    put(console, made)


def unit(figure: Figure) -> str:
    """The unit of a published figure as it stands in a cell."""
    return {"percent": "%", "tokens per question": "tokens/q", "seconds": "s"}.get(figure.unit, figure.unit)
