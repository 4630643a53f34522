"""A game played in the engine: what is seen is remembered, and what is answered is done."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack

from memharness.benchmark import Ask, Episode, Fact, Observe
from memharness.benchmarks.alfworld.asking import question, scoring, seen_item
from memharness.benchmarks.alfworld.commands import command, spelled
from memharness.benchmarks.alfworld.games import Game
from memharness.benchmarks.alfworld.playing import Engine, EngineError, Playing, Scene
from memharness.benchmarks.alfworld.replays import goal
from memharness.identity import opaque_id
from memharness.types import Answer, Case, Gold

log = logging.getLogger(__name__)
NOWHERE = Scene("", (), False, frozenset())


class LiveGame(Episode):
    """One game, from its first observation until it is won, a question has no answer, or the steps are used up.

    Every answer is a command, and a step: what the game does not take goes to it all the same, which says that nothing
    happens. An engine that stops ends the game without a result; it is asked about once even if it never began, so
    that the game stands among the others.

    Gold is the walkthrough's next command as long as the walkthrough was followed. It is never scored.
    """

    live = True

    def __init__(self, context: str, game: Game, engine: Engine, steps: int, *, observation: bool, admissible: bool):
        """Start nothing yet.

        Args:
            context: the memory's id.
            game: what is played.
            engine: where.
            steps: commands that may be given.
            observation: whether the question repeats what is seen.
            admissible: whether the question lists what the game takes.
        """
        self.context = context
        self.planned = steps
        self.game = game
        self._engine = engine
        self._steps = steps
        self._observation = observation
        self._admissible = admissible

    async def play(self) -> AsyncGenerator[Observe | Ask | Fact, list[Answer]]:
        """Observe, ask, observe what came of it …, and the facts `won`, `steps`, `admissible` and `crashed`."""
        async with AsyncExitStack() as stack:
            playing = await self._started(stack)
            scene = playing.scene if playing else NOWHERE
            task, said = goal(scene.observation), list[str]()
            taken, crashed = 0, playing is None
            if playing:
                yield Observe([seen_item(self.context, 0, None, scene.observation)])
            while len(said) < self._steps and not (said and scene.won):  # a game without a question would be lost
                (answer,) = yield Ask([self._case(task, scene, said)])
                if answer.text is None or playing is None:
                    break
                said.append(spelled(command(answer.text), scene.admissible))
                taken += said[-1] in scene.admissible
                try:
                    scene = await playing.step(said[-1])
                except EngineError as error:
                    crashed = self._stopped(error)
                    break
                yield Observe([seen_item(self.context, len(said), said[-1], scene.observation)])
            facts = {"won": scene.won and not crashed, "steps": len(said), "admissible": taken, "crashed": crashed}
            yield Fact({name: float(value) for name, value in facts.items()})

    async def _started(self, stack: AsyncExitStack) -> Playing | None:
        try:
            return await stack.enter_async_context(self._engine.play(self.game.content()))
        except EngineError as error:
            self._stopped(error)
            return None

    def _stopped(self, error: EngineError) -> bool:
        log.warning("alfworld: %s: %s; the game has no result", self.game.path, error)
        return True

    def _case(self, task: str, scene: Scene, said: list[str]) -> Case:
        asked = question(
            opaque_id("alfworld", "live", self.context, len(said)),
            self.context,
            task or "the game shows none",
            observation=scene.observation if self._observation else None,
            admissible=scene.admissible if self._admissible else None,
        )
        gold = Gold(
            answers=self._expert(said),
            category=self.game.task,
            cluster=self.game.name,
            native_id=f"{self.game.name}/{len(said)}",
            extra=scoring(scene.admissible, len(said) + 1),
        )
        return Case(asked, gold)

    def _expert(self, said: list[str]) -> tuple[str, ...]:
        """The walkthrough's next command, if what was said so far is its beginning."""
        plan = list(map(command, self.game.walkthrough))
        followed = plan[: len(said)] == list(map(command, said)) and len(said) < len(plan)
        return (self.game.walkthrough[len(said)],) if followed else ()
