"""The method whole, on tiny models: exact with the trigger off, complete records, ledgers that sum, bounded memory."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from memharness.media import MediaStore
from memharness.methods.l2vmas import L2VMAS
from memharness.methods.l2vmas.config import L2VMASConfig, ModulesConfig
from memharness.methods.l2vmas.dual import DualMemory
from memharness.methods.l2vmas.modules import Shape, content, fresh, load, save
from memharness.methods.l2vmas.synthesis import Means
from memharness.methods.l2vmas.turn import Speaker
from memharness.reader import Message, Request, Sampling
from memharness.readers.hf import HFConfig, HFReader
from memharness.run.api import execute
from memharness.run.kit import DeviceThread
from memharness.run.progress import Quiet
from memharness.run.spec import RunSpec
from memharness.types import Text, UserError
from tests.readers.tiny import tiny_model

QUICK = {"turns": 3, "agent_tokens": 24, "window": 4, "threshold": 0.0}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.getbasetemp() / "tiny"


def memory(**more: Any) -> DualMemory:
    options = {"capacity": 50, "k": 5, "norm": None, "other": True, "banks": ("perception", "thinking"), **more}
    return DualMemory(Means(4, 4), **options)


def asked(text: str = "Tell a story of the sea.", tokens: int = 40) -> Request:
    return Request((Message("user", (Text(text),)),), Sampling(max_tokens=tokens))


async def test_without_triggering_it_is_plain_greedy_decoding(models: Path, tmp_path: Path) -> None:
    reader = HFReader(str(tiny_model("text", models)), HFConfig(dtype="f32"), MediaStore(tmp_path / "files.sqlite"))
    await reader.start()
    try:
        plain = await reader.generate(asked())
        held = memory()
        off = L2VMASConfig(**QUICK, triggering=False).settled()
        quiet = await Speaker(reader, DeviceThread(), off).speak(asked(), held, random.Random(0))
        assert (quiet.reply.text, quiet.reply.usage) == (plain.text, plain.usage)
        assert quiet.injections == [] and len(quiet.tokens) == len(quiet.states) == plain.usage.output
        assert sum(map(len, quiet.chunks)) == plain.usage.output

        on = L2VMASConfig(**QUICK).settled()
        empty = await Speaker(reader, DeviceThread(), on).speak(asked(), held, random.Random(0))
        assert (empty.reply.text, empty.injections, held.calls) == (plain.text, [], 0)  # nothing to give

        held.think(quiet.chunks)
        spoken = await Speaker(reader, DeviceThread(), on).speak(asked(), held, random.Random(0))
        assert spoken.injections and held.calls == len(spoken.injections)
        assert spoken.reply.usage.latent == 4 * len(spoken.injections)
        places = [injection.after for injection in spoken.injections]
        assert all(later - earlier >= 4 for earlier, later in zip([4, *places], places, strict=False))
        assert spoken.tokens[: places[0]] == quiet.tokens[: places[0]]
    finally:
        await reader.close()


def run(tmp_path: Path, model: Path, bench: str, **options: Any) -> tuple[dict[str, Any], list[dict[str, Any]], Path]:
    spec = RunSpec(
        method="l2vmas", bench=bench, reader=f"hf:{model}", reader_options={"dtype": "f32"}, limit="2", max_tokens=16,
        method_options={**QUICK, **options}, out=str(tmp_path),
    )  # fmt: skip
    summary = execute(spec, Quiet())
    folder = Path(summary["run"])
    records = [json.loads(line) for line in (folder / "records.jsonl").read_text("utf-8").splitlines()]
    return summary, records, folder


def test_a_memory_of_words_alone_is_bounded(models: Path, tmp_path: Path) -> None:
    options = {"capacity": 3, "chunk": 5, "merged": 2, "turns": 5}
    _, records, _ = run(tmp_path, tiny_model("text", models), "hotpotqa", **options)
    for record in records:
        assert record["outcome"] == "ok"
        told = record["trace"]["memory"]
        assert (told["perception"], told["thinking"]) == (0, 3)
        assert told["most_vectors"] <= 4 * 6  # one unit more than the capacity while room is made


def test_trained_modules_are_loaded_and_held_to_the_model(models: Path, tmp_path: Path) -> None:
    folder = tmp_path / "modules"
    shape, made = Shape(32, 8, 8), ModulesConfig(inner=16, layers=1, heads=2, gate=4, positions=64)
    save(fresh(shape, made, 1), folder, shape, made, {"stage": 1})
    first = content(folder)
    model = tiny_model("text", models)
    summary, records, run_folder = run(tmp_path / "runs", model, "hotpotqa", modules=str(folder))
    assert summary["outcomes"] == {"ok": 2} and any(step["memory"] for step in records[0]["trace"]["steps"])
    manifest = (run_folder / "manifest.json").read_text("utf-8")
    assert first in manifest and '"modules_trained": true' in manifest.replace("True", "true")
    for shape_now, words in ((Shape(48, 8, 8), "the model they were trained with"), (Shape(32, 4, 8), "-M length")):
        with pytest.raises(UserError, match=words):
            load(folder, shape_now)
    (folder / "modules.safetensors").write_bytes(b"x")
    assert content(folder) != first
    with pytest.raises(UserError, match=r"modules\.safetensors: .*train the modules again"):
        load(folder, shape)
    (folder / "modules.json").write_text("{}")
    with pytest.raises(UserError, match=r"modules\.json: shape or config"):
        content(folder)
    with pytest.raises(UserError, match="-M modules takes the folder"):
        content(tmp_path)


def test_readings() -> None:
    plain, literal = L2VMASConfig().settled(), L2VMASConfig(preset="paper-literal", match=True).settled()
    assert (plain.trigger, plain.other, plain.match, plain.hub) == ("rise", True, True, "last")
    assert (literal.trigger, literal.other, literal.match, literal.hub) == ("literal", False, True, "both")
    assert not L2VMAS(plain).features()["modules_trained"]


def test_agents_of_different_models_are_refused(models: Path, tmp_path: Path) -> None:
    spec = RunSpec(
        method="l2vmas", bench="hotpotqa", reader=f"hf:{tiny_model('text', models)}", limit="1", out=str(tmp_path),
        models={"agent2": f"hf:{tiny_model('qwen3_vl', models)}"}, method_options=QUICK,
    )  # fmt: skip
    with pytest.raises(UserError, match="all agents of l2vmas must be one model"):
        execute(spec, Quiet())
