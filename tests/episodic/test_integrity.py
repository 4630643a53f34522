"""Whatever may be wrong is found and named, and repair leaves nothing to find."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from memharness.episodic import Card, EpisodicMemory, Parent, integrity
from tests.episodic.pictures import numbered, plain


@pytest.fixture
def memory(folder: Path) -> EpisodicMemory:
    """Four assets with words, cards, vectors and a parent; one of them deleted."""
    made = EpisodicMemory.open(folder, edge=64)
    for number, id in enumerate("abcd"):
        parents = [Parent("a", "edit")] if number else []
        made.add(numbered(number), session="s", id=id, prompt=f"picture {id}", parents=parents)
        made.write_card(id, "w", Card((f"tag{id}",)))
        made.put_vector(id, "x", np.eye(4)[number])
    made.delete("d")
    assert made.check() == []
    return made


def original(memory: EpisodicMemory, id: str) -> Path:
    """An asset's file."""
    sha = str(memory.asset(id).sha256)
    return memory.folder / "assets" / sha[:2] / f"{sha}.png"


def damage(memory: EpisodicMemory, *told: tuple[str, str]) -> None:
    """Check names just this (kind, a part of what or message), changes nothing, and repair mends it."""
    found = memory.check()
    assert [finding.kind for finding in found] == [kind for kind, _ in told]
    for finding, (_, part) in zip(found, told, strict=True):
        assert part in f"{finding.what}: {finding.message}" and not finding.mended
    assert memory.check() == found
    mended = memory.repair()
    assert [(f.kind, f.what) for f in mended] == [(f.kind, f.what) for f in found] and all(f.mended for f in mended)
    assert memory.check() == [] == memory.repair()


def test_a_missing_file(memory: EpisodicMemory) -> None:
    original(memory, "a").unlink()
    damage(memory, ("missing file", "asset a is without a picture"))
    a = memory.asset("a")
    assert (a.sha256, a.width, a.prompt) == (None, 8, "picture a")
    assert memory.card("a", "w") == Card(("taga",))
    assert [x.id for x, _ in memory.search("x", np.eye(4)[0], 1)] == ["a"]  # all but the pixels is still there
    assert not (memory.folder / f"thumbs/{hashlib.sha256(numbered(0)).hexdigest()}-64.webp").exists()
    again = memory.add(numbered(0), session="s", id="a")
    assert again.sha256 and memory.original(again) == numbered(0) and memory.check() == []


def test_a_lost_picture_comes_back_with_any_asset_that_has_it(memory: EpisodicMemory) -> None:
    original(memory, "a").unlink()
    memory.repair()
    memory.add(numbered(0), session="other")
    assert memory.original(memory.asset("a")) == numbered(0) and memory.check() == []


def test_a_lost_picture_that_is_put_back_by_hand_is_taken_back(memory: EpisodicMemory) -> None:
    path = original(memory, "a")
    path.unlink()
    memory.repair()
    path.write_bytes(b"something else")
    damage(memory, ("orphan file", "no asset names it"))
    assert not path.exists()
    path.write_bytes(numbered(0))
    damage(memory, ("orphan file", "a picture that was lost is back"))
    assert memory.original(memory.asset("a")) == numbered(0)


def test_a_file_with_other_bytes(memory: EpisodicMemory) -> None:
    path = original(memory, "b")
    path.write_bytes(b"other")
    damage(memory, ("wrong hash", "asset b is without a picture"))
    assert (memory.folder / "damaged" / path.name).read_bytes() == b"other"
    assert memory.asset("b").sha256 is None and not path.exists()


