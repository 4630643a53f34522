"""A run in one file: the same bytes each time, verified anywhere, and nothing in it that tells whose machine it was."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memharness.run import bundle as bundles
from memharness.run.api import execute
from memharness.run.bundle import bundle, unpack, verify
from memharness.run.folder import RunFolder
from memharness.run.pictures import pictures
from memharness.run.progress import Quiet
from memharness.run.spec import RunSpec
from memharness.types import DataError, UserError
from tests.run.harness import run as run_toys

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "benchmarks" / "mem_gallery" / "sample"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of a sample, which tests may take away."""
    folder = tmp_path_factory.mktemp("somewhere") / "gallery"
    shutil.copytree(SAMPLE, folder)
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Path:
    """A finished run with pictures."""
    out = tmp_path_factory.mktemp("out")
    spec = RunSpec("recency", "mem-gallery", reader="extractive", data=str(data), limit="5", out=str(out))
    return Path(execute(spec, Quiet())["run"])


@pytest.fixture(scope="module")
def whole(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its bundle."""
    return bundle(made, tmp_path_factory.mktemp("bundles") / "run.zip").path


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def rewritten(path: Path, to: Path, change: Callable[[dict[str, bytes]], Any]) -> Path:
    """A copy of a bundle whose members were changed."""
    held = members(path)
    change(held)
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in held.items():
            archive.writestr(name, content)
    return to


def test_it_holds_what_verify_needs_and_every_picture_once(made: Path, whole: Path) -> None:
    held = members(whole)
    assert {"manifest.json", "records.jsonl", "gold.jsonl", "scores.jsonl", "summary.json", "checksums.json"} <= set(
        held
    )
    assert any(name.startswith("ledger/") for name in held)
    shown = [name for name in held if name.startswith("media/")]
    assert len(shown) == len(pictures(RunFolder(made))) == 3
    for name in shown:
        assert Path(name).stem == hashlib.sha256(held[name]).hexdigest()
        assert name.endswith(".jpg")
    sums = json.loads(held.pop("checksums.json"))["members"]
    assert {name: hashlib.sha256(content).hexdigest() for name, content in held.items()} == {
        name: one["sha256"] for name, one in sums.items()
    }
    assert list(sums) == sorted(sums)


def test_the_same_run_gives_the_same_bytes(made: Path, whole: Path, tmp_path: Path) -> None:
    again = bundle(made, tmp_path / "again.zip")
    assert again.path.read_bytes() == whole.read_bytes()
    assert again.sha256 == hashlib.sha256(whole.read_bytes()).hexdigest()
    assert [file.name for file in tmp_path.iterdir()] == ["again.zip"]


def test_nothing_tells_whose_machine_it_was(made: Path, whole: Path, data: Path) -> None:
    for name, content in members(whole).items():
        for private in (str(made.parents[1]), str(data), str(ROOT), str(Path.home()) + "/"):
            assert private.encode() not in content, name
    manifest = json.loads(members(whole)["manifest.json"])
    assert manifest["spec"]["data"] == "gallery"
    assert json.loads(members(whole)["summary.json"])["run"] == made.name


def test_it_verifies_in_a_process_without_data_and_home(whole: Path, data: Path, tmp_path: Path) -> None:
    aside = data.with_name("gone")
    data.rename(aside)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "memharness", "verify", str(whole)],
            capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path / "nobody")},
        )  # fmt: skip
    finally:
        aside.rename(data)
    assert (done.returncode, done.stdout) == (0, f"{whole}: every figure recomputed equal\n"), done.stderr


def test_tampering_with_any_member_is_found_and_named(whole: Path, tmp_path: Path) -> None:
    for name in members(whole):
        if name == "checksums.json":
            continue

        def change(held: dict[str, bytes], name: str = name) -> None:
            held[name] = held[name].replace(b"1", b"2", 1) if b"1" in held[name] else held[name] + b"x"

        (found,) = verify(rewritten(whole, tmp_path / "changed.zip", change))
        assert found.startswith(f"{name}: is not as it was bundled")


def test_members_that_are_gone_or_new_are_named(whole: Path, tmp_path: Path) -> None:
    assert verify(rewritten(whole, tmp_path / "a.zip", lambda held: held.pop("gold.jsonl"))) == [
        "gold.jsonl: is not there"
    ]
    assert verify(rewritten(whole, tmp_path / "b.zip", lambda held: held.update({"evil.sh": b"x"}))) == [
        "evil.sh: was put in"
    ]


def test_a_figure_that_was_changed_with_its_checksum_is_found(whole: Path, tmp_path: Path) -> None:
    def change(held: dict[str, bytes]) -> None:
        summary = json.loads(held["summary.json"])
        summary["scores"]["f1"]["value"] = 0.99
        held["summary.json"] = json.dumps(summary).encode()
        sums = json.loads(held["checksums.json"])
        content = held["summary.json"]
        sums["members"]["summary.json"] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
        held["checksums.json"] = json.dumps(sums).encode()

    found = verify(rewritten(whole, tmp_path / "changed.zip", change))
    assert any("summary.json: scores.f1.value: stored 0.99" in line for line in found)


def test_damage_in_the_zip_itself_is_found(whole: Path, tmp_path: Path) -> None:
    content = bytearray(whole.read_bytes())
    with zipfile.ZipFile(whole) as archive:
        at = archive.getinfo("records.jsonl").header_offset + 200
    content[at] ^= 0xFF
    file = tmp_path / "damaged.zip"
    file.write_bytes(content)
    (found,) = verify(file)
    assert found.startswith("records.jsonl: ")


# --------------------------------------------------------------------------------------------- files made to do harm


def archive_of(path: Path, *infos: tuple[zipfile.ZipInfo | str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for info, content in infos:
            archive.writestr(info, content)
    return path


@pytest.mark.parametrize(
    "name",
    ["../evil", "a/../../evil", "/etc/evil", "a\\..\\evil", "C:evil", "a//b", "ledger/", "./a", "..", "a/./b"],
)
def test_members_that_would_be_written_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    file = archive_of(tmp_path / "b.zip", (name, b"x"), ("checksums.json", b"{}"))
    with pytest.raises(UserError, match="would be written elsewhere"):
        unpack(file, tmp_path / "to")
    assert not (tmp_path / "to").exists()
    assert not (tmp_path / "evil").exists()


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    file = archive_of(tmp_path / "b.zip", ("gold.jsonl", b"1"), ("gold.jsonl", b"2"))
    with pytest.raises(UserError, match=r"'gold\.jsonl' is there twice"):
        verify(file)


def test_links_and_files_in_files_are_refused(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("media/x")
    link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    with pytest.raises(UserError, match="is no plain file"):
        verify(archive_of(tmp_path / "a.zip", (link, b"/etc/passwd")))
    with pytest.raises(UserError, match="lies in another one"):
        verify(archive_of(tmp_path / "b.zip", ("a", b"1"), ("a/b", b"2")))


def test_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundles, "MOST_SPARE", 1 << 16)
    file = archive_of(tmp_path / "b.zip", ("records.jsonl", b"0" * (8 << 20)))
    with pytest.raises(UserError, match="that unpack to 8,388,608 are no run"):
        unpack(file, tmp_path / "to")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not a bundle that can be read"),
        (b"PK\x03\x04 cut short", "not a bundle that can be read"),
    ],
)
def test_what_is_no_zip(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "b.zip"
    file.write_bytes(content)
    with pytest.raises(UserError, match=said):
        verify(file)


@pytest.mark.parametrize(
    ("checksums", "said"),
    [
        (None, "has no checksums.json"),
        (b"[]", "checksums.json is damaged"),
        (b'{"format": 1, "members": {"a": {}}}', "checksums.json is damaged"),
        (b'{"format": 7, "members": {}}', "made in bundle format 7"),
    ],
)
def test_a_zip_that_is_no_bundle(tmp_path: Path, checksums: bytes | None, said: str) -> None:
    infos = [("checksums.json", checksums)] if checksums is not None else [("a", b"1")]
    with pytest.raises(UserError, match=said):
        verify(archive_of(tmp_path / "b.zip", *infos))


# ------------------------------------------------------------------------------------------------- what is not bundled


def test_the_value_of_a_secret_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Path(run_toys(tmp_path, r={"reply": "the key is sk-very-secret"})["run"])
    monkeypatch.setenv("SOME_API_KEY", "sk-very-secret")
    with pytest.raises(UserError, match=r"manifest\.json: holds the value of SOME_API_KEY"):
        bundle(run, tmp_path / "b.zip")
    assert not (tmp_path / "b.zip").exists()


def test_home_in_an_error_becomes_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    run = Path(run_toys(tmp_path, r={"crash_on": "What is word 0"})["run"])
    records = run / "records.jsonl"
    records.write_text(records.read_text().replace("ZeroDivisionError", "/home/ada/x.py and /home/adam/y"))
    held = members(bundle(run, tmp_path / "b.zip").path)["records.jsonl"].decode()
    assert "~/x.py and /home/adam/y" in held


def test_runs_with_group_scores_failures_and_a_class_of_this_machine(tmp_path: Path) -> None:
    run = Path(run_toys(tmp_path, r={"fail_on": "What is word 1"})["run"])
    made = bundle(run, tmp_path / "b.zip")
    assert made.pictures == 0
    manifest = json.loads(members(made.path)["manifest.json"])
    assert manifest["spec"]["bench"] == "toys.py:Numbers"
    with pytest.raises(UserError, match=r"toys\.py"):  # elsewhere the class has to be at hand
        verify(made.path)


def test_a_run_that_does_not_verify_is_not_bundled(tmp_path: Path) -> None:
    run = Path(run_toys(tmp_path)["run"])
    file = run / "summary.json"
    file.write_text(file.read_text().replace('"n": 6', '"n": 7', 1))
    with pytest.raises(UserError, match="do not verify, so it is not bundled"):
        bundle(run, tmp_path / "b.zip")
    assert not (tmp_path / "b.zip").exists()


@pytest.mark.parametrize(("bench", "least"), [("m2ca", 3), ("mvbench", 4)])
def test_pictures_of_live_sessions_and_of_videos(tmp_path: Path, bench: str, least: int) -> None:
    """They are there only once a session is played, or a question is asked."""
    data = ROOT / "benchmarks" / bench / "sample"
    spec = RunSpec("recency", bench, reader="extractive", data=str(data), limit="2", out=str(tmp_path))
    run = Path(execute(spec, Quiet())["run"])
    assert len(pictures(RunFolder(run))) >= least
    shown = re.findall(r"<image ([0-9a-f]{12})>", (run / "records.jsonl").read_text())
    assert set(shown) <= {sha[:12] for sha in pictures(RunFolder(run))}


def test_pictures_that_are_not_at_hand(made: Path, data: Path, tmp_path: Path) -> None:
    picture = next((data / "image").rglob("*.jpg"))
    before = picture.read_bytes()
    picture.write_bytes(before + b"\0")
    try:
        with pytest.raises(DataError, match="not the data of this run"):
            bundle(made, tmp_path / "b.zip")
        assert bundle(made, tmp_path / "b.zip", media=False).pictures == 0
    finally:
        picture.write_bytes(before)


def test_an_unfinished_run_and_what_is_no_run(tmp_path: Path) -> None:
    run = Path(run_toys(tmp_path)["run"])
    (run / "DONE").unlink()
    (run / "summary.json").unlink()
    with pytest.raises(UserError, match="not finished"):
        bundle(run, tmp_path / "b.zip")
    with pytest.raises(UserError, match="not a run folder"):
        bundle(tmp_path, tmp_path / "b.zip")


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    run = Path(run_toys(tmp_path)["run"])
    with pytest.raises(UserError, match="is a folder"):
        bundle(run, tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"file"):
        bundle(run, tmp_path / "file" / "b.zip")
