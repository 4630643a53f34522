"""Banks: answers of known worth, on which a judge is measured before its verdicts on others are believed.

A bank of one's own is JSON lines, one answer each:

    {"id": "q1", "question": "When did Ann move?", "gold": "7 May 2023", "kind": "wrong-vague", "answer": "in spring",
     "category": "temporal", "conversation": "c1"}

`kind` is `right`, `wrong-specific` (another fact in the place of the right one) or `wrong-vague` (on topic, without the
fact). Lines of one `id` are answers to one question. `gold` may be a list of accepted answers; a `right` line without
`answer` has the gold itself for one. `category` and `conversation` may be left out; answers of one conversation are not
taken as independent. `recorded` may hold earlier verdicts (true or false, or a list of them) to compare with.

The audit of LoCoMo's common judge (github.com/dial481/locomo-audit, `ap_eval_results_scored.json` of ap-baseline v1 and
v2) is read as published: v1 is specific wrong answers, v2 vague ones; right answers are made of the gold itself.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from memharness.datafile import Row, existing, kind, read_json, read_lines
from memharness.types import UserError

RIGHT, SPECIFIC, VAGUE = "right", "wrong-specific", "wrong-vague"
KINDS = (RIGHT, SPECIFIC, VAGUE)
AUDITOR = "gpt-4o-mini"  # whose verdicts the audit's files carry, under a prompt like the generous rubric
_VERSION = re.compile(r"(?<![a-z0-9])v([12])(?![0-9])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Known:
    """An answer of known worth.

    Attributes:
        id: of the question.
        gold: accepted answers.
        kind: `right`, `wrong-specific` or `wrong-vague`.
        conversation: what answers share that are not independent, or empty.
        recorded: earlier verdicts on this answer, as the bank carries them.
    """

    id: str
    question: str
    gold: tuple[str, ...]
    answer: str
    kind: str
    category: str = ""
    conversation: str = ""
    recorded: tuple[bool, ...] = ()

    @property
    def asked(self) -> tuple[str, str]:
        """What answers to one question share."""
        return self.id, self.question


@dataclass(frozen=True)
class Bank:
    """A bank's answers; `judge` is who gave the verdicts that it carries, if it says so."""

    path: Path
    sha256: str
    answers: Sequence[Known]
    judge: str = ""


def read_bank(path: Path) -> Bank:
    """A bank file, of one's own or of the LoCoMo audit.

    Raises:
        DataError: for a file that is neither; it names the record and the field.
    """
    raw = existing(path).read_bytes()
    if path.suffix == ".jsonl":
        answers, judge = _own(path), ""
    else:
        answers, judge = list(_audit(path)), AUDITOR
    if not answers:
        raise UserError(f"{path}: holds no answer")
    return Bank(path, hashlib.sha256(raw).hexdigest(), answers, judge)


def chosen(banks: Sequence[Bank], limit: int | None = None) -> list[Known]:
    """The answers of several banks, each once.

    Args:
        banks: the banks; what is the same in two of them, such as the gold itself, is kept once.
        limit: take that many questions, evenly spread over all, each with all its answers.
    """
    answers = dict.fromkeys(replace(answer, recorded=()) for bank in banks for answer in bank.answers)
    recorded = {replace(answer, recorded=()): answer.recorded for bank in banks for answer in bank.answers}
    questions = list(dict.fromkeys(answer.asked for answer in answers))
    if limit is not None and limit < len(questions):
        questions = [questions[place * len(questions) // limit] for place in range(limit)]
    kept = set(questions)
    return [replace(answer, recorded=recorded[answer]) for answer in answers if answer.asked in kept]


# -------------------------------------------------------------------------------------------------- a bank of one's own


def _own(path: Path) -> list[Known]:
    return [_known(row) for row in read_lines(path)]


LINES = 'JSON lines (*.jsonl) such as {"id": "q1", "question": "…", "gold": "…", "kind": "wrong-vague", "answer": "…"}'
FIELDS = ("id", "question", "gold", "answer", "kind", "category", "conversation", "recorded")


def _known(row: Row) -> Known:
    if unknown := [field for field in row.values if field not in FIELDS]:
        raise row.error(unknown[0], f"is no field of a bank; there are: {', '.join(FIELDS)}", "leave it out")
    gold = row.texts("gold") if isinstance(row.values.get("gold"), list) else (row.text("gold"),)
    if not gold:
        raise row.error("gold", "is empty", "give at least one accepted answer")
    worth = row.text("kind")
    if worth not in KINDS:
        raise row.error("kind", f"{worth!r} is not one of {', '.join(KINDS)}", "say what the answer is worth")
    answer = gold[0] if worth == RIGHT and not row.has("answer") else row.text("answer")
    said = row.values.get("recorded")
    verdicts = said if isinstance(said, list) else [] if said is None else [said]
    if not all(isinstance(verdict, bool) for verdict in verdicts):
        raise row.error("recorded", "must be true, false or a list of them", "write each earlier verdict as such")
    return Known(
        row.text("id"), row.text("question"), gold, answer, worth, row.text("category", ""),
        row.text("conversation", ""), tuple(verdicts),
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------------ LoCoMo's audit


def _audit(path: Path) -> Iterator[Known]:
    """The wrong answers of one audit file, each followed by the gold as a right one."""
    value = read_json(path)
    if not isinstance(value, dict) or not isinstance(value.get("detailed_results"), dict):
        raise UserError(f"{path}: no bank: neither an audit file with `detailed_results` nor {LINES}")
    worth = _worth(path)
    for conversation in value["detailed_results"]:
        for row in Row(value["detailed_results"], str(path)).rows(conversation):
            judged = row.row("llm_judgments").values.values()
            if not all(isinstance(verdict, bool) for verdict in judged):
                wrong = next(verdict for verdict in judged if not isinstance(verdict, bool))
                raise row.error("llm_judgments", f"must be true or false each, not {kind(wrong)}")
            gold = row.text("golden_answer")
            known = Known(
                row.text("question_id"), row.text("question"), (gold,), row.text("generated_answer"), worth,
                row.text("category"), conversation, tuple(bool(verdict) for verdict in judged),
            )  # fmt: skip
            yield known
            yield replace(known, answer=gold, kind=RIGHT, recorded=())


def _worth(path: Path) -> str:
    """Which kind of wrong answers an audit file holds, which it does not say itself."""
    named = _VERSION.findall(path.stem) or _VERSION.findall(path.absolute().parent.name)
    if len(set(named)) != 1:
        raise UserError(
            f"{path}: its name does not tell whether it is the audit's v1 (specific wrong answers) or v2 (vague ones); "
            "keep `v1` or `v2` in the name of the file or its folder"
        )
    return {"1": SPECIFIC, "2": VAGUE}[named[0]]