def test_a_file_that_is_put_right_while_others_are_read_is_left_alone(
    memory: EpisodicMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = original(memory, "b")
    monkeypatch.setattr(integrity, "_changed", lambda db, files: {path})
    assert memory.repair() == [] and memory.original(memory.asset("b")) == numbered(1)


def test_a_file_shared_by_two_assets(memory: EpisodicMemory) -> None:
    memory.add(numbered(0), session="t", id="z")
    original(memory, "a").unlink()
    damage(memory, ("missing file", "asset a, z is without"))


def test_orphans(memory: EpisodicMemory, tmp_path: Path) -> None:
    sha = hashlib.sha256(plain("green")).hexdigest()
    secret = tmp_path / "secret"
    secret.write_text("not ours")
    places = [
        f"assets/{sha[:2]}/{sha}.png",
        "assets/note.txt",
        f"assets/{sha[:2]}/link.png",
        f"thumbs/{sha}-64.webp",
        f"thumbs/{memory.asset('d').sha256}-64.webp",  # of a tombstone
        f"thumbs/{memory.asset('a').sha256}-64.png",
    ]
    for place in places:
        (memory.folder / place).parent.mkdir(exist_ok=True)
        if "link" in place:
            (memory.folder / place).symlink_to(secret)
        else:
            (memory.folder / place).write_bytes(plain("green"))
    damage(memory, *[("orphan file", place) for place in sorted(places)])
    assert not any((memory.folder / place).exists() for place in places) and secret.read_text() == "not ours"


def test_half_written_files(memory: EpisodicMemory) -> None:
    path = original(memory, "a")
    half = path.with_name(f".{path.name}.123.456.tmp")
    half.write_bytes(numbered(0)[:20])
    thumb = memory.folder / f"thumbs/.{path.stem}-64.webp.1.2.tmp"
    thumb.write_bytes(b"RI")
    damage(memory, ("half-written file", half.name), ("half-written file", thumb.name))
    assert memory.original(memory.asset("a")) == numbered(0)


def test_broken_parents(memory: EpisodicMemory) -> None:
    memory._db.run("INSERT INTO parent VALUES (2, 1, 'nobody', 'edit'), (99, 0, 'a', 'edit')")
    damage(memory, ("broken parent", "b: its parent 'nobody'"), ("broken parent", ": its parent 'a'"))
    assert memory.asset("b").parents == (Parent("a", "edit"),)


BAD_VECTORS = [
    ("UPDATE vector SET value=x'0000' WHERE asset=1", "a in x: its bytes are damaged"),
    (
        "UPDATE vector SET value=x'0000c07f000000000000000000000000' WHERE asset=2",
        "b in x: its bytes are damaged",
    ),  # NaN
    ("INSERT INTO vector (asset, space, value) VALUES (99, 1, zeroblob(16))", "? in x: it is of no asset"),
    ("INSERT OR REPLACE INTO vector (asset, space, value) VALUES (4, 1, zeroblob(16))", "d in x: its asset is deleted"),
    ("UPDATE vector SET space=7 WHERE asset=3", "c in ?: it is of no space"),
]


@pytest.mark.parametrize(("statement", "told"), BAD_VECTORS)
def test_unreachable_vectors(memory: EpisodicMemory, statement: str, told: str) -> None:
    memory._db.run(statement)
    damage(memory, ("unreachable vector", told))
    with EpisodicMemory.open(memory.folder) as other:
        kept = {a.id for a, _ in other.search("x", np.ones(4), 9)}
    assert {a.id for a, _ in memory.search("x", np.ones(4), 9)} == kept and kept <= set("abc")


def test_a_memory_held_wrongly_is_noticed(memory: EpisodicMemory) -> None:
    """What the count is for: a cache that lost a vector, as approximate indices have been seen to."""
    memory.search("x", np.ones(4), 9)
    memory._vectors._matrices[1]._remove(2)
    damage(memory, ("unreachable vector", "space x: 3 vectors are kept and a query reaches 2"))
    assert len(memory.search("x", np.ones(4), 9)) == 3


def test_unreachable_words(memory: EpisodicMemory) -> None:
    for statement, told in (
        ("DELETE FROM said WHERE asset=1 AND writer='w'", "a: what w says"),
        ("UPDATE said SET content='other' WHERE asset=2 AND writer=''", "b: what it says itself"),
        ("INSERT INTO said (asset, writer, content) VALUES (99, 'w', 'ghost')", "?: what w says"),
        ("DELETE FROM words_data WHERE id > 10", "the index does not hold"),
    ):
        memory.match("picture", 1)  # all is indexed by now
        memory._db.run(statement)
        found = memory.check()
        assert found and {finding.kind for finding in found} == {"unreachable words"}
        assert any(told in f"{finding.what}: {finding.message}" for finding in found)
        assert all(finding.mended for finding in memory.repair())
        assert memory.check() == []
        assert {a.id for a, _ in memory.match("picture taga ghost", 9)} == set("abc")


def test_several_at_once_and_the_order_is_always_the_same(memory: EpisodicMemory) -> None:
    original(memory, "a").unlink()
    original(memory, "b").write_bytes(b"x")
    (memory.folder / "assets/zz").write_bytes(b"x")
    memory._db.run("INSERT INTO parent VALUES (2, 1, 'nobody', 'edit')")
    memory._db.run(BAD_VECTORS[2][0])
    first = [f.kind for f in memory.check()]
    assert sorted(first) == ["broken parent", "missing file", "orphan file", "unreachable vector", "wrong hash"]
    assert [f.kind for f in memory.repair()] == first and memory.check() == []


def test_a_damaged_database_is_said_and_left_alone(memory: EpisodicMemory) -> None:
    for number in range(300):
        memory.add(None, session="s", prompt=f"{number} " * 30)
    memory.close()
    path = memory.folder / "memory.sqlite"
    before = bytearray(path.read_bytes())
    before[20 * 4096 : 40 * 4096] = b"\x55" * (20 * 4096)
    path.write_bytes(before)
    with EpisodicMemory.open(memory.folder) as opened:
        for look in (opened.check, opened.repair):
            [finding] = look()
            assert (finding.kind, finding.mended) == ("database", False)
            assert "take back a copy or an export" in finding.message
    assert path.read_bytes()[4096:] == before[4096:]


@pytest.mark.parametrize("call", ["check", "repair"])
def test_what_is_well_is_left_as_it_is(memory: EpisodicMemory, call: str) -> None:
    def state() -> dict[str, bytes]:
        return {str(p): p.read_bytes() for p in memory.folder.rglob("*") if p.is_file() and "sqlite" not in p.name}

    run: Callable[[], object] = getattr(memory, call)
    before, assets = state(), memory.assets(deleted=True)
    assert run() == []
    assert state() == before and memory.assets(deleted=True) == assets
