"""A run as three tidy tables, every column typed and explained: questions, scores, tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memharness.benchmark import ScoreRow
from memharness.ledger import KINDS
from memharness.run.folder import RunFolder
from memharness.run.gather import pairs
from memharness.run.pictures import asked_pictures
from memharness.run.score import rows
from memharness.run.wire import case_in
from memharness.store import read_lines
from memharness.types import Outcome, parts_text

COUNTS = (*KINDS, "cached", "reasoning", "calls")

Values = dict[str, Any]


@dataclass(frozen=True)
class Column:
    """A column: its name, its Arrow type (`list<string>` is a list), and what it holds."""

    name: str
    type: str
    words: str


RUN = (
    Column("run", "string", "identity of the run, 64 hex digits; two runs with the same one are the same run"),
    Column("method", "string", "memory method"),
    Column("bench", "string", "benchmark"),
    Column("reader", "string", "reader that answered"),
)

QUESTIONS = (
    *RUN,
    Column("data_state", "string", "given, prepared or sample; a sample says nothing about the published benchmark"),
    Column("context", "string", "memory that the question is asked of"),
    Column("context_index", "int64", "position of the context in the benchmark, from 0"),
    Column("index", "int64", "position of the question in its context, from 0"),
    Column("question", "string", "the harness's id of the question; the key of the other tables"),
    Column("native_id", "string", "the source's own id"),
    Column("category", "string", "question type, as the benchmark names it"),
    Column("cluster", "string", "what questions share for statistics, such as the conversation"),
    Column("group", "string", "questions scored together share it; null for none"),
    Column("form", "string", "text, choice or action"),
    Column("time", "string", "when it is asked, ISO 8601; null if the data do not say"),
    Column("text", "string", "the question's words; a picture stands as <image 1a2b…>"),
    Column("instruction", "string", "the benchmark's own answer-format words"),
    Column("choices", "list<string>", "options as 'A. words', in order; empty without options"),
    Column("pictures", "list<string>", "SHA-256 of the pictures that question and options show"),
    Column("gold_answers", "list<string>", "accepted answers"),
    Column("gold_evidence", "list<string>", "ids of the items that hold the answer"),
    Column("abstain", "bool", "whether the right answer is that the memory holds none"),
    Column("outcome", "string", ", ".join(Outcome)),
    Column("flags", "list<string>", "truncated, empty_readout, short_readout …"),
    Column("answer", "string", "the final answer; null if there is none"),
    Column("evidence", "list<string>", "ids of the items recalled, in order"),
    Column("evidence_scores", "list<double>", "the method's score of each; null where it gives none"),
    Column("view", "string", "pixels or captions: what the reader was shown of pictures"),
    Column("prompt", "string", "all that the reader saw; null where the method owns the loop"),
    Column("error", "string", "why there is no answer; null if there is one"),
    Column("attempts", "int64", "how often it was asked until this outcome"),
    Column("seconds", "double", "wall-clock seconds of the attempt that counts"),
)

SCORES = (
    *RUN,
    Column("context", "string", "memory that the unit belongs to"),
    Column("question", "string", "the question; null for scores of a group or an episode"),
    Column("unit", "string", "what is scored: a question, group or episode, by id"),
    Column("native_id", "string", "the source's own id of its first question"),
    Column("category", "string", "question type of its first question"),
    Column("cluster", "string", "cluster for statistics"),
    Column("score", "string", "name of the score"),
    Column("value", "double", "the score; null where the unit failed (counts 0 over all) or does not apply"),
    Column("status", "string", "ok, not_applicable, unparsed or judge_error; not_applicable leaves every mean"),
    Column("note", "string", "why there is no value, or what the metric says of it"),
    Column("failed", "string", "outcome of the unit's first question that has no answer; null if all have"),
)

TOKENS = (
    *RUN,
    Column("context", "string", "memory"),
    Column("question", "string", "the question; null for observing, which happens once for all of them"),
    Column("phase", "string", "observe, recall, read or answer; what judges cost is in the run's summary"),
    Column("text", "int64", "text tokens of prompts"),
    Column("image", "int64", "image tokens of prompts"),
    Column("output", "int64", "tokens generated"),
    Column("latent", "int64", "latent vectors, which are no tokens"),
    Column("cached", "int64", "prompt tokens that the engine had cached; a part of text and image"),
    Column("reasoning", "int64", "a part of output"),
    Column("calls", "int64", "calls of models"),
)

TABLES: Mapping[str, Sequence[Column]] = {"questions": QUESTIONS, "scores": SCORES, "tokens": TOKENS}


def table(folder: RunFolder, name: str) -> Iterator[Values]:
    """The rows of a table, streamed.

    Raises:
        DataError: if the run's files are damaged.
    """
    makers: Mapping[str, Callable[[RunFolder], Iterator[Values]]] = {
        "questions": _questions,
        "scores": _scores,
        "tokens": _tokens,
    }
    manifest = folder.manifest()
    memory = manifest["described"]["memory"]
    run = {
        "run": manifest["identity"]["reply"],
        "method": memory["method"],
        "bench": memory["benchmark"],
        "reader": manifest["spec"]["reader"],
    }
    for row in makers[name](folder):
        yield run | row


def _questions(folder: RunFolder) -> Iterator[Values]:
    state = folder.manifest()["described"]["data"]["state"]
    for record, line in pairs(folder):
        if record is None:
            continue
        case = case_in(line)
        question, gold = case.question, case.gold
        evidence = record.get("evidence", ())
        error = record.get("error")
        yield {
            "data_state": state,
            "context": record["context"],
            "context_index": record["context_index"],
            "index": record["index"],
            "question": record["question"],
            "native_id": gold.native_id,
            "category": gold.category,
            "cluster": gold.cluster,
            "group": gold.group,
            "form": question.form,
            "time": question.time,
            "text": parts_text(question.parts),
            "instruction": question.instruction,
            "choices": [f"{choice.key}. {parts_text(choice.parts)}" for choice in question.choices],
            "pictures": [str(image.sha256) for image in asked_pictures(question)],
            "gold_answers": list(gold.answers),
            "gold_evidence": list(dict.fromkeys(one.item for one in gold.evidence)),
            "abstain": gold.abstain,
            "outcome": record["outcome"],
            "flags": list(record.get("flags", ())),
            "answer": record.get("answer"),
            "evidence": [one[0] for one in evidence],
            "evidence_scores": [one[3] if len(one) > 3 else None for one in evidence],
            "view": record.get("view"),
            "prompt": record.get("prompt"),
            "error": f"{error.get('type', '')}: {error.get('message', '')}" if error else None,
            "attempts": record.get("attempts", record["attempt"]),
            "seconds": float(record["seconds"]),
        }


def _scores(folder: RunFolder) -> Iterator[Values]:
    asked = {line["question"] for _, line in read_lines(folder.path / "records.jsonl")}
    for row in rows(folder):
        yield from _scores_of(row, row.unit if row.unit in asked else None)


def _scores_of(row: ScoreRow, question: str | None) -> Iterator[Values]:
    for name, score in row.scores.items():
        yield {
            "context": row.context,
            "question": question,
            "unit": row.unit,
            "native_id": row.native_id,
            "category": row.category,
            "cluster": row.cluster,
            "score": name,
            "value": None if score.value is None else float(score.value),
            "status": score.status.value,
            "note": score.note,
            "failed": row.failed,
        }


def _tokens(folder: RunFolder) -> Iterator[Values]:
    for context, sums in observed(folder).items():
        yield {"context": context, "question": None, "phase": "observe", **sums}
    for _, record in read_lines(folder.path / "records.jsonl"):
        for phase, sums in record.get("spent", {}).items():
            counts = {name: sums.get(name, 0) for name in COUNTS}
            yield {"context": record["context"], "question": record["question"], "phase": phase, **counts}


def observed(folder: RunFolder) -> dict[str, dict[str, int]]:
    """What observing each context cost, by the worker whose memory answered; a second observation is not counted."""
    ready: dict[str, str] = {}
    sums: dict[tuple[str, str], dict[str, int]] = {}
    for path in folder.files("ledger"):
        for _, line in read_lines(path):
            if line["kind"] == "ready":
                ready.setdefault(line["context"], path.stem)
            if line.get("phase") == "observe" and line["status"] == "ok":
                counts = sums.setdefault((line["context"], path.stem), dict.fromkeys(COUNTS, 0))
                for name in COUNTS:
                    counts[name] += 1 if name == "calls" else line[name]
    return {context: counts for (context, worker), counts in sums.items() if ready.get(context, worker) == worker}
