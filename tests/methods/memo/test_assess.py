"""Figures of trained models: worked by hand, beside what a constant would score."""

from __future__ import annotations

import json
from typing import Any

from memharness.datafile import Row
from memharness.methods.memo.assess import assess
from memharness.methods.memo.samples import Sample, extractor_sample, manager_sample


def planned(name: str, *actions: str) -> Sample:
    units = [{"id": f"u{at}", "content": f"fact {name} {at}"} for at, _ in enumerate(actions, 1)]
    return manager_sample(Row({"id": name, "question": name, "units": units, "plan": plan(*actions)}, name))


def plan(*actions: str) -> dict[str, Any]:
    rows = [{"id": f"u{at}", "action": action, "confidence": 1} for at, action in enumerate(actions, 1)]
    return {"units": rows, "usage": 1, "templates": ["cards"]}


def test_actions_are_counted_by_unit_and_beside_the_majority_of_what_was_learned() -> None:
    learned = [planned("a", "drop", "drop"), planned("b", "text")]
    test = [planned("c", "text", "drop"), planned("d", "drop", "image"), planned("e", "text")]
    said = [json.dumps(plan("text", "drop")), json.dumps(plan("drop", "text")), "no plan at all"]
    assert assess("manager", said, test, learned) == {
        "samples": 3,
        "in_form": 0.6667,
        "units": 5,
        "accuracy": 0.6,
        "majority": "drop",
        "majority_accuracy": 0.4,
        "whole": 0.3333,
        "recall": {"text": 0.5, "drop": 1.0, "image": 0.0},
    }


def found(name: str, *evidence: dict[str, Any]) -> Sample:
    records = [{"id": "p0", "text": "Ada sold it."}, {"id": "p1", "text": "Bo came."}]
    return extractor_sample(Row({"id": name, "question": name, "records": records, "evidence": list(evidence)}, name))


def test_sources_and_characters_are_counted_over_all_samples() -> None:
    test = [found("a", {"source": "p0", "quotes": ["Ada"]}), found("b", {"source": "p1", "quotes": []})]
    said = [
        json.dumps({"evidence": [{"source": "p0", "quotes": ["Ada sold"]}, {"source": "p1", "quotes": ["Cy"]}]}),
        json.dumps({"evidence": [{"source": "p1", "quotes": ["Bo"]}, {"source": "p0", "quotes": []}]}),
    ]
    figures = assess("extractor", said, test, [])
    assert (figures["in_form"], figures["exact"]) == (1.0, 0.5)  # a quote of nobody is no source
    assert figures["sources"] == {"precision": 0.6667, "recall": 1.0, "f1": 0.8}
    hit, wanted, shown = 3 + 2, 3 + 8, 8 + 2 + 12
    assert figures["characters"] == {
        "precision": round(hit / shown, 4),
        "recall": round(hit / wanted, 4),
        "f1": round(2 * hit / (shown + wanted), 4),
    }


def test_replies_out_of_form_are_wrong() -> None:
    figures = assess("extractor", ["{"], [found("a", {"source": "p0", "quotes": []})], [])
    assert (figures["in_form"], figures["exact"], figures["sources"]["recall"]) == (0.0, 0.0, 0.0)
