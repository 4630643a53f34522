"""`memharness data`: prepared over a real local server that breaks off, resumes and refuses."""

from __future__ import annotations

import functools
import hashlib
import http.server
import io
import json
import random
import re
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from memharness.cli import fetch
from memharness.cli.data import data as group
from memharness.store import Claims
from memharness.types import Asset, UserError
from tests.cli.conftest import Said

Cli = Callable[..., Said]
CONTENT = bytes(range(256)) * 4000
HUB_SIZE = fetch._hub_size
SHA = hashlib.sha256(CONTENT).hexdigest()


class Server(http.server.ThreadingHTTPServer):
    """Serves `content` under every path; `cut` breaks answers off after so many bytes; `ranges` is what was asked."""

    content = CONTENT
    cut: int | None = None
    status: int | None = None
    resumes = True
    states_sizes = True

    def __init__(self) -> None:
        """Listen on any port."""
        super().__init__(("127.0.0.1", 0), Handler)
        self.ranges: list[str | None] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    """See Server."""

    server: Server

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        self.server.ranges.append(asked)
        if self.server.status:
            self.send_error(self.server.status)
            return
        start = int(re.findall(r"\d+", asked)[0]) if asked and self.server.resumes else 0
        if start >= len(self.server.content):
            self.send_error(416)
            return
        body = self.server.content[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: self.server.cut])

    def do_HEAD(self) -> None:
        if not self.server.states_sizes:
            self.send_error(405)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.server.content)))
        self.end_headers()

    def log_message(self, *words: object) -> None:
        """Silence."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr("memharness.cli.fetch.time.sleep", lambda seconds: None)
    made = Server()
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()


@pytest.fixture(autouse=True)
def no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub is not asked for the size of anything."""

    def refuse(repository: str, revision: str) -> int:
        raise OSError("no route to host")

    monkeypatch.setattr(fetch, "_hub_size", refuse)


def nobody(done: int, whole: int | None) -> None:
    """Tell nobody."""


def bench(folder: Path, *assets: Asset, revision: str = "r1", steps: tuple[str, ...] = ()) -> str:
    """A benchmark by file, with these assets."""
    file = folder / f"bench_{revision}_{len(list(folder.glob('bench_*')))}.py"
    file.write_text(
        "from memharness.benchmark import Benchmark, BenchmarkCard, Recorded\n"
        "from memharness.config import Config\n"
        "from memharness.types import Asset, Finding\n"
        "class Tiny(Benchmark):\n"
        f"    card = BenchmarkCard(name='tiny', title='Tiny', paper='', licence='CC0', source='http://x',\n"
        f"        revision={revision!r}, version=1, splits={{}}, counts={{}}, cluster='', primary='em',\n"
        f"        assets={list(assets)!r}, steps={steps!r})\n"
        "    options_class = Config\n"
        "    sample = ''\n"
        "    def contexts(self, subset=None): return ['a', 'b']\n"
        "    def episode(self, context): return Recorded(context, [], [])\n"
        "    def metrics(self): return []\n"
        "    def check(self):\n"
        "        path = self.data.path\n"
        "        broken = path.is_file() and path.read_bytes() == b'broken'\n"
        "        return [Finding('error', 'line 1', 'is broken')] if broken else [Finding('info', '', 'fine')]\n"
    )
    return f"{file}:Tiny"


def counts(out: str) -> dict[str, list[str]]:
    """What `data check` counted: here, and as published."""
    found = (line.rsplit("  ", 2) for line in out.splitlines())
    return {name.strip(): [cell.strip() for cell in cells if cell.strip()] for name, *cells in found}


# ---------------------------------------------------------------------------------------------------------- downloads


def test_a_download_that_breaks_off_goes_on_where_it_stopped(tmp_path: Path, server: Server) -> None:
    server.cut = 300_000
    told: list[tuple[int, int | None]] = []
    found = fetch.fetch(
        Asset(f"{server.url}/x", "deep/x.bin", SHA, len(CONTENT)), tmp_path, None, lambda *far: told.append(far)
    )
    assert (tmp_path / "deep/x.bin").read_bytes() == CONTENT
    assert found == fetch.Fetched(f"{server.url}/x", SHA, len(CONTENT))
    assert server.ranges == [None, "bytes=300000-", "bytes=600000-", "bytes=900000-"]
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert not list(tmp_path.rglob("*.part"))


