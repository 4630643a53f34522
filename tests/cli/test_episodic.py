"""`memharness episodic`: check, repair, export, import."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from memharness.episodic import EpisodicMemory
from tests.cli.conftest import Said
from tests.episodic.pictures import numbered

Cli = Callable[..., Said]


@pytest.fixture
def folder(home: Path, tmp_path: Path) -> Path:
    """A memory of two sessions."""
    with EpisodicMemory.open(tmp_path / "memory") as memory:
        memory.add(numbered(1), session="s", id="a")
        memory.add(numbered(2), session="t", id="b")
    return tmp_path / "memory"


def lose(folder: Path, id: str) -> Path:
    """Take an asset's file away."""
    with EpisodicMemory.open(folder) as memory:
        [path] = folder.glob(f"assets/*/{memory.asset(id).sha256}.png")
    path.unlink()
    return path


def test_check_and_repair(cli: Cli, folder: Path) -> None:
    said = cli("episodic", "check", folder)
    assert (said.code, said.out) == (0, f"{folder}: all is well\n")
    path = lose(folder, "a")
    said = cli("episodic", "check", folder)
    assert said.code == 1
    assert said.out.splitlines() == [
        f"missing file: {path}: the file is not there; asset a is without a picture until the same bytes are added "
        "again, if repaired",
        f"{folder}: 1 found, 1 open",
    ]
    said = cli("episodic", "repair", folder)
    assert said.code == 0 and said.out.endswith(f"added again (mended)\n{folder}: 1 found, 0 open\n")
    assert cli("episodic", "check", folder).code == 0


def test_json(cli: Cli, folder: Path) -> None:
    path = lose(folder, "b")
    said = cli("episodic", "check", folder, "--json")
    found = json.loads(said.out)
    assert said.code == 1 and found["folder"] == str(folder)
    [finding] = found["findings"]
    assert (finding["kind"], finding["what"], finding["mended"]) == ("missing file", str(path), False)


def test_export_and_import(cli: Cli, folder: Path, tmp_path: Path) -> None:
    said = cli("episodic", "export", folder, tmp_path / "out")
    assert (said.code, said.out, said.err) == (0, "", f"wrote {tmp_path / 'out'}\n")
    assert cli("episodic", "export", folder, tmp_path / "one", "--session", "t").code == 0
    said = cli("episodic", "import", tmp_path / "new", tmp_path / "out")
    assert (said.code, said.out) == (0, "2 assets came in\n")
    assert cli("episodic", "import", tmp_path / "new", tmp_path / "out").out == "0 assets came in\n"
    assert cli("episodic", "import", tmp_path / "small", tmp_path / "one").out == "1 assets came in\n"
    with EpisodicMemory.open(folder) as memory, EpisodicMemory.open(tmp_path / "new") as new:
        assert memory.assets() == new.assets()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("check", "nowhere"), "nowhere: no episodic memory is there"),
        (("repair", "nowhere"), "nowhere: no episodic memory is there"),
        (("export", "nowhere", "out"), "nowhere: no episodic memory is there"),
        (("export", "memory", "memory"), "is there and not empty; name a new folder"),
        (("export", "memory", "out", "--session", "u"), "no session is called 'u'"),
        (("import", "new", "nowhere"), "no export of an episodic memory is there"),
        (("frobnicate",), "frobnicate"),
    ],
)
def test_mistakes_are_told_and_nothing_is_made(cli: Cli, folder: Path, words: tuple[str, ...], told: str) -> None:
    said = cli("episodic", *words)
    assert said.code == 2 and said.err.startswith("error: ") and told in said.err
    assert not Path("nowhere").exists() and not Path("out").exists()


def test_help_names_the_command(cli: Cli) -> None:
    assert "  episodic " in cli("--help").out
    assert "repair" in cli("episodic", "--help").out
