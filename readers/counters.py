"""Token counters of the readers: by a tokenizer file, or by bytes where no tokenizer is at hand."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memharness import image_tokens
from memharness.identity import file_digest
from memharness.types import UserError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_PATCH = 32


class Bytes4:
    """An approximation that needs no tokenizer: 4 UTF-8 bytes a token, one token for each 32 × 32 pixel patch.

    It is not a model's count: English runs near 4 to 4.5 bytes a token, other scripts may be far off. What it offers is
    that the same text costs the same everywhere, at once and offline.
    """

    name = "bytes4"

    def text(self, text: str) -> int:
        """Tokens of a text: its UTF-8 bytes divided by 4, rounded up."""
        return -(-len(text.encode("utf-8", "surrogatepass")) // 4)

    def image(self, width: int, height: int) -> int:
        """Tokens of a picture of this size in pixels: its 32-pixel patches, begun ones counted whole."""
        return -(-width // _PATCH) * -(-height // _PATCH)


class TokenizerCounter:
    """Counts text by a tokenizer, without the special tokens that a chat template adds; pictures as `Bytes4` does."""

    def __init__(self, name: str, path: Path) -> None:
        """Keep the path of a `tokenizer.json`, read at first use, and the name under which its counts are reported."""
        self.name = name
        self._path = path

    def text(self, text: str) -> int:
        """Tokens of a text.

        Raises:
            UserError: the file cannot be read as a tokenizer.
        """
        return len(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def image(self, width: int, height: int) -> int:
        """Tokens of a picture of this size in pixels, estimated by 32-pixel patches."""
        return Bytes4().image(width, height)

    @functools.cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer, without truncation and padding.

        Raises:
            UserError: the file cannot be read as one.
        """
        from tokenizers import Tokenizer

        try:
            tokenizer = Tokenizer.from_file(str(self._path))
        except Exception as error:  # the library raises bare Exception for a missing file and for bad JSON alike
            raise UserError(f"{self._path}: not a tokenizer.json ({error}); give the path of one") from None
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.encode_special_tokens = True  # a template's mark in a memory is words there, as the readers send it
        return tokenizer


class NetworkCounter:
    """Counts as a transformers model does: text by its tokenizer, pictures by its processor's rule and settings.

    Both load at first use, which for a hub model may fetch their files.
    """

    def __init__(self, name: str, source: str, revision: str | None) -> None:
        """Keep where the model is, and the name under which its counts are reported."""
        self.name = name
        self._source = source
        self._revision = revision

    def text(self, text: str) -> int:
        """Tokens of a text, in which a template's marks are words.

        Raises:
            UserError: the model's tokenizer cannot be loaded.
        """
        return len(self._tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True))

    def image(self, width: int, height: int) -> int:
        """Tokens of a picture of this size in pixels, without the marks around it; 0 if the model sees none.

        Raises:
            UserError: the model's processor cannot be loaded.
            ReaderError: the model does not take a picture of this shape.
        """
        return self._rule(width, height)

    @functools.cached_property
    def _tokenizer(self) -> Any:
        return getattr(self._processor, "tokenizer", self._processor)

    @functools.cached_property
    def _processor(self) -> Any:
        """The processor, or for a model of words only its tokenizer: that is what AutoProcessor gives."""
        import transformers

        auto: Any = transformers.AutoProcessor
        try:
            return auto.from_pretrained(self._source, revision=self._revision, trust_remote_code=False)
        except (OSError, ValueError, KeyError, ImportError) as error:
            raise UserError(f"{self._source}: its tokenizer cannot be loaded ({error})") from error

    @functools.cached_property
    def _rule(self) -> Callable[[int, int], int]:
        return functools.lru_cache(4096)(picture_rule(self._processor))


def picture_rule(processor: Any) -> Callable[[int, int], int]:
    """Tokens of a picture by width and height, as a processor makes them.

    Qwen-VL's, GLM-4.1V's and InternVL's have a formula; another family's is found by giving the processor a blank
    picture of the size.
    """
    pictures = getattr(processor, "image_processor", None)
    if pictures is None:
        return lambda width, height: 0
    match type(processor).__name__:
        case "InternVLProcessor":
            tile = (pictures.size["height"], pictures.size["width"])
            return functools.partial(
                image_tokens.internvl,
                tile=tile,
                least=pictures.min_patches,
                most=pictures.max_patches,
                each=processor.image_seq_length,
            )
        case "Qwen2VLProcessor" | "Qwen2_5_VLProcessor" | "Qwen3VLProcessor" | "Glm4vProcessor" as kind:
            limits = {
                "factor": pictures.patch_size * pictures.merge_size,
                "min_pixels": pictures.size["shortest_edge"],
                "max_pixels": pictures.size["longest_edge"],
            }
            if kind == "Glm4vProcessor":
                return functools.partial(image_tokens.glm4v, **limits, frames=pictures.temporal_patch_size)
            return functools.partial(image_tokens.qwen_vl, **limits)
    return functools.partial(_by_trial, processor)


def _by_trial(processor: Any, width: int, height: int) -> int:
    from PIL import Image as Pillow

    if width < 1 or height < 1:
        return 0
    mark = getattr(processor, "boi_token", None) or processor.image_token
    made = processor(text=[mark], images=[Pillow.new("RGB", (width, height))], add_special_tokens=False)
    return list(made["input_ids"][0]).count(processor.image_token_id)


def tokenizer_counter(path: Path) -> TokenizerCounter:
    """A counter from a user's `tokenizer.json`, named by its content: two tokenizers never share a name.

    Raises:
        UserError: the file cannot be read as a tokenizer.
    """
    if not path.is_file():
        raise UserError(f"tokenizer={path}: no such file; give the path of a tokenizer.json")
    counter = TokenizerCounter(f"tokenizer-{file_digest(path)[:8]}", path)
    _ = counter.tokenizer  # a file of another kind is found now, not in the middle of a run
    return counter
