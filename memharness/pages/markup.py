"""Markdown as blocks: its headings become titles, what it sets in bold becomes key spans, its lists keep their bullets.

The reader of a memory that marks importance by Markdown (MemOCR, Shi et al. 2026) sees larger and bolder what matters.
Only what such memories use is understood: headings, bold, italics, lists, quotations, links, code; the rest is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memharness.pages.block import Block

HEADING = re.compile(r" {0,3}(#{1,6})\s+(.*?)\s*#*\s*")
BULLET = re.compile(r"^(\s*)[-*+]\s+")
QUOTED = re.compile(r"\s*(?:>\s?)+")
RULE = re.compile(r"\s*([-*_])(?:\s*\1){2,}\s*")
FENCE = re.compile(r"\s*(?:```|~~~)")
MARK = re.compile(
    r"\\(?P<escaped>[\\`*_{}\[\]()#+.!>~|-])"
    r"|(?P<ticks>`+)(?P<code>.+?)(?P=ticks)"
    r"|!?\[(?P<label>[^\]\n]*)\]\([^)\s]*\)"
    r"|(?P<three>\*\*\*)(?=\S)(?P<both>.+?)(?<=\S)\*\*\*"
    r"|(?P<two>\*\*|__)(?=\S)(?P<bold>.+?)(?<=\S)(?P=two)"
    r"|(?<![\w*])(?P<one>[*_])(?=[^\s*_])(?P<italic>[^*_\n]+?)(?<=\S)(?P=one)(?![\w*])"
)


def markdown(text: str) -> tuple[Block, ...]:
    """Blocks of a Markdown text, one for each heading with what stands under it; ids `m0`, `m1` … in order.

    Titles carry the heading's level; the words of a block are the text's own without marks, and its spans are what was
    bold. Draw them with `plain` and, for weight without a background, `Style(key="")`.
    """
    blocks: list[Block] = []
    title, level, body = "", 0, _Body()
    fenced = False

    def close() -> None:
        words, spans = body.finished()
        if title or words:
            blocks.append(Block(f"m{len(blocks)}", title, words, "", spans=spans, level=level))

    for line in text.splitlines():
        if FENCE.match(line):
            fenced = not fenced
        elif fenced:
            body.add([(line, False)])
        elif heading := HEADING.fullmatch(line):
            close()
            title, level, body = "".join(word for word, _ in _marked(heading[2])), len(heading[1]), _Body()
        elif not RULE.fullmatch(line):
            line = QUOTED.sub("", line, count=1) if QUOTED.match(line) else line
            body.add(_marked(BULLET.sub(r"\1• ", line, count=1)))
    close()
    return tuple(blocks)


class _Body:
    """Text that grows line by line, with the spans that are bold."""

    def __init__(self) -> None:
        self._text = ""
        self._spans: list[tuple[int, int]] = []

    def add(self, words: list[tuple[str, bool]] | Iterator[tuple[str, bool]]) -> None:
        """Append a line of (words, whether bold)."""
        self._text += "\n" if self._text else ""
        for word, bold in words:
            if bold and word:
                self._spans.append((len(self._text), len(self._text) + len(word)))
            self._text += word

    def finished(self) -> tuple[str, tuple[tuple[int, int], ...]]:
        """The text without blank lines at its end, and its spans."""
        return self._text.rstrip(), tuple(self._spans)


def _marked(text: str, bold: bool = False) -> Iterator[tuple[str, bool]]:
    """Words of a line without marks, each with whether it is bold."""
    at = 0
    for match in MARK.finditer(text):
        yield text[at : match.start()], bold
        at = match.end()
        found = match.groupdict()
        if found["both"] is not None or found["bold"] is not None:
            yield from _marked(found["both"] or found["bold"], bold=True)
        elif found["italic"] is not None or found["label"] is not None:
            yield from _marked(found["italic"] or found["label"], bold)
        else:
            yield found["escaped"] or found["code"], bold
    yield text[at:], bold
