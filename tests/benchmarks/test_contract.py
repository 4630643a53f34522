"""What every bundled benchmark holds to, on its sample: order, ids, isolation of gold, metrics that print and parse."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

import memharness.scoring.metrics as shared_metrics
from memharness.benchmark import Ask, Benchmark, Observe
from memharness.benchmarks import atm, hotpotqa, locomo, mem_gallery
from memharness.metric import Metric, parse_metric
from memharness.types import Asked, Gold, Outcome, Question, Record

KINDS: dict[str, type[Benchmark]] = {
    "atm": atm.ATMBench,
    "hotpotqa": hotpotqa.HotpotQA,
    "locomo": locomo.LoCoMo,
    "mem_gallery": mem_gallery.MemGallery,
}
CANARY = "zanzibar-canary-7"
PRIVATE = {"answer", "notes", "adversarial_answer", "query", "persona_summary", "level"}


@pytest.fixture(params=KINDS)
def opened(request: pytest.FixtureRequest, bench: Callable[..., Any], sample: Callable[[str], Path]) -> Any:
    return bench(KINDS[request.param], sample(request.param))


async def test_episode_observes_then_asks(opened: Any) -> None:
    for context in opened.contexts():
        observe, ask = [event async for event in opened.episode(context).play()]
        assert isinstance(observe, Observe)
        assert isinstance(ask, Ask)
        items, cases = observe.items, list(ask.cases)
        assert items
        assert cases
        assert [item.order for item in items] == list(range(len(items)))
        assert {item.context for item in items} == {context} == {case.question.context for case in cases}
        ids = {item.id for item in items}
        assert len(ids) == len(items)
        assert all(evidence.item in ids for case in cases for evidence in case.gold.evidence)
        assert all(case.gold.extra["items"] == len(items) for case in cases)


def test_question_ids_are_unique_opaque_and_stable(opened: Any) -> None:
    cases = [case for context in opened.contexts() for case in opened.episode(context).cases]
    ids = [case.question.id for case in cases]
    assert len(set(ids)) == len(ids) == len({case.gold.native_id for case in cases})
    assert all(len(name) == 12 and int(name, 16) >= 0 for name in ids)
    assert ids == [case.question.id for context in opened.contexts() for case in opened.episode(context).cases]


def test_metrics_print_as_they_are_parsed(opened: Any) -> None:
    for metric in opened.metrics():
        assert parse_metric(str(metric), {type(metric).__name__: type(metric)}) == metric


def test_every_metric_scores_under_names_of_its_own_and_from_gold_read_back_as_json(opened: Any) -> None:
    for context in list(opened.contexts())[:3]:
        for case in opened.episode(context).cases:
            gold = replace(case.gold, extra=json.loads(json.dumps(dict(case.gold.extra))))
            assert json.dumps(asdict(case.gold))
            unit, names = perfect(case.question, case.gold), list[str]()
            for metric in opened.metrics():
                scores = metric.score([unit], {})
                names += scores
                assert scores == metric.score([replace(unit, gold=gold)], {})
            assert len(set(names)) == len(names)


def test_gold_as_answer_and_evidence_is_right(opened: Any) -> None:
    values: dict[str, list[float]] = {}
    for context in opened.contexts():
        for case in opened.episode(context).cases:
            for metric in opened.metrics():
                for name, score in metric.score([perfect(case.question, case.gold)], {}).items():
                    if score.value is not None:
                        values.setdefault(name, []).append(score.value)
    means = {name: sum(one) / len(one) for name, one in values.items()}
    assert means["recall_readout"] == 1
    assert means.get("em", means.get("f1")) == pytest.approx(1, abs=0.15)


def test_check_finds_no_error_and_digest_is_plain(opened: Any) -> None:
    assert opened.check()
    assert not [finding for finding in opened.check() if finding.level == "error"]
    assert all(len(sha) == 64 for sha in opened.digest().values())


@pytest.mark.parametrize("name", KINDS)
def test_raw_canary(name: str, bench: Callable[..., Any], sample: Callable[[str], Path]) -> None:
    """A field that no loader knows, and every field that only scoring may see, stay out of what a method is given."""
    folder = sample(name)
    for path in folder.rglob("*.json"):
        path.write_text(json.dumps(poisoned(json.loads(path.read_text()))))
    opened = bench(KINDS[name], folder)
    for context in opened.contexts():
        episode = opened.episode(context)
        assert CANARY not in repr(list(episode.items))
        assert CANARY not in repr([case.question for case in episode.cases])


def test_every_shared_metric_is_found_by_name_and_prints_as_it_is_parsed() -> None:
    classes = dict(metric_classes())
    known = {"ExactMatch", "F1", "Recall", "RecallAll", "HitRate", "Precision", "AnswerLength", "Abstained"}
    assert known <= set(classes)
    for text in (
        "Recall@10",
        "F1(norm=locomo)",
        "Precision(forced=True)@3",
        "RecallReadout",
        "Abstained(phrases=no|sorry)",
    ):
        assert str(parse_metric(text, classes)) == text


def metric_classes() -> Iterator[tuple[str, type[Metric]]]:
    for name, value in vars(shared_metrics).items():
        if isinstance(value, type) and issubclass(value, Metric) and value not in (Metric, shared_metrics.Retrieval):
            yield name, value


def perfect(question: Question, gold: Gold) -> Asked:
    answer = gold.answers[0] if gold.answers else "not mentioned"
    record = Record(question.id, question.context, 0, 0, Outcome.OK, answer=answer, evidence=gold.evidence)
    return Asked(question, gold, record)


def poisoned(value: Any) -> Any:
    if isinstance(value, list):
        return [poisoned(one) for one in value]
    if not isinstance(value, dict):
        return value
    own = {
        key: f"{CANARY} 3" if key in PRIVATE and isinstance(one, str | int) else poisoned(one)
        for key, one in value.items()
    }
    return {**own, "has_answer": CANARY, "hint": {"deep": CANARY}}
