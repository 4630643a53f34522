"""The pictures of the Mem-Gallery sample: hives and flowers, clocks and model trains."""

from __future__ import annotations

import math

from samples.drawing import Picture, ring, scatter


def hive(roof: str, boxes: int, name: str = "", *, snow: bool = False) -> Picture:
    """A hive on a flat roof: `boxes` white boxes below a coloured roof, with the city behind."""
    view = Picture(480, 360, "#bcd7e8")
    view.shade(0, 240, (150, 190, 220), (228, 236, 238))
    for index, x in enumerate(range(0, 480, 60)):
        tall = (60, 92, 44, 78, 110, 56, 84, 50)[index]
        view.box(x, 240 - tall, 56, tall, ("#9aa7b0", "#b0a49a", "#a6b0a0")[index % 3])
    view.box(0, 240, 480, 120, "#eef2f5" if snow else "#8d9089")
    view.box(160, 306, 150, 12, "#6b4a2f")
    for x in (172, 286):
        view.box(x, 318, 12, 24, "#6b4a2f")
    for index in range(boxes):
        y = 306 - 52 * (index + 1)
        view.box(165, y, 140, 52, "#f3efe2", edge="#b5ab92", width=2)
        view.box(214, y + 20, 42, 9, "#d8cfb6", radius=4)
    top = 306 - 52 * boxes
    view.box(155, top - 22, 160, 24, roof, radius=4)
    if snow:
        view.box(158, top - 32, 154, 13, "#ffffff", radius=6)
    view.box(200, 296, 70, 8, "#33261a")
    if name:
        view.text(235, top + 27, name, 19, "#5a4a2f", align="middle", bold=True)
    for px, py in [] if snow else scatter(boxes * 7 + len(name), 12, (90, 400), (150, 330)):
        bee(view, px, py, 0.35)
    return view


def bee(view: Picture, x: float, y: float, size: float) -> None:
    """Draw a bee from the side, about 60 pixels long at size 1."""
    view.disc(x - 4 * size, y - 17 * size, 12 * size, "#e6eef2", ry=18 * size, edge="#a9b8c0")
    view.disc(x + 10 * size, y - 17 * size, 12 * size, "#e6eef2", ry=18 * size, edge="#a9b8c0")
    view.disc(x, y, 28 * size, "#e5a823", ry=17 * size)
    for dx in (-12, 0, 12):
        view.line([(x + dx * size, y - 15 * size), (x + dx * size, y + 15 * size)], "#3a2a14", max(1, 5 * size))
    view.disc(x + 30 * size, y - 2 * size, 11 * size, "#3a2a14")


def comb(kind: str) -> Picture:
    """A wooden frame of comb: "eggs", "brood" or "honey"."""
    view = Picture(480, 360, "#6f7d68")
    view.box(40, 50, 400, 260, "#c79a5e", radius=4)
    view.box(62, 76, 356, 214, "#e9c46a")
    view.box(20, 50, 440, 20, "#b5884c", radius=3)
    for row in range(9):
        for column in range(15):
            x, y = 74 + column * 24 + row % 2 * 12, 90 + row * 24
            if x > 410:
                continue
            middle = math.hypot(x - 240, (y - 184) * 1.3) < 130
            if kind == "honey":
                fill = "#f7ecd0"
            elif kind == "brood":
                fill = "#b8813f" if middle else "#f0d48a"
            else:
                fill = "#4a3518" if middle else "#f0d48a"
            view.shape(ring(x, y, 12, 6, 30), fill, edge="#a8792f")
            if kind == "eggs" and middle:
                view.line([(x - 1, y + 4), (x + 1, y - 4)], "#ffffff", 2)
    return view


def queen(dot: str) -> Picture:
    """A queen with a coloured dot among workers on comb."""
    view = Picture(480, 360, "#d9a441")
    for row in range(11):
        for column in range(13):
            view.shape(ring(18 + column * 40 + row % 2 * 20, 16 + row * 35, 20, 6, 30), "#c48a2c", edge="#a8721c")
    for x, y in ((90, 90), (390, 80), (110, 280), (400, 280), (240, 60), (250, 320)):
        bee(view, x, y, 0.9)
    view.disc(222, 190, 86, "#8a4f1c", ry=24)
    for x in range(170, 262, 22):
        view.line([(x, 170), (x, 210)], "#6b3a12", 3)
    view.disc(316, 188, 26, "#6b3a12", ry=22)
    view.disc(350, 186, 16, "#3a2a14")
    view.disc(316, 182, 11, dot, edge="#ffffff", width=2)
    return view


