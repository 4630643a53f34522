"""Records, gold and scores as JSON lines, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from memharness.benchmark import ScoreRow
from memharness.types import (
    Case,
    Choice,
    Derived,
    Evidence,
    Gold,
    Image,
    Outcome,
    Part,
    Question,
    Record,
    Score,
    Status,
    Text,
    Video,
)


def evidence_out(evidence: Sequence[Evidence]) -> list[Any]:
    """Evidence as `[item]`, `[item, part]`, `[item, part, span]` or with a score; short, since there are many."""
    out: list[Any] = []
    for e in evidence:
        row = [e.item, e.part, list(e.span) if e.span else None, round(e.score, 6) if e.score is not None else None]
        while row[-1] is None:
            row.pop()
        out.append(row)
    return out


def evidence_in(rows: Sequence[Sequence[Any]]) -> tuple[Evidence, ...]:
    """Evidence from its short form."""
    out = []
    for row in rows:
        item, part, span, score = (*row, None, None, None)[:4]
        out.append(Evidence(item, part, tuple(span) if span else None, score))
    return tuple(out)


def record_out(record: Record, spent: Mapping[str, Any]) -> dict[str, Any]:
    """A record as a line; what is empty is left out."""
    line: dict[str, Any] = {
        "question": record.question,
        "context": record.context,
        "context_index": record.context_index,
        "index": record.index,
        "attempt": record.attempt,
        "outcome": record.outcome.value,
        "seconds": round(record.seconds, 6),
    }
    if record.answer is not None:
        line["answer"] = record.answer
    if record.evidence is not None:
        line["evidence"] = evidence_out(record.evidence)
    for name in ("extra", "requested", "cost", "view", "prompt", "flags", "error", "trace"):
        if value := getattr(record, name):
            line[name] = value
    if record.pictures:
        line["pictures"] = [part_out(image) for image in record.pictures]
    if spent:
        line["spent"] = spent
    return line


def record_in(line: Mapping[str, Any]) -> Record:
    """A record from its line; prompt and trace stay in the file."""
    evidence = line.get("evidence")
    return Record(
        question=line["question"],
        context=line["context"],
        context_index=line["context_index"],
        index=line["index"],
        outcome=Outcome(line["outcome"]),
        attempt=line["attempt"],
        answer=line.get("answer"),
        extra=line.get("extra", {}),
        evidence=None if evidence is None else evidence_in(evidence),
        requested=line.get("requested"),
        cost=line.get("cost", {}),
        view=line.get("view"),
        flags=tuple(line.get("flags", ())),
        error=line.get("error"),
        trace=line.get("trace", {}),
        seconds=line["seconds"],
        pictures=tuple(image_in(image) for image in line.get("pictures", ())),
    )


def part_out(part: Part) -> dict[str, Any]:
    """A part as JSON."""
    if isinstance(part, Text):
        return {"text": part.text}
    kind = "image" if isinstance(part, Image) else "video"
    return {kind: part.sha256, "mime": part.mime, "width": part.width, "height": part.height, "source": part.source}


def image_in(value: Mapping[str, Any]) -> Image:
    """A picture from JSON."""
    return Image(value["image"], value["mime"], value["width"], value["height"], value["source"])


def part_in(value: Mapping[str, Any]) -> Part:
    """A part from JSON."""
    if "text" in value:
        return Text(value["text"])
    if "image" in value:
        return image_in(value)
    return Video(value["video"], value["mime"], value["width"], value["height"], 0.0, value["source"])


def case_out(case: Case) -> dict[str, Any]:
    """A question with its gold, as `gold.jsonl` keeps it."""
    q, g = case.question, case.gold
    line: dict[str, Any] = {"question": q.id, "parts": [part_out(part) for part in q.parts], "answers": list(g.answers)}
    if q.choices:
        line["choices"] = [[choice.key, [part_out(part) for part in choice.parts]] for choice in q.choices]
    if q.derived:
        line["derived"] = [[d.kind, d.text, d.part] for d in q.derived]
    if g.evidence:
        line["evidence"] = evidence_out(g.evidence)
    more = {
        "instruction": q.instruction,
        "time": q.time,
        "form": "" if q.form == "text" else q.form,
        "category": g.category,
        "group": g.group,
        "cluster": g.cluster,
        "native_id": g.native_id,
        "abstain": g.abstain,
        "extra": g.extra,
    }
    return line | {name: value for name, value in more.items() if value}


def case_in(line: Mapping[str, Any]) -> Case:
    """A question with its gold, from its line."""
    question = Question(
        line["question"],
        line.get("context", ""),
        tuple(part_in(part) for part in line["parts"]),
        tuple(Choice(key, tuple(part_in(part) for part in parts)) for key, parts in line.get("choices", ())),
        line.get("instruction", ""),
        tuple(Derived(*d) for d in line.get("derived", ())),
        line.get("time"),
        line.get("form", "text"),
    )
    gold = Gold(
        tuple(line["answers"]),
        evidence_in(line.get("evidence", ())),
        line.get("category", ""),
        line.get("group"),
        line.get("cluster", ""),
        line.get("native_id", ""),
        line.get("abstain", False),
        line.get("extra", {}),
    )
    return Case(question, gold)


def row_out(row: ScoreRow) -> dict[str, Any]:
    """A line of `scores.jsonl`."""
    line: dict[str, Any] = {
        "unit": row.unit,
        "context": row.context,
        "scores": {n: score_out(s) for n, s in row.scores.items()},
    }
    for name in ("category", "cluster", "failed", "native_id", "extra"):
        if value := getattr(row, name):
            line[name] = value
    return line


def score_out(score: Score) -> Any:
    """A plain number for an ok score, else `[value, status, note]`."""
    if score.status is Status.OK and not score.note:
        return score.value
    return [score.value, score.status.value, score.note]


def score_in(value: Any) -> Score:
    """A score from its short form."""
    score = Score(value[0], Status(value[1]), value[2]) if isinstance(value, list) else Score(value)
    if score.value is not None and not math.isfinite(score.value):
        raise ValueError(f"{score.value} is no score")
    return score


def row_in(line: Mapping[str, Any]) -> ScoreRow:
    """A row from its line."""
    return ScoreRow(
        line["unit"],
        line["context"],
        line.get("category", ""),
        line.get("cluster", ""),
        {name: score_in(value) for name, value in line["scores"].items()},
        line.get("failed"),
        line.get("native_id", ""),
        line.get("extra", {}),
    )
