"""Chat models run by transformers in this process: prompts by the model's template, batches, and the decoding loop."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import hashlib
import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from memharness.config import Config, option
from memharness.media import MediaStore
from memharness.reader import Reader, ReaderCard, Reply, Request, Sampling
from memharness.readers import device
from memharness.readers.counters import TokenizerCounter
from memharness.types import OverWindow, ReaderError, Text, Usage

if TYPE_CHECKING:
    import torch


class ChatConfig(Config):
    """How an in-process chat model is run. Only `dtype` may change what it says."""

    dtype: Literal["f32", "bf16"] = option(
        "f32",
        "Number format of the weights. In f32 a greedy reply is the same in every batch; in bf16 it need not be.",
    )
    device: str = option("auto", "Torch device; `auto` takes CUDA where there is one.", how=True)
    threads: int = option(
        0, "CPU threads; 0 takes OMP_NUM_THREADS, or else every core this process may use.", ge=0, how=True
    )
    max_batch: int = option(16, "Most requests in one batch.", unit="requests", ge=1, how=True)
    max_batch_tokens: int = option(
        8192,
        "Most prompt tokens in one batch, padding included; a longer prompt runs alone.",
        unit="tokens",
        ge=1,
        how=True,
    )
    gather: float = option(
        0.005, "How long an idle model's first request waits for company.", unit="seconds", ge=0, how=True
    )


@dataclass(slots=True, eq=False)
class _Job:
    """One request on its way through the batcher, and what was decoded for it so far."""

    prompt: list[int]
    sampling: Sampling
    sample: int
    done: asyncio.Future[None]
    tokens: list[int] = field(default_factory=list)
    text: str = ""
    finish: Literal["stop", "length"] | None = None

    def order(self) -> tuple[int, list[int], int, int]:
        """Length first, so that little is padded; then content, so that arrival does not decide who shares a batch."""
        return -len(self.prompt), self.prompt, self.sampling.max_tokens, self.sample

    def generator(self) -> torch.Generator:
        """Random numbers of its own for each prompt, seed and sample: the same draw in any batch and any order."""
        import torch

        key = repr((self.sampling.seed or 0, self.sample, self.prompt)).encode()
        return torch.Generator().manual_seed(int.from_bytes(hashlib.sha256(key).digest()[:8], "big") >> 1)


class ChatReader(Reader):
    """A chat model in this process, batched. A subclass says what and where its weights are.

    Requests that wait at the same time form a round: sorted by length and content, cut into batches, and run to the
    end before the next round is gathered, so none waits for ever. Who waits at the same time depends on timing; in f32
    that does not change a greedy reply, in bf16 it may. Sampled tokens are drawn by a generator seeded by the request.

    Usage counts the prompt as the model reads it (chat template included, padding not) and every generated token, the
    end token and a matched stop string included, as vLLM does. A prefill counts as prompt; the reply's text begins
    with it.
    """

    config: ChatConfig
    config_class: ClassVar[type[Config]] = ChatConfig

    def __init__(
        self, model: str, config: ChatConfig, media: MediaStore, *, name: str, revision: str, folder: Path, window: int
    ) -> None:
        """Bind; weights load in `start`.

        Args:
            model: the part of the spec after the colon.
            config: how to run it.
            media: the media store.
            name: of the reader and its counter.
            revision: digest of the weights.
            folder: where transformers finds weights and tokenizer once `prepare` has run.
            window: tokens of prompt and output together, until the model's own config says otherwise.
        """
        super().__init__(model, config, media)
        self.counter = TokenizerCounter(name, folder / "tokenizer.json")
        self.card = ReaderCard(
            name, model, revision, "transformers", config.dtype, window=window, max_inflight=2 * config.max_batch
        )
        self._folder = folder
        self._queue: list[_Job] = []
        self._open: set[_Job] = set()
        self._wake = asyncio.Event()
        self._batcher: asyncio.Task[None] | None = None

    async def prepare(self) -> None:
        """Make the folder ready to load, once per machine."""

    async def start(self) -> None:
        """Load the weights and start the batcher.

        Raises:
            UserError: the weights are not at hand.
        """
        await self.prepare()
        provenance = await device.run(self._load)
        self.card = replace(self.card, window=self._window, provenance=provenance)
        # An empty context: the batcher works for every question, and must not inherit the one that started it.
        self._batcher = asyncio.create_task(self._batch_forever(), context=contextvars.Context())

    def _load(self) -> dict[str, str]:
        import torch
        import transformers

        threads = device.set_threads(self.config.threads)
        place = device.pick(self.config.device)
        dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[self.config.dtype]
        device.quiet()
        self._tokenizer = transformers.AutoTokenizer.from_pretrained(self._folder, local_files_only=True)
        model: Any = transformers.AutoModelForCausalLM.from_pretrained(self._folder, dtype=dtype, local_files_only=True)
        self._network: Any = model.to(place).eval().requires_grad_(False)
        # Renamed in transformers 5; the old word is to go, and the new one is unknown to earlier versions.
        words = inspect.signature(model.forward).parameters
        self._cache_word = "cache" if "cache" in words else "past_key_values"
        ends = model.generation_config.eos_token_id
        self._ends = frozenset(ends if isinstance(ends, list) else [ends])
        self._specials = [token.content for token in self._tokenizer.added_tokens_decoder.values()]
        self._window = int(model.config.max_position_embeddings)
        versions = {"torch": torch.__version__, "transformers": transformers.__version__}
        return {"device": place, "threads": str(threads), **versions}

    async def generate(self, request: Request) -> Reply:
        """Answer one request in a batch with whatever else is waiting.

        Raises:
            OverWindow: prompt and `max_tokens` together exceed the window; nothing is run.
            ReaderError: the request needs pictures, a schema or tools; or the model failed.
        """
        self._refuse(request)
        prompt, limit = self._tokens(request), request.sampling.max_tokens
        if len(prompt) + limit > self._window:
            raise OverWindow(
                f"{len(prompt)} prompt tokens and {limit} for the answer exceed the window of {self._window}"
            )
        job = _Job(prompt, request.sampling, request.sample, asyncio.get_running_loop().create_future())
        self._open.add(job)
        self._queue.append(job)
        self._wake.set()
        try:
            await job.done
        finally:
            self._open.discard(job)
        usage = Usage(text=len(prompt), output=len(job.tokens))
        return Reply(request.prefill + job.text, usage, job.finish or "length")

    def _refuse(self, request: Request) -> None:
        if self._batcher is None:
            raise ReaderError("the reader was not started, or is closed")
        if any(not isinstance(part, Text) for part in request.parts()):
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
        await device.run(delattr, self, "_network")  # after the batch that may still be running there

    # -------------------------------------------------------------------------------------------------- the prompt

    def _tokens(self, request: Request) -> list[int]:
        """Token ids of a request's prompt: the chat template around each message, and the prefill after it."""
        messages = [
            {"role": message.role, "content": "".join(part.text for part in message.parts if isinstance(part, Text))}
            for message in request.messages
        ]
        if not any(special in message["content"] for message in messages for special in self._specials):
            return self._encode(self._render(messages) + request.prefill)
        # Someone wrote `<|im_end|>` into a memory. Each content is then encoded alone, where it is only words.
        marks = [f"\ue000{index}\ue001" for index in range(len(messages))]
        rest = self._render([{**message, "content": mark} for message, mark in zip(messages, marks, strict=True)])
        tokens: list[int] = []
        for message, mark in zip(messages, marks, strict=True):
            before, _, rest = rest.partition(mark)
            tokens += self._encode(before) + self._encode(message["content"], split_special_tokens=True)
        return tokens + self._encode(rest + request.prefill)

    def _render(self, messages: list[dict[str, str]]) -> str:
        return str(self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))

    def _encode(self, text: str, **options: Any) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False, **options))

    # ------------------------------------------------------------------------------------------------- the batches

    async def _batch_forever(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(self.config.gather)
            self._wake.clear()
            waiting, self._queue = sorted(self._queue, key=_Job.order), []
            for batch in cut(waiting, self.config.max_batch, self.config.max_batch_tokens):
                await self._run(batch)

    async def _run(self, batch: Sequence[_Job]) -> None:
        """Run a batch. A cancelled request is dropped before the batch starts, or at its next token."""
        alive = [job for job in batch if not job.done.done()]
        try:
            if alive:
                await device.run(self._decode, alive)
        except Exception as error:
            _fail(alive, f"{type(error).__name__}: {error}")
        for job in alive:
            if not job.done.done():
                job.done.set_result(None)

    def _decode(self, jobs: list[_Job]) -> None:
        """Decode a left-padded batch until every row has ended; rows leave the batch as they end."""
        import torch
        from transformers import DynamicCache

        place = self._network.device
        width = max(len(job.prompt) for job in jobs)
        ids = torch.tensor([[0] * (width - len(job.prompt)) + job.prompt for job in jobs], device=place)
        mask = torch.tensor([[0] * (width - len(job.prompt)) + [1] * len(job.prompt) for job in jobs], device=place)
        positions = (mask.cumsum(-1) - 1).clamp(min=0)
        cache = DynamicCache(config=self._network.config)
        draws = {job: job.generator() for job in jobs if job.sampling.temperature > 0}
        with torch.inference_mode():
            while jobs:
                output = self._network(
                    input_ids=ids,
                    attention_mask=mask,
                    position_ids=positions,
                    use_cache=True,
                    logits_to_keep=1,
                    **{self._cache_word: cache},
                )
                logits = output.logits[:, -1].float()
                tokens = logits.argmax(-1).tolist()
                for row, job in enumerate(jobs):
                    token = draw(logits[row], job.sampling, draws[job]) if job in draws else tokens[row]
                    self._append(job, token)
                kept = [row for row, job in enumerate(jobs) if job.finish is None and not job.done.done()]
                if len(kept) < len(jobs):
                    rows = torch.tensor(kept, dtype=torch.long, device=place)
                    jobs, mask, positions = [jobs[row] for row in kept], mask[rows], positions[rows]
                    cache.batch_select_indices(rows)
                ids = torch.tensor([[job.tokens[-1]] for job in jobs], device=place)
                mask = torch.cat([mask, mask.new_ones(len(jobs), 1)], dim=1)
                positions = positions[:, -1:] + 1

    def _append(self, job: _Job, token: int) -> None:
        job.tokens.append(token)
        ended = token in self._ends
        full = len(job.tokens) >= job.sampling.max_tokens
        if not (ended or full or job.sampling.stop):
            return
        job.text = str(self._tokenizer.decode(job.tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False))
        stops = [at for stop in job.sampling.stop if stop and (at := job.text.find(stop)) >= 0]
        if stops:
            job.text = job.text[: min(stops)]
        if ended or stops:
            job.finish = "stop"
        elif full:
            job.finish = "length"


def _fail(jobs: Sequence[_Job] | set[_Job], message: str) -> None:
    for job in jobs:
        if not job.done.done():
            job.done.set_exception(ReaderError(message))


def cut(jobs: Sequence[_Job], size: int, tokens: int) -> list[Sequence[_Job]]:
    """Cut jobs, longest first, into batches of at most `size` rows and `tokens` padded prompt tokens (or one row)."""
    batches: list[Sequence[_Job]] = []
    start = 0
    while start < len(jobs):
        rows = max(1, min(size, tokens // len(jobs[start].prompt)))
        batches.append(jobs[start : start + rows])
        start += rows
    return batches


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
