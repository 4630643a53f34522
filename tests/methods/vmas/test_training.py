"""`memharness train vmas-graph`: on a benchmark's own score, with a reader whose answer depends on the graph."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from memharness.benchmark import Data
from memharness.config import Config, build
from memharness.media import MediaStore
from memharness.methods.vmas.config import PolicyConfig, VmasConfig
from memharness.methods.vmas.dynamic import load
from memharness.methods.vmas.training import Reward, pose, train_graph
from memharness.reader import Reader, Reply, Request
from memharness.readers.extractive import Extractive
from memharness.registry import find
from memharness.types import OverWindow, Text, Usage, UserError, parts_text
from tests.methods.verifying import Hashing
from tests.methods.vmas.test_runs import HASHING, run
from tests.run.harness import lines

ROOT = Path(__file__).resolve().parents[3]
MMSTAR = ROOT / "benchmarks" / "mmstar" / "sample" / "MMStar.tsv"


class Chain(Extractive):
    """Answers A where the second worker was told of the first, else nothing; a dense graph is over its window."""

    asked = 0

    async def generate(self, request: Request) -> Reply:
        type(self).asked += 1
        text = "\n".join(parts_text(message.parts) for message in request.messages)
        if "Write your report" in text:
            heard = "I am the first" in text and request.sample == 1
            said = "I am the first" if request.sample == 0 else "I heard the first" if heard else "I heard nobody"
            return Reply(f"Conclusion: {said}", Usage(text=1, output=1))
        return Reply("A" if "I heard the first" in text else "no idea", Usage(text=1, output=1))


class Small(Chain):
    """Its window is full as soon as anyone heard the first."""

    async def generate(self, request: Request) -> Reply:
        if "I heard the first" in "".join(part.text for part in request.parts() if isinstance(part, Text)):
            raise OverWindow("too long")
        return await super().generate(request)


def mmstar(media: MediaStore) -> Any:
    kind = find("benchmarks", "mmstar")
    return kind(Data(MMSTAR, "given", media), build(kind.options_class, {}, "-B", "mmstar"))


@pytest.fixture
def media(tmp_path: Path) -> MediaStore:
    return MediaStore(tmp_path / "files.sqlite")


async def learn(media: MediaStore, out: Path, reader: type[Reader] = Chain, **options: Any) -> Any:
    benchmark = mmstar(media)
    posed = [one for one in await pose(benchmark, None, None) if one.case.gold.answers == ("A",)]
    assert posed
    policy = PolicyConfig(**({"iterations": 12, "batch": 4, "samples": 2, "lr": 0.05, "dropout": 0.0} | options))
    team = VmasConfig(turns=4).settled()
    asked, embedder = reader("", Config(), media), Hashing("", Config(), media)
    return await train_graph(benchmark, posed, asked, embedder, media, team, policy, out)


def test_the_policy_learns_the_edge_that_the_score_asks_for(media: MediaStore, tmp_path: Path) -> None:
    done = asyncio.run(learn(media, tmp_path / "graph"))
    rewards = [update.reward for update in done.curve]
    assert rewards[0] < 0.7
    assert sum(rewards[-5:]) / 5 > 0.9
    assert done.calls == 12 * 4 * 2 * 4
    assert done.tokens == 2 * done.calls
    assert done.over_window == 0
    _, card = load(tmp_path / "graph")
    assert len(card["curve"]) == 12
    # what a run then draws has that edge
    options = {"topology": "dynamic", "turns": "4", "graph": str(tmp_path / "graph")}
    summary = run(tmp_path, "mmstar", reader=f"{__file__}:Chain", m=options)
    drawn = [[1, 2] in record["trace"]["edges"] for record in lines(summary, "records.jsonl")]
    assert sum(drawn) > 0.8 * len(drawn)


async def test_a_second_training_asks_nothing_again(media: MediaStore, tmp_path: Path) -> None:
    first = await learn(media, tmp_path, iterations=2)
    before = Chain.asked
    second = await learn(media, tmp_path, iterations=2)
    assert Chain.asked == before
    assert first.report() == second.report()


async def test_a_graph_over_the_window_is_worth_nothing(media: MediaStore, tmp_path: Path) -> None:
    done = await learn(media, tmp_path, Small, iterations=2)
    assert done.over_window > 0
    assert all(update.reward == 0 for update in done.curve)


async def test_the_reward_is_a_score_of_the_benchmark(media: MediaStore, tmp_path: Path) -> None:
    benchmark = mmstar(media)
    (posed, *_) = await pose(benchmark, None, 1)
    (gold,) = posed.case.gold.answers
    reward = Reward(benchmark, None)
    assert (reward.of(posed, gold), reward.of(posed, "no idea")) == (1.0, 0.0)
    with pytest.raises(UserError, match=r"--score f1: no score of single questions; there are: accuracy"):
        Reward(benchmark, "f1").of(posed, gold)
    with pytest.raises(UserError, match="a team of one turn has no graph"):
        one, asked, embedder = VmasConfig(turns=1), Chain("", Config(), media), Hashing("", Config(), media)
        one, asked, embedder = VmasConfig(turns=1), Chain("", Config(), media), Hashing("", Config(), media)
        await train_graph(benchmark, [posed], asked, embedder, media, one, PolicyConfig(), tmp_path)


def command(*words: str) -> Any:
    import typer

    from memharness.methods.vmas.train_command import graph

    app = typer.Typer()
    app.command()(graph)
    return CliRunner().invoke(app, list(words))


def test_the_command(tmp_path: Path) -> None:
    out = tmp_path / "graph"
    words = [
        "--bench",
        "mmstar",
        "--data",
        str(MMSTAR),
        "--reader",
        "extractive",
        "--embedder",
        HASHING,
        "--limit",
        "3",
    ]
    done = command(*words, "--out", str(out), "-M", "turns=3", "-T", "iterations=2", "-T", "encoder=vgae", "--json")
    assert done.exit_code == 0, done.exception
    report = json.loads(done.stdout)
    assert (report["questions"], report["updates"], report["graph"]) == (3, 2, str(out))
    assert report["calls"] == 2 * 4 * 3
    policy, _ = load(out)
    assert policy.config.encoder == "vgae"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--data", "nowhere.tsv"], "--data nowhere.tsv: no such file or folder"),
        (["-M", "turn=3"], "did you mean turns"),
        (["-T", "lr=0"], "-T lr=0"),
        (["--reader", "extractiv"], "did you mean extractive"),
        (["--bench", "mmstr"], "did you mean mmstar"),
        (["--limit", "0"], "--limit 0"),
        (["--max-tokens", "0"], "--max-tokens 0"),
        (["--score", "f1"], "--score f1"),
        (["-M", "turns=1"], "a team of one turn"),
    ],
)
def test_mistakes_are_said_before_anything_is_spent(tmp_path: Path, words: list[str], message: str) -> None:
    base = {"--bench": "mmstar", "--data": str(MMSTAR), "--reader": "extractive", "--embedder": HASHING,
            "--out": str(tmp_path / "g")}  # fmt: skip
    pairs = dict(zip(words[::2], words[1::2], strict=True))
    done = command(*[word for pair in (base | pairs).items() for word in pair])
    assert isinstance(done.exception, UserError)
    assert message in str(done.exception)


async def test_a_live_benchmark_is_refused() -> None:
    from tests.run.toys import Corridor, SizeOptions

    with pytest.raises(UserError, match="is live"):
        await pose(Corridor(Data(ROOT, "given", MediaStore()), SizeOptions()), None, None)
