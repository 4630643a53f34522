"""The configuration of MEMO: the paper's settings where it states them, and one switch for its ablation rows."""

from __future__ import annotations

import re
from typing import Literal

import pydantic

from memharness.config import Config, option

PAPER = "paper"
SILENT = "memharness: the paper does not say"
RANKERS = ("bm25", "dense", "hybrid")


class MemoConfig(Config):
    """Options of `memo`. `row` sets extractor and manager as an ablation row does."""

    row: Literal["neither", "extractor", "both"] = option(
        "both",
        "ablation row: neither (the candidates in order, as text, cut at the budget), the extractor (its units as "
        "text, best first, while they fit), or both",
        source="paper Table 3",
    )
    candidates: str = option(
        "all",
        "which records the extractor reads: all, or the K best by bm25:K, dense:K or hybrid:K (both, fused)",
        source=SILENT + "; its text-only rows imply that some such stage was there",
    )
    extractor: str = option(
        "deterministic",
        "who selects sources and key spans: deterministic; model (the reader of role `extractor`); or the folder of a "
        "trained checkpoint, or a reader spec such as hf:FOLDER",
        source="paper: a trained Qwen2.5-1.5B-Instruct",
        exclude=True,
    )
    manager: str = option(
        "deterministic",
        "who gives each unit its action: deterministic; model (the reader of role `manager`); or a checkpoint as above",
        source="paper: a trained Qwen2.5-1.5B-Instruct",
        exclude=True,
    )
    trained: dict[str, str] = option(
        {}, "set by the harness: who they are in the identity, checkpoints by content and never by path", neutral=True
    )
    pictures: Literal["auto", "on", "off"] = option(
        "auto", "whether pages may be made; auto: if the answer reader sees pictures", source=SILENT
    )

    window: int = option(
        0,
        "w: characters of context copied on each side of a key span, widened to whole words",
        source=SILENT + "; its extractor's 70 tokens are what the gold sentences alone cost",
        unit="characters",
        ge=0,
    )
    surplus: float = option(
        3.0,
        "how many times the budget the deterministic extractor hands to the manager",
        source="memharness: a page holds two to three times the words that its tokens hold as text",
        ge=1,
    )
    least: float = option(
        0.5, "score below which a span is no evidence, as a share of the best", source="memharness", ge=0, le=1
    )
    most_units: int = option(48, "most units that an extractor may hand on", source="memharness", unit="units", ge=1)
    hops: int = option(
        2, "how many links the deterministic extractor follows from record to record", source="memharness", ge=0
    )
    without_budget: int = option(
        4096, "the limit where no --budget is given", source="paper: the 4,096-token window", unit="tokens", ge=1
    )
    unit_ids: bool = option(
        False,
        "write every unit's id before its words in the text (3 to 4 tokens each); ids stand in the trace anyway, and "
        "in the text of units that are on the page as well",
        source="paper: text entries keep unit and source ids",
    )

    @pydantic.field_validator("candidates")
    @classmethod
    def _known(cls, value: str) -> str:
        if value != "all" and not re.fullmatch(rf"({'|'.join(RANKERS)}):[1-9]\d*", value):
            raise ValueError("expected all, bm25:K, dense:K or hybrid:K with K ≥ 1")
        return value

    def preselection(self) -> tuple[str, int] | None:
        """The ranker and K of the pre-selection; None for all records."""
        if self.candidates == "all":
            return None
        ranker, _, k = self.candidates.partition(":")
        return ranker, int(k)
