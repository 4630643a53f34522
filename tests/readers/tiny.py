"""Tiny models with random weights behind their families' real processors, written as checkpoints that `Auto…` loads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

FAMILIES = ("qwen3_vl", "glm4v", "internvl", "text")
PICTURED = FAMILIES[:3]

_QWEN = ("<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
_GLM = ("[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|image|>", "<|video|>",
        "<|begin_of_image|>", "<|end_of_image|>", "<|begin_of_video|>", "<|end_of_video|>")  # fmt: skip
_INTERN = ("<|im_start|>", "<|im_end|>", "<img>", "</img>", "<IMG_CONTEXT>", "<video>")

_WORDS = """What is in the picture, and where was it taken? The cat sat on the mat while the dog slept by the door.
Ann went to Oslo in May, and came home in June. Answer the question from the memory below, in a few words: yes or no?
One two three four five six seven eight nine ten. user system assistant think question answer memory evidence"""

# Every family wraps a message in marks of its own; pictures stand where they were put.
_CHATML = """{%- for m in messages -%}
<|im_start|>{{ m.role }}
{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content -%}
{% if p.type == 'image' %}IMAGE{% else %}{{ p.text }}{% endif %}
{%- endfor %}{% endif %}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking is defined and not enable_thinking %}<think>

</think>

{% endif %}{% endif -%}"""
_GLM_CHAT = """[gMASK]<sop>{%- for m in messages -%}
<|{{ m.role }}|>
{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content -%}
{% if p.type == 'image' %}<|begin_of_image|><|image|><|end_of_image|>{% else %}{{ p.text }}{% endif %}
{%- endfor %}{% endif %}
{%- endfor -%}
{%- if add_generation_prompt %}<|assistant|>
{% endif -%}"""

_TEXT = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32768,
    "initializer_range": 0.3,  # wide, so that no two tokens are nearly as likely
}
_ROPE = {"rope_type": "default", "rope_theta": 10000.0}


def tiny_model(family: str, folder: Path) -> Path:
    """Write a tiny model of a family into `folder/FAMILY`, once, and give that folder.

    Args:
        family: `qwen3_vl`, `glm4v`, `internvl` or `text`.
        folder: where to write; a model that is there already is left as it is.
    """
    import torch

    made = folder / family
    if not made.exists():
        torch.manual_seed(0)
        _MAKERS[family](made)
    return made


def tokenizer(specials: tuple[str, ...], eos: str, template: str, **named: str) -> Any:
    """A byte-level BPE tokenizer of a few hundred tokens, with these special tokens, and `<think>` as plain words."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        _WORDS.split(), trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    )
    made.add_special_tokens(["<|endoftext|>", *specials])
    made.add_tokens([AddedToken(tag, normalized=False, special=False) for tag in ("<think>", "</think>")])
    return PreTrainedTokenizerFast(
        tokenizer_object=made,
        eos_token=eos,
        pad_token="<|endoftext|>",
        chat_template=template,
        extra_special_tokens=named,
    )


def _ends(words: Any, *tokens: str) -> dict[str, Any]:
    ids = [words.convert_tokens_to_ids(token) for token in tokens]
    return {"eos_token_id": ids if len(ids) > 1 else ids[0], "pad_token_id": words.pad_token_id, "bos_token_id": None}


def _save(model: Any, processor: Any, folder: Path, ends: dict[str, Any]) -> None:
    model.generation_config.update(**ends)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)


def _qwen3_vl(folder: Path) -> None:
    from transformers import Qwen2VLImageProcessor, Qwen3VLConfig, Qwen3VLForConditionalGeneration, Qwen3VLProcessor
    from transformers.models.qwen3_vl.video_processing_qwen3_vl import Qwen3VLVideoProcessor

    template = _CHATML.replace("IMAGE", "<|vision_start|><|image_pad|><|vision_end|>")
    words = tokenizer(_QWEN, "<|im_end|>", template)
    ids = {name: words.convert_tokens_to_ids(f"<|{name.removesuffix('_token_id')}|>")
           for name in ("vision_start_token_id", "vision_end_token_id")}  # fmt: skip
    ids["image_token_id"] = words.convert_tokens_to_ids("<|image_pad|>")
    ids["video_token_id"] = words.convert_tokens_to_ids("<|video_pad|>")
    ends = _ends(words, "<|im_end|>", "<|endoftext|>")
    rope = {**_ROPE, "mrope_section": [2, 1, 1], "mrope_interleaved": True}
    config = Qwen3VLConfig(
        text_config={**_TEXT, "vocab_size": len(words), "head_dim": 8, "rope_parameters": rope, **ends},
        vision_config={
            "depth": 4, "hidden_size": 32, "intermediate_size": 64, "num_heads": 4, "patch_size": 16,
            "spatial_merge_size": 2, "temporal_patch_size": 2, "out_hidden_size": 32, "num_position_embeddings": 16,
            "deepstack_visual_indexes": [0, 1, 2], "initializer_range": 0.3,
        },
        **ids,
    )  # fmt: skip
    pictures = Qwen2VLImageProcessor(
        patch_size=16,
        size={"shortest_edge": 65536, "longest_edge": 16777216},
        image_mean=[0.5] * 3,
        image_std=[0.5] * 3,
    )
    processor = Qwen3VLProcessor(pictures, words, Qwen3VLVideoProcessor(), chat_template=template)
    _save(Qwen3VLForConditionalGeneration(config), processor, folder, ends)