def test_a_killed_download_goes_on_in_the_next_process(tmp_path: Path, server: Server) -> None:
    (tmp_path / "x.bin.part").write_bytes(CONTENT[:1000])
    fetch.fetch(Asset(f"{server.url}/x", "x.bin", SHA), tmp_path, None, nobody)
    assert server.ranges == ["bytes=1000-"]
    assert (tmp_path / "x.bin").read_bytes() == CONTENT


def test_a_server_that_cannot_resume_is_asked_for_the_whole(tmp_path: Path, server: Server) -> None:
    server.resumes = False
    (tmp_path / "x.bin.part").write_bytes(b"some other beginning")
    fetch.fetch(Asset(f"{server.url}/x", "x.bin", SHA), tmp_path, None, nobody)
    assert (tmp_path / "x.bin").read_bytes() == CONTENT


def test_a_part_that_is_already_whole_is_taken(tmp_path: Path, server: Server) -> None:
    (tmp_path / "x.bin.part").write_bytes(CONTENT)
    fetch.fetch(Asset(f"{server.url}/x", "x.bin", SHA), tmp_path, None, nobody)
    assert (tmp_path / "x.bin").read_bytes() == CONTENT


def test_what_is_there_and_right_is_not_fetched(tmp_path: Path, server: Server) -> None:
    (tmp_path / "x.bin").write_bytes(CONTENT)
    fetch.fetch(Asset(f"{server.url}/x", "x.bin", SHA), tmp_path, None, nobody)
    assert server.ranges == []


@pytest.mark.parametrize(("sha", "size"), [("0" * 64, None), (SHA, 7), (None, 7)])
def test_a_file_that_is_not_as_published_is_thrown_away(
    tmp_path: Path, server: Server, sha: str | None, size: int | None
) -> None:
    with pytest.raises(UserError, match="damaged on the way or changed"):
        fetch.fetch(Asset(f"{server.url}/x", "x.bin", sha, size), tmp_path, None, nobody)
    assert not list(tmp_path.iterdir())


def test_without_a_published_digest_the_first_download_is_held_to(tmp_path: Path, server: Server) -> None:
    with pytest.raises(UserError, match="SHA-256"):
        fetch.fetch(Asset(f"{server.url}/x", "x.bin"), tmp_path, "1" * 64, nobody)


@pytest.mark.parametrize(("status", "asked"), [(404, 1), (403, 1), (503, fetch.TRIES)])
def test_a_refusal_is_clear_and_only_passing_ones_are_tried_again(
    tmp_path: Path, server: Server, status: int, asked: int
) -> None:
    server.status = status
    with pytest.raises(UserError, match=f"cannot be fetched .{status}.*what has come is kept.*--data PATH"):
        fetch.fetch(Asset(f"{server.url}/x", "x.bin"), tmp_path, None, nobody)
    assert len(server.ranges) == asked


def test_offline_is_said_clearly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memharness.cli.fetch.time.sleep", lambda seconds: None)
    with pytest.raises(UserError, match=r"cannot be fetched .*run the same command again later"):
        fetch.fetch(Asset("http://127.0.0.1:9/x", "x.bin"), tmp_path, None, nobody)


def test_a_file_url_is_a_download_too(tmp_path: Path) -> None:
    source = tmp_path / "source.bin"
    source.write_bytes(CONTENT)
    fetch.fetch(Asset(source.as_uri(), "x.bin", SHA), tmp_path / "to", None, nobody)
    assert (tmp_path / "to/x.bin").read_bytes() == CONTENT
    with pytest.raises(UserError, match="cannot be fetched"):
        fetch.fetch(Asset((tmp_path / "nowhere").as_uri(), "y.bin"), tmp_path / "to", None, nobody)


