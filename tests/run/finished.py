"""Finished runs written by hand, so that scores, clusters, costs and conditions can be anything."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from memharness.run.folder import RunFolder
from memharness.run.score import rows
from memharness.run.summary import figures


@dataclass(frozen=True)
class Row:
    """One question: its scores (a number, or `[value, status, note]`), and how it went."""

    id: str
    scores: Mapping[str, Any]
    category: str = "one"
    cluster: str = ""
    outcome: str = "ok"
    answer: str | None = "something"
    flags: Sequence[str] = ()
    read: tuple[int, int] = (100, 5)  # text and output tokens
    context: str = ""
    shown: int | None = None  # items of the readout

    @property
    def of(self) -> str:
        """Its context."""
        return self.context or self.cluster or "c"


@dataclass(frozen=True)
class Finished:
    """What a run was, by dotted keys of the manifest's `described`, and what its summary says."""

    rows: Sequence[Row]
    described: Mapping[str, Any] = field(default_factory=dict)
    summary: Mapping[str, Any] = field(default_factory=dict)
    observed: Mapping[str, int] = field(default_factory=dict)  # text tokens of observing, by context
    price: float | None = 0.0  # of each call

    def write(self, path: Path) -> Path:
        """Write its files."""
        path.mkdir(parents=True)
        rows_of, described = list(self.rows), self._described()
        contexts = list(dict.fromkeys(row.of for row in rows_of))
        manifest = {"format": 1, "memharness": "0", "identity": {"reply": "0" * 64}, "spec": {"bench": "no-such-bench"},
                    "described": described, "code": "", "git": None}  # fmt: skip
        (path / "manifest.json").write_text(json.dumps(manifest))
        _lines(path / "gold.jsonl", (
            {"context": row.of, "context_index": contexts.index(row.of), "question": row.id,
             "parts": [{"text": f"What of {row.id}?"}], "answers": [f"gold of {row.id}"], "category": row.category,
             "cluster": row.cluster, "native_id": f"native {row.id}"} for row in rows_of
        ))  # fmt: skip
        _lines(path / "records.jsonl", (
            {"question": row.id, "context": row.of, "context_index": contexts.index(row.of), "index": at, "attempt": 1,
             "outcome": row.outcome, "seconds": 0.1, "flags": list(row.flags),
             **({} if row.answer is None else {"answer": row.answer}),
             **({} if row.shown is None else {"evidence": [[f"i{n}"] for n in range(row.shown)]}),
             "spent": {"read": {"text": row.read[0], "output": row.read[1], "calls": 1}}}
            for at, row in enumerate(rows_of)
        ))  # fmt: skip
        _lines(path / "scores.jsonl", (
            {"unit": row.id, "context": row.of, "scores": dict(row.scores), "category": row.category,
             "cluster": row.cluster, "native_id": f"native {row.id}",
             **({} if row.outcome == "ok" else {"failed": row.outcome})} for row in rows_of
        ))  # fmt: skip
        self._ledger(path)
        outcomes: dict[str, int] = {}
        for row in rows_of:
            outcomes[row.outcome] = outcomes.get(row.outcome, 0) + 1
        scores = figures(rows(RunFolder(path)))
        summary = {
            "run": str(path), "identity": "0" * 64, "method": described["memory"]["method"],
            "bench": described["memory"]["benchmark"], "reader": "toy", "data_state": "given", "track": "evidence",
            "n": len(rows_of), "outcomes": outcomes, "flags": {}, "scores": scores, "official": {},
            "primary": next(iter(scores), ""), "tokens": {}, "calls": {}, "seconds": {}, "price": 0.0, "judge": None,
            "complete": True, "notes": [], "rubrics": {}, "seed": 0,
        }  # fmt: skip
        (path / "summary.json").write_text(json.dumps(summary | dict(self.summary)))
        (path / "DONE").write_text("")
        return path

    def _described(self) -> dict[str, Any]:
        made: dict[str, Any] = {
            "memory": {"method": "plain", "version": 1, "config": {}, "benchmark": "quiz", "benchmark_version": 1,
                       "options": {"hint": True}, "data": "d" * 64, "subset": None, "seed": 0},
            "readout": {"budget": None, "items": None, "counters": [], "view": "captions"},
            "reply": {"answer": {"name": "toy"}, "sampling": {"max_tokens": 64}, "until": None,
                      "prompt": {"name": "answer.v1", "sha256": "a" * 64}, "selection": {"limit": None, "ids": None}},
            "track": "evidence",
        }  # fmt: skip
        for key, value in self.described.items():
            at, *names = key.split("."), made
            for name in at[:-1]:
                names[0] = names[0][name]
            names[0][at[-1]] = value
        return made

    def _ledger(self, path: Path) -> None:
        (path / "ledger").mkdir()
        line = {"kind": "generate", "role": "answer", "attempt": 1, "hit": False, "status": "ok", "price": self.price,
                "image": 0}  # fmt: skip
        lines: list[dict[str, Any]] = [{"kind": "clock", "seconds": {}}]
        lines += [line | {"phase": "observe", "context": context, "question": None, "text": n, "output": 0}
                  for context, n in self.observed.items()]  # fmt: skip
        lines += [line | {"phase": "read", "context": row.of, "question": row.id, "text": row.read[0],
                          "output": row.read[1]} for row in self.rows]  # fmt: skip
        lines += [line | {"phase": "judge", "context": "", "question": self.rows[0].id, "text": 10**6, "output": 1}]
        _lines(path / "ledger" / "w1.jsonl", lines)


def _lines(path: Path, values: Iterable[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(value) + "\n" for value in values))


def scored(values: Mapping[str, Any], name: str = "right", clusters: int = 10, **more: Any) -> list[Row]:
    """Rows of one score, spread evenly over clusters by the number in their id; categories by threes."""
    out = []
    for key, value in values.items():
        at = int(key.lstrip("q"))
        row = Row(key, {name: value}, category=("red", "green", "blue")[at % 3], cluster=f"conv-{at % clusters}")
        out.append(replace(row, **more))
    return out
