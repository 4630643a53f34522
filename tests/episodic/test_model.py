"""Any sequence of writes, against a plain dict: what is asked has the answer that the dict gives."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from memharness.episodic import Asset, Card, EpisodicMemory, Event, Parent
from memharness.types import UserError
from tests.episodic.pictures import numbered

SESSIONS, SPACES, WRITERS = st.sampled_from("st"), st.sampled_from("xy"), st.sampled_from(["v", "w"])
WORDS = ["red", "fox", "snow", "狐", "狸"]
SAID = st.lists(st.sampled_from(WORDS), max_size=3).map(" ".join)
VECTORS = st.lists(st.sampled_from([-1.0, 0.0, 0.5, 1.0]), min_size=3, max_size=3)


@dataclass
class Model:
    """What the memory should hold."""

    assets: dict[str, Asset] = field(default_factory=dict)  # by id, in order of creation
    pictures: dict[str, bytes | None] = field(default_factory=dict)
    cards: dict[tuple[str, str], Card] = field(default_factory=dict)
    vectors: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    def live(self) -> dict[str, Asset]:
        """Without tombstones."""
        return {id: asset for id, asset in self.assets.items() if not asset.deleted}

    def search(self, space: str, query: list[float], session: str | None) -> list[tuple[str, float]]:
        """Exact, in order."""
        found = [
            (id, float(np.dot(self.vectors[id, space], query)))
            for id, asset in self.live().items()
            if (id, space) in self.vectors and session in (None, asset.session)
        ]
        return sorted(found, key=lambda pair: -pair[1])  # stable, so that ties keep the order of creation

    def match(self, word: str, session: str | None, writer: str | None) -> set[str]:
        """Which assets say a word."""
        found = set()
        for id, asset in self.live().items():
            said = [asset.prompt] + [
                " ".join((*card.tags, card.description))
                for (owner, by), card in self.cards.items()
                if owner == id and writer in (None, by)
            ]
            if session in (None, asset.session) and any(word in text for text in said):
                found.add(id)
        return found


class Machine(RuleBasedStateMachine):
    """The memory and the model, side by side."""

    ids = Bundle("ids")

    @initialize(cache=st.sampled_from([1 << 20, 1]))
    def begin(self, cache: int) -> None:
        """An empty folder."""
        self.place = Path(tempfile.mkdtemp())
        self.cache = cache
        self.memory = EpisodicMemory.open(self.place / "memory", edge=16, cache=cache)
        self.model = Model()
        self.exports = 0

    def teardown(self) -> None:
        """Nothing stays."""
        if hasattr(self, "memory"):
            self.memory.close()
            shutil.rmtree(self.place)

    @rule(
        target=ids,
        session=SESSIONS,
        picture=st.none() | st.integers(0, 4),
        prompt=SAID,
        parents=st.lists(ids, max_size=2),
        named=st.booleans(),
        turn=st.integers(-1, 3),
    )
    def add(self, session: str, picture: int | None, prompt: str, parents: list[str], named: bool, turn: int) -> str:
        """A new asset."""
        data = None if picture is None else numbered(picture)
        id = f"n{len(self.model.assets)}" if named else None
        lineage = tuple(Parent(parent, f"as {number}") for number, parent in enumerate(parents))
        asset = self.memory.add(data, session=session, id=id, prompt=prompt, parents=lineage, turn=turn)
        place = sum(other.session == session for other in self.model.assets.values())
        assert (asset.index, asset.parents, asset.prompt, asset.turn) == (place, lineage, prompt, turn)
        assert asset.id not in self.model.assets and (id is None or asset.id == id)
        self.model.assets[asset.id], self.model.pictures[asset.id] = asset, data
        return asset.id

    @rule(id=ids, prompt=SAID)
    def add_again(self, id: str, prompt: str) -> None:
        """What is there stays."""
        known = self.model.assets[id]
        assert self.memory.add(self.model.pictures[id], session=known.session, id=id, prompt=prompt) == known

    @rule(
        id=ids,
        current=st.none() | st.booleans(),
        gallery=st.none() | st.booleans(),
        feedback=st.sampled_from([None, "", "liked", "rejected"]),
    )
    def mark(self, id: str, current: bool | None, gallery: bool | None, feedback: Any) -> None:
        """Marks of live assets."""
        known = self.model.assets[id]
        if known.deleted:
            with pytest.raises(UserError, match="was deleted"):
                self.memory.mark(id, current=current, gallery=gallery, feedback=feedback)
            return
        self.memory.mark(id, current=current, gallery=gallery, feedback=feedback)
        self.model.assets[id] = replace(
            known,
            current=known.current if current is None else current,
            gallery=known.gallery if gallery is None else gallery,
            feedback=known.feedback if feedback is None else feedback or None,
        )

    @rule(id=ids)
    def delete(self, id: str) -> None:
        """A tombstone."""
        self.memory.delete(id)
        self.model.assets[id] = replace(
            self.model.assets[id], deleted=True, current=False, gallery=False, feedback=None, prompt=""
        )
        self.model.cards = {key: card for key, card in self.model.cards.items() if key[0] != id}
        self.model.vectors = {key: row for key, row in self.model.vectors.items() if key[0] != id}

    @rule(id=ids, writer=WRITERS, tags=st.lists(st.sampled_from(WORDS), max_size=2), description=SAID)
    def write_card(self, id: str, writer: str, tags: list[str], description: str) -> None:
        """A card, in place of an earlier one."""
        card = Card(tuple(tags), description, facts={"n": len(tags)})
        if self.model.assets[id].deleted:
            with pytest.raises(UserError, match="was deleted"):
                self.memory.write_card(id, writer, card)
            return
        self.memory.write_card(id, writer, card)
        self.model.cards[id, writer] = card

    @rule(id=ids, space=SPACES, vector=VECTORS)
    def put_vector(self, id: str, space: str, vector: list[float]) -> None:
        """A vector, in place of an earlier one."""
        if self.model.assets[id].deleted:
            with pytest.raises(UserError, match="was deleted"):
                self.memory.put_vector(id, space, vector)
            return
        self.memory.put_vector(id, space, vector)
        self.model.vectors[id, space] = vector

    @rule(session=SESSIONS, turn=st.integers(0, 9), payload=st.dictionaries(st.text(max_size=2), st.integers(0, 9)))
    def remember(self, session: str, turn: int, payload: dict[str, int]) -> None:
        """An event."""
        self.memory.remember(session, turn, "tool", payload)
        self.model.events.append(Event(session, turn, "tool", payload))

    @rule(space=SPACES, query=VECTORS, k=st.integers(1, 6), session=st.none() | SESSIONS)
    def search(self, space: str, query: list[float], k: int, session: str | None) -> None:
        """Exact, in order."""
        try:
            found = self.memory.search(space, query, k, session=session)
        except UserError as error:
            assert "no vectors in a space" in str(error) and not any(key[1] == space for key in self.model.vectors)
            return
        assert [(asset.id, score) for asset, score in found] == self.model.search(space, query, session)[:k]

    @rule(word=st.sampled_from(WORDS), session=st.none() | SESSIONS, writer=st.none() | WRITERS)
    def match(self, word: str, session: str | None, writer: str | None) -> None:
        """Whoever says it."""
        found = self.memory.match(word, 100, session=session, writer=writer)
        assert {asset.id for asset, _ in found} == self.model.match(word, session, writer)
        order = list(self.model.assets)
        ranks = [(-score, order.index(asset.id)) for asset, score in found]
        assert ranks == sorted(ranks)

    @rule()
    def reopen(self) -> None:
        """As another run would."""
        self.memory.close()
        self.memory = EpisodicMemory.open(self.place / "memory", edge=16, cache=self.cache, create=False)

    @rule()
    def move(self) -> None:
        """Out and into another place, where all goes on."""
        self.exports += 1
        out, other = self.place / f"out{self.exports}", self.place / f"memory{self.exports}"
        self.memory.export(out)
        self.memory.close()
        shutil.rmtree(self.place / "memory")
        with EpisodicMemory.open(other, edge=16) as taken:
            assert taken.take(out) == len(self.model.assets)
            assert taken.take(out) == 0
        other.rename(self.place / "memory")
        self.reopen()

    @rule(gone=st.data())
    def lose_and_mend(self, gone: st.DataObject) -> None:
        """A file goes; adding its picture again under the asset's id brings it back, after a repair or without one."""
        having = [id for id, asset in self.model.live().items() if asset.sha256]
        if not having:
            return
        id = gone.draw(st.sampled_from(having))
        asset = self.model.assets[id]
        next((self.place / "memory/assets").rglob(f"{asset.sha256}.*")).unlink()
        assert [finding.kind for finding in self.memory.check()] == ["missing file"]
        if gone.draw(st.booleans()):
            assert [finding.mended for finding in self.memory.repair()] == [True]
            assert self.memory.asset(id) == replace(asset, sha256=None)
        assert self.memory.add(self.model.pictures[id], session=asset.session, id=id) == asset

    @invariant()
    def same(self) -> None:
        """Whatever is held is held by both, and nothing is wrong."""
        if not hasattr(self, "memory"):
            return
        model, memory = self.model, self.memory
        assert memory.assets(deleted=True) == list(model.assets.values())
        assert memory.assets("s") == [asset for asset in model.live().values() if asset.session == "s"]
        for id, asset in model.live().items():
            for writer in "vw":
                assert memory.card(id, writer) == model.cards.get((id, writer))
            if asset.sha256:
                assert memory.original(asset) == model.pictures[id]
        for session in "st":
            assert memory.events(session) == [event for event in model.events if event.session == session]
        files = {path.stem for path in (self.place / "memory").glob("assets/*/*")}
        assert files == {asset.sha256 for asset in model.live().values() if asset.sha256}
        assert memory.check() == []


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here loses power."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


TestModel = Machine.TestCase
TestModel.settings = settings(
    max_examples=15, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
