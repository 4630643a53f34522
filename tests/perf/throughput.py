"""Cost of a question where the model costs nothing: this harness, lm-evaluation-harness and inspect_ai, in one run.

Run: python tests/perf/throughput.py [--peers DIR] [--n 10000] [--rounds 1] [--inspect-defaults]

Each harness answers the same N prompts from one JSONL file with a constant reply, scores them and writes every sample,
as a process of its own, timed from start to end, at N and at N/10 questions: the difference is the marginal cost of a
question, the rest is start-up. The number of questions it says it scored is checked, so that no failed run looks fast.

The peers are installed once into environments of their own under DIR (pip, pinned). Where a setting makes a peer faster
without leaving out its samples, it has it: inspect_ai runs without its live scores and realtime event log (unless
--inspect-defaults), with a mock reply that states its usage (the default one downloads a tokenizer to count), and
lm-evaluation-harness without torch, which its dummy model does not need. This harness computes both peers' metrics.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from memharness import __version__

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
REPLY = "lol"
WARM = 10

PINNED = {"lm-eval": ["lm_eval==0.4.13"], "inspect_ai": ["inspect_ai==0.3.285"]}

LM_EVAL_TASK = """\
task: prompts
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{prompt}}}}"
doc_to_target: "{{{{answer}}}}"
generation_kwargs: {{until: ["\\n"]}}
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
"""

INSPECT_SCRIPT = """\
import sys
from inspect_ai import Task, eval
from inspect_ai.dataset import FieldSpec, json_dataset
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import f1
from inspect_ai.solver import generate

def reply(input, tools, tool_choice, config):
    output = ModelOutput.from_content("mockllm/model", {reply!r})
    output.usage = ModelUsage(input_tokens=20, output_tokens=1, total_tokens=21)
    return output

dataset = json_dataset({data!r}, FieldSpec(input="prompt", target="answer", id="id"))
task = Task(name="prompts", dataset=dataset, solver=generate(), scorer=f1())
model = get_model("mockllm/model", custom_outputs=reply)
[log] = eval(task, model=model, display="none", log_dir={logs!r}{options})
print(log.results.completed_samples)
sys.exit(log.status != "success")
"""


@dataclass(frozen=True)
class Spent:
    """One process: wall seconds, CPU seconds of it and its children, peak resident MB."""

    wall: float
    cpu: float
    peak: float


@dataclass(frozen=True)
class Harness:
    """A harness: how to ask it n prompts in an empty folder, and how many it says it answered."""

    name: str
    command: Callable[[Path, int], list[str]]
    answered: Callable[[Path], int]


@dataclass(frozen=True)
class Cost:
    """What a harness cost at the large and the small number of questions."""

    large: Spent
    small: Spent
    step: int  # questions between the two

    def marginal(self, of: str = "wall") -> float:
        """Milliseconds a question."""
        return 1000 * float(getattr(self.large, of) - getattr(self.small, of)) / self.step

    def start(self, n: int) -> float:
        """Wall seconds at no question at all, were the cost linear; negative where a question's cost grows with n."""
        return self.large.wall - self.marginal() * n / 1000


def prompts(folder: Path, n: int) -> Path:
    """The file of n prompts; every second answer is the constant reply."""
    path = folder / "prompts.jsonl"
    with path.open("w") as file:
        for i in range(n):
            words = f"Question {i}: which word is written on door {i % 97}? Answer with one word."
            file.write(json.dumps({"id": f"q{i}", "prompt": words, "answer": REPLY if i % 2 else "word"}) + "\n")
    return path


def memharness_command(folder: Path, n: int) -> list[str]:
    """This harness on n prompts."""
    plugins = HERE / "plugins.py"
    return [
        sys.executable, "-m", "memharness", "run", "--method", "null", "--bench", f"{plugins}:Prompts",
        "--reader", f"{plugins}:Constant", "--data", str(prompts(folder, n)), "--out", str(folder / "out"), "--json",
    ]  # fmt: skip


def lm_eval_command(python: Path, folder: Path, n: int) -> list[str]:
    """lm-evaluation-harness on n prompts, with its own dummy model."""
    (folder / "prompts.yaml").write_text(LM_EVAL_TASK.format(data=prompts(folder, n)))
    return [
        str(python), "-m", "lm_eval", "run", "--model", "dummy", "--tasks", "prompts", "--include_path", str(folder),
        "--log_samples", "--output_path", str(folder / "out"),
    ]  # fmt: skip


def inspect_command(python: Path, defaults: bool, folder: Path, n: int) -> list[str]:
    """inspect_ai on n prompts, with its own mock model."""
    options = "" if defaults else ", log_realtime=False, score_display=False"
    script = folder / "prompts.py"
    data, logs = str(prompts(folder, n)), str(folder / "logs")
    script.write_text(INSPECT_SCRIPT.format(reply=REPLY, data=data, logs=logs, options=options))
    return [str(python), str(script)]


def lm_eval_answered(folder: Path) -> int:
    """Lines of the samples file."""
    (samples,) = (folder / "out").rglob("samples_*.jsonl")
    with samples.open() as file:
        return sum(1 for _ in file)


