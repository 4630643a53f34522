"""`memharness compare`: what it prints, writes and refuses."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.conftest import RUN, Said
from tests.run.finished import Finished, scored
from tests.run.test_compare import verdicts

Cli = Callable[..., Said]


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Two finished runs: 300 questions, ten clusters, three categories; the second has failures."""
    rows = scored(verdicts(seed=2))
    rows[4] = replace(rows[4], scores={"right": [None, "ok", "timeout"]}, outcome="timeout", answer=None)
    first = Finished(scored(verdicts(seed=1))).write(tmp_path / "runs" / "a")
    return first, Finished(rows, described={"memory.method": "fancy"}).write(tmp_path / "runs" / "b")


def test_the_block(cli: Cli, pair: tuple[Path, Path]) -> None:
    said = cli("compare", *pair)
    assert said.code == 0
    for words in (
        "B fancy against A plain on quiz",
        "right · n=300 matched (0 dropped, 0 only in A, 0 only in B) · clusters: G=10",
        "what differs (A | B): method plain | fancy",
        "t(9)",
        "verdict: ",
        " at δ=.020: ",
        "sign flips p ",
        "(exact, 10 clusters)",
        "McNemar exact p ",
        "(ignores clusters)",
        "flips ",
        "all 300 (micro)",
        "valid 299 (micro)",
        "3 categories (macro)",
        "Holm p",
        "tokens, life",
        "B / A",
        "timeout",
        "stayed wrong",
    ):
        assert words in said.out, words
    assert "FORCED" not in said.out
    assert max(map(len, said.out.splitlines())) < 200


def test_the_json_is_the_whole_comparison(cli: Cli, pair: tuple[Path, Path]) -> None:
    said = cli("compare", *pair, "--delta", "0.1", "--json")
    found = json.loads(said.out)
    assert (found["delta"], found["level"], found["bench"]) == (0.1, 0.95, "quiz")
    run = found["runs"][0]
    assert len(run["changes"]) == 300
    block = run["scores"][0]["all"]
    printed = cli("compare", *pair, "--delta", "0.1").out
    assert f"[{block['difference']['low']:+.3f}".replace("0.", ".").replace("-", "−") in printed
    assert f"verdict: {block['verdict']} at δ=.100" in printed


def test_the_csv_has_every_question(cli: Cli, pair: tuple[Path, Path], tmp_path: Path) -> None:
    said = cli("compare", *pair, "--csv", "changes.csv")
    assert "wrote 300 rows" in said.err
    rows = list(csv.DictReader((tmp_path / "changes.csv").open()))
    assert len({row["unit"] for row in rows}) == 300
    kinds = [row["kind"] for row in rows]
    assert sorted(kinds, key=["regressed", "stayed wrong", "fixed", "unchanged"].index) == kinds
    assert sum(float(row["change"]) for row in rows) == pytest.approx(
        sum(float(row["b"]) - float(row["a"]) for row in rows)
    )
    assert next(row for row in rows if row["unit"] == "q4")["outcome_b"] == "timeout"
    assert cli("compare", *pair, "--csv", ".").code == 2


def test_it_refuses_what_was_not_asked_the_same(cli: Cli, pair: tuple[Path, Path], tmp_path: Path) -> None:
    other = Finished(scored(verdicts(seed=3)), described={"readout.budget": 2000}, summary={"judge": "j"}).write(
        tmp_path / "runs" / "c"
    )
    said = cli("compare", pair[0], other)
    assert (said.code, said.out) == (2, "")
    assert "differ in budget (none and 2000)" in said.err
    assert "--force" in said.err
    assert "Traceback" not in said.err
    forced = cli("compare", pair[0], other, "--force", "--csv", "forced.csv")
    assert forced.code == 0
    assert "FORCED: these must be equal and are not" in forced.out
    assert "budget none | 2000" in forced.out
    assert "budget 2000" not in forced.out.split("FORCED")[0]
    row = next(csv.DictReader((tmp_path / "forced.csv").open()))
    assert row["forced"] == "budget (none and 2000)"
    told = json.loads(cli("compare", pair[0], other, "--force", "--json").out)
    assert told["runs"][0]["forced"] == [{"field": "budget", "a": "none", "b": "2000"}]
    ranked = cli("compare", *pair, other, "--force").out
    assert "C plain (FORCED)" in ranked
    assert "Holm over 2 runs" in ranked


