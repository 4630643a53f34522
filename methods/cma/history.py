"""The dialogue in words: kept whole, and compacted beyond a limit with the recent turns as they were said."""

from __future__ import annotations

from dataclasses import dataclass

from memharness.methods.cma.controller import Controller, Said

LEFT_OUT = "(earlier turns are left out)"


@dataclass(frozen=True)
class Line:
    """Words of a turn: who said what."""

    turn: int
    speaker: str
    text: str

    def __str__(self) -> str:
        """As a prompt shows it; line breaks inside the words become blanks, so that a line is a line."""
        return f"Turn {self.turn}, {self.speaker}: {' '.join(self.text.split())}"


class History:
    """All that was said. Only what is shown is ever compacted."""

    def __init__(self, limit: int, recent: int) -> None:
        """Begin with nothing said.

        Args:
            limit: characters up to which it is shown whole.
            recent: turns that are shown as they were said in any case.
        """
        self.limit = limit
        self.recent = recent
        self.lines: list[Line] = []
        self.turn = 0  # the last in which something was said
        self._compacted: dict[str, Said] = {}

    def say(self, turn: int, speaker: str, text: str) -> None:
        """Add words."""
        self.lines.append(Line(turn, speaker, text))
        self.turn = max(self.turn, turn)

    def words(self) -> list[str]:
        """Every line as it is shown when nothing is compacted."""
        return [str(line) for line in self.lines]

    async def shown(self, controller: Controller) -> tuple[str, tuple[str, ...]]:
        """The dialogue as a prompt shows it, and flags: `history_compacted`, `history_cut` and the controller's own.

        Recent turns stand as they were said, even where they alone exceed the limit. Older ones are compacted in blocks
        of as many turns, each once, so that a long dialogue does not have all of it summed up anew at every turn; the
        turns after the last whole block stand as they were said if there is room. If it is still too long its beginning
        is left out, and a line says so.
        """
        whole = "\n".join(self.words())
        if len(whole) <= self.limit:
            return whole, ()
        turns: dict[int, list[str]] = {}
        for line in self.lines:
            turns.setdefault(line.turn, []).append(str(line))
        told = ["\n".join(turns[turn]) for turn in sorted(turns)]
        older, recent = told[: -self.recent], "\n".join(told[-self.recent :])
        if not older:
            return recent, ()
        room = max(0, self.limit - len(recent) - 1)
        blocks = ["\n".join(older[at : at + self.recent]) for at in range(0, len(older), self.recent)]
        loose = [blocks.pop()] if len(older) % self.recent else []
        said = [await self._compact(controller, block) for block in blocks]
        if sum(len(one.text) + 1 for one in said) + sum(map(len, loose)) > room:
            said += [await self._compact(controller, block) for block in loose]
            loose = []
        head = "\n".join((*(one.text for one in said), *loose))
        flags = dict.fromkeys(("history_compacted", *(flag for one in said for flag in one.flags)))
        if len(head) > room:
            flags |= {"history_cut": None}
            tail = head[len(head) - max(0, room - len(LEFT_OUT) - 1) :] if room > len(LEFT_OUT) + 1 else ""
            kept = tail.partition("\n")[2]  # whole lines only
            head = f"{LEFT_OUT}\n{kept}" if kept else LEFT_OUT
        return f"{head}\n{recent}", tuple(flags)

    async def _compact(self, controller: Controller, block: str) -> Said:
        if block not in self._compacted:
            self._compacted[block] = await controller.compact(block)
        return self._compacted[block]
