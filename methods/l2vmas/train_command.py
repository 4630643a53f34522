"""`memharness train l2vmas`: the modules of L²-VMAS, stage by stage."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memharness.trainers import benchmark_of, config_of, flag, model_of
from memharness.types import UserError

if TYPE_CHECKING:
    from memharness.media import MediaStore
    from memharness.methods.l2vmas.config import L2VMASConfig, ModulesConfig, TrainingConfig
    from memharness.methods.l2vmas.tasks import Score
    from memharness.methods.vmas.training import Posed

DATA, HOW, OUTPUT = "What is learned from", "How", "Output"


def modules(
    out: Annotated[Path, flag("--out", metavar="DIR", panel=OUTPUT, help="Where the modules go.")],
    reader: Annotated[str, flag("--reader", metavar="R", panel=HOW, help="The frozen model: hf:MODEL or smollm2.")],
    stage: Annotated[int, flag("--stage", metavar="1|2|3", panel=HOW, help="Which stage.")],
    start: Annotated[
        Path | None, flag("--from", metavar="DIR", panel=HOW, help="Modules of the stage before; 2 and 3 need them.")
    ] = None,
    bench: Annotated[
        str | None, flag("--bench", metavar="BENCH", panel=DATA, help="Whose questions and score.")
    ] = None,
    data: Annotated[
        Path | None, flag("--data", metavar="PATH", panel=DATA, help="Its data; none of it may be tested on.")
    ] = None,
    gqa: Annotated[
        Path | None, flag("--gqa", metavar="FILE", panel=DATA, help="GQA's questions, in place of a benchmark.")
    ] = None,
    images: Annotated[Path | None, flag("--images", metavar="DIR", panel=DATA, help="GQA's pictures.")] = None,
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
    team: Annotated[
        list[str] | None, flag("-M", metavar="K=V", panel=HOW, help="An option of l2vmas, such as turns=5.")
    ] = None,
    training: Annotated[
        list[str] | None, flag("-T", metavar="K=V", panel=HOW, help="A value of the training or the modules' shape.")
    ] = None,
    max_tokens: Annotated[int, flag("--max-tokens", metavar="N", panel=HOW, help="Of the last turn; default 64.")] = 64,
    fresh: Annotated[
        bool, flag("--fresh", panel=OUTPUT, help="Begin anew; otherwise a killed training goes on.")
    ] = False,
    as_json: Annotated[bool, flag("--json", panel=OUTPUT, help="Print one JSON object and no more.")] = False,
) -> None:
    """Train the compressors and the gate that agents share their latent memories with.

    Use them with -M modules=DIR. The model stays frozen; the same command goes on where a kill stopped it.
    """
    from memharness.config import parse_pairs
    from memharness.media import MediaStore
    from memharness.methods.l2vmas.config import L2VMASConfig, ModulesConfig, TrainingConfig
    from memharness.methods.vmas.team import settle
    from memharness.reader import LatentReader, Reader

    if stage not in (1, 2, 3):
        raise UserError(f"--stage {stage}: there are 1, 2 and 3")
    if stage > 1 and start is None:
        raise UserError(f"--stage {stage}: goes on with the modules of the stage before; name them with --from DIR")
    if max_tokens < 1 or (limit is not None and limit < 1):
        raise UserError("--max-tokens and --limit: must be at least 1")
    media = MediaStore()
    lessons: Callable[[], Coroutine[Any, Any, Lessons]]
    if bench is not None and gqa is None:
        lessons = partial(_of_benchmark, bench, data, bench_options, subset, score, limit, media)
    elif gqa is not None and bench is None:
        lessons = partial(_of_gqa, gqa, images, limit, media)
    else:
        raise UserError("train l2vmas: learn from --bench BENCH --data PATH, or from --gqa FILE --images DIR")
    words = dict(parse_pairs(training or (), "-T"))
    shaped = {name: words.pop(name) for name in list(words) if name in ModulesConfig.model_fields}
    chosen = config_of(TrainingConfig, {**words, "stage": stage}, "-T", "l2vmas").of_stage()
    made = config_of(ModulesConfig, shaped, "-T", "l2vmas")
    config = settle(config_of(L2VMASConfig, dict(parse_pairs(team or (), "-M")), "-M", "l2vmas"))
    model = model_of("readers", reader, Reader, reader_options, media)
    if not isinstance(model, LatentReader):
        raise UserError(f"--reader {reader}: cannot be decoded step by step; take hf:MODEL or smollm2")
    if fresh and out.is_dir():
        _clear(out)
    report = asyncio.run(_train(lessons, model, media, config, made, chosen, start, out, max_tokens))
    if as_json:
        typer.echo(json.dumps(report, ensure_ascii=False))
        return
    for key, value in report.items():
        typer.echo(f"{key}: {value}")


@dataclass(frozen=True)
class Lessons:
    """Questions to learn from, what an answer to one is worth, by which score, and the name of the answer prompt."""

    posed: Sequence[Posed]
    worth: Score
    score: str
    prompt: str


async def _train(
    lessons: Callable[[], Coroutine[Any, Any, Lessons]],
    model: Any,
    media: MediaStore,
    config: L2VMASConfig,
    made: ModulesConfig,
    chosen: TrainingConfig,
    start: Path | None,
    out: Path,
    max_tokens: int,
) -> dict[str, Any]:
    from memharness.identity import digest
    from memharness.methods.l2vmas.modules import Shape, content, fresh, reload
    from memharness.methods.l2vmas.tasks import episodes
    from memharness.methods.l2vmas.training import CURVE, Trainer
    from memharness.methods.vmas.training import Thread

    learned = await lessons()
    await model.start()
    try:
        shape = Shape(model.width, config.length, config.merged)
        if start is None:
            modules = fresh(shape, made, chosen.seed)
        else:
            modules, made = reload(start, shape)
        modules = modules.to(model.device)
        plays = episodes(
            learned.posed, learned.worth, model=model, media=media, config=config, synthesis=modules,
            prompt=learned.prompt, max_tokens=max_tokens, seed=chosen.seed, folder=out,
        )  # fmt: skip
        asked = [one.case.question.id for one in learned.posed]
        began = content(start) if start else ""
        task = digest([model.identity(), asked, learned.score, learned.prompt, max_tokens, began])
        await Trainer(model, Thread(), modules, shape, made, config, chosen, out, task).train(plays, _say)
    finally:
        await model.close()
    curve = [json.loads(line) for line in (out / CURVE).read_text("utf-8").splitlines()]
    return {
        "modules": str(out), "stage": chosen.stage, "questions": len(asked), "updates": len(curve),
        "actions": curve[-1]["actions"], "reward": [curve[0]["reward"], curve[-1]["reward"]],
    }  # fmt: skip


async def _of_gqa(questions: Path, images: Path | None, limit: int | None, media: MediaStore) -> Lessons:
    from memharness.methods.l2vmas.tasks import gqa, gqa_score

    if images is None or not images.is_dir():
        raise UserError(f"--images {images}: name the folder of GQA's pictures")
    if not questions.is_file():
        raise UserError(f"--gqa {questions}: no such file")
    found = list(gqa(questions, images, media, limit))
    if not found:
        raise UserError(f"{questions}: holds no question")
    return Lessons(found, gqa_score, "gqa", "direct.v1")


async def _of_benchmark(
    name: str,
    data: Path | None,
    options: Sequence[str] | None,
    subset: str | None,
    score: str | None,
    limit: int | None,
    media: MediaStore,
) -> Lessons:
    from memharness.methods.vmas.training import Reward, pose

    benchmark = benchmark_of(name, data, options, media)
    reward = Reward(benchmark, score)
    posed = await pose(benchmark, subset, limit)
    reward.of(posed[0], "")  # an unknown score is said before anything is spent
    return Lessons(posed, reward.of, score or "", benchmark.card.prompt)


def _clear(out: Path) -> None:
    """Remove what a training left, and refuse to touch anything else."""
    from memharness.methods.l2vmas.modules import CARD, WEIGHTS
    from memharness.methods.l2vmas.training import CURVE, PROGRESS, STATE

    known = {CARD, WEIGHTS, CURVE, PROGRESS, STATE, f".{STATE}"}
    strange = sorted(file.name for file in out.iterdir() if file.name not in known)
    if strange:
        raise UserError(f"--fresh: {out} holds {strange[0]}, which no training wrote; name another --out")
    shutil.rmtree(out)


def _say(line: dict[str, Any]) -> None:
    sys.stderr.write(
        f"update {line['update']} · {line['actions']:,} actions · reward {line['reward']:.3f} · kl {line['kl']:.4f}\n"
    )
