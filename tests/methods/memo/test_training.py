"""Training end to end: what is learned, where it goes, and that a killed training goes on as if nothing had been."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from memharness.cli import command_line
from memharness.media import MediaStore
from memharness.methods.memo import target, training
from memharness.methods.memo.recipe import Recipe
from memharness.methods.memo.samples import Sample, read_samples
from memharness.methods.memo.training import IGNORED, Folder, collate, encode_samples, train
from memharness.types import UserError, parts_text
from tests.methods.memo.test_supervision import entry, hotpot
from tests.methods.memo.tiny import CUES, cue_rows, make_model, write_rows

STEPS, LEAST = 320, 0.8


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Visible-cue samples: 4,000 to learn and 200 held out, which share no name and no wording."""
    folder = tmp_path_factory.mktemp("rows")
    write_rows(folder / "train.jsonl", cue_rows("train", 4000, units=1))
    write_rows(folder / "held.jsonl", cue_rows("held", 200, units=1))
    return folder


@pytest.fixture(scope="module")
def samples(rows: Path) -> list[Sample]:
    return read_samples(rows / "train.jsonl", "manager")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory, samples: list[Sample]) -> Path:
    texts = [f"{parts_text(sample.request.parts())}\n{sample.target}" for sample in samples]
    return make_model(tmp_path_factory.mktemp("tiny") / "model", texts, width=64)


@pytest.fixture
def short(tiny: Path, samples: list[Sample]) -> Any:
    """Six quick steps; a checkpoint every second."""

    def run(folder: Path, held: int = 4, **changes: Any) -> training.Trained:
        values = {"steps": 6, "batch": 2, "learning_rate": 1e-3, "log_every": 1, "save_every": 2, **changes}
        return train(tiny, None, samples[:32], samples[32 : 32 + held], Recipe(**values), Folder(folder))

    return run


def weights(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return dict(load_file(folder / "model" / "model.safetensors"))


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(one[name].equal(other[name]) for name in one)


def curve(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "curve.jsonl").read_text().splitlines()]


# ------------------------------------------------------------------------------------------------ what is in the loss


def test_the_loss_is_over_the_target_and_its_end_alone(tiny: Path, samples: list[Sample]) -> None:
    import transformers

    from memharness.readers.wording import Wording

    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny)
    encoded, left_out = encode_samples(samples[:3], Wording(tokenizer), 1024)
    assert left_out == 0
    batch = collate(encoded)
    for row, sample in enumerate(samples[:3]):
        learned = batch["labels"][row][batch["labels"][row] != IGNORED].tolist()
        assert tokenizer.decode(learned) == f"{sample.target}<|end|>"
        shown = batch["input_ids"][row][batch["attention_mask"][row] == 1].tolist()
        assert shown == encoded[row].ids
        assert tokenizer.decode(shown[: -len(learned)]).endswith("<|assistant|>")
        assert not batch["attention_mask"][row, len(shown) :].any()


def test_long_samples_are_left_out_and_counted(tiny: Path, samples: list[Sample]) -> None:
    import transformers

    from memharness.readers.wording import Wording

    wording = Wording(transformers.AutoTokenizer.from_pretrained(tiny))
    lengths = [len(one.ids) for one in encode_samples(samples[:9], wording, 1024)[0]]
    kept, left_out = encode_samples(samples[:9], wording, sorted(lengths)[4])
    assert left_out == sum(length > sorted(lengths)[4] for length in lengths) > 0
    assert all(len(one.ids) <= sorted(lengths)[4] for one in kept)
    with pytest.raises(UserError, match=rf"-T length=16: every sample is longer, the shortest has {min(lengths)}"):
        encode_samples(samples[:9], wording, 16)


# ------------------------------------------------------------------------------------------------------ what is saved


