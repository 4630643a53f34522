"""A comparison as people read it: each run against the baseline by score, category, cost, outcome and question."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memharness.report.tables import SAMPLE_WARNING, put, table
from memharness.store import write_atomic

if TYPE_CHECKING:
    from rich.console import Console

    from memharness.run.compare import Against, Change, Compared, Comparison, Contrast
    from memharness.stats import Interval, Ratio

SHOWN = 3
LETTERS = "BCDEFGHIJKLMNOPQRSTUVWXYZ"
LISTED = 20  # ids in a line of --verbose before the rest is only counted
CUT = 240  # characters of a question or an answer on screen
STYLES = {"better": "green", "worse": "red", "tie": "cyan", "non-inferior": "cyan", "not shown": "yellow"}
AMOUNTS = {
    "tokens": "tokens, life",
    "asked": "tokens, asking",
    "calls": "calls, life",
    "price": "price in USD",
    "items": "items shown",
}
COLUMNS = (
    *("baseline", "run", "forced", "score", "kind", "unit", "native_id", "category", "cluster", "a", "b", "change"),
    *("outcome_a", "outcome_b", "question", "gold", "answer_a", "answer_b"),
)
WHY = {
    "better": "the whole interval lies above 0",
    "worse": "the whole interval lies below 0",
    "tie": "the interval lies within −δ and +δ",
    "non-inferior": "the interval lies above −δ, but reaches +δ",
    "not shown": "the interval reaches −δ; the data cannot tell",
}


def show_comparison(console: Console, compared: Comparison, *, questions: int = SHOWN, verbose: bool = False) -> None:
    """Print a comparison.

    Args:
        console: where to.
        compared: what was found.
        questions: how many of each kind of question to show.
        verbose: list the ids of what has no partner.
    """
    from rich.text import Text

    if compared.data_state == "sample":
        console.print(Text(SAMPLE_WARNING, style="bold yellow"))
    for run in (compared.baseline, *(against.run for against in compared.runs)):
        if not run["complete"]:
            _line(console, f"INCOMPLETE: {run['run']}: not every question has its outcome", "bold red")
    if len(compared.runs) > 1:
        _ranking(console, compared)
    for at, against in enumerate(compared.runs):
        _against(console, compared, against, LETTERS[at % 25], questions, verbose)


def _ranking(console: Console, compared: Comparison) -> None:
    """All runs against the baseline, for the first score: the family that Holm's adjustment is over."""
    score = compared.runs[0].scores[0].score
    _line(console, f"{score} against A {compared.baseline['method']}, Holm over {len(compared.runs)} runs", "bold")
    made = table(console, "run", ">mean", ">minus A", ">95 % interval", ">t", ">p", ">Holm", "verdict")
    for at, against in enumerate(compared.runs):
        found = against.scores[0].all
        made.add_row(
            f"{LETTERS[at % 25]} {against.run['method']}{' (FORCED)' if against.forced else ''}", figure(found.b.value),
            *_difference(found), p_words(found.adjusted), found.verdict, style=STYLES[found.verdict],
        )  # fmt: skip
    put(console, made)


def _against(
    console: Console, compared: Comparison, against: Against, letter: str, questions: int, verbose: bool
) -> None:
    from rich.text import Text

    a, b = f"A {compared.baseline['method']}", f"{letter} {against.run['method']}"
    console.print(Text.assemble((b, "bold cyan"), " against ", (a, "bold cyan"), " on ", (compared.bench, "bold cyan")))
    for side, run in (("A", compared.baseline), (letter, against.run)):
        mean = f"  (mean of {run['repeats']} runs)" if run["repeats"] > 1 else ""
        _line(console, f"{side}  {run['run']}{mean}", "dim")
    shared = (
        f"{name} {value}" for name, value in compared.shared.items() if name not in {d.field for d in against.forced}
    )
    _line(console, f"equal in both: {' · '.join(shared)}", "dim")
    if against.differs:
        _line(
            console, f"what differs (A | {letter}): " + " · ".join(f"{d.field} {d.a} | {d.b}" for d in against.differs)
        )
    if against.forced:
        told = " · ".join(f"{d.field} {d.a} | {d.b}" for d in against.forced)
        _line(
            console,
            f"FORCED: these must be equal and are not, so the figures do not measure the same: {told}",
            "bold red",
        )
    _unmatched(console, "questions", against.only_a, against.only_b, letter, verbose)
    console.print()
    for score in against.scores:
        alike = (score.only_a, score.only_b) == (against.only_a, against.only_b)  # said above of the questions
        _score(console, compared, score, (a, b), verbose and not alike)
    _others(console, against, (a, b))
    _costs(console, against, (a, b))
    _outcomes(console, against, (a, b))
    _questions(console, against, letter, questions)


