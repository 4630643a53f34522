"""A small pen over Pillow: pictures are drawn at twice their size and reduced, so that edges are smooth."""

from __future__ import annotations

import io
import math
import random
import re
from collections.abc import Sequence
from typing import cast

import PIL
from PIL import Image, ImageDraw, ImageFilter, ImageFont, features
from PIL.TiffImagePlugin import IFDRational

SCALE = 2
Colour = str | tuple[int, int, int]
Point = tuple[float, float]

# Pillow's embedded typeface has no currency signs, so they are drawn: strokes in units of the type size, baseline at 0.
SIGNS: dict[str, list[list[Point]]] = {
    "£": [
        [(0.05, 0.0), (0.54, 0.0)],
        [(0.05, -0.36), (0.42, -0.36)],
        [(0.08, 0.0), (0.18, -0.09), (0.22, -0.22), (0.2, -0.36), (0.17, -0.52), (0.23, -0.65), (0.34, -0.7),
         (0.45, -0.66), (0.51, -0.55)],
    ],
    "€": [
        [(0.02, -0.42), (0.46, -0.42)],
        [(0.02, -0.28), (0.42, -0.28)],
        [(0.56, -0.6), (0.46, -0.68), (0.35, -0.7), (0.22, -0.63), (0.14, -0.5), (0.12, -0.35), (0.14, -0.2),
         (0.22, -0.07), (0.35, 0.0), (0.46, -0.02), (0.56, -0.1)],
    ],
}  # fmt: skip
SIGN_WIDTH = 0.62


def made_with() -> str:
    """Return the versions that decide the bytes of a picture: Pillow, its JPEG encoder and its type engine."""
    parts = [f"Pillow {PIL.__version__}"]
    parts += [f"{name} {features.version(name)}" for name in ("libjpeg_turbo", "freetype2", "zlib")]
    return ", ".join(parts)


def font(size: float) -> ImageFont.FreeTypeFont:
    """Return Pillow's embedded typeface at `size` pixels."""
    return cast(ImageFont.FreeTypeFont, ImageFont.load_default(size))


class Picture:
    """A canvas of `width` by `height` pixels; all coordinates are in those pixels, from the top left."""

    def __init__(self, width: int, height: int, colour: Colour) -> None:
        """Start with a canvas of one colour."""
        self.width, self.height = width, height
        self.image = Image.new("RGB", (width * SCALE, height * SCALE), colour)
        self.pen = ImageDraw.Draw(self.image)

    def box(
        self,
        x: float,
        y: float,
        w: float,
        h: float,
        fill: Colour | None,
        *,
        radius: float = 0,
        edge: Colour | None = None,
        width: float = 1,
    ) -> None:
        """Draw a rectangle of size `w` by `h` with its corner at (x, y)."""
        corners = [x * SCALE, y * SCALE, (x + w) * SCALE, (y + h) * SCALE]
        self.pen.rounded_rectangle(corners, radius * SCALE, fill, edge, max(1, round(width * SCALE)) if edge else 0)

    def disc(
        self,
        x: float,
        y: float,
        rx: float,
        fill: Colour | None,
        *,
        ry: float | None = None,
        edge: Colour | None = None,
        width: float = 1,
    ) -> None:
        """Draw an ellipse with its centre at (x, y); a circle when `ry` is left out."""
        ry = rx if ry is None else ry
        corners = [(x - rx) * SCALE, (y - ry) * SCALE, (x + rx) * SCALE, (y + ry) * SCALE]
        self.pen.ellipse(corners, fill, edge, max(1, round(width * SCALE)) if edge else 0)

    def line(self, points: Sequence[Point], fill: Colour, width: float = 1) -> None:
        """Draw a line through `points`."""
        self.pen.line([(x * SCALE, y * SCALE) for x, y in points], fill, max(1, round(width * SCALE)), joint="curve")

    def shape(self, points: Sequence[Point], fill: Colour, *, edge: Colour | None = None) -> None:
        """Fill the polygon through `points`."""
        self.pen.polygon([(x * SCALE, y * SCALE) for x, y in points], fill, edge)

    def arc(self, x: float, y: float, r: float, start: float, end: float, fill: Colour, width: float = 1) -> None:
        """Draw an arc of radius `r` about (x, y) from `start` to `end` degrees, clockwise from three o'clock."""
        corners = [(x - r) * SCALE, (y - r) * SCALE, (x + r) * SCALE, (y + r) * SCALE]
        self.pen.arc(corners, start, end, fill, max(1, round(width * SCALE)))

    def shade(self, y0: float, y1: float, top: tuple[int, int, int], bottom: tuple[int, int, int]) -> None:
        """Fill the rows from `y0` to `y1` with a gradient."""
        first, last = int(y0 * SCALE), int(y1 * SCALE)
        for row in range(first, last):
            t = (row - first) / max(1, last - first - 1)
            colour = tuple(round(a + (b - a) * t) for a, b in zip(top, bottom, strict=True))
            self.pen.line([(0, row), (self.image.width, row)], colour)

    def measure(self, words: str, size: float) -> float:
        """Return the width of `words` in pixels at type size `size`."""
        face = font(size * SCALE)
        parts = re.split("([£€])", words)
        return sum(SIGN_WIDTH * size if part in SIGNS else face.getlength(part) / SCALE for part in parts)

    def text(
        self,
        x: float,
        y: float,
        words: str,
        size: float,
        fill: Colour = "#222222",
        *,
        align: str = "left",
        bold: bool = False,
    ) -> None:
        """Write one line of `words` with its top at `y`; `align` says what x is: left, middle or right."""
        face = font(size * SCALE)
        x -= {"left": 0.0, "middle": 0.5, "right": 1.0}[align] * self.measure(words, size)
        base = y + 0.92 * size
        for part in re.split("([£€])", words):
            if part in SIGNS:
                for stroke in SIGNS[part]:
                    self.line(
                        [(x + a * size, base + b * size) for a, b in stroke], fill, size * (0.11 if bold else 0.08)
                    )
                x += SIGN_WIDTH * size
            elif part:
                heavy = max(1, round(size * SCALE * 0.022)) if bold else 0
                self.pen.text((x * SCALE, base * SCALE), part, fill, face, "ls", stroke_width=heavy)
                x += face.getlength(part) / SCALE

    def lay(self, sheet: Picture, x: float, y: float, angle: float = 0.0) -> None:
        """Lay another picture on this one with its middle at (x, y), turned by `angle` degrees, with a soft shadow."""
        mask = Image.new("L", sheet.image.size, 255).rotate(angle, Image.Resampling.BICUBIC, expand=True)
        turned = sheet.image.rotate(angle, Image.Resampling.BICUBIC, expand=True)
        corner = (round(x * SCALE - turned.width / 2), round(y * SCALE - turned.height / 2))
        shadow = Image.new("L", self.image.size, 0)
        shadow.paste(110, (corner[0] + 5 * SCALE, corner[1] + 6 * SCALE), mask)
        self.image.paste(Image.new("RGB", self.image.size, "black"), (0, 0), shadow.filter(ImageFilter.GaussianBlur(8)))
        self.image.paste(turned, corner, mask)
        self.pen = ImageDraw.Draw(self.image)

    def done(self, *, shift: Point = (0.0, 0.0), light: float = 1.0) -> Image.Image:
        """Return the reduced image; `shift` moves the view by pixels and `light` scales brightness, as in a burst."""
        dx, dy = round(shift[0] * SCALE), round(shift[1] * SCALE)
        if dx or dy:  # a hand that moved: crop from the moved edge and stretch back to the full frame
            w, h = self.image.size
            view = self.image.crop((max(0, dx), max(0, dy), w + min(0, dx), h + min(0, dy)))
        else:
            view = self.image
        small = view.resize((self.width, self.height), Image.Resampling.LANCZOS)
        return small if light == 1.0 else small.point([min(255, round(v * light)) for v in range(256)] * 3)


