"""One decoding session on a frozen model, whose state belongs to it alone."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from memharness.reader import Decoding, Reply, Request, Step
from memharness.readers import device
from memharness.readers.chat import draw, generator
from memharness.readers.frozen import Frozen, Stretch, entropy, join
from memharness.readers.network import Encoded
from memharness.readers.wording import split_thinking
from memharness.types import OverWindow, ReaderError, Usage

if TYPE_CHECKING:
    import torch

T = TypeVar("T")


def temperature(request: Request) -> float:
    """The temperature at which a request's tokens are told apart: its own, or 1 where decoding is greedy."""
    return request.sampling.temperature or 1.0


class Words:
    """Tokens as a text that grows, at a cost that does not grow with it."""

    def __init__(self, decode: Callable[[Sequence[int]], str]) -> None:
        """Begin with nothing; `decode` makes text of tokens."""
        self.text = ""
        self._decode = decode
        self._settled = ""  # the text without an unfinished character at its end
        self._recent: list[int] = []  # the last token of that text, since it may matter to the next, and those after it
        self._joint = ""  # text of that last token

    def add(self, token: int) -> None:
        """One token more. A character whose bytes are not complete is shown as U+FFFD."""
        self._recent.append(token)
        now = self._decode(self._recent)
        self.text = self._settled + now[len(self._joint) :]
        if not now.endswith("\ufffd"):
            self._settled, self._recent = self.text, self._recent[-1:]
            self._joint = self._decode(self._recent)