def mite_board(mites: int) -> Picture:
    """A white board with a grid and fallen mites, reddish dots."""
    view = Picture(480, 360, "#7a8078")
    view.box(40, 30, 400, 300, "#fbfbf6", edge="#c9c9bd", width=2)
    for x in range(80, 440, 40):
        view.line([(x, 30), (x, 330)], "#dfe3e0", 1)
    for y in range(70, 330, 40):
        view.line([(40, y), (440, y)], "#dfe3e0", 1)
    for px, py in scatter(31, mites, (60, 420), (50, 310)):
        view.disc(px, py, 7, "#a8432a", ry=5)
    return view


def jar(label: str, weight: str, honey: str = "#e0a030") -> Picture:
    """A jar of honey with a label."""
    view = Picture(480, 360, "#d8cbb6")
    view.box(0, 290, 480, 70, "#8d6a48")
    view.box(165, 70, 150, 240, honey, radius=18, edge="#b07a1c", width=3)
    view.box(172, 44, 136, 34, "#b0b6ba", radius=5)
    view.box(165, 130, 150, 108, "#fffdf2")
    view.text(240, 142, label, 20, "#5a3d08", align="middle", bold=True)
    view.text(240, 172, "roof honey", 17, "#5a3d08", align="middle")
    view.text(240, 204, weight, 19, align="middle", bold=True)
    return view


def flowers(kind: str) -> Picture:
    """A planter in bloom: "borage" blue stars, "poppy" red cups, "lavender" violet spikes, "sunflower"."""
    view = Picture(480, 360, "#cfe3d4")
    view.shade(0, 260, (190, 214, 230), (226, 238, 226))
    view.box(30, 270, 420, 80, "#a8683f", radius=5)
    for index, x in enumerate(range(70, 440, 54)):
        y = 120 + index * 37 % 60
        view.line([(x, 272), (x + 3, y)], "#4f7f45", 5)
        view.disc(x - 10, 230, 15, "#5f954f", ry=6)
        if kind == "borage":
            for px, py in ring(x, y, 15, 5, index * 20):
                view.disc(px, py, 10, "#4a66c9")
            view.disc(x, y, 6, "#22264a")
        elif kind == "poppy":
            for px, py in ring(x, y, 13, 4, 45):
                view.disc(px, py, 16, "#d63a2c")
            view.disc(x, y, 9, "#22201f")
        elif kind == "lavender":
            for k in range(9):
                view.disc(x + (5 if k % 2 else -5), y - 30 + k * 9, 7, "#8a6bc0")
        else:
            for px, py in ring(x, y, 20, 12):
                view.disc(px, py, 9, "#f2b824")
            view.disc(x, y, 15, "#6b421c")
    return view


def smoker() -> Picture:
    """A bee smoker and a hive tool on a bench."""
    view = Picture(480, 360, "#c3cdb8")
    view.box(0, 260, 480, 100, "#8d6a48")
    view.box(150, 120, 120, 150, "#b4bcc2", radius=8, edge="#7d868c", width=3)
    view.shape([(150, 124), (270, 124), (220, 74), (120, 60)], "#9ea7ad")
    view.shape([(276, 140), (340, 120), (340, 260), (276, 250)], "#7a4a2c")
    for index, (x, y) in enumerate(((110, 50), (84, 34), (54, 26))):
        view.disc(x, y, 16 + index * 7, "#e4e8e6")
    view.box(360, 250, 100, 12, "#c0392b", radius=4)
    view.shape([(452, 242), (474, 236), (474, 270), (452, 268)], "#9ea7ad")
    return view


def clock(hour: int, minute: int, name: str, *, case: str = "#7a4a2c", face: str = "#fbf6e6") -> Picture:
    """A wall clock showing a time, with the maker's name on its face."""
    view = Picture(480, 360, "#c9d0c4")
    view.disc(240, 180, 162, case)
    view.disc(240, 180, 138, face, edge="#4a3520", width=4)
    for index, (x, y) in enumerate(ring(240, 180, 114, 12, -60)):
        view.text(x, y - 12, str(index + 1), 23, "#2a2118", align="middle", bold=True)
    for x, y in ring(240, 180, 132, 60):
        view.disc(x, y, 1.6, "#2a2118")
    view.text(240, 216, name, 15, "#6b5a40", align="middle")
    for turn, length, width in ((hour % 12 * 30 + minute / 2, 66, 9), (minute * 6, 100, 6)):
        angle = math.radians(turn - 90)
        view.line([(240, 180), (240 + length * math.cos(angle), 180 + length * math.sin(angle))], "#1c1a18", width)
    view.disc(240, 180, 9, "#1c1a18")
    return view


