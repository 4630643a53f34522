"""Comparing runs: figures against statsmodels and scipy, the traps, what must be equal, and real LoCoMo runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
import statsmodels.api as sm
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

from memharness.run.compare import KINDS, Against, Comparison, compare, verdict
from memharness.run.sides import Run
from memharness.stats import Interval
from memharness.types import DataError, UserError
from tests.run import harness
from tests.run.finished import Finished, Row, scored

Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Write a finished run."""

    def write(name: str, rows: list[Row], **more: Any) -> Path:
        return Finished(rows, **more).write(tmp_path / name)

    return write


def verdicts(n: int = 300, share: float = 0.5, seed: int = 1) -> dict[str, float]:
    """Verdicts of 0 or 1 by question."""
    rng = np.random.default_rng(seed)
    return {f"q{i}": float(right) for i, right in enumerate(rng.random(n) < share)}


def only(found: Comparison) -> Against:
    """The one run that was compared."""
    (run,) = found.runs
    return run


# ------------------------------------------------------------------------------------- figures, computed independently


def lines(run: Path, name: str) -> list[dict[str, Any]]:
    """Lines of a file of a run."""
    return [json.loads(line) for line in (run / name).read_text().splitlines()]


def values(run: Path, score: str) -> dict[str, float]:
    """A score by question, straight from the file; a failure is 0, what does not apply is left out."""
    out = {}
    for line in lines(run, "scores.jsonl"):
        value = line["scores"].get(score)
        if isinstance(value, list):
            value = None if value[1] == "not_applicable" else value[0] or 0.0
        if value is not None:
            out[line["unit"]] = value
    return out


def regression(x: np.ndarray, clusters: list[str]) -> tuple[float, float, float]:
    """Low, high and p of the mean by statsmodels' cluster-robust regression on a constant, t with G-1."""
    fit = sm.OLS(x, np.ones(len(x))).fit(cov_type="cluster", cov_kwds={"groups": np.array(clusters)}, use_t=True)
    return (*fit.conf_int()[0], fit.pvalues[0])


def check_against_statsmodels(a: Path, b: Path, score: str) -> None:
    """Recompute the block of a comparison from the runs' files, without memharness."""
    found = only(compare([a, b], scores=[score], delta=0.02)).scores[0]
    left, right = values(a, score), values(b, score)
    rows = {line["unit"]: line for line in lines(a, "scores.jsonl")}
    both = [unit for unit in left if unit in right]
    x, y = (np.array([side[unit] for unit in both]) for side in (left, right))
    clusters = [rows[unit]["cluster"] for unit in both]
    groups = len(set(clusters))
    assert (found.all.n, found.clusters) == (len(both), groups)
    assert (found.all.a.value, found.all.b.value) == pytest.approx((x.mean(), y.mean()), abs=1e-12)
    for one, of in ((found.all.a, x), (found.all.b, y), (found.all.difference, y - x)):
        low, high, _ = regression(of, clusters)
        assert one.df == groups - 1
        bounds = (low, high) if one is found.all.difference else (max(low, 0), min(high, 1))
        assert (one.low, one.high) == pytest.approx(bounds, abs=1e-10)
    assert found.all.p == pytest.approx(regression(y - x, clusters)[2], abs=1e-10)
    names = sorted(set(clusters))
    totals = np.array([(y - x)[np.array(clusters) == name].sum() for name in names])
    flips = scipy.stats.permutation_test((totals,), np.sum, permutation_type="samples", n_resamples=np.inf)
    assert found.sign_flip.p == pytest.approx(flips.pvalue, abs=1e-9)
    assert (found.lower, found.higher) == ((y < x).sum(), (y > x).sum())
    if set(np.concatenate([x, y])) <= {0.0, 1.0} and found.mcnemar is not None:
        table = [[((x == i) & (y == j)).sum() for j in (1, 0)] for i in (1, 0)]
        assert found.mcnemar.p == pytest.approx(mcnemar(table, exact=True).pvalue, abs=1e-10)
    categories = {name: [i for i, unit in enumerate(both) if rows[unit].get("category", "") == name]
                  for name in sorted({rows[unit].get("category", "") for unit in both})}  # fmt: skip
    if len(categories) > 1:
        assert found.macro is not None
        macro = np.mean([(y - x)[at].mean() for at in categories.values()])
        assert found.macro.difference.value == pytest.approx(macro, abs=1e-12)
        testable = [one for one in found.categories if one.p is not None]
        assert [one.name for one in found.categories] == list(categories)
        for one in testable:
            if one.difference.method == "cluster-t":
                at = categories[one.name]
                expected = regression((y - x)[at], [clusters[i] for i in at])
                assert (one.difference.low, one.difference.high, one.p) == pytest.approx(expected, abs=1e-10)
        adjusted = multipletests([one.p for one in testable], method="holm")[1]
        assert [one.adjusted for one in testable] == pytest.approx(adjusted.tolist(), abs=1e-10)


