"""What a run would do and cost, before anything is spent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memharness.benchmark import Ask, Observe
from memharness.prompts import Renderer, answer_request
from memharness.reader import count
from memharness.run import prices
from memharness.run.runner import ITEMS
from memharness.run.setup import Setup, inherit, picks, setup
from memharness.run.spec import RunSpec
from memharness.types import Evidence, Item, Readout, Usage


@dataclass(frozen=True)
class Plan:
    """What a run would do and cost, as far as can be said before anything is spent."""

    contexts: int
    questions: int | None
    calls: Mapping[str, int]
    tokens: Mapping[str, Mapping[str, int]]
    price: float | None
    price_date: str | None
    notes: Sequence[str]
    view: str
    data_state: str
    identity: str
    folder: Path


SAMPLED = 20  # questions whose prompts are built to estimate tokens


def plan(spec: RunSpec) -> Plan:
    """Estimate a run; nothing is loaded or spent. Evidence is sized as the first items, in the real prompt."""
    ready = setup(inherit(spec))
    return asyncio.run(_plan(ready))


async def _plan(ready: Setup) -> Plan:
    chosen = await picks(ready)
    counts = [pick.count for pick in chosen]
    questions = None if None in counts else sum(n or 0 for n in counts)
    n = questions or 0
    text, image, sized, observed = 0, 0, 0, 0
    k = ready.spec.items or ITEMS
    counter = ready.readers[ready.roles["answer"]].counter
    for pick in chosen:
        if pick.live or sized >= SAMPLED:
            break
        async for event in ready.benchmark.episode(pick.context).play():
            if isinstance(event, Observe):
                items: dict[str, Item] = {item.id: item for item in event.items}
                observed = len(items)
                renderer = Renderer(items, ready.view)
            elif isinstance(event, Ask):
                for case in list(event.cases)[: SAMPLED - sized]:
                    evidence = tuple(Evidence(item) for item in list(items)[:k])
                    request = answer_request(
                        case.question, Readout(evidence), renderer, ready.sampling, ready.spec.prompt
                    )
                    tokens = count(counter, request.parts())
                    text += tokens
                    sized += 1
    per_call = text // sized if sized else 0
    calls: dict[str, int] = {}
    tokens_by: dict[str, dict[str, int]] = {}
    card = ready.method.card
    if card.track == "evidence" and ready.reads:
        calls["read"] = n
        tokens_by["read"] = {"text": per_call * n, "image": image, "output": ready.spec.max_tokens * n}
    for phases in ready.method.roles().values():
        for phase in phases:
            times = n if phase in ("recall", "answer") else len(chosen)
            calls[phase] = calls.get(phase, 0) + times
            sums = tokens_by.setdefault(phase, {"text": 0, "image": 0, "output": 0})
            sums["text"] += per_call * times
            sums["output"] += ready.spec.max_tokens * times
    price, dated, notes = _estimate(ready, tokens_by)
    if questions is None:
        notes.append("this benchmark does not say how many questions it has; calls and tokens are unknown")
    if ready.method.roles():
        notes.append(f"{', '.join(ready.method.roles())}: at least one call a question is counted for each role")
    if observed:
        notes.append(f"evidence sized as {k} items of the first context ({observed} items)")
    return Plan(
        len(chosen), questions, calls, tokens_by, price, dated, notes, ready.view, ready.benchmark.data.state,
        ready.chain.reply, ready.folder.path,
    )  # fmt: skip


def _estimate(ready: Setup, tokens: Mapping[str, Mapping[str, int]]) -> tuple[float | None, str | None, list[str]]:
    if not ready.hosted:
        return 0.0, None, []
    total, dated = 0.0, ""
    for name in ready.hosted:
        price = prices.price_of(ready.readers[name].card.model if name in ready.readers else name)
        if price is None:
            return None, None, [f"{name}: no price is known; add one to the price table to have it estimated"]
        dated = max(dated, price.as_of)
        roles = {role for role, spec in ready.roles.items() if spec == name}
        phases = {phase for role, used in ready.method.roles().items() if role in roles for phase in used}
        phases |= {"read"} if name == ready.spec.reader else set()
        sums = [tokens[phase] for phase in sorted(phases) if phase in tokens]
        total += sum(price.of(Usage(text=row["text"], output=row["output"])) for row in sums)
    left_out = [name for name in ready.hosted if name in (ready.spec.judge, ready.spec.embedder)]
    return total, dated, [f"{name}: its calls are not in the estimate" for name in left_out]
