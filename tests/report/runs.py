"""Summaries as runs write them, for tests of what people see."""

from __future__ import annotations

import copy
from typing import Any


def _score(value: float, low: float, high: float, method: str, clusters: int | None) -> dict[str, Any]:
    valid = {"n": 100, "n_valid": 100, "value_valid": value}
    return {"value": value, "low": low, "high": high, **valid, "method": method, "clusters": clusters}


SUMMARY: dict[str, Any] = {
    "run": "results/runs/mem_gallery-graphmemix-smollm2-1a2b3c4d",
    "identity": "1a2b3c4d" * 8,
    "method": "graphmemix",
    "bench": "mem-gallery",
    "reader": "smollm2",
    "data_state": "given",
    "track": "evidence",
    "control": False,
    "n": 100,
    "outcomes": {"ok": 100},
    "flags": {},
    "scores": {
        "f1": _score(0.412, 0.331, 0.496, "t(9)", 10),
        "em": _score(0.25, 0.175, 0.343, "wilson", None),
    },
    "official": {"f1": 0.412, "f1.temporal": 0.5, "em.temporal": 0.25, "bleu_1": 0.33},
    "primary": "f1",
    "tokens": {
        "observe": {"text": 4000, "image": 0, "output": 1000, "latent": 0},
        "read": {"text": 90_000, "image": 0, "output": 5000, "latent": 0},
    },
    "calls": {"observe": 12, "read": 100},
    "seconds": {"observe": 3.25, "recall": 1.0, "read": 61.5},
    "price": 0.0,
    "spent": {"tokens": 100_000, "calls": 112, "price": 0.0},
    "seed": 0,
    "budget": 2000,
    "items": 10,
    "view": "captions",
    "judge": None,
    "embedder": "minilm",
    "models": {},
    "config": {"verifier": "similarity", "k": 10, "edges": True},
    "until": None,
    "subset": None,
    "selection": {"limit": None, "ids": None},
    "complete": True,
    "notes": [],
}  # fmt: skip


def summary(value: float | None = None, **changes: Any) -> dict[str, Any]:
    """A summary with some fields changed; `value` is the primary score's."""
    made = copy.deepcopy(SUMMARY) | changes
    if value is not None:
        made["scores"][made["primary"]]["value"] = value
    return made