def test_binary_figures_equal_statsmodels(make: Make) -> None:
    a, b = (make(name, scored(verdicts(seed=seed))) for name, seed in (("a", 1), ("b", 2)))
    check_against_statsmodels(a, b, "right")
    assert only(compare([a, b])).scores[0].mcnemar is not None


def test_figures_of_shares_equal_statsmodels(make: Make) -> None:
    rng = np.random.default_rng(3)
    a, b = (make(name, scored({f"q{i}": float(rng.random()) for i in range(240)}, "f1")) for name in "ab")
    check_against_statsmodels(a, b, "f1")


def test_real_locomo_runs(shared: Path, tmp_path: Path) -> None:
    """Ten conversations give G = 10 and t(9), equal to statsmodels; retrieval alone, so that it is quick."""
    data = str(shared / "data/locomo/locomo10.json")
    runs = []
    for method in ("recency", "random"):
        spec = replace(
            harness.spec(tmp_path), method=method, bench="locomo", data=data, reader="extractive", until="recall"
        )
        runs.append(Path(harness.execute(spec, harness.Quiet())["run"]))
    found = compare(runs)
    score = only(found).scores[0]
    assert (found.unit, score.clusters, score.all.difference.df) == ("conversation", 10, 9)
    assert score.all.difference.method == "cluster-t"
    assert (only(found).only_a, only(found).only_b) == ((), ())
    for name in ("recall_official", "recall@10"):
        check_against_statsmodels(*runs, name)


# --------------------------------------------------------------------------------------------------------------- traps


def figures_of(found: Comparison) -> dict[str, Any]:
    """Everything a comparison says of its scores."""
    told = found.to_json()["runs"][0]
    return {name: told[name] for name in ("scores", "others", "costs", "outcomes")}


def test_questions_sorted_otherwise(make: Make) -> None:
    a, b = scored(verdicts(seed=1)), scored(verdicts(seed=2))
    plain = figures_of(compare([make("a", a), make("b", b)]))
    turned = figures_of(compare([make("a2", a), make("b2", b[::-1])]))
    assert turned == plain
    other = compare([make("a3", a[::-1]), make("b3", b)])
    assert only(other).scores[0].all.difference.low == pytest.approx(plain["scores"][0]["all"]["difference"]["low"])


@pytest.mark.parametrize("side", [0, 1])
def test_a_question_that_is_there_twice_is_refused(make: Make, side: int) -> None:
    runs = [make("a", scored(verdicts(20))), make("b", scored(verdicts(20)))]
    file = runs[side] / "scores.jsonl"
    file.write_text(file.read_text() + file.read_text().splitlines()[3] + "\n")
    with pytest.raises(DataError, match=r"scores.jsonl: line 21: q3 is there twice"):
        compare(runs)


def test_shares_are_never_taken_as_verdicts(make: Make) -> None:
    """One value between 0 and 1 anywhere makes it a share, also for a category in which all happen to be 0 or 1."""
    a, b = verdicts(60, seed=1), verdicts(60, seed=2)
    b["q1"] = 0.999
    found = only(compare([make("a", scored(a, "f1")), make("b", scored(b, "f1"))])).scores[0]
    assert (found.binary, found.mcnemar) == (False, None)
    assert found.lower + found.higher == sum(a[key] != b[key] for key in a)


def test_a_category_of_one_cluster_has_no_interval(make: Make) -> None:
    def rows(seed: int) -> list[Row]:
        return [
            replace(row, category="lone", cluster="conv-7") if int(row.id[1:]) % 3 == 0 else row
            for row in scored(verdicts(90, seed=seed))
        ]

    found = only(compare([make("a", rows(1)), make("b", rows(2))])).scores[0]
    lone = next(one for one in found.categories if one.name == "lone")
    assert (lone.difference.low, lone.a.low, lone.p, lone.adjusted) == (None, None, None, None)
    assert (lone.difference.note, lone.verdict, lone.n) == ("one cluster: no interval", "not shown", 30)
    assert all(one.p is not None for one in found.categories if one.name != "lone")


