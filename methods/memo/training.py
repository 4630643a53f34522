"""Supervised fine-tuning of a causal model on samples, by transformers' Trainer; what comes of it is a checkpoint."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from memharness.config import resolved
from memharness.identity import digest
from memharness.methods.memo.recipe import Recipe
from memharness.methods.memo.samples import Sample
from memharness.readers import device
from memharness.readers.wording import Wording
from memharness.store import Appender, encode, read_lines, write_atomic
from memharness.types import UserError

if TYPE_CHECKING:
    import torch

IGNORED = -100  # what the loss of transformers passes over
INSTALL = "pip install 'memharness-bench[train]'"


@dataclass(frozen=True, slots=True)
class Encoded:
    """A sample in tokens. Prompt tokens have no part in the loss: it is over ids[prompt:], the end token included."""

    ids: list[int]
    prompt: int


@dataclass(frozen=True)
class Trained:
    """What training did.

    Attributes:
        steps: optimizer steps in all, those of an earlier process included.
        loss: of the last line of the curve.
        val_loss: mean loss of a validation sample after training; None without any.
        left_out: samples that were longer than the recipe allows.
    """

    steps: int
    loss: float | None
    val_loss: float | None
    left_out: int


class Folder:
    """What a training leaves behind: `model`, an ordinary checkpoint and nothing else, and how it came about."""

    def __init__(self, path: Path) -> None:
        """Name the places."""
        self.path = path
        self.model = path / "model"
        self.samples = path / "samples.jsonl"
        self.curve = path / "curve.jsonl"
        self.checkpoints = path / "checkpoints"
        self.settings = path / "settings.json"
        self.report = path / "report.json"

    def finish(self, report: Mapping[str, Any]) -> None:
        """Write the report, which marks the training finished, and remove the checkpoints, which are of no more use."""
        write_atomic(self.report, json.dumps(_plain(report), indent=1, ensure_ascii=False) + "\n")
        shutil.rmtree(self.checkpoints, ignore_errors=True)

    def finished(self) -> dict[str, Any] | None:
        """The report of a finished training."""
        if not self.report.is_file():
            return None
        report: dict[str, Any] = json.loads(self.report.read_text("utf-8"))
        return report

    def begin(self, settings: Mapping[str, Any], fresh: bool) -> None:
        """Begin a training with these settings, or go on with one that has the same.

        Raises:
            UserError: the folder holds another training, or something else.
        """
        if fresh and self.settings.is_file():
            for place in (self.model, self.checkpoints):
                shutil.rmtree(place, ignore_errors=True)
            for file in (self.curve, self.settings, self.report):
                file.unlink(missing_ok=True)
        if self.settings.is_file():
            before = json.loads(self.settings.read_text("utf-8"))
            if changed := [key for key in {**before, **settings} if before.get(key) != _plain(settings).get(key)]:
                raise UserError(
                    f"--out {self.path}: holds a training with other settings ({', '.join(sorted(changed))}); name "
                    "another folder, or begin anew with --fresh"
                )
            return
        if self.path.is_dir() and any(not one.name.startswith(self.samples.name) for one in self.path.iterdir()):
            raise UserError(f"--out {self.path}: is not empty and holds no training; name another folder")
        write_atomic(self.settings, json.dumps(_plain(settings), indent=1, ensure_ascii=False) + "\n")


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(encode(settings))
    return value


# --------------------------------------------------------------------------------------------------- samples in tokens


def encode_samples(samples: Sequence[Sample], wording: Wording, length: int) -> tuple[list[Encoded], int]:
    """Samples in tokens, word for word the prompts that readers make, and how many are longer than `length`.

    Raises:
        UserError: the tokenizer has no end token, or every sample is too long.
    """
    end = wording.tokenizer.eos_token_id
    if end is None:
        raise UserError("the model's tokenizer has no end token (eos_token), so replies could not be taught to end")
    made = []
    for sample in samples:
        prompt = wording.encode(sample.request).ids
        reply = wording.tokenizer.encode(sample.target, add_special_tokens=False, split_special_tokens=True)
        made.append(Encoded([*prompt, *reply, end], len(prompt)))
    kept = [one for one in made if len(one.ids) <= length]
    if made and not kept:
        shortest = min(len(one.ids) for one in made)
        raise UserError(f"-T length={length}: every sample is longer, the shortest has {shortest} tokens; raise it")
    return kept, len(made) - len(kept)


def collate(rows: Sequence[Encoded]) -> dict[str, torch.Tensor]:
    """A batch, padded on the right: input_ids, attention_mask and labels, each (rows, longest)."""
    import torch

    width = max(len(row.ids) for row in rows)
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    mask, labels = torch.zeros_like(ids), torch.full_like(ids, IGNORED)
    for at, row in enumerate(rows):
        tokens = torch.tensor(row.ids)
        ids[at, : len(tokens)], mask[at, : len(tokens)] = tokens, 1
        labels[at, row.prompt : len(tokens)] = tokens[row.prompt :]
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


# ----------------------------------------------------------------------------------------------------------- training


def train(
    source: str | Path,
    revision: str | None,
    train_samples: Sequence[Sample],
    val_samples: Sequence[Sample],
    recipe: Recipe,
    folder: Folder,
    sharing: Mapping[str, Any] | None = None,
    told: Callable[[str], None] = lambda line: None,
) -> Trained:
    """Fine-tune a model, from its last checkpoint if the folder holds one, and save it into the folder.

    Args:
        source: folder or hub name of the model.
        revision: commit on the hub.
        train_samples: what to learn.
        val_samples: whose loss is taken at the end.
        recipe: how.
        folder: where everything goes, begun.
        sharing: of `read_accelerate`.
        told: is told how it goes, a line at a time.

    Raises:
        UserError: the model cannot be loaded, LoRA is wanted and not installed, memory is short, or the loss is no
            number any more.
    """
    import torch
    import transformers

    device.quiet()
    device.set_threads(0)
    transformers.set_seed(recipe.seed)  # before the model: new adapters are drawn
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(source, revision=revision, trust_remote_code=False)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            source, revision=revision, dtype=torch.float32, use_safetensors=True, trust_remote_code=False
        )
    except (OSError, ValueError, KeyError, ImportError, RuntimeError) as error:
        raise UserError(f"--model {source}: cannot be loaded ({type(error).__name__}: {error})") from error
    if not tokenizer.chat_template:
        raise UserError(f"--model {source}: has no chat template; take the model's instruct or chat version")
    longest = min(recipe.length, getattr(model.config, "max_position_embeddings", None) or recipe.length)
    wording = Wording(tokenizer)
    rows, left_out = encode_samples(train_samples, wording, longest)
    held, _ = encode_samples(val_samples, wording, longest)
    if not rows:
        raise UserError("there is no training sample; give more data, or choose other splits with -T split_seed=N")
    if left_out:
        told(f"{left_out} of {len(train_samples)} training samples are longer than {longest} tokens: left out")
    model = _adapted(model, recipe)
    before = last_checkpoint(folder.checkpoints)
    trainer = transformers.Trainer(
        model,
        _arguments(recipe, folder, dict(sharing or {})),
        data_collator=collate,
        train_dataset=rows,
        callbacks=[_curve(folder, before, told)],
    )
    trainer.remove_callback(transformers.PrinterCallback)
    try:
        trainer.train(resume_from_checkpoint=str(before) if before else None)
        val_loss = trainer.evaluate(cast(Any, held))["eval_loss"] if held else None
    except (RuntimeError, MemoryError) as error:
        if not device.short_of_memory(error):
            raise
        raise UserError(
            f"out of memory with {recipe.batch} samples of up to {max(len(row.ids) for row in rows)} tokens at once: "
            "lower -T batch (and raise accumulate), lower -T length, set checkpoint_activations=true or how=lora, or "
            "share the model over devices with --accelerate"
        ) from error
    steps = trainer.state.global_step
    losses = [line["loss"] for line in trainer.state.log_history if "loss" in line]
    _save(trainer, tokenizer, folder)
    return Trained(steps, losses[-1] if losses else None, val_loss, left_out)


def _adapted(model: Any, recipe: Recipe) -> Any:
    if recipe.how == "full":
        return model
    try:
        import peft
    except ImportError:
        raise UserError(f"-T how=lora: needs peft, which is not installed: `{INSTALL}`; or take how=full") from None
    names = recipe.lora_targets
    config = peft.LoraConfig(
        r=recipe.lora_rank,
        lora_alpha=recipe.lora_alpha,
        lora_dropout=recipe.lora_dropout,
        target_modules=names if names == "all-linear" else [name.strip() for name in names.split(",")],
        task_type="CAUSAL_LM",
    )
    try:
        return peft.get_peft_model(model, config)
    except ValueError as error:
        raise UserError(f"-T lora_targets={names}: {error}") from None


def _arguments(recipe: Recipe, folder: Folder, sharing: dict[str, Any]) -> Any:
    import torch
    import transformers

    on_cpu = not torch.cuda.is_available()
    # Renamed in transformers 5.24; the old word is to go, and the new one is unknown to earlier versions.
    twice = "activation" if hasattr(transformers.TrainingArguments, "activation_checkpointing") else "gradient"
    varying: dict[str, Any] = {f"{twice}_checkpointing": recipe.checkpoint_activations and "fsdp" not in sharing}
    return transformers.TrainingArguments(
        output_dir=str(folder.checkpoints),
        num_train_epochs=recipe.epochs,
        max_steps=recipe.steps or -1,
        per_device_train_batch_size=recipe.batch,
        per_device_eval_batch_size=recipe.batch,
        gradient_accumulation_steps=recipe.accumulate,
        learning_rate=recipe.learning_rate,
        lr_scheduler_type=recipe.schedule,
        warmup_steps=recipe.warmup,
        weight_decay=recipe.weight_decay,
        max_grad_norm=recipe.clip,
        optim="adamw_torch",
        bf16=recipe.dtype == "bf16",
        seed=recipe.seed,
        logging_steps=recipe.log_every,
        logging_first_step=True,
        logging_nan_inf_filter=False,
        save_strategy="steps",
        save_steps=recipe.save_every,
        save_total_limit=2,
        use_cpu=on_cpu,
        dataloader_pin_memory=not on_cpu,
        remove_unused_columns=False,
        report_to=[],
        disable_tqdm=True,
        label_names=["labels"],
        **varying,
        **sharing,
    )


def last_checkpoint(folder: Path) -> Path | None:
    """The newest whole checkpoint: a kill may leave one without its state, which is written last."""
    found = [path for path in folder.glob("checkpoint-*") if (path / "trainer_state.json").is_file()]
    return max(found, key=lambda path: int(path.name.rpartition("-")[2]), default=None)


def _curve(folder: Folder, before: Path | None, told: Callable[[str], None]) -> Any:
    """A callback that appends a JSON line for each log: step, epoch, loss, learning_rate, grad_norm."""
    import transformers

    done = int(before.name.rpartition("-")[2]) if before else 0

    class Curve(transformers.TrainerCallback):
        file: Appender | None = None

        def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            if state.is_world_process_zero:
                _cut(folder.curve, done)
                self.file = Appender(folder.curve)

        def on_log(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            logs: dict[str, float] = more["logs"]
            if self.file is None or "loss" not in logs:
                return
            if not math.isfinite(logs["loss"]):
                raise UserError(
                    f"the loss is {logs['loss']} at step {state.global_step}: lower -T learning_rate, or take f32; the "
                    f"curve so far is {folder.curve}"
                )
            self.file.add({"step": state.global_step, **logs})
            told(f"step {state.global_step} of {state.max_steps}: loss {logs['loss']:.4f}")

        def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            if self.file is not None:
                self.file.close()
                self.file = None

    return Curve()


def _cut(curve: Path, step: int) -> None:
    """Leave out what was logged past the checkpoint from which training goes on."""
    if curve.is_file():
        kept = [line for _, line in read_lines(curve) if line["step"] <= step]
        write_atomic(curve, "".join(f"{encode(line)}\n" for line in kept))


def _save(trainer: Any, tokenizer: Any, folder: Folder) -> None:
    """The model, adapters merged, with tokenizer and chat template."""
    model = trainer.accelerator.unwrap_model(trainer.model)
    state = trainer.accelerator.get_state_dict(trainer.model) if trainer.is_fsdp_enabled else None
    if hasattr(model, "merge_and_unload"):
        model, state = model.merge_and_unload(), None
    if trainer.is_world_process_zero():
        model.save_pretrained(folder.model, state_dict=state)
        tokenizer.save_pretrained(folder.model)
    trainer.accelerator.wait_for_everyone()


def settings(
    role: str, model: Mapping[str, Any], samples: Mapping[str, Sequence[Sample]], recipe: Recipe
) -> dict[str, Any]:
    """What makes two trainings the same: role, model by content, recipe, and the samples of each split by content."""
    named = {split: digest([[one.id, one.group, one.target] for one in held]) for split, held in samples.items()}
    return {"role": role, "model": dict(model), "recipe": resolved(recipe), "samples": named}


def is_main_process() -> bool:
    """Whether this is the only process, or the first of several."""
    return int(os.environ.get("RANK", "0")) == 0