def _score(console: Console, compared: Comparison, found: Compared, sides: tuple[str, str], verbose: bool) -> None:
    letter = sides[1][0]
    words = [f"n={found.all.n:,} matched ({len(found.dropped):,} dropped, {len(found.only_a):,} only in A, "
             f"{len(found.only_b):,} only in {letter})"]  # fmt: skip
    if found.clusters is not None:
        words.append(f"clusters: {compared.unit.removesuffix('cluster')} G={found.clusters:,}".replace("  ", " "))
    _line(console, " · ".join([found.score, *words]), "bold")
    _unmatched(console, "units", found.only_a, found.only_b, letter, verbose, found.dropped)
    made = table(console, "mean over", "", ">value", ">95 % interval", ">by", ">p")
    for name, contrast in (
        (f"all {found.all.n:,} (micro)", found.all),
        (f"valid {found.valid.n:,} (micro)" if found.valid else "", found.valid),
        (f"{len(found.categories)} categories (macro)", found.macro),
    ):
        if contrast is not None:
            for first, side, one in ((name, sides[0], contrast.a), ("", sides[1], contrast.b)):
                made.add_row(first, side, figure(one.value), bounds(one.low, one.high), by(one), "")
            style = STYLES[contrast.verdict] if contrast is found.all else ""
            made.add_row(
                "", f"{letter} − A", *_difference(contrast), style=f"bold {style}", end_section=console.is_terminal
            )
    put(console, made)
    _line(console, f"verdict: {_verdict(found, compared.delta)}", f"bold {STYLES[found.all.verdict]}")
    _line(console, " · ".join(_tests(found)))
    if found.all.verdict == "not shown" and found.needed is not None:
        told = f"{found.needed:,} units drawn as these {found.all.n:,} were"
        _line(console, f"to see a difference of δ={figure(compared.delta)} 4 times in 5, about {told}", "dim")
    for note in (note for note in _notes(found) if note != found.all.difference.note or found.all.difference.df):
        _line(console, f"note: {note}", "yellow")
    console.print()
    _categories(console, found, sides)


def _verdict(found: Compared, delta: float) -> str:
    contrast = found.all
    words = WHY[contrast.verdict]
    if contrast.difference.low is None:
        words = contrast.difference.note or "there is no interval"
    elif contrast.verdict in ("better", "worse"):
        inside = -delta < contrast.difference.low and (contrast.difference.high or 0) < delta
        words += ", by less than δ" if inside else ""
    elif contrast.adjusted is not None and contrast.difference.low * (contrast.difference.high or 0) > 0:
        words += "; 0 lies outside it, but not after Holm's adjustment"
    return f"{contrast.verdict} at δ={figure(delta)}: {words}"


def _tests(found: Compared) -> list[str]:
    flip = found.sign_flip
    units = f"{flip.flipped:,} {'clusters' if found.clusters is not None else 'items'}"
    how = f"exact, {units}" if flip.exact else f"{flip.draws:,} draws, {units}"
    words = [f"sign flips p {p_words(flip.p)} ({how})"]
    if found.mcnemar:
        ignores = " (ignores clusters)" if found.clusters is not None else ""
        words.append(f"McNemar exact p {p_words(found.mcnemar.p)}{ignores}")
        words.append(f"flips {found.lower:,} lost, {found.higher:,} gained")
    else:
        words.append(f"changed: {found.lower:,} lower, {found.higher:,} higher")
    return [*words, f"{found.all.n - found.lower - found.higher:,} alike"]


def _notes(found: Compared) -> list[str]:
    contrasts = [one for one in (found.all, found.valid, found.macro) if one is not None]
    notes = [one.note for contrast in contrasts for one in (contrast.a, contrast.b, contrast.difference)]
    if found.valid is not None:
        notes.append(f"{found.all.n - found.valid.n:,} units failed in a run: 0 over all, left out over valid")
    if found.cut:
        shown = ", ".join(found.cut[:5]) + (" …" if len(found.cut) > 5 else "")
        notes.append(
            f"{len(found.cut):,} whole clusters have no matched unit, so nothing here speaks for them: {shown}"
        )
    if any(
        one.method == "cluster-bm" for contrast in contrasts for one in (contrast.a, contrast.b, contrast.difference)
    ):
        notes.append("degrees of freedom with a decimal are Bell and McCaffrey's, for unequal clusters")
    return list(dict.fromkeys(filter(None, notes)))


