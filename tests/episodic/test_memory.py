"""What goes in comes out: assets, lineage, marks, cards, words, events, deletion; across runs and processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from memharness.episodic import Asset, Card, EpisodicMemory, Parent
from memharness.types import DataError, UserError
from tests.episodic.pictures import numbered, plain, shown


def files(folder: Path) -> set[str]:
    """Names of everything kept beside the database."""
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and p.suffix[:7] != ".sqlite"}


def test_a_picture_is_kept_byte_for_byte_under_its_digest(memory: EpisodicMemory, folder: Path) -> None:
    data = plain("red", (300, 100))
    asset = memory.add(data, session="s", turn=3, kind="generated", prompt="a red wall", source="wall.png", text="mine")
    assert (asset.session, asset.index, asset.turn, asset.kind) == ("s", 0, 3, "generated")
    assert (asset.mime, asset.width, asset.height, asset.size) == ("image/png", 300, 100, len(data))
    assert (asset.prompt, asset.source, asset.text) == ("a red wall", "wall.png", "mine")
    assert (asset.current, asset.feedback, asset.gallery, asset.deleted) == (True, None, False, False)
    assert memory.original(asset) == data
    thumbnail = shown(memory.thumbnail(asset))
    assert (thumbnail.format, thumbnail.size) == ("WEBP", (64, 21))
    sha = asset.sha256
    assert files(folder) == {f"assets/{str(sha)[:2]}/{sha}.png", f"thumbs/{sha}-64.webp"}
    assert memory.asset(asset.id) == asset


def test_a_thumbnail_can_be_made_again_at_any_edge(memory: EpisodicMemory, folder: Path) -> None:
    asset = memory.add(plain("red", (300, 100)), session="s")
    path = folder / f"thumbs/{asset.sha256}-64.webp"
    first = path.read_bytes()
    path.write_bytes(first[:-3])  # as a power loss may leave it
    assert memory.thumbnail(asset) == first == path.read_bytes()
    path.unlink()
    assert memory.thumbnail(asset) == first == path.read_bytes()
    with EpisodicMemory.open(folder, edge=30) as smaller:
        assert shown(smaller.thumbnail(asset)).size == (30, 10)
        assert smaller.check() == []


def test_equal_bytes_are_kept_once_and_go_with_the_last_asset(memory: EpisodicMemory, folder: Path) -> None:
    one, two = memory.add(plain(), session="s"), memory.add(plain(), session="t", kind="fetched")
    assert one.id != two.id and one.sha256 == two.sha256
    assert len(files(folder)) == 2
    memory.delete(one.id)
    assert memory.original(two) == plain()
    memory.delete(two.id)
    assert files(folder) == set()
    with pytest.raises(UserError, match="was deleted"):
        memory.original(two)
    with pytest.raises(UserError, match="was deleted"):
        memory.thumbnail(two)


def test_places_are_counted_by_session_and_survive_deletion(memory: EpisodicMemory) -> None:
    made = [memory.add(numbered(n), session="st"[n % 2]) for n in range(6)]
    assert [(a.session, a.index) for a in made] == [("s", 0), ("t", 0), ("s", 1), ("t", 1), ("s", 2), ("t", 2)]
    memory.delete(made[4].id)
    assert memory.add(numbered(9), session="s").index == 3
    assert [a.index for a in memory.assets("s")] == [0, 1, 3]
    assert [a.index for a in memory.assets("s", deleted=True)] == [0, 1, 2, 3]
    assert [a.id for a in memory.assets(deleted=True)][:6] == [a.id for a in made]


def test_a_tombstone_keeps_facts_and_lineage_and_no_words(memory: EpisodicMemory) -> None:
    first = memory.add(numbered(1), session="s", prompt="a fox", source="fox.png", text="a secret")
    second = memory.add(numbered(2), session="s", kind="edited", parents=[Parent(first.id, "recolour")])
    memory.write_card(first.id, "w", Card(tags=("fox",), description="A fox."))
    memory.put_vector(first.id, "x", [1.0, 0.0])
    memory.mark(first.id, feedback="liked", gallery=True)
    memory.delete(first.id)
    memory.delete(first.id)
    tomb = memory.asset(first.id)
    assert (tomb.deleted, tomb.current, tomb.gallery, tomb.feedback) == (True, False, False, None)
    assert (tomb.prompt, tomb.source, tomb.text) == ("", "", "")
    assert (tomb.sha256, tomb.width, tomb.index) == (first.sha256, first.width, 0)
    assert memory.card(first.id, "w") is None and memory.cards("s", "w") == {}
    assert memory.match("fox secret", 5) == [] and memory.search("x", [1.0, 0.0], 5) == []
    assert memory.asset(second.id).parents == (Parent(first.id, "recolour"),)
    assert memory.check() == []
    for call in (
        lambda: memory.write_card(first.id, "w", Card()),
        lambda: memory.put_vector(first.id, "x", [1.0, 0.0]),
        lambda: memory.mark(first.id, gallery=True),
    ):
        with pytest.raises(UserError, match="was deleted"):
            call()


def test_adding_under_an_id_again_changes_nothing(memory: EpisodicMemory, folder: Path) -> None:
    first = memory.add(plain(), session="s", id="a", prompt="one")
    assert memory.add(plain(), session="s", id="a", prompt="two", turn=7) == first
    assert memory.assets() == [first]
    with pytest.raises(UserError, match=r"id: 'a' already names another picture"):
        memory.add(plain("blue"), session="s", id="a")
    with pytest.raises(UserError, match=r"id: 'a' already names an asset of session 's'"):
        memory.add(plain(), session="t", id="a")
    memory.delete("a")
    assert memory.add(plain(), session="s", id="a").deleted
    assert files(folder) == set() and memory.check() == []


def test_an_id_follows_from_session_and_place(memory: EpisodicMemory, tmp_path: Path) -> None:
    with EpisodicMemory.open(tmp_path / "other") as other:
        other.add(None, session="first")
        assert memory.add(plain(), session="s").id == other.add(None, session="s").id
    taken = memory.add(None, session="t").id
    with EpisodicMemory.open(tmp_path / "third") as third:
        third.add(None, session="s", id=taken)
        assert third.add(None, session="t").id != taken


def test_an_asset_may_have_no_picture(memory: EpisodicMemory) -> None:
    note = memory.add(None, session="s", text="the client likes green")
    assert (note.sha256, note.mime, note.width, note.size) == (None, "", 0, 0)
    assert [a.id for a, _ in memory.match("green", 3)] == [note.id]
    for read in (memory.original, memory.thumbnail):
        with pytest.raises(UserError, match="has no picture"):
            read(note)
    memory.delete(note.id)
    assert memory.asset(note.id).deleted and memory.check() == []


def test_parents_keep_their_order_and_must_be_known(memory: EpisodicMemory) -> None:
    a, b = memory.add(numbered(1), session="s"), memory.add(numbered(2), session="other")
    parents = (Parent(b.id, "compose: background"), Parent(a.id, "compose: figure"))
    made = memory.add(numbered(3), session="s", kind="composed", parents=parents)
    assert made.parents == memory.asset(made.id).parents == parents
    with pytest.raises(UserError, match="parents: 'nobody': no asset of this id"):
        memory.add(numbered(4), session="s", parents=[Parent("nobody", "edit")])
    assert len(memory.assets()) == 3 and memory.check() == []


def test_marks_filter(memory: EpisodicMemory) -> None:
    a, b, c = (memory.add(numbered(n), session="s", kind="edited" if n else "upload") for n in range(3))
    memory.mark(a.id, current=False, feedback="rejected")
    memory.mark(b.id, gallery=True, feedback="liked")
    assert memory.asset(a.id).feedback == "rejected" and memory.asset(a.id).current is False
    assert [x.id for x in memory.assets(current=True)] == [b.id, c.id]
    assert [x.id for x in memory.assets(gallery=True)] == [b.id]
    assert [x.id for x in memory.assets("s", kind="edited", gallery=False)] == [c.id]
    memory.mark(b.id, current=False)
    assert (memory.asset(b.id).feedback, memory.asset(b.id).gallery) == ("liked", True)
    memory.mark(b.id, feedback="")
    assert memory.asset(b.id).feedback is None
    with pytest.raises(UserError, match="feedback: 'loved' is none of"):
        memory.mark(b.id, feedback="loved")  # type: ignore[arg-type]


def test_each_writer_has_a_card_of_its_own(memory: EpisodicMemory) -> None:
    a, b = memory.add(numbered(1), session="s"), memory.add(numbered(2), session="s")
    full = Card(
        ("fox", "red"),
        "A fox.",
        ("#ff0000", "#00FF00"),
        "en",
        "ok",
        {"tokens": 12.0},
        {"phash": "ffee", "ocr": [1, None]},
    )
    memory.write_card(a.id, "reader", full)
    memory.write_card(a.id, "model-free", Card(status="pending"))
    memory.write_card(b.id, "reader", Card(("cat",)))
    assert memory.card(a.id, "reader") == full
    assert memory.card(a.id, "model-free") == Card(status="pending")
    assert memory.card(b.id, "model-free") is None
    assert list(memory.cards("s", "reader")) == [a.id, b.id]
    memory.write_card(a.id, "reader", Card(("wolf",), "A wolf."))
    assert [x.id for x, _ in memory.match("fox", 5)] == []
    assert [x.id for x, _ in memory.match("wolf", 5)] == [a.id]
    assert [x.id for x, _ in memory.match("wolf", 5, writer="model-free")] == []
    with pytest.raises(UserError, match="palette: 'red' is no colour"):
        Card(palette=("red",))
    with pytest.raises(UserError, match="status: 'done'"):
        Card(status="done")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="card: facts: cannot be written as JSON"):
        memory.write_card(a.id, "reader", Card(facts={"x": float("nan")}))
    assert memory.card(a.id, "reader") == Card(("wolf",), "A wolf.")


def test_words_are_found_in_english_and_chinese_best_first(memory: EpisodicMemory) -> None:
    texts = ["a red fox in snow", "a red wall", "湖边的红色房子", "a grey cat", "湖"]
    ids = [memory.add(None, session="st"[n > 2], prompt=text).id for n, text in enumerate(texts)]
    found = memory.match("red fox?", 5)
    assert [a.id for a, _ in found] == [ids[0], ids[1]] and found[0][1] > found[1][1]
    assert [a.id for a, _ in memory.match("红房", 5)] == [ids[2]]
    assert {a.id for a, _ in memory.match("湖", 5)} == {ids[2], ids[4]}
    assert [a.id for a, _ in memory.match("湖", 5, session="s")] == [ids[2]]
    assert [a.id for a, _ in memory.match("red", 1)] == [ids[1]]  # shorter
    assert memory.match('"* OR NEAR( -', 5) == [] and memory.match("", 5) == []
    with pytest.raises(UserError, match="k = 0"):
        memory.match("red", 0)


def test_events_are_told_in_order(memory: EpisodicMemory) -> None:
    memory.remember("s", 1, "retrieval", {"ids": ["a"], "rung": "rules"})
    memory.remember("t", 1, "other", {})
    memory.remember("s", 2, "tool", {"名": 1.5})
    assert [(e.turn, e.type, e.payload) for e in memory.events("s")] == [
        (1, "retrieval", {"ids": ["a"], "rung": "rules"}),
        (2, "tool", {"名": 1.5}),
    ]
    with pytest.raises(UserError, match="payload: cannot be written as JSON"):
        memory.remember("s", 2, "tool", {"x": object()})


def test_all_is_there_after_reopening_and_in_another_process(memory: EpisodicMemory, folder: Path) -> None:
    a = memory.add(numbered(1), session="s", prompt="a fox")
    memory.put_vector(a.id, "x", [0.25, -1.5])
    memory.write_card(a.id, "w", Card(("fox",)))
    code = (
        "import sys, json, pathlib\nfrom memharness.episodic import EpisodicMemory, Parent\n"
        "with EpisodicMemory.open(pathlib.Path(sys.argv[1])) as m:\n"
        "    [a] = m.assets()\n"
        "    b = m.add(m.original(a), session='s', kind='edited', parents=[Parent(a.id, 'copy')])\n"
        "    m.put_vector(b.id, 'x', [1.0, 0.0])\n"
        "    best, fox = m.search('x', [1, 1], 2)[0], m.match('fox', 1)[0]\n"
        "    print(json.dumps([b.id, best[1], fox[0].id, m.card(a.id, 'w').tags]))"
    )
    told = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True)
    other, score, matched, tags = json.loads(told.stdout)
    assert (score, matched, tags) == (1.0, a.id, ["fox"])
    assert memory.asset(other).parents == (Parent(a.id, "copy"),)
    assert [(x.id, s) for x, s in memory.search("x", [1, 1], 5)] == [(other, 1.0), (a.id, -1.25)]


HOSTILE = [
    "../../escape",
    "/etc/passwd",
    "..\\..\\escape",
    "a\0b",
    "C:\\x",
    "~/x",
    "%2e%2e%2f",
    "s\n\r\u2028",
    "'; DROP TABLE asset; --",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_becomes_a_path(memory: EpisodicMemory, folder: Path, tmp_path: Path, name: str) -> None:
    asset = memory.add(plain(), session=name, id=name, source=name, prompt=name)
    assert (asset.id, asset.session, asset.source) == (name, name, name)
    memory.write_card(name, name, Card((name,), name))
    memory.put_vector(name, name, [1.0])
    memory.remember(name, 0, name, {name: name})
    assert memory.original(memory.asset(name)) == plain()
    assert [a.id for a, _ in memory.search(name, [1.0], 1, session=name)] == [name]
    memory.export(tmp_path / "out")
    sha = asset.sha256
    assert files(folder) == {f"assets/{str(sha)[:2]}/{sha}.png", f"thumbs/{sha}-64.webp"}
    assert {p.name for p in tmp_path.iterdir()} == {"memory", "out"}
    with EpisodicMemory.open(tmp_path / "copy") as copy:
        assert copy.take(tmp_path / "out") == 1
        assert copy.assets() == memory.assets() and copy.card(name, name) == memory.card(name, name)
    memory.delete(name)
    assert memory.check() == []


def test_what_cannot_be_kept_is_refused_by_name(memory: EpisodicMemory) -> None:
    def add(**more: object) -> Asset:
        return memory.add(None, **{"session": "s", **more})  # type: ignore[arg-type]

    for more, told in (
        ({"session": ""}, "session: is empty"),
        ({"id": " "}, "id: is empty"),
        ({"kind": "drawn"}, "kind: 'drawn' is none of upload, generated"),
        ({"prompt": "\ud83d"}, "prompt: .* half a surrogate"),
        ({"source": 3}, "source: must be text, not int"),
        ({"turn": 1 << 70}, "cannot be kept"),
    ):
        with pytest.raises(UserError, match=told):
            add(**more)
    for id in ("nobody", "\ud83d"):
        with pytest.raises(UserError):
            memory.asset(id)
    assert memory.assets() == [] and memory.check() == []


def test_a_changed_or_missing_original_is_said_and_mended_by_adding_it_again(
    memory: EpisodicMemory, folder: Path
) -> None:
    asset = memory.add(plain(), session="s", id="a")
    path = folder / f"assets/{str(asset.sha256)[:2]}/{asset.sha256}.png"
    path.write_bytes(b"other")
    with pytest.raises(DataError, match=r"asset a: has changed since it was kept.*memharness episodic check"):
        memory.original(asset)
    path.unlink()
    with pytest.raises(DataError, match="asset a: cannot be read"):
        memory.original(asset)
    memory.add(plain(), session="s", id="a")
    assert memory.original(asset) == plain() and memory.check() == []


def test_what_is_not_a_memory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no episodic memory is there"):
        EpisodicMemory.open(tmp_path / "none", create=False)
    assert not (tmp_path / "none").exists()
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match="file"):
        EpisodicMemory.open(tmp_path / "file")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd/memory.sqlite").write_bytes(b"not a database at all, but long enough" * 100)
    with pytest.raises(UserError, match="not a usable memory"):
        EpisodicMemory.open(tmp_path / "odd")
    import sqlite3

    for name, statement, told in (
        ("foreign", "CREATE TABLE other (x)", "another program"),
        ("newer", "PRAGMA user_version=99", "of version 99"),
    ):
        if name == "newer":
            EpisodicMemory.open(tmp_path / name).close()
        (tmp_path / name).mkdir(exist_ok=True)
        db = sqlite3.connect(tmp_path / name / "memory.sqlite")
        db.execute(statement)
        db.commit()
        db.close()
        with pytest.raises(UserError, match=told):
            EpisodicMemory.open(tmp_path / name)
    with pytest.raises(UserError, match="edge: 0"):
        EpisodicMemory.open(tmp_path / "edge", edge=0)


def test_a_closed_memory_says_so(folder: Path) -> None:
    with EpisodicMemory.open(folder) as memory:
        pass
    with pytest.raises(UserError, match="open the memory again"):
        memory.assets()