def test_a_killed_training_ends_with_the_same_weights(
    tmp_path: Path, short: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On one CPU thread in f32, bit for bit: weights, optimizer, schedule, order of samples and curve."""
    short(tmp_path / "whole")
    made = training._curve

    def killing(*words: Any) -> Any:
        callback = made(*words)
        logged = callback.on_log

        def on_log(args: Any, state: Any, control: Any, **more: Any) -> None:
            logged(args, state, control, **more)
            if state.global_step == 5:
                raise KeyboardInterrupt

        callback.on_log = on_log
        return callback

    monkeypatch.setattr(training, "_curve", killing)
    with pytest.raises(KeyboardInterrupt):
        short(tmp_path / "killed")
    monkeypatch.setattr(training, "_curve", made)
    checkpoints = Folder(tmp_path / "killed").checkpoints
    assert training.last_checkpoint(checkpoints) == checkpoints / "checkpoint-4"
    (checkpoints / "checkpoint-6").mkdir()  # half written
    assert short(tmp_path / "killed").steps == 6
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "killed"))
    assert curve(tmp_path / "whole") == curve(tmp_path / "killed")
    assert [line["step"] for line in curve(tmp_path / "killed")] == [1, 2, 3, 4, 5, 6]


def test_the_seed_decides(tmp_path: Path, short: Any) -> None:
    for name, seed in (("one", 1), ("again", 1), ("other", 2)):
        short(tmp_path / name, seed=seed, steps=2)
    assert same(weights(tmp_path / "one"), weights(tmp_path / "again"))
    assert not same(weights(tmp_path / "one"), weights(tmp_path / "other"))


def test_lora_is_merged_into_an_ordinary_checkpoint(tmp_path: Path, short: Any, tiny: Path) -> None:
    pytest.importorskip("peft")
    from safetensors.torch import load_file

    from memharness.readers.hf import HFConfig, HFReader

    short(tmp_path / "lora", how="lora", lora_targets="q_proj, v_proj", learning_rate=0.05)
    found, base = weights(tmp_path / "lora"), dict(load_file(tiny / "model.safetensors"))
    assert found.keys() == base.keys()
    changed = {name for name in found if not found[name].equal(base[name])}
    assert changed == {name for name in base if "q_proj" in name or "v_proj" in name}
    assert not (tmp_path / "lora" / "model" / "adapter_config.json").exists()
    HFReader(str(tmp_path / "lora" / "model"), HFConfig(), MediaStore())  # refuses what is no model


def test_bf16_is_mixed_and_weights_stay_f32(tmp_path: Path, short: Any) -> None:
    import torch

    short(tmp_path / "bf16", dtype="bf16", steps=2)
    assert {tensor.dtype for tensor in weights(tmp_path / "bf16").values()} == {torch.float32}


# --------------------------------------------------------------------------------------------------- what goes wrong


def test_lora_without_peft_says_how_to_install_it(tmp_path: Path, short: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(UserError, match=r"-T how=lora: needs peft.*memharness-bench\[train\]"):
        short(tmp_path, how="lora")


def test_layers_that_do_not_exist_are_named(tmp_path: Path, short: Any) -> None:
    pytest.importorskip("peft")
    with pytest.raises(UserError, match=r"-T lora_targets=q_prj"):
        short(tmp_path, how="lora", lora_targets="q_prj")


def test_out_of_memory_says_what_to_lower(tmp_path: Path, short: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch
    import transformers

    def fail(*words: Any, **more: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(transformers.Trainer, "train", fail)
    with pytest.raises(UserError, match=r"out of memory with 2 samples of up to \d+ tokens .*-T batch"):
        short(tmp_path)


def test_a_loss_that_is_no_number_stops_the_training(tmp_path: Path, short: Any) -> None:
    with pytest.raises(UserError, match=r"the loss is (nan|inf) at step \d+: lower -T learning_rate"):
        short(tmp_path, learning_rate=1e30, schedule="constant", warmup=0.0)


def test_a_model_without_chat_template_is_refused(tmp_path: Path, tiny: Path, samples: list[Sample]) -> None:
    import shutil

    bare = tmp_path / "bare"
    shutil.copytree(tiny, bare)
    (bare / "chat_template.jinja").unlink()
    with pytest.raises(UserError, match="has no chat template"):
        train(bare, None, samples[:4], [], Recipe(steps=1), Folder(tmp_path / "out"))


def test_a_folder_of_another_training_is_left_alone(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "out")
    folder.begin({"role": "manager", "recipe": {"batch": 1}}, fresh=False)
    folder.begin({"role": "manager", "recipe": {"batch": 1}}, fresh=False)
    with pytest.raises(UserError, match=r"holds a training with other settings \(recipe\).*--fresh"):
        folder.begin({"role": "manager", "recipe": {"batch": 2}}, fresh=False)
    folder.begin({"role": "manager", "recipe": {"batch": 2}}, fresh=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("words")
    with pytest.raises(UserError, match="is not empty and holds no training"):
        Folder(tmp_path / "mine").begin({}, fresh=True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--bench", "hotpotqa"], "name the data with --data PATH"),
        (["--bench", "hotpotqa", "--data", "gone.json", "--reader", "extractive"], "--data gone.json: no such file"),
        (["--bench", "hotpotqa", "--data", "."], "labels need a frozen reader; name one with --reader R"),
        ([], "no samples at .*samples.jsonl; give --samples FILE, or --bench and --data"),
        (["--samples", "gone.jsonl"], "no samples at gone.jsonl"),
        (["-T", "bach=1"], r"-T bach: .*did you mean batch.*TRAINING\.md"),
        (["--recipe", "big"], "--recipe big: no such recipe"),
        (["--nope"], "No such option: --nope"),
    ],
)
def test_the_command_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    import re

    role = "memo-extractor" if words[:2] == ["--bench", "hotpotqa"] and len(words) == 2 else "memo-manager"
    assert command_line(["train", role, "--out", str(tmp_path / "out"), *words]) == 2
    assert re.search(said, capsys.readouterr().err)


# --------------------------------------------------------------------------------------------------- what is learned


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory, rows: Path, tiny: Path) -> Path:
    """A manager trained by the command."""
    out = tmp_path_factory.mktemp("learned") / "out"
    values = {"steps": STEPS, "batch": 16, "accumulate": 1, "learning_rate": 4e-3, "warmup": 0.1, "log_every": 20}
    words = [word for name, value in values.items() for word in ("-T", f"{name}={value}")]
    files = ["--samples", str(rows / "train.jsonl"), "--held-out", str(rows / "held.jsonl")]
    assert command_line(["train", "memo-manager", "--model", str(tiny), "--out", str(out), *files, *words]) == 0
    return out


@pytest.mark.timeout(900)
def test_a_small_model_learns_visible_cues_for_names_and_wordings_it_never_saw(learned: Path) -> None:
    report = json.loads((learned / "report.json").read_text())
    figures = report["test"]
    assert (figures["samples"], report["steps"]) == (200, STEPS)
    assert figures["accuracy"] >= LEAST
    assert figures["majority_accuracy"] < 0.4
    assert figures["in_form"] >= LEAST
    first, last = curve(learned)[0], curve(learned)[-1]
    assert last["loss"] < 0.1 * first["loss"]
    assert {path.name for path in learned.iterdir()} == {"model", "curve.jsonl", "report.json", "settings.json"}


@pytest.mark.timeout(900)
def test_the_saved_model_answers_through_the_methods_own_call(learned: Path, rows: Path) -> None:
    from memharness.methods.memo import manager
    from memharness.methods.memo.units import EvidenceUnit
    from memharness.readers.hf import HFConfig, HFReader
    from memharness.types import Question, Text

    given = cue_rows("held", 60, units=1, seed=7)

    async def ask() -> list[Any]:
        reader = HFReader(str(learned / "model"), HFConfig(), MediaStore())
        await reader.start()
        try:
            calls = []
            for row in given:
                question = Question(row["id"], "c", (Text(row["question"]),))
                units = [
                    EvidenceUnit(one["id"], one["content"], ((0, len(one["content"])),), "p0") for one in row["units"]
                ]
                calls.append(manager.ask(reader, question, units, row["budget"]))
            return [plan for plan, _ in await asyncio.gather(*calls)]
        finally:
            await reader.close()

    plans = asyncio.run(ask())
    wanted = [{one["id"]: one["action"] for one in row["plan"]["units"]} for row in given]
    right = sum(plan.actions == actions for plan, actions in zip(plans, wanted, strict=True))
    assert right >= LEAST * len(given)


@pytest.mark.model
@pytest.mark.timeout(900)
def test_the_saved_model_is_the_manager_of_a_run(
    learned: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`-M manager=DIR/model`: every unit's action in the records is what the cue in its words says."""
    given = cue_rows("held", 30, units=1, seed=11)
    entries = [
        {
            "_id": row["id"],
            "question": row["question"],
            "answer": "none",
            "supporting_facts": [["", 0]],
            "context": [["", [row["units"][0]["content"]]]],
        }
        for row in given
    ]
    words = ["run", "--method", "memo", "--bench", "hotpotqa", "--data", str(hotpot(tmp_path, *entries))]
    words += ["--reader", "extractive", "--budget", "128", "-M", f"manager={learned / 'model'}", "--out", str(tmp_path)]
    assert command_line([*words, "--json"]) == 0
    (file,) = (tmp_path / "runs").glob("*/records.jsonl")
    records = [json.loads(line) for line in file.read_text().splitlines()]
    said = [[unit["action"] for unit in record["trace"]["units"]] for record in records]  # in the data's order
    right = sum(actions == [row["plan"]["units"][0]["action"]] for actions, row in zip(said, given, strict=True))
    assert right >= LEAST * len(given)


@pytest.mark.timeout(900)
def test_a_finished_training_is_not_done_again(
    learned: Path, rows: Path, tiny: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = json.loads((learned / "settings.json").read_text())["recipe"]
    monkeypatch.setattr(training, "train", lambda *words: pytest.fail("trained again"))
    words = ["train", "memo-manager", "--model", str(tiny), "--out", str(learned), "--json"]
    words += ["--samples", str(rows / "train.jsonl"), "--held-out", str(rows / "held.jsonl")]
    values = [word for name, value in settings.items() for word in ("-T", f"{name}={value}")]
    assert command_line([*words, *values]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((learned / "report.json").read_text())
    assert command_line([*words, *values, "-T", "seed=5"]) == 2
    assert "other settings (recipe)" in capsys.readouterr().err


@pytest.mark.timeout(900)
def test_an_extractor_is_trained_saved_and_assessed_by_the_command(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The whole way from a benchmark's files; two steps teach nothing, and the figures say so."""
    entries = [
        entry(
            f"q{n}",
            question=f"Where was the founder of house {n} born?",
            supporting_facts=[[f"House {n}", 0], [f"Reis {n}", 0]],
            context=[[f"Reis {n}", [f"Reis {n} was born in Porto."]], [f"House {n}", [f"Reis {n} founded house {n}."]]],
        )
        for n in range(40)
    ]
    words = ["train", "memo-extractor", "--bench", "hotpotqa", "--data", str(hotpot(tmp_path, *entries)), "--json"]
    words += ["--model", str(tiny), "--out", str(tmp_path / "out"), "-T", "steps=2", "-T", "batch=1", "--assess", "2"]
    assert command_line(words) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["test"].keys() == {"samples", "in_form", "exact", "sources", "characters"}
    assert report["test"]["exact"] == 0
    assert report["samples"] == {**report["samples"], "left out": 0}
    assert (tmp_path / "out" / "model" / "config.json").is_file()
    kept = read_samples(tmp_path / "out" / "samples.jsonl", "extractor")
    assert all(target.read_extraction(one.target, one.ground) for one in kept)  # type: ignore[arg-type]


def test_cues_are_disjoint() -> None:
    """What the two sets share is the cues, the form and nothing else."""
    words = {
        kind: {
            word for row in cue_rows(kind, 300, units=1) for unit in row["units"] for word in unit["content"].split()
        }
        for kind in ("train", "held")
    }
    assert words["train"] & words["held"] == {cue for cues in CUES.values() for cue in cues}
