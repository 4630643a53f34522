"""Training: advantages and draws by hand, a policy that is its own at the first pass, resuming, the command, GQA."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pillow

import memharness.benchmarks
from memharness.cli import command_line
from memharness.media import MediaStore
from memharness.methods.l2vmas.banks import Unit
from memharness.methods.l2vmas.config import L2VMASConfig, ModulesConfig, TrainingConfig
from memharness.methods.l2vmas.learner import Learner, Rollout, advantages, linear
from memharness.methods.l2vmas.modules import Shape, fresh, load
from memharness.methods.l2vmas.rollout import DrawnMemory, plackett_luce
from memharness.methods.l2vmas.synthesis import Means
from memharness.methods.l2vmas.tasks import gqa, gqa_score
from memharness.methods.l2vmas.training import CURVE, PROGRESS, STATE, Stage, Trainer, _drawn
from memharness.methods.vmas.training import Thread
from memharness.reader import Message, Request, Sampling
from memharness.readers.hf import HFConfig, HFReader
from memharness.types import DataError, Text, UserError
from tests.readers.tiny import tiny_model

SAMPLE = Path(memharness.benchmarks.__file__).parent / "hotpotqa/sample/hotpot_sample.json"


def test_advantages_by_hand() -> None:
    rewards, values = torch.tensor([0.0, 0.0, 1.0]), torch.tensor([0.5, 0.25, 0.5])
    # δ = 0 + .5 · .25 − .5, 0 + .5 · .5 − .25, 1 − .5; then backwards with γλ = .5 · .5
    assert advantages(rewards, values, 0.5, 0.5).tolist() == pytest.approx([-0.34375, 0.125, 0.5])
    assert advantages(rewards, torch.zeros(3), 1.0, 1.0).tolist() == [1.0, 1.0, 1.0]
    assert [linear(done, 100) for done in (0, 25, 100, 130)] == [1.0, 0.75, 0.0, 0.0]


def test_plackett_luce() -> None:
    scores = torch.tensor([0.0, math.log(2.0), math.log(3.0)])  # 1 : 2 : 3
    assert plackett_luce(scores, [2]).exp().item() == pytest.approx(3 / 6)
    assert plackett_luce(scores, [2, 0]).exp().item() == pytest.approx(3 / 6 * 1 / 3)
    assert plackett_luce(scores, [2, 0, 1]).item() == 0.0  # all of them: nothing was chosen


def test_units_are_drawn_as_the_scores_say() -> None:
    rng = random.Random(0)
    memory = DrawnMemory(
        Means(1, 1), capacity=9, k=1, norm=None, other=True, banks=("thinking",), rng=rng, temperature=0.5, gate=False
    )
    keys = [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0)]
    memory.thinking.units = [Unit(torch.tensor(key), torch.tensor([key])) for key in keys]
    window = torch.tensor([[1.0, 0.0]])
    for _ in range(3000):
        assert memory.call(window) is not None
    drawn = Counter(draw.chosen[0] for draw in memory.noted)
    weights = [math.exp(cosine / 0.5) for cosine in (1.0, 0.0, -1.0)]
    for place, weight in enumerate(weights):
        assert drawn[place] / 3000 == pytest.approx(weight / sum(weights), abs=0.03)


def test_stages() -> None:
    assert TrainingConfig(stage=1).of_stage().trained() == ("compress", "merging", "refining")
    assert TrainingConfig(stage=1, literal=True).trained() == ("compress", "merging")
    assert TrainingConfig(stage=2).trained() == ("compress", "refining", "gate")
    third = TrainingConfig(stage=3, learning_rate=1e-3).of_stage()
    assert (third.clip_range, third.gae_lambda, third.steps, third.learning_rate) == (0.1, 0.98, 50_000, 1e-3)


# ------------------------------------------------------------------------------------------------------------ a trainer


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model("text", tmp_path_factory.getbasetemp() / "tiny")


def asked(text: str) -> Request:
    return Request((Message("user", (Text(text),)),), Sampling(max_tokens=6))


async def two_turns(stage: Stage) -> float:
    await stage.speak(asked("The cat sat on the mat."))
    reply = await stage.speak(asked("Where was it taken?"))
    return float(len(reply.text) % 2)


async def trainer(model: Path, folder: Path, **training: Any) -> tuple[Trainer, HFReader]:
    reader = HFReader(str(model), HFConfig(dtype="f32"), MediaStore(folder.parent / "files.sqlite"))
    await reader.start()
    made = ModulesConfig(inner=16, layers=1, heads=2, gate=4)
    team = L2VMASConfig(window=2, length=2, merged=2, capacity=2, k=1).settled()
    options = {"n_steps": 8, "num_envs": 2, "n_epochs": 2, "mini_batch_size": 4, "rate": 1.0, "learning_rate": 1e-2}
    config = TrainingConfig(**{"stage": 1, "steps": 60, **options, **training}).of_stage()
    shape = Shape(reader.width, 2, 2)
    return Trainer(reader, Thread(), fresh(shape, made, 0), shape, made, team, config, folder), reader


async def test_scores_are_those_of_the_rollout_until_the_modules_move(model: Path, tmp_path: Path) -> None:
    made, reader = await trainer(model, tmp_path / "out")
    try:
        learner = Learner(made.modules, reader, made.device, made.config, norm=reader.norm)
        turns, reward = await made._one(two_turns, 0, 0, reader.norm)
        rolled = await learner.judge([Rollout(turns, reward, None)])
        assert rolled and reward in (0.0, 1.0)
        for actions in rolled:
            (again,) = await learner.scores([actions.trace], gradients=True)
            assert torch.allclose(again.detach(), actions.scores, atol=1e-5)
            assert (
                len(again)
                == len(actions.states)
                == len(actions.trace.tokens) - actions.trace.draws[0].after + len(actions.trace.draws)
            )
        before = {name: p.clone() for name, p in made.modules.named_parameters()}
        told = await learner.learn(rolled, iter([range(len(rolled))] * 2))
        assert told["passes"] >= 1 and told["kl"] >= -1e-6
        moved = {name.split(".")[0] for name, p in made.modules.named_parameters() if not torch.equal(p, before[name])}
        assert "refining" in moved and "gate" not in moved
    finally:
        await reader.close()


async def test_turns_scored_beside_each_other_are_those_scored_alone(model: Path, tmp_path: Path) -> None:
    made, reader = await trainer(model, tmp_path / "out", stage=2, gate_gradient="score")
    try:
        learner = Learner(made.modules, reader, made.device, made.config, norm=reader.norm)

        async def long(stage: Stage) -> float:
            await stage.see(torch.randn(3, 2, reader.width, generator=torch.Generator().manual_seed(0)))
            for text in ("The cat sat on the mat.", "Yes.", "Where was it taken?"):
                await stage.speak(replace(asked(text), sampling=Sampling(max_tokens=14)))
            return 1.0

        eager = replace(made, team=made.team.model_copy(update={"threshold": 0.0}))
        rollouts = [Rollout(*await eager._one(long, 0, number, reader.norm), None) for number in range(3)]
        traces = [trace for rollout in rollouts for trace in rollout.turns if trace.draws]
        assert len(traces) >= 3 and any(len(draw.chosen) < len(draw.bank) for trace in traces for draw in trace.draws)
        together = await learner.scores(traces, gradients=True)
        alone = [(await learner.scores([trace], gradients=True))[0] for trace in traces]
        slopes = []
        for scores in (together, alone):
            for now, then in zip(scores, alone, strict=True):
                assert torch.allclose(now, then, atol=1e-5)
            torch.cat(list(scores)).square().sum().backward()
            slopes.append([p.grad.clone() for p in learner.modules.parameters() if p.grad is not None])
            learner.optimizer.zero_grad(set_to_none=True)
        assert len(slopes[0]) == len(slopes[1]) > 0
        assert all(torch.allclose(now, then, atol=1e-4, rtol=1e-3) for now, then in zip(*slopes, strict=True))
    finally:
        await reader.close()


async def test_a_stopped_training_goes_on_as_if_it_had_not_been(model: Path, tmp_path: Path) -> None:
    whole, reader = await trainer(model, tmp_path / "whole")
    try:
        await whole.train([two_turns])
        lines = (tmp_path / "whole" / CURVE).read_text("utf-8").splitlines()
        assert len(lines) >= 3 and json.loads(lines[-1])["actions"] >= 60

        def stop(line: dict[str, Any]) -> None:
            if line["update"] == 2:
                raise KeyboardInterrupt

        halves, second = await trainer(model, tmp_path / "halves")
        await second.close()
        with pytest.raises(KeyboardInterrupt):
            await Trainer(reader, halves.device, halves.modules, halves.shape, halves.made, halves.team, halves.config,
                          halves.folder).train([two_turns], stop)  # fmt: skip
        again, third = await trainer(model, tmp_path / "halves")
        await third.close()
        await Trainer(reader, again.device, again.modules, again.shape, again.made, again.team, again.config,
                      again.folder).train([two_turns])  # fmt: skip
        for name, tensor in load(tmp_path / "whole", whole.shape).state_dict().items():
            assert torch.allclose(tensor, load(tmp_path / "halves", whole.shape).state_dict()[name], atol=1e-6), name
        assert len((tmp_path / "halves" / CURVE).read_text("utf-8").splitlines()) == len(lines)

        other, fourth = await trainer(model, tmp_path / "halves", clip_range=0.3)
        await fourth.close()
        with pytest.raises(UserError, match="a training with other settings"):
            await other.train([two_turns])
        (tmp_path / "halves" / STATE).write_bytes(b"x")
        with pytest.raises(UserError, match="damaged"):
            await again.train([two_turns])
        with pytest.raises(UserError, match="no question"):
            await again.train([])
    finally:
        await reader.close()


async def test_what_cannot_be_learned_is_said(model: Path, tmp_path: Path) -> None:
    alone, reader = await trainer(model, tmp_path / "out")

    async def one_turn(stage: Stage) -> float:
        await stage.speak(asked("Alone."))
        return 0.0

    try:
        with pytest.raises(UserError, match="never called on"):
            await alone.train([one_turn])
    finally:
        await reader.close()
    grouped, second = await trainer(model, tmp_path / "grouped", algorithm="grpo")
    await second.close()
    with pytest.raises(UserError, match="group=8"):
        await grouped.train([two_turns])


# ---------------------------------------------------------------------------------------------------------- the command


def words(model: Path, out: Path, *more: str) -> list[str]:
    quick = ["inner=16", "layers=1", "heads=2", "steps=16", "n_steps=4", "num_envs=2", "n_epochs=1", "rate=0.5"]
    team = ["turns=2", "agent_tokens=8", "window=2", "length=2", "merged=2"]
    reader = [] if "--reader" in more else ["--reader", f"hf:{model}", "-R", "dtype=f32"]
    return [
        "train", "l2vmas", *reader, "--out", str(out), "--max-tokens", "8", "--json", *more,
        *(word for value in quick for word in ("-T", value)), *(word for value in team for word in ("-M", value)),
    ]  # fmt: skip


def test_the_three_stages_by_command(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench = ["--bench", "hotpotqa", "--data", str(SAMPLE), "--limit", "3", "--score", "f1"]
    folders = [tmp_path / f"stage{n}" for n in (1, 2, 3)]
    assert command_line(words(model, folders[0], "--stage", "1", *bench)) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["stage"], told["questions"]) == (1, 3) and told["actions"] >= 16
    assert command_line(words(model, folders[0], "--stage", "1", *bench)) == 0  # it is finished, and says the same
    assert json.loads(capsys.readouterr().out) == told
    other = [*bench[:-4], "--limit", "2", *bench[-2:]]
    assert command_line(words(model, folders[0], "--stage", "1", *other)) == 2
    assert "other settings or data" in capsys.readouterr().err
    triggers = ["-M", "threshold=0"]
    for stage in (2, 3):
        assert command_line(words(model, folders[stage - 1], "--stage", str(stage), "--from", str(folders[stage - 2]),
                                  *triggers, *bench)) == 0  # fmt: skip
    first, last = (json.loads((folder / "modules.json").read_text("utf-8")) for folder in (folders[0], folders[2]))
    assert (first["trained"]["stage"], last["trained"]["stage"]) == (1, 3)
    assert {"modules.safetensors", "modules.json", CURVE, PROGRESS, STATE} == {
        file.name for file in folders[2].iterdir()
    }


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (["--stage", "4"], "there are 1, 2 and 3"),
        (["--stage", "2", "--bench", "hotpotqa", "--data", str(SAMPLE)], "name them with --from"),
        (["--stage", "1"], "learn from --bench BENCH --data PATH, or from --gqa"),
        (["--stage", "1", "--bench", "hotpotqa"], "name the data with --data"),
        (["--stage", "1", "--bench", "hotpotqa", "--data", str(SAMPLE), "--score", "fame"], "fame"),
        (["--stage", "1", "--bench", "hotpotqa", "--data", str(SAMPLE), "-T", "speed=3"], "speed"),
        (["--stage", "1", "--gqa", "nowhere.json", "--images", "."], "no such file"),
        (["--stage", "1", "--gqa", "nowhere.json"], "name the folder"),
        (["--stage", "1", "--bench", "hotpotqa", "--data", str(SAMPLE), "--reader", "extractive"], "step by step"),
    ],
)
def test_mistakes(
    more: list[str], problem: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line(words(model, tmp_path / "out", *more)) == 2
    assert problem in capsys.readouterr().err


def test_fresh_touches_nothing_else(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "thesis.txt").write_text("do not lose")
    given = ["--stage", "1", "--bench", "hotpotqa", "--data", str(SAMPLE), "--fresh"]
    assert command_line(words(model, tmp_path, *given)) == 2
    assert "thesis.txt" in capsys.readouterr().err and (tmp_path / "thesis.txt").exists()


def test_gqa_as_published(tmp_path: Path) -> None:
    images = tmp_path / "images"
    images.mkdir()
    Pillow.new("RGB", (8, 6), "red").save(images / "2354786.jpg")
    row = {"imageId": "2354786", "question": "Is the sky dark?", "answer": "yes", "isBalanced": True}
    file = tmp_path / "train_balanced_questions.json"
    file.write_text(json.dumps({"02930152": row, "07333408": {**row, "answer": "a pipe"}}))
    media = MediaStore(tmp_path / "files.sqlite")
    first, second = gqa(file, images, media, None)
    assert first.case.question.parts[1] == Text("Is the sky dark?") and first.case.gold.answers == ("yes",)
    assert [gqa_score(second, text) for text in ("Pipe.", "the pipe", "yes", None)] == [1.0, 1.0, 0.0, 0.0]
    assert len(list(gqa(file, images, media, 1))) == 1
    file.write_text(json.dumps({"1": {"imageId": "9", "question": "?", "answer": "x"}}))
    with pytest.raises(UserError, match=r"9\.jpg: no such picture"):
        list(gqa(file, images, media, None))
    file.write_text(json.dumps({"1": {"imageId": "2354786", "question": "?"}}))
    with pytest.raises(DataError, match="1: answer"):
        list(gqa(file, images, media, None))
    file.write_text("[]")
    with pytest.raises(DataError, match="must be an object"):
        list(gqa(file, images, media, None))


@given(n=st.integers(1, 12), k=st.integers(0, 40), seed=st.integers(0, 9))
def test_every_question_is_drawn_as_often_as_any_other_or_once_more(n: int, k: int, seed: int) -> None:
    drawn = _drawn(random.Random(seed), n, k)
    counts = [drawn.count(at) for at in range(n)]
    assert len(drawn) == k and max(counts) - min(counts) <= 1
