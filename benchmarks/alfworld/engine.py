"""The process that plays games: TextWorld with ALFWorld's wrappers, one forked child a game, JSON lines over a socket.

`memharness.benchmarks.alfworld.playing` runs it as `python -m memharness.benchmarks.alfworld.engine SOCKET`. The
planner under TextWorld keeps its state in globals and is C++, so each game gets a process: games cannot disturb one
another, and one that takes its process down takes nothing else. The imports, which cost a second and 60 MB, are made
once, before the fork.

The first line of a connection is `{"game": …, "facts": true}`, every other one `{"command": …}`; each is answered by
what the game shows then, or by `{"error": …}`.
"""

from __future__ import annotations

import copy
import functools
import json
import os
import re
import signal
import socketserver
import sys
import tempfile
from io import BufferedIOBase
from pathlib import Path
from typing import Any

from memharness.benchmarks.alfworld.playing import READY

PATIENCE = 300  # seconds for one command; a game starts in one or two on a machine that has nothing else to do
_TERM = r"(?:[a-z]\w*(?:\.[a-z]\w*)?|'[^'\\]*')"
_NAMES = re.compile(rf"{_TERM}(?:\s*(?:\+|\bor\b)\s*{_TERM})*", re.IGNORECASE)


class Table(socketserver.StreamRequestHandler):
    """One game, from its start until the other side has heard enough."""

    def handle(self) -> None:
        """Play."""
        try:
            play(self.rfile, self.wfile)
        except ConnectionError:  # nobody listens any more
            return
        except Exception as error:
            tell(self.wfile, {"error": f"{type(error).__name__}: {error}"})


class Tables(socketserver.ForkingMixIn, socketserver.UnixStreamServer):
    """Forks a child for each connection, and ends when its parent does."""

    max_children = 1 << 20  # the other side bounds them
    block_on_close = False
    request_queue_size = 128
    parent = os.getppid()

    def service_actions(self) -> None:
        """Twice a second: reap children, and see whether anybody is left to play for."""
        super().service_actions()
        if os.getppid() != self.parent:
            os._exit(0)


def play(questions: BufferedIOBase, answers: BufferedIOBase) -> None:
    """Start the game that the first line holds, and carry out the commands of the others."""
    first = json.loads(questions.readline())
    signal.alarm(PATIENCE)  # nothing catches it: a planner that does not come back ends with its process
    env = start(first["game"], facts=first["facts"])
    tell(answers, shown(env.reset()))
    signal.alarm(0)
    for line in questions:
        signal.alarm(PATIENCE)
        state, _, _ = env.step(json.loads(line)["command"])
        tell(answers, shown(state))
        signal.alarm(0)


def start(game: dict[str, Any], *, facts: bool) -> Any:
    """A TextWorld environment of a game file's content, not yet reset."""
    import textworld
    from alfworld.agents.environment.alfred_tw_env import AlfredDemangler, AlfredInfos

    wanted = textworld.EnvInfos(won=True, admissible_commands=True, facts=facts, extras=["gamefile"])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "game.tw-pddl"  # by whose ending TextWorld knows what to do
        path.write_text(json.dumps(game), "utf-8")
        return textworld.start(str(path), wanted, wrappers=[AlfredDemangler, AlfredInfos])


def shown(state: Any) -> dict[str, Any]:
    """What the game shows, and its facts where they were asked for."""
    return {
        "observation": state.feedback,
        "admissible": state["admissible_commands"],
        "won": bool(state["won"]),
        "facts": [str(fact) for fact in state.get("facts") or ()],
    }


def tell(file: BufferedIOBase, value: dict[str, Any]) -> None:
    """Write a line."""
    file.write(json.dumps(value).encode() + b"\n")


def names_only(expression: str) -> Any:
    """What a game's grammar evaluates: TextWorld hands it to Python, so a game file could run any code.

    Names, texts, `+` and `or` are all that the published grammars use, and all that is let through.

    Raises:
        ValueError: for anything else.
    """
    if not _NAMES.fullmatch(expression.strip()):
        raise ValueError(f"its grammar evaluates {expression!r}, which is more than names and texts; it is not played")
    variables = sys._getframe(1).f_locals["context"]["variables"]  # what the built-in eval would see as locals
    return eval(expression.strip(), {"__builtins__": {}}, dict(variables))


def prepare() -> None:
    """Import the engine, keep it from running code, and spare it half of its work."""
    from alfworld.agents.environment import alfred_tw_env  # noqa: F401
    from textworld.envs.pddl import logic, textgen

    textgen.eval = names_only  # a module's own name stands before the built-in one
    parsed = functools.cache(textgen._parse_and_convert)  # each step parses the templates of all commands anew
    textgen._parse_and_convert = lambda *text, **options: copy.deepcopy(parsed(*text, **options))
    # Loading and resetting both translate the problem. Here a game is reset once, right after it was loaded.
    logic.PddlState = functools.lru_cache(maxsize=1)(logic.PddlState)


def main() -> None:
    """Serve the socket that the command line names."""
    prepare()
    with Tables(sys.argv[1], Table) as tables:
        os.write(1, f"{READY}\n".encode())
        os.dup2(2, 1)  # the planner prints, and nobody reads the pipe any more
        tables.serve_forever()


if __name__ == "__main__":
    main()
