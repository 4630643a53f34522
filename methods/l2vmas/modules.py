"""Trained modules on disk: weights as safetensors, and as JSON what they are and how they were trained."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from memharness.config import build, resolved
from memharness.identity import digest, file_digest
from memharness.methods.l2vmas.config import ModulesConfig
from memharness.methods.l2vmas.synthesis import Learned
from memharness.store import write_atomic
from memharness.types import UserError

WEIGHTS, CARD = "modules.safetensors", "modules.json"


@dataclass(frozen=True)
class Shape:
    """What modules must fit: the model's width d, and the lengths L and of a merged value."""

    width: int
    length: int
    merged: int


def fresh(shape: Shape, config: ModulesConfig, seed: int) -> Learned:
    """Untrained modules, drawn from a seed without touching torch's own generator."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Learned(
            shape.width,
            length=shape.length,
            merged=shape.merged,
            inner=config.inner or shape.width,
            layers=config.layers,
            heads=config.heads,
            residual=config.residual,
            gate=config.gate,
            positions=config.positions,
        )


def save(modules: Learned, folder: Path, shape: Shape, config: ModulesConfig, told: Mapping[str, Any]) -> None:
    """Write modules. The card comes last: a folder without it is none.

    Args:
        modules: to write.
        folder: made if need be; what is in it is replaced.
        shape: of the model they were trained for.
        config: of the modules.
        told: what else the card says: model, stage, steps, curve …
    """
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    (folder / CARD).unlink(missing_ok=True)
    save_file(
        {name: tensor.detach().cpu().contiguous() for name, tensor in modules.state_dict().items()}, folder / WEIGHTS
    )
    card = {"shape": vars(shape), "config": resolved(config), "trained": dict(told)}
    write_atomic(folder / CARD, json.dumps(card, indent=1, sort_keys=True) + "\n")


def load(folder: Path, shape: Shape) -> Learned:
    """Modules in eval mode whose weights take no gradient, on the CPU in f32; see `reload`."""
    return reload(folder, shape)[0].eval().requires_grad_(False)


def reload(folder: Path, shape: Shape) -> tuple[Learned, ModulesConfig]:
    """Modules as they were written, and their config.

    Raises:
        UserError: they are missing, damaged, or made for another model or other lengths.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    card = _card(folder)
    for name, wanted in vars(shape).items():
        if card["shape"].get(name) != wanted:
            options = {"width": "the model they were trained with", "length": "-M length", "merged": "-M merged"}
            raise UserError(
                f"-M modules={folder}: {name} {card['shape'].get(name)}, and here it is {wanted}; use {options[name]}"
            )
    config = build(ModulesConfig, card["config"], str(folder / CARD), "config")
    modules = fresh(shape, config, 0)
    try:
        modules.load_state_dict(load_file(folder / WEIGHTS))
    except (OSError, SafetensorError, RuntimeError) as error:
        raise UserError(f"{folder / WEIGHTS}: {_one_line(error)}; train the modules again") from None
    return modules, config


def content(folder: Path) -> str:
    """Digest of the modules' content, which stands for them in a run's identity.

    Raises:
        UserError: for a file that is missing or damaged.
    """
    card = _card(folder)
    try:
        return digest([file_digest(folder / WEIGHTS), card["shape"], card["config"]])
    except OSError as error:
        raise UserError(f"{folder / WEIGHTS}: {_one_line(error)}; train the modules again") from None


def _card(folder: Path) -> dict[str, Any]:
    file = folder / CARD
    try:
        card = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{file}: {_one_line(error)}; -M modules takes the folder of trained modules") from None
    if not isinstance(card, dict) or not all(isinstance(card.get(name), dict) for name in ("shape", "config")):
        raise UserError(f"{file}: shape or config: missing or not an object; train the modules again")
    return card


def _one_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