def scatter(seed: int, count: int, x: Point, y: Point) -> list[Point]:
    """Return `count` points drawn evenly from the rectangle `x` by `y`; the same points for the same seed."""
    dice = random.Random(seed)
    return [(round(dice.uniform(*x), 1), round(dice.uniform(*y), 1)) for _ in range(count)]


def ring(x: float, y: float, r: float, count: int, turn: float = 0.0) -> list[Point]:
    """Return `count` points evenly round the circle of radius `r` about (x, y), starting at `turn` degrees."""
    angles = [math.radians(turn + 360 * i / count) for i in range(count)]
    return [(x + r * math.cos(a), y + r * math.sin(a)) for a in angles]


def jpeg(image: Image.Image, *, quality: int = 78, exif: Image.Exif | None = None) -> bytes:
    """Encode `image` as a JPEG file."""
    out = io.BytesIO()
    image.save(out, "JPEG", quality=quality, optimize=True, exif=exif.tobytes() if exif else b"")
    return out.getvalue()


def degrees(value: float) -> tuple[IFDRational, IFDRational, IFDRational]:
    """Return `value` as EXIF degrees, minutes and seconds, to a hundredth of a second (about 0.3 m)."""
    hundredths = round(abs(value) * 360000)
    whole, rest = divmod(hundredths, 360000)
    return IFDRational(whole, 1), IFDRational(rest // 6000, 1), IFDRational(rest % 6000, 100)


def exif(
    taken: str, place: tuple[float, float] | None, maker: str, model: str, settings: dict[str, float]
) -> Image.Exif:
    """Return EXIF data: `taken` is local time "YYYY-MM-DD HH:MM:SS", `place` latitude and longitude in degrees."""
    data = Image.Exif()
    data[0x010F], data[0x0110] = maker, model
    data[0x0132] = taken.replace("-", ":")
    shot = data.get_ifd(0x8769)
    shot[0x9003] = taken.replace("-", ":")
    shot[0x829D] = IFDRational(round(settings["f_number"] * 10), 10)
    shot[0x829A] = IFDRational(1, round(1 / settings["exposure_time"]))
    shot[0x8827] = round(settings["iso"])
    shot[0x920A] = IFDRational(round(settings["focal_length"] * 100), 100)
    shot[0x9209], shot[0xA403] = round(settings["flash"]), round(settings["white_balance"])
    if place:
        gps = data.get_ifd(0x8825)
        gps[1], gps[2] = "N" if place[0] >= 0 else "S", degrees(place[0])
        gps[3], gps[4] = "E" if place[1] >= 0 else "W", degrees(place[1])
    return data
