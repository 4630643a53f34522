"""Small pictures for the samples of benchmarks that ask about one picture; each is drawn here and about 3 kB."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Callable, Mapping, Sequence

from samples.drawing import Picture, jpeg

WIDTH, HEIGHT = 160, 120


def kite() -> Picture:
    """A red kite with a yellow tail over a green hill; the sun stands left."""
    view = Picture(WIDTH, HEIGHT, "#9fd0f2")
    view.disc(26, 24, 13, "#ffd84a")
    view.disc(80, 150, 120, "#6fae57", ry=68)
    view.line([(104, 46), (94, 66), (102, 78), (92, 92)], "#e8c21f", 3)
    view.shape([(104, 14), (120, 32), (104, 48), (88, 32)], "#d0342c", edge="#7a1712")
    return view


def jars() -> Picture:
    """Two shelves: three jars above, two below, the last one empty."""
    view = Picture(WIDTH, HEIGHT, "#f3ead8")
    for y in (56, 108):
        view.box(12, y, 136, 6, "#8a5a33")
    for x, y, fill in ((28, 26, "#b5483a"), (70, 26, "#d99a2b"), (112, 26, "#4f7d4a"), (44, 78, "#b5483a")):
        view.box(x, y, 22, 30, fill, radius=4, edge="#333333")
        view.box(x + 2, y - 5, 18, 6, "#777777")
    view.box(92, 78, 22, 30, "#ffffff", radius=4, edge="#333333")
    view.box(94, 73, 18, 6, "#777777")
    return view


def boats() -> Picture:
    """A sailing boat with a blue sail left of a small rowing boat."""
    view = Picture(WIDTH, HEIGHT, "#d8ecf5")
    view.box(0, 70, WIDTH, 50, "#3d7ea6")
    view.shape([(22, 74), (76, 74), (66, 88), (32, 88)], "#7a4a2b")
    view.line([(48, 74), (48, 18)], "#444444", 2)
    view.shape([(51, 20), (51, 68), (78, 68)], "#2f55b0")
    view.shape([(108, 84), (146, 84), (138, 94), (116, 94)], "#c9a25f", edge="#5a4020")
    return view


def crossing() -> Picture:
    """A street with a traffic light at red and a sign that points left to Mill Lane."""
    view = Picture(WIDTH, HEIGHT, "#cfd8dc")
    view.shape([(40, 120), (70, 62), (90, 62), (120, 120)], "#555555")
    view.line([(80, 118), (80, 66)], "#eeeeee", 2)
    view.line([(130, 120), (130, 40)], "#333333", 4)
    view.box(119, 8, 22, 50, "#222222", radius=4)
    for y, fill in ((18, "#e53935"), (33, "#4a4a2a"), (48, "#2a4a2a")):
        view.disc(130, y, 6, fill)
    view.line([(28, 120), (28, 44)], "#333333", 3)
    view.shape([(4, 38), (16, 28), (72, 28), (72, 48), (16, 48)], "#1d6b3a")
    view.text(20, 31, "Mill Lane", 11, "#ffffff")
    return view


def bars() -> Picture:
    """A bar chart of four days: Mon 3, Tue 5, Wed 8, Thu 2."""
    view = Picture(WIDTH, HEIGHT, "#ffffff")
    view.line([(20, 8), (20, 98), (152, 98)], "#333333", 1.5)
    for place, (day, value) in enumerate((("Mon", 3), ("Tue", 5), ("Wed", 8), ("Thu", 2))):
        x = 28 + 32 * place
        view.box(x, 98 - 10 * value, 20, 10 * value, "#4a7ab5")
        view.text(x + 10, 101, day, 10, align="middle")
        view.text(x + 10, 98 - 10 * value - 13, str(value), 10, align="middle")
    return view


def clock() -> Picture:
    """A wall clock at four o'clock."""
    view = Picture(WIDTH, HEIGHT, "#e9dfc9")
    view.disc(80, 60, 50, "#ffffff", edge="#333333", width=3)
    for words, x, y in (("12", 80, 12), ("3", 121, 52), ("6", 80, 93), ("9", 39, 52)):
        view.text(x, y, words, 13, align="middle")
    view.line([(80, 60), (80, 26)], "#222222", 2)
    view.line([(80, 60), (104, 74)], "#222222", 4)
    return view


def table() -> Picture:
    """A green ball under a table and a blue book on it."""
    view = Picture(WIDTH, HEIGHT, "#f1eee6")
    view.box(0, 104, WIDTH, 16, "#cbb994")
    view.box(24, 44, 112, 8, "#8a5a33")
    for x in (30, 122):
        view.box(x, 52, 8, 54, "#8a5a33")
    view.disc(78, 92, 14, "#3c9a4b", edge="#20592a")
    view.box(66, 32, 36, 12, "#2f55b0", radius=2, edge="#1a2f66")
    return view


def flag() -> Picture:
    """A white flag with a red disc in its middle."""
    view = Picture(WIDTH, HEIGHT, "#b9d4e8")
    view.line([(24, 10), (24, 118)], "#555555", 4)
    view.box(28, 16, 108, 72, "#ffffff", edge="#bbbbbb")
    view.disc(82, 52, 20, "#c8102e")
    return view


def tile() -> Picture:
    """A tile of the periodic table: 79, Au."""
    view = Picture(WIDTH, HEIGHT, "#333333")
    view.box(34, 12, 92, 96, "#f2d675", radius=4)
    view.text(42, 18, "79", 18)
    view.text(80, 42, "Au", 44, align="middle", bold=True)
    return view


def triangle() -> Picture:
    """A right-angled triangle with sides 3 and 4; the longest side has no number."""
    view = Picture(WIDTH, HEIGHT, "#ffffff")
    view.shape([(30, 100), (130, 100), (30, 25)], "#dbe7f5", edge="#222222")
    view.box(30, 90, 10, 10, None, edge="#222222")
    view.text(80, 102, "4", 14, align="middle")
    view.text(18, 54, "3", 14)
    return view


def picture(draw: Callable[[], Picture]) -> bytes:
    """Return a picture as a JPEG file."""
    return jpeg(draw().done(), quality=60)


def coded(draw: Callable[[], Picture]) -> str:
    """Return a picture as a VLMEvalKit cell: the base64 of its JPEG file."""
    return base64.b64encode(picture(draw)).decode()


def as_tsv(columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> bytes:
    """Return a table as VLMEvalKit writes it: tab-separated, every cell in quotes, what is absent empty."""
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, "", delimiter="\t", quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()
