"""The analyses as figures, drawn from their rows in the house style of plots."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memharness.methods.l2vmas.analyses.calls import WHOLE_REPLY
from memharness.methods.l2vmas.analyses.rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AIR = 0.07  # of an axis's range, beyond what lies on it
NAMES = {"window": "window W", "threshold": "threshold λ", "length": "length L"}


def lines(rows: Sequence[Row], title: str) -> Figure:
    """Score above and tokens below, a column a panel; a baseline runs through all of them as a level line."""
    from memharness.report.plots.rows import groups
    from memharness.report.plots.style import blank, explain, legend, look, plain_numbers
    from memharness.report.plots.style import title as say

    level = [row for row in rows if row["panel"] == "baseline"]
    panels = groups([row for row in rows if row["panel"] != "baseline"], "panel")
    names = list(dict.fromkeys(row["line"] for row in rows))
    figure = blank(2.2 + 3.1 * len(panels), 4.8)
    axes = figure.subplots(2, len(panels), sharex="col", squeeze=False)
    for column, (panel, shown) in enumerate(panels.items()):
        top, bottom = axes[0][column], axes[1][column]
        for name, line in groups(shown, "line").items():
            number = names.index(name)
            mark = look(number) | {"markersize": 5, "linewidth": 1.4}
            for one, key in ((top, "value"), (bottom, "tokens")):
                label = name if len(names) > 1 else line[0]["method"]
                _line(figure, one, line, key, mark, label, number, len(names))
                for row in level:
                    if row["line"] == name:
                        label = f"{row['method']}, {name}" if len(names) > 1 else row["method"]
                        one.axhline(row[key], color=mark["color"], linestyle=":", linewidth=1.2, label=label)
        _limits(top, bottom, [*shown, *level])
        ticks = sorted({row["at"] for row in shown})
        bottom.set_xticks(ticks, [str(tick) for tick in ticks])
        top.set_title(NAMES.get(panel, panel))
        bottom.set_xlabel(NAMES.get(panel, "turns"))
        plain_numbers(bottom.yaxis)
    axes[0][0].set_ylabel(_scores(rows))
    axes[1][0].set_ylabel("tokens a question")
    say(figure, title)
    legend(figure, axes[0][0])
    explain(figure, rows)
    return figure


def _line(
    figure: Figure, axes: Axes, line: Sequence[Row], key: str, mark: Mapping[str, Any], name: str, number: int, of: int
) -> None:
    from memharness.report.plots.style import aside, whiskers

    at, values = [row["at"] for row in line], [row[key] for row in line]
    if key == "tokens":
        axes.plot(at, values, label=name, **mark)
        return
    where = aside(figure, axes, number, of)
    axes.errorbar(at, values, yerr=whiskers(line), capsize=2.5, elinewidth=0.9, label=name, transform=where, **mark)


def _limits(top: Axes, bottom: Axes, rows: Sequence[Row]) -> None:
    """By hand: matplotlib does not see points that are set aside."""
    ends = [row[name] for row in rows for name in ("value", "low", "high") if row[name] is not None]
    air = AIR * (max(ends) - min(ends)) or 0.05
    top.set_ylim(min(ends) - air, max(ends) + air)
    bottom.set_ylim(0, (1 + AIR) * max(row["tokens"] for row in rows) or 1)
    at = [row["at"] for row in rows if row["at"] is not None]
    air = AIR * (max(at) - min(at)) or 0.5
    top.set_xlim(min(at) - air, max(at) + air)


def bars(rows: Sequence[Row], title: str) -> Figure:
    """A bar a run, whole below and what lacks a part above it, a column a benchmark; tokens stand in the bars."""
    from memharness.report.plots.rows import groups
    from memharness.report.plots.style import COLOURS, blank, explain, short, whiskers
    from memharness.report.plots.style import title as say

    panels = groups(rows, "panel")
    names = list(dict.fromkeys(row["line"] for row in rows))
    figure = blank(2 + 3.1 * len(panels), 1.6 + 0.42 * len(names))
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for one, (panel, shown) in zip(axes, panels.items(), strict=True):
        at = [names.index(row["line"]) for row in shown]
        colours = [COLOURS[0] if row["line"] == names[-1] else "#8c8c8c" for row in shown]
        one.barh(
            at, [row["value"] for row in shown], height=0.66, color=colours, edgecolor="white", linewidth=0.4,
            xerr=whiskers(shown), error_kw={"elinewidth": 1, "capsize": 2.5, "ecolor": "#222222"},
        )  # fmt: skip
        for place, row in zip(at, shown, strict=True):
            end = row["high"] if row["high"] is not None else row["value"]
            one.annotate(
                f"{row['value']:.3f}, {short(row['tokens'])} tokens", (end, place), xytext=(5, 0),
                textcoords="offset points", va="center", fontsize=7,
            )  # fmt: skip
        one.set_xlim(0, 1.5 * (max(row["high"] or row["value"] for row in shown) or 1))
        one.set_yticks(range(len(names)), names)
        one.grid(visible=False, axis="y")
        one.set_title(panel)
        one.set_xlabel(shown[0]["score"])
    axes[0].invert_yaxis()
    say(figure, title)
    explain(figure, rows)
    return figure


def places(rows: Sequence[Row], title: str) -> Figure:
    """Calls per 100 tokens on each memory over the length of a reply, a column a group of tasks."""
    from memharness.report.plots.rows import groups
    from memharness.report.plots.style import blank, legend, look
    from memharness.report.plots.style import title as say

    panels = groups(rows, "panel")
    names = list(dict.fromkeys(row["line"] for row in rows))
    figure = blank(2.2 + 2.8 * len(panels), 3.4)
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for one, (panel, shown) in zip(axes, panels.items(), strict=True):
        for name, found in groups(shown, "line").items():
            mark = look(names.index(name))
            whole = next(row for row in found if row["at"] == WHOLE_REPLY)
            line = [row for row in found if row["at"] != WHOLE_REPLY and row["value"] is not None]
            at = [100 * (row["at"] - 0.5) / len([row for row in found if row["at"] != WHOLE_REPLY]) for row in line]
            label = name if len(names) > 1 or name != "both" else "both memories"
            one.plot(at, [100 * row["value"] for row in line], markersize=4, linewidth=1.4, label=label, **mark)
            known = [(x, row) for x, row in zip(at, line, strict=True) if row["low"] is not None]
            one.fill_between(
                [x for x, _ in known], [100 * row["low"] for _, row in known], [100 * row["high"] for _, row in known],
                color=mark["color"], alpha=0.18, linewidth=0,
            )  # fmt: skip
            one.axhline(100 * (whole["value"] or 0), color=mark["color"], linestyle=":", linewidth=1)
        one.set_xlim(0, 100)
        one.set_ylim(bottom=0)
        one.set_title(f"{panel} (n {max(row['n'] for row in shown):,})")
        one.set_xlabel("place in the reply (%)")
    axes[0].set_ylabel("calls per 100 tokens")
    say(figure, title)
    legend(figure, axes[0])
    banded = any(row["low"] is not None for row in rows)
    words = "bands: 95 % intervals; dotted: the whole reply" if banded else "dotted: the whole reply; no intervals"
    figure.supxlabel(words, fontsize=7.5, color="#555555")
    return figure


def _scores(rows: Sequence[Row]) -> str:
    return " / ".join(dict.fromkeys(row["score"] for row in rows))


DRAWN: Mapping[str, Callable[[Sequence[Row], str], Any]] = {
    "turns": lines,
    "contents": lines,
    "triggering": places,
    "ablations": bars,
    "sensitivity": lines,
}
