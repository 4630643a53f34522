"""Tiny pipelines of random weights, made by the real classes and saved as their makers would save them."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import torch

# Neither says the types of what is called here.
diffusers: Any = importlib.import_module("diffusers")
transformers: Any = importlib.import_module("transformers")

SIDE = 64


def clip_tokenizer() -> Any:
    """Every byte a token, with and without the end of a word."""
    letters = [chr(code) for code in range(33, 127)]
    words = [*letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    return transformers.CLIPTokenizer(vocab={word: at for at, word in enumerate(words)}, merges=[], model_max_length=77)


def _clip() -> Any:
    size = len(clip_tokenizer())
    config = transformers.CLIPTextConfig(
        vocab_size=size, hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2,
        projection_dim=16, bos_token_id=size - 2, eos_token_id=size - 1, pad_token_id=size - 1,
    )  # fmt: skip
    return transformers.CLIPTextModel(config)


def _vae() -> Any:
    return diffusers.AutoencoderKL(
        block_out_channels=(8, 16), down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        latent_channels=4, norm_num_groups=4, sample_size=SIDE,
    )  # fmt: skip


def _unet(channels: int) -> Any:
    return diffusers.UNet2DConditionModel(
        block_out_channels=(8, 16), layers_per_block=1, sample_size=SIDE // 2, in_channels=channels, out_channels=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=16, norm_num_groups=4, attention_head_dim=4,
    )  # fmt: skip


def _diffusion(name: str, channels: int, folder: Path, seed: int) -> Path:
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


QWEN_MARKS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>",
              "<|video_pad|>")  # fmt: skip


def _qwen_tokenizer() -> Any:
    """Every byte a token, and the marks."""
    bytes_to_unicode = importlib.import_module("transformers.convert_slow_tokenizer").bytes_to_unicode
    words = {letter: at for at, letter in enumerate(bytes_to_unicode().values())}
    tokenizer = transformers.Qwen2Tokenizer(vocab=words, merges=[], additional_special_tokens=list(QWEN_MARKS))
    tokenizer.chat_template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    return tokenizer


def _qwen_parts(seed: int) -> dict[str, Any]:
    torch.manual_seed(seed)
    tokenizer = _qwen_tokenizer()
    ids = dict(zip(QWEN_MARKS, tokenizer.convert_tokens_to_ids(list(QWEN_MARKS)), strict=True))
    words = {
        "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
        "num_key_value_heads": 2, "vocab_size": len(tokenizer), "bos_token_id": 0, "eos_token_id": 1,
        "rope_parameters": {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 1e6},
    }  # fmt: skip
    sight = {
        "depth": 2, "hidden_size": 16, "intermediate_size": 16, "num_heads": 2, "out_hidden_size": 16,
        "fullatt_block_indexes": [1],
    }  # fmt: skip
    config = transformers.Qwen2_5_VLConfig(
        text_config=words, vision_config=sight, vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"], image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
    )  # fmt: skip
    vae = diffusers.AutoencoderKLQwenImage(
        base_dim=16, z_dim=4, dim_mult=[1, 2, 4], num_res_blocks=1, temperal_downsample=[False, True],
        latents_mean=[0.0] * 4, latents_std=[1.0] * 4,
    )  # fmt: skip
    transformer = diffusers.QwenImageTransformer2DModel(
        patch_size=2, in_channels=16, out_channels=4, num_layers=2, attention_head_dim=16, num_attention_heads=3,
        joint_attention_dim=16, guidance_embeds=False, axes_dims_rope=(8, 4, 4),
    )  # fmt: skip
    return {
        "scheduler": diffusers.FlowMatchEulerDiscreteScheduler(), "vae": vae, "tokenizer": tokenizer,
        "transformer": transformer, "text_encoder": transformers.Qwen2_5_VLForConditionalGeneration(config),
    }  # fmt: skip


def qwen_image(folder: Path, seed: int = 3) -> Path:
    """Makes pictures of words."""
    diffusers.QwenImagePipeline(**_qwen_parts(seed)).save_pretrained(folder)
    return folder


def qwen_edit_plus(folder: Path, seed: int = 4) -> Path:
    """Changes one picture or several."""
    parts = _qwen_parts(seed)
    processor = transformers.Qwen2VLProcessor(
        image_processor=transformers.Qwen2VLImageProcessor(min_pixels=28 * 28, max_pixels=56 * 56),
        tokenizer=parts["tokenizer"], video_processor=transformers.Qwen2VLVideoProcessor(),
    )  # fmt: skip
    diffusers.QwenImageEditPlusPipeline(**parts, processor=processor).save_pretrained(folder)
    return folder


def flux2_klein(folder: Path, seed: int = 2) -> Path:
    """Makes pictures of words, and changes one or several."""
    torch.manual_seed(seed)
    tokenizer = _qwen_tokenizer()
    words = transformers.Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=8, intermediate_size=8, num_hidden_layers=28, num_attention_heads=1,
        num_key_value_heads=1, head_dim=8,
    )  # fmt: skip
    vae = diffusers.AutoencoderKLFlux2(
        block_out_channels=(8, 8), down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        latent_channels=4, norm_num_groups=4, sample_size=SIDE, layers_per_block=1,
    )  # fmt: skip
    transformer = diffusers.Flux2Transformer2DModel(
        patch_size=1, in_channels=16, num_layers=1, num_single_layers=1, attention_head_dim=16, num_attention_heads=1,
        joint_attention_dim=24, timestep_guidance_channels=16, axes_dims_rope=(4, 4, 4, 4), guidance_embeds=False,
    )  # fmt: skip
    pipeline = diffusers.Flux2KleinPipeline(
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(), vae=vae, tokenizer=tokenizer,
        text_encoder=transformers.Qwen3ForCausalLM(words), transformer=transformer,
    )  # fmt: skip
    pipeline.save_pretrained(folder)
    return folder
