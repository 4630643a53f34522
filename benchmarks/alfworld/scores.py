"""What ALFWorld is scored by: the next command of an expert, and games played to their end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from memharness.benchmarks.alfworld.commands import command, f1, nearest
from memharness.metric import Metric, Unit
from memharness.scoring.metrics import not_applicable
from memharness.types import Asked, Score, Status


@dataclass(frozen=True)
class ActionScores(Metric):
    """The said command against the expert's, both in one spelling (`commands.command`).

    `em` is equality and `f1` token F1, as MEMO scores ALFWorld (arXiv 2609.07471, §4: normalised exact match and token
    F1). F1 flatters: commands share most of their words. `admissible_accuracy` is therefore given beside them: the
    admissible command that is nearest to the reply (the equal one, else the one with the highest token F1) is taken as
    what was meant, and is right if it is the expert's. Where none shares a word with the reply, or several are equally
    near, nothing was meant: 0, `unparsed`. `admissible` is whether the game would take the reply as it is.
    """

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Score one question: `em`, `f1`, `admissible_accuracy`, `admissible`, each in [0, 1]."""
        asked = unit[0]
        names = ("em", "f1", "admissible_accuracy", "admissible")
        if not asked.gold.answers:
            return dict.fromkeys(names, not_applicable("no expert command"))
        if asked.record.answer is None:
            return dict.fromkeys(names, Score(0.0))
        said, gold = command(asked.record.answer), command(asked.gold.answers[0])
        admissible = asked.gold.extra["admissible"]
        meant = nearest(said, admissible)
        taken = Score(0.0, Status.UNPARSED, "no admissible command is nearest") if meant is None else None
        return {
            "em": Score(float(said == gold)),
            "f1": Score(f1(said, gold)),
            "admissible_accuracy": taken or Score(float(meant == gold)),
            "admissible": Score(float(said in map(command, admissible))),
        }


@dataclass(frozen=True)
class GameScores(Metric):
    """A game that was played: whether it was won, in how many commands, and how many of them the game took.

    `success` is the official success rate's term. `steps` counts every command, also those that nothing came of; a
    game that is not won counts all it was given, `steps_won` only won ones. A game in which the engine stopped has no
    value: it counts 0 over all games and is left out over valid ones.
    """

    unit: ClassVar[Unit] = "episode"

    def score(self, unit: Sequence[Asked], facts: Mapping[str, float]) -> Mapping[str, Score]:
        """Score one game: `success`, `admissible` (share of the commands), `steps`, `steps_won`."""
        names = ("success", "admissible", "steps", "steps_won")
        if "won" not in facts:
            return dict.fromkeys(names, not_applicable("the game was not played"))
        if facts.get("crashed"):
            return dict.fromkeys(names, Score(None, note="the engine stopped in this game"))
        won, steps = facts["won"], facts["steps"]
        return {
            "success": Score(won),
            "admissible": Score(facts["admissible"] / steps) if steps else not_applicable("no command was given"),
            "steps": Score(steps),
            "steps_won": Score(steps) if won else not_applicable("not won"),
        }
