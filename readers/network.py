"""A frozen network run by transformers, with its tokenizer or processor: from requests to tensors, and its passes."""

from __future__ import annotations

import copy
import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memharness.media import MediaStore
from memharness.reader import Request
from memharness.readers import device
from memharness.readers.wording import Wording, opens_thinking
from memharness.types import Image, ReaderError, UserError

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image as Picture

DTYPES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}
TOKENWISE = "token_type_ids"  # what the names of inputs end in that have one value a token
BATCHED = frozenset({"qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "glm4v", "glm4v_moe", "internvl"})


@dataclass(frozen=True, slots=True)
class Encoded:
    """A prompt as the network reads it.

    Attributes:
        ids: token ids of the whole prompt, picture placeholders included.
        extras: what goes into the first forward pass besides them, for a batch of one: `pixel_values`,
            `image_grid_thw`, `mm_token_type_ids` (1, len(ids)) …; empty without pictures.
        text: tokens that are words or marks.
        image: tokens that stand for pictures; text + image = len(ids).
        thinking: whether the prompt ends inside thinking, which its template opened.
    """

    ids: list[int]
    extras: Mapping[str, torch.Tensor] = field(default_factory=dict)
    text: int = 0
    image: int = 0
    thinking: bool = False


class Network:
    """A loaded model in eval mode whose weights take no gradient, and everything needed to talk to it.

    Attributes:
        model: the transformers model.
        processor: of a model that sees; None for one of words only.
        tokenizer: for words alone; a processor has a copy of its own, so that two threads may encode.
        config: the model's config.
        device: where the first layer is, and where inputs go.
        dtype: of the weights.
        ends: ids of the tokens that end a reply.
        family: the config's model type (`qwen3_vl`, `glm4v`, `internvl` …), or `text` for a model of words only.
        sees: whether it takes pictures.
        wording: its chat template and tokenizer.
        window: tokens of prompt and output together.
        cache_word: what its forward calls the key-value cache.
        attention: the backend in use.
        place: the device in words, or the devices it is spread over.
    """

    def __init__(
        self, model: Any, tokenizer: Any, processor: Any = None, template: Mapping[str, Any] | None = None
    ) -> None:
        """Take what transformers loaded, and options of the chat template."""
        self.model = model.eval().requires_grad_(False)
        self.processor = processor
        self.tokenizer = tokenizer
        self.config = model.config
        self.device: torch.device = model.device
        self.dtype: torch.dtype = model.dtype
        shares = getattr(model, "hf_device_map", None) or {}
        self.place = ", ".join(sorted({str(share) for share in shares.values()} or {str(self.device)}))
        self.wording = Wording(tokenizer, processor, template)
        self.sees = self.wording.sees
        self.family: str = str(model.config.model_type) if self.sees else "text"
        self.attention = str(getattr(model.config, "_attn_implementation", ""))
        self.ends = _ends(model, tokenizer)
        self.window = int(getattr(model.config.get_text_config(), "max_position_embeddings", 0)) or None
        words = inspect.signature(model.forward).parameters
        # Renamed in transformers 5.24; the old word is to go, and the new one is unknown to earlier versions.
        self.cache_word = "cache" if "cache" in words else "past_key_values"
        self._last_only = {"logits_to_keep": 1} if "logits_to_keep" in words else {}
        self._rope_index = getattr(getattr(model, "model", None), "get_rope_index", None)
        self._image_token = int(getattr(model.config, "image_token_id", -1))
        self._placeholder = str(getattr(processor, "image_token", "<image>"))
        self._locks = threading.Lock(), threading.Lock()  # a tokenizer's way with special tokens is a state of it

    @classmethod
    def load(
        cls,
        source: str | Path,
        *,
        revision: str | None = None,
        dtype: str = "auto",
        device_map: str = "auto",
        attention: str = "auto",
        local_only: bool = False,
        template: Mapping[str, Any] | None = None,
    ) -> Network:
        """Load a model from a folder or the hub. No code that comes with a model is ever run.

        Args:
            source: folder, or `OWNER/NAME` on the hub.
            revision: commit on the hub.
            dtype: `f32`, `bf16`, `f16`, or `auto` for the checkpoint's own.
            device_map: a torch device; accelerate's `balanced` or `sequential`; or `auto`: several GPUs as accelerate
                shares them out, else the one GPU, else the CPU.
            attention: transformers' name of a backend (`sdpa`, `eager`, `flash_attention_2` …), or `auto`.
            local_only: load only what is on this machine.
            template: options of the chat template.

        Raises:
            UserError: transformers does not know the model, or what it needs is not at hand.
        """
        import torch
        import transformers

        device.quiet()
        where: dict[str, Any] = {"revision": revision, "local_files_only": local_only, "trust_remote_code": False}
        options: dict[str, Any] = {} if attention == "auto" else {"attn_implementation": attention}
        try:
            config = transformers.AutoConfig.from_pretrained(source, **where)
            sees = hasattr(config, "vision_config")
            kind = transformers.AutoModelForImageTextToText if sees else transformers.AutoModelForCausalLM
            model = kind.from_pretrained(
                source,
                dtype=getattr(torch, DTYPES[dtype]) if dtype in DTYPES else "auto",
                device_map=place(device_map),
                use_safetensors=True,
                **where,
                **options,
            )
            auto: Any = transformers.AutoProcessor
            processor = auto.from_pretrained(source, **where) if sees else None
            tokenizer = (
                copy.deepcopy(processor.tokenizer)
                if processor is not None
                else transformers.AutoTokenizer.from_pretrained(source, **where)
            )
        except (OSError, ValueError, KeyError, ImportError, RuntimeError) as error:
            raise UserError(
                f"{source}: cannot be loaded ({type(error).__name__}: {error}); "
                f"it needs safetensors, and code that comes with a model is never run"
            ) from error
        if not getattr(processor or tokenizer, "chat_template", None):
            raise UserError(f"{source}: has no chat template; use the model's instruct or chat version")
        return cls(model, tokenizer, processor, template)

    # -------------------------------------------------------------------------------------------------- the prompt

    def encode(self, request: Request, media: MediaStore) -> Encoded:
        """A request's prompt: the chat template around each message, and the prefill after it.

        Template marks that stand in a memory stay words. May be called from any thread; requests with pictures, which
        take long, and requests without do not wait for each other.

        Raises:
            ReaderError: a part is of a kind the model cannot see, or a picture of a shape it does not take.
            DataError: a picture's file is not at hand or cannot be decoded.
        """
        self.wording.check(request)
        pictures = [media.open(part) for part in request.parts() if isinstance(part, Image)]
        pieces = self.wording.pieces(request)
        with self._locks[bool(pictures)]:
            parts = self._encode(pieces, pictures)
        ids = [token for part in parts for token in part.ids]
        extras = _join(parts, lambda prompt: prompt.ids, along=1)
        image = ids.count(self._image_token) if pictures else 0
        return Encoded(ids, extras, len(ids) - image, image, opens_thinking(pieces, request))

    def _encode(self, pieces: Sequence[tuple[str, bool]], pictures: list[Picture]) -> list[Encoded]:
        """Encode pieces one after the other, each with the pictures whose placeholders stand in it."""
        tokenizer = self.processor.tokenizer if pictures else self.tokenizer
        parts = []
        for at, (text, literal) in enumerate(pieces):
            last = at == len(pieces) - 1
            held = len(pictures) if last else 0 if literal else text.count(self._placeholder)
            if pictures[:held]:
                parts.append(self._with_pictures(text, pictures[:held]))
            else:
                ids = tokenizer.encode(text, add_special_tokens=False, split_special_tokens=literal)
                parts.append(Encoded(ids))
            pictures = pictures[held:]
        return parts

    def _with_pictures(self, text: str, pictures: list[Picture]) -> Encoded:
        try:
            made = self.processor(text=[text], images=pictures, add_special_tokens=False, return_tensors="pt")
        except ValueError as error:  # a picture 200 times as long as wide, or a template that left pictures out
            raise ReaderError(f"the model's processor refuses the pictures of this prompt: {error}") from error
        ids = made.pop("input_ids")[0].tolist()
        made.pop("attention_mask", None)
        return Encoded(ids, dict(made))

    def decode(self, ids: Sequence[int]) -> str:
        """The words of generated tokens, without special tokens but with the tags of thinking."""
        with self._locks[False]:
            return self.wording.decode(ids)

    def thinking_tokens(self, ids: Sequence[int]) -> int:
        """How many of a reply's tokens it thought with, its last closing tag included; all of them if it has none."""
        with self._locks[False]:
            return self.wording.thinking_tokens(ids)

    def joins(self, prompt: Encoded) -> bool:
        """Whether a prompt may share a batch: where it has pictures, only if they are known to line up along it."""
        return not prompt.extras or self.family in BATCHED

    # --------------------------------------------------------------------------------------------------- the passes

    def cache(self) -> Any:
        """An empty key-value cache, which belongs to whoever asked for it."""
        from transformers import DynamicCache

        return DynamicCache(config=self.config.get_text_config())

    def batch(self, prompts: Sequence[Encoded]) -> Batch:
        """Prompts of any length as one batch, padded on the left, on the network's device."""
        import torch

        width = max(len(prompt.ids) for prompt in prompts)

        def padded(row: Sequence[int]) -> list[int]:
            return [0] * (width - len(row)) + list(row)

        ids = torch.tensor([padded(prompt.ids) for prompt in prompts])
        mask = torch.tensor([padded([1] * len(prompt.ids)) for prompt in prompts])
        extras = _join(prompts, lambda prompt: padded(prompt.ids), along=0)
        extras = {
            name: value.to(self.device, self.dtype if value.is_floating_point() else None)
            for name, value in extras.items()
        }
        ids, mask = ids.to(self.device), mask.to(self.device)
        positions, following = self.positions(ids, mask, extras)
        return Batch(ids, mask, positions, following, extras)

    def positions(
        self, ids: torch.Tensor, mask: torch.Tensor, extras: Mapping[str, torch.Tensor]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Positions of a left-padded batch of prompts, and of the token that follows each.

        A model with positions in time, height and width keeps the offset of the last prompt it saw in itself, which is
        wrong as soon as two are under way; so none is ever left to it.

        Args:
            ids: (n, length).
            mask: (n, length), 1 where a token stands.
            extras: of all prompts together.

        Returns:
            positions (n, length) and (n, 1), or (3, n, length) and (3, n, 1).
        """
        if self._rope_index is None:
            positions = (mask.cumsum(-1) - 1).clamp(min=0)
            return positions, positions[:, -1:] + 1
        import torch

        grids = {name: value for name, value in extras.items() if name in ("image_grid_thw", "mm_token_type_ids")}
        grids.setdefault("mm_token_type_ids", torch.zeros_like(ids))
        positions, offset = self._rope_index(ids, attention_mask=mask, **grids)
        following = mask.sum(-1, keepdim=True) + offset.reshape(-1, 1)
        return positions, following.expand(3, -1, -1)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor, cache: Any, **extras: Any) -> Any:
        """One pass over tokens that follow what the cache holds; its logits are the last position's, (n, 1, vocab)."""
        return self.model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            use_cache=True,
            **self._last_only,
            **{self.cache_word: cache},
            **extras,
        )


@dataclass(frozen=True, slots=True)
class Batch:
    """Prompts of n rows as tensors: ids and mask (n, length), positions as `Network.positions` gives them, extras."""

    ids: torch.Tensor
    mask: torch.Tensor
    positions: torch.Tensor
    following: torch.Tensor
    extras: Mapping[str, torch.Tensor]


def _join(prompts: Sequence[Encoded], row: Callable[[Encoded], Sequence[int]], along: int) -> dict[str, torch.Tensor]:
    """The extras of several prompts as one's.

    Args:
        prompts: what to join.
        row: a prompt's token ids as they stand in the joined input; where there are more of them, they are to its left.
        along: 0 if prompts are rows of a batch, 1 if they follow each other in one.
    """
    import torch

    extras: dict[str, torch.Tensor] = {}
    for name in dict.fromkeys(name for prompt in prompts for name in prompt.extras):
        given = [prompt.extras.get(name) for prompt in prompts]
        if name.endswith(TOKENWISE):
            rows = [torch.zeros(1, len(row(prompt)), dtype=torch.long) for prompt in prompts]
            for empty, values in zip(rows, given, strict=True):
                if values is not None:
                    empty[:, empty.shape[1] - values.shape[1] :] = values
            extras[name] = torch.cat(rows, dim=along)
        else:
            extras[name] = torch.cat([values for values in given if values is not None])
    return extras


def place(device_map: str) -> str:
    """The device map to load with: `auto` splits a model only over several GPUs."""
    import torch

    if device_map == "auto" and torch.cuda.device_count() > 1:
        return "auto"
    return device.pick(device_map)


def _ends(model: Any, tokenizer: Any) -> frozenset[int]:
    named = model.generation_config.eos_token_id if model.generation_config is not None else None
    if named is None:
        named = tokenizer.eos_token_id
    return frozenset(named if isinstance(named, list) else [] if named is None else [named])
