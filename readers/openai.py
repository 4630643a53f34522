"""`openai:MODEL`: any server that speaks the OpenAI API, as a reader (chat completions) and as an embedder."""

from __future__ import annotations

import asyncio
import base64
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from memharness.config import Config, option
from memharness.media import MediaStore
from memharness.reader import Embedder, Message, Reader, Reply, Request
from memharness.readers.server import Filtered, Server, ServerConfig, counter_of
from memharness.types import DataError, Image, Part, ReaderError, Text, Usage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Widths of OpenAI's own embedding models; another model's is found by embedding one word at the start.
WIDTHS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}

_THINKS = re.compile(r"^(?:.*/)?(?:gpt-5|o\d)")
_SENDABLE = frozenset({"image/jpeg", "image/png", "image/webp", "image/gif"})


class OpenAIConfig(ServerConfig):
    """How a chat model is asked."""

    window: int | None = option(
        None, "Most tokens of prompt and output; by default what the server says.", ge=1, how=True
    )
    images: bool = option(True, "Whether the model sees pictures.")
    image_parts: Literal["base64", "file"] = option(
        "base64",
        "How pictures are sent: in the request, or as file:// addresses of a server on this machine.",
        how=True,
    )
    image_detail: Literal["", "auto", "low", "high"] = option("", "OpenAI's `detail` of pictures; empty sends none.")
    send_temperature: Literal["auto", "always", "never"] = option(
        "auto",
        "Whether temperature, top_p and stop strings are sent; `auto` spares gpt-5* and o*, which refuse them.",
    )
    max_tokens_key: Literal["auto", "max_tokens", "max_completion_tokens"] = option(
        "auto", "Name of the output limit; `auto` takes the newer one at OpenAI and for gpt-5* and o*.", how=True
    )
    reasoning_effort: str = option(
        "", "How much a reasoning model thinks (minimal, low, medium, high); empty sends none."
    )
    reasoning_room: int = option(
        0, "Tokens added to every output limit, for models that think within it.", unit="tokens", ge=0
    )
    continue_prefill: bool = option(
        False, "Whether the server can go on from a begun assistant message (vLLM's continue_final_message)."
    )


class EmbedderConfig(ServerConfig):
    """How an embedding model is asked."""

    dimensions: int | None = option(None, "Width to ask for, where the model can shorten its vectors.", ge=1)
    item_prefix: str = option("", "Put before every remembered text (models of the E5 family want `passage: `).")
    query_prefix: str = option("", "Put before every question (models of the E5 family want `query: `).")
    batch: int = option(64, "Most texts in one call.", ge=1, how=True)


