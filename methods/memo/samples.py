"""Training samples: prompts with their targets, read from examples or from files, and divided so that nothing leaks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from memharness.datafile import Row, read_lines
from memharness.identity import digest
from memharness.methods.memo import target
from memharness.methods.memo.supervision import Example
from memharness.methods.memo.target import NotInForm
from memharness.methods.memo.units import Action, EvidenceUnit, Plan, Record, Span
from memharness.reader import Request
from memharness.store import encode
from memharness.types import Question, Text, UserError

Split = Literal["train", "val", "test"]
SHARES: Mapping[Split, float] = {"test": 0.1, "val": 0.1, "train": 0.8}
REMEDY = "correct the line, or make the file again"


@dataclass(frozen=True, slots=True)
class Sample:
    """One prompt and the reply to learn.

    Attributes:
        id: of the question.
        group: what is never divided between splits: a conversation, a game, or the question itself.
        request: what the model is asked.
        target: what it should reply.
        asked: the question's words, for the search for leaks; empty where words are no leak.
        evidence: digests of the words that the target needs; empty where words are no leak.
        texts: digests of all words the prompt shows.
        ground: the records or units of the prompt, to read replies with.
        where: what to name in an error.
    """

    id: str
    group: str
    request: Request
    target: str
    asked: str
    evidence: frozenset[str]
    texts: frozenset[str]
    ground: tuple[Record, ...] | tuple[EvidenceUnit, ...]
    where: str


# --------------------------------------------------------------------------------------------------- what is in a file


def extractor_row(example: Example, budget: int | None) -> dict[str, Any]:
    """An example as a line of a file: see `extractor_sample`."""
    found = Row(_json(target.extraction(example.found, example.records)), "")
    records = [
        {name: getattr(one, name) for name in ("id", "text", "title", "time", "speaker") if getattr(one, name)}
        for one in example.records
    ]
    return _row(example.case.question, example.group, budget, example.unique) | {
        "records": records,
        "evidence": found.values["evidence"],
        "weak": example.weak,
    }


def manager_row(
    example: Example, budget: int | None, units: Sequence[EvidenceUnit], plan: Plan, more: Mapping[str, Any]
) -> dict[str, Any]:
    """A labelled example as a line of a file: see `manager_sample`. `more` is kept beside it."""
    shown = [
        {"id": unit.id, "content": unit.content, "spans": [list(span) for span in unit.highlights]} for unit in units
    ]
    row = _row(example.case.question, example.group, budget, example.unique)
    return row | {"units": shown, "plan": _json(target.plan(plan, units)), **more}


def _row(question: Question, group: str, budget: int | None, unique: bool) -> dict[str, Any]:
    return {"id": question.id, "group": group, "question": question.text(), "budget": budget, "unique": unique}


def _json(text: str) -> dict[str, Any]:
    import json

    value: dict[str, Any] = json.loads(text)
    return value


def read_samples(path: Path, kind: Literal["extractor", "manager"]) -> list[Sample]:
    """The samples of a JSON-lines file.

    Raises:
        DataError: naming file, line and field of what is missing or not in the form.
    """
    make = extractor_sample if kind == "extractor" else manager_sample
    samples = [make(row) for row in read_lines(path)]
    if not samples:
        raise UserError(f"{path}: holds no sample")
    return samples


def extractor_sample(row: Row) -> Sample:
    """A line `{id, group?, question, budget?, unique?, records: [{id, text, title?, time?, speaker?}], evidence}`.

    `evidence` is as in the extractor's target: `[{source, quotes}]`.

    Raises:
        DataError: naming the field.
    """
    records = tuple(
        Record(one.text("id"), one.text("text"), one.text("title", ""), one.text("time", ""), one.text("speaker", ""))
        for one in row.rows("records")
    )
    _once(row, "records", [record.id for record in records])
    try:
        found = target.read_extraction(encode({"evidence": row.values.get("evidence")}), records)
    except NotInForm as error:
        raise row.error("evidence", str(error), REMEDY) from None
    if lost := [source for source, spans in found if not spans]:
        raise row.error("evidence", f"{lost[0]!r} is no record, or holds not all its quotes", REMEDY)
    texts = {record.id: _form(record.text) for record in records}
    question, budget = _question(row), _budget(row)
    request = target.extractor_request(question, records, budget)
    needed = frozenset(texts[source] for source, _ in found)
    return _sample(row, question, request, target.extraction(found, records), needed, texts, records)


def manager_sample(row: Row) -> Sample:
    """A line `{id, group?, question, budget?, unique?, units: [{id, content, spans: [[start, end]]}], plan}`.

    Spans count characters of the content; `plan` is as in the manager's target: `{units, usage, templates}`. Every unit
    must have its action.

    Raises:
        DataError: naming the field.
    """
    units = tuple(map(_unit, row.rows("units")))
    if not units:
        raise row.error("units", "is empty", REMEDY)
    _once(row, "units", [unit.id for unit in units])
    try:
        plan = target.read_plan(encode(row.values.get("plan")), units)
    except NotInForm as error:
        raise row.error("plan", str(error), REMEDY) from None
    if lost := [unit.id for unit in units if unit.id not in plan.actions]:
        raise row.error("plan", f"has no action for unit {lost[0]}", REMEDY)
    texts = {unit.id: _form(unit.content) for unit in units}
    question, budget = _question(row), _budget(row)
    request = target.manager_request(question, units, budget)
    needed = frozenset(texts[unit.id] for unit in units if plan.action(unit) is not Action.DROP)
    return _sample(row, question, request, target.plan(plan, units), needed, texts, units)


def _unit(row: Row) -> EvidenceUnit:
    content = row.text("content")
    spans: list[Span] = []
    value = row.values.get("spans", [[0, len(content)]])
    for at, span in enumerate(value if isinstance(value, list) else [value]):
        whole = isinstance(span, list) and len(span) == 2 and all(type(place) is int for place in span)
        if not (whole and 0 <= span[0] < span[1] <= len(content) and (not spans or spans[-1][1] <= span[0])):
            raise row.error(f"spans[{at}]", f"must be [start, end] in {len(content)} characters, in order", REMEDY)
        spans.append((span[0], span[1]))
    return EvidenceUnit(row.text("id"), content, tuple(spans), row.text("source", ""))


def _sample(
    row: Row,
    question: Question,
    request: Request,
    wanted: str,
    needed: frozenset[str],
    texts: Mapping[str, str],
    ground: Any,
) -> Sample:
    unique = row.values.get("unique", True)
    if not isinstance(unique, bool):
        raise row.error("unique", "must be true or false", REMEDY)
    asked = _form(question.text()) if unique else ""
    group = row.text("group", question.id)
    shown = frozenset(texts.values()) if unique else frozenset()
    return Sample(question.id, group, request, wanted, asked, needed & shown, shown, ground, row.where)


def _question(row: Row) -> Question:
    return Question(row.text("id"), row.text("id"), (Text(row.text("question")),))


def _budget(row: Row) -> int | None:
    if not row.has("budget"):
        return None
    budget = row.whole("budget")
    if budget < 1:
        raise row.error("budget", f"{budget} is no number of tokens", REMEDY)
    return budget


def _once(row: Row, field: str, names: Sequence[str]) -> None:
    twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
    if twice is not None:
        raise row.error(field, f"{twice!r} comes twice", REMEDY)


def _form(text: str) -> str:
    """What two texts share that differ in case and white space only."""
    return digest(" ".join(text.casefold().split()))


# --------------------------------------------------------------------------------------------------------- the splits


def split_of(group: str, seed: int = 0) -> Split:
    """The split of a group, by a hash of its name: the same whatever else is in the data.

    With seed 0 LoCoMo's ten conversations are 8 for training, 1 for validation and 1 for the test.
    """
    place = int.from_bytes(hashlib.sha256(f"memo-{seed}\x1f{group}".encode()).digest()[:8], "big") / 2**64
    for split in ("test", "val"):
        place -= SHARES[split]
        if place < 0:
            return split
    return "train"


@dataclass(frozen=True)
class Divided:
    """Samples by split, and how many were left out because they would leak."""

    train: Sequence[Sample]
    val: Sequence[Sample]
    test: Sequence[Sample]
    leaks: int = 0

    @property
    def sizes(self) -> dict[str, int]:
        """Samples in each split, and those left out."""
        return {"train": len(self.train), "val": len(self.val), "test": len(self.test), "left out": self.leaks}


def divide(samples: Iterable[Sample], seed: int = 0) -> Divided:
    """Samples by split, each group whole in one, without a leak.

    Of two samples in different splits that ask the same question, or of which one's evidence is among what the other
    shows, the one further from the test is left out. So no context, no evidence and no question is in two splits.
    """
    parts: dict[Split, list[Sample]] = {"test": [], "val": [], "train": []}
    for sample in samples:
        parts[split_of(sample.group, seed)].append(sample)
    return _without_leaks(parts)


def hold_out(train: Iterable[Sample], test: Iterable[Sample], seed: int = 0) -> Divided:
    """A test set of its own, and the rest divided into training and validation.

    Raises:
        UserError: a group is in both.
    """
    held = list(test)
    groups = {sample.group: sample.where for sample in held}
    parts: dict[Split, list[Sample]] = {"test": held, "val": [], "train": []}
    for sample in train:
        if sample.group in groups:
            raise UserError(
                f"{sample.where}: group: {sample.group!r} is also held out ({groups[sample.group]}); "
                "a group must be in one of the two files"
            )
        parts["val" if split_of(sample.group, seed) == "val" else "train"].append(sample)
    return _without_leaks(parts)


def _without_leaks(parts: Mapping[Split, list[Sample]]) -> Divided:
    asked: set[str] = set()
    evidence: set[str] = set()
    texts: set[str] = set()
    kept: dict[Split, list[Sample]] = {}
    for split in ("test", "val", "train"):
        kept[split] = [
            one
            for one in parts[split]
            if one.asked not in asked and one.evidence.isdisjoint(texts) and one.texts.isdisjoint(evidence)
        ]
        asked |= {one.asked for one in kept[split]} - {""}
        evidence = evidence.union(*(one.evidence for one in kept[split]))
        texts = texts.union(*(one.texts for one in kept[split]))
    lost = sum(map(len, parts.values())) - sum(map(len, kept.values()))
    return Divided(kept["train"], kept["val"], kept["test"], lost)
