"""L²-VMAS on a GPU: exactness in f32 and bf16 for every family, and the throughput of 64 questions.

Run: python -m tests.perf.l2vmas_gpu [--cpu] [--model DIR] [--questions 64]

On a machine without CUDA it says so and does the same on the CPU, in small, as `--cpu` asks for.

Exactness, on tiny random models of four families behind their real processors, by the method's own path (picture and
thoughts into the banks, calls every W tokens, latents into the session): with the trigger off the tokens are those of
the model's own greedy `generate`; with it on, states and logits are those of one `forward` with the latents inside.
In f32, TF32 off, tokens are equal one for one and states to 1e-4 (1e-5 on the CPU) of the largest. In bf16 one pass
rounds unlike another, so a token may be another one only where the full pass holds it as likely within rounding.

Throughput: `single`, `vmas` and `l2vmas` answer the same questions about pictures, with `--model` or, without one, a
random Qwen3-VL in bf16 of about a billion parameters: questions and decoded tokens a second, side by side.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import csv
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
import transformers
from PIL import Image as Pillow

from memharness.media import MediaStore
from memharness.methods.l2vmas.config import L2VMASConfig
from memharness.readers import device
from memharness.readers.hf import HFConfig, HFReader
from memharness.run.api import execute
from memharness.run.progress import Quiet
from memharness.run.spec import RunSpec
from memharness.types import Image
from tests.methods.l2vmas.exact import apart, ask, greedy, remembered, spoken, whole
from tests.readers.tiny import FAMILIES, tiny_model

Kind = Literal["f32", "bf16"]
CALLING = L2VMASConfig(calls="fixed", window=4, length=5).settled()
TURNS = 5


@dataclass(frozen=True)
class Setting:
    """Where it runs, and how large.

    Attributes:
        where: `cuda` or `cpu`.
        close: how far states may be apart in f32.
        questions: of the throughput.
        shape: width, layers and intermediate width of its random model.
        tokens: of a turn.
    """

    where: str
    close: float
    questions: int
    shape: tuple[int, int, int]
    tokens: int


def noise(folder: Path, n: int) -> list[Path]:
    """Pictures, each another, 200 × 140 pixels."""
    made = []
    for at in range(n):
        made.append(folder / f"{at}.png")
        Pillow.effect_noise((200, 140), 40 + at % 60).convert("RGB").save(made[-1])
    return made


# ------------------------------------------------------------------------------------------------------- exactness


async def exact(family: str, kind: Kind, setting: Setting, folder: Path) -> bool:
    """One family in one dtype; prints what was found."""
    store = MediaStore(folder / f"{family}-{kind}.sqlite")
    model = tiny_model(family, folder / "tiny")
    reader = HFReader(str(model), HFConfig(dtype=kind, device_map=setting.where), store)
    await reader.start()
    try:
        seen = [store.image(path, path.name, path.name) for path in noise(folder, 2)]
        pictures = seen if "image" in reader.card.capabilities else []
        memory = await remembered(reader, CALLING, pictures)
        quiet = await _quiet(reader, pictures, memory, kind)
        states, excess, calls = 0.0, 0.0, 0
        equal = True
        for request in (ask(*pictures), ask(*pictures[:1], words="Where was it taken?"), ask(words="One two three")):
            made = await spoken(reader, request, CALLING, memory)
            latents = {one.after: one.recalled.latents for one in made.injections}
            full = await device.run(whole, reader, request, made.tokens, latents)
            calls += len(latents)
            states = max(states, apart(made.states, full.states))
            equal = equal and made.tokens == full.logits.argmax(-1).tolist()
            excess = max(excess, _excess(full.logits, made.tokens))
    finally:
        await reader.close()
    held = quiet and calls >= 2 and (states <= setting.close and equal if kind == "f32" else excess <= _rounding(full))
    print(
        f"{family} {kind}: trigger off {'equal' if quiet else 'NOT equal'} to greedy generate; {calls} calls, states "
        f"apart by {states:.1e}, tokens {'equal' if equal else f'behind by {excess:.1e} in logits'}: "
        f"{'held' if held else 'NOT HELD'}",
        flush=True,
    )
    return held


async def _quiet(reader: HFReader, pictures: list[Image], memory: Any, kind: Kind) -> bool:
    """Whether the trigger off is plain greedy; in bf16 up to the first token at which both are as likely."""
    request = ask(*pictures)
    made = await spoken(reader, request, CALLING.model_copy(update={"triggering": False}), memory)
    plain = await device.run(greedy, reader, request)
    if made.tokens == plain or kind == "f32":
        return made.tokens == plain
    full = await device.run(whole, reader, request, made.tokens, {})
    return _excess(full.logits, made.tokens) <= _rounding(full)


def _excess(logits: torch.Tensor, tokens: list[int]) -> float:
    """How far the logits of these tokens lie below the greatest, at most."""
    chosen = logits.gather(1, torch.tensor(tokens, device=logits.device)[:, None])[:, 0]
    return float((logits.max(-1).values - chosen).max())


def _rounding(full: Any) -> float:
    """What bf16, with 8 bits, may make of logits of this size over a few layers."""
    return float(full.logits.abs().max()) * 2**-5


# ------------------------------------------------------------------------------------------------------ throughput


def random_model(setting: Setting, folder: Path) -> Path:
    """A random Qwen3-VL of a shape, in bf16, behind the tiny one's processor."""
    tiny = tiny_model("qwen3_vl", folder / "tiny")
    made = folder / "random"
    shutil.copytree(tiny, made, ignore=shutil.ignore_patterns("*.safetensors", "config.json"))
    config = transformers.AutoConfig.from_pretrained(tiny)
    width, layers, between = setting.shape
    text = config.text_config
    text.hidden_size, text.num_hidden_layers, text.intermediate_size = width, layers, between
    text.num_attention_heads, text.num_key_value_heads = width // text.head_dim, width // text.head_dim // 2
    text.initializer_range = 0.3 / (width / 32) ** 0.5
    config.vision_config.out_hidden_size = width
    torch.manual_seed(0)
    model: Any = transformers.Qwen3VLForConditionalGeneration(config)
    model = model.to(torch.bfloat16)
    model.save_pretrained(made)
    parameters = sum(one.numel() for one in model.parameters())
    print(f"random Qwen3-VL: {parameters / 1e6:.0f} M parameters, width {width}, {layers} layers", flush=True)
    return made


