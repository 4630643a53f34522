"""Scenes as pictures, and back: Pillow draws them, the same bytes every time."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memharness.scenes.backdrops import backdrop, lit
from memharness.scenes.scene import Scene, Thing, from_json, to_json
from memharness.scenes.shapes import FITTINGS, Figure, figures
from memharness.scenes.vocabulary import COLOUR_VALUES, GRID, RGB

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw

SIZE = (256, 256)
CHUNK = "scene"  # the PNG text chunk that the scene is kept in
EDGE = 0.04  # of the picture, where no thing is ever drawn
FLOOR = 0.88  # of the height: below it is the sign
SCALE = {"small": 0.58, "medium": 0.78, "large": 0.98}  # of a cell
_FINER = 2  # pictures are drawn this much larger and then averaged, for smooth edges
_LARGEST = 4096


def draw(scene: Scene, size: tuple[int, int] = SIZE) -> Image:
    """A scene as a picture.

    Args:
        scene: what it shows.
        size: (width, height) in pixels.

    Returns:
        RGB of that size.

    Raises:
        ValueError: a side is not from 16 to 4096 pixels.
    """
    if not all(16 <= side <= _LARGEST for side in size):
        raise ValueError(f"size {size[0]}×{size[1]}: a side is from 16 to {_LARGEST} pixels")
    fine = (size[0] * _FINER, size[1] * _FINER)
    picture = backdrop(scene.background, scene.light, scene.layout, scene.variant, fine).copy()
    for thing in sorted(scene.things, key=lambda thing: GRID[thing.place][1]):
        _draw_thing(picture, thing, scene.light)
    if scene.text:
        _draw_text(picture, scene.text, scene.light)
    return picture.reduce(_FINER)


def png(scene: Scene, size: tuple[int, int] = SIZE) -> bytes:
    """A scene as a PNG file that carries the scene in its text chunk `scene`."""
    return encoded(draw(scene, size), scene)


def encoded(picture: Image, scene: Scene | None = None) -> bytes:
    """A picture as a PNG file, with the scene it shows where one is known."""
    from PIL.PngImagePlugin import PngInfo

    notes = PngInfo()
    notes.add_text("Software", "memharness scenes (a drawing, synthetic)")
    if scene is not None:
        notes.add_itxt(CHUNK, json.dumps(to_json(scene), ensure_ascii=False, sort_keys=True))
    file = io.BytesIO()
    picture.save(file, "PNG", pnginfo=notes, compress_level=6)
    return file.getvalue()


def scene_of(data: bytes) -> Scene | None:
    """The scene that a PNG file carries; None for any other file, and for a chunk that states none."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data), formats=("PNG",)) as opened:
            said = opened.info.get(CHUNK)
        return from_json(json.loads(said)) if isinstance(said, str) else None
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None


def cell(place: str, size: tuple[int, int]) -> tuple[int, int, int, int]:
    """The box of a place in a picture: left, top, right, bottom in pixels."""
    column, row = GRID[place]
    wide, tall = (1 - 2 * EDGE) / 3, (FLOOR - EDGE) / 3
    left, top = EDGE + column * wide, EDGE + row * tall
    return round(left * size[0]), round(top * size[1]), round((left + wide) * size[0]), round((top + tall) * size[1])


def sign_box(size: tuple[int, int]) -> tuple[int, int, int, int]:
    """Where the words of a scene stand: left, top, right, bottom in pixels."""
    return round(0.1 * size[0]), round((FLOOR + 0.005) * size[1]), round(0.9 * size[0]), round((1 - EDGE / 2) * size[1])


def _draw_thing(picture: Image, thing: Thing, light: str) -> None:
    from PIL import Image, ImageDraw

    left, top, right, bottom = cell(thing.place, picture.size)
    side = SCALE[thing.size] * min(right - left, bottom - top)
    x, y = round((left + right - side) / 2), round(bottom - side)
    body = Image.new("L", (round(side), round(side)))
    colour = COLOUR_VALUES[thing.colour]
    pen = ImageDraw.Draw(picture)
    shown = figures(thing.kind)
    for figure in shown:
        if figure.role == "b":
            _figure(ImageDraw.Draw(body), figure, side, (0, 0), 255)
    filled = False
    for figure in shown:
        if figure.role != "b":
            _figure(pen, figure, side, (x, y), lit(FITTINGS[figure.role], light))
        elif not filled:  # all of the body at once, where its first figure stands
            picture.paste(lit(_contrast(colour, 0.45), light), (x, y), _grown(body))
            picture.paste(
                _surface(thing, body.size, picture.crop((x, y, x + body.width, y + body.height)), light), (x, y), body
            )
            filled = True


