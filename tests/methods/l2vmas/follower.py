"""A tiny language model that was taught to follow soft prompts, then frozen: the one thing a random one cannot do.

It knows three exchanges, wN being words that mean nothing:

- "saw wN oK" is answered by "noted oK .";
- "which ?" by "hm" and then, where vectors stand, by one of a0 … a7: the more they are like the embedding of sK, the
  likelier aK, as softmax(4 cos) has it;
- "see wN ?" by "look" and "hm" or "er" as it happens, "think wN ?" by "muse" and "um" or "ah", and then as before.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch.nn.functional import normalize

SIGNALS = 8
BATCH, GRADE = 64, 4.0
KINDS = {"see": ("look hm", "look er"), "think": ("muse um", "muse ah")}
WORDS = ["<pad>", "<end>", "saw", "which", "?", "noted", ".", "see", "look", "hm", "er", "think", "muse", "um", "ah"]
WORDS += [f"{kind}{k}" for kind in "osa" for k in range(SIGNALS)]
FILLERS = [f"w{k}" for k in range(12)]
WORDS += FILLERS
IDS = {word: n for n, word in enumerate(WORDS)}
TEMPLATE = (
    "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}"
    "{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}{% endfor %}"
)


def follower(folder: Path, seed: int = 0, steps: int = 400, latents: int = 2) -> Path:
    """Teach the model and write it as a checkpoint."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel(IDS, unk_token="<pad>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words.decoder = decoders.Fuse()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", eos_token="<end>", chat_template=TEMPLATE
    )
    torch.manual_seed(seed)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(WORDS), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=4, max_position_embeddings=256, eos_token_id=IDS["<end>"], pad_token_id=IDS["<pad>"],
            bos_token_id=None, tie_word_embeddings=False,
        )
    )  # fmt: skip
    _teach(model, steps, latents, torch.Generator().manual_seed(seed))
    model.generation_config.eos_token_id = IDS["<end>"]
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _teach(model: torch.nn.Module, steps: int, latents: int, draw: torch.Generator) -> None:
    """All exchanges, with label smoothing, so that the way to a right answer is never flat."""
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    slower = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.01, steps)
    embed = model.get_input_embeddings()  # type: ignore[operator]
    loss = torch.nn.CrossEntropyLoss(label_smoothing=0.1)

    with torch.no_grad():  # signals that are nothing like each other
        embed.weight[_signals("s")] = embed.weight.norm(dim=-1).mean() * torch.nn.init.orthogonal_(
            torch.empty(SIGNALS, embed.weight.shape[1]), generator=draw
        )

    def some(n: int) -> list[int]:
        return torch.randint(n, (BATCH,), generator=draw).tolist()

    for _ in range(steps):
        fillers = some(len(FILLERS))
        saw = _ids(*(f"saw w{w} o{k} noted o{k} . <end>" for w, k in zip(fillers, some(SIGNALS), strict=True)))
        total = loss(model(input_ids=saw).logits[:, 2:-1].flatten(0, 1), saw[:, 3:].flatten())

        kinds = [list(KINDS)[n] for n in some(2)]
        kinded = (f"{kind} w{w} ? {KINDS[kind][n]}" for kind, w, n in zip(kinds, fillers, some(2), strict=True))
        for asked, words in ((_ids(*["which ? hm"] * BATCH), 1), (_ids(*kinded), 2)):
            soft, wanted = _soft(embed.weight, latents, draw)
            told = model(inputs_embeds=torch.cat([embed(asked), soft], dim=1)).logits
            said = told[:, -1 - latents - words : -1 - latents].flatten(0, 1)
            total = total + loss(said, asked[:, -words:].flatten()) + loss(told[:, -1], wanted)
        total.backward()
        optimizer.step()
        slower.step()
        optimizer.zero_grad()


def _soft(table: torch.Tensor, latents: int, draw: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Vectors between an sK and nowhere, (b, latents, width), and how likely each word is behind them."""
    known = normalize(table.detach()[_signals("s")], dim=-1)
    share = torch.rand(BATCH, 1, 1, generator=draw)
    k = torch.randint(SIGNALS, (BATCH,), generator=draw)
    noise = normalize(torch.randn(BATCH, latents, table.shape[1], generator=draw), dim=-1)
    soft = normalize(share * known[k][:, None] + (1 - share) * noise, dim=-1)
    wanted = torch.zeros(BATCH, len(IDS))
    wanted[:, _signals("a")] = (GRADE * normalize(soft.mean(1), dim=-1) @ known.T).softmax(-1)
    return soft * table.detach().norm(dim=-1).mean(), wanted


def _signals(kind: str) -> list[int]:
    return [IDS[f"{kind}{k}"] for k in range(SIGNALS)]


def _ids(*texts: str) -> torch.Tensor:
    return torch.tensor([[IDS[word] for word in text.split()] for text in texts])
