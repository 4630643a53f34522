"""`diffusers:FOLDER`: pipelines of Hugging Face diffusers, such as those of Qwen-Image, FLUX and Stable Diffusion."""

from __future__ import annotations

import inspect
import io
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from memharness.config import Config, option
from memharness.imaging import (
    ImageBackend,
    ImageBackendCard,
    ImageError,
    ImageRequest,
    Made,
    received,
    refuse_what_it_cannot,
)
from memharness.readers import device
from memharness.types import UserError

if TYPE_CHECKING:
    from PIL.Image import Image

ALL = frozenset({"generate", "edit", "compose"})
PAPER = "CMA, section 3: Qwen-Image at 50 steps, CFG 4.0"


class Ability(NamedTuple):
    """What a pipeline can do, and how many pictures it takes."""

    routes: frozenset[str]
    references: int


ABILITIES: Mapping[str, Ability] = {
    "QwenImageEditPlusPipeline": Ability(frozenset({"edit", "compose"}), 3),
    "FluxKontextPipeline": Ability(frozenset({"generate", "edit"}), 1),
    "Flux2KleinPipeline": Ability(ALL, 10),
    "Flux2Pipeline": Ability(ALL, 10),
}
"""Pipelines whose call does not say it. Of the others one that takes `image` edits one picture; the rest generate."""


class DiffusersConfig(Config):
    """How diffusers' pipelines are run."""

    edits: str = option("", "Folder or name of the pipeline that changes pictures, if it is another.")
    revision: str = option("", "Revision on the hub: a commit, so that it can be had again.")
    steps: int = option(50, "Denoising steps.", source=PAPER, ge=1)
    guidance: float = option(4.0, "Guidance (CFG).", source=PAPER, ge=0)
    dtype: Literal["auto", "f32", "f16", "bf16"] = option(
        "auto", "f32, f16 or bf16; auto: bf16 on CUDA, f32 on the CPU."
    )
    device: str = option("auto", "Torch device; `auto` takes CUDA where there is one.", how=True)


