"""One context's GraphMemix memory: index, prior, pool, node utilities, verified relations, forest, readout."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from memharness.method import Budget, Kit, Memory
from memharness.methods.graphmemix.config import GraphMemixConfig
from memharness.methods.graphmemix.forest import Edge, Forest, benefit, prune, solve
from memharness.methods.graphmemix.relations import EXPLICIT, Relation, RelationStore, candidates
from memharness.methods.graphmemix.similarity import edge_support, node_support
from memharness.methods.graphmemix.snippets import modalities, snippet
from memharness.methods.graphmemix.verifier import Increment, increments, node_scores
from memharness.methods.graphmemix.views import Prior, Views
from memharness.types import Evidence, Item, Question, Readout


class GraphMemixMemory(Memory):
    """Keeps items and relations as they are; everything query-aware happens in `recall`."""

    def __init__(self, config: GraphMemixConfig, kit: Kit) -> None:
        """Bind to a settled config and a kit."""
        self.config = config
        self.kit = kit
        self.multi_view, self.node, self.edges, self.forest = config.switches()
        self.items: list[Item] = []

    async def observe(self, items: Sequence[Item]) -> None:
        """Keep items."""
        self.items += items

    async def ready(self) -> None:
        """Embed the views and build the relation store. No model is asked."""
        self.items.sort(key=lambda item: item.order)
        self.row = {item.id: row for row, item in enumerate(self.items)}
        self.views = Views(self.items, self.kit.embedder, several=self.multi_view)
        await self.views.build()
        self.store = await self.kit.device.run(self._relations)

    def _relations(self) -> RelationStore:
        config = self.config
        return RelationStore(
            self.items, self.views.canonical,
            semantic_k=config.semantic_k, seconds=config.event_seconds, metres=config.event_metres,
        )  # fmt: skip

    def stored(self) -> int:
        """Items held."""
        return len(self.items)

    async def recall(self, question: Question, budget: Budget) -> Readout:
        """Evidence for a question: the serialised forest, at most K items, within the token budget."""
        if not self.items:
            return Readout()
        prior = await self.views.prior(question)
        order = np.argsort(-prior.rank, kind="stable")[: self.config.source_top_k]
        ranked = [self.items[row].id for row in order]
        size = budget.items or self.kit.items
        trace: dict[str, Any] = {"prior": [[item, _round(prior.rank[self.row[item]])] for item in ranked]}
        if not self.node and self.edges == "none" and not self.forest:
            return self._readout(
                [(item, float(prior.rank[self.row[item]])) for item in ranked[:size]], question, budget, trace
            )
        pool = candidates(ranked, self.store, seeds=self.config.source_top_l, limit=self.config.candidate_limit)
        utility = await self._utilities(question, pool, ranked, prior, trace)
        edges = await self._edges(question, pool, prior, trace)
        if self.edges == "rerank":
            utility = self._reranked(utility, edges)
        if self.forest:
            chosen = self._forest(utility, edges, size, trace)
        else:
            chosen = sorted(pool, key=lambda item: -utility[item])[:size]
        return self._readout([(item, utility[item]) for item in chosen], question, budget, trace)

    def _readout(
        self, scored: list[tuple[str, float]], question: Question, budget: Budget, trace: Mapping[str, Any]
    ) -> Readout:
        evidence = [Evidence(item, score=score) for item, score in scored]
        return Readout(budget.fit(evidence, question), trace=trace)

    # ---------------------------------------------------------------------------------------------- node utilities

    async def _utilities(
        self, question: Question, pool: Sequence[str], ranked: Sequence[str], prior: Prior, trace: dict[str, Any]
    ) -> dict[str, float]:
        """u(m) = σ(a·s + b·v + c) of every candidate, in pool order (official calibration); s alone without verifier.

        A candidate that only the graph brought has no source score: it gets the least of the prior ranking − 0.01.
        """
        inside = set(ranked)
        least = min(float(prior.source[self.row[item]]) for item in ranked) - 0.01
        source = {item: float(prior.source[self.row[item]]) if item in inside else least for item in pool}
        trace["candidates"] = [[item, _round(source[item])] for item in pool]
        if not self.node:
            return source
        scores = await self._node_scores(question, pool, source, prior, trace)
        trace["nodes"] = {item: _round(score) for item, score in scores.items()}
        config = self.config
        return {
            item: _sigmoid(
                config.calibration_a * source[item]
                + config.calibration_b * scores.get(item, 0.0)
                + config.calibration_c
            )
            for item in pool
        }

    async def _node_scores(
        self,
        question: Question,
        pool: Sequence[str],
        source: Mapping[str, float],
        prior: Prior,
        trace: dict[str, Any],
    ) -> dict[str, float]:
        if self.config.verifier == "similarity":
            rows = [self.row[item] for item in pool]
            return dict(zip(pool, node_support(prior, rows), strict=True))
        names = {f"C{number:02d}": item for number, item in enumerate(pool)}
        payload = {
            "question": question.text(),
            "question_image_captions": await self._captions(question),
            "candidates": [
                self._card(name, item, question) | {"retrieval_score": round(source[item], 4)}
                for name, item in names.items()
            ],
        }
        found, attempts = await node_scores(
            self.kit.reader("verifier"), payload, list(names), self.config.verifier_max_tokens
        )
        trace["verifier_attempts"] = attempts
        return {names[name]: score for name, score in found.items()}

    async def _captions(self, question: Question) -> list[str]:
        """Captions of the question's pictures: the data's own, else one caption call each."""
        native = [d.text for d in question.derived if d.kind == "caption"]
        if native:
            return native
        from memharness.types import Image

        pictures = [part for part in question.parts if isinstance(part, Image) and not part.missing]
        return [await self.kit.captioner.caption(picture) for picture in pictures]

    def _card(self, name: str, item_id: str, question: Question) -> dict[str, Any]:
        item = self.items[self.row[item_id]]
        config = self.config
        return {
            "id": name,
            "modalities": modalities(item),
            "date": (item.time or "")[:10],
            "location": (item.place.name if item.place else "")[:120],
            "snippet": snippet(item, question.text(), config.snippet_chars, config.verifier_ocr_chars),
        }

    # --------------------------------------------------------------------------------------------------- relations

    async def _edges(self, question: Question, pool: Sequence[str], prior: Prior, trace: dict[str, Any]) -> list[Edge]:
        """Reliable relations among candidates: r = .99 · (g/5)^p for a verified increment g, .99 if fixed."""
        if self.edges == "none":
            return []
        relations = self.store.explicit(pool)
        trace["relations"] = [[r.left, r.right, list(r.kinds)] for r in relations]
        if self.edges == "fixed":
            return [Edge(r.left, r.right, EXPLICIT) for r in relations]
        anchors = set(pool[: self.config.anchor_count])
        eligible: dict[str, list[str]] = {}
        for relation in relations:
            for candidate, anchor in ((relation.left, relation.right), (relation.right, relation.left)):
                if anchor in anchors:
                    eligible.setdefault(candidate, []).append(anchor)
        found = await self._increments(question, pool, eligible, relations, prior, trace)
        best: dict[tuple[str, str], Increment] = {}
        for one in found:
            pair = (min(one.candidate, one.anchor), max(one.candidate, one.anchor))
            if pair not in best or one.support > best[pair].support:
                best[pair] = one
        trace["edges"] = [[*pair, _round(one.support), one.role] for pair, one in sorted(best.items())]
        power = self.config.edge_power
        return [
            Edge(*pair, EXPLICIT * (one.support / 5) ** power) for pair, one in sorted(best.items()) if one.support > 0
        ]

    async def _increments(
        self,
        question: Question,
        pool: Sequence[str],
        eligible: Mapping[str, Sequence[str]],
        relations: Sequence[Relation],
        prior: Prior,
        trace: dict[str, Any],
    ) -> list[Increment]:
        if not eligible:
            return []
        if self.config.verifier == "similarity":
            return edge_support(prior, self.row, eligible)
        names = {item: f"C{number:02d}" for number, item in enumerate(pool)}
        back = {name: item for item, name in names.items()}
        anchors = sorted({anchor for several in eligible.values() for anchor in several}, key=pool.index)
        kinds_of = {frozenset((r.left, r.right)): list(r.kinds) for r in relations}
        payload = {
            "question": question.text(),
            "question_image_captions": await self._captions(question),
            "anchor_evidence": [self._card(names[anchor], anchor, question) for anchor in anchors],
            "candidates": [
                self._card(names[item], item, question)
                | {
                    "eligible_anchor_relations": [
                        {"anchor_id": names[anchor], "relation_types": kinds_of[frozenset((item, anchor))]}
                        for anchor in several
                    ]
                }
                for item, several in eligible.items()
            ],
        }
        wanted = {names[item]: [names[anchor] for anchor in several] for item, several in eligible.items()}
        found, attempts = await increments(self.kit.reader("ecv"), payload, wanted, self.config.verifier_max_tokens)
        trace["ecv_attempts"] = attempts
        return [Increment(back[one.candidate], back[one.anchor], one.support, one.role) for one in found]

    def _reranked(self, utility: Mapping[str, float], edges: Sequence[Edge]) -> dict[str, float]:
        """Row d: utility plus the benefit of the candidate's strongest verified relation (our reading of Table 3)."""
        bonus: dict[str, float] = {}
        for edge in edges:
            worth = max(0.0, benefit(edge.reliability, self.config.root_cost, self.config.edge_weight))
            for item in (edge.left, edge.right):
                bonus[item] = max(bonus.get(item, 0.0), worth)
        return {item: value + bonus.get(item, 0.0) for item, value in utility.items()}

    # ------------------------------------------------------------------------------------------------------ forest

    def _forest(
        self, utility: Mapping[str, float], edges: Sequence[Edge], size: int, trace: dict[str, Any]
    ) -> Sequence[str]:
        config = self.config
        used = [] if self.edges == "rerank" else edges
        found = solve(utility, used, size, root_cost=config.root_cost, edge_weight=config.edge_weight)
        trace["forest"] = _shape(found)
        if config.prune:
            found = prune(
                found.items, utility, used,
                root_cost=config.pruning_root_cost, edge_weight=config.edge_weight, node_cost=config.node_cost,
            )  # fmt: skip
            trace["pruned"] = _shape(found)
        return found.items


def _shape(forest: Forest) -> dict[str, Any]:
    """A forest for the record: Table 6 and Figure 2 are recomputed from these."""
    return {
        "items": list(forest.items),
        "edges": [[edge.left, edge.right, _round(edge.reliability)] for edge in forest.edges],
        "components": forest.components,
        "objective": _round(forest.objective),
        "gains": [_round(gain) for gain in forest.gains],
        "climb": [_round(value) for value in forest.climb],
    }


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def _round(value: Any) -> float:
    return round(float(value), 6)