def test_equal_scores_are_a_tie(make: Make) -> None:
    found = only(compare([make("a", scored(verdicts())), make("b", scored(verdicts()))])).scores[0]
    assert (found.all.difference.value, found.all.p, found.all.verdict) == (0.0, 1.0, "tie")
    assert found.all.difference.note == "every item scores alike"
    assert (found.lower, found.higher, found.sign_flip.p) == (0, 0, 1.0)


def test_all_wrong_against_all_right(make: Make) -> None:
    a, b = ({f"q{i}": value for i in range(60)} for value in (0.0, 1.0))
    runs = [make("a", scored(a)), make("b", scored(b))]
    found = only(compare(runs)).scores[0].all
    assert (found.difference.value, found.difference.low, found.p) == (1.0, None, 2.0**-9)
    assert found.verdict == "better"
    assert only(compare(runs[::-1])).scores[0].all.verdict == "worse"


def test_few_clusters_show_nothing(make: Make) -> None:
    runs = [make(name, scored(verdicts(60, seed=seed), clusters=5)) for seed, name in enumerate("ab")]
    found = only(compare(runs)).scores[0]
    assert (found.clusters, found.all.difference.low, found.all.verdict) == (5, None, "not shown")
    assert "5 clusters are too few" in found.all.difference.note
    assert "5 clusters are too few" in only(compare(runs)).costs["tokens"].note


def test_repeats_are_averaged_before_they_are_compared(make: Make) -> None:
    """Two seeds of one method: means by question, whose error is not that of twice as many questions."""
    seeds, other = [verdicts(120, seed=seed) for seed in (1, 2)], verdicts(120, seed=3)
    repeats = [
        make(f"a{n}", scored(seed, read=(100 + 100 * n, 5)), described={"memory.seed": n})
        for n, seed in enumerate(seeds)
    ]
    b = make("b", scored(other))
    found = compare([repeats, b])
    score = only(found).scores[0]
    assert (found.baseline["repeats"], score.all.n, score.binary, score.mcnemar) == (2, 120, False, None)
    change = np.array([other[key] - (seeds[0][key] + seeds[1][key]) / 2 for key in other])
    low, high, _ = regression(change, [f"conv-{int(key[1:]) % 10}" for key in other])
    assert (score.all.difference.low, score.all.difference.high) == pytest.approx((low, high), abs=1e-10)
    assert [str(one) for one in only(found).differs] == ["seed (0, 1 and 0)"]
    assert only(found).outcomes == {"ok": (240, 120)}
    assert only(found).costs["asked"].a == 120 * 155
    assert only(compare([b, repeats])).scores[0].all.difference.low == pytest.approx(-high, abs=1e-10)


def test_a_question_is_valid_if_it_failed_in_no_repeat(make: Make) -> None:
    rows = scored(dict.fromkeys(verdicts(60), 1.0))
    failed = [replace(rows[0], scores={"right": [None, "ok", "timeout"]}, outcome="timeout", answer=None), *rows[1:]]
    repeats = [make("a0", rows), make("a1", failed, described={"memory.seed": 1})]
    score = only(compare([repeats, make("b", rows)])).scores[0]
    assert score.all.a.value == pytest.approx(59.5 / 60)
    assert score.valid is not None
    assert score.valid.n == 59


def test_repeats_are_of_one_method(make: Make) -> None:
    rows = scored(verdicts(30))
    a, other = make("a", rows), make("b", rows, described={"memory.method": "fancy"})
    with pytest.raises(UserError, match="no repeats of one run: they differ in method"):
        compare([[a, other], a])
    with pytest.raises(UserError, match="named twice"):
        compare([[a, a], other])


