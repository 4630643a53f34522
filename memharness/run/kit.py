"""The kit a method builds with: readers by role, the embedder, pictures, the device thread, generators and a folder."""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from memharness import ledger
from memharness.identity import digest
from memharness.method import Phase
from memharness.prompts import Renderer, answer_request, template
from memharness.reader import LatentReader, Reader, Request, Sampling, device_thread
from memharness.registry import plugin
from memharness.run.metered import Meter, Metered, MeteredLatent, MeteredVectors
from memharness.types import Evidence, Image, Part, Question, Readout, UserError

if TYPE_CHECKING:
    from memharness.media import MediaStore

T = TypeVar("T")


class DeviceThread:
    """The one thread for all in-process tensor work. See `memharness.method.Device`."""

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run there, in the caller's context."""
        context = contextvars.copy_context()
        return await asyncio.get_running_loop().run_in_executor(
            device_thread(), lambda: context.run(function, *arguments)
        )


class Models:
    """The models of a process: started at first use, each once, and closed at the end."""

    def __init__(
        self,
        roles: Mapping[str, str],
        readers: Mapping[str, Reader],
        embedder: Any,
        meter: Meter,
        make: Callable[[str], Reader],
    ) -> None:
        """Bind.

        Args:
            roles: reader spec by role.
            readers: reader by spec, not started.
            embedder: the embedder, not started, or None.
            meter: charges calls.
            make: makes a reader from a spec, for methods whose config names one.
        """
        self._roles = roles
        self._readers = dict(readers)
        self._embedder = embedder
        self._meter = meter
        self._make = make
        self._started: dict[str, Reader] = {}
        self._places: dict[str, asyncio.Semaphore] = {}
        self._opening = asyncio.Lock()  # contexts opened side by side may name one spec
        self.vectors: MeteredVectors | None = None

    async def start(self) -> None:
        """Start every reader that a role needs, and the embedder."""
        for spec in dict.fromkeys(self._roles.values()):
            await self._start(spec)
        if self._embedder is not None and self.vectors is None:
            with plugin("embedder"):
                await self._embedder.start()
            self.vectors = MeteredVectors(self._embedder, self._meter)

    async def _start(self, spec: str) -> Reader:
        if spec not in self._started:
            reader = self._readers[spec] if spec in self._readers else self._make(spec)
            with plugin(f"reader {spec}"):
                await reader.start()
            self._started[spec] = reader
            self._places[spec] = asyncio.Semaphore(max(1, reader.card.max_inflight))
        return self._started[spec]

    def role(self, role: str) -> Metered:
        """The metered reader of a role; the answer reader for a role that was not bound."""
        spec = self._roles.get(role, self._roles["answer"])
        return Metered(self._started[spec], role, self._meter, self._places[spec])

    def latent(self, role: str) -> MeteredLatent:
        """The metered latent reader of a role.

        Raises:
            UserError: if it cannot be decoded step by step.
        """
        spec = self._roles.get(role, self._roles["answer"])
        reader = self._started[spec]
        if not isinstance(reader, LatentReader):
            raise UserError(
                f"--model {role}={spec}: this method needs a reader that decodes step by step; {spec} does not"
            )
        return MeteredLatent(reader, role, self._meter, self._places[spec])

    async def open(self, spec: str, role: str) -> Metered:
        """A metered reader by spec."""
        async with self._opening:
            reader = await self._start(spec)
        return Metered(reader, role, self._meter, self._places[spec])

    def cards(self) -> dict[str, dict[str, Any]]:
        """Cards of what was started, by spec, as JSON."""
        cards = {spec: reader.card for spec, reader in self._started.items()}
        if self.vectors is not None:
            cards["embedder"] = self.vectors.card
        return {spec: {**vars(card), "capabilities": sorted(card.capabilities)} for spec, card in cards.items()}

    async def close(self) -> None:
        """Close everything started."""
        for reader in self._started.values():
            await reader.close()
        if self.vectors is not None:
            await self._embedder.close()


class Captions:
    """Describes pictures by the `captioner` role. See `memharness.method.Captioner`."""

    def __init__(self, models: Models) -> None:
        """Use these models."""
        self._models = models

    async def caption(self, image: Image) -> str:
        """One caption, greedy, at most 96 tokens."""
        messages = template("caption.v1").fill({"question": (image,)})
        reply = await self._models.role("captioner").generate(Request(messages, Sampling(max_tokens=96)))
        return reply.text.strip()


class RunKit:
    """The kit of one context. See `memharness.method.Kit`."""

    def __init__(
        self,
        context: str,
        folder: Path,
        models: Models,
        media: MediaStore,
        device: DeviceThread,
        renderer: Renderer,
        *,
        seed: int,
        items: int,
        sampling: Sampling,
        prompt: str,
    ) -> None:
        """Bind to one context; see the attributes of `memharness.method.Kit`."""
        self.context = context
        self.items = items
        self.images = media
        self.device = device
        self.captioner = Captions(models)
        self._folder = folder
        self._models = models
        self._renderer = renderer
        self._seed = seed
        self._sampling = sampling
        self._prompt = prompt
        self._background: set[asyncio.Task[None]] = set()

    @property
    def folder(self) -> Path:
        """Where this context's memory may write; made at first use."""
        self._folder.mkdir(parents=True, exist_ok=True)
        return self._folder

    @property
    def embedder(self) -> MeteredVectors:
        """The embedder.

        Raises:
            UserError: if the method's card does not say that it embeds.
        """
        if self._models.vectors is None:
            raise UserError("this method uses the embedder but its card does not say `embeds=True`")
        return self._models.vectors

    def reader(self, role: str = "answer") -> Metered:
        """The reader bound to a role."""
        return self._models.role(role)

    def latent(self, role: str = "answer") -> MeteredLatent:
        """The latent reader bound to a role."""
        return self._models.latent(role)

    async def open_reader(self, spec: str) -> Metered:
        """A reader by spec."""
        return await self._models.open(spec, "extra")

    def rng(self, *key: object) -> random.Random:
        """A generator seeded by the run's seed and this key."""
        return random.Random(int(digest([self._seed, self.context, *map(str, key)]), 16))

    def phase(self, name: Phase) -> AbstractContextManager[None]:
        """Charge calls made inside to another phase."""
        return ledger.in_phase(name)

    def background(self, work: Coroutine[Any, Any, None]) -> None:
        """Start work that `drain` waits for."""
        self._background.add(asyncio.create_task(work))

    async def drain(self) -> None:
        """Wait for background work; its first failure is raised."""
        while self._background:
            done, self._background = self._background, set()
            for result in await asyncio.gather(*done, return_exceptions=True):
                if isinstance(result, BaseException):
                    raise result

    def render(self, evidence: Sequence[Evidence]) -> tuple[Part, ...]:
        """Evidence as the harness would show it."""
        return self._renderer.evidence(evidence)

    def prompt(self, question: Question, readout: Readout) -> Request:
        """The harness's own answer prompt."""
        return answer_request(question, readout, self._renderer, self._sampling, self._prompt)
