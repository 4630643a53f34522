"""Latent decoding: readers whose model is decoded step by step, with latent vectors put in, and replayed."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from memharness.config import Config, option
from memharness.media import MediaStore
from memharness.reader import Counter, Decoding, LatentReader, ReaderCard, Request
from memharness.readers import device
from memharness.readers.chat import BatchConfig, ChatReader
from memharness.readers.frozen import Frozen, Stretch, bytes_per_position, join
from memharness.readers.leases import Lease, Pool
from memharness.readers.network import Encoded, Network
from memharness.readers.session import Session, temperature
from memharness.readers.sight import Remainder, Sight, blocks_of, levels_of
from memharness.types import Image, OverWindow, ReaderError, UserError

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image as Picture

T = TypeVar("T")


class LatentConfig(BatchConfig):
    """How batches and latent sessions are run. Nothing here touches what `generate` says."""

    entropy_temperature: float | None = option(
        None,
        "Temperature of the next-token distribution whose entropy a step reports. Unset, it is the request's own, or 1 "
        "where decoding is greedy, since at 0 the entropy would always be 0.",
        source="L²-VMAS, eq. 16: the decoding temperature",
        gt=0,
        neutral=True,
    )
    max_blocks: int = option(
        64,
        "Most blocks that `see` cuts a picture into; a larger picture is made smaller, in its own shape.",
        unit="blocks",
        ge=1,
        neutral=True,
    )
    max_sessions: int = option(
        8, "Most sessions open together; a question takes all it needs at once.", unit="sessions", ge=1, how=True
    )
    max_cached_tokens: int = option(
        65536,
        "Most positions (tokens and latent vectors) in the key-value caches of all sessions together; one session may "
        "cache an equal share of them.",
        unit="tokens",
        ge=1,
        how=True,
    )
    slice: float = option(
        0.1,
        "How long a session decodes before other sessions and batches have their turn on the device.",
        unit="seconds",
        ge=0,
        how=True,
    )


class LatentDecoding(ChatReader, LatentReader):
    """A chat reader whose network can also be decoded step by step. What in-process readers inherit.

    It works for Qwen3-VL, GLM-4.1V and InternVL (the checkpoints that transformers itself runs), and for models of
    words only whose logits are their output layer's alone.

    Sessions share the model by turns, a slice each, in the order of their coming, beside the reader's batches. Their
    caches share a pool of `max_sessions` and `max_cached_tokens`; a session outside of a lease takes one of its own.
    """

    config: LatentConfig
    config_class: ClassVar[type[Config]] = LatentConfig
    _frozen: Frozen | None = None

    def __init__(self, model: str, config: LatentConfig, media: MediaStore, card: ReaderCard, counter: Counter) -> None:
        """As `ChatReader`, with the capability `latent`."""
        super().__init__(model, config, media, replace(card, capabilities=card.capabilities | {"latent"}), counter)

    async def start(self) -> None:
        """Load the weights, start the batcher, and say what the sessions' caches may hold.

        Raises:
            UserError: the weights are not at hand.
        """
        await super().start()
        network, pool = self._network, self.pool
        self.dtype, self.device = network.dtype, network.device
        embeddings = network.model.get_input_embeddings().weight
        self.width = int(embeddings.shape[1])
        self.vocabulary = int(network.model.get_output_embeddings().weight.shape[0])
        self.norm = float(embeddings.detach().float().norm(dim=-1).mean())
        held = pool.positions * bytes_per_position(network) / 1e9
        latent = f"{pool.sessions} sessions, {pool.positions} cached tokens" + (f", {held:.3g} GB" if held else "")
        self.card = replace(self.card, provenance={**self.card.provenance, "latent": latent})

    async def close(self) -> None:
        """Free the weights."""
        self._frozen = None
        await super().close()

    @functools.cached_property
    def pool(self) -> Pool:
        """The memory that sessions share."""
        return Pool(self.config.max_sessions, self.config.max_cached_tokens)

    def lease(self, n: int, room: int | None = None) -> Lease:
        """All sessions a question will have open together, taken at once by `async with`.

        Sessions opened inside, also by tasks started inside, are of it. Leases are served first come, first served. A
        second one inside a first is refused, since it could wait for ever.

        Args:
            n: sessions.
            room: positions that each may cache: prompt, `max_tokens` and latents. An equal share of the pool if None.

        Raises:
            UserError: more than the pool ever holds.
        """
        return self.pool.lease(n, room)

    @asynccontextmanager
    async def decode(self, request: Request, *, window: int) -> AsyncIterator[Decoding]:
        """Open a session; it is closed and its cache freed at the end of the `async with`.

        Args:
            request: as for `generate`, without schema and tools.
            window: how many last hidden states `hidden` can give.

        Raises:
            OverWindow: prompt and `max_tokens` together exceed the window, or a session's share of the cache.
            ReaderError: the request needs what this model cannot do.
            ValueError: all sessions of the lease are open, or a session is already open here outside of a lease.
        """
        frozen, prompt, request = await self._opened(request)
        room = self._share(len(prompt.ids), request.sampling.max_tokens)
        async with AsyncExitStack() as stack:
            lease = self.pool.held()
            if lease is None:
                lease = await stack.enter_async_context(self.pool.lease(1, room))
            lease.use()
            session = Session(
                frozen,
                prompt,
                request,
                window=window,
                room=min(room, frozen.network.window or room),
                slice=self.config.slice,
                entropy_temperature=self.config.entropy_temperature,
            )
            try:
                yield session
            finally:
                session.close()
                await _end(session, lease)

    async def see(
        self,
        image: Image,
        blocks: int,
        *,
        levels: int | None = None,
        remainder: Remainder = "resize",
        deepstack: bool = False,
    ) -> torch.Tensor:
        """Latents of a picture, block by block, by the model's own vision encoder and projector.

        The picture is cut, row by row, into squares of `blocks` vision patches a side: 128 pixels for 8 patches of 16.
        Each is encoded by itself, as it is and halved `levels` - 1 times, past the processor's resizing, which would
        bring a small block up to its own least size; the results follow each other, fine to coarse. A side of 2^g at
        merge 2 gives 4^(g-1) + … + 4 + 1 vectors: 21 at g = 3, the paper's setting.

        DeepStack (Qwen3-VL adds features of three encoder layers to the outputs of the first decoder layers, where its
        prompt has pictures) is left out unless asked for, since it does not survive compressing the vectors; vectors
        that are injected as they are should have it.

        Args:
            image: the picture.
            blocks: side of a block in vision patches: the paper's 2^g.
            levels: how many sizes; None is as many as the block allows (g).
            remainder: `resize` to whole blocks, or `pad` with grey on the right and at the bottom.
            deepstack: give what DeepStack adds as well.

        Returns:
            (blocks, n, width) in the reader's dtype, of at most `max_blocks` blocks; or with DeepStack
            (blocks, n, 1 + layers, width), as `Decoding.inject` takes it. No gradient reaches the encoder.

        Raises:
            DataError: the picture is not at hand or cannot be decoded.
            ReaderError: the model sees no pictures, or failed.
            ValueError: a block of this side cannot be encoded, or not at so many levels.

        Source: L²-VMAS eq. 4, 5 and appendix C.2.
        """
        if self._batcher is None:
            raise ReaderError("the reader was not started, or is closed")
        network = self._network
        if not network.sees:
            raise ReaderError(f"{self.card.name} sees no pictures (capability `image`); use another reader")
        picture = await device.prepare(self.media.open, image)
        return await device.run(self._see, network, picture, blocks, levels, remainder, deepstack)

    def _see(
        self, network: Network, picture: Picture, side: int, levels: int | None, remainder: Remainder, deepstack: bool
    ) -> torch.Tensor:
        import torch

        sight = Sight(network)
        most = levels_of(side, sight.merge)
        if levels is not None and not 1 <= levels <= most:
            raise ValueError(f"levels={levels}: a block of {side} patches has 1 … {most}")
        blocks = blocks_of(picture, side * sight.patch, self.config.max_blocks, remainder)
        with torch.no_grad():
            return _named(sight.encode, blocks, levels or most, deepstack)

    async def replay(self, request: Request, tokens: Sequence[int], injections: Mapping[int, Any]) -> torch.Tensor:
        """Log-probabilities of tokens under teacher forcing, with latents injected, in one pass without a cache.

        They are of softmax(logits / T), T the request's temperature, or 1 where it is greedy; `top_p` cuts nothing.
        Gradients reach the latents and nothing else. Call `backward` through `kit.device.run`.

        Args:
            request: what the session was opened with.
            tokens: what it decoded, n ids.
            injections: latents, as `Decoding.inject` takes them, by the number of tokens decoded before them, 0 … n;
                all that were injected at one place are one tensor. Those at n follow the last token and change nothing.

        Returns:
            (n,), f32, on the reader's device.

        Raises:
            OverWindow: all together exceed the window.
            ReaderError: the model failed.
            ValueError: a place outside of 0 … n, or latents of a wrong shape.
        """
        return (await self.replays([(request, tokens, injections)]))[0]

    async def replays(self, turns: Sequence[tuple[Request, Sequence[int], Mapping[int, Any]]]) -> list[torch.Tensor]:
        """What `replay` gives for each turn, all of them side by side in one pass, filled up to the longest.

        Args:
            turns: arguments of `replay`. Memory and time are those of so many turns as long as the longest.

        Raises:
            OverWindow, ReaderError, ValueError: as `replay`.
        """
        forced = [await self._forced(*turn) for turn in turns]
        if self._frozen is None or not forced:
            return []
        return await device.run(_named, _replay, self._frozen, forced)

    async def _forced(self, request: Request, tokens: Sequence[int], injections: Mapping[int, Any]) -> Forced:
        outside = sorted(at for at in injections if not 0 <= at <= len(tokens))
        if outside:
            raise ValueError(f"injections at {outside}: {len(tokens)} tokens have places 0 … {len(tokens)}")
        frozen, prompt, _ = await self._opened(request)
        latents = {at: frozen.latents(latents) for at, latents in injections.items() if at < len(tokens)}
        total = len(prompt.ids) + len(tokens) + sum(map(len, latents.values()))
        if frozen.network.window and total > frozen.network.window:
            raise OverWindow(f"{total} tokens and latents exceed the window of {frozen.network.window}")
        return Forced(prompt, tuple(tokens), latents, temperature(request))

    async def _opened(self, request: Request) -> tuple[Frozen, Encoded, Request]:
        """The network, and a request's prompt and the request with its real output limit."""
        prompt, sampling = await self.read(request)
        if self._frozen is None:
            self._frozen = await device.run(_named, Frozen, self._network)
        return self._frozen, prompt, replace(request, sampling=sampling)

    def _share(self, prompt: int, output: int) -> int:
        """Positions that a session may cache: its lease's, or an equal share of the pool and more if it needs more."""
        held = self.pool.held()
        room = held.room if held else min(self.pool.positions, max(self.pool.room, prompt + output))
        if prompt + output > room:
            raise OverWindow(
                f"{prompt} prompt tokens and {output} to come exceed the {room} that a session may cache; raise "
                "max_cached_tokens, or lease more room"
            )
        return room