def questions(n: int, folder: Path) -> Path:
    """A file in MMBench's layout: n rows, each about a picture of its own."""
    columns = ("index", "question", "A", "B", "C", "D", "answer", "category", "image", "l2-category", "split")
    file = folder / "questions.tsv"
    with file.open("w", encoding="utf-8", newline="") as text:
        writer = csv.writer(text, delimiter="\t")
        writer.writerow(columns)
        for at, path in enumerate(noise(folder, n)):
            picture = base64.b64encode(path.read_bytes()).decode()
            writer.writerow(
                (at, f"Which of these is in picture {at}?", "a dog", "a cat", "a boat", "a tree", "ABCD"[at % 4],
                 "object", picture, "perception", "dev")
            )  # fmt: skip
    return file


def throughput(model: Path, setting: Setting, folder: Path) -> bool:
    """Three methods on the same questions; prints a line each. Whether all were answered."""
    data, held = questions(max(1, setting.questions // 4), folder), True  # each is asked four times, its options turned
    team = {"topology": "complete", "turns": TURNS, "agent_tokens": setting.tokens}
    options: dict[str, dict[str, Any]] = {
        "single": {}, "vmas": team, "l2vmas": {**team, "window": setting.tokens // 4, "threshold": 0.0},
    }  # fmt: skip
    for method, chosen in options.items():
        spec = RunSpec(
            method, "mmbench", f"hf:{model}", data=str(data), max_tokens=16, out=str(folder / "runs"),
            method_options=chosen,
            reader_options={"dtype": "bf16" if setting.where == "cuda" else "f32", "device_map": setting.where},
        )  # fmt: skip
        begun = time.perf_counter()
        summary = execute(spec, Quiet())
        seconds = time.perf_counter() - begun
        kinds = summary["tokens"]["answer"]
        held = held and summary["outcomes"] == {"ok": summary["n"]}
        print(
            f"{method}: {summary['n']} questions in {seconds:.1f} s, loading included: "
            f"{summary['n'] / seconds:.2f} questions/s, {kinds['output'] / seconds:.0f} decoded tokens/s, "
            f"{kinds['latent']:,} latents; outcomes {summary['outcomes']}",
            flush=True,
        )
    return held


@contextmanager
def full_precision() -> Iterator[None]:
    """f32 is f32: no TF32."""
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before


def check(setting: Setting, model: Path | None, families: tuple[str, ...] = FAMILIES) -> bool:
    """Everything; whether all of it held."""
    with tempfile.TemporaryDirectory() as temporary, full_precision():
        folder = Path(temporary)
        kinds: tuple[Kind, ...] = ("f32", "bf16")
        held = [asyncio.run(exact(family, kind, setting, folder)) for family in families for kind in kinds]
        return all([*held, throughput(model or random_model(setting, folder), setting, folder)])


def main(words: list[str] | None = None) -> int:
    """Check and print; 0 if all of it held."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--questions", type=int, default=64)
    parser.add_argument("--families", default=",".join(FAMILIES))
    options = parser.parse_args(words)
    on_gpu = torch.cuda.is_available() and not options.cpu
    if not on_gpu and not options.cpu:
        print("no CUDA on this machine: the same in small on the CPU", flush=True)
    name = torch.cuda.get_device_name() if on_gpu else f"{platform.machine()}, {os.cpu_count()} CPUs"
    print(f"{name}; torch {torch.__version__}, transformers {transformers.__version__}", flush=True)
    if on_gpu:
        setting = Setting("cuda", 1e-4, options.questions, (2048, 24, 6144), 64)
    else:
        setting = Setting("cpu", 1e-5, min(4, options.questions), (32, 4, 64), 12)
    held = check(setting, options.model, tuple(options.families.split(",")))
    print("all held" if held else "NOT all held")
    return 0 if held else 1


if __name__ == "__main__":
    raise SystemExit(main())
