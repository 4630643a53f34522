"""`diffusers:FOLDER`: pipelines of Hugging Face diffusers, such as those of Qwen-Image, FLUX and Stable Diffusion."""

from __future__ import annotations

import functools
import inspect
import io
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
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

_HUB = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?")


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


@dataclass(frozen=True)
class Checkpoint:
    """A pipeline at one revision.

    Attributes:
        source: its folder, or `OWNER/NAME` on the hub.
        name: without a path.
        commit: the hub's commit to load; None for a folder.
        able: what its class can do.
    """

    source: str
    name: str
    commit: str | None
    able: Ability

    def revision(self) -> str:
        """What pins it: the commit, or a digest of the folder's files."""
        from memharness.identity import digest
        from memharness.media import tree_digest

        return self.commit or digest(tree_digest(Path(self.source)))


class DiffusersConfig(Config):
    """How diffusers' pipelines are run."""

    edits: str = option("", "Folder, or OWNER/NAME@REVISION, of the pipeline that changes pictures, if it is another.")
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
            raise UserError("images diffusers: which pipeline? Write diffusers:FOLDER or diffusers:OWNER/NAME")
        self._checkpoints = [_find(place) for place in dict.fromkeys((model, config.edits or model))]
        # Where both pipelines can do a thing, the one named for edits does what starts from pictures.
        self._by_route = {
            route: checkpoint
            for checkpoint in self._checkpoints
            for route in sorted(checkpoint.able.routes)
            if route != "generate" or checkpoint is self._checkpoints[0]
        }
        self._pipelines: dict[str, Any] = {}
        self.card = ImageBackendCard(
            name="diffusers",
            model=" + ".join(checkpoint.name for checkpoint in self._checkpoints),
            routes=frozenset(self._by_route),
            max_references=max(checkpoint.able.references for checkpoint in self._by_route.values()),
            seeded=True,
        )

    def identity(self) -> Any:
        """Of the weights by their content, not by where they lie; with the numbers they are run in."""
        from importlib.metadata import version

        own = super().identity()
        options = own["options"] | {"edits": self._checkpoints[-1].name, "dtype": self._dtype()}
        named = {"model": self.card.model, "options": options, "weights": self._weights}
        return own | named | {"diffusers": version("diffusers")}

    @functools.cached_property
    def _weights(self) -> list[str]:
        return [checkpoint.revision() for checkpoint in self._checkpoints]

    def _dtype(self) -> str:
        where, name = device.pick(self.config.device), self.config.dtype
        return ("bf16" if where.startswith("cuda") else "f32") if name == "auto" else name

    async def start(self) -> None:
        """Load the pipelines.

        Raises:
            UserError: one cannot be loaded.
        """
        for checkpoint in self._checkpoints:
            if checkpoint.source not in self._pipelines:
                self._pipelines[checkpoint.source] = await device.run(self._load, checkpoint)

    def _load(self, checkpoint: Checkpoint) -> Any:
        import torch
        from diffusers import DiffusionPipeline
        from diffusers.utils import logging

        logging.disable_progress_bar()
        device.quiet()
        types = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
        try:
            load: Any = DiffusionPipeline.from_pretrained
            pipeline = load(checkpoint.source, dtype=types[self._dtype()], revision=checkpoint.commit)
        except (OSError, ValueError, ImportError, AttributeError) as error:
            raise UserError(f"diffusers:{checkpoint.source}: cannot be loaded: {error}") from None
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
        pipeline = self._pipelines[self._by_route[request.route].source]
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
        scale = "true_cfg_scale" if "true_cfg_scale" in takes else "guidance_scale"
        if "guidance_scale" in takes and (scale == "guidance_scale" or "Qwen" not in type(pipeline).__name__):
            words["guidance_scale"] = self.config.guidance
        elif scale in takes:
            words[scale] = self.config.guidance
        guided = float(request.extra.get(scale, words.get(scale, 1))) > 1
        # Qwen's guidance does nothing without a negative prompt, which only a line of its log says.
        negative = request.negative or (" " if guided and "Qwen" in type(pipeline).__name__ else "")
        if negative and "negative_prompt" not in takes:
            notes.append("the negative prompt was not used: the pipeline takes none")
        elif negative:
            words["negative_prompt"] = negative
            notes += [] if guided else [f"the negative prompt has no effect: {scale} is not above 1"]
        unknown = sorted(set(request.extra) - set(takes))
        if unknown:
            raise ImageError(f"diffusers: {type(pipeline).__name__} takes no {', '.join(unknown)}")
        return words | dict(request.extra), tuple(notes)


def _find(place: str) -> Checkpoint:
    """The pipeline of a folder, or of a name on the hub at the commit that its revision stands for now.

    Raises:
        UserError: diffusers is not installed, or there is no such pipeline.
    """
    try:
        import diffusers  # noqa: F401
    except ImportError:
        raise UserError("images diffusers: needs diffusers; run `pip install 'memharness-bench[diffusion]'`") from None
    folder = Path(place).expanduser()
    if folder.is_dir():
        return Checkpoint(str(folder), folder.resolve().name, None, _ability(place, folder / "model_index.json"))
    named = _HUB.fullmatch(place)
    if named is None:
        raise UserError(f"diffusers:{place}: no such folder; write diffusers:FOLDER or diffusers:OWNER/NAME@REVISION")
    index = _fetched(named["name"], named["revision"])
    return Checkpoint(named["name"], named["name"], index.parent.name, _ability(place, index))


def _fetched(name: str, revision: str | None) -> Path:
    """A hub pipeline's index, whose folder is named by the commit; offline, as it was when it was fetched."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return Path(hf_hub_download(name, "model_index.json", revision=revision))
    except LocalEntryNotFoundError as error:
        raise UserError(f"diffusers:{name}: not on this machine, and the hub cannot be reached ({error})") from None
    except (HfHubHTTPError, OSError, ValueError) as error:
        raise UserError(
            f"diffusers:{name}: the hub gives no pipeline ({error}); check name and revision, and log in if it is gated"
        ) from None


def _ability(place: str, index: Path) -> Ability:
    """What a pipeline can do, by the class that its index names.

    Raises:
        UserError: there is no index, or no such class.
    """
    import diffusers

    try:
        name = str(json.loads(index.read_text(encoding="utf-8"))["_class_name"])
    except OSError:
        raise UserError(f"diffusers:{place}: no pipeline is there: it has no model_index.json") from None
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{index}: names no pipeline in _class_name; fetch the model again") from None
    if name in ABILITIES:
        return ABILITIES[name]
    found = getattr(diffusers, name, None)
    if found is None:
        raise UserError(f"diffusers:{place}: its pipeline {name} is not of diffusers {diffusers.__version__}")
    edits = "image" in inspect.signature(found.__call__).parameters
    return Ability(frozenset({"edit"}), 1) if edits else Ability(frozenset({"generate"}), 0)