def _categories(console: Console, found: Compared, sides: tuple[str, str]) -> None:
    if not found.categories:
        return
    clustered = found.clusters is not None
    made = table(
        console, "category", ">n", *([">G"] if clustered else []), ">A", f">{sides[1][0]}", f">{sides[1][0]} − A",
        ">95 % interval", ">t", ">Holm p", "verdict",
    )  # fmt: skip
    for one in found.categories:
        made.add_row(
            plain(one.name) or "none", f"{one.n:,}", *([f"{one.difference.clusters or 0:,}"] if clustered else []),
            figure(one.a.value), figure(one.b.value), *_difference(one)[:3], p_words(one.adjusted), one.verdict,
            style=STYLES[one.verdict] if one.verdict in ("better", "worse") else "",
        )  # fmt: skip
    put(console, made)
    notes: dict[str, list[str]] = {}
    for one in found.categories:
        if one.difference.note:
            notes.setdefault(one.difference.note, []).append(one.name or "none")
    for note, names in notes.items():
        _line(console, f"category {', '.join(names)}: {note}", "dim")
    if notes:
        console.print()


def _others(console: Console, against: Against, sides: tuple[str, str]) -> None:
    """Scores nobody asked for: looked around in, not claimed."""
    if not against.others:
        return
    letter = sides[1][0]
    made = table(console, "other scores", ">n", ">A", f">{letter}", f">{letter} − A", ">95 % interval", ">t", ">BH p")
    for one in against.others:
        value, between, t, _ = _difference(one)
        made.add_row(
            one.name, f"{one.n:,}", figure(one.a.value), figure(one.b.value), value, between, t, p_words(one.adjusted)
        )
    put(console, made)


def _costs(console: Console, against: Against, sides: tuple[str, str]) -> None:
    letter = sides[1][0]
    if not against.costs:
        return
    made = table(console, "cost", ">A", f">{letter}", f">{letter} / A", ">95 % interval", ">by", ">p")
    most = max(one.n for one in against.costs.values())
    for name, one in against.costs.items():
        fewer = f" (n={one.n:,})" if one.n < most else ""
        totals = (f"{total:,.4g}" if name == "price" else f"{total:,.0f}" for total in (one.a, one.b))
        made.add_row(
            AMOUNTS[name] + fewer, *totals, "–" if one.value is None else f"{one.value:.3f}", _ratio_bounds(one),
            f"log {_t(one.df, 'bm' in one.method)}" if one.df else "", p_words(one.p),
        )  # fmt: skip
    put(console, made)
    for note in dict.fromkeys(one.note for one in against.costs.values() if one.note):
        _line(console, f"cost: {note}", "dim")
        console.print()


def _outcomes(console: Console, against: Against, sides: tuple[str, str]) -> None:
    made = table(console, "outcome", ">A", f">{sides[1][0]}", f">{sides[1][0]} − A")
    for prefix, counts in (("", against.outcomes), ("flag ", against.flags)):
        for name, (one, two) in sorted(counts.items(), key=lambda item: item[0] != "ok"):
            made.add_row(prefix + name, f"{one:,}", f"{two:,}", f"{two - one:+,}" if one != two else "0")
    put(console, made)


def _questions(console: Console, against: Against, letter: str, n: int) -> None:
    from memharness.run.compare import KINDS

    kinds = {kind: [change for change in against.changes if change.kind == kind] for kind in KINDS}
    counted = " · ".join(f"{len(members):,} {kind}" for kind, members in kinds.items())
    _line(console, f"questions by {against.scores[0].score}: {counted}", "bold")
    for kind, members in kinds.items():
        if not members or not n:
            continue
        _line(console, f"{kind}, worst first ({min(n, len(members)):,} of {len(members):,})")
        for change in members[:n]:
            _question(console, change, letter)
    console.print()


