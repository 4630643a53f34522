"""A tiny language model that was taught to follow soft prompts, then frozen: the one thing a random one cannot do.

It knows two exchanges. "saw wN oK" is answered by "noted oK .". "which ?" is answered by "hm" and then, if
vectors near the embedding of sK stand there, by "aK"; with others, or none, by one of the eight at random.
"""

from __future__ import annotations

from pathlib import Path

import torch

SIGNALS = 8
WORDS = ["<pad>", "<end>", "saw", "which", "?", "noted", ".", "hm", "see", "think", "of", "the", "colour", "reason"]
WORDS += [f"{kind}{k}" for kind in "osa" for k in range(SIGNALS)]
FILLERS = [f"w{k}" for k in range(12)]
WORDS += FILLERS
TEMPLATE = (
    "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}"
    "{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}{% endfor %}"
)


def follower(folder: Path, seed: int = 0, steps: int = 400, latents: int = 2) -> Path:
    """Teach the model and write it as a checkpoint."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    ids = {word: n for n, word in enumerate(WORDS)}
    words = Tokenizer(models.WordLevel(ids, unk_token="<pad>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words.decoder = decoders.Fuse()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", eos_token="<end>", chat_template=TEMPLATE
    )
    torch.manual_seed(seed)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(WORDS), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=4, max_position_embeddings=256, eos_token_id=ids["<end>"], pad_token_id=ids["<pad>"],
            bos_token_id=None, tie_word_embeddings=False,
        )
    )  # fmt: skip
    _teach(model, ids, steps, latents, torch.Generator().manual_seed(seed))
    model.generation_config.eos_token_id = ids["<end>"]
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _teach(model: torch.nn.Module, ids: dict[str, int], steps: int, latents: int, draw: torch.Generator) -> None:
    """Both exchanges, with label smoothing, so that the way to a right answer is never flat."""
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    embed = model.get_input_embeddings()  # type: ignore[operator]
    loss = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    for _ in range(steps):
        k = torch.randint(SIGNALS, (16,), generator=draw)
        words = torch.randint(len(FILLERS), (16,), generator=draw)
        saw = torch.stack([_ids(ids, f"saw w{w} o{n} noted o{n} . <end>") for w, n in zip(words, k, strict=True)])
        heard = torch.stack([_ids(ids, f"which ? hm a{n} <end>") for n in k])
        table = embed.weight[[ids[f"s{n}"] for n in range(SIGNALS)]]
        other = torch.randint(SIGNALS, (16,), generator=draw)
        share = 0.4 * torch.rand(16, 1, generator=draw)
        soft = (1 - share) * table[k] + share * table[other]
        noise = torch.randn(soft.shape, generator=draw)  # and vectors that mean nothing: still an answer, any one
        soft = torch.where(torch.rand(16, 1, generator=draw) < 0.3, noise, soft)
        soft = soft / soft.norm(dim=-1, keepdim=True) * embed.weight.norm(dim=-1).mean()
        soft = soft[:, None].expand(-1, latents, -1)
        soft = soft + 0.1 * torch.randn(soft.shape, generator=draw)
        told = embed(heard)
        mixed = torch.cat([told[:, :3], soft, told[:, 3:]], dim=1)
        alone = told.clone()
        first = model(input_ids=saw).logits[:, 2:-1].flatten(0, 1)
        second = model(inputs_embeds=mixed).logits[:, [1, 2 + latents, 3 + latents]].flatten(0, 1)
        third = model(inputs_embeds=alone).logits[:, [1, 2]].flatten(0, 1)
        total = loss(first, saw[:, 3:].flatten()) + loss(second, heard[:, 2:].flatten())
        (total + loss(third, heard[:, 2:4].flatten())).backward()
        optimizer.step()
        optimizer.zero_grad()


def _ids(ids: dict[str, int], text: str) -> torch.Tensor:
    return torch.tensor([ids[word] for word in text.split()])