async def _end(session: Session, lease: Lease) -> None:
    """Free a session's cache, then give its share back; where a cancelled call may still run, behind it."""
    if not session.interrupted:
        session.free()
        lease.put_back()
        return
    freed = asyncio.ensure_future(device.run(session.free))
    freed.add_done_callback(lambda _: lease.put_back())
    await asyncio.shield(freed)  # cancelled once more, it is still done


@dataclass(frozen=True, slots=True)
class Forced:
    """A turn to be replayed: prompt, tokens, latents by the number of tokens before them, and the temperature."""

    prompt: Encoded
    tokens: tuple[int, ...]
    latents: Mapping[int, Stretch]
    heat: float

    def laid(self, frozen: Frozen, first: Stretch) -> tuple[Stretch, list[int]]:
        """The whole turn behind its prompt as a sequence, and the places whose states its tokens were drawn from."""
        stretches, drawn_from = [first], []
        length = len(first)
        for at, token in enumerate(self.tokens):
            if at in self.latents:
                stretches.append(self.latents[at])
                length += len(self.latents[at])
            drawn_from.append(length - 1)
            stretches.append(frozen.tokens([token]))
            length += 1
        return join(stretches), drawn_from


def _replay(frozen: Frozen, turns: Sequence[Forced]) -> list[torch.Tensor]:
    import torch

    with torch.no_grad():
        begun = [frozen.prompt(turn.prompt) for turn in turns]
    laid = [turn.laid(frozen, first) for turn, (first, _, _) in zip(turns, begun, strict=True)]
    longest = max(len(stretch) for stretch, _ in laid)
    places = [torch.cat([at, frozen.places(after, longest - len(first))], dim=-1) for first, at, after in begun]
    rows = [row for row, (_, drawn_from) in enumerate(laid) for _ in drawn_from]
    columns = [at for _, drawn_from in laid for at in drawn_from]
    tokens = [token for turn in turns for token in turn.tokens]
    heats = [turn.heat for turn in turns for _ in turn.tokens]
    with torch.enable_grad():
        states = frozen.beside([stretch for stretch, _ in laid], places)
        logits = frozen.logits(states[rows, columns])
        chosen = torch.tensor(tokens, dtype=torch.long, device=logits.device)
        logs = torch.log_softmax(logits / logits.new_tensor(heats)[:, None], dim=-1).gather(1, chosen[:, None])[:, 0]
    return list(torch.split(logs, [len(turn.tokens) for turn in turns]))


def _named(function: Callable[..., T], *arguments: Any) -> T:
    """Call a model; its failure is a ReaderError that says what it was."""
    try:
        return function(*arguments)
    except UserError:
        raise
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
    raise ReaderError(failure)  # not in the handler: the traceback holds on to the tensors of the pass that failed