def test_a_hub_snapshot_is_pinned_and_held_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    asked = {}

    def snapshot(content: bytes, **what: object) -> None:
        asked.update(what)
        folder = Path(str(what["local_dir"]))
        (folder / ".cache").mkdir(parents=True, exist_ok=True)
        (folder / ".cache" / "lock").write_text("changes")
        (folder / "part.parquet").write_bytes(content)

    monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(huggingface_hub, "snapshot_download", functools.partial(snapshot, b"one"))
    asset = Asset("hf://datasets/owner/name@0123abc", "hub")
    found = fetch.fetch(asset, tmp_path, None, nobody)
    assert asked == {
        "repo_id": "owner/name",
        "repo_type": "dataset",
        "revision": "0123abc",
        "local_dir": tmp_path / "hub",
    }
    assert found.size == 3
    assert fetch.fetch(asset, tmp_path, found.sha256, nobody) == found
    monkeypatch.setattr(huggingface_hub, "snapshot_download", functools.partial(snapshot, b"another"))
    with pytest.raises(UserError, match="not those of the first download"):
        fetch.fetch(asset, tmp_path, found.sha256, nobody)
    with pytest.raises(UserError, match="expected hf://datasets"):
        fetch.fetch(Asset("hf://datasets/owner/name", "hub"), tmp_path, None, nobody)


def test_a_hub_that_cannot_be_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    def snapshot(**what: object) -> None:
        raise OSError("no route to host\nand much more")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    with pytest.raises(UserError, match=r"hf://datasets/o/n@1: cannot be fetched \(no route to host\)"):
        fetch.fetch(Asset("hf://datasets/o/n@1", "hub"), tmp_path, None, nobody)


# ------------------------------------------------------------------------------------------------------------ prepare


def test_prepare_shows_the_licence_and_wants_it_accepted(cli: Cli, tmp_path: Path, server: Server, home: Path) -> None:
    name = bench(tmp_path, Asset(f"{server.url}/x", "x.bin", SHA, len(CONTENT)))
    said = cli("data", "prepare", name)
    assert said.code == 2
    assert "licence: CC0" in said.err
    assert "add --accept-licence" in said.err
    assert not server.ranges
    said = cli("data", "prepare", name, "--accept-licence")
    folder = home / "data" / "tiny"
    assert said.code == 0
    assert said.out == f"{folder}\n"
    note = json.loads((folder / "PREPARED.json").read_text())
    assert note["licence"] == "CC0"
    assert note["revision"] == "r1"
    assert note["assets"]["x.bin"] == {"url": f"{server.url}/x", "sha256": SHA, "size": len(CONTENT)}


def test_prepared_data_are_found_and_checked(cli: Cli, tmp_path: Path, server: Server, home: Path) -> None:
    name = bench(tmp_path, Asset(f"{server.url}/x", "x.bin"))
    assert cli("data", "path", name).code == 2
    cli("data", "prepare", name, "--accept-licence")
    said = cli("data", "path", name)
    assert said.out == f"{home / 'data' / 'tiny'}\n"
    assert "prepared data" in said.err
    said = cli("data", "check", name)
    assert said.code == 0
    assert counts(said.out)["contexts"] == ["2"]
    assert counts(said.out)["questions"] == ["0"]
    assert "no errors" in said.out


def test_preparing_again_fetches_nothing_and_keeps_what_was_recorded(cli: Cli, tmp_path: Path, server: Server) -> None:
    name = bench(tmp_path, Asset(f"{server.url}/x", "x.bin"))
    cli("data", "prepare", name, "--accept-licence")
    asked = len(server.ranges)
    assert cli("data", "prepare", name, "--accept-licence").code == 0
    assert len(server.ranges) == asked


def test_a_failed_prepare_leaves_no_mark(cli: Cli, tmp_path: Path, server: Server, home: Path) -> None:
    name = bench(tmp_path, Asset(f"{server.url}/x", "x.bin", SHA), Asset(f"{server.url}/y", "y.bin", "0" * 64))
    said = cli("data", "prepare", name, "--accept-licence")
    assert said.code == 2
    assert "/y: SHA-256" in said.err
    assert not (home / "data/tiny/PREPARED.json").exists()
    assert (home / "data/tiny/x.bin").exists()


