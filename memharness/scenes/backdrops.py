"""Backgrounds and lights: what a scene looks like before anything stands in it."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from memharness.scenes.vocabulary import BACKGROUNDS, LAYOUTS, LIGHTS, RGB

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw


class Look(NamedTuple):
    """Colours of the upper and the lower part of a background, and the motif between them."""

    upper: RGB
    lower: RGB
    motif: str
    tone: RGB


LOOKS = {
    "studio": Look((222, 222, 226), (196, 196, 202), "panels", (208, 208, 214)),
    "shop": Look((244, 228, 204), (188, 160, 132), "shelves", (166, 136, 108)),
    "market": Look((206, 226, 240), (200, 188, 164), "awnings", (222, 150, 130)),
    "street": Look((190, 208, 224), (150, 152, 156), "skyline", (166, 156, 160)),
    "cafe": Look((224, 200, 172), (132, 104, 84), "windows", (240, 226, 196)),
    "hotel": Look((232, 212, 180), (164, 108, 100), "columns", (246, 232, 206)),
    "kitchen": Look((220, 236, 232), (200, 204, 196), "tiles", (240, 248, 246)),
    "garden": Look((196, 228, 244), (158, 200, 134), "hedges", (120, 172, 112)),
    "workshop": Look((196, 184, 168), (150, 132, 112), "shelves", (126, 108, 88)),
    "factory": Look((178, 184, 190), (122, 126, 132), "pipes", (150, 156, 164)),
    "harbour": Look((200, 222, 238), (108, 156, 184), "waves", (160, 196, 214)),
    "warehouse": Look((208, 198, 182), (160, 154, 146), "racks", (176, 152, 118)),
    "classroom": Look((240, 236, 214), (206, 182, 148), "board", (88, 126, 106)),
    "library": Look((186, 152, 122), (140, 110, 86), "books", (170, 120, 96)),
    "playground": Look((200, 226, 246), (226, 190, 142), "fence", (176, 150, 118)),
    "museum": Look((238, 238, 232), (180, 172, 160), "frames", (196, 168, 112)),
    "station": Look((196, 204, 212), (138, 134, 130), "arches", (170, 176, 186)),
    "park": Look((190, 222, 240), (174, 210, 140), "trees", (128, 178, 120)),
    "hospital": Look((228, 242, 246), (194, 220, 222), "curtains", (176, 210, 214)),
    "beach": Look((186, 222, 244), (240, 222, 172), "waves", (132, 188, 208)),
    "mountains": Look((204, 220, 240), (160, 186, 150), "peaks", (150, 160, 182)),
    "forest": Look((178, 204, 186), (122, 150, 104), "trees", (86, 128, 92)),
    "desert": Look((244, 222, 186), (228, 192, 130), "dunes", (236, 206, 150)),
    "lake": Look((196, 216, 234), (128, 176, 190), "hills", (134, 166, 140)),
    "snowfield": Look((208, 224, 240), (246, 248, 252), "peaks", (216, 226, 238)),
    "laboratory": Look((224, 232, 242), (176, 190, 206), "racks", (200, 212, 226)),
    "reef": Look((108, 184, 206), (204, 194, 150), "corals", (222, 150, 150)),
    "greenhouse": Look((214, 238, 218), (150, 128, 98), "panes", (236, 248, 238)),
    "moon": Look((44, 46, 66), (172, 172, 178), "craters", (142, 142, 150)),
    "orbit": Look((26, 28, 52), (62, 92, 140), "stars", (222, 226, 240)),
    "mars": Look((226, 178, 148), (186, 104, 74), "dunes", (204, 126, 92)),
}
HORIZONS = {"level": 0.58, "open": 0.8, "high": 0.3}  # how far down the lower part begins
TINTS: dict[str, tuple[tuple[float, float, float], RGB, float]] = {  # per-channel gain; a haze, and how much of it
    "day": ((1.0, 1.0, 1.0), (0, 0, 0), 0.0),
    "dusk": ((1.0, 0.74, 0.55), (255, 120, 60), 0.12),
    "night": ((0.34, 0.4, 0.62), (10, 14, 40), 0.1),
    "fog": ((1.0, 1.0, 1.0), (206, 210, 214), 0.55),
    "neon": ((0.72, 0.42, 0.9), (255, 0, 190), 0.14),
}
assert set(LOOKS) == set(BACKGROUNDS)
assert set(HORIZONS) == set(LAYOUTS)
assert set(TINTS) == set(LIGHTS)


def lit(colour: RGB, light: str) -> RGB:
    """How a colour looks in a light."""
    gains, haze, share = TINTS[light]
    red, green, blue = (
        round((1 - share) * gain * value + share * over) for gain, value, over in zip(gains, colour, haze, strict=True)
    )
    return red, green, blue


@functools.lru_cache(512)
def backdrop(background: str, light: str, layout: str, variant: int, size: tuple[int, int]) -> Image:
    """An empty scene of (width, height) pixels; not to be drawn on, since it is shared."""
    from PIL import Image, ImageDraw

    width, height = size
    look = LOOKS[background]
    picture = Image.new("RGB", size)
    pen = ImageDraw.Draw(picture)
    horizon = round(HORIZONS[layout] * height)
    for y in range(height):  # a soft gradient each: flat parts would look like paper
        colour, share = (look.upper, 0.12 * y / horizon) if y < horizon else (look.lower, 0.18 * (height - y) / height)
        pen.line((0, y, width, y), fill=lit(_mixed(colour, (255, 255, 255), share), light))
    dice = random.Random(f"{background}:{variant}")
    _MOTIFS[look.motif](_Brush(pen, width, height, horizon, dice, lit(look.tone, light), lit(look.lower, light)))
    _sky(pen, light, width, height)
    return picture


def _mixed(colour: RGB, other: RGB, share: float) -> RGB:
    red, green, blue = (round((1 - share) * one + share * two) for one, two in zip(colour, other, strict=True))
    return red, green, blue


def _sky(pen: ImageDraw, light: str, width: int, height: int) -> None:
    """What tells a light at a glance: a moon, a low sun, tubes, bands of fog."""
    x, y, r = 0.335 * width, 0.075 * height, 0.045 * min(width, height)
    if light == "night":
        pen.ellipse((x - r, y - r, x + r, y + r), fill=(240, 238, 210))
        pen.ellipse((x - 0.3 * r, y - 1.1 * r, x + 1.5 * r, y + 0.7 * r), fill=(24, 30, 66))
    elif light == "dusk":
        pen.ellipse((x - r, y - r, x + r, y + r), fill=(255, 214, 110))
    elif light == "neon":
        for place, colour in ((0.03, (255, 60, 200)), (0.05, (60, 230, 255))):
            pen.rectangle((0, place * height, width, place * height + max(1, height // 90)), fill=colour)


class _Brush(NamedTuple):
    """What a motif is drawn with, in parts of the picture."""

    pen: ImageDraw
    width: int
    height: int
    horizon: int
    dice: random.Random
    tone: RGB
    ground: RGB

    def box(self, left: float, top: float, right: float, bottom: float, fill: RGB | None = None) -> None:
        """A rectangle; x in parts of the width, y in parts of the height above (negative) or below the horizon."""
        x0, y0, x1, y1 = self._at(left, top, right, bottom)
        self.pen.rectangle((x0, y0, max(x0, x1), max(y0, y1)), fill=fill or self.tone)

    def oval(self, left: float, top: float, right: float, bottom: float, fill: RGB | None = None) -> None:
        """An ellipse in such a box."""
        x0, y0, x1, y1 = self._at(left, top, right, bottom)
        self.pen.ellipse((x0, y0, max(x0, x1), max(y0, y1)), fill=fill or self.tone)

    def peak(self, middle: float, half: float, tall: float) -> None:
        """A triangle that stands on the horizon."""
        x0, y0, x1, y1 = self._at(middle - half, -tall, middle + half, 0)
        self.pen.polygon([(x0, y1), ((x0 + x1) / 2, y0), (x1, y1)], fill=self.tone)

    def _at(self, left: float, top: float, right: float, bottom: float) -> tuple[float, float, float, float]:
        return (
            left * self.width,
            self.horizon + top * self.height,
            right * self.width,
            self.horizon + bottom * self.height,
        )

    def spots(self, n: int) -> list[float]:
        """So many places from left to right, moved a little by chance."""
        return [(place + 0.5 + self.dice.uniform(-0.3, 0.3)) / n for place in range(n)]


def _darker(colour: RGB, share: float = 0.15) -> RGB:
    return _mixed(colour, (0, 0, 0), share)


def _panels(brush: _Brush) -> None:
    for x in brush.spots(3):
        brush.box(x - 0.1, -0.5, x + 0.1, 0)


def _shelves(brush: _Brush) -> None:
    for row in range(3):
        top = -0.14 * (row + 1)
        brush.box(0, top, 1, top + 0.02)
        for x in brush.spots(8):
            tall = brush.dice.uniform(0.04, 0.09)
            brush.box(x - 0.025, top - tall, x + 0.025, top, _darker(brush.tone, brush.dice.uniform(-0.3, 0.2)))


def _awnings(brush: _Brush) -> None:
    for place, x in enumerate(brush.spots(5)):
        brush.box(x - 0.1, -0.2, x + 0.1, -0.12, brush.tone if place % 2 else _darker(brush.tone, -0.4))
        brush.box(x - 0.09, -0.12, x - 0.08, 0)


def _skyline(brush: _Brush) -> None:
    for x in brush.spots(7):
        tall = brush.dice.uniform(0.15, 0.42)
        brush.box(x - 0.07, -tall, x + 0.07, 0, _darker(brush.tone, brush.dice.uniform(0, 0.2)))
        for row in range(int(tall / 0.07)):
            brush.box(
                x - 0.03, -tall + 0.02 + row * 0.07, x - 0.01, -tall + 0.05 + row * 0.07, _darker(brush.tone, -0.4)
            )
            brush.box(
                x + 0.02, -tall + 0.02 + row * 0.07, x + 0.04, -tall + 0.05 + row * 0.07, _darker(brush.tone, -0.4)
            )


def _windows(brush: _Brush) -> None:
    for x in brush.spots(3):
        brush.box(x - 0.11, -0.4, x + 0.11, -0.1)
        brush.box(x - 0.005, -0.4, x + 0.005, -0.1, _darker(brush.tone, 0.3))
        brush.box(x - 0.11, -0.26, x + 0.11, -0.25, _darker(brush.tone, 0.3))


def _columns(brush: _Brush) -> None:
    for x in brush.spots(4):
        brush.box(x - 0.03, -0.55, x + 0.03, 0)
        brush.box(x - 0.05, -0.03, x + 0.05, 0, _darker(brush.tone))


def _tiles(brush: _Brush) -> None:
    shift = brush.dice.uniform(0, 0.1)
    for column in range(11):
        brush.box(column / 10 - shift, -0.6, column / 10 - shift + 0.008, 0)
    for row in range(6):
        brush.box(0, -0.1 * (row + 1), 1, -0.1 * (row + 1) + 0.008)


def _hedges(brush: _Brush) -> None:
    for x in brush.spots(9):
        brush.oval(x - 0.09, -brush.dice.uniform(0.08, 0.16), x + 0.09, 0.06)


def _pipes(brush: _Brush) -> None:
    for y in (-0.45, -0.32, -0.12):
        brush.box(0, y, 1, y + 0.035)
    for x in brush.spots(4):
        brush.box(x - 0.02, -0.6, x + 0.02, 0, _darker(brush.tone))


def _waves(brush: _Brush) -> None:
    for row in range(4):
        for x in brush.spots(6):
            brush.oval(x - 0.08, 0.02 + 0.09 * row, x + 0.08, 0.035 + 0.09 * row)


def _racks(brush: _Brush) -> None:
    for x in brush.spots(5):
        for row in range(3):
            brush.box(x - 0.07, -0.13 * (row + 1), x + 0.06, -0.13 * row - 0.02, _darker(brush.tone, 0.1 * row))


def _board(brush: _Brush) -> None:
    x = brush.dice.uniform(0.4, 0.6)
    brush.box(x - 0.34, -0.44, x + 0.34, -0.1, _darker(brush.tone, 0.4))
    brush.box(x - 0.32, -0.42, x + 0.32, -0.12)


def _books(brush: _Brush) -> None:
    for row in range(3):
        for x in brush.spots(14):
            brush.box(
                x - 0.025,
                -0.16 * (row + 1) + 0.02,
                x + 0.02,
                -0.16 * row - 0.02,
                _darker(brush.tone, brush.dice.uniform(-0.2, 0.3)),
            )


def _fence(brush: _Brush) -> None:
    brush.box(0, -0.1, 1, -0.08)
    for x in brush.spots(14):
        brush.box(x - 0.012, -0.15, x + 0.012, 0)


def _frames(brush: _Brush) -> None:
    for x in brush.spots(4):
        half, tall = brush.dice.uniform(0.05, 0.09), brush.dice.uniform(0.1, 0.2)
        brush.box(x - half, -0.18 - tall, x + half, -0.16)
        brush.box(x - half + 0.015, -0.165 - tall, x + half - 0.015, -0.175, _darker(brush.ground, -0.3))


def _arches(brush: _Brush) -> None:
    for x in brush.spots(4):
        brush.oval(x - 0.12, -0.4, x + 0.12, -0.1, _darker(brush.tone, 0.3))
        brush.box(x - 0.12, -0.25, x + 0.12, 0, _darker(brush.tone, 0.3))
        brush.box(x - 0.13, -0.5, x - 0.11, 0)


def _trees(brush: _Brush) -> None:
    for x in brush.spots(8):
        tall = brush.dice.uniform(0.2, 0.4)
        brush.box(x - 0.01, -tall / 2, x + 0.01, 0.02, _darker(brush.tone, 0.4))
        brush.peak(x, 0.07, tall)


def _curtains(brush: _Brush) -> None:
    for x in brush.spots(6):
        brush.box(x - 0.05, -0.55, x + 0.04, 0)


def _peaks(brush: _Brush) -> None:
    for x in brush.spots(5):
        brush.peak(x, brush.dice.uniform(0.14, 0.24), brush.dice.uniform(0.18, 0.4))


def _dunes(brush: _Brush) -> None:
    for x in brush.spots(4):
        brush.oval(x - 0.26, -brush.dice.uniform(0.04, 0.12), x + 0.26, 0.12)


def _hills(brush: _Brush) -> None:
    for x in brush.spots(5):
        brush.oval(x - 0.2, -brush.dice.uniform(0.1, 0.2), x + 0.2, 0.0)


def _corals(brush: _Brush) -> None:
    for x in brush.spots(7):
        tall = brush.dice.uniform(0.08, 0.2)
        for shift in (-0.03, 0, 0.03):
            brush.box(x + shift - 0.008, -tall + abs(shift), x + shift + 0.008, 0.02)
        brush.oval(x - 0.05, -0.03, x + 0.05, 0.04)


def _panes(brush: _Brush) -> None:
    for x in brush.spots(6):
        brush.box(x - 0.008, -0.6, x + 0.008, 0)
    for y in (-0.5, -0.3, -0.1):
        brush.box(0, y, 1, y + 0.012)


def _craters(brush: _Brush) -> None:
    for row in range(3):
        for x in brush.spots(4):
            brush.oval(x - 0.06, 0.04 + 0.12 * row, x + 0.06, 0.08 + 0.12 * row)


def _stars(brush: _Brush) -> None:
    for _ in range(70):
        x, y = brush.dice.uniform(0, 1), brush.dice.uniform(-0.75, 0)
        brush.oval(x, y, x + 0.008, y + 0.008)
    brush.oval(-0.3, 0.0, 1.3, 0.9, _darker(brush.ground, -0.15))


_MOTIFS: dict[str, Callable[[_Brush], None]] = {
    "panels": _panels,
    "shelves": _shelves,
    "awnings": _awnings,
    "skyline": _skyline,
    "windows": _windows,
    "columns": _columns,
    "tiles": _tiles,
    "hedges": _hedges,
    "pipes": _pipes,
    "waves": _waves,
    "racks": _racks,
    "board": _board,
    "books": _books,
    "fence": _fence,
    "frames": _frames,
    "arches": _arches,
    "trees": _trees,
    "curtains": _curtains,
    "peaks": _peaks,
    "dunes": _dunes,
    "hills": _hills,
    "corals": _corals,
    "panes": _panes,
    "craters": _craters,
    "stars": _stars,
}
