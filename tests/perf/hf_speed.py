"""Speed of `hf:`: against transformers' own `generate` on the same batches, and against asking one question at a time.

Run: python tests/perf/hf_speed.py [--pairs 6] [--prompts 32] [--tokens 48]

SmolLM2 in f32, prompts of 128 tokens on average (96 to 160), each answered with the same number of tokens. The peer is
given token ids, cut into the same batches, sorted by length and padded on the left; the reader is given requests, all
at once, and does everything itself. Runs alternate, A B B A; the figure is the median of the pairs' ratios. Replies are
compared, so that no side is quick by saying less.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch
import transformers

from memharness.media import MediaStore
from memharness.reader import Message, Request, Sampling
from memharness.readers.chat import _Job, cut
from memharness.readers.hf import HFConfig, HFReader
from memharness.readers.smollm2 import SmolLM2, SmolLM2Config
from memharness.types import Text

WORDS = "the harbour at noon was full of boats and nets while someone read the list of names aloud to nobody"


def requests(reader: HFReader, n: int, tokens: int) -> list[Request]:
    """n requests whose prompts have 96 to 160 tokens, 128 on average, in no order of length."""
    made = []
    for index in range(n):
        wanted, words = 96 + 64 * (index * 29 % n) // max(1, n - 1), [f"Note {index}:"]
        while True:
            request = Request((Message("user", (Text(" ".join(words)),)),), Sampling(max_tokens=tokens))
            if len(reader._network.encode(request, reader.media).ids) >= wanted:
                break
            words.append(WORDS.split()[(index + len(words)) % 20])
        made.append(request)
    return made


def bare(reader: HFReader, batches: list[list[list[int]]], tokens: int) -> dict[tuple[int, ...], list[int]]:
    """Replies of `generate` to batches of prompts, by prompt; what follows an end token is left out."""
    network, replies = reader._network, {}
    for batch in batches:
        width = max(map(len, batch))
        ids = torch.tensor([[0] * (width - len(row)) + row for row in batch])
        mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in batch])
        with torch.inference_mode():
            made = network.model.generate(
                input_ids=ids, attention_mask=mask, max_new_tokens=tokens, do_sample=False, pad_token_id=0
            )
        for row, reply in zip(batch, made[:, width:].tolist(), strict=True):
            end = next((at + 1 for at, token in enumerate(reply) if token in network.ends), len(reply))
            replies[tuple(row)] = reply[:end]
    return replies


async def main(pairs: int, prompts: int, tokens: int) -> int:
    """Measure and print; 1 if replies differ or a ratio is under its floor."""
    store = MediaStore(Path(tempfile.mkdtemp()) / "files.sqlite")
    small = SmolLM2("", SmolLM2Config(), store)
    await small.prepare()
    reader = HFReader(str(small._folder), HFConfig(dtype="f32"), store)
    await reader.start()
    asked = requests(reader, prompts, tokens)
    jobs = [_Job(reader._network.encode(request, store), request.sampling, 0, None) for request in asked]  # type: ignore[arg-type]
    jobs.sort(key=_Job.order)
    config = reader.config
    batches = [
        [job.prompt.ids for job in batch]
        for batch in cut(jobs, config.max_batch, config.max_batch_tokens, reader._network.joins)
    ]
    clocks: list[float] = []
    works: list[float] = []
    same = True
    for turn in range(pairs + 1):  # the first pair warms up; who goes first changes
        spent = {}
        for side in ("peer", "reader") if turn % 2 else ("reader", "peer"):
            begun, worked = time.perf_counter(), time.process_time()
            if side == "peer":
                peer = bare(reader, batches, tokens)
            else:
                replies = await asyncio.gather(*map(reader.generate, asked))
            spent[side] = (time.perf_counter() - begun, time.process_time() - worked)
        if turn:
            clocks.append(spent["peer"][0] / spent["reader"][0])
            works.append(spent["peer"][1] / spent["reader"][1])
        said = {tuple(reader._network.encode(r, store).ids): reply for r, reply in zip(asked, replies, strict=True)}
        same &= all(said[ids].text == reader._network.decode(reply) for ids, reply in peer.items())
    few = asked[: config.max_batch]
    begun, worked = time.perf_counter(), time.process_time()
    for request in few:
        await reader.generate(request)
    between, between_work = time.perf_counter(), time.process_time()
    await asyncio.gather(*map(reader.generate, few))
    single = (between - begun) / (time.perf_counter() - between)
    single_work = (between_work - worked) / (time.process_time() - between_work)
    out = sum(reply.usage.output for reply in replies)
    await reader.close()

    machine = f"{platform.machine()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads"
    print(f"{machine}, load {os.getloadavg()[0]:.1f}, {platform.platform()}")
    print(f"python {platform.python_version()}, torch {torch.__version__}, transformers {transformers.__version__}")
    print(f"{prompts} prompts of 96 to 160 tokens, {out} tokens of answers, batches of {config.max_batch}")
    print(f"replies the same as generate's: {'yes' if same else 'NO'}")
    for ratios, measure in ((clocks, "by the clock, floor 0.95"), (works, "by processor time")):
        each = ", ".join(f"{ratio:.2f}" for ratio in sorted(ratios))
        print(f"{statistics.median(ratios):.2f} of bare generate ({measure}; pairs {each})")
    print(f"{single:.2f} times one by one by the clock (floor 3; {single_work:.2f} by processor time)")
    return int(not same or statistics.median(clocks) < 0.95 or single < 3.0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--prompts", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=48)
    options = parser.parse_args()
    sys.exit(asyncio.run(main(options.pairs, options.prompts, options.tokens)))