def _question(console: Console, change: Change, letter: str) -> None:
    from rich.table import Table
    from rich.text import Text

    about = [change.native_id or change.unit, *([f"category {change.category}"] if change.category else [])]
    _line(console, "  " + " · ".join([*about, f"{figure(change.a)} → {figure(change.b)}"]), "cyan")
    told = [("asked", change.text), ("expected", " | ".join(change.gold))]
    told += [
        (side, answer if answer is not None else f"no answer: {outcome}")
        for side, answer, outcome in (
            ("A", change.answer_a, change.outcome_a),
            (letter, change.answer_b, change.outcome_b),
        )
    ]
    if not change.text and not change.gold:
        return  # a group or an episode: it has no words of its own
    made = Table.grid(padding=(0, 1, 0, 0))
    made.add_column(width=12, justify="left")
    made.add_column(overflow="fold")
    for name, text in told:
        flat = plain(text)
        made.add_row(f"    {name}", Text(flat if len(flat) <= CUT else flat[: CUT - 1] + "…"))
    with console.capture() as captured:
        console.print(made)
    console.file.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def _unmatched(
    console: Console, what: str, only_a: Sequence[str], only_b: Sequence[str], letter: str, verbose: bool,
    dropped: Sequence[str] = (),
) -> None:  # fmt: skip
    """Ids without a partner: counted always, listed if wanted; --json has them all."""
    told = (
        ("only in A", only_a),
        (f"only in {letter}", only_b),
        ("dropped: the score applies in one run only", dropped),
    )
    for where, ids in told:
        if ids and (verbose or what == "questions"):
            listed = f": {', '.join(ids[:LISTED])}{f' … and {len(ids) - LISTED:,} more' if len(ids) > LISTED else ''}"
            _line(console, f"{len(ids):,} {what} {where}{listed if verbose else ' (--verbose lists them)'}", "yellow")


def write_csv(path: Path, compared: Comparison) -> None:
    """Write a row a matched unit of each run, worst first, atomically.

    Raises:
        UserError: if the disk is full or refuses.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_csv_rows(compared))
    write_atomic(path, text.getvalue())


def _csv_rows(compared: Comparison) -> Iterable[Mapping[str, Any]]:
    for against in compared.runs:
        forced = "; ".join(map(str, against.forced))
        for one in against.changes:
            yield {
                "baseline": compared.baseline["run"], "run": against.run["run"], "forced": forced,
                "score": against.scores[0].score, "kind": one.kind, "unit": one.unit, "native_id": one.native_id,
                "category": one.category, "cluster": one.cluster, "a": one.a, "b": one.b, "change": one.b - one.a,
                "outcome_a": one.outcome_a, "outcome_b": one.outcome_b, "question": one.text,
                "gold": " | ".join(one.gold), "answer_a": one.answer_a, "answer_b": one.answer_b,
            }  # fmt: skip


# ------------------------------------------------------------------------------------------------------------- words


def figure(value: float | None) -> str:
    """`.664`, `1.000`, `12.31`; `–` where there is none."""
    if value is None:
        return "–"
    text = f"{abs(value):,.3f}" if abs(value) < 10 else f"{abs(value):,.2f}"
    sign = "−" if value < 0 and float(text.replace(",", "")) else ""
    return sign + text.removeprefix("0" if abs(value) < 1 and text.startswith("0.") else "")


def signed(value: float | None) -> str:
    """`+.005`, `−.010`."""
    text = figure(value)
    return f"+{text}" if value is not None and value > 0 and text.strip(".0") else text


def bounds(low: float | None, high: float | None, *, sign: bool = False) -> str:
    """`[.580, .750]`, or `none`."""
    write = signed if sign else figure
    return "none" if low is None or high is None else f"[{write(low)}, {write(high)}]"


def by(found: Interval) -> str:
    """`t(9)`, `t(6.2)` by Bell and McCaffrey, `Wilson`, `exact`; empty without an interval."""
    if found.low is None:
        return ""
    if found.df is not None:
        return _t(found.df, found.method == "cluster-bm")
    return {"wilson": "Wilson", "clopper-pearson": "exact"}.get(found.method, found.method)


def p_words(p: float | None) -> str:
    """`.031`, `<.001`, or `–`."""
    if p is None:
        return "–"
    return "<.001" if p < 0.001 else figure(p)


def _t(df: float, unequal: bool) -> str:
    return f"t({df:.1f})" if unequal else f"t({df:,.0f})"


def _difference(one: Contrast) -> tuple[str, str, str, str]:
    found = one.difference
    return signed(found.value), bounds(found.low, found.high, sign=True), by(found), p_words(one.p)


def _ratio_bounds(one: Ratio) -> str:
    return "none" if one.low is None or one.high is None else f"[{one.low:.3f}, {one.high:.3f}]"


def plain(text: str) -> str:
    """Words of data and of models on one line, without what a terminal would obey."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _line(console: Console, text: str, style: str = "") -> None:
    from rich.text import Text

    console.print(Text("".join(c if c.isprintable() else " " for c in text), style=style))
