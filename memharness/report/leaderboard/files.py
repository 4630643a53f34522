"""The leaderboard as files: CSV and Parquet for programs, Markdown and HTML for people."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from memharness.report.leaderboard.boards import Board
from memharness.report.leaderboard.page import Page, page
from memharness.report.leaderboard.ties import Standing
from memharness.store import whole, write_atomic

TEMPLATE = Path(__file__).with_name("leaderboard.html.j2")


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as CSV, atomically.

    Raises:
        UserError: if the disk is full or refuses.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomic(path, text.getvalue())


def write_parquet(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as Parquet; a column's type is that of its values, text where it has none.

    Raises:
        UserError: if the disk is full or refuses.
    """
    import pyarrow as pa
    from pyarrow import parquet

    names = list(rows[0]) if rows else []
    columns = {name: _column(pa, [row[name] for row in rows]) for name in names}
    with whole(path) as temporary:
        parquet.write_table(pa.table(columns), temporary)


def _column(pa: Any, values: Sequence[Any]) -> Any:
    known = [value for value in values if value is not None]
    if not known:
        return pa.array(values, pa.string())
    if any(isinstance(value, float) for value in known):  # a count may be whole in one run and a mean in another
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    return pa.array(values)


def write_markdown(
    path: Path, boards: Iterable[Board], ties: Mapping[str, Standing], *, published: bool = False
) -> None:
    """Write a table a board as Markdown, atomically.

    Raises:
        UserError: if the disk is full or refuses.
    """
    write_atomic(path, _markdown(page(boards, ties, published=published)))


def _markdown(made: Page) -> str:
    parts = ["# Leaderboard", made.legend, *made.warnings]
    for section in made.sections:
        parts.append(f"## {_escaped(section.title)}")
        parts += [_escaped(section.common)] if section.common else []
        for grid in section.grids:
            parts.append(f"**{_escaped(grid.title)}**")
            parts.append("\n".join([_line(grid.columns), _rule(grid.columns, grid.words), *map(_line, grid.texts)]))
        parts += [_escaped(note) for note in section.notes]
    return "\n\n".join(parts) + "\n"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(_escaped, cells))} |"


def _rule(columns: Sequence[str], words: Iterable[str]) -> str:
    return f"| {' | '.join('---' if name in words else '---:' for name in columns)} |"


def _escaped(text: str) -> str:
    """Markdown that shows these words: no markup, no HTML, no new cell or line."""
    text = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for mark in "\\`*_[]|":
        text = text.replace(mark, f"\\{mark}")
    return text


def write_html(path: Path, boards: Iterable[Board], ties: Mapping[str, Standing], *, published: bool = False) -> None:
    """Write one page that needs nothing else: sortable tables, light and dark, no network; atomically.

    Raises:
        UserError: if the disk is full or refuses.
    """
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(TEMPLATE.read_text("utf-8"))
    write_atomic(path, template.render(page=page(boards, ties, published=published)))