class OpenAIReader(Reader):
    """A chat model behind the OpenAI API.

    Usage is the server's own; where the request holds pictures and the server does not say what they cost, the split
    of the prompt into text and image tokens is estimated and only their sum is exact. Failed tries cost nothing here,
    though a server may charge one that timed out. What model really answered is kept in the card's provenance
    (`served`), since an alias may move while a run lasts.
    """

    config: OpenAIConfig
    config_class: ClassVar[type[Config]] = OpenAIConfig

    def __init__(self, model: str, config: OpenAIConfig, media: MediaStore) -> None:
        """Bind to a model.

        Raises:
            UserError: no model is named, the address is not one, or the tokenizer cannot be read.
        """
        super().__init__(model, config, media)
        self._server = Server(model, config)
        self._thinks = bool(_THINKS.match(model))
        self.counter = counter_of(config)
        can = {"schema", "tools"} | ({"image"} if config.images else set())
        self.card = self._server.card(window=config.window, capabilities=frozenset(can))

    async def start(self) -> None:
        """Connect.

        Raises:
            UserError: no key, a key the server refuses, or no server there.
        """
        entry = await self._server.open()
        window = self.config.window or entry.get("max_model_len")  # vLLM says it
        self.card = replace(self.card, window=window if isinstance(window, int) else None)

    async def generate(self, request: Request) -> Reply:
        """Ask the server.

        Raises:
            OverWindow: the server says that the prompt does not fit.
            ReaderError: it failed for good, its reply is malformed or lacks usage, or it cannot do what is asked.
        """
        words = await self._words(request)
        try:
            completion = await self._server.post("/chat/completions", words)
        except Filtered as error:
            return Reply(str(error), Usage(), "refused")
        return self._reply(request, completion)

    async def close(self) -> None:
        """Close the connection."""
        await self._server.close()

    # ------------------------------------------------------------------------------------------------- what is sent

    async def _words(self, request: Request) -> dict[str, Any]:
        config, sampling = self.config, request.sampling
        words: dict[str, Any] = {
            "model": self.model,
            "messages": [await self._message(message) for message in request.messages],
            self._limit_key(): sampling.max_tokens + config.reasoning_room,
        }
        if self._sends_temperature():
            words["temperature"] = sampling.temperature
            words |= {"top_p": sampling.top_p} if sampling.top_p < 1 else {}
            words |= {"stop": list(sampling.stop)} if sampling.stop else {}
        if sampling.seed is not None:
            words["seed"] = sampling.seed + request.sample  # five samples of one seed must not be one reply
        if config.reasoning_effort:
            words["reasoning_effort"] = config.reasoning_effort
        if request.schema is not None:
            schema = {"name": "reply", "schema": dict(request.schema), "strict": is_strict(request.schema)}
            words["response_format"] = {"type": "json_schema", "json_schema": schema}
        if request.tools:
            words["tools"] = [t if "function" in t else {"type": "function", "function": t} for t in request.tools]
        if request.prefill:
            words |= self._prefill(words["messages"], request.prefill)
        return words

    def _prefill(self, messages: list[dict[str, Any]], prefill: str) -> dict[str, Any]:
        if not self.config.continue_prefill:
            raise ReaderError(
                f"openai:{self.model}: the request begins the reply ({prefill[:40]!r}), which the API cannot; "
                "for a vLLM server set continue_prefill=true"
            )
        begun = {"role": "assistant", "content": prefill}
        return {"messages": [*messages, begun], "continue_final_message": True, "add_generation_prompt": False}

    def _limit_key(self) -> str:
        if self.config.max_tokens_key != "auto":
            return self.config.max_tokens_key
        return "max_completion_tokens" if self._thinks or self._server.host == "api.openai.com" else "max_tokens"

    def _sends_temperature(self) -> bool:
        return self.config.send_temperature == "always" or (self.config.send_temperature == "auto" and not self._thinks)

    async def _message(self, message: Message) -> dict[str, Any]:
        if all(
            isinstance(part, Text) for part in message.parts
        ):  # plain text: servers without pictures know nothing else
            return {"role": message.role, "content": "".join(p.text for p in message.parts if isinstance(p, Text))}
        return {"role": message.role, "content": [await self._part(part) for part in message.parts]}

    async def _part(self, part: Part) -> dict[str, Any]:
        if isinstance(part, Text):
            return {"type": "text", "text": part.text}
        if not isinstance(part, Image):
            raise ReaderError(f"openai:{self.model}: the API takes no video ({part.source})")
        if not self.config.images:
            raise ReaderError(f"openai:{self.model} sees no pictures (images=false); use --view captions")
        try:
            as_file = self.config.image_parts == "file"
            url = (
                self.media.path(part).resolve().as_uri()
                if as_file
                else await asyncio.to_thread(data_url, self.media, part)
            )
        except DataError as error:
            raise ReaderError(str(error)) from error
        detail = {"detail": self.config.image_detail} if self.config.image_detail else {}
        return {"type": "image_url", "image_url": {"url": url, **detail}}

    # ------------------------------------------------------------------------------------------------ what came back

    def _reply(self, request: Request, completion: Mapping[str, Any]) -> Reply:
        choices = completion.get("choices")
        choice = _part_of(choices[0]) if isinstance(choices, list) and choices else {}
        message = choice.get("message")
        if not isinstance(message, dict):
            raise ReaderError(f"openai:{self.model}: malformed reply: {self._server.clean(completion)}")
        self._note_served(completion)
        usage = self._usage(request, completion)
        refusal = _string(message, "refusal")
        finish: Literal["stop", "length", "refused", "tool"] = "stop"
        match choice.get("finish_reason"):
            case "length":
                finish = "length"
            case "content_filter":
                finish = "refused"
            case "tool_calls" | "function_call":
                finish = "tool"
        text = cut_at(_string(message, "content"), request.sampling.stop)
        return Reply(
            text=refusal or request.prefill + text,
            usage=usage,
            finish="refused" if refusal else finish,
            reasoning=_string(message, "reasoning_content") or _string(message, "reasoning"),
            tools=tuple(map(_tool, calls)) if isinstance(calls := message.get("tool_calls"), list) else (),
        )

    def _usage(self, request: Request, completion: Mapping[str, Any]) -> Usage:
        usage = _part_of(completion.get("usage"))
        prompt, output = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
        if prompt is None or output is None:
            raise ReaderError(
                f"openai:{self.model}: the reply of {self._server.shown} says no usage, so its cost cannot be counted; "
                "have the server report prompt_tokens and completion_tokens"
            )
        details = _part_of(usage.get("prompt_tokens_details"))
        cached = _count(details, "cached_tokens") or 0
        reasoning = _count(_part_of(usage.get("completion_tokens_details")), "reasoning_tokens") or 0
        pictures = [part for part in request.parts() if isinstance(part, Image)]
        vllm = details.get("multimodal_tokens")  # vLLM's server says it there, by kind
        said = _count(vllm, "image") if isinstance(vllm, dict) else _count(details, "image_tokens")
        image = said if pictures else 0
        if image is None:
            image = min(prompt, sum(self.counter.image(part.width, part.height) for part in pictures))
        if cached > prompt or reasoning > output or image > prompt:
            raise ReaderError(
                f"openai:{self.model}: the reply of {self._server.shown} says a usage that cannot be "
                f"({self._server.clean(usage)}), so its cost cannot be counted"
            )
        return Usage(text=prompt - image, image=image, cached=cached, output=output, reasoning=reasoning)

    def _note_served(self, completion: Mapping[str, Any]) -> None:
        known = self.card.provenance.get("served", "")
        served = _string(completion, "model")
        if served and served not in known.split(", "):
            names = f"{known}, {served}" if known else served
            self.card = replace(self.card, provenance={**self.card.provenance, "served": names})


