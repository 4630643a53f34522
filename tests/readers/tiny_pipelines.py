"""Tiny pipelines of random weights, made by the real classes and saved as their makers would save them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

SIDE = 64


def clip_tokenizer() -> Any:
    """Every byte a token, with and without the end of a word."""
    from transformers import CLIPTokenizer

    letters = [chr(code) for code in range(33, 127)]
    words = [*letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    return CLIPTokenizer(vocab={word: at for at, word in enumerate(words)}, merges=[], model_max_length=77)


def _clip() -> Any:
    from transformers import CLIPTextConfig, CLIPTextModel

    size = len(clip_tokenizer())
    config = CLIPTextConfig(
        vocab_size=size, hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2,
        projection_dim=16, bos_token_id=size - 2, eos_token_id=size - 1, pad_token_id=size - 1,
    )  # fmt: skip
    return CLIPTextModel(config)


def _vae() -> Any:
    from diffusers import AutoencoderKL

    return AutoencoderKL(
        block_out_channels=(8, 16), down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        latent_channels=4, norm_num_groups=4, sample_size=SIDE,
    )  # fmt: skip


def _unet(channels: int) -> Any:
    from diffusers import UNet2DConditionModel

    return UNet2DConditionModel(
        block_out_channels=(8, 16), layers_per_block=1, sample_size=SIDE // 2, in_channels=channels, out_channels=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=16, norm_num_groups=4, attention_head_dim=4,
    )  # fmt: skip


def _diffusion(name: str, channels: int, folder: Path, seed: int) -> Path:
    import diffusers

    torch.manual_seed(seed)
    scheduler = diffusers.PNDMScheduler(skip_prk_steps=True, steps_offset=1)
    parts: dict[str, Any] = {
        "vae": _vae(), "text_encoder": _clip(), "tokenizer": clip_tokenizer(), "unet": _unet(channels),
        "scheduler": scheduler, "safety_checker": None, "feature_extractor": None,
    }  # fmt: skip
    pipeline = getattr(diffusers, name)(**parts, requires_safety_checker=False)
    pipeline.save_pretrained(folder)
    return folder


def stable_diffusion(folder: Path, seed: int = 0) -> Path:
    """Makes pictures of words."""
    return _diffusion("StableDiffusionPipeline", 4, folder, seed)


def pix2pix(folder: Path, seed: int = 1) -> Path:
    """Changes one picture by words."""
    return _diffusion("StableDiffusionInstructPix2PixPipeline", 8, folder, seed)


def _qwen_tokenizer() -> Any:
    from transformers import Qwen2Tokenizer

    marks = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    words = {letter: at for at, letter in enumerate(bytes_to_unicode().values())}
    tokenizer = Qwen2Tokenizer(vocab=words, merges=[], additional_special_tokens=marks)
    tokenizer.chat_template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    return tokenizer


def flux2_klein(folder: Path, seed: int = 2) -> Path:
    """Makes pictures of words, and changes one or several."""
    from diffusers import (
        AutoencoderKLFlux2,
        FlowMatchEulerDiscreteScheduler,
        Flux2KleinPipeline,
        Flux2Transformer2DModel,
    )
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(seed)
    tokenizer = _qwen_tokenizer()
    words = Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=8, intermediate_size=8, num_hidden_layers=28, num_attention_heads=1,
        num_key_value_heads=1, head_dim=8,
    )  # fmt: skip
    vae = AutoencoderKLFlux2(
        block_out_channels=(8, 8), down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        latent_channels=4, norm_num_groups=4, sample_size=SIDE, layers_per_block=1,
    )  # fmt: skip
    transformer = Flux2Transformer2DModel(
        patch_size=1, in_channels=16, num_layers=1, num_single_layers=1, attention_head_dim=16, num_attention_heads=1,
        joint_attention_dim=24, timestep_guidance_channels=16, axes_dims_rope=(4, 4, 4, 4), guidance_embeds=False,
    )  # fmt: skip
    pipeline = Flux2KleinPipeline(
        scheduler=FlowMatchEulerDiscreteScheduler(), vae=vae, text_encoder=Qwen3ForCausalLM(words), tokenizer=tokenizer,
        transformer=transformer,
    )  # fmt: skip
    pipeline.save_pretrained(folder)
    return folder
