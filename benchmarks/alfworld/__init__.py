"""ALFWorld: household tasks in a text game, as an expert's next command or as games played to their end."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from memharness.benchmark import Ask, Benchmark, BenchmarkCard, Data, Episode, Fact, Floor, Observe, Recorded
from memharness.benchmarks.alfworld import asking, playing, replays, states
from memharness.benchmarks.alfworld.games import Game
from memharness.benchmarks.alfworld.live import LiveGame
from memharness.benchmarks.alfworld.playing import Engine
from memharness.benchmarks.alfworld.replays import Expert, Replay
from memharness.benchmarks.alfworld.scores import ActionScores, GameScores
from memharness.benchmarks.alfworld.sources import ONE_RELEASE, SIZES, Sources, Trail
from memharness.config import Config, option
from memharness.identity import opaque_id
from memharness.metric import Metric
from memharness.scoring.metrics import Recall, RecallReadout
from memharness.types import Answer, Asset, Case, DataError, Evidence, Finding, Gold, Item

RELEASE = "https://github.com/alfworld/alfworld/releases/download/0.4.2/json_2.1.3_tw-pddl.zip"
KEPT = 4  # games whose replays stay in memory; the questions of a game come one after another

Seen = Literal["shown", "hidden"]


class ALFWorldOptions(Config):
    """What is asked, and what is remembered."""

    live: bool = option(False, "play the games; otherwise ask for the next command of an expert's game")
    expert: Expert = option(
        "walkthrough",
        "whose games the next commands are from: `walkthrough`, a planner that knows where everything is, or "
        "`handcoded`, stored games of the expert that looks for things",
        source="MEMO §4 (official expert trajectory)",
    )
    memory: Literal["states", "history"] = option(
        "states",
        "what is remembered before a next command: `states`, one record for each entity, or `history`, what was seen "
        "and done so far",
        source="MEMO §4 (each entity of the pre-state is a source chunk)",
    )
    observation: Seen = option("hidden", "whether the question repeats what is seen now")
    admissible: Seen = option("hidden", "whether the question lists the commands that the game takes now")
    steps: int = option(
        50,
        "commands that may be given in a live game",
        source="ALFWorld configs/base_config.yaml, max_nb_steps_per_episode",
        ge=1,
    )
    games: int = option(16, "games that the engine plays at once, each in a process of 50 MB", how=True, ge=1)


class Replayed(Episode):
    """A next-command question whose game is played in the engine first."""

    planned = 1

    def __init__(self, context: str, recorded: Callable[[], Any]) -> None:
        """Play nothing yet.

        Args:
            context: the memory's id.
            recorded: gives the recorded episode, as an awaitable.
        """
        self.context = context
        self._recorded = recorded

    async def play(self) -> AsyncGenerator[Observe | Ask | Fact, list[Answer]]:
        """As a recorded one."""
        recorded: Recorded = await self._recorded()
        async for event in recorded.play():
            yield event


class ALFWorld(Benchmark):
    """A next-command question is a context of its own, before an expert's step; a live game is one context."""

    card = BenchmarkCard(
        name="alfworld",
        prompt="action.v1",
        title="ALFWorld (text games)",
        paper="Shridhar et al., ICLR 2021, arXiv:2010.03768; next commands as in MEMO, arXiv:2609.07471",
        licence="MIT (games, alfworld, TextWorld); the engine's planner, fast-downward, is GPL-3.0 and comes only with "
        "the extra `alfworld`",
        source="https://github.com/alfworld/alfworld",
        revision="games json_2.1.3_tw-pddl (release 0.4.2); alfworld 0.4.2, textworld 1.7.0",
        version=1,
        splits={
            "valid_seen": "140 games in rooms that training games have too",
            "valid_unseen": "134 games in other rooms",
            "train": "3,553 games; only where --subset names it",
        },
        counts={f"{split} games": size for split, size in SIZES.items()} | {"validation walkthrough commands": 1600},
        cluster="the game",
        primary="em",
        assets=(Asset(RELEASE, Path(RELEASE).name),),
        errata=(
            "walkthroughs are omniscient: they go straight to what nobody has seen, so that with memory=history the "
            "next command cannot be inferred; use memory=states, or expert=handcoded, which looks for things",
            "a task has several best plans and one is gold: em and f1 give too little credit, and f1 too much to near "
            "misses (`go to desk 1` for `go to desk 2` is 0.75): admissible_accuracy stands beside them",
            "since ALFWorld 0.4 games say `move O to R` where older ones say `put O in/on R`: both are read as the "
            "former, and what a game is told is in its own words",
            "games without `solvable`, or not solvable, are passed over in silence by the official environment; here "
            "they are refused, so that nobody reports on fewer games than stated",
            "the official environment finds only games that lie beside a traj_data.json, which text releases lack; "
            "here the folder's name says the task",
            "stored games of the hand-coded expert that it did not win are left out; `data check` counts them",
            "a game's grammar holds Python expressions that TextWorld evaluates: only names and texts are let through",
        ),
        steps=(
            "stored replays, walkthrough_replay_*.jsonl.xz and handcoded_expert_*.jsonl.xz, are no part of the "
            "release: put them beside the games if you have them. Without, walkthroughs are played once in the engine "
            "and kept; handcoded needs them",
        ),
    )
    options_class = ALFWorldOptions
    options: ALFWorldOptions

    def __init__(self, data: Data, options: Any) -> None:
        """Bind to data; nothing is read or started."""
        super().__init__(data, options)
        self.sources = Sources(data.path, data.media)
        self.engine = Engine(self.options.games)
        self._live: dict[str, Game] = {}
        self._steps: dict[str, tuple[Trail, int]] = {}
        self._replays: dict[str, asyncio.Task[Replay]] = {}
        self._told: dict[str, list[dict[str, states.Record]]] = {}
        if self.options.live:
            self.card = replace(type(self).card, primary="success")  # type: ignore[misc]  # em is no score of a game

    # ------------------------------------------------------------------------------------------------------- contexts

    def contexts(self, subset: str | None = None) -> Sequence[str]:
        """One context a step, or a game if they are live; by the game's name. `subset` is a split.

        Raises:
            UserError: for an unknown subset, or if the engine is needed and not installed.
            DataError: for data that is not as published.
        """
        if self.options.live:
            playing.require("live games need")
            games = self.sources.games(subset)
            self._live = {opaque_id("alfworld", "live", game.name): game for game in games}
            return list(self._live)
        trails = self.sources.trails(self.options.expert, subset)
        for trail in trails:
            self._check(trail)
        self._steps = {
            opaque_id("alfworld", trail.name, step): (trail, step)
            for trail in trails
            for step in range(len(trail.commands))
        }
        return list(self._steps)

    def _check(self, trail: Trail) -> None:
        """Whether what is asked for can be made, before anything is spent."""
        if self.options.memory == "states" and trail.game is None:
            assert trail.stored is not None
            raise DataError(
                f"{trail.stored.where}: the game file of {trail.name} is not at hand, and only it says how things are "
                "at the start; name a folder that holds the games (or their archive) too, or use -B memory=history"
            )
        if self._needs_engine(trail):
            playing.require(f"{trail.name}: no stored replay says what happens, and playing it needs")

    def _needs_engine(self, trail: Trail) -> bool:
        return trail.stored is None or (self.options.memory == "states" and not trail.stored.tells_changes)

    def episode(self, context: str) -> Episode:
        """A game to play, or what is remembered before one of an expert's commands, then the question for it."""
        if context not in self._live and context not in self._steps:
            self.contexts()
        if self.options.live:
            shown = {name: getattr(self.options, name) == "shown" for name in ("observation", "admissible")}
            return LiveGame(context, self._live[context], self.engine, self.options.steps, **shown)
        trail, step = self._steps[context]
        if not self._needs_engine(trail):
            assert trail.stored is not None
            return self._recorded(context, trail, trail.stored, step)

        async def recorded() -> Recorded:
            return self._recorded(context, trail, await self._replay(trail), step)

        return Replayed(context, recorded)

    async def _replay(self, trail: Trail) -> Replay:
        """The replay of a trail, played once however many of its steps ask for it."""
        task = self._replays.get(trail.name)
        lost = task is not None and task.done() and (task.cancelled() or task.exception() is not None)
        if task is None or lost or task.get_loop() is not asyncio.get_running_loop():
            assert trail.game is not None
            while len(self._replays) >= KEPT:
                del self._replays[next(iter(self._replays))]
            made = replays.replay(self.engine, trail.game, self.options.expert, trail.commands)
            task = self._replays[trail.name] = asyncio.create_task(made)
        return await asyncio.shield(task)

    def _recorded(self, context: str, trail: Trail, replay: Replay, step: int) -> Recorded:
        now = replay.steps[step]
        evidence: tuple[Evidence, ...] = ()
        if self.options.memory == "states":
            before, then = self._records(trail, replay)[step : step + 2]
            items = asking.state_items(context, before)
            evidence = asking.evidence(before, states.changed(before, then))
        else:
            items = _history(context, replay, step)
        asked = asking.question(
            opaque_id("alfworld", context, "next"),
            context,
            replay.goal,
            observation=now.observation if self.options.observation == "shown" else None,
            admissible=now.admissible if self.options.admissible == "shown" else None,
        )
        gold = Gold(
            answers=(now.action,),
            evidence=evidence,
            category=trail.task,
            cluster=trail.name,
            native_id=f"{trail.name}/{step}",
            extra=asking.scoring(now.admissible, len(items)),
        )
        return Recorded(context, items, (Case(asked, gold),))

    def _records(self, trail: Trail, replay: Replay) -> list[dict[str, states.Record]]:
        """The records of every entity before each step of a game, and after the last."""
        if trail.name not in self._told:
            assert trail.game is not None
            facts = states.initial(trail.game.content()["pddl_problem"], trail.game.path)
            told = [states.records(facts)]
            for number, step in enumerate(replay.steps):
                added, removed = step.change or ((), ())
                if not facts.issuperset(removed):
                    where = f"{replay.where}: steps[{number}]: facts_removed"
                    raise DataError(f"{where}: were not true in {trail.game.path}; {ONE_RELEASE}")
                facts = states.after(facts, added, removed)
                told.append(states.records(facts))
            while len(self._told) >= KEPT:
                del self._told[next(iter(self._told))]
            self._told[trail.name] = told
        return self._told[trail.name]

    # -------------------------------------------------------------------------------------------------------- scoring

    def metrics(self) -> Sequence[Metric]:
        """The next command's scores and retrieval of what changes; of live games, success and steps."""
        if self.options.live:
            return (GameScores(),)
        return (ActionScores(), Recall(k=5), Recall(k=10), RecallReadout())

    def floors(self) -> Sequence[Floor]:
        """Commands that read nothing: always the same, the first or a random one of those the game takes."""

        def admissible(case: Case, choose: Callable[[Sequence[str]], str]) -> Answer:
            commands = case.gold.extra["admissible"]
            return Answer(choose(commands) if commands else "")

        def by_chance(case: Case, items: Sequence[Item]) -> Answer:
            return admissible(case, random.Random(case.question.id).choice)

        frequent = self._frequent()
        return (
            Floor("constant look", lambda case, items: Answer("look")),
            Floor("first admissible", lambda case, items: admissible(case, lambda commands: commands[0])),
            Floor("random admissible", by_chance),
            Floor("most frequent by task", lambda case, items: Answer(frequent.get(case.gold.category, "look"))),
        )

    def _frequent(self) -> Mapping[str, str]:
        """The expert's most frequent command in each type of task."""
        said: dict[str, Counter[str]] = {}
        games = [(game.task, game.walkthrough) for game in self._live.values()]
        trails = {trail.name: (trail.task, trail.commands) for trail, _ in self._steps.values()}
        for task, commands in (*games, *trails.values()):
            said.setdefault(task, Counter()).update(commands)
        return {task: count.most_common(1)[0][0] for task, count in said.items() if count}

    # ----------------------------------------------------------------------------------------------------------- data

    def check(self) -> Sequence[Finding]:
        """Games by split against the release, files that are not as published, stored replays, and the engine."""
        found = [*self.sources.check()]
        if not any(finding.level == "error" for finding in found) and (lost := playing.missing()):
            said = f"no engine here ({', '.join(lost)} missing): {playing.INSTALL}"
            found.append(Finding("warning", str(self.data.path), said))
        return found

    def digest(self) -> Any:
        """Digests of the games, or their archives where only those are at hand, and of the stored replays."""
        return self.sources.digest()


def _history(context: str, replay: Replay, step: int) -> list[Item]:
    """What was seen up to a step, each but the first after the command that led to it."""
    said = [None, *(one.action for one in replay.steps)]
    return [asking.seen_item(context, at, said[at], replay.steps[at].observation) for at in range(step + 1)]
