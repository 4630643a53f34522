"""What plots show: the front, names, categories and objective traces; and runs that do not go together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memharness.report.plots.rows import by_category, cost, objective, sweep
from memharness.report.plots.runs import names, ordered, together
from memharness.stats import interval
from memharness.types import UserError
from tests.report.runs import summary


def spending(value: float, tokens: int, **changes: Any) -> dict[str, Any]:
    """A run with a score and a lifecycle cost."""
    spent = {"read": {"text": tokens, "image": 0, "output": 0, "latent": 9}, "judge": {"text": 10**9}}
    return summary(value, run=f"{value}/{tokens}", seed=changes.pop("seed", tokens), tokens=spent, **changes)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 6)), min_size=1, max_size=8, unique=True))
def test_the_front_holds_what_no_run_beats(drawn: list[tuple[int, int]]) -> None:
    runs = [spending(value / 10, cost_, seed=at) for at, (value, cost_) in enumerate(drawn)]
    rows = cost(together(runs, None), "tokens")
    front = {(row["value"], row["cost"]) for row in rows if row["front"]}
    points = {(row["value"], row["cost"]) for row in rows}
    beaten = {(v, c) for v, c in points if any((w, d) != (v, c) and w >= v and d <= c for w, d in points)}
    assert front == points - beaten
    assert max(points, key=lambda point: (point[0], -point[1])) in front


def test_controls_are_no_part_of_the_front() -> None:
    runs = [spending(0.9, 10, control=True, method="oracle"), spending(0.5, 100)]
    assert [(row["name"], row["front"]) for row in cost(together(runs, None), "tokens")] == [
        ("graphmemix seed 100", True),
        ("oracle seed 10 (control)", False),
    ]


def test_cost_is_by_phase_and_leaves_the_judge_out() -> None:
    run = summary()
    run["tokens"]["judge"] = {"text": 99, "image": 0, "output": 1, "latent": 0}
    row = cost(together([run], None), "tokens")[0]
    assert (row["tokens_observe"], row["tokens_recall"], row["tokens_read"], row["cost"]) == (5000, 0, 95_000, 100_000)
    assert (row["value"], row["low"], row["high"], row["clusters"]) == (0.412, 0.331, 0.496, 10)
    row = cost(together([run], None), "seconds")[0]
    assert row["cost"] == pytest.approx(65.75)
    assert cost(together([summary(price=1.5)], None), "price")[0]["cost"] == 1.5
    with pytest.raises(UserError, match="has no price"):
        cost(together([summary(price=None)], None), "price")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bench": "atm"}, "differ in benchmark .mem-gallery and atm|differ in benchmark .atm and mem-gallery"),
        ({"track": "answer"}, "differ in track"),
        ({"data_digest": "b" * 64}, "differ in data"),
        ({"selection": {"limit": "5", "ids": None}}, "differ in questions .*limit 5"),
        ({"options": {"frames": 2}}, "differ in questions .*frames=2"),
        ({"judge": "other"}, "differ in judge"),
    ],
)
def test_runs_that_do_not_go_together_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        together([summary(run="one"), summary(run="two", **change)], None)


def test_a_score_that_a_run_lacks_is_named() -> None:
    with pytest.raises(UserError, match=r"no score f2 \(did you mean f1\?\); --metric takes one of em, f1"):
        together([summary()], "f2")
    other = summary(run="two", primary="em")
    with pytest.raises(UserError, match=r"no one score leads all these runs; name one with --metric \(one of em, f1\)"):
        together([summary(), other], None)
    assert together([summary(), other], "em").metric == "em"
    none = summary(run="none", scores={})
    with pytest.raises(
        UserError, match="none has no score f1; --metric takes a score that all have, and there is none"
    ):
        together([summary(), none], "f1")


def test_runs_are_named_by_what_tells_them_apart() -> None:
    runs = [
        summary(reader="smollm2"),
        summary(reader="extractive"),
        summary(method="bm25", config={}, embedder=None, reader="smollm2"),
    ]
    assert names(runs) == ["graphmemix reader smollm2", "graphmemix reader extractive", "bm25 reader smollm2"]
    runs = [summary(embedder="a"), summary(embedder="b"), summary(config={"k": 3, "edges": True}), summary(budget=None)]
    assert names(runs)[0] == "graphmemix k=10 embedder a budget 2000"
    assert names(runs)[3] == "graphmemix k=10 embedder minilm budget none"
    assert names(runs, without="k")[2] == "graphmemix embedder minilm budget 2000"


def test_the_same_run_twice_is_refused() -> None:
    for make in (lambda runs: cost(runs, "tokens"), by_category, objective):
        with pytest.raises(UserError, match="one and two are runs of the same"):
            make(together([summary(run="one"), summary(run="two")], None))


def test_a_sweep_has_a_line_for_what_is_otherwise_the_same() -> None:
    runs = [
        summary(0.3, run=f"{method} {budget}", method=method, budget=budget, config={})
        for method in ("dense", "bm25")
        for budget in (None, 1000, 128)
    ]
    rows = sweep(together(runs, None, apart_in="budget"), "budget")
    assert [(row["name"], row["at"]) for row in rows] == [
        (name, at) for name in ("bm25", "dense") for at in (128, 1000, "none")
    ]
    assert {row["tokens_per_question"] for row in rows} == {1000}


def test_a_sweep_over_an_option_of_the_method() -> None:
    """Turns, for one: whatever a method's config calls them."""
    runs = [summary(0.3, run=f"{turns}", config={"turns": turns, "k": 1}) for turns in (10, 1, 5)]
    rows = sweep(together(runs, None, apart_in="turns"), "turns")
    assert [(row["name"], row["at"], row["against"]) for row in rows] == [
        ("graphmemix", at, "turns") for at in (1, 5, 10)
    ]
    with pytest.raises(UserError, match=r"--against turn: 1(0?) has no such field \(did you mean turns\?\); it has"):
        sweep(together(runs, None, apart_in="turn"), "turn")
    with pytest.raises(UserError, match="plot sweep: k is 1 in all these runs; give runs that differ in it"):
        sweep(together(runs, None, apart_in="k"), "k")
    with pytest.raises(UserError, match="are runs of the same; leave one out"):
        sweep(
            together([*runs, summary(0.3, run="again", config={"turns": 5, "k": 1})], None, apart_in="turns"), "turns"
        )


