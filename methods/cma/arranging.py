"""The order in which a back end is given pictures: what is added to comes first, the others as the words name them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memharness.methods.cma.candidates import Candidate

_BEFORE = re.compile(r"(?:\b(?:into|onto|to|in|on|over)|[进到入]|[放摆贴](?:在|上))\s*$", re.IGNORECASE)
_TO_WHAT_CAME = re.compile(
    r"\b(?:into|onto|to|in|on) (?:it|this|mine|there)\b|[放摆加]进去|[放摆加]到(?:这|里面)", re.IGNORECASE
)


def arranged(words: str, sources: Sequence[Candidate], retrieval: Mapping[str, Any], turn: int) -> list[Candidate]:
    """Sources in the order a picture is composed of them.

    First the one that something is put into: the last reference that stands after `into` (放进) and its like, or the
    upload of this turn where the words say `into it`. Then the others in the order in which the words name them, as far
    as the retriever says which words mean which picture (`references` of its trace); then the rest by creation.

    Args:
        words: the user's.
        sources: retrieved, in order of creation.
        retrieval: the retriever's trace.
        turn: the number of this turn.
    """
    words = _plain(words)
    named: list[int] = []
    base: int | None = None
    for reference in retrieval.get("references") or ():
        places = [place for place in reference.get("places", ()) if place not in named]
        named += places
        text = _plain(str(reference.get("text", "")))
        at = words.find(text) if text else -1
        if at > 0 and len(reference.get("places", ())) == 1 and _BEFORE.search(words[:at]):
            base = reference["places"][0]
    came = [one.asset.index for one in sources if one.asset.kind == "upload" and one.asset.turn == turn]
    if came and _TO_WHAT_CAME.search(words):
        base = came[0]
    order = {index: place for place, index in enumerate(named)}

    def rank(one: Candidate) -> tuple[bool, int, int]:
        index = one.asset.index
        return index != base, order.get(index, len(order)), index

    return sorted(sources, key=rank)


def _plain(words: str) -> str:
    """Words as retrievers quote them: NFKC, with single blanks."""
    return " ".join(unicodedata.normalize("NFKC", words).split())
