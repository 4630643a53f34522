"""Readers and embedders as methods see them: metered where they are called, cached, bounded and timed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

from memharness import ledger
from memharness.identity import digest
from memharness.ledger import Call
from memharness.reader import Decoding, Embedder, LatentReader, Reader, Reply, Request
from memharness.types import Image, MethodError, Part, ReaderError, Text, Usage, UserError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memharness.store import RequestCache


class Timeout(Exception):
    """A call took longer than allowed, counted from the start of its service."""


def cancelled() -> bool:
    """Whether the running task was told to stop, as against a plug-in that raised `CancelledError` of its own."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def _checked(reply: object) -> Reply:
    if not isinstance(reply, Reply):
        raise ReaderError(f"generate() returned {type(reply).__name__}, not a Reply")
    if not isinstance(reply.text, str) or not isinstance(reply.usage, Usage):
        raise ReaderError("generate() returned a Reply without text or without usage")
    return reply


class Meter:
    """Writes calls into the ledger, adds them to the running account, and holds the price limit."""

    def __init__(
        self,
        write: Callable[[Call], None],
        *,
        cache: RequestCache | None,
        fresh: bool = False,
        timeout: float | None = None,
        price: Callable[[str, Usage], float | None] | None = None,
        bound: Callable[[Usage], float] | None = None,
        max_cost: float | None = None,
        tokens: Callable[[str, int], None] | None = None,
    ) -> None:
        """Bind.

        Args:
            write: appends a call to the ledger.
            cache: request cache, or None for no caching.
            fresh: do not take replies kept from before this process.
            timeout: seconds of service a reader call may take.
            price: USD of a call by model name, None if the model has no price.
            bound: the most a call without a known price may have cost, for the limit.
            max_cost: stop before spending more than this many USD.
            tokens: told every call's phase and tokens, for progress.
        """
        self.cache = cache
        self.fresh = fresh
        self.timeout = timeout
        self.cost = 0.0
        self._write = write
        self._price = price
        self._bound = bound
        self._max_cost = max_cost
        self._tokens = tokens

    def charge(self, kind: str, role: str, model: str, usage: Usage, **how: Any) -> None:
        """Charge a call to the running account and phase."""
        account, phase = ledger.account(), ledger.phase()
        price = self._price(model, usage) if self._price else None
        self._write(
            Call(
                kind, phase, role, model, account.context, account.question, account.attempt, usage, price=price, **how
            )
        )
        if how.get("status", "ok") == "ok":
            account.add(phase, usage)
        if not how.get("hit"):
            self.cost += price if price is not None else self._bound(usage) if self._bound else 0.0
        if self._tokens:
            self._tokens(phase, usage.text + usage.image + usage.output)

    def check_cost(self) -> None:
        """Refuse a further call past the price limit.

        Raises:
            UserError: if the limit is reached.
        """
        if self._max_cost is not None and self.cost >= self._max_cost:
            raise UserError(
                f"--max-cost {self._max_cost}: {self.cost:.4f} USD are spent; finished work is kept, raise it to go on"
            )


class Metered:
    """A reader under a role. See `memharness.method.MeteredReader`."""

    def __init__(self, reader: Reader, role: str, meter: Meter, places: asyncio.Semaphore) -> None:
        """Wrap a started reader; `places` bounds its calls in service over all roles."""
        self.reader = reader
        self.card = reader.card
        self.counter = reader.counter
        self.role = role
        self._meter = meter
        self._places = places
        self._model = f"{reader.card.name}:{reader.card.model}" if reader.card.model else reader.card.name
        self._identity = reader.identity()

    async def generate(self, request: Request) -> Reply:
        """Answer a request: from the cache, by a call in flight, or by the engine.

        Raises:
            OverWindow, ReaderError, Timeout: see `Reader.generate`; an engine's unforeseen exception is a ReaderError.
            UserError: the price limit is reached.
        """
        cache = self._meter.cache
        if cache is None or not self.card.cache:
            return await self._call(request)
        key = digest({"reader": self._identity, "request": asdict(request)})
        if self._meter.fresh:
            reply = await self._call(request)
            cache.put(key, asdict(reply))
            return reply
        made: Reply | None = None

        async def call() -> dict[str, Any]:
            nonlocal made
            made = await self._call(request)
            return asdict(made)

        value, hit = await cache.reply(key, call)
        if not hit and made is not None:
            return made
        reply = Reply(**{**value, "usage": Usage(**value["usage"]), "tools": tuple(value["tools"])})
        self._meter.charge("generate", self.role, self._model, reply.usage, hit=True)
        return reply

    async def _call(self, request: Request) -> Reply:
        arrived = time.perf_counter()
        async with self._places:
            self._meter.check_cost()
            begun = time.perf_counter()
            usage, status = Usage(), "ok"
            try:
                async with asyncio.timeout(self._meter.timeout) as limit:
                    reply = _checked(await self.reader.generate(request))
                usage = reply.usage
                return reply
            except TimeoutError as error:
                status = "timeout"
                waited = f"in {self._meter.timeout} s" if limit.expired() else f"in time ({error})"
                raise Timeout(f"{self._model} gave no reply {waited}") from None
            except asyncio.CancelledError as error:
                status = "cancelled"
                if not cancelled():
                    raise ReaderError(f"{self._model}: it cancelled its own call") from error
                raise
            except (ReaderError, UserError) as error:
                status = type(error).__name__
                raise
            except (Exception, SystemExit) as error:
                status = type(error).__name__
                raise ReaderError(f"{self._model}: {type(error).__name__}: {error}") from error
            finally:
                ended = time.perf_counter()
                self._meter.charge(
                    "generate",
                    self.role,
                    self._model,
                    usage,
                    status=status,
                    queued=begun - arrived,
                    seconds=ended - begun,
                )


