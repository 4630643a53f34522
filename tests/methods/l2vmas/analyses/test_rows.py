"""Rows of the analyses on hand-written runs, worked out by hand; runs that do not belong together are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memharness.methods.l2vmas.analyses import calls, rows, runs
from memharness.methods.l2vmas.analyses.studies import STUDIES, study_of, values_of, without
from memharness.run.spec import RunSpec
from memharness.types import UserError

L2VMAS = {"turns": 5, "topology": "linear", "window": 16, "threshold": 0.5, "length": 8, "calls": "entropy",
          "attribution": "gate", "banks": "both", "capacity": 50}  # fmt: skip


def summary(folder: Path, name: str, *, method: str = "l2vmas", value: float = 0.5, **more: Any) -> dict[str, Any]:
    """What an analysis reads of a run's summary; `config` is beside the defaults."""
    path = folder / name
    path.mkdir(exist_ok=True)
    config = {**L2VMAS, **more.pop("config", {})} if method == "l2vmas" else {"turns": 5, **more.pop("config", {})}
    score = {"value": value, "low": value - 0.1, "high": value + 0.1, "n": 4, "clusters": None}
    return {
        "run": str(path), "method": method, "bench": "mmstar", "reader": "hf:x", "seed": 0, "primary": "A",
        "scores": {"A": score}, "config": config, "outcomes": {"ok": 3, "over_window": 1},
        "data_state": "sample", **more,
    }  # fmt: skip


def write(folder: Path, name: str, lines: list[dict[str, Any]]) -> None:
    (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))


def spent(text: int, image: int, output: int, latent: int) -> dict[str, int]:
    return {"text": text, "image": image, "output": output, "latent": latent}


def test_what_a_run_cost_by_hand(tmp_path: Path) -> None:
    one = summary(tmp_path, "one")
    trace = {"agents": {"agent1": {"passed": 0}, "agent2": {"passed": 30}}, "memory": {"most_bytes": 640}}
    asked = {"spent": {"answer": spent(100, 40, 20, 16), "observe": spent(0, 21, 0, 0)}, "trace": trace}
    more = {**trace, "memory": {"most_bytes": 1280}}
    write(tmp_path / "one", "records.jsonl", [
        asked,
        {**asked, "trace": more},
        {"spent": {"answer": spent(60, 40, 0, 0)}, "outcome": "over_window"},  # cut short: it has no trace
        {},  # and one that cost nothing
    ])  # fmt: skip
    found = rows.measured(one, "A")
    assert (found["value"], found["low"], found["high"], found["n"], found["failed"]) == (0.5, 0.4, 0.6, 4, 1)
    assert (found["prompt"], found["visual"], found["output"]) == (260 / 4, 120 / 4, 40 / 4)
    assert found["tokens"] == (260 + 120 + 40) / 4  # latents are no tokens, and what is observed is no agent's
    assert (found["latent"], found["observed"]) == (32 / 4, 42 / 4)
    assert found["passed_in"] == 30  # over the two questions of which it is known
    assert found["bank_bytes"] == 1280


def scored(folder: Path, name: str, values: list[float], **config: Any) -> dict[str, Any]:
    one = summary(folder, name, value=sum(values) / len(values), config=config)
    write(folder / name, "records.jsonl", [{} for _ in values])
    write(
        folder / name, "scores.jsonl",
        [{"unit": f"q{at}", "context": "c", "scores": {"A": value}} for at, value in enumerate(values)],
    )  # fmt: skip
    return one


def test_ablations_are_held_against_the_whole_question_by_question(tmp_path: Path) -> None:
    found = [
        scored(tmp_path, "whole", [1, 1, 0, 1, 0, 1, 1, 0]),
        scored(tmp_path, "p", [1, 0, 0, 1, 0, 1, 0, 0], banks="thinking"),
        scored(tmp_path, "t", [1, 1, 1, 1, 0, 1, 1, 0], calls="fixed"),
    ]
    made = rows.ablations(runs.chosen(STUDIES["ablations"], found), {"mmstar": "A"})
    assert [(row["line"], row["change"]) for row in made] == [
        ("w/o triggering", pytest.approx(1 / 8)), ("w/o perception", pytest.approx(-2 / 8)), ("L²-VMAS", 0.0),
    ]  # fmt: skip
    low, high = made[1]["change_low"], made[1]["change_high"]
    assert low < -0.25 < high
    with pytest.raises(UserError, match="no run on mmstar has all parts; its runs lack: w/o perception; w/o trigg"):
        rows.ablations(found[1:], {"mmstar": "A"})
    assert without({**L2VMAS, "banks": "perception", "calls": "fixed"}) == "w/o triggering, w/o thinking"


