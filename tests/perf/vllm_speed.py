"""Tokens per second of `vllm:` through the harness against the bare engine, on the same prompts, in one process.

Run: .venv-vllm/bin/python tests/perf/vllm_speed.py [--pairs 6] [--prompts 64] [--max-tokens 32] [--model smollm2]

One engine serves both. The harness plays a run to its summary: rendering, metering, records, ledger and scores
included, no reply taken from its cache. The bare side gives the engine the very same prompt tokens and decoding, all at
once, and takes the last output of each. The engine's prefix cache is emptied before every turn. Turns alternate, and
each harness turn is set against the bare turn after it; the first pair warms up and is not counted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memharness import __version__
from memharness.config import build
from memharness.media import MediaStore
from memharness.reader import Reply, Request
from memharness.readers.vllm import VLLMConfig, VLLMReader
from memharness.run import api
from memharness.run.progress import Quiet
from memharness.run.setup import picks, setup
from memharness.run.spec import RunSpec

HERE = Path(__file__).resolve()
TARGET = 0.95
TOPICS = ("the sea", "a small town", "winter", "an old map", "bread", "a long journey", "music", "the market")


class Shared(VLLMReader):
    """`vllm:` on an engine that outlives a run, which notes what it was asked."""

    engine: VLLMReader
    asked: list[Request]

    def __init__(self, model: str, config: VLLMConfig, media: MediaStore) -> None:
        """The same model, whatever the spec says."""
        super().__init__(model or self.engine.model, config, media)

    async def start(self) -> None:
        """Take the engine that is there."""
        self._engine, self._wording, self.card = self.engine._engine, self.engine._wording, self.engine.card

    async def generate(self, request: Request) -> Reply:
        """Answer, and note the request."""
        self.asked.append(request)
        return await super().generate(request)

    async def close(self) -> None:
        """Leave the engine running."""


@dataclass(frozen=True)
class Turn:
    """One side's turn: prompt and output tokens, and seconds."""

    tokens: int
    seconds: float

    @property
    def speed(self) -> float:
        """Tokens a second."""
        return self.tokens / self.seconds


def write_prompts(folder: Path, n: int) -> Path:
    """n prompts of different lengths, a question each."""
    path = folder / "prompts.jsonl"
    with path.open("w") as file:
        for i in range(n):
            told = " ".join(
                f"On day {day} someone told a story about {TOPICS[(i + day) % 8]}." for day in range(i % 12)
            )
            words = (
                f"{told} Question {i}: what was the story of day {i % 7} about? Then tell one about {TOPICS[i % 8]}."
            )
            file.write(json.dumps({"id": f"q{i}", "prompt": words, "answer": "lol"}) + "\n")
    return path


async def through_the_harness(spec: RunSpec) -> Turn:
    """A whole run, from the resolved spec to its summary."""
    ready = setup(spec)
    chosen = await picks(ready)
    ready.folder.open(spec.to_json(), ready.chain, ready.described, ready.code, fresh=True, anyway=False)
    begun = time.perf_counter()
    summary = await api._work(ready, chosen, Quiet())
    seconds = time.perf_counter() - begun
    assert summary["outcomes"] == {"ok": summary["n"]}, summary["outcomes"]
    return Turn(sum(summary["tokens"]["read"].values()), seconds)


async def bare(reader: VLLMReader, asked: Sequence[Request]) -> Turn:
    """The engine alone, on what the harness asked it."""
    from vllm import SamplingParams
    from vllm.inputs import TokensPrompt
    from vllm.sampling_params import RequestOutputKind

    prompts = []
    for request in asked:
        worded = reader._wording.encode(request)
        decoding = reader._decoding(request, worded, request.sampling.max_tokens)
        given = SamplingParams(output_kind=RequestOutputKind.FINAL_ONLY, **{**decoding, "detokenize": True})
        (prompt,) = await reader._engine.renderer.render_cmpl_async([TokensPrompt(prompt_token_ids=worded.ids)])
        prompts.append((prompt, given))

    async def one(number: int, prompt: Any, given: Any) -> int:
        output: Any = None
        async for said in reader._engine.generate(prompt, given, f"bare-{time.monotonic_ns()}-{number}"):
            output = said
        return len(output.prompt_token_ids) + len(output.outputs[0].token_ids)

    begun = time.perf_counter()
    tokens = await asyncio.gather(*(one(number, *prompt) for number, prompt in enumerate(prompts)))
    return Turn(sum(tokens), time.perf_counter() - begun)