def test_a_limit_that_cuts_whole_clusters_is_refused_and_then_said(make: Make) -> None:
    rows = scored(verdicts(100))
    a = make("a", rows)
    b = make(
        "b",
        [row for row in rows if row.cluster < "conv-8"],
        described={"reply.selection": {"limit": "80", "ids": None}},
    )
    with pytest.raises(UserError, match=r"selection by --limit \(none and 80\)"):
        compare([a, b])
    found = only(compare([a, b], force=True))
    assert found.scores[0].cut == ("conv-8", "conv-9")
    assert (found.scores[0].clusters, len(found.only_a), found.only_b) == (8, 20, ())
    assert [str(must) for must in found.forced] == ["selection by --limit (none and 80)"]


def test_micro_and_macro_means_are_both_given(make: Make) -> None:
    def rows(few: float) -> list[Row]:
        many = [Row(f"q{i}", {"right": 1.0}, "many", f"c{i % 8}") for i in range(90)]
        return many + [Row(f"q{i}", {"right": few}, "few", f"c{i % 8}") for i in range(90, 100)]

    found = only(compare([make("a", rows(0.0)), make("b", rows(1.0))])).scores[0]
    assert (found.all.a.value, found.all.b.value) == (0.9, 1.0)
    assert found.macro is not None
    assert (found.macro.a.value, found.macro.b.value, found.macro.difference.value) == (0.5, 1.0, 0.5)


# ------------------------------------------------------------------------------------------------ failures, unmatched


def test_failures_count_zero_over_all_and_not_over_valid(make: Make) -> None:
    a = scored(dict.fromkeys(verdicts(60), 1.0))
    b = [
        replace(row, scores={"right": [None, "ok", "timeout"]}, outcome="timeout", answer=None)
        if row.id in ("q0", "q7")
        else row
        for row in a
    ]
    found = only(compare([make("a", a), make("b", b)]))
    score = found.scores[0]
    assert score.all.b.value == pytest.approx(58 / 60)
    assert score.valid is not None
    assert (score.valid.n, score.valid.b.value, score.valid.difference.value) == (58, 1.0, 0.0)
    assert found.outcomes == {"ok": (60, 58), "timeout": (0, 2)}
    assert only(compare([make("c", a), make("d", a)])).scores[0].valid is None


def test_what_has_no_partner_is_listed(make: Make) -> None:
    rows = scored(verdicts(80))
    rows[5] = replace(rows[5], scores={"right": [None, "not_applicable", "no gold"]})
    found = only(compare([make("a", scored(verdicts(78))), make("b", rows[2:])]))
    score = found.scores[0]
    assert (found.only_a, found.only_b) == (("q0", "q1"), ("q78", "q79"))
    assert (score.only_a, score.only_b, score.dropped) == (("q0", "q1"), ("q78", "q79"), ("q5",))
    assert score.all.n == 78 - 2 - 1


def test_nothing_in_common(make: Make) -> None:
    a, b = make("a", scored({"q1": 1.0})), make("b", scored({"q2": 1.0}))
    with pytest.raises(UserError, match="no question"):
        compare([a, b])


# -------------------------------------------------------------------------------------------------- what must be equal

UNEQUAL: list[tuple[str, dict[str, Any], str]] = [
    ("memory.benchmark", {"memory.benchmark": "other"}, "benchmark (quiz and other)"),
    ("version", {"memory.benchmark_version": 2}, "benchmark version (1 and 2)"),
    ("data", {"memory.data": "e" * 64}, "data digest (dddddddddddd and eeeeeeeeeeee)"),
    ("options", {"memory.options": {"hint": False}}, "option hint (True and False)"),
    ("subset", {"memory.subset": "hard"}, "subset (none and hard)"),
    ("limit", {"reply.selection": {"limit": "5", "ids": None}}, "selection by --limit (none and 5)"),
    ("ids", {"reply.selection": {"limit": None, "ids": ["x"]}}, "selection by --ids (none and 1 ids"),
    ("budget", {"readout.budget": 2000}, "budget (none and 2000)"),
    ("items", {"readout.items": 20}, "items (none and 20)"),
    ("counters", {"readout.counters": ["bytes4"]}, "counters (none and bytes4)"),
    ("view", {"readout.view": "pixels"}, "view (captions and pixels)"),
    ("track", {"track": "answer"}, "track (evidence and answer)"),
    ("prompt", {"reply.prompt": {"name": "answer.v2", "sha256": "b" * 64}}, "prompt (name=answer.v1 sha256=aaaaaaaa"),
]  # fmt: skip


