"""The dialogue: whole up to a limit, then compacted with the recent turns as they were said."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memharness.methods.cma.controller import RuleController, Said
from memharness.methods.cma.history import LEFT_OUT, History


def spoken(n: int, limit: int, recent: int = 2) -> History:
    history = History(limit, recent)
    for turn in range(1, n + 1):
        history.say(turn, "user", f"Draw picture number {turn}. And make it nice, with many small details.")
        history.say(turn, "assistant", f"Here is picture {turn}.")
    return history


async def test_it_stands_whole_within_the_limit() -> None:
    text, flags = await spoken(3, 10_000).shown(RuleController())
    assert text.splitlines()[0] == "Turn 1, user: Draw picture number 1. And make it nice, with many small details."
    assert len(text.splitlines()) == 6
    assert flags == ()


async def test_older_turns_are_compacted_and_recent_ones_are_not() -> None:
    text, flags = await spoken(6, 600).shown(RuleController())
    assert flags == ("history_compacted",)
    assert text.splitlines()[0] == "Turn 1, user: Draw picture number 1."
    assert text.endswith("with many small details.\nTurn 6, assistant: Here is picture 6.")
    assert "Turn 5, user: Draw picture number 5. And make it nice" in text


async def test_blocks_of_older_turns_are_compacted_once_each_as_the_dialogue_grows() -> None:
    class Counting(RuleController):
        asked: list[str]

        async def compact(self, lines: str) -> Said:
            self.asked.append(lines)
            return await super().compact(lines)

    counting = Counting()
    counting.asked = []
    history = spoken(0, 900)
    for turn in range(1, 21):
        history.say(turn, "user", f"Draw picture number {turn}. And make it nice, with many small details.")
        text, _ = await history.shown(counting)
    assert len(counting.asked) == len(set(counting.asked)) <= 18
    whole = [block for block in counting.asked if block.count("Turn") == 2]
    assert [block.split(",")[0] for block in whole] == [f"Turn {turn}" for turn in range(1, 18, 2)]
    assert "Turn 1, user: Draw picture number 1.\n" in text


async def test_what_is_still_too_long_loses_its_beginning_and_says_so() -> None:
    text, flags = await spoken(40, 600).shown(RuleController())
    assert "history_cut" in flags
    assert text.splitlines()[0] == LEFT_OUT
    assert text.splitlines()[-1] == "Turn 40, assistant: Here is picture 40."


async def test_the_controllers_own_flags_are_kept() -> None:
    class Summing(RuleController):
        async def compact(self, lines: str) -> Said:
            return Said("They drew pictures.", ("truncated",))

    text, flags = await spoken(6, 600).shown(Summing())
    assert text.splitlines()[:2] == ["They drew pictures."] * 2
    assert flags == ("history_compacted", "truncated")


@given(st.integers(1, 60), st.integers(200, 3000), st.integers(1, 6))
async def test_it_holds_its_limit_unless_recent_turns_alone_exceed_it(n: int, limit: int, recent: int) -> None:
    history = spoken(n, limit, recent)
    text, _ = await history.shown(RuleController())
    verbatim = "\n".join(str(line) for line in history.lines if line.turn > n - recent)
    assert text.endswith(verbatim)
    assert len(text) <= max(limit, len(LEFT_OUT) + 1 + len(verbatim))
    assert await history.shown(RuleController()) == await history.shown(RuleController())
