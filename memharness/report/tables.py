"""Tables that a person sees: bordered and coloured on a terminal, plain aligned columns when piped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import IO, TYPE_CHECKING, Any

from memharness.ledger import KINDS, PHASES

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

Summary = Mapping[str, Any]
OFFICIAL_ROWS = 20
TIMED = ("wall", "seconds", "seconds_without_images")
PIPED_WIDTH = 10_000  # nothing wraps or is cut in a file: one row, one line
SAMPLE_WARNING = "SAMPLE: measured on the bundled sample, which says nothing about the published benchmark"


def console_for(stream: IO[str] | None = None) -> Console:
    """A console on `stream` (default stdout) that takes words as they are: no markup, no highlighting."""
    from rich.console import Console

    probe = Console(file=stream)
    width = None if probe.is_terminal else PIPED_WIDTH
    return Console(file=stream, width=width, markup=False, highlight=False, emoji=False)


def table(console: Console, *headings: str) -> Table:
    """An empty table. A heading that begins with `>` is of a right-aligned column of figures."""
    from rich import box
    from rich.table import Table

    made = Table(
        box=box.SIMPLE_HEAD if console.is_terminal else None,
        header_style="bold" if console.is_terminal else "",
        padding=(0, 1, 0, 0) if console.is_terminal else (0, 2, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
    for heading in headings:
        figures = heading.startswith(">")
        made.add_column(
            heading.lstrip(">"),
            justify="right" if figures else "left",
            no_wrap=figures or heading == "option",
            overflow="fold",
        )
    return made


def put(console: Console, made: Table) -> None:
    """Print a table, with a line of air after it; in a file without the blanks that pad its last column."""
    with console.capture() as captured:
        console.print(made)
    text = captured.get()
    if not console.is_terminal:
        text = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
    console.file.write(f"{text}\n")


def show_summary(console: Console, summary: Summary) -> None:
    """Print a run: what it was, its scores with intervals, what went wrong, and what it cost."""
    from rich.text import Text

    if summary["data_state"] == "sample":
        console.print(Text(SAMPLE_WARNING, style="bold yellow"))
    console.print(heading(summary))
    console.print(Text(conditions(summary), style="dim"))
    if not summary.get("complete", True):
        console.print(
            Text("INCOMPLETE: not every question has its outcome; run the same command again", style="bold red")
        )
    console.print()
    show_scores(console, summary)
    if summary.get("judgements"):
        from memharness.report.judging import show_judgements

        show_judgements(console, summary)
    show_outcomes(console, summary)
    show_cost(console, summary)
    for note in filter(None, (summary.get("unmeasured"), *summary.get("notes", ()))):
        console.print(Text(f"note: {note}", style="yellow"))
    console.print(Text(f"records and scores: {summary['run']}", style="dim"), soft_wrap=True)


def heading(summary: Summary) -> Text:
    """`graphmemix on atm, read by smollm2`, or `…, retrieval only`."""
    from rich.text import Text

    kind = " (control)" if summary.get("control") else ""
    return Text.assemble(
        (summary["method"], "bold cyan"),
        f"{kind} on ",
        (summary["bench"], "bold cyan"),
        *([", retrieval only"] if summary.get("until") else [", read by ", (summary["reader"], "bold cyan")]),
    )


def conditions(summary: Summary) -> str:
    """What a figure depends on besides method, benchmark and reader, in one line."""
    words = [f"data {summary['data_state']}", *option_words(summary), f"{summary['track']} track"]
    if summary.get("view"):
        words.append(f"view {summary['view']}")
    words.append(limit_words(summary))
    named = {**(summary.get("models") or {}), "judge": summary.get("judge"), "embedder": summary.get("embedder")}
    words += [f"{role} {spec}" for role, spec in named.items() if spec]
    words += [f"rubric {key['rubric']}" for key in (summary.get("rubrics") or {}).values()]
    words += [
        f"{name}={mode if mode.isprintable() else ascii(mode)}"
        for name, mode in (summary.get("config") or {}).items()
        if isinstance(mode, str) and mode
    ]
    words += [f"seed {summary.get('seed', 0)}", f"identity {summary['identity'][:8]}"]
    return " · ".join(words)


def option_words(summary: Summary) -> list[str]:
    """What was asked or counted otherwise than the benchmark does by default."""
    words = [f"{name}={value}" for name, value in sorted((summary.get("options") or {}).items())]
    return words + ([f"prompt {summary['prompt']}"] if summary.get("prompt") else [])


def limit_words(summary: Summary) -> str:
    """The budget in words."""
    tokens, items = summary.get("budget"), summary.get("items")
    limits = [f"{tokens:,} tokens"] if tokens is not None else []
    limits += [f"{items:,} items"] if items is not None else []
    return f"budget {' and '.join(limits)}" if limits else "no budget"


def show_scores(console: Console, summary: Summary) -> None:
    """Scores over all questions and over valid ones, the primary one first; then figures under official names."""
    from rich.text import Text

    scores: Mapping[str, Mapping[str, Any]] = summary["scores"]
    primary = summary.get("primary") or ""
    if not scores:
        console.print("no scores: nothing was read, or nothing could be scored")
        return
    valid = any(score["n_valid"] != score["n"] for score in scores.values())
    columns = ["score", ">value", ">95 % interval", ">n"] + ([">valid", ">n valid"] if valid else []) + ["interval by"]
    made = table(console, *columns)
    for name in sorted(scores, key=lambda name: name != primary):
        score = scores[name]
        cells = [name, number(score["value"]), interval(score), f"{score['n']:,}"]
        if valid:
            cells += [number(score["value_valid"]), f"{score['n_valid']:,}"]
        made.add_row(*cells, interval_words(score), style="bold" if name == primary else "")
    for counter, tokens in (summary.get("memory_tokens") or {}).items():
        cells = ["memory tokens", f"{tokens:.1f}", "", *([""] * (3 if valid else 1))]
        made.add_row(*cells, f"mean, by {counter}", style="dim")
    put(console, made)
    for note in dict.fromkeys(score["note"] for score in scores.values() if score.get("note")):
        console.print(Text(f"interval: {note}", style="dim"))
    _show_official(console, summary, primary)


def _show_official(console: Console, summary: Summary, primary: str) -> None:
    """The benchmark's own report without what the scores said: the primary one by category, official names."""
    rest = {name: value for name, value in (summary.get("official") or {}).items() if name not in summary["scores"]}
    heads = {name: name.partition(".")[0] for name in rest}
    shown = [name for name, head in heads.items() if head == primary]
    shown += [name for name, head in heads.items() if head not in summary["scores"]]
    if shown:
        made = table(console, "official figure", ">value")
        for name in shown[:OFFICIAL_ROWS]:
            made.add_row(name, number(rest[name]))
        put(console, made)
    if left := len(rest) - len(shown[:OFFICIAL_ROWS]):
        console.print(f"{left} more official figures are in summary.json")