class DiffusersImages(ImageBackend):
    """One pipeline, or one that generates and one that edits.

    What its callers must know: Qwen's pipelines read their CFG from `true_cfg_scale`, which does nothing without a
    negative prompt, so a blank one is given; every reference of Qwen's editors is scaled to about one megapixel
    whatever size is asked; FLUX Kontext sizes its pictures by an area, which is set to the one asked for. Each picture
    has its own seed, drawn on the CPU, so that devices share it.
    """

    config: DiffusersConfig
    config_class: ClassVar[type[DiffusersConfig]] = DiffusersConfig

    def __init__(self, model: str, config: DiffusersConfig) -> None:
        """Find out what the pipelines can do; their weights are loaded by `start`.

        Raises:
            UserError: diffusers is not installed, or no model is named or found.
        """
        super().__init__(model, config)
        if not model:
            raise UserError("images diffusers: which pipeline? Write diffusers:FOLDER or diffusers:NAME-ON-THE-HUB")
        self._places = dict.fromkeys((model, config.edits or model))
        abilities = {place: _ability(place, config.revision) for place in self._places}
        self._by_route = {route: place for place, able in abilities.items() for route in sorted(able.routes)}
        if not config.edits:
            self._by_route |= dict.fromkeys(abilities[model].routes, model)
        self._pipelines: dict[str, Any] = {}
        self.card = ImageBackendCard(
            name="diffusers",
            model=" + ".join(map(_short, self._places)),
            routes=frozenset(self._by_route),
            max_references=max(able.references for able in abilities.values()),
            seeded=True,
        )

    def identity(self) -> Any:
        """Of the weights by their content, not by where they lie; with the numbers they are run in."""
        from importlib.metadata import version

        own = super().identity()
        options = own["options"] | {"edits": _short(self.config.edits), "dtype": self._dtype()}
        weights = [_digest(place) for place in self._places]
        return own | {"options": options, "weights": weights, "diffusers": version("diffusers")}

    def _dtype(self) -> str:
        where, name = device.pick(self.config.device), self.config.dtype
        return ("bf16" if where.startswith("cuda") else "f32") if name == "auto" else name

    async def start(self) -> None:
        """Load the pipelines.

        Raises:
            UserError: one cannot be loaded.
        """
        for place in self._places:
            if place not in self._pipelines:
                self._pipelines[place] = await device.run(self._load, place)

    def _load(self, place: str) -> Any:
        import torch
        from diffusers import DiffusionPipeline
        from diffusers.utils import logging

        logging.disable_progress_bar()
        device.quiet()
        types = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
        try:
            load: Any = DiffusionPipeline.from_pretrained
            pipeline = load(place, dtype=types[self._dtype()], revision=self.config.revision or None)
        except (OSError, ValueError, ImportError, AttributeError) as error:
            raise UserError(f"diffusers:{place}: cannot be loaded: {error}") from None
        pipeline.set_progress_bar_config(disable=True)
        return pipeline.to(device.pick(self.config.device))

    async def close(self) -> None:
        """Free the weights."""
        self._pipelines.clear()
        await device.run(device.free_memory)

    async def make(self, request: ImageRequest) -> tuple[Made, ...]:
        """See `ImageBackend.make`; out of memory and a tripped safety checker are `ImageError`s."""
        refuse_what_it_cannot(self.card, request)
        if not self._pipelines:
            raise ImageError("diffusers was not started, or is closed")
        pipeline = self._pipelines[self._by_route[request.route]]
        made = []
        for at in range(request.n):  # one at a time: some take no more, and each has its own seed
            seed = None if request.seed is None else request.seed + at
            begun = time.perf_counter()
            picture, notes = await device.run(self._picture, pipeline, replace(request, seed=seed))
            file = io.BytesIO()
            picture.save(file, "PNG")
            seconds = time.perf_counter() - begun
            made.append(received(file.getvalue(), request, seed=seed, seconds=seconds, notes=notes))
        return tuple(made)

    def _picture(self, pipeline: Any, request: ImageRequest) -> tuple[Image, tuple[str, ...]]:
        words, notes = self._words(pipeline, request)
        try:
            output = pipeline(**words)
        except (RuntimeError, MemoryError, ValueError, TypeError) as error:
            why = "out of memory" if device.short_of_memory(error) else str(error)
            raise ImageError(f"diffusers: {type(pipeline).__name__}: {why}") from None
        flagged = getattr(output, "nsfw_content_detected", None)
        if flagged and flagged[0]:
            raise ImageError("diffusers: the pipeline's safety checker blackened the picture", refused=True)
        return output.images[0], notes

    def _words(self, pipeline: Any, request: ImageRequest) -> tuple[dict[str, Any], tuple[str, ...]]:
        """The arguments of a call, as far as the pipeline takes them, and notes on those that it does not."""
        import torch

        takes = inspect.signature(pipeline.__call__).parameters
        words: dict[str, Any] = {"prompt": request.prompt, "num_inference_steps": self.config.steps}
        notes = []
        if request.images:
            from memharness.readers.pixel_edits import opened

            pictures = [opened(data) for data in request.images]
            several = type(pipeline).__name__ in ABILITIES and ABILITIES[type(pipeline).__name__].references > 1
            words["image"] = pictures if several else pictures[0]
            if "QwenImageEdit" in type(pipeline).__name__:
                notes.append("references were scaled to about one megapixel")
        if request.size is not None and "width" in takes:
            width, height = request.size
            words |= {"width": width, "height": height}
            words |= {"max_area": width * height, "_auto_resize": False} if "max_area" in takes else {}
        if request.seed is not None:
            words["generator"] = torch.Generator("cpu").manual_seed(request.seed)
        negative = request.negative
        if "true_cfg_scale" in takes and "Qwen" in type(pipeline).__name__:
            words["true_cfg_scale"] = self.config.guidance
            negative = negative or (" " if self.config.guidance > 1 else "")
        elif "guidance_scale" in takes:
            words["guidance_scale"] = self.config.guidance
        if negative and "negative_prompt" in takes:
            words["negative_prompt"] = negative
        elif negative:
            notes.append("the negative prompt was not used: the pipeline takes none")
        unknown = sorted(set(request.extra) - set(takes))
        if unknown:
            raise ImageError(f"diffusers: {type(pipeline).__name__} takes no {', '.join(unknown)}")
        return words | dict(request.extra), tuple(notes)


def _ability(place: str, revision: str) -> Ability:
    """What the pipeline of a folder, or of a name on the hub, can do, by its class.

    Raises:
        UserError: diffusers is not installed, or there is no such pipeline.
    """
    try:
        import diffusers
    except ImportError:
        raise UserError("images diffusers: needs diffusers; run `pip install 'memharness-bench[diffusion]'`") from None
    try:
        config = diffusers.DiffusionPipeline.load_config(place, revision=revision or None)
    except (OSError, ValueError) as error:
        raise UserError(
            f"diffusers:{place}: no pipeline is there (a folder with model_index.json, or a name on the hub): {error}"
        ) from None
    name = str(config.get("_class_name", ""))
    if name in ABILITIES:
        return ABILITIES[name]
    found = getattr(diffusers, name, None)
    if found is None:
        raise UserError(
            f"diffusers:{place}: its pipeline {name or '(unnamed)'} is not of diffusers {diffusers.__version__}"
        )
    edits = "image" in inspect.signature(found.__call__).parameters
    return Ability(frozenset({"edit"}), 1) if edits else Ability(frozenset({"generate"}), 0)


def _digest(place: str) -> Any:
    """Of a local folder's files; a name on the hub stands for itself, with its revision among the options."""
    from pathlib import Path

    from memharness.identity import digest
    from memharness.media import tree_digest

    return digest(tree_digest(Path(place))) if Path(place).is_dir() else place


def _short(place: str) -> str:
    from pathlib import Path

    return Path(place).name if Path(place).is_dir() else place