class OpenAIEmbedder(Embedder):
    """An embedding model behind the OpenAI API. Its tokens are the server's, shared out by an estimate within a call.

    An empty text is sent as a single space, which servers accept. Where a model's width is not known, starting embeds
    one word (one or two tokens, not in the ledger).
    """

    config: EmbedderConfig
    config_class: ClassVar[type[Config]] = EmbedderConfig

    def __init__(self, model: str, config: EmbedderConfig, media: MediaStore) -> None:
        """Bind to a model.

        Raises:
            UserError: no model is named, the address is not one, or the tokenizer cannot be read.
        """
        super().__init__(model, config, media)
        self._server = Server(model, config)
        self._counter = counter_of(config)
        self.card = self._server.card()
        self.width = config.dimensions or WIDTHS.get(model, 0)

    async def start(self) -> None:
        """Connect, and learn the width.

        Raises:
            UserError: no key, a key the server refuses, or no server there.
            ReaderError: the server does not embed.
        """
        await self._server.open()
        self._calls = asyncio.Semaphore(self.config.max_inflight)
        if not self.width:
            vectors, _ = await self._call(["width"])
            self.width = len(vectors[0])

    async def embed(
        self, inputs: Sequence[Sequence[Part]], kind: Literal["item", "query"]
    ) -> tuple[NDArray[np.float32], Sequence[int]]:
        """Embed texts.

        Returns:
            vectors (n, width), and each input's share of the server's tokens (their sum is exact).

        Raises:
            OverWindow: a text is longer than the model takes.
            ReaderError: an input holds a picture, or the server failed for good or gave vectors of another shape.
        """
        import numpy as np

        if any(not isinstance(part, Text) for parts in inputs for part in parts):
            raise ReaderError(f"openai:{self.model} embeds words only (capability `image`); use --view captions")
        prefix = self.config.query_prefix if kind == "query" else self.config.item_prefix
        texts = [prefix + "".join(p.text for p in parts if isinstance(p, Text)) or " " for parts in inputs]
        batches = list(self._batches(texts))
        try:
            async with asyncio.TaskGroup() as group:
                calls = [group.create_task(self._call(batch)) for batch in batches]
        except* ReaderError as errors:
            raise errors.exceptions[0] from None
        rows = [row for call in calls for row in call.result()[0]]
        tokens = [n for call in calls for n in call.result()[1]]
        vectors = np.array(rows, dtype=np.float32).reshape(len(texts), -1 if rows else self.width)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(norms).all() or not norms.all():
            raise ReaderError(f"openai:{self.model}: the server gave a vector that is zero or not finite")
        return vectors / norms, tokens

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        """Texts in order, at most `batch` and about 100,000 tokens a call (OpenAI takes 300,000)."""
        batch: list[str] = []
        tokens = 0
        for text in texts:
            cost = self._counter.text(text)
            if batch and (len(batch) >= self.config.batch or tokens + cost > 100_000):
                yield batch
                batch, tokens = [], 0
            batch.append(text)
            tokens += cost
        if batch:
            yield batch

    async def _call(self, texts: list[str]) -> tuple[list[list[float]], list[int]]:
        words: dict[str, Any] = {"model": self.model, "input": texts, "encoding_format": "float"}
        if self.config.dimensions:
            words["dimensions"] = self.config.dimensions
        async with self._calls:
            try:
                reply = await self._server.post("/embeddings", words)
            except Filtered as error:
                raise ReaderError(f"openai:{self.model}: {error}") from None
        total = _count(_part_of(reply.get("usage")), "prompt_tokens")
        try:
            vectors = [row["embedding"] for row in sorted(reply["data"], key=lambda row: row["index"])]
            widths = {len(vector) for vector in vectors}
        except (KeyError, TypeError) as error:
            raise ReaderError(f"openai:{self.model}: malformed reply: no list of vectors ({error!r})") from None
        if len(vectors) != len(texts) or len(widths) > 1 or (self.width and widths != {self.width}):
            raise ReaderError(
                f"openai:{self.model}: {len(vectors)} vectors of width {sorted(widths)} for {len(texts)} texts"
                f" of width {self.width}"
            )
        if total is None:
            raise ReaderError(f"openai:{self.model}: the reply says no usage, so its cost cannot be counted")
        return vectors, share(total, [self._counter.text(text) for text in texts])

    async def close(self) -> None:
        """Close the connection."""
        await self._server.close()