def show_outcomes(console: Console, summary: Summary) -> None:
    """Outcomes if any question is not `ok`, and flags if any is set."""
    from rich.text import Text

    outcomes, flags = summary.get("outcomes") or {}, summary.get("flags") or {}
    if any(n for name, n in outcomes.items() if name != "ok"):
        console.print(Text(f"outcomes: {counts(outcomes)}", style="yellow"))
    if any(flags.values()):
        console.print(Text(f"flags: {counts(flags)}", style="dim"), soft_wrap=True)


def show_cost(console: Console, summary: Summary) -> None:
    """Calls, tokens and seconds by phase, and the price."""
    tokens, calls, seconds = (summary.get(name) or {} for name in ("tokens", "calls", "seconds"))
    phases = [name for name in PHASES if calls.get(name) or seconds.get(name) or any((tokens.get(name) or {}).values())]
    if not phases:
        return
    kinds = [
        kind
        for kind in KINDS
        if kind in ("text", "output") or any((tokens.get(phase) or {}).get(kind) for phase in phases)
    ]
    made = table(
        console, "phase", ">calls", *(f">{kind}{'' if kind == 'latent' else ' tokens'}" for kind in kinds), ">seconds"
    )
    for phase in phases:
        row = tokens.get(phase) or {}
        made.add_row(
            phase,
            f"{calls.get(phase, 0):,}",
            *(f"{row.get(kind, 0):,}" for kind in kinds),
            f"{seconds.get(phase, 0.0):,.1f}",
        )
    put(console, made)
    _show_runtime(console, summary.get("runtime") or {})
    if summary.get("price") != 0:
        price = summary.get("price")
        console.print(
            f"price: {dollars(price)}" if price is not None else "price: unknown (a hosted model is not in the table)"
        )


