"""`memharness train vmas-graph`: the graph policy of a dynamic team, by REINFORCE on a benchmark's own score."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from memharness.trainers import benchmark_of, config_of, flag, model_of
from memharness.types import UserError

DATA, HOW, OUTPUT = "What is learned from", "How", "Output"


def graph(
    bench: Annotated[str, flag("--bench", metavar="BENCH", panel=DATA, help="Whose questions and score.")],
    data: Annotated[Path, flag("--data", metavar="PATH", panel=DATA, help="Its data; none of it may be tested on.")],
    out: Annotated[Path, flag("--out", metavar="DIR", panel=OUTPUT, help="Where the policy goes.")],
    reader: Annotated[str, flag("--reader", metavar="R", panel=HOW, help="The frozen reader of all agents.")],
    subset: Annotated[str | None, flag("--subset", metavar="NAME", panel=DATA, help="A part of the data.")] = None,
    limit: Annotated[int | None, flag("--limit", metavar="N", panel=DATA, help="The first N questions only.")] = None,
    bench_options: Annotated[
        list[str] | None, flag("-B", metavar="K=V", panel=DATA, help="An option of the benchmark.")
    ] = None,
    score: Annotated[
        str | None, flag("--score", metavar="NAME", panel=DATA, help="The reward. Default: the primary score.")
    ] = None,
    reader_options: Annotated[
        list[str] | None, flag("-R", metavar="K=V", panel=HOW, help="An option of the reader.")
    ] = None,
    embedder: Annotated[
        str, flag("--embedder", metavar="E", panel=HOW, help="Of roles and questions. Default: minilm.")
    ] = "minilm",
    team: Annotated[
        list[str] | None, flag("-M", metavar="K=V", panel=HOW, help="An option of vmas, such as turns=5.")
    ] = None,
    training: Annotated[
        list[str] | None, flag("-T", metavar="K=V", panel=HOW, help="A value of the policy or its training.")
    ] = None,
    max_tokens: Annotated[int, flag("--max-tokens", metavar="N", panel=HOW, help="Of the last turn; default 64.")] = 64,
    as_json: Annotated[bool, flag("--json", panel=OUTPUT, help="Print one JSON object and no more.")] = False,
) -> None:
    """Train the graph that a dynamic team of vmas draws for each question.

    Use it with -M topology=dynamic -M graph=DIR. Replies are kept in DIR, so a killed training goes the same way again.
    """
    from memharness.media import MediaStore
    from memharness.methods.vmas.config import PolicyConfig, VmasConfig
    from memharness.methods.vmas.team import settle
    from memharness.methods.vmas.training import pose, train_graph
    from memharness.reader import Embedder, Reader

    if limit is not None and limit < 1:
        raise UserError(f"--limit {limit}: must be at least 1")
    if max_tokens < 1:
        raise UserError(f"--max-tokens {max_tokens}: must be at least 1")
    media = MediaStore()
    benchmark = benchmark_of(bench, data, bench_options, media)
    config = settle(config_of(VmasConfig, team, "-M", "vmas"))
    policy = config_of(PolicyConfig, training, "-T", "vmas-graph")
    asked = model_of("readers", reader, Reader, reader_options, media)
    vectors = model_of("embedders", embedder, Embedder, None, media)

    async def work() -> Mapping[str, Any]:
        posed = await pose(benchmark, subset, limit)
        made = await train_graph(
            benchmark, posed, asked, vectors, media, config, policy, out, max_tokens=max_tokens, score=score
        )
        return made.report()

    report = asyncio.run(work())
    if as_json:
        typer.echo(json.dumps(report, ensure_ascii=False))
        return
    for key, value in report.items():
        typer.echo(f"{key}: {value}")
