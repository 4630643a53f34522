"""The task-adaptive graph: its draws, its training, its files, and runs with it."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from memharness.methods.vmas.config import PolicyConfig
from memharness.methods.vmas.dynamic import CARD, WEIGHTS, GraphPolicy, Task, content, draw, load, save, train
from memharness.methods.vmas.topologies import Graph, reporting
from memharness.types import UserError
from tests.methods.kit import HashingEmbedder, as_kit
from tests.methods.vmas.scripted import Team, asked
from tests.methods.vmas.test_runs import run
from tests.methods.vmas.test_team import report
from tests.methods.vmas.test_topologies import held
from tests.run.harness import lines

WIDTH = 64
EMBEDDER = HashingEmbedder(WIDTH)


def vector(text: str) -> torch.Tensor:
    return torch.from_numpy(EMBEDDER.vector(text))


def roles(n: int) -> torch.Tensor:
    return torch.stack([vector(f"role number {at} of {'abcdefghijkl'[at] * 3}") for at in range(n)])


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 10), st.integers(0, 2**31), st.sampled_from(["gcn", "vgae"]), st.sampled_from(["none", "minmax"]))
def test_every_draw_is_acyclic_and_its_chance_is_right(n: int, seed: int, encoder: str, scale: str) -> None:
    policy = GraphPolicy(PolicyConfig(encoder=encoder, scale=scale, seed=seed), WIDTH)  # type: ignore[arg-type]
    with torch.no_grad():
        logits, kl = policy.logits(roles(n), vector("which kite flies"))
        edges, chance = draw(logits, random.Random(seed))
        likely, _ = draw(logits, None)
    assert logits.shape == (n, n)
    assert torch.allclose(logits, logits.T, atol=1e-5)
    assert scale == "none" or n == 1 or float(logits[~torch.eye(n, dtype=torch.bool)].abs().max()) <= 1 + 1e-6
    assert (encoder == "vgae") >= (float(kl) > 0)
    held(reporting(n + 1, edges), n + 1)
    held(reporting(n + 1, likely), n + 1)
    assert draw(logits, random.Random(seed))[0] == edges
    # by hand: every ordered pair that closes no cycle is a coin of its own
    total, kept = 0.0, set()
    for u in range(n):
        for v in range(n):
            if u == v or path(kept, v, u):
                continue
            p = 1 / (1 + math.exp(-float(logits[u, v])))
            total += math.log(p if (u, v) in edges else 1 - p)
            if (u, v) in edges:
                kept.add((u, v))
    assert float(chance) == pytest.approx(total, rel=1e-4, abs=1e-5)


def path(edges: set[tuple[int, int]], start: int, end: int) -> bool:
    """Whether a path leads from one node to the other."""
    return start == end or any(path(edges, v, end) for u, v in edges if u == start)


@pytest.mark.parametrize("encoder", ["gcn", "vgae"])
async def test_training_makes_graphs_fit_their_tasks(encoder: str) -> None:
    """Half the tasks want the first two workers joined, half want them apart; tasks never seen are told apart too."""
    joined = [f"compare both pictures and count kites {n}" for n in range(6)]
    apart = [f"name the capital city alone {n}" for n in range(6)]
    wanted = dict.fromkeys(joined, True) | dict.fromkeys(apart, False)

    async def play(text: str, graph: Graph, number: int) -> float:
        return float(((0, 1) in graph.edges) == wanted[text])

    config = PolicyConfig(encoder=encoder, iterations=60, batch=6, samples=4, lr=0.02, dropout=0.1, seed=1)  # type: ignore[arg-type]
    policy, team = GraphPolicy(config, WIDTH), roles(3)
    tasks = [Task(vector(text), text) for text in (*joined[:4], *apart[:4])]
    curve = await train(policy, team, tasks, play)
    assert len(curve) == 60
    first, last = (sum(update.reward for update in some) / 10 for some in (curve[:10], curve[-10:]))
    assert first < 0.65
    assert last > 0.75  # with units dropped and codes drawn, as in training
    for text in (*joined[4:], *apart[4:]):  # held out
        with torch.no_grad():
            logits, _ = policy.logits(team, vector(text))
        assert (float(logits[0, 1]) > 0) == wanted[text]


async def test_training_is_seeded_and_learns_what_it_says() -> None:
    async def play(text: str, graph: Graph, number: int) -> float:
        return len(graph.edges) / 10

    async def once(**options: Any) -> GraphPolicy:
        policy = GraphPolicy(PolicyConfig(iterations=3, batch=2, **options), WIDTH)
        await train(policy, roles(3), [Task(vector(text), text) for text in ("one kite", "two boats")], play)
        return policy

    first, again, other = await once(), await once(), await once(seed=1)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))
    assert not torch.equal(first.first, other.first)
    fresh, partly = GraphPolicy(PolicyConfig(), WIDTH), await once(learns="gcn")
    assert torch.equal(partly.head, fresh.head)
    assert not torch.equal(partly.first, fresh.first)
    with pytest.raises(ValueError, match="needs tasks"):
        await train(first, roles(2), [], play)


def stored(folder: Path, **options: Any) -> Path:
    save(GraphPolicy(PolicyConfig(**options), WIDTH), folder, "hashing:hashing@64")
    return folder


def test_a_policy_comes_back_from_its_files(tmp_path: Path) -> None:
    policy = GraphPolicy(PolicyConfig(encoder="vgae", hidden=5, seed=3), WIDTH)
    save(policy, tmp_path / "p", "hashing:hashing@64")
    back, card = load(tmp_path / "p")
    assert back.config == policy.config
    assert all(torch.equal(a, b) for a, b in zip(policy.parameters(), back.parameters(), strict=True))
    assert (card["width"], card["embedder"]) == (WIDTH, "hashing:hashing@64")
    assert content(tmp_path / "p") == content(tmp_path / "p")
    assert content(tmp_path / "p") != content(stored(tmp_path / "q", encoder="vgae", hidden=5, seed=4))


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        (CARD, None, r"policy\.json: .*No such file.*takes the folder of a trained graph policy"),
        (CARD, "{", r"policy\.json: .*takes the folder"),
        (CARD, "[]", r"policy\.json: width: missing"),
        (
            CARD,
            json.dumps({"width": 64, "embedder": "e", "config": {"hiden": 3}}),
            "config hiden: .*did you mean hidden",
        ),
        (WEIGHTS, None, r"policy\.safetensors: .*No such file.*train the policy again"),
        (WEIGHTS, "nonsense", r"policy\.safetensors: .*train the policy again"),
    ],
)
def test_damaged_files_are_named(tmp_path: Path, file: str, text: str | None, words: str) -> None:
    folder = stored(tmp_path)
    (folder / file).unlink()
    if text is not None:
        (folder / file).write_text(text)
    with pytest.raises(UserError, match=words):
        load(folder)


def test_weights_of_another_shape_are_refused(tmp_path: Path) -> None:
    stored(tmp_path, hidden=4)
    other = stored(tmp_path / "other", hidden=5)
    (tmp_path / WEIGHTS).write_bytes((other / WEIGHTS).read_bytes())
    with pytest.raises(UserError, match=r"policy\.safetensors: .*train the policy again"):
        load(tmp_path)


async def test_a_trained_team_draws_its_own_graphs(tmp_path: Path) -> None:
    team = Team(report, topology="dynamic", turns=5, graph=str(stored(tmp_path)))
    assert team.method.features()["dynamic_trained"]
    assert team.config.graph_sha256 == content(tmp_path)
    graphs = set()
    for at in range(8):
        trace = (await team.answer(asked(f"question {at}", f"q{at}"))).trace
        assert trace["designed"] is True
        assert {u for u, v in trace["edges"] if v == 5} == {1, 2, 3, 4}
        graphs.add(str(trace["edges"]))
    assert len(graphs) > 2
    await team.method.start(as_kit(team.kit))
    one = (await Team(report, topology="dynamic", turns=1, graph=str(tmp_path)).answer(asked())).trace
    assert one["edges"] == []


async def test_a_policy_of_another_embedder_is_refused(tmp_path: Path) -> None:
    save(GraphPolicy(PolicyConfig(), WIDTH), tmp_path, "minilm:minilm@1")
    with pytest.raises(UserError, match=r"vectors of minilm:minilm@1, but the embedder is hashing.*--embedder"):
        await Team(report, topology="dynamic", graph=str(tmp_path)).answer(asked())


def test_a_run_names_its_policy_by_content(tmp_path: Path) -> None:
    for name in ("a", "b"):
        save(GraphPolicy(PolicyConfig(), WIDTH), tmp_path / name, "hashing:@1")
    first = run(tmp_path, "mmstar", limit="3", m={"topology": "dynamic", "graph": str(tmp_path / "a")})
    second = run(tmp_path, "mmstar", limit="3", m={"topology": "dynamic", "graph": str(tmp_path / "b")})
    untrained = run(tmp_path, "mmstar", limit="3", m={"topology": "dynamic"})
    assert first["identity"] == second["identity"] != untrained["identity"]
    assert all(record["trace"]["designed"] for record in lines(first, "records.jsonl"))
    manifest = json.loads((Path(first["run"]) / "manifest.json").read_text())["described"]
    assert manifest["features"]["dynamic_trained"] is True
    assert manifest["memory"]["config"]["graph_sha256"] == content(tmp_path / "a")
    assert "graph" not in manifest["memory"]["config"]
    fallback = json.loads((Path(untrained["run"]) / "manifest.json").read_text())["described"]["features"]
    assert fallback["dynamic_fallback_complete"] is True
    with pytest.raises(UserError, match=r"policy\.json: "):
        run(tmp_path, "mmstar", m={"topology": "dynamic", "graph": str(tmp_path / "none")})
    with pytest.raises(UserError, match="only a dynamic team draws graphs; add -M topology=dynamic"):
        run(tmp_path, "mmstar", m={"topology": "linear", "graph": str(tmp_path / "a")})