def gears(teeth: list[int], broken: bool = False) -> Picture:
    """Brass wheels on a cloth, one for each tooth count; the last has lost two teeth if `broken`."""
    view = Picture(480, 360, "#5a6b78")
    x = 96.0
    for index, count in enumerate(teeth):
        radius = 26 + count * 0.5
        for tooth, (px, py) in enumerate(ring(x, 180, radius + 5, count)):
            if not (broken and index == len(teeth) - 1 and tooth in (0, 1)):
                view.disc(px, py, 5, "#c9a03c")
        view.disc(x, 180, radius, "#d9b24a", edge="#a87c1f", width=3)
        for px, py in ring(x, 180, radius * 0.55, 5):
            view.disc(px, py, radius * 0.2, "#5a6b78")
        view.disc(x, 180, 7, "#8a6a1c")
        view.text(x, 288, f"{count} teeth", 18, "#f1efe6", align="middle")
        x += 144
    return view


def engine(paint: str, number: str, wagons: list[str]) -> Picture:
    """A model locomotive with its number, pulling wagons of the given colours."""
    view = Picture(480, 360, "#dfe6dc")
    view.box(0, 250, 480, 110, "#a8b08a")
    for x in range(-10, 480, 26):
        view.box(x, 262, 14, 8, "#6b4a2f")
    view.line([(0, 260), (480, 260)], "#70757a", 5)
    view.box(300, 170, 110, 58, paint, radius=16)
    view.box(256, 134, 62, 96, paint, radius=5)
    view.box(268, 146, 38, 30, "#d5e6ee")
    view.box(378, 138, 20, 36, "#2a2a2a")
    view.disc(410, 198, 9, "#f5e08a")
    view.box(246, 226, 178, 12, "#2a2a2a", radius=3)
    for x in (276, 326, 376):
        view.disc(x, 242, 18, "#3a3a3a", edge="#b8423a", width=4)
    view.text(350, 184, number, 27, "#fff6da", align="middle", bold=True)
    for index, colour in enumerate(wagons):
        x = 172 - index * 84
        view.box(x, 180, 74, 52, colour, radius=4)
        view.line([(x + 74, 230), (x + 86, 230)], "#2a2a2a", 4)
        for dx in (16, 58):
            view.disc(x + dx, 246, 13, "#3a3a3a")
    for index, (x, y) in enumerate(((388, 118), (372, 92), (346, 66))):
        view.disc(x, y, 13 + index * 7, "#f3f5f4")
    return view


def halt(name: str, trees: int) -> Picture:
    """A model station building with its name board and trees."""
    view = Picture(480, 360, "#c4dbe6")
    view.box(0, 240, 480, 120, "#8fae74")
    view.box(120, 130, 240, 116, "#d9a07a")
    view.shape([(100, 134), (240, 70), (380, 134)], "#7a3b2e")
    view.box(216, 176, 48, 70, "#4a6b52")
    for x in (144, 296):
        view.box(x, 164, 42, 40, "#e6f0f4", edge="#7a5a3c", width=3)
    view.box(150, 138, 180, 26, "#fdf6d8", radius=3)
    view.text(240, 141, name, 18, "#2a2a2a", align="middle", bold=True)
    view.box(60, 246, 360, 22, "#b5b1a8")
    view.line([(0, 300), (480, 300)], "#70757a", 5)
    for index in range(trees):
        x = (40, 440, 84, 400, 20)[index]
        view.box(x - 4, 210, 8, 40, "#5b3d24")
        view.disc(x, 190, 28, "#4f7f45", ry=36)
    return view


def signal(up: bool) -> Picture:
    """A semaphore signal with its red arm up (go) or level (stop)."""
    view = Picture(480, 360, "#d6e2ea")
    view.box(0, 290, 480, 70, "#8fae74")
    view.box(230, 40, 14, 270, "#f3f3ee", edge="#8a8a84", width=2)
    if up:
        view.shape([(240, 92), (346, 36), (354, 56), (246, 114)], "#c0392b")
        view.shape([(320, 50), (334, 42), (342, 62), (328, 70)], "#ffffff")
    else:
        view.shape([(240, 84), (360, 84), (360, 108), (240, 108)], "#c0392b")
        view.shape([(326, 84), (342, 84), (342, 108), (326, 108)], "#ffffff")
    view.disc(237, 34, 9, "#c0392b")
    return view