def test_the_order_of_what_a_sweep_is_against() -> None:
    assert ordered(["none", 512, 2.5, True, 512, "a"]) == [2.5, 512, True, "a", "none"]


def written(folder: Path, scores: list[dict[str, Any]], records: list[dict[str, Any]]) -> dict[str, Any]:
    """A run's folder with these scores and records, as far as a plot reads it."""
    folder.mkdir(parents=True)
    for name, lines in (("scores", scores), ("records", records)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return summary(run=str(folder))


def scored(unit: str, value: Any, category: str = "x", cluster: str = "c") -> dict[str, Any]:
    """A line of scores."""
    return {"unit": unit, "context": cluster, "scores": {"f1": value}, "category": category, "cluster": cluster}


def test_categories_have_the_intervals_of_their_questions(tmp_path: Path) -> None:
    lines = [scored(f"q{n}", (n % 5) / 5, "far" if n % 3 else "near", f"c{n % 9}") for n in range(90)]
    lines += [
        scored("failed", [None, "ok", "timeout"], "near", "c1"),
        scored("no", [None, "not_applicable", ""], "near"),
    ]
    rows = by_category(together([written(tmp_path / "run", lines, [])], None))
    assert [row["category"] for row in rows] == ["far", "near"]
    near = [line for line in lines[:-1] if line["category"] == "near"]
    values = [value if isinstance(value := line["scores"]["f1"], float) else 0.0 for line in near]
    expected = interval(values, [line["cluster"] for line in near])
    assert (rows[1]["value"], rows[1]["low"], rows[1]["n"]) == (expected.value, expected.low, 31)
    one = written(tmp_path / "one", [scored("q", 1.0)], [])
    with pytest.raises(UserError, match="are of one category"):
        by_category(together([one], None))


def test_objective_traces_are_means_over_the_same_questions(tmp_path: Path) -> None:
    forests = [{"climb": [1.0, 1.5, 1.75], "gains": [0.25]}, {"climb": [2.0], "gains": []}]
    records = [{"question": f"q{n}", "context": "c", "trace": {"forest": forests[n % 2]}} for n in range(14)]
    records.append({"question": "without", "context": "c"})
    scores = [scored(f"q{n}", 0.0, cluster=f"c{n % 7}") for n in range(14)]
    rows = objective(together([written(tmp_path / "run", scores, records)], None))
    assert [(row["part"], row["step"], row["value"], row["n"], row["moving"]) for row in rows] == [
        ("swaps", 0, 0.0, 14, 14), ("swaps", 1, 0.25, 14, 7), ("swaps", 2, 0.375, 14, 7),
        ("edges", 0, 0.0, 14, 14), ("edges", 1, 0.125, 14, 7),
    ]  # fmt: skip
    values = [0.5 if n % 2 == 0 else 0.0 for n in range(14)]
    assert rows[1]["low"] == interval(values, [f"c{n % 7}" for n in range(14)]).low
    assert (rows[0]["low"], rows[0]["high"]) == (0.0, 0.0)  # by definition, not by measurement


def test_a_run_without_traces_is_told_what_a_method_must_leave(tmp_path: Path) -> None:
    run = written(tmp_path / "run", [scored("q", 1.0)], [{"question": "q", "context": "c", "trace": {"prior": []}}])
    with pytest.raises(UserError, match=r"forest\.climb .* and forest\.gains .* into the trace of its readout"):
        objective(together([run], None))