def _grown(mask: Image) -> Image:
    from PIL import ImageFilter

    return mask.filter(ImageFilter.MaxFilter(5))


def _figure(pen: ImageDraw, figure: Figure, side: float, at: tuple[int, int], fill: int | RGB) -> None:
    scaled = [number * side / 100 for number in figure.numbers]
    if figure.form == "L":
        pen.line(_points(scaled[1:], at), fill=fill, width=max(1, round(scaled[0])), joint="curve")
    elif figure.form == "P":
        pen.polygon(_points(scaled, at), fill=fill)
    else:
        box = [*_points(scaled[:2], at), *_points(scaled[2:], at)]
        (pen.ellipse if figure.form == "E" else pen.rectangle)(box, fill=fill)


def _points(numbers: Sequence[float], at: tuple[int, int]) -> list[tuple[float, float]]:
    return [(x + at[0], y + at[1]) for x, y in zip(numbers[::2], numbers[1::2], strict=True)]


def _contrast(colour: RGB, share: float) -> RGB:
    """The colour moved towards black, or towards white where it is dark."""
    end = 255 if sum(colour) < 240 else 0
    red, green, blue = (round((1 - share) * value + share * end) for value in colour)
    return red, green, blue


def _surface(thing: Thing, size: tuple[int, int], behind: Image, light: str) -> Image:
    """What a body is covered with: its colour, as its material shows it."""
    from PIL import Image, ImageDraw

    colour = COLOUR_VALUES[thing.colour]
    base, mark = lit(colour, light), lit(_contrast(colour, 0.32), light)
    surface = Image.new("RGB", size, base)
    pen, (wide, tall) = ImageDraw.Draw(surface), size
    dice = random.Random(thing.material)
    match thing.material:
        case "wood":
            for row in range(9):
                y = (row + 0.5) * tall / 9
                pen.line(
                    [(x * wide / 6, y + dice.uniform(-0.02, 0.02) * tall) for x in range(7)], mark, max(1, tall // 45)
                )
        case "metal":
            shine = lit(_mixed(colour, 0.55), light)
            for start in (0.1, 0.55):
                pen.polygon(
                    [
                        (start * wide, tall),
                        ((start + 0.2) * wide, tall),
                        ((start + 0.5) * wide, 0),
                        ((start + 0.3) * wide, 0),
                    ],
                    shine,
                )
        case "glass":
            surface = Image.blend(surface, behind, 0.55)
            ImageDraw.Draw(surface).line(
                (0.2 * wide, 0.8 * tall, 0.5 * wide, 0.1 * tall), lit((255, 255, 255), light), max(1, wide // 18)
            )
        case "stone":
            for _ in range(110):
                x, y, r = dice.uniform(0, wide), dice.uniform(0, tall), dice.uniform(0.008, 0.03) * wide
                pen.ellipse((x - r, y - r, x + r, y + r), mark)
        case "fabric":
            for step in range(-12, 24):
                pen.line((step * wide / 12, 0, (step + 12) * wide / 12, tall), mark, max(1, wide // 70))
                pen.line((step * wide / 12, tall, (step + 12) * wide / 12, 0), mark, max(1, wide // 70))
        case "striped":
            for column in range(0, 10, 2):
                pen.rectangle(
                    (column * wide / 10, 0, (column + 1) * wide / 10 - 1, tall), lit(_opposite(colour), light)
                )
        case "dotted":
            for row in range(6):
                for column in range(6):
                    x, y, r = (column + 0.5 * (row % 2)) * wide / 5.5, (row + 0.5) * tall / 6, wide / 18
                    pen.ellipse((x - r, y - r, x + r, y + r), lit(_opposite(colour), light))
    return surface


def _mixed(colour: RGB, share: float) -> RGB:
    red, green, blue = (round((1 - share) * value + share * 255) for value in colour)
    return red, green, blue


def _opposite(colour: RGB) -> RGB:
    """White, or dark on a light colour."""
    return (60, 60, 66) if sum(colour) > 560 else (250, 250, 246)


def _draw_text(picture: Image, text: str, light: str) -> None:
    from PIL import ImageDraw

    from memharness.pages.faces import BODY, face, font

    left, top, right, bottom = sign_box(picture.size)
    pen = ImageDraw.Draw(picture)
    pen.rectangle((left, top, right, bottom), lit((250, 248, 236), light), lit((70, 60, 50), light), 2)
    file = next((found for character in text if (found := face(character)) not in (None, BODY)), BODY)
    px = max(8, round(0.72 * (bottom - top)))
    while px > 8 and font(file, px).getlength(text) > right - left - 8:
        px -= 2
    pen.text(((left + right) / 2, (top + bottom) / 2), text, lit((40, 36, 34), light), font(file, px), anchor="mm")
