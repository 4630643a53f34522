"""Small drawn films for the samples of benchmarks that ask about videos, as Motion-JPEG AVI files or as stills."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from samples.avi import motion_jpeg
from samples.drawing import Picture, jpeg, ring

WIDTH, HEIGHT = 96, 72
Scene = Callable[[float], Picture]
"""What is to be seen, from 0 at the beginning of a film to 1 at its end."""


def frames(scene: Scene, count: int) -> Iterator[bytes]:
    """Yield so many frames of a scene, evenly in time."""
    return (jpeg(scene(place / max(1, count - 1)).done(), quality=50) for place in range(count))


def film(scene: Scene, seconds: int, rate: int) -> bytes:
    """Return a scene as an AVI file."""
    return motion_jpeg(list(frames(scene, seconds * rate)), WIDTH, HEIGHT, rate, "2024-05-01")


def rolling(colour: str, *, left: bool = False, more: int = 0) -> Scene:
    """A ball rolls across a table, past as many standing boxes as `more` says."""

    def scene(t: float) -> Picture:
        view = Picture(WIDTH, HEIGHT, "#e8e4da")
        view.box(0, 50, WIDTH, 22, "#b9a27e")
        for place in range(more):
            view.box(14 + 24 * place, 30, 12, 20, "#5b86a8", edge="#2f4a5f")
        x = 8 + 80 * (1 - t if left else t)
        view.disc(x, 44, 7, colour, edge="#333333")
        return view

    return scene


def lamp(t: float) -> Picture:
    """A lamp that is off and is lit half-way through."""
    lit = t >= 0.5
    view = Picture(WIDTH, HEIGHT, "#f6ecc4" if lit else "#4a4f58")
    view.box(0, 60, WIDTH, 12, "#7a5a3c")
    view.line([(48, 60), (48, 34)], "#222222", 3)
    view.shape([(36, 34), (60, 34), (54, 16), (42, 16)], "#ffe25a" if lit else "#8d8a80")
    return view


def cups(t: float) -> Picture:
    """A ball under the left of three cups; the left and the middle cup change places."""
    view = Picture(WIDTH, HEIGHT, "#dfe7e2")
    view.box(0, 56, WIDTH, 16, "#8a5a33")
    swap = min(1.0, max(0.0, (t - 0.25) / 0.5))
    if t < 0.2:
        view.disc(20, 52, 4, "#c8372d")
    for x, lift in ((20 + 28 * swap, 12 if t < 0.2 else 0), (48 - 28 * swap, 0), (76, 0)):
        view.shape([(x - 9, 56 - lift), (x + 9, 56 - lift), (x + 6, 34 - lift), (x - 6, 34 - lift)], "#3f6fae",
                   edge="#233f66")  # fmt: skip
    return view


def kitchen(t: float) -> Picture:
    """Someone opens a cupboard, then lifts a red pot, then puts out the light."""
    dark = t >= 0.75
    view = Picture(WIDTH, HEIGHT, "#59606b" if dark else "#f3efe4")
    view.box(0, 54, WIDTH, 18, "#9c8a6c")
    view.box(58, 8, 30, 26, "#b98b52", edge="#5e431f")
    if t >= 0.25:
        view.box(58, 8, 12, 26, "#e3c48f", edge="#5e431f")
        view.box(70, 8, 18, 26, "#3a2c18")
    lift = 18 if 0.5 <= t < 0.75 else 0
    view.box(64, 44 - lift, 16, 10, "#c8372d", radius=2, edge="#5e1712")
    x = 46 if t >= 0.25 else 24
    view.disc(x, 22, 6, "#e7b98f")
    view.line([(x, 28), (x, 46), (x - 6, 60)], "#2f55b0", 4)
    view.line([(x, 46), (x + 6, 60)], "#2f55b0", 4)
    view.line([(x, 34), (x + 14, 44 - lift if t >= 0.5 else 26 if t >= 0.25 else 44)], "#2f55b0", 3)
    return view


def quay(t: float) -> Picture:
    """A day at a quay: a boat with a white sail comes in, a flag turns from green to red, and night falls."""
    night = t >= 0.7
    view = Picture(WIDTH, HEIGHT, "#1d2a44" if night else "#cfe6f3")
    view.box(0, 46, WIDTH, 26, "#25476b" if night else "#5b9ac0")
    if night:
        for x, y in ring(48, 4, 36, 9, 10):
            view.disc(x, max(4, y), 1, "#ffffff")
    view.box(76, 20, 8, 34, "#eeeeee", edge="#666666")
    view.disc(80, 18, 4, "#ffe25a" if night else "#aaaaaa")
    view.line([(12, 46), (12, 20)], "#444444", 2)
    view.box(13, 20, 14, 9, "#c8372d" if t >= 0.45 else "#2c9a4b")
    if t >= 0.2:
        x = 10 + 56 * min(1.0, (t - 0.2) / 0.4)
        view.shape([(x - 12, 52), (x + 12, 52), (x + 8, 58), (x - 8, 58)], "#7a4a2b")
        view.shape([(x, 34), (x, 50), (x + 10, 50)], "#ffffff")
    return view


def garden(t: float) -> Picture:
    """A season in a garden: a shoot grows, rain falls, a flower opens, and a snail has the last word."""
    rain = 0.3 <= t < 0.5
    view = Picture(WIDTH, HEIGHT, "#aab4bd" if rain else "#d3ebf7")
    view.box(0, 56, WIDTH, 16, "#6b4a2e")
    top = 56 - 34 * min(1.0, t / 0.6)
    view.line([(48, 56), (48, top)], "#3f8a3a", 3)
    if t >= 0.2:
        view.disc(41, (56 + top) / 2, 7, "#4fa348", ry=3)
    if rain:
        for x in range(6, WIDTH, 15):
            view.line([(x, 8), (x - 3, 18)], "#2f55b0", 1.5)
            view.line([(x + 6, 26), (x + 3, 36)], "#2f55b0", 1.5)
    if t >= 0.6:
        for x, y in ring(48, top, 7, 5):
            view.disc(x, y, 4, "#b04aa8")
        view.disc(48, top, 3, "#f0c419")
    if t >= 0.8:
        view.disc(20 + 60 * (t - 0.8), 54, 5, "#a0764a", edge="#5e431f")
    return view
