"""Floors and the ceiling of a benchmark as tables: headline figures, then the leading one by question type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memharness.report.tables import SAMPLE_WARNING, number, put, table

if TYPE_CHECKING:
    from rich.console import Console

NAME = 44  # characters of a floor's name that are shown on a terminal
ABOUT = 24  # of what it is, at least
BETWEEN = 2  # columns


def show_floors(console: Console, found: Mapping[str, Any]) -> None:
    """Print floors.

    Args:
        console: where to.
        found: the fields of `memharness.run.floors.Floors`.
    """
    from rich.text import Text

    if found["data_state"] == "sample":
        console.print(Text(SAMPLE_WARNING, style="bold yellow"))
    part = f", subset {found['subset']}" if found["subset"] else ""
    console.print(
        f"floors of {found['bench']}: {found['questions']:,} questions of {found['contexts']:,} contexts, "
        f"{found['data_state']} data at {found['data']}{part}",
        soft_wrap=True,
    )
    floors: Sequence[Mapping[str, Any]] = found["floors"]
    leading = found["leading"]
    named = list(dict.fromkeys(name for floor in reversed(floors) for name in floor["figures"]))
    types_of = {name for name in named if "." in name and name.partition(".")[0] in named}
    scores = [leading, *(name for name in named if name not in types_of and name != leading)]
    left = _figures(console, floors, {name: name for name in scores}, about=True)
    for score in dict.fromkeys(filter(None, (leading, found["picked"]))):
        types = {name: name.removeprefix(f"{score}.") for name in named if name.startswith(f"{score}.")}
        if len(types) > 1:
            console.print(f"{score} by question type")
            left += _figures(console, floors, types)
    if left:
        console.print(Text(f"{left} more columns: --json has every figure", style="dim"))
    if leading != found["primary"]:
        console.print(Text(f"note: {found['primary']} needs a judge; {leading} leads here", style="yellow"))
    if found["judged"]:
        console.print(Text(f"note: left out, since a judge must say: {', '.join(found['judged'])}", style="yellow"))
    for note in found["notes"]:
        console.print(Text(note, style="dim"), soft_wrap=True)


def _figures(
    console: Console, floors: Sequence[Mapping[str, Any]], names: Mapping[str, str], *, about: bool = False
) -> int:
    """One table of the figures named, under their headings. Returns how many columns a terminal had no room for."""
    shown = _fitting(console, floors, names, ABOUT if about else 0) if console.is_terminal else list(names)
    made = table(console, "floor", ">n", *(f">{names[name]}" for name in shown), *(["what it is"] if about else []))
    for floor in floors:
        figures = [number(floor["figures"].get(name)) for name in shown]
        words = [floor["about"]] if about else []
        made.add_row(_name(console, floor["name"]), f"{floor['n']:,}", *figures, *words)
    put(console, made)
    return len(names) - len(shown)


def _fitting(console: Console, floors: Sequence[Mapping[str, Any]], names: Mapping[str, str], about: int) -> list[str]:
    """The first figures that fit beside a floor's name, its n and so many characters about it; one at least."""
    room = console.width - about - max(len(_name(console, floor["name"])) for floor in floors)
    room -= max(len(f"{floor['n']:,}") for floor in floors) + 2 * BETWEEN
    shown: list[str] = []
    for name, heading in names.items():
        room -= max(len(heading), len(number(0.0))) + BETWEEN
        if shown and room < 0:
            break
        shown.append(name)
    return shown


def _name(console: Console, name: str) -> str:
    one_line = " ".join(name.split())
    return one_line if len(one_line) <= NAME or not console.is_terminal else f"{one_line[: NAME - 1]}…"
