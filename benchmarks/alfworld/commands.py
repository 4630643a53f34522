"""Commands as replies and games spell them, compared in one spelling."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from memharness.scoring.text import overlap

WRAPPING = " \t`'\"*“”‘’"
_SAID = re.compile(r"(?:action|command|answer)\s*:\s*|>\s*", re.IGNORECASE)
_PUT = re.compile(r"put (.+?) (?:in/on|into|onto|in|on) (.+)")


def command(reply: str) -> str:
    """The command in a reply, or a command of a game, in the spelling in which they are compared.

    It is the first line with words, without quotes around it, `action:` or `>` before it, or a full stop behind it, in
    lower case with single spaces. The grammar before ALFWorld 0.4 said `put O in/on R` where today's says
    `move O to R`; both are the latter here. Nothing else is made of a reply: one that says more than a command is no
    command. A reply without words is the empty text.
    """
    line = next((line for line in reply.splitlines() if line.strip(WRAPPING)), "").strip(WRAPPING)
    if label := _SAID.match(line):
        line = line[label.end() :].strip(WRAPPING)
    line = " ".join(line.removesuffix(".").strip(WRAPPING).casefold().split())
    return _PUT.sub(r"move \1 to \2", line) if _PUT.fullmatch(line) else line


def spelled(said: str, admissible: Iterable[str]) -> str:
    """A command as the game spells it, if it takes it now, and else as it is.

    Args:
        said: from `command`.
        admissible: what the game takes now.
    """
    return next((one for one in admissible if command(one) == said), said)


def f1(said: str, wanted: str) -> float:
    """Token F1 of two commands from `command`, in [0, 1]; `go to desk 1` for `go to desk 2` is 0.75."""
    return overlap(said.split(), wanted.split()).f1


def nearest(said: str, admissible: Sequence[str]) -> str | None:
    """The admissible command that a reply is nearest to: the equal one, else the one with the highest token F1.

    Args:
        said: from `command`.
        admissible: what the game takes now.

    Returns:
        the command, from `command`; None where none shares a word with the reply, or several are equally near: a tie
        decides nothing.
    """
    spellings = list(dict.fromkeys(map(command, admissible)))
    if said in spellings:
        return said
    near = {one: f1(said, one) for one in spellings}
    best = max(near.values(), default=0.0)
    first = [one for one, value in near.items() if value == best]
    return first[0] if best and len(first) == 1 else None