class MeteredVectors:
    """The embedder, metered and cached by content. See `memharness.method.MeteredEmbedder`."""

    def __init__(self, embedder: Embedder, meter: Meter) -> None:
        """Wrap a started embedder."""
        self.embedder = embedder
        self.card = embedder.card
        self.width = embedder.width
        self._meter = meter
        self._model = f"{embedder.card.name}:{embedder.card.model}" if embedder.card.model else embedder.card.name
        self._identity = digest(embedder.identity())

    async def embed(
        self, inputs: Sequence[str | Sequence[Part]], kind: Literal["item", "query"] = "item"
    ) -> NDArray[np.float32]:
        """L2-normalised vectors, shape (n, width), f32.

        Raises:
            ReaderError: the engine failed, or gave vectors of another shape.
        """
        import numpy as np

        parts: list[tuple[Part, ...]] = [(Text(item),) if isinstance(item, str) else tuple(item) for item in inputs]
        keys = [digest([self._identity, kind, [asdict(part) for part in item]]) for item in parts]
        cache = self._meter.cache
        known = cache.vectors(sorted(set(keys)), self.width) if cache and not self._meter.fresh else {}
        missing = {key: item for key, item in zip(keys, parts, strict=True) if key not in known}
        if known:
            self._meter.charge(
                "embed",
                "embedder",
                self._model,
                Usage(text=sum(n for _, n in known.values())),
                hit=True,
                inputs=len(known),
            )
        if missing:
            known |= await self._call(missing, kind)
        out = np.empty((len(keys), self.width), np.float32)
        for row, key in enumerate(keys):
            out[row] = known[key][0]
        return out

    async def _call(
        self, missing: dict[str, tuple[Part, ...]], kind: Literal["item", "query"]
    ) -> dict[str, tuple[NDArray[np.float32], int]]:
        import numpy as np

        self._meter.check_cost()
        begun, usage, status = time.perf_counter(), Usage(), "ok"
        try:
            made, tokens = await self.embedder.embed(list(missing.values()), kind)
            usage = Usage(text=sum(tokens))
            vectors = np.asarray(made, np.float32)
            if vectors.shape != (len(missing), self.width) or len(tokens) != len(missing):
                raise ReaderError(
                    f"{self._model}: {vectors.shape} vectors and {len(tokens)} counts for {len(missing)} inputs "
                    f"of width {self.width}"
                )
            if not np.isfinite(vectors).all():
                raise ReaderError(f"{self._model}: a vector holds NaN or an infinity")
        except asyncio.CancelledError as error:
            status = "cancelled"
            if not cancelled():
                raise ReaderError(f"{self._model}: it cancelled its own call") from error
            raise
        except (ReaderError, UserError, MethodError) as error:
            status = type(error).__name__
            raise
        except (Exception, SystemExit) as error:
            status = type(error).__name__
            raise ReaderError(f"{self._model}: {type(error).__name__}: {error}") from error
        finally:
            self._meter.charge(
                "embed",
                "embedder",
                self._model,
                usage,
                status=status,
                seconds=time.perf_counter() - begun,
                inputs=len(missing),
            )
        rows = [(key, int(n), vector) for key, n, vector in zip(missing, tokens, vectors, strict=True)]
        if self._meter.cache is not None:
            self._meter.cache.put_vectors(rows)
        return {key: (vector, n) for key, n, vector in rows}


class MeteredLatent(Metered):
    """A latent reader as a method sees it: one ledger line a session, charged where the session was opened."""

    reader: LatentReader

    def __init__(self, reader: LatentReader, role: str, meter: Meter, places: asyncio.Semaphore) -> None:
        """Wrap a started latent reader."""
        super().__init__(reader, role, meter, places)
        self.width, self.vocabulary, self.norm = reader.width, reader.vocabulary, reader.norm
        self.dtype, self.device = reader.dtype, reader.device
        self.lease, self.replay = reader.lease, reader.replay

    async def see(self, image: Image, blocks: int, **how: Any) -> Any:
        """Latents of a picture; see `LatentReader.see`. Every vector is charged as an image token."""
        self._meter.check_cost()
        begun, usage, status = time.perf_counter(), Usage(), "ok"
        try:
            made = await self.reader.see(image, blocks, **how)
            usage = Usage(image=int(made.shape[0] * made.shape[1]))
            return made
        except BaseException as error:
            status = "cancelled" if isinstance(error, asyncio.CancelledError) else type(error).__name__
            raise
        finally:
            seconds = time.perf_counter() - begun
            self._meter.charge("see", self.role, self._model, usage, status=status, seconds=seconds)

    @asynccontextmanager
    async def decode(self, request: Request, *, window: int) -> AsyncIterator[Decoding]:
        """A session; see `LatentReader.decode`. What it used is charged when it ends, however it ends."""
        self._meter.check_cost()
        begun, status = time.perf_counter(), "ok"
        async with self.reader.decode(request, window=window) as decoding:
            try:
                yield decoding
            except BaseException as error:
                status = "cancelled" if isinstance(error, asyncio.CancelledError) else type(error).__name__
                raise
            finally:
                seconds = time.perf_counter() - begun
                self._meter.charge("latent", self.role, self._model, decoding.usage, status=status, seconds=seconds)