def _glm4v(folder: Path) -> None:
    from transformers import Glm4vConfig, Glm4vForConditionalGeneration, Glm4vImageProcessor, Glm4vProcessor
    from transformers.models.glm4v.video_processing_glm4v import Glm4vVideoProcessor

    words = tokenizer(_GLM, "<|endoftext|>", _GLM_CHAT)
    marks = {
        "image_token_id": "<|image|>", "video_token_id": "<|video|>",
        "image_start_token_id": "<|begin_of_image|>", "image_end_token_id": "<|end_of_image|>",
        "video_start_token_id": "<|begin_of_video|>", "video_end_token_id": "<|end_of_video|>",
    }  # fmt: skip
    ends = _ends(words, "<|endoftext|>", "<|user|>")
    rope = {**_ROPE, "mrope_section": [1, 1, 2], "partial_rotary_factor": 1.0}
    config = Glm4vConfig(
        text_config={**_TEXT, "vocab_size": len(words), "rope_parameters": rope, **ends},
        vision_config={
            "depth": 2, "hidden_size": 32, "intermediate_size": 64, "num_heads": 4, "patch_size": 14,
            "spatial_merge_size": 2, "temporal_patch_size": 2, "image_size": 336, "out_hidden_size": 32,
            "initializer_range": 0.3,
        },
        **{name: words.convert_tokens_to_ids(word) for name, word in marks.items()},
    )  # fmt: skip
    processor = Glm4vProcessor(Glm4vImageProcessor(), words, Glm4vVideoProcessor(), chat_template=_GLM_CHAT)
    _save(Glm4vForConditionalGeneration(config), processor, folder, ends)


def _internvl(folder: Path) -> None:
    from transformers import GotOcr2ImageProcessor, InternVLConfig, InternVLForConditionalGeneration, InternVLProcessor
    from transformers.models.internvl.video_processing_internvl import InternVLVideoProcessor

    template = _CHATML.replace("IMAGE", "<IMG_CONTEXT>\n")
    words = tokenizer(
        _INTERN, "<|im_end|>", template, start_image_token="<img>", end_image_token="</img>",
        context_image_token="<IMG_CONTEXT>", video_token="<video>",
    )  # fmt: skip
    ends = _ends(words, "<|im_end|>")
    config = InternVLConfig(
        text_config={**_TEXT, "model_type": "qwen3", "vocab_size": len(words), "head_dim": 8,
                     "rope_parameters": _ROPE, **ends},
        vision_config={
            "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
            "image_size": [224, 224], "patch_size": [14, 14], "initializer_range": 0.3,
        },
        image_token_id=words.convert_tokens_to_ids("<IMG_CONTEXT>"),
    )  # fmt: skip
    pictures = GotOcr2ImageProcessor(  # published ones have tiles of 448 pixels and 256 tokens
        size={"height": 224, "width": 224}, crop_to_patches=True, image_mean=[0.485, 0.456, 0.406],
        image_std=[0.229, 0.224, 0.225],
    )  # fmt: skip
    processor = InternVLProcessor(pictures, words, InternVLVideoProcessor(), 64, chat_template=template)
    _save(InternVLForConditionalGeneration(config), processor, folder, ends)


def _text(folder: Path) -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    words = tokenizer(_QWEN, "<|im_end|>", _CHATML.replace("IMAGE", ""))
    ends = _ends(words, "<|im_end|>", "<|endoftext|>")
    config = LlamaConfig(**_TEXT, vocab_size=len(words), rope_parameters=_ROPE, **ends)
    _save(LlamaForCausalLM(config), words, folder, ends)


_MAKERS: dict[str, Callable[[Path], None]] = {
    "qwen3_vl": _qwen3_vl,
    "glm4v": _glm4v,
    "internvl": _internvl,
    "text": _text,
}
