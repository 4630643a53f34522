"""The method contract: what a memory is, what it may be given, and the kit it builds with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Protocol, TypeVar, runtime_checkable

from memharness.types import Answer, Evidence, Gold, Image, Item, Part, Question, Readout

if TYPE_CHECKING:
    import random

    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image as Picture

    from memharness.config import Config
    from memharness.reader import Counter, Decoding, Lease, ReaderCard, Reply, Request

T = TypeVar("T")
C = TypeVar("C", bound="Config")
Phase = Literal["observe", "recall", "read", "answer", "judge"]


@dataclass(frozen=True)
class MethodCard:
    """What a method is. `memharness show NAME` prints it.

    Attributes:
        version: raised by hand when results change.
        track: `evidence` (returns a readout) or `answer` (owns the answering loop). Tracks never share a table.
        roles: models used, by role, and in which phases: `{"verifier": ("recall",)}`.
        embeds: whether it uses the embedder.
        control: whether it is a control, not a contender.
        needs: reader capabilities by role, checked before anything is spent.
    """

    name: str
    title: str
    paper: str
    version: int
    track: Literal["evidence", "answer"]
    roles: Mapping[str, Sequence[Phase]] = field(default_factory=dict)
    embeds: bool = False
    control: bool = False
    needs: Mapping[str, frozenset[str]] = field(default_factory=dict)
    notes: str = ""


class Budget(Protocol):
    """How much evidence a readout may hold: items, and tokens under every counter at once. None is no limit."""

    @property
    def items(self) -> int | None:
        """Most distinct items."""

    @property
    def tokens(self) -> int | None:
        """Most tokens, under each counter."""

    @property
    def counters(self) -> Sequence[Counter]:
        """The counters that must all hold."""

    def cost(self, evidence: Sequence[Evidence], question: Question) -> Mapping[str, int]:
        """Tokens by counter name of this evidence as the harness would show it."""

    def fit(self, evidence: Sequence[Evidence], question: Question) -> tuple[Evidence, ...]:
        """The longest beginning of `evidence` that holds the budget. Cutting is the method's choice, said here."""

    def holds(self, parts: Sequence[Part]) -> bool:
        """Whether these parts hold the token budget under every counter."""


class MeteredReader(Protocol):
    """A reader as a method sees it: metered under the current phase and question, cached, bounded and timed."""

    card: ReaderCard
    counter: Counter

    async def generate(self, request: Request) -> Reply:
        """See `Reader.generate`."""


class MeteredLatent(Protocol):
    """A latent reader as a method sees it: see `memharness.reader.LatentReader`; one ledger line a session."""

    card: ReaderCard
    counter: Counter
    width: int
    vocabulary: int
    norm: float
    dtype: Any
    device: Any

    async def generate(self, request: Request) -> Reply:
        """See `Reader.generate`."""

    async def see(self, image: Image, blocks: int, **how: Any) -> Any:
        """See `LatentReader.see`."""

    def lease(self, n: int, room: int | None = None) -> Lease:
        """See `LatentReader.lease`."""

    def decode(self, request: Request, *, window: int) -> AbstractAsyncContextManager[Decoding]:
        """See `LatentReader.decode`."""

    async def replay(self, request: Request, tokens: Sequence[int], injections: Mapping[int, Any]) -> Any:
        """See `LatentReader.replay`."""


class MeteredEmbedder(Protocol):
    """The embedder as a method sees it: metered and cached by content."""

    card: ReaderCard
    width: int

    async def embed(
        self, inputs: Sequence[str | Sequence[Part]], kind: Literal["item", "query"] = "item"
    ) -> NDArray[np.float32]:
        """L2-normalised vectors, shape (n, width), f32. A plain string is one Text part."""


class Captioner(Protocol):
    """Describes pictures by the `captioner` role's reader; metered and cached."""

    async def caption(self, image: Image) -> str:
        """One caption."""


class Images(Protocol):
    """Pictures by content hash."""

    def open(self, image: Image) -> Picture:
        """The decoded picture.

        Raises:
            DataError: if it is missing or cannot be decoded.
        """

    def path(self, image: Image) -> Path:
        """The file of a picture.

        Raises:
            DataError: if it is missing.
        """

    def keep(self, data: bytes, source: str, where: str) -> Image:
        """An Image for the bytes of a picture that a method made; kept by content."""


class Device(Protocol):
    """The one thread that does all in-process tensor work of a device."""

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run there, in the caller's context."""


