"""What a stage is trained on: questions of a benchmark, or of GQA, worked on by a team and rewarded by their score."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memharness.budget import RunBudget
from memharness.datafile import Row, kind, read_json
from memharness.media import MediaStore
from memharness.methods.l2vmas.config import L2VMASConfig
from memharness.methods.l2vmas.synthesis import Synthesis
from memharness.methods.l2vmas.team import LatentTeam, LatentWork
from memharness.methods.l2vmas.training import Episode, Stage
from memharness.methods.vmas.team import Turn, Work
from memharness.methods.vmas.training import Desk, Posed
from memharness.prompts import Renderer, View
from memharness.reader import Reply, Request
from memharness.scoring.text import NORMALISERS, exact_match
from memharness.types import Case, Evidence, Gold, Question, Text, UserError

if TYPE_CHECKING:
    from memharness.methods.vmas.topologies import Graph

Score = Callable[[Posed, "str | None"], float]


@dataclass
class LatentDesk(Desk):
    """A kit that belongs to no run, over a latent reader."""

    def latent(self, role: str = "answer") -> Any:
        """The one model of all agents."""
        return self.model


class StagedTeam(LatentTeam):
    """A team whose turns are a rollout's."""

    stage: Stage

    def work(self, question: Question, evidence: tuple[Evidence, ...], graph: Graph, rng: random.Random) -> Work:
        """See `LatentTeam.work`."""
        return StagedWork(self, question, evidence, graph, rng)


class StagedWork(LatentWork):
    """Turns that are spoken on a stage, whose memory they share."""

    def __init__(self, memory: StagedTeam, *arguments: Any) -> None:
        """As `LatentWork`, with the stage's memory in place of its own."""
        super().__init__(memory, *arguments)
        self.stage = memory.stage
        self.memory = memory.stage.memory

    async def ask(self, turn: Turn, request: Request) -> Reply:
        """See `LatentWork.ask`."""
        spoken = await self.stage.spoken(request)
        self.spoken[turn.number] = spoken
        return spoken.reply

    async def remember(self, number: int) -> None:
        """The stage has done it."""


def episodes(
    posed: Sequence[Posed],
    score: Score,
    *,
    model: Any,
    media: MediaStore,
    config: L2VMASConfig,
    synthesis: Synthesis,
    prompt: str,
    max_tokens: int,
    seed: int,
    folder: Path,
) -> list[Episode]:
    """An episode for each question: a team answers it on a stage, and its answer's score is the reward.

    Args:
        posed: the questions with what their contexts remember.
        score: of an answer, 0 … 1.
        model: the started latent reader.
        media: of the pictures.
        config: of the team, settled.
        synthesis: the modules under training.
        prompt: name of the benchmark's answer prompt.
        max_tokens: of the last turn.
        seed: of the graphs that are drawn.
        folder: where a memory could write.
    """
    view: View = "pixels" if "image" in model.card.capabilities else "captions"

    def episode(one: Posed) -> Episode:
        async def play(stage: Stage) -> float:
            renderer = Renderer({item.id: item for item in one.items}, view)
            nobody: Any = None  # a team of latents embeds nothing
            kit = LatentDesk(one.context, renderer, model, nobody, media, prompt, max_tokens, seed, folder)
            team = StagedTeam(config, kit, None, synthesis)
            team.stage = stage
            await team.observe(one.items)
            await team.ready()
            answer = await team.answer(one.case.question, RunBudget(None, None, (), renderer))
            return score(one, answer.text)

        return play

    return [episode(one) for one in posed]


# ------------------------------------------------------------------------------------------------------------------ GQA


def gqa(questions: Path, images: Path, media: MediaStore, limit: int | None) -> Iterator[Posed]:
    """GQA's questions as published: `train_balanced_questions.json` and a folder of `ID.jpg` (Hudson and Manning 2019).

    Args:
        questions: a JSON object of question id → `{"imageId", "question", "answer", …}`.
        images: the folder of pictures.
        media: registers them.
        limit: the first N only.

    Raises:
        DataError: a record without what it needs.
        UserError: a picture is missing: nothing can be learned of a question about it.
    """
    content = read_json(questions)
    if not isinstance(content, dict):
        raise Row({}, str(questions)).error("(the whole)", f"must be an object, not {kind(content)}")
    for number, (name, values) in enumerate(content.items()):
        if limit is not None and number >= limit:
            return
        where = f"{questions}: {name}"
        row = Row(values if isinstance(values, dict) else {}, where)
        picture = images / f"{row.text('imageId')}.jpg"
        image = media.image(picture, picture.name, f"{where}: imageId")
        if image.missing:
            raise UserError(f"{where}: {picture}: no such picture; fetch GQA's images, or name their folder")
        asked = Question(
            name, name, (image, Text(row.text("question"))), instruction="Answer with one word or a short phrase."
        )
        yield Posed(name, (), Case(asked, Gold((row.text("answer"),), native_id=name)))


def gqa_score(posed: Posed, answer: str | None) -> float:
    """Whether the answer is the annotated one; GQA's own measure, without case, articles and punctuation."""
    return float(answer is not None and exact_match(answer, posed.case.gold.answers[0], NORMALISERS["hotpot"]))
