"""Floors on a terminal, which has room for some of the columns only, and in a file, which has room for all."""

from __future__ import annotations

import io
import re
from typing import Any

from rich.console import Console

from memharness.report.floors import show_floors
from memharness.report.tables import console_for


def found(**more: Any) -> dict[str, Any]:
    """Floors of a benchmark with many scores."""
    figures = {"em": 0.5, **{f"score_{n}": 0.25 for n in range(9)}, "em.old": 1.0, "em.new": 0.0}
    row = {"name": "always " + "word " * 20, "about": "the most frequent gold answer", "n": 1234, "figures": figures}
    ceiling = {"name": "gold itself", "about": "", "n": 1234, "figures": figures | {"em": 1.0}}
    return {
        "bench": "b", "data": "there", "data_state": "given", "subset": "old", "contexts": 2, "questions": 1234,
        "primary": "em", "leading": "em", "picked": "em", "judged": [], "floors": [row, ceiling], "notes": ["note one"],
    } | more  # fmt: skip


def test_in_a_file_every_column_is_there() -> None:
    stream = io.StringIO()
    show_floors(console_for(stream), found())
    lines = stream.getvalue().splitlines()
    assert lines[0] == "floors of b: 1,234 questions of 2 contexts, given data at there, subset old"
    assert lines[1].split() == ["floor", "n", "em", *(f"score_{n}" for n in range(9)), "what", "it", "is"]
    assert "em by question type" in lines
    assert lines[lines.index("em by question type") + 1].split() == ["floor", "n", "old", "new"]
    assert lines[-1] == "note one"
    assert "more columns" not in stream.getvalue()


def test_a_terminal_says_what_it_has_no_room_for() -> None:
    stream = io.StringIO()
    show_floors(Console(file=stream, width=100, force_terminal=True, no_color=True), found(data_state="sample"))
    text = stream.getvalue()
    assert "SAMPLE" in text
    assert "score_0" in text
    assert "score_8" not in text
    assert "8 more columns: --json has every figure" in text
    assert "…" in text


def test_short_names_leave_room_for_more_columns() -> None:
    """What stands before a dot is a score whose types have a table of their own, or a part of the name."""
    stream = io.StringIO()
    figures = {"em": 1.0, "em.old": 1.0, "em.new": 1.0, "vanilla.Overall": 0.5}
    floors = [{"name": "gold itself", "about": "the ceiling", "n": 7, "figures": figures}]
    show_floors(Console(file=stream, width=70, force_terminal=True, no_color=True), found(floors=floors))
    words = re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue()).split()
    assert " ".join(["floor", "n", "em", "vanilla.Overall", "what"]) in " ".join(words)
    assert "columns:" not in words


def test_what_a_judge_must_say_is_left_out_aloud() -> None:
    stream = io.StringIO()
    show_floors(console_for(stream), found(primary="qs", judged=["Judge(rubric=x.v1)"]))
    assert "note: qs needs a judge; em leads here" in stream.getvalue()
    assert "note: left out, since a judge must say: Judge(rubric=x.v1)" in stream.getvalue()
