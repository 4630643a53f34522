"""What people see of judges: their verdicts on a run side by side, how far they agree, and what a calibration found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memharness.registry import short_name
from memharness.report.tables import dollars, interval, interval_words, number, put, table

if TYPE_CHECKING:
    from rich.console import Console

MISTAKES = {
    "right": "false reject",
    "wrong-specific": "false accept, specific",
    "wrong-vague": "false accept, vague",
}
STYLES = {"useful": "bold green", "partly useful": "bold yellow", "not shown": "bold yellow"}


def show_judgements(console: Console, summary: Mapping[str, Any]) -> None:
    """Each judge's scores under each rubric, then the agreement between judges."""
    found = summary.get("judgements") or ()
    if not found:
        return
    from rich.text import Text

    console.print()
    made = table(console, "judge", "rubric", "score", ">value", ">95 % interval", ">n", ">errors", ">calls", "asked by")
    for one in found:
        for name, score in one["scores"].items():
            errors = score.get("judge_error", 0)
            made.add_row(
                *(short_name(one["judge"]), one["rubric"]["rubric"], name, number(score["value"]), interval(score)),
                *(f"{score['n']:,}", f"{errors:,}", f"{one['calls']:,}", one["asked"]),
            )
    put(console, made)
    for rubric, about in {one["rubric"]["rubric"]: one["about"] for one in found}.items():
        console.print(Text(f"{rubric}: {about}", style="dim"))
    for one in found:
        official = {
            name: value for name, value in one["official"].items() if name.partition(".")[0] not in one["scores"]
        }
        if official:
            console.print(
                f"{one['judge']}: " + " · ".join(f"{name} {number(value)}" for name, value in official.items())
            )
    _show_agreement(console, summary.get("agreement") or ())


def _show_agreement(console: Console, agreements: Sequence[Mapping[str, Any]]) -> None:
    """Alpha of each pair of judges, by category where there is one pair."""
    if not agreements:
        return
    alone = len(agreements) == 1
    made = table(console, "judges", "rubric", *(["category"] if alone else []), ">alpha", ">equal", ">n", ">unparsed")
    for one in agreements:
        who, unparsed = " and ".join(map(short_name, one["judges"])), ", ".join(f"{n:,}" for n in one["unparsed"])
        for name, found in [("all", one), *(one["categories"].items() if alone else ())]:
            first, last = ([who, one["rubric"]], unparsed) if found is one else (["", ""], "")
            figures = [number(found["alpha"]), _share(found["equal"]), f"{found['n']:,}"]
            made.add_row(*first, *([name] if alone else []), *figures, last)
    put(console, made)
    levels = {one["rubric"]: one["level"] for one in agreements}
    console.print(
        "Krippendorff's alpha over the n questions with a verdict of each; "
        + ", ".join(f"{rubric} is {level}" for rubric, level in levels.items())
        + ("" if alone else "; by category in summary.json")
    )
    for note in dict.fromkeys(one["note"] for one in agreements if one.get("note")):
        console.print(f"alpha: {note}")


def show_calibration(console: Console, report: Mapping[str, Any]) -> None:
    """False accepts and rejects by kind and category, what they are worth, the cost, and the verdict."""
    from rich.text import Text

    way = "JSON by schema" if report["asked"] == "schema" else "words"
    console.print(
        Text.assemble(
            "judge ", (short_name(report["judge"]), "bold cyan"), " by ", (report["rubric"]["rubric"], "bold cyan")
        )
    )
    about = f"asked in {way} · {report['answers']:,} answers to {report['questions']:,} questions"
    console.print(Text(about + ("" if report["rubric"]["verdict"] == "strict" else " · read officially"), style="dim"))
    console.print(Text(report["about"], style="dim"))
    console.print()
    graded = any(found["score"] is not None and report["level"] != "nominal" for found in report["kinds"].values())
    _show_mistakes(console, {"": report["kinds"]}, graded=graded)
    if report["categories"]:
        _show_mistakes(console, report["categories"])
    _show_youden(console, report["youden"])
    made_by = {interval_words({**found, "judge_error": 0}): None for found in report["kinds"].values()}
    if by := " or ".join(filter(None, made_by)):
        console.print(f"intervals by {by}")
    if report["recorded"]:
        who = " and ".join(dict.fromkeys(bank["recorded_by"] or "another judge" for bank in report["banks"]))
        said = (f"{MISTAKES[kind]} {_share(one['value'])} ({_shares(one)})" for kind, one in report["recorded"].items())
        console.print(f"recorded in the bank, by {who}: {' · '.join(said)}")
    errors = report["judge_error"]
    console.print(f"judge errors: {errors['n']:,} of {report['answers']:,} answers ({_share(errors['share'])})")
    tokens = report["tokens"]
    price = "unknown" if report["price"] is None else dollars(report["price"])
    prompts = tokens["text"] + tokens["image"]
    console.print(
        f"cost: {report['calls']:,} calls ({report['new']:,} new) · {prompts:,} prompt tokens · "
        f"{tokens['output']:,} output tokens · {price}"
    )
    for note in report["notes"]:
        console.print(Text(f"note: {note}", style="yellow"))
    verdict = report["verdict"]
    console.print(Text(f"{verdict['word'].upper()}: {verdict['text']}", style=STYLES.get(verdict["word"], "bold red")))
    console.print(Text(f"verdicts: {report['file']}", style="dim"), soft_wrap=True)


def _show_mistakes(console: Console, groups: Mapping[str, Mapping[str, Any]], *, graded: bool = False) -> None:
    """A line for each kind of answer, in each category where there are several."""
    category = ["category"] if "" not in groups else []
    mean = [">mean score"] if graded else []
    made = table(console, *category, "mistake", ">rate", ">95 % interval", ">n", ">errors", *mean)
    for name, kinds in groups.items():
        for kind, found in kinds.items():
            cells = [MISTAKES[kind], _share(found["value"]), _shares(found), f"{found['n']:,}"]
            cells += [f"{found['judge_error']:,}", *([number(found["score"])] if graded else [])]
            made.add_row(*([name] if category else []), *cells)
    put(console, made)


def _show_youden(console: Console, youden: Mapping[str, Mapping[str, Any]]) -> None:
    made = table(console, "right answers against", ">Youden's J", ">95 % interval", ">balanced accuracy")
    for kind, found in youden.items():
        made.add_row(kind, number(found["value"]), interval(found), number(found["balanced_accuracy"]))
    if made.row_count:
        put(console, made)


def _shares(found: Mapping[str, Any]) -> str:
    low, high = found["low"], found["high"]
    return "none" if low is None or high is None else f"{100 * low:.1f} – {100 * high:.1f} %"


def _share(value: float | None) -> str:
    """A share in per cent, to a hundredth as the audit gives them."""
    return "–" if value is None else f"{100 * value:.2f} %"
