"""Measure how legible pages are: what RapidOCR reads back, by template, font size, and how small the page is made.

    python tools/legibility.py                # every template at 10 to 20 pixels, 1× to 8×; minutes on two cores
    python tools/legibility.py --quick        # one template, one size, unshrunk

Two figures, as shares of characters (one minus edit distance over length, blanks apart: the recogniser sets them as it
likes), over the lines of one page of original English prose:

- **recognised**: the recogniser on the layout's own line boxes;
- **detected**: the whole pipeline, which has to find the lines first; a detected box counts for the nearest line.

The table is `memharness/pages/legibility.csv`, the curve `memharness/pages/legibility.svg`.
"""

from __future__ import annotations

import argparse
import csv
import io
import logging
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from memharness.pages import TEMPLATES, Block, Layout, Page, Style, Template, downscaled, draw, lay_out

FOLDER = Path(__file__).parents[1] / "memharness" / "pages"
SIZES = (10, 12, 14, 16, 20)
FACTORS = (1.0, 2.0, 3.0, 4.0, 8.0)
FOUND = (1.0, 2.0)  # factors at which lines are also detected: slow, and past 3 hopeless
COLUMN = 24  # em of a column

BLOCKS = (
    Block(
        "b1",
        "The lighthouse at Cape Arrow",
        "The tower was finished in the autumn of 1874 after two winters of storms; its lamp burned colza oil until "
        "1911, when a clockwork lens of 38 prisms was brought by ship from Marseille.",
        "archive, folder 12, page 3",
        kind="place",
        when="1874-10-02",
        spans=((25, 43), (95, 111)),
    ),
    Block(
        "b2",
        "Keeper Johanna Vik",
        "Johanna Vik kept the light for 27 years. She wrote the weather down three times a day, and in March 1889 she "
        "rowed out twice to bring the crew of the brig Halcyon ashore.",
        "archive, folder 12, page 9",
        kind="person",
        when="1889-03-17T06:40",
        spans=((0, 39), (98, 108)),
    ),
    Block(
        "b3",
        "Maurice",
        '"We should meet at the quay, not at the station," Maurice said. "Bring the blue folder and 45 euros for the '
        'ferry; it leaves at 9:15 and the next one is only on Thursday."',
        "conversation 4, turn 31",
        when="2023-06-09T18:05",
        spans=((1, 27), (91, 99)),
    ),
    Block(
        "b4",
        "Kitchen state",
        "The mug is in the sink. The drawer is open and holds a knife, a fork and two spoons; the kettle on the stove "
        "is full and still cold.",
        "step 7",
        kind="done",
        when="2024-01-30",
        spans=((0, 22),),
    ),
)  # fmt: skip


class Sight:
    """RapidOCR with its models loaded once, on one thread."""

    def __init__(self) -> None:
        """Load the models, which come with the package."""
        from rapidocr import RapidOCR

        logging.getLogger("RapidOCR").setLevel(logging.ERROR)
        self._ocr = RapidOCR(params={"Global.log_level": "error", "EngineConfig.onnxruntime.intra_op_num_threads": 1})

    def recognised(self, page: Page) -> float:
        """Share of the characters that the recogniser reads on the layout's line boxes."""
        layout, pixels = _layout(page), _pixels(page)
        boxes = [_box(line.x, line.y, line.width, line.height, page) for line in layout.lines]
        read = [
            self._ocr(pixels[top:bottom, left:right], use_det=False, use_cls=False, use_rec=True, text_score=0.0)
            for left, top, right, bottom in boxes
        ]
        words = ("".join(one.txts or ()) for one in read)
        return share(zip((line.text for line in layout.lines), words, strict=True))

    def detected(self, page: Page) -> float:
        """Share of the characters that detection and recognition together read on the page."""
        layout = _layout(page)
        found = self._ocr(_pixels(page), use_det=True, use_cls=False, use_rec=True, text_score=0.0)
        scale = layout.width / page.width
        words: dict[int, list[tuple[float, str]]] = {}
        for corners, text in zip(found.boxes if found.boxes is not None else (), found.txts or (), strict=True):
            x, y = np.asarray(corners).mean(axis=0) * scale
            line = _nearest(layout, float(x), float(y))
            words.setdefault(line, []).append((float(x), str(text)))
        read = ("".join(text for _, text in sorted(words.get(index, []))) for index in range(len(layout.lines)))
        return share(zip((line.text for line in layout.lines), read, strict=True))


def share(pairs: Iterable[tuple[str, str]]) -> float:
    """One minus edit distance over length, over all lines; blanks do not count."""
    lost, length = 0, 0
    for drawn, read in pairs:
        wanted, got = "".join(drawn.split()), "".join(read.split())
        lost += min(distance(wanted, got), len(wanted))
        length += len(wanted)
    return 1 - lost / length


def distance(first: str, second: str) -> int:
    """Levenshtein's edit distance."""
    row = list(range(len(second) + 1))
    for at, one in enumerate(first, 1):
        before, row[0] = row[0], at
        for index, other in enumerate(second, 1):
            before, row[index] = row[index], min(row[index] + 1, row[index - 1] + 1, before + (one != other))
    return row[-1]