@pytest.mark.parametrize(("described", "words"), [row[1:] for row in UNEQUAL], ids=[row[0] for row in UNEQUAL])
def test_runs_that_were_not_asked_the_same_are_refused(make: Make, described: Mapping[str, Any], words: str) -> None:
    rows = scored(verdicts(30))
    runs = [make("a", rows), make("b", rows, described=described)]
    with pytest.raises(UserError) as refused:
        compare(runs)
    assert words in str(refused.value)
    assert "--force" in str(refused.value)
    (forced,) = only(compare(runs, force=True)).forced
    assert str(forced).startswith(words)


def test_two_judges_are_refused_and_one_is_no_mixture(make: Make) -> None:
    rows = scored(verdicts(30))
    plain = make("a", rows)
    one, two = (make(name, rows, summary={"judge": f"openai:{name}"}) for name in ("x", "y"))
    with pytest.raises(UserError, match=r"judge \(openai:x and openai:y\)"):
        compare([one, two])
    assert only(compare([plain, one])).forced == ()
    rubrics = [{"Judge(a)": {"rubric": f"binary.{version}"}} for version in ("v1", "v2")]
    three, four = (
        make(f"z{at}", rows, summary={"judge": "openai:x", "rubrics": rubric}) for at, rubric in enumerate(rubrics)
    )
    with pytest.raises(UserError, match=r"rubric of Judge\(a\) \(rubric=binary.v1 and rubric=binary.v2\)"):
        compare([three, four])


def test_method_reader_and_seed_may_differ_and_are_told(make: Make) -> None:
    rows = scored(verdicts(30))
    other = {"memory.method": "fancy", "memory.seed": 7, "memory.config": {"k": 3}}
    found = only(compare([make("a", rows), make("b", rows, described=other, summary={"reader": "large"})]))
    assert [str(one) for one in found.differs] == [
        "method (plain and fancy)",
        "reader (toy and large)",
        "seed (0 and 7)",
    ]
    again = only(compare([make("c", rows), make("d", rows, described={"memory.config": {"k": 3}})]))
    assert [str(one) for one in again.differs] == ["-M k (none and 3)"]


def test_every_run_is_held_against_the_baseline(make: Make) -> None:
    rows = scored(verdicts(30))
    runs = [make("a", rows), make("b", rows), make("c", rows, described={"readout.budget": 9})]
    with pytest.raises(UserError, match=r"/a and .*/c differ in budget"):
        compare(runs)


