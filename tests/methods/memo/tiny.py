"""A language model small enough to be trained in a test, and visible-cue labels for a manager."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

TEMPLATE = (
    "{% for message in messages %}{% if message['role'] != 'system' %}"  # its prompt is most of a short one
    "<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
MARKS = ("<|user|>", "<|assistant|>", "<|end|>")


def make_model(folder: Path, texts: Iterable[str], *, width: int = 96, layers: int = 2, seed: int = 0) -> Path:
    """An untrained Llama with a tokenizer of its own, saved as a checkpoint.

    Args:
        folder: where it goes.
        texts: what the tokenizer is trained on; other words become bytes.
    """
    import torch
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokens = Tokenizer(models.BPE())
    tokens.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokens.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=480, min_frequency=4, special_tokens=[*MARKS], initial_alphabet=alphabet, show_progress=False
    )
    tokens.train_from_iterator(texts, trainer)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokens, eos_token="<|end|>", pad_token="<|end|>")
    fast.chat_template = TEMPLATE
    torch.manual_seed(seed)
    config = transformers.LlamaConfig(
        vocab_size=len(fast),
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=1024,
        eos_token_id=fast.eos_token_id,
        bos_token_id=None,
        pad_token_id=fast.pad_token_id,
        initializer_range=width**-0.5,  # the usual 0.02 leaves narrow layers asleep for long
        tie_word_embeddings=False,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


CUES = {
    "text": ("code", "serial"),
    "image": ("timeline", "sequence"),
    "dual": ("chart", "grid"),
    "drop": ("weather", "gossip"),
}
"""What shows in a unit that it wants an action."""
WORDINGS = {
    "train": ("of the", "for a", "came with", "was kept by", "near the", "and then", "in that", "beside", "gave the"),
    "held": ("about this", "wrote to", "from every", "sold without", "read aloud", "at last", "under his"),
}
SYLLABLES = ("ba", "do", "fi", "ga", "ke", "lo", "mi", "nu", "po", "ra", "se", "ti", "vo", "wa", "xe", "zu")


def name(rng: random.Random, kind: str) -> str:
    """A name of two or three syllables; those of one kind begin with other ones than those of the other."""
    first = SYLLABLES[:11] if kind == "train" else SYLLABLES[11:]
    return "".join([rng.choice(first), *rng.choices(SYLLABLES, k=rng.choice((1, 2)))]).capitalize()


def sentence(rng: random.Random, kind: str, cue: str) -> str:
    """A sentence of names and words of one kind, with the cue somewhere in it."""
    told = [name(rng, kind)]
    for _ in range(rng.choice((1, 2))):
        told += [rng.choice(WORDINGS[kind]), name(rng, kind)]
    told.insert(rng.randrange(len(told) + 1), cue)
    return " ".join(told)


def cue_rows(kind: str, n: int, units: int = 2, seed: int = 0) -> list[dict[str, Any]]:
    """Manager samples of n questions; those of `held` share no name and no wording with those of `train`."""
    rng = random.Random(f"{kind} {seed}")
    rows = []
    for number in range(n):
        actions = [rng.choice(list(CUES)) for _ in range(units)]
        told = [sentence(rng, kind, rng.choice(CUES[action])) for action in actions]
        planned = [{"id": f"u{at}", "action": action, "confidence": 0.9} for at, action in enumerate(actions, 1)]
        rows.append(
            {
                "id": f"{kind}{number}",
                "question": f"{name(rng, kind)} {rng.choice(WORDINGS[kind])} {name(rng, kind)}?",
                "budget": 128,
                "units": [{"id": f"u{at}", "content": text} for at, text in enumerate(told, 1)],
                "plan": {"units": planned, "usage": 64, "templates": ["cards", "table"]},
            }
        )
    return rows


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """Rows as JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path
