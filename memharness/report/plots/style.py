"""How plots look and are saved: colours, markers and words that are read in grey and never cut.

Colours are those of Okabe and Ito, which the colour-blind tell apart; markers, lines and hatches differ too, so that a
plot can be read in grey. SVG files are the same bytes for the same rows and version of matplotlib.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memharness.report.plots.rows import Row
from memharness.store import disk_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
GREYS = ("#3f3f3f", "#8c8c8c", "#bdbdbd", "#e3e3e3")  # of phases, which are no runs
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "---", "+++", "ooo")
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "memharness",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "text.parse_math": False,  # a name may hold a dollar sign
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#d9d9d9",
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.6,
    "legend.frameon": False,
    "figure.facecolor": "white",
}
WRAP = 34  # characters of a name in a line
TITLE = 11  # characters of a title in an inch
ASIDE = 6.0  # points between lines at one place


@contextmanager
def styled() -> Iterator[None]:
    """A context in which matplotlib draws in this style, whatever the user's own settings are."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        yield


def blank(width: float, height: float) -> Figure:
    """An empty figure of this size in inches, whose parts make room for each other."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Figure, out: Path, title: str) -> None:
    """Write a figure as SVG or PNG, whole or not at all, without a date.

    Raises:
        UserError: if the disk is full or refuses.
    """
    made = io.BytesIO()
    metadata = {"Title": title, "Date": None, "Creator": "memharness"} if out.suffix.lower() == ".svg" else {
        "Title": title, "Software": None,
    }  # fmt: skip
    form = out.suffix.lower().removeprefix(".")
    figure.savefig(made, format=form, dpi=200, bbox_inches="tight", pad_inches=0.1, metadata=metadata)
    temporary = out.with_name(f".{out.name}.tmp")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(made.getvalue())
        temporary.replace(out)
    except OSError as error:
        raise disk_error(error, out) from error


def look(number: int) -> dict[str, Any]:
    """Colour, marker and line of the n-th run; colours and markers repeat at different lengths."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKERS[number % len(MARKERS)],
        "linestyle": LINES[number % len(LINES)],
    }


def wrapped(name: str) -> str:
    """A name in lines of at most WRAP characters."""
    return "\n".join(textwrap.wrap(name, WRAP)) or name


def whiskers(rows: Sequence[Row]) -> list[list[float]] | None:
    """Lengths below and above each value; nought where no interval is honest."""
    known = [row["low"] is not None and row["high"] is not None for row in rows]
    if not any(known):
        return None
    return [
        [row["value"] - row["low"] if yes else 0.0 for row, yes in zip(rows, known, strict=True)],
        [row["high"] - row["value"] if yes else 0.0 for row, yes in zip(rows, known, strict=True)],
    ]


def explain(figure: Figure, rows: Sequence[Row]) -> None:
    """Say what the whiskers are, or why there are none."""
    have = sum(row["low"] is not None for row in rows)
    words = "whiskers: 95 % intervals" if have else "no intervals: too few clusters or nothing that varies"
    if 0 < have < len(rows):
        words += "; none where too few clusters or nothing varies"
    figure.supxlabel(words, fontsize=7.5, color="#555555")


def legend(figure: Figure, axes: Axes) -> None:
    """The names of what these axes show, beside the figure, where they cover nothing."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles, [wrapped(label) for label in labels], loc="outside right center", fontsize=8, labelspacing=0.8
    )


def title(figure: Figure, words: str) -> None:
    """Say above the figure what it shows."""
    figure.suptitle("\n".join(textwrap.wrap(words, int(figure.get_figwidth() * TITLE))), fontsize=10)


def aside(figure: Figure, axes: Axes, number: int, of: int) -> Any:
    """A transform that sets the n-th of several lines a little aside, so that equal points do not hide each other."""
    from matplotlib.transforms import ScaledTranslation

    points = ASIDE * (number - (of - 1) / 2)
    return axes.transData + ScaledTranslation(points / 72, 0, figure.dpi_scale_trans)


def plain_numbers(axis: Any) -> None:
    """Write an axis's numbers as `short` does."""
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda x, _: short(x)))


def short(x: float) -> str:
    """A number in three digits: 12.5k, 1.25M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(x) >= size:
            return f"{x / size:.3g}{letter}"
    return f"{x:.3g}"


# ------------------------------------------------------------------------------------------------------------- kinds