def test_a_disk_that_is_too_small_is_said_before_the_download(cli: Cli, tmp_path: Path, server: Server) -> None:
    name = bench(tmp_path, Asset(f"{server.url}/x", "x.bin", SHA, 10**18))
    said = cli("data", "prepare", name, "--accept-licence")
    assert "GB are needed" in said.err
    assert not server.ranges


def test_two_processes_do_not_prepare_one_folder(cli: Cli, tmp_path: Path, server: Server, home: Path) -> None:
    import subprocess
    import sys

    name = bench(tmp_path, Asset(f"{server.url}/x", "x.bin"))
    lock = home / "data" / ".tiny.lock"
    code = (
        "import sys; from pathlib import Path; from memharness.store import Claims\n"
        f"Claims(Path({str(lock)!r})).take(0); print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    assert "another process is preparing it" in cli("data", "prepare", name, "--accept-licence").err
    holder.communicate("")
    assert cli("data", "prepare", name, "--accept-licence").code == 0
    Claims(lock).close()


def test_prepare_shows_the_size_and_ends_with_the_check(cli: Cli, tmp_path: Path, server: Server) -> None:
    name = bench(tmp_path, Asset(f"{server.url}/x", "x.bin", SHA, len(CONTENT)), Asset(f"{server.url}/y", "y.bin"))
    said = cli("data", "prepare", name, "--accept-licence")
    assert "size: 2.0 MB\n" in said.err
    server.states_sizes = False
    said = cli("data", "prepare", name, "--accept-licence")
    assert "size: 1.0 MB, and 1 of 2 downloads of a size not known" in said.err
    assert "Tiny: prepared data at" in said.err
    assert "no errors" in said.err
    said = cli("data", "prepare", bench(tmp_path, Asset(f"{server.url}/y", "y.bin"), revision="r2"))
    assert "size: not known\n" in said.err


def test_the_size_of_a_snapshot_is_the_sum_of_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    asked: list[tuple[Any, ...]] = []

    def info(self: Any, repository: str, *, revision: str, files_metadata: bool, timeout: float) -> Any:
        asked.append((repository, revision, files_metadata))
        return SimpleNamespace(siblings=[SimpleNamespace(size=5), SimpleNamespace(size=None), SimpleNamespace(size=7)])

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", info)
    monkeypatch.setattr(fetch, "_hub_size", HUB_SIZE)
    snapshot, stated = Asset("hf://datasets/o/n@1", "hub"), Asset("http://127.0.0.1:9/x", "x", size=3)
    assert fetch.sizes([snapshot, stated]) == [3, 12]
    assert asked == [("o/n", "1", True)]
    assert fetch.sizes([Asset("http://127.0.0.1:9/y", "y"), snapshot, stated]) == [3]  # asks no further


def test_offline_it_says_which_files_to_put_where_and_takes_them_there(cli: Cli, tmp_path: Path, home: Path) -> None:
    gone = "http://127.0.0.1:9"
    assets = (Asset(f"{gone}/x", "deep/x.bin", SHA, len(CONTENT)), Asset("hf://datasets/o/n@1", "hub"))
    name = bench(tmp_path, *assets, steps=("ask the authors for the pictures",))
    folder = home / "data" / "tiny"
    said = cli("data", "prepare", name, "--accept-licence", "--placed")
    assert said.code == 2
    assert f"{folder}/deep/x.bin: no such file; put there what {gone}/x holds" in said.err
    assert f"{gone}/x\n    → {folder}/deep/x.bin  {len(CONTENT):,} bytes  SHA-256 {SHA}\n" in said.err
    assert "all files of https://huggingface.co/datasets/o/n/tree/1\n" in said.err
    assert (
        f"(hf download o/n --repo-type dataset --revision 1 --local-dir {folder}/hub)\n    → {folder}/hub\n" in said.err
    )
    assert "steps of your own:\n  ask the authors for the pictures\n" in said.err
    assert f"memharness data prepare {name} --placed" in said.err
    (folder / "deep").mkdir(parents=True)
    (folder / "deep/x.bin").write_bytes(b"wrong")
    assert "5 bytes where" in cli("data", "prepare", name, "--accept-licence", "--placed").err
    (folder / "deep/x.bin").write_bytes(CONTENT)
    assert f"{folder}/hub: is empty" in cli("data", "prepare", name, "--accept-licence", "--placed").err
    (folder / "hub").mkdir()
    (folder / "hub/a.parquet").write_bytes(b"one")
    said = cli("data", "prepare", name, "--accept-licence", "--placed")
    assert said.code == 0
    assert json.loads((folder / "PREPARED.json").read_text())["assets"]["hub"]["size"] == 3
    (folder / "hub/a.parquet").write_bytes(b"two")
    assert "not those of the first" in cli("data", "prepare", name, "--accept-licence", "--placed").err


@pytest.mark.parametrize("cut", [None, 500])
def test_an_archive_is_unpacked_beside_itself_and_not_fetched_again(
    cli: Cli, tmp_path: Path, server: Server, home: Path, cut: int | None
) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("json/game.json", "{}")
        file.writestr("json/noise.bin", random.Random(0).randbytes(1500))
    server.content, server.cut = packed.getvalue(), cut
    name = bench(tmp_path, Asset(f"{server.url}/a.zip", "games/a.zip"))
    said = cli("data", "prepare", name, "--accept-licence")
    folder = home / "data" / "tiny"
    assert said.code == 0
    assert (folder / "games/json/game.json").read_text() == "{}"
    assert json.loads((folder / "PREPARED.json").read_text())["assets"]["games/a.zip"]["unpacked"] == 2
    asked = len(server.ranges)
    assert cli("data", "prepare", name, "--accept-licence").code == 0
    assert len(server.ranges) == asked


def test_an_archive_of_a_snapshot_is_unpacked_and_its_files_are_not_taken_for_the_publishers(
    cli: Cli, tmp_path: Path, home: Path
) -> None:
    name = bench(tmp_path, Asset("hf://datasets/o/n@1", "hub"))
    hub = home / "data/tiny/hub"
    (hub / "video").mkdir(parents=True)
    with zipfile.ZipFile(hub / "video/clips.zip", "w") as file:
        file.writestr("one.mp4", b"film")
        file.writestr("inner.zip", b"stays packed")
    for _ in range(2):
        assert cli("data", "prepare", name, "--accept-licence", "--placed").code == 0
        assert (hub / "video/one.mp4").read_bytes() == b"film"
    note = json.loads((home / "data/tiny/PREPARED.json").read_text())
    assert note["assets"]["hub"]["size"] == (hub / "video/clips.zip").stat().st_size


def test_an_archive_that_is_no_archive_leaves_no_mark(cli: Cli, tmp_path: Path, server: Server, home: Path) -> None:
    said = cli("data", "prepare", bench(tmp_path, Asset(f"{server.url}/a", "a.zip")), "--accept-licence")
    assert said.code == 2
    assert "a.zip: cannot be unpacked" in said.err
    assert not (home / "data/tiny/PREPARED.json").exists()


def test_a_benchmark_without_assets_says_where_to_get_it(cli: Cli, tmp_path: Path) -> None:
    said = cli("data", "prepare", bench(tmp_path, steps=("sign the form at http://x/form",)))
    assert "nothing can be fetched for you; see http://x, and give --data PATH" in said.err
    assert "sign the form" in said.err


def test_check_exits_with_1_on_an_error(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "data.txt"
    file.write_text("broken")
    said = cli("data", "check", bench(tmp_path), "--data", file)
    assert said.code == 1
    assert "is broken" in said.out
    assert "1 errors" in said.out


@pytest.mark.parametrize("name", ["locomo", "hotpotqa"])
def test_the_bundled_samples_check_out(cli: Cli, name: str) -> None:
    said = cli("data", "check", name)
    assert said.code == 0
    assert "sample data at" in said.out


def test_the_group_has_its_three_commands() -> None:
    assert [command.callback.__name__ for command in group.registered_commands if command.callback] == [
        "prepare",
        "check",
        "path",
    ]
