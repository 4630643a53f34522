"""`memharness score`, `evaluate` and `verify`: figures without reading again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memharness.cli.output import AsJson, json_only, option, say

if TYPE_CHECKING:
    from memharness.run.api import Evaluation

Run = Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder.", show_default=False)]


def score(
    run: Run,
    judge: Annotated[str | None, option("--judge", metavar="R", help="The reader that judges.")] = None,
    metrics: Annotated[
        list[str] | None, option("--metric", metavar="M", help="A metric to add, such as Recall@5; may be repeated.")
    ] = None,
    max_cost: Annotated[
        float | None, option("--max-cost", metavar="USD", help="Most to spend; a hosted judge needs it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Score a run again, without reading again."""
    from memharness.report.tables import console_for, show_summary
    from memharness.run import api

    with json_only(as_json) as print_json:
        summary = api.rescore(run, judge, metrics or [], max_cost)
        print_json(summary)
    if not as_json:
        show_summary(console_for(), summary)


def verify(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder, or a bundle.", show_default=False)],
    as_json: AsJson = False,
) -> int:
    """Recompute every figure of a run or a bundle from its records.

    Exits with 1 if one differs, or if a member of the bundle is not as it was bundled.
    """
    from memharness.run import api, bundle

    with json_only(as_json) as print_json:
        differences = bundle.verify(run) if run.is_file() else api.verify(run)
        print_json({"run": str(run), "equal": not differences, "differences": differences})
    if not as_json:
        for line in differences:
            typer.echo(line)
        typer.echo(
            f"{run}: {len(differences)} figures differ" if differences else f"{run}: every figure recomputed equal"
        )
    return 1 if differences else 0


def evaluate(
    bench: Annotated[
        str, typer.Argument(metavar="BENCH", help="A name, pkg.mod:Class or file.py:Class.", show_default=False)
    ],
    predictions: Annotated[
        Path,
        option(
            "--predictions",
            metavar="FILE",
            help='The benchmark\'s own format, or JSONL {"id", "prediction", "evidence"?}.',
        ),
    ],
    data: Annotated[
        str | None, option("--data", metavar="PATH", help="Published data; else what was prepared, else the sample.")
    ] = None,
    subset: Annotated[
        str | None, option("--subset", metavar="S", help="A subset that the benchmark's card names.")
    ] = None,
    bench_options: Annotated[list[str] | None, option("-B", metavar="K=V", help="An option of the benchmark.")] = None,
    as_json: AsJson = False,
) -> None:
    """Score someone else's predictions with the official metrics.

    Figures have the official evaluator's own names, means and rounding.
    """
    from memharness.config import parse_pairs
    from memharness.run import api

    with json_only(as_json) as print_json:
        evaluation = api.evaluate(bench, data, predictions, parse_pairs(bench_options or [], "-B"), subset)
        print_json(vars(evaluation))
    for native_id in evaluation.unmatched[:5]:
        say(f"no question has the id {native_id!r}")
    if len(evaluation.unmatched) > 5:
        say(f"… nor {len(evaluation.unmatched) - 5:,} more of the predictions' ids")
    if evaluation.missing:
        say(f"{evaluation.missing:,} of {evaluation.n:,} questions have no prediction")
    if not as_json:
        _print_evaluation(evaluation)


def _print_evaluation(evaluation: Evaluation) -> None:
    from memharness.report.tables import SAMPLE_WARNING, console_for, put, table

    console = console_for()
    if evaluation.data_state == "sample":
        console.print(SAMPLE_WARNING, style="bold yellow")
    console.print(f"{evaluation.bench}: {evaluation.n:,} questions", style="bold")
    made = table(console, "score", ">value")
    for name, value in evaluation.scores.items():
        made.add_row(name, f"{value:.6g}")
    put(console, made)
