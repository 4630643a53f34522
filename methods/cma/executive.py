"""One turn by the paper's order: say what it asks for, retrieve, then rewrite and make, or reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memharness.methods.cma.arranging import arranged
from memharness.methods.cma.controller import MAKING, Controller, Plan, Turn, settle
from memharness.methods.cma.making import Failure, Product, Watch, make

if TYPE_CHECKING:
    from memharness.imaging import ImageBackend
    from memharness.method import Images
    from memharness.methods.cma.candidates import Candidate
    from memharness.methods.cma.retriever import Retriever

WORDS: Mapping[str, Mapping[str, str]] = {
    "made": {"en": "Here is the picture: {}", "zh": "图画好了：{}"},
    "failed": {"en": "No picture could be made: {}", "zh": "没能画出图：{}"},
}


@dataclass(frozen=True)
class Scene:
    """What a turn is played with.

    Attributes:
        turn: the words, and the state of the dialogue.
        uploads: the pictures that came with it, as bytes.
        loose: of those the ones that memory does not hold; a change may start from them all the same.
        candidates: every picture in memory, in order of creation.
        lines: the dialogue so far, one line each.
        originals: reads the original of a picture by asset id.
        seed: for the image back end.
        where: names the turn in messages.
        number: of the turn, from 1.
    """

    turn: Turn
    uploads: Sequence[bytes]
    loose: Sequence[bytes]
    candidates: Sequence[Candidate]
    lines: Sequence[str]
    originals: Mapping[str, bytes]
    seed: int
    where: str
    number: int = 1


@dataclass(frozen=True)
class Done:
    """What came of a turn: the reply, the earlier pictures it was answered from, what was made, and how."""

    text: str
    used: tuple[str, ...]
    products: tuple[Product, ...] = ()
    trace: Mapping[str, Any] = field(default_factory=dict)
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Executive:
    """Classify, retrieve, rewrite, make or reply, each once a turn."""

    controller: Controller
    retriever: Retriever
    backend: ImageBackend
    images: Images
    size: tuple[int, int]
    gate: bool = False

    async def act(self, scene: Scene, watch: Watch) -> Done:
        """Play a turn. A back end's failure is its outcome `backend_error`, with the retrieval as it was."""
        with watch.timed("plan"):
            plan = await self.controller.classify(scene.turn)
        with watch.timed("retrieve"):
            retrieval = await self.retriever.retrieve(scene.turn.words, scene.uploads, scene.candidates, scene.lines)
        known = {one.asset.id: one for one in scene.candidates}
        ids = tuple(id for id in dict.fromkeys(retrieval.ids) if id in known)
        flags = ["out_of_range"] if any(id not in known for id in retrieval.ids) else []
        if self.gate and plan.task in ("generate", "pure_chat"):
            flags += ["gated"] if ids else []
            ids = ()
        asked, plan = plan.task, settle(plan, len(ids) + len(scene.loose))
        sources = [known[id] for id in ids]
        if (read := retrieval.trace.get("outcome", "ok")) != "ok":
            flags.append(f"retrieval_{read}")
        trace = {
            "classified": asked, "task": plan.task, "by": plan.by, "rule": plan.rule,
            "rung": retrieval.rung, "retrieved": [one.asset.index for one in sources],
            "retrieval": dict(retrieval.trace),
        }  # fmt: skip
        flags += plan.flags
        if plan.task not in MAKING:
            with watch.timed("plan"):
                said = await self.controller.reply(plan.task, scene.turn, sources)
            return Done(said.text, ids, trace=trace | {"outcome": "ok"}, flags=(*flags, *said.flags))
        sources = arranged(scene.turn.words, sources, retrieval.trace, scene.number)
        return await self._make(scene, watch, plan, sources, trace, flags)

    async def _make(
        self,
        scene: Scene,
        watch: Watch,
        plan: Plan,
        sources: Sequence[Candidate],
        trace: dict[str, Any],
        flags: list[str],
    ) -> Done:
        with watch.timed("plan"):
            prompt = await self.controller.rewrite(plan.task, scene.turn, sources)
        flags += prompt.flags
        ids = tuple(one.asset.id for one in sources)
        given = [] if plan.task == "generate" else [one for one in sources if one.asset.sha256 is not None]
        if plan.task != "generate" and len(given) < len(sources):
            flags.append("picture_missing")
        pictures = [scene.originals[one.asset.id] for one in given]
        if plan.task != "generate":
            pictures += scene.loose
        with watch.timed("generate"):
            product = await make(
                self.backend, self.images, prompt=prompt.text, pictures=pictures,
                size=None if pictures else self.size, seed=scene.seed,
                parents=[one.asset.id for one in given], where=scene.where,
            )  # fmt: skip
        trace |= {"prompt": prompt.text, "outcome": "backend_error" if isinstance(product, Failure) else "ok"}
        language = scene.turn.language
        if isinstance(product, Failure):
            trace["error"] = product.message
            return Done(WORDS["failed"][language].format(product.message), ids, (), trace, (*flags, "backend_error"))
        return Done(WORDS["made"][language].format(prompt.text), ids, (product,), trace, tuple(flags))
