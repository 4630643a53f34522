"""The typer application, put together from the commands that a command line names, and its exit codes."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable
from typing import Any

import typer

from memharness.cli import COMMANDS
from memharness.registry import entries
from memharness.types import UserError, did_you_mean

HIDDEN = {"work": "memharness.cli.run:work"}  # for the processes that `--workers` starts


def run(words: list[str]) -> int:
    """Run a command line that names a command; see `memharness.cli.command_line`.

    A user's mistake becomes one line on stderr. Any other exception is a bug of ours and is let through.
    """
    completing = "_MEMHARNESS_COMPLETE" in os.environ or words[0] in ("--install-completion", "--show-completion")
    try:
        app = application(COMMANDS if completing else words[:1])
        return app(words, prog_name="memharness", standalone_mode=False) or 0
    except UserError as error:
        return _error(str(error))
    except typer.TyperException as error:
        message = error.format_message()  # none where a group without a command printed its help
        return _error(f"{message} (see `memharness {words[0]} --help`)") if message else 2
    except typer.Abort:
        return _error("interrupted", 130)


def application(names: Iterable[str]) -> typer.Typer:
    """The typer application with these commands: built-in ones, or ones that plug-ins bring.

    Raises:
        UserError: for an unknown command (with "did you mean"), or one that cannot be loaded.
    """
    app = typer.Typer(pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]})
    app.callback()(lambda: None)  # with it, a single command is still called by its name
    for name in names:
        loaded = _load(name)
        if isinstance(loaded, typer.Typer):
            app.add_typer(loaded, name=name)
        else:
            app.command(name)(loaded)
    return app


def _load(name: str) -> Any:
    target = COMMANDS[name][0] if name in COMMANDS else HIDDEN.get(name)
    if target is not None:
        module, _, attribute = target.partition(":")
        return getattr(importlib.import_module(module), attribute)
    plugins = entries("commands")
    if name not in plugins:
        known = [*COMMANDS, *plugins]
        raise UserError(f"no command is called {name!r}{did_you_mean(name, known)}; there are: {', '.join(known)}")
    return plugins[name].load()


def _error(message: str, code: int = 2) -> int:
    sys.stderr.write(f"error: {' '.join(message.split())}\n")
    return code
