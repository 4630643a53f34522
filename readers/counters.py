"""Token counters of the readers: by a tokenizer file, or by bytes where no tokenizer is at hand."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

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
        return tokenizer


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
