"""MEMO as a method: stages, rows, pre-selection, trained back ends, and whole runs within budget."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from memharness.cli import command_line
from memharness.config import build
from memharness.media import MediaStore
from memharness.methods.memo import Memo
from memharness.methods.memo.config import MemoConfig
from memharness.run.api import execute
from memharness.run.progress import Quiet
from memharness.run.spec import RunSpec
from memharness.store import read_lines
from memharness.types import Image, MethodError, Text, UserError
from tests.methods.kit import FakeKit, HashingEmbedder

from .test_extractor import ITEMS, Says
from .working import ALL, asked, budget, named, opened, paragraph, recalled, turn

QUESTION = asked("Where was the maker of Glass Harbour from?")
SEES: dict[str, Any] = {"pictures": "on"}
BOATS = [paragraph(n, f"Boat {n}", *(f"It sailed the sea in tale {k}." for k in range(5))) for n in range(3)]


async def test_a_readout_says_what_it_shows_and_where_from() -> None:
    readout = await recalled("memo", ITEMS, QUESTION, 40, named("bytes4"))
    (text,) = readout.parts or ()
    assert isinstance(text, Text) and "director from Porto" in text.text
    shown = {item.id: item for item in ITEMS}
    for pointer in readout.evidence:
        assert pointer.part is not None
        part = shown[pointer.item].parts[pointer.part]
        assert isinstance(part, Text) and part.text.strip() in text.text
    trace = json.loads(json.dumps(readout.trace))
    assert trace["candidates"] == {"by": "all", "kept": 6, "of": 6} and trace["limit"] == 40
    assert {unit["shown"] for unit in trace["units"]} <= {"text", "omitted"}
    assert trace["units"][0]["id"] == "u1" and trace["units"][0]["score"] >= trace["units"][1]["score"]


async def test_the_pre_selection_is_explicit_and_reported() -> None:
    for ranker in ("bm25", "dense", "hybrid"):
        readout = await recalled("memo", ITEMS, QUESTION, 400, named("bytes4"), candidates=f"{ranker}:2")
        assert readout.trace["candidates"] == {"by": f"{ranker}:2", "kept": 2, "of": 6}
        assert len({unit["source"] for unit in readout.trace["units"]}) <= 2
        assert "p0" in {unit["source"] for unit in readout.trace["units"]}


async def test_rows_of_the_ablation() -> None:
    neither = await recalled("memo", ITEMS, QUESTION, 40, ALL, row="neither", **SEES)
    (text,) = neither.parts or ()
    assert isinstance(text, Text) and text.text.startswith("Glass Harbour (film): Glass Harbour is a 1961 film")
    assert [unit["source"] for unit in neither.trace["units"]] == [item.id for item in ITEMS]
    assert 38 <= max(counter.text(text.text) for counter in ALL) <= 40  # cut at the budget, between words
    extracted = await recalled("memo", ITEMS, QUESTION, 40, named("nominal28"), row="extractor", **SEES)
    assert {unit["action"] for unit in extracted.trace["units"]} == {"text"}
    assert all(isinstance(part, Text) for part in extracted.parts or ())
    whole = await recalled("memo", BOATS, asked("Which boat sailed?"), 50, named("nominal28"), least=0.0, **SEES)
    assert any(isinstance(part, Image) for part in whole.parts or ())
    assert whole.trace["page"]["template"] in whole.trace["templates"]


async def test_a_page_is_kept_by_content_and_its_hash_is_in_the_trace() -> None:
    memory, kit = await opened("memo", BOATS, least=0.0, **SEES)
    one, two = [await memory.recall(asked("Which boat sailed?"), budget(kit, 50, named("nominal28"))) for _ in range(2)]
    (page,) = [part for part in one.parts if isinstance(part, Image)]
    assert page.sha256 == one.trace["page"]["sha256"] == two.trace["page"]["sha256"]
    assert kit.images.open(page).size == (one.trace["page"]["width"], one.trace["page"]["height"])


@pytest.mark.parametrize(
    "names", [("bytes4",), ("nominal28",), ("qwen3-vl", "nominal28"), ("internvl",), ("openai-tiles",)]
)
async def test_no_readout_is_over_budget_under_named_counters(names: tuple[str, ...]) -> None:
    talk = [turn(n, "Ada", f"2023-05-0{n + 1}T10:00", f"On walk {n} we saw {n + 20} herons.") for n in range(5)]
    for items, words in ((talk, "When did we see 22 herons?"), (ITEMS, "Which maker is older?")):
        for tokens in (1, 40, 128):
            await recalled("memo", items, asked(words), tokens, named(*names), least=0.0, **SEES)


async def test_the_item_budget_holds_and_an_empty_memory_recalls_nothing() -> None:
    memory, kit = await opened("memo", ITEMS)
    readout = await memory.recall(QUESTION, budget(kit, 400, named("bytes4"), items=1))
    assert {pointer.item for pointer in readout.evidence} == {"p0"}
    empty, kit = await opened("memo", [])
    assert (await empty.recall(QUESTION, budget(kit, 128))).parts == ()


async def test_what_comes_later_is_indexed_and_only_that_is_embedded() -> None:
    memory, kit = await opened("memo", ITEMS[:3])
    assert isinstance(kit.embedder, HashingEmbedder) and sum(n for n, _ in kit.embedder.calls) == 6
    await memory.observe(kit.know(ITEMS[3:]))
    await memory.ready()
    assert sum(n for n, _ in kit.embedder.calls) == 12 and memory.stored() == 6
    readout = await memory.recall(asked("What do we know of Person Vale?"), budget(kit, 128))
    assert readout.evidence[0].item == "p4"


async def test_without_a_budget_the_window_of_the_paper_is_the_limit() -> None:
    readout = await recalled("memo", ITEMS, QUESTION, None, named("bytes4"))
    assert readout.trace["limit"] == 4096


async def test_trained_models_are_asked_by_role() -> None:
    extraction = {"evidence": [{"source": "p1", "quotes": ["a director from Porto"]}, {"source": "zz", "quotes": []}]}
    plan = {
        "units": [{"id": "u1", "action": "dual", "confidence": 0.9}],
        "usage": 90,
        "templates": ["columns", "cards"],
    }
    kit = FakeKit(images=MediaStore())
    kit.readers = {"extractor": Says([json.dumps(extraction)]), "manager": Says([json.dumps(plan)])}
    memory, kit = await opened("memo", ITEMS, kit, extractor="model", manager="model", window=8, **SEES)
    readout = await memory.recall(QUESTION, budget(kit, 128, named("nominal28")))
    assert readout.trace["rejected"] == ["zz: its source is not a record"]
    (unit,) = readout.trace["units"]
    assert unit["action"] == unit["shown"] == "dual" and readout.trace["page"]["template"] == "columns"
    assert readout.parts[0] == Text("[u1] Ines Calder: Ines Calder was a director from Porto.") or readout.parts[0].text


async def test_a_manager_that_asks_for_more_than_the_budget_does_not_get_it() -> None:
    greedy = {
        "units": [{"id": f"u{n}", "action": "dual", "confidence": 1} for n in range(1, 7)],
        "usage": 9999,
        "templates": ["table"],
    }
    kit = FakeKit(images=MediaStore())
    kit.readers = {"manager": Says([json.dumps(greedy)])}
    memory, kit = await opened("memo", ITEMS, kit, manager="model", least=0.0, most_units=6, **SEES)
    limits = budget(kit, 60, ALL)
    readout = await memory.recall(QUESTION, limits)
    limits.check(readout, readout.parts)


async def test_a_model_out_of_form_fails_its_question() -> None:
    kit = FakeKit(images=MediaStore(), readers={"extractor": Says(["?"])})
    memory, kit = await opened("memo", ITEMS, kit, extractor="model")
    with pytest.raises(MethodError, match="no reply in form"):
        await memory.recall(QUESTION, budget(kit, 60))


# ------------------------------------------------------------------------------------------------------------- options


def settled(able: Mapping[str, frozenset[str]] | None = None, **options: Any) -> Memo:
    config = build(MemoConfig, options, "-M", "memo")
    return Memo(Memo.settle(config, lambda role: (able or {}).get(role, frozenset())))


def test_pages_follow_what_the_answer_reader_sees() -> None:
    assert settled().features()["pages"] is False
    assert settled({"answer": frozenset({"image"})}).features()["pages"] is True
    assert settled({"answer": frozenset({"image"})}, pictures="off").features()["pages"] is False


def test_a_checkpoint_enters_the_identity_by_content_and_never_by_path(tmp_path: Path) -> None:
    from memharness.config import resolved

    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(b"weights")
    first, second = (resolved(settled(extractor=str(folder)).config) for folder in (one, two))
    assert first == second and str(tmp_path) not in json.dumps(first)
    (two / "model.safetensors").write_bytes(b"others")
    assert resolved(settled(extractor=str(two)).config) != first
    assert resolved(settled().config) != first
    assert settled(extractor=str(one)).features()["extractor_trained"] is True


def test_roles_are_those_that_are_asked() -> None:
    assert settled().roles() == {}
    assert list(settled(extractor="model", manager="model").roles()) == ["extractor", "manager"]
    assert list(settled(extractor="model", manager="model", row="extractor").roles()) == ["extractor"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"candidates": "bm25"}, "expected all, bm25:K, dense:K or hybrid:K"),
        ({"candidates": "bm25:0"}, "expected all, bm25:K, dense:K or hybrid:K"),
        ({"extractor": "/no/such/folder"}, "-M extractor=/no/such/folder: there is no such folder"),
        ({"manager": "models"}, "-M manager=models: there is no such folder"),
        ({"row": "all"}, "row"),
    ],
)
def test_a_mistake_is_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words.replace("|", r"\|")):
        settled(**options)


# ---------------------------------------------------------------------------------------------------------- whole runs


@pytest.mark.parametrize("bench", ["hotpotqa", "2wiki", "locomo", "alfworld"])
def test_no_record_of_a_run_is_over_budget(bench: str, tmp_path: Path) -> None:
    spec = RunSpec(
        "memo", bench, reader="extractive", budget=128, counters=("reader", "nominal28"), out=str(tmp_path), limit="3"
    )
    summary = execute(spec, Quiet())
    assert set(summary["outcomes"]) == {"ok"}
    for _, record in read_lines(Path(summary["run"]) / "records.jsonl"):
        assert record["cost"] and all(tokens <= 128 for tokens in record["cost"].values())
    assert all(0 < tokens <= 128 for tokens in summary["memory_tokens"].values())


def test_a_reader_that_sees_is_given_the_page_and_the_budget_holds_by_every_named_counter(tmp_path: Path) -> None:
    seeing = f"{Path(__file__).with_name('seeing.py')}:Seeing"
    names = ("reader", "nominal28", "qwen2.5-vl")
    options = {"least": 0.0}
    spec = RunSpec(
        "memo", "hotpotqa", seeing, budget=60, counters=names, method_options=options, out=str(tmp_path), limit="6"
    )
    run = Path(execute(spec, Quiet())["run"])
    records = [record for _, record in read_lines(run / "records.jsonl")]
    pages = [record for record in records if "page" in record["trace"]]
    assert pages and all(tokens <= 60 for record in records for tokens in record["cost"].values())
    for record in pages:
        page = record["trace"]["page"]
        assert record["answer"] == f"{page['width']}x{page['height']}"
        assert f"<image {page['sha256'][:12]}>" in record["prompt"]


def test_the_rows_of_the_ablation_run_from_their_configs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    configs = Path(__file__).resolve().parents[3] / "results" / "configs"
    tokens = {}
    for row in ("neither", "extractor", "both"):
        words = ["--config", str(configs / f"memo-{row}.yaml"), "--bench", "hotpotqa", "--reader", "extractive"]
        code = command_line(["run", *words, "--until", "recall", "--limit", "3", "--out", str(tmp_path), "--json"])
        said = json.loads(capfd.readouterr().out)
        assert code == 0 and said["config"]["row"] == row and said["budget"] == 128
        tokens[row] = said["memory_tokens"]["nominal28+bytes4"]
    assert max(tokens.values()) <= 128 and tokens["extractor"] < tokens["neither"]
