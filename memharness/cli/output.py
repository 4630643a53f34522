"""What goes to stdout and what does not: tables for people, or exactly one JSON object."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any

import typer


def option(*names: str, help: str, panel: str = "Options", default: str = "", **more: Any) -> Any:
    """A typer option. `default` says what holds when it is left out, if that is worth saying."""
    words = f"{help} Default: {default}." if default else help
    return typer.Option(*names, help=words, rich_help_panel=panel, show_default=False, **more)


AsJson = Annotated[bool, option("--json", panel="Output", help="Print one JSON object on stdout and nothing else.")]


@contextlib.contextmanager
def json_only(wanted: bool) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Keep stdout for one JSON object: whatever a library or a child process prints inside goes to stderr.

    Yields:
        a function that prints the object; without `wanted` it prints nothing and stdout is left as it is.
    """
    if not wanted:
        yield lambda value: None
        return
    printed: list[str] = []
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)  # below Python too: an engine's own process logs to descriptor 1
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield lambda value: printed.append(json.dumps(value, ensure_ascii=False))
    finally:
        os.dup2(kept, 1)
        os.close(kept)
    for line in printed:
        sys.stdout.write(line + "\n")


def say(text: str) -> None:
    """A line for the user on stderr, which is never a result."""
    sys.stderr.write(text + "\n")
