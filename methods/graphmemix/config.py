"""The configuration of GraphMemix: the frozen settings of its release, and one switch per stage for the ablations."""

from __future__ import annotations

from typing import Literal

from memharness.config import Config, option

RELEASE = "official configs/release/graphmemix.json"
CODE = "official code"
ROWS = "paper Table 3"


class GraphMemixConfig(Config):
    """Options of `graphmemix`. `row` sets the four switches of an ablation row; a switch named beside it wins."""

    row: Literal["a", "b", "c", "d", "e"] = option(
        "e", "ablation row: a top-k, b + multi-view, c + node verifier, d + ECV reranking, e + forest", source=ROWS
    )
    multi_view: bool | None = option(None, "retrieve by several views of item and question", source=ROWS)
    node: bool | None = option(None, "score candidates by the node verifier", source=ROWS)
    edges: Literal["none", "fixed", "ecv", "rerank"] | None = option(
        None,
        "how schema relations count: not, at the fixed reliability (Table 6), by ECV, or by ECV as a node bonus",
        source="paper Tables 3 and 6",
    )
    forest: bool | None = option(
        None, "choose the set by forest optimisation; else the K of largest utility", source=ROWS
    )
    prune: bool = option(True, "drop items that do not pay for themselves after the search", source=RELEASE)
    verifier: Literal["auto", "reader", "similarity"] = option(
        "auto",
        "who scores support: a reader, or embeddings and BM25; auto is the reader if it can follow a JSON schema",
    )

    source_top_k: int = option(200, "items of the prior ranking", source=RELEASE, unit="items", ge=1)
    source_top_l: int = option(24, "seeds of the candidate pool", source=RELEASE, unit="items", ge=1)
    candidate_limit: int = option(48, "most candidates", source=RELEASE, unit="items", ge=1, le=512)
    semantic_k: int = option(
        8, "mutual nearest neighbours that are related by meaning", source=RELEASE, unit="items", ge=0
    )
    anchor_count: int = option(
        10, "candidates, by prior, that relations are verified against", source=RELEASE, unit="items", ge=1
    )
    event_seconds: float = option(
        1800.0,
        "most time between neighbouring media of one event; 0 makes no such relation",
        source="memharness: half an hour; the paper's thresholds are unpublished",
        unit="s",
        ge=0,
    )
    event_metres: float = option(
        500.0,
        "most distance between neighbouring media of one event",
        source="memharness: a walk within one place; the paper's thresholds are unpublished",
        unit="m",
        ge=0,
    )

    calibration_a: float = option(
        4.054056101800787,
        "utility: weight of the source score",
        source="official configs/release/calibration/shared_dev.json",
    )
    calibration_b: float = option(
        0.22537987366704051,
        "utility: weight of the verifier score",
        source="official configs/release/calibration/shared_dev.json",
    )
    calibration_c: float = option(
        -3.711336391577528, "utility: constant", source="official configs/release/calibration/shared_dev.json"
    )
    edge_power: float = option(1.0, "p in the reliability .99 · (g/5)^p", source=RELEASE, gt=0)
    edge_weight: float = option(0.1, "price of a nat of unreliability", source=RELEASE, ge=0)
    root_cost: float = option(0.2, "price of a component in the search", source=RELEASE, ge=0)
    pruning_root_cost: float = option(0.12, "price of a component in pruning", source=RELEASE, ge=0)
    node_cost: float = option(0.0, "price of an item in pruning", source=RELEASE, ge=0)

    snippet_chars: int = option(
        420, "characters of a candidate that a verifier reads", source=RELEASE, unit="characters", ge=40
    )
    verifier_ocr_chars: int = option(
        120, "characters of text in pictures that a verifier reads", source=RELEASE, unit="characters", ge=0
    )
    verifier_max_tokens: int = option(8192, "tokens of a verifier's reply", source=RELEASE, unit="tokens", ge=16)

    def switches(self) -> tuple[bool, bool, str, bool]:
        """(multi_view, node, edges, forest) of the row, with what was named beside it."""
        at = "abcde".index(self.row)
        edges = ("none", "none", "none", "rerank", "ecv")[at]
        return (
            at >= 1 if self.multi_view is None else self.multi_view,
            at >= 2 if self.node is None else self.node,
            self.edges or edges,
            at >= 4 if self.forest is None else self.forest,
        )