def test_sensitivity_varies_one_option_at_a_time(tmp_path: Path) -> None:
    plain = summary(tmp_path, "vmas", method="vmas", config={"content": "full"})
    write(tmp_path / "vmas", "records.jsonl", [{}])
    found = [
        scored(tmp_path, "base", [0, 1]),
        scored(tmp_path, "w4", [0, 0], window=4),
        scored(tmp_path, "w32", [0, 1], window=32),
        scored(tmp_path, "l4", [1, 1], length=4, modules="of-4"),
    ]
    chosen = runs.chosen(STUDIES["sensitivity"], [plain, *found])
    made = rows.sensitivity(chosen, {"mmstar": "A"})
    assert [(row["panel"], row["at"], row["value"]) for row in made] == [
        ("baseline", None, 0.5), ("window", 4, 0.0), ("window", 16, 0.5), ("window", 32, 0.5),
        ("length", 4, 1.0), ("length", 8, 0.5),
    ]  # fmt: skip
    both = scored(tmp_path, "both", [0, 0], window=4, length=4)
    with pytest.raises(UserError, match="vary one at a time"):
        rows.sensitivity([*found, both], {"mmstar": "A"})
    with pytest.raises(UserError, match="all runs are alike in window, threshold, length"):
        rows.sensitivity(found[:1], {"mmstar": "A"})


# ---------------------------------------------------------------------------------------------------------- triggering


def step(n: int, *called: tuple[int, str]) -> dict[str, Any]:
    memory = [{"after": after, "memory": which} for after, which in called]
    return {"tokens": {"output": n}, "memory": memory}


def triggered(folder: Path, asked: dict[str, tuple[str, list[dict[str, Any]]]], **config: Any) -> dict[str, Any]:
    """A run by question: its category, and the steps of its turns."""
    one = summary(folder, "run", config=config)
    write(folder / "run", "gold.jsonl", [{"question": q, "category": category} for q, (category, _) in asked.items()])
    records = [{"question": q, "trace": {"steps": steps}} for q, (_, steps) in asked.items()]
    write(folder / "run", "records.jsonl", records)
    return one


def test_calls_by_memory_and_place_by_hand(tmp_path: Path) -> None:
    one = triggered(tmp_path, {
        "q1": ("coarse perception/x", [step(4, (1, "perception"), (2, "thinking"), (3, "perception")), step(1)]),
        "q2": ("coarse perception/y", [step(5, (5, "perception"))]),
        "q3": ("math/z", [step(10, (10, "thinking"))]),
        "q4": ("something else", [step(9)]),  # of no group
    })  # fmt: skip
    made = {(row["panel"], row["line"], row["at"]): row for row in calls.triggering([one], {}, 2)}
    # Halves: of 4 tokens 2 and 2, of 1 none and 1, of 5 two and 3.
    tokens = {at: made["perception", "perception", at]["tokens"] for at in (1, 2, "all")}
    assert tokens == {1: 4, 2: 6, "all": 10}
    assert {at: made["perception", "perception", at]["calls"] for at in (1, 2, "all")} == {1: 1, 2: 2, "all": 3}
    assert made["perception", "thinking", 1]["value"] == 1 / 4 and made["perception", "thinking", 2]["value"] == 0
    assert made["perception", "perception", "all"]["value"] == 0.3
    assert made["thinking", "thinking", 2]["calls"] == 1 and made["thinking", "perception", "all"]["calls"] == 0
    assert {panel for panel, _, _ in made} == {"perception", "thinking"}
    assert made["perception", "thinking", "all"]["turns"] == 3 and made["perception", "thinking", "all"]["n"] == 2

    named = calls.triggering([one], {"mine": ["math", "something else"]}, 1)
    assert {row["panel"] for row in named} == {"mine"} and named[0]["n"] == 2
    with pytest.raises(UserError, match=r"--group mine: .*run has no category maths \(did you mean math\?\)"):
        calls.triggering([one], {"mine": ["maths"]}, 1)


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 12), st.data())
def test_places_lose_nothing(bins: int, data: st.DataObject) -> None:
    steps = []
    for n in data.draw(st.lists(st.integers(1, 60), min_size=1, max_size=4)):
        places = data.draw(st.sets(st.integers(1, n)))
        steps.append(step(n, *((at, data.draw(st.sampled_from(["perception", "thinking"]))) for at in sorted(places))))
    counted = calls._Counted(
        [{} for _ in range(bins)], {w: [{} for _ in range(bins)] for w in ("perception", "thinking")}
    )
    calls._count(counted, "q", steps, bins)
    assert sum(part["q"] for part in counted.tokens) == sum(one["tokens"]["output"] for one in steps)
    made = [part["q"] for parts in counted.calls.values() for part in parts]
    assert sum(made) == sum(len(one["memory"]) for one in steps)
    for place in range(bins):  # a token is called behind at most once
        assert sum(parts[place]["q"] for parts in counted.calls.values()) <= counted.tokens[place]["q"]