class Kit(Protocol):
    """Everything a method builds with. It makes no client and no random generator of its own."""

    @property
    def context(self) -> str:
        """The context this kit was opened for; empty in `Method.start`."""

    @property
    def folder(self) -> Path:
        """Where this context's memory may write; wiped unless the context was marked ready."""

    @property
    def items(self) -> int:
        """How many items a readout should hold when the budget names none (`--items`, default 10)."""

    @property
    def embedder(self) -> MeteredEmbedder:
        """The run's embedder."""

    @property
    def captioner(self) -> Captioner:
        """Describes pictures."""

    @property
    def images(self) -> Images:
        """Opens pictures."""

    @property
    def device(self) -> Device:
        """The one thread for tensor work."""

    def reader(self, role: str = "answer") -> MeteredReader:
        """The reader bound to a role (`--model ROLE=SPEC`); the answer reader by default."""

    def latent(self, role: str = "answer") -> MeteredLatent:
        """The latent reader bound to a role.

        Raises:
            UserError: if that role's reader cannot be decoded step by step.
        """

    async def open_reader(self, spec: str) -> MeteredReader:
        """A reader by spec, for methods whose config names one."""

    def rng(self, *key: object) -> random.Random:
        """A generator seeded by the run's seed and this key: a rerun draws the same, in any order."""

    def phase(self, name: Phase) -> AbstractContextManager[None]:
        """Charge calls made inside to another phase."""

    def background(self, work: Coroutine[Any, Any, None]) -> None:
        """Start work that `ready` waits for; its failure fails `ready`."""

    def render(self, evidence: Sequence[Evidence]) -> tuple[Part, ...]:
        """Evidence as the harness would show it to the reader under the run's view."""

    def prompt(self, question: Question, readout: Readout) -> Request:
        """The harness's own answer prompt, for answer-track methods that end with one."""


class Memory(ABC):
    """One context's memory. It changes only in `observe` and `ready`; recall and answer run beside each other."""

    @abstractmethod
    async def observe(self, items: Sequence[Item]) -> None:
        """Remember items, in order."""

    async def ready(self) -> None:  # noqa: B027
        """Finish indexing. Runs before every Ask that follows an Observe."""

    async def load(self) -> bool:
        """Take up what an earlier process wrote under `kit.folder`; False means: observe again."""
        return False

    async def close(self) -> None:  # noqa: B027
        """Free what this context holds."""

    def stored(self) -> int | None:
        """Units the memory holds, for the admission check after `ready`: 0 after items were observed is a failure.

        None if the method cannot say.
        """
        return None


@runtime_checkable
class Recalls(Protocol):
    """A memory of the evidence track."""

    async def recall(self, question: Question, budget: Budget) -> Readout:
        """Evidence for a question, best first, within the budget."""


@runtime_checkable
class Answers(Protocol):
    """A memory of the answer track."""

    async def answer(self, question: Question, budget: Budget) -> Answer:
        """The final answer to a question."""


@runtime_checkable
class Control(Protocol):
    """A control that may see gold. Implementing this marks the run a control everywhere."""

    async def recall_with_gold(self, question: Question, gold: Gold, budget: Budget) -> Readout:
        """A readout made with gold."""


class Method(ABC, Generic[C]):
    """A memory method. `config` is an instance of `config_class`."""

    card: ClassVar[MethodCard]
    config_class: ClassVar[type[Config]]

    def __init__(self, config: C) -> None:
        """Keep the config."""
        self.config = config

    async def start(self, kit: Kit) -> None:
        """Load weights, once per process."""

    async def close(self) -> None:
        """Free what `start` took, once per process."""

    @abstractmethod
    def open(self, context: str, kit: Kit) -> Memory:
        """A fresh memory for one context."""

    def roles(self) -> Mapping[str, Sequence[Phase]]:
        """Roles this config really uses; the card's by default. They enter the identity at their phase."""
        return self.card.roles

    def embeds(self) -> bool:
        """Whether this config really uses the embedder; what the card says by default."""
        return self.card.embeds

    @classmethod
    def settle(cls, config: C, able: Callable[[str], frozenset[str]]) -> C:
        """Resolve choices that depend on what the bound models can do, before the config enters the identity.

        Args:
            config: as the user gave it.
            able: capabilities of the reader bound to a role.
        """
        return config

    def features(self) -> Mapping[str, bool]:
        """Optional features in use, for the manifest: nothing may be switched off in silence."""
        return {}
