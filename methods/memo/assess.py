"""What a trained extractor or manager is worth on held-out samples, beside what a constant would be."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from memharness.methods.memo import target
from memharness.methods.memo.samples import Sample
from memharness.methods.memo.target import NotInForm
from memharness.methods.memo.units import Action, EvidenceUnit, Plan, Record
from memharness.reader import Reader
from memharness.types import OverWindow

Role = Literal["extractor", "manager"]


async def replies(reader: Reader, samples: Sequence[Sample]) -> list[str]:
    """The reader's greedy reply to each prompt; empty where the prompt is longer than its window.

    The reader is started and closed.
    """

    async def one(sample: Sample) -> str:
        try:
            return (await reader.generate(sample.request)).text
        except OverWindow:
            return ""

    await reader.start()
    try:
        return list(await asyncio.gather(*map(one, samples)))
    finally:
        await reader.close()


def assess(role: Role, said: Sequence[str], samples: Sequence[Sample], learned: Sequence[Sample]) -> dict[str, Any]:
    """Figures over the held-out samples; a reply out of form counts as wrong in all of them.

    Args:
        role: whose samples they are.
        said: reply by sample.
        samples: held out.
        learned: training samples, whose most frequent action is the constant to compare with.
    """
    if role == "manager":
        return assess_plans(said, samples, learned)
    return assess_extractions(said, samples)


def assess_plans(said: Sequence[str], samples: Sequence[Sample], learned: Iterable[Sample]) -> dict[str, Any]:
    """Accuracy of actions over units, beside that of always the most frequent action of the training samples.

    Keys: samples, in_form (share of replies), units, accuracy, majority (its action), majority_accuracy, whole (share
    of samples with every action right), recall (by gold action).
    """
    majority = Counter(action for sample in learned for action in _plan(sample).actions.values()).most_common(1)[0][0]
    right: Counter[Action] = Counter()
    units: Counter[Action] = Counter()
    formed = whole = 0
    for reply, sample in zip(said, samples, strict=True):
        ground, wanted = _units(sample), _plan(sample)
        plan = _read(reply, ground)
        formed += plan is not None
        hits = [plan is not None and plan.action(unit) is wanted.action(unit) for unit in ground]
        whole += all(hits)
        for unit, hit in zip(ground, hits, strict=True):
            units[wanted.action(unit)] += 1
            right[wanted.action(unit)] += hit
    return {
        "samples": len(samples),
        "in_form": _share(formed, len(samples)),
        "units": units.total(),
        "accuracy": _share(right.total(), units.total()),
        "majority": majority.value,
        "majority_accuracy": _share(units[majority], units.total()),
        "whole": _share(whole, len(samples)),
        "recall": {action.value: _share(right[action], n) for action, n in units.items()},
    }


def _read(reply: str, units: Sequence[EvidenceUnit]) -> Plan | None:
    try:
        return target.read_plan(reply, units)
    except NotInForm:
        return None


def _plan(sample: Sample) -> Plan:
    return target.read_plan(sample.target, _units(sample))


def _units(sample: Sample) -> tuple[EvidenceUnit, ...]:
    return tuple(one for one in sample.ground if isinstance(one, EvidenceUnit))


def assess_extractions(said: Sequence[str], samples: Sequence[Sample]) -> dict[str, Any]:
    """Micro precision, recall and F1 of sources, and of the characters of key spans.

    Keys: samples, in_form (share of replies), exact (share of samples with just the right sources), sources and
    characters, each {precision, recall, f1}.
    """
    formed = exact = 0
    sources, characters = Counter[str](), Counter[str]()
    for reply, sample in zip(said, samples, strict=True):
        records = tuple(one for one in sample.ground if isinstance(one, Record))
        wanted = _places(target.read_extraction(sample.target, records))
        try:
            found = _places(target.read_extraction(reply, records))
            formed += 1
        except NotInForm:
            found = {}
        exact += found.keys() == wanted.keys()
        _count(sources, found.keys(), wanted.keys())
        _count(characters, _flat(found), _flat(wanted))
    return {
        "samples": len(samples),
        "in_form": _share(formed, len(samples)),
        "exact": _share(exact, len(samples)),
        "sources": _agreement(sources),
        "characters": _agreement(characters),
    }


def _places(found: target.Extraction) -> dict[str, set[int]]:
    """Characters by source; an entry without spans is no evidence."""
    return {source: {at for start, end in spans for at in range(start, end)} for source, spans in found if spans}


def _flat(places: Mapping[str, set[int]]) -> set[tuple[str, int]]:
    return {(source, at) for source, held in places.items() for at in held}


def _count(counts: Counter[str], found: Any, wanted: Any) -> None:
    counts.update(found=len(found), wanted=len(wanted), both=len(found & wanted))


def _agreement(counts: Counter[str]) -> dict[str, float]:
    found, wanted, both = counts["found"], counts["wanted"], counts["both"]
    return {
        "precision": _share(both, found),
        "recall": _share(both, wanted),
        "f1": _share(2 * both, found + wanted),
    }


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0
