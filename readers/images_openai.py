"""`openai:MODEL@http://HOST/v1`: image servers of the OpenAI shape: OpenAI's own, vLLM-Omni, SGLang and their like."""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from memharness.config import option
from memharness.imaging import (
    ImageBackend,
    ImageBackendCard,
    ImageError,
    ImageRequest,
    Made,
    received,
    refuse_what_it_cannot,
)
from memharness.readers.server import Filtered, Server, ServerConfig
from memharness.types import OverWindow, ReaderError

if TYPE_CHECKING:
    from aiohttp import FormData


class OpenAIImagesConfig(ServerConfig):
    """Where pictures are made and changed, and what the servers take beyond OpenAI's own fields."""

    edit_url: str = option(
        "", "Address of the server that changes pictures, if it is another (vLLM-Omni: one model a server).", how=True
    )
    edit_model: str = option("", "Model that changes pictures; by default the one that makes them.")
    seeded: bool = option(False, "Whether the servers take `seed` (vLLM-Omni and SGLang do, OpenAI does not).")
    b64_json: bool = option(
        False,
        "Whether to ask for base64: OpenAI's GPT image models send it unasked and refuse the field.",
    )
    negatives: bool = option(False, "Whether the servers take `negative_prompt`.")
    max_references: int = option(16, "Most pictures of one edit.", source="OpenAI's API reference", ge=1)
    generates: bool = option(True, "Whether pictures are made of words alone; false for a server that only edits.")
    edits: bool = option(True, "Whether pictures are changed; false for a server that only generates.")
    timeout: float = option(600.0, "How long one try may take.", unit="seconds", gt=0, how=True)
    max_inflight: int = option(4, "Most calls at once.", ge=1, how=True)


