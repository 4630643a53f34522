"""One agent's turn: decoding that watches its own entropy, calls on the memory, and leaves its thoughts behind."""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch

from memharness.method import Device, MeteredLatent
from memharness.methods.l2vmas.chunks import Chunker
from memharness.methods.l2vmas.config import L2VMASConfig
from memharness.methods.l2vmas.dual import DualMemory, Recalled
from memharness.methods.l2vmas.trigger import Fixed, Trigger
from memharness.reader import Reply, Request, Step
from memharness.types import OverWindow


class Caller(Protocol):
    """What decides when the memory is called on: `Trigger`, or in training `Chance`."""

    def step(self, entropy: float) -> bool:
        """Take one more token's entropy; whether to call."""

    def fired(self) -> None:
        """The call gave something."""


@dataclass(frozen=True, slots=True)
class Injection:
    """Latents put in behind so many tokens, and what they were."""

    after: int
    recalled: Recalled

    def line(self) -> dict[str, Any]:
        """As it stands in the record."""
        recalled = self.recalled
        return {
            "after": self.after,
            "memory": recalled.which,
            "units": recalled.units,
            "latents": len(recalled.latents),
            "perception": round(recalled.chance, 4),
        }


@dataclass(slots=True)
class Spoken:
    """What came of a turn of decoding.

    Attributes:
        reply: its words and what they cost.
        tokens: decoded, n.
        states: (n, width), the hidden state that each was drawn from.
        injections: in order.
        chunks: of thought, (l, width) each, not yet in the bank.
        refused: calls whose latents did not fit into the session any more.
    """

    reply: Reply
    tokens: list[int]
    states: torch.Tensor
    injections: list[Injection] = field(default_factory=list)
    chunks: list[torch.Tensor] = field(default_factory=list)
    refused: int = 0


class Speaker:
    """Lets agents speak, one after the other, each in a decoding session of its own."""

    def __init__(self, latent: MeteredLatent, device: Device, config: L2VMASConfig) -> None:
        """Bind.

        Args:
            latent: the frozen model.
            device: where tensor work is done.
            config: window, threshold, delimiters …
        """
        self._latent = latent
        self._device = device
        self._config = config

    def caller(self, rng: random.Random) -> Caller:
        """What decides when a turn calls on the memory."""
        if self._config.calls == "fixed":
            return Fixed(self._config.window)
        mode = self._config.trigger or "rise"
        return Trigger(self._config.window, self._config.threshold, mode)

    async def speak(self, request: Request, memory: DualMemory, rng: random.Random) -> Spoken:
        """Decode a request's reply, with memory injected where the trigger asks for it.

        With the trigger off, or nothing in the memory, this is plain decoding, token for token. Latents stand behind
        the token at which the trigger fired; decoding goes on from the last of them. Its thoughts become units only
        when the caller says so: an agent does not hear itself unless it has a later turn.

        Args:
            request: what is asked.
            memory: called on, and not changed but for the counts of its units.
            rng: draws where thoughts are cut.

        Raises:
            OverWindow: the prompt and its reply do not fit.
            ReaderError: the model failed, for want of memory for example.
        """
        config = self._config
        chunker: Chunker[torch.Tensor] = Chunker(
            config.delimiters, math.log(self._latent.vocabulary), config.chunk, rng
        )
        watch = _Watch(self.caller(rng), chunker, config.window, on=config.triggering)
        injections: list[Injection] = []
        refused = 0
        async with self._latent.decode(request, window=1) as session:
            watch.newest = lambda: session.hidden(1)
            while True:
                watch.fired = False
                reply = await session.run(watch.step, request.sampling.max_tokens)
                if not watch.fired or session.ended or len(watch.tokens) >= request.sampling.max_tokens:
                    break
                recalled = await self._device.run(memory.call, watch.window())
                if recalled is None:
                    continue
                try:
                    await session.inject(recalled.latents)
                except OverWindow:
                    refused += 1
                    continue
                watch.caller.fired()
                injections.append(Injection(len(watch.tokens), recalled))
            reply = replace(reply, usage=session.usage)
        return Spoken(reply, watch.tokens, watch.all(self._latent.width), injections, watch.chunks(), refused)


class _Watch:
    """Told each token beside the model: hidden states, chunks, and whether to call on the memory."""

    newest: Callable[[], torch.Tensor]

    def __init__(self, caller: Caller, chunker: Chunker[torch.Tensor], window: int, *, on: bool) -> None:
        self.caller = caller
        self.fired = False
        self.tokens: list[int] = []
        self._on = on
        self._chunker = chunker
        self._states: list[torch.Tensor] = []
        self._recent: deque[torch.Tensor] = deque(maxlen=window)
        self._chunks: list[torch.Tensor] = []

    def step(self, step: Step) -> bool:
        state = self.newest()
        self.tokens.append(step.token)
        self._states.append(state)
        self._recent.append(state)
        chunk = self._chunker.step(step.text, step.entropy, state)
        if chunk:
            self._chunks.append(torch.cat(chunk))
        self.fired = self._on and self.caller.step(step.entropy)
        return self.fired

    def window(self) -> torch.Tensor:
        """The states of the last W tokens, (w, width)."""
        return torch.cat(list(self._recent))

    def all(self, width: int) -> torch.Tensor:
        """The states of all tokens, (n, width)."""
        return torch.cat(self._states) if self._states else torch.zeros(0, width)

    def chunks(self) -> list[torch.Tensor]:
        """All chunks, the rest of the reply among them."""
        rest = self._chunker.rest()
        return [*self._chunks, *([torch.cat(rest)] if rest else [])]
