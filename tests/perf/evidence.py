"""Evidence quality without a reader: gold sentences that fit into 128 SmolLM2 tokens, every shown token counted.

Arms, on the same questions and budget: BM25 over titled sentences, each on a line with its title; the same with titles
printed once a paragraph; MEMO's deterministic extractor and builder; and the gold sentences themselves. A gold sentence
counts if all of it is shown. Differences are paired by question.

Run: python tests/perf/evidence.py [FOLDER]   (minutes of embedding; vectors are kept in FOLDER, if one is given)
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from memharness.config import Config
from memharness.media import MediaStore
from memharness.method import Budget, Kit, Memory, Method, MethodCard
from memharness.methods.memo.builder import Builder
from memharness.methods.memo.extractor import Index
from memharness.methods.memo.units import EvidenceUnit, Record, Selection, materialise
from memharness.retrieval import BM25
from memharness.run.api import execute
from memharness.run.data import open_benchmark
from memharness.run.progress import Quiet
from memharness.run.spec import RunSpec
from memharness.run.wire import evidence_in
from memharness.stats import interval, paired
from memharness.store import read_lines
from memharness.types import Evidence, Gold, Item, Part, Question, Readout, Text

SHARED = Path(os.environ.get("MEMHARNESS_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "data"
SETS = {
    "HotpotQA 100 + 100": [
        ("hotpotqa", SHARED / "hotpotqa" / "hotpot_distractor_reflexion100.json"),
        ("hotpotqa", SHARED / "hotpotqa" / "hotpotqa_train_100.json"),
    ],
    "2Wiki 500": [("2wiki", SHARED / "2wikimultihopqa" / "2wiki_dev_sample500.json")],
}
BUDGET = 128


class Sentences(Memory):
    """The sentences of a context, as MEMO's extractor cuts them."""

    def __init__(self) -> None:
        self.items: list[Item] = []

    async def observe(self, items: Sequence[Item]) -> None:
        self.items += items

    async def ready(self) -> None:
        self.index = Index([Record.of(item) for item in self.items])

    def units(self, question: Question) -> Sequence[EvidenceUnit]:
        """Every sentence as a unit, best first by BM25 over titled sentences."""
        order = np.argsort(-BM25(self.index.texts).scores(question.text()), kind="stable")
        chosen = [Selection(self.index.records[self.index.spans[at][0]].id, (self.index.spans[at][1],)) for at in order]
        return materialise(chosen, {record.id: record for record in self.index.records})[0]

    def builder(self, budget: Budget) -> Builder:
        return Builder(self.index.records, budget.counters, budget.tokens or 0, pictures=False)

    def packed(self, units: Sequence[EvidenceUnit], budget: Budget) -> Readout:
        """The units that fit, titles once a paragraph."""
        builder = self.builder(budget)
        built = builder.plain(units, builder.fill(units)[0])
        return Readout(built.evidence, (Text(built.text),) if built.text else ())


class LinesMemory(Sentences):
    async def recall(self, question: Question, budget: Budget) -> Readout:
        """A line a sentence, its title before it; what does not fit is passed over."""
        lines: list[str] = []
        evidence: list[Evidence] = []
        for unit in self.units(question):
            record = next(one for one in self.index.records if one.id == unit.source)
            tried = [*lines, f"{record.title}: {unit.content}"]
            shown: tuple[Part, ...] = (Text("\n".join(tried)),)
            if budget.holds(shown):
                lines = tried
                evidence += record.pointers(unit.start, unit.end)
        return Readout(tuple(evidence), (Text("\n".join(lines)),) if lines else ())


class PackedMemory(Sentences):
    async def recall(self, question: Question, budget: Budget) -> Readout:
        return self.packed(self.units(question), budget)


