"""A score by parts beside floors: hand-computed means, what is compared with what, and how it is shown."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from memharness.benchmark import Floor
from memharness.report.cuts import show_cuts, write_csv
from memharness.run.api import execute
from memharness.run.cuts import Part, _by_number, cuts
from memharness.run.progress import Quiet
from memharness.stats import interval, paired
from memharness.types import Answer, DataError, Gold, UserError
from tests.run.harness import run, spec
from tests.run.toys import Numbers

HERE = Path(__file__)
FLOORS = ("always c0-0", "first word", "nothing right")


class Parted(Numbers):
    """Numbers, with parts of its own and floors: the first word of each context, and what is always wrong."""

    def cuts(self, gold: Gold) -> Mapping[str, Sequence[str]]:
        """By place, and the later ones."""
        at = int(gold.native_id.partition("/")[2])
        return {"late": ("late",) if at > 1 else (), "place": (str(at), f"{10 + at} and so on")}

    def floors(self) -> Sequence[Floor]:
        """Two."""
        return (
            Floor("first word", lambda case, items: Answer(f"{case.question.context}-0")),
            Floor("nothing right", lambda case, items: Answer("no")),
        )


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of the test's own."""
    monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path / "home"))


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """Eight contexts of three words, read by the toy."""
    toys = spec(tmp_path / "out", b={"contexts": 8, "questions": 3})
    return Path(execute(replace(toys, bench=f"{HERE}:Parted"), Quiet())["run"])


