"""What a page is made of: blocks, the six templates, and the values of a style."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, get_args

from memharness.types import UserError

Template = Literal["cards", "timeline", "table", "checklist", "columns", "plain"]
TEMPLATES: tuple[Template, ...] = get_args(Template)


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a page.

    Attributes:
        id: names the block in the layout's lines; never drawn.
        title: its heading; empty for none.
        text: its words, verbatim. Line breaks are kept.
        source: where the words come from, drawn as a line of its own; empty for none.
        kind: its information type, drawn beside the title; `done` ticks its box in a checklist. Empty for none.
        when: ISO 8601, as precise as the source (`2023`, `2023-05`, `2023-05-08T13:56`); empty for none.
        spans: character ranges (start, end) of `text` that are highlighted.
        level: size of the title: 0 as the text, 1 to 6 as Markdown's headings.
    """

    id: str
    title: str
    text: str
    source: str
    kind: str = ""
    when: str = ""
    spans: tuple[tuple[int, int], ...] = ()
    level: int = 0

    def __post_init__(self) -> None:
        """Check the spans.

        Raises:
            UserError: one of them is empty or not within the text.
        """
        for start, end in self.spans:
            if not 0 <= start < end <= len(self.text):
                raise UserError(
                    f"block {self.id}: key span ({start}, {end}) is not in its text of {len(self.text)} characters; "
                    f"give 0 <= start < end <= {len(self.text)}"
                )

    def moment(self) -> datetime:
        """`when` as a time to order by: its beginning; without an offset, UTC.

        Raises:
            UserError: it is not ISO 8601.
        """
        text = self.when + {4: "-01-01", 7: "-01"}.get(len(self.when), "")
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise UserError(
                f"block {self.id}: when={self.when!r} is not ISO 8601; give one such as 2023-05-08, or leave it empty"
            ) from None
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Style:
    """How a page looks. Lengths in em are multiples of `font_px`. All values are this project's choice.

    Attributes:
        font_px: height of an em of body text in pixels. What is read back at 10 to 20 is in
            `legibility.csv`.
        margin: blank pixels around the page.
        leading: height of a line in em.
        gap: blank between blocks in em.
        gutter: blank between columns in em.
        measure: widest column in em, `plain` apart: text detectors lose the beginnings of wider lines.
        small: size of source, kind and date in em, but never under 11 pixels (or `font_px`, if that is less).
        ink: colour of words.
        quiet: colour of source, kind and date.
        rule: colour of lines and frames.
        key: background of highlighted words, light in greyscale too; empty for weight alone.
        labels: whether the kind is drawn.
        inks: (kind, colour) pairs: the colour of words in blocks of that kind, in place of `ink`.
    """

    font_px: int = 14
    margin: int = 8
    leading: float = 1.3
    gap: float = 0.5
    gutter: float = 1.2
    measure: float = 24
    small: float = 0.85
    ink: str = "#000000"
    quiet: str = "#404040"
    rule: str = "#a0a0a0"
    key: str = "#ffe08a"
    labels: bool = True
    inks: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            UserError: a length is out of its range, or a colour is not `#rrggbb`.
        """
        ranges: Mapping[str, tuple[float, float]] = {
            "font_px": (6, 96), "margin": (0, 200), "leading": (1.1, 3), "gap": (0, 5),
            "gutter": (0.5, 10), "measure": (6, 200), "small": (0.5, 1),
        }  # fmt: skip
        for name, (least, most) in ranges.items():
            if not least <= getattr(self, name) <= most:
                raise UserError(f"style: {name}={getattr(self, name)} is out of range; give {least} to {most}")
        for colour in (self.ink, self.quiet, self.rule, self.key or "#ffffff", *(colour for _, colour in self.inks)):
            if not re.fullmatch("#[0-9a-fA-F]{6}", colour):
                raise UserError(f"style: {colour!r} is not a colour; give one as #rrggbb")

    @property
    def small_px(self) -> int:
        """Pixels of an em of source, kind and date."""
        return max(round(self.font_px * self.small), min(11, self.font_px))

    def ems(self, ems: float) -> int:
        """A length in em as pixels."""
        return round(ems * self.font_px)