# ------------------------------------------------------------------------------------------------- what is put together


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"seed": 1}, r"a and .*b differ in seed \(0 and 1\), which this analysis does not vary"),
        ({"reader": "hf:y"}, "differ in reader"),
        ({"config": {"turns": 3, "capacity": 9}}, r"differ in capacity \(50 and 9\)"),
        ({}, "are runs of the same; leave one out"),
    ],
)
def test_runs_that_do_not_belong_together_are_refused(tmp_path: Path, other: dict[str, Any], words: str) -> None:
    found = [summary(tmp_path, "a"), summary(tmp_path, "b", **other)]
    with pytest.raises(UserError, match=words):
        runs.chosen(STUDIES["turns"], found)


def test_teams_of_both_kinds_are_held_to_the_same_topology(tmp_path: Path) -> None:
    words = summary(tmp_path, "a", method="vmas", config={"topology": "complete"})
    with pytest.raises(UserError, match=r"differ in topology \(complete and linear\)"):
        runs.chosen(STUDIES["turns"], [words, summary(tmp_path, "b")])
    with pytest.raises(UserError, match="none of 1 runs is of l2vmas"):
        runs.chosen(STUDIES["ablations"], [words])
    with pytest.raises(UserError, match=r"has no score AA \(did you mean A\?\)"):
        runs.metric_of([words], "AA")


def test_plans() -> None:
    base = RunSpec("", "", "smollm2", method_options={"topology": "complete", "capacity": 9})
    turns = STUDIES["turns"]
    made = runs.specs(turns.arms(values_of(turns, {"turns": "2-3"}), turns.methods), base, ["mmbench", "mmstar"])
    assert [(one.bench, one.method, dict(one.method_options)) for one in made[:4]] == [
        ("mmbench", "vmas", {"topology": "complete", "turns": 2}),
        ("mmbench", "vmas", {"topology": "complete", "turns": 3}),
        ("mmbench", "l2vmas", {"topology": "complete", "capacity": 9, "turns": 2}),
        ("mmbench", "l2vmas", {"topology": "complete", "capacity": 9, "turns": 3}),
    ]
    assert len(made) == 8
    plain = RunSpec("", "")
    sizes = {
        name: len(runs.specs(study.arms(study.values, study.methods), plain, ["mmstar"]))
        for name, study in STUDIES.items()
    }  # of the three options that are swept, the defaults are one run
    assert sizes == {"turns": 20, "contents": 40, "triggering": 1, "ablations": 5, "sensitivity": 1 + 4 + 5 + 5 - 2}
    assert values_of(STUDIES["contents"], {"content": "full, thinking"})["content"] == ("full", "thinking")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"capcity": 3}, r"-M capcity: none of vmas, l2vmas has this option \(did you mean capacity\?\)"),
        ({"turns": 3}, "-M turns: is what this analysis varies; say its values with --at turns="),
        ({"capacity": 0}, "-M capacity=0"),
    ],
)
def test_options_are_held_to_the_methods_before_anything_is_spent(options: dict[str, Any], words: str) -> None:
    turns = STUDIES["turns"]
    with pytest.raises(UserError, match=words):
        runs.specs(turns.arms(turns.values, turns.methods), RunSpec("", "", method_options=options), ["mmstar"])


def test_words_that_name_nothing_are_refused() -> None:
    with pytest.raises(UserError, match=r"no such analysis \(did you mean turns\?\); there are: turns"):
        study_of("turn")
    with pytest.raises(UserError, match=r"--at windw=3: it varies window, threshold, length \(did you mean window\?\)"):
        values_of(STUDIES["sensitivity"], {"windw": "3"})
    with pytest.raises(UserError, match="names no value"):
        values_of(STUDIES["sensitivity"], {"window": ","})


def test_a_score_that_there_is_not_is_said_after_the_first_run(tmp_path: Path) -> None:
    asked: list[RunSpec] = []

    def execute(spec: RunSpec) -> dict[str, Any]:
        asked.append(spec)
        return summary(tmp_path, "a")

    with pytest.raises(UserError, match="has no score B"):
        runs.performed([RunSpec("l2vmas", "mmstar"), RunSpec("vmas", "mmstar")], execute, lambda words: None, "B")
    assert len(asked) == 1