def _part_of(value: object) -> Mapping[str, Any]:
    """An object inside a reply; empty where there is none, or something else."""
    return value if isinstance(value, dict) else {}


def _string(holder: Mapping[str, Any], name: str) -> str:
    value = holder.get(name)
    return value if isinstance(value, str) else ""


def _tool(call: object) -> dict[str, Any]:
    function = _part_of(_part_of(call).get("function"))
    return {
        "id": _string(_part_of(call), "id"),
        "name": _string(function, "name"),
        "arguments": _string(function, "arguments"),
    }


def cut_at(text: str, stops: Sequence[str]) -> str:
    """A text up to its first stop string, for servers and models that take none."""
    ends = [at for stop in stops if stop and (at := text.find(stop)) >= 0]
    return text[: min(ends)] if ends else text


def _count(holder: Mapping[str, Any], name: str) -> int | None:
    """A number of tokens from a reply; None where it says none, or something that is no number of tokens."""
    value = holder.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def is_strict(schema: Any) -> bool:
    """Whether a schema meets the rules of OpenAI's strict mode: objects closed, every property required."""
    if isinstance(schema, Mapping):
        if schema.get("type") == "object":
            names = set(schema.get("properties", ()))
            if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != names:
                return False
        return all(is_strict(value) for value in schema.values())
    return all(map(is_strict, schema)) if isinstance(schema, list | tuple) else True


def share(total: int, weights: Sequence[int]) -> list[int]:
    """A whole number shared out by weight, largest remainders first; the shares add up to it exactly."""
    scale = sum(weights) or len(weights)
    exact = [total * (weight if sum(weights) else 1) / scale for weight in weights]
    shares = [math.floor(part) for part in exact]
    order = sorted(range(len(shares)), key=lambda at: (shares[at] - exact[at], at))
    for at in order[: total - sum(shares)]:
        shares[at] += 1
    return shares


def data_url(media: MediaStore, image: Image) -> str:
    """A picture as a base64 data URL: its own bytes, or an upright PNG where its type or EXIF turn needs it.

    Raises:
        DataError: it is missing or cannot be decoded.
    """
    import PIL.Image

    path = media.path(image)
    mime = image.mime
    with PIL.Image.open(path) as picture:
        upright = picture.getexif().get(0x0112, 1) == 1
    content = path.read_bytes()
    if mime not in _SENDABLE or not upright:
        buffer = io.BytesIO()
        media.open(image).save(buffer, "PNG")
        mime, content = "image/png", buffer.getvalue()
    return f"data:{mime};base64,{base64.b64encode(content).decode()}"
