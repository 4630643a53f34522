"""The memory manager (q, U, B) → plan: an action for each unit and templates in order, by rules or by a model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from memharness.methods.memo import target
from memharness.methods.memo.builder import FINE, Builder
from memharness.methods.memo.units import Action, EvidenceUnit, Plan, Record, Rule, Template
from memharness.types import MethodError, Question

if TYPE_CHECKING:
    from memharness.method import MeteredReader

ATTEMPTS = 3
TEMPORAL = re.compile(
    r"\b(when|before|after|first|last|earlier|later|since|until|ago|date|day|month|year|order|long)\b", re.IGNORECASE
)
COMPARING = re.compile(
    r"\b(both|same|different|or|than|more|less|older|younger|which of|between|compare\w*)\b", re.IGNORECASE
)
STRUCTURED = (Template.TIMELINE, Template.TABLE, Template.CHECKLIST)
"""Templates whose page is worth less with a unit missing."""


def templates(question: Question, units: Sequence[EvidenceUnit], records: Mapping[str, Record]) -> tuple[Template, ...]:
    """Page templates in the order to be tried, by what the evidence is and what is asked of it.

    States of things make a checklist; dated records of a question about time a timeline; several sources of a question
    that compares a table; everything else cards. The other templates follow, those that need the least room first.
    """
    sources = {unit.source for unit in units}
    dates = {records[source].time for source in sources} - {""}
    first = Template.CARDS
    if any(records[source].kind == "state" for source in sources):
        first = Template.CHECKLIST
    elif len(dates) > 1 and TEMPORAL.search(question.text()):
        first = Template.TIMELINE
    elif len(sources) > 1 and COMPARING.search(question.text()):
        first = Template.TABLE
    rest = (Template.CARDS, Template.COLUMNS, Template.CHECKLIST, Template.TABLE, Template.TIMELINE)
    return (first, *(template for template in rest if template is not first))


def decide(question: Question, units: Sequence[EvidenceUnit], builder: Builder) -> Plan:
    """A plan by rules, without gold and without a reader.

    Text keeps exact words, so everything is text as long as everything fits. Otherwise two ways are compared: text
    alone, as many units as fit; and, for several lengths of a text of the best units, a page of as many others as the
    rest of the budget holds. The page is taken only if more relevance (the sum of the shown units' scores) is shown
    with it; of splits that show as much, the one with the most text, or on a page with a structure, with the most on
    the page. What must stay as text is text in every case; a page with a structure shows it as well (dual), while there
    is room.
    """
    order = templates(question, units, builder.records)
    confidence = _confidence(units)
    entries, over = builder.fill(units)
    alone = list(dict.fromkeys(entry.unit.id for entry in entries))
    actions = {unit.id: Action.TEXT if unit.id in alone else Action.DROP for unit in units}
    structured = order[0] in STRUCTURED
    if over and not builder.cannot_page():
        best = sum(unit.score for unit in units if unit.id in alone)
        for length in _halves(len(alone)):
            tried = _with_page(units, length, order, builder)
            worth = sum(unit.score for unit in units if unit.id in tried)
            if worth > best or (structured and worth == best and Action.IMAGE in actions.values()):
                actions, best = tried, worth
        if structured and Action.IMAGE in actions.values():
            actions = _anchored(units, actions, order, builder)
    return Plan(actions, confidence, templates=order)


def _halves(length: int) -> list[int]:
    """A length, its half, and so on down to 0."""
    return [length, *_halves(length // 2)] if length else [0]


def _with_page(
    units: Sequence[EvidenceUnit], length: int, order: Sequence[Template], builder: Builder
) -> dict[str, Action]:
    """The best `length` units and all that must stay text as text; on a page the longest beginning of the others."""
    first = {unit.id for unit in units[:length]}
    entries, _ = builder.fill(
        [unit for unit in units if unit.id in first or unit.priority.key is Rule.TEXT or not builder.drawable(unit)]
    )
    actions = {entry.unit.id: Action.TEXT for entry in entries}
    text = builder.packet(entries)
    rest = [
        unit
        for unit in units
        if unit.id not in actions and unit.priority.key is not Rule.TEXT and builder.drawable(unit)
    ]
    low, high = 0, len(rest)
    while low < high:
        middle = (low + high + 1) // 2
        fits = builder.layout(rest[:middle], order[:1], text, styles=FINE) is not None
        low, high = (middle, high) if fits else (low, middle - 1)
    return actions | {unit.id: Action.IMAGE for unit in rest[:low]}


def _anchored(
    units: Sequence[EvidenceUnit], actions: Mapping[str, Action], order: Sequence[Template], builder: Builder
) -> dict[str, Action]:
    """The same, with text units that must stay text on the page as well while there is room: first the best ones."""
    out = dict(actions)
    for unit in units:
        if out.get(unit.id) is not Action.TEXT or unit.priority.key is not Rule.TEXT or not builder.drawable(unit):
            continue
        tried = out | {unit.id: Action.DUAL}
        built = builder.build(units, Plan(tried, _confidence(units), templates=tuple(order[:1])))
        if all(built.shown[one] == action.value for one, action in tried.items() if action is not Action.DROP):
            out = tried
    return out


def _confidence(units: Sequence[EvidenceUnit]) -> dict[str, float]:
    """A unit's score as a share of the best one's; ties keep the extractor's order."""
    most = max((unit.score for unit in units), default=0.0)
    return {unit.id: max(0.0, min(1.0, unit.score / most)) if most > 0 else 1.0 for unit in units}


async def ask(
    reader: MeteredReader, question: Question, units: Sequence[EvidenceUnit], budget: int
) -> tuple[Plan, dict[str, object]]:
    """The trained manager's plan, and what is to be said of the call.

    Raises:
        MethodError: no attempt gave a reply in form.
    """
    request = target.manager_request(question, units, budget)
    held = "schema" in reader.card.capabilities
    if held:
        request = replace(request, schema=target.PLAN_SCHEMA)
    error = ""
    for attempt in range(ATTEMPTS):
        # Greedy first; another draw after a reply out of form, since the same words would bring the same reply.
        sampling = replace(request.sampling, temperature=0.7 if attempt else 0.0)
        reply = await reader.generate(replace(request, sampling=sampling, sample=attempt))
        try:
            return target.read_plan(reply.text, units), {"attempts": attempt + 1, "schema": held}
        except target.NotInForm as fault:
            error = str(fault)
    raise MethodError(f"manager: no reply in form in {ATTEMPTS} attempts, last: {error}")