async def measure(chosen: argparse.Namespace, folder: Path) -> list[tuple[Turn, Turn]]:
    """Pairs of turns, the warming one left out."""
    options = {"dtype": chosen.dtype, "max_model_len": 2048, "kv_cache_gib": 1.0, "enforce_eager": chosen.eager}
    reader = VLLMReader(chosen.model, build(VLLMConfig, options, "-R", "vllm"), MediaStore())
    await reader.start()
    loaded = sys.modules.get("memharness_file_vllm_speed")  # the plug-in is this file, loaded a second time
    if loaded is None:
        from memharness.registry import find

        find("readers", f"{HERE}:Shared")
        loaded = sys.modules["memharness_file_vllm_speed"]
    shared: Any = loaded.Shared
    shared.engine, shared.asked = reader, []
    data = write_prompts(folder, chosen.prompts)
    print(", ".join(f"{name} {value}" for name, value in reader.card.provenance.items()), flush=True)
    pairs = []
    try:
        for number in range(chosen.pairs + 1):
            shared.asked.clear()
            spec = RunSpec(
                method="null", bench=f"{HERE.parent / 'plugins.py'}:Prompts", reader=f"{HERE}:Shared", data=str(data),
                max_tokens=chosen.max_tokens, concurrency=chosen.prompts, out=str(folder / f"out{number}"), fresh=True,
                reader_options=options,
            )  # fmt: skip
            await reader._engine.reset_prefix_cache()
            ours = await through_the_harness(spec)
            await reader._engine.reset_prefix_cache()
            theirs = await bare(reader, list(shared.asked))
            if number:
                pairs.append((ours, theirs))
            print(
                f"{'pair ' + str(number) if number else 'warm-up':<10}harness {ours.speed:8.1f} tokens/s "
                f"({ours.tokens:,} in {ours.seconds:.2f} s)   bare {theirs.speed:8.1f} ({theirs.tokens:,} in "
                f"{theirs.seconds:.2f} s)   ratio {ours.speed / theirs.speed:.3f}",
                flush=True,
            )
    finally:
        await reader.close()
    return pairs


def main() -> int:
    """Print the comparison; return 0 if the median ratio reaches the target."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--prompts", type=int, default=64)
    parser.add_argument("--max-tokens", type=int, default=32)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--dtype", default="bf16")
    parser.add_argument("--eager", action="store_true", help="do not compile: starts sooner, runs slower on both sides")
    chosen = parser.parse_args()
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    print(f"machine: {platform.platform()}, {cores} cores, load {load:.1f} at the start")
    print(
        f"versions: Python {platform.python_version()}, memharness {__version__}, model {chosen.model} {chosen.dtype}"
    )
    with tempfile.TemporaryDirectory(prefix="vllm-speed-") as folder:
        pairs = asyncio.run(measure(chosen, Path(folder)))
    ratios = sorted(ours.speed / theirs.speed for ours, theirs in pairs)
    median = statistics.median(ratios)
    spread = f"from {ratios[0]:.3f} to {ratios[-1]:.3f}"
    print(f"harness over bare engine, median of {len(ratios)} pairs: {median:.3f} ({spread})")
    print(f"at least {TARGET}: {'ok' if median >= TARGET else 'MISSED'}")
    if load > 1 or os.getloadavg()[0] > cores + 1:
        print("the machine is busy with other work: look at the spread before the median")
    return 0 if median >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
