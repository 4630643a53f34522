"""Out into a folder and back in: whole or not at all, every digest checked, every fault named."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memharness.episodic import Card, EpisodicMemory, Parent
from memharness.types import DataError, UserError
from tests.episodic.pictures import encoded, numbered, plain, png_bomb


def fill(memory: EpisodicMemory) -> None:
    """Two sessions with everything there is."""
    a = memory.add(numbered(1), session="s", id="a", prompt="a fox", source="fox.png", text="mine", turn=1)
    b = memory.add(numbered(2), session="s", kind="edited", id="b", parents=[Parent("a", "recolour")], turn=2)
    memory.add(numbered(3), session="t", kind="composed", id="c", parents=[Parent("b", "one"), Parent("a", "two")])
    memory.add(None, session="t", id="d", text="a note 狐狸")
    memory.add(numbered(4), session="t", id="e")
    memory.add(numbered(1), session="u", id="f")
    memory.write_card(a.id, "w", Card(("fox",), "A fox.", ("#ff0000",), "en", "ok", {"tokens": 3}, {"phash": "0f"}))
    memory.write_card(b.id, "v", Card(status="failed"))
    memory.mark("b", gallery=True, feedback="liked", current=False)
    for number, id in enumerate("abcde"):
        memory.put_vector(id, "x", np.arange(4) + number)
    memory.put_vector("a", "y", [0.5])
    memory.remember("s", 1, "tool", {"名": [1, None]})
    memory.remember("t", 2, "tool", {})
    memory.delete("e")


def same(one: EpisodicMemory, two: EpisodicMemory) -> None:
    """Whatever can be asked has the same answer."""
    assert one.assets(deleted=True) == two.assets(deleted=True)
    for asset in one.assets():
        assert one.card(asset.id, "w") == two.card(asset.id, "w") and one.card(asset.id, "v") == two.card(asset.id, "v")
        if asset.sha256:
            assert one.original(asset) == two.original(asset)
            assert one.thumbnail(asset) == two.thumbnail(asset)
    for space, width in (("x", 4), ("y", 1)):
        assert one.search(space, np.ones(width), 9) == two.search(space, np.ones(width), 9)
    for words in ("fox", "狐"):
        assert [a.id for a, _ in one.match(words, 9)] == [a.id for a, _ in two.match(words, 9)] != []
    for session in "stu":
        assert one.events(session) == two.events(session)
    assert one.check() == [] == two.check()


@pytest.fixture
def out(memory: EpisodicMemory, tmp_path: Path) -> Path:
    """An export of everything."""
    fill(memory)
    memory.export(tmp_path / "out")
    return tmp_path / "out"


@pytest.fixture
def copy(tmp_path: Path) -> Any:
    """Another, empty memory."""
    with EpisodicMemory.open(tmp_path / "copy", edge=64) as made:
        yield made


def test_all_goes_out_and_comes_back(memory: EpisodicMemory, copy: EpisodicMemory, out: Path) -> None:
    assert copy.take(out) == 6
    same(memory, copy)
    assert copy.take(out) == 0
    same(memory, copy)
    assert copy.add(None, session="t").index == memory.add(None, session="t").index == 3


def test_an_export_is_the_same_bytes_each_time(memory: EpisodicMemory, copy: EpisodicMemory, out: Path) -> None:
    copy.take(out)
    copy.export(out.with_name("again"))
    names = sorted(p.relative_to(out) for p in out.rglob("*") if p.is_file())
    assert names == sorted(
        p.relative_to(out.with_name("again")) for p in out.with_name("again").rglob("*") if p.is_file()
    )
    for name in names:
        assert (out / name).read_bytes() == (out.with_name("again") / name).read_bytes()


def test_a_session_takes_along_what_its_pictures_were_made_from(
    memory: EpisodicMemory, copy: EpisodicMemory, tmp_path: Path
) -> None:
    fill(memory)
    memory.export(tmp_path / "t", "t")
    assert copy.take(tmp_path / "t") == 5
    assert [(a.id, a.session, a.index) for a in copy.assets(deleted=True)] == [
        ("a", "s", 0), ("b", "s", 1), ("c", "t", 0), ("d", "t", 1), ("e", "t", 2),
    ]  # fmt: skip
    assert copy.events("s") == [] and copy.events("t") == memory.events("t")
    assert copy.check() == []
    with pytest.raises(UserError, match="no session is called 'nobody'"):
        memory.export(tmp_path / "nobody", "nobody")
    assert not (tmp_path / "nobody").exists() and not list(tmp_path.glob(".*tmp"))


def test_an_empty_memory_goes_out_and_comes_back(memory: EpisodicMemory, copy: EpisodicMemory, tmp_path: Path) -> None:
    memory.export(tmp_path / "out")
    assert copy.take(tmp_path / "out") == 0 and copy.check() == []


def test_what_is_there_is_not_written_over(memory: EpisodicMemory, out: Path) -> None:
    with pytest.raises(UserError, match="is there and not empty; name a new folder"):
        memory.export(out)
    with pytest.raises(UserError, match="is there and not empty"):
        memory.export(out / "manifest.json")
    (out.parent / "empty").mkdir()
    memory.export(out.parent / "empty")
    assert (out.parent / "empty/manifest.json").read_bytes() == (out / "manifest.json").read_bytes()


def test_a_picture_that_is_lost_stops_the_export(memory: EpisodicMemory, folder: Path, tmp_path: Path) -> None:
    asset = memory.add(plain(), session="s", id="a")
    (folder / f"assets/{str(asset.sha256)[:2]}/{asset.sha256}.png").unlink()
    with pytest.raises(DataError, match="asset a: cannot be read"):
        memory.export(tmp_path / "out")
    assert not (tmp_path / "out").exists() and not list(tmp_path.glob(".*tmp"))


def test_sessions_of_two_memories_come_together(memory: EpisodicMemory, copy: EpisodicMemory, out: Path) -> None:
    copy.add(plain("green"), session="z", id="mine")
    assert copy.take(out) == 6
    assert [a.id for a in copy.assets("z")] == ["mine"] and copy.check() == []


def test_conflicts_are_named_and_nothing_is_taken(copy: EpisodicMemory, out: Path) -> None:
    copy.add(numbered(77), session="s", id="mine")
    copy.add(numbered(78), session="z", id="c")
    copy.add(None, session="z", id="w")
    copy.put_vector("w", "x", [1.0])
    before = copy.assets()
    with pytest.raises(DataError) as error:
        copy.take(out)
    assert "'a': place 0 of session 's' is 'mine' here" in str(error.value)
    assert "'c': another asset is called so here" in str(error.value)
    assert copy.assets() == before and copy.check() == []


def test_another_width_of_a_space_is_named(copy: EpisodicMemory, out: Path) -> None:
    copy.add(None, session="z", id="w")
    copy.put_vector("w", "x", [1.0])
    with pytest.raises(UserError, match="space x: a vector of width 4, and the space's are 1 wide"):
        copy.take(out)
    assert [a.id for a in copy.assets()] == ["w"] and copy.check() == []  # no file is left either


# ------------------------------------------------------------------------------------------------- broken exports


def rewrite(out: Path, name: str, change: Callable[[list[dict[str, Any]]], Any]) -> None:
    """Change the lines of a file, and its digest with it."""
    lines = [json.loads(line) for line in (out / name).read_text().splitlines()]
    change(lines)
    (out / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    relist(out, name)


def relist(out: Path, *names: str, **files: Any) -> None:
    """List the digests of files as they are now."""
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["files"] |= {name: hashlib.sha256((out / name).read_bytes()).hexdigest() for name in names}
    (out / "manifest.json").write_text(json.dumps({**manifest, **files}))


def refused(copy: EpisodicMemory, out: Path, *told: str) -> None:
    """Nothing is taken, and each fault is named."""
    with pytest.raises(DataError) as error:
        copy.take(out)
    for part in told:
        assert part in str(error.value)
    assert copy.assets(deleted=True) == [] and copy.check() == []


def pictures(out: Path) -> list[str]:
    """Names of the originals."""
    return sorted(str(p.relative_to(out)) for p in (out / "assets").rglob("*.png"))


def test_every_changed_or_missing_file_is_named(copy: EpisodicMemory, out: Path) -> None:
    first, second, third = pictures(out)
    (out / first).write_bytes(b"other")
    (out / second).unlink()
    with (out / "cards.jsonl").open("a") as file:
        file.write("\n")
    with (out / "vectors/1.f32").open("r+b") as file:
        file.write(b"\1")
    refused(
        copy, out, f"{first}: its sha256 is {hashlib.sha256(b'other').hexdigest()}, and",
        f"{second}: cannot be read (No such file", "cards.jsonl: its sha256 is", "vectors/1.f32: its sha256 is",
    )  # fmt: skip
    with pytest.raises(DataError) as error:
        copy.take(out)
    assert third not in str(error.value)


@pytest.mark.parametrize(
    "name", ["../secret", "/etc/hostname", "assets/../../secret", "..\\secret", "C:\\secret", "", "."]
)
def test_a_name_that_leads_out_is_refused(copy: EpisodicMemory, out: Path, name: str) -> None:
    (out.parent / "secret").write_text("secret")
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["files"][name] = hashlib.sha256(b"secret").hexdigest()
    (out / "manifest.json").write_text(json.dumps(manifest))
    refused(copy, out, repr(name) if name not in ("", ".") else "out of the folder")


def test_a_link_that_leads_out_is_refused(copy: EpisodicMemory, out: Path) -> None:
    secret = out.parent / "secret"
    secret.write_bytes((out / pictures(out)[0]).read_bytes())
    name = pictures(out)[0]
    (out / name).unlink()
    (out / name).symlink_to(secret)
    refused(copy, out, "is a link that leads out of the folder")
    (out / "cards.jsonl").unlink()
    os.mkfifo(out / "cards.jsonl")
    refused(copy, out, "cards.jsonl: is no file")


def test_a_picture_that_add_would_refuse_is_refused(copy: EpisodicMemory, out: Path) -> None:
    for data, told in ((png_bomb(50_000, 50_000), "pixels, and at most"), (b"<svg/>", "is an SVG")):
        sha = hashlib.sha256(data).hexdigest()
        path = out / f"assets/{sha[:2]}/{sha}.png"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        rewrite(out, "assets.jsonl", lambda lines, sha=sha: lines[0].update(sha256=sha))  # type: ignore[misc]
        relist(out, str(path.relative_to(out)))
        refused(copy, out, told, "asset a")


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("assets.jsonl", {"sha256": "../../etc/passwd"}, "line 1: sha256: '../../etc/passwd' is no SHA-256"),
        ("assets.jsonl", {"sha256": "0" * 64}, "is not listed with that sha256"),
        ("assets.jsonl", {"mime": "image/../../x"}, "line 1: mime: 'image/../../x' is none of"),
        ("assets.jsonl", {"mime": "image/gif"}, "is not listed with that sha256"),
        ("assets.jsonl", {"width": 7}, "a: mime, width, height, size: the picture's are ('image/png', 8, 6"),
        ("assets.jsonl", {"kind": "drawn"}, "line 1: kind: 'drawn' is none of"),
        ("assets.jsonl", {"feedback": "loved"}, "line 1: feedback: 'loved' is none of"),
        ("assets.jsonl", {"index": -1}, "line 1: index: must not be negative"),
        ("assets.jsonl", {"index": 1}, "two assets at ('s', 1)"),
        ("assets.jsonl", {"id": "b"}, "two assets are called 'b'"),
        ("assets.jsonl", {"id": ""}, "line 1: id: is empty"),
        ("assets.jsonl", {"id": "\ud800"}, "line 1: id: "),
        ("assets.jsonl", {"turn": 1 << 80}, "cannot be kept"),
        ("assets.jsonl", {"current": 1}, "line 1: current: must be true or false"),
        ("assets.jsonl", {"parents": [{"id": "z", "operation": "x"}]}, "'a': its parent 'z' is neither before it"),
        ("assets.jsonl", {"parents": [{"id": "b", "operation": "x"}]}, "'a': its parent 'b' is neither before it"),
        ("assets.jsonl", {"prompt": 3}, "line 1: prompt: must be text, not a whole number"),
        ("cards.jsonl", {"asset": "e"}, "cards.jsonl: 'e' is no asset of this export"),
        ("cards.jsonl", {"status": "done"}, "line 1: status: 'done' is none of"),
        ("cards.jsonl", {"palette": ["red"]}, "line 1: card: palette: 'red' is no colour"),
        ("cards.jsonl", {"facts": []}, "line 1: facts: must be a mapping, not a list"),
        ("events.jsonl", {"payload": 1}, "line 1: payload: must be a mapping"),
        ("spaces.jsonl", {"width": 0}, "line 1: width: must be at least 1"),
        ("spaces.jsonl", {"width": 5}, "vectors/1.f32: is not 4 vectors of width 5"),
        ("spaces.jsonl", {"file": "../secret"}, "x: '../secret' is not listed"),
        ("spaces.jsonl", {"assets": ["a", "b", "c", "nobody"]}, "'nobody' is no asset of this export"),
    ],
)
def test_each_fault_of_a_record_is_named(
    copy: EpisodicMemory, out: Path, name: str, change: dict[str, Any], told: str
) -> None:
    rewrite(out, name, lambda lines: lines[0].update(change))
    with pytest.raises(UserError) as error:
        copy.take(out)
    assert told in str(error.value)
    assert copy.assets(deleted=True) == [] and copy.check() == []


def test_a_vector_that_is_none_is_refused(copy: EpisodicMemory, out: Path) -> None:
    (out / "vectors/1.f32").write_bytes(np.full(16, np.nan, "<f4").tobytes())
    relist(out, "vectors/1.f32")
    with pytest.raises(UserError, match="space x: the vector holds NaN"):
        copy.take(out)
    assert copy.assets(deleted=True) == [] and copy.check() == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "not JSON"),
        ("[]", "must be a mapping"),
        ("{}", "must be memharness-episodic, 1"),
        ('{"format": "memharness-episodic", "version": 2, "files": {}}', "must be memharness-episodic, 1"),
        ('{"format": "memharness-episodic", "version": 1}', "files: is missing"),
        ('{"format": "memharness-episodic", "version": 1, "files": {}}', "assets.jsonl: is not listed"),
    ],
)
def test_a_manifest_that_is_none(copy: EpisodicMemory, out: Path, text: str, told: str) -> None:
    (out / "manifest.json").write_text(text)
    refused(copy, out, told)


def test_a_tombstone_says_nothing_whatever_the_export_says(copy: EpisodicMemory, out: Path) -> None:
    rewrite(out, "assets.jsonl", lambda lines: [line.update(prompt="ghost") for line in lines if line["deleted"]])
    assert copy.take(out) == 6
    assert copy.match("ghost", 9) == [] == copy.check()


def test_a_folder_that_is_no_export(copy: EpisodicMemory, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(DataError, match="no export of an episodic memory is there"):
            copy.take(path)


def test_other_kinds_of_pictures_travel(memory: EpisodicMemory, copy: EpisodicMemory, tmp_path: Path) -> None:
    from PIL import Image

    for kind in ("JPEG", "WEBP", "GIF", "BMP", "TIFF", "AVIF"):
        memory.add(encoded(Image.new("RGB", (9, 7), "red"), kind), session="s")
    memory.export(tmp_path / "out")
    assert copy.take(tmp_path / "out") == 6
    assert copy.assets() == memory.assets() and copy.check() == []
