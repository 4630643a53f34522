"""Small pictures in sets for the samples of benchmarks that ask about several: each is drawn here, under 2 kB."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence

from samples.drawing import Colour, Picture, jpeg, ring

WIDTH, HEIGHT = 96, 72
Draw = Callable[[], Picture]


def apples(count: int, colour: Colour = "#c8372d") -> Draw:
    """So many apples on a cloth, in rows of three."""

    def draw() -> Picture:
        view = Picture(WIDTH, HEIGHT, "#efe6d2")
        for place in range(count):
            x, y = 20 + 28 * (place % 3), 16 + 22 * (place // 3)
            view.disc(x, y, 9, colour, edge="#5e1712")
            view.line([(x, y - 9), (x + 3, y - 14)], "#4d3a20", 2)
        return view

    return draw


def house(door: Colour, *, smoke: bool = False, windows: int = 2) -> Draw:
    """A house under a blue sky, with a coloured door."""

    def draw() -> Picture:
        view = Picture(WIDTH, HEIGHT, "#bfe0f2")
        view.box(0, 58, WIDTH, 14, "#7cae5b")
        view.box(24, 30, 48, 30, "#e8d9b5", edge="#8c7a55")
        view.shape([(18, 32), (48, 10), (78, 32)], "#9b4a35")
        view.box(42, 42, 12, 18, door)
        for place in range(windows):
            view.box(28 + 30 * place, 36, 10, 9, "#5b86a8", edge="#ffffff")
        view.box(60, 10, 6, 12, "#7a5a45")
        if smoke:
            for step, (x, y) in enumerate(((64, 8), (70, 5), (78, 3))):
                view.disc(x, y, 3 + step, "#dddddd")
        return view

    return draw


def plant(stage: int) -> Draw:
    """A pot: bare earth, a shoot, leaves, and at last a yellow flower."""

    def draw() -> Picture:
        view = Picture(WIDTH, HEIGHT, "#f4f1e8")
        view.shape([(34, 50), (62, 50), (57, 68), (39, 68)], "#b5653a", edge="#6d3a1f")
        if stage >= 1:
            view.line([(48, 50), (48, 44 - 8 * stage)], "#3f8a3a", 3)
        if stage >= 2:
            view.disc(41, 36, 8, "#4fa348", ry=3)
            view.disc(55, 32, 8, "#4fa348", ry=3)
        if stage >= 3:
            for x, y in ring(48, 18, 7, 6):
                view.disc(x, y, 4, "#f0c419")
            view.disc(48, 18, 4, "#7a4a1e")
        return view

    return draw


def dial(hour: int) -> Draw:
    """A clock at a full hour."""

    def draw() -> Picture:
        view = Picture(WIDTH, HEIGHT, "#dfe4ea")
        view.disc(48, 36, 30, "#ffffff", edge="#333333", width=2)
        for x, y in ring(48, 36, 25, 12):
            view.disc(x, y, 1.5, "#333333")
        view.line([(48, 36), (48, 14)], "#222222", 2)
        view.line([(48, 36), ring(48, 36, 15, 12, -90)[hour % 12]], "#222222", 4)
        return view

    return draw


def island(x: float, y: float, *, drift: float = 0) -> Draw:
    """A map of an island with a red cross on it; all but the cross drifts to the right."""

    def draw() -> Picture:
        view = Picture(WIDTH, HEIGHT, "#9cc9e3")
        view.disc(48 + drift, 38, 36, "#d9cf9a", ry=24, edge="#a3955a")
        view.shape([(40 + drift, 40), (50 + drift, 22), (60 + drift, 40)], "#8d8a86")
        view.line([(x - 4, y - 4), (x + 4, y + 4)], "#c8102e", 2)
        view.line([(x - 4, y + 4), (x + 4, y - 4)], "#c8102e", 2)
        view.text(84, 4, "N", 9)
        return view

    return draw


def spots(points: Sequence[tuple[str, float, float]], ground: Colour = "#e9e4da") -> Draw:
    """A path that runs away to the horizon, with lettered spots on it."""

    def draw() -> Picture:
        view = Picture(WIDTH, HEIGHT, "#cfe3ef")
        view.box(0, 24, WIDTH, 48, ground)
        view.shape([(44, 24), (52, 24), (80, 72), (16, 72)], "#b3a07c")
        for letter, x, y in points:
            view.disc(x, y, 5, None, edge="#c8102e", width=1.5)
            view.text(x, y - 5, letter, 9, "#c8102e", align="middle", bold=True)
        return view

    return draw


def framed(draw: Draw, boxes: Sequence[tuple[str, float, float, float, float]]) -> Draw:
    """A picture with lettered boxes on it: letter, corner, size."""

    def drawn() -> Picture:
        view = draw()
        for letter, x, y, w, h in boxes:
            view.box(x, y, w, h, None, edge="#1d4fd0", width=1.5)
            view.text(x + 2, y, letter, 10, "#1d4fd0", bold=True)
        return view

    return drawn


def torn(draw: Draw) -> Draw:
    """A picture whose lower right corner is missing."""

    def drawn() -> Picture:
        view = draw()
        view.box(WIDTH / 2, HEIGHT / 2, WIDTH / 2, HEIGHT / 2, "#000000")
        return view

    return drawn


def pattern(shape: str, colour: Colour) -> Draw:
    """A wall of one repeated shape: discs, boxes or stripes."""

    def draw() -> Picture:
        view = Picture(WIDTH, HEIGHT, "#fbf7ee")
        for row in range(3):
            for column in range(4):
                x, y = 14 + 23 * column, 13 + 23 * row
                if shape == "discs":
                    view.disc(x, y, 8, colour)
                elif shape == "boxes":
                    view.box(x - 8, y - 8, 16, 16, colour)
                else:
                    view.line([(x - 9, y + 8), (x + 9, y - 8)], colour, 4)
        return view

    return draw


def grey(patches: Sequence[tuple[str, int]]) -> Draw:
    """Lettered patches of different grey on a wall."""

    def draw() -> Picture:
        view = Picture(WIDTH, HEIGHT, "#8a8f96")
        for place, (letter, shade) in enumerate(patches):
            view.box(8 + 46 * place, 20, 36, 36, (shade, shade, shade))
            view.text(26 + 46 * place, 4, letter, 12, "#ffffff", align="middle", bold=True)
        return view

    return draw


def coded(draws: Sequence[Draw]) -> str:
    """Return pictures as a VLMEvalKit cell: base64, or a list of it if they are several."""
    cells = [base64.b64encode(jpeg(draw().done(), quality=60)).decode() for draw in draws]
    return cells[0] if len(cells) == 1 else str(cells)
