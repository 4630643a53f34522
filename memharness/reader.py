"""The reader contract: requests and replies of frozen models, embedders, token counters, and latent decoding."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from memharness.types import Image, Part, Text, Usage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memharness.config import Config
    from memharness.media import MediaStore


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation with a reader."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to decode. Temperature 0 is greedy, which is not a promise of determinism under batching."""

    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 64
    stop: tuple[str, ...] = ()
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """One call of a reader.

    Attributes:
        schema: JSON schema the reply must satisfy, for readers with the `schema` capability.
        prefill: words the reply must begin with.
        sample: tells apart draws at temperature > 0, so that five agents do not share one cached reply.
    """

    messages: tuple[Message, ...]
    sampling: Sampling = Sampling()
    schema: Mapping[str, Any] | None = None
    prefill: str = ""
    tools: tuple[Mapping[str, Any], ...] = ()
    sample: int = 0

    def parts(self) -> tuple[Part, ...]:
        """All parts of all messages, in order."""
        return tuple(part for message in self.messages for part in message.parts)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a reader said. `finish` is why it stopped; `reasoning` is the thinking text, kept apart."""

    text: str
    usage: Usage
    finish: Literal["stop", "length", "refused", "tool"] = "stop"
    reasoning: str = ""
    tools: tuple[Mapping[str, Any], ...] = ()


class Counter(Protocol):
    """A named token counter. Text by a tokenizer, images by width × height in pixels."""

    name: str

    def text(self, text: str) -> int:
        """Tokens of a text."""

    def image(self, width: int, height: int) -> int:
        """Tokens of an image of this size."""


def count(counter: Counter, parts: Sequence[Part]) -> int:
    """Tokens of parts under a counter. Adjacent texts are counted as one, as they are sent."""
    total, run = 0, ""
    for part in parts:
        if isinstance(part, Text):
            run += part.text
            continue
        total += (counter.text(run) if run else 0) + counter.image(part.width, part.height)
        run = ""
    return total + (counter.text(run) if run else 0)


@dataclass(frozen=True)
class ReaderCard:
    """What a reader is: the part of the identity that names a model.

    Attributes:
        model: name or path as the user gave it.
        revision: content digest or pinned revision; never a path.
        backend: library that runs it.
        dtype: of the weights, or empty.
        window: most tokens of prompt and output together; None if unknown.
        capabilities: of `image`, `schema`, `logprobs`, `tools`, `verify`, `latent`.
        max_inflight: calls the engine takes at once.
        hosted: whether calls cost money.
        cache: whether replies are worth keeping (not for instant readers).
        provenance: what is recorded but not hashed (device, library versions).
    """

    name: str
    model: str
    revision: str
    backend: str
    dtype: str = ""
    window: int | None = None
    capabilities: frozenset[str] = frozenset()
    max_inflight: int = 32
    hosted: bool = False
    cache: bool = True
    provenance: Mapping[str, str] = field(default_factory=dict)


def identity(card: ReaderCard, config: Config) -> dict[str, Any]:
    """The model and its options as they enter a run's identity; device, batch and concurrency are left out."""
    from memharness.config import resolved

    model = {
        "name": card.name,
        "model": card.model,
        "revision": card.revision,
        "backend": card.backend,
        "dtype": card.dtype,
    }
    return {**model, "options": resolved(config)}


@functools.cache
def device_thread(device: str = "cpu") -> ThreadPoolExecutor:
    """The one thread of this process that does all tensor work of a device, for readers, embedders and methods."""
    return ThreadPoolExecutor(1, thread_name_prefix=f"memharness-{device}")


class Reader(ABC):
    """A frozen model that answers.

    Constructed from a spec (`smollm2`, `openai:MODEL`); the constructor sets `card` and `counter` and is quick, since a
    run's identity is known before anything is loaded; weights load in `start`. Readers only talk to the engine behind
    them: metering, caching and the number of calls in service are the harness's.
    """

    config_class: ClassVar[type[Config]]
    card: ReaderCard
    counter: Counter

    def __init__(self, model: str, config: Any, media: MediaStore) -> None:
        """Bind to a model name (the part after the colon of the spec), a config and the media store."""
        self.model = model
        self.config = config
        self.media = media

    def identity(self) -> dict[str, Any]:
        """What makes two readers the same: the model, and every option that is not about how it is run."""
        return identity(self.card, self.config)

    async def start(self) -> None:  # noqa: B027  (optional: a reader without weights has nothing to load)
        """Load weights or check the connection, once per process."""

    @abstractmethod
    async def generate(self, request: Request) -> Reply:
        """Answer one request, with exact usage from the engine. Beside other calls; the engine batches.

        Raises:
            OverWindow: the prompt does not fit the window.
            ReaderError: the engine failed after the reader's own retries.
        """

    async def close(self) -> None:  # noqa: B027
        """Free what `start` took."""


