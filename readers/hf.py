"""`hf:MODEL`: any chat model that transformers itself knows, of words or of words and pictures, in this process."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from memharness.config import Config, option
from memharness.identity import digest
from memharness.media import MediaStore
from memharness.reader import ReaderCard
from memharness.readers.counters import NetworkCounter
from memharness.readers.latent import LatentConfig, LatentDecoding
from memharness.readers.network import DTYPES, Network
from memharness.types import UserError

WEIGHTS = frozenset({".safetensors", ".json", ".jinja", ".txt", ".model"})  # the files of a folder that are the model
OWN_CODE = {
    "llavaonevision1_5": "LLaVA-OneVision-1.5 is not among the models of transformers, and the code that comes with "
    "its checkpoints was written for transformers 4 and does not run on 5: serve it from an environment of its own "
    "(transformers 4.57, or an engine that has it) and ask it through openai:MODEL",
    "internvl_chat": "this is InternVL's original checkpoint, which brings code of its own; use the one whose name "
    "ends in -HF",
}

_HUB = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?")


class HFConfig(LatentConfig):
    """How a model is loaded and asked."""

    dtype: Literal["auto", "f32", "bf16", "f16"] = option(
        "auto",
        "Number format of the weights; `auto` takes the checkpoint's own. In f32 a greedy reply is the same in every "
        "batch; in bf16 and f16 it need not be.",
    )
    attention: str = option(
        "auto", "Attention backend by transformers' name (sdpa, eager, flash_attention_2 …); `auto` lets it choose."
    )
    thinking: Literal["auto", "on", "off"] = option(
        "auto", "`enable_thinking` of the chat template, where it has that; `auto` leaves it to the template."
    )
    reasoning_room: int = option(
        0, "Tokens added to every output limit, for models that think within it.", unit="tokens", ge=0
    )
    device_map: str = option(
        "auto",
        "A torch device, or accelerate's `balanced` or `sequential`; `auto` is several GPUs as accelerate shares them "
        "out, else the GPU there is, else the CPU.",
        how=True,
    )


class HFReader(LatentDecoding):
    """A model of the hub or of a folder, by AutoModelForImageTextToText if its config has a vision part.

    Pictures go through the model's own processor. Qwen3-VL, GLM-4.1V and InternVL (the -HF checkpoints) are tested, and
    batched with pictures; so are models of words only. Other families with pictures run one such request at a time.

    A hub model's revision is the commit that `OWNER/NAME@REVISION` (by default `main`) stands for when the run is set
    up, and just that commit is loaded; a folder's is a digest of the files that make up the model. Code that comes with
    a model is never run.

    Decoding is as the request says: sampling settings of the checkpoint's generation_config (top-k, repetition penalty)
    are not used, its end tokens are. transformers has no constrained decoding of its own, so there is no capability
    `schema`.
    """

    config: HFConfig
    config_class: ClassVar[type[Config]] = HFConfig

    def __init__(self, model: str, config: HFConfig, media: MediaStore) -> None:
        """Find the checkpoint and read its config.

        Raises:
            UserError: there is no such model, or it is of a kind that cannot be run.
        """
        self._checkpoint = checkpoint = find(model, media)
        reason = OWN_CODE.get(str(checkpoint.config.get("model_type")))
        if reason:
            raise UserError(f"hf:{model}: {reason}")
        card = ReaderCard(
            "hf",
            checkpoint.name,
            checkpoint.revision,
            "transformers",
            checkpoint.dtype if config.dtype == "auto" else config.dtype,
            window=checkpoint.window,
            capabilities=frozenset({"image"} if "vision_config" in checkpoint.config else ()),
        )
        counter = NetworkCounter(f"{checkpoint.name}@{checkpoint.revision[:8]}", checkpoint.source, checkpoint.commit)
        super().__init__(model, config, media, card, counter)

    def load(self) -> Network:
        """Load weights, tokenizer and processor at the pinned revision."""
        config = self.config
        thinking = {} if config.thinking == "auto" else {"enable_thinking": config.thinking == "on"}
        return Network.load(
            self._checkpoint.source,
            revision=self._checkpoint.commit,
            dtype=self.card.dtype,
            device_map=config.device_map,
            attention=config.attention,
            template=thinking,
        )

    @property
    def room(self) -> int:
        """Tokens added to every output limit."""
        return self.config.reasoning_room


@dataclass(frozen=True)
class Checkpoint:
    """A model at one revision.

    Attributes:
        source: its folder, or `OWNER/NAME` on the hub.
        name: without a path.
        revision: what pins it: commit on the hub, or digest of the folder's files.
        commit: the commit to load; None for a folder.
        config: its config.json.
    """

    source: str
    name: str
    revision: str
    commit: str | None
    config: Mapping[str, Any]

    @property
    def dtype(self) -> str:
        """Number format of the stored weights, `f32` if the config names none that has a name here."""
        names = {long: short for short, long in DTYPES.items()}
        return names.get(str(self._setting("dtype") or self._setting("torch_dtype")), "f32")

    @property
    def window(self) -> int | None:
        """Tokens of prompt and output together, if the config says."""
        window = self._setting("max_position_embeddings")
        return None if window is None else int(window)

    def _setting(self, name: str) -> Any:
        """A setting of the whole model or, failing that, of its language part."""
        return self.config.get(name) or (self.config.get("text_config") or {}).get(name)


def find(model: str, media: MediaStore) -> Checkpoint:
    """The checkpoint that a spec names: a folder, or `OWNER/NAME` or `OWNER/NAME@REVISION` on the hub.

    Raises:
        UserError: there is none.
    """
    folder = Path(model).expanduser()
    if model and folder.is_dir():
        return _local(folder.resolve(), media)
    named = _HUB.fullmatch(model)
    if named is None:
        raise UserError(f"hf:{model}: no such folder; write hf:FOLDER, hf:OWNER/NAME or hf:OWNER/NAME@REVISION")
    return _hub(named["name"], named["revision"])


def _local(folder: Path, media: MediaStore) -> Checkpoint:
    if not (folder / "config.json").is_file():
        hint = (
            "; this is an adapter: merge it into its model first" if (folder / "adapter_config.json").is_file() else ""
        )
        raise UserError(f"hf:{folder}: no config.json, so not a model{hint}")
    files = {path.name: path for path in sorted(folder.iterdir()) if path.is_file() and path.suffix in WEIGHTS}
    revision = digest({name: media.digest(path) for name, path in files.items()})
    return Checkpoint(str(folder), folder.name, revision, None, _config(folder / "config.json"))


def _hub(name: str, revision: str | None) -> Checkpoint:
    """A model at the commit that a revision stands for now; offline, at the one it stood for when it was fetched."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    shown = f"hf:{name}" + (f"@{revision}" if revision else "")
    try:
        path = Path(hf_hub_download(name, "config.json", revision=revision))
    except LocalEntryNotFoundError as error:
        raise UserError(f"{shown}: not on this machine, and the hub cannot be reached ({error})") from error
    except (HfHubHTTPError, OSError) as error:
        raise UserError(
            f"{shown}: the hub does not give it ({error}); check name and revision, and log in if it is gated"
        ) from error
    return Checkpoint(name, name, path.parent.name, path.parent.name, _config(path))


def _config(path: Path) -> Mapping[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{path}: not JSON ({error}); fetch the model again") from error
    if not isinstance(config, dict):
        raise UserError(f"{path}: not a JSON object; fetch the model again")
    return config
