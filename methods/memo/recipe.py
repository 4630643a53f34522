"""How a model is trained: the recipe, and an accelerate config for several processes. Both are files of values."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml

from memharness.config import Config, build, option
from memharness.types import UserError, did_you_mean

DEFAULT = "small"
C = TypeVar("C", bound=Config)


class Recipe(Config):
    """Supervised fine-tuning of an extractor or a manager (paper eq. 2 and 4: the loss is over the target alone).

    The paper fine-tunes all parameters of Qwen2.5-1.5B-Instruct; it does not state learning rate, epochs or batch.
    """

    budget: int = option(128, "Memory budget B that the prompts state.", source="paper §4", unit="tokens", ge=1)
    records: int = option(64, "Most records in an extractor's prompt.", unit="records", ge=1)
    length: int = option(4096, "Longest sample. A longer one is left out and counted, never cut.", unit="tokens", ge=16)
    how: Literal["full", "lora"] = option(
        "full", "Train all parameters, or LoRA adapters that are then merged.", source="paper §4"
    )
    lora_rank: int = option(16, "Rank of the adapters.", source="Hu et al. 2021, arXiv:2106.09685", ge=1)
    lora_alpha: int = option(32, "Scale of the adapters: they count alpha / rank.", ge=1)
    lora_dropout: float = option(0.0, "Dropout before the adapters.", ge=0, lt=1)
    lora_targets: str = option("all-linear", "Layers with adapters: peft's `all-linear`, or names with commas.")
    dtype: Literal["f32", "bf16"] = option("f32", "Arithmetic; weights and optimizer stay f32, so bf16 is mixed.")
    epochs: float = option(3.0, "Passes over the training samples.", gt=0)
    steps: int = option(0, "Optimizer steps; 0 goes by epochs.", ge=0)
    batch: int = option(8, "Samples a device computes at once.", unit="samples", ge=1)
    accumulate: int = option(1, "Batches an optimizer step adds up.", unit="batches", ge=1)
    learning_rate: float = option(2e-5, "Peak of the schedule.", gt=0)
    schedule: Literal["linear", "cosine", "constant", "constant_with_warmup"] = option("cosine", "How it falls.")
    warmup: float = option(0.03, "Share of the steps in which it rises.", ge=0, lt=1)
    weight_decay: float = option(0.0, "Of AdamW.", ge=0)
    clip: float = option(1.0, "Largest norm of the gradient.", gt=0)
    checkpoint_activations: bool = option(False, "Compute activations twice instead of keeping them.", how=True)
    log_every: int = option(10, "Steps between two lines of the curve.", unit="steps", how=True, ge=1)
    save_every: int = option(100, "Steps between two checkpoints.", unit="steps", how=True, ge=1)
    seed: int = option(0, "Order of samples, adapters and dropout.", ge=0)
    split_seed: int = option(0, "Which groups are held out.", ge=0)


def read_recipe(named: str | None, changes: Mapping[str, Any]) -> Recipe:
    """A recipe: one that comes with MEMO, by name, or a YAML file; single values may be changed.

    Raises:
        UserError: there is no such recipe, the file is no mapping, or a field or value of it is not one of `Recipe`.
    """
    name = named or DEFAULT
    folder = resources.files(__package__) / "recipes"
    known = sorted(file.name.removesuffix(".yaml") for file in folder.iterdir() if file.name.endswith(".yaml"))
    if name in known:
        values, flag = _yaml((folder / f"{name}.yaml").read_text("utf-8"), f"--recipe {name}"), f"--recipe {name}:"
    elif Path(name).suffix in (".yaml", ".yml"):
        values, flag = _read(Path(name), "--recipe"), f"--recipe {name}:"
    else:
        raise UserError(
            f"--recipe {name}: no such recipe{did_you_mean(name, known)}; name a YAML file or {', '.join(known)}"
        )
    stated(Recipe, values, flag, "the recipe")  # so that a mistake in the file is not blamed on the words
    return stated(Recipe, {**values, **changes}, "-T", "the recipe")


def stated(kind: type[C], values: Mapping[str, Any], flag: str, owner: str) -> C:
    """A config of training, which is no plug-in that `memharness show` could print.

    Raises:
        UserError: as `memharness.config.build`.
    """
    try:
        return build(kind, values, flag, owner)
    except UserError as error:
        raise UserError(f"{str(error).partition(' (see `')[0]}; methods/memo/TRAINING.md says what there is") from None


def _read(path: Path, flag: str) -> dict[str, Any]:
    try:
        return _yaml(path.read_text("utf-8"), f"{flag} {path}")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{flag} {path}: {getattr(error, 'strerror', None) or error}") from None


def _yaml(text: str, where: str) -> dict[str, Any]:
    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UserError(f"{where}: not YAML ({error})") from None
    if not isinstance(values, Mapping):
        raise UserError(f"{where}: expected fields by name, such as `batch: 8`")
    return {str(key): value for key, value in values.items()}


# ---------------------------------------------------------------------------------------------- several processes

KINDS = ("NO", "MULTI_GPU", "MULTI_CPU", "FSDP")
FIELDS = (
    *("compute_environment", "debug", "distributed_type", "downcast_bf16", "enable_cpu_affinity", "fsdp_config"),
    *("gpu_ids", "machine_rank", "main_process_ip", "main_process_port", "main_training_function", "mixed_precision"),
    *("num_machines", "num_processes", "rdzv_backend", "same_network", "use_cpu"),
)
"""Fields of an accelerate config file that have a meaning here or do no harm."""
WRAPPING = ("TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP", "NO_WRAP")
STATES = ("FULL_STATE_DICT", "SHARDED_STATE_DICT")
_YES: tuple[type, ...] = (bool,)
FSDP_FIELDS: Mapping[str, tuple[type, ...]] = {
    "version": (int,),
    "reshard_after_forward": _YES,
    "auto_wrap_policy": (str,),
    "transformer_layer_cls_to_wrap": (str, list),
    "min_num_params": (int,),
    "state_dict_type": (str,),
    "cpu_offload": _YES,
    "offload_params": _YES,
    "cpu_ram_efficient_loading": _YES,
    "activation_checkpointing": _YES,
}
"""Fields of its `fsdp_config`, with or without `fsdp_` before them (FSDP2)."""


def read_accelerate(path: Path | None, recipe: Recipe, world: int | None = None) -> dict[str, Any]:
    """What an accelerate config file says to transformers' TrainingArguments; nothing without a file.

    The file is what `accelerate config` writes. What it asks for must be what the recipe and the launcher do: a field
    that would be passed over in silence is an error.

    Args:
        path: the file.
        recipe: whose `dtype` its `mixed_precision` must be.
        world: processes there are; by default what the launcher says.

    Raises:
        UserError: naming file and field.
    """
    world = int(os.environ.get("WORLD_SIZE", "1")) if world is None else world
    if path is None:
        return {}
    values, where = _read(path, "--accelerate"), f"--accelerate {path}"
    _known(values, FIELDS, where)
    kind = _one_of(values.get("distributed_type", "NO"), KINDS, f"{where}: distributed_type")
    precision = values.get("mixed_precision", "no")
    if (
        precision is not False and str(precision) != {"f32": "no", "bf16": "bf16"}[recipe.dtype]
    ):  # YAML reads no as false
        raise UserError(
            f"{where}: mixed_precision: is {precision}, and the recipe's dtype {recipe.dtype}; make them one"
        )
    if precision is False and recipe.dtype != "f32":
        raise UserError(f"{where}: mixed_precision: is no, and the recipe's dtype {recipe.dtype}; make them one")
    wanted = values.get("num_processes", 1)
    if type(wanted) is not int or wanted < 1:
        raise UserError(f"{where}: num_processes: is {wanted!r}, not a number of processes")
    if wanted != world:
        start = f"torchrun --nproc-per-node {wanted} -m memharness train …"
        raise UserError(f"{where}: num_processes: is {wanted}, and there are {world}; start with `{start}`")
    if kind != "FSDP":
        if values.get("fsdp_config"):
            raise UserError(f"{where}: fsdp_config: has a meaning only with distributed_type FSDP, not {kind}")
        return {}
    if recipe.how == "lora":
        raise UserError(f"{where}: distributed_type: adapters cannot be merged under FSDP; take MULTI_GPU, or how=full")
    fsdp = values.get("fsdp_config")
    if not isinstance(fsdp, Mapping):
        raise UserError(f"{where}: fsdp_config: is missing or no mapping; `accelerate config` writes one")
    return {"fsdp": True, "fsdp_config": _fsdp(fsdp, f"{where}: fsdp_config")}


def _fsdp(given: Mapping[str, Any], where: str) -> dict[str, Any]:
    values = {str(key).removeprefix("fsdp_"): value for key, value in given.items()}
    _known(values, FSDP_FIELDS, where)
    for key, value in values.items():
        if type(value) not in FSDP_FIELDS[key]:
            kinds = " or ".join(kind.__name__ for kind in FSDP_FIELDS[key])
            raise UserError(f"{where}: {key}: is {value!r}, not of type {kinds}")
    if values.get("version", 2) != 2:
        raise UserError(f"{where}: version: is {values['version']}; this trainer takes FSDP2, so 2")
    _one_of(values.get("auto_wrap_policy", WRAPPING[0]), WRAPPING, f"{where}: auto_wrap_policy")
    _one_of(values.get("state_dict_type", STATES[0]), STATES, f"{where}: state_dict_type")
    if "offload_params" in values:  # accelerate's name for it
        values["cpu_offload"] = values.pop("offload_params")
    return values


def _known(values: Mapping[str, Any], known: Any, where: str) -> None:
    for key in values:
        if key not in known:
            raise UserError(
                f"{where}: {key}: no such field here{did_you_mean(key, known)}; there are: {', '.join(known)}"
            )


def _one_of(value: object, known: tuple[str, ...], where: str) -> str:
    if value not in known:
        raise UserError(f"{where}: is {value!r}{did_you_mean(str(value), known)}; it may be {', '.join(known)}")
    return str(value)
