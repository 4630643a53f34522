"""A run for other tools: tables, their types and words, Hugging Face datasets, and inspect_ai's own reader."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from memharness.report.export import FORMATS, export, frames
from memharness.report.export.rows import TABLES, table
from memharness.run.api import execute, load_summary
from memharness.run.folder import RunFolder
from memharness.run.progress import Quiet
from memharness.run.spec import RunSpec
from memharness.types import UserError
from tests.run.harness import run as run_toys

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / ".venv-peers"
READ = """
import json, sys
from inspect_ai.log import read_eval_log, read_eval_log_sample, read_eval_log_sample_summaries
file = sys.argv[1]
log = read_eval_log(file)
one = read_eval_log_sample(file, id=log.samples[0].id, epoch=1)
header = read_eval_log(file, header_only=True)
print(json.dumps({
    "log": log.model_dump(mode="json"), "one": one.model_dump(mode="json"),
    "header": header.model_dump(mode="json", exclude={"samples"}),
    "summaries": [summary.model_dump(mode="json") for summary in read_eval_log_sample_summaries(file)],
}))
"""


def sample(out: Path, bench: str, **more: Any) -> Path:
    """A finished run on a bundled sample."""
    spec = RunSpec(
        "recency",
        bench,
        reader="extractive",
        out=str(out),
        data=str(ROOT / "benchmarks" / bench.replace("-", "_") / "sample"),
        **more,
    )
    return Path(execute(spec, Quiet())["run"])


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose questions and memory show pictures."""
    return sample(tmp_path_factory.mktemp("gallery"), "mem-gallery", limit="5")