def test_users_mistakes(make: Make, tmp_path: Path) -> None:
    a = make("a", scored(verdicts(30)))
    b = make("b", scored(verdicts(30), "other"))
    with pytest.raises(UserError, match="two runs or more"):
        compare([a])
    with pytest.raises(UserError, match="not a run folder"):
        compare([a, tmp_path / "nowhere"])
    with pytest.raises(UserError, match="no score in common"):
        compare([a, b])
    with pytest.raises(UserError, match="--metric f1: not every run has a score of this name; they share right"):
        compare([a, a], scores=["f1"])
    with pytest.raises(UserError, match="--delta 0"):
        compare([a, a], delta=0)
    manifest = json.loads((b / "manifest.json").read_text())
    del manifest["described"]["readout"]["view"]
    (b / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(UserError, match=r"manifest.json: damaged, `described` lacks 'view'"):
        compare([a, b])
    (b / "summary.json").unlink()
    (b / "DONE").unlink()
    with pytest.raises(UserError, match="not finished"):
        compare([a, b])


# ------------------------------------------------------------------------------------------------------ families, δ


def test_holm_is_over_runs_and_over_all_their_categories(make: Make) -> None:
    runs = [make(name, scored(verdicts(seed=seed))) for seed, name in enumerate("abcd")]
    found = compare(runs)
    overall = [run.scores[0].all for run in found.runs]
    expected = multipletests([one.p for one in overall], method="holm")[1].tolist()
    assert [one.adjusted for one in overall] == pytest.approx(expected, abs=1e-10)
    cells = [one for run in found.runs for one in run.scores[0].categories]
    assert len(cells) == 9
    expected = multipletests([one.p for one in cells], method="holm")[1].tolist()
    assert [one.adjusted for one in cells] == pytest.approx(expected, abs=1e-10)


def test_other_scores_are_explored_by_benjamini_and_hochberg(make: Make) -> None:
    def rows(seed: int) -> list[Row]:
        names = ("right", "x", "y", "z")
        columns = {name: verdicts(seed=10 * seed + at) for at, name in enumerate(names)}
        return [replace(row, scores={n: columns[n][row.id] for n in names}) for row in scored(columns["right"])]

    found = only(compare([make("a", rows(1)), make("b", rows(2))], scores=["y"]))
    assert [one.name for one in found.others] == ["right", "x", "z"]
    expected = multipletests([one.p for one in found.others], method="fdr_bh")[1].tolist()
    assert [one.adjusted for one in found.others] == pytest.approx(expected, abs=1e-10)


def test_how_many_questions_a_difference_takes(make: Make) -> None:
    """Power by statsmodels at the discordance found, times the design effect, the clustered variance over the plain."""
    a, b = verdicts(seed=1), verdicts(seed=2)
    found = only(compare([make("a", scored(a)), make("b", scored(b))], delta=0.05)).scores[0]
    change = np.array([b[key] - a[key] for key in a])
    discordance = (change != 0).mean()
    exact = TTestPower().solve_power(0.05 / np.sqrt(discordance - 0.05**2), power=0.8, alpha=0.05)
    low, high, _ = regression(change, [f"conv-{int(key[1:]) % 10}" for key in a])
    clustered = ((high - low) / 2 / scipy.stats.t.ppf(0.975, 9)) ** 2
    assert found.needed == pytest.approx(exact * max(1, clustered / (change.var() / len(change))), rel=2e-3)
    assert only(compare([make("c", scored(a)), make("d", scored(a))])).scores[0].needed is None
    shares = scored({key: value / 3 for key, value in a.items()})
    assert only(compare([make("e", shares), make("f", scored(b))])).scores[0].needed is None


@pytest.mark.parametrize(
    ("low", "high", "p", "expected"),
    [
        (0.03, 0.09, 0.001, "better"),
        (0.001, 0.009, 0.04, "better"),
        (-0.09, -0.03, 0.001, "worse"),
        (-0.01, 0.01, 0.9, "tie"),
        (-0.01, 0.03, 0.3, "non-inferior"),
        (-0.02, 0.01, 0.5, "not shown"),
        (-0.05, 0.06, 0.8, "not shown"),
        (0.001, 0.05, 0.08, "non-inferior"),  # 0 lies outside, but not after Holm's adjustment
        (0.001, 0.01, 0.08, "tie"),
        (-0.05, -0.001, 0.08, "not shown"),
    ],
)
def test_verdicts(low: float, high: float, p: float, expected: str) -> None:
    assert verdict(Interval((low + high) / 2, low, high, 100, 10, "cluster-t"), p, 0.02) == expected


def test_a_verdict_needs_a_test() -> None:
    assert verdict(Interval(0.3, None, None, 100, 4, "none"), None, 0.02) == "not shown"


# ---------------------------------------------------------------------------------------------------- costs, questions


def test_costs_are_lifecycle_costs_with_the_observation_shared_out(make: Make) -> None:
    rows = scored(verdicts(100))
    dear = [replace(row, read=(200 + int(row.id[1:]) % 7, 5)) for row in rows]
    observed = {f"conv-{i}": 1000 + 10 * i for i in range(10)}
    a = make("a", rows, observed=observed, price=0.01)
    b = make("b", dear, observed={name: 2 * n for name, n in observed.items()}, price=0.02)
    found = only(compare([a, b])).costs
    assert (found["tokens"].a, found["asked"].a) == (100 * 105 + sum(observed.values()), 100 * 105)
    assert found["tokens"].b == pytest.approx(sum(sum(row.read) for row in dear) + 2 * sum(observed.values()))
    assert (found["calls"].a, found["calls"].b, found["calls"].value) == pytest.approx((110, 110, 1.0))
    assert (found["price"].a, found["price"].b, found["price"].value) == pytest.approx((1.10, 2.20, 2.0))
    totals = {name: [105 * 10 + n, sum(sum(row.read) for row in dear if row.cluster == name) + 2 * n]
              for name, n in observed.items()}  # fmt: skip
    below, above = (np.array([pair[side] for pair in totals.values()], dtype=float) for side in (0, 1))
    parts = above / above.sum() - below / below.sum()
    half = scipy.stats.t.ppf(0.975, 9) * np.sqrt(10 / 9 * parts @ parts)
    bounds = np.exp(np.log(above.sum() / below.sum()) + np.array([-half, half]))
    assert (found["tokens"].low, found["tokens"].high) == pytest.approx(tuple(bounds), rel=1e-9)


def test_a_larger_k_of_a_method_is_seen_in_what_it_showed(make: Make) -> None:
    rows = scored(verdicts(60), shown=10)
    more = [replace(row, shown=30 if int(row.id[1:]) else None) for row in rows]
    found = only(compare([make("a", rows), make("b", more)])).costs["items"]
    assert (found.a, found.b, found.value, found.n) == (590, 1770, 3.0, 59)


def test_an_unknown_price_has_no_ratio(make: Make) -> None:
    rows = scored(verdicts(60))
    found = only(compare([make("a", rows), make("b", rows, price=None)])).costs
    assert set(found) == {"tokens", "asked", "calls"}


def test_costs_add_up_to_the_summary_of_a_real_run(tmp_path: Path) -> None:
    summary = harness.run(tmp_path, b={"contexts": 3, "questions": 4}, reader="Toy")
    side = Run(Path(summary["run"]))
    total = sum(sums[kind] for sums in summary["tokens"].values() for kind in ("text", "image", "output"))
    assert sum(cost["tokens"] for cost in side.costs.values()) == pytest.approx(total)
    assert sum(cost["calls"] for cost in side.costs.values()) == pytest.approx(sum(summary["calls"].values()))
    assert len(side.costs) == 12


def test_questions_come_kind_by_kind_worst_first(make: Make) -> None:
    a = dict(zip(("q0", "q1", "q2", "q3", "q4", "q5", "q6"), (1.0, 0.5, 0.0, 0.2, 0.0, 0.7, 0.9), strict=True))
    b = dict(zip(a, (0.2, 0.4, 0.0, 0.9, 0.3, 0.7, 0.1), strict=True))
    changes = only(compare([make("a", scored(a, "f1")), make("b", scored(b, "f1", answer="else"))])).changes
    assert [one.unit for one in changes] == [
        "q6",
        "q0",
        "q1",
        "q2",
        "q3",
        "q4",
        "q5",
    ]  # q6 and q0 lose .8, q6 ends lower
    assert list(dict.fromkeys(one.kind for one in changes)) == list(KINDS)
    first = changes[-1]
    assert (first.text, first.gold, first.native_id) == ("What of q5?", ("gold of q5",), "native q5")
    assert (first.answer_a, first.answer_b, first.outcome_a) == ("something", "else", "ok")


def test_groups_and_live_episodes_are_units_of_their_own(tmp_path: Path) -> None:
    size = {"contexts": 7, "questions": 4}
    a = Path(harness.run(tmp_path / "a", b=size)["run"])
    b = Path(harness.run(tmp_path / "b", b=size, r={"reply": "c3-1"})["run"])
    found = only(compare([a, b], scores=["all_right"]))
    assert (found.scores[0].all.n, found.scores[0].all.b.value) == (14, 0.0)
    assert {one.text for one in found.changes} == {""}
    live = [Path(harness.run(tmp_path / name, bench="Corridor", b={"contexts": 7}, r=reply)["run"])
            for name, reply in (("c", {}), ("d", {"reply": "go 1"}))]  # fmt: skip
    found = only(compare(live, scores=["won"]))
    assert (found.scores[0].all.a.value, found.scores[0].all.b.value) == (1.0, 0.0)
    assert found.scores[0].all.verdict == "worse"


def test_a_run_that_failed_in_parts_is_compared(tmp_path: Path) -> None:
    size = {"contexts": 7, "questions": 4}
    a = Path(harness.run(tmp_path / "a", b=size)["run"])
    b = Path(harness.run(tmp_path / "b", b=size, r={"fail_on": "What is word 1"})["run"])
    found = only(compare([a, b]))
    assert found.outcomes == {"ok": (28, 21), "reader_error": (0, 7)}
    assert found.scores[0].valid is not None
    assert (found.scores[0].all.b.value, found.scores[0].valid.b.value) == (0.75, 1.0)
    wrong = next(one for one in found.changes if one.kind == "regressed")
    assert (wrong.answer_b, wrong.outcome_b) == (None, "reader_error")
    recall = next(one for one in found.others if one.name == "found")
    assert (recall.b.value, recall.p) == (1.0, 1.0)  # valid without an answer
