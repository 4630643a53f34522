"""The configuration of CMA."""

from __future__ import annotations

from typing import Any, Literal

import pydantic

from memharness.config import Config, option

PAPER = "CMA, section 3"
SILENT = "memharness: the paper does not say"

Maker = Literal["model-free", "reader"]


class CMAConfig(Config):
    """Options of `cma`. Each part runs without a model, or by the reader of its role (`--model ROLE=SPEC`)."""

    writer: Maker = option(
        "model-free",
        "PAE, who writes the card of each picture: model-free, or the reader of role `writer`",
        source=PAPER,
    )
    retriever: Maker = option(
        "model-free",
        "CoRE, who picks the earlier pictures a turn needs: model-free, or the reader of role `retriever`",
        source=PAPER,
    )
    controller: Maker = option(
        "model-free",
        "MEC, who says what a turn asks for, writes prompts and replies: rules, or the reader of role `controller`",
        source=PAPER,
    )
    images: str = option(
        "pil",
        "the image back end: pil (draws without weights), openai:MODEL@http://HOST/v1, diffusers:FOLDER",
        source="memharness; the paper: Qwen-Image and Qwen-Image-Edit",
        exclude=True,
    )
    image_options: dict[str, Any] = option(
        {}, "options of the image back end, as YAML: {steps: 50, guidance: 4.0}", source="memharness", exclude=True
    )
    image_cache: bool = option(
        True,
        "keep pictures under MEMHARNESS_HOME by what was asked of which back end, so that none is made twice (but by "
        "pil, which is as fast); off to time a run",
        source="memharness",
        how=True,
    )
    maker: Any = option(None, "set by the harness: the image back end in the identity", neutral=True)
    size: str = option(
        "256x256",
        "size of new pictures, WIDTHxHEIGHT; edits keep the size of the picture they start from",
        source=SILENT,
        unit="pixels",
    )
    gate: bool = option(
        False,
        "take no earlier picture where the turn is read as generate or pure_chat. CoRE is asked on every turn either "
        "way, so that turns which need none are scored",
        source="CMA, section 3.2: retrieval runs only when it is needed; memharness lets CoRE decide",
    )
    edge: int = option(384, "longer edge of a thumbnail", source="memharness", unit="pixels", ge=16, le=4096)
    card_language: Literal["auto", "session", "en", "zh"] = option(
        "auto",
        "language of cards; auto: the session's without a model, English by a reader",
        source="CMA, appendix: English, in Chinese sessions too",
    )
    ocr: bool = option(
        False, "let the model-free writer read words in pictures (RapidOCR, extra `ocr`)", source="memharness"
    )
    pool: int = option(
        0, "most candidates a reader is shown, by a text prefilter; 0: all", source="CMA: all of them", ge=0
    )
    told: int = option(
        0,
        "lines of dialogue that the reader of role `retriever` is told",
        source="CMA, appendix: the query alone",
        ge=0,
    )
    history: int = option(
        6000,
        "the dialogue is kept whole up to so many characters; beyond that older turns are compacted",
        source="memharness; the paper keeps text history whole, its deployment compacts older turns",
        unit="characters",
        ge=200,
    )
    recent: int = option(4, "turns that are never compacted", source="memharness", unit="turns", ge=1)
    card_tokens: int = option(512, "most tokens of a card by a reader", source="memharness", unit="tokens", ge=32)
    prompt_tokens: int = option(160, "most tokens of a rewritten prompt", source="memharness", unit="tokens", ge=8)
    reply_tokens: int = option(256, "most tokens of a reply", source="memharness", unit="tokens", ge=8)
    loop: bool = option(
        False,
        "let the reader of role `controller` work with tools until it replies, in place of classify, retrieve, rewrite",
        source="CMA-Harness, the deployment layer",
    )
    rounds: int = option(6, "most rounds of tool calls a turn", source="memharness", unit="rounds", ge=1)
    calls: int = option(12, "most tool calls a turn", source="memharness", unit="calls", ge=1)
    web: str = option(
        "off", "what the web tools ask: off, or package.module:Class (methods.cma.tools.web.Web)", source="memharness"
    )

    @pydantic.field_validator("size")
    @classmethod
    def _size(cls, value: str) -> str:
        width, cross, height = value.partition("x")
        if not (
            cross and width.isdecimal() and height.isdecimal() and all(16 <= int(n) <= 4096 for n in (width, height))
        ):
            raise ValueError("expected WIDTHxHEIGHT in pixels, each of 16 to 4096, such as 256x256")
        return value

    def pixels(self) -> tuple[int, int]:
        """Width and height of new pictures."""
        width, _, height = self.size.partition("x")
        return int(width), int(height)
