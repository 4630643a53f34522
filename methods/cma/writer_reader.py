"""PAE by a reader: a JSON card of tags and a description, held to the paper's least lengths, with what was measured."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from memharness.episodic import Card
from memharness.episodic.words import tokens
from memharness.methods.cma import prompts
from memharness.methods.cma.replies import NotInForm, first_object
from memharness.methods.cma.writer import TAGS, ModelFreeWriter, Ocr
from memharness.reader import Request, Sampling
from memharness.types import Image, Part

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

    from memharness.episodic import Asset
    from memharness.method import MeteredReader

WORDS = 100
"""Fewest words of a description (CMA, appendix); each Chinese character counts as one."""
ATTEMPTS = 2
LANGUAGES = {"en": "English", "zh": "Chinese"}

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "tags": {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": TAGS},
        "description": {"type": "string", "minLength": 1},
    },
    "required": ["tags", "description"],
    "additionalProperties": False,
}


def card_request(
    picture: Image | None, facts: Mapping[str, Any], words: str, language: str = "en", max_tokens: int = 512
) -> Request:
    """What the writer is asked; also the input of its training rows.

    Args:
        picture: shown, if it is given.
        facts: measured ones, in place of or beside the pixels.
        words: of the turn that brought or made it.
        language: the card is to be in.
        max_tokens: of the reply.
    """
    shown: tuple[Part, ...] = (picture,) if picture is not None else ()
    messages = prompts.fill(
        "writer.v1", language=LANGUAGES[language], picture=shown, facts=_measured(facts), words=" ".join(words.split())
    )
    return Request(messages, Sampling(max_tokens=max_tokens))


def _measured(facts: Mapping[str, Any]) -> str:
    """Facts as one line."""
    said = [f"{facts['kind']}, {facts['width']} × {facts['height']} pixels"]
    if colours := facts.get("colours"):
        said.append("main colours " + ", ".join(f"{name} {share:.0%}" for name, share in colours))
    if seen := facts.get("ocr"):
        said.append("words in it " + json.dumps(seen, ensure_ascii=False))
    return "; ".join(said)


def read_card(reply: str) -> tuple[tuple[str, ...], str]:
    """Tags and description of a reply.

    Raises:
        NotInForm: it holds no such object, or too few tags or words; the message says which.
    """
    found = first_object(reply, "tags", "description")
    tags, description = found["tags"], found["description"]
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise NotInForm("tags is no list of texts")
    named = tuple(dict.fromkeys(tag.strip() for tag in tags if tag.strip()))
    if len(named) < TAGS:
        raise NotInForm(f"{len(named)} different tags; at least {TAGS} are needed")
    if not isinstance(description, str):
        raise NotInForm("description is no text")
    if (count := len(tokens(description))) < WORDS:
        raise NotInForm(f"the description has {count} words; at least {WORDS} are needed")
    return named, description.strip()


@dataclass(frozen=True)
class ReaderWriter:
    """Asks the reader of role `writer`. A card out of form is asked for once more, then it is a failed one, said so.

    Attributes:
        reader: who writes.
        pictures: by asset id, for readers that see.
        language: of the card, whatever the session speaks (the paper asks for English); `session` for the turn's own.
        max_tokens: of a reply.
        ocr: adds the words in the picture to the facts.
    """

    reader: MeteredReader
    pictures: Mapping[str, Image]
    language: str = "en"
    max_tokens: int = 512
    ocr: Ocr | None = None
    name: str = "reader"

    async def write(self, asset: Asset, picture: Picture | None, words: str, language: str) -> Card:
        """See `Writer`. Without sight a reader is told the words and what was measured."""
        begun = time.perf_counter()
        own = language if self.language == "session" else self.language
        measured = await ModelFreeWriter("en", self.ocr).write(asset, picture, words, language)
        image = self.pictures.get(asset.id)
        sees = "image" in self.reader.card.capabilities and image is not None and not image.missing
        request = card_request(image if sees else None, measured.facts, words, own, self.max_tokens)
        if "schema" in self.reader.card.capabilities:
            request = replace(request, schema=SCHEMA)
        facts: dict[str, Any] = {**measured.facts, "seen": sees}
        spent, faults = 0, []
        for attempt in range(ATTEMPTS):
            # Greedy first, then another draw: the same words would bring the same reply.
            sampling = replace(request.sampling, temperature=0.7 if attempt else 0.0)
            reply = await self.reader.generate(replace(request, sampling=sampling, sample=attempt))
            spent += reply.usage.text + reply.usage.image + reply.usage.output
            cost = {"tokens": float(spent), "calls": attempt + 1.0, "seconds": round(time.perf_counter() - begun, 6)}
            if reply.finish == "refused":
                faults.append("refused")
                continue
            try:
                tags, description = read_card(reply.text)
            except NotInForm as fault:
                faults.append(f"truncated: {fault}" if reply.finish == "length" else str(fault))
                continue
            return Card(tags, description, measured.palette, own, "ok", cost, facts | {"faults": faults})
        return Card((), "", measured.palette, own, "failed", cost, facts | {"faults": faults})
