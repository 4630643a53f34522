"""Episodic visual memory: pictures of sessions, cards about them, vectors to find them, kept in one folder.

    with EpisodicMemory.open(Path("memory")) as memory:
        cat = memory.add(png, session="s1", turn=1)
        red = memory.add(other, session="s1", turn=2, kind="edited", parents=[Parent(cat.id, "recolour")])
        memory.write_card(red.id, "reader", Card(tags=("cat", "red"), description="The cat in red."))
        memory.match("red cat", 5, session="s1")

It needs nothing else of this package's harness. The command `memharness episodic` checks, repairs, exports and imports.
"""

from memharness.episodic.asset import Asset, Card, Event, Feedback, Finding, Kind, Parent
from memharness.episodic.memory import EpisodicMemory

__all__ = ["Asset", "Card", "EpisodicMemory", "Event", "Feedback", "Finding", "Kind", "Parent"]
