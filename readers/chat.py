"""Chat models run by transformers in this process: requests in batches, and the decoding loop."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import hashlib
import logging
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from memharness.config import Config, option
from memharness.media import MediaStore
from memharness.reader import Counter, Reader, ReaderCard, Reply, Request, Sampling
from memharness.readers import device
from memharness.readers.network import Encoded, Network
from memharness.readers.wording import split_thinking
from memharness.types import OverWindow, ReaderError, Text, Usage

if TYPE_CHECKING:
    import torch

log = logging.getLogger(__name__)


class BatchConfig(Config):
    """How requests become batches. Nothing here changes what a model says."""

    threads: int = option(
        0, "CPU threads; 0 takes OMP_NUM_THREADS, or else every core this process may use.", ge=0, how=True
    )
    max_batch: int = option(16, "Most requests in one batch.", unit="requests", ge=1, how=True)
    max_batch_tokens: int = option(
        8192,
        "Most prompt tokens in one batch, padding included; a longer prompt runs alone. "
        "A batch that memory cannot hold is halved, and so is this.",
        unit="tokens",
        ge=1,
        how=True,
    )
    gather: float = option(
        0.005, "How long an idle model's first request waits for company.", unit="seconds", ge=0, how=True
    )


class ChatConfig(BatchConfig):
    """How an in-process chat model is run. Only `dtype` may change what it says."""

    dtype: Literal["f32", "bf16"] = option(
        "f32",
        "Number format of the weights. In f32 a greedy reply is the same in every batch; in bf16 it need not be.",
    )
    device: str = option("auto", "Torch device; `auto` takes CUDA where there is one.", how=True)


@dataclass(slots=True, eq=False)
class _Job:
    """One request on its way through the batcher, and what was decoded for it so far."""

    prompt: Encoded
    sampling: Sampling
    sample: int
    done: asyncio.Future[None]
    tokens: list[int] = field(default_factory=list)
    text: str = ""
    reasoning: str = ""
    finish: Literal["stop", "length"] | None = None

    @property
    def width(self) -> int:
        """Tokens of the prompt."""
        return len(self.prompt.ids)

    def order(self) -> tuple[int, list[int], int, int]:
        """Length first, so that little is padded; then content, so that arrival does not decide who shares a batch."""
        return -self.width, self.prompt.ids, self.sampling.max_tokens, self.sample


class ChatReader(Reader):
    """A chat model in this process, batched. A subclass says how its network is loaded.

    Requests that wait at the same time form a round: sorted by length and content, cut into batches, and run to the
    end before the next round is gathered, so none waits for ever. Who waits at the same time depends on timing; in f32
    that does not change a greedy reply, in bf16 it may. Sampled tokens are drawn by a generator seeded by the request.

    A batch that the device's memory cannot hold is halved and begun again, down to single requests; one that does not
    fit alone is an error, and the others go on.

    Usage counts the prompt as the model reads it (chat template included, padding not) and every generated token, the
    end token and a matched stop string included, as vLLM does. A prefill counts as prompt; the reply's text begins
    with it. What a model thinks before its last `</think>` is the reply's `reasoning`, its tokens `usage.reasoning`;
    stop strings are looked for after it. A reply that ends in the middle of thinking has no text and finish `length`.
    """

    config: BatchConfig
    config_class: ClassVar[type[Config]] = ChatConfig
    _network: Network  # from `start` until `close`

    def __init__(self, model: str, config: BatchConfig, media: MediaStore, card: ReaderCard, counter: Counter) -> None:
        """Bind; weights load in `start`."""
        super().__init__(model, config, media)
        self.card = replace(card, max_inflight=2 * config.max_batch)
        self.counter = counter
        self._queue: list[_Job] = []
        self._open: set[_Job] = set()
        self._encoding = 0
        self._ceiling = config.max_batch_tokens
        self._wake = asyncio.Event()
        self._batcher: asyncio.Task[None] | None = None

    @abstractmethod
    def load(self) -> Network:
        """Load the network, on the device thread.

        Raises:
            UserError: it is not at hand.
        """

    async def prepare(self) -> None:
        """Make the weights ready to load, once per machine."""

    async def start(self) -> None:
        """Load the weights and start the batcher.

        Raises:
            UserError: the weights are not at hand.
        """
        await self.prepare()
        provenance = await device.run(self._load)
        self.card = replace(self.card, window=self._network.window, provenance=provenance)
        # An empty context: the batcher works for every question, and must not inherit the one that started it.
        self._batcher = asyncio.create_task(self._batch_forever(), context=contextvars.Context())

    def _load(self) -> dict[str, str]:
        import torch
        import transformers

        threads = device.set_threads(self.config.threads)
        self._network = self.load()
        return {
            "device": self._network.place,
            "threads": str(threads),
            "attention": self._network.attention,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        }

    async def generate(self, request: Request) -> Reply:
        """Answer one request in a batch with whatever else is waiting.

        Raises:
            OverWindow: prompt and output limit together exceed the window; nothing is run.
            ReaderError: the request needs pictures, a schema or tools that this reader has not; memory does not hold
                this request alone; or the model failed.
        """
        prompt, sampling = await self.read(request)
        if self._batcher is None:
            raise ReaderError("the reader was closed")
        network = self._network
        job = _Job(prompt, sampling, request.sample, asyncio.get_running_loop().create_future())
        self._open.add(job)
        self._queue.append(job)
        self._wake.set()
        try:
            await job.done
        finally:
            self._open.discard(job)
        thought = network.thinking_tokens(job.tokens) if job.reasoning else 0
        usage = Usage(text=prompt.text, image=prompt.image, output=len(job.tokens), reasoning=thought)
        return Reply(request.prefill + job.text, usage, job.finish or "length", job.reasoning)

    async def read(self, request: Request) -> tuple[Encoded, Sampling]:
        """A request's prompt, and how to decode it with the output limit that thinking makes of its own.

        Raises:
            OverWindow: prompt and output limit together exceed the window.
            ReaderError: the request needs what this reader has not.
        """
        self._refuse(request)
        window = self._network.window
        prompt = await self._encoded(request)
        if prompt.thinking and request.prefill:
            raise ReaderError(
                "the model's template opens thinking, which leaves no room for a prefill; use thinking=off"
            )
        sampling = replace(request.sampling, max_tokens=request.sampling.max_tokens + self.room)
        tokens, limit = len(prompt.ids), sampling.max_tokens
        if window is not None and tokens + limit > window:
            raise OverWindow(f"{tokens} prompt tokens and {limit} for the answer exceed the window of {window}")
        return prompt, sampling

    @property
    def room(self) -> int:
        """Tokens added to every output limit, for models that think within it."""
        return 0

    async def _encoded(self, request: Request) -> Encoded:
        """The prompt. Pictures take long to make ready, so they are beside the loop; the batcher waits for them."""
        if all(isinstance(part, Text) for part in request.parts()):
            return self._network.encode(request, self.media)
        self._encoding += 1
        try:
            return await device.prepare(self._network.encode, request, self.media)
        finally:
            self._encoding -= 1
            self._wake.set()

    def _refuse(self, request: Request) -> None:
        if self._batcher is None:
            raise ReaderError("the reader was not started, or is closed")
        if not self._network.sees and any(not isinstance(part, Text) for part in request.parts()):
            raise ReaderError(
                f"{self.card.name} sees no pictures (capability `image`); use --view captions or another reader"
            )
        if request.schema is not None or request.tools:
            raise ReaderError(
                f"{self.card.name} has neither capability `schema` nor `tools`; use another reader for this role"
            )
        if request.sampling.max_tokens < 1:
            raise ReaderError(f"max_tokens={request.sampling.max_tokens}: at least 1 is needed")

    async def close(self) -> None:
        """Stop the batcher, fail what still waits, and free the weights."""
        if self._batcher is None:
            return
        self._batcher.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._batcher
        self._batcher = None
        _fail(self._open, "the reader was closed")
        await device.run(self._unload)  # after the batch that may still be running there

    def _unload(self) -> None:
        del self._network
        device.free_memory()

    # ------------------------------------------------------------------------------------------------- the batches

    async def _batch_forever(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(self.config.gather)
            self._wake.clear()
            if self._encoding and len(self._queue) < self.config.max_batch:
                continue  # pictures that are on their way will wake us
            waiting, self._queue = sorted(self._queue, key=_Job.order), []
            for batch in cut(waiting, self.config.max_batch, self._ceiling, self._network.joins):
                await self._run(batch)

    async def _run(self, batch: Sequence[_Job]) -> None:
        """Run a batch. A cancelled request is dropped before the batch starts, or at its next token."""
        alive = [job for job in batch if not job.done.done()]
        try:
            if alive and not await device.run(self._fits, alive):
                await self._run_less([job for job in alive if job.finish is None])
        except Exception as error:
            _fail(alive, f"{type(error).__name__}: {error}")
        for job in alive:
            if not job.done.done():
                job.done.set_result(None)

    async def _run_less(self, batch: Sequence[_Job]) -> None:
        """Begin again, in two halves, a batch that was too much for the device's memory."""
        width = max(job.width for job in batch)
        if len(batch) == 1:
            _fail(
                batch,
                f"{width} prompt tokens and up to {batch[0].sampling.max_tokens} of an answer do not fit the memory of "
                f"{self._network.place}, alone as they are: use a smaller budget or smaller pictures, a narrower "
                f"dtype, or more devices",
            )
            return
        self._ceiling = max(1, min(self._ceiling, width * len(batch)) // 2)
        log.warning(
            "%s: out of memory with %d prompts of up to %d tokens; batches now hold %d tokens",
            self.card.name, len(batch), width, self._ceiling,
        )  # fmt: skip
        half = len(batch) // 2
        await self._run(batch[:half])
        await self._run(batch[half:])

    def _fits(self, jobs: list[_Job]) -> bool:
        """Decode a batch; whether there was memory for it. What had ended stays, the rest is as if never begun."""
        try:
            self._decode(jobs)
            return True
        except Exception as error:
            if not device.short_of_memory(error):
                raise
        for job in jobs:
            if job.finish is None:
                job.tokens = []
        device.free_memory()  # here, where no traceback holds the tensors any more
        return False

    def _decode(self, jobs: list[_Job]) -> None:
        """Decode a left-padded batch until every row has ended; rows leave the batch as they end."""
        import torch

        network = self._network
        with torch.inference_mode():
            batch = network.batch([job.prompt for job in jobs])
            ids, mask, positions, following = batch.ids, batch.mask, batch.positions, batch.following
            extras: Mapping[str, torch.Tensor] = batch.extras
            cache = network.cache()
            draws = {
                job: generator(job.prompt, job.sampling, job.sample) for job in jobs if job.sampling.temperature > 0
            }
            while jobs:
                logits = network.forward(ids, mask, positions, cache, **extras).logits[:, -1].float()
                tokens = logits.argmax(-1).tolist()
                for row, job in enumerate(jobs):
                    token = draw(logits[row], job.sampling, draws[job]) if job in draws else tokens[row]
                    self._append(job, token)
                kept = [row for row, job in enumerate(jobs) if job.finish is None and not job.done.done()]
                if len(kept) < len(jobs):
                    rows = torch.tensor(kept, dtype=torch.long, device=network.device)
                    jobs, mask, following = [jobs[row] for row in kept], mask[rows], following[..., rows, :]
                    cache.batch_select_indices(rows)
                ids = torch.tensor([[job.tokens[-1]] for job in jobs], device=network.device)
                mask = torch.cat([mask, mask.new_ones(len(jobs), 1)], dim=1)
                positions, following, extras = following, following + 1, {}

    def _append(self, job: _Job, token: int) -> None:
        """Take a token into a job, and end the job if it is the last."""
        network = self._network
        job.tokens.append(token)
        ended = token in network.ends
        full = len(job.tokens) >= job.sampling.max_tokens
        stops = [stop for stop in job.sampling.stop if stop]
        if not (ended or full or self._may_hold(job.tokens, stops)):
            return
        said = network.decode(job.tokens)
        job.reasoning, job.text, thinking = split_thinking(said, job.prompt.thinking)
        found = [at for stop in stops if (at := job.text.find(stop)) >= 0]
        if found:
            job.text = job.text[: min(found)]
        if (ended or found) and not thinking:
            job.finish = "stop"
        elif ended or full:
            job.finish = "length"

    def _may_hold(self, tokens: Sequence[int], stops: Sequence[str]) -> bool:
        """Whether the last tokens hold a stop string: each token is a byte of it at least, so few need decoding."""
        if not stops:
            return False
        reach = max(len(stop.encode()) for stop in stops) + 4
        tail = self._network.decode(tokens[-reach:])
        return any(stop in tail for stop in stops)


def _fail(jobs: Iterable[_Job], message: str) -> None:
    for job in jobs:
        if not job.done.done():
            job.done.set_exception(ReaderError(message))


def cut(jobs: Sequence[_Job], size: int, tokens: int, joins: Callable[[Encoded], bool]) -> list[Sequence[_Job]]:
    """Cut jobs, longest first, into batches of at most `size` rows and `tokens` padded prompt tokens (or one row).

    Those that `joins` says may share no batch run alone, first.
    """
    batches: list[Sequence[_Job]] = [[job] for job in jobs if not joins(job.prompt)]
    jobs = [job for job in jobs if joins(job.prompt)]
    start = 0
    while start < len(jobs):
        rows = max(1, min(size, tokens // jobs[start].width))
        batches.append(jobs[start : start + rows])
        start += rows
    return batches


def generator(prompt: Encoded, sampling: Sampling, sample: int) -> torch.Generator:
    """Random numbers of its own for each prompt, seed and sample: the same draw in any batch and any order."""
    import torch

    key = repr((sampling.seed or 0, sample, prompt.ids)).encode()
    return torch.Generator().manual_seed(int.from_bytes(hashlib.sha256(key).digest()[:8], "big") >> 1)


def draw(logits: torch.Tensor, sampling: Sampling, generator: torch.Generator) -> int:
    """Draw a token: softmax of logits (vocabulary,) over temperature, cut to the nucleus of mass `top_p`.

    Source: Holtzman et al. 2020, the smallest set of most likely tokens whose mass reaches p.
    """
    import torch

    probabilities = torch.softmax(logits.cpu() / sampling.temperature, dim=-1)
    if sampling.top_p < 1:
        ranked, order = probabilities.sort(descending=True, stable=True)
        ranked[ranked.cumsum(-1) - ranked >= sampling.top_p] = 0  # what is left once the mass before it suffices
        probabilities = torch.zeros_like(probabilities).scatter(0, order, ranked)
    return int(torch.multinomial(probabilities, 1, generator=generator))
