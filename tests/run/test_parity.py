"""Parity of two back ends: what is compared, what it says, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memharness.cli import command_line
from memharness.run.parity import compare
from memharness.types import UserError
from tests.run.harness import TOYS, lines, run, toy

# Says what `Toy` says, but words 1 differently from the third character on, and nothing about word 2.
OTHER = f"""
import sys
from dataclasses import replace
sys.path.insert(0, {str(TOYS.parents[2])!r})
from memharness.reader import ReaderCard
from memharness.types import ReaderError
from tests.run.toys import Toy

class Other(Toy):
    def __init__(self, model, config, media):
        super().__init__(model, config, media)
        self.card = ReaderCard("other", model, "1", "python", "bf16", 100_000, provenance={{"determinism": "none"}})

    async def start(self):
        self.card = replace(self.card, provenance={{"determinism": "replies may depend on the batch"}})

    async def generate(self, request):
        reply = await super().generate(request)
        asked = request.parts()[-1].text
        if "What is word 2?" in asked:
            raise ReaderError("no word 2")
        return replace(reply, text=reply.text[:2] + "X") if "What is word 1?" in asked else reply
"""


@pytest.fixture
def other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path / "home"))
    (tmp_path / "other.py").write_text(OTHER)
    return f"{tmp_path / 'other.py'}:Other"


@pytest.fixture
def parity(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """The command on the toy benchmark and method; without them if a side is a run."""

    def ask(a: str, b: str, *words: str, on: bool = True) -> tuple[int, str, str]:
        what = ["--bench", toy("Numbers"), "--method", toy("Everything")] if on else []
        capfd.readouterr()
        code = command_line(["parity", a, b, *what, *words, "--out", str(tmp_path / "parity")])
        return code, *capfd.readouterr()

    return ask


def test_the_difference_is_told_in_replies_positions_and_scores(
    parity: Callable[..., tuple[int, str, str]], other: str
) -> None:
    code, out, _ = parity(toy("Toy"), other, "--json")
    assert code == 0
    found: dict[str, Any] = json.loads(out)
    # Six questions: words 0 to 2 of c0 and c1. B fails on both words 2 and says `c0X`, `c1X` for both words 1.
    assert (found["n"], found["replied"], found["identical"]) == (6, 4, 2)
    assert found["share"] == 0.5
    assert found["unanswered"] == {"a": 0, "b": 2}
    assert found["character"] == 2
    assert found["token"] == 1  # `c0` is a token by the toy's counter of four characters each
    assert [(d["native_id"], d["a"], d["b"]) for d in found["differences"]] == [
        ("c0/1", "c0-1", "c0X"),
        ("c1/1", "c1-1", "c1X"),
    ]
    right = found["scores"]["right"]
    assert (right["a"], right["n"], right["changed"]) == (1.0, 6, 4)
    assert right["b"] == pytest.approx(2 / 6)
    assert right["difference"] == pytest.approx(-4 / 6)
    assert found["scores"]["found"]["changed"] == 0
    assert found["b"]["card"]["dtype"] == "bf16"
    assert found["b"]["card"]["provenance"] == {"determinism": "replies may depend on the batch"}  # known once started


def test_the_table_says_the_same(parity: Callable[..., tuple[int, str, str]], other: str) -> None:
    code, out, _ = parity(toy("Toy"), other)
    assert code == 0
    assert "identical replies: 2 of 4 (50.0%)" in out
    assert "part at character 2, token 1 by" in out
    assert "2 without a reply on side B" in out
    assert "c0/1 from character 2: A 'c0-1', B 'c0X'" in out
    assert "determinism replies may depend on the batch" in out
    assert "SAMPLE" in out


def test_one_back_end_twice_is_asked_twice_and_equal(
    parity: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    log = tmp_path / "asked.log"
    code, out, _ = parity(toy("Toy"), toy("Toy"), "-R", f"log={log}", "--json")
    assert code == 0
    found = json.loads(out)
    assert (found["share"], found["character"], found["differences"]) == (1.0, None, [])
    assert len(log.read_text().splitlines()) == 12
    assert found["a"]["run"] != found["b"]["run"]


@pytest.mark.parametrize("first", [True, False])
def test_a_run_made_elsewhere_is_compared_with_a_reader(
    parity: Callable[..., tuple[int, str, str]], other: str, tmp_path: Path, first: bool
) -> None:
    elsewhere = run(tmp_path / "elsewhere", max_tokens=7)["run"]
    pair = (elsewhere, other) if first else (other, elsewhere)
    code, out, err = parity(*pair, "--json", on=False)
    assert code == 0, err
    found = json.loads(out)
    mine, yours = ("a", "b") if first else ("b", "a")
    assert found[mine]["run"] == elsewhere
    assert found["unanswered"] == {mine: 0, yours: 2}
    manifest = json.loads((Path(found[yours]["run"]) / "manifest.json").read_text())
    assert manifest["spec"]["readouts"] == elsewhere
    assert manifest["spec"]["max_tokens"] == 7


def test_two_runs_are_compared_as_they_are(
    parity: Callable[..., tuple[int, str, str]], other: str, tmp_path: Path
) -> None:
    one = run(tmp_path / "one")
    two = run(tmp_path / "two", r={"reply": "c0-1"})
    code, out, _ = parity(one["run"], two["run"], "--json", on=False)
    assert code == 0
    assert json.loads(out)["identical"] == 1


def test_options_go_to_the_side_they_are_for(parity: Callable[..., tuple[int, str, str]]) -> None:
    _, out, _ = parity(toy("Toy"), toy("Toy"), "--RA", "reply=yes", "--RB", "reply=no", "--json")
    assert {(d["a"], d["b"]) for d in json.loads(out)["differences"]} == {("yes", "no")}


def test_what_cannot_be_compared_is_refused(
    parity: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path / "home"))
    base = run(tmp_path / "base")["run"]

    def refused(words: str, **more: Any) -> None:
        with pytest.raises(UserError, match=words):
            compare(Path(base), Path(run(tmp_path / "again", **more)["run"]))

    refused("differ in --max-tokens", max_tokens=8)
    refused("2 questions of the other run are not in it", limit="4")
    refused("differ in options of the benchmark", b={"contexts": 3})
    refused(r"prompts differ from character \d+ on", items=1)
    refused("nothing was read", until="recall")
    refused("answer track", method="Panel")
    code, _, err = parity(base, toy("Toy"), "--limit", "3")
    assert code == 2
    assert "leave out --limit, --method, --bench" in err or "leave out --method, --bench, --limit" in err
    code, _, err = parity(toy("Toy"), toy("Toy"), on=False)
    assert code == 2
    assert "parity needs --bench" in err
    code, _, err = parity(str(tmp_path), toy("Toy"), on=False)
    assert code == 2
    assert "not a run folder" in err


def test_the_records_are_those_of_ordinary_runs(parity: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    _, out, _ = parity(toy("Toy"), toy("Toy"), "--limit", "2", "--json")
    assert len(lines(json.loads(out)["b"], "records.jsonl")) == 2
    assert command_line(["verify", json.loads(out)["b"]["run"]]) == 0