def page(template: Template, font_px: int) -> Layout:
    """The sample's blocks on a page of two columns of 24 em; of one for `plain`, which is not divided."""
    style = Style(font_px=font_px)
    inner = style.ems(COLUMN) * (1 if template == "plain" else 2) + style.ems(style.gutter) * (template != "plain")
    layout = lay_out(BLOCKS, template, inner + 2 * style.margin, 10_000, style)
    assert layout is not None, "the sample fits such a page in every template"
    return layout


def curve(templates: Sequence[Template], sizes: Sequence[int], factors: Sequence[float]) -> list[dict[str, Any]]:
    """One row for each template, font size and factor."""
    sight, rows = Sight(), []
    for template in templates:
        for font_px in sizes:
            whole = draw(page(template, font_px))
            for factor in factors:
                shrunk = downscaled(whole, factor=factor)
                rows.append(
                    {
                        "template": template,
                        "font_px": font_px,
                        "factor": f"{factor:g}",
                        "width": shrunk.width,
                        "height": shrunk.height,
                        "recognised": f"{sight.recognised(shrunk):.4f}",
                        "detected": f"{sight.detected(shrunk):.4f}" if factor in FOUND else "",
                    }
                )
                print(" ".join(map(str, rows[-1].values())), flush=True)
    return rows


def plot(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """A panel for each template: recognised (solid) and detected (dashed) by factor, a colour for each font size."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "legibility", "svg.fonttype": "none"})
    from matplotlib import pyplot

    templates = list(dict.fromkeys(row["template"] for row in rows))
    figure, axes = pyplot.subplots(2, 3, figsize=(10, 5.6), sharex=True, sharey=True, layout="constrained")
    for axis, template in zip(axes.flat, templates, strict=True):
        for index, size in enumerate(dict.fromkeys(row["font_px"] for row in rows)):
            points = [row for row in rows if row["template"] == template and row["font_px"] == size]
            for measure, dash in (("recognised", "-"), ("detected", ":")):
                seen = [(float(row["factor"]), 100 * float(row[measure])) for row in points if row[measure]]
                label = f"{size} px" if measure == "recognised" else None
                axis.plot(*zip(*seen, strict=True), dash, color=f"C{index}", label=label, marker=".", markersize=4)
        axis.set_title(template, fontsize=10)
        axis.set_xscale("log", base=2)
        axis.set_xticks([1, 2, 4, 8], ["1×", "2×", "4×", "8×"])
        axis.grid(alpha=0.3)
    axes[0, 0].legend(fontsize=8)
    figure.supxlabel("each side made smaller by", fontsize=10)
    figure.supylabel("characters read back, % (solid: on line boxes; dotted: found first)", fontsize=9)
    figure.savefig(path, metadata={"Date": None, "Creator": None})


def main() -> int:
    """Measure, store the table and the curve, and say whether pages are as legible as they should be."""
    parser = argparse.ArgumentParser(description="How legible pages are to RapidOCR.")
    parser.add_argument("--quick", action="store_true", help="one template at 14 pixels, unshrunk; nothing is stored")
    quick = parser.parse_args().quick
    rows = curve(("cards",), (14,), (1.0,)) if quick else curve(TEMPLATES, SIZES, FACTORS)
    if not quick:
        with (FOLDER / "legibility.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        plot(rows, FOLDER / "legibility.svg")
    print(f"rapidocr {version('rapidocr')}, pillow {version('pillow')}")
    whole = [row for row in rows if row["factor"] == "1"]
    recognised, detected = (min(float(row[name]) for row in whole) for name in ("recognised", "detected"))
    print(f"unshrunk, the least of all: recognised {recognised:.2%} (to be 99 %), detected {detected:.2%} (to be 98 %)")
    return 0 if recognised >= 0.99 and detected >= 0.98 else 1


def _layout(page: Page) -> Layout:
    assert page.layout is not None, "a drawn page has its layout"
    return page.layout


def _pixels(page: Page) -> Any:
    from PIL import Image

    return np.ascontiguousarray(np.asarray(Image.open(io.BytesIO(page.png)))[:, :, ::-1])  # RapidOCR reads BGR


def _box(x: float, y: float, width: float, height: float, page: Page) -> tuple[int, int, int, int]:
    """A box of the layout with a little of the blank around it, in pixels of the page as it is now."""
    layout = _layout(page)
    across, down = page.width / layout.width, page.height / layout.height
    left, right = int((x - 3) * across), int((x + width + 3) * across + 1)
    return max(0, left), int(y * down), min(page.width, right), max(int((y + height) * down), int(y * down) + 1)


def _nearest(layout: Layout, x: float, y: float) -> int:
    """Index of the line whose box is nearest to a point."""

    def away(index: int) -> float:
        line = layout.lines[index]
        beside = max(line.x - x, 0, x - line.x - line.width)
        return beside + abs(y - line.y - line.height / 2)

    return min(range(len(layout.lines)), key=away)


if __name__ == "__main__":
    sys.exit(main())
