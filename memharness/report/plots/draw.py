"""Each kind of plot as a figure, drawn from its rows with matplotlib."""

from __future__ import annotations

from math import log10
from typing import TYPE_CHECKING, Any

from memharness.report.plots.rows import COSTS, Row, groups
from memharness.report.plots.runs import Runs, ordered
from memharness.report.plots.style import (
    COLOURS,
    GREYS,
    HATCHES,
    aside,
    blank,
    explain,
    legend,
    look,
    plain_numbers,
    title,
    whiskers,
    wrapped,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ACROSS = 70  # characters of tick labels that fit side by side


def draw_cost(runs: Runs, rows: list[Row]) -> Figure:
    """Score against lifecycle cost with its front on the right, cost by phase on the left (GraphMemix Figures 3, 5)."""
    of = rows[0]["of"]
    phases = [name for name in rows[0] if name.startswith(f"{of}_") and any(row[name] for row in rows)]
    figure = blank(9.5 if phases else 6.5, max(3.4, 1.6 + 0.34 * len(rows)))
    if phases:
        left, right = figure.subplots(1, 2, width_ratios=(1, 1.15))
        _stacked(left, rows, phases, of)
    else:
        right = figure.subplots()
    for number, row in enumerate(rows):
        mark = look(number) | {"linestyle": "none"}
        if row["control"]:
            mark |= {"markerfacecolor": "white", "markeredgewidth": 1.2}
        right.errorbar(
            [row["cost"]], [row["value"]], yerr=whiskers([row]), capsize=3, markersize=7, elinewidth=1.2, zorder=3,
            label=row["name"], **mark,
        )  # fmt: skip
    front = sorted((row for row in rows if row["front"]), key=lambda row: (row["cost"], row["value"]))
    right.plot(
        [row["cost"] for row in front], [row["value"] for row in front], color="#555555", linestyle="--",
        linewidth=1.1, label="not dominated", zorder=2,
    )  # fmt: skip
    costs = [row["cost"] for row in rows]
    if min(costs) > 0 and max(costs) > 20 * min(costs):
        right.set_xscale("log")
    else:
        right.set_xlim(left=0)
    plain_numbers(right.xaxis)
    right.set_xlabel(f"lifecycle {COSTS[of]}")
    right.set_ylabel(runs.metric)
    title(figure, f"{runs.title}: {runs.metric} against lifecycle {of}")
    legend(figure, right)
    explain(figure, rows)
    return figure


def _stacked(axes: Axes, rows: list[Row], phases: list[str], of: str) -> None:
    left = [0.0] * len(rows)
    for number, phase in enumerate(phases):
        amounts = [row[phase] for row in rows]
        axes.barh(
            range(len(rows)), amounts, left=left, height=0.66, color=GREYS[number], hatch=HATCHES[number],
            edgecolor="white", linewidth=0.4, label=phase.removeprefix(f"{of}_"),
        )  # fmt: skip
        left = [before + amount for before, amount in zip(left, amounts, strict=True)]
    axes.set_yticks(range(len(rows)), [wrapped(row["name"]) for row in rows])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    plain_numbers(axes.xaxis)
    axes.set_xlabel(f"lifecycle {of}")
    axes.legend(fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(phases), handlelength=1.4)


def draw_sweep(runs: Runs, rows: list[Row]) -> Figure:
    """Score above, tokens a question below, against one field (L2-VMAS Figure 2)."""
    against, lines = rows[0]["against"], groups(rows)
    figure = blank(7.5, 5.2)
    top, bottom = figure.subplots(2, 1, sharex=True)
    place = _places(bottom, [row["at"] for row in rows])
    joined = sum(isinstance(at, str | bool) for at in place) < 2  # words have no order that a line could follow
    for number, (name, line) in enumerate(lines.items()):
        at = [place[row["at"]] for row in line]
        mark = look(number) | {"markersize": 6, "linewidth": 1.4} | ({} if joined else {"linestyle": "none"})
        top.errorbar(
            at, [row["value"] for row in line], yerr=whiskers(line), capsize=3, elinewidth=1, label=name,
            transform=aside(figure, top, number, len(lines)), **mark,
        )  # fmt: skip
        spent = [row["tokens_per_question"] for row in line]
        bottom.plot(at, spent, transform=aside(figure, bottom, number, len(lines)), **mark)
    # Limits are set by hand: matplotlib does not see points that are set aside.
    ends = [row[name] for row in rows for name in ("value", "low", "high") if row[name] is not None]
    top.set_ylim(*_around(min(ends), max(ends)))
    most = max(row["tokens_per_question"] or 0 for row in rows)
    bottom.set_ylim(0, 1.08 * most or 1)
    top.set_ylabel(runs.metric)
    bottom.set_ylabel("tokens a question")
    plain_numbers(bottom.yaxis)
    bottom.set_xlabel(f"{against} (tokens)" if against == "budget" else against)
    title(figure, f"{runs.title}: {runs.metric} and tokens against {against}")
    legend(figure, top)
    explain(figure, rows)
    return figure


def _places(axes: Axes, values: list[Any]) -> dict[Any, float]:
    """Where each value lies on the x axis: numbers by size (by ratio if they span a lot), words in a row."""
    distinct = ordered(values)
    words = [f"{one:,}" if isinstance(one, int) and not isinstance(one, bool) else str(one) for one in distinct]
    if not all(isinstance(one, int | float) and not isinstance(one, bool) for one in distinct):
        axes.set_xticks(range(len(words)), [wrapped(word) for word in words])
        if len(words) * max(map(len, words)) > ACROSS:
            for label in axes.get_xticklabels():
                label.set(rotation=20, ha="right")
        axes.set_xlim(*_around(0, len(words) - 1))
        return {one: float(at) for at, one in enumerate(distinct)}
    first, last = distinct[0], distinct[-1]
    if first > 0 and last >= 8 * first:
        axes.set_xscale("log")
        axes.set_xlim(*(10**end for end in _around(log10(first), log10(last))))
    else:
        axes.set_xlim(*_around(first, last))
    axes.set_xticks(distinct, words)
    axes.minorticks_off()
    return {one: float(one) for one in distinct}


def _around(low: float, high: float) -> tuple[float, float]:
    """Limits with some air around what lies between these."""
    air = 0.07 * (high - low) or 0.05
    return low - air, high + air


def draw_categories(runs: Runs, rows: list[Row]) -> Figure:
    """A bar for each run in each category of question."""
    names, categories = list(groups(rows)), list(groups(sorted(rows, key=lambda row: row["category"]), "category"))
    figure = blank(8, 1.6 + len(categories) * (0.16 + 0.2 * len(names)))
    axes = figure.subplots()
    thick = 0.84 / len(names)
    for number, (name, bars) in enumerate(groups(rows).items()):
        at = [categories.index(row["category"]) - 0.42 + thick * (number + 0.5) for row in bars]
        drawn = axes.barh(
            at, [row["value"] for row in bars], height=thick * 0.92, color=COLOURS[number % len(COLOURS)],
            hatch=HATCHES[number % len(HATCHES)], edgecolor="white", linewidth=0.4, label=name,
            xerr=whiskers(bars), error_kw={"elinewidth": 1, "capsize": 2.5, "ecolor": "#222222"},
        )  # fmt: skip
        axes.bar_label(drawn, fmt="%.2f", padding=3, fontsize=6.5, color="#333333")
    sizes = {row["category"]: row["n"] for row in rows}
    axes.set_yticks(range(len(categories)), [f"{wrapped(name)}\nn {sizes[name]:,}" for name in categories])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(runs.metric)
    title(figure, f"{runs.title}: {runs.metric} by category")
    legend(figure, axes)
    explain(figure, rows)
    return figure


def draw_objective(runs: Runs, rows: list[Row]) -> Figure:
    """The rise over accepted swaps on the left, the gain over accepted edges on the right (GraphMemix Figure 2)."""
    figure = blank(9, 3.6)
    swaps, edges = figure.subplots(1, 2)
    parts = (
        (swaps, "swaps", "accepted 1-swaps", "rise of the forest objective"),
        (edges, "edges", "accepted edges", "structural gain, summed"),
    )
    for axes, part, below, beside in parts:
        for number, (name, line) in enumerate(groups([row for row in rows if row["part"] == part]).items()):
            mark, steps = look(number), [row["step"] for row in line]
            axes.plot(steps, [row["value"] for row in line], markersize=4, linewidth=1.4, label=name, **mark)
            sure = [row for row in line if row["low"] is not None]
            axes.fill_between(
                [row["step"] for row in sure], [row["low"] for row in sure], [row["high"] for row in sure],
                color=mark["color"], alpha=0.18, linewidth=0,
            )  # fmt: skip
        axes.set_xlabel(below)
        axes.set_ylabel(beside)
        axes.xaxis.get_major_locator().set_params(integer=True)
    title(figure, f"{runs.title}: forest objective, mean over {max(row['n'] for row in rows):,} questions")
    legend(figure, swaps)
    banded = any(row["low"] is not None for row in rows if row["step"])
    words = "bands: 95 % intervals by cluster" if banded else "no intervals: too few clusters"
    figure.supxlabel(f"{words}; a question that has ended keeps its last value", fontsize=7.5, color="#555555")
    return figure