class Embedder(ABC):
    """A frozen model that embeds text and, if it can, pictures. Vectors are f32, L2-normalised."""

    config_class: ClassVar[type[Config]]
    card: ReaderCard
    width: int

    def __init__(self, model: str, config: Any, media: MediaStore) -> None:
        """Bind to a model name, a config and the media store."""
        self.model = model
        self.config = config
        self.media = media

    def identity(self) -> dict[str, Any]:
        """What makes two embedders the same: the model, and every option that is not about how it is run."""
        return identity(self.card, self.config)

    async def start(self) -> None:  # noqa: B027
        """Load weights or check the connection, once per process."""

    @abstractmethod
    async def embed(
        self, inputs: Sequence[Sequence[Part]], kind: Literal["item", "query"]
    ) -> tuple[NDArray[np.float32], Sequence[int]]:
        """Embed inputs.

        Args:
            inputs: n inputs of parts each.
            kind: some models embed questions and memories differently.

        Returns:
            vectors of shape (n, width), L2-normalised, and the tokens each input cost.

        Raises:
            ReaderError: the engine failed, or a part is of a kind the model cannot see.
        """

    async def close(self) -> None:  # noqa: B027
        """Free what `start` took."""


# ------------------------------------------------------------------------------------------------- latent decoding


@dataclass(frozen=True, slots=True)
class Step:
    """One decoded token: its id, text so far, and the entropy (nats) of the distribution it was drawn from."""

    token: int
    text: str
    entropy: float
    index: int


class Decoding(ABC):
    """A decoding session on a frozen model, whose state belongs to this session alone.

    Attributes:
        usage: what it has used so far.
        ended: whether the model has ended its reply: nothing more is decoded, and nothing can be injected.
    """

    usage: Usage
    ended: bool

    @abstractmethod
    async def run(self, until: Callable[[Step], bool], limit: int) -> Reply:
        """Decode until `until` says stop, the model stops or `limit` tokens. `until` runs beside the model."""

    @abstractmethod
    async def inject(self, latents: Any) -> None:
        """Put latent vectors, shape (n, width), after what was decoded so far."""

    @abstractmethod
    def hidden(self, n: int) -> Any:
        """Last-layer hidden states of the last n positions, shape (n, width)."""


class Lease(Protocol):
    """Memory for n sessions of one question, taken at once: taking them one by one deadlocks."""

    async def __aenter__(self) -> Lease:
        """Wait until all n sessions are free, then hold them."""

    async def __aexit__(self, *error: object) -> None:
        """Give them back."""


class LatentReader(Reader):
    """A reader whose model can be decoded step by step, with latent vectors put in. In the worker's own process.

    Attributes:
        width: of embeddings and hidden states.
        vocabulary: logits of a step; the entropy of a step is at most log(vocabulary).
        norm: mean L2 norm of the model's input embeddings, which latents from elsewhere may be brought to.
        dtype: torch's, of hidden states and of what `see` gives.
        device: torch's, where they are.
    """

    width: int
    vocabulary: int
    norm: float
    dtype: Any
    device: Any

    @abstractmethod
    async def see(self, image: Image, blocks: int) -> Any:
        """Latents of a picture by the model's own vision encoder and projector, shape (m, n, width) for m blocks.

        Args:
            image: the picture.
            blocks: the side of a block, in patches of the encoder.
        """

    @abstractmethod
    def lease(self, n: int, room: int | None = None) -> Lease:
        """All sessions a question needs, at once, each with room for so many positions (an equal share if None)."""

    @abstractmethod
    def decode(self, request: Request, *, window: int) -> AbstractAsyncContextManager[Decoding]:
        """Open a session; `window` hidden states are kept."""

    @abstractmethod
    async def replay(self, request: Request, tokens: Sequence[int], injections: Mapping[int, Any]) -> Any:
        """Log-probabilities of tokens with latents injected before the given positions, with gradients."""

    async def replays(self, turns: Sequence[tuple[Request, Sequence[int], Mapping[int, Any]]]) -> list[Any]:
        """What `replay` gives for each turn's arguments; a reader that can takes them all in one pass."""
        return [await self.replay(*turn) for turn in turns]
