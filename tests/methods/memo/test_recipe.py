"""Recipes and accelerate configs: values in files, each mistake named by file and field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from memharness.methods.memo import recipe as module
from memharness.methods.memo.recipe import Recipe, read_accelerate, read_recipe
from memharness.types import UserError

RECIPES = Path(module.__file__).parent / "recipes"


def test_the_recipe_of_the_paper_differs_from_the_small_one_in_values_only() -> None:
    small, qwen = (yaml.safe_load((RECIPES / f"{name}.yaml").read_text("utf-8")) for name in ("small", "qwen2.5-1.5b"))
    assert list(small) == list(qwen)
    assert small != qwen
    assert (read_recipe("qwen2.5-1.5b", {}).how, read_recipe("qwen2.5-1.5b", {}).dtype) == ("full", "bf16")


def test_a_file_and_words_over_it(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("batch: 3\nlearning_rate: 1.0e-4\n", "utf-8")
    assert read_recipe(str(file), {"batch": "5"}) == Recipe(batch=5, learning_rate=1e-4)
    assert read_recipe(None, {}) == read_recipe("small", {})


@pytest.mark.parametrize(
    ("content", "changes", "said"),
    [
        ("bach: 3", {}, r"--recipe .*mine\.yaml: bach: .*did you mean batch"),
        ("batch: none", {}, r"--recipe .*mine\.yaml: batch='none'"),
        ("batch: 0", {}, r"--recipe .*mine\.yaml: batch=0: .*greater than or equal to 1"),
        ("- batch", {}, r"mine\.yaml: expected fields by name"),
        ("batch: [", {}, r"mine\.yaml: not YAML"),
        ("batch: 3", {"seed": "x"}, r"-T seed='x'"),
        ("batch: 3", {"dtype": "f8"}, r"-T dtype='f8'.*'f32' or 'bf16'"),
        ("batch: 3", {"sed": "1"}, r"-T sed: .*did you mean seed"),
    ],
)
def test_mistakes_in_a_recipe(tmp_path: Path, content: str, changes: dict[str, str], said: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(content, "utf-8")
    with pytest.raises(UserError, match=said):
        read_recipe(str(file), changes)


@pytest.mark.parametrize(
    ("name", "said"),
    [("smal", "did you mean small.* qwen2.5-1.5b, small"), ("gone.yaml", r"--recipe gone\.yaml: No such file")],
)
def test_a_recipe_that_is_not_there(name: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        read_recipe(name, {})


# ---------------------------------------------------------------------------------------------- several processes

FSDP: dict[str, Any] = {
    "compute_environment": "LOCAL_MACHINE",
    "distributed_type": "FSDP",
    "mixed_precision": "bf16",
    "num_machines": 1,
    "num_processes": 8,
    "fsdp_config": {
        "fsdp_version": 2,
        "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "fsdp_transformer_layer_cls_to_wrap": "Qwen2DecoderLayer",
        "fsdp_offload_params": False,
        "fsdp_state_dict_type": "FULL_STATE_DICT",
        "fsdp_activation_checkpointing": True,
    },
}
BF16 = Recipe(dtype="bf16")


def config(tmp_path: Path, values: Any) -> Path:
    path = tmp_path / "accelerate.yaml"
    path.write_text(yaml.safe_dump(values), "utf-8")
    return path


def test_fsdp_becomes_the_arguments_of_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    values = read_accelerate(config(tmp_path, FSDP), BF16, world=8)
    assert values["fsdp"] is True
    assert values["fsdp_config"]["cpu_offload"] is False
    made = transformers.TrainingArguments(output_dir=str(tmp_path), use_cpu=True, **values)
    assert made.fsdp_plugin_args["fsdp_version"] == 2
    assert made.fsdp_plugin_args["transformer_cls_names_to_wrap"] == "Qwen2DecoderLayer"
    assert made.fsdp_plugin_args["activation_checkpointing"] is True


def test_no_file_and_plain_processes_ask_for_nothing(tmp_path: Path) -> None:
    assert read_accelerate(None, BF16, world=8) == {}
    plain = {"distributed_type": "MULTI_CPU", "num_processes": 2, "mixed_precision": "no"}
    assert read_accelerate(config(tmp_path, plain), Recipe(), world=2) == {}


def changed(**changes: Any) -> dict[str, Any]:
    return {**FSDP, **changes}


def fsdp(**changes: Any) -> dict[str, Any]:
    return changed(fsdp_config={**FSDP["fsdp_config"], **changes})


@pytest.mark.parametrize(
    ("values", "world", "said"),
    [
        (changed(mixed_precison="bf16"), 8, "mixed_precison: no such field here .*did you mean mixed_precision"),
        (changed(deepspeed_config={}), 8, "deepspeed_config: no such field here"),
        (changed(distributed_type="DEEPSPEED"), 8, "distributed_type: is 'DEEPSPEED'.* FSDP"),
        (changed(mixed_precision="no"), 8, "mixed_precision: is no, and the recipe's dtype bf16"),
        (changed(mixed_precision="fp16"), 8, "mixed_precision: is fp16, and the recipe's dtype bf16"),
        (changed(num_processes="many"), 8, "num_processes: is 'many', not a number"),
        (FSDP, 1, "num_processes: is 8, and there are 1; start with `torchrun --nproc-per-node 8"),
        (changed(fsdp_config=None), 8, "fsdp_config: is missing or no mapping"),
        (changed(distributed_type="MULTI_GPU"), 8, "fsdp_config: has a meaning only with distributed_type FSDP"),
        (fsdp(fsdp_cpu_ofload=True), 8, "fsdp_config: cpu_ofload: no such field here .*did you mean cpu_offload"),
        (fsdp(fsdp_version=1), 8, "fsdp_config: version: is 1; .* so 2"),
        (fsdp(fsdp_offload_params="yes"), 8, "fsdp_config: offload_params: is 'yes', not of type bool"),
        (fsdp(fsdp_auto_wrap_policy="BY_HAND"), 8, "fsdp_config: auto_wrap_policy: is 'BY_HAND'"),
        (fsdp(fsdp_state_dict_type="LOCAL_STATE_DICT"), 8, "fsdp_config: state_dict_type: is 'LOCAL_STATE_DICT'"),
        ([1], 8, "expected fields by name"),
    ],
)
def test_mistakes_in_an_accelerate_config(tmp_path: Path, values: Any, world: int, said: str) -> None:
    with pytest.raises(UserError, match=rf"--accelerate .*accelerate\.yaml: {said}"):
        read_accelerate(config(tmp_path, values), BF16, world)


def test_adapters_are_not_sharded(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="adapters cannot be merged under FSDP"):
        read_accelerate(config(tmp_path, FSDP), Recipe(dtype="bf16", how="lora"), world=8)


def test_an_accelerate_config_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"--accelerate .*gone\.yaml: No such file"):
        read_accelerate(tmp_path / "gone.yaml", BF16, 1)