def environment(peers: Path, name: str) -> Path:
    """The Python of a peer's environment, made if it is not there."""
    folder = peers / name
    python = folder / "bin" / "python"
    done = folder / "installed.txt"
    if not done.is_file() or done.read_text().split() != PINNED[name]:
        print(f"installing {' '.join(PINNED[name])} into {folder}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PINNED[name]], check=True)
        done.write_text("\n".join(PINNED[name]))
    return python


def spend(harness: Harness, n: int) -> Spent:
    """Run a harness on n prompts in a fresh folder.

    Raises:
        SystemExit: if it fails or scores another number of questions; its output is shown.
    """
    with tempfile.TemporaryDirectory(prefix="throughput-") as name:
        folder = Path(name)
        command = harness.command(folder, n)
        caches = {"HF_HOME": str(folder / "hf"), "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
        with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
            begun = time.perf_counter()
            process = subprocess.Popen(
                command, cwd=folder, stdout=out, stderr=err, env=os.environ | caches | pythonpath()
            )
            _, status, usage = os.wait4(process.pid, 0)
            wall = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        answered = harness.answered(folder) if process.returncode == 0 else 0
        if answered != n:
            tail = (folder / "stdout").read_text()[-2000:] + (folder / "stderr").read_text()[-4000:]
            sys.exit(f"{harness.name} answered {answered} of {n} (exit {process.returncode}):\n{tail}")
    scale = 2**20 if sys.platform == "darwin" else 2**10  # ru_maxrss is in bytes there, in KiB elsewhere
    return Spent(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / scale)


def pythonpath() -> dict[str, str]:
    """Lets `-m memharness` run from any folder, installed or not; the peers do not look at it."""
    return {"PYTHONPATH": str(ROOT)}


def best(harness: Harness, n: int, rounds: int) -> Spent:
    """The least of several runs, each figure by itself."""
    runs = [spend(harness, n) for _ in range(rounds)]
    return Spent(min(run.wall for run in runs), min(run.cpu for run in runs), max(run.peak for run in runs))


def measure(harness: Harness, n: int, rounds: int) -> Cost:
    """A harness at n and n/10 questions, after a warm-up that fills the disk cache."""
    spend(harness, WARM)
    small, large = n // 10, n
    cost = Cost(best(harness, large, rounds), best(harness, small, rounds), large - small)
    figures = f"{cost.large.wall:8.2f} {cost.large.cpu:8.2f} {cost.small.wall:8.2f} {cost.start(n):8.2f}"
    print(
        f"{harness.name:<24}{figures} {cost.marginal():10.3f} {cost.marginal('cpu'):10.3f} {cost.large.peak:8.0f}",
        flush=True,
    )
    return cost


def harnesses(peers: Path, defaults: bool) -> list[Harness]:
    """This harness first, then the peers."""
    lm_eval, inspect = environment(peers, "lm-eval"), environment(peers, "inspect_ai")
    return [
        Harness("memharness", memharness_command, lambda folder: json.loads((folder / "stdout").read_text())["n"]),
        Harness("lm-eval", lambda folder, n: lm_eval_command(lm_eval, folder, n), lm_eval_answered),
        Harness(
            "inspect_ai" if defaults else "inspect_ai (lean)",
            lambda folder, n: inspect_command(inspect, defaults, folder, n),
            lambda folder: int((folder / "stdout").read_text().split()[-1]),
        ),
    ]


def check(what: str, value: float, limit: float, unit: str = "") -> bool:
    """Print a figure beside its limit."""
    print(f"{what:<64}{value:8.3f}{unit}  at most {limit:g}{unit}  {'ok' if value <= limit else 'MISSED'}")
    return value <= limit


def main() -> int:
    """Print the comparison; return 0 if every limit holds."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peers", type=Path, default=Path(tempfile.gettempdir()) / "memharness-peers", metavar="DIR")
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=1, help="keep the best of so many runs")
    parser.add_argument("--inspect-defaults", action="store_true", help="inspect_ai with live scores and realtime log")
    chosen = parser.parse_args()
    ours, *others = harnesses(chosen.peers.resolve(), chosen.inspect_defaults)
    pins = ", ".join(pin for pins in PINNED.values() for pin in pins)
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    print(f"machine: {platform.platform()}, {cores} cores, load {load:.1f} at the start")
    print(f"versions: Python {platform.python_version()}, memharness {__version__}, {pins}")
    print(f"seconds for {chosen.n:,} and {chosen.n // 10:,} questions, start-up included; best of {chosen.rounds}")
    print(f"{'':<24}{'wall':>8} {'cpu':>8} {'n/10':>8} {'start':>8} {'ms each':>10} {'cpu ms':>10} {'peak MB':>8}")
    own = measure(ours, chosen.n, chosen.rounds)
    theirs = {peer.name: measure(peer, chosen.n, chosen.rounds) for peer in others}
    grown = best(ours, 10 * chosen.n, 1).peak - own.large.peak
    print()
    held = [check(f"wall time over {name}'s", own.large.wall / cost.large.wall, 0.25) for name, cost in theirs.items()]
    ours_each, theirs_each = own.marginal(), theirs["lm-eval"].marginal()
    told_apart = min(ours_each, theirs_each) > 0  # else start-up noise drowned the questions, and nothing was measured
    held.append(check("marginal cost over lm-eval's", ours_each / theirs_each if told_apart else float("inf"), 0.5))
    held.append(check(f"peak memory, from {chosen.n:,} to {10 * chosen.n:,} questions", grown, 20, " MB"))
    if max(load, os.getloadavg()[0] - 1) > cores:  # one of the load at the end is the last run's own
        print("the machine is busy with other work: wall times are not to be trusted, compare the CPU columns")
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
