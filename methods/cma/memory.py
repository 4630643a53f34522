"""One context's memory: pictures with their cards, the dialogue, and what the user likes; and a turn's answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from memharness.episodic import Asset, Card, EpisodicMemory, Parent
from memharness.method import Budget, Kit, Memory
from memharness.methods.cma import scopes
from memharness.methods.cma.candidates import Candidate
from memharness.methods.cma.controller import MAKING, Controller, Turn, language_of
from memharness.methods.cma.executive import Done, Scene
from memharness.methods.cma.history import History
from memharness.methods.cma.making import Watch
from memharness.store import whole
from memharness.types import Answer, Evidence, Image, Item, Question, ReaderError, Readout

if TYPE_CHECKING:
    from memharness.episodic import Kind
    from memharness.methods.cma.config import CMAConfig
    from memharness.methods.cma.writer import Writer

FOLDER = "episodic"
KINDS: Mapping[str, Kind] = {"generate": "generated", "edit": "edited", "composite": "composed"}


class Acts(Protocol):
    """Whoever plays a turn: the executive, or the loop with tools."""

    async def act(self, scene: Scene, watch: Watch) -> Done:
        """What comes of a turn."""


@dataclass(frozen=True)
class Acted:
    """What a turn was taken for, until its words are observed and a picture comes of it."""

    task: str
    used: tuple[str, ...]
    trace: Mapping[str, Any]


class CMAMemory(Memory):
    """Takes pictures and words from `observe` alone; `answer` plays a turn on them."""

    def __init__(
        self, config: CMAConfig, kit: Kit, writer: Writer, controller: Controller, pictures: dict[str, Image]
    ) -> None:
        """Bind; `act` is set by whoever opens it.

        Args:
            config: options.
            kit: what the harness gives.
            writer: makes cards.
            controller: compacts the dialogue.
            pictures: by asset id, filled here and read by whoever shows them.
        """
        self.config = config
        self.kit = kit
        self.writer = writer
        self.controller = controller
        self.pictures = pictures
        self.actor: Acts | None = None
        self.history = History(config.history, config.recent)
        self.held: list[scopes.Preference] = []
        self._memory: EpisodicMemory | None = None
        self._thumbnails: dict[str, bytes] = {}
        self._evidence: dict[str, str] = {}
        self._acted: dict[int, Acted] = {}
        self._said: dict[int, str] = {}
        self._uploads: dict[int, list[Asset]] = {}
        self._watch = Watch()
        self._pending: set[asyncio.Event] = set()

    @property
    def memory(self) -> EpisodicMemory:
        """The episodic memory of this context, opened at first use."""
        if self._memory is None:
            self._memory = EpisodicMemory.open(self.kit.folder / FOLDER, edge=self.config.edge)
        return self._memory

    # --------------------------------------------------------------------------------------------------- remembering

    async def observe(self, items: Sequence[Item]) -> None:
        """Keep pictures and words; cards are written in the background."""
        for item in items:
            pictures = [part for part in item.parts if isinstance(part, Image)]
            if words := item.text():
                self._hear(item, words, alone=not pictures)
            for place, picture in enumerate(pictures):
                self._see(item, picture, item.id if not place else f"{item.id}#{place}")
            if item.kind == "image" and not pictures:
                self._see(item, None, item.id)

    def _hear(self, item: Item, words: str, alone: bool) -> None:
        """Words of the dialogue. A user's may say what is to hold, and what they think of a picture."""
        if item.kind == "image" and alone:
            return  # it stands for a picture that was never made
        turn, speaker = _turn(item), item.speaker or "user"
        self.history.say(turn, speaker, words)
        self.memory.remember(self.kit.context, turn, "words", {"item": item.id, "speaker": speaker, "text": words})
        if speaker == "assistant":
            return
        self._said[turn] = words
        if acted := self._acted.get(turn):
            self.memory.remember(
                self.kit.context, turn, "turn", {"task": acted.task, "used": list(acted.used), **acted.trace}
            )
        self._think_of(turn, words)
        for asset in self._uploads.get(turn, ()):
            self._later(asset, words)

    def _think_of(self, turn: int, words: str) -> None:
        """Preferences, feedback and the gallery."""
        if said := scopes.preferences(words):
            for one in said:
                self.memory.remember(self.kit.context, turn, "preference", {"type": one.type, "words": one.words})
            self.held = list(scopes.active([*self.held, *said]))
            with whole(self.kit.folder / "user.md") as temporary:
                temporary.write_text(scopes.markdown(self.held), "utf-8")
        feedback, promoted = scopes.feedback(words), scopes.promotes(words)
        if (feedback or promoted) and (about := self._meant(turn, words)):
            self.memory.mark(about.id, feedback=feedback, gallery=True if promoted else None)
            if feedback == "rejected":
                self.memory.mark(about.id, current=False)
                for parent in about.parents:
                    self.memory.mark(parent.id, current=True)

    def _meant(self, turn: int, words: str) -> Asset | None:
        """The picture that feedback is about: the one picture the turn took, or the best match by words, or the last.

        Words alone decide only if the turn took none, and never for `it`, `this` and `that`, which mean the last.
        """
        assets = [asset for asset in self._assets() if asset.sha256 is not None and asset.turn < max(turn, 1)]
        if not assets:
            return None
        used = self._acted[turn].used if turn in self._acted else ()
        if len(used) == 1:
            return next((asset for asset in assets if asset.id == used[0]), None)
        if not scopes.points(words):
            matched = self.memory.match(words, 1, session=self.kit.context)
            if matched and matched[0][0] in assets:
                return matched[0][0]
        return assets[-1]

    def _see(self, item: Item, picture: Image | None, id: str) -> None:
        """A picture: the user's, or what came of the turn that was just played."""
        turn = _turn(item)
        acted = self._acted.get(turn) if item.speaker == "assistant" else None
        words = self._said.get(turn, "")
        kind: Kind = "upload"
        parents: tuple[Parent, ...] = ()
        if item.speaker == "assistant":
            task = acted.task if acted else "generate"
            kind = KINDS.get(task, "generated")
            used = acted.used if acted and task in MAKING and task != "generate" else ()
            parents = tuple(Parent(parent, task) for parent in used)
        data = None if picture is None or picture.missing else self._bytes(picture)
        with self._watch.timed("write"):
            asset = self.memory.add(
                data, session=self.kit.context, kind=kind, turn=turn, id=id, parents=parents,
                prompt=words if kind != "upload" else "", source=picture.source if picture else "",
                text=item.text() if kind == "upload" or data is None else "",
            )  # fmt: skip
            if kind == "edited":
                for parent in parents:
                    self.memory.mark(parent.id, current=False)
            self.memory.write_card(asset.id, self.writer.name, Card(status="pending"))
        self._evidence[asset.id] = item.id
        if kind == "upload":
            self._uploads.setdefault(turn, []).append(asset)
        if picture is not None and data is not None:
            self.pictures[asset.id] = picture
        self._later(asset, words)

    def _bytes(self, picture: Image) -> bytes:
        return self.kit.images.path(picture).read_bytes()

    def _later(self, asset: Asset, words: str) -> None:
        done = asyncio.Event()
        self._pending.add(done)
        self.kit.background(self._annotate(asset, words, done))

    async def _annotate(self, asset: Asset, words: str, done: asyncio.Event) -> None:
        """Have a card written. A writer's failure leaves a card that says so; the picture stays findable without."""
        try:
            with self._watch.timed("annotate"):
                image = self.pictures.get(asset.id)
                picture = None if image is None else self.kit.images.open(image)
                try:
                    card = await self.writer.write(asset, picture, words, language_of(words))
                except ReaderError as error:
                    card = Card(status="failed", facts={"error": str(error)[:500]})
                self.memory.write_card(asset.id, self.writer.name, card)
        finally:
            self._pending.discard(done)
            done.set()

    async def load(self) -> bool:
        """Take up what an earlier process wrote: pictures, cards, the dialogue and preferences."""
        if not (self.kit.folder / FOLDER / "memory.sqlite").is_file():
            return False
        for event in self.memory.events(self.kit.context):
            payload = event.payload
            if event.type == "words":
                self.history.say(event.turn, str(payload["speaker"]), str(payload["text"]))
            elif event.type == "preference":
                self.held.append(scopes.Preference(payload["type"], str(payload["words"])))
        self.held = list(scopes.active(self.held))
        for asset in self._assets():
            self._evidence[asset.id] = asset.id.partition("#")[0]
            if asset.sha256 is not None:
                self.pictures[asset.id] = self.kit.images.keep(
                    self.memory.original(asset), asset.source, f"{self.memory.folder}: asset {asset.id}"
                )
        return True

    def stored(self) -> int:
        """Pictures and lines of dialogue held."""
        return len(self._assets()) + len(self.history.lines)

    async def close(self) -> None:
        """Close the store, once the cards of the last turn are written."""
        for done in list(self._pending):
            await done.wait()
        if self._memory is not None:
            self._memory.close()
            self._memory = None

    def _assets(self) -> list[Asset]:
        return self.memory.assets(self.kit.context)

    # ----------------------------------------------------------------------------------------------------- answering

    async def answer(self, question: Question, budget: Budget) -> Answer:
        """Play a turn: its reply, its picture, and the earlier pictures it was answered from.

        Raises:
            ReaderError, OverWindow: of a role's reader; a failure of the image back end is an outcome of the turn.
        """
        assert self.actor is not None
        watch, self._watch = self._watch, Watch()
        scene, flags = await self._scene(question, watch)
        done = await self.actor.act(scene, watch)
        number = self.history.turn + 1
        made = [
            {
                "sha256": one.image.sha256, "width": one.image.width, "height": one.image.height,
                "operation": one.operation, "parents": list(one.parents), **one.notes,
            }
            for one in done.products
        ]  # fmt: skip
        trace = {
            "turn": number, **done.trace, "made": made, "flags": [*flags, *done.flags],
            "seconds": {stage: round(seconds, 6) for stage, seconds in watch.seconds.items()},
        }  # fmt: skip
        self._acted[number] = Acted(str(done.trace.get("task", "")), done.used, trace)
        evidence = tuple(Evidence(item) for item in dict.fromkeys(self._evidence[id] for id in done.used))
        readout = None
        if done.trace.get("retrieval", {}).get("outcome", "ok") == "ok":  # what cannot be read is no empty set
            readout = Readout(budget.fit(evidence, question), trace=trace, available=len(scene.candidates))
        parts = tuple(product.image for product in done.products)
        return Answer(done.text, parts=parts, readout=readout, trace=trace)

    async def _scene(self, question: Question, watch: Watch) -> tuple[Scene, tuple[str, ...]]:
        candidates = self.candidates()
        brought = [part for part in question.parts if isinstance(part, Image) and not part.missing]
        held = {one.asset.sha256 for one in candidates}
        with watch.timed("plan"):
            history, flags = await self.history.shown(self.controller)
        words = question.text()
        turn = Turn(
            words=words, uploads=len(brought), held=len(candidates), language=language_of(words), history=history,
            preferences=tuple(one.words for one in self.held),
        )  # fmt: skip
        scene = Scene(
            turn=turn,
            uploads=[self._bytes(image) for image in brought],
            loose=[self._bytes(image) for image in brought if image.sha256 not in held],
            candidates=candidates,
            lines=self.history.words(),
            originals=Originals(self.memory, {one.asset.id: one.asset for one in candidates}),
            seed=self.kit.rng("cma", "images", question.id).getrandbits(31),
            where=f"{self.kit.context}, turn {self.history.turn + 1}",
            number=self.history.turn + 1,
        )
        return scene, flags

    def candidates(self) -> list[Candidate]:
        """Every picture in memory with its card and thumbnail, in order of creation."""
        cards = self.memory.cards(self.kit.context, self.writer.name)
        return [Candidate(asset, cards.get(asset.id), self._thumbnail(asset)) for asset in self._assets()]

    def _thumbnail(self, asset: Asset) -> bytes | None:
        if asset.sha256 is None:
            return None
        if asset.sha256 not in self._thumbnails:
            self._thumbnails[asset.sha256] = self.memory.thumbnail(asset)
        return self._thumbnails[asset.sha256]


class Originals(Mapping[str, bytes]):
    """Originals by asset id, read when they are needed: full pixels are the last thing a turn touches."""

    def __init__(self, memory: EpisodicMemory, assets: Mapping[str, Asset]) -> None:
        """Read from a memory."""
        self._memory = memory
        self._assets = assets

    def __getitem__(self, id: str) -> bytes:
        """The bytes."""
        return self._memory.original(self._assets[id])

    def __iter__(self) -> Iterator[str]:
        """The ids."""
        return iter(self._assets)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._assets)


def _turn(item: Item) -> int:
    """The turn an item belongs to: the one it names, or its place in the order of experience."""
    named = item.keys.get("turn", "")
    return int(named) if named.isdecimal() else item.order
