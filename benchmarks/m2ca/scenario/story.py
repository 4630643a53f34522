"""A session as it unfolds: the pictures there are, how each came to be, and what the last turn was about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from memharness.benchmarks.m2ca.scenario.topics import Topic
from memharness.scenes import Change, Scene


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a session.

    Attributes:
        index: from 0, in order of creation.
        turn: that brought it, from 1.
        kind: as in the data's layout.
        topics: names; several where pictures of several were put together.
        parents: indices of the pictures it was made from.
        change: that made it of its first parent; None for new ones and uploads.
    """

    index: int
    turn: int
    kind: str
    scene: Scene
    topics: tuple[str, ...]
    parents: tuple[int, ...] = ()
    change: Change | None = None


@dataclass(slots=True)
class Story:
    """What has happened so far: all that a reference may build on.

    Attributes:
        topics: of the session, in the order they came up.
        liked: indices of pictures the user said they like.
        focus: index of the picture that `it` means; None where nothing is clearly meant.
        topic: name of the topic the last turn was about.
    """

    topics: list[Topic] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    liked: list[int] = field(default_factory=list)
    focus: int | None = None
    topic: str = ""

    def of_topic(self, name: str) -> Sequence[Picture]:
        """The pictures in which something of a topic is."""
        return [picture for picture in self.pictures if name in picture.topics]

    def near(self, indices: frozenset[int]) -> Sequence[int]:
        """The near-duplicates of some pictures: parents, children and siblings by one edit that are not among them."""
        found = []
        for picture in self.pictures:
            for other in (self.pictures[index] for index in sorted(indices)):
                kin = picture.index in other.parents or other.index in picture.parents
                kin = kin or not set(picture.parents).isdisjoint(other.parents)
                if kin and picture.topics == other.topics and picture.index not in indices:
                    found.append(picture.index)
        return list(dict.fromkeys(found))
