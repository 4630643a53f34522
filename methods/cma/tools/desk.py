"""The desk of one turn: the pictures that tools can reach, what they made, and which of memory they used."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memharness.methods.cma.making import Failure, Product, Watch, make
from memharness.methods.cma.tools.tool import ToolError
from memharness.types import DataError, Image

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

    from memharness.imaging import ImageBackend
    from memharness.method import Images
    from memharness.methods.cma.candidates import Candidate
    from memharness.methods.cma.executive import Scene
    from memharness.methods.cma.retriever import Retriever
    from memharness.methods.cma.tools.web import Web


@dataclass
class Desk:
    """What one turn's tools work on. Memory's pictures go by their number, those of this turn by `new-1` and so on.

    Attributes:
        scene: the turn.
        retriever: CoRE.
        backend: makes pictures.
        images: keeps and opens them.
        pictures: memory's pictures by asset id.
        size: of new pictures.
        web: what the web tools ask.
        watch: told how long the back end takes.
        products: what was made or came this turn and is not in memory, by name.
        used: asset ids of memory's pictures that a tool worked with, in order.
        failures: why the back end made none, each time.
        retrieved: what the retriever said last; None before it was asked.
    """

    scene: Scene
    retriever: Retriever
    backend: ImageBackend
    images: Images
    pictures: Mapping[str, Image]
    size: tuple[int, int]
    web: Web
    watch: Watch = field(default_factory=Watch)
    products: dict[str, Product] = field(default_factory=dict)
    used: dict[str, None] = field(default_factory=dict)
    retrieved: tuple[str, ...] | None = None
    failures: list[str] = field(default_factory=list)

    def candidate(self, name: str) -> Candidate:
        """A picture of memory by its number.

        Raises:
            ToolError: if there is none.
        """
        for one in self.scene.candidates:
            if str(one.asset.index) == name:
                return one
        raise ToolError(f"there is no picture {name}; there are: {self._known()}")

    def data(self, name: str) -> bytes:
        """The bytes of a picture, which is thereby used.

        Raises:
            ToolError: if there is none of that name, or no pixels are at hand.
        """
        if name in self.products:
            return self.products[name].data
        asset = self.candidate(name).asset
        if asset.sha256 is None:
            raise ToolError(f"picture {name} has no pixels: it was never made, or is not at hand")
        self.used[asset.id] = None
        return self.scene.originals[asset.id]

    def open(self, name: str) -> Picture:
        """A picture decoded, in RGB, turned as its EXIF says.

        Raises:
            ToolError: as `data`, or if it cannot be decoded.
        """
        from PIL import Image as Pillow
        from PIL import ImageOps

        data = self.data(name)
        try:
            with Pillow.open(io.BytesIO(data)) as picture:
                return ImageOps.exif_transpose(picture).convert("RGB")
        except (OSError, SyntaxError, ValueError, Pillow.DecompressionBombError) as error:
            raise ToolError(f"picture {name} cannot be decoded ({error})") from None

    def parents(self, names: Sequence[str]) -> tuple[str, ...]:
        """What a product of these pictures says it was made from: asset ids, and names of this turn's products."""
        return tuple(name if name in self.products else self.candidate(name).asset.id for name in names)

    async def make(self, prompt: str, names: Sequence[str], size: tuple[int, int] | None = None) -> str:
        """Have the back end make a picture of these; its name.

        Raises:
            ToolError: if it makes none.
        """
        pictures = [self.data(name) for name in names]
        with self.watch.timed("generate"):
            product = await make(
                self.backend, self.images, prompt=prompt, pictures=pictures,
                size=size or (None if names else self.size), seed=self.scene.seed + len(self.products),
                parents=self.parents(names), where=self.scene.where,
            )  # fmt: skip
        if isinstance(product, Failure):
            self.failures.append(product.message)
            raise ToolError(f"no picture was made: {product.message}")
        return self._name(product)

    def keep(self, data: bytes, operation: str, names: Sequence[str], **notes: Any) -> str:
        """Keep a picture that a tool made or brought; its name.

        Raises:
            ToolError: if the bytes are no readable picture.
        """
        try:
            image = self.images.keep(data, f"{self.scene.where}.{operation}", self.scene.where)
        except DataError as error:
            raise ToolError(str(error)) from None
        return self._name(Product(image, data, operation, self.parents(names), notes))

    def draw(self, picture: Picture, operation: str, names: Sequence[str], **notes: Any) -> str:
        """Keep a picture as PNG, the same bytes for the same pixels; its name."""
        out = io.BytesIO()
        picture.save(out, "PNG")
        return self.keep(out.getvalue(), operation, names, **notes)

    def image(self, name: str) -> tuple[Image, ...]:
        """A picture for a reader that sees; empty if its pixels are not at hand."""
        if name in self.products:
            return (self.products[name].image,)
        found = self.pictures.get(self.candidate(name).asset.id)
        return () if found is None or found.missing else (found,)

    def made(self) -> dict[str, Product]:
        """The products that came of this turn, and not with it."""
        return {name: one for name, one in self.products.items() if one.operation != "upload"}

    def _name(self, product: Product) -> str:
        name = f"new-{len(self.products) + 1}"
        self.products[name] = product
        return name

    def _known(self) -> str:
        numbers = [str(one.asset.index) for one in self.scene.candidates]
        return ", ".join((*numbers, *self.products)) or "none yet"