@pytest.fixture(scope="module")
def toys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with group scores and a failure."""
    return Path(run_toys(tmp_path_factory.mktemp("toys"), r={"fail_on": "What is word 1"})["run"])


# ------------------------------------------------------------------------------------------------------------- tables


@pytest.mark.parametrize("name", TABLES)
def test_every_column_is_there_and_typed(gallery: Path, toys: Path, name: str) -> None:
    kinds: Mapping[str, tuple[type, ...]] = {
        "string": (str,), "int64": (int,), "double": (float,), "bool": (bool,),
        "list<string>": (list,), "list<double>": (list,),
    }  # fmt: skip
    for run in (gallery, toys):
        rows = list(table(RunFolder(run), name))
        assert rows
        for row in rows:
            assert list(row) == [column.name for column in TABLES[name]] or set(row) == {c.name for c in TABLES[name]}
            for column in TABLES[name]:
                assert row[column.name] is None or isinstance(row[column.name], kinds[column.type]), column.name
    assert all(column.words for column in TABLES[name])


def test_tables_agree_with_the_summary(gallery: Path, toys: Path) -> None:
    for run in (gallery, toys):
        summary, made = load_summary(run), frames(run)
        assert len(made["questions"]) == summary["n"]
        assert made["questions"]["outcome"].value_counts().to_dict() == summary["outcomes"]
        applies = made["scores"][made["scores"]["status"] != "not_applicable"]
        means = applies.assign(value=applies["value"].fillna(0.0)).groupby("score")["value"].mean().to_dict()
        assert means == pytest.approx({name: one["value"] for name, one in summary["scores"].items()})
        by_phase = made["tokens"].groupby("phase")[["text", "output"]].sum()
        for phase, sums in summary["tokens"].items():
            if any(sums.values()):
                assert by_phase.loc[phase].to_dict() == {kind: sums[kind] for kind in ("text", "output")}


def test_observing_is_counted_once_a_context(tmp_path: Path) -> None:
    run = Path(run_toys(tmp_path)["run"])
    line = {"kind": "embed", "phase": "observe", "status": "ok", "context": "c0", "text": 7, "image": 0, "output": 0,
            "latent": 0, "cached": 0, "reasoning": 0, "hit": False, "price": 0.0}  # fmt: skip
    ledger = RunFolder(run).files("ledger")[0]
    ready = {"kind": "ready", "context": "c0", "session": 1, "items": 3}
    ledger.write_text(json.dumps(ready) + "\n" + (json.dumps(line) + "\n") * 2)
    ledger.with_name("zz.jsonl").write_text(json.dumps(line) + "\n" + json.dumps(line | {"status": "cancelled"}) + "\n")
    (observed,) = [row for row in table(RunFolder(run), "tokens") if row["phase"] == "observe"]
    assert (observed["question"], observed["text"], observed["calls"]) == (None, 14, 2)


def test_a_question_holds_what_was_asked_shown_and_answered(gallery: Path, toys: Path) -> None:
    rows = {row["native_id"]: row for row in table(RunFolder(gallery), "questions")}
    shown = rows["Clock_Mending_Model_Railway:4"]
    assert shown["gold_answers"] == ["D3:IMG_004, D5:IMG_001"]
    assert len(shown["pictures"]) == 1
    assert f"<image {shown['pictures'][0][:12]}>" in shown["text"]
    assert shown["data_state"] == "given"
    assert shown["prompt"].startswith("system: ")
    failed = next(row for row in table(RunFolder(toys), "questions") if row["outcome"] != "ok")
    assert failed["answer"] is None
    assert failed["error"].startswith("ReaderError: ")
    scores = [row for row in table(RunFolder(toys), "scores") if row["score"] == "all_right"]
    assert {row["question"] for row in scores} == {None}
    assert {row["failed"] for row in scores} == {None, "reader_error"}


# -------------------------------------------------------------------------------------------------------------- files


def test_parquet_is_typed_and_explains_itself(gallery: Path, tmp_path: Path) -> None:
    import pandas
    from pyarrow import parquet

    made = export(gallery, "parquet", tmp_path / "p", media=True)
    assert (made.questions, made.pictures) == (5, 3)
    for name, columns in TABLES.items():
        schema = parquet.read_schema(tmp_path / "p" / f"{name}.parquet")
        assert [field.name for field in schema] == [column.name for column in columns]
        assert [field.metadata[b"description"].decode() for field in schema] == [column.words for column in columns]
        assert len(pandas.read_parquet(tmp_path / "p" / f"{name}.parquet")) == len(frames(gallery)[name])
    readme = (tmp_path / "p" / "README.md").read_text()
    assert "recency on mem-gallery, read by extractive" in readme
    assert "| recall@10 |" in readme
    pictures = {file.stem for file in (tmp_path / "p" / "media").iterdir()}
    asked = {sha for row in table(RunFolder(gallery), "questions") for sha in row["pictures"]}
    assert asked <= pictures


def test_csv_reads_back(gallery: Path, tmp_path: Path) -> None:
    export(gallery, "csv", tmp_path / "c")
    with (tmp_path / "c" / "questions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row, want in zip(rows, table(RunFolder(gallery), "questions"), strict=True):
        assert json.loads(row["gold_answers"]) == want["gold_answers"]
        assert row["prompt"] == want["prompt"]
        assert row["abstain"] == str(want["abstain"]).lower()
        assert row["group"] == ""


def test_json_is_one_document(toys: Path, tmp_path: Path) -> None:
    export(toys, "json", tmp_path / "run.json")
    value = json.loads((tmp_path / "run.json").read_text())
    assert value["summary"]["run"] == toys.name
    assert set(value["columns"]) == set(TABLES)
    for name in TABLES:
        assert value[name] == list(table(RunFolder(toys), name))


def test_half_a_surrogate_pair_is_written_as_its_escape(tmp_path: Path) -> None:
    run = Path(run_toys(tmp_path)["run"])
    records = run / "records.jsonl"
    records.write_text(records.read_text().replace('"answer":"c0-0"', r'"answer":"\ud83d half"'))
    export(run, "parquet", tmp_path / "p")
    export(run, "csv", tmp_path / "c")
    export(run, "json", tmp_path / "j.json")
    import pandas

    assert pandas.read_parquet(tmp_path / "p" / "questions.parquet")["answer"][0] == "\\ud83d half"
    assert "\\ud83d half" in (tmp_path / "c" / "questions.csv").read_text()
    assert json.loads((tmp_path / "j.json").read_text())["questions"][0]["answer"] == "\ud83d half"


def test_hugging_face_datasets_load_it(gallery: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="the extra `datasets` is not installed")
    export(gallery, "hf", tmp_path / "hf", media=True)
    cache = str(tmp_path / "cache")
    questions = datasets.load_dataset(str(tmp_path / "hf"), split="test", cache_dir=cache)  # the default table
    assert len(questions) == 5
    assert questions[4]["gold_answers"] == ["D3:IMG_004, D5:IMG_001"]
    scores = datasets.load_dataset(str(tmp_path / "hf"), "scores", split="test", cache_dir=cache)
    assert set(scores["score"]) >= {"f1", "recall@10"}
    media = datasets.load_dataset(str(tmp_path / "hf"), "media", split="test", cache_dir=cache)
    assert len(media) == 3
    assert media[0]["image"].size == (media[0]["width"], media[0]["height"])


# --------------------------------------------------------------------------------------------------------- inspect_ai


def opened(file: Path) -> dict[str, Any]:
    """What inspect_ai reads from a log, in a process that has it. It is not installed beside our pins."""
    if not (PEERS / "inspect_ai").is_dir():
        assert "CI" not in os.environ, "make .venv-peers/.ready: CI has to have it"
        pytest.skip("inspect_ai is not at hand (make .venv-peers/.ready)")
    done = subprocess.run(
        [sys.executable, "-c", READ, str(file)], capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": str(PEERS)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_inspect_ai_opens_a_log(gallery: Path, tmp_path: Path) -> None:
    export(gallery, "eval", tmp_path / "run.eval", media=True)
    read, summary = opened(tmp_path / "run.eval"), load_summary(gallery)
    log = read["log"]
    assert (log["version"], log["status"]) == (2, "success")
    assert (log["eval"]["task"], log["eval"]["model"]) == ("mem-gallery", "extractive")
    assert log["eval"]["solver"] == "recency"
    assert log["eval"]["metadata"]["identity"] == summary["identity"]
    values = {one["name"]: one["metrics"]["mean"]["value"] for one in log["results"]["scores"]}
    assert values == {name: one["value"] for name, one in summary["scores"].items()}
    assert log["results"]["completed_samples"] == 5
    assert log["stats"]["model_usage"]["extractive"]["output_tokens"] == sum(
        sums["output"] for sums in summary["tokens"].values()
    )
    wanted = sorted(table(RunFolder(gallery), "questions"), key=lambda row: row["question"])  # as inspect_ai sorts
    assert [one["id"] for one in log["samples"]] == [one["question"] for one in wanted]
    for sample, want in zip(log["samples"], wanted, strict=True):
        assert sample["output"]["completion"] == want["answer"]
        assert sample["messages"][0]["role"] == "user"
        assert sample["error"] is None
        assert sample["metadata"]["category"] == want["category"]
    scored = {(row["question"], row["score"]): row["value"] for row in table(RunFolder(gallery), "scores")}
    for sample in log["samples"]:
        for name, score in sample["scores"].items():
            assert score["value"] == scored[sample["id"], name]
    shown = next(one["input"][0]["content"] for one in log["samples"] if one["metadata"].get("pictures"))
    assert [part["type"] for part in shown] == ["text", "image"]
    assert shown[1]["image"].startswith("data:image/jpeg;base64,")
    assert read["one"]["id"] == log["samples"][0]["id"]
    assert read["header"]["results"] == log["results"]
    assert {one["id"] for one in read["summaries"]} == {one["id"] for one in log["samples"]}
    assert all(one["completed"] for one in read["summaries"])


def test_inspect_ai_shows_failures_and_odd_ids(toys: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(toys, run)
    first = next(table(RunFolder(run), "questions"))["question"]
    for name in ("records", "gold", "scores"):
        file = run / f"{name}.jsonl"
        file.write_text(file.read_text().replace(first, "../odd id"))
    export(run, "eval", tmp_path / "run.eval")
    read = opened(tmp_path / "run.eval")
    assert read["log"]["results"]["completed_samples"] == 4
    failed = [one for one in read["log"]["samples"] if one["error"]]
    assert len(failed) == 2
    assert failed[0]["error"]["message"].startswith("reader_error: ")
    assert "right" not in failed[0]["scores"]  # a failure has no value; it is the sample's error
    (odd,) = [one for one in read["log"]["samples"] if one["metadata"]["question"] == "../odd id"]
    assert "/" not in odd["id"]
    assert {one["id"] for one in read["summaries"] if one["error"]} == {one["id"] for one in failed}


def test_a_log_of_choices(tmp_path: Path) -> None:
    run = sample(tmp_path, "mmbench", limit="4")
    export(run, "eval", tmp_path / "run.eval")
    (first, *_), wanted = opened(tmp_path / "run.eval")["log"]["samples"], load_summary(run)
    assert len(first["choices"]) >= 2
    assert first["target"] in "ABCD"
    assert wanted["n"] == 4


# ---------------------------------------------------------------------------------------------------------- bad words


def test_bad_words(toys: Path, tmp_path: Path) -> None:
    for words, said in [
        ({"to": "parket"}, r"no such format \(did you mean parquet\?\)"),
        ({"to": "json", "media": True}, "no place for pictures"),
        ({"to": "eval", "out": tmp_path / "log.zip"}, "end with .eval"),
        ({"to": "eval", "out": tmp_path}, "is a folder"),
        ({"to": "csv", "out": tmp_path}, "not empty"),
    ]:
        (tmp_path / "there").write_text("")
        with pytest.raises(UserError, match=said):
            export(toys, **words)  # type: ignore[arg-type]


@pytest.mark.parametrize("to", FORMATS)
def test_a_place_that_cannot_be_written_and_what_is_no_run(toys: Path, tmp_path: Path, to: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="file"):
        export(toys, to, tmp_path / "file" / f"run.{to}")
    with pytest.raises(UserError, match="not a run folder"):
        export(tmp_path, to, tmp_path / f"run.{to}")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["file"]


def test_an_unfinished_run(tmp_path: Path) -> None:
    run = Path(run_toys(tmp_path)["run"])
    (run / "DONE").unlink()
    (run / "summary.json").unlink()
    with pytest.raises(UserError, match="not finished"):
        export(run, "csv", tmp_path / "c")


def test_pictures_that_are_gone(gallery: Path, tmp_path: Path) -> None:
    manifest = json.loads((gallery / "manifest.json").read_text())
    manifest["spec"]["data"] = str(tmp_path / "gone")
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in gallery.iterdir():
        if file.is_file():
            (copy / file.name).write_bytes(file.read_bytes())
    (copy / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(UserError, match="no such file or folder"):
        export(copy, "hf", tmp_path / "hf", media=True)
    assert not (tmp_path / "hf").exists()
