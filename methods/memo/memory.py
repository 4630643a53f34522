"""One context's MEMO memory: records as they are, and for each question extract, materialise, plan, build."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from memharness.method import Budget, Kit, Memory, MeteredReader
from memharness.methods.memo import extractor, manager
from memharness.methods.memo.builder import Builder, WorkingMemory
from memharness.methods.memo.config import MemoConfig
from memharness.methods.memo.extractor import Index
from memharness.methods.memo.units import Action, EvidenceUnit, Plan, Record, Selection, materialise
from memharness.pages import kept
from memharness.retrieval import fuse
from memharness.types import Item, Part, Question, Readout, Text


class MemoMemory(Memory):
    """Keeps records and an index of their spans; everything query-aware happens in `recall`."""

    def __init__(self, config: MemoConfig, kit: Kit, opened: Mapping[str, MeteredReader], pictures: bool) -> None:
        """Bind to a config, a kit, the trained models by role, and whether pages may be made."""
        self.config = config
        self.kit = kit
        self._models = opened
        self._pictures = pictures
        self._items: list[Item] = []
        self.index = Index([])
        self._vectors: dict[str, extractor.Floats] = {}

    async def observe(self, items: Sequence[Item]) -> None:
        """Keep items."""
        self._items += items

    async def ready(self) -> None:
        """Split the records into spans, index and embed them. No model is asked."""
        self._items.sort(key=lambda item: item.order)
        self.index = Index([Record.of(item) for item in self._items])
        await self.index.embed(self.kit.embedder, self._vectors)

    def stored(self) -> int:
        """Items held."""
        return len(self._items)

    async def recall(self, question: Question, budget: Budget) -> Readout:
        """The working memory for a question, within the budget under every counter."""
        limit = self.config.without_budget if budget.tokens is None else budget.tokens
        builder = Builder(
            self.index.records, budget.counters, limit, pictures=self._pictures, unit_ids=self.config.unit_ids
        )
        lexical = self.index.lexical(question)
        dense = await self.index.dense(question, self.kit.embedder)
        rows = self._candidates(lexical, dense)
        trace: dict[str, Any] = {
            "candidates": {"by": self.config.candidates, "kept": len(rows), "of": len(self._items)},
            "limit": limit,
        }
        selections = await self._select(question, rows, lexical, dense, budget, limit, trace)
        made, rejected = materialise(selections, builder.records, self.config.window)
        units = _within(made, budget.items)
        if self.config.row != "neither":
            units = units[: self.config.most_units]
        if rejected:
            trace["rejected"] = list(rejected)
        plan = await self._plan(question, units, builder, limit, trace)
        built = builder.build(units, plan) if plan else builder.plain(units, builder.cut(units))
        return self._readout(units, plan, built, trace)

    # -------------------------------------------------------------------------------------------------- extraction

    def _candidates(self, lexical: extractor.Floats, dense: extractor.Floats) -> list[int]:
        """Rows of the records that the pre-selection keeps, in the records' order; a record counts by its best span."""
        wanted = self.config.preselection()
        if wanted is None:
            return list(range(len(self._items)))
        ranker, k = wanted
        scores = {"bm25": lexical, "dense": dense, "hybrid": fuse([lexical, dense])}[ranker]
        order = np.argsort(-self.index.best(scores), kind="stable")[:k]
        return sorted(int(row) for row in order)

    async def _select(
        self,
        question: Question,
        rows: Sequence[int],
        lexical: extractor.Floats,
        dense: extractor.Floats,
        budget: Budget,
        limit: int,
        trace: dict[str, Any],
    ) -> list[Selection]:
        records = [self.index.records[row] for row in rows]
        if self.config.row == "neither":
            return [Selection(record.id, ((0, len(record.text)),)) for record in records if record.text.strip()]
        if "extractor" in self._models:
            chosen, trace["extractor"] = await extractor.ask(self._models["extractor"], question, records, limit)
            return chosen
        counters = budget.counters or (self.kit.reader().counter,)  # without a budget nothing is counted
        found = self.index.linked(question, extractor.relevance(lexical, dense), self.config.hops)
        return extractor.select(
            self.index,
            question,
            found,
            rows,
            room=self.config.surplus * limit,
            cost=lambda text: max(counter.text(text) for counter in counters),
            least=self.config.least,
            most=self.config.most_units,
        )

    # ---------------------------------------------------------------------------------------------------- planning

    async def _plan(
        self, question: Question, units: Sequence[EvidenceUnit], builder: Builder, limit: int, trace: dict[str, Any]
    ) -> Plan | None:
        """The plan; None for the row that has neither extractor nor manager."""
        if self.config.row == "neither":
            return None
        if self.config.row == "extractor" or not units:
            return Plan({unit.id: Action.TEXT for unit in units})
        if "manager" in self._models:
            plan, trace["manager"] = await manager.ask(self._models["manager"], question, units, limit)
            return plan
        return await self.kit.device.run(manager.decide, question, units, builder)

    # ----------------------------------------------------------------------------------------------------- readout

    def _readout(
        self, units: Sequence[EvidenceUnit], plan: Plan | None, built: WorkingMemory, trace: dict[str, Any]
    ) -> Readout:
        parts: list[Part] = [Text(built.text)] if built.text else []
        if built.layout is not None:
            page = kept(built.layout)
            parts.append(self.kit.images.keep(page.png, f"page {page.sha256[:12]}", "memo: page"))
            trace["page"] = {
                "template": built.layout.template,
                "font_px": built.layout.style.font_px,
                "width": page.width,
                "height": page.height,
                "sha256": page.sha256,
            }
        if built.note:
            trace["no_page"] = built.note
        if plan is not None:
            trace["target_usage"] = plan.target_usage
            trace["templates"] = [template.value for template in plan.templates]
        trace["units"] = [_said(unit, plan, built) for unit in units]
        return Readout(built.evidence, tuple(parts), trace)


def _within(units: Sequence[EvidenceUnit], items: int | None) -> list[EvidenceUnit]:
    """The units of the first `items` sources."""
    sources = list(dict.fromkeys(unit.source for unit in units))[:items]
    return [unit for unit in units if unit.source in sources]


def _said(unit: EvidenceUnit, plan: Plan | None, built: WorkingMemory) -> dict[str, Any]:
    """A unit for the record: where it comes from, what was planned for it and what became of it."""
    return {
        "id": unit.id,
        "source": unit.source,
        "at": [unit.start, unit.end],
        "spans": [list(span) for span in unit.spans],
        "priority": [unit.priority.key.value, unit.priority.context.value],
        "score": round(unit.score, 6),
        "action": plan.action(unit).value if plan else "text",
        "confidence": round(plan.confidence.get(unit.id, 0.0), 6) if plan else 0.0,
        "shown": built.shown[unit.id],
    }