class GoldMemory(Sentences):
    async def recall_with_gold(self, question: Question, gold: Gold, budget: Budget) -> Readout:
        """The gold sentences that fit, the short ones first, so that as many as can be are shown."""
        wanted = set(gold.evidence)
        records = {record.id: record for record in self.index.records}
        units = [u for u in self.units(question) if wanted & set(records[u.source].pointers(u.start, u.end))]
        return self.packed(sorted(units, key=lambda unit: len(unit.content)), budget)


class Lines(Method[Config]):
    card: ClassVar[MethodCard] = MethodCard("bm25-lines", "BM25, titled sentences", "", 1, "evidence")
    config_class = Config

    def open(self, context: str, kit: Kit) -> Memory:
        return LinesMemory()


class Packed(Method[Config]):
    card: ClassVar[MethodCard] = MethodCard("bm25-packed", "BM25, titles once a paragraph", "", 1, "evidence")
    config_class = Config

    def open(self, context: str, kit: Kit) -> Memory:
        return PackedMemory()


class GoldSentences(Method[Config]):
    card: ClassVar[MethodCard] = MethodCard("gold", "Gold sentences", "", 1, "evidence", control=True)
    config_class = Config

    def open(self, context: str, kit: Kit) -> Memory:
        return GoldMemory()


@dataclass(frozen=True)
class Arm:
    """Recall of gold sentences and memory tokens by question."""

    recall: Mapping[str, float]
    tokens: Mapping[str, int]


def arm(method: str, bench: str, data: Path, out: Path) -> Arm:
    """Run a method up to the readout and compare what it shows with the gold sentences."""
    run = execute(RunSpec(method, bench, data=str(data), budget=BUDGET, until="recall", out=str(out)), Quiet())
    benchmark = open_benchmark(bench, str(data), {}, MediaStore())
    gold = {
        case.question.id: set(case.gold.evidence)
        for context in benchmark.contexts(None)
        for case in benchmark.episode(context).cases  # type: ignore[attr-defined]
    }
    recall, tokens = {}, {}
    for _, record in read_lines(Path(run["run"]) / "records.jsonl"):
        assert record["outcome"] == "ok", record
        shown = set(evidence_in(record["evidence"]))
        wanted = gold[record["question"]]
        if wanted:
            recall[record["question"]] = len(wanted & shown) / len(wanted)
            tokens[record["question"]] = record["cost"]["smollm2"]
            assert tokens[record["question"]] <= BUDGET
    return Arm(recall, tokens)


def main() -> None:
    if not SHARED.is_dir():
        sys.exit(f"no shared data at {SHARED} (set MEMHARNESS_SHARED)")
    here = Path(__file__)
    methods = {
        "BM25, a titled line each": f"{here}:Lines",
        "BM25, titles once": f"{here}:Packed",
        "MEMO, deterministic": "memharness.methods.memo:Memo",
        "gold sentences": f"{here}:GoldSentences",
    }
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else temporary)
        shutil.rmtree(folder / "runs", ignore_errors=True)  # of other code, perhaps; only the vectors are kept
        for name, files in SETS.items():
            arms: dict[str, Arm] = {}
            for title, method in methods.items():
                each = [arm(method, bench, data, folder) for bench, data in files]
                arms[title] = Arm(
                    {key: value for one in each for key, value in one.recall.items()},
                    {key: value for one in each for key, value in one.tokens.items()},
                )
            print(f"\n{name}: recall of gold sentences in {BUDGET} SmolLM2 tokens")
            for title, found in arms.items():
                mean = interval(list(found.recall.values()))
                tokens = sum(found.tokens.values()) / len(found.tokens)
                print(f"  {title:26} {mean.value:.3f} [{mean.low:.3f}, {mean.high:.3f}]  {tokens:5.1f} tokens")
            for title in list(arms)[:2]:
                gap = paired(arms[title].recall, arms["MEMO, deterministic"].recall).difference
                n = len(arms[title].recall)
                print(f"  MEMO − {title:26} {gap.value:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}]  n = {n}")


if __name__ == "__main__":
    main()
