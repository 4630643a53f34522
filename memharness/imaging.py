"""The image back-end contract: what makes a picture of words, changes one, or composes several into one."""

from __future__ import annotations

import hashlib
import io
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from memharness.registry import find, plugin, split_spec
from memharness.types import UserError

if TYPE_CHECKING:
    from memharness.config import Config

Route = Literal["generate", "edit", "compose"]
MOST_PIXELS = 1 << 26  # 8,192 × 8,192: what is larger is not decoded


class ImageError(Exception):
    """A back end could not, or would not, make a picture: an outcome of the request. The message says why.

    `refused` is true where a content filter said no.
    """

    def __init__(self, message: str, *, refused: bool = False) -> None:
        """Keep the words."""
        super().__init__(message)
        self.refused = refused


@dataclass(frozen=True)
class ImageRequest:
    """What is asked for.

    Attributes:
        prompt: the words.
        images: encoded pictures to start from, in order.
        size: (width, height) in pixels; None leaves it to the back end, which for an edit is the first picture's.
        seed: of the first picture, counted on for the others; advisory where the card says `seeded=False`.
        n: pictures wanted.
        negative: what should not be seen.
        extra: options of one back end, passed on as they are.
    """

    prompt: str
    images: tuple[bytes, ...] = ()
    size: tuple[int, int] | None = None
    seed: int | None = None
    n: int = 1
    negative: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def route(self) -> Route:
        """By how many pictures it starts from: none, one, or several."""
        return ("generate", "edit", "compose")[min(len(self.images), 2)]


@dataclass(frozen=True)
class Made:
    """A picture that was made.

    Attributes:
        data: the encoded picture, as the back end gave it.
        width: in pixels, of what came back.
        height: in pixels, of what came back.
        sha256: of `data`.
        seed: it was made with; None where none was used or said.
        route: it came by.
        notes: what the back end did otherwise than asked, in words.
        seconds: wall-clock seconds of the call that made it.
        cached: whether it was made before and kept.
        usage: what the call cost, in the back end's own units (tokens of an API), shared by its pictures.
    """

    data: bytes
    width: int
    height: int
    sha256: str
    seed: int | None
    route: Route
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    cached: bool = False
    usage: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ImageBackendCard:
    """What a back end is.

    Attributes:
        name: of the plug-in.
        model: which weights or service.
        routes: what it can do.
        max_references: most pictures of one request.
        seeded: whether the same request with the same seed gives the same picture.
        hosted: whether calls cost money.
    """

    name: str
    model: str
    routes: frozenset[str]
    max_references: int
    seeded: bool
    hosted: bool = False


class ImageBackend(ABC):
    """One back end. The constructor is quick and sets `card`; `start` loads. `config` is of `config_class`."""

    card: ImageBackendCard
    config_class: ClassVar[type[Config]]

    def __init__(self, model: str, config: Any) -> None:
        """Bind to a model."""
        self.model = model
        self.config = config

    def identity(self) -> Any:
        """What two equal requests must share to give comparable pictures, as JSON."""
        from memharness.config import resolved

        return {"name": self.card.name, "model": self.card.model, "options": resolved(self.config)}

    async def start(self) -> None:  # noqa: B027
        """Load weights, or connect; once, before the first `make`."""

    async def close(self) -> None:  # noqa: B027
        """Free what `start` took."""

    @abstractmethod
    async def make(self, request: ImageRequest) -> tuple[Made, ...]:
        """The pictures asked for, `request.n` of them.

        Raises:
            ImageError: it cannot or will not.
        """


def open_images(spec: str, **options: Any) -> ImageBackend:
    """A back end by its spec, not started: `pil`, `openai:MODEL@http://HOST/v1`, `diffusers:FOLDER`.

    Args:
        spec: a plug-in of the group `memharness.image_backends`, or `package.module:Class`, then `:MODEL`.
        options: of its config; words are read as a command line's.

    Raises:
        UserError: there is none of that name, its model cannot be had, or an option is wrong.
    """
    from memharness.config import build

    name, model = split_spec("image_backends", spec)
    made: Any = find("image_backends", name)
    if not (isinstance(made, type) and issubclass(made, ImageBackend)):
        raise UserError(f"images {spec}: {made!r} is not an ImageBackend class")
    config = build(made.config_class, options, "image option", name)
    with plugin(f"image back end {spec}"):
        return made(model, config)


def received(
    data: bytes,
    request: ImageRequest,
    *,
    seed: int | None,
    seconds: float,
    notes: tuple[str, ...] = (),
    usage: Mapping[str, int] | None = None,
) -> Made:
    """What came back for a request, decoded to its end: nothing a back end says of it is taken on trust.

    Raises:
        ImageError: it is no picture, cut short, or larger than 8,192 × 8,192 pixels.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # the limit here is lower
            with Image.open(io.BytesIO(data)) as picture:
                width, height = picture.size
                if width * height > MOST_PIXELS:
                    raise ImageError(f"the picture that came back has {width:,} × {height:,} pixels; it is not decoded")
                picture.load()
    except UnidentifiedImageError:
        raise ImageError(f"what came back is no picture ({len(data):,} bytes)") from None
    except Image.DecompressionBombError:
        raise ImageError("the picture that came back has too many pixels; it is not decoded") from None
    except (OSError, SyntaxError, ValueError) as error:
        raise ImageError(f"the picture that came back is damaged or cut short ({error})") from None
    if request.size is not None and (width, height) != request.size:
        notes += (f"{width}x{height} came back for {request.size[0]}x{request.size[1]}",)
    sha = hashlib.sha256(data).hexdigest()
    return Made(data, width, height, sha, seed, request.route, notes, seconds, usage=dict(usage or {}))


def refuse_what_it_cannot(card: ImageBackendCard, request: ImageRequest) -> None:
    """Hold a request to a card.

    Raises:
        ImageError: the back end has no such route, or takes fewer pictures.
        ValueError: fewer than one picture is asked for.
    """
    if request.n < 1:
        raise ValueError(f"n={request.n}: at least one picture must be asked for")
    if request.route not in card.routes:
        raise ImageError(f"{card.name} has no route {request.route}; it has {', '.join(sorted(card.routes))}")
    if len(request.images) > card.max_references:
        raise ImageError(f"{card.name} takes at most {card.max_references} pictures, not {len(request.images)}")