def _show_runtime(console: Console, seconds: Mapping[str, float]) -> None:
    """What a question took, with and without the image back end, where the method says so."""
    if TIMED[1] not in seconds:
        return
    wall, whole, without = (seconds[name] for name in TIMED)
    parts = [f"{name.removeprefix('seconds_')} {value:.3f}" for name, value in seconds.items() if name not in TIMED]
    console.print(
        f"mean seconds a question: {wall:.3f} from question to answer; by the method's own clock {whole:.3f}, without "
        f"images {without:.3f} ({', '.join(parts)})",
        soft_wrap=True,
    )


def show_plan(console: Console, plan: Mapping[str, Any]) -> None:
    """Print what a run would take, from the fields of a `Plan`."""
    from rich.text import Text

    if plan["data_state"] == "sample":
        console.print(Text(SAMPLE_WARNING, style="bold yellow"))
    questions = plan["questions"]
    known = "an unknown number of" if questions is None else f"{questions:,}"
    asked = f"would ask {known} questions of {plan['contexts']:,} contexts"
    console.print(f"{asked} · view {plan['view']} · identity {plan['identity'][:8]}")
    made = table(console, "phase", ">calls", ">text tokens", ">image tokens", ">output tokens at most")
    for phase in PHASES:
        if phase in plan["calls"]:
            tokens = plan["tokens"].get(phase, {})
            made.add_row(
                phase,
                f"{plan['calls'][phase]:,}",
                *(f"{tokens.get(kind, 0):,}" for kind in ("text", "image", "output")),
            )
    if made.row_count:
        put(console, made)
    dated = f" (prices of {plan['price_date']})" if plan["price_date"] else ""
    console.print(f"price: {'unknown' if plan['price'] is None else dollars(plan['price'])}{dated}")
    for note in plan["notes"]:
        console.print(Text(f"note: {note}", style="yellow"))
    console.print(Text(f"would write: {plan['folder']}", style="dim"), soft_wrap=True)


def counts(values: Mapping[str, int]) -> str:
    """`ok 22 · over_window 2`."""
    return " · ".join(f"{name} {n:,}" for name, n in values.items() if n)


def number(value: float | None) -> str:
    """A score with three decimals, `–` if there is none."""
    return "–" if value is None else f"{value:.3f}"


def interval(score: Mapping[str, Any]) -> str:
    """`0.331 – 0.496`, or `none` where none can be given."""
    low, high = score.get("low"), score.get("high")
    return "none" if low is None or high is None else f"{low:.3f} – {high:.3f}"


def interval_words(score: Mapping[str, Any]) -> str:
    """How the interval was made, over how many clusters, and how many scores a judge or parser could not give."""
    words = [score.get("method") or ""] if score.get("low") is not None else []
    if score.get("clusters"):
        words.append(f"{score['clusters']:,} clusters")
    words += [f"{score[name]:,} {name}" for name in ("unparsed", "judge_error") if score.get(name)]
    return ", ".join(words)


def dollars(price: float) -> str:
    """A price in USD, to the cent or to three significant digits below one."""
    return f"{price:,.2f} USD" if price >= 1 or price == 0 else f"{price:.3g} USD"


def show_lines(console: Console, rows: Iterable[tuple[str, str]]) -> None:
    """Name and value pairs, aligned; a long value wraps under itself."""
    from rich.table import Table

    made = Table.grid(padding=(0, 2, 0, 0))
    made.add_column(style="bold" if console.is_terminal else "", no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in rows:
        made.add_row(name, value)
    put(console, made)