class OpenAIImages(ImageBackend):
    """`POST /images/generations` (JSON) and `/images/edits` (multipart, the `image` part repeated for each reference).

    Pictures come as base64 alone: an address that a server sends is not fetched. A server that gives fewer pictures
    than asked is asked again for the rest, each time with the next seed; `request.extra` is sent as it is
    (vLLM-Omni's `num_inference_steps`, `guidance_scale`, `true_cfg_scale` …).
    """

    config: OpenAIImagesConfig
    config_class: ClassVar[type[OpenAIImagesConfig]] = OpenAIImagesConfig

    def __init__(self, model: str, config: OpenAIImagesConfig) -> None:
        """Take the addresses apart; nothing is opened.

        Args:
            model: `MODEL` or `MODEL@URL`.
            config: the address in it gives way to one in `model`.

        Raises:
            UserError: no model is named, or an address is not one.
        """
        name, _, url = model.partition("@")
        super().__init__(name, config)
        self._makes = Server(name, config.model_copy(update={"base_url": url or config.base_url}))
        elsewhere = {"base_url": config.edit_url or self._makes.url}
        self._edits = Server(config.edit_model or name, config.model_copy(update=elsewhere))
        routes = {"generate"} if config.generates else set()
        routes |= {"edit", "compose"} if config.edits else set()
        reader_card = self._makes.card()
        self.card = ImageBackendCard(
            name="openai",
            model=f"{name} by {reader_card.backend}",
            routes=frozenset(routes if config.max_references > 1 else routes - {"compose"}),
            max_references=config.max_references if config.edits else 0,
            seeded=config.seeded,
            hosted=reader_card.hosted,
        )

    def identity(self) -> Any:
        """The card's, and the server that edits where it is another."""
        return super().identity() | {"edits": self._edits.card().backend, "revision": self.config.revision}

    async def start(self) -> None:
        """Connect.

        Raises:
            UserError: no key, a key a server refuses, or no server there.
        """
        for server in self._servers():
            await server.open()

    async def close(self) -> None:
        """Close the connections."""
        for server in self._servers():
            await server.close()

    def _servers(self) -> Sequence[Server]:
        wanted = [self._makes] if self.config.generates else []
        return [*wanted, self._edits] if self.config.edits else wanted

    async def make(self, request: ImageRequest) -> tuple[Made, ...]:
        """See `ImageBackend.make`; an answer that no retry mends, a refusal among them, is an `ImageError`."""
        refuse_what_it_cannot(self.card, request)
        made: list[Made] = []
        while len(made) < request.n:
            made += await self._call(request, len(made))
        return tuple(made)

    async def _call(self, request: ImageRequest, before: int) -> list[Made]:
        wanted = request.n - before
        seed = None if request.seed is None or not self.config.seeded else request.seed + before
        begun = time.perf_counter()
        reply = await self._ask(request, self._fields(request, wanted, seed))
        seconds = time.perf_counter() - begun
        entries = reply.get("data")
        if not isinstance(entries, list) or not entries:
            raise ImageError(f"openai:{self.model}: the reply holds no picture: {self._makes.clean(reply)}")
        notes = self._notes(request, wanted, len(entries))
        usage = _usage(reply.get("usage"))
        pictures = [self._picture(entry) for entry in entries[:wanted]]
        return [
            received(
                data, request, seed=None if seed is None else seed + at, seconds=seconds,
                notes=(*notes, *_revised(entry)), usage=usage,
            )
            for at, (data, entry) in enumerate(zip(pictures, entries, strict=False))
        ]  # fmt: skip

    def _fields(self, request: ImageRequest, n: int, seed: int | None) -> dict[str, Any]:
        editing = request.route != "generate"
        fields: dict[str, Any] = {
            "model": (self._edits if editing else self._makes).model,
            "prompt": request.prompt,
            "n": n,
        }
        if request.size is not None:
            fields["size"] = f"{request.size[0]}x{request.size[1]}"
        if seed is not None:
            fields["seed"] = seed
        if request.negative and self.config.negatives:
            fields["negative_prompt"] = request.negative
        if self.config.b64_json:
            fields["response_format"] = "b64_json"
        return fields | dict(request.extra)

    async def _ask(self, request: ImageRequest, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            if request.route == "generate":
                return await self._makes.post("/images/generations", fields)
            return await self._edits.post("/images/edits", lambda: _form(fields, request.images))
        except Filtered as error:
            raise ImageError(f"openai:{self.model}: refused: {error}", refused=True) from None
        except (OverWindow, ReaderError) as error:
            raise ImageError(str(error)) from None

    def _picture(self, entry: Any) -> bytes:
        said = entry.get("b64_json") if isinstance(entry, dict) else None
        if not isinstance(said, str):
            raise ImageError(
                f"openai:{self.model}: the reply holds no base64 picture: {self._makes.clean(entry)}; "
                "ask for it with the image option b64_json=true"
            )
        try:
            return base64.b64decode(said, validate=True)
        except (binascii.Error, ValueError) as error:
            raise ImageError(f"openai:{self.model}: the picture is not base64 ({error})") from None

    def _notes(self, request: ImageRequest, wanted: int, came: int) -> tuple[str, ...]:
        notes = []
        if came != wanted:
            notes.append(f"{came} of {wanted} pictures came in one call")
        if request.seed is not None and not self.config.seeded:
            notes.append("the seed was not sent: the server takes none")
        if request.negative and not self.config.negatives:
            notes.append("the negative prompt was not sent: the server takes none")
        return tuple(notes)


def _form(fields: Mapping[str, Any], images: Sequence[bytes]) -> FormData:
    """A multipart body; made anew for every try, since sending uses it up."""
    from aiohttp import FormData

    form = FormData()
    for name, value in fields.items():
        form.add_field(name, _word(value))
    for at, data in enumerate(images):
        mime = _mime(data)
        form.add_field("image", data, filename=f"image{at}.{mime.rpartition('/')[2]}", content_type=mime)
    return form


def _word(value: Any) -> str:
    import json

    return value if isinstance(value, str) else json.dumps(value)


def _mime(data: bytes) -> str:
    """By the first bytes; servers look at them as well."""
    for mime, start in (("image/jpeg", b"\xff\xd8"), ("image/webp", b"RIFF"), ("image/gif", b"GIF8")):
        if data.startswith(start):
            return mime
    return "image/png"


def _revised(entry: Any) -> tuple[str, ...]:
    said = entry.get("revised_prompt") if isinstance(entry, dict) else None
    return (f"the server rewrote the prompt: {said}",) if isinstance(said, str) and said else ()


def _usage(said: Any) -> dict[str, int]:
    """Whole numbers of an API's `usage`, by name."""
    found = said.items() if isinstance(said, dict) else ()
    return {str(name): value for name, value in found if type(value) is int}
