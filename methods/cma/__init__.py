"""CMA: an agent whose pictures live in an episodic memory, retrieved turn by turn (arXiv 2607.08497)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from memharness.media import home
from memharness.method import Kit, Memory, Method, MethodCard, Phase
from memharness.methods.cma.config import CMAConfig
from memharness.types import UserError

if TYPE_CHECKING:
    from memharness.imaging import ImageBackend
    from memharness.methods.cma.executive import Scene
    from memharness.methods.cma.making import Watch
    from memharness.methods.cma.retriever import Retriever
    from memharness.methods.cma.tools import Desk, Web
    from memharness.methods.cma.writer import Writer
    from memharness.types import Image

PAPER = "Wang et al., Cognitive-structured Multimodal Agent, arXiv:2607.08497"
ROLES: Mapping[str, Sequence[Phase]] = {
    "writer": ("observe",),
    "retriever": ("answer",),
    "controller": ("answer",),
}


class CMA(Method[CMAConfig]):
    """PAE writes a card of each picture, CoRE picks the ones a turn needs, MEC makes or replies."""

    card = MethodCard(
        name="cma",
        title="CMA: cognitive-structured multimodal agent",
        paper=PAPER,
        version=1,
        track="answer",
        roles=ROLES,
        notes="No official code or prompt is published under a licence: prompts are this project's. By default every "
        "part runs without a model.",
    )
    config_class = CMAConfig
    _backend: ImageBackend | None = None
    _web: Web | None = None

    @classmethod
    def settle(cls, config: CMAConfig, able: Callable[[str], frozenset[str]]) -> CMAConfig:
        """The image back end enters the identity by what it is.

        Raises:
            UserError: for an unknown back end, an option it has not, or a web that cannot be loaded.
        """
        from memharness.methods.cma.tools import open_web
        from memharness.methods.cma.writer import rapid_ocr

        open_web(config.web)
        if config.ocr and rapid_ocr() is None:
            raise UserError("-M ocr=true: RapidOCR is not installed; pip install 'memharness-bench[ocr]'")
        return config.model_copy(update={"maker": open_backend(config).identity()})

    async def start(self, kit: Kit) -> None:
        """Open the image back end and the web."""
        self._open()
        assert self._backend is not None
        await self._backend.start()

    async def close(self) -> None:
        """Close the image back end."""
        if self._backend is not None:
            await self._backend.close()
            self._backend = None

    def roles(self) -> Mapping[str, Sequence[Phase]]:
        """The roles of parts that ask a reader."""
        asked = {role: getattr(self.config, role) == "reader" for role in ROLES}
        asked["controller"] = asked["controller"] or self.config.loop
        return {role: phases for role, phases in ROLES.items() if asked[role]}

    def features(self) -> Mapping[str, bool]:
        """Which parts ask a model, and what is on."""
        parts = {f"{role}_reader": role in self.roles() for role in ROLES}
        return {**parts, "loop": self.config.loop, "web": self.config.web != "off", "gate": self.config.gate}

    def open(self, context: str, kit: Kit) -> Memory:
        """A fresh memory, and who plays its turns."""
        from memharness.methods.cma.controller import Controller, RuleController
        from memharness.methods.cma.controller_reader import ReaderController
        from memharness.methods.cma.executive import Executive
        from memharness.methods.cma.loop import Loop
        from memharness.methods.cma.memory import CMAMemory

        config = self.config
        pictures: dict[str, Image] = {}
        controller: Controller = RuleController()
        if config.controller == "reader":
            controller = ReaderController(kit.reader("controller"), config, pictures)
        memory = CMAMemory(config, kit, open_writer(config, kit, pictures), controller, pictures)
        retriever = open_retriever(config, kit)
        self._open()
        backend, web = self._backend, self._web
        assert backend is not None and web is not None

        def desk(scene: Scene, watch: Watch) -> Desk:
            from memharness.methods.cma.tools import Desk

            return Desk(scene, retriever, backend, kit.images, pictures, config.pixels(), web, watch)

        if config.loop:
            reader = kit.reader("controller")
            memory.actor = Loop(reader, desk, config.rounds, config.calls, config.reply_tokens)
        else:
            memory.actor = Executive(controller, retriever, backend, kit.images, config.pixels(), config.gate)
        return memory

    def _open(self) -> None:
        from memharness.imagecache import CachedImages
        from memharness.methods.cma.tools import open_web

        if self._backend is None:
            backend = open_backend(self.config)
            kept = self.config.image_cache and backend.card.name != "pil"  # which draws as fast as a file is read
            self._backend = CachedImages(backend, home() / "images") if kept else backend
        self._web = self._web or open_web(self.config.web)


def open_backend(config: CMAConfig) -> ImageBackend:
    """The image back end of a config, not started.

    Raises:
        UserError: for a back end that is unknown, or an option it has not.
    """
    from memharness.imaging import open_images

    return open_images(config.images, **config.image_options)


def open_writer(config: CMAConfig, kit: Kit, pictures: Mapping[str, Image]) -> Writer:
    """PAE by a config."""
    from memharness.methods.cma.writer import ModelFreeWriter, rapid_ocr
    from memharness.methods.cma.writer_reader import ReaderWriter

    ocr = rapid_ocr() if config.ocr else None
    if config.writer == "reader":
        language = "en" if config.card_language == "auto" else config.card_language
        return ReaderWriter(kit.reader("writer"), pictures, language, config.card_tokens, ocr)
    return ModelFreeWriter("session" if config.card_language == "auto" else config.card_language, ocr)


def open_retriever(config: CMAConfig, kit: Kit) -> Retriever:
    """CoRE by a config."""
    from memharness.methods.cma.retriever import ModelFreeRetriever
    from memharness.methods.cma.retriever_reader import ReaderRetriever

    if config.retriever == "reader":
        return ReaderRetriever(kit.reader("retriever"), kit.images, config.pool, config.told)
    return ModelFreeRetriever()
