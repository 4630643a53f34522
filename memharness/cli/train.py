"""`memharness train`: whatever methods bring to train their models."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command as command_of

from memharness.registry import entries
from memharness.types import UserError, did_you_mean

GROUP = "trainers"  # entry points `memharness.trainers`: a name, and a function with typer's parameters


class Trainers(TyperGroup):
    """The trainers that are installed; one is imported only when it is named, or for the list of all."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names."""
        return sorted(entries(GROUP))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The trainer of a name.

        Raises:
            UserError: there is none (with "did you mean"), or it cannot be imported.
        """
        known = entries(GROUP)
        if cmd_name not in known:
            there = ", ".join(sorted(known)) or "none; `pip install -e .` in the memharness checkout installs them"
            raise UserError(
                f"train: no trainer is called {cmd_name!r}{did_you_mean(cmd_name, known)}; there are: {there}"
            )
        app = typer.Typer(add_completion=False)
        app.command(cmd_name)(known[cmd_name].load())
        return command_of(app)


train = typer.Typer(cls=Trainers, help="Train the models of a method.", no_args_is_help=True)
train.callback()(lambda: None)  # it has no command of its own, and typer wants one or a callback