def test_ids_without_a_partner_are_counted_and_listed_on_demand(cli: Cli, tmp_path: Path) -> None:
    a = Finished(scored(verdicts(60))).write(tmp_path / "a")
    b = Finished(scored(verdicts(57))).write(tmp_path / "b")
    plain, verbose = cli("compare", a, b).out, cli("compare", a, b, "--verbose").out
    assert "3 questions only in A (--verbose lists them)" in plain
    assert "3 questions only in A: q57, q58, q59" in verbose
    assert json.loads(cli("compare", a, b, "--json").out)["runs"][0]["only_a"] == ["q57", "q58", "q59"]


def test_how_many_questions_are_shown(cli: Cli, pair: tuple[Path, Path]) -> None:
    def shown(*words: str) -> int:
        return len(re.findall(r"^    expected", cli("compare", *pair, *words).out, re.MULTILINE))

    assert shown("--questions", "0") == 0
    assert shown() == 12
    assert shown("--questions", "5") == 20
    assert cli("compare", *pair, "--questions", "-1").code == 2


def test_few_clusters_say_so(cli: Cli, tmp_path: Path) -> None:
    runs = [Finished(scored(verdicts(40, seed=n), clusters=4)).write(tmp_path / str(n)) for n in (1, 2)]
    said = cli("compare", *runs)
    assert said.code == 0
    assert "verdict: not shown at δ=.020: 4 clusters are too few for an interval (at least 6)" in said.out
    assert "none" in said.out


def test_users_mistakes_are_one_line(cli: Cli, pair: tuple[Path, Path], tmp_path: Path) -> None:
    for words, expected in (
        ((), "two runs or more"),
        ((pair[0],), "two runs or more"),
        ((pair[0], tmp_path / "no"), "not a run folder"),
        ((*pair, "--metric", "f9"), "--metric f9"),
        ((*pair, "--delta", "-1"), "--delta -1"),
    ):
        said = cli("compare", *words)
        assert (said.code, said.out) == (2, "")
        assert expected in said.err
        assert said.err.count("\n") == 1


def test_the_runs_of_the_command_line(cli: Cli, tmp_path: Path) -> None:
    cli(*RUN, "-B", "contexts=7")
    cli(*RUN, "-B", "contexts=7", "-R", "reply=c0-1")
    first, second = sorted(Path("results/runs").iterdir())
    said = cli("compare", first, second)
    assert said.code == 0
    assert "SAMPLE" in said.out
    assert "G=7" in said.out
    assert cli("compare", first, first).out.count("tie at δ") == 1


def test_repeats_are_named_with_commas(cli: Cli, tmp_path: Path) -> None:
    rows = [scored(verdicts(60, seed=seed)) for seed in range(3)]
    runs = [Finished(one, described={"memory.seed": at}).write(tmp_path / f"r{at}") for at, one in enumerate(rows)]
    said = cli("compare", f"{runs[0]},{runs[1]}", runs[2])
    assert said.code == 0
    assert "(mean of 2 runs)" in said.out
    assert "seed 0, 1 | 2" in said.out
    assert cli("compare", f"{runs[0]},{tmp_path / 'no'}", runs[2]).code == 2
    odd = Finished(rows[0]).write(tmp_path / "x,y")
    assert cli("compare", odd, runs[2]).code == 0


def test_what_runs_say_is_neither_markup_nor_obeyed(cli: Cli, tmp_path: Path) -> None:
    said = "[bold]said[/bold] \x1b[31m:smile:\x07"
    rows = [replace(row, answer=said, category=f"{row.category}\x1b[2J") for row in scored(verdicts(30))]
    a, b = (Finished(rows).write(tmp_path / name) for name in "ab")
    said = cli("compare", a, b).out
    assert "[bold]said[/bold]" in said
    assert "\x1b" not in said
    assert "\x07" not in said