class Session(Decoding):
    """A decoding session. See `memharness.reader.Decoding`; opened by `LatentDecoding.decode`.

    A position is a token of the prompt, a decoded token or an injected latent, in the order of their coming. A decoded
    token becomes one when something follows it: so the newest state is the one whose logits the last token was drawn
    from, and its step's entropy is of those logits. Latents stand behind the last decoded token, and the next token is
    drawn from the state of the last of them.

    The prompt is read by the first `run` or `inject`, and counted then. `usage.latent` counts injected vectors, which
    are no tokens.
    """

    def __init__(
        self,
        frozen: Frozen,
        prompt: Encoded,
        request: Request,
        *,
        window: int,
        room: int,
        slice: float,
        entropy_temperature: float | None,
    ) -> None:
        """Bind; nothing is run yet.

        Args:
            frozen: the network.
            prompt: the request, encoded.
            request: how to decode.
            window: hidden states kept.
            room: most positions this session may cache.
            slice: seconds it decodes at a time.
            entropy_temperature: see `LatentConfig`.
        """
        self.usage = Usage()
        self.interrupted = False
        self._frozen = frozen
        self._prompt = prompt
        self._request = request
        self._seconds = slice
        self._temperature = entropy_temperature or temperature(request)
        self._window = window
        self._room = room
        self._generator = (
            generator(prompt, request.sampling, request.sample) if request.sampling.temperature > 0 else None
        )
        self._tokens: list[int] = []
        self._words = Words(frozen.network.decode)
        self.ended = False
        self._pending = False  # the last token is no position yet
        self._cache: Any = None
        self._cached = 0
        self._following: Any = None  # the next position
        self._logits: Any = None  # of the newest state, (vocabulary,)
        self._states: deque[torch.Tensor] = deque()
        self._busy = False
        self._closed = False
        self._failure = ""

    # ------------------------------------------------------------------------------------------ what a method calls

    async def run(self, until: Callable[[Step], bool], limit: int) -> Reply:
        """Decode until `until` says stop, the model stops, or a limit.

        `until` is called for every token, an end token included, on the device thread between two passes of the model;
        there it may call `hidden`, and should be quick. The thread is left at the end, and every `slice` seconds to let
        others in. What `until` raises ends the run and is raised here, with its token decoded.

        Args:
            until: told each token; True pauses behind it.
            limit: most tokens of this run; the request's `max_tokens` holds for the session. 0 only reads the prompt.

        Returns:
            the session's reply so far, as `generate` would give it: all its text, the prefill before it, and all its
            usage. `finish` is `stop` once the model has ended (an end token, a stop string), after which nothing more
            is decoded; else `length`, be it a pause or a limit.

        Raises:
            ReaderError: the model failed, for want of memory for example: this session is lost, no other is touched.
        """
        end = min(len(self._tokens) + max(0, limit), self._request.sampling.max_tokens)
        with self._turn():
            while not await self._on_device(self._slice, until, end):
                pass
        return self._reply()

    async def inject(self, latents: Any) -> None:
        """Put latent vectors behind what was decoded so far.

        Args:
            latents: (n, width) in the space of input embeddings, on any device and of any float type; or, from
                `see(…, deepstack=True)`, (n, 1 + layers, width): what the model adds after its first layers where its
                prompt has pictures then comes with each vector.

        Raises:
            ValueError: a wrong shape, or the model has ended.
            OverWindow: they do not fit into the window or this session's share of the cache.
            ReaderError: the model failed.
        """
        stretch = self._frozen.latents(latents)
        if self.ended:
            raise ValueError("latents after the end of a reply: nothing would be decoded behind them")
        cached = self._cached or len(self._prompt.ids)
        ahead = self._request.sampling.max_tokens - len(self._tokens) + self._pending
        if cached + len(stretch) + ahead > self._room:
            raise OverWindow(
                f"{cached} positions, {len(stretch)} latents and {ahead} tokens to come exceed the {self._room} "
                "that this session may cache"
            )
        with self._turn():
            await self._on_device(self._guarded, self._put, stretch)

    def hidden(self, n: int) -> torch.Tensor:
        """Last-layer hidden states, after the final norm, of the last n positions, oldest first.

        They are copies in the model's dtype, and may be used in training.

        Args:
            n: at most the session's `window`.

        Returns:
            (n, width); fewer rows where the session has fewer positions, which is none before its first call.

        Raises:
            ValueError: n is more than the window.
        """
        import torch

        if n > self._window:
            raise ValueError(f"hidden({n}): this session keeps window={self._window} states")
        rows = [self._frozen.nothing()]
        for states in reversed(self._states):
            if n <= 0:
                break
            rows.insert(1, states[-n:])
            n -= len(states)
        with torch.inference_mode(False):
            return torch.cat(rows)

    # -------------------------------------------------------------------------------------------- its turn and its end

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if self._failure:
            raise ReaderError(self._failure)
        if self._busy or self._closed:
            raise ValueError("this session is closed" if self._closed else "this session is busy: one call at a time")
        self._busy = True
        try:
            yield
        finally:
            self._busy = False

    async def _on_device(self, function: Callable[..., T], *arguments: Any) -> T:
        try:
            return await device.run(function, *arguments)
        except asyncio.CancelledError:
            self.interrupted = True  # what runs there ends at its next token
            self.close()
            raise

    def _guarded(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call the model. A failure of it is this session's alone, and frees its cache.

        Tensors made here cannot be trained with; `hidden` copies what leaves the session out of inference mode.
        """
        import torch

        try:
            with torch.inference_mode():
                return function(*arguments)
        except Exception as error:
            self._failure = f"{type(error).__name__} with {self._cached} positions cached: {error}"
            full = device.short_of_memory(error)
        self.free()  # not in the handler: the traceback holds on to the tensors of the pass that failed
        if full:
            device.free_memory()
        raise ReaderError(self._failure)

    def close(self) -> None:
        """Take no more calls, and let a running one end at its next token."""
        self._closed = True

    def free(self) -> None:
        """Drop the cache and the states."""
        self._cache = self._logits = None
        self._states.clear()

    def _reply(self) -> Reply:
        network, prefill = self._frozen.network, self._request.prefill
        reasoning, text, thinking = split_thinking(network.decode(self._tokens), self._prompt.thinking)
        stops = self._stops(text)
        if reasoning:
            self.usage = replace(self.usage, reasoning=network.thinking_tokens(self._tokens))
        finish: Literal["stop", "length"] = "stop" if self.ended and not thinking else "length"
        return Reply(prefill + (text[: min(stops)] if stops else text), self.usage, finish, reasoning)

    def _stops(self, text: str) -> list[int]:
        """Where stop strings begin in a text."""
        return [at for stop in self._request.sampling.stop if stop and (at := text.find(stop)) >= 0]

    # --------------------------------------------------------------------------------------------- on the device thread

    def _slice(self, until: Callable[[Step], bool], end: int) -> bool:
        """Decode until there is a reason to stop (True) or the slice is over (False)."""
        due = time.perf_counter() + self._seconds
        self._guarded(self._read)
        while len(self._tokens) < end and not self.ended and not self._closed:
            if until(self._guarded(self._step)):
                return True
            if time.perf_counter() >= due:
                return False
        return True

    def _read(self) -> None:
        if self._cache is not None:
            return
        stretch, positions, self._following = self._frozen.prompt(self._prompt)
        self._cache = self._frozen.network.cache()
        self._feed(stretch, positions)
        self.usage = Usage(text=self._prompt.text, image=self._prompt.image)

    def _put(self, stretch: Stretch) -> None:
        self._read()
        last = [self._frozen.tokens(self._tokens[-1:])] if self._pending else []
        self._follow(join([*last, stretch]))
        self.usage = replace(self.usage, latent=self.usage.latent + len(stretch))

    def _step(self) -> Step:
        if self._pending:
            self._follow(self._frozen.tokens(self._tokens[-1:]))
        sampling = self._request.sampling
        uncertainty = float(entropy(self._logits, self._temperature))
        if not math.isfinite(uncertainty):
            raise ArithmeticError("its logits are not finite")
        token = draw(self._logits, sampling, self._generator) if self._generator else int(self._logits.argmax())
        self._tokens.append(token)
        self._pending = True
        self._words.add(token)
        self.ended = token in self._frozen.network.ends or self._stopped()
        self.usage = replace(self.usage, output=len(self._tokens))
        return Step(token, self._request.prefill + self._words.text, uncertainty, len(self._tokens) - 1)

    def _stopped(self) -> bool:
        """Whether a stop string stands in what was said after thinking."""
        if not any(self._request.sampling.stop):
            return False
        _, text, thinking = split_thinking(self._words.text, self._prompt.thinking)
        return not thinking and bool(self._stops(text))

    def _follow(self, stretch: Stretch) -> None:
        positions = self._frozen.places(self._following, len(stretch))
        self._feed(stretch, positions)
        self._following = self._following + len(stretch)
        self._pending = False

    def _feed(self, stretch: Stretch, positions: torch.Tensor) -> None:
        states = self._frozen.states(stretch, positions, self._cache)
        self._logits = self._frozen.logits(states[-1:])[0]
        self._cached += len(stretch)
        if len(states) > self._window:
            states = states[len(states) - self._window :].clone()  # a view would keep all of a long prompt's
        self._states.append(states)
        while sum(map(len, self._states)) - len(self._states[0]) >= self._window and len(self._states) > 1:
            self._states.popleft()