def respell(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the scores of every question, not of the groups."""
    lines = [json.loads(line) for line in (path / "scores.jsonl").read_text().splitlines()]
    for line in lines:
        if "right" in line["scores"]:
            change(line)
    (path / "scores.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_the_parts_are_the_benchmarks_own(made: Path) -> None:
    (found,) = cuts(made)
    assert [(part.kind, part.name, part.own.n) for part in found.parts] == [
        ("", "all", 24), ("late", "late", 8), ("place", "0", 8), ("place", "1", 8), ("place", "2", 8),
        ("place", "10 and so on", 8), ("place", "11 and so on", 8), ("place", "12 and so on", 8),
    ]  # fmt: skip
    assert found.score == "right"


def test_floors_are_measured_on_the_same_questions_by_the_same_metric(made: Path) -> None:
    (found,) = cuts(made)
    whole, by_name = found.parts[0], {part.name: part for part in found.parts}
    assert whole.floors["first word"].value == pytest.approx(1 / 3)
    assert whole.floors["nothing right"].value == 0
    assert whole.floors["always c0-0"].value == pytest.approx(1 / 24)
    assert set(whole.floors) == {*FLOORS}, "constants that are never right are left out"
    assert (by_name["0"].floors["first word"].value, by_name["1"].floors["first word"].value) == (1, 0)
    assert whole.ceiling
    assert whole.ceiling.value == 1
    assert (whole.best, by_name["0"].best) == ("first word", "first word")


def test_intervals_and_differences_are_those_of_the_estimators(made: Path) -> None:
    (found,) = cuts(made)
    rows = [json.loads(line) for line in (made / "scores.jsonl").read_text().splitlines()]
    own = {row["unit"]: float(row["scores"]["right"]) for row in rows if "right" in row["scores"]}
    clusters = {row["unit"]: row["cluster"] for row in rows}
    golds = [json.loads(line) for line in (made / "gold.jsonl").read_text().splitlines()]
    floor = {gold["question"]: float(gold["native_id"].endswith("/0")) for gold in golds}
    whole = found.parts[0]
    assert whole.own == interval(list(own.values()), [clusters[unit] for unit in own])
    assert whole.own.clusters == 8
    assert whole.gain
    assert whole.gain.difference == paired(floor, own, clusters).difference
    assert whole.gain.a == pytest.approx(1 / 3)


def test_a_failure_counts_0_and_is_left_out_of_what_is_valid(made: Path) -> None:
    respell(made, lambda line: line["native_id"] == "c0/0" and line["scores"].update(right=[None, "ok", "timeout"]))
    (found,) = cuts(made)
    whole = found.parts[0]
    assert (whole.own.n, whole.valid.n) == (24, 23)
    assert whole.own.value == pytest.approx((whole.valid.value or 0) * 23 / 24)
    assert "1 of 24 failed and count 0" in shown(found)


def test_points_beyond_1_have_no_interval_of_shares(made: Path) -> None:
    respell(made, lambda line: line.update(scores={"points": 0 if line["native_id"].endswith("/1") else 7}))
    (found,) = cuts(made, ["points"])
    nothing = next(part.own for part in found.parts if part.name == "1")
    assert (nothing.value, nothing.low, nothing.n) == (0, None, 8), "no interval up to .369 of 7 points"
    assert found.notes == ["points: no floors, since an answer alone gives no such score"]


def shown(found: Any, width: int = 100) -> str:
    """What is printed."""
    out = io.StringIO()
    show_cuts(Console(file=out, width=width, force_terminal=True, color_system=None), [found])
    return out.getvalue()


@pytest.mark.parametrize("width", [100, 200])
def test_what_is_shown_fits(made: Path, width: int) -> None:
    (found,) = cuts(made)
    text = shown(found, width)
    assert all(len(line) <= width for line in text.splitlines() if str(made) not in line)
    assert "first word" in text
    assert "gold itself" in text


def test_the_file_has_a_row_a_part_and_policy(made: Path, tmp_path: Path) -> None:
    found = cuts(made)
    write_csv(tmp_path / "cuts.csv", found)
    rows = list(csv.DictReader((tmp_path / "cuts.csv").read_text().splitlines()))
    assert len(rows) == 8 * (2 + len(FLOORS) + 1)  # the run, its valid ones, floors, gold
    best = [row for row in rows if row["best_floor"] == "1"]
    assert [row["part"] for row in best] == [part.name for part in found[0].parts]
    assert {row["part"]: row["policy"] for row in best}["1"] == "always c0-0"  # nothing is right there: the first
    first = next(row for row in rows if row["part"] == "0" and row["policy"] == "first word")
    assert (first["value"], first["n"], first["clusters"]) == ("1.0", "8", "8")


def test_one_json_object(made: Path) -> None:
    value = json.loads(json.dumps(cuts(made)[0].to_json()))
    assert value["parts"][0]["floors"]["first word"]["value"] == pytest.approx(1 / 3)
    assert set(value["parts"][0]["differences"]) == {*FLOORS}


def test_what_is_refused(made: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"--metric rigt: .* has no such score \(did you mean right\?\)"):
        cuts(made, ["rigt"])
    with pytest.raises(UserError, match="not a run folder"):
        cuts(tmp_path)
    manifest = json.loads((made / "manifest.json").read_text())
    manifest["described"]["memory"]["data"] = "0" * 64
    (made / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(DataError, match="not the data of this run"):
        cuts(made)


def test_a_live_benchmark_is_cut_too(tmp_path: Path) -> None:
    summary = run(tmp_path / "out", bench="Corridor", method="Everything")
    (found,) = cuts(Path(summary["run"]))
    assert found.parts[0].own.n == summary["scores"][summary["primary"]]["n"]


@given(st.lists(st.sampled_from(["easy", "hard", "2", "10", "2-7", "11-20"]), unique=True))
def test_numbers_come_in_their_order_and_words_keep_theirs(names: list[str]) -> None:
    ordered = sorted(names, key=_by_number)
    assert [name for name in ordered if name.isalpha()] == [name for name in names if name.isalpha()]
    numbers = [int(name.partition("-")[0]) for name in ordered if not name.isalpha()]
    assert numbers == sorted(numbers)


def test_a_part_without_floors_has_no_best() -> None:
    empty = interval([1.0, 0.0])
    assert Part("", "all", empty, empty, {}, None, None, {}).gain is None
