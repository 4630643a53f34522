"""A turn of l2vmas held against passes of the model's own `forward` and `generate`, on any device and in any dtype."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from memharness.methods.l2vmas.config import L2VMASConfig
from memharness.methods.l2vmas.dual import DualMemory, Which
from memharness.methods.l2vmas.synthesis import Means
from memharness.methods.l2vmas.turn import Speaker, Spoken
from memharness.reader import Message, Request, Sampling
from memharness.readers.hf import HFReader
from memharness.run.kit import DeviceThread
from memharness.types import Image, Text

STORY = "Say what you see, and think of what may have come before it; then tell a story of it."


class InTurn(Means):
    """Plain means, whose gate asks for perception and thinking by turns."""

    def __init__(self, length: int) -> None:
        super().__init__(length, 4)
        self.asked = 0

    def perception(self, window: torch.Tensor) -> float:
        self.asked += 1
        return float(self.asked % 2)


def ask(*pictures: Image, words: str = STORY, tokens: int = 24) -> Request:
    """A request that shows pictures."""
    return Request((Message("user", (*pictures, Text(words))),), Sampling(max_tokens=tokens))


async def remembered(reader: HFReader, config: L2VMASConfig, pictures: Sequence[Image]) -> DualMemory:
    """A memory that holds what a first agent saw and thought."""
    banks: tuple[Which, ...] = ("perception", "thinking")
    memory = DualMemory(InTurn(config.length), capacity=8, k=3, norm=reader.norm, other=True, banks=banks)
    device = DeviceThread()
    for picture in pictures if "image" in reader.card.capabilities else ():
        side = 2**config.granularity
        await device.run(memory.see, await reader.see(picture, side, levels=config.granularity))
    first = await spoken(reader, ask(*pictures[:1]), config, memory)
    await device.run(memory.think, first.chunks)
    memory.calls = 0
    return memory


async def spoken(reader: HFReader, request: Request, config: L2VMASConfig, memory: DualMemory) -> Spoken:
    """A turn, through the method's own path."""
    return await Speaker(reader, DeviceThread(), config).speak(  # type: ignore[arg-type]
        request, memory, random.Random(0)
    )


def greedy(reader: HFReader, request: Request) -> list[int]:
    """Tokens of the model's own greedy `generate`. On the device thread."""
    network, model = reader._network, reader._network.model
    prompt = network.encode(request, reader.media)
    ids = torch.tensor([prompt.ids], device=network.device)
    made: Any = model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=request.sampling.max_tokens, do_sample=False,
        **_on(network.device, prompt.extras),
    )  # fmt: skip
    tokens: list[int] = made[0, len(prompt.ids) :].tolist()
    return tokens


@dataclass
class Whole:
    """One pass over everything.

    Attributes:
        states: (n, width), that each token is drawn from.
        logits: (n, vocabulary), f32.
        places: positions of the injected vectors, by the number of tokens before them.
    """

    states: torch.Tensor
    logits: torch.Tensor
    places: dict[int, int] = field(default_factory=dict)


def whole(reader: HFReader, request: Request, tokens: Sequence[int], latents: Mapping[int, torch.Tensor]) -> Whole:
    """One pass of the model's own `forward`, without a cache, over prompt, tokens and the latents before them.

    It is made as l2vmas.md §1.3 does it: embeddings of the whole sequence, latents put in, positions of the whole.
    """
    network, model = reader._network, reader._network.model
    inner: Any = model
    prompt = network.encode(request, reader.media)
    ids, places, drawn_from = list(prompt.ids), {}, []
    for at, token in enumerate(tokens):
        if at in latents:
            places[at] = len(ids)
            ids += [0] * len(latents[at])
        drawn_from.append(len(ids) - 1)
        ids.append(token)
    row = torch.tensor([ids], device=network.device)
    with torch.no_grad():
        embeddings = model.get_input_embeddings()(row).clone()
        for at, start in places.items():
            embeddings[0, start : start + len(latents[at])] = latents[at].to(embeddings)
        extras = _on(network.device, prompt.extras)
        inputs: dict[str, Any] = {name: extras[name] for name in ("pixel_values", "image_grid_thw") if name in extras}
        if hasattr(getattr(model, "model", None), "get_rope_index"):
            kinds = torch.zeros_like(row)
            if "mm_token_type_ids" in extras:
                kinds[:, : len(prompt.ids)] = extras["mm_token_type_ids"]
            inputs["position_ids"], _ = inner.model.get_rope_index(
                row, mm_token_type_ids=kinds, image_grid_thw=inputs.get("image_grid_thw")
            )
        output = inner(inputs_embeds=embeddings, output_hidden_states=True, **inputs)
    return Whole(output.hidden_states[-1][0][drawn_from], output.logits[0][drawn_from].float(), places)


def apart(one: torch.Tensor, other: torch.Tensor) -> float:
    """The greatest difference of two tensors, by the greatest value there is."""
    return float((one.float() - other.float()).abs().max() / other.float().abs().max())


def _on(device: Any, extras: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.to(device) if isinstance(value, torch.Tensor) else value for name, value in extras.items()}
